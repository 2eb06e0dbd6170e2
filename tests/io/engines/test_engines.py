"""An engine is a module with two functions, found by its name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.studies.io import parameters
from fixtures.studies.io.parameters import PARAMETERS
from fixtures.studies.io.workloads.io_train import _engine

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", PARAMETERS["engine"].words)
def test_every_engine_says_whether_it_can_run(name: str) -> None:
    """In a sentence, or None."""
    params = parameters.complete({"engine": name})
    engine = _engine(params)
    assert callable(engine.prepare)
    reason = engine.unavailable_reason(params)
    assert reason is None or reason


def test_an_engine_is_asked_without_what_it_runs_on() -> None:
    """`--plan` works, and quickly, where there is no torch."""
    ask = (
        "import sys; from fixtures.studies.io.workloads import io_train; "
        "[io_train.unavailable_reason(io_train.variant({'engine': name})) for name in ('torch', 'dlio')]; "
        "sys.exit(str(sorted({'torch', 'numpy', 'h5py'} & set(sys.modules))))"
    )
    done = subprocess.run((sys.executable, "-c", ask), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "[]"
