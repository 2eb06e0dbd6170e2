"""The reference's predictor: golden values (A2, A3), and the meaning of its formulas."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.power.prediction import beyond, checked
from analysis.terms import Refused
from control.power.greedy import figures_of
from control.power.models import laws
from control.power.models.reference import Ensemble, Reference
from control.power.terms import Clocks, Partition
from tests.analysis.studies.power import made_cpu
from tests.analysis.studies.power.command import model_at
from tests.analysis.studies.power.made_reference import ensemble, reference
from tests.conftest import REFERENCE

PCTODL = REFERENCE / "pctodl"
reads_reference = pytest.mark.needs("reference")


@cache
def model(network: str, gpu: str, mem_mhz: float) -> Reference:
    found = model_at(PCTODL, network, gpu, mem_mhz)
    assert isinstance(found, Reference)
    return found


def equal(share: float, count: int, batch: int) -> Partition:
    return Partition((float(share),) * count, (batch,) * count)


def said(of: Reference, partition: Partition, sm_mhz: float) -> tuple[float, float, float, float]:
    ((images_per_s, power_w, sm, mem),) = figures_of(of, [Clocks(partition, sm_mhz, of.mem_mhz)])
    return sm, mem, images_per_s, power_w


@reads_reference
def test_every_golden_prediction_is_met() -> None:
    """60 predictions to four places, so half a unit of the last may differ; one call per model."""
    golden: list[dict[str, Any]] = json.loads((PCTODL / "golden_predict.json").read_text())
    assert len(golden) == 60
    for one in golden:
        gpu, mem_mhz = (
            "A100" if "_a100_" in one["set"] else "3080Ti",
            float(one["set"].rpartition("mem")[2]),
        )
        found = said(
            model(one["model"], gpu, mem_mhz), Partition(tuple(one["p"]), tuple(one["b"])), one["f"]
        )
        for value, name in zip(found, ("u_sm", "u_mem", "tput", "power"), strict=True):
            assert math.isclose(value, one[name], rel_tol=1e-6, abs_tol=5.001e-5), (
                one,
                name,
                value,
            )


@reads_reference
def test_formulas_of_one_process_and_of_four() -> None:
    """A3: resnet50 at 5001 MHz, 25 % and batch 16, alone and four times."""
    found = model("resnet50", "3080Ti", 5001.0)
    share, batch = np.array([25.0]), np.array([16.0])
    assert laws.sm_util_percent(found.sm_single, share, batch) == pytest.approx(77.8505, abs=1e-3)
    assert laws.mem_util_percent(found.mem_single, share, batch) == pytest.approx(34.6509, abs=1e-3)
    four = laws.padded([equal(25, 4, 16)])
    sm = laws.sm_prior_percent(found.sm_single, found.sm_system, four)
    mem = laws.mem_prior_percent(found.mem_single, found.mem_system, four)
    assert (sm[0], mem[0]) == pytest.approx((97.4962, 112.200), abs=1e-3)


partitions = st.integers(1, 12).flatmap(
    lambda count: st.builds(
        Partition,
        st.lists(
            st.integers(1, 20).map(lambda five: five * 5.0), min_size=count, max_size=count
        ).map(tuple),
        st.lists(
            st.sampled_from([1, 4, 8, 16, 32, 64, 128, 256]), min_size=count, max_size=count
        ).map(tuple),
    )
)


@given(st.lists(partitions, min_size=1, max_size=6), st.floats(210, 1950))
def test_a_prediction_is_equal_bit_by_bit_whatever_else_is_asked(
    some: list[Partition], sm_mhz: float
) -> None:
    made = reference()
    together = figures_of(made, [Clocks(one, sm_mhz, 5001.0) for one in some])
    alone = [figures_of(made, [Clocks(one, sm_mhz, 5001.0)])[0] for one in some]
    assert together == alone


def test_throughput_has_two_laws_and_a_jump_between_them() -> None:
    """Below a fifth of the reference: ref·x^(gamma/2) from 0, else from the start; x is ¼."""
    curve = reference().throughput
    quarter = np.array([645.0])
    assert laws.throughput_images_per_s(curve, np.array([3000.0]), quarter) == pytest.approx(
        3000 * 0.25**0.24
    )
    assert laws.throughput_images_per_s(curve, np.array([1000.0]), quarter) == pytest.approx(
        300 + 700 * 0.25**0.48
    )


def test_what_lies_outside_the_fit_or_was_never_measured_is_said() -> None:
    one, other = reference(), made_cpu.model()
    assert beyond(one, Clocks(equal(25, 4, 16), 1950.0, 5001.0)) == ()
    assert beyond(other, Clocks(Partition((25.0, 25.0), (8, 8)), 1.0, 0.0)) == ()
    assert beyond(other, Clocks(Partition((25.0, 100.0), (1, 8)), 1.0, 0.0)) == (
        "this partition was not measured",
    )
    assert beyond(one, Clocks(Partition((50.0, 25.0), (16, 16)), 2107.0, 5001.0)) == (
        "clock 2107 lies outside 210 to 1950, the fitted range",
        "clock 2107 is not a state of 3080Ti",
        "this partition was not measured",
    )


def test_a_feature_is_cut_to_float32_before_it_is_compared() -> None:
    tree = ensemble(1, [(0, 16.0, 1.0, 2.0)], rate=1.0)
    assert tree.predict(np.array([[16.0], [16.0 + 1e-9], [16.001]])).tolist() == [1.0, 1.0, 2.0]


def test_a_tree_that_leads_outside_itself_is_refused() -> None:
    good = ensemble(2, [(0, 0.0, 1.0, 2.0)])
    for change in (
        {"left": [5, -1, -1]},
        {"left": [0, -1, -1]},
        {"left": [1, 2, -1]},
        {"feature": [7, 0, 0]},
        {"sizes": [2]},
    ):
        arrays = {
            name: getattr(good, name)
            for name in ("sizes", "left", "right", "feature", "threshold", "value")
        }
        arrays |= {name: np.array(value) for name, value in change.items()}
        with pytest.raises(ValueError, match=r"tree|sizes"):
            Ensemble(2, 0.0, 0.1, **arrays)


@pytest.mark.parametrize(
    ("shares", "batches", "sm_mhz"),
    [
        ((), (), 900.0),
        ((25.0,), (4, 4), 900.0),
        ((0.0,), (4,), 900.0),
        ((math.nan,), (4,), 900.0),
        ((25.0,), (0,), 900.0),
        ((25.0,), (4,), -1.0),
    ],
)
def test_what_is_no_setting_is_refused(
    shares: tuple[float, ...], batches: tuple[int, ...], sm_mhz: float
) -> None:
    with pytest.raises(Refused, match=r"every process|These settings are invalid"):
        checked(Clocks(Partition(shares, batches), sm_mhz, 5001.0))
