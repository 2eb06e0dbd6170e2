"""Logs of `dcgmi dmon`, of `top -b` and of a training, whole and damaged; and what every reader of logs refuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.logs.nvidia_smi import read_nvidia_smi
from analysis.logs.readers import Process, TopLog, TrainingLog, read_dcgmi, read_top, read_training
from analysis.terms import Unreadable
from tests.analysis.logs.made import dcgmi

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

READERS: dict[str, Callable[[Path], object]] = {
    "dcgmi": read_dcgmi,
    "nvidia_smi": read_nvidia_smi,
    "top": read_top,
    "training": read_training,
}

FIELDS = {"POWER": "W", "TOTEC": "mJ", "GPUTL": "", "SMACT": ""}
SAMPLES = st.one_of(st.none(), st.floats(0, 1e12, allow_nan=False))
ENTITIES = st.sampled_from(["GPU 0", "GPU 1", "GPU 7", "GPU-I 3", "GPU-CI 3", "Switch 2", "GPU 0/1/2"])
ROWS = st.lists(st.tuples(ENTITIES, st.lists(SAMPLES, min_size=4, max_size=4)), min_size=1, max_size=60)

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
LOSSES = st.lists(st.floats(0, 100).map(lambda loss: round(loss, 6)), max_size=20)

WORDS = {
    "dcgmi": ["#Entity", "ID", "GPU 0", "GPU-I 1", "N/A", "0.5", "1e999", "nan", "W", "\t", "\0", "é", "dmon was stopped", "\r"],
    "top": [*HEAD.split(), HEAD, "top - 15:16:05 up", "load average: 1,22", "Tasks: 1", "12", "3.0g", "0:00.1", "é", "\0"],
    "training": ["Train Epoch: 1 [0/60000 (0%)]", "\tLoss: nan", "time:  ", "48.6", "9836/10000", "Test set: Average loss: 0.1", "\0"],
}


def write(folder: Path, text: str) -> Path:
    path = folder / "log.txt"
    path.write_text(text)
    return path


def top(folder: Path, text: str) -> TopLog:
    return read_top(write(folder, text))


def training(folder: Path, text: str) -> TrainingLog:
    return read_training(write(folder, text))


@pytest.mark.parametrize("name", WORDS)
@given(data=st.data())
def test_no_soup_of_lines_breaks_a_reader(tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject) -> None:
    """What is read is finite, but for NaN where a value is missing."""
    words = st.lists(st.sampled_from(WORDS[name]), max_size=14)
    joined = words.map(("" if name == "training" else " ").join)
    path = write(tmp_path_factory.mktemp("log"), data.draw(st.lists(st.one_of(joined, st.text(max_size=30))).map("\n".join)))
    try:
        if name == "dcgmi":
            columns = [column for columns in read_dcgmi(path).entities.values() for column in columns.values()]
            assert all(np.isfinite(column[~np.isnan(column)]).all() for column in columns)
        elif name == "top":
            assert all(math.isfinite(process.cpu_percent) for shot in read_top(path).snapshots for process in shot.processes)
        else:
            log = read_training(path)
            assert (log.time_s is None) == bool(log.why_no_time)
    except Unreadable:
        return


ALL = {"empty": b"", "blank": b" \n\n", "bytes": bytes(range(256))}
OTHERS = {
    "dcgmi": (b"#Entity  SMACT\nID\n", b"name, utilization.gpu [%]\nNVIDIA A100, 5 %\n"),
    "nvidia_smi": (
        b"name, utilization.gpu [%]\n",
        b"0,1,1,65.0\n1,1,8,65.8\n",
        b"#Entity  SMACT\nID\nGPU 0  0.5\n",
        b"Loss: 0.3, Accuracy: 98%\n",
    ),
    "top": (b"time: 5\n", b"top - 15:16:05 up  5:03,  3 users,  load average: 1.22, 0.73, 0.79\nTasks: 9 total\n\n"),
    "training": (b"GPU 0  0.5\n",),
}


@pytest.mark.parametrize("reader", READERS)
def test_refusals(tmp_path: Path, reader: str, snapshot: SnapshotAssertion) -> None:
    messages = {}
    for name, content in {**ALL, **{other.decode(): other for other in OTHERS[reader]}}.items():
        path = tmp_path / "other.txt"
        path.write_bytes(content)
        with pytest.raises(Unreadable, match=r"other\.txt") as refused:
            READERS[reader](path)
        messages[name] = str(refused.value).replace(f"{tmp_path}/", "")
        assert "\n" not in messages[name]
    assert messages == snapshot


def test_each_line_left_out_is_named_with_its_reason(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """A last line cut short is left out even where it looks whole: `7 12.5 python` cut after the 2 is a row as well."""
    log = read_dcgmi(
        write(
            tmp_path,
            "GPU 0  1\n#Entity  GPUTL  SMACT\nID\nGPU 0  90  0.5\nGPU 0  90\nGPU 0  90  0.5  7\nGPU 0  90  high\nError: lost\n"
            "GPU 1  5  0.1\n\n\ndmon was stopped do to receiving a signal\nGPU 0  9",
        )
    )
    assert {entity: log.samples(entity) for entity in log.entities} == {"GPU 0": 1, "GPU 1": 1}
    lines = ["PID %CPU COMMAND", "7 12.5 python", "8 12.5", "x 1 y", "1 -5.0 python", "7 1"]
    table = top(tmp_path, "\n".join(["noise", BLOCK.format(clock="15:16:05", load="1.22"), *lines]))
    assert [process.pid for process in table.snapshots[0].processes] == [7]
    assert (log.ignored, table.ignored) == snapshot


@given(rows=ROWS, every=st.integers(1, 20))
def test_what_dcgmi_wrote_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, list[float | None]]], every: int) -> None:
    log = read_dcgmi(write(tmp_path_factory.mktemp("log"), dcgmi(FIELDS, rows, header_every=every)))
    assert (log.fields, log.units, log.ignored) == (tuple(FIELDS), {"POWER": "W", "TOTEC": "mJ"}, ())
    assert list(log.entities) == list(dict.fromkeys(entity for entity, _ in rows))
    for entity, columns in log.entities.items():
        written = [[np.nan if value is None else value for value in values] for name, values in rows if name == entity]
        np.testing.assert_array_equal(np.column_stack(list(columns.values())), written)


@given(garbage=st.binary(max_size=300))
def test_no_bytes_break_what_dcgmi_wrote(tmp_path_factory: pytest.TempPathFactory, garbage: bytes) -> None:
    path = tmp_path_factory.mktemp("log") / "bytes.txt"
    path.write_bytes(b"#Entity  SMACT\nID\nGPU 0  0.5\n" + garbage)
    assert read_dcgmi(path).entities["GPU 0"]["SMACT"][0] == 0.5


@pytest.mark.parametrize("cut", [0, 1, 5, 10, 14])
def test_a_last_row_of_dcgmi_cut_short_is_left_out_even_where_it_looks_whole(tmp_path: Path, cut: int) -> None:
    """`0.52` cut after the `5` is a number too."""
    whole = "#Entity  GPUTL  SMACT\nID\nGPU 0  90  0.50\nGPU 0  91  0.52"
    log = read_dcgmi(write(tmp_path, whole[: len(whole) - cut]))
    assert log.entities["GPU 0"]["SMACT"].tolist() == [0.5]
    assert [line.split(":")[0] for line in log.ignored] == ["line 4"]


def test_fields_that_change_with_a_later_header_are_missing_where_they_were_not_recorded(tmp_path: Path) -> None:
    text = "#Entity  GPUTL  SMACT\nID\nGPU 0  90  0.5\n#Entity  POWER  GPUTL\nID  W\nGPU 0  61.5  80\n"
    columns = read_dcgmi(write(tmp_path, text)).entities["GPU 0"]
    assert columns["GPUTL"].tolist() == [90, 80]
    np.testing.assert_array_equal(columns["SMACT"], [0.5, np.nan])
    np.testing.assert_array_equal(columns["POWER"], [np.nan, 61.5])


@pytest.mark.parametrize(
    ("text", "units", "values"),
    [
        (
            "# Entity      POWER   SMACT   TMPTR\n      Id          W               C\n   GPU 0     61.500   0.250      41\n",
            {"POWER": "W", "TMPTR": "C"},
            {"POWER": [61.5], "SMACT": [0.25], "TMPTR": [41]},
        ),
        ("#Entity   A   B   C\nID        W       %\nGPU 0     1   2   3\n", {"A": "W", "C": "%"}, {"A": [1], "B": [2], "C": [3]}),
    ],
    ids=["set right", "narrow"],
)
def test_a_unit_is_of_the_column_above_it(tmp_path: Path, text: str, units: dict[str, str], values: dict[str, list[float]]) -> None:
    log = read_dcgmi(write(tmp_path, text))
    assert log.units == units
    assert {name: column.tolist() for name, column in log.entities["GPU 0"].items()} == values


def row(process: Process) -> str:
    minutes, seconds = divmod(round(process.cpu_s * 100), 6000)
    time = f"{minutes}:{seconds // 100:02}.{seconds % 100:02}"
    size, percent = f"{process.res_bytes / 1024:.0f}", f"{process.cpu_percent:.1f}"
    return f"{process.pid:7} ehyo      20   0 2381860 {size}  72288 R {percent}   0.0 {time} {process.command}"


@given(snapshots=st.lists(st.lists(PROCESSES, max_size=8), min_size=1, max_size=6), start=st.integers(0, 86399))
def test_what_top_wrote_is_read(tmp_path_factory: pytest.TempPathFactory, snapshots: list[list[Process]], start: int) -> None:
    text = ""
    for at, processes in enumerate(snapshots):
        now = (start + 3 * at) % 86400
        clock = f"{now // 3600:02}:{now // 60 % 60:02}:{now % 60:02}"
        text += BLOCK.format(clock=clock, load=f"{at}.25") + "\n".join([HEAD, *map(row, processes)]) + "\n\n"
    log = top(tmp_path_factory.mktemp("log"), text)
    assert [shot.processes for shot in log.snapshots] == snapshots
    assert [(shot.time_s, shot.load_average_1min) for shot in log.snapshots] == [(3 * at, at + 0.25) for at in range(len(snapshots))]
    assert log.ignored == ()


@pytest.mark.parametrize(
    ("column", "field", "values"),
    [
        (
            "RES",
            "res_bytes",
            {"4700": 4700 * 2**10, "3.0g": 3 * 2**30, "3,5g": 3.5 * 2**30, "711m": 711 * 2**20, "1.2t": 1.2 * 2**40, "-": math.nan},
        ),
        (
            "TIME+",
            "cpu_s",
            {
                "0:00.16": 0.16,
                "502:07.50": 30127.5,
                "7:05": 425,
                "33h": 118800,
                "2,5d": 216000,
                "?": math.nan,
                "9" * 5000 + ":00.1": math.nan,
            },
        ),
    ],
)
def test_sizes_and_times_carry_their_unit(tmp_path: Path, column: str, field: str, values: dict[str, float]) -> None:
    """Sizes without one are KiB; times grow out of minutes."""
    log = top(tmp_path, f"PID {column} %CPU COMMAND\n" + "".join(f"7 {written} 0.3 python\n" for written in values))
    assert [getattr(process, field) for process in log.snapshots[0].processes] == pytest.approx([*values.values()], nan_ok=True)


def test_a_process_id_of_thousands_of_digits_is_none(tmp_path: Path) -> None:
    assert [each.pid for each in top(tmp_path, f"PID %CPU COMMAND\n{'9' * 5000} 1.0 a\n1 1.0 a\n").snapshots[0].processes] == [1]


@pytest.mark.parametrize(
    ("clocks", "times_s"),
    [
        (("23:59:58", "00:00:01"), (0, 3)),
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
    log = top(tmp_path, "".join(BLOCK.format(clock=clock, load="1.22") + "PID %CPU COMMAND\n1 5.0 python\n\n" for clock in clocks))
    assert [None if math.isnan(shot.time_s) else shot.time_s for shot in log.snapshots] == list(times_s)
    assert ("goes back" in log.why_no_time) == (None in times_s)


def test_columns_of_top_are_those_of_the_header_in_force(tmp_path: Path) -> None:
    first, second = top(tmp_path, "PID %CPU COMMAND\n1 0.5 python -m a\n\nPID COMMAND %CPU RES\n1 python -m a 0.7 12\n").snapshots
    assert [(each.command, each.cpu_percent) for each in (*first.processes, *second.processes)] == [
        ("python -m a", 0.5),
        ("python -m a", 0.7),
    ]
    assert math.isnan(first.processes[0].res_bytes)
    assert second.processes[0].res_bytes == 12 * 1024


def test_a_log_of_another_language_is_read(tmp_path: Path) -> None:
    text = BLOCK.format(clock="15:16:05", load="1,22").replace("0.7 us", "0,7 us") + "PID %CPU COMMAND\n1 88,2 python\n"
    [shot] = top(tmp_path, text).snapshots
    assert (shot.clock, shot.load_average_1min, shot.processes[0].cpu_percent) == ("15:16:05", 1.22, 88.2)


def test_a_headline_without_a_table_is_no_snapshot(tmp_path: Path) -> None:
    block = BLOCK.format(clock="15:16:05", load="1.22")
    assert len(top(tmp_path, f"{block}PID %CPU COMMAND\n1 5.0 python\n\n{block}").snapshots) == 1


@given(losses=LOSSES, correct=st.lists(st.integers(0, 10000), max_size=5), time_s=st.floats(0.001, 1e6))
def test_what_a_training_printed_is_read(
    tmp_path_factory: pytest.TempPathFactory, losses: list[float], correct: list[int], time_s: float
) -> None:
    text = "".join(f"Train Epoch: {at} [{640 * at}/60000 ({at}%)]\tLoss: {loss:.6f}\n" for at, loss in enumerate(losses, 1))
    text += "".join(f"\nTest set: Average loss: 0.0481, Accuracy: {right}/10000 ({right // 100}%)\n\n" for right in correct)
    log = training(tmp_path_factory.mktemp("log"), f"{text}time:  {time_s}\n")
    assert (log.loss.tolist(), [test.correct for test in log.tests], log.time_s) == (losses, correct, time_s)
    assert (log.epoch.tolist(), log.seen.tolist()) == ([*range(1, len(losses) + 1)], [640 * at for at in range(1, len(losses) + 1)])
    assert (log.ignored, log.why_no_time) == ((), "")


def test_a_training_that_did_not_end_has_no_time_and_never_none_at_all(tmp_path: Path) -> None:
    """`time:  48.65` cut before its end would read as a faster training; of two times nobody knows which."""
    whole = "Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.299824\ntime:  48.65953783600344\n"
    for text in (whole[:-1], whole[:-15], whole.splitlines()[0] + "\n", "time:  5.0\ntime:  6.0\n"):
        log = training(tmp_path, text)
        assert log.time_s is None
        assert log.why_no_time


def test_what_cannot_be_is_left_out(tmp_path: Path) -> None:
    damage = "Test set: Average loss: 0.1, Accuracy: 9/8 (112%)\ntime:  0\nWarning: old driver\n"
    log = training(tmp_path, damage + "Train Epoch: 1 [0/60000 (0%)]\tLoss: nan\ntime:  5\n")
    assert (log.tests, log.time_s, [line.split(":")[0] for line in log.ignored]) == ((), 5.0, ["line 1", "line 2", "line 3"])
    assert np.isnan(log.loss).tolist() == [True]
