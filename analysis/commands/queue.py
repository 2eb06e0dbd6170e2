"""Model jobs that wait for slots: fit a stream, predict its waits, validate predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from analysis.answer import Answer, then
from analysis.subcommands import Subcommands, option, runs_of, step
from analysis.terms import Refused
from analysis.wording import counted, parse_percent, whole

if TYPE_CHECKING:
    from analysis.studies.jobs.queue_fits import Fit
    from analysis.studies.jobs.queues import PredictedWaits, Prediction

GROUP = "study"
HELP = "streams of jobs: fit, predict, validate, closed systems"


def wholes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def shares(text: str) -> tuple[float, ...]:
    """Parse percentiles, separated by commas, as shares. Raises: ValueError, for argparse."""
    values = tuple(float(part) / 100 for part in text.split(","))
    if not all(0 < share < 1 for share in values):
        raise ValueError("a percentile must be between 0 and 100")
    return values


RUNS = runs_of("saved runs, and lists of jobs (.csv)")
SERVERS = option("C", "slots, for lists of jobs without a column slots", type=whole(1, 1_000_000))


@step(
    "rate, service times, variation, load and waits of streams of jobs",
    ".benchmarks/*/0001_queueing.json",
)
def fit(
    runs: list[str] = RUNS,
    *,
    servers: int | None = SERVERS,
) -> Answer:
    """Fit streams of jobs: rate, service times, variation, load, waits, with 95 % intervals.

    Reads saved runs with jobs, and CSV (job,submit_s,start_s,end_s; without starts and ends it is a
    trace of arrivals). Tests whether the data reject Poisson arrivals and exponential service
    times, and checks Little's law on every run. Cells under equal conditions are replicates of each
    other. Errors in a job's times are named.
    """
    from analysis.studies.jobs.csv_file import groups
    from analysis.studies.jobs.queue_fits import fits_of, fitted

    refused: list[str] = []
    return then(
        fitted([found for found, _ in fits_of(groups(runs, refused), servers, refused)], refused),
        "queue validate",
        *runs,
        *_slots(servers),
    )


def _slots(servers: int | None) -> list[str]:
    return [] if servers is None else ["--servers", str(servers)]


@step(
    "measured waits against predicted ones, Little's law on every run",
    ".benchmarks/*/0001_queueing.json",
    ".benchmarks/*/0001_queueing.json --rate 6 --service 0.2",
)
def validate(
    runs: list[str] = RUNS,
    *,
    servers: int | None = SERVERS,
    margin: float = option(
        "PERCENT", "largest acceptable error of a model (10%%)", type=parse_percent, default="10%"
    ),
    rate: float | None = option("PER_S", "planned jobs per second", type=float),
    service: float | None = option(
        "S", "planned mean service time in seconds; exponential", type=float
    ),
) -> Answer:
    """Compare measured waits with the models' predictions from the same runs, with 95 % intervals.

    Predictions use the rate and service times of these runs or, with --rate and --service, the
    planned ones. The interval is over runs, and needs three or more. Little's law is checked on
    every run.
    """
    from analysis.studies.jobs.csv_file import groups
    from analysis.studies.jobs.streams import validate_groups

    if (rate is None) != (service is None):
        raise Refused("--rate and --service belong together; give both or neither.")
    refused: list[str] = []
    planned = None if rate is None or service is None else (rate, service)
    answer = validate_groups(groups(runs, refused), refused, margin, servers, planned)
    return then(answer, "queue predict", *runs, *_slots(servers))


@step(
    "waits by M/M/c, M/G/1, M/M/c/K, G/G/c, and by priority",
    "--rate 6 --service 0.2 --servers 2",
    "--rate 6 --service 0.2 --servers 2,3,4 --scv-service 4",
    "--class 1:2:0.2 --class 2:4:0.2 --servers 2",
    ".benchmarks/*/0001_queueing.json --servers 2,3",
)
def predict(
    runs: list[str] = option(
        "RUN",
        "saved runs and lists of jobs (.csv) to fit, instead of --rate and --service",
        nargs="*",
    ),
    *,
    servers: tuple[int, ...] | None = option(
        "C,…", "numbers of servers (1, or as fitted)", type=wholes
    ),
    rate: float | None = option("PER_S", "jobs per second", type=float),
    service: float | None = option("S", "mean service time, seconds", type=float),
    scv_arrivals: float | None = option(
        "CA2", "variance of gaps over their mean squared (1: Poisson)", type=float
    ),
    scv_service: float | None = option(
        "CS2", "the same for service times (1: exponential)", type=float
    ),
    room: int | None = option(
        "K", "room for K jobs, including those in service; further jobs are rejected", type=int
    ),
    kinds: list[str] = option(
        "PRIORITY:RATE:S[:CS2]",
        "jobs of a priority; the lowest goes first",
        "--class",
        action="append",
        default=[],
    ),
    percentiles: tuple[float, ...] = option(
        "P,…", "percentiles of waits and responses (90,99)", type=shares, default=(0.9, 0.99)
    ),
) -> Answer:
    """Predict a queue by every formula for its number of servers: waits, responses, percentiles.

    Inputs are options (rate, mean service time, squared coefficients of variation), or fitted to
    saved runs and lists of jobs, whose scatter gives the answers intervals; several --servers
    answer what-if questions. At full load or above there is no stationary figure, and the answer
    states it.
    """
    from analysis.studies.jobs.csv_file import groups
    from analysis.studies.jobs.queue_fits import fits_of
    from analysis.studies.jobs.queue_formulas import Inputs
    from analysis.studies.jobs.queues import predictions, typed

    options = {
        "--rate": rate,
        "--service": service,
        "--scv-arrivals": scv_arrivals,
        "--scv-service": scv_service,
        "--room": room,
    }
    given = {name: value for name, value in options.items() if value is not None}
    if kinds:
        if runs or given:
            raise Refused(
                "--class includes rate, service time and variation, and gives mean waits only; "
                "omit the other options."
            )
        return _priorities(kinds, servers or (1,))
    refused: list[str] = []
    if runs:
        if given:
            raise Refused(
                f"{next(iter(given))} cannot be combined with runs to fit; give one of them."
            )
        fewest = None if servers is None else servers[0]
        answers = [
            *_of_runs(
                fits_of(groups(runs, refused), fewest, refused), servers, percentiles, refused
            )
        ]
        if not answers:
            raise Refused(refused[0])
        return then(predictions(answers, refused), "queue validate", *runs, *_slots(fewest))
    if rate is None or service is None:
        raise Refused("Name runs to fit, or give --rate and --service, or several --class options.")
    scvs = [1.0 if scv is None else scv for scv in (scv_arrivals, scv_service)]
    counts = servers or (1,)
    answers = []
    for count in counts:
        inputs = Inputs(rate, service, count, *scvs)
        varied = f"ca² {inputs.scv_arrivals:g}, cs² {inputs.scv_service:g}"
        title = f"{rate:g} jobs/s of {service:g} s on {counted(count, 'server')}, {varied}"
        answers.append(_asked(title, partial(typed, inputs, room), percentiles))
    known = [f"{name}={value:g}" for name, value in given.items() if name != "--room"]
    return then(
        predictions(answers, refused), "queue predict", *known, f"--servers={max(counts) + 1}"
    )


def _asked(
    title: str, ask: Callable[[], Sequence[PredictedWaits]], shares: Sequence[float]
) -> Prediction:
    from analysis.studies.jobs import queues
    from analysis.studies.jobs.queue_formulas import Unstable

    try:
        return title, [queues.tails(prediction, shares) for prediction in ask()], ""
    except Unstable as error:
        return title, [], f"UNSTABLE: {error}"


def _of_runs(
    fits: Sequence[tuple[Fit, object]],
    counts: Sequence[int] | None,
    shares: Sequence[float],
    refused: list[str],
) -> Iterator[Prediction]:
    from analysis.studies.jobs.queue_fits import CLOSED, why_of
    from analysis.studies.jobs.queues import chosen, lacking, predicted

    for fitted, _ in fits:
        if fitted.closed:
            yield fitted.group, [], CLOSED
            continue
        for servers in counts or (fitted.servers,):
            if servers is None:
                refused.append(
                    f"{fitted.group}: the number of slots is unknown; give it with --servers."
                )
                continue
            title = (
                f"{fitted.group} on "
                f"{counted(servers, 'server')}{' (SIMULATED jobs)' if fitted.simulated else ''}"
            )
            title, predictions, said = _asked(title, partial(predicted, fitted, servers), shares)
            pick, why = chosen(fitted, servers)
            if predictions:
                model = predictions[pick].queue.model
                said = (
                    f"{model} is the model that the data do not reject: {why}. Intervals "
                    f"{why_of(fitted.sums)}."
                )
            yield title, predictions, said or f"{lacking(fitted, servers)}: no model applies."


def _priorities(kinds: Sequence[str], counts: Sequence[int]) -> Answer:
    from analysis.studies.jobs import queue_formulas
    from analysis.studies.jobs.queues import prioritised

    classes = [queue_formulas.parse(text) for text in kinds]
    answers = [(many, queue_formulas.non_preemptive(classes, many)) for many in counts]
    named = [f"--class={text}" for text in kinds]
    return then(prioritised(answers), "queue predict", *named, f"--servers={counts[-1] + 1}")


@step(
    "closed systems: users, time to think, demands of stations",
    "--users 10 --think 5 --demand cpu=0.05 --demand disk=0.08",
)
def closed(
    *,
    users: tuple[int, ...] = option("N,…", "numbers of users", type=wholes, required=True),
    think: float = option(
        "S", "seconds between an answer and the next request (0)", type=float, default=0.0
    ),
    demand: list[str] = option(
        "NAME=S",
        "a request's demand on a station: visits times seconds",
        action="append",
        default=[],
        required=True,
    ),
) -> Answer:
    """Analyse a closed system by mean value analysis: users who think and stations that serve.

    Users send a request, wait for all stations in turn, think and repeat. Returns requests per
    second, response time, jobs and utilisation of every station, with the bounds for these demands.
    """
    from analysis.studies.jobs.queue_formulas import mva
    from analysis.studies.jobs.queues import closed as answer

    demands_s: dict[str, float] = {}
    for text in demand:
        name, _, value = text.partition("=")
        try:
            demand_s = float(value)
        except ValueError:
            raise Refused(
                f"--demand {text!r}: must be a name and seconds, such as disk=0.08."
            ) from None
        if not name.strip() or name in demands_s:
            raise Refused(f"--demand {text!r}: station names must differ.")
        demands_s[name] = demand_s
    stations = [f"--demand={text}" for text in demand]
    more = ["--users", str(2 * max(users)), "--think", f"{think:g}", *stations]
    return then(
        answer(demands_s, [mva(demands_s, count, think) for count in users]), "queue closed", *more
    )


EXAMPLE, arguments, run = Subcommands(__name__).page
