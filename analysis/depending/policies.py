"""Does a policy spare the stream's own jobs from a fault? The same jobs under the same fault, block by block, under it and under fifo.

Own jobs are those that the stream has without the fault too: those of a flood are the fault itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analysis.stats.adjust import holm

from .blocks import ratio
from .figures import responses, shared
from .study import twin_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .blocks import Ratio
    from .terms import Stream, Unit

FIFO, POLICY = "fifo", "policy="
LOST = "other jobs were lost than under fifo: not compared."


@dataclass(frozen=True, slots=True)
class Spared:
    """Mean response of the own jobs under a policy over that under fifo, the fault being the same; `p` after Holm over all such.

    `response` is None where the two lost different jobs, which `why` says.
    """

    condition: str
    label: str
    policy: str
    blocks: int
    response: Ratio | None
    p: float | None = None
    why: str = ""


def spared(streams: Sequence[Stream]) -> list[Spared]:
    """Compare every policy with fifo under every fault that both met."""
    found: dict[tuple[str, str, int, str], dict[Unit, tuple[Stream, Stream]]] = {}
    for base in streams:
        if base.fault is None or _policy(base) != FIFO:
            continue
        for other in streams:
            alike = (_rest(other), other.label, other.retries, other.unit) == (_rest(base), base.label, base.retries, base.unit)
            if alike and (other.fault, other.tweakset) == (base.fault, base.tweakset) and _policy(other) != FIFO:
                key = (_rest(base), base.label, base.retries, _policy(other))
                found.setdefault(key, {}).setdefault(base.unit, (base, other))
    made = [_compared(condition, label, policy, pairs, streams) for (condition, label, _, policy), pairs in found.items()]
    judged = [at for at, one in enumerate(made) if one.response is not None and one.response.p is not None]
    adjusted = dict(zip(judged, holm([_p(made[at]) for at in judged]), strict=True))
    return [replace(one, p=adjusted.get(at)) for at, one in enumerate(made)]


def _compared(condition: str, label: str, policy: str, pairs: dict[Unit, tuple[Stream, Stream]], streams: Sequence[Stream]) -> Spared:
    times: dict[Unit, list[tuple[float, float]]] = {}
    for unit, (base, other) in pairs.items():
        twin = twin_of(base, streams)
        own = None if twin is None else {job.number for job, _ in shared(base, twin)}
        met = [(job, before) for job, before in shared(other, base) if own is None or job.number in own]
        if any((job.outcome == "done") != (before.outcome == "done") for job, before in met):
            return Spared(condition, label, policy, len(pairs), None, why=LOST)
        if (both := responses(met)) is not None:
            times[unit] = [both]
    return Spared(condition, label, policy, len(pairs), ratio(times))


def _p(one: Spared) -> float:
    return 1.0 if one.response is None or one.response.p is None else one.response.p


def _policy(stream: Stream) -> str:
    return next((part.removeprefix(POLICY) for part in stream.condition.split(":") if part.startswith(POLICY)), FIFO)


def _rest(stream: Stream) -> str:
    """The condition without its policy."""
    return ":".join(part for part in stream.condition.split(":") if not part.startswith(POLICY))
