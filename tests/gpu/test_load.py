"""Arithmetic of a load: how long a kernel is made, on GPUs that are a straight line; how often a counter of known rhythm is updated."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.bench_nvml_query_cost import follow, updates
from fixtures.studies.gpu import device

ANY_TIME = st.floats(1e-7, 10.0)


@given(before_s=st.floats(0, 1.0), each_s=st.floats(1e-13, 1e-4), wanted_s=ANY_TIME)
def test_a_kernel_is_as_long_as_wanted_and_not_twice_as_long(before_s: float, each_s: float, wanted_s: float) -> None:
    """On a GPU that takes so long before it squares, and so long for each squaring; the first guess may be too long already."""
    asked: list[int] = []

    def run(times: int) -> float:
        asked.append(times)
        return before_s + each_s * times

    times, kernel_s = device.long_enough(run, wanted_s)
    assert kernel_s == run(times) >= wanted_s
    assert kernel_s < 2.001 * wanted_s or times == device.FIRST
    assert all(2 * few <= many <= device.GROWTH * few for few, many in itertools.pairwise(asked[:-1]))


@given(kernel_s=ANY_TIME, shorter=st.floats(0.2, 1.0))
def test_what_was_long_enough_is_looked_at_again_when_clocks_have_risen(kernel_s: float, shorter: float) -> None:
    """From 0.2 to 1 times as long as it was: it is not made shorter, and is long enough again."""
    times, again_s = device.long_enough(lambda n: shorter * kernel_s * n / 5000, kernel_s, 5000)
    assert times >= 5000
    assert again_s >= kernel_s * 0.999999


@pytest.mark.parametrize("clock_s", [0.0, 1e-9])
def test_a_clock_that_stands_ends_the_search(clock_s: float) -> None:
    with pytest.raises(ValueError, match="it does nothing, or the GPU's clock stands"):
        device.long_enough(lambda _: clock_s, 0.05)


@given(kernel_s=ANY_TIME, stretch_s=ANY_TIME)
def test_launches_fill_the_stretch_and_hardly_more(kernel_s: float, stretch_s: float) -> None:
    count = device.launches(kernel_s, stretch_s)
    assert count * kernel_s >= stretch_s * 0.999999
    assert (count - 1) * kernel_s <= stretch_s * 1.000001


class Clock:
    """Time passes when it is looked at: so long each time."""

    def __init__(self, tick_s: float) -> None:
        self.now_s, self._tick_s = 0.0, tick_s

    def __call__(self) -> float:
        self.now_s += self._tick_s
        return self.now_s


@given(period_s=st.floats(0.02, 0.5), poll_s=st.floats(0.0005, 0.005))
def test_the_period_of_a_regular_counter_is_found_to_a_poll(period_s: float, poll_s: float) -> None:
    """A counter that goes up at each multiple of its period, asked for 40 of them."""
    clock = Clock(poll_s)
    seen = follow(lambda: int(clock.now_s / period_s), 40 * period_s, clock)
    assert seen.period_s == pytest.approx(period_s, abs=1.001 * poll_s)
    assert seen.shortest_s == pytest.approx(period_s, abs=1.001 * poll_s)
    assert seen.poll_s == pytest.approx(poll_s)
    assert seen.changes in {39, 40}


def test_a_value_that_stays_has_no_period_and_not_the_period_0() -> None:
    clock = Clock(0.01)
    seen = follow(lambda: 100, 1.0, clock)
    assert (seen.changes, seen.period_s, seen.shortest_s) == (0, None, None)


def test_too_few_changes_are_counted_and_give_no_period() -> None:
    assert updates([0, 1, 2, 3, 4], [1, 2, 3, 4, 5]).period_s is None
    assert updates([0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]).period_s == 1


@given(st.lists(st.tuples(st.floats(0.001, 1.0), st.none() | st.integers(0, 2)), max_size=60))
def test_a_missing_value_is_no_change(steps: list[tuple[float, int | None]]) -> None:
    """Left out altogether: as many changes as without it."""
    times = list(itertools.accumulate(gap for gap, _ in steps))
    values = [value for _, value in steps]
    there = [(at, value) for at, value in zip(times, values, strict=True) if value is not None]
    assert updates(times, values).changes == updates([at for at, _ in there], [value for _, value in there]).changes
