"""Published examples, to the digits that were published: each by the functions and, as a table, by the command.

Jain: R. Jain, The Art of Computer Systems Performance Analysis, Wiley 1991. NIST: Statistical Reference Datasets, certified values.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from analysis.__main__ import main
from analysis.studies.keys import aliases as coding
from analysis.studies.keys.effects import of_table
from analysis.studies.keys.table import Columns, read_table
from control.t_test import t_quantile

if TYPE_CHECKING:
    from analysis.studies.keys.terms import Effects

EXACT = 1e-9
# Percentages in print have two decimals.
PRINTED = 0.005


def standard_order(factors: int) -> list[tuple[int, ...]]:
    """All points, the first factor changing fastest: (-1, -1), (1, -1), (-1, 1), (1, 1)."""
    return [tuple(reversed(point)) for point in itertools.product((-1, 1), repeat=factors)]


def table(folder: Path, names: Sequence[str], rows: Sequence[tuple[Sequence[object], float]]) -> Path:
    path = folder / "results.csv"
    path.write_text("\n".join([",".join([*names, "y"]), *(",".join(map(str, [*point, y])) for point, y in rows)]) + "\n")
    return path


def analysed(path: Path, names: Sequence[str], capsys: pytest.CaptureFixture[str]) -> Effects:
    (found,) = of_table(read_table(path, Columns("y", tuple(names))))
    assert main(["effects", str(path), "--response", "y", "--factors", ",".join(names), "--json"]) == 0
    (said,) = json.loads(capsys.readouterr().out)["effects"]
    assert [(one["label"], one["effect"], one["p_adjusted"]) for one in said["terms"]] == [
        (one.label, one.effect, one.p_adjusted) for one in found.terms
    ]
    assert [(one["name"], one["ss"], one["f"]) for one in said["anova"]] == [(one.name, one.ss, one.f) for one in found.anova]
    assert said["sentence"] == found.sentence
    return found


def coefficients(found: Effects) -> dict[str, float | None]:
    return {term.label: term.coefficient for term in found.terms}


def squares(found: Effects) -> dict[str, float]:
    return {row.name: row.ss for row in found.anova}


def percentages(found: Effects) -> dict[str, float]:
    return {row.name: 100 * row.share for row in found.anova if row.name != "total"}


def test_v1_two_factors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Jain, ex. 17.1-17.2: MIPS by memory and cache.

    q0 = (15+45+25+75)/4 = 40, qA = (-15+45-25+75)/4 = 20, qB = (-15-45+25+75)/4 = 10, qAB = (15-45-25+75)/4 = 5; a sum of squares is
    4 q²: 1600, 400, 100, together 2100.
    """
    names = ("mem", "cache")
    found = analysed(table(tmp_path, names, list(zip(standard_order(2), (15, 45, 25, 75), strict=True))), names, capsys)
    assert found.mean == pytest.approx(40, rel=EXACT)
    assert coefficients(found) == pytest.approx({"mem": 20, "cache": 10, "mem:cache": 5}, rel=EXACT)
    assert squares(found) == pytest.approx({"mem": 1600, "cache": 400, "mem:cache": 100, "total": 2100}, rel=EXACT)
    assert percentages(found) == pytest.approx({"mem": 76.19, "cache": 19.05, "mem:cache": 4.76}, abs=PRINTED)


def test_v2_two_factors_replicated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Jain, ch. 18: the same with three runs a cell.

    Cell means 15, 48, 24, 77, so q0 = 164/4 = 41, qA = (-15+48-24+77)/4 = 21.5, qB = (-15-48+24+77)/4 = 9.5, qAB = (15-48-24+77)/4 = 5.
    A sum of squares is 12 q²: SS0 = 20172, 5547, 1083, 300. SSE = (0+9+9) + (9+0+9) + (1+16+25) + (4+4+16) = 102 with 4 · 2 = 8 df.
    s_e = √(102/8) = 3.5707, s_q = s_e/√12 = 1.0308, and 90 % of q is ± t(0.95; 8) s_q = ± 1.917. F = SS / 12.75.
    """
    names = ("mem", "cache")
    cells = ((15, 18, 12), (45, 48, 51), (25, 28, 19), (75, 75, 81))
    rows = [(point, y) for point, ys in zip(standard_order(2), cells, strict=True) for y in ys]
    found = analysed(table(tmp_path, names, rows), names, capsys)
    assert found.mean == pytest.approx(41, rel=EXACT)
    assert 12 * found.mean**2 == pytest.approx(20172, rel=EXACT)
    assert coefficients(found) == pytest.approx({"mem": 21.5, "cache": 9.5, "mem:cache": 5}, rel=EXACT)
    expected = {"mem": 5547, "cache": 1083, "mem:cache": 300, "error": 102, "total": 7032}
    assert squares(found) == pytest.approx(expected, rel=EXACT)
    assert squares(found)["total"] + 20172 == pytest.approx(27204, rel=EXACT)
    assert percentages(found) == pytest.approx({"mem": 78.88, "cache": 15.40, "mem:cache": 4.27, "error": 1.45}, abs=PRINTED)
    assert found.error_df == 8
    assert found.error_ms == pytest.approx(3.5707**2, rel=1e-4)
    mean_half = t_quantile(0.95, 8) * (12.75 / 12) ** 0.5
    assert (41 - mean_half, 41 + mean_half) == pytest.approx((39.083, 42.917), abs=5e-4)
    for term, low, high in zip(found.terms, (19.583, 7.583, 3.083), (23.417, 11.417, 6.917), strict=True):
        assert term.se is not None
        assert term.coefficient is not None
        s_q = term.se / (term.effect / term.coefficient)
        assert s_q == pytest.approx(1.0308, abs=5e-5)
        half = t_quantile(0.95, 8) * s_q
        assert (term.coefficient - half, term.coefficient + half) == pytest.approx((low, high), abs=5e-4)
    f = {row.name: row.f for row in found.anova if row.f is not None}
    assert f == pytest.approx({"mem": 5547 / 12.75, "cache": 1083 / 12.75, "mem:cache": 300 / 12.75}, rel=EXACT)
    assert list(f.values()) == pytest.approx([435.06, 84.94, 23.53], abs=0.005)


def test_v3_three_factors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Jain, ch. 17: memory A, cache B, processors C. A sum of squares is 8 q²: 800, 200, 3200, 200, 32, 72, 8, together 4512."""
    names = ("A", "B", "C")
    responses = (14, 22, 10, 34, 46, 58, 50, 86)
    found = analysed(table(tmp_path, names, list(zip(standard_order(3), responses, strict=True))), names, capsys)
    assert found.mean == pytest.approx(40, rel=EXACT)
    expected = {"A": 10, "B": 5, "C": 20, "A:B": 5, "A:C": 2, "B:C": 3, "A:B:C": 1}
    assert coefficients(found) == pytest.approx(expected, rel=EXACT)
    assert squares(found)["total"] == pytest.approx(4512, rel=EXACT)
    shares = dict(zip(expected, (17.73, 4.43, 70.92, 4.43, 0.71, 1.60, 0.18), strict=True))
    assert percentages(found) == pytest.approx(shares, abs=PRINTED)


def test_v4_seven_factors_in_eight_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Jain, ex. 19.1: D = AB, E = AC, F = BC, G = ABC.

    B explains 8 · 4.375² / 3421.875 = 4.47 %. Slides that many courses hand on print 4.74 %: a misprint, with which the percentages come to
    100.25. Each main effect stands for three interactions of two as well, and each of these is named.
    """
    names = tuple("ABCDEFG")
    points = [(a, b, c, a * b, a * c, b * c, a * b * c) for a, b, c in standard_order(3)]
    found = analysed(table(tmp_path, names, list(zip(points, (20, 35, 7, 42, 36, 50, 45, 82), strict=True))), names, capsys)
    assert found.mean == pytest.approx(39.625, rel=EXACT)
    expected = dict(zip(names, (12.625, 4.375, 13.625, 5.375, 0.125, 5.875, 0.375), strict=True))
    assert coefficients(found) == pytest.approx(expected, rel=EXACT)
    assert squares(found)["total"] == pytest.approx(3421.875, rel=EXACT)
    shares = dict(zip(names, (37.26, 4.47, 43.40, 6.75, 0.00, 8.07, 0.03), strict=True))
    assert percentages(found) == pytest.approx(shares, abs=PRINTED)
    assert sum(percentages(found).values()) == pytest.approx(100, rel=EXACT)
    assert found.resolution == 3
    aliases = {term.label: set(term.aliases) for term in found.terms}
    assert aliases["A"] == {("B", "D"), ("C", "E"), ("F", "G")}
    assert aliases["G"] == {("A", "F"), ("B", "E"), ("C", "D")}


@pytest.mark.parametrize(
    ("last", "expected", "of_a", "of_ab"),
    [((0, 1, 2), 4, [(1, 2, 3)], [(2, 3)]), ((0, 1), 3, [(1, 3)], [(3,)])],
    ids=["I=ABCD", "I=ABD"],
)
def test_v4_the_algebra_of_confounding(
    last: tuple[int, ...], expected: int, of_a: list[tuple[int, ...]], of_ab: list[tuple[int, ...]]
) -> None:
    """2^(4-1): with D = ABC, I = ABCD, A = BCD, AB = CD, resolution IV; with D = AB, I = ABD, A = BD, AB = D, resolution III."""
    base = np.array(standard_order(3), float)
    points = np.column_stack([base, coding.column(base, last)])
    defining = coding.defining_words(points)
    assert defining == [(*last, 3)]
    assert coding.resolution(defining) == expected
    assert coding.aliases((0,), defining, 3) == of_a
    assert coding.aliases((0, 1), defining, 2) == of_ab


def test_v5_one_factor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Jain, ex. 20.1: code sizes on processors R, V, Z.

    Means 174.4, 163.2, 225.4; grand mean 187.667; SSA = 5 · (13.267² + 24.467² + 37.733²) = 10992.13, SST = 633639 - 15 · 187.667².
    """
    sizes = {"R": (144, 120, 176, 288, 144), "V": (101, 144, 211, 288, 72), "Z": (130, 180, 141, 374, 302)}
    found = analysed(table(tmp_path, ["cpu"], flat(sizes)), ["cpu"], capsys)
    assert found.mean == pytest.approx(187.667, abs=5e-4)
    assert sum(y * y for _, y in flat(sizes)) == 633_639
    effects = {level.level: level.deviation for level in found.levels}
    assert effects == pytest.approx({"R": -13.267, "V": -24.467, "Z": 37.733}, abs=5e-4)
    assert squares(found) == pytest.approx({"cpu": 10992.13, "error": 94365.20, "total": 105357.33}, abs=0.005)
    assert percentages(found)["cpu"] == pytest.approx(10.43, abs=PRINTED)
    row = found.anova[0]
    assert (row.f, row.p) == pytest.approx((0.69891, 0.51628), abs=5e-6)
    assert (row.df, found.error_df) == (2, 12)
    assert found.error_ms == pytest.approx(88.678**2, rel=1e-5)


def test_v6_certified_variance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """NIST StRD SiRstv: resistivity by five instruments; all of the variation is in the fifth digit, where careless sums lose it."""
    resistivity = {
        "1": (196.3052, 196.1240, 196.1890, 196.2569, 196.3403),
        "2": (196.3042, 196.3825, 196.1669, 196.3257, 196.0422),
        "3": (196.1303, 196.2005, 196.2889, 196.0343, 196.1811),
        "4": (196.2795, 196.1748, 196.1494, 196.1485, 195.9885),
        "5": (196.2119, 196.1051, 196.1850, 196.0052, 196.2090),
    }
    found = analysed(table(tmp_path, ["instrument"], flat(resistivity)), ["instrument"], capsys)
    between, within, _ = found.anova
    assert (between.df, within.df) == (4, 20)
    assert between.ss == pytest.approx(0.0511462616, rel=EXACT)
    assert within.ss == pytest.approx(0.21663656, rel=EXACT)
    assert between.f == pytest.approx(1.18046237440, rel=EXACT)


def flat(groups: Mapping[str, Sequence[float]]) -> list[tuple[tuple[str], float]]:
    return [((name,), value) for name, values in groups.items() for value in values]


def test_one_factor_with_unequally_many_cells_deviates_from_the_mean_of_the_cells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Jain, ch. 20.7: of 4, 2 and 3 cells with means 11.5, 21 and 6 the mean is 106/9, not 38.5/3; 4·.278² + 2·9.22² + 3·5.78² = 270.6."""
    rows = [((level,), y) for level, values in (("a", (10, 12, 11, 13)), ("b", (20, 22)), ("c", (5, 7, 6))) for y in values]
    found = analysed(table(tmp_path, ("how",), rows), ("how",), capsys)
    assert found.mean == pytest.approx(106 / 9, rel=EXACT)
    assert [one.deviation for one in found.levels] == pytest.approx([11.5 - 106 / 9, 21 - 106 / 9, 6 - 106 / 9], rel=EXACT)
    assert sum(one.n * one.deviation**2 for one in found.levels) == pytest.approx(squares(found)["how"], rel=EXACT)
    assert squares(found)["how"] + squares(found)["error"] == pytest.approx(squares(found)["total"], rel=EXACT)
    assert not [note for note in found.notes if "add up" in note]
