"""Pictures of studies of jobs with a question of their own, of the runs in this repository: what they say is what their commands say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from analysis.load import load
from analysis.plots import fitting, jobs_hyper, jobs_poisoning, jobs_profile, jobs_scaling
from analysis.plots.scene import NothingToDraw, Scene, scene_of
from analysis.studies.jobs.pictures_experiments import PARTS
from tests.analysis.plots.reading import faults, lines_of, points, refusal, said

RUNS = Path(__file__).parents[3] / "data/runs"


def saved(study: str) -> Scene:
    return scene_of([load(RUNS / f"cluster-{study}_2026-11-22_amd-epyc-2cpu.json")])


def test_hyper_parameters_are_rows_of_times_above_what_each_of_them_does() -> None:
    scene = saved("hyper")
    figure = jobs_hyper.draw(scene)
    assert faults(figure) == []
    assert figure.get_label() == "The optimiser matters most: adam is 2.1 × as fast as momentum"
    times, effects = figure.axes
    marks = [x for line in lines_of(times, "o") for x, _ in points(line)]
    assert marks == sorted(marks)
    assert [marks[0], marks[-1], len(marks)] == pytest.approx([0.255, 1.15, 8], abs=5e-3)
    assert "batch 64, lr 0.02, optimiser adam" in said(figure)
    assert "+112 [+91, +134]" in said(figure)
    assert len(lines_of(effects, "D")) == 2, "two interactions"
    unreached = [replace(stream, jobs=tuple(replace(job, outcome="failed") for job in stream.jobs)) for stream in scene.streams[0].streams]
    assert "no jobs learn" in refusal(jobs_hyper, replace(scene, streams=(replace(scene.streams[0], streams=tuple(unreached)),)))


def test_poisoned_clients_are_followed_from_the_first_round_to_the_last() -> None:
    """No round between these is in this run, and none is drawn: the lines are dashed."""
    figure = jobs_poisoning.draw(saved("poisoning"))
    assert faults(figure) == []
    assert figure.get_label() == "Poisoned clients cost 12.6 points of accuracy; with a median, 3.3"
    (axes,) = figure.axes
    courses = {tuple(x for x, _ in points(line)): line.get_linestyle() for line in axes.lines if line.get_marker() != "None"}
    assert courses == {(1, 10): "--"}
    ends = [[y for _, y in points(line)] for line in axes.lines if line.get_marker() != "None"]
    assert ends[0] == pytest.approx([75.8, 90.2], abs=0.1), "without poison"
    assert [end for _, end in ends] == pytest.approx([90.2, 86.9, 84.4, 77.6], abs=0.1)
    assert "4 of 10 poisoned, trimmed mean" in said(figure)


def test_every_round_that_a_run_has_is_on_the_line() -> None:
    """Rounds 2 to 9 are made up; a job that began again has no part in them."""
    scene = saved("poisoning")
    (gathered,) = scene.streams
    more = {f"accuracy_round_{at}": at / 10 for at in range(2, 10)}
    first, *others = gathered.streams
    jobs = tuple(replace(job, result={**job.result, **more}) for job in first.jobs)
    again = replace(jobs[0], attempts=2, result={**jobs[0].result, "accuracy_round_5": 0.0})
    streams = (replace(first, jobs=(again, *jobs[1:])), *others)
    figure = jobs_poisoning.draw(replace(scene, streams=(replace(gathered, streams=streams),)))
    (whole,) = [line for line in figure.axes[0].lines if line.get_marker() != "None" and len(points(line)) == 10]
    assert points(whole)[4] == pytest.approx((5, 50))
    assert whole.get_linestyle() == "-"


def test_a_bar_is_divided_as_the_time_of_its_jobs() -> None:
    """Half a core: half of the time of training is spent at the limit. Parts are those of the table of `jobs profile`."""
    scene = saved("profile")
    figure = jobs_profile.draw(scene)
    assert faults(figure) == []
    assert figure.get_label() == "50 % of train's time is lost to its CPU limit (cores 0.5, slots 1)"
    _, train, sleep = ([patch for patch in axes.patches if isinstance(patch, Rectangle)] for axes in figure.axes)
    half_core = [part for part in train if part.get_y() > 3]
    limited = to_rgba(PARTS["CPU limit"])
    assert sum(part.get_width() for part in half_core) == pytest.approx(4.83, abs=0.01), "s from submission to end"
    assert [part.get_width() / 4.83 for part in half_core if part.get_facecolor() == limited] == pytest.approx([0.5], abs=0.01)
    assert all(part.get_width() < 0.01 for part in sleep if part.get_facecolor() == limited)


def test_no_profile_is_drawn_of_one_system_alone() -> None:
    scene = saved("profile")
    (gathered,) = scene.streams
    alone = tuple(one for one in gathered.streams if one.group == gathered.streams[0].group)
    assert "several systems" in refusal(jobs_profile, replace(scene, streams=(replace(gathered, streams=alone),)))


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


LEADS = {
    "checkpoints": "faults",
    "faults": "faults",
    "hyper": "hyper",
    "kubernetes": "faults",
    "neighbours": "faults",
    "network": "network",
    "poisoning": "poisoning",
    "profile": "profile",
    "queueing": "waits",
    "scaling": "scaling",
    "scheduling": "policies",
}


@pytest.mark.parametrize("study", LEADS)
def test_the_page_of_a_study_leads_with_the_picture_that_answers_its_question(study: str) -> None:
    scene = saved(study)
    for picture in fitting(scene.runs).values():
        try:
            figure = picture.draw(scene)
        except NothingToDraw:
            continue
        assert f"jobs_{LEADS[study]}" == picture.NAME
        assert picture.leads
        assert faults(figure) == []
        break
