"""Cells and their order: complete blocks, shuffled by a seed, always with stock."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.cells import STOCK, STOCK_AGAIN, pairs, randomized_blocks
from fixtures.terms import BadInput, TweakSet

NAMES = st.lists(
    st.sampled_from(["cnn", "ddp", "lora", "checkpoint"]), min_size=1, max_size=4, unique=True
)
SETS = st.lists(st.sampled_from(["thp", "dirty", "tcp", "numa", "sched"]), max_size=5, unique=True)
BLOCKS = st.integers(1, 6)
SEEDS = st.integers(0, 1000)


def every_pair(workloads: list[str], sets: list[str]) -> list[tuple[str, str]]:
    return pairs(workloads, [TweakSet(name) for name in sets], crossed=True)


@given(NAMES, SETS, BLOCKS, SEEDS)
def test_every_pair_runs_once_in_every_block(
    workloads: list[str], sets: list[str], blocks: int, seed: int
) -> None:
    """A randomised complete block design: each block has each pair once, blocks are in sequence."""
    found = randomized_blocks("study", every_pair(workloads, sets), blocks, seed)
    wanted = set(itertools.product(workloads, ["stock", "stock-again", *sets]))
    for block in range(1, blocks + 1):
        here = [(c.workload, c.tweakset) for c in found if c.block == block]
        assert len(here) == len(wanted)
        assert set(here) == wanted
    assert [c.block for c in found] == sorted(c.block for c in found)
    assert [c.order for c in found] == list(range(1, len(found) + 1))


def test_more_cells_than_a_session_can_hold_are_refused_at_once() -> None:
    with pytest.raises(BadInput, match=r"--blocks=99999999999 .* a run may have at most 20,000"):
        randomized_blocks("study", every_pair(["cnn"], []), 99999999999, 1)
    assert len(randomized_blocks("study", every_pair(["cnn"], []), 10_000, 1)) == 20_000


@given(NAMES, SETS, BLOCKS, SEEDS)
def test_inside_a_block_a_workload_runs_in_one_stretch(
    workloads: list[str], sets: list[str], blocks: int, seed: int
) -> None:
    found = randomized_blocks("study", every_pair(workloads, sets), blocks, seed)
    stretches = [key for key, _ in itertools.groupby(found, key=lambda c: (c.block, c.workload))]
    assert len(stretches) == blocks * len(workloads)


@given(NAMES, SETS, BLOCKS, SEEDS)
def test_ids_are_unique_and_do_not_depend_on_the_seed(
    workloads: list[str], sets: list[str], blocks: int, seed: int
) -> None:
    """`--benchmark-compare` finds a cell again by its name, in a run of another order too."""
    one, other = (
        randomized_blocks("study", every_pair(workloads, sets), blocks, number)
        for number in (seed, seed + 1)
    )
    assert len({c.id for c in one}) == len(one)
    assert {c.id for c in one} == {c.id for c in other}
    assert one[0].id == f"study/{one[0].workload}-{one[0].tweakset}-b1"


def test_orders_differ_between_blocks_seeds_and_studies() -> None:
    """A fixed order would give every set the same neighbours and the same place in every drift."""

    def order(study: str, seed: int, block: int) -> list[str]:
        found = randomized_blocks(study, every_pair(["cnn"], ["a", "b", "c", "d", "e"]), 6, seed)
        return [c.tweakset for c in found if c.block == block]

    # 7! = 5040 orders: that any two of these ten agree by chance has the probability 45/5040 < 1 %,
    # and the seeds are fixed.
    orders = (
        [order("study", 1, b) for b in range(1, 7)]
        + [order("study", s, 1) for s in (2, 3, 4)]
        + [order("other", 1, 1)]
    )
    assert len({tuple(one) for one in orders}) == 10


def test_every_set_comes_first_in_a_block_equally_often() -> None:
    """Over 400 blocks each of 4 sets is first in about 100 (binomial sd 8.7; six are allowed)."""
    found = randomized_blocks("study", every_pair(["cnn"], ["a", "b"]), 400, 1)
    first = [c.tweakset for c in found if (c.order - 1) % 4 == 0]
    for name in ("stock", "stock-again", "a", "b"):
        assert abs(first.count(name) - 100) < 52


def test_a_set_meets_the_workloads_its_manifest_names() -> None:
    tcp = TweakSet("tcp", workloads=("ddp",))
    assert pairs(["cnn", "ddp"], [tcp], crossed=False) == [
        ("ddp", "stock"),
        ("ddp", "stock-again"),
        ("ddp", "tcp"),
    ]
    assert ("cnn", "tcp") in pairs(["cnn", "ddp"], [tcp], crossed=True), "the user has named it"


@pytest.mark.parametrize("crossed", [True, False])
def test_without_any_set_the_machine_is_compared_with_itself(*, crossed: bool) -> None:
    assert pairs(["cnn"], [], crossed=crossed) == [("cnn", STOCK.name), ("cnn", STOCK_AGAIN.name)]
