"""Pictures of designs over keys: each number that is drawn is that of the effects, and nothing lies over anything else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json
from analysis.plots import fitting, key_effects, main_effects, pictures
from analysis.plots.scene import scene_of
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
OVER_KEYS = {"key_effects", "main_effects"}


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
    assert faults(pictures()[name].draw(scene_with(*effects))) == []


def test_a_run_without_a_design_is_refused_and_named_designs_are_left_out_of_it() -> None:
    scene = scene_of([from_json(saved_run(Made(arms=(STOCK, AGAIN))), "matrix.json")])
    assert scene.effects == {}
    assert not OVER_KEYS & fitting(scene.runs).keys()
    assert all("took no tweak set apart" in refusal(pictures()[name], scene) for name in OVER_KEYS)


def test_effects_that_were_refused_say_why() -> None:
    refused = replace(made.factorial({}), terms=(), levels=(), refusal="every cell failed.")
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
    assert "main_effects" in chosen
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
    axes = key_effects.draw(scene_with(made.factorial({GUILTY: -0.7}, keys=TWELVE, design="file"))).axes[0]
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


# Main effects: the arithmetic is shown


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


def test_what_averages_would_hide_is_said() -> None:
    together = made.factorial({}, together={("vm.swappiness", "vm.dirty_ratio"): -0.2})
    assert "vm.swappiness × vm.dirty_ratio" in said(main_effects.draw(scene_with(together))).replace("\n", " ")
