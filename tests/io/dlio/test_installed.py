"""DLIO is found, and it is told each of our parameters by its own key."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from fixtures.studies.io import dlio, parameters
from fixtures.studies.io.dlio import KEYS, Installed, NoDlio, command, environment, find, overrides
from tests.io.dlio.recorded import RELEASE


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No DLIO on PATH."""
    monkeypatch.delenv(dlio.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def script(path: Path, first: str = "#!/usr/bin/python") -> Path:
    path.write_text(f"{first}\n")
    path.chmod(0o755)
    return path


def test_without_it_what_to_do_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoDlio, match=r"^no program dlio_benchmark: install dlio-benchmark .* into DEEPTWEAK_DLIO\.$"):
        find()
    monkeypatch.setenv(dlio.VARIABLE, "/nowhere/dlio_benchmark")
    with pytest.raises(NoDlio, match=r"^DEEPTWEAK_DLIO=/nowhere/dlio_benchmark: no program"):
        find()


def test_a_program_without_its_module_is_named(tmp_path: Path) -> None:
    script(tmp_path / "python", f"#!/bin/sh\nexec '{sys.executable}' \"$@\"")
    program = script(tmp_path / "dlio_benchmark", f"#!{tmp_path}/python")
    with pytest.raises(NoDlio, match="no program mpirun"):
        find()
    script(tmp_path / "mpirun", "#!/bin/sh\necho 'mpirun (Open MPI) 4.1.4'")
    with pytest.raises(NoDlio, match=r"dlio_benchmark: its Python has no module dlio_benchmark; install"):
        find()
    program.unlink()


@pytest.mark.parametrize(
    ("first", "says"), [("no script", "is no Python program"), ("#!/nowhere/python", r"its Python \(/nowhere/python\) does not answer")]
)
def test_a_program_that_is_no_python_is_named(tmp_path: Path, first: str, says: str) -> None:
    script(tmp_path / "dlio_benchmark", first)
    script(tmp_path / "mpirun", "#!/bin/sh")
    with pytest.raises(NoDlio, match=says):
        find()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"missing": ["mpi4py", "torch"]}, "its Python lacks mpi4py, torch"),
        ({"version": "1.0.0"}, r"is 1\.0\.0; dlio-benchmark 2\.0\.0 of PyPI is supported"),
        ({"renamed": True}, r"is a later tree of that name; dlio-benchmark 2\.0\.0 of PyPI is supported"),
    ],
)
def test_one_that_lacks_something_or_is_another_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: dict[str, object], says: str
) -> None:
    """It is mostly installed without its dependencies, of which one names GPU libraries: some may have been forgotten."""
    usual = {"version": "2.0.0", "renamed": False, "workloads": [], "missing": []}
    monkeypatch.setattr(dlio, "_ask", lambda _: usual | answer)
    script(tmp_path / "dlio_benchmark")
    script(tmp_path / "mpirun", "#!/bin/sh")
    with pytest.raises(NoDlio, match=says):
        find()


def test_what_is_there_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a package of its name that says what the release says."""
    package, about = tmp_path / "dlio_benchmark", tmp_path / "dlio_benchmark-2.0.0.dist-info"
    for folder in (package / "utils", package / "configs" / "workload", about):
        folder.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "utils" / "config.py").write_text("if 'record_length' in config['dataset']: pass\n")
    (package / "configs" / "workload" / "unet3d_h100.yaml").touch()
    (about / "METADATA").write_text("Name: dlio-benchmark\nVersion: 2.0.0\n")
    monkeypatch.setattr(dlio, "_IMPORTED", ())
    (tmp_path / "bin").mkdir()
    script(tmp_path / "bin" / "python", f"#!/bin/sh\ncd '{tmp_path}'; exec '{sys.executable}' \"$@\"")
    script(tmp_path / "bin" / "dlio_benchmark")
    script(tmp_path / "bin" / "mpirun", "#!/bin/sh\necho 'mpirun (Open MPI) 4.1.4'")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    assert (find().open_mpi, find().workloads) == (True, frozenset({"unet3d_h100"}))


@pytest.mark.needs("dlio")
def test_the_one_that_is_installed_is_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert "unet3d_h100" in find().workloads


# What it is told.


HERE = Installed(Path("/opt/dlio_benchmark"), Path("/usr/bin/mpirun"), open_mpi=True, workloads=frozenset({"unet3d_h100"}))


def told(epochs: int = 1, steps: int | None = None, /, **given: str) -> dict[str, str]:
    return overrides(parameters.complete({"engine": "dlio", **given}), epochs, steps, seed=7)


def test_every_parameter_that_dlio_knows_is_given_by_a_key_that_it_reads() -> None:
    """But the bytes of one read, where the format's library reads as it likes."""
    known = told(format="indexed_binary", checkpoint="on", record_length_bytes="65536")
    assert {*KEYS.values()} <= known.keys() <= RELEASE
    assert (known["dataset.record_length"], known["checkpoint.model_size"]) == ("65536", "499153191")


@pytest.mark.parametrize(
    ("given", "key", "value"),
    [
        ({"prefetch_size": "8"}, "reader.prefetch_size", "8"),
        ({}, "reader.prefetch_size", "0"),  # unset: torch's own factor of 2
        ({"format": "tfrecord", "read_threads": "3"}, "reader.prefetch_size", "6"),  # TensorFlow's is of batches
        ({"format": "tfrecord"}, "framework", "tensorflow"),
        ({"format": "npz"}, "reader.data_loader", "pytorch"),
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
    assert told(**given)[key] == value


def test_so_many_steps_are_told_of_each_epoch() -> None:
    known = told(2, 5)
    assert (known["train.epochs"], known["train.total_training_steps"]) == ("2", "5")


def test_the_command_has_mpi_the_workload_and_one_folder_for_all_ranks() -> None:
    params = parameters.complete({"engine": "dlio", "processes": "4"})
    said = command(HERE, params, told(processes="4"))
    assert said[:7] == ["/usr/bin/mpirun", "-np", "4", "--bind-to", "none", "--oversubscribe", "/opt/dlio_benchmark"]
    assert said[7:9] == ["workload=unet3d_h100", "hydra.run.dir=output"]
    assert {"++workload.output.folder=output", "++workload.dataset.data_folder=data"} <= set(said)
    assert "workload=default" in command(dataclasses.replace(HERE, workloads=frozenset({"default"})), params, {})
    other = command(dataclasses.replace(HERE, open_mpi=False), params, {})
    assert other[:4] == ["/usr/bin/mpirun", "-np", "4", "/opt/dlio_benchmark"]


def test_its_environment_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/ours")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    said = environment()
    assert "PYTHONPATH" not in said
    assert said["TZ"] == "UTC"
