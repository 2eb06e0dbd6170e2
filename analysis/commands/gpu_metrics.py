"""What GPU utilisation, GRACT, SMACT and SMOCC said of kernels of known size, and what they cannot say.

Reads saved runs of bench_gpu_metrics, and folders of log pairs (dcgmi dmon, nvidia-smi) with their summary tables.
"""

from __future__ import annotations

from pathlib import Path

from analysis.answer import Answer
from analysis.subcommands import option, signature
from analysis.wording import whole
from control.called import JUDGE

ANSWERS = True
GROUP = "study"
HELP = "GPU metrics over a grid of blocks × threads: relations, bounds, heat maps"
EXAMPLE = f"""\
examples:
  {JUDGE} gpu-metrics .benchmarks/*/0001_grid.json
  {JUDGE} gpu-metrics logs/                    <blocks>.<threads>.dcgmi.txt and .nvsm.txt, and mean.csv if it is there
  {JUDGE} gpu-metrics logs/ --plot pictures/   heat maps and relations too
  {JUDGE} gpu-metrics logs/ --tables tables/   mean.csv, median.csv, max.csv, active.csv

Exit code 0: analysed. 2: bad usage, or nothing can be used.
"""


@signature
def run(
    runs: list[str] = option("RUN|DIR", "saved runs, folders of logs, summary tables (mean.csv)", nargs="+"),
    *,
    sms: int | None = option("N", "SMs of the GPU (default: as recorded, or by its name)", type=whole(1, 100_000)),
    gpu: str | None = option("K", "the GPU of the logs that ran the kernels (default: the busiest)"),
    plot: Path | None = option("DIR", "draw heat maps and relations into this folder", type=Path),
    tables: Path | None = option("DIR", "write each statistic of every cell into this folder, a CSV file each", type=Path),
) -> Answer:
    from analysis.studies.gpu import sources
    from analysis.studies.gpu.answers import answer

    result = sources.read_grids(runs, gpu=gpu, sms=sms)
    files = sources.tables(result.grids, tables) if tables is not None else {}
    files |= sources.pictures(result.grids, plot) if plot is not None else {}
    return answer(result, files)


arguments = run.arguments
