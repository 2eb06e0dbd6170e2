"""DLIO's log, read while it is written: what is a step, when it began and ended, how long each rank waited for the others."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.studies.io.dlio_outputs import LogProgress
from tests.io.dlio.recorded import RECORDINGS


def story(recording: str) -> LogProgress:
    told = LogProgress()
    for line in (RECORDINGS / recording / "dlio.log").read_text().splitlines():
        told.read_line(line)
    return told


@pytest.mark.parametrize(("recording", "steps"), [("1", 12), ("2", 6)])
def test_every_step_of_the_first_rank_is_told_once_and_in_order(recording: str, steps: int) -> None:
    told = story(recording)
    assert [(one.epoch, one.step) for one in told.steps] == [(epoch, step) for epoch in (1, 2) for step in range(1, steps + 1)]
    assert (told.running, told.epochs_begun, told.epochs_over) == (True, 2, 2)


@pytest.mark.parametrize("recording", ["1", "2"])
def test_the_steps_of_an_epoch_are_as_long_as_its_block(recording: str) -> None:
    """No gap between steps: their sum is the block that DLIO stamped, to the millisecond that its last lines took."""
    told = story(recording)
    stats = json.loads((RECORDINGS / recording / "per_epoch_stats.json").read_text())
    for epoch in (1, 2):
        steps = [one for one in told.steps if one.epoch == epoch]
        for before, after in pairwise(steps):
            assert before.start_s + before.wall_s == pytest.approx(after.start_s, abs=1e-6)
        block = stats[str(epoch)]["block1"]
        from_block = float(block["end"][-9:]) - float(block["start"][-9:])
        assert sum(one.wall_s for one in steps) == pytest.approx(from_block, abs=2e-3)


def test_a_barrier_is_what_lies_between_a_computation_and_the_next_wait() -> None:
    """Recording 2, epoch 1: rank 0 is through with step 1 at 27.904093 s, rank 1 at 27.959493 s.

    Rank 0 is through with step 2 at 27.985013 s, 0.023973 s after it began to wait: at 27.961040 s. So it had waited 0.056947 s at the
    barrier, and rank 1, which was late, 0.001547 s.
    """
    told = story("2")
    first, second = told.barriers(1, 0, 6), told.barriers(1, 1, 6)
    assert first is not None
    assert second is not None
    assert first[0] == pytest.approx(0.056947, abs=2e-6)
    assert second[0] == pytest.approx(0.001547, abs=2e-6)
    assert told.barriers(1, 2, 6) is None  # there is no third rank
    assert told.barriers(1, 0, 7) is None  # nor a seventh step


def test_a_checkpoint_within_an_epoch_is_not_in_the_step_it_follows() -> None:
    lines = [
        "[INFO] 2026-01-01T00:00:00.000000 Starting epoch 1: 2 steps expected [x]",
        "[INFO] 2026-01-01T00:00:00.000000 Starting block 1 [x]",
        "[INFO] 2026-01-01T00:00:00.100000 Rank 0 step 1 processed 2 samples in 0.1 s [x]",
        "[INFO] 2026-01-01T00:00:00.110000 Ending block 1 - 1 steps completed in 0.11 s [x]",
        "[INFO] 2026-01-01T00:00:00.110000 Starting checkpoint 1 after total step 1 for epoch 1 [x]",
        "[INFO] 2026-01-01T00:00:05.110000 Ending checkpoint 1 for epoch 1 [x]",
        "[INFO] 2026-01-01T00:00:05.210000 Rank 0 step 2 processed 2 samples in 0.1 s [x]",
        "[INFO] 2026-01-01T00:00:05.220000 Maximum number of steps reached [x]",
    ]
    told = LogProgress()
    for line in lines:
        told.read_line(line)
    assert [round(one.wall_s, 6) for one in told.steps] == [0.11, 5.11]
    assert told.barriers(1, 0, 2) == [0.01, 0.01]


def test_later_trees_write_it_a_little_otherwise() -> None:
    """Four digits, the blank before the unit missing, another name for the level; where no batch is left they end without a word."""
    told = LogProgress()
    for line in (
        "[OUTPUT] 2026-01-01T00:00:00.000000 Starting epoch 1: 1 steps expected",
        "[OUTPUT] 2026-01-01T00:00:00.000000 Starting block 1",
        "[INFO] 2026-01-01T00:00:00.090000 Rank 0 step 1: loaded 2 samples in 0.0900 s",
        "[INFO] 2026-01-01T00:00:00.100000 Rank 0 step 1 processed 2 samples in 0.1000s)",
        "[OUTPUT] 2026-01-01T00:00:00.130000 Ending block 1 - 1 steps completed in 0.13 s",
        "[OUTPUT] 2026-01-01T00:00:00.140000 Ending epoch 1 - 1 steps completed in 0.14 s",
    ):
        told.read_line(line)
    assert [(one.step, round(one.wall_s, 6)) for one in told.steps] == [(1, 0.13)]
    assert told.epochs_over == 1


@given(st.text())
def test_what_is_no_line_of_it_is_passed_over(line: str) -> None:
    told = LogProgress()
    told.read_line(line)
    assert told == LogProgress()
