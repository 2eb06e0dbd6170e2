"""A tenant's wait, and the part of its batches that counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.studies.power.tenant import (
    Span,
    images_within,
    wait_of_cores_s,
    wait_of_duty_s,
)


def test_a_quarter_duty_rests_three_times_as_long_as_it_works() -> None:
    """0.2 s of work in 0.8 s."""
    assert wait_of_duty_s(0.2, 0.25) == pytest.approx(0.6)
    assert wait_of_duty_s(0.2, 1.0) == 0


def test_half_a_core_waits_until_twice_its_cpu_time_has_gone_by() -> None:
    """1 s of CPU time in 1.4 s so far: 0.6 s to go.

    One that was kept off the cores by others has waited already.
    """
    assert wait_of_cores_s(1.0, 1.4, 0.5) == pytest.approx(0.6)
    assert wait_of_cores_s(1.0, 3.0, 0.5) == 0


def test_a_batch_counts_in_proportion_to_its_part_in_the_window() -> None:
    """8 images from 0 to 2 s, 8 from 2 to 4 s with a wait until 6 s; from 1 to 3 s: 4 + 2."""
    spans = [Span(0, 2, 2), Span(2, 4, 6)]
    assert images_within(spans, 8, 1, 3) == pytest.approx(4 + 2)


@given(
    st.lists(st.floats(1e-3, 3), min_size=1, max_size=40), st.floats(0.05, 1), st.integers(1, 64)
)
def test_over_all_of_its_time_every_image_counts_once(
    lengths: list[float], duty: float, batch: int
) -> None:
    spans, at_s = [], 0.0
    for length in lengths:
        spans.append(Span(at_s, at_s + length, at_s + length + wait_of_duty_s(length, duty)))
        at_s = spans[-1].next_s
    assert images_within(spans, batch, 0, at_s) == pytest.approx(batch * len(lengths), rel=1e-6)
    halves = images_within(spans, batch, 0, at_s / 3) + images_within(spans, batch, at_s / 3, at_s)
    assert halves == pytest.approx(batch * len(lengths), rel=1e-6)
