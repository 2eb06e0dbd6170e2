"""How often to write a checkpoint: rules of thumb, the exact answer, and intervals that were tried on real jobs.

`cost_s` is what one checkpoint takes, `mtbf_s` the mean time between failures of what is checkpointed: one job while it runs, not the
cluster. All times in one unit. The formulas are of failures at random (exponential times between them) and of jobs without an end.

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

from analysis.answer import Answer, Column, Columns, Line, Section, Word, bullets, table_of
from analysis.terms import Refused
from analysis.wording import percent, unsigned
from control.t_test import ALPHA, t_quantile

from .claims import CANT_TELL, NOT_COMPARABLE, SLOWER, claimed, claims_first
from .estimates import (
    FEW,
    FEWEST,
    Figure,
    adjusted,
    average,
    average_of_known,
    called_apart,
    figure,
    mean,
    number,
    p_value,
    plural,
    ratio,
)
from .faults import twin_of
from .recovery import held, shared, totals

if TYPE_CHECKING:
    from .records import Attempt, Stream, Unit

    Times = Mapping[float, Mapping[Unit, Sequence[float]]]  # by interval and block

NEAR = 0.01  # how much more time than the least is no matter
HALVINGS = 200
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
    for name, value in {"the cost of a checkpoint": cost_s, "the mean time between failures": mtbf_s}.items():
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
    """The interval that took least time, where runs tried some, else what the rules say. In the data an open interval ends in null."""
    names, _ = called_apart([trial.condition for trial, _ in trials]) if trials else ({}, "")
    answers = [f"{f'{names[trial.condition]}: ' if len(trials) > 1 else ''}{_best_of(trial)}" for trial, _ in trials]
    rules = [Line(f"Daly's interval is {_against_daly(own, trial.least_s)}") for trial, own in trials if own is not None]
    if advice is not None and not trials:
        answers = [f"A checkpoint every {number(advice.daly_s)} s (Daly): {_over(advice.daly_overhead)} more time than the work takes."]
        rules = [
            Line(f"From {number(advice.low_s)} s to {number(advice.high_s)} s the whole takes at most 1 % more than at the best."),
            *([Line("A checkpoint takes half the time between failures or more: little gets done.", tone="open")] * advice.too_dear),
        ]
    return Answer(
        title=answers[0],
        findings=[*map(Line, answers[1:3]), *rules][:2],
        sections=[*([] if advice is None else [_rules(advice)]), *(_trial_section(trial, own) for trial, own in trials)],
        data={"advice": advice, "trials": [{**asdict(trial), "advice": own} for trial, own in trials]},
        refused=refused,
    )


def _over(overhead: float) -> str:
    return "without end" if math.isinf(overhead) else unsigned(overhead)


def _every(checkpoint_s: float) -> str:
    return f"every {checkpoint_s:g} s" if checkpoint_s else "none"


def _rules(advice: Advice) -> Section:
    rules = {"Young": "young", "Daly": "daly", "exact": "best"}
    columns: Columns = [
        (Column("rule", left=True), lambda rule: rule),
        (Column("interval\ns", "interval_s", lambda every_s: number(every_s, 6)), lambda rule: getattr(advice, f"{rules[rule]}_s")),
        (Column("time beyond\nthe work", "overhead", _over), lambda rule: getattr(advice, f"{rules[rule]}_overhead")),
    ]
    about = f"A checkpoint takes {number(advice.cost_s)} s, failures come every {number(advice.mtbf_s)} s on average, at random."
    return Section("", [table_of(columns, [*rules]), Line(about, "•")])


def _word(tried: TriedInterval) -> Word | None:
    if tried.time is None:
        return NOT_COMPARABLE
    return None if tried.more is None else CANT_TELL if tried.p is None or tried.p >= ALPHA else SLOWER


def _best_of(trial: CheckpointTrial) -> str:
    best = next((one for one in trial.tried if one.time is not None and one.more is None), None)
    if best is None:
        return "No interval has a time per work: nothing can be compared."
    others = [
        (
            word,
            (_every(one.checkpoint_s) if one.checkpoint_s else "without them")
            + (f" ({percent(one.more)})" if one.more is not None else ""),
        )
        for one in trial.tried
        if one is not best and (word := _word(one)) is not None
    ]
    least = f"checkpoints {_every(best.checkpoint_s)}" if best.checkpoint_s else "no checkpoints"
    return f"Least time: {least}. {claimed(others)}"


def _trial_section(trial: CheckpointTrial, advice: Advice | None) -> Section:
    columns: Columns = [
        (Column("checkpoint", left=True), lambda tried: _every(tried.checkpoint_s)),
        (Column("it is", "verdict", left=True), lambda tried: _word(tried) or Word("the best", "strong")),
        (Column("time/work\n[95 %]", "time_per_work", figure), lambda tried: tried.time),
        (Column("more than\nthe best", "more", percent), lambda tried: tried.more),
        (Column("p\nHolm", "p_adjusted", p_value), lambda tried: tried.p),
        (Column("by Daly's\nformula", "foretold", number), lambda tried: tried.foretold),
        (Column("streams"), lambda tried: tried.streams),
    ]
    best_first = sorted(trial.tried, key=lambda tried: tried.time is None or tried.more is not None)
    rows = claims_first(best_first, lambda tried: SLOWER if tried is best_first[0] else _word(tried))
    about = f"under {trial.fault}, {plural(trial.blocks, 'block')}"
    return Section(trial.condition, [Line(about), table_of(columns, rows), *bullets(_trial_lines(trial, advice))])


def _trial_lines(trial: CheckpointTrial, advice: Advice | None) -> Iterator[str]:
    for tried in trial.tried:
        if tried.lost:
            every = f"checkpoints every {tried.checkpoint_s:g} s" if tried.checkpoint_s else "no checkpoints"
            jobs = "job was not done and is" if tried.lost == 1 else "jobs were not done and are"
            yield f"with {every} {tried.lost} {jobs} in no time: it is worse than it looks."
    fails = "no attempt failed: there is no mean time between failures."
    if trial.mtbf_s is not None:
        fails = (
            f"{trial.killed} attempts failed in {number(trial.ran_s)} s of running: one running job fails every {_open(trial.mtbf_s)} s."
        )
    yield fails
    cost = "no checkpoint has a recorded cost."
    yield cost if trial.cost_s is None else f"a checkpoint took {number(trial.cost_s)} s ({trial.checkpoints} of them)."
    if trial.restart_s is not None:
        yield f"the next attempt began {number(trial.restart_s)} s after the failure, which no interval changes."
    reasons = "; ".join(filter(None, (trial.least_s.why if trial.least_s else "", trial.why)))
    least = "" if trial.least_s is None else f"least time by a + bτ + c/τ at {_open(trial.least_s)} s"
    yield f"{least or reasons}{f' ({reasons})' if least and reasons else ''}."
    if advice is not None:
        yield f"Young says {number(advice.young_s)} s, Daly {number(advice.daly_s)} s."


def _against_daly(advice: Advice, least_s: Figure | None) -> str:
    daly = f"{number(advice.daly_s)} s"
    if least_s is None or least_s.low is None or least_s.high is None:
        return f"{daly}: not comparable, no least was measured with an interval."
    if math.isinf(least_s.high) and least_s.low == 0:
        return f"{daly}: can't tell it from the measured least."
    inside = least_s.low <= advice.daly_s <= least_s.high
    return f"{daly}, {'inside' if inside else 'OUTSIDE'} the interval of the measured least, {_open(least_s)} s."


def _open(value: Figure) -> str:
    return figure(value).replace("inf]", "∞]")
