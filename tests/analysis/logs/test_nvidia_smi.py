"""Logs of nvidia-smi in CSV: whose a row is, in which unit, and what becomes of damage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.logs.nvidia_smi import SmiLog, read_nvidia_smi
from analysis.terms import Unreadable
from tests.analysis.logs.made import A100, DISPLAY, Smi

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

STATION = (A100, A100, A100, DISPLAY, A100)  # the display card stands fourth: only it tells where a tick begins
NAMES = st.lists(st.sampled_from([A100, DISPLAY, "Tesla T4"]), min_size=1, max_size=6)
UTIL = st.one_of(st.none(), st.integers(0, 100))
CELLS = st.sampled_from(
    ["name", "index", "utilization.gpu [%]", "timestamp", A100, "5 %", "5 MiB", "40960 MiB", "[N/A]", "7", "", "2023/02/21 15:16:55.262"]
)
SOUP = st.lists(st.one_of(st.lists(CELLS, max_size=5).map(", ".join), st.text(max_size=30))).map("\n".join)


def read(folder: Path, text: str, **known: int) -> SmiLog:
    path = folder / "smi.csv"
    path.write_text(text)
    return read_nvidia_smi(path, **known)  # type: ignore[arg-type]


def own(ticks: int, names: tuple[str, ...] = STATION, **how: bool) -> Smi:
    return Smi(names, [list(range(len(names)))] * ticks, **how)  # type: ignore[arg-type]


def utils(log: SmiLog) -> dict[str, list[float]]:
    return {key: gpu.columns["utilization.gpu"].tolist() for key, gpu in log.gpus.items()}


@given(
    data=st.data(), names=NAMES, ticks=st.integers(2, 12), stamped=st.booleans(), index=st.booleans(), units=st.booleans()
)  # fmt: skip
def test_what_was_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, names: list[str], ticks: int, *, stamped: bool, index: bool, units: bool
) -> None:
    written = [data.draw(st.lists(UTIL, min_size=len(names), max_size=len(names))) for _ in range(ticks)]
    made = Smi(names, written, stamped=stamped, index=index, cell_units=units)
    log = read(tmp_path_factory.mktemp("log"), made.text(), gpus=len(names))
    assert log.units == {"utilization.gpu": "%", "memory.total": "MiB"}
    assert (list(log.gpus), log.ignored) == ([str(at) for at in range(len(names))], ())
    for at, gpu in enumerate(log.gpus.values()):
        assert set(gpu.texts["name"]) == {names[at]}
        np.testing.assert_array_equal(gpu.columns["utilization.gpu"], [np.nan if tick[at] is None else tick[at] for tick in written])
        if stamped:
            tick_s = 1.006 + 0.002 * (len(names) - 1)
            np.testing.assert_allclose(gpu.time_s, [tick_s * tick + 0.002 * at for tick in range(ticks)], atol=0.0011)


@given(text=SOUP)
def test_no_soup_of_lines_breaks_it(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    try:
        log = read(tmp_path_factory.mktemp("log"), text)
    except Unreadable:
        return
    rows = sum(len(gpu.time_s) for gpu in log.gpus.values())
    assert 0 < rows <= len(text.split("\n"))


@given(garbage=st.binary(max_size=300))
def test_no_bytes_break_it(tmp_path_factory: pytest.TempPathFactory, garbage: bytes) -> None:
    path = tmp_path_factory.mktemp("log") / "smi.csv"
    path.write_bytes(f"index, {own(1, index=False).lines()[0]}\n0, {A100}, 5 %, 40960 MiB\n".encode() + garbage)
    try:
        log = read_nvidia_smi(path)
    except Unreadable:
        return
    assert log.gpus


@given(lost=st.integers(1, 55), stamped=st.booleans(), mangled=st.booleans())
def test_a_row_that_is_lost_or_mangled_gives_no_other_row_to_a_neighbour(
    tmp_path_factory: pytest.TempPathFactory, lost: int, *, stamped: bool, mangled: bool
) -> None:
    """Counting on, every later row would go to the next GPU. At most the tick it was of and one beside it are left out."""
    lines = own(12, stamped=stamped).lines()
    lost += 0 if stamped or mangled else 5  # a first tick that lacks a row is another machine's
    lines[lost : lost + 1] = ["NVIDIA A1"] if mangled else []
    if lost > 55:  # the last tick: being killed cuts its end, and nothing before
        lines = lines[: lost + mangled]
    log = read(tmp_path_factory.mktemp("log"), "\n".join(lines) + "\n")
    assert all(set(values) == {float(key)} for key, values in utils(log).items())
    assert min(map(len, utils(log).values())) >= 10
    assert len(log.ignored) <= 10


@pytest.mark.parametrize("stamped", [True, False])
def test_a_header_in_the_middle_begins_a_tick(tmp_path: Path, *, stamped: bool) -> None:
    lines = own(4, stamped=stamped).lines()
    log = read(tmp_path, "\n".join([*lines[:8], *lines]) + "\n")
    assert utils(log) == {"0": [0.0] * 6, "1": [1.0] * 6, "2": [2.0] * 5, "3": [3.0] * 5, "4": [4.0] * 5}
    assert log.ignored == ()


def test_another_order_of_gpus_is_theirs(tmp_path: Path) -> None:
    assert utils(read(tmp_path, own(3, (DISPLAY, A100, A100)).text())) == {"0": [0.0] * 3, "1": [1.0] * 3, "2": [2.0] * 3}
    head, *rows = own(1, (A100, A100, A100), index=True).lines()
    log = read(tmp_path, "\n".join([head, rows[2], rows[0], rows[1], rows[1], rows[0], rows[2]]) + "\n")
    assert utils(log) == {"0": [0.0] * 2, "1": [1.0] * 2, "2": [2.0] * 2}
    assert log.how == "by index"


def test_gpus_of_one_name_are_told_apart_by_times_or_by_their_number_and_else_not_at_all(tmp_path: Path) -> None:
    four = (A100,) * 4
    apart = {str(at): [float(at)] * 6 for at in range(4)}
    assert utils(read(tmp_path, own(6, four, stamped=True).text())) == apart
    assert utils(read(tmp_path, own(6, four).text(), gpus=4)) == apart
    log = read(tmp_path, own(6, four).text())
    assert utils(log) == {"?": [0.0, 1.0, 2.0, 3.0] * 6}
    assert "query `index`" in log.how


@pytest.mark.parametrize("stamped", [True, False])
def test_where_most_ticks_fit_no_order_nobody_is_told_apart(tmp_path: Path, *, stamped: bool) -> None:
    orders = [(A100, DISPLAY, "Tesla T4"), (DISPLAY, A100, "Tesla T4"), ("Tesla T4", DISPLAY, A100)] * 3
    head = Smi(orders[0], [[0, 1, 2]], stamped=stamped).lines()[0]
    ticks = [Smi(order, [[0, 1, 2]] * 9, stamped=stamped).lines()[1 + 3 * at : 4 + 3 * at] for at, order in enumerate(orders)]
    log = read(tmp_path, "\n".join([head, *(row for tick in ticks for row in tick)]) + "\n", **({} if stamped else {"gpus": 3}))
    assert list(log.gpus) == ["?"]
    assert "27 rows" in log.how
    assert log.ignored == ()


def test_one_look_at_gpus_of_one_name_is_not_several_looks_at_one(tmp_path: Path) -> None:
    """Four rows within 6 ms are no loop."""
    assert list(read(tmp_path, own(1, (A100,) * 4, stamped=True).text()).gpus) == ["?"]


def test_the_number_that_the_caller_gives_counts_more_than_times(tmp_path: Path) -> None:
    log = read(tmp_path, own(4, (A100,) * 4, stamped=True).text(), gpus=2)
    assert {key: len(gpu.time_s) for key, gpu in log.gpus.items()} == {"0": 8, "1": 8}
    assert "as was said" in log.how


def test_after_a_mangled_row_among_gpus_of_one_name_nothing_is_guessed(tmp_path: Path) -> None:
    lines = own(6, (A100,) * 4).lines()
    lines[6] = "NVIDIA"  # the second GPU of the second tick
    log = read(tmp_path, "\n".join(lines) + "\n", gpus=4)
    assert utils(log) == {str(at): [float(at)] for at in range(4)}
    assert len(log.ignored) == 20


def test_a_tick_with_a_row_too_few_or_too_many_is_left_out(tmp_path: Path) -> None:
    """Among GPUs of one name nobody can say which one is lacking; with times, the ticks after it stand."""
    lines = own(8, (A100,) * 4, stamped=True).lines()
    for damaged in (lines[:6] + lines[7:], lines[:7] + lines[6:]):
        log = read(tmp_path, "\n".join(damaged) + "\n")
        assert utils(log) == {str(at): [float(at)] * 7 for at in range(4)}
        assert len(log.ignored) in (3, 5)


@pytest.mark.parametrize(("first", "last"), [(5, 10), (5, 15)])
def test_one_gpu_with_a_pause_in_its_times_stays_one(tmp_path: Path, first: int, last: int) -> None:
    """A halt of the machine is no tick's border, not even where it parts the rows in two equal halves."""
    lines = own(20, (A100,), stamped=True).lines()
    del lines[1 + first : 1 + last]
    assert utils(read(tmp_path, "\n".join(lines) + "\n")) == {"0": [0.0] * (20 - last + first)}


def test_gpus_that_take_long_to_answer_are_told_apart_all_the_same(tmp_path: Path) -> None:
    """Without persistence mode a driver takes its time: .3 s a GPU, and a second between ticks."""
    made = Smi((A100,) * 4, [[0, 1, 2, 3]] * 6, stamped=True, query_s=0.3)
    assert utils(read(tmp_path, made.text())) == {str(at): [float(at)] * 6 for at in range(4)}


def test_without_a_header_columns_are_numbered_or_named_by_the_caller(tmp_path: Path) -> None:
    """Two columns in percent may be either: nothing is guessed."""
    text = own(3, header=False).text()
    assert read(tmp_path, text).columns == ("column 1", "column 2", "column 3")
    assert read(tmp_path, text).units == {"column 2": "%", "column 3": "MiB"}
    path = tmp_path / "smi.csv"
    named = read_nvidia_smi(path, columns=("name", "utilization.gpu", "memory.total"))
    assert utils(named) == {str(at): [float(at)] * 3 for at in range(5)}


def test_what_nvidia_smi_says_of_a_missing_value_is_kept(tmp_path: Path) -> None:
    extra = {"power.draw [W]": ["[Not Supported]", "[N/A]"], "pstate": ["P0", "P8"]}
    log = read(tmp_path, Smi([A100], [[5], [6]], index=True, extra=extra).text())
    assert np.isnan(log.gpus["0"].columns["power.draw"]).all()
    assert log.gpus["0"].missing == {"power.draw": "[Not Supported], [N/A]"}
    assert log.gpus["0"].texts["pstate"] == ("P0", "P8")


def test_a_cell_in_another_unit_is_no_number_of_its_column(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    lines = own(3, (A100,), index=True).lines()
    lines[2] = lines[2].replace("40960 MiB", "40 GiB")
    lines[3] = lines[3].replace("0 %", "often")
    log = read(tmp_path, "\n".join(lines) + "\n")
    assert log.gpus["0"].columns["memory.total"].tolist() == [40960]
    assert log.ignored == snapshot


def test_a_last_row_cut_short_is_left_out_even_where_it_looks_whole(tmp_path: Path) -> None:
    """40960 cut short is 409."""
    text = own(3, cell_units=False).text()
    for cut in (1, 3, 20):
        log = read(tmp_path, text[:-cut])
        assert utils(log) == {**{str(at): [float(at)] * 3 for at in range(4)}, "4": [4.0] * 2}
        assert len(log.ignored) == 1
