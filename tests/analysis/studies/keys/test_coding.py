"""What a design cannot tell apart, worked out from its points."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.keys import frame as coding
from tests.made_designs import plackett_burman_12


def points_of(base: int, generators: list[tuple[int, ...]], signs: list[int]) -> np.ndarray:
    """A fraction: full in the base factors, each further one the product of some of them, up to its sign."""
    full = np.array(list(product((-1.0, 1.0), repeat=base)))
    return np.column_stack([full, *(sign * coding.column(full, one) for one, sign in zip(generators, signs, strict=True))])


@st.composite
def fractions(draw: st.DrawFn) -> np.ndarray:
    base = draw(st.integers(1, 4))
    words = st.lists(st.integers(0, base - 1), min_size=1, max_size=base, unique=True).map(lambda one: tuple(sorted(one)))
    generators = draw(st.lists(words, max_size=3))
    signs = draw(st.lists(st.sampled_from([-1, 1]), min_size=len(generators), max_size=len(generators)))
    points = points_of(base, generators, signs)
    rows = draw(st.permutations(range(len(points))))
    return points[rows]


@given(fractions())
def test_words_are_exactly_the_products_that_never_change(points: np.ndarray) -> None:
    """Against trying every product of factors, for any fraction, its generators' signs and the order of its runs."""
    factors = points.shape[1]
    constant = [
        effect
        for size in range(1, factors + 1)
        for effect in combinations(range(factors), size)
        if len(set(coding.column(points, effect))) == 1
    ]
    assert coding.words(points) == sorted(constant, key=lambda word: (len(word), word))


@given(fractions(), st.data())
def test_aliases_are_exactly_the_effects_with_the_same_column(points: np.ndarray, data: st.DataObject) -> None:
    factors = points.shape[1]
    effect = data.draw(st.sampled_from(list(coding.effects_up_to(factors, 3))))
    mine = coding.column(points, effect)
    same = [
        other
        for other in coding.effects_up_to(factors, factors)
        if other != effect and abs(float(mine @ coding.column(points, other))) == len(points)
    ]
    assert [one for one in coding.aliases(effect, coding.words(points), factors) if one] == same


def test_a_full_factorial_mixes_nothing() -> None:
    full = points_of(4, [], [])
    assert coding.words(full) == []
    assert coding.resolution([]) is None


def test_plackett_burman_mixes_a_third_of_each_interaction_with_the_main_effects() -> None:
    """In twelve runs a main effect's column and that of two others' product agree in 8 or 4 of 12: correlation ±1/3."""
    rows = [frozenset[int](), *plackett_burman_12(11).values()]
    points = np.array([[1.0 if at in on else -1.0 for at in range(11)] for on in rows])
    assert np.array_equal(points.T @ points, 12 * np.eye(11))
    assert coding.partly_mixed(points) == pytest.approx(1 / 3)
    assert coding.partly_mixed(points_of(3, [(0, 1)], [1])) == 0


def test_points_that_tell_hardly_anything_apart_are_not_listed_for_ever() -> None:
    """Two points and 30 factors have 2^29 words."""
    with pytest.raises(ValueError, match="2 points for 30 factors"):
        coding.words(np.array([[-1.0] * 30, [1.0] * 30]))
