"""`--design=bisect` names the guilty key, seldom wrongly, and says what it could not have seen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from math import isnan, log, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from control.adaptive.belief import prior, weigh
from control.adaptive.bisection import Bisection
from control.adaptive.confirmation import differences
from fixtures.designs import Factor, Options, bisect
from fixtures.terms import BadInput, TweakSet
from tests.designs.machine import Machine, keys
from tests.designs.rates import NAMED, NONE, PROFILE, Case, Ended, bisected, costs

SIMULATIONS = 1000


@cache
def simulated(case: Case, count: int = SIMULATIONS) -> list[Ended]:
    return [bisected(case, seed) for seed in range(count)]


def convincing(hits: int, of: int, *, at_least: float) -> bool:
    """Is a true rate below `at_least` ruled out at 2.5 %? Of 1000: 964 and more show at least 95 %."""
    return bool(binom.sf(hits - 1, of, at_least) < 0.025)


@pytest.mark.slow
@pytest.mark.parametrize("walk", [False, True], ids=["straight drift", "walking drift"])
def test_the_guilty_key_of_twelve_is_named_within_24_runs(*, walk: bool) -> None:
    """Acceptance: it costs 10 %, noise 2 %, drift 5 %; in at least 95 % of 1000 simulations."""
    ended = simulated(NAMED._replace(walk=walk))
    assert max(one.runs for one in ended) <= 24
    assert convincing(sum(one.verdict == "named" and one.right for one in ended), SIMULATIONS, at_least=0.95)


@pytest.mark.slow
@pytest.mark.parametrize("walk", [False, True], ids=["straight drift", "walking drift"])
def test_nobody_is_accused_where_no_key_does_anything(*, walk: bool) -> None:
    """Acceptance: a false accusation in at most 5 % of 1000 simulations."""
    ended = simulated(NONE._replace(walk=walk))
    assert convincing(sum(one.verdict != "named" for one in ended), SIMULATIONS, at_least=0.95)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        Case("3 %", costs(0.03)),
        Case("two", costs(0.1, 0.1), guilty=2),
        Case("opposed", costs(0.1, -0.1), guilty=2),
        Case("together", costs(0.0, 0.0, 0.1), guilty=2),
        Case("noisy", costs(0.1), noise=0.05),
        Case("10 % drift", costs(0.0), guilty=0, drift=0.1, walk=True),
        Case("lossy", costs(0.1), losing=0.2),
        Case("2 keys", costs(0.1), keys=2),
        Case("40 keys", costs(0.1), keys=40),
    ],
    ids=lambda case: case.said,
)
def test_an_innocent_key_is_hardly_ever_named(case: Case) -> None:
    """Whatever is true: small effects, several guilty keys, noise, drift, lost cells."""
    ended = simulated(case, 200)
    assert convincing(sum(one.verdict != "named" or one.right for one in ended), 200, at_least=0.95)


@pytest.mark.slow
def test_a_key_that_helps_is_named_as_one_that_saves() -> None:
    ended = simulated(Case("helps", costs(-0.1)), 100)
    named = [one for one in ended if one.verdict == "named" and one.right]
    assert convincing(len(named), 100, at_least=0.9)
    assert all(" saves: " in one.engine.conclusion()["text"] for one in named[:10])


@pytest.mark.slow
@pytest.mark.parametrize(("count", "noise"), [(3, 0.02), (12, 0.02), (12, 0.05), (40, 0.01)])
def test_the_smallest_effect_it_says_is_named_four_times_of_five(count: int, noise: float) -> None:
    """What an undecided run says of itself, held against runs with just that effect (the noise known)."""
    engine = bisect.engine(PROFILE, keys(count), Options())
    assert isinstance(engine, Bisection)
    ended = simulated(Case("smallest", costs(engine.smallest(noise)), keys=count, noise=noise), 200)
    named = sum(one.verdict == "named" and one.right for one in ended)
    assert 0.70 < named / 200 < 0.92


@pytest.mark.slow
def test_clear_is_seldom_said_of_a_profile_whose_key_costs_the_margin() -> None:
    """At the margin itself (3 %), where such a claim is hardest to hold: at most one time in ten, looks at each block included."""
    ended = simulated(Case("3 %", costs(0.03)), 400)
    assert convincing(sum(one.verdict != "clear" for one in ended), 400, at_least=0.90)


def test_the_incident_of_isolcpus_is_found_and_the_rest_shows_no_gain() -> None:
    """A vendor's profile gave 50,404 tokens/s, 148,344 without isolcpus, and stock 146,452 (NVIDIA/nodewright-packages #95, #96).

    The engine is told the inverse of a rate. The rest of the profile is 1.3 % faster in truth, less than a noise of 2 % lets anybody claim.
    """
    names = ["isolcpus", "nohz_full", "hugepages", "vm.swappiness", "vm.dirty_ratio", "net.core.somaxconn", "kernel.numa_balancing"]
    factors = [Factor("tuned", name, "sysctl", (None, "1")) for name in names]

    def rate(levels: Mapping[str, str | None]) -> float:
        gained: float = sum(level is not None for name, level in levels.items() if name != "isolcpus") / (len(names) - 1)
        lost = 50_404 / 148_344 if levels["isolcpus"] else 1.0
        return lost * 146_452 * float(pow(148_344 / 146_452, gained))

    held = unproven = 0
    for seed in range(25):
        engine = bisect.engine(TweakSet("tuned"), factors, Options(seed=seed))
        runs = Machine(lambda levels: -log(rate(levels)), 0.02, 0.05).run(engine, seed)
        said = engine.conclusion()
        assert (said["verdict"], said["key"], runs <= 24) == ("named", "isolcpus", True)
        assert "isolcpus costs: tuned with it against tuned without it, speed −" in said["text"]
        held += said["effects"]["key"]["low"] < 148_344 / 50_404 - 1 < said["effects"]["key"]["high"]
        unproven += "Without it, the rest shows no gain over stock" in said["text"] or "equals stock within" in said["text"]
    # Both are intervals of 95 %; the second leaves the truth of 1.3 % in some more seeds on one side of zero.
    assert held >= 21
    assert unproven >= 20


@pytest.mark.parametrize("count", [2, 3, 4, 12, 40])
def test_no_block_has_a_combination_twice(count: int) -> None:
    """Cells of a block are told apart by the name of what is in force."""
    for seed in range(5):
        engine = bisect.engine(PROFILE, keys(count), Options(seed=seed))
        Machine(lambda levels: 0.1 * (levels["vm.key_01"] is not None), 0.02).run(engine, seed)
        cells = [(cell["block"], cell["name"]) for cell in engine.conclusion()["cells"]]
        assert len(set(cells)) == len(cells)
        assert {name for block, name in cells if block == 1} >= {"stock", "tuned"}


@pytest.mark.parametrize("count", [2, 12, 40])
def test_no_more_cells_than_trials(count: int) -> None:
    engine = bisect.engine(PROFILE, keys(count), Options(trials=18))
    assert len(engine.blocks) == 16


@pytest.mark.parametrize(("count", "options", "said"), [(1, Options(), "1 key"), (5, Options(trials=8), "at least 16")])
def test_what_cannot_be_bisected_is_refused(count: int, options: Options, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        bisect.engine(PROFILE, keys(count), options)


def test_a_key_with_which_every_cell_fails_is_pointed_at() -> None:
    """Failed cells are no evidence of cost, but they have something in common."""
    engine = bisect.engine(PROFILE, keys(6), Options())
    Machine(lambda _: 0.0, 0.02, fails=lambda levels: levels["vm.key_02"] is not None).run(engine, 1)
    said = engine.conclusion()
    assert (said["key"], said["failing"]) == (None, ["vm.key_02"])
    assert "of the cells failed, each with vm.key_02 set" in said["text"]


@pytest.mark.parametrize("cost", [None, 0.0, -1.0, nan])
def test_what_is_no_cost_is_not_measured(cost: float | None) -> None:
    engine = bisect.engine(PROFILE, keys(3), Options())
    trial = engine.ask()
    assert trial is not None
    engine.tell(trial, cost)
    assert engine.conclusion()["cells"][0]["cost"] is None


@given(
    data=st.lists(st.tuples(st.integers(0, 63), st.integers(0, 3), st.floats(-1, 1)), min_size=5, max_size=24),
    count=st.integers(1, 6),
)
def test_a_belief_is_made_of_chances(data: list[tuple[int, int, float]], count: int) -> None:
    on = [[bits >> key & 1 for key in range(count)] for bits, _, _ in data]
    belief = weigh(on, [block for _, block, _ in data], [value for *_, value in data])
    assert 0 <= belief.none <= 1
    assert all(0 <= chance <= 1 + 1e-9 for chance in belief.keys)
    assert belief.none + sum(belief.keys) >= 1 - 1e-9
    assert not isnan(belief.noise)


def test_what_a_whole_block_has_in_common_says_nothing() -> None:
    """Drift from block to block cancels: each block's level is free."""
    on = [[1, 0], [0, 1], [1, 1], [0, 0]] * 2
    logs = [0.1, 0.0, 0.11, 0.01, 0.09, 0.0, 0.1, 0.0]
    lifted = [value + 0.7 * (row >= 4) for row, value in enumerate(logs)]
    blocks = [1] * 4 + [2] * 4
    assert weigh(on, blocks, lifted).keys == pytest.approx(weigh(on, blocks, logs).keys)


def test_before_the_first_cell_half_is_on_none() -> None:
    assert prior(12).none == 0.5
    assert prior(12).none + (0.35 + 2 * 0.15) == pytest.approx(0.5 + sum(prior(12).keys))


def test_two_arms_in_full_blocks_have_the_interval_of_a_paired_t_test() -> None:
    """By hand: differences .10, .12, .08; mean .10, sd .02, t(2, .975) = 4.303: ± 4.303 · .02 / √3 = ± .0497."""
    cells = [{"a": 1.10, "b": 1.0}, {"a": 2.12, "b": 2.0}, {"a": 3.08, "b": 3.0}]
    difference = differences(cells, [("a", "b")])["a", "b"]
    assert difference is not None
    assert (difference.log, difference.low, difference.high) == pytest.approx((0.1, 0.0503, 0.1497), abs=1e-4)
    assert (difference.df, difference.blocks) == (2, 3)


def test_one_block_is_no_ground_for_an_interval() -> None:
    assert differences([{"a": 1.1, "b": 1.0, "c": 1.0}], [("a", "b")])["a", "b"] is None


def test_its_conclusion_can_be_saved() -> None:
    engine = bisect.engine(PROFILE, keys(12), Options())
    Machine(lambda levels: 0.2 * (levels["vm.key_05"] is not None), 0.02).run(engine, 1)
    said = engine.conclusion()
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assert len(said["belief"]) == len(said["cells"])
    assert np.isclose(said["effects"]["key"]["change"], 0.22, atol=0.08)
