"""Logs of `dcgmi dmon`, whole and damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analysis.logs.readers import read_dcgmi
from analysis.terms import Unreadable
from tests.analysis.logs.made import dcgmi

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from syrupy.assertion import SnapshotAssertion

FIELDS = {"POWER": "W", "TOTEC": "mJ", "GPUTL": "", "SMACT": ""}
SAMPLES = st.one_of(st.none(), st.floats(0, 1e12, allow_nan=False))
ENTITIES = st.sampled_from(["GPU 0", "GPU 1", "GPU 7", "GPU-I 3", "GPU-CI 3", "Switch 2", "GPU 0/1/2"])
ROWS = st.lists(st.tuples(ENTITIES, st.lists(SAMPLES, min_size=4, max_size=4)), min_size=1, max_size=60)
WORDS = st.sampled_from(["#Entity", "ID", "GPU 0", "GPU-I 1", "N/A", "0.5", "1e999", "nan", "W", "\t", "\0", "é", "dmon was stopped", "\r"])
SOUP = st.lists(st.one_of(st.lists(WORDS, max_size=7).map(" ".join), st.text(max_size=30))).map("\n".join)


@given(rows=ROWS, every=st.integers(1, 20))
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, list[float | None]]], every: int) -> None:
    path = tmp_path_factory.mktemp("log") / "dmon.txt"
    path.write_text(dcgmi(FIELDS, rows, header_every=every))
    log = read_dcgmi(path)
    assert (log.fields, log.units, log.ignored) == (tuple(FIELDS), {"POWER": "W", "TOTEC": "mJ"}, ())
    assert list(log.entities) == list(dict.fromkeys(entity for entity, _ in rows))
    for entity, columns in log.entities.items():
        written = [[np.nan if one is None else one for one in values] for name, values in rows if name == entity]
        np.testing.assert_array_equal(np.column_stack(list(columns.values())), written)


@given(text=SOUP)
def test_no_soup_of_lines_breaks_it(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("log") / "soup.txt"
    path.write_text(text)
    try:
        log = read_dcgmi(path)
    except Unreadable:
        return
    assert all(np.isfinite(column[~np.isnan(column)]).all() for columns in log.entities.values() for column in columns.values())


@given(garbage=st.binary(max_size=300))
def test_no_bytes_break_it(tmp_path_factory: pytest.TempPathFactory, garbage: bytes) -> None:
    path = tmp_path_factory.mktemp("log") / "bytes.txt"
    path.write_bytes(b"#Entity  SMACT\nID\nGPU 0  0.5\n" + garbage)
    assert read_dcgmi(path).entities["GPU 0"]["SMACT"][0] == 0.5


def test_a_last_row_cut_short_is_left_out_even_where_it_looks_whole(tmp_path: Path) -> None:
    """`0.52` cut after the `5` is a number too."""
    whole = "#Entity  GPUTL  SMACT\nID\nGPU 0  90  0.50\nGPU 0  91  0.52"
    for cut in (0, 1, 5, 10, 14):
        path = tmp_path / "cut.txt"
        path.write_text(whole[: len(whole) - cut])
        log = read_dcgmi(path)
        assert log.entities["GPU 0"]["SMACT"].tolist() == [0.5]
        assert [line.split(":")[0] for line in log.ignored] == ["line 4"]


def test_each_line_left_out_is_named_with_its_reason(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    path = tmp_path / "dmon.txt"
    path.write_text(
        "GPU 0  1\n#Entity  GPUTL  SMACT\nID\nGPU 0  90  0.5\nGPU 0  90\nGPU 0  90  0.5  7\nGPU 0  90  high\nError: lost\nGPU 1  5  0.1\n\n"
        "\ndmon was stopped do to receiving a signal\nGPU 0  9"
    )
    log = read_dcgmi(path)
    assert {entity: log.samples(entity) for entity in log.entities} == {"GPU 0": 1, "GPU 1": 1}
    assert log.ignored == snapshot


def test_fields_that_change_with_a_later_header_are_missing_where_they_were_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "dmon.txt"
    path.write_text("#Entity  GPUTL  SMACT\nID\nGPU 0  90  0.5\n#Entity  POWER  GPUTL\nID  W\nGPU 0  61.5  80\n")
    columns = read_dcgmi(path).entities["GPU 0"]
    assert columns["GPUTL"].tolist() == [90, 80]
    np.testing.assert_array_equal(columns["SMACT"], [0.5, np.nan])
    np.testing.assert_array_equal(columns["POWER"], [np.nan, 61.5])


def test_names_set_right_and_a_unit_of_one_column_alone_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "dmon.txt"
    path.write_text("# Entity      POWER   SMACT   TMPTR\n      Id          W               C\n   GPU 0     61.500   0.250      41\n")
    log = read_dcgmi(path)
    assert log.units == {"POWER": "W", "TMPTR": "C"}
    assert {name: column.tolist() for name, column in log.entities["GPU 0"].items()} == {"POWER": [61.5], "SMACT": [0.25], "TMPTR": [41]}


def test_units_of_narrow_columns_are_their_own(tmp_path: Path) -> None:
    path = tmp_path / "dmon.txt"
    path.write_text("#Entity   A   B   C\nID        W       %\nGPU 0     1   2   3\n")
    assert read_dcgmi(path).units == {"A": "W", "C": "%"}
