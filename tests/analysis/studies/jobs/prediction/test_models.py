"""Models recover known laws; white boxes do so to the last digit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import PredefinedSplit

from analysis.studies.jobs.prediction.models import (
    LEAST,
    Coding,
    Measurement,
    TooFew,
    folds,
    learners,
    names_of,
    numbers_of,
    points,
    table,
    thinned,
)
from analysis.studies.jobs.prediction.predictions import filled
from tests.analysis.studies.jobs.prediction.made import BATCHES, law, made_table


@pytest.mark.parametrize("name", ["ridge", "trees"])
def test_black_boxes_learn_what_batch_and_cache_do(name: str) -> None:
    made = made_table(noise=0.01)
    asked = points(
        [
            {"batch": float(batch), "cache": cache}
            for batch in BATCHES
            for cache in ("cold", "warm")
        ],
        made,
    )
    said = learners(made)[name](made)(asked)
    truth = np.log([law(batch, cache) for batch in BATCHES for cache in ("cold", "warm")])
    assert np.abs(said - truth).max() < 0.05


def jobs(law_s: dict[str, tuple[float, float, float]]) -> list[Measurement]:
    return [
        Measurement(
            f"{name} {n} {work}",
            "r",
            {"class": name, "replicas": float(n), "work": work},
            start + cost * work * (serial + (1 - serial) / n),
        )
        for name, (start, cost, serial) in law_s.items()
        for n in (1, 2, 4)
        for work in (1.0, 2.0, 5.0)
    ]


def test_amdahls_law_is_found_for_each_class() -> None:
    made = table(jobs({"a": (0.5, 2.0, 0.1), "b": (0.1, 7.0, 0.4)}), "service_s")
    said = np.exp(learners(made)["amdahl"](made)(made.points))
    assert said == pytest.approx(made.measured, rel=1e-3)


def test_the_law_of_work_is_found_exactly() -> None:
    made = table(
        [
            one
            for one in jobs({"a": (0.5, 2.0, 0.0), "b": (0.0, 7.0, 0.0)})
            if one.factors["replicas"] == 1
        ],
        "service_s",
    )
    assert list(learners(made)) == ["ridge", "trees", "work"]
    asked = points(
        [
            {"class": "a", "work": 10.0},
            {"class": "b", "work": 10.0},
            {"class": "c", "work": 1.0},
            {"class": "a", "work": -9.0},
        ],
        made,
    )
    *told, unknown, never = np.exp(learners(made)["work"](made)(asked))
    assert told == pytest.approx([20.5, 70.0])
    assert np.isnan([unknown, never]).all()  # a class that was not measured, and a time below 0


def numbers(*values: float) -> pd.DataFrame:
    return pd.DataFrame({"n": np.array(values, float)})


def test_numbers_over_a_wide_range_are_seen_by_their_logarithms() -> None:
    """1, 4, 16 become equidistant; 1, 2, 3 stay as they are, like all that reaches 0."""
    assert np.diff(Coding(numbers(1, 4, 16)).coded(numbers(1, 4, 16))[:, 0]).std() == pytest.approx(
        0
    )
    assert [
        Coding(numbers(*values)).log.item() for values in ((1, 4, 16), (1, 2, 3), (0, 4, 16))
    ] == [True, False, False]


def test_a_name_has_a_column_per_level_and_none_if_unknown() -> None:
    names = pd.DataFrame({"cache": np.array(["cold", "warm", "cold"])})
    code = Coding(names)
    assert code.coded(names).tolist() == [[1, 0], [0, 1], [1, 0]]
    assert code.coded(pd.DataFrame({"cache": np.array(["hot"])})).tolist() == [[0, 0]]


def test_a_missing_number_stands_in_the_middle_and_says_so() -> None:
    code = Coding(numbers(1, 3, np.nan))
    assert code.coded(numbers(np.nan)).tolist() == [[0, 1]]
    assert Coding(numbers(np.nan, np.nan)).coded(numbers(np.nan)).tolist() == [[0, 1]]


def test_factors_that_part_the_rows_alike_are_one() -> None:
    told = [
        Measurement(str(at), str(at), {"a": float(at), "b": f"level {at}", "one": 1.0}, 1.0 + at)
        for at in range(5)
    ]
    made = table(told, "time_s")
    assert (numbers_of(made.points), names_of(made.points), made.copies) == (
        ["a"],
        [],
        {"a": ("b",)},
    )


def test_missing_values_are_the_commonest_of_the_agreeing_rows() -> None:
    """Of three cold rows two are png, all warm ones jpg; batch 64, never measured, is ignored."""
    levels = [
        ("cold", "png"),
        ("cold", "png"),
        ("cold", "jpg"),
        ("warm", "jpg"),
        ("warm", "jpg"),
        ("warm", "jpg"),
    ]
    told = [
        Measurement(str(at), str(at), {"batch": at % 2, "cache": cache, "format": form}, 1.0)
        for at, (cache, form) in enumerate(levels)
    ]
    made = table(told, "time_s")
    assert filled(made, {"batch": 64.0, "cache": "cold"})["format"] == "png"
    assert filled(made, {"batch": 64.0})["format"] == "jpg"


def test_rows_are_thinned_evenly_by_group() -> None:
    many = [Measurement("a", "1", {}, 1.0)] * 90 + [Measurement("b", "1", {}, 1.0)] * 10
    kept = thinned(many, 20)
    assert (len(kept), sum(one.configuration == "b" for one in kept)) == (20, 10)


GROUPS = st.lists(st.sampled_from("abcdefghijklmnop"), min_size=LEAST, max_size=60).filter(
    lambda all_: len(set(all_)) >= LEAST
)


@given(GROUPS, st.integers(2, 12))
def test_no_group_is_on_both_sides_and_each_row_is_left_out_once(
    named: list[str], most: int
) -> None:
    groups = np.array(named)
    seen = []
    for training, test in PredefinedSplit(folds(groups, most)).split():
        assert not set(groups[training]) & set(groups[test])
        assert len(training) + len(test) == len(groups)
        seen += test.tolist()
    assert sorted(seen) == list(range(len(groups)))


def test_fewer_than_five_groups_are_refused() -> None:
    with pytest.raises(TooFew, match="4 groups"):
        folds(np.array(list("aabbccdd")))
