"""A command as it is kept in a file, and its name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.studies.command import spec
from fixtures.terms import BadInput

SLEEP = spec.Command("sleep-0.1", ("sleep", "0.1"), "/", {}, spec.RUNS, None, 3, 1)


def test_a_command_is_kept_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    wanted = replace(
        SLEEP,
        environment={"A": "b"},
        exit_codes=(0, 3),
        pattern="x",
        meaning="time",
        every=5,
        follow="train /40",
    )
    path.write_text(wanted.text())
    assert spec.read(path) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"program": 1}',
        SLEEP.text().replace('"runs"', '"walks"'),
        SLEEP.text().replace('"steps": 3', '"steps": 0'),
        SLEEP.text().replace('"every": 1', '"every": 0'),
        SLEEP.text().replace('"meaning": null', '"meaning": "guess"'),
        SLEEP.text().replace('"format": null', '"format": "no-such"'),
    ],
)
def test_a_file_that_is_no_command_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"c\.json|no-such"):
        spec.read(path)


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (("sleep", "0.1"), "sleep-0.1"),
        (("/usr/bin/python3", "-u", "train.py"), "python3-train.py"),
        (("--", "-"), "command"),
        (("sh", "-c", "a b;" * 30), "sh-a-b-a-b-a-b-a-b-a-b-a"),
    ],
)
def test_a_command_has_a_short_name(program: tuple[str, ...], name: str) -> None:
    assert spec.slug(program) == name


def test_two_trials_of_one_command_are_one_workload() -> None:
    """A trial's observations differ from run to run."""
    again = replace(SLEEP, steps=16, warmup=1, every=2, step_is="bar at 40 %")
    assert again.identity() == SLEEP.identity()
    assert replace(SLEEP, program=("sleep", "0.2")).identity() != SLEEP.identity()
    assert replace(SLEEP, format="tqdm").identity() != SLEEP.identity()
