"""Figures of played streams, and laws of speed-up, by hand: each where a wrong unit, quantile or denominator makes another answer."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from analysis.studies.jobs.simulation.loop import figures, play
from control.scaling import Law, choose, fits, held_out, most_useful, time_s
from tests.analysis.studies.jobs.simulation.made_jobs import ANY, coming
from tests.analysis.studies.jobs.simulation.test_scaling import profile

NOISY = profile(Law(600, 0.05, 0.002, 20), 0.1)


def test_a_job_that_takes_nothing_does_not_decide_the_slowdown() -> None:
    """It waited 10 s for a hundredth of one, and counts as a tenth of the mean of the nine that count; the other eight do not wait."""
    stream = [coming(0, 0.0, 10.0), coming(1, 0.0, 0.01), *(coming(at, 100.0 + 20 * at, 10.0) for at in range(2, 10))]
    found = figures(stream, play(stream, {ANY: 1}, "fifo"))
    assert found.slowdown == pytest.approx((10.01 / (0.1 * 80.01 / 9) + 8) / 9)


def test_a_job_keeps_as_many_slots_busy_as_it_has_replicas() -> None:
    """Ten gangs of two on two slots, half a second of each: half of the time until the last came."""
    stream = [coming(at, float(at), 0.5, replicas=2) for at in range(10)]
    assert figures(stream, play(stream, {ANY: 2}, "fifo")).busy == pytest.approx(0.5)


def test_tenants_of_longer_jobs_are_not_served_worse() -> None:
    """Nobody waits: everybody's slowdown is 1, whoever asks for 1 s and who for 4 s."""
    stream = [coming(at, 10.0 * at, (1.0, 4.0)[at % 2], tenant="ab"[at % 2]) for at in range(10)]
    assert figures(stream, play(stream, {ANY: 1}, "fifo")).jain == pytest.approx(1)


def test_nearest_is_by_ratio() -> None:
    """100 or 50 s where 72 are wanted: 100/72 = 1.39 is nearer than 72/50 = 1.44, though 28 s are more than 22."""
    assert choose(Law(100), 1, 72, 2).replicas == 1


def test_a_job_that_cannot_be_shared_has_one_replica() -> None:
    assert most_useful(Law(1.0, serial=1.0), 8) == 1


@pytest.mark.parametrize("name", ["amdahl", "usl"])
def test_spread_and_criterion_of_a_fit_by_their_formulas(name: str) -> None:
    """s² = Σr²/(n - k); n·ln(Σr²/n) + 2K + 2K(K + 1)/(n - K - 1), where K is k and one for the spread."""
    found = next(one for one in fits(NOISY) if one.name == name)
    squares = math.fsum(math.log(float(time_s(found.law, one.work, one.replicas)) / one.time_s) ** 2 for one in NOISY)
    n, k = len(NOISY), len(found.intervals)
    assert k == {"amdahl": 3, "usl": 4}[name]
    assert found.spread == pytest.approx(math.sqrt(squares / (n - k)), rel=1e-6)
    assert found.aicc == pytest.approx(n * math.log(squares / n) + 2 * (k + 1) + 2 * (k + 1) * (k + 2) / (n - k - 2), rel=1e-6)


def test_intervals_are_students_by_the_curvature() -> None:
    """Amdahl: 36 points, three parameters: t = 2.0345 with 33 degrees of freedom, from differences of log times."""
    found = next(one for one in fits(NOISY) if one.name == "amdahl")
    work, replicas = (np.array([getattr(one, field) for one in NOISY]) for field in ("work", "replicas"))

    def slope(name: str) -> np.ndarray:
        value = getattr(found.law, name)
        up, down = (np.log(time_s(replace(found.law, **{name: value * by}), work, replicas)) for by in (1.0001, 0.9999))
        return np.asarray((up - down) / (0.0002 * value))

    jacobian = np.column_stack([slope(name) for name in found.intervals])
    errors = found.spread * np.sqrt(np.diag(np.linalg.inv(jacobian.T @ jacobian)))
    for (name, (_, high)), error in zip(found.intervals.items(), errors.tolist(), strict=True):
        assert high - getattr(found.law, name) == pytest.approx(2.0345 * error, rel=1e-3)


def test_an_error_held_out_is_of_configurations_that_no_fit_saw() -> None:
    best = fits(NOISY)[0]
    errors = []
    for key in {(one.replicas, one.work) for one in NOISY}:
        rest = [one for one in NOISY if (one.replicas, one.work) != key]
        law = next(one.law for one in fits(rest) if one.name == best.name)
        mine = [one for one in NOISY if (one.replicas, one.work) == key]
        errors += [abs(float(time_s(law, one.work, one.replicas)) / one.time_s - 1) for one in mine]
    assert held_out(NOISY, best) == pytest.approx(np.mean(errors))
