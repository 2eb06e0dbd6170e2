"""The reference's model: formulas, and four regressors that have the formulas among their features.

A regressor gives the final value, not a correction. What stands at the place of the SM prior when predicting is the sum of what each
process takes alone: training used the prior, but its parameters were not kept with the regressor.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from control.power.terms import Anchor

from . import curves, trees
from .priors import (
    MemSingle,
    MemSystem,
    SmSingle,
    SmSystem,
    mean,
    mem_prior_percent,
    mem_util_percent,
    padded,
    sm_prior_percent,
    sm_util_percent,
    total,
    variance,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from control.power.terms import Floats, Partition

    from .priors import Padded

FEATURES = {"sm": 13, "mem": 11, "throughput": 14, "power": 8}
LAWS = {
    "sm_single": SmSingle,
    "sm_system": SmSystem,
    "mem_single": MemSingle,
    "mem_system": MemSystem,
    "throughput": curves.ThroughputCurve,
    "power": curves.PowerCurve,
}


@dataclass(frozen=True, slots=True)
class Reference:
    """One network on one GPU at one memory clock, as fitted by the original's procedure. It is a `terms.Model`.

    `gflops` and `million_parameters` describe the network to the regressors; the original lost its table of them and says the same of all.
    """

    network: str
    gpu: str
    mem_mhz: float
    sm_single: SmSingle
    sm_system: SmSystem
    mem_single: MemSingle
    mem_system: MemSystem
    throughput: curves.ThroughputCurve
    power: curves.PowerCurve
    sm_trees: trees.Ensemble
    mem_trees: trees.Ensemble
    throughput_trees: trees.Ensemble
    power_trees: trees.Ensemble
    gflops: float = 1000.0
    million_parameters: float = 25.0

    @property
    def sm_range_mhz(self) -> tuple[float, float]:
        """The clocks between which power was fitted."""
        return self.power.low_mhz, self.power.high_mhz

    def anchor(self, partitions: Sequence[Partition]) -> Anchor:
        """What each partition gives at the anchor clock, shape (partitions,)."""
        if not partitions:
            return Anchor(*(np.empty(0) for _ in range(4)))
        among = padded(partitions)
        alone = total(sm_util_percent(self.sm_single, among.shares, among.batches), among)
        sm = self.sm_trees.predict(self.sm_features(among, alone))
        mem = self.mem_trees.predict(self.mem_features(among))
        throughput = self.throughput_trees.predict(self.throughput_features(among, mem))
        power = self.power_trees.predict(self.power_features(among, sm, mem))
        return Anchor(sm, mem, throughput, power)

    def throughput_images_per_s(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """All processes together. Shape: that of anchor's fields broadcast with `sm_mhz`."""
        return curves.throughput_images_per_s(self.throughput, anchor.throughput_images_per_s, sm_mhz)

    def power_w(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """The board, of the largest single reading. Shape: that of anchor's fields broadcast with `sm_mhz`."""
        return curves.power_w(self.power, anchor.dynamic_power_w, sm_mhz)

    def system_priors_percent(self, partitions: Sequence[Partition]) -> tuple[Floats, Floats]:
        """What the formulas alone say: SM and memory utilisation, shape (partitions,) each."""
        among = padded(partitions)
        return sm_prior_percent(self.sm_single, self.sm_system, among), mem_prior_percent(self.mem_single, self.mem_system, among)

    def sm_features(self, among: Padded, prior: Floats) -> Floats:
        """Features of SM utilisation, shape (partitions, 13). `prior`: the formulas' when growing trees, the sum of all alone else."""
        alone = total(sm_util_percent(self.sm_single, among.shares, among.batches), among)
        shares = [mean(among.shares, among), total(among.shares, among)]
        return _columns(prior, alone, *self._mixture(among), *shares, *self._network())

    def mem_features(self, among: Padded) -> Floats:
        """Features of memory utilisation, shape (partitions, 11)."""
        prior = mem_prior_percent(self.mem_single, self.mem_system, among)
        alone = total(mem_util_percent(self.mem_single, among.shares, among.batches), among)
        return _columns(prior, alone, *self._mixture(among), *self._network())

    def throughput_features(self, among: Padded, mem: Floats) -> Floats:
        """Features of images/s at the reference clock, shape (partitions, 14)."""
        batch, share = mean(among.batches, among), mean(among.shares, among)
        kinetic = curves.kappa(self.throughput, batch) * mem
        batches = [among.batches[:, 0], total(among.batches, among), batch]
        shares = [among.shares[:, 0], total(among.shares, among), share, variance(among.shares, among)]
        return _columns(kinetic, mem, among.processes, *self._network(), *batches, *shares)

    def power_features(self, among: Padded, sm: Floats, mem: Floats) -> Floats:
        """Features of dynamic power at the reference clock, shape (partitions, 8)."""
        count = among.processes
        share, spread = mean(among.shares, among), variance(among.shares, among)
        return _columns(sm, mem, count, count * self.million_parameters, share, spread, mean(among.batches, among), self.mem_mhz / 10_000)

    def _mixture(self, among: Padded) -> list[Floats]:
        sizes = [mean(among.batches, among), total(among.batches, among)]
        return [among.processes, variance(among.shares, among), variance(among.batches, among), *sizes]

    def _network(self) -> list[float]:
        size = self.million_parameters
        return [self.mem_mhz / 10_000, self.gflops / 1000, size / 100, self.gflops / (size + 1)]


def as_json(model: Reference) -> dict[str, Any]:
    """Write a model without what names it (`parameters.write` adds that)."""
    laws = {name: asdict(getattr(model, name)) for name in LAWS}
    grown = {name: trees.as_json(getattr(model, f"{name}_trees")) for name in FEATURES}
    return {**laws, "trees": grown, "gflops": model.gflops, "million_parameters": model.million_parameters}


def from_json(network: str, gpu: str, mem_mhz: float, said: Mapping[str, Any]) -> Reference:
    """Read a model. Raises: KeyError, TypeError, ValueError, for what is none."""
    laws: dict[str, Any] = {name: _law(kind, said[name]) for name, kind in LAWS.items()}
    grown: dict[str, Any] = {f"{name}_trees": trees.from_json(said["trees"][name]) for name in FEATURES}
    for name, width in FEATURES.items():
        if grown[f"{name}_trees"].features != width:
            raise ValueError(f"the trees of {name} have {grown[f'{name}_trees'].features} features where {width} belong")
    sizes: dict[str, Any] = {name: _number(said[name], name) for name in ("gflops", "million_parameters")}
    return Reference(network, gpu, mem_mhz, **laws, **grown, **sizes)


def _law(kind: type, said: Mapping[str, Any]) -> Any:  # noqa: ANN401  # one of LAWS
    values: dict[str, Any] = {one.name: said[one.name] for one in fields(kind) if one.name != "static_w"}
    numbers: dict[str, Any] = {name: _number(value, name) for name, value in values.items()}
    if kind is curves.PowerCurve:
        cubic, square, slope, constant = said["static_w"]
        numbers["static_w"] = tuple(_number(value, "static_w") for value in (cubic, square, slope, constant))
    return kind(**numbers)


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(float(value)):
        raise ValueError(f"{name} is {value!r:.40}, no finite number")
    return float(value)


def _columns(*columns: Floats | float) -> Floats:
    return np.stack(np.broadcast_arrays(*columns), axis=1).astype(np.float64)
