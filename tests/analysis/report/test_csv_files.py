"""The data for other programs: full precision, names with units, what is missing an empty field."""

from __future__ import annotations

import csv
import io
import math

from hypothesis import given
from hypothesis import strategies as st

from analysis.compare import compare
from analysis.report.csv_files import as_csv, cells, comparisons, geometric_mean, summary
from tests.analysis.report.pages import EVERYTHING, SWAPPINESS, read
from tests.synthetic import STOCK, Arm, Made


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


def test_the_summary_has_a_row_an_arm_and_the_means_the_gains_are_ratios_of() -> None:
    run = read(Made(arms=(STOCK, Arm("faster", 0.1, SWAPPINESS)), blocks=8))
    base, faster = parsed(as_csv(summary([run])))
    effect = compare(run)[0].primary
    assert effect is not None
    ratio = float(faster["throughput_samples_per_s_geomean"]) / float(base["throughput_samples_per_s_geomean"])
    assert math.isclose(ratio - 1, effect.gain, rel_tol=1e-9)
    assert (faster["settings"], faster["cells_measured"], faster["cells"]) == ("1", "8", "8")


def test_an_arm_without_a_measured_cell_is_in_the_summary_and_empty() -> None:
    isolate = next(one for one in parsed(as_csv(summary([read(EVERYTHING)]))) if one["tweakset"] == "isolate")
    assert (isolate["cells_measured"], isolate["step_time_p10_s_geomean"]) == ("0", "")


def test_a_text_that_a_spreadsheet_would_run_is_kept_a_text() -> None:
    texts = ("=1+1", "+A1", "-cmd", "@SUM(A1)", "\tx")
    assert parsed(as_csv([{"reason": text} for text in texts])) == [{"reason": f"'{text}"} for text in texts]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=5))
def test_any_text_comes_back_as_it_was(texts: list[str]) -> None:
    """Commas, quotes, line breaks; but for the apostrophe before what would be a formula."""
    found = parsed(as_csv([{"n": "x", "text": text} for text in texts]))
    assert [one["text"].removeprefix("'") for one in found] == [text.removeprefix("'") for text in texts]


def test_a_mean_of_nothing_or_of_noughts_is_missing() -> None:
    assert (geometric_mean([]), geometric_mean([1.0, 0.0])) == (None, None)
