"""Measured waits against queueing models: predictions by rate and service times, and verdicts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from analysis.answer import Answer, Column, Columns, Line, Section, Table, bullets, table_of
from analysis.answer import Word as Mark
from analysis.contrasts import FEWEST
from analysis.wording import counted, unsigned

from . import queue_formulas as formulas
from .claims import (
    CANT_TELL,
    FASTER,
    NOT_COMPARABLE,
    SAME_TIME,
    SLOWER,
    claims_first,
    column,
    leading,
)
from .estimates import Figure, figure, number, table, unit, value_of
from .queue_fits import (
    CLOSED,
    ROUNDING,
    document,
    estimate,
    headline,
    inputs_of,
    little_sentence,
    mean,
    whole,
    why_of,
)
from .queue_formulas import ClosedSystem, Inputs, PriorityWaits, Queue, Unstable

if TYPE_CHECKING:
    from .queue_fits import Fit, Sums
    from .records import JobRun, Stream

SETTLED = 20  # times over which a queue forgets that it began empty
Word = Literal["agrees", "differs", "open", "not judged"]
RULE = (
    "same: the interval of measured ÷ predicted lies within the margin around 1. slower, faster: "
    "it excludes 1 and extends beyond the margin. can't tell: neither is shown; in runs too short "
    "to settle, only waits that are too long are slower. Each setting is judged separately."
)
MEAN_WAIT = (
    "the arithmetic mean over all jobs; `schedule report` leaves out each stream's first tenth. "
    "The interval is computed on a log scale, so it is asymmetric."
)


@dataclass(frozen=True, slots=True)
class PredictedWaits:
    """A queue under a model: mean wait and response, with intervals from the fit.

    `wait_tails_s` and `response_tails_s`: share of jobs → their longest wait, or response, which
    only M/M/c has.
    """

    queue: Queue
    wait_s: Figure
    response_s: Figure
    wait_tails_s: Mapping[float, float] = field(default_factory=dict)
    response_tails_s: Mapping[float, float] = field(default_factory=dict)


Prediction = tuple[str, Sequence[PredictedWaits], str]  # of what, by each model, and a sentence


def predicted(fit: Fit, servers: int) -> list[PredictedWaits]:
    """Predict the fitted stream's waits; none without its service times. Raises: Unstable."""
    inputs = inputs_of(whole(fit.sums), servers)
    result = []
    for at, queue in enumerate([] if inputs is None else formulas.models(inputs)):
        waits, responses = (
            estimate(partial(_by_model, servers=servers, at=at, name=name), fit.sums)
            or Figure(getattr(queue, name))
            for name in ("wait_s", "response_s")
        )
        result.append(PredictedWaits(queue, waits, responses))
    return result


def typed(inputs: Inputs, room: int | None = None) -> list[PredictedWaits]:
    """Predict a queue whose inputs are given. Raises: Unstable."""
    return [
        PredictedWaits(queue, Figure(queue.wait_s), Figure(queue.response_s))
        for queue in formulas.models(inputs, room)
    ]


def _by_model(sums: Sums, servers: int, at: int, name: str) -> float | None:
    inputs = inputs_of(sums, servers)
    try:
        return None if inputs is None else float(getattr(formulas.models(inputs)[at], name))
    except Unstable:
        return None


def tails(prediction: PredictedWaits, shares: Sequence[float]) -> PredictedWaits:
    queue = prediction.queue
    if queue.room is not None:
        return prediction
    responses = shares if queue.model.startswith("M/M/") else ()
    return replace(
        prediction,
        wait_tails_s={share: formulas.wait_quantile(queue, share) for share in shares},
        response_tails_s={share: formulas.response_quantile(queue, share) for share in responses},
    )


def chosen(fit: Fit, servers: int) -> tuple[int, str]:
    """Return the simplest of the models whose assumptions the data do not reject, and why."""
    shapes = {"Poisson arrivals": fit.arrivals, "exponential service times": fit.services}
    rejected = [name for name, tested in shapes.items() if tested and tested.refused]
    if not rejected:
        return 0, "neither Poisson arrivals nor exponential service times are rejected"
    general = 2 if servers == 1 and "Poisson arrivals" in rejected else 1
    return general, f"{' and '.join(rejected)} are rejected"


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """One model against the waits: `ratio` is measured ÷ predicted, None if 0 is predicted.

    `z` is the difference in standard errors.
    """

    model: str
    exact: bool
    predicted_s: float
    ratio: Figure | None
    z: float | None
    verdict: Word
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class WaitValidation:
    """A stream's waits against the models; `planned` inputs take the place of fitted ones.

    `unstable` is why there is no stationary figure. `notes` are what must be known of the verdicts.
    """

    fit: Fit
    margin: float
    wait_s: Figure | None
    held: tuple[ModelCheck, ...] = ()
    why: str = ""
    unstable: str = ""
    notes: tuple[str, ...] = ()
    planned: Inputs | None = None

    @property
    def chosen(self) -> ModelCheck | None:
        return next((check for check in self.held if check.chosen), None)


def validate(
    fit: Fit, streams: Sequence[Stream], margin: float, planned: Inputs | None = None
) -> WaitValidation:
    """Compare the measured waits of a fit with the models' predictions.

    `margin` is how far a model may be off, a fraction. `planned` takes the place of fitted rate,
    service time and variation.
    """
    bare = WaitValidation(fit, margin, fit.wait_s, planned=planned)
    inputs = planned or (
        inputs_of(whole(fit.sums), fit.servers) if fit.servers is not None else None
    )
    if inputs is None or fit.wait_s is None:
        return replace(bare, notes=(f"{lacking(fit, fit.servers)}: no model applies.",))
    if fit.closed:
        return replace(bare, notes=(CLOSED,))
    try:
        queues = formulas.models(inputs)
    except Unstable as error:
        return replace(bare, unstable=str(error))
    pick, why = chosen(fit, inputs.servers)
    notes, short = _no_verdict(fit, streams), _short(fit, inputs)
    checks = []
    for at, queue in enumerate(queues):
        predict = (
            (lambda _, wait_s=queue.wait_s: wait_s)
            if planned
            else partial(_by_model, servers=inputs.servers, at=at, name="wait_s")
        )
        ratio = estimate(partial(_compared, predict=predict, over=True), fit.sums)
        apart = estimate(partial(_compared, predict=predict, over=False), fit.sums, logs=False)
        difference = fit.wait_s.value - queue.wait_s
        z = (
            difference / apart.se
            if apart and apart.se and apart.se > ROUNDING * abs(difference)
            else None
        )
        word = "not judged" if notes else _word(ratio, margin, short=bool(short))
        checks.append(
            ModelCheck(queue.model, queue.exact, queue.wait_s, ratio, z, word, at == pick)
        )
    return replace(bare, held=tuple(checks), why=why, notes=(*notes, *short, *_notes(fit)))


def lacking(fit: Fit, servers: int | None) -> str:
    if servers is None:
        return "the number of slots is unknown (--servers)"
    if fit.service_s is None:
        return "it is unknown when jobs held a slot"
    if fit.service_s.value <= 0:
        return "all service times are 0"
    few = "gaps between arrivals" if fit.scv_arrivals is None else "service times"
    return f"there are too few {few} to estimate their variation"


def _compared(sums: Sums, predict: Callable[[Sums], float | None], *, over: bool) -> float | None:
    measured_s, predicted_s = mean(sums, "wait"), predict(sums)
    if measured_s is None or predicted_s is None or (over and predicted_s <= 0):
        return None
    return measured_s / predicted_s if over else measured_s - predicted_s


def _word(ratio: Figure | None, margin: float, *, short: bool) -> Word:
    if ratio is None or ratio.low is None or ratio.high is None:
        return "not judged"
    if short:  # what is measured is less than what it would settle to
        return "differs" if ratio.low > 1 and ratio.high > 1 + margin else "open"
    if ratio.low >= 1 - margin and ratio.high <= 1 + margin:
        return "agrees"
    return "differs" if not ratio.low <= 1 <= ratio.high else "open"


def _no_verdict(fit: Fit, streams: Sequence[Stream]) -> list[str]:
    jobs = [job for stream in streams for job in stream.jobs]
    faults = sorted({stream.fault for stream in streams if stream.fault})
    unknown = sum(not _all_times(job) for job in jobs)
    first_come = fit.policy in {"", "fifo"} or (fit.policy == "priority" and fit.priorities < 2)
    high = None if fit.load is None else fit.load.high
    reasons = {
        f"at least {FEWEST} runs are needed": len(fit.names) < FEWEST,
        f"these models assume first come, first served, and the policy was {fit.policy}": (
            not first_come
        ),
        "jobs took several slots at once": any(job.replicas > 1 for job in jobs),
        f"there were faults ({', '.join(faults)})": faults,
        "retried jobs entered the queue more often than they were submitted": any(
            job.attempts > 1 for job in jobs
        ),
        f"waits or times of {unknown} jobs are unknown": unknown,
        "the load may be 1 or more, so there may be no stationary wait": high and high >= 1,
    }
    return [f"no verdict: {reason}." for reason, holds in reasons.items() if holds]


def _all_times(job: JobRun) -> bool:
    start_s = job.taken_s if job.start_s is None else job.start_s
    times = (job.submit_s, job.taken_s, start_s, job.end_s)
    known = [time for time in times if time is not None]
    return len(known) == len(times) and known == sorted(known)


def _short(fit: Fit, inputs: Inputs) -> list[str]:
    full = (1 - math.sqrt(inputs.load)) ** 2
    settles = inputs.service_s / inputs.servers * inputs.variation / full
    length = float(fit.sums["gap_s"].sum()) / len(fit.names)
    if length >= SETTLED * settles:
        return []
    short = f"arrivals lasted {length:.2g} s, and a queue at this load needs about {settles:.2g} s"
    forget = "to forget its empty start (Odoni & Roth 1983)"
    return [f"runs are short, so measured waits are too short: {short} {forget}."]


def _notes(fit: Fit) -> list[str]:
    refused = [] if fit.arrivals is None else [test.asks for test in fit.arrivals.refused]
    waves = any("uncorrelated" in asks or "constant" in asks for asks in refused)
    return ["arrivals come in waves, but every formula here assumes independent gaps."] * waves


def predictions(answers: Sequence[Prediction], refused: Sequence[str]) -> Answer:
    """Show the models of each requested queue; if none applies, the first lines give the reason."""
    title, *more = leading([_answer(*answer) for answer in answers])
    return Answer(
        title,
        [*map(Line, more)],
        [
            _predicted(*answer) for answer in answers if answer[1]
        ],  # of the others, the first lines say it all
        legend=[("~", "an approximation; percentiles of all but M/M/c are approximations too.")],
        data={
            "predictions": [
                {"of": of, "models": models, "said": sentence} for of, models, sentence in answers
            ]
        },
        refused=refused,
    )


def _predicted(title: str, by_model: Sequence[PredictedWaits], sentence: str) -> Section:
    scale, name = unit(one.queue.wait_s for one in by_model)
    heads = (
        "model",
        "load",
        "waits",
        f"wait {name} [95 %]",
        f"response {name}",
        "waiting",
        "inside",
    )
    rows = []
    for one in by_model:
        queue = one.queue
        times = figure(one.wait_s, scale), one.response_s.value * scale
        rows.append((_called(queue), queue.load, queue.p_wait, *times, queue.waiting, queue.inside))
    lines = [
        f"{_called(one.queue)}: {tails}."
        for one in by_model
        if (tails := "; ".join(_tails(one, scale, name)))
    ]
    if lost := ", ".join(
        f"{one.queue.model} {100 * one.queue.loss:.3g} %" for one in by_model if one.queue.loss
    ):
        lines.append(f"turned away: {lost}; waits are those of admitted jobs.")
    said = [Line(sentence, "•")] * bool(sentence)
    return Section(title, [table(heads, rows), *bullets(lines), *said])


def _answer(title: str, by_model: Sequence[PredictedWaits], sentence: str) -> str:
    if not by_model:
        return f"{title}: {sentence}"
    waits_s = sorted(prediction.queue.wait_s for prediction in by_model)
    scale, name = unit(waits_s)
    ends = dict.fromkeys(number(wait_s * scale) for wait_s in (waits_s[0], waits_s[-1]))
    return f"{title}: mean wait {' to '.join(ends)} {name} by {counted(len(by_model), 'model')}."


def _called(model: Queue | ModelCheck) -> str:
    return model.model if model.exact else f"~ {model.model}"


def _tails(prediction: PredictedWaits, scale: float, name: str) -> Iterator[str]:
    for kind, of_kind in (
        ("waits", prediction.wait_tails_s),
        ("responses", prediction.response_tails_s),
    ):
        shares = ", ".join(
            f"{100 * share:g} % within {number(time_s * scale)} {name}"
            for share, time_s in of_kind.items()
        )
        if shares:
            yield f"{kind} {shares}"


WORDS: Mapping[str, Mark] = {
    "agrees": SAME_TIME,
    "differs": Mark("slower or faster", "bad"),  # the ratio says which
    "open": CANT_TELL,
    "not judged": NOT_COMPARABLE,
}


def validated(
    validations: Sequence[WaitValidation],
    names: Mapping[str, str],
    refused: Sequence[str],
    *,
    brief: bool = False,
) -> Answer:
    """Return the model that is not rejected in each setting, then each setting's models.

    `brief` omits these for several settings.
    """
    words = Counter(_verdict(validation).text for validation in validations)
    every = f", in {len(validations)} settings" if len(validations) > 1 else ""
    counts = ", ".join(f"{count} {word}" if every else word for word, count in words.items())
    several = [_settings(validations, names)] if len(validations) > 1 else []
    sections = [_setting(validation, names[validation.fit.group]) for validation in validations]
    return Answer(
        title=f"Mean wait against the model chosen by the data{every}: {counts}.",
        sections=several if brief and several else [*several, *sections],
        legend=[("mean wait", MEAN_WAIT), ("verdict", RULE)],
        data={
            "rule": RULE,
            "validations": [
                {**asdict(validation), "fit": document(validation.fit)}
                for validation in validations
            ],
        },
        refused=refused,
    )


def _settings(validations: Sequence[WaitValidation], names: Mapping[str, str]) -> Section:
    scale, name = unit([value_of(validation.wait_s) for validation in validations])
    columns: Columns = [
        (Column("setting", left=True), lambda validation: names[validation.fit.group]),
        (Column("jobs are", "verdict", left=True), _verdict),
        (Column("load", write=number, spare=2), lambda validation: value_of(validation.fit.load)),
        column(f"mean wait {name}\n[95 %]", "wait", partial(figure, scale=scale), of="wait_s"),
        (
            Column("model", left=True),
            lambda validation: validation.chosen and _called(validation.chosen),
        ),
        (
            Column(f"predicted\n{name}", "predicted", number, spare=1),
            lambda validation: validation.chosen and validation.chosen.predicted_s * scale,
        ),
        (
            Column("measured ÷ predicted\n[95 %]", "ratio", figure),
            lambda validation: validation.chosen and validation.chosen.ratio,
        ),
    ]
    return Section("", [table_of(columns, claims_first(validations, _verdict))])


def _verdict(validation: WaitValidation) -> Mark:
    if validation.unstable:
        return Mark("UNSTABLE", "open")
    return word_of(validation.chosen) if validation.chosen else NOT_COMPARABLE


def word_of(check: ModelCheck) -> Mark:
    if check.verdict == "differs":
        return SLOWER if check.ratio and check.ratio.value > 1 else FASTER
    return WORDS[check.verdict]


def _setting(validation: WaitValidation, title: str) -> Section:
    fit = validation.fit
    scale, name = unit([value_of(validation.wait_s)])
    parts: list[Line | Table] = [
        *headline(fit),
        Line(
            f"measured wait {figure(validation.wait_s, scale)} {name}; intervals {why_of(fit.sums)}"
        ),
    ]
    if validation.unstable:
        parts.append(Line(f"UNSTABLE: {validation.unstable}", "•", "open"))
    columns: Columns = [
        (Column("model", left=True), _called),
        (Column(f"wait\n{name}", "predicted", number), lambda check: check.predicted_s * scale),
        column("measured ÷ predicted\n[95 %]", "ratio", figure),
        column("z", write="{:+.1f}".format),
        (Column("jobs\nare", "verdict", left=True), word_of),
        (Column("", "chosen", left=True), lambda check: "*" if check.chosen else None),
    ]
    if validation.held:
        parts += [
            table_of(columns, validation.held),
            Line(f"margin ±{unsigned(validation.margin)}. * {validation.why}.", "•"),
        ]
    lines = ["planned rate and service time were given, so they have no scatter."] * bool(
        validation.planned
    )
    lines += [little_sentence(fit.laws)] if any(fit.laws) else []
    parts += bullets((*lines, *validation.notes, *fit.findings))
    return Section(title, parts)


def prioritised(answers: Sequence[tuple[int, Sequence[PriorityWaits]]]) -> Answer:
    lines, sections = [], []
    for servers, classes in answers:
        scale, name = unit(waits.response_s for waits in classes)
        rows, means = [], {}
        for waits in sorted(classes, key=lambda waits: waits.kind.priority):
            kind = waits.kind
            wait, response = (
                None if time_s is None else time_s * scale
                for time_s in (waits.wait_s, waits.response_s)
            )
            given = kind.priority, kind.rate_per_s, kind.service_s, kind.scv_service
            rows.append((*map("{:g}".format, given), waits.load, wait, response))
            mean = "unbounded" if wait is None else f"{number(wait)} {name}"
            means[kind.priority] = f"{mean} for priority {kind.priority}"
        lines.append(f"{counted(servers, 'server')}: mean wait {', '.join(means.values())}.")
        heads = ("priority", "jobs/s", "service s", "cs²", "load so far")
        columns = (*heads, f"wait {name}", f"response {name}")
        sections.append(Section(counted(servers, "server"), [table(columns, rows)]))
    title, *more = leading(lines)
    documents = [{"servers": servers, "classes": classes} for servers, classes in answers]
    return Answer(title, [*map(Line, more)], sections, data={"answers": documents})


def closed(demands_s: Mapping[str, float], systems: Sequence[ClosedSystem]) -> Answer:
    heads = (
        "users",
        "requests/s",
        "at most",
        "response s",
        "at least",
        *(f"{name} busy" for name in demands_s),
    )
    rows = [
        (
            str(system.users),
            system.rate_per_s,
            system.most_per_s,
            system.response_s,
            system.least_s,
            *(f"{100 * share:.1f} %" for share in system.utilisation.values()),
        )
        for system in systems
    ]
    lines = []
    for system in systems:
        busiest = max(system.utilisation, key=lambda name: system.utilisation[name])
        served = f"{number(system.rate_per_s)} requests/s, {number(system.response_s)} s each"
        busy = f"{busiest} is busiest, {100 * system.utilisation[busiest]:.1f} %"
        lines.append(f"{counted(system.users, 'user')}: {served}; {busy}.")
    title, *more = leading(lines)
    return Answer(
        title,
        [*map(Line, more)],
        [Section("", [table(heads, rows)])],
        data={"demands_s": demands_s, "answers": systems},
    )
