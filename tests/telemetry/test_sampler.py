"""The sampler process on this machine: its clock, its independence, its failures' cost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from fixtures.telemetry import client as telemetry
from fixtures.telemetry.client import Sampler
from tests.programs import python
from tests.waiting import alive, doomed, until

RECORDINGS = Path(__file__).parents[1] / "recordings/linux-6.18-2vcpu"
# A thread starts a child that burns processor time and says so; then the child stays until the end
# of its stdin, or has ended.
FAMILY = """
import os, sys, time
if os.environ.pop("PARENT", None) is None:
    begun = time.process_time()
    while time.process_time() - begun < 0.3: pass
    print("done", flush=True)
    if sys.argv[1] == "ends": sys.exit()
else:
    import subprocess, threading
    words = [sys.executable, "-c", os.environ["FAMILY"], sys.argv[-1]]
    start = lambda: subprocess.run(words, stdin=0)
    thread = threading.Thread(target=start)
    thread.start(); thread.join()
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def sampler() -> Iterator[Sampler]:
    """One process for many cells, as in a session."""
    with Sampler(hz=50) as running:
        # Its start is over before the first test looks at the clock.
        running.begin(None)
        running.end()
        yield running


def pid_of(sampler: Sampler) -> int:
    assert sampler._process is not None
    return sampler._process.pid


def test_all_columns_are_of_one_length_on_the_clock_of_the_steps(sampler: Sampler) -> None:
    """CLOCK_MONOTONIC, as `start_monotonic_s`: samples lie between begin and end, in order."""
    before_s = time.monotonic()
    sampler.begin(os.getpid())
    begun_s = time.monotonic()
    time.sleep(0.2)
    told = sampler.end()
    times = [value for value in told.columns["t_monotonic_s"] if value is not None]
    assert before_s - 1e-6 <= times[0] <= begun_s
    assert times[-1] <= time.monotonic()
    assert all(earlier < later for earlier, later in pairwise(times))
    assert {len(column) for column in told.columns.values()} == {len(times)}
    assert told.hz == 50
    assert told.sampler_cpu_s > 0


def test_this_machine_has_the_columns_or_says_why_not(sampler: Sampler) -> None:
    sampler.begin(os.getpid())
    time.sleep(0.1)
    told = sampler.end()
    for column in (
        "cpu_user_percent",
        "mem_available_bytes",
        "page_faults_per_s",
        "process_rss_bytes",
        "net_lo_tx_bytes_per_s",
    ):
        assert column in told.columns or told.missing
    assert all(told.missing.values())
    assert not set(told.missing) & set(told.columns)
    assert ("nvml" in told.missing) != bool(told.devices)
    assert all(any(value is not None for value in column) for column in told.columns.values())
    assert len(told.summary) <= 60 + 9 * len(told.devices)


def test_a_cell_knows_nothing_of_the_cell_before(sampler: Sampler) -> None:
    sampler.begin(os.getpid())
    time.sleep(0.2)
    first = sampler.end()
    sampler.begin(None)
    second = sampler.end()
    assert (first.columns["t_monotonic_s"][-1] or 0) < (second.columns["t_monotonic_s"][0] or 0)
    assert second.missing["process"] == "no workload process was named"
    assert "process_rss_bytes" not in second.columns


@pytest.mark.parametrize("child", ["stays", "ends"])
def test_a_child_started_by_a_thread_counts_for_the_workload(
    sampler: Sampler, monkeypatch: pytest.MonkeyPatch, child: str
) -> None:
    """The child burns 0.3 s of processor time; its parent waits.

    Ended or not, found early or late, none of it is lost.
    """
    monkeypatch.setenv("FAMILY", FAMILY)
    monkeypatch.setenv("PARENT", "yes")
    with subprocess.Popen(
        [sys.executable, "-c", FAMILY, child], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as family:
        assert family.stdin is not None
        assert family.stdout is not None
        sampler.begin(family.pid)
        family.stdout.readline()
        time.sleep(1.2)
        told = sampler.end()
        family.stdin.close()
    times = [value or 0.0 for value in told.columns["t_monotonic_s"]]
    used_s = told.summary["process_cpu_percent_mean"] / 100 * (times[-1] - times[0])
    assert used_s >= 0.28  # two clock ticks of 10 ms may fall on either side
    assert child == "ends" or told.summary["process_count_max"] == 2


def test_a_workload_that_ends_early_has_no_values_afterwards(
    sampler: Sampler,
) -> None:
    for tick_s in (0.1, 1.0, 10.0):  # a busy machine has a tick when it comes to it
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as workload:
            sampler.begin(workload.pid)
            time.sleep(tick_s)
            workload.communicate(b"\n")
        time.sleep(5 * tick_s)
        first, *_, last = sampler.end().columns["process_rss_bytes"]
        if first and last is None:
            return
    pytest.fail(f"its memory went from {first} to {last}")


def test_another_root_is_read_where_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_bytes((RECORDINGS / "after/proc/meminfo").read_bytes())
    with Sampler(hz=50, root=tmp_path) as sampler:
        sampler.begin(None)
        told = sampler.end()
    assert set(told.columns["mem_anon_hugepages_bytes"]) - {None} == {64.0 * 2**20}, (
        "read at both ends, and maybe between"
    )
    assert told.missing["cpu"] == f"{tmp_path}/proc/stat: No such file or directory"


def test_a_setting_that_moves_and_comes_back_is_seen_among_many(tmp_path: Path) -> None:
    """Twenty, a few per tick; rewritten or respaced is not moved, and missing is not watched."""
    files = {f"/proc/sys/{n}": str(tmp_path / str(n)) for n in range(20)} | {
        "/proc/sys/none": str(tmp_path / "none")
    }
    for file in files.values():
        Path(file).write_text("1\t2\n")
    (tmp_path / "none").unlink()
    with Sampler(hz=50) as sampler:
        sampler.begin(None, files)
        (tmp_path / "3").write_text("5\n")
        (tmp_path / "4").write_text("1 2\n")
        time.sleep(1.0)
        (tmp_path / "3").write_text("1\t2\n")
        assert sampler.end().moved == {"/proc/sys/3": "5"}
        sampler.begin(None, files)
        assert sampler.end().moved == {}


def test_a_sampler_that_was_killed_costs_one_cell_its_columns() -> None:
    """The reason stands in `missing`, and the next cell has a new sampler."""
    with Sampler(hz=50) as sampler:
        sampler.begin(None)
        os.kill(pid_of(sampler), signal.SIGKILL)
        told = sampler.end()
        assert (told.columns, told.summary) == ({}, {})
        assert told.missing == {"sampler": "the sampler died of SIGKILL"}
        sampler.begin(None)
        assert sampler.end().columns


def test_a_sampler_that_hangs_is_given_up_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "ANSWER_WITHIN_S", 1.0)
    with Sampler(hz=50) as sampler:
        sampler.begin(None)
        hung = pid_of(sampler)
        os.kill(hung, signal.SIGSTOP)
        assert sampler.end().missing == {"sampler": "the sampler was silent for 1 s"}
        assert not alive(hung)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("raise SystemExit('no such thing')", "the sampler ended with exit code 1: no such thing"),
        ("print('hello', flush=True); input()", "the sampler wrote invalid JSON: b'hello'"),
    ],
)
def test_a_sampler_that_cannot_start_costs_only_columns(
    program: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "COMMAND", (sys.executable, "-c", program))
    with Sampler() as sampler:
        sampler.begin(None)
        assert sampler.end().missing == {"sampler": reason}


def test_an_end_without_a_begin_says_so() -> None:
    with Sampler() as sampler:
        assert "sampling was not started" in sampler.end().missing["sampler"]
    closed = Sampler()
    closed.close()
    assert closed.end().missing["sampler"] == "the sampler was closed"


def test_the_sampler_ends_when_the_harness_is_killed() -> None:
    harness = (
        "import sys, time; from fixtures.telemetry.client import Sampler; s = Sampler(); "
        "s.begin(None); "
        "print(s._process.pid, flush=True); time.sleep(60)"
    )
    with doomed(harness) as (_, pid):
        assert alive(pid)
    until(lambda: not alive(pid))


def test_ctrl_c_does_not_reach_the_sampler(sampler: Sampler) -> None:
    """The terminal signals the harness's group; the sampler has a session, and ends when told."""
    assert os.getsid(pid_of(sampler)) == pid_of(sampler)


def test_the_sampler_imports_little(sampler: Sampler) -> None:
    heavy = ("torch", "numpy", "pytest", "dataclasses", "yaml")
    program = (
        f"import sys, json, fixtures.telemetry.sampler; print(json.dumps([m for m in {heavy} if m "
        "in sys.modules]))"
    )
    run = python(program)
    assert json.loads(run.stdout) == []
    maps = Path(f"/proc/{pid_of(sampler)}/maps").read_text(encoding="utf-8")
    assert "numpy" not in maps


def test_the_summary_covers_the_window_and_columns_the_cell(sampler: Sampler) -> None:
    """Imports and warm-up are in the columns; the summary is of the measured steps.

    Idle, busy, and idle for as long as it was busy: 0.3 s of CPU between the last sample before the
    window and the first after it.
    """
    sampler.begin(os.getpid())
    first_cpu_s = time.process_time()
    time.sleep(0.3)
    from_s, begun_s = time.monotonic(), time.process_time()
    while time.process_time() < begun_s + 0.3:
        pass
    until_s = time.monotonic()
    time.sleep(until_s - from_s)
    seen = sampler.end((from_s, until_s))
    times = [one for one in seen.columns["t_monotonic_s"] if one is not None]
    assert times[0] < from_s - 0.2
    assert times[-1] > until_s + 0.2
    first_s, last_s = (
        max(at for at in times if at <= from_s),
        min(at for at in times if at >= until_s),
    )
    used_s = seen.summary["process_cpu_percent_mean"] / 100 * (last_s - first_s)
    # This process has other threads.
    assert 0.25 < used_s < time.process_time() - first_cpu_s + 0.05


def test_processes_that_take_turns_each_have_their_own_cpu_time(sampler: Sampler) -> None:
    """The first is busy in its turn, the second sleeps in its own; both live all the time."""
    program = (
        "import sys, time\nfor _ in sys.stdin:\n    end = time.process_time() + 0.3\n    while "
        "time.process_time() < end: pass\n    print()"
    )
    with subprocess.Popen(
        [sys.executable, "-S", "-u", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as busy:
        assert busy.stdin
        assert busy.stdout
        sampler.begin(os.getpid())
        sampler.mark(busy.pid)
        begun_s = time.monotonic()
        busy.stdin.write("\n")
        busy.stdout.readline()
        first = (begun_s, time.monotonic())
        sampler.mark(busy.pid)
        sampler.mark(os.getpid())
        second = (time.monotonic(), time.monotonic() + 0.3)
        time.sleep(0.3)
        sampler.mark(os.getpid())
        working, sleeping, never = sampler.end_turns([[first], [second], []])
        busy.stdin.close()
    times = [at for at in working.columns["t_monotonic_s"] if at is not None]
    used_s = working.summary["process_cpu_percent_mean"] / 100 * (times[-1] - times[0])
    assert 0.25 < used_s < 0.45
    assert sleeping.summary["process_cpu_percent_mean"] < 50
    assert "process_cpu_percent_mean" not in never.summary
