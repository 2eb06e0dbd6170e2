"""The programs of one cluster as processes that die with the one that started them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import places

PATIENCE_S = 120
STOP_S = 10
LAST_LINES = 15


class NotUp(RuntimeError):
    """A program of the cluster ended or did not answer; the sentence ends with its last lines."""


@dataclass
class Started:
    """Started programs by name, in order; `logs`: folder of their output, `mark`: the cluster's."""

    logs: Path
    mark: str = ""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, *arguments: str) -> None:
        """Start a program; what it says goes into a file of its own.

        It is killed when this process ends, however it ends.
        """
        with (self.logs / f"{name}.log").open("ab") as sink:
            self.processes[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env={
                    **os.environ,
                    places.MARK: self.mark,
                    "PATH": f"{places.programs()}:{os.environ['PATH']}",
                },
                # a Ctrl-C in the terminal is for whoever started the cluster
                start_new_session=True,
            )

    def wait(self, what: str, answers: Callable[[], bool]) -> None:
        """Wait for something to answer.

        Raises: NotUp, if a program ends meanwhile or nothing answers.
        """
        deadline = time.monotonic() + PATIENCE_S
        while not answers():
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise NotUp(
                        f"{name} ended with {process.returncode} while {what} was waited for. "
                        f"{self.last(name)}"
                    )
            if time.monotonic() > deadline:
                lines = "\n".join(self.last(name) for name in self.processes)
                raise NotUp(f"{what} did not come within {PATIENCE_S} s. {lines}")
            time.sleep(0.05)

    def last(self, name: str) -> str:
        path = self.logs / f"{name}.log"
        lines = path.read_text(errors="replace").splitlines()[-LAST_LINES:]
        return f"Last lines of {path}:\n" + "\n".join(lines)

    def stop(self, name: str) -> None:
        process = self.processes.pop(name, None)
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        port: int = some.getsockname()[1]
        return port


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
