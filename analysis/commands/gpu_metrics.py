"""What GPU utilisation, GRACT, SMACT and SMOCC said of kernels of known size, and what they cannot say.

Reads saved runs of bench_gpu_metrics, and folders of log pairs (dcgmi dmon, nvidia-smi) with their summary tables.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from analysis.studies.gpu.asked import Found

GROUP = "study"
HELP = "GPU metrics over a grid of blocks × threads: relations, bounds, heat maps"
EXAMPLE = """\
examples:
  python -m analysis gpu-metrics .benchmarks/*/0001_grid.json
  python -m analysis gpu-metrics logs/                    <blocks>.<threads>.dcgmi.txt and .nvsm.txt, and mean.csv if it is there
  python -m analysis gpu-metrics logs/ --plot pictures/   heat maps and relations too
  python -m analysis gpu-metrics logs/ --csv tables/      mean.csv, median.csv, max.csv, active.csv

Exit code 0: analysed. 2: bad usage, or nothing can be used.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("runs", metavar="RUN|DIR", nargs="+", help="saved runs, folders of logs, summary tables (mean.csv)")
    parser.add_argument("--sms", metavar="N", type=count, help="SMs of the GPU (default: as recorded, or by its name)")
    parser.add_argument("--gpu", metavar="K", help="the GPU of the logs that ran the kernels (default: the busiest)")
    parser.add_argument("--plot", metavar="DIR", type=Path, help="draw heat maps and relations into this folder")
    parser.add_argument("--csv", metavar="DIR", type=Path, help="write each statistic of every cell into this folder")


def count(text: str) -> int:
    """Read a number of SMs. Raises: ValueError, which argparse says."""
    if not text.isdecimal() or not 0 < int(text[:9]) <= 100_000:
        raise ValueError
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Print what the grids say, each by itself."""
    from analysis.studies.gpu.asked import gathered  # noqa: PLC0415  # numpy, which --help need not wait for

    result = gathered(args.runs, gpu=args.gpu, sms=args.sms)
    for line in result.refused:
        print("refused:", line, file=sys.stderr)
    files: dict[str, str] = {}
    if args.plot is not None or args.csv is not None:
        from analysis.studies.gpu import files as writing  # noqa: PLC0415  # matplotlib, which takes a second to import

        files |= writing.tables(result.grids, args.csv) if args.csv is not None else {}
        files |= writing.pictures(result.grids, args.plot) if args.plot is not None else {}
    if args.json:
        from analysis.studies.gpu.as_json import as_json  # noqa: PLC0415  # only for programs

        print(as_json(result, files), end="")
    else:
        print(_text(result), end="")
        print(*(f"{name}: {text}" for name, text in files.items()), sep="\n", end="\n" if files else "")
    return 0


def _text(result: Found) -> str:
    from analysis.render.text import wants_color  # noqa: PLC0415
    from analysis.studies.gpu.page import render  # noqa: PLC0415  # --json has no need of rich

    color = wants_color(sys.stdout)
    return "\n".join(render(grid, color=color) for grid in result.grids)
