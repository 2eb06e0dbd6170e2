"""Logs of `top -b`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.logs.readers import Process, TopLog, read_top
from analysis.terms import Unreadable

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

HEAD = "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND"
BLOCK = """\
top - {clock} up  5:03,  3 users,  load average: {load}, 0.73, 0.79
Tasks: 1306 total,   2 running, 1304 sleeping,   0 stopped,   0 zombie
%Cpu(s):  0.7 us,  0.2 sy,  0.0 ni, 99.1 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st
MiB Mem : 515637.3 total, 508028.2 free,   3349.7 used,   4259.4 buff/cache
MiB Swap:      0.0 total,      0.0 free,      0.0 used. 508436.4 avail Mem

"""
COMMANDS = st.lists(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=6), min_size=1, max_size=3)
PROCESSES = st.builds(
    Process,
    pid=st.integers(1, 4_000_000),
    command=COMMANDS.map(" ".join),
    cpu_percent=st.integers(0, 99999).map(lambda tenths: tenths / 10),
    cpu_s=st.integers(0, 6_000_000).map(lambda hundredths: hundredths / 100),
    res_bytes=st.integers(0, 10**9).map(lambda kib: kib * 1024.0),
)
WORDS = st.sampled_from([*HEAD.split(), HEAD, "top - 15:16:05 up", "load average: 1,22", "Tasks: 1", "12", "3.0g", "0:00.1", "é", "\0"])
SOUP = st.lists(st.one_of(st.lists(WORDS, max_size=14).map(" ".join), st.text(max_size=30))).map("\n".join)


def row(one: Process) -> str:
    minutes, seconds = divmod(round(one.cpu_s * 100), 6000)
    time = f"{minutes}:{seconds // 100:02}.{seconds % 100:02}"
    return f"{one.pid:7} ehyo      20   0 2381860 {one.res_bytes / 1024:.0f}  72288 R {one.cpu_percent:.1f}   0.0 {time} {one.command}"


def read(folder: Path, text: str) -> TopLog:
    path = folder / "top.txt"
    path.write_text(text)
    return read_top(path)


@given(snapshots=st.lists(st.lists(PROCESSES, max_size=8), min_size=1, max_size=6), start=st.integers(0, 86399))
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, snapshots: list[list[Process]], start: int) -> None:
    text = ""
    for at, processes in enumerate(snapshots):
        now = (start + 3 * at) % 86400
        clock = f"{now // 3600:02}:{now // 60 % 60:02}:{now % 60:02}"
        text += BLOCK.format(clock=clock, load=f"{at}.25") + "\n".join([HEAD, *map(row, processes)]) + "\n\n"
    log = read(tmp_path_factory.mktemp("log"), text)
    assert [list(one.processes) for one in log.snapshots] == snapshots
    assert [(one.time_s, one.load_average_1min) for one in log.snapshots] == [(3 * at, at + 0.25) for at in range(len(snapshots))]
    assert log.ignored == ()


@given(text=SOUP)
def test_no_soup_of_lines_breaks_it(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    try:
        log = read(tmp_path_factory.mktemp("log"), text)
    except Unreadable:
        return
    assert all(math.isfinite(process.cpu_percent) for one in log.snapshots for process in one.processes)


def test_sizes_carry_their_unit_or_are_kib(tmp_path: Path) -> None:
    sizes = {"4700": 4700 * 2**10, "3.0g": 3 * 2**30, "3,5g": 3.5 * 2**30, "711m": 711 * 2**20, "1.2t": 1.2 * 2**40, "-": math.nan}
    log = read(tmp_path, "PID RES %CPU COMMAND\n" + "".join(f"7 {written} 0.3 python\n" for written in sizes))
    assert [one.res_bytes for one in log.snapshots[0].processes] == pytest.approx([*sizes.values()], nan_ok=True)


def test_times_grow_out_of_minutes(tmp_path: Path) -> None:
    times = {"0:00.16": 0.16, "502:07.50": 30127.5, "7:05": 425, "33h": 118800, "2,5d": 216000, "?": math.nan}
    log = read(tmp_path, "PID %CPU TIME+ COMMAND\n" + "".join(f"7 0.3 {written} python\n" for written in times))
    assert [one.cpu_s for one in log.snapshots[0].processes] == pytest.approx([*times.values()], nan_ok=True)


def test_midnight_is_passed(tmp_path: Path) -> None:
    table = "PID %CPU COMMAND\n1 5.0 python\n\n"
    text = "".join(BLOCK.format(clock=clock, load="1.22") + table for clock in ("23:59:58", "00:00:01"))
    assert [one.time_s for one in read(tmp_path, text).snapshots] == [0, 3]


@pytest.mark.parametrize(
    ("clocks", "times_s"),
    [
        (("15:16:00", "15:16:03", "15:16:06", "15:16:00", "15:16:03"), (0, 3, 6, None, None)),
        (("23:59:54", "23:59:57", "00:00:00", "00:00:03"), (0, 3, 6, 9)),
        (("23:00:00", "23:00:03", "00:00:06"), (0, 3, None)),
        (("15:16:03", "15:16:00"), (0, None)),
        (("15:16:00", "15:16:03", "15:20:00"), (0, 3, 240)),
    ],
)
def test_a_clock_that_goes_back_is_midnight_only_if_the_pause_is_like_the_others(
    tmp_path: Path, clocks: tuple[str, ...], times_s: tuple[float | None, ...]
) -> None:
    text = "".join(BLOCK.format(clock=clock, load="1.22") + "PID %CPU COMMAND\n1 5.0 python\n\n" for clock in clocks)
    log = read(tmp_path, text)
    assert [None if math.isnan(one.time_s) else one.time_s for one in log.snapshots] == list(times_s)
    assert ("goes back" in log.why_no_time) == (None in times_s)


def test_columns_are_those_of_the_header_in_force(tmp_path: Path) -> None:
    text = "PID %CPU COMMAND\n1 0.5 python -m a\n\nPID COMMAND %CPU RES\n1 python -m a 0.7 12\n"
    first, second = read(tmp_path, text).snapshots
    assert [one.command for one in (*first.processes, *second.processes)] == ["python -m a"] * 2
    assert [one.cpu_percent for one in (*first.processes, *second.processes)] == [0.5, 0.7]
    assert math.isnan(first.processes[0].res_bytes)
    assert second.processes[0].res_bytes == 12 * 1024


def test_a_log_of_another_language_is_read(tmp_path: Path) -> None:
    text = BLOCK.format(clock="15:16:05", load="1,22").replace("0.7 us", "0,7 us") + "PID %CPU COMMAND\n1 88,2 python\n"
    [one] = read(tmp_path, text).snapshots
    assert (one.clock, one.load_average_1min, one.processes[0].cpu_percent) == ("15:16:05", 1.22, 88.2)


def test_lines_left_out_are_named_and_the_last_one_cut_is(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """`7 12.5 python` cut after the 2 is a row as well; a share below 0 is none."""
    lines = ["PID %CPU COMMAND", "7 12.5 python", "8 12.5", "x 1 y", "1 -5.0 python", "7 1"]
    log = read(tmp_path, "\n".join(["noise", BLOCK.format(clock="15:16:05", load="1.22"), *lines]))
    assert [one.pid for one in log.snapshots[0].processes] == [7]
    assert log.ignored == snapshot


def test_a_headline_without_a_table_is_no_snapshot(tmp_path: Path) -> None:
    block = BLOCK.format(clock="15:16:05", load="1.22")
    log = read(tmp_path, f"{block}PID %CPU COMMAND\n1 5.0 python\n\n{block}")
    assert len(log.snapshots) == 1


def test_a_number_of_thousands_of_digits_is_none(tmp_path: Path) -> None:
    nines = "9" * 5000
    log = read(tmp_path, f"PID %CPU TIME+ COMMAND\n{nines} 1.0 0:01.00 a\n1 1.0 {nines}:00.1 a\n")
    assert [(one.pid, math.isnan(one.cpu_s)) for one in log.snapshots[0].processes] == [(1, True)]
