"""Monitors that exist for one test alone, known to this process and to the workload's."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fixtures.monitors import monitor
from fixtures.targets import _process
from fixtures.terms import Order, Switching, WorkloadRun
from fixtures.workloads import load
from tests.waiting import PATIENCE_S, until

BESIDE = 'kind = "beside"\n'
INSIDE = 'kind = "inside"\nfrom contextlib import contextmanager\n'
HARNESS = """
import sys
from pathlib import Path
from fixtures.monitors import monitor
from fixtures.targets import _process
from fixtures.terms import Order
from fixtures.workloads import load
made = {{}}
exec({source!r}, made)
monitor.classes = lambda: {{"made_up": type("MadeUp", (monitor.Monitor,), made)}}
folder = Path({folder!r})
order = Order(load("idle:wait_s=0.01"), 1000, 1, 7, folder, monitored=True, monitor="made_up")
_process.run(order, program=(sys.executable, "-c", {workload!r}))
"""
TRACE = "DEEPTWEAK_TEST_TRACE"
COMMON = 'name, description = "made_up", "made up"\ndef version(self): return "1"\n'
# The plug-in in the workload's own process: what stands in for `python -m fixtures.workloads.idle`.
WORKLOAD = """
import runpy, sys
from fixtures.monitors import monitor
from fixtures.workloads import load
made = {{}}
exec({source!r}, made)
monitor.classes = lambda: {{"made_up": type("MadeUp", (monitor.Monitor,), made)}}
sys.argv[0] = "idle"
runpy.run_module("fixtures.workloads.idle", run_name="__main__")
"""


@dataclass
class Made:
    """Run `idle` under a monitor from a test's source; all its processes have `trace`."""

    folder: Path
    source: str = ""
    trace: str = field(default_factory=lambda: uuid.uuid4().hex)

    def run(
        self,
        *,
        steps: int = 20,
        wait_s: float = 0.01,
        step_timeout_s: float = PATIENCE_S,
        switching: Switching | None = None,
    ) -> WorkloadRun:
        """One cell under it; with `switching` it takes turns."""
        order = Order(
            load(f"idle:wait_s={wait_s}"),
            switching.total if switching else steps,
            1,
            7,
            self.folder,
            monitored=True,
            monitor="made_up",
            step_timeout_s=step_timeout_s,
            switching=switching,
        )
        return _process.run(order, program=(sys.executable, "-c", self.workload))

    @property
    def workload(self) -> str:
        return WORKLOAD.format(source=self.source)

    @property
    def harness(self) -> str:
        """A harness of its own that runs the workload, as a Python script."""
        return HARNESS.format(source=self.source, folder=str(self.folder), workload=self.workload)

    def alive(self) -> dict[int, str]:
        """Return its remaining processes: id → command line, without this process."""
        return traced(self.trace)


def traced(trace: str) -> dict[int, str]:
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{TRACE}={trace}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (
                    (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                )
    found.pop(os.getpid(), None)
    return found


def shell(script: str) -> str:
    return f"{BESIDE}def command(self, pid, folder): return ['sh', '-c', {script!r}]\n"


def says(word: str) -> str:
    return f"def watches(self, folder): return {word!r} in (folder / 'stdout').read_text()\n"


def gone(made: Made) -> bool:
    """The kernel may take a moment to end killed processes."""
    return vanished(made.trace)


def vanished(trace: str) -> bool:
    until(lambda: not traced(trace), "something is left")
    return True


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Made]]:
    """Make a monitor of its source; whatever it left is killed when the test is over."""
    made_up = Made(tmp_path)
    monkeypatch.setenv(TRACE, made_up.trace)

    def make(source: str) -> Made:
        made_up.source = COMMON + source
        body: dict[str, Any] = {}
        exec(made_up.source, body)  # noqa: S102 a test's own text
        monkeypatch.setattr(
            monitor, "classes", lambda: {"made_up": type("MadeUp", (monitor.Monitor,), body)}
        )
        monitor.load.cache_clear()
        return made_up

    yield make
    monitor.load.cache_clear()
    for pid in made_up.alive():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
