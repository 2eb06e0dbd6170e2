"""Ladders of clocks, throttles and batches; a question's models; searches over all clocks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from control.called import JUDGE

from .catalog import platforms
from .greedy import PartitionAnswer, greedy
from .search import best, profiled
from .terms import Partition, Platform, Predicted, Settings, Unsupported, must_be_in, tenants_of

if TYPE_CHECKING:
    from .terms import Anchor, Clocks, Floats, Knobs, Model, Question, Speed, Tenant


@dataclass(frozen=True, slots=True)
class SpeedKnob:
    """What sets the speed, clock or throttle, and its states, ascending."""

    name: Speed
    states: tuple[float, ...]

    @classmethod
    def of(cls, knobs: Knobs) -> SpeedKnob:
        """Return the knob that there is. Raises: Unsupported."""
        if knobs.sm_mhz:
            return cls("sm_mhz", knobs.sm_mhz)
        if knobs.throttle:
            return cls("throttle", knobs.throttle)
        raise Unsupported("neither a clock nor a throttle can be set here.")

    @property
    def top(self) -> int:
        return len(self.states) - 1

    def state(self, settings: Settings, otherwise: int) -> int:
        """Return the nearest state's index; `otherwise` where nothing is set."""
        value = getattr(settings, self.name)
        return otherwise if value is None else nearest(self.states, value)

    def at(self, settings: Settings, value: float) -> Settings:
        named: dict[str, Any] = {self.name: value}
        return replace(settings, **named)


def nearest(ladder: Sequence[float], value: float) -> int:
    """Return the index of the rung nearest to `value`; of two, the lower one."""
    above = bisect_right(ladder, value)
    return min(
        (at for at in (above - 1, above) if 0 <= at < len(ladder)),
        key=lambda at: (abs(ladder[at] - value), at),
    )


def at_most(ladder: Sequence[float], value: float) -> int:
    """Return the index of the highest rung not above `value`; 0 if all are above."""
    return max(bisect_right(ladder, value) - 1, 0)


def clamped(index: int, ladder: Sequence[float]) -> int:
    return min(max(index, 0), len(ladder) - 1)


def batches_of(ladder: Sequence[int], knobs: Knobs) -> tuple[int, ...]:
    """Return the rungs of an algorithm's ladder that exist here, or the back-end's batches."""
    here = tuple(batch for batch in ladder if batch in knobs.batches)
    return here if len(here) > 1 else knobs.batches


@dataclass(frozen=True, slots=True)
class Curve:
    """A partition at one memory clock; `power_w` and throughput have shape (clocks,)."""

    anchor: Anchor
    power_w: Floats
    throughput_images_per_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """A network's models on a platform, by memory clock (MHz), with cached curves."""

    models: Mapping[float, Model]
    platform: Platform
    _known: dict[tuple[float, Partition], Curve] = field(default_factory=dict)

    def curve(self, mem_mhz: float, partition: Partition) -> Curve:
        known = self._known.get((mem_mhz, partition))
        if known is None:
            model, clocks = self.models[mem_mhz], np.array(self.platform.sm_mhz)
            anchor = model.anchor([partition])
            known = Curve(
                anchor, model.power_w(anchor, clocks), model.throughput_images_per_s(anchor, clocks)
            )
            self._known[mem_mhz, partition] = known
        return known


def partition_of(tenants: Sequence[Tenant]) -> Partition:
    return Partition(
        tuple(tenant.share_percent for tenant in tenants), tuple(tenant.batch for tenant in tenants)
    )


def tables_of(question: Question) -> Tables:
    """Return the question's models for memory clocks that can be set here.

    Raises: Unsupported, where none is given; Refused, where there is none, or it is in another unit
        than the cap.
    """
    if question.models is None:
        raise Unsupported(
            f"{question.algorithm} needs a model of {question.model} on {question.gpu}: measure "
            "it with bench_power_profile, "
            f"fit it with `{JUDGE} power fit`, and name the parameters."
        )
    tables = _tables(question.models, question.gpu, question.knobs)
    must_be_in(question.cap_unit, tables.models.values(), "the question")
    return tables


def searched(
    question: Question, cap: float, *, compatible: bool = False, guard: float | None = None
) -> PartitionAnswer:
    """Return the best setting under a cap, margin and latency bound; for `guard` see `search.best`.

    `compatible` is the study's greedy search, which knows no latency.
    Raises: Unsupported, where there is no model, or the greedy search cannot be had here;
        Infeasible; Refused.
    """
    tables, knobs = tables_of(question), question.knobs
    if compatible and not (knobs.shares and knobs.sm_mhz):
        raise Unsupported(
            "the greedy search needs shares and clocks, which cannot both be set here."
        )
    if compatible:
        return _greedy(tables, question.model, knobs, cap, question.margin)
    return best(
        tables.models,
        tables.platform,
        cap,
        network=question.model,
        margin_w=question.margin,
        only=_settable(tables, knobs),
        slo_ms=question.slo_ms,
        guard=guard,
    )


def settings_of(at: Clocks, knobs: Knobs) -> Settings:
    mem_mhz = at.mem_mhz if knobs.mem_mhz and at.mem_mhz in knobs.mem_mhz else None
    return SpeedKnob.of(knobs).at(Settings(tenants_of(at.partition), mem_mhz=mem_mhz), at.sm_mhz)


def predicted(answer: PartitionAnswer) -> Predicted:
    return Predicted(answer.throughput_images_per_s, answer.power_w)


def model_clock(tables: Tables, mem_mhz: float | None) -> float:
    """Return the memory clock of the model to use: the highest if the driver chooses."""
    return max(tables.models) if mem_mhz is None or mem_mhz not in tables.models else mem_mhz


@cache
def _tables(read: Callable[[], Mapping[float, Model]], gpu: str, knobs: Knobs) -> Tables:
    every = read()
    models = {mhz: model for mhz, model in every.items() if mhz in (knobs.mem_mhz or ())} or {
        max(every): every[max(every)]
    }
    speeds = SpeedKnob.of(knobs).states
    known = platforms().get(gpu)
    if known is None or knobs.sm_mhz is None:
        high = max(model.sm_range_mhz[1] for model in models.values())
        return Tables(
            models, Platform(gpu, speeds, tuple(models), tuple(models), high, float("inf"))
        )
    return Tables(
        models, replace(known, sm_mhz=speeds, searched_mem_mhz=tuple(sorted(models, reverse=True)))
    )


@cache
def _greedy(
    tables: Tables, network: str, knobs: Knobs, cap: float, margin: float
) -> PartitionAnswer:
    answer = greedy(tables.models, tables.platform, cap, network=network, margin_w=margin)
    partition = answer.setting.partition
    strange = sorted({f"{batch}" for batch in partition.batches if batch not in knobs.batches})
    if strange:
        raise Unsupported(
            f"the greedy search returned a batch of {', '.join(strange)}, which cannot be set here."
        )
    if len(partition.shares) > knobs.most_processes:
        raise Unsupported(
            f"the greedy search returned {len(partition.shares)} processes, but only "
            f"{knobs.most_processes} can run here."
        )
    return answer


def _settable(tables: Tables, knobs: Knobs) -> tuple[Partition, ...]:
    here = [
        one
        for one in dict.fromkeys(profiled(tables.models))
        if len(one.shares) <= knobs.most_processes
        and all(batch in knobs.batches for batch in one.batches)
        and (knobs.shares or set(one.shares) <= {100.0})
    ]
    if not here:
        raise Unsupported("no partition that the model was fitted on can be set here.")
    return tuple(here)
