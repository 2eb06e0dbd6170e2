"""One heat as a session in a process of its own: what is said where it saves no run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fixtures.process.stoppable import run_to_end
from fixtures.studies.command import tune_heats
from fixtures.studies.command.tune_heats import Bench, measure
from fixtures.terms import Refused


@pytest.mark.parametrize(
    "ends", ["import sys; sys.exit('no disk')", "import os; os.kill(os.getpid(), 9)"]
)
def test_a_session_that_saved_no_run_is_told_by_its_own_last_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """The log has the sessions of all heats; those before are not to blame."""
    monkeypatch.setattr(
        tune_heats, "run_to_end", lambda _, log: run_to_end([sys.executable, "-c", ends], log)
    )
    log = tmp_path / "made.log"
    log.write_text("Saved: the run of the heat before\n")
    with pytest.raises(Refused) as refused:
        measure(Bench((), 0.0, tmp_path, tmp_path / "made", log), 2, "made", {}, 1.0, 1)
    assert "heat before" not in str(refused.value)
    assert ("no disk" in str(refused.value)) == ("no disk" in ends)


@pytest.mark.parametrize("says", ["", "THE MACHINE WAS NOT PUT BACK"])
def test_an_unsaved_interruption_needs_the_machine_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    monkeypatch.setattr(tune_heats, "run_to_end", lambda _, log: (log.write_text(says), True))
    monkeypatch.setenv("DEEPTWEAK_STATE_DIR", str(tmp_path))
    with pytest.raises(Refused if says else KeyboardInterrupt):
        measure(
            Bench((), 0.0, tmp_path, tmp_path / "made", tmp_path / "made.log"),
            1,
            "made",
            {},
            1.0,
            1,
        )
