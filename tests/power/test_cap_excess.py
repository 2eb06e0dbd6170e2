"""A draw's excess over its cap: time, area, the longest stretch, the worst reading."""

from __future__ import annotations

import pytest

from fixtures.studies.power.capped import above, mean

FIELDS = (
    "above_cap_s",
    "above_cap_unit_s",
    "above_cap_longest_s",
    "above_cap_worst",
    "above_102_s",
)


def over(draw: list[tuple[float, float]], cap: float, measured_s: float) -> tuple[float, ...]:
    """Seconds, area, longest stretch, worst reading, seconds above 1.02 of the cap."""
    row = above(draw, cap, measured_s)
    return tuple(float(str(row[name])) for name in FIELDS)


@pytest.mark.parametrize(
    ("draw", "cap", "measured_s", "expected"),
    [
        # 100 W for 1 s, 130 for 1 s, 125 for 0.5 s, 110 for 0.5 s and the rest of 0.5 s: 10 + 2.5 W
        # s above 120 W in 1.5 s.
        (
            [(1.0, 100.0), (2.0, 130.0), (2.5, 125.0), (3.0, 110.0)],
            120.0,
            3.5,
            (1.5, 12.5, 1.5, 10.0, 1.5),
        ),
        ([(1.0, 101.0), (2.0, 103.0)], 100.0, 2.0, (2.0, 4.0, 2.0, 3.0, 1.0)),
        (
            [(1.0, 110.0), (2.0, 100.0), (3.0, 105.0), (5.0, 101.0)],
            100.0,
            5.0,
            (4.0, 17.0, 3.0, 10.0, 2.0),
        ),
    ],
    ids=[
        "a sample stands for the time before it",
        "within 2 % is above the cap alone",
        "a stretch ends at the cap",
    ],
)
def test_what_is_above_a_cap(
    draw: list[tuple[float, float]], cap: float, measured_s: float, expected: tuple[float, ...]
) -> None:
    assert over(draw, cap, measured_s) == pytest.approx(expected)


def test_the_mean_is_over_time() -> None:
    assert mean([(1.0, 100.0), (2.0, 130.0), (2.5, 125.0), (3.0, 110.0)], 3.5) == pytest.approx(
        (100 + 130 + 62.5 + 110) / 3.5
    )


def test_without_a_reading_nothing_is_said() -> None:
    assert above([], 100.0, 3.0) == dict.fromkeys(FIELDS)
    assert mean([], 3.0) is None
