"""What faults cost: recovery, lost work, isolation, checkpoint intervals, packet loss. Each step is its own command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.steps import Steps, step, takes_runs
from analysis.terms import Refused
from analysis.wording import parse_percent

if TYPE_CHECKING:
    import argparse

    from analysis.answer import Answer
    from analysis.studies.jobs.checkpoints import Advice, CheckpointTrial

GROUP = "study"
HELP = "faults: report, checkpoint intervals, packet loss, simulate"
EXAMPLE = """\
example:
  python -m analysis depend report .benchmarks/*/0001_faults.json
  python -m analysis depend checkpoint --cost-s 300 --mtbf-s 86400
  python -m analysis depend network --help
"""


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", help="saved runs of streams of jobs")
    parser.add_argument("--margin", metavar="PERCENT", default="10%", help="how much slower is still isolated (10%%)")


@step(
    _add_report,
    "recovery, lost work, goodput, slowdown, isolation, accuracy",
    """\
examples:
  python -m analysis depend report .benchmarks/*/0001_faults.json
  python -m analysis depend report .benchmarks/*/0001_faults.json --margin 20% --json

Exit code 0: judged, whatever was found. 2: bad usage, or nothing can be used.
""",
)
def report(args: argparse.Namespace) -> Answer:
    """What each fault cost: recovery, lost work, goodput and slowdown against the same jobs without it, block by block.

    Hogs and floods have a verdict on isolation; poisoned clients what accuracy they cost. Streams of one block met the same jobs; those
    without a fault are what the others are held against.
    """
    from analysis.studies.jobs.faults import reported
    from analysis.studies.jobs.records import streams_of

    margin = parse_percent(args.margin)
    refused: list[str] = []
    return reported(streams_of(args.runs, refused), margin, refused)


def _add_checkpoint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="*", help="saved runs in which several checkpoint_s met one fault")
    parser.add_argument("--cost-s", metavar="S", type=float, help="what a checkpoint takes")
    parser.add_argument("--mtbf-s", metavar="S", type=float, help="mean time between failures of a running job")


@step(
    _add_checkpoint,
    "the interval between checkpoints: Young, Daly, and measured",
    """\
examples:
  python -m analysis depend checkpoint --cost-s 300 --mtbf-s 86400
  python -m analysis depend checkpoint .benchmarks/*/0001_faults.json

Exit code 0: worked out. 2: bad usage, or nothing can be used.
""",
)
def checkpoint(args: argparse.Namespace) -> Answer:
    """How often to write a checkpoint: by Young, by Daly, exactly, and where runs tried several intervals, by what was measured.

    With runs, cost and mean time between failures are those measured, unless they are given. The MTBF is that of one job while it runs.
    """
    from analysis.studies.jobs.checkpoints import advise, advised

    given = args.cost_s is not None and args.mtbf_s is not None
    if not args.runs and not given:
        raise Refused("give --cost-s and --mtbf-s, or runs in which they were measured.")
    refused: list[str] = []
    trials = _trials(args, refused) if args.runs else []
    advice = advise(args.cost_s, args.mtbf_s) if given else None
    return advised(advice, trials, refused)


def _trials(args: argparse.Namespace, refused: list[str]) -> list[tuple[CheckpointTrial, Advice | None]]:
    from analysis.studies.jobs.checkpoints import trials as trials_of
    from analysis.studies.jobs.records import streams_of

    trials = trials_of(streams_of(args.runs, refused))
    if not trials:
        raise Refused(f"{', '.join(args.runs)}: no fault met more than one checkpoint_s; `job_stream` has both as parameters.")
    return [(trial, _advice(args, trial)) for trial in trials]


def _advice(args: argparse.Namespace, trial: CheckpointTrial) -> Advice | None:
    from analysis.studies.jobs.checkpoints import advise

    cost_s = args.cost_s if args.cost_s is not None else trial.cost_s
    mtbf_s = args.mtbf_s if args.mtbf_s is not None else trial.mtbf_s and trial.mtbf_s.value
    return advise(cost_s, mtbf_s, trial.restart_s or 0.0) if cost_s and mtbf_s else None


@step(
    takes_runs("saved runs of ddp_network"),
    "step time against packet loss, held against Mathis's law",
    """\
example:
  python -m analysis depend network .benchmarks/*/0001_network.json

Exit code 0: analysed, whatever was found. 2: bad usage, or nothing can be used.
""",
)
def network(args: argparse.Namespace) -> Answer:
    """Step time against loss of packets, held against what TCP can get through at that loss (Mathis), line by line.

    A line is all that was asked for but the loss: delay, MTU, congestion control. Says where it is not that law that decides: arithmetic,
    the line itself, timeouts.
    """
    from analysis.studies.jobs.network import lines as lines_of
    from analysis.studies.jobs.network import lossy, trained

    refused: list[str] = []
    lines = lines_of(trained(args.runs, refused))
    if all(row.loss == 0 for line in lines for row in line.losses):
        raise Refused(f"{', '.join(args.runs)}: no cell lost packets; ddp_network has loss_percent as a parameter.")
    return lossy(lines, refused)


def _add_simulate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cost-s", metavar="S", type=float, required=True, help="what a checkpoint takes")
    parser.add_argument("--mtbf-s", metavar="S", type=float, required=True, help="mean time between failures of a running job")
    parser.add_argument("--work-s", metavar="S", type=float, required=True, help="of one job, without failures and checkpoints")
    parser.add_argument("--restart-s", metavar="S", type=float, default=0.0, help="from a failure to the next attempt (default: 0)")
    parser.add_argument("--shape", metavar="K", type=float, default=1.0, help="of Weibull's law; below 1 failures come in bunches (1)")
    parser.add_argument("--intervals-s", metavar="S,…", help="to play (default: a quarter of Daly's to four times it)")
    parser.add_argument("--seeds", metavar="N", type=int, default=100, help="jobs (default: %(default)s)")


@step(
    _add_simulate,
    "checkpoint intervals simulated, against Daly's",
    """\
examples:
  python -m analysis depend simulate --cost-s 300 --mtbf-s 86400 --work-s 8640000
  python -m analysis depend simulate --cost-s 300 --mtbf-s 86400 --work-s 8640000 --shape 0.7 --intervals-s 3600,7200

Exit code 0: simulated, whatever came of it. 2: bad usage, or what would take too long to play.
""",
)
def simulate(args: argparse.Namespace) -> Answer:
    """Checkpoint intervals in simulation, against Daly's: jobs with an end, a time to restart, failures that come in bunches.

    Every interval meets the same failures. Without --intervals those around Daly's are played.
    """
    from analysis.studies.jobs.checkpoints import CheckpointPlan, simulated

    try:
        intervals_s = tuple(float(part) for part in args.intervals_s.split(",")) if args.intervals_s else ()
    except ValueError:
        raise Refused(f"--intervals-s {args.intervals_s}: write seconds, such as 3600,7200.") from None
    return simulated(CheckpointPlan(args.cost_s, args.mtbf_s, args.work_s, args.restart_s, args.shape, args.seeds, intervals_s))


_STEPS = Steps(__name__)
arguments, run = _STEPS.arguments, _STEPS.run
