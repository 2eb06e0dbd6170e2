"""A workload's process has its settings from first instruction to last step, per the kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from fixtures.kernel.process_settings import inherited, read
from fixtures.targets._process import run
from fixtures.terms import Order, WorkloadRun
from fixtures.workloads import load
from tests.said import SPEAK
from tests.sessions import HOUSE

# Nothing of this needs root.
LOWERED = {
    "MALLOC_ARENA_MAX": "1",
    "Nice": "19",
    "IOSchedulingClass": "best-effort",
    "IOSchedulingPriority": "7",
    "MemoryTHP": "disable",
    "LimitNOFILE": "64:128",
}


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., WorkloadRun]:
    """Run a script on `SPEAK` with these settings; `read()` waits for the reading from outside."""
    seen = tmp_path / "seen"
    wait = f"def read():\n    while not os.path.exists({str(seen)!r}): time.sleep(0.01)\n"

    def play(script: str, settings: Mapping[str, str]) -> WorkloadRun:
        order = Order(load("idle"), 2, 1, 7, tmp_path, process=settings)
        program = (sys.executable, "-S", "-c", SPEAK + wait + script)
        return run(order, on_start=lambda _pid: seen.touch(), program=program)

    return play


def test_a_process_has_them_and_so_have_its_children(play: Callable[..., WorkloadRun]) -> None:
    """The process's view, the kernel's from outside, and the order are equal; ours is unchanged."""
    cpu = min(os.sched_getaffinity(0))
    before = inherited([*LOWERED, "CPUAffinity"])
    told = (
        "child = 'import os; print(os.getpriority(0, 0), *os.sched_getaffinity(0), "
        'os.environ["MALLOC_ARENA_MAX"])\'\n'
        "said = subprocess.run([sys.executable, '-S', '-c', child], capture_output=True, "
        "text=True).stdout\n"
        "ready(nice=os.getpriority(0, 0), files=resource.getrlimit(resource.RLIMIT_NOFILE), "
        "child=said.split()); all_steps()"
    )
    result = play(told, {**LOWERED, "CPUAffinity": str(cpu)})
    assert result.error is None
    assert result.process_observed == {**LOWERED, "CPUAffinity": str(cpu)}
    assert result.facts == {"nice": 19, "files": [64, 128], "child": ["19", str(cpu), "1"]}
    assert inherited([*LOWERED, "CPUAffinity"]) == before


@pytest.mark.parametrize(
    ("settings", "observed"),
    [
        # Nobody may have more files than fs.nr_open, or a CPU that there is not.
        ({"LimitNOFILE": str(2**40)}, inherited(["LimitNOFILE"])),
        ({"CPUAffinity": "9999"}, inherited(["CPUAffinity"])),
        # The loader warns and goes on without it.
        ({"LD_PRELOAD": "libthere-is-none.so.1"}, {"LD_PRELOAD": None}),
    ],
    ids=["limit", "CPU", "library"],
)
def test_a_setting_that_was_not_taken_fails_the_run(
    play: Callable[..., WorkloadRun], settings: dict[str, str], observed: dict[str, str | None]
) -> None:
    result = play("ready(); all_steps()", settings)
    assert result.error is not None
    assert result.error.startswith(f"{next(iter(settings))}: requested")
    assert (result.steps, result.process_observed) == ((), observed)


def test_a_library_that_is_there_is_seen_to_be_loaded(play: Callable[..., WorkloadRun]) -> None:
    result = play("ready(); all_steps()", {"LD_PRELOAD": "libutil.so.1"})
    assert (result.error, result.process_observed) == (None, {"LD_PRELOAD": "libutil.so.1"})


@pytest.mark.parametrize(
    ("setting", "value", "change"),
    [
        ("Nice", "18", "os.nice(1)"),
        ("LimitNOFILE", "64", "resource.setrlimit(resource.RLIMIT_NOFILE, (32, 64))"),
    ],
)
def test_one_that_the_process_itself_does_not_keep_fails_the_run(
    play: Callable[..., WorkloadRun], setting: str, value: str, change: str
) -> None:
    result = play(f"read(); ready(); {change}; all_steps()", {setting: value})
    assert result.error is not None
    assert result.error.startswith(f"{setting}: requested")
    assert result.process_observed == {setting: value}


def test_the_launcher_sets_them_and_becomes_the_workload(tmp_path: Path) -> None:
    options = ["--steps=2", "--warmup=0", "--seed=1", f"--scratch={tmp_path}", "--hold"]
    settings = {"Nice": "19", "MemoryTHP": "disable"}
    command = [
        sys.executable,
        "-m",
        "fixtures.kernel.process_settings",
        *(f"{n}={v}" for n, v in settings.items()),
        "--",
        "idle",
        *options,
    ]
    with subprocess.Popen(
        command, cwd=HOUSE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert '"event": "ready"' in process.stdout.readline()  # it waits for a word now
        found = read(process.pid, settings)
        process.communicate("\n\n")
    assert (found, process.returncode) == (settings, 0)


def test_a_library_that_the_loader_passed_over_is_not_there(tmp_path: Path) -> None:
    junk = tmp_path / "libc.so.6"
    junk.write_text("no library")
    for library, there in (("libc.so.99", None), (str(junk), None), ("libc.so.6", "libc.so.6")):
        environment = {**os.environ, "LD_PRELOAD": library}
        with subprocess.Popen(
            [sys.executable, "-c", "input()"],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        ) as process:
            assert read(process.pid, ["LD_PRELOAD"]) == {"LD_PRELOAD": there}
            process.communicate(b"\n")
