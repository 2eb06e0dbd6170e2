"""A comparison on simulated plants as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from math import isnan
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.printing import columns, hanging, on_page

from .study import MOST_ABOVE, OURS, iterations_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from analysis.studies.power.quality import Finding

    from .study import Arm, Asked, Outcome

HEADS = ("algorithm", "images/s", "W", "above 1.02 cap", "worst seed", "so in truth", f"{OURS} against it")


def render(asked: Asked, found: Sequence[Outcome], copied: Sequence[Finding] = (), *, color: bool = False) -> str:
    """Write a table for each task, what that comes to, and which of the models are `copied`."""
    doubts = [hanging((one.mark, f"quality of {one.where}: {one.what}") for one in copied)] if copied else []
    return on_page([*_parts(asked, found), *doubts], color=color)


def as_json(asked: Asked, found: Sequence[Outcome], copied: Sequence[Finding] = ()) -> str:
    """Write all of it for programs; `against` has the fields of an effect, gains and shares are fractions."""
    said = {
        "simulated": True,
        "mismatch": {key: value for key, value in asdict(asked.mismatch).items() if key != "seed"},
        "seeds": asked.seeds,
        "tasks": [
            {
                "id": one.task.id,
                "gpu": one.task.gpu,
                "model": one.task.model,
                "caps_w": one.task.schedule,
                "seeds": one.seeds,
                "iterations": iterations_of(asked, one.task),
                "impossible_seeds": one.impossible,
                "arms": [_arm(arm) for arm in one.arms],
            }
            for one in found
        ],
        "above_tolerated": [_named(one) for one in found if not one.kept],
        "behind": [{"task": _named(one), "algorithms": one.behind} for one in found if one.behind],
        "findings": [asdict(one) for one in copied],
    }
    return json.dumps(said, indent=2, allow_nan=False) + "\n"


def _named(one: Outcome) -> str:
    return f"{one.task.id} on {one.task.gpu}"


def _arm(arm: Arm) -> dict[str, object]:
    said = asdict(arm)
    return {key: None if isinstance(value, float) and isnan(value) else value for key, value in said.items()}


def _parts(asked: Asked, found: Sequence[Outcome]) -> Iterator[RenderableType]:
    off = asked.mismatch
    own = f", each partition by {off.partition_error:.1%} more (sd)" if off.partition_error else ""
    yield Text(
        f"SIMULATED: plants ±{off.gain_error:.1%} off the model{own}, noise {off.noise_w:g} W, lag {off.lag_s:g} s; "
        f"{asked.seeds} seeds, the second half of each phase."
    )
    for one in found:
        caps = "→".join(f"{cap:g}" for _, cap in one.task.schedule)
        iterations = iterations_of(asked, one.task)
        yield Text(f"\ntask {one.task.id}: {one.task.model} on {one.task.gpu} under {caps} W, {iterations} iterations")
        if one.impossible:
            yield Text(f"  {len(one.impossible)} of {asked.seeds} plants have no setting within the cap and are left out")
        yield columns(HEADS, [_row(arm) for arm in one.arms])
    yield Text("")
    if any(arm.name == OURS for one in found for arm in one.arms):
        yield from _verdict(found)


def _row(arm: Arm) -> list[str]:
    if arm.refused:
        return [f"{arm.name}: {arm.refused}", *[""] * (len(HEADS) - 1)]
    effect = arm.against
    said = "" if effect is None else f"{effect.gain:+.2%} [{effect.low:+.2%}, {effect.high:+.2%}]"
    shares = [f"{share:.1%}" for share in (arm.above_102_share, arm.worst_share, arm.true_share)]
    return [arm.name, f"{arm.throughput_images_per_s:.1f}", f"{arm.power_w:.1f}", *shares, said]


def _verdict(found: Sequence[Outcome]) -> Iterator[RenderableType]:
    above = [_named(one) for one in found if not one.kept]
    yield Text(
        f"{OURS} is above 1.02 of the cap in more than {MOST_ABOVE:.0%} of the readings in task {', '.join(above)}."
        if above
        else f"{OURS} is above 1.02 of the cap in at most {MOST_ABOVE:.0%} of the readings in every task."
    )
    behind = [f"{name} in task {_named(one)}" for one in found for name in one.behind]
    yield Text(
        f"{OURS} is not shown to reach {', '.join(behind)}."
        if behind
        else f"{OURS} has at least the throughput of every other algorithm in every task (95 % intervals)."
    )
