"""What a bisection or a search says where cells failed, where a key never ran, and where no single key explains the whole profile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from math import log1p
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from control.adaptive.belief import comparisons, uneven, unknown, weigh, whole
from fixtures.designs import Factor, Options, bisect, search
from tests.designs.machine import Machine, keys
from tests.designs.rates import PROFILE

if TYPE_CHECKING:
    from control.adaptive import Engine

Json = dict[str, Any]
SEEDS = 40


def bisected(
    does: Callable[[list[int]], float], seed: int, *, noise: float = 0.02, count: int = 6, fails: Callable[[list[int]], bool] | None = None
) -> Json:
    """The conclusion where `does` is the log cost of the keys that are set, by number."""
    engine = bisect.engine(PROFILE, keys(count), Options(seed=seed))

    def on(levels: Any) -> list[int]:
        return [at for at, level in enumerate(levels.values()) if level is not None]

    machine = Machine(lambda levels: does(on(levels)), noise, fails=lambda levels: fails is not None and fails(on(levels)))
    machine.run(engine, seed)
    return engine.conclusion()


def told(engine: Engine, costs: Iterable[float | None]) -> Json:
    """The conclusion after these cells, and failures to the end."""
    given = iter(costs)
    while (trial := engine.ask()) is not None:
        engine.tell(trial, next(given, None))
    return engine.conclusion()


def silent(said: Json) -> bool:
    """Does it keep to itself what it only believed beforehand?"""
    numbers = [said["noise"], said["smallest"], said["suspect"], said["key"], said["profile"]]
    words = ("noise", "belief", "would have been named", "suspected", "No key")
    return numbers == [None] * 5 and said["belief"] == [] and not any(word in said["text"] for word in words)


@pytest.mark.parametrize(
    ("costs", "measured"),
    [
        ([], "none of 20 cells was"),
        ([1.0], "1 of 20 cells was"),
        ([1.0, 1.1, None, None, 1.2], "3 of 20 cells were"),
        ([1.0] * 4, "4 of 20"),
    ],
)
def test_with_hardly_any_measurement_it_says_that_nothing_can_be_said(costs: list[float | None], measured: str) -> None:
    said = told(bisect.engine(PROFILE, keys(4), Options()), costs)
    assert (said["done"], said["verdict"], said["unmeasured"]) == (True, "not measured", True)
    assert said["text"].startswith(f"Nothing can be said of the keys of tuned: {measured}")
    assert silent(said)


def test_cells_that_fail_do_not_end_a_bisection_that_still_goes_on() -> None:
    engine = bisect.engine(PROFILE, keys(4), Options())
    for cost in (1.0, None, None):
        trial = engine.ask()
        assert trial is not None
        engine.tell(trial, cost)
    said = engine.conclusion()
    assert (said["done"], said["unmeasured"], said["text"]) == (False, False, "tuned: not decided yet, 1 of 3 cells was measured.")


@pytest.mark.parametrize("count", [2, 6, 12])
def test_a_key_that_never_ran_is_unknown_and_nothing_is_clear(count: int) -> None:
    """The kernel refuses its value; the others do nothing, and no power is claimed over it."""
    for seed in range(SEEDS):
        said = bisected(lambda _: 0.0, seed, noise=0.005, count=count, fails=lambda on: 0 in on)
        assert "vm.key_00" in said["unknown"]  # and a key that happened to be set with it each time
        assert f"Nothing is known of {', '.join(said['unknown'])}: no cell with it ran beside one without it." in said["text"]
        assert said["verdict"] != "clear"
        if said["verdict"] == "undecided":
            assert said["suspect"]["key"] != "vm.key_00"
            assert said["unmeasured"]
            assert "one key that was compared and changes the cost by" in said["text"]


def test_what_a_guilty_key_does_by_itself_is_told_where_the_profile_cannot_run() -> None:
    """Another of its keys never runs, so there is nothing to compare the profile without the guilty one with."""
    told_alone = 0
    for seed in range(10):
        said = bisected(lambda on: 0.3 * (1 in on), seed, fails=lambda on: 0 in on)
        assert (said["key"], said["suspect"]["key"], said["unmeasured"]) == (None, "vm.key_01", True)
        assert "tuned as a whole was not measured beside stock." in said["text"]
        told_alone += " By itself against stock: speed −2" in said["text"]
    assert told_alone >= 5  # the others had no two blocks left to confirm it


def test_power_is_that_of_runs_in_which_no_cell_fails() -> None:
    said = bisected(lambda _: 0.0, 3, noise=0.05, fails=lambda on: len(on) == 3 and 0 in on and 1 in on)
    assert said["verdict"] == "undecided"
    assert "in about four of five such runs if no cell had failed" in said["text"]


def test_six_small_effects_are_never_acquitted() -> None:
    """Each costs 2 %, within the margin; the profile costs 12 %, of which halves that balance show nothing."""
    for seed in range(SEEDS):
        said = bisected(lambda on: 0.02 * len(on), seed, noise=0.01)
        assert said["verdict"] != "clear", said["text"]
        assert "tuned as a whole against stock: speed −" in said["text"]


def test_keys_that_act_only_together_are_seldom_acquitted() -> None:
    """One of two costs 10 %, both together nothing: neither the profile nor any key alone shows it; pairs of cells mostly do."""
    said = [bisected(lambda on: 0.1 * ((0 in on) ^ (1 in on)), seed, noise=0.005) for seed in range(SEEDS)]
    assert sum(one["verdict"] == "clear" for one in said) <= 6
    assert sum("as no effects that add up can" in one["text"] for one in said) >= 30
    assert not any("At the noise seen" in one["text"] for one in said if one["uneven"])


def test_effects_that_cancel_are_not_acquitted() -> None:
    for seed in range(SEEDS):
        assert bisected(lambda on: 0.05 * (0 in on) - 0.05 * (1 in on), seed, noise=0.005)["verdict"] != "clear"


def test_clear_says_what_it_holds_for_and_what_the_profile_costs() -> None:
    said = [one for seed in range(SEEDS) if (one := bisected(lambda _: 0.0, seed))["verdict"] == "clear"]
    assert len(said) > SEEDS / 2
    for one in said:
        assert one["text"].startswith("No key of tuned, each taken for the only one that matters, changes the cost of a step by 3% or more")
        assert " tuned as a whole against stock: speed " in one["text"]
        assert one["profile"]["low"] < 0 < one["profile"]["high"]
        wide = max(-one["profile"]["low"], one["profile"]["high"]) > 0.04
        assert (": effects that add up to that are not ruled out." in one["text"]) or not wide


def test_the_noise_said_is_that_of_the_cells() -> None:
    """Four blocks that repeat themselves exactly: no noise, whatever was thought of it beforehand (2 %)."""
    on = [[0, 0], [1, 1], [1, 0], [0, 1]] * 4
    blocks = [1] * 4 + [2] * 4 + [3] * 4 + [4] * 4
    assert weigh(on, blocks, [0.0] * 16).cell_noise == pytest.approx(0.0, abs=1e-9)
    noisy = weigh(on, blocks, np.random.default_rng(1).normal(0.0, 0.02, 16).tolist())
    assert noisy.cell_noise == pytest.approx(0.02, rel=0.4)
    said = bisected(lambda _: 0.0, 1, noise=0.0)
    assert said["noise"] == pytest.approx(0.0, abs=1e-9)
    assert "run-to-run noise 0.0%" in said["text"]


def test_what_was_compared() -> None:
    """The second key ran alone in its block; the third was always set."""
    on = [[0, 0, 1], [1, 0, 1], [0, 1, 1]]
    assert unknown(on, [1, 1, 2], 3) == [1, 2]
    assert comparisons([1, 1, 2]) == 1
    assert unknown([], [], 2) == [0, 1]


def test_the_whole_against_stock_by_hand() -> None:
    """Differences 0.10 and 0.14 in two blocks: mean 0.12, sd 0.02·√2, t(1, .975) = 12.706: ± 12.706 · 0.02."""
    found = whole([[0, 0], [1, 1]] * 2, [1, 1, 2, 2], [0.0, 0.10, 1.0, 1.14])
    assert found is not None
    assert (found.log, found.high - found.log) == pytest.approx((0.12, 12.706 * 0.02), rel=1e-4)
    assert (found.df, found.blocks) == (1, 2)
    assert whole([[0, 0], [1, 1]], [1, 2], [0.0, 0.1]) is None
    assert whole([], [], []) is None


def test_effects_that_add_up_are_even() -> None:
    """Pairs of a cell and its complement have one mean, whatever each key does; an effect of two keys together parts them."""
    on = [[0, 0], [1, 1], [1, 0], [0, 1]] * 3
    blocks = [1] * 4 + [2] * 4 + [3] * 4
    dice = np.random.default_rng(2).normal(0.0, 0.001, 12)
    assert not uneven(on, blocks, [0.3 * a - 0.1 * b + e for (a, b), e in zip(on, dice, strict=True)])
    assert uneven(on, blocks, [0.3 * (a and b) - 0.15 * (a + b) + e for (a, b), e in zip(on, dice, strict=True)])
    assert not uneven(on, blocks, [0.0] * 12)


def test_unevenness_is_cried_once_in_twenty_times() -> None:
    dice = np.random.default_rng(3)
    on = [[0, 0, 0], [1, 1, 1], [1, 0, 0], [0, 1, 1]] * 4
    blocks = [1] * 4 + [2] * 4 + [3] * 4 + [4] * 4
    cried = sum(uneven(on, blocks, dice.normal(0.0, 0.02, 16).tolist()) for _ in range(1000))
    assert 30 < cried < 72


FACTORS = [Factor("tuned", f"vm.k{at}", "sysctl", (None, "1", "2")) for at in range(3)]


def searched(fails: Callable[[Any], bool]) -> Json:
    engine = search.engine(PROFILE, FACTORS, Options(trials=24))
    Machine(lambda levels: -log1p(0.2) * (levels["vm.k1"] == "1"), 0.02, fails=fails).run(engine, 1)
    return engine.conclusion()


@pytest.mark.parametrize(
    ("fails", "text"),
    [
        (lambda _: True, "none of 24 cells was measured."),
        (lambda levels: any(levels.values()), "6 of 24 cells were measured, 4 of the 12 that confirm: too few beside stock."),
        (lambda levels: not any(levels.values()), "19 of 24 cells were measured, 8 of the 12 that confirm: too few beside stock."),
    ],
)
def test_a_search_that_could_compare_nothing_says_so(fails: Callable[[Any], bool], text: str) -> None:
    said = searched(fails)
    assert (said["verdict"], said["unmeasured"], said["pick"]) == ("not measured", True, None)
    assert said["text"].startswith(f"Nothing can be said of tuned: {text}")


def test_a_level_that_never_ran_is_unknown_to_a_search() -> None:
    said = searched(lambda levels: levels["vm.k0"] == "2")
    assert "vm.k0 = 2" in said["unknown"]
    assert f"Nothing is known of {', '.join(said['unknown'])}: no cell with it was measured." in said["text"]
    assert not said["unmeasured"]


def test_a_candidate_that_could_not_be_confirmed_is_told() -> None:
    """The other one's interval is then no longer of two."""
    engine = search.engine(PROFILE, FACTORS, Options(trials=24))
    lost = ""
    while (trial := engine.ask()) is not None:
        confirming = len(engine.conclusion()["cells"]) >= 12
        lost = lost or (trial.name if confirming and trial.name != "stock" else "")
        engine.tell(trial, None if confirming and trial.name == lost else 1.0)
    said = engine.conclusion()
    assert (said["verdict"], said["unmeasured"]) == ("no gain", False)
    assert f"Of {lost}, a candidate too, nothing was confirmed" in said["text"]
    assert "for both candidates together" not in said["text"]


@pytest.mark.parametrize("design", [bisect, search], ids=lambda module: module.__name__.rpartition(".")[2])
def test_told_the_same_an_engine_asks_the_same_and_its_conclusion_can_be_saved(design: ModuleType) -> None:
    """So a run that was interrupted goes on where it was; and a cell is asked for until it is told. Optuna's sampler included."""
    conclusions = []
    for _ in range(2):
        engine = design.engine(PROFILE, FACTORS, Options(seed=7, trials=24))
        assert engine.ask() == engine.ask()
        Machine(lambda levels: 0.1 * (levels["vm.k1"] is not None), 0.02, 0.05).run(engine, 3)
        conclusions.append(engine.conclusion())
    assert conclusions[0] == conclusions[1] == json.loads(json.dumps(conclusions[0], allow_nan=False))
    assert len(conclusions[0]["cells"]) > 12
