"""Step times cleared of rounds: by hand, from files, and why a round is not a replicate."""

from __future__ import annotations

import copy
import json
import math
import random
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from scipy import stats

from analysis.formats.checked import Part
from analysis.formats.saved_run import ADJUSTED
from analysis.load import from_json
from analysis.terms import Design, DesignPoint, Factor, Unreadable
from control.saved import LONGEST_S
from control.turns import round_adjusted_s
from tests.synthetic import AGAIN, STOCK, Arm, Made, in_turns, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


def cleared(*arms: list[float]) -> list[float]:
    return round_adjusted_s([[[time_s] for time_s in arm] for arm in arms])


def turns(*slices: tuple[int, int, int]) -> Part:
    return Part(
        {
            "turns": [
                {"round": number, "first": first, "steps": steps} for number, first, steps in slices
            ]
        },
        "run.json",
    )


def test_what_a_round_does_to_all_arms_is_taken_out() -> None:
    """The second arm takes twice as long; round 2 is slow for all; a stall hits the first arm."""
    levels = (1.0, 4.0, 1.0, 1.0, 1.0)
    one, two = [level * 1.0 for level in levels], [level * 2.0 for level in levels]
    assert cleared(one, two)[1] / cleared(one, two)[0] == pytest.approx(2.0)
    one[3] *= 8
    assert cleared(one, two)[1] / cleared(one, two)[0] == pytest.approx(2.0)
    assert cleared([3.0, 5.0]) == [pytest.approx(math.sqrt(15.0))]


def test_places_of_a_slice_count_by_their_time() -> None:
    """Each slice ends with a checkpoint: 70 ms beside steps of 10 ms, half of that in arm two."""
    one, two = [[0.01, 0.01, 0.01, 0.07]] * 6, [[0.01, 0.01, 0.01, 0.035]] * 6
    first, second = round_adjusted_s([one, two])
    share = 0.07 / math.sqrt(2) / (0.03 + 0.07 / math.sqrt(2))
    assert math.log(first / second) == pytest.approx(share * math.log(2))
    assert math.sqrt(first * second) == pytest.approx((0.03 + 0.07 / math.sqrt(2)) / 4)


def test_a_block_is_a_replicate_and_a_round_is_none() -> None:
    """Equal arms, unequal processes: blocks call one in twenty different, rounds nearly all."""
    draw = random.Random(19)
    draws, blocks, rounds, by_block, by_round = 400, 8, 12, 0, 0
    for _ in range(draws):
        gains, every = [], []
        for _ in range(blocks):
            level = [draw.gauss(0, 0.1) for _ in range(rounds)]
            arms = [
                [math.exp(own + common + draw.gauss(0, 0.005)) for common in level]
                for own in (draw.gauss(0, 0.05), draw.gauss(0, 0.05))
            ]
            one, two = cleared(*arms)
            gains.append(math.log(two / one))
            every += [math.log(b / a) for a, b in zip(*arms, strict=True)]
        by_block += stats.ttest_1samp(gains, 0).pvalue < 0.05
        by_round += stats.ttest_1samp(every, 0).pvalue < 0.05
    low, high = stats.binom.interval(0.99, draws, 0.05)
    assert low <= by_block <= high
    assert by_round / draws > 0.5


def test_what_others_took_of_the_cpus_is_taken_out() -> None:
    """Equal arms; a neighbour's random share of a core slows each slice's steps by half of it."""
    draw = random.Random(21)
    plain: list[float] = []
    cleaned: list[float] = []
    for _ in range(50):
        cores, level = (
            [[draw.uniform(0, 1) for _ in range(10)] for _ in range(4)],
            [draw.gauss(0, 1) for _ in range(10)],
        )
        slices = [
            [
                [math.exp(0.5 * share + common + draw.gauss(0, 0.01)) for _ in range(4)]
                for share, common in zip(arm, level, strict=True)
            ]
            for arm in cores
        ]
        used: list[list[float | None]] = [
            [share * math.fsum(steps) for share, steps in zip(*arm, strict=True)]
            for arm in zip(cores, slices, strict=True)
        ]
        used[0][9] = used[1][9] = None  # a process that has ended has no clock
        for values, adjusted in (
            (plain, round_adjusted_s(slices)),
            (cleaned, round_adjusted_s(slices, used)),
        ):
            values.append(math.log(adjusted[1] / adjusted[0]) ** 2)
    assert math.sqrt(fmean(cleaned)) < 0.02
    assert math.sqrt(fmean(plain)) > 0.04


def test_a_fixed_cost_per_slice_removes_no_effect() -> None:
    """Others use 2 ms per slice, a larger share of a short one, so they seem to speed up steps."""
    draw = random.Random(22)
    slices = [[[arm * math.exp(draw.gauss(0, 0.1))] * 4 for _ in range(10)] for arm in (0.05, 0.04)]
    with_others, without = (
        round_adjusted_s(slices, [[used_s] * 10] * 2) for used_s in (0.002, 0.0)
    )
    assert with_others == pytest.approx(without, rel=0.01)


@pytest.mark.parametrize("used_s", [LONGEST_S, 1.0])
def test_others_delay_a_step_no_longer_than_they_or_it_ran(used_s: float) -> None:
    """A third of the first arm's slices take three times as long while others use 0.1 cores."""
    slices = [[[1.0 if at % 3 else 3.0] for at in range(9)], [[1.0]] * 9]
    used: list[list[float | None]] = [[0.0 if at % 3 else 0.3 for at in range(9)], [0.0] * 9]
    gains = []
    for last_s in (0.0, used_s):
        used[1][8] = last_s
        one, two = round_adjusted_s(slices, used)
        gains.append(math.log(one / two))
    plain_one, plain_two = round_adjusted_s(slices)
    assert gains[0] == pytest.approx(math.log(plain_one / plain_two), abs=0.06), (
        "0.1 cores explain a tenth, not all of it"
    )
    assert abs(gains[1]) < 1


def test_others_may_use_more_time_in_a_turn_than_its_steps_last() -> None:
    """On a busy machine a turn may last longer than its steps; the run is still read."""
    saved = in_turns(saved_run(Made()))
    part = saved["benchmarks"][0]["extra_info"]["turns"][1]
    part["others_cpu_s"] = 5.0  # of 4 steps of 40 ms
    assert from_json(saved, "run.json").cells[0].others_cpu_s[1] == 5.0
    for used_s in (1.7e308, 1e154, -1.0):
        part["others_cpu_s"] = used_s
        with pytest.raises(Unreadable, match=r"others_cpu_s: expected `float` [<>]= "):
            from_json(saved, "run.json")


def test_a_value_that_is_not_that_of_the_steps_contradicts_them() -> None:
    """The counted value is computed from the steps in any case."""
    saved = in_turns(saved_run(Made(blocks=3)))
    for one in saved["benchmarks"]:
        one["extra_info"]["metrics"] = {ADJUSTED: 1.0}
    cells = [cell for cell in from_json(saved, "made up").cells if cell.steps]
    assert all(cell.contradictions for cell in cells)
    assert all(0.03 < cell.metrics[ADJUSTED] < 0.05 for cell in cells)


@pytest.mark.parametrize(
    ("order", "blocks"),
    [((4, "9" * 5000), 4), ((99,), 20), ((0,), 20), (("٣",), 20), ((), 20)],
)
def test_the_order_gives_the_planned_blocks_per_arm_in_the_run(
    order: tuple[object, ...], blocks: int
) -> None:
    names = tuple(f"study/idle-stock-b{number}" for number in order)
    design = Design(
        seed=1,
        blocks=20,
        steps=None,
        order=(*names, "study/idle-stock-again-b7"),
        kind="turns",
        budget_s=60.0,
    )
    assert design.blocks_of("study", "idle", "stock") == blocks
    assert replace(design, budget_s=None).blocks_of("study", "idle", "stock") == 20


JSON = dict[str, Any]
DATA = Path(__file__).parents[3] / "data"
ARMS = ("sysctls", "sysctls.no-vm.swappiness", "sysctls.only-vm.swappiness")
DESIGN: JSON = {
    "kind": "ablation",
    "factors": [
        {
            "tweakset": "sysctls",
            "name": "vm.swappiness",
            "kind": "sysctl",
            "levels": [None, "1", "10"],
        },
        {"tweakset": "sysctls", "name": "script:warm", "kind": "script", "levels": [None, "run"]},
    ],
    "points": {
        "sysctls": {"tweakset": "sysctls", "levels": {"vm.swappiness": "10", "script:warm": "run"}},
        "sysctls.no-vm.swappiness": {
            "tweakset": "sysctls",
            "levels": {"vm.swappiness": None, "script:warm": "run"},
        },
        "sysctls.only-vm.swappiness": {
            "tweakset": "sysctls",
            "levels": {"vm.swappiness": "10", "script:warm": None},
        },
    },
    "notes": {"sysctls": {"letters": {"A": "vm.swappiness", "B": "script:warm"}}},
}


def run_with(**changes: object) -> JSON:
    run: JSON = copy.deepcopy(saved_run(Made(arms=(STOCK, AGAIN, *(Arm(name) for name in ARMS)))))
    run["deeptweak"]["design"] |= copy.deepcopy(DESIGN) | changes
    return run


def test_a_design_is_read_as_it_was_written() -> None:
    written = run_with()
    jsonschema.Draft202012Validator(
        json.loads((DATA / "run.schema.json").read_text(encoding="utf-8"))
    ).validate(written)
    design = from_json(written, "here").design
    assert (design.kind, design.seed) == ("ablation", written["deeptweak"]["design"]["seed"])
    assert design.factors == (
        Factor("sysctls", "vm.swappiness", "sysctl", (None, "1", "10")),
        Factor("sysctls", "script:warm", "script", (None, "run")),
    )
    assert design.points["sysctls.no-vm.swappiness"] == DesignPoint(
        "sysctls", {"vm.swappiness": None, "script:warm": "run"}
    )
    assert design.notes == DESIGN["notes"]


FACTOR, POINT = DESIGN["factors"][0], DESIGN["points"]["sysctls"]
REFUSED: dict[str, JSON] = {
    "a factor of nobody": {"factors": [FACTOR | {"tweakset": "other"}], "points": {}},
    "a factor twice": {"factors": [FACTOR, FACTOR], "points": {}},
    "an unknown kind": {"factors": [FACTOR | {"kind": "magic"}]},
    "a factor that is never as found": {"factors": [FACTOR | {"levels": ["1", "10"]}]},
    "a factor that is not varied": {"factors": [FACTOR | {"levels": [None]}]},
    "a level twice": {"factors": [FACTOR | {"levels": [None, "1", "1"]}]},
    "a level that is a number": {"factors": [FACTOR | {"levels": [None, 10]}]},
    "levels in words": {"factors": [FACTOR | {"levels": "1, 10"}]},
    "a point of no tweak set": {"points": {"other": POINT}},
    "a point of no profile": {"points": {"sysctls": POINT | {"tweakset": "stock"}}},
    "a point without a level": {"points": {"sysctls": POINT | {"levels": {"vm.swappiness": "10"}}}},
    "a level that no factor has": {
        "points": {"sysctls": POINT | {"levels": {"vm.swappiness": "7", "script:warm": None}}}
    },
    "a level that is an object": {
        "points": {"sysctls": POINT | {"levels": {"vm.swappiness": [], "script:warm": None}}}
    },
    "notes on nobody": {"notes": {"other": {}}},
    "notes in words": {"notes": {"sysctls": "I = ABC"}},
    "a kind that is no text": {"kind": 3},
}


def test_refusals(snapshot: SnapshotAssertion) -> None:
    messages = {}
    for name, changes in REFUSED.items():
        with pytest.raises(Unreadable) as refused:
            from_json(run_with(**changes), "here")
        messages[name] = str(refused.value)
        assert "\n" not in messages[name]
    assert messages == snapshot
