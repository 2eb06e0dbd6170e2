"""From iterations to figures: which count, sums over sums, and what is missing stays missing."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.power.cells import (
    ABOVE,
    ABOVE_102,
    EXCESS,
    OVER_SLO,
    P95,
    PER_IMAGE,
    POWER,
    THROUGHPUT,
    WHOLE_102,
    figures_of,
    most_of,
    phases,
    steady,
)
from analysis.studies.power.report_terms import Capped, Iteration, Knobs, Tenant


def iteration(number: int, cap: float = 100.0, **said: object) -> Iteration:
    """Three seconds at 90 W and 200 images/s, unless said otherwise."""
    tenants = (Tenant(300.0, 10.0, 12.0, 14.0, 0.0), Tenant(300.0, 20.0, 24.0, 28.0, 0.5))
    one = Iteration(number, cap, 3.0, 200.0, tenants, Knobs(), Knobs(), 90.0, 95.0, 270.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    return replace(one, **said)  # type: ignore[arg-type]  # fields by name


def cell(*rows: Iteration) -> Capped:
    return Capped("c", "s", "task=1", "a", 1, 0, "replay", "W", "simulated", rows)


@pytest.mark.parametrize(("iterations", "first"), [(3, None), (4, 3), (5, 3), (6, 3), (7, 3), (8, 4), (60, 30)])
def test_steady_is_the_second_half_and_none_of_the_first_three(iterations: int, first: int | None) -> None:
    found = steady([iteration(at) for at in range(iterations)])
    assert [one.number for one in found] == ([] if first is None else list(range(first, iterations)))


def test_each_cap_of_a_schedule_has_its_own_way_to_it() -> None:
    """150 iterations under 200, 160 and 120 W: 25 of each 50 count."""
    rows = [iteration(at, cap) for at, cap in enumerate([200.0] * 50 + [160.0] * 50 + [120.0] * 50)]
    assert [len(one) for one in phases(rows)] == [50, 50, 50]
    assert [one.number for one in steady(rows)] == [*range(25, 50), *range(75, 100), *range(125, 150)]


@given(st.lists(st.sampled_from([100.0, 120.0]), max_size=40), st.randoms())
def test_no_reading_moves_the_rule(caps: list[float], chance: object) -> None:
    """Other powers, throughputs and latencies, the same iterations: else an algorithm could choose what it is judged by."""
    rows = [iteration(at, cap) for at, cap in enumerate(caps)]
    wild = [replace(one, power_mean=chance.random() * 500, throughput_images_per_s=1.0) for one in rows]  # type: ignore[attr-defined]
    assert [one.number for one in steady(rows)] == [one.number for one in steady(wild)]
    assert len(steady(rows)) <= len(rows)


def test_throughput_is_images_over_time_and_no_mean_of_rates() -> None:
    """1 s at 100 images/s and 3 s at 200: (100 + 600) / 4 = 175, where a mean of the rates would say 150."""
    rows = [iteration(at) for at in range(3)]
    rows += [iteration(3, measured_s=1.0, throughput_images_per_s=100.0), iteration(4, measured_s=3.0, throughput_images_per_s=200.0)]
    assert figures_of(cell(*rows))[THROUGHPUT] == pytest.approx(175)


def test_violations_are_parts_of_the_time_that_was_measured() -> None:
    """Of 6 steady seconds 1.5 above the cap, .6 of them above 1.02 times it; 9 W·s above in 6 s are 90 a minute."""
    rows = [iteration(at, above_cap_s=3.0, above_102_s=3.0) for at in range(3)]
    rows += [
        iteration(3, above_cap_s=1.5, above_102_s=0.6, above_cap_unit_s=9.0, above_cap_longest_s=1.2, above_cap_worst=8.0),
        iteration(4),
    ]
    found = figures_of(cell(*rows))
    assert found[ABOVE] == pytest.approx(0.25)
    assert found[ABOVE_102] == pytest.approx(0.1)
    assert found[EXCESS] == pytest.approx(90)
    assert found[WHOLE_102] == pytest.approx(9.6 / 15)
    assert most_of([cell(*rows)]) == {"above_cap_longest_s": 1.2, "above_cap_worst": 8.0}


def test_energy_and_latency() -> None:
    """540 J for 1,200 images; the slower process has a p95 of 24 ms; half of its half of the images is over the SLO."""
    found = figures_of(cell(*(iteration(at) for at in range(5))))
    assert found[PER_IMAGE] == pytest.approx(0.45)
    assert found[POWER] == pytest.approx(90)
    assert found[P95] == 24.0
    assert found[OVER_SLO] == pytest.approx(0.25)


def test_a_reading_that_is_missing_once_makes_its_figure_missing_and_no_other() -> None:
    rows = [*(iteration(at) for at in range(4)), iteration(4, power_mean=None, above_cap_s=None)]
    found = figures_of(cell(*rows))
    assert not {POWER, ABOVE} & found.keys()
    assert {THROUGHPUT, ABOVE_102, PER_IMAGE} <= found.keys()


def test_an_iteration_in_which_nothing_was_done_has_no_latency_and_counts_as_no_throughput() -> None:
    dead = iteration(4, throughput_images_per_s=0.0, tenants=(Tenant(0.0), Tenant(0.0)))
    found = figures_of(cell(*(iteration(at) for at in range(4)), dead))
    assert found[P95] == 24.0
    assert found[THROUGHPUT] == pytest.approx(100)


def test_too_few_iterations_have_no_figures() -> None:
    assert figures_of(cell(*(iteration(at) for at in range(3)))) == {}


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0, 1), st.floats(0, 1)), min_size=4, max_size=12))
def test_shares_stay_shares(rows: list[tuple[float, float, float]]) -> None:
    made = [iteration(at, measured_s=s, above_cap_s=s * part, above_102_s=s * part * more) for at, (s, part, more) in enumerate(rows)]
    found = figures_of(cell(*made))
    assert 0 <= found[ABOVE_102] <= found[ABOVE] + 1e-12 <= 1 + 1e-12
    assert math.isfinite(found[THROUGHPUT])


def test_a_process_that_told_no_latency_may_be_the_slowest() -> None:
    """It did a part of one batch that never ended: what the other told is not the worst. One that did nothing has none to tell."""
    slow = Tenant(3.0, None, None, None, 0.0)
    assert P95 not in figures_of(cell(*(iteration(at, tenants=(Tenant(300.0, 10.0, 12.0, 14.0, 0.0), slow)) for at in range(6))))
    idle = replace(slow, images=0.0)
    assert figures_of(cell(*(iteration(at, tenants=(Tenant(300.0, 10.0, 12.0, 14.0, 0.0), idle)) for at in range(6))))[P95] == 12.0
