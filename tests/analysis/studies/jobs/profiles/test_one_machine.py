"""No command takes runs of two machines, or two copies of one run, for replicates. The runs are the committed ones, moved elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.__main__ import main
from analysis.load import load_each, parsed
from analysis.studies.jobs.replicates import of_one_machine
from analysis.studies.jobs.scaling.measured import points

RUNS = Path(__file__).parents[5] / "data" / "runs"
COMMANDS = (
    ("depend report", "checkpoints"),
    ("depend checkpoint", "checkpoints"),
    ("depend network", "network"),
    ("scale report", "scaling"),
    ("scale fit", "scaling"),
    ("jobs profile", "profile"),
    ("predict cv --by configuration --models ridge", "profile"),
    ("predict fit --model ridge", "profile"),
    ("predict show --model ridge --at cores=1", "profile"),
    ("predict service --model ridge", "profile"),
)


def run_of(kind: str) -> Path:
    (path,) = RUNS.glob(f"cluster-{kind}_*.json")
    return path


def moved(folder: Path, kind: str, *, elsewhere: bool, renamed: bool = False) -> Path:
    """A run once more: of another machine and by another name, by another name alone, or a mere copy."""
    told: Any = parsed(run_of(kind))
    if elsewhere:
        told["machine_info"]["deeptweak"]["mem_total_bytes"] *= 4
    if elsewhere or renamed:
        told["deeptweak"]["run_id"] = "another"
        for one in told["benchmarks"]:
            one["extra_info"]["run_id"] = "another"
    path = folder / "other.json"
    path.write_text(json.dumps(told), encoding="utf-8")
    return path


@pytest.mark.parametrize(("command", "kind"), COMMANDS)
def test_runs_of_two_machines_are_refused(command: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four times the memory: of that no factor of `predict` tells."""
    step, *options = command.split(" --")
    words = [word for option in options for word in f"--{option}".split()]
    assert main([*step.split(), str(run_of(kind)), str(moved(tmp_path, kind, elsewhere=True)), *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "other.json: is of another machine" in err


@pytest.mark.parametrize(("command", "kind"), [one for one in COMMANDS if not one[0].startswith(("predict", "scale fit"))])
def test_a_copy_changes_nothing_and_is_said(command: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By its own name, or by another: no two runs take the very same times."""
    renamed = command.endswith("report")
    assert main([*command.split(), str(run_of(kind)), "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert main([*command.split(), str(run_of(kind)), str(moved(tmp_path, kind, elsewhere=False, renamed=renamed)), "--json"]) == 0
    out, err = capsys.readouterr()
    both = json.loads(out)
    assert "a copy" in err + str(both.pop("refused", []))
    alone.pop("refused", None)
    assert both == alone


def test_a_copy_is_no_further_row_to_learn_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["predict", "cv", "--by", "run", "--models", "ridge", "--json"]
    found = []
    for names in ([run_of("profile")], [run_of("profile"), moved(tmp_path, "profile", elsewhere=False)]):
        assert main([*command, *map(str, names)]) == 0
        found.append(json.loads(capsys.readouterr().out))
    alone, both = found
    assert both["validations"] == alone["validations"]
    assert any("a copy" in line for line in both["table"]["notes"])


def test_a_copy_gives_a_law_no_further_jobs(tmp_path: Path) -> None:
    alone, _ = points([str(run_of("scaling"))])
    both, left_out = points([str(run_of("scaling")), str(moved(tmp_path, "scaling", elsewhere=False))])
    assert both == alone
    assert any("a copy" in line for line in left_out)


@pytest.mark.parametrize("first", ["whole", "part"])
def test_of_a_run_that_was_resumed_the_whole_counts(first: str, tmp_path: Path) -> None:
    """The file that its first session saved has two of five blocks; whichever is named first."""
    told: Any = parsed(run_of("faults"))
    told["benchmarks"] = [one for one in told["benchmarks"] if one["extra_info"]["block"] <= 2]
    told["deeptweak"]["cells"] = [one for one in told["deeptweak"]["cells"] if one["block"] <= 2]
    part = tmp_path / "part.json"
    part.write_text(json.dumps(told), encoding="utf-8")
    refused: list[str] = []
    names = [str(run_of("faults")), str(part)]
    (kept,) = of_one_machine(load_each(names if first == "whole" else names[::-1], refused), refused)
    assert len(kept.cells) == 30
    (line,) = refused
    assert line.startswith(f"{part}: ")
    assert str(run_of("faults")) in line
