"""Run a real Python process under a monitor as the harness does: started, seen, signalled."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fixtures.monitors import monitor
from tests import waiting
from tests.waiting import PATIENCE_S, cpu_s, doomed

WORKING = """
def squares():
    return sum(number * number for number in range(1000))
print(flush=True)
while True:
    squares()
"""


@contextmanager
def working() -> Iterator[int]:
    """A process that computes in pure Python, with a function `squares`, until it is killed."""
    with doomed(WORKING) as (pid,):
        yield pid


@dataclass(frozen=True, slots=True)
class Watched:
    """A monitor's folder and exit status, the process it watched, and that process's CPU time."""

    folder: Path
    code: int
    pid: int
    cpu_s: float

    @property
    def ended_as_asked(self) -> bool:
        """By itself after the signal, or by the signal: never killed, never with an error."""
        return self.code in (0, -signal.SIGINT, -signal.SIGTERM, 128 + signal.SIGINT)

    def lines(self, name: str = "stdout") -> list[str]:
        return (self.folder / name).read_text().splitlines()


def watch(name: str, folder: Path, enough: Callable[[Path], bool] | None = None) -> Watched:
    """Let a monitor watch a process until `enough` is in its folder and 0.5 CPU s have passed."""
    known = monitor.load(name)
    assert known.unavailable_reason() is None
    with (
        working() as pid,
        (folder / "stdout").open("wb") as out,
        (folder / "stderr").open("wb") as err,
    ):
        command = known.command(pid, folder)
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder
        ) as process:
            try:
                until(lambda: known.watches(folder), process)
                before_s = cpu_s(pid)
                until(
                    lambda: cpu_s(pid) - before_s > 0.5 and (enough is None or enough(folder)),
                    process,
                )
                process.send_signal(known.stop)
                ended = process.wait(PATIENCE_S)
                return Watched(folder, ended, pid, cpu_s(pid) - before_s)
            finally:
                process.kill()


def until(done: Callable[[], bool], monitor: subprocess.Popen[bytes]) -> None:
    def happened() -> bool:
        assert monitor.poll() is None, "it ended before it was stopped"
        return done()

    waiting.until(happened, "it is not at work")
