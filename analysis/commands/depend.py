"""What faults cost: recovery, lost work, isolation, checkpoint intervals, packet loss. Each step is its own command."""

from __future__ import annotations

from analysis.answer import Answer, then
from analysis.subcommands import Steps, option, runs_of, step
from analysis.terms import Refused
from analysis.wording import parse_percent
from control.called import JUDGE

GROUP = "study"
HELP = "faults: report, checkpoint intervals, packet loss, simulate"
EXAMPLE = f"`{JUDGE} depend STEP --help` says the rest."


def _intervals_s(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise Refused(f"--intervals-s {text}: write seconds, such as 3600,7200.") from None


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
    "the interval between checkpoints: Young, Daly, and measured",
    f"""\
examples:
  {JUDGE} depend checkpoint --cost-s 300 --mtbf-s 86400
""",
)
def checkpoint(
    runs: list[str] = option("RUN", "saved runs in which several checkpoint_s met one fault", nargs="*"),
    *,
    cost_s: float | None = option("S", "what a checkpoint takes", type=float),
    mtbf_s: float | None = option("S", "mean time between failures of a running job", type=float),
) -> Answer:
    """How often to write a checkpoint: by Young, by Daly, exactly, and where runs tried several intervals, by what was measured.

    With runs, cost and mean time between failures are those measured, unless they are given. The MTBF is that of one job while it runs.
    """
    from analysis.studies.jobs.checkpoints import advise, advised, with_advice
    from analysis.studies.jobs.checkpoints import trials as trials_of
    from analysis.studies.jobs.records import streams_of

    if not runs and (cost_s is None or mtbf_s is None):
        raise Refused("give --cost-s and --mtbf-s, or runs in which they were measured.")
    refused: list[str] = []
    trials = trials_of(streams_of(runs, refused)) if runs else []
    if runs and not trials:
        raise Refused(f"{', '.join(runs)}: no fault met more than one checkpoint_s; `job_stream` has both as parameters.")
    typed = None if cost_s is None or mtbf_s is None else advise(cost_s, mtbf_s)
    answer = advised(typed, with_advice(trials, cost_s, mtbf_s), refused)
    if runs or typed is None:
        return then(answer, "report", *runs)
    return then(answer, "depend simulate", f"--cost-s={cost_s:g}", f"--mtbf-s={mtbf_s:g}", f"--work-s={20 * typed.mtbf_s:g}")


@step(
    "step time against packet loss, held against Mathis's law",
    f"""\
example:
  {JUDGE} depend network .benchmarks/*/0001_network.json
""",
)
def network(
    runs: list[str] = runs_of("saved runs of ddp_network"),
) -> Answer:
    """Step time against loss of packets, held against what TCP can get through at that loss (Mathis), line by line.

    A line is all that was asked for but the loss: delay, MTU, congestion control. Says where it is not that law that decides: arithmetic,
    the line itself, timeouts.
    """
    from analysis.studies.jobs.network import lines as lines_of
    from analysis.studies.jobs.network import lossy, trained

    refused: list[str] = []
    lines = lines_of(trained(runs, refused))
    if all(row.loss == 0 for line in lines for row in line.losses):
        raise Refused(f"{', '.join(runs)}: no cell lost packets; ddp_network has loss_percent as a parameter.")
    return then(lossy(lines, refused), "report", *runs)


@step(
    "checkpoint intervals simulated, against Daly's",
    f"""\
examples:
  {JUDGE} depend simulate --cost-s 300 --mtbf-s 86400 --work-s 8640000
""",
)
def simulate(
    *,
    cost_s: float = option("S", "what a checkpoint takes", type=float, required=True),
    mtbf_s: float = option("S", "mean time between failures of a running job", type=float, required=True),
    work_s: float = option("S", "of one job, without failures and checkpoints", type=float, required=True),
    restart_s: float = option("S", "from a failure to the next attempt (default: 0)", type=float, default=0.0),
    shape: float = option("K", "of Weibull's law; below 1 failures come in bunches (1)", type=float, default=1.0),
    intervals_s: tuple[float, ...] = option(
        "S,…", "to play (default: a quarter of Daly's to four times it)", type=_intervals_s, default=()
    ),
    seeds: int = option("N", "jobs (default: %(default)s)", type=int, default=100),
) -> Answer:
    """Checkpoint intervals in simulation, against Daly's: jobs with an end, a time to restart, failures that come in bunches.

    Every interval meets the same failures. Without --intervals those around Daly's are played.
    """
    from analysis.studies.jobs.checkpoint_plans import CheckpointPlan, simulated

    answer = simulated(CheckpointPlan(cost_s, mtbf_s, work_s, restart_s, shape, seeds, intervals_s))
    return then(answer, "depend checkpoint", f"--cost-s={cost_s:g}", f"--mtbf-s={mtbf_s:g}")


_STEPS = Steps(__name__)
arguments, run = _STEPS.arguments, _STEPS.run
