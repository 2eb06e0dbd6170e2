"""Our own partitioner: never above the cap, never below what was profiled, mixes where they are better, the same each time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.terms import Refused
from control.power import catalog
from control.power.search import WORTH, Space, Tiles, best
from control.power.terms import Infeasible
from tests.analysis.studies.power.toy import GPU, Toy, UnsureToy, by_memory, partition

if TYPE_CHECKING:
    from control.power.greedy import PartitionAnswer
    from control.power.terms import Floats, Partition

SMALL = tuple(partition(*[(share, batch)] * count) for share in (20.0, 40.0) for batch in (8, 64) for count in (1, 2))
BOTH = by_memory(Toy(9501.0, SMALL), Toy(5001.0, SMALL))
CLOCKS = np.array([mhz for mhz in GPU.sm_mhz if mhz <= GPU.anchor_mhz])


def of_profiled(found: PartitionAnswer) -> PartitionAnswer:
    """The best of what was profiled."""
    return found.best_profiled or found


def tried(models: Iterable[Toy], partitions: Iterable[Partition], cap_w: float) -> float:
    """The highest throughput within the cap, each partition and clock by itself; -inf where there is none."""
    highest = -np.inf
    for model in models:
        for one in partitions:
            anchor = model.anchor([one])
            within = model.power_w(anchor, CLOCKS) <= cap_w
            throughput = model.throughput_images_per_s(anchor, CLOCKS)
            highest = max(highest, float(throughput[within].max(initial=-np.inf)))
    return highest


@given(cap_w=st.floats(80, 300), margin_w=st.sampled_from([0.0, 3.0]), falling=st.booleans(), likes=st.sampled_from([-50.0, 0.0, 50.0]))
def test_an_answer_is_within_the_cap_on_a_supported_clock_and_no_worse_than_any_profiled_one(
    cap_w: float,
    margin_w: float,
    falling: bool,  # noqa: FBT001
    likes: float,
) -> None:
    """Whichever way the model's power runs with the clock."""
    models = {mhz: replace(one, falling=falling, likes=likes) for mhz, one in BOTH.items()}
    profiled = tried(models.values(), SMALL, cap_w - margin_w)
    if profiled == -np.inf:
        with pytest.raises(Infeasible):
            best(models, GPU, cap_w, network="none", margin_w=margin_w)
        return
    found = best(models, GPU, cap_w, network="none", margin_w=margin_w)
    assert found.power_w + margin_w <= cap_w
    assert found.feasible
    assert found.setting.sm_mhz in CLOCKS
    assert found.throughput_images_per_s >= profiled
    only = of_profiled(found)
    assert only.profiled
    assert only.throughput_images_per_s == profiled
    assert found.profiled or (found.best_profiled is not None and found.best_profiled.setting == only.setting)


@given(cap_w=st.floats(100, 300), likes=st.floats(0, 100))
def test_in_a_small_space_the_best_of_all_mixes_is_found(cap_w: float, likes: float) -> None:
    """Against every multiset of the profiled processes that is no larger than one profiled: local search need not, but here it does."""
    models = {mhz: replace(one, likes=likes) for mhz, one in BOTH.items()}
    tiles = [(20.0, 8), (20.0, 64), (40.0, 8), (40.0, 64)]
    every = [partition(*some) for count in (1, 2) for some in combinations_with_replacement(tiles, count)]
    highest = tried(models.values(), every, cap_w)
    found = best(models, GPU, cap_w, network="none")
    if found.profiled:
        assert found.throughput_images_per_s * WORTH >= highest
    else:
        assert found.throughput_images_per_s == pytest.approx(highest)


def test_a_mix_that_is_better_is_answered_with_the_best_profiled_beside_it() -> None:
    """And what is a mix is not called profiled: there the model extrapolates."""
    models = by_memory(Toy(5001.0, SMALL, likes=500.0))
    found = best(models, GPU, 300.0, network="none")
    assert len(set(zip(found.setting.partition.shares, found.setting.partition.batches, strict=True))) == 2
    assert not found.profiled
    assert found.best_profiled is not None
    assert found.best_profiled.profiled
    assert found.best_profiled.throughput_images_per_s < found.throughput_images_per_s


def test_a_mix_that_is_hardly_better_is_not_answered() -> None:
    """Where the model extrapolates, less than a percent is nothing: the profiled partition it is."""
    models = by_memory(Toy(5001.0, SMALL))
    plain = of_profiled(best(models, GPU, 300.0, network="none"))
    mixed = tried(models.values(), [partition((40.0, 64), (40.0, 8))], 300.0)
    wanted = plain.throughput_images_per_s - mixed
    for gain, profiled in ((0.5, True), (1.5, False)):
        likes = wanted + gain / 100 * plain.throughput_images_per_s
        assert best(by_memory(Toy(5001.0, SMALL, likes=likes)), GPU, 300.0, network="none").profiled is profiled


def test_a_mix_must_be_better_by_more_than_the_model_is_unsure_of_it() -> None:
    """A tenth here: what a model that is sure of itself answers is left alone by one that is not, until the gain is large."""
    small, large = (by_memory(UnsureToy(5001.0, SMALL, likes=likes)) for likes in (300.0, 500.0))
    assert not best(by_memory(Toy(5001.0, SMALL, likes=300.0)), GPU, 300.0, network="none").profiled
    assert best(small, GPU, 300.0, network="none").profiled
    assert not best(large, GPU, 300.0, network="none").profiled


def test_without_partitions_of_its_own_a_model_is_searched_on_the_profiling_grid() -> None:
    found = of_profiled(best(by_memory(Toy()), GPU, 150.0, network="none"))
    assert found.setting.partition in catalog.grid()


def test_no_batch_is_searched_that_does_not_fit_into_memory() -> None:
    """vgg19 takes up to 160 images a process; the model, which knows nothing of it, would have liked 256."""
    for network, most in (("resnet50", 256), ("vgg19", 160)):
        model = Toy(network=network)
        found = best(by_memory(model), GPU, 1000.0, network=network, max_processes=2)
        assert max(found.setting.partition.batches) == most


def test_no_more_processes_run_than_allowed() -> None:
    found = best(by_memory(Toy()), GPU, 1000.0, network="none", max_processes=1)
    assert len(found.setting.partition.shares) == 1
    with pytest.raises(Refused, match="at most 0 processes"):
        best(by_memory(Toy()), GPU, 1000.0, network="none", max_processes=0)


def test_clocks_end_where_the_model_was_fitted() -> None:
    found = of_profiled(best(by_memory(replace(Toy(), sm_range_mhz=(300.0, 1290.0))), GPU, 1000.0, network="none"))
    assert found.setting.sm_mhz == 1290
    with pytest.raises(Refused, match="fitted from 1 to 2"):
        best(by_memory(replace(Toy(), sm_range_mhz=(1.0, 2.0))), GPU, 1000.0, network="none")


@pytest.mark.parametrize("margin_w", [0.0, 5.0])
def test_a_cap_that_nothing_keeps_is_answered_with_the_smallest_that_something_does(margin_w: float) -> None:
    models = by_memory(UnsureToy(9501.0, SMALL), UnsureToy(5001.0, SMALL))
    with pytest.raises(Infeasible, match="smallest cap") as refused:
        best(models, GPU, 30.0, network="none", margin_w=margin_w)
    smallest_w = refused.value.smallest_cap
    assert smallest_w is not None
    assert best(models, GPU, smallest_w, network="none", margin_w=margin_w).setting.mem_mhz == 5001
    printed_w = float(str(refused.value).split(" is ")[-1].removesuffix(" W."))
    assert 0 <= printed_w - smallest_w <= 0.011
    with pytest.raises(Infeasible) as again:
        best(models, GPU, float(np.nextafter(smallest_w, 0)), network="none", margin_w=margin_w)
    assert again.value.smallest_cap == smallest_w


@pytest.mark.parametrize("silent", ["power_w", "throughput_images_per_s"])
def test_what_the_model_cannot_say_is_never_chosen(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above 1000 MHz it says nothing."""
    said: Callable[..., Floats] = getattr(Toy, silent)
    monkeypatch.setattr(Toy, silent, lambda model, anchor, sm_mhz: np.where(sm_mhz > 1000, np.nan, said(model, anchor, sm_mhz)))
    found = of_profiled(best(by_memory(Toy(5001.0, SMALL)), GPU, 1000.0, network="none"))
    assert found.setting.sm_mhz == 990


def test_a_memory_clock_without_model_is_left_out_and_none_at_all_is_refused() -> None:
    assert best({5001.0: BOTH[5001.0]}, GPU, 250.0, network="none").setting.mem_mhz == 5001
    assert best(BOTH, GPU, 250.0, network="none").setting.mem_mhz == 9501
    with pytest.raises(Refused, match="9501, 5001"):
        best({810.0: Toy(810.0, SMALL)}, GPU, 250.0, network="none")


space = Space(((10.0, 4), (10.0, 8), (20.0, 8), (20.0, 32)), most_share=60.0, most_processes=4)


def test_around_a_partition_is_one_process_more_or_fewer_or_other_or_some_share_moved() -> None:
    few = Space(((10.0, 4), (10.0, 8), (20.0, 8)), most_share=40.0, most_processes=3)
    ten, other, twenty = few.tiles
    assert set(few.around((twenty, ten))) - {(twenty, ten)} == {
        (twenty, ten, ten),
        (twenty, other, ten),  # one more
        (twenty,),
        (ten,),  # one fewer
        (twenty, other),
        (twenty, twenty),
        (ten, ten),
        (other, ten),  # one other; share moved from one to the other, (10, 4) and (20, 8), is the same again
    }
    assert (twenty,) in set(few.around((ten, ten)))  # two become one


def test_every_partition_can_be_reached_from_every_other() -> None:
    reached: set[Tiles] = {((10.0, 4),)}
    new = reached
    while new:
        new = {other for one in new for other in space.around(one)} - reached
        reached = reached | new
    every = {  # and no other: none above the share, the processes or the tiles of the space
        tuple(sorted(some, reverse=True))
        for count in range(1, 5)
        for some in combinations_with_replacement(space.tiles, count)
        if sum(share for share, _ in some) <= 60
    }
    assert reached == every
