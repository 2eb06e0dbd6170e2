"""Report what faults cost: recovery, lost work, isolation, packet loss."""

from __future__ import annotations

from analysis.answer import Answer, then
from analysis.subcommands import Subcommands, option, runs_of, step
from analysis.terms import Refused
from analysis.wording import parse_percent

GROUP = "study"
HELP = "faults: report, packet loss"


@step(
    "recovery, lost work, goodput, slowdown, isolation, accuracy",
    ".benchmarks/*/0001_faults.json",
)
def report(
    runs: list[str] = runs_of("saved runs of streams of jobs"),
    *,
    margin: float = option(
        "PERCENT",
        "largest slowdown that counts as isolated (10%%)",
        type=parse_percent,
        default="10%",
    ),
) -> Answer:
    """Report what each fault cost, block by block: recovery, lost work, goodput and slowdown.

    Each stream with a fault is compared with the stream without one in the same block, which ran
    the same jobs. Hogs and floods get a verdict on isolation, poisoned clients the loss of
    accuracy.
    """
    from analysis.studies.jobs.faults import reported
    from analysis.studies.jobs.records import streams_of

    refused: list[str] = []
    return then(reported(streams_of(runs, refused), margin, refused), "report", *runs)


@step(
    "step time against packet loss",
    ".benchmarks/*/0001_network.json",
)
def network(
    runs: list[str] = runs_of("saved runs of ddp_network"),
) -> Answer:
    """Compare step time under packet loss with none on the same line, block by block.

    A line is the set of all requested parameters except the loss: delay, MTU, congestion control.
    """
    from analysis.studies.jobs.network import lines as lines_of
    from analysis.studies.jobs.network import lossy, lossy_cells

    refused: list[str] = []
    lines = lines_of(lossy_cells(runs, refused))
    if all(row.loss == 0 for line in lines for row in line.losses):
        raise Refused(
            f"{', '.join(runs)}: no cell lost packets; set loss_percent, a parameter of "
            "ddp_network."
        )
    return then(lossy(lines, refused), "report", *runs)


EXAMPLE, arguments, run = Subcommands(__name__).page
