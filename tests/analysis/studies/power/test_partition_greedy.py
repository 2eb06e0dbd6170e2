"""The original's greedy partitioner: properties that a toy model can show.

Its own answers: test_partition_reference.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.power.greedy import greedy, greedy_batches
from control.power.terms import Infeasible
from tests.analysis.studies.power.toy import GPU, Toy, by_memory, partition

BOTH = by_memory(Toy(9501.0), Toy(5001.0))


@pytest.mark.parametrize(
    ("share", "network", "batches"),
    [
        (5, "resnet50", [4, 8, 16, 32]),
        (15, "resnet50", [16, 32, 64, 96]),  # from 12 to 96
        (40, "resnet50", [32, 64, 96, 128, 192, 256]),
        (100, "resnet50", [96, 128, 192, 256]),
        (40, "vgg19", [32, 64, 96, 128]),  # 192 does not fit into memory
    ],
)
def test_a_share_has_batches_of_0_8_to_6_4_images_a_percent(
    share: int, network: str, batches: list[int]
) -> None:
    assert greedy_batches(share, network) == batches


@given(cap_w=st.floats(110, 330), fast=st.booleans())
def test_the_whole_share_is_used_at_a_clock_that_keeps_the_cap(
    cap_w: float,
    fast: bool,  # noqa: FBT001
) -> None:
    """Under caps that the whole GPU keeps at the floor of the search."""
    found = greedy(BOTH, GPU, cap_w, network="none", fast=fast)
    assert sum(found.setting.partition.shares) == 100
    assert found.setting.mem_mhz in BOTH
    assert found.power_w <= cap_w + 1
    if fast:
        assert found.setting.sm_mhz in GPU.sm_mhz


def test_a_loose_cap_searches_all_on_both_memory_clocks() -> None:
    """A model that charges each process prefers one process; then nothing is left to assign."""
    costly = by_memory(*(replace(one, likes=-1000.0) for one in BOTH.values()))
    found = greedy(costly, GPU, 1000.0, network="none")
    first = sum(len(greedy_batches(share, "none")) for share in range(5, 101, 5))
    share = int(found.setting.partition.shares[0])
    rest = sum(len(greedy_batches(one, "none")) for one in range(5, 100 - share + 1, 5))
    assert found.evaluations >= 2 * (first + rest)
    assert found.setting.sm_mhz == 2100


def test_left_over_share_is_handed_out_and_the_clock_stays() -> None:
    """Two processes of 5 % just fit at the lowest searched clock, but not with all the share."""
    model = Toy(5001.0)
    two = partition((5.0, 32), (5.0, 32))
    cap_w = float(model.power_w(model.anchor([two]), np.array([500.0]))[0]) + 0.01
    found = greedy(
        by_memory(model),
        replace(GPU, searched_mem_mhz=(5001.0,)),
        cap_w,
        network="none",
        fast=False,
    )
    assert sum(found.setting.partition.shares) == 100
    assert not found.feasible
    assert max(found.setting.partition.shares) - min(found.setting.partition.shares) <= 10


@pytest.mark.parametrize("margin_w", [0.0, 7.5])
def test_a_cap_below_the_floor_is_refused_with_the_smallest_cap(margin_w: float) -> None:
    with pytest.raises(Infeasible, match="smallest cap is") as refused:
        greedy(BOTH, GPU, 60.0, network="none", margin_w=margin_w)
    smallest_w = refused.value.smallest_cap or 0.0
    assert (
        greedy(BOTH, GPU, smallest_w + 1e-6, network="none", margin_w=margin_w).setting.mem_mhz
        == 5001
    )
    with pytest.raises(Infeasible):
        greedy(BOTH, GPU, smallest_w - 1e-6, network="none", margin_w=margin_w)


def test_a_margin_is_the_same_as_a_smaller_cap() -> None:
    one, other = (
        greedy(BOTH, GPU, 150.0, network="none", margin_w=20.0),
        greedy(BOTH, GPU, 130.0, network="none"),
    )
    assert one == other
