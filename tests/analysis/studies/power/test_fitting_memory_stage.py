"""How well throughput is known once memory utilisation was measured: a stage by itself, with the rows that it is judged on held out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.studies.power import held_out, traces
from analysis.studies.power.material import Material, gather, networks
from analysis.studies.power.traces import PartitionRow
from tests.conftest import REFERENCE

SETS = sorted((REFERENCE / "pctodl").glob("reconstructed_anchor_*.csv"))


@pytest.fixture(scope="module")
def material() -> Material:
    """T = 30·U^.7·b^.3, and U drawn at random: who knows the partition alone knows nothing."""
    chance = np.random.default_rng(20261122)
    rows = []
    for share in (10.0, 20.0, 40.0):
        for count in (1, 2, 3):
            for batch in (4, 8, 16, 32):
                memory = float(chance.uniform(5.0, 95.0))
                throughput = 30.0 * memory**0.7 * batch**0.3
                rows.append(
                    PartitionRow(
                        "net",
                        (share,) * count,
                        (batch,) * count,
                        sm_mhz=1950.0,
                        mem_util_percent=memory,
                        throughput_images_per_s=throughput,
                    )
                )
    return gather(rows, "net", 0.0, "made")


@pytest.mark.parametrize("grouping", ["partition", "share", "batch", "processes"])
def test_a_power_law_is_found_again_whatever_is_held_out(material: Material, grouping: str) -> None:
    rows = held_out.by_memory(material, held_out.GROUPINGS[grouping])
    assert len(rows) == len(material.anchors)
    assert max(abs(row.ratio - 1.0) for row in rows) < 0.02


def test_rows_that_are_held_out_have_no_say_in_what_is_predicted_of_them(material: Material) -> None:
    """Twice the measured throughput of batch 32 halves predicted/measured there: the prediction is the same."""
    key = held_out.GROUPINGS["batch"]
    twice = tuple(
        replace(point, throughput_images_per_s=2.0 * point.throughput_images_per_s) if point.partition.batches[0] == 32 else point
        for point in material.anchors
    )
    before, after = (
        [row.ratio for row in held_out.by_memory(its, key) if row.group == (32,)] for its in (material, replace(material, anchors=twice))
    )
    assert after == pytest.approx([one / 2.0 for one in before], rel=1e-9)


def test_anchors_without_a_memory_utilisation_are_in_no_group_and_too_few_with_one_are_not_judged(material: Material) -> None:
    some = tuple(replace(point, mem_util_percent=None) if place % 3 else point for place, point in enumerate(material.anchors))
    assert held_out.judge_memory_stage(replace(material, anchors=some))["batch"]["throughput_images_per_s"]["rows"] == 12
    none = tuple(replace(point, mem_util_percent=None) for point in material.anchors)
    assert held_out.judge_memory_stage(replace(material, anchors=none)) == {}


@pytest.mark.needs("reference")
@pytest.mark.parametrize(("grouping", "most"), [("partition", 0.043), ("share", 0.043), ("batch", 0.05)])
def test_the_stage_keeps_the_figures_of_a11_in_the_median_of_ten_tables(grouping: str, most: float) -> None:
    """Lists of shares, and all of one share alike; the tables are the regressors' answers, computed from memory utilisation."""
    errors = []
    for path in SETS:
        rows = traces.read(path)
        its = held_out.by_memory(gather(rows, *networks(rows)[0], "3080Ti"), held_out.GROUPINGS[grouping])
        errors.append(np.mean([abs(row.ratio - 1.0) for row in its]))
    assert len(errors) == 10
    assert np.median(errors) <= most
