"""Runs without a date: gate and history take the files in the order that the user gives."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from analysis.__main__ import main
from analysis.arms import in_order
from analysis.load import load

HYPERFINE = Path(__file__).parent / "formats" / "other_tools" / "hyperfine.json"


def hyperfine(path: Path, level_s: float, seed: int) -> Path:
    """Write hyperfine's file with other times, each run of a command a level of its own."""
    saved = json.loads(HYPERFINE.read_text())
    rng = np.random.default_rng(seed)
    for one in saved["results"]:
        level = level_s * float(np.exp(rng.normal(0, 0.005)))
        one["times"] = [level * (1 + float(part)) for part in rng.exponential(0.01, 8)]
    path.write_text(json.dumps(saved))
    return path


def nights(folder: Path, count: int, since: int = 99) -> Path:
    """Write nights whose names sort only as numbers; from one night on they take a fifth longer.

    Their times run backwards.
    """
    folder.mkdir()
    for night in range(1, count + 1):
        path = hyperfine(
            folder / f"night-{night}.json", 0.02 * (1.2 if night >= since else 1), night
        )
        os.utime(path, (1e9 - 86400 * night, 1e9 - 86400 * night))
    return folder


@pytest.mark.parametrize(("slower", "code"), [(1.0, 0), (1.2, 1)])
def test_a_file_of_hyperfine_is_gated_as_the_recipe_says(
    tmp_path: Path, slower: float, code: int
) -> None:
    accepted = nights(tmp_path / "accepted", 12)
    candidate = hyperfine(tmp_path / "hyperfine.json", 0.02 * slower, 77)
    command = ["gate", str(accepted), str(candidate), "--max-regression=3%"]
    assert main([*command, "--order=name"]) == code
    assert main([*command, "--order=time"]) == 3  # copied from elsewhere: 46 years lie between
    assert main(command) == 3


@pytest.mark.parametrize(
    ("order", "first", "verdict"),
    [("name", "#0008", "regressed"), ("time", "2001-09-02", "improved")],
)
def test_a_history_stands_in_the_order_that_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], order: str, first: str, verdict: str
) -> None:
    folder = nights(tmp_path / "nights", 14, since=8)
    assert (
        main(
            ["history", str(folder), f"--order={order}", f"--plot={tmp_path}/history.svg", "--json"]
        )
        == 0
    )
    answer = json.loads(capsys.readouterr().out)
    changes = [change for series in answer["series"] for change in series["changes"]]
    assert {(change["first_started_utc"][:10], change["verdict"]) for change in changes} == {
        (first, verdict)
    }
    assert (tmp_path / "history.svg").stat().st_size > 0


def test_a_number_in_a_name_is_a_number(tmp_path: Path) -> None:
    runs = [load(path) for path in nights(tmp_path / "nights", 10).iterdir()]
    names = {run.started_utc: Path(run.origin).name for run in in_order(runs, "name")}
    assert names["#0009"] == "night-9.json"
    assert names["#0010"] == "night-10.json"
