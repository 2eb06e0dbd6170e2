"""What models predict, and measured waits against what they predict from rate and service times alone: how far off, and the word for it.

Only runs that are each other's replicates carry a verdict: three or more. What one run says of itself has an interval that is too narrow,
for the few long queues of a run decide its mean: of 300 simulated runs of 600 jobs at load .6 in two slots, 87 in 100 hold the truth.

The interval is of the ratio measured ÷ predicted, over the units of the fit, in both numbers at once. A prediction from what was planned
(rate and service time given, not fitted) has no scatter of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from analysis.plain import one_line
from analysis.studies.jobs.estimates import Figure

from .fitting import RUNS, estimate, inputs_of, mean
from .formulas import (
    Inputs,
    Unstable,
    allen_cunneen,
    kingman,
    load_of,
    mg1,
    mmc,
    must_be_stable,
    response_quantile,
    sakasegawa,
    wait_quantile,
    wait_within,
)
from .priorities import PriorityClass, non_preemptive
from .valid_times import columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from analysis.studies.jobs.records import Job, Stream

    from .fitting import Fit, Sums
    from .formulas import Queue


@dataclass(frozen=True, slots=True)
class PredictedWaits:
    """A queue by a model, and its mean wait and response with the interval that the fit leaves them.

    `wait_tails_s` and `response_tails_s`: share of jobs → what they wait, or are there, at most. Of responses only M/M/c tells.
    `wait_within`: seconds → share of jobs that wait no longer.
    """

    queue: Queue
    wait_s: Figure
    response_s: Figure
    wait_tails_s: Mapping[float, float] = field(default_factory=dict)
    response_tails_s: Mapping[float, float] = field(default_factory=dict)
    wait_within: Mapping[float, float] = field(default_factory=dict)


def models(inputs: Inputs) -> list[Queue]:
    must_be_stable(inputs)
    of_one: tuple[Callable[[Inputs], Queue], ...] = (mmc, mg1, kingman)
    return [model(inputs) for model in (of_one if inputs.servers == 1 else (mmc, allen_cunneen, sakasegawa))]


def predicted(fit: Fit, servers: int) -> list[PredictedWaits]:
    """Predict what the fitted stream would do on so many servers. Empty where its service times are not known.

    Raises: Unstable.
    """
    sums = {name: float(values.sum()) for name, values in fit.units.sums.items()}
    inputs = inputs_of(sums, servers)
    if inputs is None:
        return []
    predictions = []
    for at, queue in enumerate(models(inputs)):
        waits, responses = (estimate(partial(value_of, servers=servers, at=at, name=name), fit.units) for name in ("wait_s", "response_s"))
        predictions.append(PredictedWaits(queue, waits or Figure(queue.wait_s), responses or Figure(queue.response_s)))
    return predictions


def tails(prediction: PredictedWaits, shares: Sequence[float], times_s: Sequence[float] = ()) -> PredictedWaits:
    responses = shares if prediction.queue.model.startswith("M/M/") else ()
    return replace(
        prediction,
        wait_tails_s={share: wait_quantile(prediction.queue, share) for share in shares},
        response_tails_s={share: response_quantile(prediction.queue, share) for share in responses},
        wait_within={time_s: wait_within(prediction.queue, time_s) for time_s in times_s},
    )


def value_of(sums: dict[str, float], servers: int, at: int, name: str) -> float | None:
    inputs = inputs_of(sums, servers)
    if inputs is None:
        return None
    try:
        return float(getattr(models(inputs)[at], name))
    except Unstable:
        return None


def chosen(fit: Fit, servers: int) -> tuple[int, str]:
    """Which of `models` the data leave standing, and why: the simplest whose assumptions they do not refuse."""
    poisson, exponential = ((tested is None or not tested.refused) for tested in (fit.arrivals, fit.services))
    if poisson and exponential:
        return 0, "neither Poisson arrivals nor exponential service times are refused"
    which = " and ".join(name for name, fine in (("Poisson arrivals", poisson), ("exponential service times", exponential)) if not fine)
    if servers == 1 and poisson:
        return 1, f"{which} are refused, Poisson arrivals are not"
    return (2 if servers == 1 else 1), f"{which} are refused"


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
class ModelCheck:
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
class WaitValidation:
    """What was made of a stream's waits.

    `unstable` is why there is no stationary figure, `growth_s` what each job waits longer than the one before it then, on average. `notes`
    are what must be known of the verdicts; `planned` is what was given in place of fitted inputs.
    """

    fit: Fit
    margin: float
    wait_s: Figure | None
    held: tuple[ModelCheck, ...]
    why: str = ""
    unstable: str = ""
    growth_s: float | None = None
    notes: tuple[str, ...] = ()
    planned: Inputs | None = None


def validate(fit: Fit, streams: Sequence[Stream], margin: float, planned: Inputs | None = None) -> WaitValidation:
    """Hold the models against the measured waits of a fit.

    `margin` is how far a model may be off, a fraction. `planned` takes the place of fitted rate, service time and variation.
    """
    sums = {name: float(values.sum()) for name, values in fit.units.sums.items()}
    inputs = planned or (inputs_of(sums, fit.servers) if fit.servers is not None else None)
    if inputs is None or fit.wait_s is None:
        missing = "how many slots there are (--servers)" if fit.servers is None else "when jobs got a slot and gave it back"
        return WaitValidation(fit, margin, fit.wait_s, (), notes=(f"nothing tells {missing}: no model can be asked.",), planned=planned)
    if fit.closed:
        return WaitValidation(fit, margin, fit.wait_s, (), notes=(CLOSED,), planned=planned)
    try:
        queues = models(inputs)
    except Unstable as error:
        return WaitValidation(fit, margin, fit.wait_s, (), unstable=str(error), growth_s=_growth(streams), planned=planned)
    pick, why = chosen(fit, inputs.servers)
    notes, short = _against(fit, streams), _short(fit, inputs)
    held = []
    for at, queue in enumerate(queues):
        foretold = queue.wait_s if planned else None
        ratio = estimate(partial(_ratio, servers=inputs.servers, at=at, foretold=foretold), fit.units)
        apart = estimate(partial(_apart, servers=inputs.servers, at=at, foretold=foretold), fit.units, logs=False)
        word = _word(ratio, margin, short=bool(short)) if not notes else "not judged"
        held.append(ModelCheck(queue.model, queue.exact, queue.wait_s, ratio, _z(apart, fit.wait_s.value - queue.wait_s), word, at == pick))
    if fit.policy == "priority" and planned is None and len(fit.priorities) > 1:
        held += _by_priority(fit, inputs.servers, margin, judged=all(note == OF_EACH for note in notes), short=bool(short))
    return WaitValidation(fit, margin, fit.wait_s, tuple(held), why, notes=(*notes, *short, *_notes(fit)), planned=planned)


def _both(sums: Sums, servers: int, at: int, foretold: float | None) -> tuple[float | None, float | None]:
    return mean(sums, "wait"), value_of(sums, servers, at, "wait_s") if foretold is None else foretold


def _ratio(sums: Sums, servers: int, at: int, foretold: float | None) -> float | None:
    measured_s, predicted_s = _both(sums, servers, at, foretold)
    return None if measured_s is None or predicted_s is None or predicted_s <= 0 else measured_s / predicted_s


def _apart(sums: Sums, servers: int, at: int, foretold: float | None) -> float | None:
    measured_s, predicted_s = _both(sums, servers, at, foretold)
    return None if measured_s is None or predicted_s is None else measured_s - predicted_s


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


def _by_priority(fit: Fit, servers: int, margin: float, *, judged: bool, short: bool) -> list[ModelCheck]:
    held = []
    for priority in fit.priorities:
        ratio = estimate(partial(_of_priority, fit=fit, servers=servers, priority=priority), fit.units)
        measured_s = _measured(fit, priority)
        if ratio is not None and ratio.value > 0 and measured_s is not None:
            exact = servers == 1
            word = _word(ratio, margin, short=short) if judged else "not judged"
            held.append(ModelCheck("Cobham", exact, measured_s / ratio.value, ratio, None, word, priority=priority))
    return held


def _measured(fit: Fit, priority: int) -> float | None:
    sums = fit.units.sums
    count = float(sums[f"wait_n {priority}"].sum())
    return float(sums[f"wait_s {priority}"].sum()) / count if count else None


def _of_priority(sums: Sums, fit: Fit, servers: int, priority: int) -> float | None:
    kinds = []
    for class_ in fit.priorities:
        of_class = {name.removesuffix(f" {class_}"): value for name, value in sums.items() if name.endswith(f" {class_}")}
        count, total = of_class["service_n"], of_class["service_s"]
        if count < 2 or total <= 0 or sums["gap_s"] <= 0:
            return None
        average = total / count
        variation = max(0.0, (of_class["service_s2"] / count - average**2) / average**2)
        # What share of all jobs is its, of the rate at which all come.
        kinds.append(PriorityClass(class_, sums["gap_n"] / sums["gap_s"] * of_class["wait_n"] / sums["wait_n"], average, variation))
    wait = next(class_.wait_s for class_ in non_preemptive(kinds, servers) if class_.kind.priority == priority)
    measured = sums[f"wait_s {priority}"] / sums[f"wait_n {priority}"]
    return measured / wait if wait else None


def _growth(streams: Sequence[Stream]) -> float | None:
    """By how much each job waits longer than the one before it: slope of the waits over the jobs, seconds, mean over streams."""
    slopes = []
    for stream in streams:
        part = columns(stream)
        waits = part.taken - part.submit
        there = np.flatnonzero(~np.isnan(waits))
        if len(there) > 2:
            slopes.append(float(np.polyfit(there, waits[there], 1)[0]))
    return sum(slopes) / len(slopes) if slopes else None


def _against(fit: Fit, streams: Sequence[Stream]) -> list[str]:
    notes = []
    if fit.units.kind != "runs":
        notes.append(f"no verdict: {RUNS} runs or more carry one. What a run says of itself has an interval that is too narrow.")
    if fit.policy == "priority" and len(fit.priorities) > 1:
        notes.append(OF_EACH)
    elif fit.policy not in {"", "fifo", "priority"}:
        notes.append(f"no verdict: the policy {one_line(fit.policy)} is not first come, first served, which these models are of.")
    if any(job.replicas > 1 for stream in streams for job in stream.jobs):
        notes.append("no verdict: jobs took several slots at once, which no formula here has.")
    if faults := sorted({stream.fault for stream in streams if stream.fault}):
        notes.append(f"no verdict: {one_line(', '.join(faults))} struck, which no formula here has.")
    if any(job.attempts > 1 for stream in streams for job in stream.jobs):
        notes.append("no verdict: jobs were tried again, and came to the queue more often than they were submitted.")
    missing = sum(not _whole(job) for stream in streams for job in stream.jobs)
    if missing:
        notes.append(
            f"no verdict: of {missing} jobs it is not known how long they waited or took, and without them waits may look too short."
        )
    if fit.load is not None and fit.load.high is not None and fit.load.high >= 1:
        most = f"{fit.load.value:.3f}, up to {fit.load.high:.3f}"
        notes.append(f"no verdict: the load may be 1 or more ({most}): whether there is a stationary wait is open.")
    return notes


def _whole(job: Job) -> bool:
    taken_s = job.start_s if job.admit_s is None else job.admit_s
    times = (job.submit_s, taken_s, taken_s if job.start_s is None else job.start_s, job.end_s)
    known = [time for time in times if time is not None]
    return len(known) == len(times) and known == sorted(known)


def _short(fit: Fit, inputs: Inputs) -> list[str]:
    settles = inputs.service_s / inputs.servers * (inputs.scv_arrivals + inputs.scv_service) / 2 / (1 - math.sqrt(load_of(inputs))) ** 2
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
