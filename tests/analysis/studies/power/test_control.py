"""Our controller and its parts: learning from readings, choosing, and the step response (A8)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp
from pathlib import Path
from statistics import fmean, pstdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.power import parameters
from control.power import algorithms
from control.power.algorithms import steady
from control.power.algorithms.pctodl import StepRange, Thermo, draw_of
from control.power.algorithms.steady import PROMISED, Guard, band_of
from control.power.catalog import platform
from control.power.plant import Mismatch
from control.power.tables import Tables, nearest, partition_of
from control.power.terms import (
    Knobs,
    Partition,
    Question,
    Settings,
    Unsupported,
    tenants_of,
)
from tests.analysis.studies.power import made_control, made_cpu
from tests.analysis.studies.power.command import model_at
from tests.analysis.studies.power.made_control import CLOCKS, KNOBS, question, seen
from tests.analysis.studies.power.playing import play, reader
from tests.conftest import REFERENCE

PCTODL = REFERENCE / "pctodl"
EFFICIENTNET = reader(str(PCTODL), "efficientnet_v2_m", "3080Ti")
reads_reference = pytest.mark.needs("reference")
FOUR = Partition((25.0,) * 4, (16,) * 4)
CAPS = ((0, 230.0), (50, 130.0), (100, 180.0))


# --- the step response (A8): efficientnet_v2_m on a 3080Ti, memory at 5001 MHz, four processes of
# 25 % and 16 images


@dataclass(frozen=True)
class Phase:
    """50 iterations under one cap: clock, reading and images/s of each."""

    cap_w: float
    mhz: list[float]
    power_w: list[float]
    images_per_s: list[float]

    def above(self, of_cap: float = 1.0, since: int = 0) -> float:
        return fmean(power > of_cap * self.cap_w for power in self.power_w[since:])

    @property
    def settled(self) -> int:
        """The first of five iterations in a row within 8 W below the cap."""
        good = [self.cap_w - 8 <= power <= self.cap_w for power in self.power_w]
        return next(
            at for at in range(len(good)) if all(good[at : at + 5]) and len(good[at : at + 5]) == 5
        )


def phases(
    decide: Callable[[float, float, float], float],
    tables: Tables,
    noise_w: float = 0.0,
    seed: int = 0,
) -> list[Phase]:
    """The predictor, 2 s lag, read every 3 s, from 210 MHz; `decide` gets clock, power and cap."""
    curve = tables.curve(5001.0, FOUR)
    noise = np.random.default_rng(seed)
    mhz, power = 210.0, float(curve.power_w[0])
    reading = power
    found = []
    for at in range(150):
        cap = next(cap for start, cap in reversed(CAPS) if start <= at)
        if at % 50 == 0:
            found.append(Phase(cap, [], [], []))
        mhz = decide(mhz, reading, cap)
        state = nearest(CLOCKS, mhz)
        power = float(curve.power_w[state]) + (power - float(curve.power_w[state])) * exp(-3 / 2)
        reading = power + float(noise.normal(0, noise_w))
        found[-1].mhz.append(mhz)
        found[-1].power_w.append(reading)
        found[-1].images_per_s.append(float(curve.throughput_images_per_s[state]))
    return found


def ours(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, float, float], float]:
    """Steady with a given partition and no alternative."""
    monkeypatch.setattr(steady.Steady, "_better", lambda _: None)
    start = Settings(tenants_of(FOUR), sm_mhz=210.0, mem_mhz=5001.0)
    asked = Question(
        "steady",
        "3080Ti",
        "efficientnet_v2_m",
        CAPS,
        replace(KNOBS, mem_mhz=(5001.0,)),
        models=EFFICIENTNET,
    )
    controller = steady.Steady(asked, start, Guard(steady.UNJUDGED))

    def decide(mhz: float, reading: float, cap: float) -> float:
        now = replace(start, sm_mhz=mhz)
        decided = controller.then(seen(now, reading, cap=cap)).settings
        assert partition_of(decided.tenants) == FOUR
        assert decided.sm_mhz is not None
        return decided.sm_mhz

    return decide


def efficientnet() -> Tables:
    return Tables(
        {5001.0: model_at(PCTODL, "efficientnet_v2_m", "3080Ti", 5001.0)}, platform("3080Ti")
    )


@reads_reference
def test_the_step_response_settles_below_the_cap_and_stays_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A8. Throughput is 0.95 of what thermo was found to have: 1059.5, 660.2 and 908.7 images/s."""
    tables = efficientnet()
    for phase, thermos in zip(
        phases(ours(monkeypatch), tables), (1059.5, 660.2, 908.7), strict=True
    ):
        assert phase.settled <= 6
        assert phase.above() <= 0.08
        assert phase.above(1.02) <= 0.06
        assert phase.above(since=phase.settled) == 0
        assert pstdev(phase.mhz[25:]) == 0
        assert fmean(phase.images_per_s) >= 0.95 * thermos


@reads_reference
@pytest.mark.parametrize("seed", range(5))
def test_with_noise_of_2_w_it_is_rarely_above(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """A8: at most 12 % of a phase above 1.02 of the cap; the clock hardly moves."""
    tables = efficientnet()
    for phase in phases(ours(monkeypatch), tables, noise_w=2.0, seed=seed):
        assert phase.above(1.02) <= 0.12
        assert pstdev(phase.mhz[25:]) <= 15


@reads_reference
def test_thermo_has_no_rest_and_is_half_the_time_above_the_cap() -> None:
    """The fault ours must mend; also, throughput at 230 and 180 W is the specification's."""
    tables = efficientnet()
    thermo = Thermo(draw_of(tables.models[5001.0], tables.curve(5001.0, FOUR).anchor), StepRange())
    found = phases(
        lambda mhz, reading, cap: CLOCKS[nearest(CLOCKS, thermo.next_mhz(mhz, reading, cap))],
        tables,
    )
    assert fmean(found[0].images_per_s) == pytest.approx(1059.5, rel=1e-3)
    assert fmean(found[2].images_per_s) == pytest.approx(908.7, rel=1e-3)
    for phase in found:
        assert 0.4 < phase.above() < 0.6
        assert pstdev(phase.mhz[25:]) == pytest.approx(7.5, abs=0.1)


# --- what is learnt


@pytest.mark.parametrize(
    ("readings", "bands"),
    [
        # On the way down, from 220 to 120 W in the model, late readings are not taken for the
        # device; at rest they are.
        (
            [(220, 220)] * 5 + [(120, 142), (120, 125), *[(120, 126)] * 3],
            [1.0] * 5 + [1.0, 1.0, None, None, 1.05],
        ),
        # On the way up a reading is the least that the power can be.
        ([(120, 132), (220, 200)], [1.1, 1.1]),
    ],
    ids=["down", "up"],
)
def test_late_readings_teach_only_what_they_can_show(
    readings: list[tuple[float, float]], bands: list[float | None]
) -> None:
    guard = Guard(1.0)
    for (modelled, reading), band in zip(readings, bands, strict=True):
        guard.learn(modelled, reading)
        assert band is None or guard.band == pytest.approx(band)
    guard.first = 1.2
    guard.another()  # another partition begins with the first band at least
    assert (guard.known, guard.band) == (False, 1.2)


# --- what is chosen


def test_a_model_that_was_judged_begins_with_its_own_band(tmp_path: Path) -> None:
    """A guard of 1.25: the first setting is predicted to draw at most four fifths of the cap."""
    model = replace(made_cpu.model(), guard=1.25)
    parameters.write(model, tmp_path / parameters.file_name(model))
    controller = algorithms.at_work(cpu_question(tmp_path))
    decision = controller.first()
    anchor = model.anchor([partition_of(decision.settings.tenants)])
    assert float(model.power_w(anchor, np.array([decision.settings.throttle]))[0]) <= 1.3 / 1.25
    assert decision.predicted is not None
    assert decision.predicted.power_w <= 1.3


@pytest.mark.parametrize("gain", [-0.08, 0.0, 0.08])
def test_steady_stays_just_below_the_cap_on_an_unlike_device(place: Path, gain: float) -> None:
    """Seed 1 draws more by `gain`; without noise all is below the cap, within two states of it."""
    device = made_control.plant(place, Mismatch(gain_error=gain, lag_s=2.0, seed=1))
    asked = question("steady", place)
    rows = play(asked, algorithms.at_work(asked), device)[30:]
    assert max(row.power_max_w for row in rows) <= 200
    assert max(row.power_mean_w for row in rows) >= 194
    assert len({row.settings for row in rows}) == 1


def test_a_clock_that_was_refused_is_not_asked_for_again(place: Path) -> None:
    controller = algorithms.at_work(question("steady", place))
    decision = controller.first()
    refused: set[float | None] = set()
    for _ in range(12):
        asked_for = decision.settings.sm_mhz
        assert asked_for not in refused
        actual = replace(decision.settings, sm_mhz=600.0)
        if asked_for == 600.0:
            decision = controller.then(seen(actual, 140.0))
        else:
            refused.add(asked_for)
            decision = controller.then(
                seen(actual, 140.0, refused=(f"sm_mhz: {asked_for} MHz is not to be had.",))
            )
    assert len(refused) > 3


@pytest.mark.parametrize("slo_ms", [40.0, 150.0])
def test_latency_is_kept_where_it_is_bounded(place: Path, slo_ms: float) -> None:
    asked = replace(question("steady", place), slo_ms=slo_ms)
    device = made_control.plant(place, Mismatch(gain_error=0.08, lag_s=2.0, seed=1))
    controller = algorithms.at_work(asked)
    decision = controller.first()
    for at in range(30):
        actual, _ = device.apply(decision.settings)
        ran = device.run(3.0)
        if at >= 15:
            assert max(one for one in ran.latency_ms if one is not None) <= slo_ms
        power = float(ran.readings_w.mean())
        decision = controller.then(
            seen(actual, power, latency_ms=ran.latency_ms, latency_p95_ms=ran.latency_ms)
        )


DUTIES = tuple(round(0.1 * step, 1) for step in range(1, 11))


def cpu_question(folder: Path) -> Question:
    knobs = Knobs(shares=True, batches=(1, 8), most_processes=4, throttle=DUTIES)
    models = reader(str(folder), "resnet50", "cpu")
    return Question(
        "steady", "cpu", "resnet50", ((0, 1.3),), knobs, cap_unit="cpu_s_per_s", models=models
    )


def test_a_device_without_clocks_is_controlled_by_its_throttle(tmp_path: Path) -> None:
    """A model of throttles and CPU seconds per second, and a device that takes 5 % more."""
    model = made_cpu.model()
    made_cpu.folder(tmp_path)
    asked = cpu_question(tmp_path)
    controller = algorithms.at_work(asked)
    decision, takes = controller.first(), 0.0
    for _ in range(20):
        now = decision.settings
        assert (now.sm_mhz, now.mem_mhz) == (None, None)
        assert now.throttle in DUTIES
        anchor = model.anchor([partition_of(now.tenants)])
        takes = 1.05 * float(model.power_w(anchor, np.array([now.throttle]))[0])
        decision = controller.then(seen(now, takes, cap=1.3))
    assert 1.0 <= takes <= 1.3
    with pytest.raises(Unsupported, match="clocks"):
        algorithms.at_work(replace(asked, algorithm="pctodl"))


@given(st.lists(st.floats(0.5, 1.5), min_size=1, max_size=100))
def test_the_band_holds_for_its_share_of_the_rows_and_one_more(ratios: list[float]) -> None:
    """From 19 rows on 95 % of n + 1; below, all n of n + 1."""
    kept = sum(ratio <= band_of(ratios) for ratio in ratios)
    assert kept >= min(PROMISED * (len(ratios) + 1), len(ratios))
    assert band_of(ratios) in ratios
