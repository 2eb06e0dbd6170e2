"""One tune from its first heat to its last: its record, its time, and how it goes on."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from control.tuning import Heat, HeatCell, RaceRules, TuneRecord
from fixtures.studies.command import tune_race
from fixtures.studies.command.tune_candidates import Candidates, joined_set
from fixtures.studies.command.tune_race import Race, resumed, saved_by
from fixtures.terms import Refused
from fixtures.tweaks import resolve
from fixtures.tweaks.derive import parts

BUDGET_S = 1000.0
NOTE = "/etc/made is NOT put back"


@dataclass
class Machine:
    """A machine on which the first setting is worth 10 %; a session takes its budget.

    interrupts: labels of heats that are interrupted halfway, once each
    broken: labels of heats that do not put the machine back
    """

    waits_s: float = 0.0
    interrupts: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    now_s: float = 0.0
    given_s: dict[str, list[float]] = field(default_factory=dict)

    @contextlib.contextmanager
    def held(self, *_: object) -> Iterator[None]:
        self.now_s += self.waits_s
        yield

    def saved_by(
        self, words: Sequence[str], storage: Path, pattern: str, _log: Path
    ) -> tuple[Path, bool]:
        label = _label(pattern)
        (budget,) = [word for word in words if word.startswith("--budget=")]
        budget_s = float(budget.removeprefix("--budget=").removesuffix("s"))
        self.given_s.setdefault(label, []).append(budget_s)
        interrupted = label in self.interrupts
        if interrupted:
            self.interrupts.remove(label)
        self.now_s += budget_s * (0.75 if interrupted else 1)
        return storage / "machine" / pattern.removeprefix("*/*_"), interrupted

    def read(self, path: Path, heat: Heat) -> tuple[dict[str, Any], list[HeatCell]]:
        back = _label(path.name) not in self.broken
        changed = {} if back else {"vm.swappiness": ["60", "7"]}
        return {"restored": back, "changed": changed, "notes": [NOTE]}, cells(heat)


def _label(name: str) -> str:
    return re.sub(r".*made-|\.json", "", name)


def cells(heat: Heat) -> list[HeatCell]:
    arms = [frozenset[str](), *map(frozenset, heat.arms.values())]
    scatter = (0.001, -0.001, 0.0005, 0.002, -0.002)
    return [
        HeatCell(
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
    monkeypatch.setattr(tune_race, "saved_by", made.saved_by)
    monkeypatch.setattr(tune_race, "read", made.read)
    monkeypatch.setattr("fixtures.kernel.lock.machine_held", made.held)
    monkeypatch.setattr("time.monotonic", lambda: made.now_s)
    return made


def candidates() -> Candidates:
    profile = joined_set(resolve("made:vm.swappiness=7+vm.page-cluster=5+vm.dirty_ratio=33"))
    return Candidates(profile, {part.name: (part.name,) for part in parts(profile)}, {})


def race(folder: Path, *, again: bool = False) -> Race:
    path = folder / "tune" / "made.json"
    found = candidates()
    path.parent.mkdir(exist_ok=True)
    record = TuneRecord(
        settings=dict(found.settings),
        left_out={},
        rules=RaceRules(1),
        budget_s=BUDGET_S,
        seed=1,
        heats=[],
        looks=[],
        words=["words"],
    )
    return Race(path, resumed(path) if again else record, found)


def written(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "tune" / "made.json").read_text())
    return content


def test_all_of_the_time_is_used(tmp_path: Path, machine: Machine) -> None:
    race(tmp_path).run()
    assert list(written(tmp_path)["chosen"]) == ["vm.swappiness"]
    assert machine.given_s == {"race-1a": [250], "race-1b": [250], "confirm": [500]}


def test_waiting_for_another_run_does_not_count(tmp_path: Path, machine: Machine) -> None:
    machine.waits_s = 10 * BUDGET_S
    race(tmp_path).run()
    assert [heat["took_s"] for heat in written(tmp_path)["heats"]] == [250, 250, 500]


@pytest.mark.parametrize("label", ["race-1a", "race-1b", "confirm"])
def test_an_interrupted_heat_goes_on_with_the_rest_of_its_time(
    tmp_path: Path, machine: Machine, label: str
) -> None:
    machine.interrupts = [label]
    race(tmp_path).run()
    assert written(tmp_path)["interrupted"]
    race(tmp_path, again=True).run()
    assert not written(tmp_path)["interrupted"]
    first, second = machine.given_s[label]
    assert second == pytest.approx(first / 4, abs=0.5)
    assert sum(heat["took_s"] for heat in written(tmp_path)["heats"]) == pytest.approx(
        BUDGET_S, abs=1
    )


@pytest.mark.parametrize("interrupts", [[], ["race-1b"]], ids=["ended", "interrupted"])
def test_a_machine_that_is_not_put_back_ends_the_tune(
    tmp_path: Path, machine: Machine, capsys: pytest.CaptureFixture[str], interrupts: list[str]
) -> None:
    machine.broken, machine.interrupts = ["race-1b"], interrupts
    with pytest.raises(Refused, match=r"race-1b did not put .* back \(vm.swappiness\).* restore"):
        race(tmp_path).run()
    said = capsys.readouterr().out
    assert NOTE in said
    assert "machine has been put back" not in said
    assert [heat["label"] for heat in written(tmp_path)["heats"]] == ["race-1a", "race-1b"]


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(lambda text: text[: len(text) // 2], id="truncated"),
        pytest.param(lambda _: "[]", id="list"),
        pytest.param(lambda _: "[" * 100_000, id="deep"),
        pytest.param(
            lambda text: text.replace('"schema_version":1', '"schema_version":2'), id="version"
        ),
        pytest.param(lambda text: text.replace('"heats"', '"heat"'), id="field-gone"),
        pytest.param(lambda text: text.replace('"looks":1', '"looks":0'), id="no-looks"),
        pytest.param(
            lambda text: text.replace('"took_s":250.0', '"took_s":"long"'), id="no-number"
        ),
    ],
)
@pytest.mark.usefixtures("machine")
def test_a_record_that_was_edited_is_refused(tmp_path: Path, edit: Any) -> None:
    race(tmp_path).run()
    path = tmp_path / "tune" / "made.json"
    path.write_text(edit(path.read_text()))
    with pytest.raises(Refused, match=r"made\.json.*omit --resume"):
        resumed(path)


@pytest.mark.parametrize(
    "ends", ["import sys; sys.exit('no disk')", "import os; os.kill(os.getpid(), 9)"]
)
def test_a_session_without_a_saved_run_shows_its_last_lines(tmp_path: Path, ends: str) -> None:
    words = [sys.executable, "-c", ends]
    with pytest.raises(Refused, match="saved no run") as refused:
        saved_by(words, tmp_path / "storage", "*", tmp_path / "made.log")
    assert ("no disk" in str(refused.value)) == ("no disk" in ends)


class StoppedSession:
    """A session that ends, without a saved run, when it hears of Ctrl-C."""

    returncode = 2

    def __init__(self, *_: object, **__: object) -> None:
        self._signals: list[int] = []

    def wait(self) -> None:
        if not self._signals:
            raise KeyboardInterrupt

    def send_signal(self, number: int) -> None:
        self._signals.append(number)


@pytest.mark.parametrize("left", [False, True])
def test_an_unsaved_interruption_needs_the_machine_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, left: bool
) -> None:
    """A journal that is left lists settings that are not put back."""
    monkeypatch.setattr(tune_race, "Child", StoppedSession)
    monkeypatch.setattr("fixtures.kernel.journal.Journal.exists", lambda _: left)
    monkeypatch.setenv("DEEPTWEAK_STATE_DIR", str(tmp_path))
    with pytest.raises(Refused if left else KeyboardInterrupt):
        saved_by([], tmp_path / "storage", "*", tmp_path / "made.log")
