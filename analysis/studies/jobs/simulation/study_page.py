"""A comparison of policies in simulation as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import printable_json
from analysis.printing import columns, hanging, on_page
from analysis.wording import digits, probability

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from .study import Against, Arm, Asked

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


def render(asked: Asked, found: Sequence[Arm], *, color: bool = False) -> str:
    """Write the figures of each policy, and what they are against the baseline's."""
    return on_page(_parts(asked, found), color=color)


def as_json(asked: Asked, found: Sequence[Arm]) -> str:
    """Write all of it for programs; the fields are those of `study` and `figures`, effects are gains as fractions."""
    source = asked.source
    about = {"simulated": True, "seeds": asked.seeds, "jobs": asked.jobs, "baseline": asked.baseline, "gap_s": source.gap_s}
    return printable_json({**about, "source": asdict(source), "policies": [{**asdict(one), "grows": one.grows} for one in found]})


def _parts(asked: Asked, found: Sequence[Arm]) -> Iterator[RenderableType]:
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


def tables(found: Sequence[Arm], baseline: str) -> Iterator[RenderableType]:
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


def _figure(arm: Arm, name: str) -> str:
    value = arm.mean(name)
    return "" if value is None else f"{value:.1%}" if name in {"late", "busy"} else digits(value)


def _rows(arm: Arm) -> Iterator[list[str]]:
    for at, (name, said) in enumerate(METRIC_HEADS.items()):
        yield ["" if at else arm.policy, said, *_ratio(arm.against[name])]


def _ratio(one: Against) -> list[str]:
    """Ratio, its interval and p; where there is none, why."""
    effect = one.effect
    if effect is None or one.p is None:
        return ["", one.reason, ""]
    ratio, low, high = (digits(1 / (1 + gain), 3) for gain in (effect.gain, effect.high, effect.low))
    return [ratio, f"{low} to {high}", probability(one.p)]
