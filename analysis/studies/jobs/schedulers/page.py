"""Policies compared, in simulation and on real streams, as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import one_line, printable_json
from analysis.printing import columns, hanging, on_page
from analysis.wording import digits, probability

from .measured import lost_unequally

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from .comparison import PolicyArm, PolicyContrast, PolicyStudy
    from .measured import Place, Replay


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


def simulated(asked: PolicyStudy, found: Sequence[PolicyArm], *, color: bool = False) -> str:
    """Write the figures of each policy, and what they are against the baseline's."""
    return on_page(_simulated_parts(asked, found), color=color)


def simulated_json(asked: PolicyStudy, found: Sequence[PolicyArm]) -> str:
    """Write all of it for programs; the fields are those of `study` and `figures`, effects are gains as fractions."""
    source = asked.source
    about = {"simulated": True, "seeds": asked.seeds, "jobs": asked.jobs, "baseline": asked.baseline, "gap_s": source.gap_s}
    return printable_json({**about, "source": asdict(source), "policies": [{**asdict(one), "grows": one.grows} for one in found]})


def _simulated_parts(asked: PolicyStudy, found: Sequence[PolicyArm]) -> Iterator[RenderableType]:
    source = asked.source
    slots = ", ".join(f"{many} {kind}" if kind != "any" else f"{many}" for kind, many in source.slots.items())
    yield Text(
        f"SIMULATED: {slots} slots at load {source.load:g}, a job every {source.gap_s:.4g} s (CV² {source.arrivals_cv2:g}); "
        f"{asked.seeds} streams of {asked.jobs} jobs, the same for every policy."
    )
    if source.error:
        yield Text(f"Predicted times are off by a factor of exp(±{source.error:g}) (sd).")
    yield Text("")
    yield from tables(found, asked.baseline)
    yield Text("")
    yield hanging(LEGEND, "dim", "dim")


def tables(found: Sequence[PolicyArm], baseline: str) -> Iterator[RenderableType]:
    """Lay out the figures of some policies, which of them the queue grows under, and what they are against the baseline's."""
    names = [name for name in FIGURES if any(arm.mean(name) is not None for arm in found)]
    yield columns(["policy", *(FIGURES[name] for name in names)], [[arm.policy, *(_figure(arm, name) for name in names)] for arm in found])
    grow = [arm.policy for arm in found if arm.grows]
    if grow:
        yield Text(
            f"\nUNSTABLE under {', '.join(grow)}: the queue grows for as long as jobs come; these waits are of this length of stream."
        )
    others = [arm for arm in found if arm.against]
    if others:
        yield Text(f"\nof {baseline}'s, a ratio: below 1 is better")
        yield columns(["policy", "", "ratio", "95 %", "p"], [row for arm in others for row in _rows(arm)], left=2)


def _figure(arm: PolicyArm, name: str) -> str:
    value = arm.mean(name)
    return "" if value is None else f"{value:.1%}" if name in {"late", "busy"} else digits(value)


def _rows(arm: PolicyArm) -> Iterator[list[str]]:
    for at, (name, said) in enumerate(METRIC_HEADS.items()):
        yield ["" if at else arm.policy, said, *_ratio(arm.against[name])]


def _ratio(one: PolicyContrast) -> list[str]:
    """Ratio, its interval and p; where there is none, why."""
    effect = one.effect
    if effect is None or one.p is None:
        return ["", one.reason, ""]
    ratio, low, high = (digits(1 / (1 + gain), 3) for gain in (effect.gain, effect.high, effect.low))
    return [ratio, f"{low} to {high}", probability(one.p)]


def measured(found: Sequence[Place], *, color: bool = False) -> str:
    """Write what each engine measured, and what the simulator says of the same jobs."""
    return on_page(_measured_parts(found), color=color)


def measured_json(found: Sequence[Place], refused: Sequence[str]) -> str:
    """Write all of it for programs; effects are gains as fractions."""
    return printable_json({"simulated": False, "places": [asdict(one) for one in found], "refused": list(refused)})


def _measured_parts(found: Sequence[Place]) -> Iterator[RenderableType]:
    for one in found:
        yield Text(f"MEASURED: {one.slots} slots of {one.engine}, {one.streams} streams, the same arrivals for every policy.")
        if len(found) > 1:
            yield Text(one_line(one.condition, 300), "bold")
        if one.copies:
            yield Text(f"{one.copies} streams that had the jobs of another under the same policy: copies, left out.")
        if one.alone:
            yield Text(f"{one.alone} streams, whose arrivals not every policy had, are left out of the comparison.")
        if one.lost:
            yield Text(f"{one.lost} jobs were not done in their first attempt and have no part in these figures.")
        if one.left_out:
            yield Text(lost_unequally(one))
        yield Text("")
        yield from tables(one.arms, one.baseline)
        if one.replays:
            yield Text("\nthe same submissions and times in service, played in simulation")
            heads = ["policy", "streams", "mean wait s", "simulated s", "longer by s [95 %]"]
            yield columns(heads, [_replay_row(replay) for replay in one.replays])
        if one.unplayed:
            yield Text(f"Not played in simulation: {one.unplayed} streams that lost slots or jobs, which it knows nothing of.")
        yield Text("")
    yield hanging(LEGEND, "dim", "dim")


def _replay_row(one: Replay) -> list[str]:
    interval = "" if one.interval_s is None else f" [{one.interval_s[0]:+.3g}, {one.interval_s[1]:+.3g}]"
    return [one.policy, f"{one.streams}", digits(one.measured_s), digits(one.simulated_s), f"{one.longer_s:+.3g}{interval}"]
