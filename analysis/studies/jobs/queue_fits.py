"""Streams of one kind as a queue: rate, service times, load and waits, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.stats

from analysis.answer import Answer, Column, Line, Section, Table, bullets, table_of
from analysis.contrasts import FEWEST
from analysis.plain import one_line
from analysis.stats.effect import holm
from analysis.terms import Refused
from analysis.wording import counted, tiny
from control.called import JUDGE
from control.names import first_few
from control.t_test import ALPHA, t_quantile

from .claims import leading
from .estimates import FEW_RUNS, Figure, figure, unit, value_of
from .queue_formulas import Inputs

if TYPE_CHECKING:
    import pandas as pd

    from analysis import answer

    from .estimates import Document
    from .records import Stream

    Sums = Mapping[str, float]

ROUNDING = 1e-9
SIMULATED = "simulated"
CLOSED = (
    "CLOSED: a job arrives when another ends. Rate and waits follow from the number of customers, "
    "so no open queue's model applies; "
    f"use `{JUDGE} queue closed` for such systems."
)
# By kind: what is wrong with the jobs that have it.
FINDINGS = {
    "never started": "never started: the mean wait is too short.",
    "never ended": "never ended: the mean service time is too short.",
    "backwards": "went backwards in time; one clock must read all times of a stream.",
    "failed": "failed: time in slots counts as service.",
    "killed": "killed: time in slots counts as service.",
    "retried": "took several attempts: service times and Little's law are left out.",
    "wide": "took several slots at once, which no formula here covers: simulate.",
}


@dataclass(frozen=True, slots=True)
class JobColumns:
    """Jobs of one stream as submitted: columns of equal length (s), NaN if missing or unusable.

    `taken` is the time when a slot was taken. Jobs whose clock went backwards keep their submission
    alone. `unfinished`: never got a slot, or never returned it. `retried`: the time between `taken`
    and `end` is not service time. `findings` are sentences on irregular jobs.
    """

    submit: np.ndarray
    taken: np.ndarray
    end: np.ndarray
    unfinished: np.ndarray
    backwards: np.ndarray
    retried: np.ndarray
    findings: tuple[str, ...] = ()

    @property
    def wait(self) -> np.ndarray:
        return np.asarray(self.taken - self.submit)

    @property
    def service(self) -> np.ndarray:
        return np.where(self.retried, np.nan, self.end - self.taken)


def columns(stream: Stream) -> JobColumns:
    jobs = sorted(
        (job for job in stream.jobs if job.submit_s is not None),
        key=lambda job: (job.submit_s or 0.0, job.number),
    )

    def column(name: str) -> np.ndarray:
        values = [getattr(job, name) for job in jobs]
        return np.array([np.nan if value is None else value for value in values], float)

    submit, start, end, taken = map(column, ("submit_s", "start_s", "end_s", "taken_s"))
    began = np.where(np.isnan(start), taken, start)
    backwards = (taken < submit) | (start < taken) | (end < began) | (end < submit)
    unstarted, unended, retried = np.isnan(taken), np.isnan(end), column("attempts") > 1
    outcome = np.array([job.outcome for job in jobs], str)
    kinds = {
        "never started": unstarted & unended & ~backwards,
        "never ended": ~unstarted & unended & ~backwards,
        "backwards": backwards,
        **{ending: (outcome == ending) & ~retried for ending in ("failed", "killed")},
        "retried": retried,
        "wide": column("replicas") > 1,
    }
    numbers = np.array([job.number for job in jobs], int)
    of_service = (
        f"{_jobs(numbers[mask])} {FINDINGS[kind]}"
        for kind, mask in kinds.items()
        if stream.measured and mask.any()
    )
    return JobColumns(
        submit=submit,
        taken=np.where(backwards, np.nan, taken),
        end=np.where(backwards | unstarted, np.nan, end),
        unfinished=(unstarted | unended) & ~backwards,
        backwards=backwards,
        retried=retried,
        findings=(*_odd_arrivals(stream), *of_service),
    )


def _odd_arrivals(stream: Stream) -> Iterable[str]:
    lost = [job.number for job in stream.jobs if job.submit_s is None]
    if lost:
        yield f"{_jobs(lost)} left out: no recorded submission."
    numbers, counts = np.unique([job.number for job in stream.jobs], return_counts=True)
    if (counts > 1).any():
        yield f"{_jobs(numbers[counts > 1])} in several rows: each counts as a job."


def _jobs(numbers: Iterable[int]) -> str:
    listed = [str(number) for number in sorted(int(number) for number in numbers)]
    return f"job{'s' if len(listed) > 1 else ''} {first_few(listed, 5)}"


class LawPart(NamedTuple):
    """N̄ and λ̂·W̄ of one part of the system; their distance relative to N̄ (0 if both are 0)."""

    part: str
    number: float
    rate_times_time: float
    off: float


class Little(NamedTuple):
    """Little's law over `jobs` jobs between two empty moments; `busy`: mean slots held."""

    begin_s: float
    end_s: float
    jobs: int
    laws: tuple[LawPart, ...]
    busy: float


def little(columns: JobColumns) -> Little | None:
    """Check Little's law from the first submission to the last known empty moment, else None.

    Over a time that starts and ends empty, the mean number inside is the rate times the mean time
    inside: an identity (Stidham 1974), so that a run that breaks it was recorded wrongly. The
    number inside is integrated over its jumps, the mean time is taken job by job. No moment after
    the submission of a job that never ended is known to be empty. A job with several attempts
    leaves nothing to check, as its slots are not known.
    """
    use = ~columns.backwards
    submit, taken, end = columns.submit[use], columns.taken[use], columns.end[use]
    latest = np.maximum.accumulate(np.where(columns.unfinished[use], np.inf, end))
    empty = np.flatnonzero(np.isfinite(latest) & (latest <= np.append(submit[1:], np.inf)))
    if columns.retried.any() or not len(empty):
        return None
    count = int(empty[-1]) + 1
    submit, taken, end = submit[:count], taken[:count], end[:count]
    begin, last = float(submit.min()), float(end.max())
    if last <= begin:
        return None
    parts = {"in all": (submit, end), "waiting": (submit, taken), "in service": (taken, end)}
    laws = tuple(_law(name, *times, last - begin) for name, times in parts.items())
    return Little(begin, last, count, laws, laws[-1].number)


def _law(part: str, begin: np.ndarray, end: np.ndarray, length_s: float) -> LawPart:
    times, held = inside(begin, end)
    mean = math.fsum((held[:-1] * np.diff(times)).tolist()) / length_s
    product = len(begin) / length_s * (math.fsum((end - begin).tolist()) / len(begin))
    return LawPart(part, mean, product, abs(mean - product) / mean if mean > 0 else abs(product))


def inside(begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the moments, ascending, when the number inside changes, and the numbers after them.

    Departures go before arrivals.
    """
    times, jumps = np.concatenate([begin, end]), np.repeat([1.0, -1.0], [len(begin), len(end)])
    order = np.lexsort((jumps, times))
    return times[order], np.cumsum(jumps[order])


def most_held(columns: JobColumns) -> int:
    """Return the most slots held at a time; a slot that changes its job at once counts once."""
    known = ~np.isnan(columns.end) & ~columns.retried
    return int(inside(columns.taken[known], columns.end[known])[1].max(initial=0))


def sums_of(streams: Sequence[JobColumns]) -> pd.DataFrame:
    """Sum the inputs of estimates: a row per run.

    Columns: for `gap`, `wait`, `response` and `service` the count `…_n`, the seconds `…_s` and
    seconds² `…_s2`, and for `waited` the number of waits above 0.
    """
    import pandas as pd

    jobs = pd.concat(
        pd.DataFrame(
            {
                "run": at,
                "gap": np.diff(one.submit, prepend=np.nan),
                "wait": one.wait,
                "service": one.service,
                "response": one.end - one.submit,
                "waited": np.where(one.wait > 0, 1.0, np.nan),
            }
        )
        for at, one in enumerate(streams)
        if len(one.submit)
    )
    values = jobs.drop(columns="run")
    known = values.fillna(0.0)
    parts = {"n": values.notna().astype(float), "s": known, "s2": known**2}
    every = pd.concat([part.add_suffix(f"_{name}") for name, part in parts.items()], axis=1)
    return every.groupby(jobs["run"].to_numpy()).sum()


def whole(sums: pd.DataFrame, without: int | None = None) -> Sums:
    rest = sums if without is None else sums.drop(index=sums.index[without])
    return dict(zip(map(str, sums), rest.to_numpy().sum(axis=0).tolist(), strict=True))


def why_of(sums: pd.DataFrame) -> str:
    few = f"are missing: fewer than {FEWEST} runs"
    return f"are from {len(sums)} runs, which are the replicates" if len(sums) >= FEWEST else few


def estimate(
    of: Callable[[Sums], float | None], sums: pd.DataFrame, *, logs: bool = True
) -> Figure | None:
    """Estimate one number from the sums of units, with a jackknife interval; None if undefined.

    With `logs`, on the logarithm if all values are above 0, so that no interval reaches below 0.
    Source: Miller 1974.
    """
    value, count = of(whole(sums)), len(sums)
    if value is None or count < FEWEST:
        return None if value is None else Figure(value, why=FEW_RUNS)
    without = [of(whole(sums, run)) for run in range(count)]
    if None in without:
        return Figure(value, why="undefined if one of the runs is left out")
    known = np.array(without, float)
    logs = logs and value > 0 and bool((known > 0).all())
    seen = np.log(known) if logs else known
    se = math.sqrt((count - 1) / count * float(((seen - seen.mean()) ** 2).sum()))
    half = t_quantile(1 - ALPHA / 2, count - 1) * se
    if logs:
        half = min(half, 700.0)
        return Figure(value, value * math.exp(-half), value * math.exp(half), value * se)
    return Figure(value, value - half, value + half, se)


@dataclass(frozen=True, slots=True)
class Fit:
    """Streams of one group as a queue; figures are None without data, as for a trace.

    `utilisation` is the share of the slots' time that was held, by integration over the times of
    `laws`, which are by stream; `load` is rate times service time over slots. `closed`: a job came
    when another ended, so rate, gaps and waits are results of the system, not inputs.
    """

    group: str
    names: tuple[str, ...]
    jobs: int
    servers: int | None
    engine: str
    policy: str
    sums: pd.DataFrame
    rate_per_s: Figure | None
    service_s: Figure | None
    scv_arrivals: Figure | None
    scv_service: Figure | None
    load: Figure | None
    p_wait: Figure | None
    wait_s: Figure | None
    response_s: Figure | None
    utilisation: float | None
    arrivals: Shape | None
    services: Shape | None
    laws: tuple[Little | None, ...]
    findings: tuple[str, ...]
    priorities: int = 0
    closed: bool = False

    @property
    def simulated(self) -> bool:
        return self.engine == SIMULATED


def fit(streams: Sequence[Stream], servers: int | None = None) -> Fit:
    """Fit streams of one group; `servers` is the number of slots, if the streams lack it.

    Raises: Refused, for streams that differ in a common property, or without any submitted job.
    """
    group = one_line(streams[0].group)
    slots = _only(group, "slots", {stream.slots for stream in streams} - {None})
    slots = slots if servers is None else servers
    times = [columns(stream) for stream in streams]
    if not any(len(part.submit) > 1 for part in times):
        raise Refused(f"{group}: fewer than two submitted jobs, so nothing can be fitted.")
    sums = sums_of(times)
    laws = tuple(little(part) for part in times)
    busy = [(law.busy, law.end_s - law.begin_s) for law in laws if law is not None]
    utilisation = None
    if busy and slots is not None:
        held_s = sum(mean * length for mean, length in busy)
        utilisation = held_s / sum(length for _, length in busy) / slots
    estimates: dict[str, Callable[[Sums], float | None]] = {
        "rate_per_s": rate,
        "service_s": partial(mean, what="service"),
        "scv_arrivals": partial(scv, what="gap"),
        "scv_service": partial(scv, what="service"),
        "load": partial(_load, servers=slots),
        "p_wait": partial(mean, what="waited", over="wait_n"),
        "wait_s": partial(mean, what="wait"),
        "response_s": partial(mean, what="response"),
    }
    figures = {name: estimate(of, sums) for name, of in estimates.items()}
    levels = {job.priority for stream in streams for job in stream.jobs}
    return Fit(
        group=streams[0].group,
        names=tuple(stream.name for stream in streams),
        jobs=sum(len(part.submit) for part in times),
        servers=slots,
        engine=_only(group, "engine", {stream.engine for stream in streams}),
        policy=_only(group, "policy", {stream.policy for stream in streams}),
        sums=sums,
        **figures,
        utilisation=utilisation,
        arrivals=arrivals_shape([part.submit for part in times]),
        services=services_shape([part.service[~np.isnan(part.service)] for part in times]),
        laws=laws,
        findings=tuple(_findings(streams, times, laws, slots)),
        priorities=len(levels - {None}),
        closed=any(stream.closed for stream in streams),
    )


def fits_of(
    groups: Iterable[Sequence[Stream]], servers: int | None, refused: list[str]
) -> list[tuple[Fit, Sequence[Stream]]]:
    """Fit every group of streams; add errors to `refused`. Raises: Refused, if none fits."""
    fits = []
    for group in groups:
        try:
            fits.append((fit(group, servers), group))
        except Refused as error:
            refused.append(str(error))
    if not fits:
        raise Refused(refused[0])
    return fits


def inputs_of(sums: Sums, servers: int) -> Inputs | None:
    came, takes, *scvs = rate(sums), mean(sums, "service"), scv(sums, "gap"), scv(sums, "service")
    if came is None or takes is None or takes <= 0 or None in scvs:
        return None
    return Inputs(came, takes, servers, *scvs)  # type: ignore[arg-type]  # none is None


def rate(sums: Sums) -> float | None:
    return sums["gap_n"] / sums["gap_s"] if sums.get("gap_s", 0) > 0 else None


def mean(sums: Sums, what: str, over: str = "") -> float | None:
    """Return the mean of one kind of times, seconds, or its share of `over`; None without any."""
    count = sums.get(over or f"{what}_n", 0)
    return sums[f"{what}_s"] / count if count > 0 else None


def scv(sums: Sums, what: str) -> float | None:
    """Return the squared coefficient of variation (n - 1); None below two, or if all are 0."""
    count, total = sums.get(f"{what}_n", 0), sums.get(f"{what}_s", 0)
    average = total / count if count >= 2 and total > 0 else 0.0
    if average**2 == 0:
        return None
    variation = (sums[f"{what}_s2"] - count * average**2) / (count - 1) / average**2
    return variation if variation > 1e-12 else 0.0  # rounding of equal times


def _load(sums: Sums, servers: int | None) -> float | None:
    came, takes = rate(sums), mean(sums, "service")
    return None if came is None or takes is None or servers is None else came * takes / servers


def _only(group: str, name: str, known: set[Any]) -> Any:
    if len(known) > 1:
        values = ", ".join(one_line(value) for value in sorted(known))
        raise Refused(
            f"{group}: its runs differ in {name} ({values}), but a model needs a single value."
        )
    return next(iter(known), None)


def _findings(
    streams: Sequence[Stream],
    times: Sequence[JobColumns],
    laws: Sequence[Little | None],
    slots: int | None,
) -> Iterator[str]:
    for stream, part, law in zip(streams, times, laws, strict=True):
        yield from (f"{stream.name}: {finding}" for finding in part.findings)
        if law is None and stream.measured and not part.retried.any():
            yield (
                f"{stream.name}: Little's law cannot be checked: no period is known to begin and "
                "end empty."
            )
        elif law is not None and law.jobs < len(part.submit):
            yield (
                f"{stream.name}: Little's law covers {law.jobs} of {len(part.submit)} jobs, up to "
                "the last moment known to be empty."
            )
        if slots is not None and (most := most_held(part)) > slots:
            yield (
                f"{stream.name}: {most} jobs held slots at once, but there are only {slots}: the "
                "recorded times are wrong."
            )


FEWEST_VALUES = 8
DRAWS, SIZE = 100_000, 40


@dataclass(frozen=True, slots=True)
class ShapeTest:
    """One test: question, statistic (distance or correlation), raw and adjusted p."""

    asks: str
    statistic: float
    p: float
    p_adjusted: float


@dataclass(frozen=True, slots=True)
class Shape:
    count: int
    tests: tuple[ShapeTest, ...]

    @property
    def refused(self) -> tuple[ShapeTest, ...]:
        return tuple(test for test in self.tests if test.p_adjusted < ALPHA)


def arrivals_shape(submits: Sequence[np.ndarray]) -> Shape | None:
    """Test Poisson arrivals of constant rate: exponential gaps, no memory; None if few.

    `submits`: each stream's rising times of submission, seconds.
    """
    # Given the time of the last one, those before it are uniform between the first and it.
    places = [
        (submit[1:-1] - submit[0]) / (submit[-1] - submit[0])
        for submit in submits
        if len(submit) > 2 and submit[-1] > submit[0]
    ]
    return _shape("gaps", [np.diff(submit) for submit in submits], places)


def services_shape(times: Sequence[np.ndarray]) -> Shape | None:
    """Test exponential, independent service times (s, in order of submission); None if few."""
    return _shape("times", times)


def _shape(
    what: str, series: Sequence[np.ndarray], places: Sequence[np.ndarray] = ()
) -> Shape | None:
    every = np.concatenate([np.zeros(0), *series])
    if len(every) < FEWEST_VALUES:
        return None
    tests = {f"{what} are exponential": _exponential(every)}
    tests[f"{what} are uncorrelated"] = _memory(series)
    if places:
        constant = scipy.stats.kstest(np.concatenate(places), "uniform")
        tests["the rate is constant"] = float(constant.statistic), float(constant.pvalue)
    adjusted = holm([p for _, p in tests.values()])
    rows = zip(tests.items(), adjusted, strict=True)
    return Shape(len(every), tuple(ShapeTest(asks, *test, after) for (asks, test), after in rows))


def _exponential(values: np.ndarray) -> tuple[float, float]:
    """Return the largest distance from the exponential distribution, and its p (Lilliefors 1969).

    The mean is that of the values, so tables of Kolmogorov and Smirnov would accept too much.
    Stephens's form (1974) of the statistic has one distribution for all counts; it is drawn.
    """
    mean = float(values.mean())
    if mean <= 0:
        return 1.0, 1 / (DRAWS + 1)
    distance = _distance(np.sort(values)[None, :] / mean)[0]
    larger = int((_null() >= _of_stephens(distance, len(values))).sum())
    return float(distance), (larger + 1) / (DRAWS + 1)


def _distance(ordered: np.ndarray) -> np.ndarray:
    """Return distances for rows of ordered values of mean 1: shape (rows, values) → (rows,)."""
    count = ordered.shape[1]
    below = -np.expm1(-ordered)
    steps = np.arange(count + 1) / count
    return np.asarray(np.maximum((steps[1:] - below).max(axis=1), (below - steps[:-1]).max(axis=1)))


def _of_stephens(distance: np.ndarray | float, count: int) -> np.ndarray:
    return np.asarray((distance - 0.2 / count) * (math.sqrt(count) + 0.26 + 0.5 / math.sqrt(count)))


@lru_cache(maxsize=1)
def _null() -> np.ndarray:
    rng = np.random.default_rng(0)
    parts = []
    for _ in range(10):
        drawn = np.sort(rng.standard_exponential((DRAWS // 10, SIZE)), axis=1)
        parts.append(_of_stephens(_distance(drawn / drawn.mean(axis=1, keepdims=True)), SIZE))
    return np.concatenate(parts)


def _memory(series: Sequence[np.ndarray]) -> tuple[float, float]:
    before = np.concatenate([times[:-1] for times in series if len(times)])
    after = np.concatenate([times[1:] for times in series if len(times)])
    # What differs by less than a clock's rounding is the same.
    if len(before) < 3 or min(np.ptp(before), np.ptp(after)) <= ROUNDING * np.abs(before).max():
        return 0.0, 1.0
    correlation = scipy.stats.spearmanr(before, after)
    return float(correlation.statistic), float(correlation.pvalue)


def fitted(fits: Sequence[Fit], refused: Sequence[str]) -> Answer:
    lines = [_answer(fit, f"{fit.group}: " if len(fits) > 1 else "") for fit in fits]
    title, *more = leading(lines)
    data = {"fits": [*map(document, fits)]}
    return Answer(title, [*map(Line, more)], [*map(_section, fits)], data=data, refused=refused)


def document(fit: Fit) -> Document:
    fields = asdict(fit)
    del fields["sums"]
    return {**fields, "intervals": why_of(fit.sums)}


def _section(fit: Fit) -> Section:
    scale, name = unit(map(value_of, (fit.service_s, fit.wait_s, fit.response_s)))
    held = None if fit.utilisation is None else Figure(fit.utilisation)
    figures: list[tuple[str, Figure | None, float, str]] = [
        ("rate λ", fit.rate_per_s, 1, "jobs/s"),
        ("ca² of gaps", fit.scv_arrivals, 1, "1 if Poisson"),
        ("service time E[S]", fit.service_s, scale, name),
        ("cs² of service times", fit.scv_service, 1, "1 if exponential"),
        ("load λ·E[S]/slots", fit.load, 1, ""),
        ("slots held, integrated", held, 1, "share of the time until last empty"),
        ("jobs that waited", fit.p_wait, 1, "share"),
        ("wait", fit.wait_s, scale, name),
        ("response", fit.response_s, scale, name),
    ]
    columns: answer.Columns = [
        (Column("", "figure", left=True), lambda row: row[0]),
        (Column("value [95 %]", "value"), lambda row: figure(row[1], row[2])),
        (Column("", "unit"), lambda row: None if row[1] is None else row[3]),
    ]
    lines = [f"Intervals {why_of(fit.sums)}.", _shape_sentence("Poisson arrivals", fit.arrivals)]
    if fit.services is not None:
        lines.append(_shape_sentence("Exponential service times", fit.services))
    lines += [little_sentence(fit.laws)] if any(fit.laws) else []
    if fit.closed:
        lines.append(CLOSED)
    elif fit.load is not None and fit.load.value >= 1:
        lines.append(
            "UNSTABLE: the load is at least 1. The waits above are those of a run of this length, "
            "and grow with it."
        )
    parts: list[Line | Table] = [*headline(fit), table_of(columns, figures)]
    return Section(fit.group, [*parts, *bullets((*lines, *fit.findings))])


def _answer(fit: Fit, of: str) -> str:
    if fit.wait_s is None:
        return f"{of}{figure(fit.rate_per_s)} jobs/s arrived; it is unknown when they held a slot."
    scale, name = unit([fit.wait_s.value])
    full = fit.load is not None and fit.load.value >= 1 and not fit.closed
    more = " UNSTABLE: more work arrives than can be done." if full else ""
    wait = f"A job waits {figure(fit.wait_s, scale)} {name} on average"
    return f"{of}{wait}, at a load of {figure(fit.load)}.{more}"


def headline(fit: Fit) -> Iterator[Line]:
    slots = "slots unknown" if fit.servers is None else counted(fit.servers, "slot")
    engine = fit.engine and f"engine {fit.engine}"
    policy = fit.policy and f"policy {fit.policy}"
    known = ", ".join(filter(None, (engine, slots, policy)))
    yield Line(f"{counted(fit.jobs, 'job')} in {counted(len(fit.names), 'run')}; {known}")
    if fit.simulated:
        yield Line("SIMULATED: none of these jobs ran.", "•", "open")


def little_sentence(laws: Sequence[Little | None]) -> str:
    known = [of_run for of_run in laws if of_run is not None]
    off, part = max((law.off, law.part) for of_run in known for law in of_run.laws)
    if off < ROUNDING:
        return (
            f"Little's law holds in {len(known)} of {len(laws)} runs, in all, waiting and in "
            f"service: N and λW differ by at most {off:.0e} of N."
        )
    return (
        f"LITTLE'S LAW IS BROKEN: {part}, N and λW differ by {off:.1e} of N. The law is an "
        "identity, so times were recorded wrongly."
    )


def _shape_sentence(what: str, shape: Shape | None) -> str:
    if shape is None:
        return f"{what}: too few values to test."
    tested = "; ".join(f"{test.asks} p {tiny(test.p_adjusted)}" for test in shape.tests)
    verdict = "REJECTED" if shape.refused else "not rejected"
    return f"{what} {verdict} by {shape.count} values: {tested} (Holm)."
