"""Properties of any counters and any cut-off file, not only of the recorded ones."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.telemetry import sources as readings
from fixtures.telemetry.proc_sources import total, usage
from fixtures.telemetry.sampler import SOURCES
from fixtures.telemetry.sources import Field, KeyedLines, Row, convert, differences

RECORDINGS = Path(__file__).parents[1] / "recordings/linux-6.18-2vcpu"
COUNTS = st.one_of(st.none(), st.integers(0, 2**64 - 1))
KEYS = (b"pgfault ", b"thp_fault_alloc ", b"pswpout ")


@given(st.lists(COUNTS))
def test_a_difference_is_never_negative_and_never_invented(counts: list[int | None]) -> None:
    rises = differences(counts)
    assert len(rises) == len(counts)
    for before, after, rise in zip(counts, counts[1:], rises[1:], strict=False):
        known = before is not None and after is not None and after >= before
        assert (rise is None) != known
        assert rise is None or rise >= 0


@given(st.lists(st.tuples(*[COUNTS] * 11), min_size=1, max_size=6))
def test_cpu_shares_lie_between_0_and_100_and_add_up(
    rows: list[Row],
) -> None:
    """Whatever the kernel does to its counters: reset, one mode stepping back, nothing counted."""
    out = SOURCES["cpu"]().convert([float(at) for at in range(len(rows))], rows)
    shares = [column for name, column in out.columns.items() if name.startswith("cpu_")]
    for at in range(len(rows)):
        known = [value for column in shares if (value := column[at]) is not None]
        assert all(0 <= value <= 100 for value in known)
        assert not known or sum(known) == pytest.approx(100, abs=0.01)
    assert all(
        0 <= value <= 100.001
        for name, value in out.summary.items()
        if name.endswith("percent_mean")
    )


@given(st.lists(st.tuples(COUNTS), max_size=8), st.sampled_from(["gauge", "rate", "rise"]))
def test_a_column_is_as_long_as_the_cell_or_missing(rows: list[Row], kind: str) -> None:
    field = Field("x", kind, 1.0, ("mean",), "x_total")  # type: ignore[arg-type]
    out = convert([float(at) for at in range(len(rows))], rows, (field,), {})
    assert set(out.columns) ^ set(out.missing) == {"x"}
    assert all(len(column) == len(rows) for column in out.columns.values())
    assert all(out.missing.values())


@given(
    st.dictionaries(st.sampled_from(KEYS), st.integers(0, 2**64 - 1)), st.integers(1, 40), st.data()
)
def test_a_cut_off_file_gives_each_number_whole_or_not_at_all(
    there: dict[bytes, int], piece: int, data: st.DataObject
) -> None:
    text = b"nr_dirty 5\n" + b"".join(b"%s%d\n" % line for line in there.items()) + b"oom_kill 0\n"
    cut = data.draw(st.integers(1, len(text)))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder, "vmstat")
        path.write_bytes(text)
        patch.setattr(readings, "CHUNK_BYTES", piece)
        with KeyedLines(path, KEYS) as file:
            assert file.values(file.text()) == [there.get(key) for key in KEYS]
            path.write_bytes(text[:cut])
            for key, value in zip(KEYS, file.values(file.text()), strict=True):
                assert value is None or value == there[key]


@given(st.integers(0))
def test_a_cut_off_pressure_file_gives_whole_totals_or_none(cut: int) -> None:
    text = (RECORDINGS / "after/proc/pressure/io").read_bytes()
    part = text[: cut % (len(text) + 1)]
    assert total(part, b"some") in {None, 9167081}
    assert total(part, b"full") in {None, 8909435}


@given(st.integers(0))
def test_a_cut_off_process_stat_is_whole_or_nothing(cut: int) -> None:
    text = (RECORDINGS / "odd_command_stat").read_bytes()
    assert usage(text[: cut % (len(text) + 1)]) in {None, (3, 15, 30304, 31602)}


@given(st.binary(max_size=200))
def test_garbage_is_no_number(garbage: bytes) -> None:
    """No parser raises what would end the sampler, and none makes numbers of signs or words."""
    usage(garbage)
    total(garbage, b"some")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stat")
        path.write_bytes(b"pgfault " + garbage.replace(b"\n", b" ") + b"\n")
        with KeyedLines(path, (b"pgfault ",)) as file:
            (value,) = file.values(file.text())
    assert value is None or value >= 0
