"""What a training prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.logs.nvidia_smi import read_nvidia_smi
from analysis.logs.readers import TrainingLog, read_dcgmi, read_top, read_training
from analysis.terms import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion


LOSSES = st.lists(st.floats(0, 100).map(lambda loss: round(loss, 6)), max_size=20)
CORRECT = st.lists(st.integers(0, 10000), max_size=5)
WORDS = st.sampled_from(
    ["Train Epoch: 1 [0/60000 (0%)]", "\tLoss: nan", "time:  ", "48.6", "9836/10000", "Test set: Average loss: 0.1", "\0"]
)
SOUP = st.lists(st.one_of(st.lists(WORDS, max_size=5).map("".join), st.text(max_size=30))).map("\n".join)


def read(folder: Path, text: str) -> TrainingLog:
    path = folder / "model.txt"
    path.write_text(text)
    return read_training(path)


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
    damage = "Test set: Average loss: 0.1, Accuracy: 9/8 (112%)\ntime:  0\nWarning: old driver\n"
    log = read(tmp_path, damage + "Train Epoch: 1 [0/60000 (0%)]\tLoss: nan\ntime:  5\n")
    assert (log.tests, log.time_s, [line.split(":")[0] for line in log.ignored]) == ((), 5.0, ["line 1", "line 2", "line 3"])
    assert np.isnan(log.loss).tolist() == [True]


READERS: dict[str, Callable[[Path], object]] = {
    "dcgmi_dmon": read_dcgmi,
    "nvidia_smi_csv": read_nvidia_smi,
    "top_batch": read_top,
    "training_output": read_training,
}
ALL = {"empty": b"", "blank": b" \n\n", "bytes": bytes(range(256))}
OTHERS = {
    "dcgmi_dmon": (b"#Entity  SMACT\nID\n", b"name, utilization.gpu [%]\nNVIDIA A100, 5 %\n"),
    "nvidia_smi_csv": (
        b"name, utilization.gpu [%]\n",
        b"0,1,1,65.0\n1,1,8,65.8\n",
        b"#Entity  SMACT\nID\nGPU 0  0.5\n",
        b"Loss: 0.3, Accuracy: 98%\n",
    ),
    "top_batch": (b"time: 5\n", b"top - 15:16:05 up  5:03,  3 users,  load average: 1.22, 0.73, 0.79\nTasks: 9 total\n\n"),
    "training_output": (b"GPU 0  0.5\n",),
}


@pytest.mark.parametrize("reader", READERS)
def test_refusals(tmp_path: Path, reader: str, snapshot: SnapshotAssertion) -> None:
    messages = {}
    for name, content in {**ALL, **{one.decode(): one for one in OTHERS[reader]}}.items():
        path = tmp_path / "other.txt"
        path.write_bytes(content)
        with pytest.raises(Unreadable, match=r"other\.txt") as refused:
            READERS[reader](path)
        messages[name] = str(refused.value).replace(f"{tmp_path}/", "")
        assert "\n" not in messages[name]
    assert messages == snapshot
