"""Coded factors: what models see of numbers and names, and what lies beyond them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.jobs.prediction.tables import MOST_LEVELS, Measurement, Points, beyond, learn, table, thinned

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

FINITE = st.floats(-1e6, 1e6).map(lambda one: round(one, 3))


def numbers(*values: float) -> Points:
    return Points(len(values), {"n": np.array(values, float)}, {})


@given(st.lists(FINITE, min_size=3, max_size=30).filter(lambda all_: len(set(all_)) > 1))
def test_numbers_are_standardised(values: list[float]) -> None:
    coded = learn(numbers(*values)).coded(numbers(*values))
    assert coded.mean() == pytest.approx(0, abs=1e-6)
    assert coded.std() == pytest.approx(1, abs=1e-6)


def test_numbers_over_a_wide_range_are_seen_by_their_logarithms() -> None:
    """1, 4, 16 are equally far apart; 1, 2, 3 are as they are, and so is whatever reaches 0."""
    assert np.diff(learn(numbers(1, 4, 16)).coded(numbers(1, 4, 16))[:, 0]).std() == pytest.approx(0)
    assert not learn(numbers(1, 2, 3)).numbers["n"].log
    assert not learn(numbers(0, 4, 16)).numbers["n"].log


def test_a_name_has_one_column_a_level_and_one_never_met_has_none() -> None:
    names = Points(3, {}, {"cache": np.array(["cold", "warm", "cold"])})
    code = learn(names)
    assert code.columns() == ["cache=cold", "cache=warm"]
    assert code.coded(names).tolist() == [[1, 0], [0, 1], [1, 0]]
    assert code.coded(Points(1, {}, {"cache": np.array(["hot"])})).tolist() == [[0, 0]]


def test_a_missing_number_stands_in_the_middle_and_says_so() -> None:
    code = learn(numbers(1, 3, np.nan))
    assert code.columns() == ["n", "n missing"]
    assert code.coded(numbers(np.nan)).tolist() == [[0, 1]]


def test_factors_that_part_the_rows_alike_are_one() -> None:
    told = [Measurement(str(at), str(at), {"a": float(at), "b": f"level {at}", "one": 1.0}, 1.0 + at) for at in range(5)]
    made = table(told, "time_s")
    assert (list(made.points.numbers), list(made.points.names), made.copies) == (["a"], [], {"a": ("b",)})


def test_a_name_of_every_row_is_a_label_and_no_factor() -> None:
    told = [Measurement(str(at), str(at), {"a": float(at % 2), "label": f"x{at}"}, 1.0) for at in range(MOST_LEVELS + 1)]
    made = table(told, "time_s")
    assert list(made.points.names) == []
    assert [note.split()[0] for note in made.notes] == ["label"]


def test_values_are_seen_by_logarithms_only_if_all_are_above_0() -> None:
    told = [Measurement(str(at), str(at), {"a": float(at)}, float(at)) for at in range(3)]
    assert not table(told, "wait_s").log
    assert table(told[1:], "wait_s").log


def test_rows_are_thinned_evenly_by_group() -> None:
    many = [Measurement("a", "1", {}, 1.0)] * 90 + [Measurement("b", "1", {}, 1.0)] * 10
    kept = thinned(many, 20)
    assert (len(kept), sum(one.configuration == "b" for one in kept)) == (20, 10)


def test_what_lies_beyond_all_that_was_measured_is_named(snapshot: SnapshotAssertion) -> None:
    """On the diagonal everything was measured, and the corner beside it was not, though both numbers lie within their ranges."""
    cache = Points(2, {}, {"cache": np.array(["cold", "warm"])})
    line = np.arange(10.0)
    never_together = Points(4, {"n": np.arange(4.0)}, {"a": np.array([*"xxyy"]), "b": np.array([*"uvuu"])})
    found = {
        "numbers": beyond(numbers(1, 2, 3), numbers(2, 1, 5, 0.5, np.nan)),
        "a level": beyond(cache, Points(1, {}, {"cache": np.array(["hot"])})),
        "a corner": beyond(Points(10, {"a": line, "b": line}, {}), Points(2, {"a": np.array([4.5, 0]), "b": np.array([4.5, 9])}, {})),
        "names": beyond(never_together, Points(1, {"n": np.array([1.5])}, {"a": np.array(["y"]), "b": np.array(["v"])})),
    }
    assert {case: [bool(one) for one in some] for case, some in found.items()} == {
        "numbers": [False, False, True, True, True],
        "a level": [True],
        "a corner": [False, True],
        "names": [False],
    }
    assert found == snapshot
