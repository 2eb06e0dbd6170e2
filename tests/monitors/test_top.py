"""top in batch mode, the real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from analysis.logs import top_batch
from fixtures.studies.monitors.monitor import load
from tests.monitors import stand_ins
from tests.monitors.watched import watch

if TYPE_CHECKING:
    from pathlib import Path


top = load("top")


@pytest.mark.needs("top")
def test_each_refresh_is_a_table_that_has_the_workload(tmp_path: Path) -> None:
    done = watch("top:interval_s=0.2", tmp_path, lambda folder: (top.samples(folder) or 0) >= 3)
    assert done.ended_as_asked
    assert done.lines("stderr") == []
    tables = top_batch.read(tmp_path / "stdout").snapshots
    assert top.samples(tmp_path) == len(tables) >= 3
    for table in tables[:-1]:  # the signal may have cut off the last one
        assert done.pid in {process.pid for process in table.processes}


@pytest.mark.needs("top")
def test_somebodys_own_settings_do_not_change_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a language with decimal commas nor a toprc (here one that top refuses)."""
    home, folder = tmp_path / "home", tmp_path / "folder"
    for path in (home / ".config/procps", folder):
        path.mkdir(parents=True)
    for file in (home / ".toprc", home / ".config/procps/toprc"):
        file.write_text("no toprc at all\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    done = watch("top:interval_s=0.2", folder, lambda folder: (top.samples(folder) or 0) >= 2)
    assert done.ended_as_asked
    assert done.lines("stderr") == []


@pytest.mark.needs("top")
def test_it_says_its_version() -> None:
    assert top.unavailable_reason() is None
    assert "procps" in (top.version() or "")


def test_another_top_is_not_taken_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for busybox's, which has another table."""
    stand_ins.put(tmp_path / "bin", monkeypatch, top="print('Mem: 3359996K used, 20745900K free')")
    assert top.unavailable_reason() == "top does not write the table of procps's: install procps"
