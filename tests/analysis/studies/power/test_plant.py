"""The simulated GPU: mismatched, late, noisy, and faulty as requested."""

from __future__ import annotations

from dataclasses import replace
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from control.errors import Refused
from control.power.plant import IDLE_PART, SMALLEST, Mismatch
from control.power.tables import partition_of
from control.power.terms import Settings
from tests.analysis.studies.power import made_control
from tests.analysis.studies.power.made_control import tenants
from tests.analysis.studies.power.playing import tables_for

TWO = Settings(tenants((25, 16), (75, 32)), sm_mhz=1110.0, mem_mhz=5001.0)


def modelled(place: Path, now: Settings) -> tuple[float, float]:
    """Images/s and watts of settings, by the model."""
    tables = tables_for(str(place), "made_up", "3080Ti")
    curve = tables.curve(now.mem_mhz or 9501.0, partition_of(now.tenants))
    state = tables.platform.sm_mhz.index(now.sm_mhz or 1950.0)
    return float(curve.throughput_images_per_s[state]), float(curve.power_w[state])


# --- how it differs from the model


def test_without_mismatch_it_is_what_the_model_says(place: Path) -> None:
    device = made_control.plant(place)
    assert device.apply(TWO) == (TWO, ())
    ran = device.run(3.0)
    images, power = modelled(place, TWO)
    assert ran.throughput_images_per_s == pytest.approx(images)
    assert set(ran.readings_w) == {power}
    assert ran.images == pytest.approx((3.0 * images / 4, 3.0 * images * 3 / 4))
    assert ran.latency_ms == pytest.approx((1000 * 16 / (images / 4), 1000 * 32 / (images * 3 / 4)))


@pytest.mark.parametrize(
    ("seed", "power_gain", "image_gain"),
    [(1, 1.08, 0.92), (2, 0.92, 1.08), (3, 1.08, 1.08), (4, 0.92, 0.92)],
)
def test_the_seed_makes_the_whole_error_positive_or_negative(
    place: Path, seed: int, power_gain: float, image_gain: float
) -> None:
    device = made_control.plant(place, Mismatch(gain_error=0.08, seed=seed))
    device.apply(TWO)
    ran = device.run(1.0)
    images, power = modelled(place, TWO)
    assert ran.readings_w[-1] == pytest.approx(power_gain * power)
    assert ran.throughput_images_per_s == pytest.approx(image_gain * images)


def test_power_follows_late_by_its_time_constant(place: Path) -> None:
    """From idle: half of what the smallest tenant draws at the lowest clock.

    After 2 s a part of 1/e of the way is missing.
    """
    device = made_control.plant(place, Mismatch(lag_s=2.0))
    device.apply(TWO)
    ran = device.run(2.0)
    power = modelled(place, TWO)[1]
    idle = IDLE_PART * float(
        tables_for(str(place), "made_up", "3080Ti").curve(9501.0, SMALLEST).power_w[0]
    )
    assert ran.true_w[-1] == pytest.approx(power + (idle - power) * exp(-1))
    assert device.run(0.1).true_w[-1] == pytest.approx(power + (idle - power) * exp(-2.1 / 2))


def test_readings_scatter_as_asked_in_steps_of_a_tenth_of_a_watt(place: Path) -> None:
    device = made_control.plant(place, Mismatch(noise_w=2.0))
    device.apply(TWO)
    ran = device.run(200.0)
    off = ran.readings_w - ran.true_w
    assert np.std(off) == pytest.approx(2.0, rel=0.1)
    assert np.mean(off) == pytest.approx(0.0, abs=4 * 2 / 2000**0.5)
    assert ran.readings_w * 10 == pytest.approx(np.round(ran.readings_w * 10))


# --- what is refused, what fails


def test_what_is_refused_is_said_and_stays_as_it_was(place: Path) -> None:
    device = made_control.plant(place, Mismatch(refuse_clocks=(1155.0,)))
    device.apply(TWO)
    messages: list[str] = []
    for knob in (
        {"sm_mhz": 1155.0},
        {"sm_mhz": 1111.0},
        {"mem_mhz": 810.0},
        {"power_limit_w": 20.0},
        {"throttle": 0.5},
    ):
        actual, refused = device.apply(replace(TWO, **knob))  # type: ignore[arg-type]  # by name
        assert actual == TWO
        messages += refused
    knobs = [text.partition(":")[0] for text in messages]
    assert knobs == ["sm_mhz", "sm_mhz", "mem_mhz", "power_limit_w", "throttle"]


def test_a_tenant_too_large_does_not_run_and_the_others_do(place: Path) -> None:
    device = made_control.plant(place, Mismatch(oom_above_batch=16))
    device.apply(TWO)
    ran = device.run(1.0)
    assert ran.oom == (1,)
    assert ran.images[0] > 0
    assert ran.images[1] == 0
    assert ran.latency_ms[1] is None


def test_the_drivers_limit_holds_on_average_and_costs_throughput(place: Path) -> None:
    device = made_control.plant(place)
    free = replace(TWO, sm_mhz=None, mem_mhz=None)
    found = []
    for limit in (None, 150.0, 140.0):
        device.apply(replace(free, power_limit_w=limit))
        ran = device.run(1.0)
        found.append((ran.readings_w[-1], ran.throughput_images_per_s))
    assert found[0] == pytest.approx(modelled(place, replace(free, sm_mhz=1950.0))[::-1])
    assert [power for power, _ in found[1:]] == pytest.approx([150.0, 140.0])
    assert found[0][1] > found[1][1] > found[2][1]


# --- the loop


@pytest.mark.parametrize(
    "wrong", [{"gain_error": 1.0}, {"noise_w": -1.0}, {"seed": -1}, {"lag_s": -0.1}]
)
def test_a_device_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="must be at least 0, gain_error below 1"):
        Mismatch(**wrong)
