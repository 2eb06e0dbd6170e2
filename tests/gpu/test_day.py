"""Run the script for a GPU day on a stand-in (stand_in.py): each part once, findings packed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.gpu import stand_in

pytestmark = [pytest.mark.slow, pytest.mark.needs("cc")]


def test_a_part_is_run_once_and_packed(tmp_path: Path) -> None:
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    around = {
        **stand_in.environment(
            stand_in.built(libraries), PARTS="answers", DEEPTWEAK_STATE_DIR=tmp_path / "state"
        ),
        "PATH": path,
    }
    command = [
        str(Path(stand_in.HERE) / "day.sh"),
        str(tmp_path / "day"),
        str(tmp_path / "day.tar.gz"),
    ]
    first, again = (
        subprocess.run(command, env=around, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert first.startswith("answers: exit code 0")
    assert again.startswith("answers: done before")
    with tarfile.open(tmp_path / "day.tar.gz") as packed:
        told = json.load(packed.extractfile("./answers.json") or pytest.fail("not packed"))
    assert told["queries"]["power_mw"][0]["value"] == 61250
    assert told["queries"]["power_instant_w"][0]["value"] == 61.5
