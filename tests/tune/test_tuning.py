"""The choice among settings: measured together, gains, eliminations, and how often it is right."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Collection
from statistics import fmean, stdev

import pytest

from control.tuning import (
    Gain,
    HeatCell,
    RaceRules,
    balanced_arms,
    choose,
    differs,
    draw_arms,
    estimate,
    judge,
    stay,
    weighted,
)
from tests.made_tunes import GAINS, NOISY, PAIR, PAIR_GAIN, QUIET, SETTINGS, Command, tune

RULES = RaceRules(looks=4)
HARMFUL = "setting-02"


@pytest.mark.parametrize(
    ("count", "number"),
    [
        (2, 4),
        (3, 4),
        (4, 8),
        (7, 8),
        (11, 12),
        (15, 16),
        (16, 20),
        (19, 20),
        (23, 24),
        (24, 32),
        (33, 40),
        (50, 64),
    ],
)
def test_each_setting_is_on_in_half_of_the_arms(count: int, number: int) -> None:
    names = (
        SETTINGS[:count] if count <= len(SETTINGS) else [f"s{number}" for number in range(count)]
    )
    arms = draw_arms(names, random.Random(1))
    assert len(arms) == balanced_arms(count) == number
    assert {sum(name in arm for arm in arms) for name in names} == {len(arms) // 2}


def test_two_settings_are_on_together_in_a_quarter_of_the_arms() -> None:
    arms = draw_arms(SETTINGS, random.Random(1))
    together = {
        sum({one, other} <= arm for arm in arms)
        for one, other in itertools.combinations(SETTINGS, 2)
    }
    assert together == {len(arms) // 4}


def test_heats_depend_on_the_seed_alone() -> None:
    assert draw_arms(SETTINGS, random.Random(1)) == draw_arms(SETTINGS, random.Random(1))
    assert draw_arms(SETTINGS, random.Random(1)) != draw_arms(SETTINGS, random.Random(2))


def _cells(
    gains: dict[str, float], pair: float = 0.0, names: list[str] = SETTINGS
) -> list[HeatCell]:
    """Two heats without noise, the second turned round; blocks differ by their level."""
    drawn = draw_arms(names, random.Random(3))
    rng = random.Random(4)
    cells = []
    for heat, arms in enumerate((drawn, [frozenset(names) - arm for arm in drawn]), 1):
        for block in (1, 2):
            level = rng.gauss(0, 1)
            for arm in arms:
                gain = math.fsum(gains.get(name, 0) for name in arm) + pair * (arm >= PAIR)
                cells.append(HeatCell(heat, block, arm, level - gain))
    return cells


def test_gains_without_noise_are_found_exactly() -> None:
    gains = {name: estimate(_cells(GAINS))[name].gain for name in SETTINGS}
    assert gains == pytest.approx({name: GAINS.get(name, 0.0) for name in SETTINGS}, abs=1e-12)


def test_a_joint_gain_is_shared_by_the_pair_alone() -> None:
    gains = estimate(_cells({}, pair=0.04))
    assert {name: gain.gain for name, gain in gains.items()} == pytest.approx(
        {name: 0.02 if name in PAIR else 0.0 for name in SETTINGS}, abs=1e-12
    )


def test_the_error_of_a_gain_is_that_of_least_squares() -> None:
    """Held to statsmodels, with a constant for each block."""
    api = pytest.importorskip("statsmodels.api")
    np = pytest.importorskip("numpy")
    cells = Command(random.Random(5), QUIET).measure(draw_arms(SETTINGS, random.Random(6)), 600)
    blocks = sorted({cell.block for cell in cells})
    rows = [
        [*(cell.block == block for block in blocks), *(name in cell.settings for name in SETTINGS)]
        for cell in cells
    ]
    fitted = api.OLS([cell.log_time for cell in cells], np.array(rows, dtype=float)).fit()
    gains = estimate(cells)
    assert [gains[name].gain for name in SETTINGS] == pytest.approx(
        list(-fitted.params[len(blocks) :])
    )
    assert [gains[name].error for name in SETTINGS] == pytest.approx(
        list(fitted.bse[len(blocks) :])
    )
    assert gains[SETTINGS[0]].df == fitted.df_resid


@pytest.mark.parametrize(
    ("gain", "word"),
    [
        (0.05, "helps"),
        (-0.05, "harms"),
        (0.0, "no gain in sight"),
        (0.02, "not decided"),
        (-0.02, "no gain in sight"),
    ],
)
def test_settings_are_judged_by_simultaneous_intervals(gain: float, word: str) -> None:
    assert judge(Gain(gain, 0.007, 200), RULES, 15) == word


def test_a_gain_below_the_requested_one_is_never_chosen() -> None:
    gains = {
        "small": Gain(0.005, 0.0001, 200),
        "sure": Gain(0.02, 0.005, 200),
        "unsure": Gain(0.03, 0.03, 200),
        "large": Gain(0.05, 0.01, 200),
    }
    assert list(choose(gains, RULES)) == ["large", "sure"]


def test_a_setting_redundant_beside_the_others_is_dropped() -> None:
    """Both gain 4 % alone; either does the work of the other."""
    race = {name: Gain(0.04, 0.003, 100) for name in ("a", "b")}
    beside = {"a": Gain(0.042, 0.004, 20), "b": Gain(0.001, 0.004, 20)}
    kept, interactions = stay(race, beside, RULES)
    assert list(kept) == ["a"]
    assert interactions == {"b": (0.04, 0.001)}


class OneOfTwo(Command):
    """Each of the pair gains 4 % alone, and both together no more."""

    def gain(self, settings: Collection[str]) -> float:
        return PAIR_GAIN if PAIR & frozenset(settings) else 0.0


@pytest.mark.parametrize("draw", range(10))
def test_of_two_settings_that_do_the_same_work_one_stays(draw: int) -> None:
    """Beside the other one, either adds nothing; without both, the gain would be lost."""
    result = tune(OneOfTwo(random.Random(draw), QUIET), draw)
    assert len(result.chosen & PAIR) == 1
    assert result.true == PAIR_GAIN


def test_gains_that_do_not_scatter_are_taken_as_they_are() -> None:
    sure, unsure = Gain(0.03, 0.0, 4), Gain(0.02, 0.01, 4)
    assert weighted(sure, unsure) == weighted(unsure, sure) == sure
    assert differs(sure, Gain(0.04, 0.0, 4), 0.05)
    assert not differs(sure, sure, 0.05)


on_both_days = pytest.mark.parametrize(
    ("draws", "cell_sd"),
    [
        pytest.param(20, QUIET, id="quiet"),
        pytest.param(20, NOISY, id="noisy"),
        pytest.param(300, QUIET, id="quiet-300", marks=pytest.mark.slow),
        pytest.param(300, NOISY, id="noisy-300", marks=pytest.mark.slow),
    ],
)


@on_both_days
def test_the_gain_of_what_is_chosen_is_true(draws: int, cell_sd: float) -> None:
    """Two settings help, one harms, one pair helps: no harm chosen, and unbiased fresh blocks."""
    tunes = [tune(Command(random.Random(draw), cell_sd), draw) for draw in range(draws)]
    assert not any(HARMFUL in one.chosen for one in tunes)
    assert fmean("setting-00" in one.chosen for one in tunes) >= _low(0.97, draws)
    confirmed = [(one.confirmed, one.true) for one in tunes if one.confirmed]
    assert len(confirmed) == draws
    errors = [interval.value - true for interval, true in confirmed]
    assert abs(fmean(errors)) <= (0.002 if draws >= 300 else 3 * stdev(errors) / math.sqrt(draws))
    covered = fmean(interval.low <= true <= interval.high for interval, true in confirmed)
    assert covered >= _low(0.95, draws)
    assert fmean(one.chosen >= PAIR for one in tunes) >= _low(0.85, draws)


@on_both_days
def test_a_set_that_does_nothing_is_left_at_stock(draws: int, cell_sd: float) -> None:
    tunes = [
        tune(Command(random.Random(draw), cell_sd, {}, pair_gain=0.0), draw)
        for draw in range(draws)
    ]
    kept = [one for one in tunes if one.confirmed and one.confirmed.low > 0]
    assert len(kept) <= (1 - _low(0.95, draws)) * draws
    claimed = [one for one in tunes if {"helps", "harms"} & set(one.words.values())]
    assert len(claimed) <= (1 - _low(0.95, draws)) * draws


def _low(share: float, draws: int) -> float:
    """The share that as many draws stay above 99 times in 100."""
    return share - 2.33 * math.sqrt(share * (1 - share) / draws)
