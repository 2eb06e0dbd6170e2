"""Least squares and sums of squares, against formulas of books and against statsmodels' own tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.anova import anova_lm

from analysis.studies.keys import frame as model
from analysis.studies.keys.effects import of_table
from analysis.studies.keys.terms import Factor, Observed, Row


def observed(rows: list[Row], levels: dict[str, tuple[str, ...]]) -> Observed:
    """A table of another study."""
    factors = tuple(Factor(name, letter, known) for (name, known), letter in zip(levels.items(), "ABCDE", strict=False))
    points = {row.name: row.levels for row in rows}
    return Observed("study", "y", "", "table", "y", None, "raw", None, factors, points, tuple(rows))


@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_the_error_is_block_by_point(blocks: int, points: int, seed: int) -> None:
    """With b complete blocks of n points: Σ (y - block mean - point mean + mean)², (b-1)(n-1) degrees of freedom."""
    y = np.random.default_rng(seed).normal(5, 1, (blocks, points))
    where = [(str(b), str(p)) for b in range(blocks) for p in range(points)]
    ss, df = model.pure_error(model.base_columns([b for b, _ in where]), [p for _, p in where], y.ravel())
    rest = y - y.mean(1, keepdims=True) - y.mean(0) + y.mean()
    assert ss == pytest.approx(float((rest**2).sum()), rel=1e-9)
    assert df == (blocks - 1) * (points - 1)


def test_without_blocks_the_error_is_within_points() -> None:
    """Cells 1, 3 and 4, 8 scatter by (1 + 1) + (4 + 4) = 10 about their points' means 2 and 6, with 2 degrees of freedom."""
    ss, df = model.pure_error(model.base_columns([""] * 4), ["a", "a", "b", "b"], np.array([1.0, 3.0, 4.0, 8.0]))
    assert ss == pytest.approx(10)
    assert df == 2


@given(st.integers(0, 2**32 - 1))
def test_unbalanced_tables_have_the_type_2_sums_of_squares_of_statsmodels(seed: int) -> None:
    """Two factors of three and two levels, three to five cells a combination, random; `anova_lm(typ=2)` is the reference."""
    rng = np.random.default_rng(seed)
    rows = [
        Row(f"{a}{b}", (a, b), "", float(rng.normal(10 + 2 * (a == "y") - (b == "v") * (a == "z"), 1)))
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
    rows = [Row(a + b, (a, b), "", value) for a, b, value in zip("xyxyy", "uuvvv", (1.0, 3.0, 2.0, 5.0, 6.0), strict=True)]
    (found,) = of_table(observed(rows, {"one": ("x", "y"), "two": ("u", "v")}))
    assert [(row.name, row.df) for row in found.anova if row.name == "error"] == [("error", 1)]
    assert all(row.f is None for row in found.anova)
    assert found.error.startswith("none: one repeat is too few")


def test_certified_digits_survive_a_level_of_a_million() -> None:
    """NIST's hardest tables shift small numbers far from nought: F must not change when 10⁶ is added to every value."""
    rng = np.random.default_rng(3)
    values = np.round(rng.normal(0, 1, (3, 6)), 1)

    def f(shift: float) -> float:
        rows = [Row(name, (name,), "", float(value) + shift) for name, group in zip("abc", values, strict=True) for value in group]
        (found,) = of_table(observed(rows, {"group": ("a", "b", "c")}))
        return found.anova[0].f or 0.0

    assert f(1e6) == pytest.approx(f(0), rel=1e-8)


@pytest.mark.parametrize(
    ("levels", "coded"),
    [(2, [[-1], [1]]), (3, [[-1, -1], [1, 0], [0, 1]])],
)
def test_levels_are_coded_to_sum_to_nought(levels: int, coded: list[list[int]]) -> None:
    names = list("abc")[:levels]
    assert model.coded_levels(names, names).tolist() == coded
