"""The original's greedy partitioner: properties that a toy model can show.

Its own answers: test_partition_reference.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from control.power.greedy import greedy
from tests.analysis.studies.power.toy import GPU, Toy, by_memory, partition

BOTH = by_memory(Toy(9501.0), Toy(5001.0))


@given(cap_w=st.floats(110, 330), fast=st.booleans())
def test_the_whole_share_is_used_at_a_clock_that_keeps_the_cap(
    cap_w: float,
    fast: bool,  # noqa: FBT001
) -> None:
    found = greedy(BOTH, GPU, cap_w, network="none", fast=fast)
    assert sum(found.setting.partition.shares) == 100
    assert found.setting.mem_mhz in BOTH
    assert found.power_w <= cap_w + 1
    if fast:
        assert found.setting.sm_mhz in GPU.sm_mhz


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
