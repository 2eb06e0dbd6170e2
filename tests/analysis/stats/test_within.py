"""Inside one run: stalls and drift, and none by chance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analysis.stats.within import drift, stalls
from tests.conftest import REFERENCE


@pytest.mark.needs("reference")
@pytest.mark.parametrize(
    ("configuration", "p"), [("base", 0.075), ("exp1", 0.0043), ("exp2", 0.0040), ("exp3", 0.017)]
)
def test_halves_of_deeptweaks_runs_differ_as_published(configuration: str, p: float) -> None:
    steps = pd.read_csv(
        REFERENCE / "deeptweak" / "one_node_one_gpu" / configuration / "benchmark.csv"
    )["step_time"]
    assert drift(steps.to_list())[1] == pytest.approx(p, rel=0.02)


def test_a_run_that_slows_down_under_way_drifts() -> None:
    rng = np.random.default_rng(4)
    steady = rng.normal(1, 0.02, 600)
    ratio, p = drift(np.concatenate([steady[:300], 1.02 * steady[300:]]).tolist())
    assert ratio == pytest.approx(1.02, abs=0.005)
    assert p < 1e-6
    assert drift(steady.tolist())[1] > 0.05


def test_a_stall_is_neighbouring_steps_and_no_single_long_step() -> None:
    """Three of 1500 steps ten times as long: 27 steps more, 1.8 %.

    Scattered, the same steps are no stall, nor is a slower half.
    """
    usual = np.random.default_rng(3).normal(1, 0.05, 1500)
    stalled, strewn, halved = usual.copy(), usual.copy(), usual.copy()
    stalled[700:703] *= 10
    strewn[[100, 700, 1300]] *= 10
    halved[750:] *= 2
    (found,) = stalls(stalled.tolist())
    assert (found.first, found.steps) == (701, 3)
    assert found.times == pytest.approx(10, rel=0.05)
    assert [stalls(one.tolist()) for one in (usual, strewn, halved, np.ones(50), np.zeros(50))] == [
        []
    ] * 5
