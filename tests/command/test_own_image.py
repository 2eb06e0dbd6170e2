"""A zip of all that a workload's own image lacks, which needs only that image's Python."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from fixtures.kubernetes import manifests
from fixtures.studies.command import spec

MODULES = ("fixtures.workloads.command", "fixtures.kernel.process_settings")
STEPS = 3


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """The zip as a pod has it, unpacking into a folder of the test's."""
    text = manifests.packed(MODULES)
    path = tmp_path / "run.zip"
    with zipfile.ZipFile(io.BytesIO(text)) as whole, zipfile.ZipFile(path, "w") as target:
        for name in whole.namelist():
            target.writestr(
                name, whole.read(name).replace(manifests.SCRATCH.encode(), str(tmp_path).encode())
            )
    return path


def python_alone(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python as in an image that has neither the harness nor its libraries."""
    return subprocess.run(
        [sys.executable, "-S", *words],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_workload_runs_where_nothing_of_the_harness_is(code: Path, tmp_path: Path) -> None:
    path = tmp_path / "command.json"
    command = spec.Command("true", ("true",), ".", {}, spec.RUNS, None, STEPS, 1, image="x")
    path.write_text(command.text())
    ordered = (
        f"--params={json.dumps({'run': f'true-{command.identity()}'})}",
        f"--file=command={path}",
        f"--steps={STEPS}",
        "--warmup=1",
        "--seed=1",
        f"--scratch={tmp_path}",
    )
    for start in (
        ("fixtures.workloads.command",),
        ("fixtures.kernel.process_settings", "Nice=5", "--", "command"),
    ):
        done = python_alone(str(code), *start, *ordered, folder=tmp_path)
        said = [json.loads(line)["event"] for line in done.stdout.splitlines()]
        assert said == ["ready", *["step", "report"] * (STEPS + 1), "end"], done.stderr


def test_the_same_code_is_the_same_zip() -> None:
    again = manifests.packed.__wrapped__(MODULES)
    assert manifests.packed(MODULES) == again
    assert len(again) < 500_000  # a ConfigMap takes twice as much
