"""Arithmetic of a load: how long a kernel is made, on GPUs that are a straight line."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.studies.gpu import device

ANY_TIME = st.floats(1e-7, 10.0)


@given(before_s=st.floats(0, 1.0), each_s=st.floats(1e-13, 1e-4), wanted_s=ANY_TIME)
def test_a_kernel_is_as_long_as_wanted_and_not_twice_as_long(
    before_s: float, each_s: float, wanted_s: float
) -> None:
    """With any time before the squaring and any per squaring; the first guess may be too long."""
    asked: list[int] = []

    def run(times: int) -> float:
        asked.append(times)
        return before_s + each_s * times

    times, kernel_s = device.long_enough(run, wanted_s)
    assert kernel_s == run(times) >= wanted_s
    assert kernel_s < 2.001 * wanted_s or times == device.FIRST
    assert all(
        2 * few <= many <= device.GROWTH * few for few, many in itertools.pairwise(asked[:-1])
    )


@pytest.mark.parametrize("clock_s", [0.0, 1e-9])
def test_a_clock_that_stands_ends_the_search(clock_s: float) -> None:
    with pytest.raises(ValueError, match="it does nothing, or the GPU's timer does not advance"):
        device.long_enough(lambda _: clock_s, 0.05)
