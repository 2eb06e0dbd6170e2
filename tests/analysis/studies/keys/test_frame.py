"""The algebra and least squares beneath designs, against formulas of books and against statsmodels' own tables."""

from __future__ import annotations

import json
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.anova import anova_lm

from analysis.stats import linear
from analysis.studies.keys import aliases as coding
from analysis.studies.keys.effects import of_table
from analysis.studies.keys.terms import DesignFactor, EffectRow, Effects, Observed
from analysis.terms import NotComparable
from fixtures.designs import Factor as Varied
from fixtures.designs import Laid, fractional
from fixtures.terms import TweakSet
from tests.made_designs import plackett_burman_12


def points_of(base: int, generators: list[tuple[int, ...]], signs: list[int]) -> np.ndarray:
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
    factors = points.shape[1]
    constant = [
        effect
        for size in range(1, factors + 1)
        for effect in combinations(range(factors), size)
        if len(set(coding.column(points, effect))) == 1
    ]
    assert coding.defining_words(points) == sorted(constant, key=lambda word: (len(word), word))


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
    assert [one for one in coding.aliases(effect, coding.defining_words(points), factors) if one] == same


def test_a_full_factorial_mixes_nothing() -> None:
    full = points_of(4, [], [])
    assert coding.defining_words(full) == []
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
    with pytest.raises(NotComparable, match="2 points for 30 factors"):
        coding.defining_words(np.array([[-1.0] * 30, [1.0] * 30]))


def observed(rows: list[EffectRow], levels: dict[str, tuple[str, ...]]) -> Observed:
    factors = tuple(DesignFactor(name, letter, known) for (name, known), letter in zip(levels.items(), "ABCDE", strict=False))
    points = {row.name: row.levels for row in rows}
    return Observed("study", "y", "", "table", "y", None, "raw", None, factors, points, tuple(rows))


@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_the_error_is_block_by_point(blocks: int, points: int, seed: int) -> None:
    """With b complete blocks of n points: Σ (y - block mean - point mean + mean)², (b-1)(n-1) degrees of freedom."""
    y = np.random.default_rng(seed).normal(5, 1, (blocks, points))
    where = [(str(b), str(p)) for b in range(blocks) for p in range(points)]
    ss, df = linear.rss([linear.base_columns([b for b, _ in where]), linear.coded_levels([p for _, p in where])], y.ravel())
    rest = y - y.mean(1, keepdims=True) - y.mean(0) + y.mean()
    assert ss == pytest.approx(float((rest**2).sum()), rel=1e-9)
    assert df == (blocks - 1) * (points - 1)


def test_without_blocks_the_error_is_within_points() -> None:
    """Cells 1, 3 and 4, 8 scatter by (1 + 1) + (4 + 4) = 10 about their points' means 2 and 6, with 2 degrees of freedom."""
    ss, df = linear.rss([linear.base_columns([""] * 4), linear.coded_levels(["a", "a", "b", "b"])], np.array([1.0, 3.0, 4.0, 8.0]))
    assert ss == pytest.approx(10)
    assert df == 2


@given(st.integers(0, 2**32 - 1))
def test_unbalanced_tables_have_the_type_2_sums_of_squares_of_statsmodels(seed: int) -> None:
    """Two factors of three and two levels, three to five cells a combination, random; `anova_lm(typ=2)` is the reference."""
    rng = np.random.default_rng(seed)
    rows = [
        EffectRow(f"{a}{b}", (a, b), "", float(rng.normal(10 + 2 * (a == "y") - (b == "v") * (a == "z"), 1)))
        for a in "xyz"
        for b in "uv"
        for _ in range(int(rng.integers(3, 6)))
    ]
    (found,) = of_table(observed(rows, {"one": ("x", "y", "z"), "two": ("u", "v")}))
    frame = pd.DataFrame([(*row.levels, row.value) for row in rows], columns=["one", "two", "y"])
    reference = anova_lm(smf.ols("y ~ C(one, Sum) * C(two, Sum)", frame).fit(), typ=2)
    mine = {row.name: row for row in found.anova}
    for name, term in {"one": "C(one, Sum)", "two": "C(two, Sum)", "one:two": "C(one, Sum):C(two, Sum)", "error": "Residual"}.items():
        assert mine[name].ss == pytest.approx(reference.loc[term, "sum_sq"], rel=1e-8)
        assert mine[name].df == reference.loc[term, "df"]
        if name != "error":
            assert mine[name].f == pytest.approx(reference.loc[term, "F"], rel=1e-8)
            assert mine[name].p == pytest.approx(reference.loc[term, "PR(>F)"], rel=1e-6)


def test_one_repeat_is_not_called_none_where_its_error_has_a_row() -> None:
    """2² with one cell run again: 1 degree of freedom, on which no F stands."""
    rows = [EffectRow(a + b, (a, b), "", value) for a, b, value in zip("xyxyy", "uuvvv", (1.0, 3.0, 2.0, 5.0, 6.0), strict=True)]
    (found,) = of_table(observed(rows, {"one": ("x", "y"), "two": ("u", "v")}))
    assert [(row.name, row.df) for row in found.anova if row.name == "error"] == [("error", 1)]
    assert all(row.f is None for row in found.anova)
    assert found.error.startswith("none: one repeat is too few")


def test_certified_digits_survive_a_level_of_a_million() -> None:
    """NIST's hardest tables shift small numbers far from nought: F must not change when 10⁶ is added to every value."""
    rng = np.random.default_rng(3)
    values = np.round(rng.normal(0, 1, (3, 6)), 1)

    def f(shift: float) -> float:
        rows = [EffectRow(name, (name,), "", float(value) + shift) for name, group in zip("abc", values, strict=True) for value in group]
        (found,) = of_table(observed(rows, {"group": ("a", "b", "c")}))
        return found.anova[0].f or 0.0

    assert f(1e6) == pytest.approx(f(0), rel=1e-8)


@pytest.mark.parametrize(
    ("levels", "coded"),
    [(2, [[-1], [1]]), (3, [[-1, -1], [1, 0], [0, 1]])],
)
def test_levels_are_coded_to_sum_to_nought(levels: int, coded: list[list[int]]) -> None:
    names = list("abc")[:levels]
    assert linear.coded_levels(names).tolist() == coded


METRIC = "throughput_samples_per_s"


def analysed(design: str, laid: Laid, keys: int) -> Effects:
    levels = {"stock": tuple("as found" for _ in range(keys))}
    letters = laid.notes["letters"]
    for point in laid.points:
        levels[point.name] = tuple("as found" if value is None else value for value in point.levels.values())
    factors = tuple(DesignFactor(name, letter, ("as found", "1")) for letter, name in letters.items())
    rows = tuple(
        EffectRow(name, point, str(block), 100 + 7 * block + at % 5 + block * at % 3)
        for block in (1, 2)
        for at, (name, point) in enumerate(levels.items())
    )
    notes = json.loads(json.dumps(laid.notes))
    (found,) = of_table(Observed("s", "w", "p", design, METRIC, "higher", "log", 0.03, factors, levels, rows, (), notes))
    return found


@pytest.mark.parametrize("resolution", [4, 3])
def test_notes_and_points_agree(resolution: int) -> None:
    for keys in range(3, 13):
        factors = [Varied("p", f"vm.key{at}", "sysctl", (None, "1")) for at in range(keys)]
        laid = fractional.points(TweakSet("p"), factors, resolution)
        found = analysed("fractional", laid, keys)
        assert not [note for note in found.notes if "believed" in note]
        assert found.resolution == laid.notes.get("resolution")
        assert {term.label for term in found.terms if term.means == "main"} == {factor.name for factor in factors}
        assert found.orthogonal
