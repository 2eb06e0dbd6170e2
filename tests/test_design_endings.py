"""What a session over keys says at its end: which key did it and not a table of its points, and what to call for more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.sessions import HOUSE, Done, Place
from tests.spread.fleet import FLEET

pytestmark = [pytest.mark.slow]
ON_FLEET = ("-p", "tests.spread.plugin", "-p", "tests.designs.chain", "--target=fleet", "--steps=4", "--benchmark-save=one")
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
    """What it says after the question; none of it but a path wider than a page."""
    lines = done.out.splitlines()
    said = lines[next(at for at, line in enumerate(lines) if line.startswith(GIVEN)) + 1 :]
    said = said[: next(at for at, line in enumerate(said) if line.startswith("==="))]
    assert max(len(line) for line in said if not re.search(r"\S{40}", line)) <= 100
    return said


@pytest.mark.parametrize("design", ["ablation", "factorial"])
def test_a_static_design_ends_with_the_sentence_of_its_effects(place: Place, design: str) -> None:
    """The words of `analysis effects`, which it names with the file; of the points there is no table."""
    done = ended(place, f"--design={design}", "--blocks=3")
    assert done.code == 0, done.out
    said = answer(done)
    assert " baseline " not in " ".join(said)  # a heading of the table
    (command,) = (line.partition(": ")[2] for line in said if line.startswith("Every key's effect: python -m analysis effects "))
    program, *arguments = command.split()
    assert (program, arguments[-1]) == ("python", str(place.files()[-1]))
    page = place.call(place.command()[0], *arguments).out
    sentence = page[page.index("idle, knobs: ") :].partition("\n\n")[0].split()
    assert " ".join(sentence) in " ".join(" ".join(said).split())
    assert [line for line in said if line.startswith("A/A: stock-again, which changes nothing, against stock: ")]
    assert [line for line in said if line.startswith("Machine: as it was found")]


def test_one_block_says_why_nothing_can_be_named(place: Place) -> None:
    said = " ".join(answer(ended(place, "--design=ablation", "--blocks=1")))
    assert "idle, knobs: Nothing can be said: one cell a tweak set" in said
    assert "Run 3 blocks or more." in said


def test_a_gate_still_judges_each_tweak_set(place: Place) -> None:
    """Of the comparisons it is made of none is shown twice; its exit code stays its own."""
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


def test_a_bisection_ends_with_its_own_conclusion_alone(place: Place) -> None:
    done = ended(place, "--design=bisect")
    assert done.code == 0, done.out
    said = answer(done)
    conclusion = place.saved()["deeptweak"]["design"]["conclusion"]["text"]
    assert "not comparable" not in done.out
    assert conclusion in " ".join(said)
    assert " baseline " not in " ".join(said)  # a heading of the table


def test_a_search_ends_with_the_candidates_it_confirmed(place: Place) -> None:
    """In the table + is faster, as in every table, and so it is in the sentence below."""
    said = answer(ended(place, "--design=search", "--trials=24"))
    conclusion = place.saved()["deeptweak"]["design"]["conclusion"]
    assert "not comparable" not in "\n".join(said)
    assert conclusion["text"] in " ".join(said)
    for candidate in conclusion["candidates"]:
        change = candidate["confirmed"]["change"]
        (row,) = (line for line in said if line.startswith(f"{candidate['name']}  "))
        assert f" {100 / (1 + change) - 100:+.1f} [".replace("-0.0 ", "+0.0 ") in row
        if f" {candidate['name']}, came to" in conclusion["text"] or conclusion["text"].startswith(candidate["name"]):
            (spoken,) = re.findall(r"speed (\S+) % \[", conclusion["text"])
            assert f" {spoken.replace('−', '-')} [" in row


@pytest.mark.parametrize(
    ("design", "said"),
    [("bisect", "Nothing can be said of the keys of knobs: 5 of 20 cells were measured"), ("search", "Nothing can be said of knobs: ")],
)
def test_what_could_not_conclude_for_want_of_measurements_ends_with_2(place: Place, design: str, said: str) -> None:
    """A machine that has neither key: stock alone runs."""
    place.manifest("knobs", sysctl="vm.swapiness = 10\nvm.dirty_rati = 40")
    done = ended(place, f"--design={design}")
    assert done.code == 2, done.out
    assert said in " ".join(done.out.split())
    assert place.saved()["deeptweak"]["design"]["conclusion"]["unmeasured"] is True
