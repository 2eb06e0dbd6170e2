"""The answers in words: which factor, how much, how sure; never more than the intervals hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.studies.keys.observed import SETS
from analysis.wording import digits, number, percent, probability, unsigned

from .factors import scale_of, spoken

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .anova import Analysis, Finding
    from .contrasts import Contrast, Contrasts
    from .steps import Step

STEADY, WHOLE = "au_steady_percent", "au_whole_percent"


def amount(response: str, unit: str, effect: float) -> str:
    """Write a change: `+12.3 %` of a rate, `+4.1 points` of a percentage, else in the unit."""
    if scale_of(response) == "log":
        return percent(effect)
    scale = points_of(response)
    return f"{signed(scale * effect)} points" if scale else f"{'+' if effect > 0 else ''}{digits(effect, 3)} {unit}".strip()


def points_of(response: str) -> float:
    """What to multiply a response by so that it is in percent: 1 for percentages, 100 for shares, 0 for what is neither."""
    return 1.0 if response.endswith("_percent") else 100.0 if response.endswith("_share") else 0.0


def signed(points: float) -> str:
    """Write a change of so many points; the sum turns -0.0 into 0.0."""
    return f"{round(points, 1) + 0.0:+.1f}"


def span(response: str, low: float | None, high: float | None) -> str:
    """Write an interval: `95 % -1.2 to +3.4 %`."""
    if low is None or high is None:
        return "no interval"
    if scale_of(response) == "log":
        return f"95 % {number(low)} to {percent(high)}"
    scale = points_of(response)
    return f"95 % {signed(scale * low)} to {signed(scale * high)}" if scale else f"95 % {digits(low, 3)} to {digits(high, 3)}"


def how_sure(one: Finding, analysis: Analysis) -> str:
    """Write how sure an effect is: `5 blocks, p 0.003 (Holm over 10)`; of several steps, each counts for one effect."""
    effects = len(analysis.findings)
    over = f"{effects} effect{'' if effects == 1 else 's'}, {len(one.steps)} steps" if len(one.steps) > 1 else f"{effects}"
    return f"{one.told.blocks} blocks, p {probability(one.p_adjusted)} (Holm over {over})"


def answers(analysis: Analysis) -> list[str]:
    """Say of every factor, and of every two that do something together, what is known; a line each."""
    if analysis.refusal:
        return [f"{analysis.response}: nothing can be said: {analysis.refusal}"]
    return [_main(one, analysis) if len(one.factors) == 1 else _pair(one, analysis) for one in _worth_telling(analysis)]


def _worth_telling(analysis: Analysis) -> list[Finding]:
    """All factors, and the interactions that are shown; the rest of those is in the table."""
    return [one for one in analysis.findings if len(one.factors) == 1 or one.shown]


def _main(one: Finding, analysis: Analysis) -> str:
    name = one.factors[0]
    sure = how_sure(one, analysis)
    told = one.told
    step = f"{told.name} {amount(analysis.response, analysis.unit, told.effect)} ({span(analysis.response, told.low, told.high)})"
    if not one.shown:
        return f"{name}: not shown to matter; its clearest step, {step}; {sure}."
    means = ", ".join(f"{level.level} {digits(level.mean, 3)}" for level in one.levels)
    company = [" × ".join(other.factors) for other in analysis.findings if other.shown and len(other.factors) > 1 and name in other.factors]
    depends = f" On average over the others only: see {', '.join(company)}." if company else ""
    share = f"{unsigned(one.share)} of the variation"
    return f"{name}: {means}{_unit(analysis)}; {step}; {share}, {sure}.{depends}"


def _pair(one: Finding, analysis: Analysis) -> str:
    head = " × ".join(one.factors)
    sure = f"{unsigned(one.share)} of the variation, {how_sure(one, analysis)}"
    if SETS in one.factors:
        (other,) = (name for name in one.factors if name != SETS)
        return f"{head}: what a tweak set does depends on {other}; {sure}."
    if one.together is None:
        return f"{head}: what the one does depends on the other; {sure}."
    told = one.together
    steps = sorted(told.steps, key=lambda step: step.effect)
    shown = list(told.steps) if len(steps) <= 5 else [steps[0], steps[-1]]
    said = "; ".join(f"with {spoken(told.along, step.name)} {_written(step, analysis)}" for step in shown)
    return f"{head}: {told.factor} {told.first} → {told.last} does {said}; {sure}."


def _written(step: Step, analysis: Analysis) -> str:
    return f"{amount(analysis.response, analysis.unit, step.effect)} [{_bare(step.low, analysis)}, {_bare(step.high, analysis)}]"


def _bare(value: float, analysis: Analysis) -> str:
    if scale_of(analysis.response) == "log":
        return number(value)
    scale = points_of(analysis.response)
    return signed(scale * value) if scale else digits(value, 3)


def _unit(analysis: Analysis) -> str:
    return f" {analysis.unit}" if analysis.unit else ""


def reversals(found: Sequence[Analysis]) -> Iterator[str]:
    """Say where leaving the first step out shows what the whole epoch does not, or turns its sign: reading was moved, not saved."""
    known = {one.response: one for one in found if one.findings}
    if STEADY not in known or WHOLE not in known:
        return
    whole = {(one.factors, step.levels): (one, step) for one in known[WHOLE].findings for step in one.steps}
    for one in known[STEADY].findings:
        for step in one.steps if len(one.factors) == 1 else ():
            its, other = whole.get((one.factors, step.levels), (one, None))
            if other is None or not step.shown:
                continue
            turned = other.shown and other.effect * step.effect < 0
            if turned or not its.shown:
                said = "the opposite" if turned else "no difference shown"
                yield (
                    f"{one.factors[0]} {step.name}: AU without the first step {signed(step.effect)} points, over "
                    f"the whole epoch {signed(other.effect)} ({said}): reading moved into the step that is left out, it was not saved."
                )


def untouched(found: Contrasts) -> str:
    """Say what stock against its copy shows, in all configurations together."""
    known = [one for one in found.again if one.p is not None]
    if not known:
        return "A/A: not measured, or in too few blocks: nobody knows what this machine makes out of nothing."
    off = [one for one in known if one.shown]
    worst = min(known, key=lambda one: one.p or 0.0)
    said = f"{worst.configuration}: {_change(worst, found)}"
    if off:
        return (
            f"A/A: stock and its copy differ in {len(off)} of {_configurations(len(known))}, though nothing was changed: {said}."
            " One run in 20 shows that by chance; otherwise the machine was not quiet: trust what is said of tweak sets less."
        )
    return f"A/A: stock and its copy: no difference shown in {_configurations(len(known))}; the clearest, {said}."


def tweaks(found: Contrasts) -> list[str]:
    """Say what each tweak set did, and whether more on a cold cache than on a warm one; a line each."""
    lines = []
    for name in dict.fromkeys(one.tweakset for one in found.tweaks):
        mine = [one for one in found.tweaks if one.tweakset == name and one.p is not None]
        shown = [one for one in mine if one.shown]
        if not mine:
            lines.append(f"{name}: in no configuration measured in two blocks beside stock.")
        elif not shown:
            clearest = min(mine, key=lambda one: one.p or 0.0)
            lines.append(
                f"{name}: no difference from stock shown in {_configurations(len(mine))}; the clearest, {clearest.configuration}: "
                f"{_change(clearest, found)}."
            )
        else:
            said = "; ".join(
                f"{one.configuration}: {_change(one, found)}" for one in sorted(shown, key=lambda one: -abs(one.effect or 0.0))[:4]
            )
            more = f"; and {len(shown) - 4} more" if len(shown) > 4 else ""
            lines.append(f"{name}: differs from stock in {len(shown)} of {_configurations(len(mine))}: {said}{more}.")
        controls = [one for one in found.differences if one.tweakset == name and one.p is not None]
        lines += [_control(one, found) for one in controls if one.shown]
        if controls and not any(one.shown for one in controls):
            where = f" in any of {_configurations(len(controls))}" if len(controls) > 1 else ""
            lines.append(f"{name}: not shown to do more on a cold cache than on a warm one{where}.")
    return lines


def _configurations(count: int) -> str:
    return f"{count} configuration{'' if count == 1 else 's'}"


def _control(one: Contrast, found: Contrasts) -> str:
    """Cold beside warm, with the difference of the two."""
    twins = {other.cache: other for other in found.tweaks if (other.tweakset, other.rest) == (one.tweakset, one.rest)}
    sides = ", ".join(f"{state} {_change(twins[state], found)}" for state in ("cold", "warm") if state in twins)
    where = f", {one.rest}" if one.rest else ""
    return f"{one.tweakset}{where}: {sides}; the cold cache makes the difference: {_change(one, found)}."


def _change(one: Contrast, found: Contrasts) -> str:
    if one.effect is None:
        return one.missing or "not measured"
    p = "" if one.p_adjusted is None else f", p {probability(one.p_adjusted)}"
    return f"{amount(found.response, found.unit, one.effect)} ({span(found.response, one.low, one.high)}{p})"
