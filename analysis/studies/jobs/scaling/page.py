"""Laws, choices, and scaling simulated and really done: parts of an answer, and documents for programs.

In documents effects are gains as fractions, of the choice for each job over the way they stand with.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from analysis.answer import Line, bullets, marked, text_table
from analysis.studies.jobs.estimates import FEWEST
from analysis.studies.jobs.output import inverse
from analysis.wording import digits, probability

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analysis.answer import Part
    from analysis.studies.jobs.output import Document
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
LEGEND = (
    ("within", "part of the jobs that ran for the target ±10 %. waits incl.: that were done so soon after they were submitted."),
    ("node s", "replicas times time, a job; what was measured beforehand, to choose by, is not in it."),
    ("95 %", "interval over streams, paired: the same jobs at the same times under every way of scaling."),
)


def fits_document(fits: Sequence[Fit]) -> Document:
    return {"fits": [*map(asdict, fits)]}


def fits_page(fits: Sequence[Fit]) -> Iterator[Part]:
    yield Line(f"{fits[0].points} jobs; time = startup + cost·work·(1 + serial·(n-1) + crosstalk·n·(n-1))/n")
    yield ""
    for fit in fits:
        error = "" if fit.held_out is None else f", {fit.held_out:.1%} off where left out of the fit"
        yield Line(f"{NAMES[fit.name]}: AICc {fit.aicc:.1f}, points {fit.spread:.1%} off (sd){error}")
        rows = []
        for name, value in asdict(fit.law).items():
            if interval := fit.intervals.get(name):
                rows.append([f"  {name}", digits(value), f"{digits(interval[0], 3)} to {digits(interval[1], 3)}"])
        yield text_table(["", "value", "95 %"], rows)
        yield from (Line(f"  {note}") for note in fit.notes)
        yield ""


def choices_document(law: Law, target_s: float, choices: Sequence[Choice]) -> Document:
    return {"law": asdict(law), "target_s": target_s, "choices": [*map(asdict, choices)]}


def choices_page(target_s: float, choices: Sequence[Choice]) -> Iterator[Part]:
    yield Line(f"Replicas with which jobs take nearest {target_s:g} s")
    rows = [
        [f"{choice.work:g}", f"{choice.replicas}", digits(choice.predicted_s), "yes" if choice.within else f"no: {choice.why}"]
        for choice in choices
    ]
    yield text_table(["size", "replicas", "predicted s", "within 10 %"], rows)


def study_document(study: ScalingStudy, result: ScalingResult) -> Document:
    return {"simulated": True, "asked": asdict(study), **asdict(result)}


def study_page(study: ScalingStudy, result: ScalingResult) -> Iterator[Part]:
    law = study.law
    yield Line(
        f"SIMULATED: {study.nodes} nodes, a job every {result.gap_s:.4g} s, sizes of CV² {study.sizes_cv2:g}; {study.seeds} streams of "
        f"{study.jobs} jobs. Time: {law.startup_s:g} + {law.cost_s:g}·size·(1 + {law.serial:g}(n-1) + {law.crosstalk:g}n(n-1))/n s, "
        f"off by exp(±{study.noise:g}); the law that chooses is fitted to 45 jobs at most of a profile."
    )
    yield Line(
        f"Every job is to run {study.target_s:g} s ±10 %; for {result.reachable:.1%} of them there is a number of replicas that does."
    )
    yield ""
    yield from _tables(result.arms)


def _tables(arms: Sequence[ScalingArm]) -> Iterator[Part]:
    """The figures of each way of scaling, and what the first of them is against the others."""
    heads = ["replicas", "mean", *FIGURES.values()]
    yield text_table(heads, [[arm.name, f"{arm.replicas:.1f}", *(_figure(arm, name) for name in FIGURES)] for arm in arms])
    others = [arm for arm in arms if arm.more_within is not None]
    if others:
        yield ""
        yield Line(f"{arms[0].name} against")
        yield text_table(["", "within, points more [95 %]", "node-seconds, ratio [95 %]", "p"], map(_against, others))


def _figure(arm: ScalingArm, name: str) -> str:
    value = arm.mean(name)
    return f"{value:.1%}" if name in SHARES else digits(value)


def _against(arm: ScalingArm) -> list[str]:
    more = "" if arm.more_within is None else "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * points for points in arm.more_within))
    effect = arm.node_seconds
    if effect is None:
        return [arm.name, more, "the same", ""]
    return [arm.name, more, "{:.3f} [{:.3f}, {:.3f}]".format(*inverse(effect)), probability(effect.p)]


def reports_document(reports: Sequence[TargetReport]) -> Document:
    return {"simulated": False, "reports": [*map(asdict, reports)]}


def reports_page(reports: Sequence[TargetReport]) -> Iterator[Part]:
    for report in reports:
        about = f"{report.slots} slots of {report.engine}, every job to run {report.target_s:g} s ±10 %; {report.runs} streams"
        yield Line(f"MEASURED: {about}.")
        yield ""
        yield from _tables(report.arms)
        yield ""
        yield from bullets(_report_lines(report))
        yield ""
    yield from marked(LEGEND, "quiet")


def _report_lines(report: TargetReport) -> Iterator[str]:
    if report.reachable is not None:
        yield f"By the law that chose, {report.reachable:.1%} of the jobs have a number of replicas that fits."
    if report.off is not None:
        early, late = f"{report.early:.1%} of them took less than the band", f"{report.late:.1%} more"
        yield f"It was {report.off:.1%} off on average over its jobs; {early}, {late}."
    if report.profile_node_s is not None:
        yield f"Measuring beforehand took {report.profile_node_s:.3g} node-seconds a stream."
    if report.runs < FEWEST:
        yield f"Fewer than {FEWEST} streams: nothing has an interval. Run more blocks."
    if len(report.arms) < 2:
        yield "Nothing stands beside the choice: run the same jobs with --vary replicas=1,2,4."
    if report.alone:
        yield f"{report.alone} streams, whose jobs did not meet every way of scaling, are left out."
    if report.unlike:
        yield (
            f"Not held against the choice: {', '.join(report.unlike)}, of which other jobs were done at once. "
            "Whichever lost those off the target would gain by it."
        )
    if report.lost:
        yield f"{report.lost} jobs were not done in their first attempt and have no part in these figures."
