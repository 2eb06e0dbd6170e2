"""`deeptweak run` with a setting instead of a manifest, and with designs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.sessions import Done, Place

pytestmark = [pytest.mark.usefixtures("kernel_unchanged"), pytest.mark.needs("session")]
SWAPPINESS = Path("/proc/sys/vm/swappiness")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def other() -> str:
    """A value of vm.swappiness that is not in force."""
    return "31" if SWAPPINESS.read_text().strip() != "31" else "32"


def run(place: Place, *words: str) -> Done:
    return place.call(
        sys.executable, "-m", "deeptweak", "run", f"--storage={place.storage}", *words
    )


@pytest.mark.needs("kernel")
def test_a_setting_is_measured_and_put_back(place: Place, other: str) -> None:
    before = SWAPPINESS.read_text()
    words = ("--blocks=1", "--steps=2", "--", "sleep", "0.05")
    done = run(place, f"--tweaks=vm.swappiness={other}", *words)
    assert done.code == 0, done.out
    assert SWAPPINESS.read_text() == before
    name = f"vm.swappiness-{other}"
    tweakset = place.saved()["deeptweak"]["tweaksets"][name]
    assert tweakset["path"] == f"vm.swappiness={other}"
    cells = [cell["extra_info"] for cell in place.saved()["benchmarks"]]
    (cell,) = (cell for cell in cells if cell["tweakset"] == name)
    values = {
        moment: cell["tweak"][moment]["vm.swappiness"]
        for moment in ("before", "observed", "restored")
    }
    assert cell["outcome"] == "measured"
    assert values == {"before": before.strip(), "observed": other, "restored": before.strip()}


def test_a_design_and_its_options_are_passed_through(place: Place, other: str) -> None:
    profile = f"--tweaks=late:vm.swappiness={other}+vm.dirty_ratio=7+vm.stat_interval=3"
    done = run(
        place, profile, "--design=fractional", "--resolution=3", "--plan", "--", "sleep", "0.05"
    )
    assert done.code == 0, done.out
    assert "fractional over the 3 keys of late" in done.out
    assert "resolution III" in done.out


@pytest.mark.needs("kernel")
@pytest.mark.parametrize(
    "program",
    [
        ("sleep", "0.01"),
        ("sh", "-c", "i=0; while :; do i=$((i+1)); sleep 0.01; echo iter $i; done"),
    ],
    ids=["whole runs", "lines"],
)
def test_settings_are_switched_while_a_command_stands_still(
    place: Place, other: str, program: tuple[str, ...]
) -> None:
    """Each step begins after the switch, so it ran under one arm alone."""
    steps = () if program[0] == "sleep" else ("--step-regex=^iter ([0-9]+)",)
    done = run(
        place,
        f"--tweaks=vm.swappiness={other}",
        "--design=switch",
        "--blocks=1",
        *steps,
        "--",
        *program,
    )
    assert done.code == 0, done.out
    (cell,) = (
        one["extra_info"]
        for one in place.saved()["benchmarks"]
        if one["extra_info"]["tweakset"] != "stock-again"
    )
    assert cell["outcome"] == "measured"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--design=ablatoin",), "--design=ablatoin: no such design. Did you mean 'ablation'?"),
        (("--design=turns",), "--turns: whole runs cannot take turns"),
    ],
)
def test_what_cannot_be_done_is_refused(
    place: Place, other: str, words: tuple[str, ...], reason: str
) -> None:
    done = run(place, f"--tweaks=vm.swappiness={other}", *words, "--plan", "--", "sleep", "0.05")
    assert (done.code, reason in " ".join(done.out.split())) == (2, True), done.out
