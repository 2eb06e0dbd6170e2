"""A tenant with a real network, small: what it infers, and what does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.targets._process import run
from fixtures.terms import Order
from fixtures.workloads import load

if TYPE_CHECKING:
    from fixtures.studies.power.tenant import Network

pytestmark = pytest.mark.needs("torch")
TINY = "squeezenet1_1"


@pytest.fixture(scope="module")
def network() -> Network:
    from fixtures.studies.power.tenant import Network

    return Network(TINY, 32, 1)


def test_a_batch_too_large_is_a_memory_error_and_the_next_runs(
    network: Network,
) -> None:
    import torch

    from fixtures.studies.power.tenant import Pacing, _answer, _typed_oom

    with pytest.raises(MemoryError, match="its images alone take"):
        network.take(10**9, 1)
    with pytest.raises(MemoryError, match="can't allocate memory"), _typed_oom():
        torch.empty(10**16)
    with pytest.raises(RuntimeError, match="shape"), _typed_oom():
        torch.zeros(2).view(3)
    said, pace = _answer(
        network, Pacing(), {"set": {"batch": 10**9, "threads": 1, "cores": None, "duty": None}}
    )
    assert "batch 1000000000 does not fit in memory" in str(said["oom"])
    assert network._batch is None, "others may want its memory"
    said, pace = _answer(
        network, pace, {"set": {"batch": 2, "threads": 1, "cores": None, "duty": 0.5}}
    )
    assert (said, pace) == ({"set": {}}, Pacing(duty=0.5))
    network.infer()
    assert network.images == 2


def test_batch_normalisation_has_the_statistics_of_a_batch() -> None:
    """Random weights would let activations vanish or overflow; a GPU draws less for 0 and inf."""
    from fixtures.studies.power.tenant import Network

    norm = next(
        one
        for one in Network("shufflenet_v2_x0_5", 32, 1)._net.modules()
        if type(one).__name__ == "BatchNorm2d"
    )
    assert not norm.training
    assert float(norm.running_mean.abs().sum()) > 0


def test_a_point_of_a_profile_is_a_row_of_a_trace(tmp_path: Path) -> None:
    order = Order(
        load(f"power_profile:model={TINY}:shares=2x25:batches=2:image_size=32:step_s=0.5"),
        2,
        1,
        1,
        tmp_path,
    )
    done = run(order)
    assert done.error is None, done.last_lines
    row: Any = done.report["point"][0]
    assert row["model_name"] == TINY
    assert (row["p_list"], row["b_list"], row["outcome"]) == ([25, 25], [2, 2], "measured")
    assert row["throughput_total"] == pytest.approx(sum(row["images"]) / row["measured_s"])
    assert row["measured_s"] == pytest.approx(1.0)
    # Two times a quarter of the cores at most; the machine may have two.
    assert 0 < row["cpu_s_per_s"] < 1.5
    assert all(
        p50 <= p99 for p50, p99 in zip(row["latency_p50_ms"], row["latency_p99_ms"], strict=True)
    )
    assert (row["power_avg"] is None) == (row["power_source"] == "none")
    (probe,) = done.report["probe"]
    assert probe["backend"] == "cpu"
    assert (done.facts["device"], done.facts["dtype"], done.facts["images"]) == (
        "cpu",
        "float32",
        "random",
    )
    assert list(tmp_path.iterdir()) == []


def test_a_point_that_does_not_fit_is_told_as_one_that_failed(tmp_path: Path) -> None:
    done = run(
        Order(load(f"power_profile:model={TINY}:batches=900000:image_size=224"), 2, 1, 1, tmp_path)
    )
    assert done.error is not None
    assert done.error.startswith("Point oom: batch 900000 does not fit in memory")
    (row,) = done.report["point"]
    assert row["outcome"] == "oom"
    assert row["throughput_total"] is row["cpu_s_per_s"] is row["power_avg"] is None
    assert row["b_list"] == [900000]
    assert not done.steps
