"""Promotion: a candidate that failed, in whole or in part, never becomes the next baseline."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.__main__ import main
from analysis.load import load
from tests.stored import stored
from tests.synthetic import AGAIN, JSON, STOCK, Arm, Made, saved_run

TUNED = Arm("tuned", 0.0, {"vm.swappiness": "1"})
MADE = Made(arms=(STOCK, AGAIN, TUNED), blocks=8, run_cv=0.003)
SLOW = Arm("slow", -0.5, {"vm.swappiness": "100"})
NAME = "telemetry-made-up-1.jsonl.gz"
PACKED = gzip.compress(b'{"cell": "none", "columns": {}}\n', mtime=0)


def written(folder: Path, run: JSON, name: str = "new.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(run))
    return path


def promoted(capsys: pytest.CaptureFixture[str], path: Path, target: Path, *words: str) -> JSON:
    command = ["gate", f"{path}:stock", f"{path}:tuned", "--max-regression", "5%", "--promote-to", str(target), "--json", *words]
    assert main(command) == 0
    said: JSON = json.loads(capsys.readouterr().out)
    return said


def test_a_pass_is_copied_byte_by_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, target = written(tmp_path, saved_run(MADE)), tmp_path / "baseline.json"
    said = promoted(capsys, path, target)
    assert (said["promoted_to"], said["not_promoted"], said["without_telemetry"]) == (str(target), None, None)
    assert target.read_bytes() == path.read_bytes()


def fail_a_cell(run: JSON) -> None:
    cell = next(one for one in run["deeptweak"]["cells"] if one["tweakset"] == "stock-again")
    cell |= {"outcome": "failed", "reason": "out of memory"}
    run["benchmarks"] = [one for one in run["benchmarks"] if one["extra_info"]["id"] != cell["id"]]


def contradict(run: JSON) -> None:
    again = next(one["extra_info"] for one in run["benchmarks"] if one["extra_info"]["tweakset"] == "stock-again")
    again["metrics"]["throughput_samples_per_s"] *= 2


CNN = ["--workloads", "cnn_train"]


def interrupted(run: JSON) -> None:
    run["deeptweak"]["interrupted"] = True


def unedited(_run: JSON) -> None:
    """Leave it as it was made."""


@pytest.mark.parametrize(
    ("made", "edit", "said"),
    [
        (MADE, interrupted, "interrupted"),
        (MADE, fail_a_cell, " failed."),
        (MADE, contradict, "contradicts itself"),
        (replace(MADE, arms=(*MADE.arms, SLOW)), unedited, "slow under cnn_train"),
        (replace(MADE, workloads=("cnn_train", "lora")), unedited, "tuned under lora"),
    ],
)
def test_a_run_that_was_not_judged_whole_stays_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], made: Made, edit: Callable[[Any], None], said: str
) -> None:
    run = saved_run(made)
    edit(run)
    target = tmp_path / "baseline.json"
    target.write_text("old")
    path = written(tmp_path, run)
    answer = promoted(capsys, path, target, *CNN)
    assert answer["promoted_to"] is None
    assert said in answer["not_promoted"]
    assert target.read_text() == "old"
    assert main(["gate", f"{path}:stock", f"{path}:tuned", "--max-regression", "5%", "--promote-to", str(target), *CNN]) == 0
    assert f"Not promoted to {target}: " in " ".join(capsys.readouterr().out.split())


def test_the_control_need_not_be_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two runs, each relative to its own `tuned`: that is what both are measured by, and no candidate."""
    base, path = (written(tmp_path, saved_run(replace(MADE, seed=seed)), f"{seed}.json") for seed in (1, 2))
    target = tmp_path / "baseline.json"
    assert main(["gate", str(base), str(path), "--max-regression", "9%", "--relative-to", "tuned", "--promote-to", str(target)]) == 0
    assert target.exists(), capsys.readouterr().out


def test_what_changed_since_it_was_judged_is_not_copied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, target = written(tmp_path, saved_run(MADE)), tmp_path / "baseline.json"
    judge = import_of("judge")

    def swapped(*asked: object) -> object:
        written(tmp_path, saved_run(replace(MADE, base_s=9.0)))
        return judge(*asked)

    monkeypatch.setattr("analysis.commands.gate.judge", swapped)
    assert "changed since" in promoted(capsys, path, target)["not_promoted"]
    assert not target.exists()


def import_of(name: str) -> Callable[..., object]:
    from analysis.commands import gate

    found: Callable[..., object] = getattr(gate, name)
    return found


def with_telemetry(name: str = NAME, packed: bytes = PACKED) -> JSON:
    run = saved_run(MADE)
    run["deeptweak"]["telemetry_file"] = {"name": name, "sha256": hashlib.sha256(packed).hexdigest(), "bytes": len(packed)}
    return run


def test_telemetry_comes_along(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / NAME).write_bytes(PACKED)
    accepted = tmp_path / "accepted"
    said = promoted(capsys, written(tmp_path, with_telemetry()), accepted)
    assert said["without_telemetry"] is None
    assert {path.name for path in accepted.iterdir()} == {"new.json", NAME}
    assert (accepted / NAME).read_bytes() == PACKED


def test_the_record_beside_a_run_comes_along(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A baseline that is there already under that name, and is another, stays: the run is not promoted without its record."""
    path, accepted, other = stored(saved_run(MADE), tmp_path, "new"), tmp_path / "accepted", tmp_path / "other"
    assert promoted(capsys, path, accepted)["promoted_to"]
    assert load(accepted / path.name).cells == load(path).cells
    other.mkdir()
    (record,) = tmp_path.glob("record-*")
    (other / record.name).write_bytes(b"another")
    assert "another one" in promoted(capsys, path, other)["not_promoted"]
    assert [one.name for one in other.iterdir()] == [record.name]


def test_a_run_without_its_telemetry_is_promoted_and_it_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No file but a telemetry file ever comes along, least of all a saved run that would be a baseline nobody judged."""
    written(tmp_path, saved_run(MADE), "neighbour.json")
    accepted = tmp_path / "accepted"
    for name in ("", "/", ".", "..", "\n", "a/b", "neighbour.json", "../telemetry-x.jsonl.gz", "telemetry-gone.jsonl.gz", "x" * 300):
        said = promoted(capsys, written(tmp_path, with_telemetry(name)), accepted)
        assert said["without_telemetry"]
        assert [path.name for path in accepted.iterdir()] == ["new.json"]
        assert load(accepted / "new.json").run_id == "made-up-1"


def test_telemetry_of_another_run_stays_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / NAME).write_bytes(b"something else")
    said = promoted(capsys, written(tmp_path, with_telemetry()), tmp_path / "accepted")
    assert "other sha256" in said["without_telemetry"]


def test_a_link_is_followed_to_the_baseline_it_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "current.json").symlink_to("real.json")
    path = written(tmp_path, saved_run(MADE))
    assert promoted(capsys, path, tmp_path / "current.json")["promoted_to"] == str(tmp_path / "real.json")
    assert (tmp_path / "current.json").is_symlink()
    assert (tmp_path / "real.json").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--junit", "{run}"], "--junit {run}: is where the run made-up-1 stands"),
        (["--comment", "{run}"], "--comment {run}: is where the run made-up-1 stands"),
        (["--comment", "{link}"], "--comment {link}: is where the run made-up-1 stands"),
        (["--comment", "{limits}", "--limits", "{limits}"], "is where the limits stands"),
        (["--promote-to", "{limits}", "--limits", "{limits}"], "is where the limits stands"),
        (["--promote-to", "{run}"], "is the candidate itself"),
        (["--promote-to", "{tmp}"], "is the candidate itself"),
        (["--promote-to", "{tmp}/x.json", "--junit", "{tmp}/x.json"], "is where --junit stands"),
        (["--comment", "{tmp}/x", "--junit", "{tmp}/x"], "is where --junit stands"),
    ],
)
def test_an_output_that_is_an_input_is_refused_before_anything_is_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    run = written(tmp_path, saved_run(MADE))
    limits = tmp_path / "limits.yaml"
    limits.write_text("max_regression: 5%\n")
    (tmp_path / "link").symlink_to("new.json")
    before = {path: path.read_bytes() for path in (run, limits)}
    known = {"{run}": run, "{limits}": limits, "{link}": tmp_path / "link", "{tmp}": tmp_path}

    def filled(text: str) -> str:
        for mark, path in known.items():
            text = text.replace(mark, str(path))
        return text

    monkeypatch.setattr("analysis.commands.gate.judge", lambda *_: pytest.fail("was judged"))
    assert main(["gate", f"{run}:stock", f"{run}:tuned", "--max-regression", "5%", *map(filled, words)]) == 2
    assert filled(said) in capsys.readouterr().err
    assert {path: path.read_bytes() for path in before} == before


def test_the_baselines_own_file_is_the_usual_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, path = (written(tmp_path, saved_run(replace(MADE, seed=seed)), f"{seed}.json") for seed in (1, 2))
    words = ["--max-regression", "9%", "--relative-to", "stock", "--promote-to", str(base)]
    assert main(["gate", str(base), str(path), *words]) == 0, capsys.readouterr()
    assert base.read_bytes() == path.read_bytes()
