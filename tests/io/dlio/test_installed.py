"""DLIO is found, what it reads is read in its own source, and it is told each of our parameters by its own key."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from fixtures.studies.io import dlio, parameters
from fixtures.studies.io.dlio import SPELLINGS, Installed, NoDlio, command, environment, find, keys_of, overrides
from tests.io.dlio.recorded import LATER, RELEASE

# As LoadConfig is written in all trees, shortened.
SOURCE = """
@dataclass
class ConfigArguments:
    record_length: int = 64 * 1024

def LoadConfig(args, config):
    if 'framework' in config:
        args.framework = FrameworkType(config['framework'])
    if 'dataset' in config:
        if 'record_length_bytes' in config['dataset']:
            args.record_length = config['dataset']['record_length_bytes']
        if 'hdf5' in config['dataset']:
            if 'chunk_dims' in config['dataset']['hdf5']:
                args.chunk_dims = tuple(config['dataset']['hdf5']['chunk_dims'])
    reader = None
    if 'reader' in config:
        reader = config['reader']
    if reader is not None:
        if 'batch_size' in reader:
            args.batch_size = reader['batch_size']

def other(config):
    if 'nothing' in config['dataset']:
        pass
"""


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No DLIO on PATH."""
    monkeypatch.delenv(dlio.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def script(path: Path, first: str = "#!/usr/bin/python") -> Path:
    path.write_text(f"{first}\n")
    path.chmod(0o755)
    return path


def test_its_keys_are_those_that_its_own_function_looks_for() -> None:
    """Not those of its class: `record_length` there is `record_length_bytes` in a workload's file."""
    assert set(keys_of(SOURCE)) == {
        "framework", "dataset", "dataset.record_length_bytes", "dataset.hdf5", "dataset.hdf5.chunk_dims", "reader", "reader.batch_size"
    }  # fmt: skip


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
    ("missing", "says"),
    [(["mpi4py", "torch"], "its Python lacks mpi4py, torch"), ([], "which keys it reads cannot be found out")],
)
def test_one_that_lacks_something_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: list[str], says: str) -> None:
    """It is mostly installed without its dependencies, of which one names GPU libraries: some may have been forgotten."""
    monkeypatch.setattr(dlio, "_ask", lambda _: {"folder": str(tmp_path), "version": "2.0.0", "missing": missing})
    script(tmp_path / "dlio_benchmark")
    script(tmp_path / "mpirun", "#!/bin/sh")
    with pytest.raises(NoDlio, match=says):
        find()


def test_what_is_there_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "utils").mkdir()
    (tmp_path / "utils" / "config.py").write_text(SOURCE)
    (tmp_path / "configs" / "workload").mkdir(parents=True)
    (tmp_path / "configs" / "workload" / "unet3d_h100.yaml").touch()
    monkeypatch.setattr(dlio, "_ask", lambda _: {"folder": str(tmp_path), "version": "2.0.0", "missing": []})
    script(tmp_path / "dlio_benchmark")
    script(tmp_path / "mpirun", "#!/bin/sh\necho 'mpirun (Open MPI) 4.1.4'")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    here = find()
    assert (here.version, here.open_mpi, here.workloads) == ("2.0.0", True, frozenset({"unet3d_h100"}))
    assert here.key("dataset.record_length_bytes", "dataset.record_length") == "dataset.record_length_bytes"
    with pytest.raises(NoDlio, match="reads no key nothing"):
        here.key("nothing")


@pytest.mark.needs("dlio")
def test_the_one_that_is_installed_reads_what_we_tell_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    here = find()
    assert {here.key(*spelt) for spelt in SPELLINGS.values()} <= here.keys


# What it is told.


HERE = Installed(
    Path("/opt/dlio_benchmark"), Path("/usr/bin/mpirun"), open_mpi=True, version="2.0.0", keys=RELEASE, workloads=frozenset({"unet3d_h100"})
)
THERE = dataclasses.replace(HERE, keys=LATER)


def told(here: Installed, epochs: int = 1, steps: int | None = None, /, **given: str) -> dict[str, str]:
    return overrides(here, parameters.complete({"engine": "dlio", **given}), epochs, steps, seed=7)


@pytest.mark.parametrize("here", [HERE, THERE])
def test_every_parameter_that_dlio_knows_is_given(here: Installed) -> None:
    """But the bytes of one read, where the format's library reads as it likes."""
    known = told(here, format="indexed_binary", checkpoint="on")
    assert {here.key(*spelt) for spelt in SPELLINGS.values()} <= known.keys()


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
    monkeypatch.setenv("PYTHONPATH", "/ours")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    said = environment()
    assert "PYTHONPATH" not in said
    assert said["TZ"] == "UTC"
