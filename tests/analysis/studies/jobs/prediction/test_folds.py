"""Groups are left out whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.jobs.prediction.tables import LEAST, TooFew, each, folds, weights

GROUPS = st.lists(st.sampled_from("abcdefghijklmnop"), min_size=LEAST, max_size=60).filter(lambda all_: len(set(all_)) >= LEAST)


@given(GROUPS, st.integers(2, 12))
def test_no_row_of_a_group_is_on_both_sides_and_every_row_is_left_out_once(named: list[str], most: int) -> None:
    groups = np.array(named)
    seen = []
    for training, test in each(folds(groups, most)):
        assert not set(groups[training]) & set(groups[test])
        assert len(training) + len(test) == len(groups)
        seen += test.tolist()
    assert sorted(seen) == list(range(len(groups)))


@given(GROUPS)
def test_folds_have_equally_many_groups_give_or_take_one(named: list[str]) -> None:
    groups = np.array(named)
    counts = [len(set(groups[test])) for _, test in each(folds(groups, 4))]
    assert len(counts) == 4
    assert max(counts) - min(counts) <= 1


def test_fewer_than_five_groups_are_refused() -> None:
    with pytest.raises(TooFew, match="4 groups"):
        folds(np.array(list("aabbccdd")))


@given(GROUPS)
def test_each_group_weighs_the_same(named: list[str]) -> None:
    groups = np.array(named)
    assert weights(groups).sum() == pytest.approx(len(set(named)))
