"""A tune from its first heat to its last: the record, the time that counts, and resumption."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from control.tuning import Cell, Rules
from fixtures.studies.command import tune_race
from fixtures.studies.command.tune_candidates import Candidates, joined_set
from fixtures.studies.command.tune_heats import Bench, SavedHeat
from fixtures.studies.command.tune_race import Race, Record
from fixtures.terms import Refused
from fixtures.tweaks import resolve
from fixtures.tweaks.derive import parts

BUDGET_S = 1000.0


@dataclass
class Machine:
    """A machine where the first setting gains 10 %; a session uses its time, after a wait."""

    waits_s: float = 0.0
    # Labels of heats that are interrupted halfway, once each.
    interrupts: list[str] = field(default_factory=list)
    # Labels of heats that do not put the machine back.
    broken: list[str] = field(default_factory=list)
    now_s: float = 0.0
    given_s: dict[str, list[float]] = field(default_factory=dict)

    def wait(self) -> None:
        self.now_s += self.waits_s

    def measure(
        self,
        bench: Bench,
        _number: int,
        name: str,
        _arms: Mapping[str, str],
        budget_s: float,
        _seed: int,
    ) -> tuple[Path, bool]:
        label = name.removeprefix("made-")
        self.given_s.setdefault(label, []).append(budget_s)
        interrupted = label in self.interrupts
        if interrupted:
            self.interrupts.remove(label)
        self.now_s += budget_s * (0.75 if interrupted else 1)
        if label in self.broken:
            bench.log.write_text("a line\nTHE MACHINE WAS NOT PUT BACK: vm.swappiness\n")
        return bench.storage / "machine" / f"{name}.json", interrupted


def cells(heat: SavedHeat) -> list[Cell]:
    arms = [frozenset[str](), *heat.arms.values()]
    scatter = (0.001, -0.001, 0.0005, 0.002, -0.002)
    return [
        Cell(
            heat.number,
            block,
            arm,
            scatter[(3 * block + number) % 5] - 0.1 * ("vm.swappiness" in arm),
        )
        for block in (1, 2)
        for number, arm in enumerate(arms)
    ]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(tune_race, "measure", made.measure)
    monkeypatch.setattr(Bench, "wait", made.wait)
    monkeypatch.setattr(SavedHeat, "cells", cells)
    monkeypatch.setattr(
        SavedHeat,
        "is_restored",
        lambda heat: heat.path.stem.removeprefix("made-") not in made.broken,
    )
    monkeypatch.setattr("time.monotonic", lambda: made.now_s)
    return made


def candidates() -> Candidates:
    profile = joined_set(resolve("made:vm.swappiness=7+vm.page-cluster=5+vm.dirty_ratio=33"))
    return Candidates(profile, {part.name: (part.name,) for part in parts(profile)}, {}, ())


def race(folder: Path, *, resumed: bool = False) -> Race:
    path = folder / "tune" / "made.json"
    found = candidates()
    path.parent.mkdir(exist_ok=True)
    record = (
        Record.resumed(path)
        if resumed
        else Record.begun(path, found, Rules(1), BUDGET_S, 1, ["again"], ["words"])
    )
    record.begin()
    return Race(
        Bench((), 0.0, folder, path.with_suffix(""), path.with_suffix(".log")), found, record
    )


def written(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "tune" / "made.json").read_text())
    return content


def test_all_of_the_time_is_used(tmp_path: Path, machine: Machine) -> None:
    race(tmp_path).run(tmp_path / "chosen.yaml")
    assert list(written(tmp_path)["chosen"]) == ["vm.swappiness"]
    assert machine.given_s == {"race-1a": [250], "race-1b": [250], "confirm": [500]}


def test_waiting_for_another_run_does_not_count(tmp_path: Path, machine: Machine) -> None:
    machine.waits_s = 10 * BUDGET_S
    race(tmp_path).run(tmp_path / "chosen.yaml")
    assert [heat["took_s"] for heat in written(tmp_path)["heats"]] == [250, 250, 500]


@pytest.mark.parametrize("label", ["race-1a", "race-1b", "confirm"])
def test_an_interrupted_heat_goes_on_with_the_rest_of_its_time(
    tmp_path: Path, machine: Machine, label: str
) -> None:
    machine.interrupts = [label]
    race(tmp_path).run(tmp_path / "chosen.yaml")
    assert written(tmp_path)["interrupted"]
    race(tmp_path, resumed=True).run(tmp_path / "chosen.yaml")
    assert not written(tmp_path)["interrupted"]
    first, second = machine.given_s[label]
    assert second == pytest.approx(first / 4)
    assert sum(heat["took_s"] for heat in written(tmp_path)["heats"]) == pytest.approx(BUDGET_S)


@pytest.mark.parametrize("interrupts", [[], ["race-1b"]], ids=["ended", "interrupted"])
def test_a_machine_that_is_not_put_back_ends_the_tune(
    tmp_path: Path, machine: Machine, capsys: pytest.CaptureFixture[str], interrupts: list[str]
) -> None:
    machine.broken, machine.interrupts = ["race-1b"], interrupts
    with pytest.raises(Refused, match=r"race-1b did not put the machine back.* restore"):
        race(tmp_path).run(tmp_path / "chosen.yaml")
    said = capsys.readouterr().out
    assert "THE MACHINE WAS NOT PUT BACK: vm.swappiness" in said
    assert "the machine is put back" not in said
    assert [heat["label"] for heat in written(tmp_path)["heats"]] == ["race-1a", "race-1b"]


def test_a_finished_tune_is_not_measured_again(tmp_path: Path, machine: Machine) -> None:
    race(tmp_path).run(tmp_path / "chosen.yaml")
    before, measured = written(tmp_path), dict(machine.given_s)
    race(tmp_path, resumed=True).run(tmp_path / "chosen.yaml")
    assert written(tmp_path) == before
    assert machine.given_s == measured


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(lambda text: text[: len(text) // 2], id="truncated"),
        pytest.param(lambda _: "[]", id="list"),
        pytest.param(lambda _: "[" * 100_000, id="deep"),
        pytest.param(
            lambda text: text.replace('"schema_version": 1', '"schema_version": 2'), id="version"
        ),
        pytest.param(lambda text: text.replace('"heats"', '"heat"'), id="field-gone"),
        pytest.param(lambda text: text.replace('"looks": 1', '"looks": 0'), id="no-looks"),
        pytest.param(
            lambda text: text.replace('"took_s": 250.0', '"took_s": "long"'), id="no-number"
        ),
    ],
)
@pytest.mark.usefixtures("machine")
def test_a_record_that_was_edited_is_refused(tmp_path: Path, edit: Any) -> None:
    race(tmp_path).run(tmp_path / "chosen.yaml")
    path = tmp_path / "tune" / "made.json"
    path.write_text(edit(path.read_text()))
    with pytest.raises(Refused, match=r"made\.json.*without --resume"):
        Record.resumed(path)
