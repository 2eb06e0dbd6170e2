"""The end of a session over keys: the key that did it, no table of points, and the next call."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.sessions import HOUSE, Done, Place
from tests.spread.fleet import FLEET

pytestmark = [pytest.mark.slow]
ON_FLEET = ("-p", "tests.spread.plugin", "--target=fleet", "--steps=4", "--benchmark-save=one")
KNOBS = "vm.swappiness = 10\nvm.dirty_ratio = 40\nnet.core.rmem_max = 500000"
GIVEN = "kernel_tweaks: "  # the study's question; what follows is the answer


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path, environment={FLEET: str(tmp_path / "fleet"), "PYTHONPATH": str(HOUSE)})
    place.manifest("knobs", sysctl=KNOBS)
    return place


def ended(place: Place, *options: str) -> Done:
    return place.run(*ON_FLEET, f"--tweaks={place.folder}/knobs.yaml", *options)


def answer(done: Done) -> list[str]:
    """Return the output after the question; only a path may be wider than a page."""
    lines = done.out.splitlines()
    said = lines[next(at for at, line in enumerate(lines) if line.startswith(GIVEN)) + 1 :]
    said = said[: next(at for at, line in enumerate(said) if line.startswith("==="))]
    assert max(len(line) for line in said if not re.search(r"\S{40}", line)) <= 100
    return said


@pytest.mark.parametrize("design", ["ablation", "factorial"])
def test_a_static_design_ends_with_the_sentence_of_its_effects(place: Place, design: str) -> None:
    """The words of `analysis effects`, which it names with the file; no table of the points."""
    done = ended(place, f"--design={design}", "--blocks=3")
    assert done.code == 0, done.out
    said = answer(done)
    assert " baseline " not in " ".join(said)  # a heading of the table
    (command,) = (
        line.partition(": ")[2]
        for line in said
        if line.startswith("Every key's effect: python -m analysis effects ")
    )
    program, *arguments = command.split()
    assert (program, arguments[-1]) == ("python", str(place.files()[-1]))
    page = place.call(place.command()[0], *arguments).out
    sentence = page[page.index("idle, knobs: ") :].partition("\n\n")[0].split()
    assert " ".join(sentence) in " ".join(" ".join(said).split())
    assert [
        line
        for line in said
        if line.startswith("A/A: stock-again, which changes nothing, against stock: ")
    ]
    assert [line for line in said if line.startswith("Machine: as it was found")]


def test_one_block_says_why_nothing_can_be_named(place: Place) -> None:
    said = " ".join(answer(ended(place, "--design=ablation", "--blocks=1")))
    assert "idle, knobs: No effects: too few cells" in said
    assert "Run 3 blocks or more." in said


def test_a_gate_still_judges_each_tweak_set(place: Place) -> None:
    (place.folder / "limits.yaml").write_text("max_regression: 95%\n")
    done = ended(place, "--design=ablation", "--blocks=3", f"--gate={place.folder}/limits.yaml")
    assert done.code == 0, done.out
    assert [line for line in done.lines("knobs.only-vm.swappiness") if " pass " in line]
    assert done.lines("idle, knobs: ")


def test_what_was_not_measured_is_said_beside_the_effects(place: Place) -> None:
    place.manifest("knobs", sysctl=KNOBS.replace("dirty_ratio", "dirty_rati"))
    done = ended(place, "--design=ablation", "--blocks=3")
    assert done.code == 2
    (line,) = done.lines("NOT MEASURED: vm.dirty_rati: this kernel has no such setting: ")
    assert "knobs.only-vm.dirty_rati (vm.dirty_rati=40)" in line
    assert done.lines("15 of 27 cells")
