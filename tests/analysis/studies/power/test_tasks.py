"""The task matrix and the GPUs, and entries that a user's file must not have."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.studies.power import parameters
from analysis.terms import Refused
from control.power.catalog import SHIPPED, platform
from fixtures.studies.power import tasks as run_side
from tests.conftest import REFERENCE

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

ONE = "{id: 1, gpu: A100, model: resnet50, dataset: imagenet, cap_w: 150}"


@pytest.mark.needs("reference")
def test_it_is_the_originals_matrix() -> None:
    rows = csv.DictReader((REFERENCE / "pctodl" / "tasks.csv").read_text().splitlines())
    theirs = []
    for row in rows:
        steps = (
            [step.split("@") for step in row["schedule"].split(";")]
            if row["schedule"]
            else [[row["power_cap_w"], "0"]]
        )
        model = "maxvit_t" if row["model"] == "maxvit" else row["model"]
        theirs.append(
            (
                int(row["task_id"]),
                row["gpu"],
                model,
                row["dataset"],
                tuple((int(at), float(cap)) for cap, at in steps),
            )
        )
    assert [
        (task.id, task.gpu, task.model, task.dataset, task.caps) for task in parameters.read_tasks()
    ] == theirs


WRONG = [
    "[",
    "tasks: 2026-13-45",
    "a: &a [x, x]\nb: &b [*a, *a]\ntasks: [*b, *b]",
    "tasks: " + "[" * 500 + "]" * 500,
    "#" * (1 << 18) + "\ntasks: []",
    f"tasks: [{{id: 1, gpu: A100, model: m, dataset: d, cap_w: 1{'0' * 400}}}]",
    f"tasks: [{{id: 1, gpu: A100, model: m, dataset: d, cap_w: 1{'0' * 5000}}}]",
    "tasks: [3]",
    "tasks: [{id: 1, gpu: A100, model: m, dataset: d, cap_w: .nan}]",
]


def test_wrong_files(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    messages = []
    for text in WRONG:
        (tmp_path / "own.yaml").write_text(text)
        with pytest.raises(Refused) as refused:
            parameters.read_tasks(tmp_path / "own.yaml")
        said = re.sub(
            r"is not YAML.*",
            "is not YAML …",
            str(refused.value).replace(f"{tmp_path}/", ""),
            flags=re.DOTALL,
        )
        messages.append(re.sub("0{99,}", "0…", said))
    assert messages == snapshot


def test_the_run_side_reads_the_same_tasks(tmp_path: Path) -> None:
    own = (
        "{id: 7, gpu: cpu, model: m, dataset: d, caps_cpu_s_per_s: [[0, 1.5], [20, 0.8]], "
        "iterations: 40, slo_ms: 30}"
    )
    (tmp_path / "own.yaml").write_text(f"tasks: [{ONE}, {own}]\n")
    for path in (SHIPPED, tmp_path / "own.yaml"):
        assert parameters.read_tasks(path) == list(run_side.read(path).values())


def test_an_unknown_gpu_is_answered_with_those_there_are() -> None:
    with pytest.raises(Refused, match="3080Ti, A100"):
        platform("H100")


def test_clock_states_ascend_by_their_step() -> None:
    """(2100 − 210) / 15 + 1 = 127 and (1410 − 210) / 15 + 1 = 81."""
    assert [len(platform(name).sm_mhz) for name in ("3080Ti", "A100")] == [127, 81]
    assert platform("3080Ti").sm_mhz[:2] == (210.0, 225.0)
    assert platform("3080Ti").searched_mem_mhz == (9501.0, 5001.0)
