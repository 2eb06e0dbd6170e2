"""Aliases of a two-level design from its points: against brute force and published designs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.keys.aliases import (
    aliases,
    column,
    defining_words,
    effects_up_to,
    partly_mixed,
    resolution,
)
from analysis.terms import NotComparable
from tests.made_designs import plackett_burman_12


def points_of(base: int, generators: list[tuple[int, ...]], signs: list[int]) -> np.ndarray:
    """Points of the base factors, the first changing slowest; other factors are their products."""
    full = np.array(list(product((-1.0, 1.0), repeat=base)))
    return np.column_stack(
        [full, *(sign * column(full, word) for word, sign in zip(generators, signs, strict=True))]
    )


@st.composite
def fractions(draw: st.DrawFn) -> np.ndarray:
    base = draw(st.integers(1, 4))
    words = st.lists(st.integers(0, base - 1), min_size=1, max_size=base, unique=True).map(
        lambda word: tuple(sorted(word))
    )
    generators = draw(st.lists(words, max_size=3))
    signs = draw(
        st.lists(st.sampled_from([-1, 1]), min_size=len(generators), max_size=len(generators))
    )
    points = points_of(base, generators, signs)
    return points[draw(st.permutations(range(len(points))))]


@given(fractions(), st.data())
def test_words_never_change_and_aliases_share_a_column(
    points: np.ndarray, data: st.DataObject
) -> None:
    every = list(effects_up_to(points.shape[1], points.shape[1]))
    words = defining_words(points)
    assert words == [effect for effect in every if len(set(column(points, effect))) == 1]
    assert resolution(words) == (len(words[0]) if words else None)
    effect = data.draw(st.sampled_from(every))
    same = [
        other
        for other in every
        if other != effect and abs(column(points, effect) @ column(points, other)) == len(points)
    ]
    assert [alias for alias in aliases(effect, words, len(every)) if alias] == same


@pytest.mark.parametrize(
    ("last", "shortest", "of_a", "of_ab"),
    [((0, 1, 2), 4, [(1, 2, 3)], [(2, 3)]), ((0, 1), 3, [(1, 3)], [(3,)])],
    ids=["I=ABCD", "I=ABD"],
)
def test_v4_the_algebra_of_confounding(
    last: tuple[int, ...], shortest: int, of_a: list[tuple[int, ...]], of_ab: list[tuple[int, ...]]
) -> None:
    """D = ABC: I = ABCD, A = BCD, AB = CD, resolution IV; D = AB: I = ABD, A = BD, AB = D, III."""
    words = defining_words(points_of(3, [last], [1]))
    assert words == [(*last, 3)]
    assert resolution(words) == shortest
    assert aliases((0,), words, 3) == of_a
    assert aliases((0, 1), words, 2) == of_ab


def test_plackett_burman_mixes_interactions_into_main_effects() -> None:
    """Twelve runs: a main effect and a product of two others agree in 8 or 4: correlation ±1/3."""
    rows = [frozenset[int](), *plackett_burman_12(11).values()]
    points = np.array([[1.0 if at in on else -1.0 for at in range(11)] for on in rows])
    assert np.array_equal(points.T @ points, 12 * np.eye(11))
    assert partly_mixed(points) == pytest.approx(1 / 3)
    assert partly_mixed(points_of(3, [(0, 1)], [1])) == 0


def test_points_that_separate_little_are_not_listed_endlessly() -> None:
    """Two points and 30 factors have 2^29 words."""
    with pytest.raises(NotComparable, match="2 points for 30 factors"):
        defining_words(np.array([[-1.0] * 30, [1.0] * 30]))
