"""The project's own model: invariants for any traces, and errors on held-out rows.

The reference's tables are its regressors' answers, not measurements.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.power import fit_own, parameters
from analysis.studies.power.material import Material, gather, networks
from analysis.studies.power.traces import PartitionRow, read
from analysis.terms import Refused
from control.power.models.own import SURFACES, Curves, Own
from control.power.terms import Partition
from tests.analysis.studies.power import made_cpu
from tests.analysis.studies.power.command import model_at
from tests.conftest import REFERENCE

if TYPE_CHECKING:
    import pandas as pd

SEED = 20261122
TABLES = sorted((REFERENCE / "pctodl").glob("reconstructed_anchor_*.csv"))


def gpu_rows(seed: int = SEED) -> list[PartitionRow]:
    """A GPU that obeys another law: each tenant adds less than the one before; 2 % noise."""
    chance = np.random.default_rng(seed)
    rows = []
    for share in (10.0, 20.0, 40.0):
        for count in (1, 2, 4):
            for batch in (4, 16, 64):
                for clock in (None, 300.0, 900.0, 1500.0) if batch == 16 else (None,):
                    ratio = (clock or 1950.0) / 1950.0
                    compute = 30.0 * (share * count) ** 0.8 * batch / (batch + 6.0) * ratio
                    throughput = (
                        compute / (1.0 + compute / 2500.0) * np.exp(chance.normal(0.0, 0.02))
                    )
                    dynamic = (20.0 + throughput / 12.0) * (0.3 + 0.7 * ratio**1.5)
                    rows.append(
                        PartitionRow(
                            "net",
                            (share,) * count,
                            (batch,) * count,
                            target_mhz=clock,
                            mem_mhz=5001.0,
                            sm_mhz=clock or 1950.0,
                            sm_util_percent=min(100.0, share * count),
                            mem_util_percent=throughput / 30.0,
                            throughput_images_per_s=throughput,
                            power_max_w=60.0 + 20.0 * ratio + dynamic,
                        )
                    )
    idle = (210.0, 900.0, 1500.0, 1950.0)
    return [
        *rows,
        *(
            PartitionRow(
                "static", (), (), mem_mhz=5001.0, sm_mhz=mhz, power_max_w=60.0 + mhz / 97.5
            )
            for mhz in idle
        ),
    ]


def small_rows() -> list[PartitionRow]:
    """Twelve partitions by an invented law, three batches of four each."""
    return [
        PartitionRow(
            "net",
            (share,) * count,
            (batch,) * count,
            throughput_images_per_s=share * count * batch / (batch + 4.0),
            sm_mhz=1000.0,
        )
        for batch in (4, 8, 32)
        for share in (10.0, 30.0)
        for count in (1, 2)
    ]


def gathered(rows: list[PartitionRow]) -> Material:
    return gather(rows, "net", rows[0].mem_mhz or 0.0, "3080Ti")


@pytest.fixture(scope="module")
def model() -> Own:
    return fit_own.fit(gathered(gpu_rows()))


@pytest.fixture(scope="module")
def judged(model: Own) -> Own:
    return fit_own.judge(gathered(gpu_rows()), model)


TENANTS = st.lists(st.tuples(st.floats(1.0, 100.0), st.integers(1, 1024)), min_size=1, max_size=40)


@given(tenants=TENANTS)
def test_no_curve_falls_with_the_clock_or_exceeds_twice_the_data(
    model: Own, tenants: list[tuple[float, int]]
) -> None:
    shares, batches = zip(*tenants, strict=True)
    anchor, clocks = model.anchor([Partition(shares, batches)]), np.arange(100.0, 2501.0, 25.0)
    for values in (model.throughput_images_per_s(anchor, clocks), model.power_w(anchor, clocks)):
        assert (np.diff(values) >= -1e-9 * values[:-1]).all()
    most = [2.0 * np.exp(max(model.surfaces[name].logs)) * (1 + 1e-9) for name in SURFACES[:2]]
    assert 0.0 < anchor.throughput_images_per_s[0] <= most[0]
    assert 0.0 < model.power_w(anchor, np.array([1950.0]))[0] <= most[1]
    assert 0.0 <= anchor.sm_util_percent[0] <= 100.0


def test_held_out_errors_and_the_guard_band(judged: Own) -> None:
    """27 rows by partition, 27 by clock: the band holds at least 53 of 54 (rank of 95 % of 55)."""
    by_batch, by_clock = (
        judged.held_out[name]["throughput_images_per_s"] for name in ("batch", "clock")
    )
    assert (by_batch["rows"], by_batch["groups"], by_clock["groups"]) == (27, 3, 3)
    assert by_batch["mape"] < 0.2
    assert by_batch["guarded"] is None
    assert "mixed" not in judged.held_out
    assert judged.guard is not None
    assert 1.0 <= judged.guard < 1.5
    known = [judged.held_out[name]["power_w"] for name in fit_own.GUARDED]
    assert sum(its["rows"] * its["guarded"] for its in known) >= 53 - 1e-9


def test_a_written_model_is_read_back_the_same(model: Own, tmp_path: Path) -> None:
    parameters.write(model, tmp_path / parameters.file_name(model))
    again = model_at(tmp_path)
    partitions, clocks = (
        [Partition((10.0, 40.0), (4, 64)), Partition((25.0,), (32,))],
        np.array([210.0, 777.0]),
    )
    for name in Curves.__dataclass_fields__:
        np.testing.assert_array_equal(
            getattr(again.anchor(partitions), name), getattr(model.anchor(partitions), name)
        )
    power, before = (its.power_w(its.anchor(partitions), clocks) for its in (again, model))
    np.testing.assert_array_equal(power, before)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("anchor_clock",), 0.0, "an invalid clock"),
        (("points", 0, 1), -1.0, "an invalid clock"),
        (("points", 0, 0, "shares"), [10.0, 10.0], "a partition with shares"),
        (("guard",), 0.5, "guard band is 0.5"),
        (("surfaces", "throughput_images_per_s", "logs"), [0.0], "does not match the points"),
        (("surfaces", "throughput_images_per_s", "theta"), [0.0], "too few"),
        (("surfaces", "throughput_images_per_s", "theta"), "drop table", "damaged"),
    ],
)
def test_a_damaged_file_is_refused_by_name(
    model: Own, tmp_path: Path, path: tuple[str | int, ...], value: object, said: str
) -> None:
    file = tmp_path / "model.json"
    parameters.write(model, file)
    document = json.loads(file.read_text())
    part = document
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    file.write_text(json.dumps(document))
    with pytest.raises(Refused, match=said):
        model_at(file)


def test_without_power_only_power_is_missing() -> None:
    """Missing is missing: NaN, never 0 W."""
    material = gathered(
        [replace(row, power_max_w=None) for row in gpu_rows() if row.network == "net"]
    )
    model = fit_own.fit(material)
    anchor = model.anchor([Partition((20.0,), (16,))])
    assert material.cap_unit == "none"
    assert np.isnan(model.power_w(anchor, np.array([900.0, 1950.0]))).all()
    assert np.isfinite(anchor.throughput_images_per_s).all()


def test_one_clock_alone_errs_on_the_safe_side_at_others() -> None:
    """Half the clock: at worst half the throughput, at worst all of the power.

    A clock above: no more throughput.
    """
    model = fit_own.fit(gathered([row for row in gpu_rows() if row.target_mhz is None]))
    anchor, clocks = model.anchor([Partition((20.0,), (16,))]), np.array([975.0, 1950.0, 2100.0])
    half, full, above = model.throughput_images_per_s(anchor, clocks)
    assert (half, above) == pytest.approx((full / 2.0, full))
    power = model.power_w(anchor, clocks)
    assert power == pytest.approx([power[1], power[1], power[1] * (2100.0 / 1950.0) ** 3])


def test_cpu_traces_have_a_throttle_as_clock_and_cpu_s_as_watts() -> None:
    material, model = gather(made_cpu.rows(), "resnet50", 0.0, "cpu"), made_cpu.model()
    found = material.clock, material.cap_unit, material.anchor, len(material.anchors)
    assert found == ("throttle", "cpu_s_per_s", 1.0, 12)
    anchor, duties = model.anchor([Partition((50.0, 50.0), (8, 8))]), np.array([0.25, 1.0])
    assert model.throughput_images_per_s(anchor, duties) == pytest.approx([20.0, 80.0], rel=0.05)
    assert model.power_w(anchor, duties) == pytest.approx([0.5, 2.0], rel=0.05)


def test_unusable_rows_are_counted_and_too_few_others_refused() -> None:
    rows = gpu_rows()
    rows[0] = replace(
        rows[0],
        outcome="oom",
        reason="out of memory",
        throughput_images_per_s=None,
        power_max_w=None,
    )
    rows[1] = replace(rows[1], throughput_images_per_s=0.0)
    assert gathered(rows).left_out == {"oom": 1, "without throughput": 1}
    failed = [
        replace(row, outcome="failed", throughput_images_per_s=None) for row in rows[:-8]
    ] + rows[-8:]
    with pytest.raises(Refused, match=r"\d+ failed"):
        gathered(failed)


@pytest.mark.parametrize("name", ["backend", "power_source", "image_size"])
def test_rows_of_two_back_ends_sources_or_sizes_are_not_joined(name: str) -> None:
    rows = [replace(row, extra={name: "one"}) for row in small_rows()]
    assert len(gathered([*rows, replace(rows[0], extra={})]).anchors) == 12
    with pytest.raises(Refused, match=name):
        gathered([*rows, replace(rows[0], extra={name: "other"})])


def test_a_group_that_is_held_out_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    material, fit, shown = gathered(small_rows()), fit_own.fit, []

    def watched(kept: Material, *rest: object, **more: object) -> object:
        shown.append({partition.batches[0] for partition in kept.points["partition"]})
        return fit(kept, *rest, **more)  # type: ignore[arg-type]  # what was given is passed on

    monkeypatch.setattr(fit_own, "fit", watched)
    rows = fit_own.hold_out(material, fit(material), "batch")
    assert shown == [{8, 32}, {4, 32}, {4, 8}]
    assert list(rows["group"]) == [(4,)] * 4 + [(8,)] * 4 + [(32,)] * 4


def test_errors_are_those_of_the_predictions() -> None:
    """+10, -30, +20 % in three groups: mean 20 %; times 1.2, two hold."""
    errors = fit_own.errors([1.0, 2.0, 3.0], np.array([1.1, 0.7, 1.2]), guard=1.2)
    expected = {
        "mape": 0.2,
        "median": 0.2,
        "bias": 0.0,
        "guarded": 2 / 3,
    }
    assert {name: errors[name] for name in expected} == pytest.approx(expected)


def with_memory() -> pd.DataFrame:
    """T = 30·U^.7·b^.3, U random: the partition alone carries no information."""
    chance = np.random.default_rng(SEED)
    rows = []
    for share in (10.0, 20.0, 40.0):
        for count in (1, 2, 3):
            for batch in (4, 8, 16, 32):
                memory = float(chance.uniform(5.0, 95.0))
                throughput = 30.0 * memory**0.7 * batch**0.3
                measured = {"mem_util_percent": memory, "throughput_images_per_s": throughput}
                rows.append(
                    PartitionRow(
                        "net", (share,) * count, (batch,) * count, sm_mhz=1950.0, **measured
                    )
                )
    return gathered(rows).anchors


def test_held_out_rows_have_no_say_in_the_memory_stage() -> None:
    """Doubling batch 32's throughput halves predicted/measured there: the prediction stays."""
    points = with_memory()
    groups = [partition.batches[0] for partition in points["partition"]]
    of_32 = np.array(groups) == 32
    factor = np.where(of_32, 2.0, 1.0)
    twice = points.assign(throughput_images_per_s=points["throughput_images_per_s"] * factor)
    before, after = (fit_own.by_memory(its, groups)[of_32] for its in (points, twice))
    assert after == pytest.approx(before / 2.0, rel=1e-9)


def table(path: Path) -> Material:
    """A reconstructed table without its power, which these tests do not need."""
    rows = read(path)
    material = gather(rows, *networks(rows)[0], "3080Ti")
    return replace(material, cap_unit="none", points=material.points.assign(power=np.nan))


def mean_error(material: Material, grouping: str) -> float:
    rows = fit_own.hold_out(material, fit_own.fit(material, utilisation=False), grouping)[
        "throughput_images_per_s"
    ]
    assert len(rows) == len(material.anchors)
    return float((rows - 1.0).abs().mean())


@pytest.mark.slow
@pytest.mark.needs("reference")
def test_whole_partitions_are_within_4_3_percent_in_the_median() -> None:
    """Each list of shares is held out with all its batches (A11)."""
    assert np.median([mean_error(table(path), "partition") for path in TABLES[::2]]) <= 0.043


@pytest.mark.needs("reference")
def test_the_memory_stage_keeps_the_a11_figures_in_the_median() -> None:
    stages = [fit_own.judge_memory_stage(table(path)) for path in TABLES]
    medians = {
        name: np.median([stage[name]["throughput_images_per_s"]["mape"] for stage in stages])
        for name in ("partition", "share", "batch")
    }
    assert len(stages) == 10
    assert medians["partition"] <= 0.043
    assert medians["share"] <= 0.043
    assert medians["batch"] <= 0.05
