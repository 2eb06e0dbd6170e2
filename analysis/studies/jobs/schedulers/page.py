"""Policies compared, in simulation and on real streams, as answers. In their data effects are gains as fractions."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from analysis.answer import Line, marked, of_parts, text_table
from analysis.plain import one_line
from analysis.studies.jobs.output import inverse
from analysis.wording import digits, probability

from .measured import arms as arms_of
from .measured import lost_unequally

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analysis.answer import Answer, Part

    from .measured import Place, PolicyArm, PolicyStudy, Replay

FIGURES = {
    "mean_wait_s": "mean wait s",
    "p95_wait_s": "p95 wait s",
    "mean_response_s": "response s",
    "slowdown": "slowdown",
    "jain": "Jain",
    "late": "late",
    "busy": "busy",
}
METRIC_HEADS = {"mean_wait_s": "mean wait", "p95_wait_s": "p95 wait", "mean_response_s": "response", "slowdown": "slowdown"}
LEGEND = (
    ("slowdown:", "response over time in service; jobs shorter than a tenth of the mean count as that long."),
    ("Jain:", "1 where all tenants are slowed down alike, 1/n where one has it all. late: ended after it was due."),
    ("95 %", "interval over streams, paired. no wait: there is a stream in which nobody waited, and no ratio."),
    ("p", "after Holm over all policies, each figure by itself."),
)


def simulated(study: PolicyStudy) -> Answer:
    arms, source = arms_of(study), study.source
    about = {"simulated": True, "seeds": study.seeds, "jobs": study.jobs, "baseline": study.baseline, "gap_s": source.gap_s}
    data = {**about, "source": asdict(source), "policies": [{**asdict(arm), "grows": arm.grows} for arm in arms]}
    return of_parts(data, _simulated(study, arms))


def _simulated(study: PolicyStudy, arms: Sequence[PolicyArm]) -> Iterator[Part]:
    source = study.source
    slots = ", ".join(f"{many} {kind}" if kind != "any" else f"{many}" for kind, many in source.slots.items())
    yield Line(
        f"SIMULATED: {slots} slots at load {source.load:g}, a job every {source.gap_s:.4g} s (CV² {source.arrivals_cv2:g}); "
        f"{study.seeds} streams of {study.jobs} jobs, the same for every policy."
    )
    if source.error:
        yield Line(f"Predicted times are off by a factor of exp(±{source.error:g}) (sd).")
    yield ""
    yield from _tables(arms, study.baseline)
    yield ""
    yield from marked(LEGEND, "quiet")


def _tables(arms: Sequence[PolicyArm], baseline: str) -> Iterator[Part]:
    names = [name for name in FIGURES if any(arm.mean(name) is not None for arm in arms)]
    yield text_table(
        ["policy", *(FIGURES[name] for name in names)], [[arm.policy, *(_figure(arm, name) for name in names)] for arm in arms]
    )
    grow = ", ".join(arm.policy for arm in arms if arm.grows)
    if grow:
        yield ""
        yield Line(f"UNSTABLE under {grow}: the queue grows for as long as jobs come; these waits are of this length of stream.")
    others = [arm for arm in arms if arm.against]
    if others:
        yield ""
        yield Line(f"of {baseline}'s, a ratio: below 1 is better")
        yield text_table(["policy", "", "ratio", "95 %", "p"], [row for arm in others for row in _contrasts(arm)], left=2)


def _figure(arm: PolicyArm, name: str) -> str:
    value = arm.mean(name)
    return "" if value is None else f"{value:.1%}" if name in {"late", "busy"} else digits(value)


def _contrasts(arm: PolicyArm) -> Iterator[list[str]]:
    for at, (name, head) in enumerate(METRIC_HEADS.items()):
        contrast = arm.against[name]
        row = ["", contrast.reason, ""]
        if contrast.effect is not None and contrast.p is not None:
            ratio, low, high = (digits(value, 3) for value in inverse(contrast.effect))
            row = [ratio, f"{low} to {high}", probability(contrast.p)]
        yield ["" if at else arm.policy, head, *row]


def measured(places: Sequence[Place], refused: Sequence[str]) -> Answer:
    return of_parts({"simulated": False, "places": [*map(asdict, places)]}, _measured(places), refused)


def _measured(places: Sequence[Place]) -> Iterator[Part]:
    for place in places:
        yield Line(f"MEASURED: {place.slots} slots of {place.engine}, {place.streams} streams, the same arrivals for every policy.")
        if len(places) > 1:
            yield Line(one_line(place.condition, 300), tone="strong")
        if place.copies:
            yield Line(f"{place.copies} streams that had the jobs of another under the same policy: copies, left out.")
        if place.alone:
            yield Line(f"{place.alone} streams, whose arrivals not every policy had, are left out of the comparison.")
        if place.lost:
            yield Line(f"{place.lost} jobs were not done in their first attempt and have no part in these figures.")
        if place.left_out:
            yield Line(lost_unequally(place))
        yield ""
        yield from _tables(place.arms, place.baseline)
        if place.replays:
            yield ""
            yield Line("the same submissions and times in service, played in simulation")
            heads = ["policy", "streams", "mean wait s", "simulated s", "longer by s [95 %]"]
            yield text_table(heads, map(_replay, place.replays))
        if place.unplayed:
            yield Line(f"Not played in simulation: {place.unplayed} streams that lost slots or jobs, which it knows nothing of.")
        yield ""
    yield from marked(LEGEND, "quiet")


def _replay(replay: Replay) -> list[str]:
    interval = "" if replay.interval_s is None else f" [{replay.interval_s[0]:+.3g}, {replay.interval_s[1]:+.3g}]"
    return [
        replay.policy,
        f"{replay.streams}",
        digits(replay.measured_s),
        digits(replay.simulated_s),
        f"{replay.longer_s:+.3g}{interval}",
    ]
