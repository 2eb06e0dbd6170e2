"""How far a draw was above its cap: time, area, the longest stretch, the worst reading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.studies.power.capped import above, mean

WINDOWS = st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(0.0, 400.0)), min_size=1, max_size=30)


def draw_of(windows: list[tuple[float, float]]) -> tuple[list[tuple[float, float]], float]:
    """Samples that stand for so long each, and how long that is together."""
    at_s, draw = 0.0, []
    for lasted_s, value in windows:
        at_s += lasted_s
        draw.append((at_s, value))
    return draw, at_s


def test_a_sample_stands_for_the_time_since_the_one_before_and_the_last_for_what_is_left() -> None:
    """100 W for 1 s, 130 for 1 s, 125 for 0.5 s, 110 for 0.5 s and the rest of 0.5 s, under 120 W: 10 + 2.5 W s above it in 1.5 s."""
    over = above([(1.0, 100.0), (2.0, 130.0), (2.5, 125.0), (3.0, 110.0)], 120.0, 3.5)
    assert over is not None
    assert (over.seconds, over.unit_s, over.longest_s, over.worst) == pytest.approx((1.5, 12.5, 1.5, 10.0))
    assert over.seconds_102 == pytest.approx(1.5)  # 122.4 W
    assert mean([(1.0, 100.0), (2.0, 130.0), (2.5, 125.0), (3.0, 110.0)], 3.5) == pytest.approx((100 + 130 + 62.5 + 110) / 3.5)


def test_a_reading_within_two_percent_is_above_the_cap_and_not_above_its_tolerance() -> None:
    over = above([(1.0, 101.0), (2.0, 103.0)], 100.0, 2.0)
    assert over is not None
    assert (over.seconds, over.seconds_102) == (2.0, 1.0)


def test_the_longest_stretch_ends_where_the_draw_is_at_the_cap() -> None:
    over = above([(1.0, 110.0), (2.0, 100.0), (3.0, 105.0), (5.0, 101.0)], 100.0, 5.0)
    assert over is not None
    assert (over.seconds, over.longest_s) == (4.0, 3.0)


def test_without_a_reading_nothing_is_said() -> None:
    """Not that there was no violation."""
    assert above([], 100.0, 3.0) is None
    assert mean([], 3.0) is None


@given(WINDOWS, st.floats(1.0, 400.0))
def test_area_time_and_worst_bound_each_other(windows: list[tuple[float, float]], cap: float) -> None:
    """The area is at most the worst excess for all the time above; the longest stretch is part of that time, and that of the window."""
    draw, whole_s = draw_of(windows)
    over = above(draw, cap, whole_s)
    assert over is not None
    near = 1 + 1e-9
    assert 0 <= over.longest_s <= over.seconds * near <= whole_s * near**2
    assert over.seconds_102 <= over.seconds * near
    assert over.unit_s <= over.worst * over.seconds * near + 1e-9
    assert (over.seconds > 0) == any(value > cap for _, value in windows)
    average = mean(draw, whole_s)
    assert average is not None
    assert average - cap <= over.unit_s / whole_s + 1e-6


@given(WINDOWS, st.floats(1.0, 400.0), st.integers(2, 4))
def test_a_sensor_that_is_read_more_often_says_the_same(windows: list[tuple[float, float]], cap: float, times: int) -> None:
    """A value read several times while it stands is no more of a violation."""
    draw, whole_s = draw_of(windows)
    finer, _ = draw_of([(lasted_s / times, value) for lasted_s, value in windows for _ in range(times)])
    once, often = above(draw, cap, whole_s), above(finer, cap, whole_s)
    assert once is not None
    assert often is not None
    assert (often.seconds, often.unit_s, often.longest_s) == pytest.approx((once.seconds, once.unit_s, once.longest_s), abs=1e-6)
