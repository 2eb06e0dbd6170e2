"""One run at a time holds the machine, and the other is told who."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.node import lock
from fixtures.terms import MachineHeld, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

HOUSE = Path(__file__).parents[2]
HOLD = """
import sys
from pathlib import Path
from fixtures.node import lock
with lock.held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the machine whose state is in `tmp_path`."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, cwd=HOUSE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_run_is_refused_and_told_who_holds_it(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    """Its pid and command, and since when."""
    with pytest.raises(MachineHeld, match=rf"held by process {holder.pid} \(.* -c import sys .*\), since 20\d\d-"), lock.held(tmp_path):
        pass


def test_kill_9_lets_go(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    with lock.held(tmp_path):
        assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()


@pytest.mark.parametrize("text", ['{"pid": 1, "command": ["init"], "since_utc": "2001-01-01"}', "", "[]", "5", "{", "\0" * 10])
def test_a_stale_text_is_not_believed(tmp_path: Path, holder: subprocess.Popen[str], text: str) -> None:
    """The kernel's list of locks says who it is; the text is a courtesy."""
    (tmp_path / "lock").write_text(text)
    with pytest.raises(MachineHeld, match=f"held by process {holder.pid} ") as refused, lock.held(tmp_path):
        pass
    assert "2001" not in str(refused.value)


def test_a_holder_that_cannot_be_seen_is_said_so(tmp_path: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """In another container: not in this one's list of locks."""
    assert holder.pid
    monkeypatch.setattr(lock, "_pid_in_proc_locks", lambda _handle: None)
    (tmp_path / "lock").write_text("")
    with pytest.raises(MachineHeld, match=r"another process .*another container"), lock.held(tmp_path):
        pass


def test_a_text_without_a_holder_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text('{"pid": 1, "command": ["init"]}')
    with lock.held(tmp_path):
        pass


def test_it_is_let_go_when_the_block_ends_and_taken_again(tmp_path: Path) -> None:
    for _ in range(2):
        with lock.held(tmp_path), pytest.raises(MachineHeld, match=f"held by process {os.getpid()} "), lock.held(tmp_path):
            pass


def test_a_program_started_meanwhile_does_not_hold_it_on(tmp_path: Path) -> None:
    """A workload that outlives the run must not keep the next one out."""
    with lock.held(tmp_path):
        left = subprocess.Popen(["sleep", "60"])
    try:
        with lock.held(tmp_path):
            pass
    finally:
        left.kill()
        left.wait()


def test_a_folder_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="DEEPTWEAK_STATE_DIR"), lock.held(tmp_path / "file" / "state"):
        pass


@pytest.mark.needs("root")
@pytest.mark.parametrize("held_by_root", [True, False])
def test_an_ordinary_user_respects_root_s_run(monkeypatch: pytest.MonkeyPatch, *, held_by_root: bool) -> None:
    """Whatever root's umask; and has a lock of their own where root never ran."""
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o777)
        monkeypatch.setattr(lock, "ROOT_STATE_DIR", top / "root" if held_by_root else top / "never")
        umask = os.umask(0o077)
        try:
            with lock.held(top / "root"):
                assert _as_nobody(top / "mine") == (f"held by process {os.getpid()} " if held_by_root else "got it")
        finally:
            os.umask(umask)


def _as_nobody(folder: Path) -> str:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            try:
                with lock.held(folder):
                    answer = "got it"
            except MachineHeld as refused:
                answer = str(refused).removeprefix("this machine is ").partition("(")[0]
            os.write(writer, answer.encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return answer


def test_two_state_folders_are_still_one_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal may lie anywhere; the kernel is one. Root always takes the machine's own lock too."""
    monkeypatch.setattr(lock, "ROOT_STATE_DIR", tmp_path / "machine")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with (
        lock.machine_held(tmp_path / "one"),
        pytest.raises(MachineHeld, match=f"held by process {os.getpid()} "),
        lock.machine_held(tmp_path / "other"),
    ):
        pass


def test_a_lock_is_lent_only_by_the_process_that_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever names another pid, or one that holds nothing, is refused as anybody else."""
    monkeypatch.setattr(lock, "ROOT_STATE_DIR", tmp_path / "machine")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with lock.held(tmp_path / "machine"):
        monkeypatch.setenv(lock.LENT, str(os.getpid()))
        with lock.machine_held(tmp_path / "one"):
            pass
        monkeypatch.setenv(lock.LENT, str(os.getppid()))
        with pytest.raises(MachineHeld), lock.machine_held(tmp_path / "one"):
            pass


def test_a_killed_runs_journal_in_another_state_folder_is_not_overlooked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stock would be measured on a machine that somebody has left changed. Once that journal is finished, all is well."""
    monkeypatch.setattr(lock, "ROOT_STATE_DIR", tmp_path / "machine")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with lock.machine_held(tmp_path / "one"):
        (tmp_path / "one" / "journal.jsonl").write_text("a run was killed here")
    for folder in (tmp_path / "other", tmp_path / "machine"):
        with pytest.raises(Refused, match=f"DEEPTWEAK_STATE_DIR={tmp_path / 'one'} python -m fixtures restore"), lock.machine_held(folder):
            pass
    with lock.machine_held(tmp_path / "one"):
        (tmp_path / "one" / "journal.jsonl").unlink()
    with lock.machine_held(tmp_path / "other"):
        pass
