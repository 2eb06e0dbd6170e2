"""The figures of a run: each formula on numbers small enough for the head, what is always true of them, and when one is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.io.responses import describe_identity, identity, judge
from analysis.studies.io.terms import GIB, MIB, Checkpoint, Epoch, IoRun
from tests.dlio_like import epoch, io_run

if TYPE_CHECKING:
    import random

    from syrupy.assertion import SnapshotAssertion

LOADS = [1.0, *[0.01] * 19]  # 20 steps of 0.1 s computation; the first batch takes a second


def value(run: IoRun, name: str) -> float:
    found = judge(run).formula(name)
    assert found is not None
    return found


def why(run: IoRun, name: str) -> str:
    response = judge(run).responses[name]
    assert response.value is None
    return response.why_missing or ""


def test_why_there_is_no_figure(snapshot: SnapshotAssertion) -> None:
    """Each beside what stands all the same. 10 steps leave 9; of 20 must follow 19 do; S - 2 of one step is -1."""
    unread = io_run(epoch(LOADS), epoch(LOADS, rank=1, rchar_bytes=5))
    idle = io_run(epoch([0.1] * 20, [0.0] * 20), computation_time_s=0.0)
    reasons = {
        "ten steps": why(io_run(epoch([0.5] * 10), read_threads=0, prefetch_factor=2), "au_steady_percent"),
        "five readers": why(io_run(epoch([0.5] * 20), read_threads=5, prefetch_factor=2), "au_steady_percent"),
        "two steps": why(io_run(epoch([0.5] * 2)), "samples_per_s_dlio"),
        "one step": why(io_run(epoch([0.5])), "samples_per_s_dlio"),
        "nothing computed": why(idle, "au_whole_percent"),
        "more computation than time": why(io_run(Epoch(1, 0, 0.0, 1.9, (0.0,) * 20, (0.1,) * 20)), "samples_per_s_whole"),
        "no time": why(io_run(Epoch(1, 0, 5.0, 5.0, (0.1,) * 20, (0.1,) * 20)), "samples_per_s_whole"),
        "no checkpoint": why(unread, "checkpoint_gb_per_s"),
        "checkpoint without size": why(io_run(epoch(LOADS), checkpoints=(Checkpoint(None, 1.0),)), "checkpoint_gb_per_s"),
    } | {name: why(unread, name) for name in ("mb_per_s_read", "mb_per_s_fetched", "device_mb_per_s")}
    assert reasons == snapshot
    assert judge(idle).value("samples_per_s_whole") == pytest.approx(4 / 0.1)


def test_utilisation_without_the_first_step_and_over_the_whole_epoch() -> None:
    """T = 1.0 + 19 x 0.01 + 20 x 0.1 = 3.19 s. Steady: 1.9 s of computation in 3.19 - 1.1 = 2.09 s. Whole: 2.0 in 3.19."""
    run = io_run(epoch(LOADS))
    assert value(run, "au_steady_percent") == pytest.approx(100 * 1.9 / 2.09)
    assert value(run, "au_whole_percent") == pytest.approx(100 * 2.0 / 3.19)
    assert judge(run).value("au_steady_percent") == pytest.approx(90.909, abs=0.001)


def test_throughput_three_ways() -> None:
    """Batch 4: 19 steps in 2.09 s, all 20 in 3.19 s, and DLIO's 18 in the 2.09 s that hold 19. Records of 1 MiB make MiB/s of it."""
    run = io_run(epoch(LOADS))
    assert value(run, "samples_per_s_steady") == pytest.approx(19 * 4 / 2.09)
    assert value(run, "samples_per_s_whole") == pytest.approx(20 * 4 / 3.19)
    assert value(run, "samples_per_s_dlio") == pytest.approx(18 * 4 / 2.09)
    for way in ("steady", "whole", "dlio"):
        assert value(run, f"mb_per_s_nominal_{way}") == pytest.approx(value(run, f"samples_per_s_{way}"))


def test_dlio_2_0_0_counts_all_steps_over_all_time() -> None:
    run = io_run(epoch(LOADS), dlio_counts_all=True)
    assert value(run, "samples_per_s_dlio") == value(run, "samples_per_s_whole")


def test_steps_left_out_can_be_chosen() -> None:
    """Two at the start and three at the end of [1.0, 0.5, 0.01 ...]: 15 steps of 0.11 s remain."""
    run = io_run(epoch([1.0, 0.5, *[0.01] * 15, 2.0, 2.0, 2.0]), excluded_start_steps=2, excluded_end_steps=3)
    assert value(run, "au_steady_percent") == pytest.approx(100 * 0.1 / 0.11)
    assert value(run, "samples_per_s_steady") == pytest.approx(4 / 0.11)


def test_barriers_and_the_readers_end_count_against_utilisation() -> None:
    """0.5 s beyond load and computation: 0.5 of 3.69 s is neither, and both utilisations fall."""
    run = io_run(epoch(LOADS, over_s=0.5))
    assert value(run, "barrier_share") == pytest.approx(0.5 / 3.69)
    assert value(run, "au_steady_percent") == pytest.approx(100 * 1.9 / 2.59)
    assert value(run, "first_step_share") == pytest.approx(1.0 / 3.69)


def test_ranks_average_their_utilisation_and_add_their_samples() -> None:
    """Rank 1 waits 0.1 s for every batch: 50 % of the time of its retained steps; rank 0 is at 90.909 %."""
    run = io_run(epoch(LOADS), epoch([1.0, *[0.1] * 19], rank=1))
    assert value(run, "au_steady_percent") == pytest.approx((100 * 1.9 / 2.09 + 50) / 2)
    assert value(run, "samples_per_s_steady") == pytest.approx(76 / 2.09 + 76 / 3.8)


def test_epochs_are_averaged_and_their_scatter_is_of_the_population() -> None:
    """62.70 % and 38.46 % whole (5.2 s for 2.0): the deviation is half their difference, as DLIO's numpy has it."""
    run = io_run(epoch(LOADS), epoch([1.3, *[0.1] * 19], number=2))
    response = judge(run).responses["au_whole_percent"]
    first, second = 100 * 2.0 / 3.19, 100 * 2.0 / 5.2
    assert response.per_epoch == pytest.approx((first, second))
    assert response.value == pytest.approx((first + second) / 2)
    assert response.sd_epochs == pytest.approx((first - second) / 2)


def test_blocks_of_an_epoch_are_weighted_by_their_steps() -> None:
    """A checkpoint by steps: 20 steps at 90.909 %, then 10 at 100 x 0.9 / 1.8: (20 x 90.909 + 10 x 50) / 30."""
    run = io_run(epoch(LOADS), epoch([1.0, *[0.1] * 9], block=2))
    assert value(run, "au_steady_percent") == pytest.approx((20 * 100 * 1.9 / 2.09 + 10 * 50) / 30)
    assert value(run, "au_whole_percent") == pytest.approx(100 * 3.0 / (3.19 + 2.9))
    assert value(run, "samples_per_s_whole") == pytest.approx(30 * 4 / (3.19 + 2.9))


def test_bytes_really_read_are_rates_of_their_own() -> None:
    """Each rank 80 MiB in 3.19 s; rank 0 alone looked at the device, which gave 40 MiB to everybody."""
    size = int(80 * MIB)
    first = epoch(LOADS, device_read_bytes=size // 2, rchar_bytes=size, read_bytes=0)
    run = io_run(first, epoch(LOADS, rank=1, rchar_bytes=size, read_bytes=0))
    assert judge(run).value("mb_per_s_read") == pytest.approx(2 * 80 / 3.19)
    assert judge(run).value("mb_per_s_fetched") == 0.0
    assert judge(run).value("device_mb_per_s") == pytest.approx(40 / 3.19)


def test_checkpoints_are_all_bytes_over_all_time() -> None:
    """1 GiB in 1 s and 1 GiB in 3 s are 0.5 GiB/s; a mean of the two rates would say 0.67."""
    marks = (Checkpoint(GIB, 1.0), Checkpoint(GIB, 3.0))
    assert judge(io_run(epoch(LOADS), checkpoints=marks)).value("checkpoint_gb_per_s") == pytest.approx(0.5)


@pytest.mark.parametrize(("steps", "readers"), [(10, 0), (20, 5)])
def test_too_few_steps_refuse_what_leaves_the_first_one_out(steps: int, readers: int) -> None:
    """At least 10 steps after the excluded ones, and twice as many as the readers fetch while nobody looks; whole epochs stand."""
    run = io_run(epoch([0.5] * steps), read_threads=readers, prefetch_factor=2)
    for name in ("au_steady_percent", "samples_per_s_steady", "samples_per_s_dlio", "mb_per_s_nominal_steady", "mb_per_s_nominal_dlio"):
        assert why(run, name).startswith("insufficient_steps")
    assert judge(run).value("au_whole_percent") is not None
    enough = io_run(epoch([0.5] * (steps + 1)), read_threads=readers, prefetch_factor=2)
    assert judge(enough).value("au_steady_percent") is not None


TIMES = st.floats(0, 100)
STEPS = st.lists(st.tuples(TIMES, st.floats(0.001, 10)), min_size=3, max_size=60)


@st.composite
def runs(draw: st.DrawFn) -> IoRun:
    """Any run: ranks of any step lists, any barrier, an epoch or three."""
    made: list[Epoch] = []
    ranks = draw(st.integers(1, 4))
    for number in range(1, draw(st.integers(1, 3)) + 1):
        for rank in range(ranks):
            steps = draw(STEPS)
            loads, computes = [load for load, _ in steps], [compute for _, compute in steps]
            made.append(epoch(loads, computes, over_s=draw(TIMES), number=number, rank=rank))
    return io_run(*made, batch_size=draw(st.integers(1, 400)), computation_time_s=draw(st.floats(0.001, 10)))


@given(runs())
def test_what_is_always_true_of_figures(run: IoRun) -> None:
    responses = judge(run).responses
    for name in ("au_steady_percent", "au_whole_percent"):
        assert all(0 <= one <= 100.0001 for one in responses[name].per_epoch)
    pairs = zip(responses["samples_per_s_dlio"].per_epoch, responses["samples_per_s_steady"].per_epoch, strict=True)
    assert all(theirs <= ours * (1 + 1e-9) for theirs, ours in pairs)
    assert all((response.value is None) == (response.why_missing is not None) for response in responses.values())


@given(STEPS, TIMES, st.integers(1, 400))
def test_throughput_is_utilisation_by_another_name(steps: list[tuple[float, float]], over_s: float, batch: int) -> None:
    run = io_run(epoch([load for load, _ in steps], [compute for _, compute in steps], over_s=over_s), batch_size=batch)
    assert identity(judge(run)).measured == pytest.approx(1, rel=1e-6)


@given(runs(), st.randoms(use_true_random=False))
def test_who_is_called_rank_0_changes_nothing(run: IoRun, shuffled: random.Random) -> None:
    names = sorted({one.rank for one in run.epochs})
    renamed = dict(zip(names, shuffled.sample(names, len(names)), strict=True))
    made = [
        epoch(one.load_s, one.compute_s, over_s=one.duration_s - sum(one.busy_s), number=one.number, rank=renamed[one.rank])
        for one in run.epochs
    ]
    shuffled.shuffle(made)
    other = io_run(*made, batch_size=run.batch_size, computation_time_s=run.computation_time_s)
    before, after = judge(run).responses, judge(other).responses
    for name, response in before.items():
        assert after[name].per_epoch == pytest.approx(response.per_epoch, rel=1e-6, abs=1e-6)


def test_the_identity_is_of_all_runs_together(snapshot: SnapshotAssertion) -> None:
    """1 within 0.005 for ranks that compute equally long, and found broken where they do not belong to one job."""
    good = judge(io_run(epoch(LOADS), epoch([1.0, *[0.1] * 19], rank=1)))
    odd = judge(io_run(epoch(LOADS), epoch(LOADS, [0.9] * 20, rank=1)))
    assert {"good": describe_identity([good]), "one odd": describe_identity([good, odd])} == snapshot
    assert describe_identity([judge(io_run(epoch([0.1] * 2)))]) is None
