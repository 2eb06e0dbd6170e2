"""Waiting for what must come at last, on a machine that may have anything else to do: a test never judges time, it only ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 300.0
# Where the harness itself gives up after some seconds, in a process that runs tests.
HASTE = (
    "fixtures.studies.monitors.beside.STARTED_WITHIN_S",
    "fixtures.studies.monitors.beside.STOPPED_WITHIN_S",
    "fixtures.studies.monitors.programs.ANSWER_WITHIN_S",
    "fixtures.studies.monitors.processes.WITHIN_S",
    "fixtures.telemetry.client.ANSWER_WITHIN_S",
    "fixtures.telemetry.client.START_WITHIN_S",
)


def until(happened: Callable[[], object], what: str = "it did not happen", every_s: float = 0.01) -> None:
    """Return when it has happened. `every_s`: whoever looks all the time takes processors away."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline_s, what
        time.sleep(every_s)


def alive(pid: int) -> bool:
    """Does the process run? One that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far."""
    return time.clock_gettime((~pid << 3) | 2)  # the id of another process's clock, as clock_getcpuclockid(3) makes it
