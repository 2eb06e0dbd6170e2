"""Pictures of job studies with a question of their own agree with the studies' commands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from analysis.load import from_json
from analysis.plots import jobs_network, jobs_poisoning, jobs_profile, jobs_scaling
from analysis.plots.scene import Scene, scene_of
from analysis.studies.jobs.pictures_experiments import PARTS
from tests.analysis.plots.reading import faults, lines_of, points, said
from tests.analysis.studies.jobs.dependability.made_faults import told_run
from tests.analysis.studies.jobs.dependability.test_network import MadeLine, lossy_run, root
from tests.analysis.studies.jobs.profiles.made_cells import job, report
from tests.analysis.studies.jobs.simulation.test_scale_report import LAW, PARAMS, both

Rows = dict[str, list[dict[str, Any]]]
BLOCKS = range(1, 6)
# Aggregation and poisoned clients of ten: accuracy after the last of ten rounds.
ACCURACIES = {
    ("fedavg", 0): 0.902,
    ("median", 4): 0.869,
    ("trimmed", 4): 0.844,
    ("fedavg", 4): 0.776,
}
ACCURACY_FIRST = 0.758
# Cores of a system: seconds of a job at work, and of these at the CPU limit.
TIMES_S = {0.5: (4.0, 2.0), 1.0: (2.0, 0.0), 2.0: (1.4, 0.0)}


def _scene(
    told: Mapping[tuple[str, int], Rows], params: Mapping[str, Mapping[str, object]]
) -> Scene:
    saved = told_run(told)
    for name, given in params.items():
        saved["deeptweak"]["workloads"][name]["params"] = dict(given)
    return scene_of([from_json(saved, "made up")])


def poisoned() -> Scene:
    told: dict[tuple[str, int], Rows] = {}
    for arm, ((aggregation, clients), accuracy) in enumerate(ACCURACIES.items(), 1):
        for block in BLOCKS:
            off = 0.002 * (arm * block % 5 - 2)  # sums to 0, and differs from arm to arm
            result = {
                "round": 10,
                "accuracy": accuracy + off,
                "accuracy_first": ACCURACY_FIRST + off,
            }
            rows = report([job(number, work=10.0, result=result) for number in range(6)])
            about = {"clients": 10, "poisoned": clients, "aggregation": aggregation}
            rows["stream"][0]["classes"] = [{"name": "train", "kind": "federated", "params": about}]
            told[f"job_stream:classes={aggregation}_{clients}", block] = rows
    return _scene(told, {})


def profiled() -> Scene:
    """On half a core, a job spends half of its time at the limit."""
    rng = np.random.default_rng(1)
    told = {}
    for cores, (runs_s, limited_s) in TIMES_S.items():
        for block in BLOCKS:
            rows = []
            for number in range(8):
                takes_s = runs_s * rng.uniform(0.98, 1.02)
                at_limit_s = limited_s * takes_s / runs_s
                rows.append(
                    job(
                        number,
                        runs=takes_s,
                        cores=cores,
                        throttled_s=at_limit_s,
                        cpu_s=0.9 * (takes_s - at_limit_s),
                    )
                )
            told[f"job_stream:cores={cores:g}", block] = report(rows)
    return _scene(told, {f"job_stream:cores={cores:g}": {"cores": cores} for cores in TIMES_S})


def scaled() -> Scene:
    return _scene({(name, block): rows for (name, _, block), rows in both(5).items()}, PARAMS)


def test_the_cost_of_poisoned_clients_is_beside_the_accuracy() -> None:
    figure = jobs_poisoning.draw(poisoned())
    assert faults(figure) == []
    assert figure.get_label() == "Poisoned clients cost 3.3 to 12.6 points of accuracy"
    lost = [point for line in lines_of(figure.axes[0], "^") for point, _ in points(line)]
    assert lost == pytest.approx([3.3, 5.8, 12.6], abs=0.05)
    accuracies = {
        f"{100 * accuracy:.1f}" for (_, clients), accuracy in ACCURACIES.items() if clients
    }
    assert accuracies <= set(re.findall(r"\b\d+\.\d\b", said(figure)))


def test_a_bar_is_divided_as_the_time_of_its_jobs() -> None:
    """Half a core: half of the time of training is spent at the limit.

    Parts are those of the table of `jobs profile`.
    """
    figure = jobs_profile.draw(profiled())
    assert faults(figure) == []
    assert figure.get_label() == "50 % of train's time is lost to its CPU limit (cores 0.5)"
    (axes,) = figure.axes
    train = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    limited = to_rgba(PARTS["CPU limit"])
    half_core = [part for part in train if part.get_y() == max(one.get_y() for one in train)]
    whole_s = sum(part.get_width() for part in half_core)
    assert whole_s == pytest.approx(4, rel=0.02), "s from submission to end"
    assert [
        part.get_width() / whole_s for part in half_core if part.get_facecolor() == limited
    ] == pytest.approx([0.5], abs=0.01)
    others = [part for part in train if part not in half_core and part.get_facecolor() == limited]
    assert all(part.get_width() == 0 for part in others)


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
