"""Compare GPU utilisation, GRACT, SMACT and SMOCC with kernels of known size.

Reads saved runs of bench_gpu_metrics.
"""

from __future__ import annotations

from pathlib import Path

from analysis.answer import Answer
from analysis.load import load_each, read_each
from analysis.subcommands import option, signature
from analysis.wording import whole
from control.called import JUDGE

ANSWERS = True
GROUP = "study"
HELP = "GPU metrics over a grid of blocks × threads: relations, bounds, heat maps"
EXAMPLE = f"""\
examples:
  {JUDGE} gpu-metrics .benchmarks/*/0001_grid.json
  {JUDGE} gpu-metrics .benchmarks/*/0001_grid.json --plot pictures/   heat maps, too

Exit code 0: analysed. 2: bad usage, or no usable input.
"""


@signature
def run(
    runs: list[str] = option("RUN", "saved runs of bench_gpu_metrics", nargs="+"),
    *,
    sms: int | None = option(
        "N", "SMs of the GPU (default: as recorded, or by its name)", type=whole(1, 100_000)
    ),
    plot: Path | None = option("DIR", "draw heat maps into this folder", type=Path),
) -> Answer:
    from analysis.studies.gpu.answers import answer
    from analysis.studies.gpu.findings import findings_of
    from analysis.studies.gpu.grid import grid_of

    refused: list[str] = []
    read = read_each(load_each(runs, refused), lambda one: grid_of(one, refused, sms=sms), refused)
    grids = [findings_of(grid) for _, grid in read]
    if plot is None:
        return answer(grids, refused)
    from analysis.studies.gpu.pictures import draw

    return answer(grids, refused, draw(grids, plot))


arguments = run.arguments
