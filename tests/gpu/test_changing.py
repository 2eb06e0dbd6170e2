"""How often a counter is updated, told from what it said: arithmetic, on counters whose rhythm is known."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.studies.gpu import load


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
    seen = load.follow(lambda: int(clock.now_s / period_s), 40 * period_s, clock)
    assert seen.period_s == pytest.approx(period_s, abs=1.001 * poll_s)
    assert seen.shortest_s == pytest.approx(period_s, abs=1.001 * poll_s)
    assert seen.poll_s == pytest.approx(poll_s)
    assert seen.changes in {39, 40}


def test_a_value_that_stays_has_no_period_and_not_the_period_0() -> None:
    clock = Clock(0.01)
    seen = load.follow(lambda: 100, 1.0, clock)
    assert (seen.changes, seen.period_s, seen.shortest_s) == (0, None, None)


def test_too_few_changes_are_counted_and_give_no_period() -> None:
    assert load.updates([0, 1, 2, 3, 4], [1, 2, 3, 4, 5]).period_s is None
    assert load.updates([0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]).period_s == 1


@given(st.lists(st.tuples(st.floats(0.001, 1.0), st.none() | st.integers(0, 2)), max_size=60))
def test_a_missing_value_is_no_change(steps: list[tuple[float, int | None]]) -> None:
    """Left out altogether: as many changes as without it."""
    times = list(itertools.accumulate(gap for gap, _ in steps))
    values = [value for _, value in steps]
    there = [(at, value) for at, value in zip(times, values, strict=True) if value is not None]
    assert load.updates(times, values).changes == load.updates([at for at, _ in there], [value for _, value in there]).changes
