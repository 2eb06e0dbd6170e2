"""Does a policy spare the stream's own jobs from a fault? The same jobs under the same fault, block by block, under it and under fifo.

Own jobs are those that the stream has without the fault too: those of a flood are the fault itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .blocks import adjusted, ratio
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
    met: dict[tuple[object, ...], dict[str, Stream]] = {}
    for one in streams:
        if one.fault is not None:
            met.setdefault((_rest(one), one.fault, one.label, one.retries, one.tweakset, one.unit), {}).setdefault(_policy(one), one)
    found: dict[tuple[object, ...], dict[Unit, tuple[Stream, Stream]]] = {}
    for (condition, _, label, retries, _, _), under in met.items():
        base = under.get(FIFO)
        for policy, other in under.items():
            if base is not None and other is not base:
                found.setdefault((condition, label, retries, policy), {}).setdefault(base.unit, (base, other))
    made = [_compared(pairs, streams) for pairs in found.values()]
    return [replace(one, p=p) for one, p in zip(made, adjusted([one.response for one in made]), strict=True)]


def _compared(pairs: dict[Unit, tuple[Stream, Stream]], streams: Sequence[Stream]) -> Spared:
    base, other = next(iter(pairs.values()))
    made = Spared(_rest(base), base.label, _policy(other), len(pairs), None)
    times: dict[Unit, list[tuple[float, float]]] = {}
    for unit, (base, other) in pairs.items():
        twin = twin_of(base, streams)
        own = None if twin is None else {job.number for job, _ in shared(base, twin)}
        met = [(job, before) for job, before in shared(other, base) if own is None or job.number in own]
        if any((job.outcome == "done") != (before.outcome == "done") for job, before in met):
            return replace(made, why=LOST)
        if (both := responses(met)) is not None:
            times[unit] = [both]
    return replace(made, response=ratio(times))


def _policy(stream: Stream) -> str:
    return next((part.removeprefix(POLICY) for part in stream.condition.split(":") if part.startswith(POLICY)), FIFO)


def _rest(stream: Stream) -> str:
    """The condition without its policy."""
    return ":".join(part for part in stream.condition.split(":") if not part.startswith(POLICY))
