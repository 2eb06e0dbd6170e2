"""Blocks needed: the documented table, the noncentral t by simulation, spread over pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from scipy import special

from analysis.stats.power import (
    blocks_needed,
    pair_spread,
    spread_interval,
)
from control.t_test import detectable_errors, t_quantile, t_tail

# Run-to-run CV, effect, pairs for 80 % power at 5 %: simulated elsewhere. A pair's log ratio
# scatters √2 times as far as a run.
PROMISED = [
    (0.01, 0.01, 18),
    (0.01, 0.02, 7),
    (0.01, 0.05, 3),
    (0.02, 0.01, 70),
    (0.02, 0.02, 18),
    (0.02, 0.03, 10),
    (0.02, 0.05, 5),
    (0.05, 0.02, 110),
    (0.05, 0.05, 18),
    (0.05, 0.10, 7),
]


def called(n: int, log_sd: float, gain: float, alpha: float) -> float:
    draws = np.random.default_rng([n, int(gain * 1000)]).normal(
        math.log1p(gain), log_sd, (20_000, n)
    )
    return float((scipy.stats.ttest_1samp(draws, 0, axis=1).pvalue < alpha).mean())


@pytest.mark.parametrize(("cv", "gain", "pairs"), PROMISED)
def test_pairs_for_80_percent_power(cv: float, gain: float, pairs: int) -> None:
    """Within 20 % of the printed pairs; rounding there makes the worst case 103 for 110."""
    assert blocks_needed(cv * math.sqrt(2), gain) == pytest.approx(pairs, rel=0.2)


@pytest.mark.parametrize(
    ("log_sd", "gain", "alpha"),
    [(0.02, 0.03, 0.05), (0.028, 0.03, 0.05), (0.028, 0.03, 0.05 / 9), (0.07, 0.05, 0.05 / 17)],
)
def test_the_number_named_is_the_first_that_suffices(
    log_sd: float, gain: float, alpha: float
) -> None:
    """Simulated, ± 1 % (3.5 SE): the count finds the gain in 4 of 5 cases, one less does not."""
    n = blocks_needed(log_sd, gain, alpha)
    assert n is not None
    assert called(n, log_sd, gain, alpha) > 0.79
    assert called(n - 1, log_sd, gain, alpha) < 0.81


def test_noise_that_hides_everything_is_said_so() -> None:
    assert blocks_needed(5.0, 0.001) is None
    assert blocks_needed(1e-6, 0.5) == 3  # fewer are never compared


def test_the_spread_of_pairs_by_hand() -> None:
    """Log ratios .01, .02, .06: mean .03, s² = (.0004 + .0001 + .0009)/2 = .0007, 2 d.f."""
    cells = [
        (1, "a", 0.0),
        (1, "b", 0.01),
        (2, "a", 5.0),
        (2, "b", 5.02),
        (3, "a", -1.0),
        (3, "b", -0.94),
    ]
    log_sd, df = pair_spread(cells)
    assert log_sd**2 == pytest.approx(0.0007)
    assert df == 2


def test_a_missing_cell_costs_a_degree_of_freedom_and_no_block() -> None:
    """3 of 20 cells missing in 2,000 tables: variance unbiased, its mean's SE √(2/9/2000) = 1 %."""
    rng = np.random.default_rng(7)
    found = []
    for _ in range(2000):
        cells = [
            (block, str(arm), rng.normal() + 3 * block) for block in range(5) for arm in range(4)
        ]
        log_sd, df = pair_spread([cell for at, cell in enumerate(cells) if at not in {3, 9, 10}])
        assert df == 12 - 3
        found.append(log_sd**2)
    assert np.mean(found) == pytest.approx(2, rel=0.04)


def test_the_interval_of_a_spread_is_chi_squares() -> None:
    """10 d.f.: χ² .975 = 20.483, .025 = 3.247; √(10/20.483) = .6987, √(10/3.247) = 1.7549."""
    assert spread_interval(1.0, 10) == pytest.approx((0.6987, 1.7549), abs=1e-4)


@pytest.mark.parametrize("df", [1.0, 1.3, 2.0, 4.7, 9.0, 57.2, 335.0, 1e4])
def test_students_t_is_scipys(df: float) -> None:
    """Computed without scipy, whose import takes as long as a comparison."""
    for t in (0.0, 1e-6, 0.5, 2.0, -3.7, 30.0):
        assert t_tail(t, df) == pytest.approx(special.stdtr(df, -t), rel=1e-9)
    for p in (0.025, 0.5, 0.6, 0.975, 1 - 0.05 / 17 / 2, 1 - 1e-6):
        assert t_quantile(p, df) == pytest.approx(special.stdtrit(df, p), rel=1e-9, abs=1e-12)
    for alpha, power in ((0.05, 0.8), (0.05 / 17, 0.9)):
        expected = special.nctdtrinc(df, 1 - power, special.stdtrit(df, 1 - alpha / 2))
        assert detectable_errors(df, alpha, power) == pytest.approx(expected, rel=1e-6)
