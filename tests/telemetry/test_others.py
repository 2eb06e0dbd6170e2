"""CPU time of others: whose counts, and whose does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.telemetry.others import KTHREADD, TICKS_PER_S, Others, cpu_s

SPIN = "import sys\nwhile True: pass"
CHILD = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {SPIN!r}])"
BUSY_S = 0.3


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def spinning(started: list[subprocess.Popen[bytes]], program: str) -> int:
    """A process that has begun to use the CPU, or whose child is about to."""
    process = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    started.append(process)
    while program == SPIN and cpu_s(process.pid) < BUSY_S:  # however busy the machine is
        time.sleep(BUSY_S / 10)
    return process.pid


def used_s(others: Others, leader: int) -> float:
    """While this process uses the CPU too."""
    before_s, until_s = others.clock_s(leader), time.process_time() + BUSY_S
    while time.process_time() < until_s:
        pass
    return others.clock_s(leader) - before_s


@pytest.fixture
def neighbour() -> Iterator[int]:
    """A process that uses the CPU and has no ancestor of ours."""
    starter = (
        f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {SPIN!r}], "
        "stdout=2).pid)"
    )
    pid = int(
        subprocess.run([sys.executable, "-c", starter], check=True, stdout=subprocess.PIPE).stdout
    )
    yield pid
    os.kill(pid, signal.SIGKILL)


@pytest.mark.needs("others")
def test_a_neighbour_counts_but_workload_and_harness_do_not(
    started: list[subprocess.Popen[bytes]], neighbour: int
) -> None:
    """The neighbour's own clock says how much; other programs of this machine may add to it."""
    leader = spinning(started, CHILD)
    others = Others()
    before_s = cpu_s(neighbour)
    whole_s = used_s(others, leader)
    neighbour_s = cpu_s(neighbour) - before_s
    assert whole_s > 0.8 * neighbour_s > 0


@pytest.mark.needs("others")
def test_what_a_workload_has_started_is_its_own(started: list[subprocess.Popen[bytes]]) -> None:
    leader, idle = spinning(started, CHILD), spinning(started, "import time; time.sleep(60)")
    others, until_s = Others(), time.monotonic() + 60
    while (
        theirs_s := others.clock_s(idle) - others.clock_s(leader)
    ) < BUSY_S and time.monotonic() < until_s:
        time.sleep(BUSY_S / 10)
    assert theirs_s >= BUSY_S


@pytest.mark.needs("others")
def test_a_workload_that_has_ended_has_no_clock(started: list[subprocess.Popen[bytes]]) -> None:
    leader = spinning(started, SPIN)
    os.killpg(leader, signal.SIGKILL)
    started.pop().wait()
    with pytest.raises(OSError, match=r"No such process|Invalid argument"):
        Others().clock_s(leader)


@pytest.mark.parametrize("of_the_kernel", [True, False])
@pytest.mark.parametrize("seen_s", [90.0, 10.0])
def test_the_machines_count_excludes_kernel_threads_and_sampler(
    tmp_path: Path, started: list[subprocess.Popen[bytes]], seen_s: float, *, of_the_kernel: bool
) -> None:
    """Of 100 s in /proc/stat, a count of 90 is the machine's, 10 a container's: ticks decide.

    A process that uses the CPU passes for a thread of the kernel, or for a child of ours.
    """
    thread, parent = spinning(started, SPIN), KTHREADD if of_the_kernel else os.getpid()
    files = {
        f"proc/{KTHREADD}/comm": "kthreadd\n",
        f"proc/{KTHREADD}/task/{KTHREADD}/children": "",
        f"proc/{parent}/task/{parent}/children": f"{thread} ",
        "proc/stat": f"cpu  {60 * TICKS_PER_S} 10 {40 * TICKS_PER_S - 10} 999 99 0 0 0 0 0\n",
        "sys/fs/cgroup/cpuacct/cpuacct.usage": f"{int(seen_s * 1e9)}\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    os.killpg(thread, signal.SIGSTOP)
    leader = spinning(started, "import time; time.sleep(60)")
    total_s = Others(tmp_path).clock_s(leader) + cpu_s(leader) + time.process_time()
    assert total_s + cpu_s(thread) == pytest.approx(
        seen_s if seen_s > 50 else 100.0, abs=BUSY_S / 10
    )
    assert cpu_s(thread) > BUSY_S / 2


def kernel_of(folder: Path, thread: int, name: str = "kthreadd") -> Path:
    """A machine that has used 1,000 s, with one thread of the kernel."""
    files = {"comm": f"{name}\n", f"task/{KTHREADD}/children": f"{thread} "}
    for path, text in files.items():
        (folder / f"proc/{KTHREADD}/{path}").parent.mkdir(parents=True, exist_ok=True)
        (folder / f"proc/{KTHREADD}/{path}").write_text(text)
    (folder / "proc/stat").write_text(f"cpu  {1000 * TICKS_PER_S} 0 0 0 0 0 0 0 0 0\n")
    return folder


def test_a_kernel_thread_that_ends_is_not_a_neighbour(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    thread, idle = spinning(started, SPIN), spinning(started, "import time; time.sleep(60)")
    others = Others(kernel_of(tmp_path, thread))
    os.killpg(thread, signal.SIGSTOP)
    before_s = others.clock_s(idle)
    ended = next(one for one in started if one.pid == thread)
    started.remove(ended)
    ended.kill()
    ended.wait()
    assert others.clock_s(idle) - before_s < BUSY_S / 2


def test_others_are_unknown_where_process_2_is_not_kthreadd(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="is not kthreadd's"):
        Others(kernel_of(tmp_path, os.getpid(), "python"))
