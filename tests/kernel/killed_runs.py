"""Kill whole runs of each kind at random: `python -m tests.kernel.killed_runs KIND FOLDER ROUNDS`.

Each run is a fork of one process that has imported the house, and what a run leaves becomes this
process's child.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import pytest

import fixtures.__main__
import fixtures.plugin  # with what follows, so that no fork has to import it
import fixtures.studies
import fixtures.targets.local
import fixtures.telemetry.client
import fixtures.workloads.idle
from deeptweak.__main__ import main as deeptweak
from fixtures.kernel.lock import LENT
from fixtures.kernel.machine import Machine, Write
from fixtures.kernel.signals import stop_like_ctrl_c
from fixtures.kernel.state_dirs import RUN_DIR
from fixtures.kernel.tunables import Snapshot, Tunables, diff, sysctl_path
from fixtures.process.inside import KINDS, within
from fixtures.process.proc import descendants
from fixtures.terms import Script
from tests import needs, waiting
from tests.kernel.kills import LIBC, PR_SET_PDEATHSIG, SEED, cycles
from tests.sandbox import NOBODY, private_mounts
from tests.sessions import HOUSE, Place

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
CGROUPS = Path("/sys/fs/cgroup")
SWAPPINESS, PAGE_CLUSTER = Path("/proc/sys/vm/swappiness"), Path("/proc/sys/vm/page-cluster")
GONE_WITHIN_S = 60.0  # what a killed run has left ends by itself
TRIES = 3  # for each kill: on a busy machine a run may be over first
DAEMON = "sleep 600 &"  # a command leaves it running
Work = Callable[[], "int | None"]


def fork(work: Work, output: Path, uid: int = 0) -> int:
    """Do some work in a session of its own, whose output goes to a file.

    Returns: its process id.
    """
    pid = os.fork()
    if pid:
        return pid
    code: int | str | None = 99
    try:
        os.setsid()
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (1, 2):
            os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), number)
        if uid:
            become(uid)
        code = work()
    except SystemExit as error:
        code = error.code
    except BaseException:  # noqa: BLE001 a fork never goes on as its parent
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
        os._exit(code if isinstance(code, int) else 0)


def become(uid: int) -> None:
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def ended(pid: int) -> int:
    """Wait for a fork. Returns: its exit code, that of a signal negative."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def runs(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


@contextlib.contextmanager
def alone(name: str) -> Iterator[tuple[str, ...]]:
    """Give runs mounts and control groups apart from those of tests that run beside them.

    Yields: what to put in front of a command.
    """
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    tops = [
        mount[1]
        for mount in mounts
        if mount[2].startswith("cgroup") and os.access(mount[1], os.W_OK)
    ]
    # The number keeps groups that a killed test left behind out of the way.
    groups = {top: Path(top, f"deeptweak-tests-{name}-{os.getpid()}") for top in tops}
    for group in groups.values():
        group.mkdir()
    try:
        yield private_mounts(*(f"mount --bind '{group}' '{top}'" for top, group in groups.items()))
    finally:
        for group in groups.values():
            group.rmdir()


@dataclass
class Ground:
    folder: Path
    place: Place
    rng: random.Random
    tunables: Tunables = field(default_factory=Tunables)
    phases: collections.Counter[str] = field(default_factory=collections.Counter)

    def __post_init__(self) -> None:
        self.pristine: Snapshot = self.tunables.snapshot()
        self.others = self.left_behind()
        self.value = int(SWAPPINESS.read_text()) + 1

    @property
    def output(self) -> Path:
        return self.folder / "output"

    def left_behind(self) -> list[str]:
        """Mounts, control groups and files where runs have theirs, as `alone` shows them."""
        mounts = [
            " ".join(line.split()[3:5])
            for line in Path("/proc/self/mountinfo").read_text().splitlines()
        ]
        groups = [name for name, _, _ in os.walk(CGROUPS)]
        return sorted([*mounts, *groups, *map(str, RUN_DIR.rglob("*"))])

    def session(self, *options: str) -> Work:
        """`pytest benchmarks/` with these options."""
        words = self.place.command(*options)[3:]
        return lambda: pytest.main(words)

    def command(self, tweaks: str, *words: str) -> Work:
        options = [
            "run",
            f"--tweaks={tweaks}",
            f"--storage={self.place.storage}",
            "--blocks=1",
            "--steps=2",
            "--warmup=0",
        ]

        def work() -> int:
            sys.argv = ["deeptweak", *options, "--", *words]
            return deeptweak()

        return work

    def typed(self, more: int = 0) -> str:
        """A set of two settings."""
        sysctl = (
            f"vm.swappiness = {self.value + more}\nvm.page-cluster = "
            f"{int(PAGE_CLUSTER.read_text()) + 1 + more}"
        )
        return self.place.manifest(f"typed{more or ''}", sysctl=sysctl)

    def start(self, work: Work, uid: int = 0) -> int:
        return fork(work, self.output, uid)

    def begun(self) -> str:
        """Which journal there is now; empty where there is none."""
        with contextlib.suppress(OSError), (self.place.state / "journal.jsonl").open("rb") as file:
            return file.read(60).decode()
        return ""

    def kill(self, pid: int) -> bool:
        """Kill one run, and note how far it had come. Returns: whether it was still there."""
        if runs(pid):
            os.kill(pid, signal.SIGKILL)
        if killed := ended(pid) == -signal.SIGKILL:
            self.phases[self.last_record()] += 1
        return killed

    def last_record(self) -> str:
        """The last whole record of the run's journal, perhaps another user's; else "none"."""
        with contextlib.suppress(FileNotFoundError):
            lines = (self.place.state / "journal.jsonl").read_bytes().split(b"\n")
            return str(json.loads(lines[-2])["record"])
        return "none"

    def restore(self, uid: int = 0) -> int:
        """`restore`, as a command. Returns: its exit code."""
        return ended(self.start(lambda: fixtures.__main__.main(["restore"]), uid))

    def must_be_as_found(self, when: str) -> None:
        """No setting, journal, process, mount, group or file differs from before the first run."""
        waiting.until(
            lambda: not self._left_running(),
            f"{when}: a process was left",
            every_s=0.005,
            within_s=GONE_WITHIN_S,
        )
        waiting.until(
            lambda: self.left_behind() == self.others,
            f"{when}: a group, a mount or a file",
            0.005,
            within_s=GONE_WITHIN_S,
        )
        self.tunables.refresh()
        journals = [
            path.name
            for path in self.place.state.glob("*j*l*")
            if path.suffix in (".jsonl", ".snapshot")
        ]
        assert (diff(self.pristine, self.tunables.snapshot()), journals) == ({}, []), when

    def _left_running(self) -> set[int]:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        return descendants() - self.kept

    kept: set[int] = field(default_factory=set)


Round = Callable[[Ground], bool]  # one run that is killed; was it still there?


def at_some_moment(
    work: Callable[[Ground], Work], journals: int = 1, within_s: float = 0.4, code: int = 0
) -> Round:
    """Kill a run anywhere in its time, or in one of the so many times that it has a journal."""
    length_s: list[float] = []

    def once(ground: Ground) -> bool:
        if not length_s:
            began_s = time.monotonic()
            assert ended(ground.start(work(ground))) == code, ground.output.read_text()
            length_s.append(time.monotonic() - began_s)
            ground.must_be_as_found("nobody was killed")
        pid = ground.start(work(ground))
        if ground.rng.random() < 0.4:
            time.sleep(ground.rng.uniform(0.1, 0.8) * length_s[0])
            return ground.kill(pid)
        for _ in range(ground.rng.randint(1, journals)):
            before = ground.begun()
            waiting.until(
                lambda: ground.begun() not in ("", before) or not runs(pid),  # noqa: B023
                every_s=0.001,
            )
        time.sleep(ground.rng.uniform(0, within_s))
        return ground.kill(pid)

    return once


def cells(ground: Ground, steps: int = 60) -> Work:
    return ground.session(f"--tweaks={ground.typed()}", "--blocks=1", f"--steps={steps}")


def scripts(ground: Ground) -> Work:
    """A slow script that changes a file below /etc and leaves a daemon with no environment."""
    made = RUN_DIR / "killed"
    file = Path("/etc/sysctl.d/99-deeptweak-killed.conf")
    apply = f"""
    mkdir -p {made}; echo {ground.value} > {SWAPPINESS}; sleep 0.1
    echo 'vm.swappiness = {ground.value}' > {file}
    setsid env -i sleep 600 > /dev/null 2>&1 &
    sleep 0.1; echo 0 > {PAGE_CLUSTER}
    """
    undo = f"sleep 0.05; rm -f {file}; rm -rf {made}; sleep 0.05"
    return ground.session(
        f"--tweaks={ground.place.manifest('scripted', apply=apply, uninstall=undo)}",
        "--blocks=1",
        "--steps=20",
    )


def turns(ground: Ground) -> Work:
    return ground.session(
        f"--tweaks={ground.typed()}", "--design=turns", "--blocks=1", "--steps=120"
    )


def switch(ground: Ground) -> Work:
    return ground.session(
        f"--tweaks={ground.typed()}", "--design=switch", "--blocks=1", "--steps=8"
    )


def monitors(ground: Ground) -> Work:
    return ground.session(
        "--monitors=placebo,psutil_thread:interval_s=0.01", "--blocks=1", "--steps=60"
    )


def commands(ground: Ground) -> Work:
    return ground.command(ground.typed(), "sh", "-c", f"{DAEMON} sleep 0.1")


def trials(ground: Ground) -> Work:
    """A command that changes a setting itself, which is refused after its trial."""
    return ground.command(ground.typed(), "sh", "-c", f"echo 0 > {PAGE_CLUSTER}; sleep 0.3")


def of_another_user(ground: Ground) -> Work:
    """A command under another user, some with a new environment, and in another session."""
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    sleep = ["sh", "-c", f"{DAEMON} sleep 0.2"]
    ways = [
        user,
        [*user, "--reset-env"],
        ["su", "-s", "/bin/sh", "nobody", "-c"],
        ["su", "-", "-s", "/bin/sh", "nobody", "-c"],
    ]
    way = ground.rng.choice(ways)
    return ground.command(ground.typed(), *way, *(sleep if way[0] == "setpriv" else sleep[2:]))


_CELLS = at_some_moment(cells, 3)


def by_a_stranger(ground: Ground) -> bool:
    """Root's run was killed, and a user without the right to put it back tries: nothing changes."""
    killed = _CELLS(ground)
    journal = ground.place.state / "journal.jsonl"
    before, text = ground.tunables.snapshot(), journal.read_bytes() if journal.exists() else b""
    code = ground.restore(NOBODY)
    assert (code, diff(before, ground.tunables.snapshot())) == (2 if text else 0, {}), (
        ground.output.read_text()
    )
    assert (journal.read_bytes() if text else b"") == text
    return killed


def the_second_waits(ground: Ground) -> bool:
    """Two harnesses want one key."""
    first = ground.start(cells(ground, 1500))
    waiting.until(lambda: ground.begun() or not runs(first), every_s=0.002)
    second = ground.start(
        ground.session(f"--tweaks={ground.typed(1)}", "--blocks=1", "--steps=2", "--wait=5m")
    )
    time.sleep(ground.rng.uniform(0, 2))
    killed = ground.kill(first)
    assert ended(second) == 0, ground.output.read_text()
    assert f"in force: vm.swappiness={ground.value + 1} and 1 more" in ground.output.read_text()
    ground.must_be_as_found("the second was not killed")
    return killed


def the_second_is_killed(ground: Ground) -> bool:
    """While it waits, or after it; the first never notices, or was killed too."""
    first = ground.start(cells(ground))
    waiting.until(lambda: ground.begun() or not runs(first), every_s=0.002)
    second = ground.start(
        ground.session(f"--tweaks={ground.typed(1)}", "--blocks=1", "--steps=60", "--wait=5m")
    )
    time.sleep(ground.rng.uniform(0.3, 1.5))
    if ground.rng.random() < 0.5:
        assert ended(first) == 0, ground.output.read_text()
        time.sleep(ground.rng.uniform(0, 1))
        return ground.kill(second)
    ground.kill(first)
    time.sleep(ground.rng.uniform(0, 1.5))
    return ground.kill(second)


def restores(ground: Ground) -> bool:
    """Something is in force, its process was killed, and `restore` is killed too, once or twice."""
    asked = [
        Write(str(SWAPPINESS), str(ground.value), "vm.swappiness"),
        Write(str(PAGE_CLUSTER), "0", "vm.page-cluster"),
    ]
    script = Script("killed", "apply", f"mkdir -p {RUN_DIR}/killed; echo 0 > {PAGE_CLUSTER}")
    undo = Script("killed", "uninstall", f"sleep 0.02; rm -rf {RUN_DIR}/killed")
    sets = ground.rng.choice([(asked, ()), (asked[:1], (script, undo))])
    machine = Machine(folder=ground.place.state)
    machine.tunables = ground.tunables

    def apply() -> None:
        machine.apply("killed", *sets)
        signal.pause()

    pid = ground.start(apply)
    waiting.until(lambda: ground.last_record() == "applied" or not runs(pid), every_s=0.001)
    os.kill(pid, signal.SIGKILL)
    ended(pid)
    pid = ground.start(lambda: fixtures.__main__.main(["restore"]))
    time.sleep(ground.rng.uniform(0, 0.3))
    return ground.kill(pid)


class Inside:
    """A user's run in user and network namespaces, kept by a process or ended; root restores."""

    SETTINGS = {
        "net.ipv4.tcp_fin_timeout": "17",
        "net.core.somaxconn": "4000",
        "net.ipv4.tcp_slow_start_after_idle": "0",
    }

    def __call__(self, ground: Ground) -> bool:
        ready, told = os.pipe()
        ground.place.state.mkdir(exist_ok=True)
        os.chown(ground.place.state, NOBODY, NOBODY)
        pid = ground.start(lambda: self._cycle(ground, told))
        os.close(told)
        keeper = int(os.read(ready, 20))
        os.close(ready)
        waiting.until(lambda: ground.begun() or not runs(pid), every_s=0.001)
        time.sleep(ground.rng.uniform(0, 0.2))
        assert ground.kill(pid), ground.output.read_text()
        stays = ground.phases.total() % 2
        ground.kept = {keeper}
        if not stays:
            os.kill(keeper, signal.SIGKILL)
            waiting.until(lambda: not waiting.alive(keeper), every_s=0.001)
        assert ground.restore() == 0, ground.output.read_text()
        if stays:
            handles = {
                kind: os.open(f"/proc/{keeper}/ns/{kind}", os.O_RDONLY) for kind in ("user", "net")
            }
            standing = within(
                handles, lambda: {key: Path(sysctl_path(key)).read_text() for key in self.SETTINGS}
            )
            for handle in handles.values():
                os.close(handle)
            os.kill(keeper, signal.SIGKILL)
            assert not [
                key for key, value in self.SETTINGS.items() if standing[key].strip() == value
            ], standing
        ground.kept = set()
        return True

    def _cycle(self, ground: Ground, told: int) -> None:
        become(NOBODY)
        LIBC.prctl(PR_SET_DUMPABLE, 1)
        assert LIBC.unshare(KINDS["user"] | KINDS["net"]) == 0, "no namespaces for users"
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"0 {NOBODY} 1"),
            ("gid_map", f"0 {NOBODY} 1"),
        ):
            Path("/proc/self", name).write_text(text)
        keeper = os.fork()
        if keeper == 0:
            signal.pause()
        os.write(told, str(keeper).encode())
        os.close(told)
        asked = [Write(sysctl_path(key), value, key) for key, value in self.SETTINGS.items()]
        cycle = cycles(Machine(folder=ground.place.state), lambda: time.sleep(0.02), [(asked, ())])
        while True:
            cycle()


# Of each kind how often at least, and one round.
ROUNDS: dict[str, tuple[int, Round]] = {
    "cells": (10, _CELLS),
    "scripts": (12, at_some_moment(scripts, 3)),
    "turns": (12, at_some_moment(turns, 3)),
    "switch": (8, at_some_moment(switch, 2)),
    "monitors": (6, at_some_moment(monitors, 4)),
    "commands": (8, at_some_moment(commands, 4)),
    "trials": (12, at_some_moment(trials, code=2)),
    "commands_of_another_user": (6, at_some_moment(of_another_user, 4)),
    "restores": (45, restores),
    "restores_by_a_stranger": (8, by_a_stranger),
    "the_second_waits": (3, the_second_waits),
    "the_second_is_killed": (4, the_second_is_killed),
    "namespaces_of_a_user": (70, Inside()),
}


def kill_many(kind: str, folder: Path, times: int) -> None:
    """Kill so many runs of a kind; after each, `restore` leaves the machine as found."""
    needs.tier_now = "machine"  # it is the tier of who calls this
    os.chdir(HOUSE)
    with contextlib.suppress(ImportError):
        import_module("numpy")
    fixtures.studies.commands()  # another user may not be able to import them
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    ground = Ground(folder, Place(folder), random.Random(f"{SEED} {kind}"))
    once, tries = ROUNDS[kind][1], 0
    os.environ.update(ground.place.env() | {LENT: os.environ.get(LENT, "")})
    try:
        while ground.phases.total() < times and tries < TRIES * times:
            tries += 1
            once(ground)
            when = f"{kind}, run {tries}, killed in {dict(ground.phases)}"
            assert ground.restore() == 0, f"{when}\n{ground.output.read_text()}"
            ground.must_be_as_found(when)
            ground.output.unlink()
    finally:
        for pid in descendants():
            os.kill(pid, signal.SIGKILL)
        ground.restore()
    print(f"{kind}: {ground.phases.total()} kills in {tries} runs: {dict(ground.phases)}")
    assert ground.phases.total() >= times, "most runs were over before they were killed"


if __name__ == "__main__":
    stop_like_ctrl_c()
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    where = Path(sys.argv[2])
    (where / "temporary").mkdir()
    (where / "temporary").chmod(0o1777)
    os.environ["TMPDIR"] = str(where / "temporary")
    tempfile.tempdir = None
    kill_many(sys.argv[1], where, int(sys.argv[3]))
