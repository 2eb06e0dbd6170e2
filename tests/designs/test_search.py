"""`--design=search` finds levels near the best, and claims nothing that fresh cells beside stock do not show."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from control.adaptive.surface import Surface
from fixtures.designs import Factor, Options, search
from fixtures.terms import BadInput, TweakSet
from tests.designs.landscapes import FACTORS, Landscape
from tests.designs.machine import Machine
from tests.designs.rates import Found, plain, searched

if TYPE_CHECKING:
    from control.adaptive.search import Search

SEEDS = 50
PROFILE = TweakSet("tuned")
STOCK: dict[str, str | None] = dict.fromkeys((factor.name for factor in FACTORS), None)


@cache
def found(family: str, count: int = SEEDS) -> list[Found]:
    return [searched(family, seed) for seed in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize(("family", "off"), [("adds", 0.02), ("multiplies", 0.02), ("interacts", 0.03), ("bottleneck", 0.03)])
def test_the_confirmed_pick_is_within_two_percent_of_the_best(family: str, off: float) -> None:
    """Acceptance: noise 5 %, six knobs, 60 trials with the confirmations, median of 50 seeds; and none is told without its interval.

    Where knobs do not simply add up it is just 2.0 %, a knob's whole amplitude: a pick on the edge, so the bound has room.
    """
    runs = found(family)
    assert max(len(run.conclusion["cells"]) for run in runs) <= 60
    assert np.median([run.off for run in runs]) <= off
    for run in runs:
        assert run.claimed <= all(one["confirmed"] is not None for one in run.conclusion["candidates"])
        assert (" beats stock: speed +" in run.conclusion["text"]) is run.claimed
        assert ", n = 6 blocks, 95 % for both candidates together" in run.conclusion["text"]


@pytest.mark.slow
def test_plain_optuna_taken_at_its_word_is_further_off() -> None:
    """The lucky one of sixty noisy trials: about 5 % off where costs add."""
    off = np.median([plain("adds", seed) for seed in range(SEEDS)])
    assert 0.03 < off < 0.08
    assert np.median([run.off for run in found("adds")]) < off


@pytest.mark.slow
@pytest.mark.parametrize("family", ["flat", "tuned"])
def test_where_nothing_beats_stock_it_says_so(family: str) -> None:
    """False claims at most 5 %: of 50 seeds, no more than 6 (more would come by chance in 1 of 50 at a true 5 %)."""
    runs = found(family)
    claims = sum(run.claimed for run in runs)
    assert binom.sf(claims - 1, SEEDS, 0.05) > 0.01
    assert all("beats stock for certain" in run.conclusion["text"] for run in runs if not run.claimed)


@pytest.mark.slow
def test_intervals_of_the_confirmation_hold() -> None:
    """95 % for both candidates together, chosen for looking good as they were: fresh cells owe nothing to that choice."""
    covered = [run.covered == 1.0 for family in ("adds", "flat") for run in found(family)]
    assert binom.cdf(sum(covered), len(covered), 0.95) > 0.01


def quick(seed: int, *, trials: int = 24, noise: float = 0.02) -> Search:
    """A search that has ended, over a surface where costs add."""
    land = Landscape("adds", seed)
    engine = search.engine(PROFILE, FACTORS, Options(seed=seed, trials=trials))
    Machine(lambda levels: float(np.log(land.at(levels))), noise, 0.05).run(engine, seed)
    return engine


def test_it_looks_on_differently_with_another_seed() -> None:
    one, other = (search.engine(PROFILE, FACTORS, Options(seed=seed, trials=24)) for seed in (1, 2))
    land = Landscape("adds", 1)
    for engine in (one, other):
        Machine(lambda levels: float(np.log(land.at(levels))), 0.0).run(engine, 0)
    assert [cell["levels"] for cell in one.conclusion()["cells"]] != [cell["levels"] for cell in other.conclusion()["cells"]]


def test_it_begins_with_stock_and_the_profile_and_ends_with_candidates_beside_stock() -> None:
    cells = quick(2).conclusion()["cells"]
    assert [cell["name"] for cell in cells[:2]] == ["stock", "tuned"]
    last = [cell for cell in cells if cell["stage"] == "confirmation"]
    assert len(last) == 12
    for block in {cell["block"] for cell in last}:
        assert {cell["name"] for cell in last if cell["block"] == block} >= {"stock"}
        assert len({cell["name"] for cell in last if cell["block"] == block}) == 3


def test_the_order_within_a_confirming_block_is_random() -> None:
    orders = {tuple(cell["name"] for cell in quick(2).conclusion()["cells"][at : at + 3]) for at in (12, 15, 18, 21)}
    assert len(orders) > 1


@pytest.mark.parametrize("sizes", [(2, 2), (2, 2, 2), (3, 5)])
def test_no_block_has_a_combination_twice(sizes: tuple[int, ...]) -> None:
    """However few combinations there are; failing ones come again only where there is no other."""
    factors = [Factor("tuned", f"vm.k{at}", "sysctl", (None, *map(str, range(1, size)))) for at, size in enumerate(sizes)]
    for seed in range(3):
        engine = search.engine(PROFILE, factors, Options(seed=seed))
        Machine(lambda levels: 0.1 * (levels["vm.k0"] is None), 0.03, losing=0.3).run(engine, seed)
        cells = [(cell["block"], tuple(cell["levels"].values())) for cell in engine.conclusion()["cells"]]
        assert len(set(cells)) == len(cells)
        named = [(cell["block"], cell["name"]) for cell in engine.conclusion()["cells"]]
        assert len(set(named)) == len(named)


def test_a_combination_that_fails_is_no_candidate() -> None:
    """Level 1 of the first knob would be much the best, but does not run."""
    engine = search.engine(PROFILE, FACTORS, Options(trials=30))

    def truth(levels: Mapping[str, str | None]) -> float:
        return -0.5 * (levels["vm.knob_0"] == "1")

    Machine(truth, 0.02, fails=lambda levels: levels["vm.knob_0"] == "1").run(engine, 5)
    said = engine.conclusion()
    failed = [cell["levels"] for cell in said["cells"] if cell["cost"] is None and cell["stage"] == "exploration"]
    assert failed
    assert all(one["levels"] not in failed for one in said["candidates"])
    assert "of the cells failed" in said["text"]


@pytest.mark.parametrize("seed", range(5))
def test_of_four_combinations_the_two_that_run_beside_stock_are_candidates(seed: int) -> None:
    """The one with `a` alone never runs, whatever the model hopes of it."""
    factors = [Factor("tuned", name, "sysctl", (None, "1")) for name in ("a", "b")]
    engine = search.engine(PROFILE, factors, Options(seed=seed))
    Machine(lambda levels: -0.2 * (levels["a"] is not None), 0.02, fails=lambda levels: levels == {"a": "1", "b": None}).run(engine, seed)
    candidates = [one["levels"] for one in engine.conclusion()["candidates"]]
    assert sorted(candidates, key=str) == [{"a": "1", "b": "1"}, {"a": None, "b": "1"}]


@pytest.mark.parametrize("seed", range(5))
def test_a_difference_within_the_noise_is_no_gain(seed: int) -> None:
    engine = search.engine(PROFILE, FACTORS, Options(seed=seed, trials=24))
    Machine(lambda _: 0.0, 0.03).run(engine, seed)
    said = engine.conclusion()
    assert (said["verdict"], said["pick"]) == ("no gain", None)
    assert said["text"].startswith("Nothing found in tuned beats stock for certain: the best candidate, tuned.c")


def test_before_it_is_done_it_claims_nothing() -> None:
    engine = search.engine(PROFILE, FACTORS, Options())
    trial = engine.ask()
    assert trial is not None
    engine.tell(trial, 1.0)
    said = engine.conclusion()
    assert (said["done"], said["verdict"], said["pick"]) == (False, "going on", None)
    assert "1 of 60 cells done" in said["text"]


def test_optuna_is_quiet(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        quick(5)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


@pytest.mark.parametrize(
    ("factors", "options", "said"),
    [(FACTORS, Options(trials=10), "at least 24"), (FACTORS[:1], Options(), "too few levels")],
)
def test_what_cannot_be_searched_is_refused(factors: list[Factor], options: Options, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        search.engine(PROFILE, factors, options)


def test_the_model_takes_noise_for_noise() -> None:
    """One of 40 cells on a flat surface came out 15 % better; the model believes next to nothing of it."""
    dice = np.random.default_rng(1)
    points = dice.integers(0, 4, (40, 6))
    logs = dice.normal(0.0, 0.05, 40)
    logs[7] = -0.15
    surface = Surface((4,) * 6)
    surface.fit(points, [cell // 6 for cell in range(40)], logs.tolist())
    mean, _ = surface.predict(points)
    assert -0.08 < mean[7] - logs.mean() <= 0.01
    assert surface.noise == pytest.approx(0.05, rel=0.5)


def test_the_model_sees_a_strong_knob() -> None:
    dice = np.random.default_rng(2)
    points = dice.integers(0, 3, (40, 4))
    logs = 0.2 * (points[:, 1] == 2) + dice.normal(0.0, 0.02, 40)
    surface = Surface((3,) * 4)
    surface.fit(points, [0] * 40, logs.tolist())
    mean, sd = surface.predict(np.array([[0, 2, 0, 0], [0, 0, 0, 0]]))
    assert mean[0] - mean[1] == pytest.approx(0.2, abs=0.05)
    assert (sd < 0.1).all()


@given(seed=st.integers(0, 1000), cells=st.integers(4, 30), spread=st.sampled_from([0.0, 1e-6, 0.05, 3.0]))
def test_a_prediction_is_always_a_number(seed: int, cells: int, spread: float) -> None:
    """Same costs, repeated points, huge differences."""
    dice = np.random.default_rng(seed)
    points = dice.integers(0, 3, (cells, 3))
    surface = Surface((3, 3, 3))
    surface.fit(points, [0] * cells, dice.normal(0.0, spread, cells).tolist())
    mean, sd = surface.predict(dice.integers(0, 3, (10, 3)))
    assert np.isfinite(mean).all()
    assert np.isfinite(sd).all()
