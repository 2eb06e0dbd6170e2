"""Rates of one monitor: the order is found, contradicted or left open, and one sample's cost is what it was made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from scipy.stats import page_trend_test

from analysis.load import from_json
from analysis.studies.monitors.study import overheads
from tests.made_monitoring import PROCESSES, THREADS, MadeMonitoring, Monitor, monitored_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from analysis.studies.monitors.terms import Dose


def doses(*monitors: Monitor, blocks: int = 12) -> tuple[Dose, ...]:
    return overheads(from_json(monitored_run(MadeMonitoring(monitors=monitors, blocks=blocks, seed=5)), "made.json"))[0].doses


def costing(*costs: float) -> tuple[Monitor, ...]:
    return tuple(replace(one, cost=cost) for one, cost in zip(THREADS, costs, strict=True))


@pytest.mark.parametrize(
    ("costs", "trend", "in_order"),
    [
        ([one.cost for one in THREADS], "holds", True),
        ((0.02, 0.01, 0.13), "holds", False),  # as a whole
        ((0.13, 0.05, 0.0), "contradicted", False),
    ],
)
def test_how_cost_goes_with_the_rate(costs: tuple[float, ...], trend: str, in_order: bool) -> None:  # noqa: FBT001  # a case
    (one,) = doses(*costing(*costs))
    assert one.rates_per_s == (1.0, 10.0, 100.0)
    assert one.arms[-1] == "psutil_thread:interval_s=0.01"
    assert one.trend == trend
    shown, other = (one.p, one.p_against) if trend == "holds" else (one.p_against, one.p)
    assert shown < 0.025 < other
    assert (sorted(one.means) == list(one.means)) == in_order


def test_equal_costs_are_not_shown_to_rise() -> None:
    (one,) = doses(*costing(0.01, 0.01, 0.01))
    assert one.trend == "not shown"


def test_of_two_rates_each_block_says_which_was_dearer() -> None:
    """Twelve blocks of twelve: 1/2^12 = 0.00024."""
    (one,) = doses(PROCESSES[0], replace(PROCESSES[1], cost=0.05))
    assert one.test == "sign test"
    assert one.p == pytest.approx(2**-12)


def test_the_cost_of_a_sample_is_that_of_all_cpu() -> None:
    """15 % of a core at 100 samples a second are 1.5 ms each, and 1 % of the workload's 5 s over 510 samples another 0.1 ms."""
    (one,) = doses(*PROCESSES)
    assert one.per_sample_s is not None
    assert one.per_sample_s.value == pytest.approx(1.6e-3, rel=0.1)
    assert one.per_sample_s.n == 12


@pytest.mark.parametrize("intervals_s", [(1.0, 0.01), (1.0, 0.1, 0.01)])
def test_a_start_is_no_part_of_what_a_sample_costs(intervals_s: tuple[float, ...]) -> None:
    """0.1 ms a sample as made, and 0.1 s of start whatever the rate: a line through none would give 0.3 ms with the two rates."""
    made = [
        Monitor(f"top:interval_s={each:g}", "beside", core=1e-4 / each, params={"interval_s": each}, start_cpu_s=0.1)
        for each in intervals_s
    ]
    saved = monitored_run(MadeMonitoring(monitors=made, blocks=12, cell_sd=1e-5, seed=5))
    (one,) = overheads(from_json(saved, "made.json"))[0].doses
    assert one.per_sample_s is not None
    assert one.per_sample_s.value == pytest.approx(1e-4, rel=0.1)


def test_a_single_rate_has_no_order() -> None:
    assert doses(THREADS[0]) == ()


def test_pages_test_counts_a_block_as_a_judge() -> None:
    """Page (1963): three blocks that all rank three rates alike; exact p = (1/6)^3."""
    table = [[1.0, 2.0, 3.0]] * 3
    assert page_trend_test(table).pvalue == pytest.approx((1 / 6) ** 3)
    (one,) = doses(*THREADS, blocks=3)
    assert one.p == pytest.approx((1 / 6) ** 3)


def test_sentences(snapshot: SnapshotAssertion) -> None:
    two = (PROCESSES[0], replace(PROCESSES[1], cost=0.05))
    cases = (THREADS, costing(0.13, 0.05, 0.0), costing(0.01, 0.01, 0.01), costing(0.02, 0.01, 0.13), PROCESSES, two)
    assert [one.sentence for monitors in cases for one in doses(*monitors)] == snapshot
