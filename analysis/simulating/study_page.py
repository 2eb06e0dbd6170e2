"""A comparison of policies in simulation as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import printable_json
from analysis.printing import columns, hanging, on_page
from analysis.wording import digits, number, probability

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
METRIC_HEADS = {"mean_wait_s": "mean wait", "p95_wait_s": "p95 wait", "slowdown": "slowdown"}
LEGEND = (
    ("slowdown:", "response over time in service; jobs shorter than a tenth of the mean count as that long."),
    ("Jain:", "1 where all tenants are slowed down alike, 1/n where one has it all. late: ended after it was due."),
    ("+", "is better than the baseline: how many % longer the baseline's is; [ ] 95 % interval over streams, paired."),
    ("p", "of the mean wait, after Holm over all policies."),
)


def render(asked: Asked, found: Sequence[Arm], *, color: bool = False) -> str:
    """Write the figures of each policy, and what they are against the baseline's."""
    return on_page(_parts(asked, found), color=color)


def as_json(asked: Asked, found: Sequence[Arm]) -> str:
    """Write all of it for programs; the fields are those of `study` and `figures`, effects are gains as fractions."""
    source = asked.source
    about = {"simulated": True, "seeds": asked.seeds, "jobs": asked.jobs, "baseline": asked.baseline, "gap_s": source.gap_s}
    return printable_json({**about, "source": asdict(source), "policies": [asdict(one) for one in found]})


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
    names = [name for name in FIGURES if any(arm.mean(name) is not None for arm in found)]
    yield columns(["policy", *(FIGURES[name] for name in names)], [[arm.policy, *(_figure(arm, name) for name in names)] for arm in found])
    others = [arm for arm in found if arm.against]
    if others:
        yield Text(f"\nagainst {asked.baseline}, + % better [95 %]")
        heads = ["policy", *METRIC_HEADS.values(), "p"]
        yield columns(heads, [[arm.policy, *(_gain(arm.against[name]) for name in METRIC_HEADS), _p(arm)] for arm in others])
    yield Text("")
    yield hanging(LEGEND, "dim", "dim")


def _figure(arm: Arm, name: str) -> str:
    value = arm.mean(name)
    return "" if value is None else f"{value:.1%}" if name in {"late", "busy"} else digits(value)


def _gain(one: Against) -> str:
    effect = one.effect
    if effect is None:
        return one.reason
    return f"{number(effect.gain)} [{number(effect.low).lstrip('+')}, {number(effect.high).lstrip('+')}]"


def _p(arm: Arm) -> str:
    p = arm.against["mean_wait_s"].p
    return "" if p is None else probability(p)
