"""What a training prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analysis.logs import training_output
from analysis.terms import Unreadable

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

LOSSES = st.lists(st.floats(0, 100).map(lambda loss: round(loss, 6)), max_size=20)
CORRECT = st.lists(st.integers(0, 10000), max_size=5)
WORDS = st.sampled_from(
    ["Train Epoch: 1 [0/60000 (0%)]", "\tLoss: nan", "time:  ", "48.6", "9836/10000", "Test set: Average loss: 0.1", "\0"]
)
SOUP = st.lists(st.one_of(st.lists(WORDS, max_size=5).map("".join), st.text(max_size=30))).map("\n".join)


def read(folder: Path, text: str) -> training_output.TrainingLog:
    path = folder / "model.txt"
    path.write_text(text)
    return training_output.read(path)


@given(losses=LOSSES, correct=CORRECT, time_s=st.floats(0.001, 1e6))
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, losses: list[float], correct: list[int], time_s: float) -> None:
    text = "".join(f"Train Epoch: {at} [{640 * at}/60000 ({at}%)]\tLoss: {loss:.6f}\n" for at, loss in enumerate(losses, 1))
    text += (
        "".join(f"\nTest set: Average loss: 0.0481, Accuracy: {one}/10000 ({one // 100}%)\n\n" for one in correct) + f"time:  {time_s}\n"
    )
    log = read(tmp_path_factory.mktemp("log"), text)
    assert (log.loss.tolist(), [one.correct for one in log.tests], log.time_s) == (losses, correct, time_s)
    assert (log.epoch.tolist(), log.seen.tolist()) == ([*range(1, len(losses) + 1)], [640 * at for at in range(1, len(losses) + 1)])
    assert (log.ignored, log.why_no_time) == ((), "")


@given(text=SOUP)
def test_no_soup_of_lines_breaks_it(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    try:
        log = read(tmp_path_factory.mktemp("log"), text)
    except Unreadable:
        return
    assert (log.time_s is None) == bool(log.why_no_time)


def test_a_training_that_did_not_end_has_no_time_and_never_none_at_all(tmp_path: Path) -> None:
    """`time:  48.65` cut before its end would read as a faster training; of two times nobody knows which."""
    whole = "Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.299824\ntime:  48.65953783600344\n"
    for text in (whole[:-1], whole[:-15], whole.splitlines()[0] + "\n", "time:  5.0\ntime:  6.0\n"):
        log = read(tmp_path, text)
        assert log.time_s is None
        assert log.why_no_time


def test_what_cannot_be_is_left_out(tmp_path: Path) -> None:
    """More right than there are, no time at all, and another program's words; a loss that diverged is what was printed."""
    damage = "Test set: Average loss: 0.1, Accuracy: 9/8 (112%)\ntime:  0\nWarning: old driver\n"
    log = read(tmp_path, damage + "Train Epoch: 1 [0/60000 (0%)]\tLoss: nan\ntime:  5\n")
    assert (log.tests, log.time_s, [line.split(":")[0] for line in log.ignored]) == ((), 5.0, ["line 1", "line 2", "line 3"])
    assert np.isnan(log.loss).tolist() == [True]
