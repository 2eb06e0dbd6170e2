"""Shared by tests of capped GPUs: parameters of an invented network, and the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.__main__ import main
from tests.analysis.studies.power import made_control
from tests.analysis.studies.power.command import Power, Printed


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of parameters; tests that compare messages use the folder's relative name."""
    return made_control.folder(tmp_path_factory.mktemp("made") / "parameters")


@pytest.fixture
def power(capsys: pytest.CaptureFixture[str]) -> Power:
    """Run `python -m analysis power …` in this process."""

    def run(*args: object) -> Printed:
        capsys.readouterr()
        code = main(["power", *map(str, args)])
        return Printed(code, *capsys.readouterr())

    return run
