"""DLIO is found, and it is told each of our parameters by its own key."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fixtures.studies.io import dlio, parameters
from fixtures.studies.io.dlio import KEYS, Installed, NoDlio, find, overrides
from tests.io.dlio.recorded import RELEASE


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No DLIO on PATH."""
    monkeypatch.delenv(dlio.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def installed(folder: Path, answer: str) -> None:
    """A folder with DLIO's program, an MPI, and a Python that answers so."""
    script(folder / "mpirun", "exit 0")
    script(folder / "dlio_benchmark", "exit 0")
    script(folder / "python", answer)


def test_without_it_what_to_do_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(
        NoDlio, match=r"^dlio_benchmark not found: install dlio-benchmark .* in DEEPTWEAK_DLIO\.$"
    ):
        find()
    script(tmp_path / "dlio_benchmark", "exit 0")
    with pytest.raises(NoDlio, match=r"^mpirun not found: install Open MPI"):
        find()
    monkeypatch.setenv(dlio.VARIABLE, "/nowhere/dlio_benchmark")
    with pytest.raises(NoDlio, match=r"^DEEPTWEAK_DLIO=/nowhere/dlio_benchmark: no such program"):
        find()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("exit 1", r"python has no dlio-benchmark 2\.0\.0 from PyPI; install"),
        ("echo nonsense", r"python has no dlio-benchmark 2\.0\.0 from PyPI; install"),
        (
            """echo '{"version": "1.0.0", "renamed": false}'""",
            r"from PyPI \(found: 1\.0\.0\); install",
        ),
        (
            """echo '{"version": "2.0.0", "renamed": true}'""",
            r"from PyPI \(found: 2\.0\.0, from a later source tree\)",
        ),
    ],
)
def test_another_version_is_refused(tmp_path: Path, answer: str, says: str) -> None:
    installed(tmp_path, answer)
    with pytest.raises(NoDlio, match=says):
        find()


def test_the_release_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a package of its name that says what the release says."""
    package, about = tmp_path / "dlio_benchmark", tmp_path / "dlio_benchmark-2.0.0.dist-info"
    for folder in (package / "utils", about, tmp_path / "bin"):
        folder.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "utils" / "config.py").write_text("if 'record_length' in config['dataset']: pass\n")
    (about / "METADATA").write_text("Name: dlio-benchmark\nVersion: 2.0.0\n")
    installed(tmp_path / "bin", f"cd '{tmp_path}'; exec '{sys.executable}' \"$@\"")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    assert find() == Installed(tmp_path / "bin" / "dlio_benchmark", tmp_path / "bin" / "mpirun")
    (package / "utils" / "config.py").write_text(
        "if 'record_length_bytes' in config['dataset']: pass\n"
    )
    dlio._at.cache_clear()
    with pytest.raises(NoDlio, match="a later source tree"):
        find()


# What it is told.


HERE = Installed(Path("/opt/dlio_benchmark"), Path("/usr/bin/mpirun"))


def told(epochs: int = 1, steps: int | None = None, /, **given: str) -> dict[str, str]:
    return overrides(parameters.complete({"engine": "dlio", **given}), epochs, steps, seed=7)


def test_every_dlio_parameter_is_given_by_a_key_that_dlio_reads() -> None:
    """But the bytes of one read, where the format's library reads as it likes."""
    known = told(format="indexed_binary", checkpoint="on", record_length_bytes="65536")
    assert {*KEYS.values()} <= known.keys() <= RELEASE
    assert (known["dataset.record_length"], known["checkpoint.model_size"]) == (
        "65536",
        "499153191",
    )


@pytest.mark.parametrize(
    ("given", "key", "value"),
    [
        ({}, "reader.prefetch_size", "0"),  # unset: torch's own factor of 2
        (
            {"format": "tfrecord", "read_threads": "3"},
            "reader.prefetch_size",
            "6",
        ),  # TensorFlow's is of batches
        ({"format": "tfrecord"}, "framework", "tensorflow"),
        ({"checkpoint": "on"}, "checkpoint.steps_between_checkpoints", "-1"),
        (
            {"checkpoint": "on", "steps_between_checkpoints": "4"},
            "checkpoint.steps_between_checkpoints",
            "4",
        ),
        (
            {"checkpoint": "on", "epochs": "4", "epochs_between_checkpoints": "2"},
            "checkpoint.checkpoint_after_epoch",
            "2",
        ),
        ({}, "checkpoint.model_size", "10240"),  # it makes the tensors even where it writes none
        ({}, "workflow.evaluation", "False"),
    ],
)
def test_what_it_would_do_otherwise_is_told(given: dict[str, str], key: str, value: str) -> None:
    assert told(**given)[key] == value
