"""Laws, choices, and scaling simulated and really done, as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import printable_json
from analysis.printing import columns, hanging, on_page
from analysis.wording import digits, probability

from .study import PAIRS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from control.scaling import Choice, Fit, Law

    from .measured import TargetReport
    from .study import ScalingArm, ScalingResult, ScalingStudy


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


def study(asked: ScalingStudy, found: ScalingResult) -> str:
    """Write what came of the ways of scaling."""
    return on_page(_study(asked, found))


def study_json(asked: ScalingStudy, found: ScalingResult) -> str:
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


def _study(asked: ScalingStudy, found: ScalingResult) -> Iterator[RenderableType]:
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


def tables(arms: Sequence[ScalingArm]) -> Iterator[RenderableType]:
    """Lay out the figures of each way of scaling, and what the first of them is against the others."""
    heads = ["replicas", "mean", *FIGURES.values()]
    yield columns(heads, [[one.name, f"{one.replicas:.1f}", *(_figure(one, name) for name in FIGURES)] for one in arms])
    others = [one for one in arms if one.more_within is not None]
    if others:
        yield Text(f"\n{arms[0].name} against")
        yield columns(["", "within, points more [95 %]", "node-seconds, ratio [95 %]", "p"], [_row(one) for one in others])


def _figure(arm: ScalingArm, name: str) -> str:
    value = arm.mean(name)
    return f"{value:.1%}" if name in SHARES else digits(value)


def _row(arm: ScalingArm) -> list[str]:
    more = "" if arm.more_within is None else "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * one for one in arm.more_within))
    effect = arm.node_seconds
    if effect is None:
        return [arm.name, more, "the same", ""]
    ratio, low, high = (1 / (1 + gain) for gain in (effect.gain, effect.high, effect.low))
    return [arm.name, more, f"{ratio:.3f} [{low:.3f}, {high:.3f}]", probability(effect.p)]


LEGEND = (
    ("within", "part of the jobs that ran for the target ±10 %. waits incl.: that were done so soon after they were submitted."),
    ("node s", "replicas times time, a job; what was measured beforehand, to choose by, is not in it."),
    ("95 %", "interval over streams, paired: the same jobs at the same times under every way of scaling."),
)


def reports(found: Sequence[TargetReport], *, color: bool = False) -> str:
    """Write what the choice made of each target."""
    return on_page(_reports(found), color=color)


def reports_json(found: Sequence[TargetReport], refused: Sequence[str]) -> str:
    """Write it for programs; effects are gains as fractions, of the choice for each job over the way they stand with."""
    return printable_json({"simulated": False, "reports": [asdict(one) for one in found], "refused": list(refused)})


def _reports(found: Sequence[TargetReport]) -> Iterator[RenderableType]:
    for one in found:
        yield Text(f"MEASURED: {one.slots} slots of {one.engine}, every job to run {one.target_s:g} s ±10 %; {one.runs} streams.")
        yield Text("")
        yield from tables(one.arms)
        yield Text("")
        yield hanging(("•", line) for line in _report_lines(one))
        yield Text("")
    yield hanging(LEGEND, "dim", "dim")


def _report_lines(one: TargetReport) -> Iterator[str]:
    if one.reachable is not None:
        yield f"By the law that chose, {one.reachable:.1%} of the jobs have a number of replicas that fits."
    if one.off is not None:
        yield f"It was {one.off:.1%} off on average over its jobs; {one.early:.1%} of them took less than the band, {one.late:.1%} more."
    if one.profile_node_s is not None:
        yield f"Measuring beforehand took {one.profile_node_s:.3g} node-seconds a stream."
    if one.runs < PAIRS:
        yield f"Fewer than {PAIRS} streams: nothing has an interval. Run more blocks."
    if len(one.arms) < 2:
        yield "Nothing stands beside the choice: run the same jobs with --vary replicas=1,2,4."
    if one.alone:
        yield f"{one.alone} streams, whose jobs did not meet every way of scaling, are left out."
    if one.unlike:
        yield (
            f"Not held against the choice: {', '.join(one.unlike)}, of which other jobs were done at once. "
            "Whichever lost those off the target would gain by it."
        )
    if one.lost:
        yield f"{one.lost} jobs were not done in their first attempt and have no part in these figures."
