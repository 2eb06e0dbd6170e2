"""DLIO is found, and what it reads is read in its own source; without it, what to do is said."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from fixtures.studies.io import dlio
from fixtures.studies.io.dlio import SPELLINGS, NoDlio, find, keys_of
from tests.io.dlio.recorded import LATER, RELEASE

if TYPE_CHECKING:
    from pathlib import Path

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


@pytest.mark.parametrize("keys", [RELEASE, LATER])
def test_every_parameter_has_a_spelling_in_both_trees_that_are_known(keys: frozenset[str]) -> None:
    assert all(any(one in keys for one in spelt) for spelt in SPELLINGS.values())


def test_without_it_what_to_do_is_said() -> None:
    with pytest.raises(NoDlio, match=r"^no program dlio_benchmark: install dlio-benchmark .* into DEEPTWEAK_DLIO\.$"):
        find()


def test_a_path_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(dlio.VARIABLE, "/nowhere/dlio_benchmark")
    with pytest.raises(NoDlio, match=r"^DEEPTWEAK_DLIO=/nowhere/dlio_benchmark: no program"):
        find()


def test_a_program_without_its_module_is_named(tmp_path: Path) -> None:
    """The Python of these tests has no DLIO in its environment: it is not for that."""
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


def test_a_module_without_what_it_imports_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is mostly installed without its dependencies, of which one names GPU libraries: some may have been forgotten."""
    monkeypatch.setattr(dlio, "_ask", lambda _: {"folder": str(tmp_path), "version": "2.0.0", "missing": ["mpi4py", "tensorflow"]})
    script(tmp_path / "dlio_benchmark")
    script(tmp_path / "mpirun", "#!/bin/sh")
    with pytest.raises(NoDlio, match="its Python lacks mpi4py, tensorflow"):
        find()


def test_a_tree_of_which_the_keys_cannot_be_found_out_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dlio, "_ask", lambda _: {"folder": str(tmp_path), "version": "9", "missing": []})
    script(tmp_path / "dlio_benchmark")
    script(tmp_path / "mpirun", "#!/bin/sh")
    with pytest.raises(NoDlio, match="which keys it reads cannot be found out"):
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
