"""From iterations to figures: which count, sums over sums, and missing stays missing."""

from __future__ import annotations

import math
from typing import Any

import pytest

from analysis.studies.power.figures import (
    ABOVE,
    ABOVE_102,
    EXCESS,
    OVER_SLO,
    P95,
    PER_IMAGE,
    POWER,
    THROUGHPUT,
    WHOLE_102,
    figures,
    iterations,
)
from analysis.terms import Cell


def tenant(
    images: float, p95_ms: float | None, over_slo_share: float | None = 0.0
) -> dict[str, float | None]:
    return {"images": images, "latency_p95_ms": p95_ms, "over_slo_share": over_slo_share}


def iteration(cap: float = 100.0, **told: object) -> dict[str, Any]:
    """Three seconds at 90 W and 200 images/s by default."""
    above = dict.fromkeys(
        (
            "above_cap_s",
            "above_102_s",
            "above_cap_unit_s",
            "above_cap_longest_s",
            "above_cap_worst",
        ),
        0.0,
    )
    return {
        "cap": cap,
        "cap_unit": "W",
        "backend": "replay",
        "power_source": "simulated",
        "measured_s": 3.0,
        "throughput_images_per_s": 200.0,
        "tenants": [tenant(300.0, 12.0), tenant(300.0, 24.0, 0.5)],
        "power_mean": 90.0,
        "power_max": 95.0,
        "energy_j": 270.0,
        **above,
        **told,
    }


def cell(*rows: dict[str, Any]) -> Cell:
    told = tuple({"iteration": number, **row} for number, row in enumerate(rows))
    return Cell("c", "s", "w", "stock", 1, 0, "measured", report={"iteration": told})


def steady(*rows: dict[str, Any]) -> list[int]:
    return [row["number"] for row in iterations(cell(*rows), "made.json") if row["steady"]]


def found(*rows: dict[str, Any]) -> dict[str, float]:
    return {
        name: value
        for name, value in figures(iterations(cell(*rows), "x")).items()
        if not math.isnan(value)
    }


@pytest.mark.parametrize(("rows", "first"), [(3, 3), (4, 3), (6, 3), (7, 3), (8, 4), (60, 30)])
def test_steady_is_the_second_half_and_none_of_the_first_three(rows: int, first: int) -> None:
    assert steady(*([iteration()] * rows)) == list(range(first, rows))


def test_each_cap_of_a_schedule_has_its_own_way_to_it() -> None:
    """150 iterations under 200, 160 and 120 W: 25 of each 50 count."""
    caps = [200.0] * 50 + [160.0] * 50 + [120.0] * 50
    assert steady(*map(iteration, caps)) == [*range(25, 50), *range(75, 100), *range(125, 150)]


def test_throughput_is_images_over_time_and_no_mean_of_rates() -> None:
    """1 s at 100 images/s and 3 s at 200: (100 + 600) / 4 = 175; the mean of rates is 150."""
    slow = iteration(measured_s=1.0, throughput_images_per_s=100.0)
    assert found(*[iteration()] * 3, slow, iteration())[THROUGHPUT] == pytest.approx(175)


def test_violations_are_parts_of_the_time_that_was_measured() -> None:
    """Of 6 steady seconds 1.5 above the cap, .6 above 1.02 times; 9 W·s in 6 s are 90 a minute."""
    above = iteration(above_cap_s=1.5, above_102_s=0.6, above_cap_unit_s=9.0)
    result = found(*[iteration(above_cap_s=3.0, above_102_s=3.0)] * 3, above, iteration())
    expected = {ABOVE: 0.25, ABOVE_102: 0.1, EXCESS: 90, WHOLE_102: 9.6 / 15}
    assert {name: result[name] for name in expected} == pytest.approx(expected)


def test_energy_and_latency() -> None:
    """540 J for 1,200 images; p95 24 ms in the slower process; half of its half exceeds the SLO."""
    result = found(*[iteration()] * 5)
    expected = {PER_IMAGE: 0.45, POWER: 90, P95: 24, OVER_SLO: 0.25}
    assert {name: result[name] for name in expected} == pytest.approx(expected)


def test_one_missing_reading_makes_its_figure_alone_missing() -> None:
    result = found(*[iteration()] * 4, iteration(power_mean=None, above_cap_s=None))
    assert not {POWER, ABOVE} & result.keys()
    assert {THROUGHPUT, ABOVE_102, PER_IMAGE} <= result.keys()


@pytest.mark.parametrize(("images", "p95_ms"), [(3.0, None), (0.0, 12.0)])
def test_a_process_that_told_no_latency_may_be_the_slowest(
    images: float, p95_ms: float | None
) -> None:
    """It did a part of one batch that never ended: the other's is not the worst.

    An idle process has no latency.
    """
    tenants = [tenant(300.0, 12.0), tenant(images, None)]
    assert found(*[iteration(tenants=tenants)] * 6).get(P95) == p95_ms
