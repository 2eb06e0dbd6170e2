"""`train` and `infer`: jobs with a real framework, in this process, or forked with replicas."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fixtures.studies.jobs import kinds

pytestmark = pytest.mark.needs("torch")

SMALL = {"net": "mlp", "width": 8, "batch": 64}


def asked(
    folder: Path, kind: str, params: Mapping[str, object], work: float = 640, **more: Any
) -> kinds.JobRequest:
    told: list[Mapping[str, object]] = more.pop("told", [])
    given = {
        "job": 1,
        "attempt": 1,
        "from_work": 0,
        "seed": 7,
        "replica": 0,
        "replicas": 1,
        "checkpoint_s": 0,
        **more,
    }
    return kinds.JobRequest(
        work=work, params=kinds.complete(kind, params), folder=folder, report=told.append, **given
    )


def ran(folder: Path, kind: str, params: Mapping[str, object], **more: Any) -> Mapping[str, Any]:
    result = kinds.function(kind)(asked(folder, kind, params, **more))
    assert result is not None
    assert all(isinstance(value, int | float) for value in result.values())
    return dict(result)


def learned(result: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if not name.endswith("_s")}


def test_training_repeats_with_its_seed_and_differs_with_another(tmp_path: Path) -> None:
    first = ran(tmp_path, "train", SMALL)
    assert learned(first) == learned(ran(tmp_path, "train", SMALL))
    assert learned(first) != learned(ran(tmp_path, "train", SMALL, seed=8))


def test_a_job_ends_with_the_epoch_that_reaches_its_accuracy(tmp_path: Path) -> None:
    params = {"net": "mlp", "optimiser": "adam", "lr": 0.003, "accuracy": 0.5}
    found = ran(tmp_path, "train", params, work=1e6)
    assert found["accuracy"] >= 0.5
    assert found["epochs"] < 10
    assert found["time_to_accuracy_s"] > found["startup_s"]
    never = ran(tmp_path, "train", {**SMALL, "lr": 1e-6, "accuracy": 1.0}, work=100)
    # The last batch of 64 is whole.
    assert (never["images"], "time_to_accuracy_s" in never) == (128, False)


@pytest.mark.parametrize("optimiser", ["sgd", "momentum", "adam"])
def test_training_resumed_from_a_checkpoint_equals_a_whole_run(
    tmp_path: Path, optimiser: str
) -> None:
    params = {**SMALL, "optimiser": optimiser, "lr": 0.01}
    whole = ran(tmp_path, "train", params)
    told: list[Mapping[str, Any]] = []
    ran(tmp_path, "train", params, checkpoint_s=1e-9, told=told)
    saved = [one["checkpoint"] for one in told if "checkpoint" in one]
    assert saved == [64 * step for step in range(1, 10)]
    rest = ran(tmp_path, "train", params, attempt=2, from_work=saved[-1])
    assert learned(rest) == learned(whole)


def test_replicas_learn_what_one_learns(tmp_path: Path) -> None:
    """They share each batch and average their gradients: the same sum, added in another order."""
    alone = ran(tmp_path, "train", SMALL)
    reader, writer = os.pipe()
    other = os.fork()
    if other == 0:
        ok = 1
        try:
            ok = int(
                kinds.function("train")(asked(tmp_path, "train", SMALL, replica=1, replicas=2))
                is not None
            )
        finally:
            os.write(writer, b"%d" % ok)
            os._exit(ok)
    together = ran(tmp_path, "train", SMALL, replicas=2)
    assert os.waitpid(other, 0)[1] == 0
    assert os.read(reader, 1) == b"0"
    assert together["loss"] == pytest.approx(alone["loss"], rel=1e-3)
    assert together["images"] == alone["images"]


def test_inference_puts_every_image_through_once(tmp_path: Path) -> None:
    params = {"pixels": 8, "width": 4, "batch": 16}
    found = ran(tmp_path, "infer", params, work=100)
    assert found["images"] == 100
    assert 0 < found["latency_p50_s"] <= found["latency_p99_s"]


def test_inference_replicas_share_images_and_the_first_reports(tmp_path: Path) -> None:
    """101 images on two replicas: 50 and 51."""
    params = {"pixels": 8, "width": 4, "batch": 16}
    assert ran(tmp_path, "infer", params, work=101, replicas=2)["images"] == 50
    assert (
        kinds.function("infer")(asked(tmp_path, "infer", params, work=101, replica=1, replicas=2))
        is None
    )
