"""io_train with this harness's engine: real processes, real files, a few megabytes of data."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fixtures import workloads
from fixtures.studies.io.dataset import DataSpec
from fixtures.targets._process import run
from fixtures.terms import Order, WorkloadRun
from tests.workloads.made import BATCH, FILES, RECORD, SIZE, small

# Other reads than of the data set: pages of Python's libraries that were dropped,
# with what is read ahead of each.
OWN_BYTES = 64_000_000

pytestmark = pytest.mark.needs("torch")

EPOCHS = 2


@pytest.fixture(scope="module")
def train(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., WorkloadRun]:
    """Run a variant once, for all steps or `steps`; repeats are answered from memory."""

    @cache
    def once(varied: str, steps: int | None = None) -> WorkloadRun:
        known = small(varied)
        workloads.provide([known], data, lambda _: None)
        scratch = tmp_path_factory.mktemp("scratch")
        done = run(
            Order(known, steps or known.params["steps"], 0, seed=3, scratch=scratch, data=data)
        )
        assert list(scratch.iterdir()) == [], "what a workload wrote it takes away again"
        return done

    return once


def of(processes: int) -> str:
    """Two cold epochs, each ended by a checkpoint of 3 MB."""
    return (
        f"processes={processes}:epochs={EPOCHS}:cache=cold:computation_time=0.01:"
        "checkpoint=on:epochs_between_checkpoints=1:model_size_bytes=3000000:"
        "steps_between_checkpoints=0"
    )


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_each_rank_tells_each_epoch(train: Callable[..., WorkloadRun], processes: int) -> None:
    """S = floor(48 / 2 / P) steps with three times each; reported are the first rank's, in line."""
    done = train(of(processes))
    assert done.error is None, done.last_lines
    steps = FILES // BATCH // processes
    io: Any = done.report["io"][0]
    assert (io["processes"], io["steps_per_epoch"], io["samples_per_epoch"]) == (
        processes,
        steps,
        FILES,
    )
    assert io["dataset"]["bytes"] == SIZE
    told: list[Any] = list(done.report["epochs"])
    assert [(e["epoch"], e["rank"]) for e in told] == [
        (n, rank) for n in range(1, EPOCHS + 1) for rank in range(processes)
    ]
    for epoch in told:
        assert all(len(epoch[column]) == steps for column in ("load_s", "compute_s", "barrier_s"))
        assert all(slept >= 0.01 for slept in epoch["compute_s"])
        loop_s = sum(sum(epoch[column]) for column in ("load_s", "compute_s", "barrier_s"))
        assert loop_s <= epoch["end_monotonic_s"] - epoch["start_monotonic_s"]
    assert {step.samples for step in done.steps} == {BATCH * processes}
    for number, first in enumerate(e for e in told if e["rank"] == 0):
        own = done.steps[number * steps : (number + 1) * steps]
        assert own[0].start_monotonic_s == pytest.approx(first["start_monotonic_s"], abs=1e-5)
        walls = [
            sum(times)
            for times in zip(first["load_s"], first["compute_s"], first["barrier_s"], strict=True)
        ]
        assert [step.wall_s for step in own[:-1]] == pytest.approx(walls[:-1], abs=1e-5)
        assert own[-1].wall_s > walls[-1], "the readers' end is within the last step"


@pytest.mark.parametrize("steps", [None, 30])
@pytest.mark.parametrize(
    "checkpoints",
    ["checkpoint=off", "checkpoint=on:steps_between_checkpoints=10:model_size_bytes=1000000"],
)
def test_the_steps_of_an_epoch_take_as_long_as_it_does(
    train: Callable[..., WorkloadRun], checkpoints: str, steps: int | None
) -> None:
    """So samples over steps' time, the primary metric, are the epoch's, readers' end included."""
    done = train(f"epochs=2:cache=as_found:computation_time=0:{checkpoints}", steps)
    assert done.error is None, done.last_lines
    at = 0
    for epoch in done.report["epochs"]:
        e: Any = epoch
        own = done.steps[at : at + len(e["load_s"])]
        at += len(own)
        assert sum(step.wall_s for step in own) == pytest.approx(
            e["end_monotonic_s"] - e["start_monotonic_s"], abs=1e-5
        )
    assert at == len(done.steps)


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_utilisation_and_throughput_are_one_measurement(
    train: Callable[..., WorkloadRun], processes: int
) -> None:
    """samples/s = AU x batch / t_c per rank and epoch, from start to end, less the first step."""
    for epoch in train(of(processes)).report["epochs"]:
        e: Any = epoch
        steady_s = (
            e["end_monotonic_s"] - e["start_monotonic_s"] - e["load_s"][0] - e["compute_s"][0]
        )
        compute_s = e["compute_s"][1:]
        au = sum(compute_s) / steady_s
        samples_per_s = len(compute_s) * BATCH / steady_s
        assert 0 < au < 1
        assert samples_per_s / (au * BATCH / (sum(compute_s) / len(compute_s))) == pytest.approx(
            1, abs=0.005
        )


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_a_cold_epoch_reads_the_data_set_from_storage(
    train: Callable[..., WorkloadRun], processes: int
) -> None:
    """All of it once, by all ranks and readers together, in the last epoch as in the first."""
    last: list[Any] = list(train(of(processes)).report["epochs"])[-processes:]
    # Each reader also reads a little of Python's own, and where a library's page is gone, what lies
    # around it.
    assert 0.95 * SIZE <= sum(e["read_bytes"] for e in last) < SIZE + OWN_BYTES
    assert SIZE <= sum(e["rchar_bytes"] for e in last) < SIZE + 2 * processes * 1_000_000
    assert last[0]["resident_before"] <= 0.01
    assert last[0]["resident_after"] > 0.9
    assert last[0]["device_read_bytes"] >= 0.95 * SIZE


def test_a_warm_epoch_reads_nothing_from_storage(train: Callable[..., WorkloadRun]) -> None:
    last: Any = train("cache=warm:epochs=2:computation_time=0").report["epochs"][-1]
    assert last["resident_before"] >= 0.99
    assert last["resident_after"] >= 0.99
    assert last["locked"] == (os.geteuid() == 0)
    assert last["read_bytes"] < OWN_BYTES
    assert last["rchar_bytes"] >= SIZE


@pytest.mark.parametrize("processes", [1, 2])
def test_a_checkpoint_has_the_bytes_it_was_asked_for(
    train: Callable[..., WorkloadRun], processes: int
) -> None:
    told: list[Any] = list(train(of(processes)).report["checkpoints"])
    assert [(c["epoch"], c["step"]) for c in told] == [
        (n, FILES // BATCH // processes) for n in range(1, EPOCHS + 1)
    ]
    for checkpoint in told:
        assert checkpoint["bytes"] == 3_000_000
        assert 0 < checkpoint["write_s"] + checkpoint["fsync_s"] <= checkpoint["duration_s"]


def test_a_run_may_be_shorter_than_its_epochs(train: Callable[..., WorkloadRun]) -> None:
    """The last epoch is cut, and what it does not need is not read.

    A checkpoint every 10 steps belongs to the step that it follows.
    """
    varied = (
        "epochs=2:cache=as_found:computation_time=0:file_shuffle=seed:checkpoint=on:"
        "steps_between_checkpoints=10:model_size_bytes=1000000"
    )
    done = train(varied, 30)
    assert done.error is None, done.last_lines
    first, second = (dict(e) for e in done.report["epochs"])
    assert (len(first["load_s"]), len(second["load_s"])) == (24, 6)  # type: ignore[arg-type]
    assert second["rchar_bytes"] < SIZE / 2  # type: ignore[operator]
    told: list[Any] = list(done.report["checkpoints"])
    assert [(c["epoch"], c["step"]) for c in told] == [(1, 10), (1, 20)]
    assert done.steps[9].wall_s > told[0]["duration_s"]
    assert first["checkpoint_s"] >= sum(c["duration_s"] for c in told) - 1e-5
    assert second["checkpoint_s"] == 0


def test_a_truncated_file_ends_the_cell_before_its_first_step(tmp_path: Path) -> None:
    known = small("num_files_train=4")
    workloads.provide([known], tmp_path, lambda _: None)
    victim = tmp_path / DataSpec.of(known.params).folder_name / DataSpec.of(known.params).names()[2]
    os.truncate(victim, RECORD - 1)
    done = run(Order(known, 2, 0, seed=1, scratch=tmp_path / "scratch", data=tmp_path))
    assert done.error is not None
    assert f"{victim}: 1048575 bytes instead of the 1048576 that were written" in done.error
    assert done.steps == ()
