"""Run `deeptweak tune` to the answer, on a command that one setting slows and another speeds up."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sessions import HOUSE, Done, Place
from tests.waiting import until

pytestmark = [pytest.mark.usefixtures("kernel_unchanged"), pytest.mark.needs("session")]
PROGRAM = (
    "import os, time; from deeptweak.steps import step\n"
    "while True: time.sleep(float(os.environ.get('FAST_S', '0.01')) + "
    "float(os.environ.get('SLOW_S', '0'))); step()"
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def typed(place: Place, *words: str, budget: str = "90s") -> list[str]:
    """Return the command line that chooses among a helpful, a harmful and an idle setting."""
    sets = [
        place.manifest("fast", variables="FAST_S=0.005"),
        place.manifest("slow", variables="SLOW_S=0.01"),
        place.manifest("idle", variables="IDLE=1"),
    ]
    tweaks = ",".join(map(str, sets))
    program = ["--", sys.executable, "-c", PROGRAM]
    fixed = [f"--tweaks={tweaks}", f"--storage={place.storage}", "--steps=8", "--warmup=1"]
    return [
        sys.executable,
        "-m",
        "deeptweak",
        "tune",
        *fixed,
        f"--budget={budget}",
        *words,
        *program,
    ]


def record(place: Place) -> dict[str, Any]:
    (path,) = (place.storage / "tune").glob("*.json")
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def test_what_helps_is_chosen_and_confirmed_in_fresh_blocks(place: Place) -> None:
    copy = place.storage / "best.yaml"
    done = place.call(*typed(place, f"--save-manifest={copy}"))
    assert done.code == 0, done.out
    result = record(place)
    assert list(result["chosen"]) == ["FAST_S"]
    words = {
        name: judged["word"]
        for look in result["looks"]
        for name, judged in look["settings"].items()
    }
    assert (words["FAST_S"], words["SLOW_S"]) == ("helps", "harms")
    assert result["heats"][-1]["label"] == "confirm"
    (manifest,) = (place.storage / "tune").glob("*/chosen.yaml")
    assert "FAST_S=0.005" in manifest.read_text()
    assert copy.read_text() == manifest.read_text()
    assert done.lines("Keep 1 of 3 settings: +")


def test_a_plan_measures_nothing(place: Place) -> None:
    done = place.call(*typed(place, "--plan"))
    assert done.code == 0, done.out
    assert [line.strip() for line in done.out.splitlines() if line.startswith("  ")] == [
        "FAST_S",
        "IDLE",
        "SLOW_S",
    ]
    assert not (place.storage / "tune").exists()


def stopped(place: Place, words: list[str], heats: int, number: signal.Signals) -> tuple[int, str]:
    """Start a tune and send it a signal after a number of recorded heats.

    Returns: its exit code and output.
    """
    with subprocess.Popen(
        words,
        cwd=HOUSE,
        env=place.env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        until(
            lambda: (
                any((place.storage / "tune").glob("*.json"))
                and len(record(place)["heats"]) >= heats
            )
        )
        process.send_signal(number)
        said = process.communicate()[0]
    return process.returncode, said


def test_an_interrupted_tune_keeps_its_heats_and_resumes(place: Place) -> None:
    words = typed(place)
    code, said = stopped(place, words, 2, signal.SIGINT)
    assert code == 130, said
    heats = record(place)["heats"]
    done = place.call(*words[:4], "--resume", *words[4:])
    assert done.code == 0, done.out
    assert record(place)["heats"][: len(heats)] == heats
    assert list(record(place)["chosen"]) == ["FAST_S"]


def test_killing_a_tune_stops_its_session_and_restores(place: Place) -> None:
    """The session hears of it by a signal, and puts the machine back as after Ctrl-C."""
    stopped(place, typed(place), 1, signal.SIGKILL)
    done = place.call(sys.executable, "-m", "deeptweak", "restore", "--wait=60s")
    assert done.code == 0, done.out
    assert done.lines("Nothing to restore")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--min-gain=0",), "--min-gain=0: must be a percentage above 0"),
        (("--workload=cnn_train",), "either a command"),
        (("--resume",), "--resume: no run of this command was started here"),
    ],
)
def test_bad_words_are_refused(place: Place, words: tuple[str, ...], why: str) -> None:
    done: Done = place.call(*typed(place, *words))
    assert done.code == 2, done.out
    assert why in done.out


def test_a_budget_too_short_is_refused_with_a_sufficient_one(place: Place) -> None:
    done = place.call(*typed(place, budget="2s"))
    assert done.code == 2, done.out
    assert "too short" in done.out
    assert "use --budget=" in done.out
