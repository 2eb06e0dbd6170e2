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


@given(kernel_s=ANY_TIME, shorter=st.floats(0.2, 1.0))
def test_a_load_stays_long_enough_when_clocks_have_risen(kernel_s: float, shorter: float) -> None:
    """From 0.2 to 1 times as long as it was: it is not made shorter, and is long enough again."""
    times, again_s = device.long_enough(lambda n: shorter * kernel_s * n / 5000, kernel_s, 5000)
    assert times >= 5000
    assert again_s >= kernel_s * 0.999999


@pytest.mark.parametrize("clock_s", [0.0, 1e-9])
def test_a_clock_that_stands_ends_the_search(clock_s: float) -> None:
    with pytest.raises(ValueError, match="it does nothing, or the GPU's timer does not advance"):
        device.long_enough(lambda _: clock_s, 0.05)


@given(kernel_s=ANY_TIME, stretch_s=ANY_TIME)
def test_launches_fill_the_stretch_and_hardly_more(kernel_s: float, stretch_s: float) -> None:
    count = device.launches(kernel_s, stretch_s)
    assert count * kernel_s >= stretch_s * 0.999999
    assert (count - 1) * kernel_s <= stretch_s * 1.000001
