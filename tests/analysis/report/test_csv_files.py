"""The data for other programs: full precision, names with units, what is missing an empty field."""

from __future__ import annotations

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from analysis.compare import compare
from analysis.report.csv_files import as_csv, cells, comparisons
from tests.analysis.report.pages import read


def parsed(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_cells_read_again_are_the_metrics_bit_by_bit() -> None:
    run = read()
    found = parsed(as_csv(cells([run])))
    assert [one["cell"] for one in found] == [cell.id for cell in run.cells]
    for one, cell in zip(found, run.cells, strict=True):
        assert {name: float(one[name]) for name in cell.metrics} == dict(cell.metrics)
        assert one["outcome"] == cell.outcome
        assert one["reason"] == (cell.reason or "")
        assert {name: float(one[f"telemetry.{name}"]) for name in cell.telemetry} == dict(cell.telemetry)


def test_a_cell_that_was_not_measured_has_empty_fields_and_no_noughts() -> None:
    skipped = next(one for one in parsed(as_csv(cells([read()]))) if one["outcome"] == "skipped")
    assert (skipped["throughput_samples_per_s"], skipped["measured_steps"]) == ("", "")


def test_comparisons_read_again_are_those_of_compare() -> None:
    run = read()
    found, wanted = parsed(as_csv(comparisons(compare(run)))), compare(run)
    assert [(one["workload"], one["tweakset"], one["verdict"]) for one in found] == [
        (one.workload, one.tweakset, one.verdict) for one in wanted
    ]
    for one, other in zip(found, wanted, strict=True):
        if other.primary is None:
            assert one["primary_gain_fraction"] == one["p_adjusted"] == ""
            assert one["reason"] == other.reason
        else:
            numbers = [float(one[f"primary_{name}"]) for name in ("gain_fraction", "low95_fraction", "high95_fraction", "p")]
            assert numbers == [other.primary.gain, other.primary.low, other.primary.high, other.primary.p]


def test_a_text_that_a_spreadsheet_would_run_is_kept_a_text() -> None:
    texts = ("=1+1", "+A1", "-cmd", "@SUM(A1)", "\tx")
    assert parsed(as_csv([{"reason": text} for text in texts])) == [{"reason": f"'{text}"} for text in texts]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=5))
def test_any_text_comes_back_as_it_was(texts: list[str]) -> None:
    """Commas, quotes, line breaks; but for the apostrophe before what would be a formula."""
    found = parsed(as_csv([{"n": "x", "text": text} for text in texts]))
    assert [one["text"].removeprefix("'") for one in found] == [text.removeprefix("'") for text in texts]
