"""Jobs that wait for slots: fit a stream, predict its waits, hold predictions against what was measured. Each step is its own command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.steps import Steps, step
from analysis.terms import Refused
from analysis.wording import parse_percent

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from analysis.answer import Answer
    from analysis.studies.jobs.queue_fits import Fit
    from analysis.studies.jobs.queue_formulas import Inputs
    from analysis.studies.jobs.queues import PredictedWaits, Prediction

GROUP = "study"
HELP = "streams of jobs: fit, predict, validate, closed systems"
EXAMPLE = """\
example:
  python -m analysis queue fit .benchmarks/*/0001_queueing.json
  python -m analysis queue predict --rate 6 --service 0.2 --servers 2
  python -m analysis queue validate --help
"""


def _add_fit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", help="saved runs, and lists of jobs (.csv)")
    parser.add_argument("--servers", metavar="C", type=int, help="slots, where a list of jobs does not tell (column slots)")


@step(
    _add_fit,
    "rate, service times, variation, load and waits of streams of jobs",
    """\
examples:
  python -m analysis queue fit .benchmarks/*/0001_queueing.json
  python -m analysis queue fit jobs.csv --servers 2

Exit code 0: fitted. 2: bad usage, or nothing can be used.
""",
)
def fit(args: argparse.Namespace) -> Answer:
    """What streams of jobs say of themselves: rate, service times, variation, load, waits, with 95 % intervals.

    Reads saved runs that tell of jobs, and CSV (job,submit_s,start_s,end_s; one without starts and ends is a trace of arrivals). Says
    whether the data refuse Poisson arrivals and exponential service times, and holds Little's law against every run. Cells under equal
    conditions are each other's replicates. What is wrong with a job's times is named.
    """
    from analysis.studies.jobs.queues import fitted

    refused: list[str] = []
    return fitted(_fits(args.runs, args.servers, refused), refused)


def _fits(names: Sequence[str], servers: int | None, refused: list[str]) -> list[Fit]:
    from analysis.studies.jobs.csv_file import groups
    from analysis.studies.jobs.queue_fits import fit as fit_group

    fits = []
    for group in groups(names, refused):
        try:
            fits.append(fit_group(group, servers))
        except Refused as error:
            refused.append(str(error))
    if not fits:
        raise Refused(refused[0])
    return fits


def _add_validate(parser: argparse.ArgumentParser) -> None:
    _add_fit(parser)
    parser.add_argument("--margin", metavar="PERCENT", default="10%", help="how far off a model may be (10%%)")
    parser.add_argument("--rate", metavar="PER_S", type=float, help="jobs a second, as planned")
    parser.add_argument("--service", metavar="S", type=float, help="mean service time in seconds, as planned; exponential")


@step(
    _add_validate,
    "measured waits against predicted ones, Little's law on every run",
    """\
examples:
  python -m analysis queue validate .benchmarks/*/0001_queueing.json
  python -m analysis queue validate .benchmarks/*/0001_queueing.json --rate 6 --service 0.2
  python -m analysis queue validate jobs.csv --servers 2 --margin 20%

Exit code 0: judged, whatever was found. 2: bad usage, or nothing can be used.
""",
)
def validate(args: argparse.Namespace) -> Answer:
    """Measured waits against what the models predict from rate and service times of the same runs: how far off, with a 95 % interval.

    The interval is from runs where there are three or more, else from busy cycles or batches of jobs, and it says which. With --rate and
    --service the prediction is of what was planned. Little's law is held against every run.
    """
    from analysis.studies.jobs.csv_file import groups
    from analysis.studies.jobs.queue_fits import fit as fit_group
    from analysis.studies.jobs.queues import validate as validate_fit
    from analysis.studies.jobs.queues import validated

    margin = parse_percent(args.margin)
    if (args.rate is None) != (args.service is None):
        raise Refused("--rate and --service are planned together; give both or neither.")
    refused: list[str] = []
    validations = []
    for group in groups(args.runs, refused):
        try:
            fitted = fit_group(group, args.servers)
            validations.append(validate_fit(fitted, group, margin, _planned(args, fitted.servers)))
        except Refused as error:
            refused.append(str(error))
    if not validations:
        raise Refused(refused[0])
    return validated(validations, refused)


def _planned(args: argparse.Namespace, servers: int | None) -> Inputs | None:
    from analysis.studies.jobs.queue_formulas import Inputs

    return None if args.rate is None or servers is None else Inputs(args.rate, args.service, servers)


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", metavar="RUN", nargs="*", help="saved runs and lists of jobs (.csv) to fit, in place of --rate and --service"
    )
    parser.add_argument("--servers", metavar="C,…", type=wholes, help="how many servers; several are answered in turn (1, or as fitted)")
    parser.add_argument("--rate", metavar="PER_S", type=float, help="jobs a second")
    parser.add_argument("--service", metavar="S", type=float, help="mean service time, seconds")
    parser.add_argument("--scv-arrivals", metavar="CA2", type=float, help="variance of gaps over their mean squared (1: Poisson)")
    parser.add_argument("--scv-service", metavar="CS2", type=float, help="the same of service times (1: exponential)")
    parser.add_argument("--room", metavar="K", type=int, help="room for so many jobs, those in service included; others are turned away")
    parser.add_argument(
        "--class",
        dest="kinds",
        metavar="PRIORITY:RATE:S[:CS2]",
        action="append",
        default=[],
        help="jobs of a priority, the lower goes first",
    )
    parser.add_argument("--preemptive", action="store_true", help="who goes first pushes others aside, who resume later")
    parser.add_argument("--percentiles", metavar="P,…", type=shares, default=(0.9, 0.99), help="of waits and responses (90,99)")
    parser.add_argument("--within", metavar="S,…", type=seconds, default=(), help="what share of jobs waits no longer than so many seconds")


def wholes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def seconds(text: str) -> tuple[float, ...]:
    """Read times from 0 with commas between them. Raises: ValueError, which argparse says."""
    times_s = tuple(float(part) for part in text.split(","))
    if not all(0 <= time_s < float("inf") for time_s in times_s):
        raise ValueError("a wait is a number of seconds from 0")
    return times_s


def shares(text: str) -> tuple[float, ...]:
    """Read percentiles with commas between them, as shares. Raises: ValueError, which argparse says."""
    values = tuple(float(part) / 100 for part in text.split(","))
    if not all(0 < share < 1 for share in values):
        raise ValueError("a percentile lies between 0 and 100")
    return values


@step(
    _add_predict,
    "waits by M/M/c, M/G/1, M/M/c/K, G/G/c, and by priority",
    """\
examples:
  python -m analysis queue predict --rate 6 --service 0.2 --servers 2
  python -m analysis queue predict --rate 6 --service 0.2 --servers 2,3,4 --scv-service 4
  python -m analysis queue predict --rate 9 --service 0.2 --servers 2 --room 20
  python -m analysis queue predict --rate 9 --service 0.2 --servers 3 --within 0.1,1    how many wait no longer than that
  python -m analysis queue predict --class 1:2:0.2 --class 2:4:0.2 --servers 2
  python -m analysis queue predict .benchmarks/*/0001_queueing.json --servers 2,3

Exit code 0: answered, even if only that there is no stationary figure. 2: bad usage.
""",
)
def predict(args: argparse.Namespace) -> Answer:
    """What a queue would do, by every formula that has its number of servers: waits, responses, how many wait, percentiles.

    The inputs are typed (rate, mean service time, squared coefficients of variation), or fitted to saved runs and lists of jobs, whose
    scatter then gives the answers intervals; several --servers answer what if. With as much work as can be done there is no stationary
    figure, and that is said.
    """
    from analysis.studies.jobs.queues import predictions

    if args.kinds:
        return _priorities(args)
    refused: list[str] = []
    return predictions(_of_runs(args, refused) if args.runs else _of_typed(args), refused)


def _of_typed(args: argparse.Namespace) -> list[Prediction]:
    from analysis.studies.jobs.queue_formulas import Inputs, Unstable

    missing = [name for name, value in (("--rate", args.rate), ("--service", args.service)) if value is None]
    if missing or args.preemptive:
        lacking = "--preemptive is of several --class" if args.preemptive else f"{', '.join(missing)}: missing"
        raise Refused(f"{lacking}; name runs to fit, or type --rate and --service, or several --class.")
    scv_arrivals, scv_service = (1.0 if scv is None else scv for scv in (args.scv_arrivals, args.scv_service))
    answers: list[Prediction] = []
    for servers in args.servers or (1,):
        inputs = Inputs(args.rate, args.service, servers, scv_arrivals, scv_service)
        varied = f", ca² {inputs.scv_arrivals:g}, cs² {inputs.scv_service:g}"
        title = f"{args.rate:g} jobs/s of {args.service:g} s on {servers} server{'s' if servers > 1 else ''}{varied}"
        try:
            answers.append((title, _of_inputs(inputs, args), ""))
        except Unstable as error:
            answers.append((title, [], f"UNSTABLE: {error}"))
    return answers


def _of_inputs(inputs: Inputs, args: argparse.Namespace) -> list[PredictedWaits]:
    from analysis.studies.jobs.estimates import Figure
    from analysis.studies.jobs.queue_formulas import mmck, mmck_wait_quantile, mmck_wait_within
    from analysis.studies.jobs.queues import PredictedWaits, models, tails

    if args.room is None:
        bare = [PredictedWaits(queue, Figure(queue.wait_s), Figure(queue.response_s)) for queue in models(inputs)]
        return [tails(prediction, args.percentiles, args.within) for prediction in bare]
    queue = mmck(inputs, args.room)
    waits = {share: mmck_wait_quantile(inputs, args.room, share) for share in args.percentiles}
    within = {time_s: mmck_wait_within(inputs, args.room, time_s) for time_s in args.within}
    return [PredictedWaits(queue, Figure(queue.wait_s), Figure(queue.response_s), waits, wait_within=within)]


def _of_runs(args: argparse.Namespace, refused: list[str]) -> list[Prediction]:
    from analysis.studies.jobs.queue_formulas import Unstable
    from analysis.studies.jobs.queues import CLOSED, chosen, predicted, tails

    typed = {"--rate": args.rate, "--service": args.service, "--scv-arrivals": args.scv_arrivals, "--scv-service": args.scv_service}
    both = [name for name, value in (*typed.items(), ("--room", args.room)) if value is not None]
    if both:
        raise Refused(f"{both[0]}: is of typed inputs, and runs to fit are named; give either.")
    answers: list[Prediction] = []
    for fitted in _fits(args.runs, None if args.servers is None else args.servers[0], refused):
        if fitted.closed:
            answers.append((fitted.group, [], CLOSED))
            continue
        for servers in args.servers or (fitted.servers,):
            if servers is None:
                refused.append(f"{fitted.group}: nothing tells how many slots there are; say it with --servers.")
                continue
            title = f"{fitted.group} on {servers} server{'s' if servers > 1 else ''}" + (" (SIMULATED jobs)" if fitted.simulated else "")
            try:
                predictions = [tails(prediction, args.percentiles, args.within) for prediction in predicted(fitted, servers)]
            except Unstable as error:
                answers.append((title, [], f"UNSTABLE: {error}"))
                continue
            pick, why = chosen(fitted, servers)
            sentence = "no service times: no model can be asked."
            if predictions:
                sentence = f"{predictions[pick].queue.model} is what the data leave standing: {why}. Intervals {fitted.units.why}."
            answers.append((title, predictions, sentence))
    if not answers:
        raise Refused(refused[0])
    return answers


def _priorities(args: argparse.Namespace) -> Answer:
    from analysis.studies.jobs.queue_formulas import non_preemptive, parse, preemptive
    from analysis.studies.jobs.queues import prioritised

    classes = [parse(text) for text in args.kinds]
    others = (args.rate, args.service, args.room, args.scv_arrivals, args.scv_service, args.within or None)
    if args.runs or any(value is not None for value in others):
        raise Refused(
            "--class says rate, service time and variation itself, has endless room and is told its mean waits; leave the others out."
        )
    answers = [(servers, (preemptive if args.preemptive else non_preemptive)(classes, servers)) for servers in args.servers or (1,)]
    return prioritised(answers, preemptive=args.preemptive)


def _add_closed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--users", metavar="N,…", type=wholes, required=True, help="how many; several are answered in turn")
    parser.add_argument("--think", metavar="S", type=float, default=0.0, help="seconds between an answer and the next request (0)")
    parser.add_argument(
        "--demand",
        metavar="NAME=S",
        action="append",
        default=[],
        required=True,
        help="what a request asks of a station: visits times seconds",
    )


@step(
    _add_closed,
    "closed systems: users, time to think, demands of stations",
    """\
example:
  python -m analysis queue closed --users 10 --think 5 --demand cpu=0.05 --demand disk=0.08

Exit code 0: answered. 2: bad usage.
""",
)
def closed(args: argparse.Namespace) -> Answer:
    """A closed system by mean value analysis: users who ask, wait, think and ask again, and stations that serve one after the other.

    Answers requests a second, response, jobs and utilisation of every station, with the bounds that no system of these demands can pass.
    """
    from analysis.studies.jobs.queue_formulas import mva
    from analysis.studies.jobs.queues import closed as answer

    demands_s: dict[str, float] = {}
    for text in args.demand:
        name, _, value = text.partition("=")
        try:
            demand_s = float(value)
        except ValueError:
            raise Refused(f"--demand {text!r}: it is a name and seconds, such as disk=0.08.") from None
        if not name.strip() or name in demands_s:
            raise Refused(f"--demand {text!r}: each station has one name of its own.")
        demands_s[name] = demand_s
    return answer(demands_s, [mva(demands_s, users, args.think) for users in args.users])


_STEPS = Steps(__name__)
arguments, run = _STEPS.arguments, _STEPS.run
