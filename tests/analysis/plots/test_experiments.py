"""Pictures of studies of jobs with a question of their own, of the runs in this repository: what they say is what their commands say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.load import load
from analysis.plots import jobs_hyper, jobs_poisoning, jobs_scaling
from analysis.plots.scene import Scene, scene_of
from analysis.report.page import pictures_of
from tests.analysis.plots.reading import faults, lines_of, points, refusal, said

RUNS = Path(__file__).parents[3] / "data/runs"


def saved(study: str) -> Scene:
    return scene_of([load(RUNS / f"cluster-{study}_2026-11-22_amd-epyc-2cpu.json")])


def test_hyper_parameters_are_a_map_of_times_above_what_each_of_them_does() -> None:
    scene = saved("hyper")
    figure = jobs_hyper.draw(scene)
    assert faults(figure) == []
    assert figure.get_label() == "The optimiser matters most: adam is 2.1 × as fast as momentum"
    momentum, adam, effects = figure.axes
    ((where, best),) = [(axes, patch) for axes in (momentum, adam) for patch in axes.patches if patch.get_linewidth() == 1.5]
    assert (where, best.get_bbox().x0 > 1, best.get_bbox().y0 > 1) == (adam, True, True), "batch 64, lr 0.02, adam"  # type: ignore[attr-defined]
    slowest = max((text for text in momentum.texts), key=lambda text: float(text.get_text().split()[0]))
    assert slowest.get_text() == "1.15\n[0.933, 1.38]"
    assert "+112 [+91, +134]" in said(figure)
    assert len(lines_of(effects, "D")) == 2, "two interactions"
    unreached = [replace(stream, jobs=tuple(replace(job, outcome="failed") for job in stream.jobs)) for stream in scene.streams[0].streams]
    assert "no jobs learn" in refusal(jobs_hyper, replace(scene, streams=(replace(scene.streams[0], streams=tuple(unreached)),)))


def test_poisoned_clients_are_followed_from_the_first_round_to_the_last() -> None:
    """No round between these is saved, and none is drawn."""
    figure = jobs_poisoning.draw(saved("poisoning"))
    assert faults(figure) == []
    assert figure.get_label() == "Poisoned clients cost 12.6 points of accuracy; with a median, 3.3"
    (axes,) = figure.axes
    courses = [[y for _, y in points(line)] for line in axes.lines if [x for x, _ in points(line)] == [0, 1]]
    assert courses[0] == pytest.approx([75.8, 90.2], abs=0.1), "without poison"
    assert [end for _, end in courses] == pytest.approx([90.2, 86.9, 84.4, 77.6], abs=0.1)
    assert "4 of 10 poisoned, trimmed mean" in said(figure)


def test_replicas_stand_on_the_law_beside_the_jobs_that_took_the_target() -> None:
    figure = jobs_scaling.draw(saved("scaling"))
    assert faults(figure) == []
    assert figure.get_label() == "Replicas chosen by job: 73 % on target; one number for all: 18 %"
    curve, jobs = figure.axes
    measured = dict(point for line in lines_of(curve, "o") for point in points(line))
    assert measured[8] == pytest.approx(8 / (1 + 0.0493 * 7), rel=0.02), "Amdahl's law with the serial part that was fitted"
    chosen = [y for line in lines_of(jobs, "o") for _, y in points(line)]
    assert sum(0.45 <= y <= 0.55 for y in chosen) / len(chosen) == pytest.approx(0.727, abs=0.001)
    assert "STAND-IN" in said(figure)


@pytest.mark.parametrize("study", ["hyper", "poisoning", "scaling"])
def test_each_leads_the_report_of_its_run(study: str) -> None:
    assert next(one.name for one in pictures_of(saved(study)) if one.leads) == f"jobs_{study}"
