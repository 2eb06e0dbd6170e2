"""Traces of a GPU with known formulas, on the profiling grid, for fits to recover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analysis.studies.power.traces import STATIC, PartitionRow
from control.power import catalog
from control.power.models import laws
from control.power.models.laws import (
    MemSingle,
    MemSystem,
    PowerCurve,
    SmSingle,
    SmSystem,
    ThroughputCurve,
    mem_prior_percent,
    padded,
    sm_prior_percent,
)

if TYPE_CHECKING:
    from control.power.terms import Partition

ANCHOR_MHZ = 1950.0
CLOCKS_MHZ = (
    210.0,
    360.0,
    510.0,
    660.0,
    810.0,
    960.0,
    1110.0,
    1260.0,
    1410.0,
    1560.0,
    1710.0,
    1860.0,
    ANCHOR_MHZ,
)

SM_SINGLE, SM_SYSTEM = SmSingle(1.5, 0.6, 1.2), SmSystem(0.6, 40.0, 5.0)
MEM_SINGLE, MEM_SYSTEM = (
    MemSingle(60.0, 0.5, 0.5, -0.5),
    MemSystem(0.01, 0.4, 0.8, 0.2, 0.001, 16.0),
)
THROUGHPUT = ThroughputCurve(1.5, 20.0, 0.55, 400.0, CLOCKS_MHZ[0], ANCHOR_MHZ)
POWER = PowerCurve((2.2e-8, -5.2e-5, 0.037, 62.0), 30.0, 1.25, CLOCKS_MHZ[0], ANCHOR_MHZ)


@dataclass(frozen=True)
class Truth:
    """The formulas' parameters, invented, of a realistic size."""

    sm_single: SmSingle = SM_SINGLE
    sm_system: SmSystem = SM_SYSTEM
    mem_single: MemSingle = MEM_SINGLE
    mem_system: MemSystem = MEM_SYSTEM
    throughput: ThroughputCurve = THROUGHPUT
    power: PowerCurve = POWER


def rows(
    truth: Truth | None = None, network: str = "made", mem_mhz: float = 5001.0
) -> list[PartitionRow]:
    """Anchors, sweep and static rows as tools round them: 0.1 points, 0.01 W, 0.01 images/s."""
    truth = truth or Truth()
    found = [_row(truth, point, None, network, mem_mhz) for point in catalog.points("anchor")]
    found += [
        _row(truth, point, clock, network, mem_mhz)
        for point in catalog.points("sweep")
        for clock in CLOCKS_MHZ
    ]
    found += [
        PartitionRow(
            STATIC,
            (),
            (),
            target_mhz=clock,
            mem_mhz=mem_mhz,
            sm_mhz=clock,
            power_max_w=round(float(_static(truth, clock)), 2),
        )
        for clock in CLOCKS_MHZ
    ]
    return found


def _static(truth: Truth, clock: float) -> np.ndarray:
    return laws.static_w(truth.power, np.array(clock))


def _row(
    truth: Truth, partition: Partition, target: float | None, network: str, mem_mhz: float
) -> PartitionRow:
    among = padded([partition])
    sm = float(sm_prior_percent(truth.sm_single, truth.sm_system, among)[0])
    mem = float(mem_prior_percent(truth.mem_single, truth.mem_system, among)[0])
    reference = np.array(
        float(laws.kappa(truth.throughput, np.array(float(partition.batches[0])))) * mem
    )
    clock = np.array(target or ANCHOR_MHZ)
    throughput = float(laws.throughput_images_per_s(truth.throughput, reference, clock))
    power = float(laws.power_w(truth.power, np.array(40.0 + 1.6 * mem), clock))
    return PartitionRow(
        network,
        partition.shares,
        partition.batches,
        target_mhz=target,
        mem_mhz=mem_mhz,
        sm_mhz=float(clock),
        sm_util_percent=round(sm, 1),
        mem_util_percent=round(mem, 1),
        throughput_images_per_s=round(throughput, 2),
        power_mean_w=round(0.98 * power, 2),
        power_max_w=round(power, 2),
    )
