"""Fake programs, each wrong in its own way, run as processes of this machine."""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.targets._process import run
from fixtures.terms import Order, WorkloadRun
from fixtures.workloads import load
from tests.programs import python
from tests.said import SPEAK
from tests.waiting import PATIENCE_S, alive, doomed, until

FOLLOW = """
import json, sys, tracemalloc
from pathlib import Path
from fixtures.targets._process import run
from fixtures.terms import Order
from fixtures.workloads import load
scratch, script = sys.argv[1:]
order = Order(load("idle"), 2, 1, 7, Path(scratch))
tracemalloc.start()
result = run(order, program=(sys.executable, "-S", "-c", script))
print(json.dumps({"error": result.error, "peak_bytes": tracemalloc.get_traced_memory()[1]}))
"""


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., WorkloadRun]:
    """Run a script that may use the words of `SPEAK`."""

    def play(
        script: str,
        *,
        limits: dict[str, tuple[int, int]] | None = None,
        start_timeout_s: float = PATIENCE_S,
        step_timeout_s: float = PATIENCE_S,
        on_start: Callable[[int], None] | None = None,
        heard: Callable[[int], float] = lambda _: math.inf,
    ) -> WorkloadRun:
        order = Order(
            load("idle"),
            2,
            1,
            7,
            tmp_path,
            limits or {},
            start_timeout_s,
            step_timeout_s,
            heard=heard,
        )
        return run(order, on_start=on_start, program=(sys.executable, "-S", "-c", SPEAK + script))

    return play


def gone(pid: int) -> bool:
    """Wait until the process has ended (perhaps unreaped), the kernel's part included."""
    until(lambda: not alive(pid), "it goes on")
    return True


def test_a_good_run_gives_back_facts_and_every_step(play: Callable[..., WorkloadRun]) -> None:
    """Warm-up steps are among them and marked; no error; the process id is that of on_start."""
    started: list[int] = []
    result = play("ready(device='cpu'); all_steps()", on_start=started.append)
    assert result.error is None
    assert result.facts == {"device": "cpu"}
    assert [(s.index, s.warmup) for s in result.steps] == [(0, True), (1, False), (2, False)]
    last = result.steps[-1]
    assert (
        last.start_monotonic_s,
        last.wall_s,
        last.cpu_s,
        last.samples,
        last.tokens,
        last.loss,
    ) == (1.5, 0.25, 0.5, 4, 64, 2.0)
    assert started == [result.pid]
    assert gone(result.pid)


def test_progress_is_reported_while_the_workload_is_silent(
    play: Callable[..., WorkloadRun], tmp_path: Path
) -> None:
    """The program waits before its second step until heard often, and goes on without a word."""
    looks: list[int] = []

    def heard(done: int) -> float:
        looks.append(done)
        if looks.count(1) == 3:
            (tmp_path / "go on").touch()
        return 0.001

    wait = "while not os.path.exists('go on'): time.sleep(0.001)"
    result = play(
        f"import time; ready(); step(0); exec({wait!r}); step(1); step(2); say(event='end')",
        heard=heard,
    )
    assert result.error is None
    assert {0, 1} <= set(looks) <= {0, 1, 2, 3}


def test_the_program_is_told_what_was_ordered(
    play: Callable[..., WorkloadRun], tmp_path: Path
) -> None:
    """Steps, warm-up, seed, scratch and parameters arrive as options; scratch is the cwd."""
    result = play(
        "import fixtures.terms; ready(options=sys.argv[1:], cwd=os.getcwd()); all_steps()"
    )
    assert result.error is None
    assert result.facts["options"] == [
        *("--steps=2", "--warmup=1", "--seed=7"),
        f"--scratch={tmp_path}",
        f"--params={json.dumps(load('idle').params)}",
    ]
    assert result.facts["cwd"] == str(tmp_path)


def test_limits_are_in_force_before_the_program_begins(play: Callable[..., WorkloadRun]) -> None:
    """The process's view, the kernel's from outside, and the order are equal."""
    result = play(
        "ready(nofile=resource.getrlimit(resource.RLIMIT_NOFILE)); all_steps()",
        limits={"nofile": (64, 128)},
    )
    assert result.error is None
    assert result.facts["nofile"] == [64, 128]
    assert result.limits_observed["nofile"] == (64, 128)
    assert result.limits_observed["stack"] == resource.getrlimit(resource.RLIMIT_STACK)  # inherited


def test_a_limit_the_kernel_refuses_fails_the_run(play: Callable[..., WorkloadRun]) -> None:
    """Not even root may exceed fs.nr_open (2³¹ or so): nothing is measured under another limit."""
    started: list[int] = []
    result = play(
        "ready(); all_steps()", limits={"nofile": (2**40, 2**40)}, on_start=started.append
    )
    assert result.error is not None
    assert result.error.startswith("Limit nofile: requested (1099511627776, 1099511627776)")
    assert (result.steps, started) == ((), [])
    assert gone(result.pid)


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("sys.exit(3)", "Died with exit code 3: it was not ready yet."),
        ("ready(); all_steps(); sys.exit(3)", "Died with exit code 3: 3 of 3 steps were done."),
        (
            "ready(); os.kill(os.getpid(), signal.SIGABRT)",
            "Died of SIGABRT: 0 of 3 steps were done.",
        ),
        ("ready(); step(0)", "Ended too early: 1 of 3 steps were done."),
        ("ready(); step(0); end()", "Ended too early: 1 of 3 steps were done."),
        ("ready(); step(0); step(1, loss=float('nan'))", "Loss is nan in step 1."),
        ("ready(); all_steps(); step(3)", "Printed an invalid line of the protocol: "),
        ("ready()\nfor i in range(9): step(i)", "Reported more than the 3 requested steps."),
        (
            "ready(); print('Epoch 1', flush=True)",
            "Printed an invalid line of the protocol: 'Epoch 1'",
        ),
        (
            "os.write(1, b'no newline')",
            "Printed an invalid line of the protocol: 'no newline'",
        ),
        (
            "os.write(1, bytes([255, 10]))",
            "Printed an invalid line of the protocol: '\ufffd'",
        ),
    ],
)
def test_what_went_wrong_is_one_sentence(
    play: Callable[..., WorkloadRun], script: str, error: str
) -> None:
    assert (play(script).error or "").startswith(error)


def test_sigkill_from_outside_hints_at_memory(play: Callable[..., WorkloadRun]) -> None:
    """The kernel's out-of-memory killer leaves no other trace in the process."""
    result = play("ready(); time.sleep(60)", on_start=lambda pid: os.kill(pid, signal.SIGKILL))
    assert result.error is not None
    assert result.error.startswith("Died of SIGKILL")
    assert "memory" in result.error


def test_a_file_larger_than_its_limit_is_named(play: Callable[..., WorkloadRun]) -> None:
    """`fsize: 1000` kills a program that writes 2000 bytes (Python itself ignores the signal)."""
    script = (
        "signal.signal(signal.SIGXFSZ, signal.SIG_DFL); ready(); open('big', "
        "'wb').write(bytes(2000))"
    )
    result = play(script, limits={"fsize": (1000, 1000)})
    assert (
        result.error
        == "Died of SIGXFSZ: 0 of 3 steps were done. It wrote more than the limit fsize allows."
    )


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("time.sleep(60)", "Hung: not ready 0.5 s after its start."),
        ("os.close(1); time.sleep(60)", "Hung: not ready 0.5 s after its start."),
        (
            "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
            "Hung: not ready 0.5 s after its start.",
        ),
        (
            "while True: print('working', file=sys.stderr); time.sleep(0.01)",
            "Hung: not ready 0.5 s after its start.",
        ),
    ],
)
def test_a_start_that_hangs_is_cut(
    play: Callable[..., WorkloadRun], script: str, error: str
) -> None:
    """Also if it ignores SIGTERM, closes stdout, floods stderr: only the protocol shows life."""
    result = play(script, start_timeout_s=0.5)
    assert result.error == error
    assert gone(result.pid)


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (
            "ready(); step(0); time.sleep(60)",
            "Hung: 1 of 3 steps were done, then no output for 2 s.",
        ),
        (
            "ready(); all_steps(); time.sleep(60)",
            "Hung: 3 of 3 steps were done, then no output for 2 s.",
        ),
    ],
)
def test_a_step_or_an_end_that_hangs_is_cut(
    play: Callable[..., WorkloadRun], script: str, error: str
) -> None:
    result = play(script, step_timeout_s=2)
    assert result.error == error
    assert gone(result.pid)


@pytest.mark.parametrize(
    ("script", "good"),
    [
        ("ready()\nfor i in range(100): os.write(2, b'noise ' * 170_000)\nall_steps()", True),
        ("ready()\nfor i in range(100): os.write(1, b'noise ' * 170_000)\nall_steps()", False),
        ("ready()\nfor i in range(100): os.write(1, b'noise\\n' * 170_000)\nall_steps()", False),
    ],
)
def test_a_flood_of_100_mb_takes_no_memory(tmp_path: Path, script: str, *, good: bool) -> None:
    """On stderr it is noise; on stdout its first line, or 64 KiB without a newline, ends the run.

    Followed by a process that does nothing else: what other tests' threads take is not counted.
    """
    arguments = [str(tmp_path), SPEAK + script]
    done = python(FOLLOW, *arguments)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["error"] is None) is good
    assert len(result["error"] or "") < 300
    # A few chunks of 64 KiB, and what splitting one into 11,000 lines of `noise` needs.
    assert result["peak_bytes"] < 5e6


DAEMON = """
script = "setsid sh -c 'echo $$; exec sleep 600 >/dev/null 2>&1' &"
pid = int(subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, text=True).stdout)
"""


@pytest.mark.parametrize(
    "ending",
    [
        "all_steps()",
        "print('garbage', flush=True); time.sleep(60)",
        "sys.exit(1)",
        "time.sleep(60)",
    ],
)
def test_no_grandchild_is_left_behind(play: Callable[..., WorkloadRun], ending: str) -> None:
    """However the program ends, its child ends with its group, though it holds the pipes open."""
    script = (
        "child = subprocess.Popen(['sleep', '600']); print(child.pid, file=sys.stderr, "
        "flush=True); ready(pid=child.pid); "
    )
    result = play(script + ending, step_timeout_s=0.5)
    pid = result.facts["pid"]
    assert isinstance(pid, int)
    assert gone(pid)


@pytest.mark.parametrize(
    "ending", ["all_steps()", "print('garbage', flush=True); time.sleep(60)", "sys.exit(1)"]
)
@pytest.mark.parametrize(
    "how",
    [
        (
            "child = subprocess.Popen(sleep, start_new_session=True, stdout=-3, stderr=-3); pid = "
            "child.pid"
        ),
        DAEMON,
    ],
)
def test_what_has_left_its_group_is_ended_with_it(
    play: Callable[..., WorkloadRun], how: str, ending: str
) -> None:
    result = play(f"sleep = ['sleep', '600']\n{how}\nready(pid=pid)\n{ending}", step_timeout_s=0.5)
    pid = result.facts["pid"]
    assert isinstance(pid, int)
    assert gone(pid)


def test_memory_of_grandchildren_is_freed_before_run_returns(
    play: Callable[..., WorkloadRun],
) -> None:
    """The kernel frees 300 MB in some milliseconds, which must not fall into what comes next."""
    hog = (
        "import time; x = bytearray(b'x') * 300_000_000; print('full', flush=True); time.sleep(600)"
    )
    script = f"""
child = subprocess.Popen([sys.executable, '-S', '-c', {hog!r}], stdout=subprocess.PIPE)
child.stdout.readline()
ready(pid=child.pid)
all_steps()
"""
    result = play(script)
    assert result.error is None
    # A dying process gives back its memory first and its files next.
    files: list[Path] = []
    # Ending, for who is not root.
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        files = list(Path(f"/proc/{result.facts['pid']}/fd").iterdir())
    assert files == []


def test_an_interrupt_kills_the_group_and_goes_on_up(play: Callable[..., WorkloadRun]) -> None:
    started: list[int] = []

    def ring(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    def on_start(pid: int) -> None:
        started.append(pid)
        signal.setitimer(signal.ITIMER_REAL, 0.2)

    before = signal.signal(signal.SIGALRM, ring)
    try:
        with pytest.raises(KeyboardInterrupt):
            play("ready(); time.sleep(60)", on_start=on_start)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert gone(started[0])


def test_an_on_start_that_fails_leaves_no_process(play: Callable[..., WorkloadRun]) -> None:
    started: list[int] = []

    def on_start(pid: int) -> None:
        started.append(pid)
        raise OSError("no sampler")

    with pytest.raises(OSError, match="no sampler"):
        play("ready(); time.sleep(60)", on_start=on_start)
    assert gone(started[0])


@pytest.mark.parametrize(
    "program", [None, ("sh", "-c", "exec sleep 600")], ids=["ours", "another's"]
)
def test_a_killed_harness_takes_the_workload_with_it(
    program: tuple[str, ...] | None, tmp_path: Path
) -> None:
    """After SIGKILL only the kernel can end it, both another's program and a workload of ours."""
    harness = f"""
import os, time
from pathlib import Path
from fixtures.targets._process import run
from fixtures.terms import Order
from fixtures.workloads import load
def on_start(pid):
    reader = os.fork()  # keeps the pipes open, so that no broken one ends the workload
    if not reader:
        time.sleep(60)
        os._exit(0)
    print(pid, reader, flush=True)
run(
    Order(load("idle:wait_s=9"), 99, 0, 0, Path({str(tmp_path)!r})),
    on_start=on_start, program={program!r},
)
"""
    with doomed(harness) as (_, pid, reader):
        pass
    try:
        assert gone(pid)
    finally:
        os.kill(reader, signal.SIGKILL)


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    result = run(Order(load("idle"), 1, 0, 0, tmp_path), program=("no-such-program",))
    assert (result.error, result.pid) == (
        "Cannot start 'no-such-program': the program was not found.",
        0,
    )
