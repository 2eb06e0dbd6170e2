"""What more power buys: settings that no other one found beats in both predicted throughput and predicted power."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from control.power.partitioning.search import best
from control.power.partitioning.terms import Infeasible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from control.power.partitioning.terms import Answer
    from control.power.terms import Model, Platform

POINTS = 12


def front(  # noqa: PLR0913  # the bounds of `search.best`
    models: Mapping[float, Model],
    platform: Platform,
    *,
    network: str,
    points: int = POINTS,
    margin_w: float = 0.0,
    sds: float = 0.0,
    max_processes: int | None = None,
    mixes: bool = True,
) -> list[Answer]:
    """Answer the best settings under `points` caps, evenly spaced from the smallest that can be kept to one that binds nothing.

    By ascending power, each with more images/s than all before it; a cap that adds nothing has no setting of its own.
    Raises: Refused, as `search.best`.
    """
    under = partial(best, models, platform, network=network, margin_w=margin_w, sds=sds, max_processes=max_processes, mixes=mixes)
    smallest_w, free = _smallest_w(under), under(inf)
    caps_w = np.linspace(smallest_w, max(smallest_w, free.power_w + margin_w), points)[:-1]
    some = [*map(under, caps_w.tolist()), free]
    found: list[Answer] = []
    for one in sorted(some, key=lambda one: (one.power_w, -one.throughput_images_per_s)):
        if not found or one.throughput_images_per_s > found[-1].throughput_images_per_s:
            found.append(one)
    return found


def _smallest_w(under: Callable[[float], Answer]) -> float:
    """Answer the smallest cap that has an answer."""
    try:
        return under(0.0).power_w
    except Infeasible as none:
        return none.smallest_cap_w
