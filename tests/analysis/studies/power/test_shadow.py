"""The shadow optimiser: partitions it examines, its moves, and its learning."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.power import parameters
from control.power import algorithms
from control.power.plant import Mismatch, Plant
from control.power.shadow import BATCHES, Shadow, around, bounds
from control.power.tables import partition_of
from control.power.terms import Partition, Question, Settings
from tests.analysis.studies.power.made_control import KNOBS, question, seen, tenants
from tests.analysis.studies.power.playing import play, reader, tables_for
from tests.conftest import REFERENCE

PCTODL = REFERENCE / "pctodl"
ANY = replace(KNOBS, batches=BATCHES)
HERE = Partition((40.0, 35.0, 25.0), (64, 32, 16))


@pytest.fixture
def shadow(place: Path) -> Shadow:
    asked = replace(question("pctodl", place), shadow=True)
    return Shadow(tables_for(str(place), "made_up", "3080Ti"), asked)


def test_it_tries_shares_batches_and_processes_split_or_merged() -> None:
    found = around(HERE, "resnet50", ANY)
    assert Partition((45.0, 30.0, 25.0), HERE.batches) in found  # 5 % to the largest
    assert Partition((35.0, 35.0, 30.0), HERE.batches) in found  # 5 % from it
    assert Partition(HERE.shares, (64, 32, 28)) in found  # three rungs up
    assert Partition((40.0, 60.0), (64, 48)) in found  # the two smallest as one
    assert Partition((20.0, 20.0, 35.0, 25.0), (32, 32, 32, 16)) in found  # the largest as two
    assert HERE not in found


shares = (
    st.lists(st.integers(1, 8), min_size=1, max_size=10)
    .map(lambda parts: tuple(5.0 * part for part in parts))
    .filter(lambda parts: sum(parts) <= 100)
)


@given(shares, st.data())
def test_all_it_looks_at_can_be_set_and_takes_no_more_of_the_gpu(
    parts: tuple[float, ...], data: st.DataObject
) -> None:
    here = Partition(parts, tuple(data.draw(st.sampled_from(BATCHES)) for _ in parts))
    for one in around(here, "vgg19", ANY):
        assert sum(one.shares) == sum(parts)
        assert min(one.shares) >= 5
        assert 1 <= len(one.shares) <= 10
        changed = set(zip(one.shares, one.batches, strict=True)) - set(
            zip(here.shares, here.batches, strict=True)
        )
        if len(one.shares) != len(parts) or one.shares == parts:
            assert all(
                bounds(share, "vgg19")[0] <= batch <= max(bounds(share, "vgg19")) <= 160
                for share, batch in changed
            )


def test_below_the_cap_it_looks_every_third_iteration_after_five(shadow: Shadow) -> None:
    now = Settings(tenants((40, 64), (35, 32), (25, 16)), sm_mhz=1110.0, mem_mhz=5001.0)
    looked = []
    for at in range(12):
        power = 201.0 if at == 8 else 150.0
        before = shadow.updates
        shadow.moved(replace(seen(now, power), iteration=at))
        looked.append(shadow.updates > before)
    assert [at for at, one in enumerate(looked) if one] == [5, 11]


def test_it_learns_what_the_model_misses(shadow: Shadow) -> None:
    """The device beats the model by 300 images/s with three processes, and matches it elsewhere."""
    for at in range(30):
        three = at % 2 == 0
        now = Settings(
            tenants((40, 64), (35, 32), (25, 16)) if three else tenants((50, 64), (50, 32)),
            sm_mhz=1110.0 + 15 * (at % 5),
            mem_mhz=5001.0,
        )
        curve = shadow.tables.curve(5001.0, partition_of(now.tenants))
        state = shadow.tables.platform.sm_mhz.index(now.sm_mhz or 0.0)
        gives = float(curve.throughput_images_per_s[state]) + (300.0 if three else 0.0)
        shadow.moved(
            replace(
                seen(now, float(curve.power_w[state])), iteration=0, throughput_images_per_s=gives
            )
        )
    points = np.array([shadow.seen[0][0], shadow.seen[1][0]])
    missed, _ = shadow._residual(points, 1)
    assert missed == pytest.approx([300.0, 0.0], abs=15)


@pytest.mark.needs("reference")
def test_beside_pctodl_it_moves_the_partition_on_its_way() -> None:
    (task,) = (one for one in parameters.read_tasks() if one.id == 12)
    tables = tables_for(str(PCTODL), task.model, task.gpu)
    asked = Question(
        "pctodl",
        task.gpu,
        task.model,
        task.caps,
        KNOBS,
        shadow=True,
        models=reader(str(PCTODL), task.model, task.gpu),
    )
    rows = play(
        asked,
        algorithms.at_work(asked),
        Plant(tables, Mismatch(noise_w=2.0, seed=2), KNOBS.batches),
        iterations=12,
    )
    assert any(row.why == "shadow optimiser" for row in rows)
    assert len({row.settings.tenants for row in rows}) > 1


def test_its_threshold_rises_from_10_percent_less_to_2_more(shadow: Shadow) -> None:
    found = []
    for updates in (0, 250, 500, 100_000):
        shadow.updates = updates
        found.append(shadow.threshold())
    assert found == pytest.approx([-0.10, -0.05, 0.0, 0.02])
