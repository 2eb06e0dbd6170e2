"""What a stream of jobs came to: waits, slowdown, fairness, promises kept and how busy the slots were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .loop import Floats, Played
    from .stream import Coming

# A job's first and last part of a stream meet an empty cluster coming up and one running out.
WARM_UP = 0.1
SHORT = 0.1  # of the mean time: jobs shorter than that count as that long in slowdowns


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one stream under one policy, the first tenth of the jobs left out but for `busy`, which is of the whole.

    `slowdown` is response over time in service, bounded below (Feitelson and Rudolph, 1998): jobs shorter than a tenth of the mean would
    decide it. `jain` is Jain's index of the tenants' mean slowdowns, None with one tenant; `late` is the part that ended after it was due,
    None where nothing was promised. `busy` is slot-seconds in service over those there were until the last submission. `inside_half` and
    `inside_end` are the jobs that waited or ran when half of them, and all, had been submitted.
    """

    mean_wait_s: float
    p95_wait_s: float
    mean_response_s: float
    slowdown: float
    busy: float
    inside_half: int
    inside_end: int
    jain: float | None = None
    late: float | None = None


def figures(coming: Sequence[Coming], played: Played) -> Figures:
    """Count a stream that was played to its end."""
    counted = slice(int(len(coming) * WARM_UP), None)
    wait_s, service_s = played.wait_s[counted], (played.end_s - played.start_s)[counted]
    response_s = (played.end_s - played.submit_s)[counted]
    slowdowns = np.maximum(1.0, response_s / np.maximum(service_s, SHORT * float(service_s.mean())))
    half_s, until_s = (float(played.submit_s[at]) for at in (len(coming) // 2, -1))
    inside_s = np.minimum(played.end_s, until_s) - np.minimum(played.start_s, until_s)
    return Figures(
        mean_wait_s=float(wait_s.mean()),
        p95_wait_s=float(np.quantile(wait_s, 0.95)),
        mean_response_s=float(response_s.mean()),
        slowdown=float(slowdowns.mean()),
        busy=float((inside_s * played.replicas).sum()) / (sum(played.slots.values()) * until_s),
        inside_half=_inside(played, half_s),
        inside_end=_inside(played, until_s),
        jain=_between([one.job.tenant for one in coming[counted]], slowdowns),
        late=_late([one.job.due_s for one in coming[counted]], played.end_s[counted]),
    )


def jain(values: Floats) -> float:
    """Jain's fairness index: 1 where all have the same, 1/n where one has everything (Jain, Chiu and Hawe, DEC-TR-301, 1984)."""
    return float(values.sum()) ** 2 / (len(values) * float((values**2).sum()))


def _inside(played: Played, at_s: float) -> int:
    return int(((played.submit_s <= at_s) & (played.end_s > at_s)).sum())


def _between(tenants: Sequence[str], slowdowns: Floats) -> float | None:
    names = sorted(set(tenants))
    if len(names) < 2:
        return None
    owner = np.array(tenants)
    return jain(np.array([float(slowdowns[owner == name].mean()) for name in names]))


def _late(due_s: Sequence[float | None], end_s: Floats) -> float | None:
    promised = [end > due for due, end in zip(due_s, end_s.tolist(), strict=True) if due is not None]
    return sum(promised) / len(promised) if promised else None
