"""What faults cost: recovery, lost work, isolation, packet loss. Each step is its own command."""

from __future__ import annotations

from analysis.answer import Answer, then
from analysis.subcommands import Steps, option, runs_of, step
from analysis.terms import Refused
from analysis.wording import parse_percent
from control.called import JUDGE

GROUP = "study"
HELP = "faults: report, packet loss"
EXAMPLE = f"`{JUDGE} depend STEP --help` says the rest."


@step(
    "recovery, lost work, goodput, slowdown, isolation, accuracy",
    f"""\
examples:
  {JUDGE} depend report .benchmarks/*/0001_faults.json
""",
)
def report(
    runs: list[str] = option("RUN", "saved runs of streams of jobs", nargs="+"),
    *,
    margin: float = option("PERCENT", "how much slower is still isolated (10%%)", type=parse_percent, default="10%"),
) -> Answer:
    """What each fault cost: recovery, lost work, goodput and slowdown against the same jobs without it, block by block.

    Hogs and floods have a verdict on isolation; poisoned clients what accuracy they cost. Streams of one block met the same jobs; those
    without a fault are what the others are held against.
    """
    from analysis.studies.jobs.faults import reported
    from analysis.studies.jobs.records import streams_of

    refused: list[str] = []
    return then(reported(streams_of(runs, refused), margin, refused), "report", *runs)


@step(
    "step time against packet loss",
    f"""\
example:
  {JUDGE} depend network .benchmarks/*/0001_network.json
""",
)
def network(
    runs: list[str] = runs_of("saved runs of ddp_network"),
) -> Answer:
    """Step time against loss of packets, each loss compared with none on the same line, block by block.

    A line is all that was asked for but the loss: delay, MTU, congestion control.
    """
    from analysis.studies.jobs.network import lines as lines_of
    from analysis.studies.jobs.network import lossy, lossy_cells

    refused: list[str] = []
    lines = lines_of(lossy_cells(runs, refused))
    if all(row.loss == 0 for line in lines for row in line.losses):
        raise Refused(f"{', '.join(runs)}: no cell lost packets; ddp_network has loss_percent as a parameter.")
    return then(lossy(lines, refused), "report", *runs)


_STEPS = Steps(__name__)
arguments, run = _STEPS.arguments, _STEPS.run
