"""The journal: on disk before the machine is touched, readable after any crash."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.kernel import probes, state_dirs
from fixtures.kernel.journal import Damaged, Journal
from fixtures.kernel.state_dirs import state_dir
from fixtures.terms import Refused
from tests.file_size import file_size_limit

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
_BY_HAND = r"put them back by hand, then remove both, and make journal\.closed"
NO_RECORD = (
    rf"^[^\n]*journal\.jsonl, line {{line}}: not a journal record [^\n]*: {_BY_HAND}, [^\n]*\.$"
)


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


@given(cut=st.integers(len(json.dumps(BEGIN, separators=(",", ":"))) + 1, 600))
def test_a_torn_later_line_says_nothing(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    """Cut anywhere, what is whole is read; the next record does not stick to the torn one."""
    folder = tmp_path_factory.mktemp("torn")
    path = written(folder).path
    torn = path.read_bytes()[:cut]
    path.write_bytes(torn)
    whole = RECORDS[: torn.count(b"\n")]
    assert Journal(folder).read() == whole
    Journal(folder).add(WROTE)
    assert Journal(folder).read() == [*whole, WROTE]


def made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "x").touch()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "first line torn": lambda path: path.write_bytes(path.read_bytes()[:20]),
    "zeros": lambda path: path.write_bytes(bytes(512)),
    "garbage": lambda path: path.write_bytes(b"garbage\n"),
    "garbage in front": lambda path: path.write_bytes(b"garbage\n" + path.read_bytes()),
    "a first record in the middle": lambda path: path.write_bytes(2 * path.read_bytes()),
    "brackets": lambda path: path.write_bytes(b"[" * 100_000 + b"\n"),
    "a folder": made_a_folder,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_journal_is_never_no_journal(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    """The copy of its first record gives all originals; without it, only the places to look."""
    damage(written(tmp_path).path)
    journal = Journal(tmp_path)
    with pytest.raises(Damaged, match=NO_RECORD.format(line=r"\d")) as damaged:
        journal.read()
    assert journal.records() == [BEGIN, {"record": "scripts", "damaged": damaged.value.what}]
    journal.copy.write_bytes(journal.copy.read_bytes()[:-1])
    with pytest.raises(Damaged):
        journal.records()
    assert journal.exists()
    journal.close()
    assert (journal.exists(), Journal(tmp_path).records()) == (False, [])


def test_a_process_keeps_its_journal_although_the_files_are_gone(tmp_path: Path) -> None:
    journal = written(tmp_path / "state")
    shutil.rmtree(tmp_path / "state")
    assert journal.exists()
    assert journal.records()[0] == BEGIN
    journal.close()
    assert not journal.exists()


def test_leftovers_of_a_run_killed_at_its_start_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", lambda _self, _to: os._exit(0))
        if (pid := os.fork()) == 0:
            Journal(tmp_path).begin(BEGIN)
        os.waitpid(pid, 0)
    assert list(tmp_path.iterdir())
    assert (Journal(tmp_path).exists(), Journal(tmp_path).records(), list(tmp_path.iterdir())) == (
        False,
        [],
        [],
    )


@pytest.mark.parametrize("line", [b"no json", b"\xff"])
def test_a_line_somebody_edited_is_not_guessed_at(tmp_path: Path, line: bytes) -> None:
    path = written(tmp_path).path
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], line, *lines[2:]]))
    with pytest.raises(Refused, match=r"journal\.jsonl, line 2: not a journal record.*by hand"):
        Journal(tmp_path).read()


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in BEGIN.items() if key != name}


@pytest.mark.parametrize(
    ("begin", "what"),
    [
        *[(without(name), name) for name in BEGIN if name != "version"],
        (without("version"), "version None, but this program reads 1 and 2"),
        (BEGIN | {"version": 3}, "version 3, but this program reads 1 and 2"),
        (BEGIN | {"record": "started"}, "`record` must be one of begin, wrote"),
        (BEGIN | {"before": ["/proc/sys/a"]}, "`before` gives no text for each path"),
        (BEGIN | {"before": {"/proc/sys/a": 5}}, "`before` gives no text for each path"),
        (BEGIN | {"writes": [["/proc/sys/a", "1"]]}, "`writes` is not a list of three texts each"),
        (BEGIN | {"undo": {"tune": "true"}}, "`undo` is not a list of three texts each"),
    ],
)
def test_a_first_line_of_another_shape_is_not_guessed_at(
    tmp_path: Path, begin: dict[str, Any], what: str
) -> None:
    Journal(tmp_path).begin(begin)
    with pytest.raises(Refused, match=NO_RECORD.format(line=1)) as refused:
        Journal(tmp_path).read()
    assert what in str(refused.value)
    assert (tmp_path / "journal.jsonl").exists()


@pytest.mark.parametrize(
    "record",
    [
        {"record": "wrote", "path": "/proc/sys/a"},
        {"record": "wrote", "path": "/proc/sys/a", "observed": 1},
        {"record": "applied", "effects": ["/proc/sys/a"]},
        {"record": "applied", "effects": {"/proc/sys/a": ["0", "1", "2"]}},
        {"record": "undoing", "keep": {}, "left": {"/proc/sys/a": "1"}},
        {"record": "restoring", "effects": None, "left": {}},
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


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/etc/passwd",
            "/etc/cron.d/x",
            "/etc/sysctl.d/../passwd",
            "/etc/sysctl.conf.d/a",
            "/root/x",
            "proc/sys/a",
            "",
            "/proc/sys",
        ),
        *(
            "/proc/sys/../1/mem",
            "/proc/sys/a\0b",
            "/home/proc/sys/a",
            "/sys/x",
            "/sys/devices/pci0000:00/x",
            "/sys/block/a",
        ),
    ],
)
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
        (tmp_path / "journal.jsonl").write_text(
            "".join(json.dumps(record) + "\n" for record in records)
        )
        with pytest.raises(Refused, match=rf"line {len(records)}: .* is not a tunable"):
            Journal(tmp_path).read()


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_journal_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    """It holds scripts for root to run; whole, torn or empty, it is kept for inspection."""
    path = written(tmp_path).path
    path.chmod(mode)
    for text in (path.read_bytes(), b"{", b""):
        path.write_bytes(text)
        with pytest.raises(
            Refused, match=rf"journal\.jsonl: other users may write to it \(mode 0{mode:o}\).*chown"
        ):
            Journal(tmp_path).records()
        assert path.read_bytes() == text


def test_a_journal_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path).path
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(
        Refused,
        match=rf"journal\.jsonl: belongs to user {owner}, but this process runs as {owner + 1}",
    ):
        Journal(tmp_path).read()
    assert path.exists()


def test_a_journal_that_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.symlink_to(written(tmp_path / "other").path)
    with pytest.raises(
        Refused, match=r"journal\.jsonl: cannot be read \(Too many levels of symbolic links\)"
    ):
        Journal(tmp_path).read()
    path.unlink()
    os.mkfifo(path, 0o600)
    with pytest.raises(Refused, match="not a plain file"):
        Journal(tmp_path).read()


def test_where_files_are_everybody_s_no_journal_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system without owners would make the journal refused later: better not to begin."""
    make = os.open
    monkeypatch.setattr(os, "open", lambda path, flags, _mode=0: make(path, flags, 0o666))
    old = os.umask(0)
    try:
        with pytest.raises(OSError, match="does not restrict files to their owner"):
            Journal(tmp_path).begin(BEGIN)
    finally:
        os.umask(old)
    assert list(tmp_path.iterdir()) == []


def test_a_second_journal_is_never_begun_over_a_first(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(FileExistsError):
        Journal(tmp_path).begin(BEGIN)
    assert Journal(tmp_path).read() == RECORDS


def test_begin_is_on_disk_before_it_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First the data of file and copy, then their names, then the folder; then appended records."""
    synced: list[str] = []

    def noted(handle: int) -> None:
        name = Path(f"/proc/self/fd/{handle}").readlink()
        synced.append(name.name)
        assert name.name != ".journal" or json.loads(name.read_text()) == BEGIN

    monkeypatch.setattr(os, "fsync", noted)
    journal = Journal(tmp_path)
    journal.begin(BEGIN)
    assert synced == [".journal", ".journal", tmp_path.name]
    journal.add(WROTE)
    assert len(synced) == 3
    journal.add(APPLIED, sync=True)
    assert synced[3:] == ["journal.jsonl"]
    journal.close()
    assert synced[4:] == [tmp_path.name]


@pytest.mark.parametrize("limit", [0, 1, 20])
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, limit: int) -> None:
    with file_size_limit(limit), pytest.raises(OSError, match=r"too large|No space"):
        Journal(tmp_path).begin(BEGIN)
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_does_not_fit_leaves_the_others_readable(tmp_path: Path) -> None:
    journal = written(tmp_path)
    with (
        file_size_limit(journal.path.stat().st_size + 10),
        pytest.raises(OSError, match="No space"),
    ):
        journal.add(WROTE)
    journal.add(WROTE)
    assert Journal(tmp_path).read() == [*RECORDS, WROTE]


def test_state_folder_is_the_named_or_the_first_writable_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root's, the user's, else one in the temporary folder if nothing can be changed; or none."""
    monkeypatch.setenv("DEEPTWEAK_STATE_DIR", str(tmp_path))
    assert state_dir() == tmp_path
    monkeypatch.delenv("DEEPTWEAK_STATE_DIR")
    monkeypatch.setattr(state_dirs, "ROOT_STATE_DIR", tmp_path / "root")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(probes, "settings", lambda: "no")
    assert state_dir() == tmp_path / "root"
    (tmp_path / "root").write_text("")  # no folder
    assert state_dir() == tmp_path / "xdg/deeptweak"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert state_dir() == tmp_path / ".local/state/deeptweak"
    (tmp_path / ".local").write_text("")
    assert state_dir().parent == Path(tempfile.gettempdir())
    monkeypatch.setattr(probes, "settings", lambda: None)
    assert state_dir() == tmp_path / "root"  # which is refused when it is used
