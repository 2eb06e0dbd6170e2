"""DLIO's result folders read as written: one recording, and synthetic ones for the rest."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.studies.io.dlio_folder import runs_of
from tests.dlio_like import Made, folder

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from analysis.studies.io.terms import IoRun

RECORDED = Path(__file__).parents[3] / "recordings" / "dlio-2.0.0"


def read(path: Path) -> list[IoRun]:
    refused: list[str] = []
    runs = runs_of(path, refused)
    assert not refused
    return runs


def recorded(name: str) -> IoRun:
    (run,) = [run for run in read(RECORDED) if run.id == name]
    return run


def test_a_recording_of_dlio_2_0_0_is_read() -> None:
    """Training with one rank and with two: 24 files, batch 2, 12 and 6 steps."""
    assert [run.id for run in read(RECORDED)] == ["1", "2"]
    one = recorded("1")
    assert (one.model, one.processes, one.batch_size, one.read_threads, one.computation_time_s) == (
        "unet3d_h100",
        1,
        2,
        1,
        0.02,
    )
    assert one.record_length_bytes == 65536  # spelled record_length there
    assert {epoch.steps for epoch in one.epochs} == {12}
    assert {(epoch.number, epoch.rank, epoch.steps) for epoch in recorded("2").epochs} == {
        (n, r, 6) for n in (1, 2) for r in (0, 1)
    }


def test_a_generation_is_no_failed_run(tmp_path: Path) -> None:
    """2.0.0 leaves no summary, later versions one with bare NaN; the configuration tells both."""
    folder(tmp_path, Made(generates=True))
    assert "NaN" in next(tmp_path.rglob("summary.json")).read_text()
    assert read(tmp_path) == []


def test_runs_are_called_as_the_study_called_their_folders(tmp_path: Path) -> None:
    """Named by `4_read_threads_8/<stamp>`, or by place under DLIO's `hydra_log/unet3d/<stamp>`."""
    folder(tmp_path / "unet3d" / "2_read_threads_8", Made())
    folder(tmp_path / "hydra_log" / "unet3d", Made(after_s=1))
    assert [run.id for run in read(tmp_path)] == ["2_read_threads_8", "unet3d/2026-01-01-00-00-01"]


def test_prefetching_is_what_dlio_hands_to_the_loader(tmp_path: Path) -> None:
    """ceil(7 / 2) = 4 batches per reader where a size is set, else the DataLoader's own 2."""
    folder(tmp_path / "set", Made(reader={"prefetch_size": 7}))
    folder(tmp_path / "unset", Made())
    assert [
        run.prefetch_factor for run in sorted(read(tmp_path), key=lambda run: "unset" in run.origin)
    ] == [4, 2]


def test_a_count_written_as_a_whole_float_is_a_count(tmp_path: Path) -> None:
    folder(tmp_path, Made(dataset={"num_files_train": 320.0}))
    (run,) = read(tmp_path)
    assert run.dataset["files"] == 320


def test_a_key_of_another_dlio_is_ignored(tmp_path: Path) -> None:
    copy = tmp_path / "1"
    shutil.copytree(RECORDED / "1", copy)
    config = copy / ".hydra" / "config.yaml"
    config.write_text(
        config.read_text().replace(
            "record_length: 65536", "record_length: 65536\n    record_length_bytes: 1048576"
        )
    )
    (run,) = read(copy)
    assert run.record_length_bytes == 65536


def test_ranks_in_folders_of_their_own_are_put_together(tmp_path: Path) -> None:
    """2.0.0 names folders by each rank's clock: rank 1's file can lie in an earlier folder."""
    home, astray = tmp_path / "2026-11-22-00-15-26", tmp_path / "2026-11-22-00-15-25"
    shutil.copytree(RECORDED / "2", home)
    astray.mkdir()
    (home / "1_output.json").rename(astray / "1_output.json")
    (run,) = read(tmp_path)
    assert {one.rank for one in run.epochs} == {0, 1}


def test_the_first_wait_after_a_checkpoint_is_put_back(tmp_path: Path) -> None:
    """DLIO notes it before clearing the list: 3 loads for 4 steps; it is proc less compute."""
    path = folder(tmp_path, Made(processes=1, epochs=1))
    output, stamps = path / "0_output.json", path / "0_per_epoch_stats.json"
    steps, when = json.loads(output.read_text()), json.loads(stamps.read_text())
    steps["1"]["load"]["block2"], steps["1"]["compute"]["block2"] = [0.02] * 3, [0.1] * 4
    steps["1"]["proc"]["block2"] = [0.4, 0.12, 0.12, 0.12]
    when["1"]["block2"] = {"start": "2026-01-01T00:01:00", "end": "2026-01-01T00:01:01"}
    output.write_text(json.dumps(steps))
    stamps.write_text(json.dumps(when))
    (run,) = read(tmp_path)
    (second,) = [one for one in run.epochs if one.block == 2]
    assert second.load_s == pytest.approx((0.3, 0.02, 0.02, 0.02))


MISSING = ("summary.json", "0_output.json", "1_output.json", "1_per_epoch_stats.json")
CUT = ("summary.json", "0_output.json", "1_per_epoch_stats.json", ".hydra/config.yaml")
EDITED = (
    ("0_output.json", '"load": {"block1": [1.0, 0.02', '"load": {"block1": [1.0, "x"'),
    ("0_output.json", '"load": {"block1": [1.0, 0.02', '"load": {"block1": [1.0, -0.02'),
    ("0_output.json", '"load": {"block1": [1.0, 0.02, 0.02, ', '"load": {"block1": ['),
    ("0_per_epoch_stats.json", '"end": "2026', '"end": "2025'),
    ("0_per_epoch_stats.json", '"end": "2026-01', '"end": "soon'),
    ("summary.json", '"num_accelerators": 2', '"num_accelerators": -2'),
    ("summary.json", '"num_accelerators": 2', '"num_accelerators": ' + 5000 * "9"),
    ("summary.json", '"start": "2026', '"start": "later '),
    (".hydra/config.yaml", "batch_size: 4", "batch_size: 0"),
    (".hydra/config.yaml", "record_length_bytes: 1048576", "record_length_bytes: -1"),
    (".hydra/config.yaml", "workload:", "wokload:"),
)


def test_a_damaged_folder_is_refused_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    folder(Path("results/sound"), Made(epochs=1))
    path = folder(Path("results/damaged"), Made(epochs=1, after_s=60))
    found = {}

    def damage(case: str, name: str, text: str | None) -> None:
        """Read the folders with one file as this (None deletes it); then restore the file."""
        whole = (path / name).read_text()
        if text is None:
            (path / name).unlink()
        else:
            assert text != whole
            (path / name).write_text(text)
        refused: list[str] = []
        assert len(runs_of(Path("results"), refused)) == 1
        (line,) = refused
        assert "\n" not in line
        # Numbers' lengths differ between machines, the parser's words between Pythons.
        line = re.sub(r"(column|char) \d+", r"\1 N", line)
        found[case] = re.sub(r"as JSON \(.*?: line", "as JSON (…: line", line)
        (path / name).write_text(whole)

    for name in MISSING:
        damage(f"missing {name}", name, None)
    for name in CUT:
        whole = (path / name).read_text()
        damage(
            f"cut short {name}",
            name,
            whole[: len(whole) // 2] + ("\n\t{" if name.endswith("yaml") else ""),
        )
    for name, old, new in EDITED:
        damage(f"{name} {new[:40]}", name, (path / name).read_text().replace(old, new, 1))
    assert found == snapshot


@pytest.mark.parametrize("name", ["configs", "dlio_config"])
def test_hydra_s_folder_goes_by_any_name(tmp_path: Path, name: str) -> None:
    """MLPerf Storage says hydra.output_subdir=configs, and dlio_config from 2.0 on."""
    for at in ("1", "generation"):
        shutil.copytree(RECORDED / at, tmp_path / at)
        (tmp_path / at / ".hydra").rename(tmp_path / at / name)
    (one,) = read(tmp_path)
    assert (one.params, one.overrides, one.dataset) == (
        recorded("1").params,
        recorded("1").overrides,
        recorded("1").dataset,
    )
