"""Half-normal plot, main effects, interactions: the arithmetic is shown."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from analysis.plots import factors, half_normal, interactions, main_effects
from tests import made_effects as made
from tests.analysis.plots.conftest import scene_with
from tests.analysis.plots.reading import lines_of, points, refusal, said


def test_half_normal_places_each_size_at_its_expected_quantile() -> None:
    """Seven effects: the i-th of them is expected where the half-normal has (i - 1/2)/7; the largest at 1.80 standard errors."""
    expected = factors.quantiles(7)
    assert expected[-1] == pytest.approx(1.8027, abs=1e-4)
    chance = np.sort(np.abs(np.random.default_rng(1).normal(size=(20_000, 7))), axis=1).mean(axis=0)
    assert expected == pytest.approx(chance, abs=0.1)


@pytest.mark.parametrize("replicated", [False, True])
def test_what_is_beyond_the_margin_of_all_is_named_with_its_sign(*, replicated: bool) -> None:
    effects = made.factorial({"vm.swappiness": -0.1, "vm.dirty_ratio": 0.03}, replicated=replicated)
    figure = half_normal.draw(scene_with(effects))
    axes = figure.axes[0]
    assert points(lines_of(axes, "v")[0])[0][0] == pytest.approx(10.0)
    assert max(size for line in lines_of(axes, "o") for size, _ in points(line)) <= max(factors.dots_of(effects).family or 0, 3.0)
    bold = [one.get_text() for one in axes.texts if one.get_fontweight() == "bold"]
    assert bold == ["vm.swappiness \N{MINUS SIGN}10.0"]
    assert ("Lenth" in said(figure)) == (not replicated)


def test_margins_of_replicated_effects_are_students_and_sidaks() -> None:
    """18 degrees of freedom, 10 effects, standard error 1 %: t = 2.101 for one, 3.186 at 1 - (1 - 0.95^(1/10))/2 for all."""
    dots = factors.dots_of(made.factorial({}))
    assert dots.single == pytest.approx(2.1009, abs=1e-3)
    assert dots.family == pytest.approx(3.186, abs=2e-3)
    assert len(dots.names) == 10


def test_an_interaction_is_on_the_scale_of_a_main_effect() -> None:
    """As its contrast has the same error: half of what the table says."""
    pair = ("vm.swappiness", "vm.dirty_ratio")
    effects = replace(made.factorial({}, together={pair: 0.12}), lenth=None)
    terms = tuple(replace(one, coefficient=one.effect / 4) if one.means == "interaction" else one for one in effects.terms)
    dots = factors.dots_of(replace(effects, terms=terms))
    assert (dots.names[-1], dots.sizes[-1]) == ("vm.swappiness × vm.dirty_ratio", pytest.approx(6.0))


def test_main_effects_are_the_levels_means_on_one_scale() -> None:
    effects = made.factorial({"vm.dirty_ratio": 0.1})
    figure = main_effects.draw(scene_with(effects))
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    line = next(line for line in lines_of(figure.axes[0], "o") if len(points(line)) == 2)
    assert [y for _, y in points(line)] == pytest.approx([made.BASE * math.exp(-0.05), made.BASE * math.exp(0.05)])
    assert [one.get_text() for one in figure.axes[0].get_xticklabels()] == ["as found", "40"]


def test_noise_does_not_fill_a_picture() -> None:
    """Where nothing was found the margin is in view all the same: lines that differ by less look flat."""
    low, high = main_effects.draw(scene_with(made.factorial({}, se=0.0001))).axes[0].get_ylim()
    assert low < made.BASE / 1.03 < made.BASE * 1.03 < high


def test_the_strongest_interaction_comes_first_with_a_line_a_level() -> None:
    """Gains of 0, nothing but together: with the other as found the key raises by 0.1, with the other set it lowers by 0.1."""
    pair = ("vm.swappiness", "vm.dirty_ratio")
    effects = made.factorial(dict.fromkeys(made.KEYS, 0.0), together={pair: -0.2})
    axes = interactions.draw(scene_with(effects)).axes[0]
    found, changed = ([y for _, y in points(line)] for mark in "os" for line in lines_of(axes, mark))
    assert [math.log(found[1] / found[0]), math.log(changed[1] / changed[0])] == [pytest.approx(0.1), pytest.approx(-0.1)]


def test_intervals_of_pairs_stand_on_the_common_error() -> None:
    """Four cells at a pair of levels, error 2 % a cell: half a width of t(18) = 2.101 times 1 %."""
    axes = interactions.draw(scene_with(made.factorial({}))).axes[0]
    ends = next(points(line) for line in axes.lines if line.get_linewidth() == 1.4 and len(points(line)) == 2)
    assert math.log(ends[1][1] / ends[0][1]) == pytest.approx(2 * 2.1009 * 0.01, rel=1e-3)


def test_what_a_design_cannot_show_is_refused_and_what_averages_would_hide_is_said() -> None:
    together = made.factorial({}, together={("vm.swappiness", "vm.dirty_ratio"): -0.2})
    screening = scene_with(made.factorial({}, design="screening"))
    two = scene_with(made.factorial({}, keys={"vm.swappiness": "1", "vm.x": "2"}, design="screening"))
    assert refusal(half_normal, two)
    assert refusal(interactions, screening)
    assert "vm.swappiness × vm.dirty_ratio" in said(main_effects.draw(scene_with(together))).replace("\n", " ")
