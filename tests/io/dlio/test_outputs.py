"""DLIO's output: steps and waits from recordings; damage is an error in a line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fixtures.studies.io.dlio_outputs import read
from fixtures.terms import Refused
from tests.io.dlio.recorded import RECORDINGS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The recorded run of two ranks."""
    return shutil.copytree(RECORDINGS / "2", tmp_path / "2026-11-22-00-15-25")


def test_each_rank_has_each_epoch_and_the_steps_of_it(folder: Path) -> None:
    left = read(folder, 2, (6, 6))
    assert [(one.rank, one.number, len(one.load_s), len(one.compute_s)) for one in left.epochs] == [
        (0, 1, 6, 6), (0, 2, 6, 6), (1, 1, 6, 6), (1, 2, 6, 6)
    ]  # fmt: skip
    assert left.reported["num_accelerators"] == 2
    assert left.reported["train_au_meet_expectation"] == "fail"
    assert "hostname" not in left.reported


def test_checkpoints_have_their_step_and_their_duration(folder: Path) -> None:
    """Epoch 1: 28.091178 s to 28.127728 s; epoch 2: 28.278852 s to 28.386890 s."""
    saved = read(folder, 2, (6, 6)).checkpoints
    assert [(one.epoch, one.step, round(one.duration_s, 6)) for one in saved] == [
        (1, 6, 0.03655),
        (2, 6, 0.108038),
    ]


def test_ranks_may_leave_their_files_in_folders_of_two_seconds(
    folder: Path, tmp_path: Path
) -> None:
    before = read(folder, 2, (6, 6))
    later = tmp_path / "2026-11-22-00-15-26"
    later.mkdir()
    (folder / "1_output.json").rename(later / "1_output.json")
    assert read(tmp_path, 2, (6, 6)) == before


def test_the_wait_dlio_omits_is_its_steps_time_less_computation(
    folder: Path,
) -> None:
    """Steps 1 to 3, a checkpoint, steps 4 to 6: of the second block the first wait is missing."""
    rank = json.loads((folder / "0_output.json").read_text())
    for name in ("load", "proc", "compute"):
        values = rank["1"][name].pop("block1")
        rank["1"][name] |= {
            "block1": values[:3],
            "block2": values[3:] if name != "load" else values[4:],
        }
    (folder / "0_output.json").write_text(json.dumps(rank))
    stats = json.loads((folder / "per_epoch_stats.json").read_text())
    stats["1"]["block2"] = stats["1"]["block1"]
    (folder / "per_epoch_stats.json").write_text(json.dumps(stats))
    epoch = read(folder, 2, (6, 6)).epochs[0]
    assert epoch.load_s[3] == pytest.approx(epoch.proc_s[3] - 0.02)
    # The two blocks were stamped alike above.
    assert epoch.began_s[3] == epoch.began_s[0] == epoch.start_s
    assert epoch.began_s[5] == pytest.approx(epoch.start_s + sum(epoch.proc_s[3:5]))
    assert len(epoch.load_s) == 6


def changed(path: Path, change: Callable[[Any], object]) -> None:
    said = json.loads(path.read_text())
    change(said)
    path.write_text(json.dumps(said))


def set_step(value: object) -> Callable[[Any], object]:
    def change(said: Any) -> None:
        said["1"]["load"]["block1"][2] = value

    return change


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda f: (f / "summary.json").unlink(), r"wrote no summary\.json below"),
        (lambda f: (f / "1_output.json").unlink(), r"wrote no 1_output\.json below"),
        (
            lambda f: (f / "per_epoch_stats.json").unlink(),
            r"wrote no per_epoch_stats\.json below",
        ),
        (lambda f: (f / "0_output.json").write_text("{"), r"Cannot read DLIO's 0_output\.json"),
        (lambda f: (f / "summary.json").write_text("[]"), r"summary\.json is not a JSON object"),
        (
            lambda f: changed(f / "0_output.json", set_step(float("nan"))),
            r"rank 0, epoch 1 has a step time of nan s, which is not a valid time",
        ),
        (
            lambda f: changed(f / "1_output.json", set_step(-0.5)),
            r"rank 1, epoch 1 has a step time of -0\.5 s, which is not a valid time",
        ),
        (
            lambda f: changed(f / "1_output.json", set_step("x")),
            r"rank 1, epoch 1 has a step time of 'x' s",
        ),
        (
            lambda f: changed(f / "0_output.json", lambda said: said.pop("2")),
            r"rank 0, epoch 2 has an unknown layout \(KeyError",
        ),
        (
            lambda f: changed(f / "0_output.json", lambda said: said["1"]["proc"]["block1"].pop()),
            r"rank 0, epoch 1 has 5 steps instead of 6",
        ),
    ],
)
def test_what_is_missing_or_no_time_is_told_in_a_line(
    folder: Path, spoil: Callable[[Path], object], says: str
) -> None:
    spoil(folder)
    with pytest.raises(Refused, match=says) as refused:
        read(folder, 2, (6, 6))
    assert "\n" not in str(refused.value)
