"""Pictures of designs over keys: each number that is drawn is that of the effects, and nothing lies over anything else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from analysis.load import from_json
from analysis.plots import fitting, half_normal, interactions, key_effects, main_effects, pictures
from analysis.plots.scene import scene_of
from analysis.plots.style import NARROW, WIDTH
from analysis.studies.keys import pictures as keys_pictures
from tests import made_designs as designs
from tests import made_effects as made
from tests.analysis.plots.conftest import scene_with
from tests.analysis.plots.reading import faults, lines_of, points, refusal, said
from tests.synthetic import AGAIN, STOCK, Made, saved_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from analysis.studies.keys.terms import Effects

TWELVE = dict.fromkeys(
    (
        "net.ipv4.tcp_congestion_control",
        "net.ipv4.tcp_slow_start_after_idle",
        "kernel.sched_autogroup_enabled",
        "script:set-transparent-hugepages",
        "vm.dirty_background_ratio",
        "kernel.numa_balancing",
        "vm.zone_reclaim_mode",
        "vm.overcommit_memory",
        "net.core.default_qdisc",
        "kernel.nmi_watchdog",
        "vm.dirty_ratio",
        "a-very-long-name.of-a-key.that-nobody-would-choose.but-somebody-will",
    ),
    "1",
)
GUILTY = "net.ipv4.tcp_congestion_control"
OVER_KEYS = {"key_effects", "half_normal", "main_effects", "interactions"}


def values(axes: Axes, markers: str = "^vsoD") -> list[float]:
    """Where marks stand along the axis, from above."""
    return [points(line)[0][0] for line in axes.lines if str(line.get_marker()) in markers and len(points(line)) == 1]


# What holds of all of them


@pytest.mark.parametrize("name", sorted(OVER_KEYS))
@pytest.mark.parametrize(
    "effects",
    [
        pytest.param([made.factorial({}), made.factorial({}, workload="w" * 90, replicated=False)], id="nothing found"),
        pytest.param(
            [
                made.factorial(
                    {GUILTY: 0.05, "vm.dirty_ratio": -0.051, "kernel.numa_balancing": 0.049},
                    keys=TWELVE,
                    together={(GUILTY, "vm.dirty_ratio"): -0.102},
                    replicated=False,
                )
            ],
            id="12 keys, several of a size",
        ),
    ],
)
def test_nothing_is_cut_and_nothing_lies_over_anything_else(name: str, effects: Sequence[Effects]) -> None:
    for width in (WIDTH, NARROW):
        assert faults(pictures()[name].draw(scene_with(*effects), width), width) == []


def test_a_run_without_a_design_is_refused_and_named_designs_are_left_out_of_it() -> None:
    scene = scene_of([from_json(saved_run(Made(arms=(STOCK, AGAIN))), "matrix.json")])
    assert scene.effects == {}
    assert not OVER_KEYS & fitting(scene.runs).keys()
    assert all("took no tweak set apart" in refusal(pictures()[name], scene) for name in OVER_KEYS)


def test_effects_that_were_refused_say_why() -> None:
    refused = replace(made.factorial({}), terms=(), levels=(), pairs=(), refusal="every cell failed.")
    assert refusal(key_effects, scene_with(refused)) == "every cell failed"


def test_a_real_analysis_is_drawn_from_cells_to_page() -> None:
    """Two workloads, a point that failed in every block: the pictures of the design, and of its whole sets."""
    keys = designs.Keys(
        {"vm.swappiness": -0.1, GUILTY: 0.0, "vm.dirty_ratio": 0.0, "kernel.numa_balancing": 0.0},
        broken={(f"{designs.PROFILE}.p03", block): ("failed", "out of memory") for block in (1, 2, 3)},
    )
    saved = designs.designed("factorial", keys, designs.factorial(4), Made(workloads=("cnn_train", "lora_finetune"), blocks=3))
    scene = scene_of([from_json(saved, "run.json")])
    chosen = fitting(scene.runs)
    assert "half_normal" in chosen
    drawn = {name: chosen[name].draw(scene) for name in chosen.keys() & {*OVER_KEYS, "parameters", "forest", "run_order"}}
    assert {name: faults(figure) for name, figure in drawn.items()} == {name: [] for name in drawn}
    assert len(values(drawn["key_effects"].axes[0])) > 4


# Effect of each key


def test_each_key_stands_where_its_gain_is_the_strongest_above() -> None:
    effects = made.factorial({"vm.swappiness": 0.02, "vm.dirty_ratio": -0.1})
    axes = key_effects.draw(scene_with(effects)).axes[0]
    mains = sorted((one for one in effects.terms if one.means == "main"), key=lambda one: -abs(one.effect))
    assert values(axes)[:4] == [pytest.approx(100 * math.expm1(one.effect)) for one in mains]
    intervals = [[x for x, _ in points(line)] for line in axes.lines if line.get_linewidth() == 1.6 and len(points(line)) == 2]
    assert intervals[0] == pytest.approx([100 * math.expm1(-0.121), 100 * math.expm1(-0.079)])


def test_a_guilty_key_is_in_view_among_eleven_that_do_nothing() -> None:
    """An axis made for the eleven would end before it."""
    axes = key_effects.draw(scene_with(made.factorial({GUILTY: -0.7}, keys=TWELVE, design="screening"))).axes[0]
    assert axes.get_xlim()[0] < min(values(axes)) == pytest.approx(100 * math.expm1(-0.7))


def test_an_ablation_has_both_ways_of_a_key_side_by_side_and_the_profile_on_top() -> None:
    effects = made.ablation({"vm.swappiness": -0.1, "vm.dirty_ratio": 0.04}, {"vm.swappiness": -0.02})
    figure = key_effects.draw(scene_with(effects))
    wanted = [math.expm1(log) for log in (-0.06, -0.1, -0.02, 0.04)]
    assert values(figure.axes[0])[:4] == [pytest.approx(100 * one, abs=0.7) for one in wanted]
    assert [line.split(" ")[0] for line in said(figure).split("\n") if line.startswith(("in profile", "alone"))] == ["in", "alone"] * 4


def test_a_way_that_was_lost_has_no_mark_and_its_reason_below() -> None:
    effects = made.ablation({"vm.swappiness": -0.1}, {}, missing=[("alone", "vm.swappiness")])
    figure = key_effects.draw(scene_with(effects))
    assert len(values(figure.axes[0])) == 8
    assert "Lost: tuned.only-vm.swappiness" in said(figure)


def test_interactions_stand_below_the_keys() -> None:
    figure = key_effects.draw(scene_with(made.factorial({}, together={("vm.swappiness", "vm.dirty_ratio"): -0.1})))
    assert values(figure.axes[0])[4] == pytest.approx(100 * math.expm1(-0.1))
    assert {"interacts", "vm.swappiness ×"} <= set(said(figure).split("\n"))


def test_a_key_stands_with_the_value_it_is_set_to_whatever_the_design() -> None:
    """Of an ablation, of two levels and of several."""
    effects = made.factorial({}, keys={"vm.swappiness": "60", "vm.dirty_ratio": "40"})
    assert {"vm.swappiness=60", "vm.dirty_ratio=40"} <= set(said(key_effects.draw(scene_with(effects))).split("\n"))
    figure = key_effects.draw(scene_with(made.ablation({}, {}, missing=[("alone", "vm.dirty_ratio")])))
    assert {"vm.swappiness=10", "vm.dirty_ratio=40", "kernel.numa_balancing=0"} <= set(said(figure).split("\n"))


def test_more_tweak_sets_than_a_page_has_columns_for_are_refused_not_printed_over_each_other() -> None:
    points = {f"profile.t{at:02}": frozenset(key for key in range(6) if at >> key & 1) for at in range(1, 43)}
    keys = designs.Keys({f"vm.k{at}": 0.0 for at in range(6)})
    scene = scene_of([from_json(designs.designed("file", keys, points, Made(blocks=1, steps=3)), "run.json")])
    assert "42 tweak sets" in refusal(pictures()["parameters"], scene)
    assert faults(pictures()["run_order"].draw(scene)) == []


# Half-normal plot, main effects, interactions: the arithmetic is shown


def test_half_normal_places_each_size_at_its_expected_quantile() -> None:
    """Seven effects: the i-th of them is expected where the half-normal has (i - 1/2)/7; the largest at 1.80 standard errors."""
    expected = keys_pictures.quantiles(7)
    assert expected[-1] == pytest.approx(1.8027, abs=1e-4)
    chance = np.sort(np.abs(np.random.default_rng(1).normal(size=(20_000, 7))), axis=1).mean(axis=0)
    assert expected == pytest.approx(chance, abs=0.1)


@pytest.mark.parametrize("replicated", [False, True])
def test_what_is_beyond_the_margin_of_all_is_named_with_its_sign(*, replicated: bool) -> None:
    effects = made.factorial({"vm.swappiness": -0.1, "vm.dirty_ratio": 0.03}, replicated=replicated)
    figure = half_normal.draw(scene_with(effects))
    axes = figure.axes[0]
    assert points(lines_of(axes, "v")[0])[0][0] == pytest.approx(10.0)
    assert max(size for line in lines_of(axes, "o") for size, _ in points(line)) <= max(keys_pictures.dots_of(effects).margins["all"], 3.0)
    bold = [one.get_text() for one in axes.texts if one.get_fontweight() == "bold"]
    assert bold == ["vm.swappiness \N{MINUS SIGN}10.0"]
    assert ("Lenth" in said(figure)) == (not replicated)


def test_margins_of_replicated_effects_are_students_and_sidaks() -> None:
    """18 degrees of freedom, 10 effects, standard error 1 %: t = 2.101 for one, 3.186 at 1 - (1 - 0.95^(1/10))/2 for all."""
    dots = keys_pictures.dots_of(made.factorial({}))
    assert dots.margins["one"] == pytest.approx(2.1009, abs=1e-3)
    assert dots.margins["all"] == pytest.approx(3.186, abs=2e-3)
    assert len(dots.names) == 10


def test_an_interaction_is_on_the_scale_of_a_main_effect() -> None:
    """As its contrast has the same error: half of what the table says."""
    pair = ("vm.swappiness", "vm.dirty_ratio")
    effects = replace(made.factorial({}, together={pair: 0.12}), lenth=None)
    terms = tuple(replace(one, coefficient=one.effect / 4) if one.means == "interaction" else one for one in effects.terms)
    dots = keys_pictures.dots_of(replace(effects, terms=terms))
    assert (dots.names[-1], dots.values[-1]) == ("vm.swappiness × vm.dirty_ratio", pytest.approx(6.0))


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
