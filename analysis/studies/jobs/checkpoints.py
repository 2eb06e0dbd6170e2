"""How often to write a checkpoint: rules of thumb, the exact answer, simulation, and intervals that were tried on real jobs.

`cost_s` is what one checkpoint takes, `mtbf_s` the mean time between failures of what is checkpointed: one job while it runs, not the
cluster. All times in one unit. The formulas are of failures at random (exponential times between them) and of jobs without an end. In
simulation a job has so much work, and times between failures may be Weibull's: of shape 1 they are exponential, below 1 failures come in
bunches. Every interval meets the same failures, seed by seed.

Of real jobs, time per work is the time that attempts held slots, over that of the same jobs without faults. Over interval τ it is
a + b·τ + c/τ to first order (lost work grows with τ, checkpoints cost 1/τ), which is least at √(c/b). Each block has a b and a c; their
ratio has Fieller's interval over blocks, open at an end where the blocks cannot tell it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaincinv

from analysis.answer import Answer, Line, Part, bullets, of_parts, text_table
from analysis.terms import Refused
from analysis.wording import percent, unsigned
from control.t_test import ALPHA, t_quantile

from .estimates import (
    FEW,
    FEWEST,
    NONE,
    Figure,
    Ratio,
    adjusted,
    average,
    average_of_known,
    figure,
    mean,
    number,
    p_value,
    plural,
    ratio,
    table,
)
from .faults import twin_of
from .recovery import held, shared, totals

if TYPE_CHECKING:
    from .records import Attempt, Stream, Unit

    Times = Mapping[float, Mapping[Unit, Sequence[float]]]  # by interval and block

NEAR = 0.01  # how much more time than the least is no matter
HALVINGS = 200
AROUND = (0.25, 0.5, 1.0, 2.0, 4.0)  # of Daly's interval
MOST_STEPS = 2_000_000  # segments of work and failures that one job may come to
LEVELS = 3  # intervals above 0 that a curve with three numbers needs
TOO_FEW_LEVELS = "fewer than 3 intervals above 0 in every block: no curve"
NO_LEAST = "no least: longer intervals cost nothing more, or shorter ones nothing"
OUTSIDE = "outside the intervals that were tried"


@dataclass(frozen=True, slots=True)
class Advice:
    """Intervals between checkpoints for one cost and MTBF, in seconds of work, and what each makes of the time.

    `low_s` to `high_s` take at most 1 % more time than the best. Overheads are the expected time over the work, less 1; infinite where
    hardly anything is ever done. `too_dear`: a checkpoint takes so long that the rules do not hold.
    """

    cost_s: float
    mtbf_s: float
    restart_s: float
    young_s: float
    daly_s: float
    best_s: float
    low_s: float
    high_s: float
    young_overhead: float
    daly_overhead: float
    best_overhead: float
    too_dear: bool


def young_s(cost_s: float, mtbf_s: float) -> float:
    """First-order interval √(2·C·M). Source: Young, CACM 17(9), 1974."""
    return math.sqrt(2 * cost_s * mtbf_s)


def daly_s(cost_s: float, mtbf_s: float) -> float:
    """Higher-order interval; the MTBF itself where a checkpoint takes twice that and more. Source: Daly, FGCS 22(3), 2006, eq. 37."""
    if cost_s >= 2 * mtbf_s:
        return mtbf_s
    part = cost_s / (2 * mtbf_s)
    return young_s(cost_s, mtbf_s) * (1 + math.sqrt(part) / 3 + part / 9) - cost_s


def best_s(cost_s: float, mtbf_s: float) -> float:
    """The interval of least expected time, exactly: with x = τ/M and c = C/M the root of log(1 - x) + x + c = 0."""
    share = cost_s / mtbf_s
    return mtbf_s * _root(lambda x: math.log1p(-x) + x + share, 0.0, math.nextafter(1.0, 0.0))


def time_per_work(interval_s: float, cost_s: float, mtbf_s: float, restart_s: float = 0.0) -> float:
    """Expected time that one second of work takes, 1 without failures and checkpoints; infinite where a float does not hold it.

    A failure costs all since the last checkpoint and a restart, and may come during either. Source: Daly, 2006, eq. 13, exact under
    exponential times between failures.
    """
    try:
        return mtbf_s * math.exp(restart_s / mtbf_s) * math.expm1((interval_s + cost_s) / mtbf_s) / interval_s
    except OverflowError:
        return math.inf


def advise(cost_s: float, mtbf_s: float, restart_s: float = 0.0) -> Advice:
    for name, value in (("the cost of a checkpoint", cost_s), ("the mean time between failures", mtbf_s)):
        if not 0 < value < math.inf:
            raise Refused(f"{name} is {value:g} s; a time above 0 belongs there.")
    if not 0 <= restart_s < math.inf:
        raise Refused(f"the time to restart is {restart_s:g} s; 0 or more belongs there.")
    if not 1e-12 < cost_s / mtbf_s < 100:
        raise Refused(f"a checkpoint of {cost_s:g} s every {mtbf_s:g} s between failures: one is out of all proportion to the other.")
    young, daly, best = (formula(cost_s, mtbf_s) for formula in (young_s, daly_s, best_s))
    most = time_per_work(best, cost_s, mtbf_s) * (1 + NEAR)

    def dearer(interval_s: float) -> float:
        return time_per_work(interval_s, cost_s, mtbf_s) - most

    above = 2 * best
    while dearer(above) < 0:
        above *= 2
    low_s, high_s = _root(dearer, best * 1e-9, best), _root(lambda longer_s: -dearer(longer_s), best, above)
    over = [time_per_work(interval_s, cost_s, mtbf_s, restart_s) - 1 for interval_s in (young, daly, best)]
    return Advice(cost_s, mtbf_s, restart_s, young, daly, best, low_s, high_s, over[0], over[1], over[2], cost_s >= mtbf_s / 2)


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    cost_s: float
    mtbf_s: float
    work_s: float
    restart_s: float = 0.0
    shape: float = 1.0
    seeds: int = 200
    intervals_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class PlayedInterval:
    """One interval: time per work over the seeds, by Daly's formula, and over that of Daly's interval with the same failures."""

    interval_s: float
    time: Figure
    formula: float
    against_daly: Ratio | None


def simulate(plan: CheckpointPlan) -> tuple[Advice, list[PlayedInterval]]:
    if not 0 < plan.work_s < math.inf or not 0.1 <= plan.shape <= 10 or not 3 <= plan.seeds <= 100_000:
        raise Refused("the work is above 0 s, the shape from 0.1 to 10, seeds from 3 to 100000.")
    if not all(0 < interval_s < math.inf for interval_s in plan.intervals_s):
        raise Refused("an interval between checkpoints is above 0 s.")
    advice = advise(plan.cost_s, plan.mtbf_s, plan.restart_s)
    intervals_s = sorted({*(plan.intervals_s or (advice.daly_s * part for part in AROUND)), advice.daly_s})
    formulas = {every_s: time_per_work(every_s, plan.cost_s, plan.mtbf_s, plan.restart_s) for every_s in intervals_s}
    for every_s, formula in formulas.items():
        steps = plan.work_s / every_s + plan.work_s * formula / plan.mtbf_s
        if not steps * plan.seeds < MOST_STEPS * 10 or not steps < MOST_STEPS:
            raise Refused(
                f"{every_s:g} s between checkpoints makes some {steps:.1g} segments and failures a job, too many to play: "
                "ask for less work, fewer seeds, or an interval nearer to the MTBF's."
            )
    times = {every_s: [job_s(plan, every_s, _failures(plan, seed)) / plan.work_s for seed in range(plan.seeds)] for every_s in intervals_s}
    played = []
    for every_s, formula in formulas.items():
        pairs = {("", seed): [both] for seed, both in enumerate(zip(times[advice.daly_s], times[every_s], strict=True))}
        time = mean({unit: [own] for unit, [(_, own)] in pairs.items()})
        if time is not None:
            played.append(PlayedInterval(every_s, time, formula, ratio(pairs) if every_s != advice.daly_s else None))
    return advice, played


def _failures(plan: CheckpointPlan, seed: int) -> Iterator[float]:
    rng = np.random.default_rng([seed, 10])
    scale, now = plan.mtbf_s / math.gamma(1 + 1 / plan.shape), 0.0
    while True:
        for gap in scale * rng.weibull(plan.shape, 256):
            now += float(gap)
            yield now


def job_s(plan: CheckpointPlan, interval_s: float, failures: Iterator[float]) -> float:
    """Return how long a job takes that fails at these times, ascending."""
    now, done_s, failure = 0.0, 0.0, next(failures)
    while done_s < plan.work_s:
        segment_s = min(interval_s, plan.work_s - done_s)
        # The end of the work needs no checkpoint: the job is done.
        until = now + segment_s + (plan.cost_s if done_s + segment_s < plan.work_s else 0.0)
        if until <= failure:
            now, done_s = until, done_s + segment_s
            continue
        now, failure = failure + plan.restart_s, next(failures)
        while failure < now:
            now, failure = failure + plan.restart_s, next(failures)
    return now


@dataclass(frozen=True, slots=True)
class TriedInterval:
    """One interval; 0 is no checkpoint at all. `time` is time per work, `foretold` the same by Daly's formula, with the time to restart.

    `more` is how much more time than the best it takes, `p` that of the difference after Holm; both None for the best itself. `lost` jobs
    were not done and are in no time, which is the shorter for it: the longest are lost most.
    """

    checkpoint_s: float
    streams: int
    time: Figure | None
    foretold: float | None
    more: float | None = None
    p: float | None = None
    lost: int = 0


@dataclass(frozen=True, slots=True)
class CheckpointTrial:
    """All intervals under one fault. `cost_s`, `mtbf_s` and `restart_s` are measured; None where nothing of the kind was.

    `killed` attempts in `ran_s` of attempts make the MTBF of one running job; its interval is exact for a Poisson count. `least_s` is where
    the curve is least, infinite or 0 as an end of its interval where the blocks cannot tell it; `why` there is none, or none to rely on.
    """

    condition: str
    fault: str
    blocks: int
    cost_s: float | None
    checkpoints: int
    mtbf_s: Figure | None
    killed: int
    ran_s: float
    restart_s: float | None
    tried: tuple[TriedInterval, ...]
    least_s: Figure | None
    why: str


def trials(streams: Sequence[Stream]) -> list[CheckpointTrial]:
    by_fault: dict[tuple[str, str], list[Stream]] = {}
    for stream in streams:
        if stream.fault:
            by_fault.setdefault((stream.condition, stream.fault_label), []).append(stream)
    several = {key: own for key, own in by_fault.items() if len({stream.checkpoint_s for stream in own}) > 1}
    return [_trial(condition, fault, own, streams) for (condition, fault), own in several.items()]


def _trial(condition: str, fault: str, streams: Sequence[Stream], every: Sequence[Stream]) -> CheckpointTrial:
    times: dict[float, dict[Unit, list[float]]] = {}
    for stream in streams:
        spent = _time_per_work(stream, twin_of(stream, every))
        if spent is not None:
            times.setdefault(stream.checkpoint_s, {}).setdefault(stream.unit, []).append(spent)
    attempts = [attempt for stream in streams for attempt in stream.attempts]
    wrote = [attempt for attempt in attempts if attempt.checkpoints and attempt.cost_s is not None]
    checkpoints = sum(attempt.checkpoints or 0 for attempt in wrote)
    cost_s = math.fsum(attempt.cost_s or 0.0 for attempt in wrote) / checkpoints if checkpoints else None
    spans = [(one, one.end_s - one.begin_s) for one in attempts if one.begin_s is not None and one.end_s is not None]
    ran_s = math.fsum(max(0.0, span_s) for _, span_s in spans)
    killed = sum(attempt.outcome in {"killed", "failed"} for attempt, _ in spans)
    mtbf = _mtbf(killed, ran_s)
    restart_s = average_of_known(wait_s for stream in streams for wait_s in _restarts(stream.attempts))
    least, why = _least({level: own for level, own in times.items() if level > 0})
    tried = []
    for level, own in sorted(times.items()):
        foretold = time_per_work(level, cost_s, mtbf.value, restart_s or 0.0) if level and cost_s and mtbf else None
        lost = sum(not job.done for stream in streams if stream.checkpoint_s == level for job in stream.jobs)
        tried.append(TriedInterval(level, sum(map(len, own.values())), mean(own), foretold, lost=lost))
    blocks, of_best = len({stream.unit for stream in streams}), _against_best(tried, times)
    return CheckpointTrial(condition, fault, blocks, cost_s, checkpoints, mtbf, killed, ran_s, restart_s, of_best, least, why)


def _time_per_work(stream: Stream, twin: Stream | None) -> float | None:
    """Over the jobs that were done in both; where there is no twin, over what was useful of the stream's own time."""
    if twin is None:
        useful = totals(stream).useful
        return 1 / useful if useful else None
    held_s, twin_s = held(stream), held(twin)
    if held_s is None or twin_s is None:
        return None
    both = [job.number for job, other in shared(stream, twin) if job.done and other.done]
    own_s, work_s = (math.fsum(of.get(number, 0.0) for number in both) for of in (held_s, twin_s))
    return own_s / work_s if work_s > 0 else None


def _mtbf(killed: int, ran_s: float) -> Figure | None:
    """Time over count, with the exact interval of a Poisson count (Garwood, 1936)."""
    if not killed or ran_s <= 0:
        return None
    most, fewest = float(gammaincinv(killed + 1, 1 - ALPHA / 2)), float(gammaincinv(killed, ALPHA / 2))
    return Figure(ran_s / killed, ran_s / most, ran_s / fewest)


def _restarts(attempts: Sequence[Attempt]) -> Iterator[float]:
    begins = {(attempt.job, attempt.number): attempt.begin_s for attempt in attempts}
    for failed in attempts:
        begin_s = begins.get((failed.job, failed.number + 1))
        if failed.end_s is not None and begin_s is not None and begin_s >= failed.end_s:
            yield begin_s - failed.end_s


def _against_best(tried: Sequence[TriedInterval], times: Times) -> tuple[TriedInterval, ...]:
    known = [(one.time.value, one.checkpoint_s) for one in tried if one.time is not None]
    if not known:
        return tuple(tried)
    best = min(known)[1]
    ratios = {}
    for level in times.keys() - {best}:
        common = sorted(times[level].keys() & times[best].keys())
        ratios[level] = ratio({unit: [(average(times[best][unit]), average(times[level][unit]))] for unit in common})
    p = adjusted(ratios)
    more = {level: over.value - 1 for level, over in ratios.items() if over is not None}
    return tuple(replace(one, more=more.get(one.checkpoint_s), p=p.get(one.checkpoint_s)) for one in tried)


def _least(times: Times) -> tuple[Figure | None, str]:
    """Where a + b·τ + c/τ is least; `times` by interval and block."""
    units = sorted(set.intersection(*(set(own) for own in times.values()))) if times else []
    if len(times) < LEVELS or not units:
        return None, TOO_FEW_LEVELS
    levels = np.array(sorted(times))
    shape = np.column_stack([np.ones(len(levels)), levels, 1 / levels])
    values = np.array([[average(times[level][unit]) for level in levels] for unit in units])
    slopes = np.linalg.lstsq(shape, values.T, rcond=None)[0][1:].T  # a block each: b, c
    grows, cost = slopes.mean(axis=0)
    if grows <= 0 or cost <= 0:
        return None, NO_LEAST
    least = math.sqrt(cost / grows)
    why = "" if levels[0] <= least <= levels[-1] else OUTSIDE
    if len(units) < FEWEST:
        return Figure(least, why=FEW), why
    low, high = fieller(slopes[:, 1], slopes[:, 0])
    return Figure(least, math.sqrt(low), math.sqrt(high)), why


def fieller(above: np.ndarray, below: np.ndarray) -> tuple[float, float]:
    """95 % interval, cut off at 0, of the ratio of two means that are both above 0; pairs of shape (n,). Infinite where `below` may be 0.

    Source: Fieller, JRSS B 16(2), 1954.
    """
    n = len(above)
    covariance = np.cov(above, below) / n
    squared = t_quantile(1 - ALPHA / 2, n - 1) ** 2
    top, bottom = float(above.mean()), float(below.mean())
    # {r: (top - r·bottom)² ≤ t²·(v_aa - 2r·v_ab + r²·v_bb)}: a·r² - 2·b·r + c ≤ 0.
    a = bottom**2 - squared * float(covariance[1, 1])
    b = top * bottom - squared * float(covariance[0, 1])
    c = top**2 - squared * float(covariance[0, 0])
    inside = b * b - a * c
    if a > 0:
        half = math.sqrt(max(0.0, inside))
        return max(0.0, (b - half) / a), (b + half) / a
    if a == 0 or c <= 0:
        return 0.0, math.inf  # neither is shown to be above 0
    return (b - math.sqrt(inside)) / a, math.inf


def with_advice(
    trials: Sequence[CheckpointTrial], cost_s: float | None = None, mtbf_s: float | None = None
) -> list[tuple[CheckpointTrial, Advice | None]]:
    """Put advice beside each trial, for the cost and time between failures measured in it, unless they are given."""
    result = []
    for trial in trials:
        own_cost_s = trial.cost_s if cost_s is None else cost_s
        own_mtbf_s = (trial.mtbf_s and trial.mtbf_s.value) if mtbf_s is None else mtbf_s
        result.append((trial, advise(own_cost_s, own_mtbf_s, trial.restart_s or 0.0) if own_cost_s and own_mtbf_s else None))
    return result


def advised(advice: Advice | None, trials: Sequence[tuple[CheckpointTrial, Advice | None]], refused: Sequence[str]) -> Answer:
    """In the data an open interval ends in null."""
    documents = [{**asdict(trial), "advice": own} for trial, own in trials]
    parts = [*(() if advice is None else _advice(advice)), *(part for trial, own in trials for part in _trial_parts(trial, own))]
    return of_parts({"advice": advice, "trials": documents}, parts, refused)


def _advice(advice: Advice) -> Iterator[Part]:
    yield f"a checkpoint takes {number(advice.cost_s)} s, failures come every {number(advice.mtbf_s)} s on average, at random"
    rules = {"Young": "young", "Daly": "daly", "exact": "best"}
    values = {rule: (getattr(advice, f"{name}_s"), getattr(advice, f"{name}_overhead")) for rule, name in rules.items()}
    rows = [(rule, number(every_s, 6), "without end" if math.isinf(more) else unsigned(more)) for rule, (every_s, more) in values.items()]
    yield text_table(("", "interval s", "time beyond the work"), rows)
    yield Line(f"from {number(advice.low_s)} s to {number(advice.high_s)} s the whole takes at most 1 % more than at the best.", "•")
    if advice.too_dear:
        yield Line("a checkpoint takes half the time between failures or more: the rules do not hold, and little gets done.", "•")
    yield ""


def _trial_parts(trial: CheckpointTrial, advice: Advice | None) -> Iterator[Part]:
    yield Line(trial.condition, tone="strong")
    yield f"under {trial.fault}, {plural(trial.blocks, 'block')}"
    rows = [
        (
            *(f"{tried.checkpoint_s:g}" if tried.checkpoint_s else "none", tried.streams, tried.time, tried.foretold),
            *(NONE if not tried.time else "best" if tried.more is None else percent(tried.more), p_value(tried.p)),
        )
        for tried in trial.tried
    ]
    yield table(("checkpoint every s", "streams", "time/work [95 %]", "by Daly's formula", "more than the best", "p"), rows)
    yield from bullets(_trial_lines(trial, advice))
    yield ""


def _trial_lines(trial: CheckpointTrial, advice: Advice | None) -> Iterator[str]:
    for tried in trial.tried:
        if tried.lost:
            every = f"checkpoints every {tried.checkpoint_s:g} s" if tried.checkpoint_s else "no checkpoints"
            jobs = "job was not done and is" if tried.lost == 1 else "jobs were not done and are"
            yield f"with {every} {tried.lost} {jobs} in no time: it is worse than it looks."
    if trial.mtbf_s is not None:
        fails = f"one running job fails every {_open(trial.mtbf_s)} s"
        yield f"{trial.killed} attempts failed in {number(trial.ran_s)} s of running: {fails}."
    else:
        yield "no attempt failed: there is no mean time between failures."
    if trial.cost_s is not None:
        yield f"a checkpoint took {number(trial.cost_s)} s ({trial.checkpoints} of them)."
    else:
        yield "no checkpoint has a recorded cost."
    if trial.restart_s is not None:
        yield f"the next attempt began {number(trial.restart_s)} s after the failure, which no interval changes."
    if trial.least_s is None:
        yield f"{trial.why}."
    else:
        whys = "; ".join(why for why in (trial.least_s.why, trial.why) if why)
        yield f"least time by a + bτ + c/τ at {_open(trial.least_s)} s{f' ({whys})' if whys else ''}."
    if advice is not None:
        yield f"Young says {number(advice.young_s)} s, Daly {number(advice.daly_s)} s: {_against_daly(trial.least_s, advice)}"


def _against_daly(least_s: Figure | None, advice: Advice) -> str:
    if least_s is None or least_s.low is None or least_s.high is None:
        return "nothing here to compare them with."
    if math.isinf(least_s.high) and least_s.low == 0:
        return "these runs cannot tell."
    inside = least_s.low <= advice.daly_s <= least_s.high
    return f"Daly's lies {'inside' if inside else 'OUTSIDE'} the interval of the measured least."


def _open(value: Figure) -> str:
    return figure(value).replace("inf]", "∞]")


def simulated(plan: CheckpointPlan) -> Answer:
    advice, intervals = simulate(plan)
    failures = "at random" if plan.shape == 1 else f"by Weibull's law of shape {plan.shape:g}"
    about = f"SIMULATED: {plan.seeds} jobs of {number(plan.work_s)} s of work for each interval, the same failures for all, every "
    costs = f"A checkpoint takes {number(plan.cost_s)}, a restart {number(plan.restart_s)} s."
    rows = [
        (
            number(played.interval_s),
            f"{played.time.value:.4f}" + ("" if played.time.high is None else f" ± {played.time.high - played.time.value:.4f}"),
            f"{played.formula:.4f}",
            "Daly's interval" if played.interval_s == advice.daly_s else figure(played.against_daly),
        )
        for played in intervals
    ]
    best = min(intervals, key=lambda played: played.time.value)
    shown = best.against_daly is not None and best.against_daly.high is not None and best.against_daly.high < 1
    least = f"least at {number(best.interval_s)} s, {'' if shown else 'not '}shown to be better than Daly's {number(advice.daly_s)} s."
    parts: list[Part] = [
        f"{about}{number(plan.mtbf_s)} s on average {failures}. {costs}",
        text_table(("interval s", "time/work ± 95 %", "formula", "of Daly's [95 %]"), rows),
        Line("no other interval took less time than Daly's." if best.interval_s == advice.daly_s else least, "•"),
    ]
    data = {"simulated": True, "asked": plan, "advice": advice, "intervals": intervals}
    return of_parts(data, parts)
