"""A model with the reference's formulas, invented numbers, and trees small enough to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from control.power.models.laws import (
    MemSingle,
    MemSystem,
    PowerCurve,
    SmSingle,
    SmSystem,
    ThroughputCurve,
)
from control.power.models.reference import FEATURES, Ensemble, Reference


def ensemble(
    features: int,
    splits: Sequence[tuple[int, float, float, float]],
    *,
    start: float = 0.0,
    rate: float = 0.1,
) -> Ensemble:
    """One tree a split: (feature, threshold, value where ≤, value where above)."""
    count = len(splits)
    return Ensemble(
        features=features,
        start=start,
        rate=rate,
        sizes=np.full(count, 3),
        left=np.tile([1, -1, -1], count),
        right=np.tile([2, -1, -1], count),
        feature=np.array([number for feature, *_ in splits for number in (feature, 0, 0)]),
        threshold=np.array(
            [number for _, threshold, *_ in splits for number in (threshold, 0.0, 0.0)]
        ),
        value=np.array([number for *_, low, high in splits for number in (0.0, low, high)]),
    )


def reference(
    network: str = "made_up", *, gpu: str = "3080Ti", mem_mhz: float = 5001.0, busy: float = 60.0
) -> Reference:
    """A network that gives more with each process; `busy` distinguishes networks."""
    grown = {
        "sm": ensemble(FEATURES["sm"], [(2, 1.5, 0.0, 100.0), (5, 16.0, 0.0, 50.0)], start=busy),
        "mem": ensemble(FEATURES["mem"], [(2, 1.5, 0.0, 200.0)], start=busy / 2),
        "throughput": ensemble(
            FEATURES["throughput"], [(2, 1.5, 0.0, 3000.0), (9, 16.0, 0.0, 1000.0)], start=busy * 10
        ),
        "power": ensemble(FEATURES["power"], [(2, 1.5, 0.0, 500.0)], start=busy + 40),
    }
    trees: dict[str, Any] = {f"{name}_trees": one for name, one in grown.items()}
    return Reference(
        network,
        gpu,
        mem_mhz,
        sm_single=SmSingle(lam=1.6, gamma=0.57, beta=1.2),
        sm_system=SmSystem(slope=0.7, offset=39.0, kappa=5.0),
        mem_single=MemSingle(phi=80.0, exponent=0.5, lam=0.55, beta=-0.6),
        mem_system=MemSystem(k1=0.01, k2=0.9, a=4.6, b=0.47, mu=0.001, tau=16.5),
        throughput=ThroughputCurve(
            kappa_a=0.1,
            kappa_b=11.0,
            gamma=0.48,
            start_images_per_s=300.0,
            low_mhz=210.0,
            high_mhz=1950.0,
        ),
        power=PowerCurve(
            static_w=(2.2e-8, -5.3e-5, 0.0375, 62.4),
            base_w=41.0,
            gamma=1.23,
            low_mhz=210.0,
            high_mhz=1950.0,
        ),
        **trees,
    )


def falling(network: str = "made_up") -> Reference:
    """A model whose throughput starts above its end, so that it falls while the clock rises."""
    model = reference(network)
    return replace(model, throughput=replace(model.throughput, start_images_per_s=5000.0))
