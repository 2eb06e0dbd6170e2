"""A run's settings may belong to namespaces: they go back inside, wherever `restore` runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.kernel import namespaces
from fixtures.kernel.machine import Machine
from fixtures.kernel.tunables import Tunables
from tests.fake_root import FakeRoot, writes

HOUSE = Path(__file__).parents[2]
# Of each kind a setting that an idle machine does not notice, and what is written there.
OWN = {
    "net": ("/proc/sys/net/ipv4/tcp_fin_timeout", "17"),
    "ipc": ("/proc/sys/kernel/msgmni", "31999"),
    "pid": ("/proc/sys/kernel/pid_max", "31999"),
    "uts": ("/proc/sys/kernel/domainname", "killed.example"),
}
FLAGS = {"net": "-n", "ipc": "-i", "uts": "-u", "pid": "-pf"}
_RUN = """
import os, sys, time
from pathlib import Path
from fixtures.kernel.machine import Machine, Write
pairs = [pair.split("=") for pair in sys.argv[2:]]
writes = [Write(path, value, path.rpartition("/")[2]) for path, value in pairs]
Machine(folder=Path(sys.argv[1])).apply("killed", writes)
print("applied", flush=True)
time.sleep(600)
"""


class Inside:
    """A killed run in private namespaces that a waiting process keeps, and the values there."""

    def __init__(self, kinds: list[str], folder: Path, *, stays: bool) -> None:
        self.values = [f"{path}={value}" for path, value in (OWN[kind] for kind in kinds)]
        start = '"$0" "$@" & exec sleep 600' if stays else 'exec "$0" "$@"'
        command = [
            "unshare",
            *[FLAGS[kind] for kind in kinds],
            "--mount",
            "sh",
            "-c",
            f"mount -t proc proc /proc; {start}",
        ]
        command += [sys.executable, "-c", _RUN, str(folder), *self.values]
        self.process = subprocess.Popen(
            command, cwd=HOUSE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self.process.stdout
        assert self.process.stdout.readline() == "applied\n"

    def kill_run(self) -> None:
        """As `kill -9` of the harness alone does."""
        for pid in _below(self.process.pid):
            if b"fixtures.kernel.machine" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def reads(self, path: str) -> str:
        pid = next(
            pid
            for pid in _below(self.process.pid)
            if b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()[:20]
        )
        done = subprocess.run(
            ["nsenter", "-t", str(pid), "-n", "-i", "-u", "-p", "-m", "cat", path],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()


def _below(pid: int) -> list[int]:
    session = os.getsid(pid)
    result = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and os.getsid(int(entry.name)) == session:
                result.append(int(entry.name))
        except OSError:
            continue
    return result


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "state"
    assert not (tmp_path / "state" / "journal.jsonl").exists()


needs = pytest.mark.needs("root", "namespaces")


@needs
@pytest.mark.parametrize(
    "kinds", [["net"], ["ipc"], ["uts"], ["pid"], ["net", "ipc", "pid"]], ids="-".join
)
def test_a_run_killed_in_a_namespace_is_put_back_there(folder: Path, kinds: list[str]) -> None:
    here = {path: Tunables().read(path) for path, _ in OWN.values()}
    inside = Inside(kinds, folder, stays=True)
    try:
        found = {
            OWN[kind][0]: json.loads((folder / "journal.jsonl").read_text().split("\n")[0])[
                "before"
            ][OWN[kind][0]]
            for kind in kinds
        }
        assert {path: inside.reads(path) for path in found} == dict(OWN[kind] for kind in kinds)
        inside.kill_run()
        result = Machine(folder=folder).restore()
        assert (result.stuck, result.left_alone, set(result.back)) == ({}, {}, set(found))
        assert any("put back there" in note for note in result.notes)
        assert {path: inside.reads(path) for path in found} == found
        assert {path: Tunables().read(path) for path in here} == here
    finally:
        inside.close()


@needs
def test_a_namespace_that_is_gone_is_said_to_be(folder: Path) -> None:
    """Its settings went with it: values here are not theirs, but the whole machine's go back."""
    here = {path: Tunables().read(path) for path, _ in OWN.values()}
    inside = Inside(["net"], folder, stays=False)
    inside.close()
    result = Machine(folder=folder).restore()
    assert (result.back, result.stuck, result.left_alone) == ({}, {}, {})
    assert any("is gone, and its settings with it" in note for note in result.notes)
    assert {path: Tunables().read(path) for path in here} == here


def test_what_cannot_be_seen_from_here_is_stuck(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container cannot tell whether a namespace is gone: keep the journal, write nothing."""
    path = "/proc/sys/net/core/rmem_max"
    fake.machine().apply("x", writes([(path, "1"), ("/proc/sys/vm/swappiness", "10")]))
    names = namespaces.own()
    monkeypatch.setattr(namespaces, "own", lambda: names | {"net": "net:[1]", "pid": "pid:[2]"})
    result = fake.machine().restore()
    assert "invisible here" in result.stuck[path]
    assert fake.wrong() == {path: "1", "/proc/sys/vm/swappiness": "10"}
    monkeypatch.undo()
    assert fake.machine().restore().stuck == {}
    fake.must_be_as_found()


def test_another_namespace_that_nothing_belongs_to_is_no_matter(
    fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.machine().apply("x", writes([("/proc/sys/vm/swappiness", "10")]))
    names = namespaces.own()
    monkeypatch.setattr(namespaces, "own", lambda: names | {"net": "net:[1]"})
    monkeypatch.setattr(namespaces, "find", lambda _wanted, _known: namespaces.Found({}, {"net"}))
    assert fake.machine().restore().stuck == {}
    fake.must_be_as_found()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/proc/sys/net/ipv4/tcp_rmem", "net"),
        ("/sys/class/net/eth0/mtu", "net"),
        ("/proc/sys/kernel/sem", "ipc"),
        ("/proc/sys/fs/mqueue/msg_max", "ipc"),
        ("/proc/sys/kernel/pid_max", "pid"),
        ("/proc/sys/kernel/hostname", "uts"),
        ("/proc/sys/user/max_net_namespaces", "user"),
        ("/proc/sys/kernel/threads-max", None),
        ("/proc/sys/vm/swappiness", None),
        ("/etc/sysctl.conf", None),
    ],
)
def test_each_setting_belongs_to_the_machine_or_a_namespace(path: str, kind: str | None) -> None:
    assert namespaces.kind_of(path) == kind
