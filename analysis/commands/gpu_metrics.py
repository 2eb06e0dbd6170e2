"""What GPU utilisation, GRACT, SMACT and SMOCC said of kernels of known size, and what they cannot say.

Reads saved runs of bench_gpu_metrics, and folders of log pairs (dcgmi dmon, nvidia-smi) with their summary tables.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.wording import whole

if TYPE_CHECKING:
    import argparse

    from analysis.answer import Answer

ANSWERS = True
GROUP = "study"
HELP = "GPU metrics over a grid of blocks × threads: relations, bounds, heat maps"
EXAMPLE = """\
examples:
  python -m analysis gpu-metrics .benchmarks/*/0001_grid.json
  python -m analysis gpu-metrics logs/                    <blocks>.<threads>.dcgmi.txt and .nvsm.txt, and mean.csv if it is there
  python -m analysis gpu-metrics logs/ --plot pictures/   heat maps and relations too
  python -m analysis gpu-metrics logs/ --tables tables/   mean.csv, median.csv, max.csv, active.csv

Exit code 0: analysed. 2: bad usage, or nothing can be used.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN|DIR", nargs="+", help="saved runs, folders of logs, summary tables (mean.csv)")
    parser.add_argument("--sms", metavar="N", type=whole(1, 100_000), help="SMs of the GPU (default: as recorded, or by its name)")
    parser.add_argument("--gpu", metavar="K", help="the GPU of the logs that ran the kernels (default: the busiest)")
    parser.add_argument("--plot", metavar="DIR", type=Path, help="draw heat maps and relations into this folder")
    parser.add_argument("--tables", metavar="DIR", type=Path, help="write each statistic of every cell into this folder, a CSV file each")


def run(args: argparse.Namespace) -> Answer:
    from analysis.studies.gpu import answer, sources

    result = sources.read_grids(args.runs, gpu=args.gpu, sms=args.sms)
    files = sources.tables(result.grids, args.tables) if args.tables is not None else {}
    files |= sources.pictures(result.grids, args.plot) if args.plot is not None else {}
    return answer.answer(result, files)
