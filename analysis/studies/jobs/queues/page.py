"""Fits, predictions and validations as text of at most 100 columns, and for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.text import Text

from analysis.plain import one_line, printable_json
from analysis.printing import columns, hanging, on_page, tiny
from analysis.studies.jobs.output import NONE, figure, number, unit
from analysis.wording import unsigned

from .validation import CLOSED, RULE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from .fitting import Fit
    from .shape import Shape
    from .valid_times import Little
    from .validation import ModelCheck, Predicted, WaitValidation


ENOUGH = 1e-9
STYLES = {"agrees": "green", "differs": "bold red", "open": "yellow", "not judged": "dim"}


def fits(found: Sequence[Fit], *, color: bool = False) -> str:
    """Write fits."""
    return on_page((part for one in found for part in _fit(one)), color=color)


def predictions(found: Sequence[tuple[str, Sequence[Predicted], str]], *, color: bool = False) -> str:
    """Write predictions: of each what it is of, the models, and a sentence in their place where there are none."""
    return on_page((part for title, some, why in found for part in _predicted(title, some, why)), color=color)


def validations(found: Sequence[WaitValidation], *, color: bool = False) -> str:
    """Write validations."""
    parts = [part for one in found for part in _validated(one)]
    return on_page([*parts, hanging([("•", RULE)], "dim", "dim")], color=color)


def headline(fit: Fit) -> Iterator[RenderableType]:
    """What it is of, and what must be known at once."""
    yield Text(one_line(fit.group), "bold")
    slots = "slots unknown" if fit.servers is None else f"{fit.servers} slot{'s' if fit.servers > 1 else ''}"
    told = ", ".join(part for part in (fit.engine and f"engine {fit.engine}", slots, fit.policy and f"policy {fit.policy}") if part)
    yield f"{fit.jobs} jobs in {len(fit.names)} run{'s' if len(fit.names) > 1 else ''}; {one_line(told)}"
    if fit.simulated:
        yield hanging([("•", "SIMULATED: no job of these ever ran.")], style="bold yellow")


def _fit(fit: Fit) -> Iterator[RenderableType]:
    yield from headline(fit)
    times = [one.value for one in (fit.service_s, fit.wait_s, fit.response_s) if one is not None]
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
    yield columns(("", "value [95 %]", ""), [(what, value, of if value != NONE else "") for what, value, of in rows])
    yield hanging(_notes(fit))
    yield ""


def _notes(fit: Fit) -> Iterator[tuple[str, str]]:
    yield "•", f"Intervals {fit.units.why}."
    yield "•", _shape("Poisson arrivals", fit.arrivals)
    if fit.services is not None:
        yield "•", _shape("Exponential service times", fit.services)
    if any(fit.laws):
        yield "•", little(fit.laws)
    if fit.closed:
        yield "•", CLOSED
    elif fit.load is not None and fit.load.value >= 1:
        yield "•", "UNSTABLE: as much work comes as can be done, or more. The waits above are of a run of this length, and grow with it."
    for finding in fit.findings:
        yield "•", finding


def little(laws: Sequence[Little | None]) -> str:
    """Say how exactly Little's law holds over all runs, in its worst part."""
    found = [(law.off, law.part) for one in laws if one is not None for law in one.laws]
    off, part = max(found)
    runs = sum(one is not None for one in laws)
    if off < ENOUGH:
        return (
            f"Little's law holds on {runs} of {len(laws)} runs, in all, waiting and in service: N and λW differ by {off:.0e} of N at most."
        )
    return f"LITTLE'S LAW IS BROKEN: {part}, N and λW differ by {off:.1e} of N. It is an identity: times were recorded wrongly."


def _shape(what: str, one: Shape | None) -> str:
    if one is None:
        return f"{what}: too few to test."
    tested = "; ".join(f"{test.asks} p {tiny(test.p_adjusted)}" for test in one.tests)
    return f"{what} {'REFUSED' if one.refused else 'not refused'} by {one.count} values: {tested} (Holm)."


def _predicted(title: str, some: Sequence[Predicted], why: str) -> Iterator[RenderableType]:
    yield Text(one_line(title, 300), "bold")
    if some:
        scale, name = unit(one.queue.wait_s for one in some)
        heads = ["model", "load", "waits", f"wait {name} [95 %]", f"response {name}", "waiting", "inside"]
        yield columns(heads, [_queue(one, scale) for one in some])
        yield hanging(("•", f"{_called(one)}: {_tails(one, scale, name)}.") for one in some if one.wait_tails_s)
        within = [one for one in some if one.wait_within]
        if within:
            yield hanging(("•", f"{_called(one)}: {_within(one)}.") for one in within)
        if any(one.queue.loss for one in some):
            lost = ", ".join(f"{one.queue.model} {100 * one.queue.loss:.3g} %" for one in some if one.queue.loss is not None)
            yield hanging([("•", f"turned away: {lost}; waits are of those let in.")])
        if any(not one.queue.exact for one in some):
            yield hanging([("•", "~ an approximation; percentiles of what is no M/M/c are approximations too.")], "dim", "dim")
    if why:
        yield hanging([("•", why)], style="" if some else "bold yellow")
    yield ""


def _queue(one: Predicted, scale: float) -> list[str]:
    queue = one.queue
    waits = [figure(one.wait_s, scale), figure(one.response_s, scale).partition(" ")[0]]
    return [_called(one), number(queue.load), number(queue.p_wait), *waits, number(queue.waiting), number(queue.inside)]


def _called(one: Predicted) -> str:
    return one.queue.model if one.queue.exact else f"~ {one.queue.model}"


def _tails(one: Predicted, scale: float, name: str) -> str:
    """Say within which times most jobs are admitted, and done where that is known."""

    def within(tails: Mapping[float, float]) -> str:
        return ", ".join(f"{100 * share:g} % within {number(time * scale)} {name}" for share, time in tails.items())

    return f"waits {within(one.wait_tails_s)}" + (f"; responses {within(one.response_tails_s)}" if one.response_tails_s else "")


def _within(one: Predicted) -> str:
    return ", ".join(f"{100 * share:.4g} % wait no longer than {time_s:g} s" for time_s, share in one.wait_within.items())


def _validated(one: WaitValidation) -> Iterator[RenderableType]:
    yield from headline(one.fit)
    scale, name = unit([one.wait_s.value] if one.wait_s is not None else [])
    yield f"measured wait {figure(one.wait_s, scale)} {name}, {one.fit.units.why}"
    if one.unstable:
        yield hanging([("•", f"UNSTABLE: {one.unstable}")], style="bold yellow")
        if one.growth_s is not None:
            longer = number(one.growth_s * scale)
            yield hanging([("•", f"each job waited {longer} {name} longer than the one before it, on average.")])
    if one.held:
        rows = [_held(held, scale) for held in one.held]
        yield columns(("model", f"wait {name}", "measured/predicted [95 %]", "z", "verdict", ""), rows)
        yield hanging([("•", f"margin ±{unsigned(one.margin)}. * {one.why}.")])
    given = "planned rate and service time were given: they scatter by nothing." if one.planned else ""
    lines = [given] * bool(given) + ([little(one.fit.laws)] if any(one.fit.laws) else []) + list(one.notes) + list(one.fit.findings)
    yield hanging(("•", line) for line in lines)
    yield ""


def _held(one: ModelCheck, scale: float) -> list[str]:
    name = one.model if one.exact else f"~ {one.model}"
    name += "" if one.priority is None else f", priority {one.priority}"
    z = NONE if one.z is None else f"{one.z:+.1f}"
    return [name, number(one.predicted_s * scale), figure(one.ratio), z, one.verdict, "*" if one.chosen else ""]


def fits_json(found: Sequence[Fit], refused: Sequence[str]) -> str:
    """Write fits."""
    return printable_json({"fits": [_fit_document(one) for one in found], "refused": list(refused)})


def predictions_json(found: Sequence[tuple[str, Sequence[Predicted], str]], refused: Sequence[str]) -> str:
    """Write predictions; where there is no stationary figure, `models` is empty and `said` says why."""
    made = [{"of": title, "models": [asdict(one) for one in some], "said": why} for title, some, why in found]
    return printable_json({"predictions": made, "refused": list(refused)})


def validations_json(found: Sequence[WaitValidation], refused: Sequence[str]) -> str:
    """Write validations."""
    made = [{**_validation_document(one), "fit": _fit_document(one.fit)} for one in found]
    return printable_json({"rule": RULE, "validations": made, "refused": list(refused)})


def _validation_document(one: WaitValidation) -> dict[str, Any]:
    return {
        "margin": one.margin,
        "wait_s": None if one.wait_s is None else asdict(one.wait_s),
        "held": [asdict(held) for held in one.held],
        "why": one.why,
        "unstable": one.unstable,
        "growth_s": one.growth_s,
        "notes": list(one.notes),
        "planned": None if one.planned is None else asdict(one.planned),
    }


def _fit_document(one: Fit) -> dict[str, Any]:
    figures = ("rate_per_s", "service_s", "scv_arrivals", "scv_service", "load", "p_wait", "wait_s", "response_s", "arrivals", "services")
    made: dict[str, Any] = {name: None if (value := getattr(one, name)) is None else asdict(value) for name in figures}
    plain = ("group", "names", "jobs", "servers", "engine", "policy", "closed", "utilisation", "findings", "priorities")
    made |= {name: getattr(one, name) for name in plain}
    made["laws"] = [None if law is None else asdict(law) for law in one.laws]
    made["units"] = {"kind": one.units.kind, "count": one.units.count, "why": one.units.why}
    return made
