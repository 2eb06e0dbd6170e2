"""Streams of one kind as a queue: rate, service times, load and waits, each with its interval.

Waits of neighbouring jobs are dependent, so jobs are not replicates: runs are. With fewer than
three runs, busy cycles are used: under renewal arrivals they are independent at any load. With
fewer than thirty of these, batches of neighbouring jobs are used. Formulas use the estimates of the
same units: a run in which many jobs came by chance had long waits *and* a high rate, and the two
are not independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.stats

from analysis.answer import Answer, Column, Line, Section, bullets, table_of
from analysis.contrasts import FEWEST
from analysis.plain import one_line
from analysis.stats.adjust import holm
from analysis.terms import Refused
from analysis.wording import counted, tiny
from control.called import JUDGE
from control.t_test import ALPHA, t_quantile

from .claims import leading
from .estimates import FEW_RUNS, Figure, figure, number, unit, value_of
from .queue_formulas import Inputs
from .queue_times import JobColumns, Little, columns, cycles, little, most_held

if TYPE_CHECKING:
    import pandas as pd

    from analysis import answer

    from .estimates import Document
    from .records import Stream

    Sums = Mapping[str, float]

ROUNDING = 1e-9
CLOSED = (
    "CLOSED: a job arrives when another ends. Rate and waits follow from the number of customers, "
    "so no open queue's model applies; "
    f"use `{JUDGE} queue closed` for such systems."
)


RUNS, CYCLES, JOBS = "runs", "busy cycles", "batches of jobs"
FEWEST_CYCLES, BATCHES = 30, 20
MOST = 60  # groups of cycles: more would not improve an interval
WHYS = {
    RUNS: "are from {} runs, which are the replicates",
    CYCLES: "are from {} busy cycles, independent under renewal arrivals",
    JOBS: "are from {} batches of neighbouring jobs: there are too few runs and busy cycles",
}


def sums_of(streams: Sequence[JobColumns]) -> pd.DataFrame:
    """Sum the inputs of estimates: a row per unit; the index is named after the kind of unit.

    Columns: for `gap`, `wait`, `response` and `service` the count `…_n`, the seconds `…_s` and
    seconds² `…_s2`, and for `waited` the number of waits above 0. The same for the jobs of each
    priority, with suffix ` 1`.
    """
    import pandas as pd

    kind, labels = _units(streams)
    jobs = pd.concat(
        pd.DataFrame(
            {
                "unit": own,
                "priority": one.priority,
                "gap": np.diff(one.submit, prepend=np.nan),
                "wait": one.wait,
                "service": one.service,
                "response": one.end - one.submit,
                "waited": np.where(one.wait > 0, 1.0, np.nan),
            }
        )
        for own, one in zip(labels, streams, strict=True)
    )
    values = jobs.drop(columns=["unit", "priority"])
    parts = {
        "n": values.notna().astype(float),
        "s": values.fillna(0.0),
        "s2": values.fillna(0.0) ** 2,
    }
    every = pd.concat([part.add_suffix(f"_{name}") for name, part in parts.items()], axis=1)
    unit, priority = jobs["unit"].to_numpy(), jobs["priority"].to_numpy()
    levels = [
        every[priority == level].groupby(unit[priority == level]).sum().add_suffix(f" {level:g}")
        for level in np.unique(priority[~np.isnan(priority)])
    ]
    return every.groupby(unit).sum().join(levels).fillna(0.0).rename_axis(kind)


def _units(streams: Sequence[JobColumns]) -> tuple[str, list[np.ndarray]]:
    jobs = [len(one.submit) for one in streams]
    used = np.cumsum([count > 0 for count in jobs])
    runs = [np.full(count, number) for count, number in zip(jobs, used, strict=True)]
    numbered = [cycles(one) for one in streams]
    met = sum(int(cycle.max(initial=-1)) + 1 for cycle in numbered)
    if used[-1] < FEWEST and met >= FEWEST_CYCLES:
        return CYCLES, _dealt(numbered, min(MOST, met))
    if used[-1] < FEWEST and sum(jobs) >= 2 * BATCHES:
        return JOBS, _dealt([np.arange(count) for count in jobs], BATCHES)
    return RUNS, runs


def _dealt(numbered: Sequence[np.ndarray], groups: int) -> list[np.ndarray]:
    starts = np.cumsum([0, *(int(numbers.max(initial=-1)) + 1 for numbers in numbered)])
    return [
        (numbers + start) * groups // starts[-1]
        for numbers, start in zip(numbered, starts[:-1], strict=True)
    ]


def whole(sums: pd.DataFrame, without: int | None = None) -> Sums:
    """Return the sums of all units, or of all but one."""
    rest = sums if without is None else sums.drop(index=sums.index[without])
    return dict(zip(map(str, sums), rest.to_numpy().sum(axis=0).tolist(), strict=True))


def why_of(sums: pd.DataFrame) -> str:
    return (
        WHYS[str(sums.index.name)].format(len(sums))
        if len(sums) >= FEWEST
        else f"are missing: fewer than {FEWEST} runs"
    )


def estimate(
    of: Callable[[Sums], float | None], sums: pd.DataFrame, *, logs: bool = True
) -> Figure | None:
    """Estimate one number from the sums of units, with a jackknife interval; None if undefined.

    With `logs`, on the logarithm if all values are above 0, so that no interval reaches below 0.
    `why` is the reason for a missing interval. Source: Miller 1974; for ratios over busy cycles
    Iglehart 1975.
    """
    value, count = of(whole(sums)), len(sums)
    if value is None or count < FEWEST:
        return None if value is None else Figure(value, why=FEW_RUNS)
    without = [of(whole(sums, run)) for run in range(count)]
    if None in without:
        return Figure(value, why=f"undefined if one of the {sums.index.name} is left out")
    known = np.array(without, float)
    logs = logs and value > 0 and bool((known > 0).all())
    seen = np.log(known) if logs else known
    se = math.sqrt((count - 1) / count * float(((seen - seen.mean()) ** 2).sum()))
    half = t_quantile(1 - ALPHA / 2, count - 1) * se
    if logs:
        half = min(half, 700.0)
        return Figure(value, value * math.exp(-half), value * math.exp(half), value * se)
    return Figure(value, value - half, value + half, se)


SIMULATED = "simulated"
EXPECTED = 0.005  # of the planned rate: regular arrivals have no scatter, but clocks do


@dataclass(frozen=True, slots=True)
class Fit:
    """Streams of one group as a queue; figures are None without data, as for a trace.

    `utilisation` is the share of the slots' time that was held, by integration over the times of
    `laws`, which are by stream and None if no time starts and ends empty; `load` is rate times
    service time over slots. `engine` is empty if unknown. `closed`: a job came when another ended,
    so rate, gaps and waits are results of the system, not inputs.
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
    priorities: tuple[int, ...] = ()
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
    held = (
        sum(number * length for number, length in busy) / sum(length for _, length in busy)
        if busy
        else None
    )
    estimates: dict[str, Callable[[Sums], float | None]] = {
        "rate_per_s": rate,
        "service_s": lambda sums: mean(sums, "service"),
        "scv_arrivals": lambda sums: scv(sums, "gap"),
        "scv_service": lambda sums: scv(sums, "service"),
        "load": lambda sums: _load(sums, slots),
        "p_wait": lambda sums: mean(sums, "waited", "wait_n"),
        "wait_s": lambda sums: mean(sums, "wait"),
        "response_s": lambda sums: mean(sums, "response"),
    }
    figures = {name: estimate(of, sums) for name, of in estimates.items()}
    return Fit(
        group=streams[0].group,
        names=tuple(stream.name for stream in streams),
        jobs=sum(len(part.submit) for part in times),
        servers=slots,
        engine=_only(group, "engine", {stream.engine for stream in streams}),
        policy=_only(group, "policy", {stream.policy for stream in streams}),
        sums=sums,
        **figures,
        utilisation=None if held is None or slots is None else held / slots,
        arrivals=arrivals_shape([part.submit for part in times]),
        services=services_shape([part.service[~np.isnan(part.service)] for part in times]),
        laws=laws,
        findings=tuple(_findings(streams, times, laws, slots))
        + _unplanned(streams, figures["rate_per_s"]),
        closed=any(stream.closed for stream in streams),
        priorities=tuple(
            sorted(
                {
                    job.priority
                    for stream in streams
                    for job in stream.jobs
                    if job.priority is not None
                }
            )
        ),
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
    known = (rate(sums), mean(sums, "service"), scv(sums, "gap"), scv(sums, "service"))
    came, takes, scv_arrivals, scv_service = known
    if came is None or takes is None or scv_arrivals is None or scv_service is None or takes <= 0:
        return None
    return Inputs(came, takes, servers, scv_arrivals, scv_service)


def rate(sums: Sums) -> float | None:
    return sums["gap_n"] / sums["gap_s"] if sums.get("gap_s", 0) > 0 else None


def mean(sums: Sums, what: str, over: str = "") -> float | None:
    """Return the mean of one kind of times, seconds, or its share of `over`; None without any."""
    count = sums.get(over or f"{what}_n", 0)
    return sums[f"{what}_s"] / count if count > 0 else None


def scv(sums: Sums, what: str) -> float | None:
    """Return the squared coefficient of variation (n - 1); None below two, or if all are 0."""
    count, total = sums.get(f"{what}_n", 0), sums.get(f"{what}_s", 0)
    if count < 2 or total <= 0:
        return None
    average = total / count
    if average**2 == 0:  # below what a float holds
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
) -> Iterable[str]:
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
    for stream, part in zip(streams, times, strict=True):
        if slots is not None and (most := most_held(part)) > slots:
            yield (
                f"{stream.name}: {most} jobs held slots at once, but there are only {slots}: the "
                "recorded times are wrong."
            )


def _unplanned(streams: Sequence[Stream], came: Figure | None) -> tuple[str, ...]:
    rates = {stream.arrivals.get("rate_per_s") for stream in streams}
    planned = next(iter(rates)) if len(rates) == 1 else None
    if (
        came is None
        or came.low is None
        or came.high is None
        or isinstance(planned, bool)
        or not isinstance(planned, int | float)
    ):
        return ()
    if came.low <= planned <= came.high or abs(came.value - planned) < EXPECTED * planned:
        return ()
    return (
        (
            f"the measured rate, {came.value:.4g} [{came.low:.4g}, {came.high:.4g}] jobs/s, "
            f"differs from the planned {planned:.4g} jobs/s."
        ),
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
    tests = [
        (f"{what} are exponential", *_exponential(every)),
        (f"{what} are uncorrelated", *_memory(series)),
    ]
    if places:
        constant = scipy.stats.kstest(np.concatenate(places), "uniform")
        tests.append(("the rate is constant", float(constant.statistic), float(constant.pvalue)))
    adjusted = holm([p for _, _, p in tests])
    return Shape(
        len(every),
        tuple(
            ShapeTest(*test, p_adjusted) for test, p_adjusted in zip(tests, adjusted, strict=True)
        ),
    )


def _exponential(values: np.ndarray) -> tuple[float, float]:
    """Return the largest distance from the exponential distribution, and its p (Lilliefors 1969).

    The mean is that of the values, so tables of Kolmogorov and Smirnov would accept too much.
    Stephens's form (1974) of the statistic has one distribution for all counts; it is drawn,
    always the same.
    """
    mean = float(values.mean())
    if mean <= 0:
        return 1.0, 1 / (DRAWS + 1)
    distance = _distance(np.sort(values)[None, :] / mean)[0]
    larger = int((_null() >= _of_stephens(distance, len(values))).sum())
    return float(distance), (larger + 1) / (DRAWS + 1)


def _distance(ordered: np.ndarray) -> np.ndarray:
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
    """Return the rank correlation of neighbours, and its two-sided p.

    Ranks, because a few long gaps would otherwise decide.
    """
    before = np.concatenate([times[:-1] for times in series if len(times)])
    after = np.concatenate([times[1:] for times in series if len(times)])
    # What differs by less than a clock's rounding is the same.
    if len(before) < 3 or min(np.ptp(before), np.ptp(after)) <= ROUNDING * np.abs(before).max():
        return 0.0, 1.0
    correlation = scipy.stats.spearmanr(before, after)
    return float(correlation.statistic), float(correlation.pvalue)


def fitted(fits: Sequence[Fit], refused: Sequence[str]) -> Answer:
    title, *more = leading(
        [_answer(fit, f"{fit.group}: " if len(fits) > 1 else "") for fit in fits]
    )
    return Answer(
        title,
        [*map(Line, more)],
        [*map(_section, fits)],
        data={"fits": [*map(document, fits)]},
        refused=refused,
    )


def document(fit: Fit) -> Document:
    fields = asdict(fit)
    del fields["sums"]
    return {**fields, "intervals": why_of(fit.sums)}


def _section(fit: Fit) -> Section:
    scale, name = unit(map(value_of, (fit.service_s, fit.wait_s, fit.response_s)))
    figures: list[tuple[str, Figure | float | None, float, str]] = [
        ("rate λ", fit.rate_per_s, 1, "jobs/s"),
        ("ca² of gaps", fit.scv_arrivals, 1, "1 if Poisson"),
        ("service time E[S]", fit.service_s, scale, name),
        ("cs² of service times", fit.scv_service, 1, "1 if exponential"),
        ("load λ·E[S]/slots", fit.load, 1, ""),
        ("slots held, integrated", fit.utilisation, 1, "share of the time until last empty"),
        ("jobs that waited", fit.p_wait, 1, "share"),
        ("wait", fit.wait_s, scale, name),
        ("response", fit.response_s, scale, name),
    ]
    columns: answer.Columns = [
        (Column("", "figure", left=True), lambda row: row[0]),
        (
            Column("value [95 %]", "value"),
            lambda row: number(row[1]) if isinstance(row[1], float) else figure(row[1], row[2]),
        ),
        (Column("", "unit"), lambda row: None if row[1] is None else row[3]),
    ]
    lines = [f"Intervals {why_of(fit.sums)}.", _shape_sentence("Poisson arrivals", fit.arrivals)]
    lines += (
        [_shape_sentence("Exponential service times", fit.services)]
        if fit.services is not None
        else []
    )
    lines += [little_sentence(fit.laws)] if any(fit.laws) else []
    if fit.closed:
        lines.append(CLOSED)
    elif fit.load is not None and fit.load.value >= 1:
        lines.append(
            "UNSTABLE: the load is at least 1. The waits above are those of a run of this length, "
            "and grow with it."
        )
    return Section(
        fit.group, [*headline(fit), table_of(columns, figures), *bullets((*lines, *fit.findings))]
    )


def _answer(fit: Fit, of: str) -> str:
    if fit.wait_s is None:
        return f"{of}{figure(fit.rate_per_s)} jobs/s arrived; it is unknown when they held a slot."
    scale, name = unit([fit.wait_s.value])
    full = (
        " UNSTABLE: more work arrives than can be done."
        if fit.load is not None and fit.load.value >= 1 and not fit.closed
        else ""
    )
    return (
        f"{of}A job waits {figure(fit.wait_s, scale)} {name} on average, at a load of "
        f"{figure(fit.load)}.{full}"
    )


def headline(fit: Fit) -> Iterator[Line]:
    slots = "slots unknown" if fit.servers is None else counted(fit.servers, "slot")
    known = ", ".join(
        part
        for part in (
            fit.engine and f"engine {fit.engine}",
            slots,
            fit.policy and f"policy {fit.policy}",
        )
        if part
    )
    yield Line(f"{counted(fit.jobs, 'job')} in {counted(len(fit.names), 'run')}; {known}")
    if fit.simulated:
        yield Line("SIMULATED: none of these jobs ran.", "•", "open")


def little_sentence(laws: Sequence[Little | None]) -> str:
    off, part = max(
        (law.off, law.part) for of_run in laws if of_run is not None for law in of_run.laws
    )
    if off < ROUNDING:
        runs = sum(of_run is not None for of_run in laws)
        return (
            f"Little's law holds in {runs} of {len(laws)} runs, in all, waiting and in service: N "
            f"and λW differ by at most {off:.0e} of N."
        )
    return (
        f"LITTLE'S LAW IS BROKEN: {part}, N and λW differ by {off:.1e} of N. The law is an "
        "identity, so times were recorded wrongly."
    )


def _shape_sentence(what: str, shape: Shape | None) -> str:
    if shape is None:
        return f"{what}: too few values to test."
    tested = "; ".join(f"{test.asks} p {tiny(test.p_adjusted)}" for test in shape.tests)
    return (
        f"{what} {'REJECTED' if shape.refused else 'not rejected'} by {shape.count} values: "
        f"{tested} (Holm)."
    )
