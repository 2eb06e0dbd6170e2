"""Models recover known laws; white boxes do so to the last digit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import PredefinedSplit

from analysis.studies.jobs.prediction.models import learners, mean
from analysis.studies.jobs.prediction.predictions import filled
from analysis.studies.jobs.prediction.tables import (
    LEAST,
    MOST_LEVELS,
    Coding,
    Measurement,
    TooFew,
    beyond,
    folds,
    names_of,
    numbers_of,
    points,
    table,
    thinned,
    weights,
)
from analysis.terms import Refused
from tests.analysis.studies.jobs.prediction.made import BATCHES, law, made_table

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


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
    said = learners(made)[name](made, made.configurations)(asked)
    truth = np.log([law(batch, cache) for batch in BATCHES for cache in ("cold", "warm")])
    assert np.abs(said - truth).max() < 0.05


def test_ridge_follows_the_trend_beyond_what_it_saw() -> None:
    """Batch 64 was never measured; twice the largest measured one takes √2 of its time."""
    made = made_table(noise=0.01)
    (said,) = np.exp(
        learners(made)["ridge"](made, made.configurations)(
            points([{"batch": 64.0, "cache": "warm"}], made)
        )
    )
    assert said == pytest.approx(law(64, "warm"), rel=0.1)


def test_the_baseline_is_the_mean_of_what_models_see() -> None:
    made = made_table()
    (said,) = mean(made, made.runs)(made.points.iloc[[0]])
    assert said == pytest.approx(np.log(made.measured).mean())


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
    said = np.exp(learners(made)["amdahl"](made, made.runs)(made.points))
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
    *told, unknown, never = np.exp(learners(made)["work"](made, made.runs)(asked))
    assert told == pytest.approx([20.5, 70.0])
    assert np.isnan([unknown, never]).all()  # a class that was not measured, and a time below 0


def test_white_boxes_need_times_and_rows_with_their_inputs() -> None:
    waits = table(
        [Measurement(str(at), "r", {"work": float(at)}, float(at)) for at in range(4)], "wait_s"
    )
    assert list(learners(made_table())) == list(learners(waits)) == ["ridge", "trees"]


def test_jobs_of_one_size_tell_no_law_of_work() -> None:
    made = table(
        [
            Measurement(name, "r", {"class": name, "work": work}, work)
            for name, work in (("a", 1.0), ("b", 2.0), ("c", 1.0))
        ],
        "service_s",
    )
    with pytest.raises(Refused, match="the same size"):
        learners(made)["work"](made, made.runs)


FINITE = st.floats(-1e6, 1e6).map(lambda one: round(one, 3))


def numbers(*values: float) -> pd.DataFrame:
    return pd.DataFrame({"n": np.array(values, float)})


@given(st.lists(FINITE, min_size=3, max_size=30).filter(lambda all_: len(set(all_)) > 1))
def test_numbers_are_standardised(values: list[float]) -> None:
    coded = Coding(numbers(*values)).coded(numbers(*values))
    assert coded.mean() == pytest.approx(0, abs=1e-6)
    assert coded.std() == pytest.approx(1, abs=1e-6)


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


def test_a_name_of_every_row_is_a_label_and_no_factor() -> None:
    told = [
        Measurement(str(at), str(at), {"a": float(at % 2), "label": f"x{at}"}, 1.0)
        for at in range(MOST_LEVELS + 1)
    ]
    made = table(told, "time_s")
    assert names_of(made.points) == []
    assert [note.split()[0] for note in made.notes] == ["label"]


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


def test_values_are_seen_by_logarithms_only_if_all_are_above_0() -> None:
    told = [Measurement(str(at), str(at), {"a": float(at)}, float(at)) for at in range(3)]
    assert not table(told, "wait_s").log
    assert table(told[1:], "wait_s").log


def test_rows_are_thinned_evenly_by_group() -> None:
    many = [Measurement("a", "1", {}, 1.0)] * 90 + [Measurement("b", "1", {}, 1.0)] * 10
    kept = thinned(many, 20)
    assert (len(kept), sum(one.configuration == "b" for one in kept)) == (20, 10)


def test_what_lies_beyond_all_that_was_measured_is_named(snapshot: SnapshotAssertion) -> None:
    """Only the diagonal was measured: the corner is beyond, though within both ranges."""
    cache = pd.DataFrame({"cache": np.array(["cold", "warm"])})
    line = np.arange(10.0)
    never_together = pd.DataFrame({"n": np.arange(4.0), "a": [*"xxyy"], "b": [*"uvuu"]})
    found = {
        "numbers": beyond(numbers(1, 2, 3), numbers(2, 1, 5, 0.5, np.nan)),
        "a level": beyond(cache, pd.DataFrame({"cache": np.array(["hot"])})),
        "a corner": beyond(
            pd.DataFrame({"a": line, "b": line}), pd.DataFrame({"a": [4.5, 0.0], "b": [4.5, 9.0]})
        ),
        "names": beyond(never_together, pd.DataFrame({"n": [1.5], "a": ["y"], "b": ["v"]})),
    }
    assert {case: [bool(one) for one in some] for case, some in found.items()} == {
        "numbers": [False, False, True, True, True],
        "a level": [True],
        "a corner": [False, True],
        "names": [False],
    }
    assert found == snapshot


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


@given(GROUPS)
def test_folds_have_equally_many_groups_give_or_take_one(named: list[str]) -> None:
    groups = np.array(named)
    counts = [len(set(groups[test])) for _, test in PredefinedSplit(folds(groups, 4)).split()]
    assert len(counts) == 4
    assert max(counts) - min(counts) <= 1


def test_fewer_than_five_groups_are_refused() -> None:
    with pytest.raises(TooFew, match="4 groups"):
        folds(np.array(list("aabbccdd")))


@given(GROUPS)
def test_each_group_weighs_the_same(named: list[str]) -> None:
    groups = np.array(named)
    assert weights(groups).sum() == pytest.approx(len(set(named)))
