"""Fits, predictions, validations, waits by priority and closed systems as answers. In their data times are in seconds, shares fractions."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from analysis.answer import Line, bullets, marked, of_parts, text_table
from analysis.plain import one_line
from analysis.studies.jobs.output import NONE, figure, number, unit
from analysis.wording import tiny, unsigned

from .validation import CLOSED, RULE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from analysis.answer import Answer, Part
    from analysis.studies.jobs.output import Document

    from .fitting import Fit, Shape
    from .formulas import ClosedSystem
    from .priorities import PriorityWaits
    from .valid_times import Little
    from .validation import ModelCheck, PredictedWaits, WaitValidation

    Answers = list[tuple[str, Sequence[PredictedWaits], str]]  # of what, by each model, and a sentence

ENOUGH = 1e-9


def fitted(fits: Sequence[Fit], refused: Sequence[str]) -> Answer:
    return of_parts({"fits": [*map(_fit_document, fits)]}, _fits(fits), refused)


def _fits(fits: Sequence[Fit]) -> Iterator[Part]:
    for fit in fits:
        yield from _headline(fit)
        times = [time.value for time in (fit.service_s, fit.wait_s, fit.response_s) if time is not None]
        scale, name = unit(times)
        rows = [
            ("rate λ", figure(fit.rate_per_s), "jobs/s"),
            ("ca² of gaps", figure(fit.scv_arrivals), "1 if Poisson"),
            ("service time E[S]", figure(fit.service_s, scale), name),
            ("cs² of service times", figure(fit.scv_service), "1 if exponential"),
            ("load λ·E[S]/slots", figure(fit.load), ""),
            ("slots held, integrated", number(fit.utilisation), "share of the time until last empty"),
            ("jobs that waited", figure(fit.p_wait), "share"),
            ("wait", figure(fit.wait_s, scale), name),
            ("response", figure(fit.response_s, scale), name),
        ]
        yield text_table(("", "value [95 %]", ""), [(what, value, of if value != NONE else "") for what, value, of in rows])
        yield from bullets(_notes(fit))
        yield ""


def _headline(fit: Fit) -> Iterator[Part]:
    yield Line(one_line(fit.group), tone="strong")
    slots = "slots unknown" if fit.servers is None else f"{fit.servers} slot{'s' if fit.servers > 1 else ''}"
    known = ", ".join(part for part in (fit.engine and f"engine {fit.engine}", slots, fit.policy and f"policy {fit.policy}") if part)
    yield f"{fit.jobs} jobs in {len(fit.names)} run{'s' if len(fit.names) > 1 else ''}; {one_line(known)}"
    if fit.simulated:
        yield from marked([("•", "SIMULATED: no job of these ever ran.")], "open")


def _notes(fit: Fit) -> Iterator[str]:
    yield f"Intervals {fit.units.why}."
    yield _shape("Poisson arrivals", fit.arrivals)
    if fit.services is not None:
        yield _shape("Exponential service times", fit.services)
    if any(fit.laws):
        yield little(fit.laws)
    if fit.closed:
        yield CLOSED
    elif fit.load is not None and fit.load.value >= 1:
        yield "UNSTABLE: as much work comes as can be done, or more. The waits above are of a run of this length, and grow with it."
    yield from fit.findings


def little(laws: Sequence[Little | None]) -> str:
    off, part = max((law.off, law.part) for of_run in laws if of_run is not None for law in of_run.laws)
    if off < ENOUGH:
        runs = sum(of_run is not None for of_run in laws)
        return (
            f"Little's law holds on {runs} of {len(laws)} runs, in all, waiting and in service: N and λW differ by {off:.0e} of N at most."
        )
    return f"LITTLE'S LAW IS BROKEN: {part}, N and λW differ by {off:.1e} of N. It is an identity: times were recorded wrongly."


def _shape(what: str, shape: Shape | None) -> str:
    if shape is None:
        return f"{what}: too few to test."
    tested = "; ".join(f"{test.asks} p {tiny(test.p_adjusted)}" for test in shape.tests)
    return f"{what} {'REFUSED' if shape.refused else 'not refused'} by {shape.count} values: {tested} (Holm)."


def _fit_document(fit: Fit) -> Document:
    figures = ("rate_per_s", "service_s", "scv_arrivals", "scv_service", "load", "p_wait", "wait_s", "response_s", "arrivals", "services")
    plain = ("group", "names", "jobs", "servers", "engine", "policy", "closed", "utilisation", "findings", "priorities")
    return {
        **{name: _optional(getattr(fit, name)) for name in figures},
        **{name: getattr(fit, name) for name in plain},
        "laws": [_optional(law) for law in fit.laws],
        "units": {"kind": fit.units.kind, "count": fit.units.count, "why": fit.units.why},
    }


def _optional(record: Any) -> Document | None:  # noqa: ANN401  # any dataclass
    return None if record is None else asdict(record)


def predicted(answers: Answers, refused: Sequence[str]) -> Answer:
    """Of each what it is of, the models, and a sentence in their place where there are none: then `models` is empty and `said` says why."""
    documents = [{"of": title, "models": [*map(asdict, predictions)], "said": sentence} for title, predictions, sentence in answers]
    return of_parts({"predictions": documents}, _predicted(answers), refused)


def _predicted(answers: Answers) -> Iterator[Part]:
    for title, predictions, sentence in answers:
        yield Line(one_line(title, 300), tone="strong")
        if predictions:
            yield from _predictions(predictions)
        if sentence:
            yield from marked([("•", sentence)], "" if predictions else "open")
        yield ""


def _predictions(predictions: Sequence[PredictedWaits]) -> Iterator[Part]:
    queues = [prediction.queue for prediction in predictions]
    scale, name = unit(queue.wait_s for queue in queues)
    heads = ["model", "load", "waits", f"wait {name} [95 %]", f"response {name}", "waiting", "inside"]
    yield text_table(heads, [_queue(prediction, scale) for prediction in predictions])
    yield from bullets(f"{_called(each.queue)}: {_tails(each, scale, name)}." for each in predictions if each.wait_tails_s)
    if within := [prediction for prediction in predictions if prediction.wait_within]:
        yield from bullets(f"{_called(each.queue)}: {_within(each)}." for each in within)
    if any(queue.loss for queue in queues):
        lost = ", ".join(f"{queue.model} {100 * queue.loss:.3g} %" for queue in queues if queue.loss is not None)
        yield from marked([("•", f"turned away: {lost}; waits are of those let in.")])
    if any(not queue.exact for queue in queues):
        yield from marked([("•", "~ an approximation; percentiles of what is no M/M/c are approximations too.")], "quiet")


def _queue(prediction: PredictedWaits, scale: float) -> list[str]:
    queue = prediction.queue
    waits = [figure(prediction.wait_s, scale), figure(prediction.response_s, scale).partition(" ")[0]]
    return [_called(queue), number(queue.load), number(queue.p_wait), *waits, number(queue.waiting), number(queue.inside)]


def _called(model: Any) -> str:  # noqa: ANN401  # a queue, or a check of one
    return str(model.model if model.exact else f"~ {model.model}")


def _tails(prediction: PredictedWaits, scale: float, name: str) -> str:
    def within(tails: Mapping[float, float]) -> str:
        return ", ".join(f"{100 * share:g} % within {number(time * scale)} {name}" for share, time in tails.items())

    responses = f"; responses {within(prediction.response_tails_s)}" if prediction.response_tails_s else ""
    return f"waits {within(prediction.wait_tails_s)}{responses}"


def _within(prediction: PredictedWaits) -> str:
    return ", ".join(f"{100 * share:.4g} % wait no longer than {time_s:g} s" for time_s, share in prediction.wait_within.items())


def validated(validations: Sequence[WaitValidation], refused: Sequence[str]) -> Answer:
    documents = [
        {**{name: value for name, value in asdict(validation).items() if name != "fit"}, "fit": _fit_document(validation.fit)}
        for validation in validations
    ]
    return of_parts({"rule": RULE, "validations": documents}, _validated(validations), refused)


def _validated(validations: Sequence[WaitValidation]) -> Iterator[Part]:
    for validation in validations:
        yield from _validation(validation)
    yield from marked([("•", RULE)], "quiet")


def _validation(validation: WaitValidation) -> Iterator[Part]:
    fit = validation.fit
    yield from _headline(fit)
    scale, name = unit([validation.wait_s.value] if validation.wait_s is not None else [])
    yield f"measured wait {figure(validation.wait_s, scale)} {name}, {fit.units.why}"
    if validation.unstable:
        yield from marked([("•", f"UNSTABLE: {validation.unstable}")], "open")
        if validation.growth_s is not None:
            longer = number(validation.growth_s * scale)
            yield from marked([("•", f"each job waited {longer} {name} longer than the one before it, on average.")])
    if validation.held:
        rows = [_check(check, scale) for check in validation.held]
        yield text_table(("model", f"wait {name}", "measured/predicted [95 %]", "z", "verdict", ""), rows)
        yield from marked([("•", f"margin ±{unsigned(validation.margin)}. * {validation.why}.")])
    lines = ["planned rate and service time were given: they scatter by nothing."] * bool(validation.planned)
    lines += [little(fit.laws)] if any(fit.laws) else []
    yield from bullets((*lines, *validation.notes, *fit.findings))
    yield ""


def _check(check: ModelCheck, scale: float) -> list[str]:
    name = _called(check) + ("" if check.priority is None else f", priority {check.priority}")
    z = NONE if check.z is None else f"{check.z:+.1f}"
    return [name, number(check.predicted_s * scale), figure(check.ratio), z, check.verdict, "*" if check.chosen else ""]


def prioritised(answers: Sequence[tuple[int, Sequence[PriorityWaits]]], *, preemptive: bool) -> Answer:
    """Mean waits by priority, for each number of servers."""
    documents = [{"servers": servers, "classes": [*map(asdict, classes)]} for servers, classes in answers]
    return of_parts({"preemptive": preemptive, "answers": documents}, _prioritised(answers, preemptive=preemptive))


def _prioritised(answers: Sequence[tuple[int, Sequence[PriorityWaits]]], *, preemptive: bool) -> Iterator[Part]:
    for servers, classes in answers:
        how = "pushed aside and resumed" if preemptive else "let finish"
        yield f"{servers} server{'s' if servers > 1 else ''}, who has begun is {how}"
        scale, name = unit(waits.response_s or 0.0 for waits in classes)
        rows = [_priority(waits, scale) for waits in sorted(classes, key=lambda waits: waits.kind.priority)]
        yield text_table(("priority", "jobs/s", "service s", "cs²", "load so far", f"wait {name}", f"response {name}"), rows)
        if any(waits.wait_s is None for waits in classes):
            yield from marked([("•", "where the load so far is 1 or more, the queue grows without end and has no stationary wait.")])
        yield ""


def _priority(waits: PriorityWaits, scale: float) -> list[str]:
    kind = waits.kind
    times = [number(None if time_s is None else time_s * scale) for time_s in (waits.wait_s, waits.response_s)]
    return [str(kind.priority), f"{kind.rate_per_s:g}", f"{kind.service_s:g}", f"{kind.scv_service:g}", number(waits.load), *times]


def closed(demands_s: Mapping[str, float], systems: Sequence[ClosedSystem]) -> Answer:
    """A line for each number of users."""
    heads = ["users", "requests/s", "at most", "response s", "at least", *(f"{name} busy" for name in demands_s)]
    rows = [
        [
            str(system.users),
            *map(number, (system.rate_per_s, system.most_per_s, system.response_s, system.least_s)),
            *(f"{100 * share:.1f} %" for share in system.utilisation.values()),
        ]
        for system in systems
    ]
    return of_parts({"demands_s": demands_s, "answers": [*map(asdict, systems)]}, [text_table(heads, rows)])
