"""`pytest benchmarks/ --gate FILE`: a regression ends red; an unusable gate starts nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sessions import Done, Place, another_swappiness

pytestmark = pytest.mark.usefixtures("kernel_unchanged")


def options(place: Place, *more: str) -> list[str]:
    return [
        f"--tweaks={place.manifest('typed', sysctl=f'vm.swappiness = {another_swappiness()}')}",
        "--blocks=4",
        "--steps=10",
        *more,
    ]


def run(place: Place, *more: str) -> Done:
    """Sleep 20 ms per step: the shortest of ten is hardly longer, however busy the machine."""
    return place.run(*options(place, *more), workload="idle:wait_s=0.02")


def gate_file(folder: Path, text: str) -> str:
    path = folder / "gate.yaml"
    path.write_text(text)
    return f"--gate={path}"


def test_a_limits_file_gates_the_tweak_sets_of_the_run(place: Place, tmp_path: Path) -> None:
    """A sleeping workload ignores vm.swappiness: surely within 40 %; one block cannot show it."""
    done = run(place, gate_file(tmp_path, "max_regression: 40%\n"))
    assert done.code == 0, done.out
    assert "Pass: 1 contrast" in done.out
    done = run(place, "--blocks=1", gate_file(tmp_path, "max_regression: 40%\n"))
    assert done.code == 3, done.out
    assert "Can't tell: 1 of 1" in done.out


def test_losing_against_a_saved_baseline_fails_the_session(place: Place, tmp_path: Path) -> None:
    """The stored run is real, but edited: its set seems twice as fast as stock; today it is not."""
    run(place, "--benchmark-save=base")
    stored: dict[str, Any] = place.saved()
    stored["deeptweak"]["run_id"] = "edited"
    for benchmark in stored["benchmarks"]:
        record = benchmark["extra_info"]
        if record["tweakset"] == "typed":
            record["steps"]["wall_s"] = [value / 2 for value in record["steps"]["wall_s"]]
            record["metrics"] = {}
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps(stored))
    done = run(place, f"--gate={path}")
    assert done.code == 1, done.out
    assert "Regression: 1 of 1" in done.out
    assert "relative to stock" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max_regresion: 3%\n", "unknown key 'max_regresion'"),
        (
            "max_regression: 3%\nworkloads:\n  idel: 5%\n",
            "no workload 'idel' in these runs; available: idle.",
        ),
        ("max_regression: 3%\nbaseline: nothing.json\n", "nothing.json: no such file"),
    ],
)
def test_an_unusable_gate_stops_the_session_before_any_cell(
    place: Place, tmp_path: Path, text: str, said: str
) -> None:
    done = place.run(*options(place), gate_file(tmp_path, text))
    assert done.code == 2, done.out
    assert said in done.out
    assert "[1/12]" not in done.out
