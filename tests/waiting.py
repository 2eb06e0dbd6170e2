"""Wait for what must come at last, on a busy machine: a test never judges time, it only ends."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HOUSE = Path(__file__).parents[1]
PATIENCE_S = 300.0
# Where the harness itself gives up after some seconds, in a process that runs tests.
HASTE = (
    "fixtures.monitors.beside.STARTED_WITHIN_S",
    "fixtures.monitors.beside.STOPPED_WITHIN_S",
    "fixtures.monitors.programs.ANSWER_WITHIN_S",
    "fixtures.monitors.processes.WITHIN_S",
    "fixtures.telemetry.client.ANSWER_WITHIN_S",
    "fixtures.telemetry.client.START_WITHIN_S",
)


def until(
    happened: Callable[[], object],
    what: str = "it did not happen",
    every_s: float = 0.01,
    within_s: float = PATIENCE_S,
) -> None:
    """Return when it has happened. `every_s`: whoever looks all the time takes processors away."""
    deadline_s = time.monotonic() + within_s
    while not happened():
        assert time.monotonic() < deadline_s, what
        time.sleep(every_s)


def alive(pid: int) -> bool:
    """Does the process run? One that has ended and was not waited for does not."""
    try:
        return state(pid) not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextlib.contextmanager
def doomed(script: str, *arguments: str) -> Iterator[list[int]]:
    """Python runs a script until the block ends, and is killed then.

    Yields: its process id and those on the first line that it prints.
    """
    command = [sys.executable, "-c", script, *arguments]
    with subprocess.Popen(
        command, cwd=HOUSE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        try:
            yield [process.pid, *map(int, process.stdout.readline().split())]
        finally:
            process.kill()


def state(pid: int) -> str:
    """As the kernel says: S sleeps, T is stopped, Z has ended and was not waited for."""
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]


def children(pid: int) -> list[int]:
    """Those that its first thread has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far."""
    # The id of another process's clock, as clock_getcpuclockid(3) makes it.
    return time.clock_gettime((~pid << 3) | 2)
