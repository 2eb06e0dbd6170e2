"""Measured waits against what models predict from rate and service times alone: how far off, with an interval, and the word for it.

Only runs that are each other's replicates carry a verdict: three or more. What one run says of itself has an interval that is too narrow,
for the few long queues of a run decide its mean: of 300 simulated runs of 600 jobs at load .6 in two slots, 87 in 100 hold the truth.

The interval is of the ratio measured ÷ predicted, over the units of the fit, in both numbers at once. A prediction from what was planned
(rate and service time given, not fitted) has no scatter of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from analysis.plain import one_line

from .fitting import inputs, mean
from .open_queues import load_of
from .predicting import chosen, models, value_of
from .priorities import Kind, non_preemptive
from .terms import Figure, Inputs, Unstable
from .units import RUNS, estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .fitting import Fit, Sums
    from .terms import Job, Stream

ROUNDING = 1e-9
SETTLED = 20  # times over which a queue forgets that it began empty
Word = Literal["agrees", "differs", "open", "not judged"]
RULE = (
    "agrees: the interval of measured ÷ predicted lies within the margin around 1. differs: it lies beyond 1 and not within the margin. "
    "open: neither is shown; in runs too short to settle, only waits that are too long differ. Each setting is judged by itself."
)
OF_EACH = "no verdict on all jobs together: some go before others; each priority has its own."
CLOSED = (
    "CLOSED: a job comes when another ends. Rate and waits follow from the number of customers, and no open queue's model can be asked; "
    "`python -m analysis queue closed` has one for such systems."
)


@dataclass(frozen=True, slots=True)
class Held:
    """One model against the waits: `ratio` is measured ÷ predicted, None of a predicted 0; `z` is how many standard errors lie between."""

    model: str
    exact: bool
    predicted_s: float
    ratio: Figure | None
    z: float | None
    verdict: Word
    chosen: bool = False
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class Validation:
    """What was made of a stream's waits.

    `unstable` is why there is no stationary figure, `growth_s` what each job waits longer than the one before it then, on average. `notes`
    are what must be known of the verdicts; `planned` is what was given in place of fitted inputs.
    """

    fit: Fit
    margin: float
    wait_s: Figure | None
    held: tuple[Held, ...]
    why: str = ""
    unstable: str = ""
    growth_s: float | None = None
    notes: tuple[str, ...] = ()
    planned: Inputs | None = None


def validate(fit: Fit, streams: Sequence[Stream], margin: float, planned: Inputs | None = None) -> Validation:
    """Hold the models against the measured waits of a fit.

    `margin` is how far a model may be off, a fraction. `planned` takes the place of fitted rate, service time and variation.
    """
    sums = {name: float(values.sum()) for name, values in fit.units.sums.items()}
    asked = planned or (inputs(sums, fit.servers) if fit.servers is not None else None)
    if asked is None or fit.wait_s is None:
        missing = "how many slots there are (--servers)" if fit.servers is None else "when jobs got a slot and gave it back"
        return Validation(fit, margin, fit.wait_s, (), notes=(f"nothing tells {missing}: no model can be asked.",), planned=planned)
    if fit.closed:
        return Validation(fit, margin, fit.wait_s, (), notes=(CLOSED,), planned=planned)
    try:
        found = models(asked)
    except Unstable as error:
        return Validation(fit, margin, fit.wait_s, (), unstable=str(error), growth_s=_growth(streams), planned=planned)
    pick, why = chosen(fit, asked.servers)
    notes, short = _against(fit, streams), _short(fit, asked)
    held = []
    for at, queue in enumerate(found):
        foretold = queue.wait_s if planned else None
        ratio = estimate(partial(_ratio, servers=asked.servers, at=at, foretold=foretold), fit.units)
        apart = estimate(partial(_apart, servers=asked.servers, at=at, foretold=foretold), fit.units, logs=False)
        word = _word(ratio, margin, short=bool(short)) if not notes else "not judged"
        held.append(Held(queue.model, queue.exact, queue.wait_s, ratio, _z(apart, fit.wait_s.value - queue.wait_s), word, at == pick))
    if fit.policy == "priority" and planned is None and len(fit.priorities) > 1:
        held += _by_priority(fit, asked.servers, margin, judged=all(note == OF_EACH for note in notes), short=bool(short))
    return Validation(fit, margin, fit.wait_s, tuple(held), why, notes=(*notes, *short, *_notes(fit)), planned=planned)


def _ratio(sums: Sums, servers: int, at: int, foretold: float | None) -> float | None:
    measured = mean(sums, "wait")
    wanted = value_of(sums, servers, at, "wait_s") if foretold is None else foretold
    return None if measured is None or wanted is None or wanted <= 0 else measured / wanted


def _apart(sums: Sums, servers: int, at: int, foretold: float | None) -> float | None:
    measured = mean(sums, "wait")
    wanted = value_of(sums, servers, at, "wait_s") if foretold is None else foretold
    return None if measured is None or wanted is None else measured - wanted


def _z(apart: Figure | None, difference: float) -> float | None:
    return None if apart is None or not apart.se or apart.se <= ROUNDING * abs(difference) else difference / apart.se


def _word(ratio: Figure | None, margin: float, *, short: bool) -> Word:
    if ratio is None or ratio.low is None or ratio.high is None:
        return "not judged"
    if short:  # what is measured is less than what it would settle to
        return "differs" if ratio.low > 1 and ratio.high > 1 + margin else "open"
    if ratio.low >= 1 - margin and ratio.high <= 1 + margin:
        return "agrees"
    return "differs" if not ratio.low <= 1 <= ratio.high else "open"


def _by_priority(fit: Fit, servers: int, margin: float, *, judged: bool, short: bool) -> list[Held]:
    """Hold Cobham's waits against those of every priority."""
    held = []
    for priority in fit.priorities:
        ratio = estimate(partial(_of_priority, fit=fit, servers=servers, priority=priority), fit.units)
        own = _measured(fit, priority)
        if ratio is not None and ratio.value > 0 and own is not None:
            exact = servers == 1
            word = _word(ratio, margin, short=short) if judged else "not judged"
            held.append(Held("Cobham", exact, own / ratio.value, ratio, None, word, priority=priority))
    return held


def _measured(fit: Fit, priority: int) -> float | None:
    sums = fit.units.sums
    count = float(sums[f"wait_n {priority}"].sum())
    return float(sums[f"wait_s {priority}"].sum()) / count if count else None


def _of_priority(sums: Sums, fit: Fit, servers: int, priority: int) -> float | None:
    kinds = []
    for one in fit.priorities:
        its = {name.removesuffix(f" {one}"): value for name, value in sums.items() if name.endswith(f" {one}")}
        count, total = its["service_n"], its["service_s"]
        if count < 2 or total <= 0 or sums["gap_s"] <= 0:
            return None
        average = total / count
        variation = max(0.0, (its["service_s2"] / count - average**2) / average**2)
        # What share of all jobs is its, of the rate at which all come.
        kinds.append(Kind(one, sums["gap_n"] / sums["gap_s"] * its["wait_n"] / sums["wait_n"], average, variation))
    wait = next(one.wait_s for one in non_preemptive(kinds, servers) if one.kind.priority == priority)
    measured = sums[f"wait_s {priority}"] / sums[f"wait_n {priority}"]
    return measured / wait if wait else None


def _growth(streams: Sequence[Stream]) -> float | None:
    """By how much each job waits longer than the one before it: slope of the waits over the jobs, seconds, mean over streams."""
    from .sound import columns  # noqa: PLC0415  # only where a queue grows

    slopes = []
    for one in streams:
        part = columns(one)
        waits = part.taken - part.submit
        there = np.flatnonzero(~np.isnan(waits))
        if len(there) > 2:
            slopes.append(float(np.polyfit(there, waits[there], 1)[0]))
    return sum(slopes) / len(slopes) if slopes else None


def _against(fit: Fit, streams: Sequence[Stream]) -> list[str]:
    """Say why no verdict is given, if so."""
    notes = []
    if fit.units.kind != "runs":
        notes.append(f"no verdict: {RUNS} runs or more carry one. What a run says of itself has an interval that is too narrow.")
    if fit.policy == "priority" and len(fit.priorities) > 1:
        notes.append(OF_EACH)
    elif fit.policy not in {"", "fifo", "priority"}:
        notes.append(f"no verdict: the policy {one_line(fit.policy)} is not first come, first served, which these models are of.")
    if any(job.replicas > 1 for one in streams for job in one.jobs):
        notes.append("no verdict: jobs took several slots at once, which no formula here has.")
    if faults := sorted({one.fault for one in streams if one.fault}):
        notes.append(f"no verdict: {one_line(', '.join(faults))} struck, which no formula here has.")
    if any(job.attempts > 1 for one in streams for job in one.jobs):
        notes.append("no verdict: jobs were tried again, and came to the queue more often than they were submitted.")
    missing = sum(not _whole(job) for one in streams for job in one.jobs)
    if missing:
        notes.append(
            f"no verdict: of {missing} jobs it is not known how long they waited or took, and without them waits may look too short."
        )
    if fit.load is not None and fit.load.high is not None and fit.load.high >= 1:
        most = f"{fit.load.value:.3f}, up to {fit.load.high:.3f}"
        notes.append(f"no verdict: the load may be 1 or more ({most}): whether there is a stationary wait is open.")
    return notes


def _whole(job: Job) -> bool:
    """Whether all its times are known, and go forward."""
    taken_s = job.start_s if job.admit_s is None else job.admit_s
    times = (job.submit_s, taken_s, taken_s if job.start_s is None else job.start_s, job.end_s)
    known = [time for time in times if time is not None]
    return len(known) == len(times) and known == sorted(known)


def _short(fit: Fit, asked: Inputs) -> list[str]:
    """Say that runs are too short to settle, if so."""
    settles = asked.service_s / asked.servers * (asked.scv_arrivals + asked.scv_service) / 2 / (1 - math.sqrt(load_of(asked))) ** 2
    length = float(fit.units.sums["gap_s"].sum()) / len(fit.names)
    if length >= SETTLED * settles:
        return []
    long = f"at this load a queue takes some {settles:.2g} s to forget that it began empty (Odoni & Roth 1983)"
    return [f"runs are short: {long}, and arrivals lasted {length:.2g} s. Measured waits are too short by that."]


def _notes(fit: Fit) -> list[str]:
    notes = []
    if fit.arrivals is not None and any("hang" in test.asks or "stays" in test.asks for test in fit.arrivals.refused):
        notes.append("arrivals come in waves (gaps hang together, or the rate changes): every formula here takes gaps to be independent.")
    if fit.units.kind == "busy cycles" and fit.arrivals is not None and fit.arrivals.refused:
        notes.append(
            "busy cycles are independent only if gaps are; intervals may be too narrow here. Three runs or more need no such thing."
        )
    return notes
