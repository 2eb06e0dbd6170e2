"""What DLIO is told: each of our parameters by the key that the installed tree reads, whatever it calls it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from fixtures.studies.io import parameters
from fixtures.studies.io.dlio import SPELLINGS, Installed, NoDlio, command, environment, overrides
from tests.io.dlio.recorded import LATER, RELEASE

HERE = Installed(
    Path("/opt/dlio_benchmark"), Path("/usr/bin/mpirun"), open_mpi=True, version="2.0.0", keys=RELEASE, workloads=frozenset({"unet3d_h100"})
)
THERE = dataclasses.replace(HERE, keys=LATER)


def told(here: Installed, epochs: int = 1, steps: int | None = None, /, **given: str) -> dict[str, str]:
    return overrides(here, parameters.complete({"engine": "dlio", **given}), epochs, steps, seed=7)


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_parameter_that_dlio_knows_is_given(name: str) -> None:
    """But the bytes of one read, where the format's library reads as it likes."""
    for here in (HERE, THERE):
        known = told(here, format="indexed_binary", checkpoint="on")
        assert here.key(*SPELLINGS[name]) in known


def test_each_tree_is_told_in_its_own_spelling() -> None:
    release, later = told(HERE, record_length_bytes="65536", checkpoint="on"), told(THERE, record_length_bytes="65536", checkpoint="on")
    assert release["dataset.record_length"] == later["dataset.record_length_bytes"] == "65536"
    assert release["checkpoint.model_size"] == later["model.model_size_bytes"] == "499153191"
    assert not {key for key in release if key.endswith("_bytes")}
    assert release.keys() <= RELEASE
    assert later.keys() <= LATER


def test_a_tree_that_reads_no_such_key_is_refused_before_it_runs() -> None:
    """Else it would run something else without a word."""
    here = dataclasses.replace(HERE, keys=RELEASE - {"dataset.record_length"})
    with pytest.raises(NoDlio, match=r"reads no key dataset\.record_length_bytes or dataset\.record_length"):
        told(here)


@pytest.mark.parametrize(
    ("given", "key", "value"),
    [
        ({"prefetch_size": "8"}, "reader.prefetch_size", "8"),
        ({}, "reader.prefetch_size", "0"),  # unset: torch's own factor of 2
        ({"format": "tfrecord", "read_threads": "3"}, "reader.prefetch_size", "6"),  # TensorFlow's is of batches
        ({"format": "tfrecord"}, "framework", "tensorflow"),
        ({"format": "npy"}, "reader.data_loader", "pytorch"),
        ({"file_shuffle": "off"}, "reader.file_shuffle", "off"),
        ({"checkpoint": "on"}, "workflow.checkpoint", "True"),
        ({"checkpoint": "on"}, "checkpoint.steps_between_checkpoints", "-1"),
        ({"checkpoint": "on", "steps_between_checkpoints": "4"}, "checkpoint.steps_between_checkpoints", "4"),
        ({"checkpoint": "on", "epochs": "4", "epochs_between_checkpoints": "2"}, "checkpoint.checkpoint_after_epoch", "2"),
        ({}, "workflow.checkpoint", "False"),
        ({}, "checkpoint.model_size", "10240"),  # it makes the tensors even where it writes none
        ({}, "train.total_training_steps", "-1"),
        ({}, "train.seed", "7"),
        ({}, "workflow.evaluation", "False"),
    ],
)
def test_what_it_would_do_otherwise_is_told(given: dict[str, str], key: str, value: str) -> None:
    assert told(HERE, **given)[key] == value


def test_so_many_steps_are_told_of_each_epoch() -> None:
    known = told(HERE, 2, 5)
    assert (known["train.epochs"], known["train.total_training_steps"]) == ("2", "5")


def test_the_command_has_mpi_the_workload_and_one_folder_for_all_ranks() -> None:
    params = parameters.complete({"engine": "dlio", "processes": "4"})
    said = command(HERE, params, told(HERE, processes="4"))
    assert said[:7] == ["/usr/bin/mpirun", "-np", "4", "--bind-to", "none", "--oversubscribe", "/opt/dlio_benchmark"]
    assert said[7:9] == ["workload=unet3d_h100", "hydra.run.dir=output"]
    assert {"++workload.output.folder=output", "++workload.dataset.data_folder=data"} <= set(said)
    assert "workload=default" in command(dataclasses.replace(HERE, workloads=frozenset({"default"})), params, {})
    other = command(dataclasses.replace(HERE, open_mpi=False), params, {})
    assert other[:4] == ["/usr/bin/mpirun", "-np", "4", "/opt/dlio_benchmark"]


def test_its_environment_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its clock is in UTC: its stamps say no zone. Our Python's paths are none of its."""
    monkeypatch.setenv("PYTHONPATH", "/ours")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    said = environment()
    assert "PYTHONPATH" not in said
    assert said["TZ"] == "UTC"
