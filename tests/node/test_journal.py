"""The journal: on disk before the machine is touched, readable after any crash."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.node.journal import ROOT_STATE_DIR, Journal, state_dir
from fixtures.terms import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

BEGIN: dict[str, Any] = {
    "record": "begin",
    "version": 1,
    "id": "1",
    "label": "x",
    "boot_id": "2",
    "before": {"/proc/sys/a": "\udcff ü\n"},
    "writes": [["/proc/sys/a", "0", "1"]],
    "undo": [["tune", "uninstall", "true"]],
}
WROTE = {"record": "wrote", "path": "/proc/sys/a", "observed": "1"}
APPLIED = {"record": "applied", "effects": {}}
RECORDS = [BEGIN, WROTE, APPLIED]
NO_RECORD = r"^[^\n]*journal\.jsonl, line {line}: not a journal record [^\n]*by hand, then remove the file\.$"


@pytest.fixture(autouse=True)
def files_are_their_owner_s() -> Iterator[None]:
    old = os.umask(0o077)
    yield
    os.umask(old)


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


@given(cut=st.integers(0, 600))
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


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in BEGIN.items() if key != name}


@pytest.mark.parametrize(
    ("begin", "what"),
    [
        *[(without(name), name) for name in BEGIN if name != "version"],
        (without("version"), "version None, while this program knows 1"),
        (BEGIN | {"version": 2}, "version 2, while this program knows 1"),
        (BEGIN | {"record": "started"}, "`record` is none of begin, wrote"),
        (BEGIN | {"before": ["/proc/sys/a"]}, "`before` gives no text for each path"),
        (BEGIN | {"before": {"/proc/sys/a": 5}}, "`before` gives no text for each path"),
        (BEGIN | {"writes": [["/proc/sys/a", "1"]]}, "`writes` is no list of three texts each"),
        (BEGIN | {"undo": {"tune": "true"}}, "`undo` is no list of three texts each"),
    ],
)
def test_a_first_line_of_another_shape_is_not_guessed_at(tmp_path: Path, begin: dict[str, Any], what: str) -> None:
    """Refused in one line that says where and what to do; the journal stays."""
    Journal(tmp_path).begin(begin)
    with pytest.raises(Refused, match=NO_RECORD.format(line=1)) as refused:
        Journal(tmp_path).read()
    assert what in str(refused.value)
    assert (tmp_path / "journal.jsonl").exists()


@pytest.mark.parametrize(
    "record",
    [
        {"record": "wrote", "path": "/proc/sys/a"},
        {"record": "wrote", "observed": "1"},
        {"record": "wrote", "path": "/proc/sys/a", "observed": 1},
        {"record": "applied"},
        {"record": "applied", "effects": ["/proc/sys/a"]},
        {"record": "applied", "effects": {"/proc/sys/a": ["0", "1", "2"]}},
        {"record": "applied", "effects": {"/proc/sys/a": [0, 1]}},
        {"record": "undoing", "left": {}},
        {"record": "undoing", "keep": {}, "left": {"/proc/sys/a": "1"}},
        {"record": "restoring", "effects": None, "left": {}},
        {"record": "resting"},
        {"record": ["wrote"]},
        [],
    ],
)
def test_a_later_line_of_another_shape_is_not_guessed_at(tmp_path: Path, record: object) -> None:
    path = written(tmp_path).path
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")
    with pytest.raises(Refused, match=NO_RECORD.format(line=4)):
        Journal(tmp_path).read()
    assert path.exists()


def test_a_line_of_a_hundred_thousand_brackets_is_refused_too(tmp_path: Path) -> None:
    """The decoder gives up on it with an error of its own."""
    (tmp_path / "journal.jsonl").write_text("[" * 100_000 + "\n")
    with pytest.raises(Refused, match="line 1"):
        Journal(tmp_path).read()


OTHER_PATHS = ["/etc/passwd", "/etc/cron.d/x", "/etc/sysctl.d/../passwd", "/etc/sysctl.d/a/b", "/root/x", "proc/sys/a", ""]
OTHER_PATHS += ["/proc/sys", "/proc/sys/../1/mem", "/proc/sys/a\0b", "/home/proc/sys/a", "/sys/x", "/sys/block/a/b/queue/x"]


@pytest.mark.parametrize("path", OTHER_PATHS)
def test_a_path_that_is_no_tunable_is_refused_wherever_it_stands(tmp_path: Path, path: str) -> None:
    """Root writes what a journal says: to settings and their configuration files, nowhere else."""
    first = [BEGIN | {"before": {path: "1"}}, BEGIN | {"writes": [[path, "0", "1"]]}]
    later: list[dict[str, Any]] = [
        {"record": "wrote", "path": path, "observed": "1"},
        {"record": "applied", "effects": {path: ["0", "1"]}},
        {"record": "undoing", "keep": {path: "1"}, "left": {}},
        {"record": "restoring", "effects": {}, "left": {path: ["0", "1"]}},
    ]
    for records in [*([begin] for begin in first), *([BEGIN, record] for record in later)]:
        (tmp_path / "journal.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        with pytest.raises(Refused, match=rf"line {len(records)}: .* is no tunable"):
            Journal(tmp_path).read()


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_journal_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    """It holds scripts that root would run; whole, torn or empty, it stays for somebody to look at."""
    path = written(tmp_path).path
    path.chmod(mode)
    for text in (path.read_bytes(), b"{", b""):
        path.write_bytes(text)
        for use in (Journal(tmp_path).read, Journal(tmp_path).set_aside):
            with pytest.raises(Refused, match=rf"journal\.jsonl: others may write to it \(mode 0{mode:o}\).*chown"):
                use()
        assert path.read_bytes() == text


def test_a_journal_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path).path
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(Refused, match=rf"journal\.jsonl: belongs to user {owner}, not to {owner + 1} who runs this"):
        Journal(tmp_path).read()
    assert path.exists()


def test_a_journal_that_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    """A link may lead to another journal, a pipe would wait for ever."""
    path = tmp_path / "journal.jsonl"
    path.symlink_to(written(tmp_path / "other").path)
    with pytest.raises(Refused, match=r"journal\.jsonl: cannot be read \(Too many levels of symbolic links\)"):
        Journal(tmp_path).read()
    path.unlink()
    os.mkfifo(path, 0o600)
    with pytest.raises(Refused, match="not a plain file"):
        Journal(tmp_path).read()


def test_where_files_are_everybody_s_no_journal_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system without owners the journal would be refused when it is needed: better not to begin."""
    make = os.open
    monkeypatch.setattr(os, "open", lambda path, flags, _mode=0: make(path, flags, 0o666))
    old = os.umask(0)
    try:
        with pytest.raises(OSError, match="does not keep files to their owner"):
            Journal(tmp_path).begin(BEGIN)
    finally:
        os.umask(old)
    assert list(tmp_path.iterdir()) == []


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
