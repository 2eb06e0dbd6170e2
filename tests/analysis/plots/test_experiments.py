"""Pictures of job studies with a question of their own agree with the studies' commands."""

from __future__ import annotations

import pytest

from analysis.load import from_json
from analysis.plots import jobs_network, jobs_scaling
from analysis.plots.scene import Scene, scene_of
from tests.analysis.plots.reading import faults, lines_of, points
from tests.analysis.studies.jobs.dependability.made_faults import told_run
from tests.analysis.studies.jobs.dependability.test_network import MadeLine, lossy_run, root
from tests.analysis.studies.jobs.simulation.test_scale_report import LAW, PARAMS, both


def scaled() -> Scene:
    saved = told_run({(name, block): rows for (name, _, block), rows in both(5).items()})
    for name, given in PARAMS.items():
        saved["deeptweak"]["workloads"][name]["params"] = dict(given)
    return scene_of([from_json(saved, "made up")])


def test_replicas_lie_on_the_law_beside_the_jobs_on_target() -> None:
    figure = jobs_scaling.draw(scaled())
    assert faults(figure) == []
    assert figure.get_label() == "Replicas chosen by job: 70 % on target; one number for all: 5 %"
    curve, jobs = figure.axes
    measured = dict(point for line in lines_of(curve, "o") for point in points(line))
    assert measured[8] == pytest.approx(8 / (1 + LAW.serial * 7), rel=0.05), (
        "Amdahl's law, less what starting costs"
    )
    chosen = [y for line in lines_of(jobs, "o") for _, y in points(line)]
    assert sum(1.8 <= y <= 2.2 for y in chosen) / len(chosen) == pytest.approx(0.70, abs=0.005)


def test_steps_stand_by_their_loss() -> None:
    """No loss is left of all others."""
    figure = jobs_network.draw(scene_of([from_json(lossy_run(MadeLine(root)), "made up")]))
    assert faults(figure) == []
    steps, spent = figure.axes
    labels = [label.get_text() for label in steps.get_xticklabels()]
    assert labels == ["none", "0.1 %", "0.3 %", "1 %", "3 %"]
    assert len([point for one in lines_of(spent, "o") for point in points(one)]) == 4
