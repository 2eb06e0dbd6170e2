"""The plug-in point: an engine is a file of the folder, with two functions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.io import engines, parameters
from fixtures.terms import BadInput

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", engines.names())
def test_every_engine_says_whether_it_can_run(name: str) -> None:
    """In a sentence, or None."""
    engine = engines.load(name)
    assert callable(engine.prepare)
    reason = engine.cannot(parameters.complete({"engine": name}))
    assert reason is None or reason


def test_an_unknown_engine_is_answered_with_those_there_are() -> None:
    with pytest.raises(BadInput, match=r"No engine 'toroch'\. Did you mean 'torch'\? There are: .*torch"):
        engines.load("toroch")


def test_an_engine_is_asked_without_what_it_runs_on() -> None:
    """`--plan` works, and quickly, where there is no torch."""
    ask = (
        "import sys; from fixtures.io import engines, parameters; "
        "[engines.load(name).cannot(parameters.complete({'engine': name})) for name in engines.names()]; "
        "sys.exit(str(sorted({'torch', 'numpy', 'h5py'} & set(sys.modules))))"
    )
    done = subprocess.run((sys.executable, "-c", ask), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "[]"
