"""Laws, choices and their evaluation as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import printable_json
from analysis.printing import columns, on_page
from analysis.wording import digits, probability

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from control.scaling import Choice, Fit, Law

    from .study import Arm, Asked, Evaluated

NAMES = {"amdahl": "Amdahl", "usl": "Gunther (USL)"}
FIGURES = {
    "within": "within",
    "within_waited": "waits incl.",
    "node_s_per_job": "node s a job",
    "mean_wait_s": "mean wait s",
    "p95_response_s": "p95 response s",
}
SHARES = ("within", "within_waited")


def fits(found: Sequence[Fit]) -> str:
    """Write the laws, the better one first."""
    return on_page(_fits(found))


def fits_json(found: Sequence[Fit]) -> str:
    """Write them for programs; `choose` and `simulate` read it."""
    return printable_json({"fits": [asdict(one) for one in found]})


def choices(target_s: float, found: Sequence[Choice]) -> str:
    """Write the replicas of each size."""
    rows = [[f"{one.work:g}", f"{one.replicas}", digits(one.predicted_s), "yes" if one.within else f"no: {one.why}"] for one in found]
    title = Text(f"Replicas with which jobs take nearest {target_s:g} s")
    return on_page([title, columns(["size", "replicas", "predicted s", "within 10 %"], rows)])


def choices_json(law: Law, target_s: float, found: Sequence[Choice]) -> str:
    """Write them for programs."""
    return printable_json({"law": asdict(law), "target_s": target_s, "choices": [asdict(one) for one in found]})


def study(asked: Asked, found: Evaluated) -> str:
    """Write what came of the ways of scaling."""
    return on_page(_study(asked, found))


def study_json(asked: Asked, found: Evaluated) -> str:
    """Write it for programs; effects are gains as fractions, of the choice for each job over the way they stand with."""
    return printable_json({"simulated": True, "asked": asdict(asked), **asdict(found)})


def _fits(found: Sequence[Fit]) -> Iterator[RenderableType]:
    yield Text(f"{found[0].points} jobs; time = startup + cost·work·(1 + serial·(n-1) + crosstalk·n·(n-1))/n\n")
    for one in found:
        error = "" if one.held_out is None else f", {one.held_out:.1%} off where left out of the fit"
        yield Text(f"{NAMES[one.name]}: AICc {one.aicc:.1f}, points {one.spread:.1%} off (sd){error}")
        rows = []
        for name, value in asdict(one.law).items():
            low_high = one.intervals.get(name)
            if low_high:
                rows.append([f"  {name}", digits(value), f"{digits(low_high[0], 3)} to {digits(low_high[1], 3)}"])
        yield columns(["", "value", "95 %"], rows)
        yield from (Text(f"  {note}") for note in one.notes)
        yield Text("")


def _study(asked: Asked, found: Evaluated) -> Iterator[RenderableType]:
    law = asked.law
    yield Text(
        f"SIMULATED: {asked.nodes} nodes, a job every {found.gap_s:.4g} s, sizes of CV² {asked.sizes_cv2:g}; {asked.seeds} streams of "
        f"{asked.jobs} jobs. Time: {law.startup_s:g} + {law.cost_s:g}·size·(1 + {law.serial:g}(n-1) + {law.crosstalk:g}n(n-1))/n s, "
        f"off by exp(±{asked.noise:g}); the law that chooses is fitted to 45 jobs at most of a profile."
    )
    yield Text(
        f"Every job is to run {asked.target_s:g} s ±10 %; for {found.reachable:.1%} of them there is a number of replicas that does.\n"
    )
    yield from tables(found.arms)


def tables(arms: Sequence[Arm]) -> Iterator[RenderableType]:
    """Lay out the figures of each way of scaling, and what the first of them is against the others."""
    heads = ["replicas", "mean", *FIGURES.values()]
    yield columns(heads, [[one.name, f"{one.replicas:.1f}", *(_figure(one, name) for name in FIGURES)] for one in arms])
    others = [one for one in arms if one.more_within is not None]
    if others:
        yield Text(f"\n{arms[0].name} against")
        yield columns(["", "within, points more [95 %]", "node-seconds, ratio [95 %]", "p"], [_row(one) for one in others])


def _figure(arm: Arm, name: str) -> str:
    value = arm.mean(name)
    return f"{value:.1%}" if name in SHARES else digits(value)


def _row(arm: Arm) -> list[str]:
    more = "" if arm.more_within is None else "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * one for one in arm.more_within))
    effect = arm.node_seconds
    if effect is None:
        return [arm.name, more, "the same", ""]
    ratio, low, high = (1 / (1 + gain) for gain in (effect.gain, effect.high, effect.low))
    return [arm.name, more, f"{ratio:.3f} [{low:.3f}, {high:.3f}]", probability(effect.p)]
