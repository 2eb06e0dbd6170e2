"""One run at a time holds the machine, and the other is told who."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.kernel import lock, probes, state_dirs
from fixtures.kernel.journal import Journal
from fixtures.terms import MachineHeld, Refused

HOUSE = Path(__file__).parents[2]
HOLD = """
import sys
from pathlib import Path
from fixtures.kernel import lock
lock.ROOT_STATE_DIR = Path(sys.argv[2])
with lock.held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def own_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a private machine lock: a root run with the real lock would exclude ordinary users."""
    monkeypatch.setattr(lock, "ROOT_STATE_DIR", tmp_path / "machine")
    monkeypatch.setattr(lock, "RUN_DIR", tmp_path / "run")


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the machine whose state is in `tmp_path`."""
    command = [sys.executable, "-c", HOLD, str(tmp_path), str(vars(lock)["ROOT_STATE_DIR"])]
    with subprocess.Popen(
        command, cwd=HOUSE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_run_is_refused_and_told_who_holds_it(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    with (
        pytest.raises(
            MachineHeld,
            match=rf"held by process {holder.pid} \(.* -c import sys .*\) in /.*, since 20\d\d-",
        ),
        lock.held(tmp_path),
    ):
        pass


def test_who_holds_something_else_is_not_named(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    """The kernel lists each CPU's newest lock first: lock another file on every CPU."""
    cpus = os.sched_getaffinity(0)
    with contextlib.ExitStack() as stack:
        stack.callback(os.sched_setaffinity, 0, cpus)
        for cpu in cpus:
            os.sched_setaffinity(0, {cpu})
            fcntl.flock(stack.enter_context((tmp_path / f"other-{cpu}").open("w")), fcntl.LOCK_EX)
        with (
            pytest.raises(MachineHeld, match=f"held by process {holder.pid} "),
            lock.held(tmp_path),
        ):
            pass


def test_kill_9_lets_go(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    with lock.held(tmp_path):
        assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()


@pytest.mark.parametrize(
    "text",
    ['{"pid": 1, "command": ["init"], "since_utc": "2001-01-01"}', "", "[]", "5", "{", "\0" * 10],
)
def test_a_stale_text_is_not_believed(
    tmp_path: Path, holder: subprocess.Popen[str], text: str
) -> None:
    """The kernel's list of locks says who it is; the text is a courtesy."""
    (tmp_path / "lock").write_text(text)
    with (
        pytest.raises(MachineHeld, match=f"held by process {holder.pid} ") as refused,
        lock.held(tmp_path),
    ):
        pass
    assert "2001-01-01" not in str(refused.value)


def test_a_holder_that_cannot_be_seen_is_said_so(
    tmp_path: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert holder.pid
    monkeypatch.setattr(lock, "_pid_in_proc_locks", lambda _handle: None)
    (tmp_path / "lock").write_text("")
    with (
        pytest.raises(MachineHeld, match=r"another process .*another container"),
        lock.held(tmp_path),
    ):
        pass


def test_a_program_started_meanwhile_does_not_hold_it_on(tmp_path: Path) -> None:
    with lock.held(tmp_path):
        left = subprocess.Popen(["sleep", "60"])
    try:
        with lock.held(tmp_path):
            pass
    finally:
        left.kill()
        left.wait()


@pytest.mark.needs("root")
@pytest.mark.parametrize("held_by_root", [True, False])
def test_an_ordinary_user_respects_root_s_run(
    monkeypatch: pytest.MonkeyPatch, *, held_by_root: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o777)
        monkeypatch.setattr(lock, "ROOT_STATE_DIR", top / "root" if held_by_root else top / "never")
        monkeypatch.setattr(lock, "RUN_DIR", top / "run")
        umask = os.umask(0o077)
        try:
            with lock.held(top / "root"):
                assert _as_nobody(top / "mine") == (
                    f"held by process {os.getpid()} " if held_by_root else "got it"
                )
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
                with lock.machine_held(folder):
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


def test_two_state_folders_are_still_one_machine(tmp_path: Path) -> None:
    """The journal may lie anywhere; the kernel is one.

    Root always takes the machine's own lock too.
    """
    with (
        lock.machine_held(tmp_path / "one"),
        pytest.raises(MachineHeld, match=f"held by process {os.getpid()} "),
        lock.machine_held(tmp_path / "other"),
    ):
        pass


def test_a_lock_is_lent_only_by_the_process_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever names another pid, or one that holds nothing, is refused as anybody else."""
    with lock.held(tmp_path / "machine"):
        monkeypatch.setenv(lock.LENT, str(os.getpid()))
        with lock.machine_held(tmp_path / "one"):
            pass
        monkeypatch.setenv(lock.LENT, str(os.getppid()))
        with pytest.raises(MachineHeld), lock.machine_held(tmp_path / "one"):
            pass


def test_a_killed_runs_journal_in_another_state_folder_is_found(tmp_path: Path) -> None:
    """Stock would be measured on a machine that somebody has left changed.

    Once that journal is finished, all is well.
    """
    with lock.machine_held(tmp_path / "one"):
        (tmp_path / "one" / "journal.jsonl").write_text("a run was killed here")
    for folder in (tmp_path / "other", tmp_path / "machine"):
        with (
            pytest.raises(
                Refused, match=f"DEEPTWEAK_STATE_DIR={tmp_path / 'one'} python -m fixtures restore"
            ),
            lock.machine_held(folder),
        ):
            pass
    with lock.machine_held(tmp_path / "one"):
        (tmp_path / "one" / "journal.jsonl").unlink()
    with lock.machine_held(tmp_path / "other"):
        pass


@pytest.mark.parametrize(
    "name",
    ["relative/../state", "a\nb", "\n", "a b'c", '"quoted"', "\udcff", "line\u2028s", "link/state"],
)
def test_a_killed_run_can_be_restored_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEEPTWEAK_STATE_DIR", name)
    with lock.machine_held(state_dirs.state_dir()):
        (state_dirs.state_dir() / "journal.jsonl").touch()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for own in ("", "relative"):
        monkeypatch.setenv("DEEPTWEAK_STATE_DIR", own)
        folder = state_dirs.state_dir() if own else tmp_path / "machine"
        with pytest.raises(Refused, match="restore") as refused, lock.machine_held(folder):
            pass
    assert "\n" not in str(refused.value)
    said = (
        str(refused.value)
        .rpartition("that user: ")[2]
        .replace("python -m fixtures restore", "printenv --null DEEPTWEAK_STATE_DIR")
    )
    found = os.fsdecode(
        subprocess.run(["bash", "-c", said], capture_output=True, check=True).stdout
    ).removesuffix("\0")
    monkeypatch.setenv("DEEPTWEAK_STATE_DIR", found)
    with lock.machine_held(state_dirs.state_dir()):
        (state_dirs.state_dir() / "journal.jsonl").unlink()
    with lock.machine_held(tmp_path / "machine"):
        pass


def test_another_folder_has_the_lock_if_roots_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only /var/lib.

    Once it can be written, whoever comes then still meets the lock of who came before.
    """
    (tmp_path / "lib").write_text("")  # no folder
    monkeypatch.setattr(lock, "ROOT_STATE_DIR", tmp_path / "lib" / "machine")
    with lock.machine_held(tmp_path / "one"):
        for _ in range(2):
            with pytest.raises(MachineHeld), lock.machine_held(tmp_path / "other"):
                pass
            (tmp_path / "lib").unlink(missing_ok=True)
        assert json.loads((tmp_path / "run" / "state-folders").read_text())[0] == str(
            tmp_path / "one"
        )


def test_settings_are_changed_under_a_lock_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(lock, "ROOT_STATE_DIR", tmp_path / "file" / "machine")
    monkeypatch.setattr(lock, "RUN_DIR", tmp_path / "file" / "run")
    monkeypatch.setattr(probes, "settings", lambda: None)
    with pytest.raises(Refused, match="cannot be locked"), lock.machine_held(tmp_path / "one"):
        pass
    monkeypatch.setattr(probes, "settings", lambda: "no")
    with lock.machine_held(tmp_path / "one"):
        assert (tmp_path / "one" / "lock").exists()


class TestFoldersAmongTheTemporaryFiles:
    """For users with no home and no rights; others may make folders there, and links in them."""

    @pytest.fixture
    def temporary(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """The folder that is taken, if it is taken."""
        monkeypatch.delenv("DEEPTWEAK_STATE_DIR", raising=False)
        monkeypatch.setenv("XDG_STATE_HOME", "relative")
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        monkeypatch.setattr(probes, "settings", lambda: "nothing can be written")
        monkeypatch.setattr(
            probes,
            "make",
            lambda folder: None if folder.is_relative_to(tmp_path) else "it cannot be written",
        )
        return tmp_path / f"deeptweak-{os.geteuid()}"

    def test_one_is_made_for_this_user_alone(self, temporary: Path) -> None:
        assert state_dirs.state_dir() == temporary
        assert temporary.stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize("mode", [0o777, 0o770, 0o755])
    def test_one_that_others_may_write_or_read_is_not_taken(
        self, temporary: Path, mode: int
    ) -> None:
        temporary.mkdir()
        temporary.chmod(mode)
        assert state_dirs.state_dir() == state_dirs.ROOT_STATE_DIR

    def test_a_link_is_not_taken(self, temporary: Path, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        temporary.symlink_to(tmp_path / "elsewhere")
        assert state_dirs.state_dir() == state_dirs.ROOT_STATE_DIR


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "lock").symlink_to(tmp_path / "secret")
    with pytest.raises(Refused), lock.held(tmp_path / "state"):
        pass
    assert (tmp_path / "secret").read_text() == "mine"


def test_a_lock_in_a_read_only_folder_is_noted_in_the_next_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run killed under a read-only /var/lib is found by the next run, which looks in both."""
    root, run, own = tmp_path / "root", tmp_path / "run", tmp_path / "own"
    root.mkdir()
    (root / "lock").touch()
    monkeypatch.setattr(lock, "ROOT_STATE_DIR", root)
    monkeypatch.setattr(lock, "RUN_DIR", run)
    with monkeypatch.context() as read_only:
        read_only.setattr(
            probes, "make", lambda folder: "it is read-only" if folder == root else None
        )
        with lock.machine_held(own):
            (own / "journal.jsonl").touch()
    with pytest.raises(Refused, match=str(own)), lock.machine_held(root):
        pass


def _killed(folder: Path) -> None:
    """A run that holds the machine with this state folder, has begun a set, and is killed."""
    pid = os.fork()
    if pid == 0:
        with lock.machine_held(folder):
            Journal(folder).begin({"record": "begin"})
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)


@pytest.mark.parametrize("own", [True, False], ids=["the machine's own folder", "another"])
@pytest.mark.parametrize("gone", ["its files", "its folder"])
def test_a_lost_journal_is_no_clean_machine(tmp_path: Path, gone: str, *, own: bool) -> None:
    folder = tmp_path / ("machine" if own else "one")
    _killed(folder)
    for name in ("journal.jsonl", "journal.snapshot"):
        (folder / name).unlink()
    if gone == "its folder" and not own:
        shutil.rmtree(folder)
    for _ in range(2):
        with pytest.raises(
            Refused,
            match=f"{folder}: a run with this state folder was killed, and its journal is gone",
        ):
            _hold(folder)
        with pytest.raises(Refused, match="its journal is gone"):
            _hold(tmp_path / "other")
    (tmp_path / "machine" / "state-folders").unlink()
    _hold(tmp_path / "other")


def test_a_journal_lost_before_this_boot_is_none(tmp_path: Path) -> None:
    """The kernel has started anew since."""
    _killed(tmp_path / "one")
    shutil.rmtree(tmp_path / "one")
    (tmp_path / "machine" / "state-folders").write_text(
        json.dumps([str(tmp_path / "one"), "another boot"])
    )
    _hold(tmp_path / "other")


def test_the_list_forgets_what_is_closed(tmp_path: Path) -> None:
    _hold(tmp_path / "one")
    assert (tmp_path / "machine" / "state-folders").read_text() == ""
    pid = os.fork()
    if pid == 0:
        with lock.machine_held(tmp_path / "two"):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert str(tmp_path / "two") in (tmp_path / "machine" / "state-folders").read_text()
    _hold(tmp_path / "one")
    assert (tmp_path / "machine" / "state-folders").read_text() == ""


def test_a_run_may_wait_for_the_machine(
    tmp_path: Path, holder: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(MachineHeld, match=r"--wait=TIME"), lock.held(tmp_path, 0.3):
        pass
    release = threading.Timer(0.5, holder.kill)
    release.start()
    with lock.held(tmp_path, 60.0):
        pass
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" (")[0] for line in lines] == [
        f"Waiting up to {s} s for process {holder.pid}" for s in ("0.3", "60")
    ]


def test_a_killed_runs_children_that_hold_its_lock_are_awaited(
    tmp_path: Path,
) -> None:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        with lock.held(tmp_path):
            if os.fork() == 0:
                time.sleep(0.5)
                os._exit(0)
            os.write(writer, b"x")
            os.kill(os.getpid(), signal.SIGKILL)
    os.read(reader, 1)
    os.waitpid(pid, 0)
    with lock.held(tmp_path):
        pass


def _hold(folder: Path) -> None:
    with lock.machine_held(folder):
        pass
