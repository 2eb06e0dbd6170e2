"""Which samples each rank reads: all steps' worth, each sample at most once, shuffled only where that was asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.studies.io import job as shards
from fixtures.studies.io.job import Sharding

SHUFFLES = st.sampled_from(["off", "seed", "random"])


@st.composite
def shardings(draw: st.DrawFn) -> Sharding:
    """Any with at least one step."""
    processes, batch = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    per_file = draw(st.integers(1, 7))
    least = -(-processes * batch // per_file)
    return Sharding(draw(st.integers(least, least + 40)), per_file, processes, batch, draw(SHUFFLES), draw(SHUFFLES))


@given(shardings(), st.integers(1, 5), st.integers(0, 2**31), st.integers(0, 2**60))
def test_the_ranks_together_read_each_sample_at_most_once(sharding: Sharding, epoch: int, seed: int, drawn: int) -> None:
    """S x batch samples each, S = floor(samples / batch / P), of those that there are."""
    orders = [shards.order(sharding, rank, epoch, seed, drawn) for rank in range(sharding.processes)]
    total = sharding.files * sharding.samples_per_file
    assert {len(order) for order in orders} == {total // sharding.batch_size // sharding.processes * sharding.batch_size}
    read = [sample for order in orders for sample in order]
    assert len(set(read)) == len(read)
    assert set(read) <= set(range(total))


def sharding(file_shuffle: str, sample_shuffle: str) -> Sharding:
    return Sharding(20, 5, 2, 5, file_shuffle, sample_shuffle)


def test_unshuffled_each_rank_has_a_stretch_of_its_own() -> None:
    """100 samples, two ranks: 0 to 49 and 50 to 99, in order, in every epoch."""
    for epoch in (1, 2):
        assert [list(shards.order(sharding("off", "off"), rank, epoch, 7, 8)) for rank in (0, 1)] == [[*range(50)], [*range(50, 100)]]


def test_files_are_shuffled_whole_and_samples_within_the_rank() -> None:
    """Of a shuffled file the samples follow one another; shuffled samples stay with the rank that has them."""
    by_file = shards.order(sharding("seed", "off"), 0, 1, 7, 8)
    assert list(by_file) != [*range(50)]
    assert all(sample % 5 == place % 5 for place, sample in enumerate(by_file))
    by_sample = shards.order(sharding("off", "seed"), 0, 1, 7, 8)
    assert list(by_sample) != [*range(50)]
    assert sorted(by_sample) == [*range(50)]


@pytest.mark.parametrize(("files", "samples"), [("seed", "off"), ("off", "seed"), ("seed", "seed")])
def test_a_seed_gives_each_epoch_an_order_and_always_the_same(files: str, samples: str) -> None:
    """Whatever was drawn; another seed gives another."""
    one = shards.order(sharding(files, samples), 0, 1, seed=7, drawn=8)
    assert one == shards.order(sharding(files, samples), 0, 1, seed=7, drawn=9)
    assert one != shards.order(sharding(files, samples), 0, 2, seed=7, drawn=8)
    assert one != shards.order(sharding(files, samples), 0, 1, seed=8, drawn=8)
    assert shards.crc32(one) != shards.crc32(shards.order(sharding(files, samples), 0, 2, seed=7, drawn=8))


@pytest.mark.parametrize(("files", "samples"), [("random", "off"), ("off", "random")])
def test_random_is_what_was_drawn(files: str, samples: str) -> None:
    one = shards.order(sharding(files, samples), 1, 1, seed=7, drawn=8)
    assert one == shards.order(sharding(files, samples), 1, 1, seed=6, drawn=8)
    assert one != shards.order(sharding(files, samples), 1, 1, seed=7, drawn=9)
