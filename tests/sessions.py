"""Real `pytest benchmarks/` sessions in their own process, with all files in one folder."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import needs, waiting
from tests.needs import requires

HOUSE = Path(__file__).parents[1]
# pytest's own notes of the last session; and plugins for tests, which double the time that a
# session takes to start.
WITHOUT = ("cacheprovider", "hypothesispytest", "anyio", "syrupy", "timeout")
Json = dict[str, Any]


@dataclass(frozen=True)
class Done:
    """A command that has ended; `out` is all it said."""

    code: int
    out: str

    def lines(self, word: str) -> list[str]:
        return [line for line in self.out.splitlines() if word in line]


@dataclass
class Place:
    """A folder for results (`saved`), lock and journal (`state`) and manifests.

    `before` is put in front of every command.
    """

    folder: Path
    before: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    patience_s: float = 3 * waiting.PATIENCE_S  # of a whole session
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def storage(self) -> Path:
        return self.folder / "saved"

    @property
    def state(self) -> Path:
        """Lock and journal."""
        return self.folder / "state"

    def command(self, *options: str, workload: str = "idle") -> list[str]:
        """Return a user's command for the main job, or for the study whose option is given."""
        fixed = [f"--workloads={workload}", f"--benchmark-storage={self.storage}"]
        fixed += [word for plugin in WITHOUT for word in ("-p", f"no:{plugin}")]
        laid_out = any(
            option.startswith(("--design", "--monitors")) or option == "-n" for option in options
        )
        # Whole cells: the main job's own design is tested where it is the question.
        fixed += [] if laid_out else ["--design=matrix"]
        named = {"--monitors": "bench_monitoring_overhead.py", "--io-": "bench_io_patterns.py"}
        benchmark = next(
            (
                file
                for word, file in named.items()
                if any(option.startswith(word) for option in options)
            ),
            "",
        )
        return [
            *self.before,
            sys.executable,
            "-m",
            "pytest",
            f"benchmarks/{benchmark}",
            *fixed,
            *options,
        ]

    def __post_init__(self) -> None:
        """Sessions take seconds: a fixture or a test that makes one says so."""
        assert needs.tier_now != "quick", (
            "a test of whole sessions needs a mark: @pytest.mark.needs('session'), or "
            "@requires('session')"
        )

    def start(self, *options: str) -> subprocess.Popen[str]:
        """Begin a session as leader of its process group, its output in a file of the folder."""
        with (self.folder / "output").open("w") as sink:
            process = subprocess.Popen(
                self.command(*options),
                cwd=HOUSE,
                env=self.env(),
                stdout=sink,
                stderr=subprocess.STDOUT,
                text=True,
                process_group=0,
            )
        self.started.append(process)
        return process

    def ended(self, process: subprocess.Popen[str]) -> Done:
        return Done(process.wait(self.patience_s), (self.folder / "output").read_text())

    def clear_up(self) -> None:
        """End the sessions left by a failed test, and put back their settings for other tests."""
        left = [process for process in self.started if process.poll() is None]
        self.started.clear()
        for process in left:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if left:
            print(self.restore().out)
        assert not left, f"{len(left)} sessions went on when their test was over"

    def restore(self) -> Done:
        """Finish what killed runs have left."""
        return self.call(sys.executable, "-m", "fixtures", "restore")

    def run(self, *options: str, workload: str = "idle") -> Done:
        return self.call(*self.command(*options, workload=workload))

    def call(self, *command: str) -> Done:
        """Run any command of the house to its end."""
        done = subprocess.run(
            command,
            cwd=HOUSE,
            env=self.env(),
            capture_output=True,
            text=True,
            check=False,
            timeout=self.patience_s,
        )
        return Done(done.returncode, done.stdout + done.stderr)

    def env(self) -> dict[str, str]:
        """The environment of this process without pytest's own and CI's marks."""
        from fixtures.kernel.lock import LENT

        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("PYTEST") and name != "CI"
        }
        ours = {
            "DEEPTWEAK_STATE_DIR": str(self.state),
            LENT: str(os.getpid()),
            "COLUMNS": "160",
            "PYTHONUNBUFFERED": "1",
        }
        return {**kept, **ours, **self.environment}

    def files(self) -> list[Path]:
        """The saved runs, oldest first."""
        return sorted(self.storage.glob("*/[0-9]*.json"))

    def saved(self) -> Json:
        """The latest saved run, whole."""
        from analysis.load import parsed

        found: Json = parsed(self.files()[-1])  # type: ignore[assignment]
        return found

    def finished(self) -> dict[str, Json]:
        """Return the records in the progress file by cell id."""
        found: dict[str, Json] = {}
        for path in (self.storage / "progress").glob("*.jsonl"):
            for line in path.read_bytes().split(b"\n")[1:-1]:
                record = json.loads(line)["record"]
                found[record["id"]] = record
        return found

    def manifest(
        self,
        name: str,
        *,
        sysctl: str = "",
        ulimit: str = "",
        variables: str = "",
        process: str = "",
        **scripts: str,
    ) -> str:
        """Write a tweak set; returns its path for `--tweaks`."""
        tuning = {
            key: text for key, text in (("sysctl.conf", sysctl), ("ulimit.conf", ulimit)) if text
        }
        packages: Json = {}
        if tuning:
            packages["tuning"] = {
                "version": "1.1.2",
                "image": "ghcr.io/nvidia/skyhook-packages/tuning",
                "configMap": tuning,
            }
        if ours := {
            key: text
            for key, text in (("environment.conf", variables), ("process.conf", process))
            if text
        }:
            packages["process"] = {
                "version": "1.0.0",
                "image": "deeptweak/process",
                "configMap": ours,
            }
        if scripts:
            texts = {f"{stage}.sh": text for stage, text in scripts.items()}
            packages["script"] = {
                "version": "1.1.2",
                "image": "ghcr.io/nvidia/skyhook-packages/shellscript",
                "configMap": texts,
            }
        path = self.folder / f"{name}.yaml"
        skyhook = {
            "apiVersion": "skyhook.nvidia.com/v1alpha1",
            "kind": "Skyhook",
            "metadata": {"name": name},
            "spec": {"packages": packages},
        }
        path.write_text(yaml.safe_dump(skyhook))
        return str(path)


@pytest.fixture
@requires("session")
def place(tmp_path: Path) -> Iterator[Place]:
    """A place for this test's sessions, none of which outlives it."""
    made = Place(tmp_path)
    yield made
    made.clear_up()


def until(
    condition: Callable[[], bool], process: subprocess.Popen[str], every_s: float = 0.002
) -> None:
    """Wait for something to happen in a session that is running."""

    def happened() -> bool:
        if condition():
            return True
        assert process.poll() is None, "the session ended before that happened"
        return False

    waiting.until(happened, every_s=every_s)


@contextlib.contextmanager
def caught(
    condition: Callable[[], bool], process: subprocess.Popen[str], every_s: float = 0.002
) -> Iterator[None]:
    """Hold a session still while `condition` holds, so that the block runs then, however late."""
    while True:
        until(condition, process, every_s)
        process.send_signal(signal.SIGSTOP)
        assert process.returncode is None, "the session ended before that happened"
        assert stopped(process.pid), "the session ended before that happened"
        if condition():
            break
        process.send_signal(signal.SIGCONT)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def ctrl_c(process: subprocess.Popen[str]) -> None:
    """A terminal signals the whole group: the sampler and workers get it too."""
    os.killpg(process.pid, signal.SIGINT)


def terminate(process: subprocess.Popen[str]) -> None:
    process.terminate()


def stopped(pid: int) -> bool:
    """Wait until a child of ours that was sent SIGSTOP stands still.

    Returns: False, if it has ended instead.
    """
    happened = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    return happened is not None and happened.si_code == os.CLD_STOPPED


def workload_of(process: subprocess.Popen[str]) -> int | None:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for children in Path(f"/proc/{process.pid}/task").glob("*/children"):
            for pid in children.read_text().split():
                if b"\0fixtures.workloads." in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return int(pid)
    return None


def swappiness() -> int:
    """The kernel's value now: the setting these tests change."""
    return int(Path("/proc/sys/vm/swappiness").read_text())


def another_swappiness() -> int:
    """A harmless value that does not stand there already."""
    return swappiness() + 1 if swappiness() < 100 else swappiness() - 1
