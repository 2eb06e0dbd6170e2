"""`python -m analysis schedule`: policies compared on identical jobs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
import pytest

from analysis.__main__ import main
from analysis.studies.jobs.schedulers import comparison
from analysis.studies.jobs.simulation.loop import figures, jain, play
from tests.analysis.studies.jobs.simulation.made_jobs import ANY, coming, source

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

FAST = ["--jobs", "400", "--seeds", "5"]
CLASSES = """\
classes:
  - {name: train, probability: 0.3, mean_s: {gpu: 4, cpu: 40}, tenant: a, due_factor: 10, priority: 1}
  - {name: serve, probability: 0.7, mean_s: {gpu: 3, cpu: 4}, tenant: b, due_factor: 4}
"""


def test_shortest_first_halves_the_mean_wait_at_a_load_of_0_8() -> None:
    """Two slots, predictions right: the interval says so. With predictions off by half the gain is smaller, and still there."""
    ratio = {}
    for error in (0.0, 0.5):
        asked = comparison.PolicyStudy(replace(source(2, 0.8), error=error), ("fifo", "sjf"), jobs=1000, seeds=6)
        effect = comparison.arms(asked)[1].against["mean_wait_s"].effect
        assert effect is not None
        assert effect.low > 0
        ratio[error] = 1 / (1 + effect.gain)
    assert ratio[0.0] == pytest.approx(0.5, abs=0.06)
    assert ratio[0.0] < ratio[0.5] < 1


def test_arms_are_paired_by_seed_and_adjusted_together() -> None:
    found = comparison.arms(comparison.PolicyStudy(source(2, 0.8), ("fifo", "sjf", "priority", "least_slack"), jobs=300, seeds=4))
    fifo, sjf, priority, _ = found
    against = sjf.against["mean_wait_s"]
    assert against.effect is not None
    assert against.effect.values_baseline == tuple(one.mean_wait_s for one in fifo.seeds)
    assert against.p == against.effect.p  # the others are first come here: one p in the family
    assert (priority.against["mean_wait_s"].effect, priority.against["mean_wait_s"].reason) == (None, "the same")
    assert fifo.mean("mean_wait_s") == fmean(one.mean_wait_s for one in fifo.seeds)
    assert fifo.mean("jain") is None


def test_figures_by_hand() -> None:
    """Ten jobs a second apart on one slot, each 2 s: waits 0, 1, … 9; the first does not count, so 1 … 9, of two tenants in turn."""
    stream = [coming(at, float(at), 2.0, tenant="ab"[at % 2], due_s=at + 5.0) for at in range(10)]
    found = figures(stream, play(stream, {ANY: 1}, "fifo"))
    assert found.mean_wait_s == 5
    assert found.mean_response_s == 7
    assert found.p95_wait_s == pytest.approx(8.6)
    assert found.slowdown == 3.5
    assert found.busy == 1
    assert found.late == pytest.approx(6 / 9)  # those that waited 4 s and more
    assert (found.inside_half, found.inside_end) == (4, 6)
    assert found.jain == pytest.approx((3.5 + 3.5) ** 2 / (2 * (3.5**2 + 3.5**2)))


def test_jains_index_is_1_for_equals_and_1_over_n_for_one_that_has_all() -> None:
    assert jain(np.array([2.0, 2.0, 2.0])) == pytest.approx(1)
    assert jain(np.array([1.0, 0.0, 0.0, 0.0])) == pytest.approx(0.25)


def test_a_policy_under_which_the_queue_grows_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    """At 0.8 of what the slots can do, first come wastes them on jobs that are slow there; by plan they suffice."""
    monkeypatch.chdir(tmp_path)
    Path("classes.yaml").write_text(CLASSES)
    asked = ["schedule", "simulate", "--slots", "gpu=4,cpu=12", "--classes", "classes.yaml", "--jobs", "600", "--seeds", "4"]
    asked += ["--policies", "fifo,heterogeneous", "--prediction-error", "0.3"]
    assert main(asked) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 100
    assert page == snapshot
    assert main([*asked, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [(one["policy"], one["grows"]) for one in said["policies"]] == [("fifo", True), ("heterogeneous", False)]
    assert said["policies"][1]["against"]["mean_response_s"]["effect"]["low"] > 1


def test_what_cannot_be_compared_is_refused(capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    found = {}
    for more in (
        "--load 1",
        "--slots 0",
        "--slots gpu=4,gpu=2",
        "--slots gpu:4",
        "--policies fifo,lifo",
        "--policies sjf",
        "--jobs 3",
        "--prediction-error -1",
        "--classes nothing.yaml",
    ):
        assert main(["schedule", "simulate", "--slots", "2", *FAST, *more.split()]) == 2
        found[more] = capsys.readouterr().err
    assert found == snapshot
