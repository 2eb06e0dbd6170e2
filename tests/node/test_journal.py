"""The journal: on disk before the machine is touched, readable after any crash."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.node.journal import ROOT_STATE_DIR, Journal, state_dir
from fixtures.terms import Refused

BEGIN = {"record": "begin", "label": "x", "before": {"/proc/sys/a": "\udcff ü\n"}}
WROTE = {"record": "wrote", "path": "/proc/sys/a", "observed": "1"}
APPLIED = {"record": "applied", "effects": {}}
RECORDS = [BEGIN, WROTE, APPLIED]


def written(folder: Path) -> Journal:
    journal = Journal(folder)
    journal.begin(BEGIN)
    journal.add(WROTE)
    journal.add(APPLIED, sync=True)
    return journal


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 included; readable by its owner alone, for /etc may hold secrets."""
    journal = written(tmp_path)
    assert Journal(tmp_path).read() == RECORDS
    assert journal.path.stat().st_mode & 0o777 == 0o600


def test_no_journal_says_nothing(tmp_path: Path) -> None:
    assert Journal(tmp_path / "never").read() == []


@given(cut=st.integers(0, 400))
def test_a_torn_line_says_nothing(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    """Cut anywhere, what is whole is read; the next record does not stick to the torn one."""
    folder = tmp_path_factory.mktemp("torn")
    path = written(folder).path
    torn = path.read_bytes()[:cut]
    path.write_bytes(torn)
    whole = RECORDS[: torn.count(b"\n")]
    assert Journal(folder).read() == whole
    if whole:
        Journal(folder).add(WROTE)
        assert Journal(folder).read() == [*whole, WROTE]


@pytest.mark.parametrize("line", [b"no json", b"5", b"{}", b'{"record": "begin"}', b"\xff"])
def test_a_line_somebody_edited_is_not_guessed_at(tmp_path: Path, line: bytes) -> None:
    path = written(tmp_path).path
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], line, *lines[2:]]))
    with pytest.raises(Refused, match=r"journal\.jsonl, line 2: not a journal record.*by hand"):
        Journal(tmp_path).read()


def test_a_journal_without_its_beginning_is_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text(json.dumps(WROTE) + "\n")
    with pytest.raises(Refused, match="line 1"):
        Journal(tmp_path).read()


def test_a_second_journal_is_never_begun_over_a_first(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(FileExistsError):
        Journal(tmp_path).begin(BEGIN)
    assert Journal(tmp_path).read() == RECORDS


def test_begin_is_on_disk_before_it_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file's data, then the folder that names it; a record within a run needs neither, the effects need the first."""
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(str(Path(f"/proc/self/fd/{handle}").readlink())))
    journal = Journal(tmp_path)
    journal.begin(BEGIN)
    assert synced == [str(journal.path), str(tmp_path)]
    journal.add(WROTE)
    assert len(synced) == 2
    journal.add(APPLIED, sync=True)
    assert synced[2:] == [str(journal.path)]
    journal.close()
    assert synced[3:] == [str(tmp_path)]


@pytest.mark.parametrize("limit", [0, 1, 20])
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, limit: int) -> None:
    """A file-size limit stops a write where a full disk would: at once, or half-way."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(OSError, match=r"too large|No space"):
            Journal(tmp_path).begin(BEGIN)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_does_not_fit_leaves_the_others_readable(tmp_path: Path) -> None:
    journal = written(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal.path.stat().st_size + 10, hard))
    try:
        with pytest.raises(OSError, match="No space"):
            journal.add(WROTE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    journal.add(WROTE)
    assert Journal(tmp_path).read() == [*RECORDS, WROTE]


def test_the_state_folder_is_the_named_one_else_root_s_else_the_user_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPTWEAK_STATE_DIR", str(tmp_path))
    assert state_dir() == tmp_path
    monkeypatch.delenv("DEEPTWEAK_STATE_DIR")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert state_dir() == ROOT_STATE_DIR
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert state_dir() == tmp_path / "xdg/deeptweak"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_dir() == tmp_path / ".local/state/deeptweak"
