"""Arms that ran once are compared only if their steps are not copies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.compare import compare
from analysis.load import load
from analysis.terms import Refused
from tests.deeptweak_like import Like, directory

STEADY = np.random.default_rng(1).normal(1, 0.02, 400).tolist()


def test_two_arms_of_one_file_with_the_same_times_are_copies(tmp_path: Path) -> None:
    directory(tmp_path / "run", Like("base", steps=400), Like("exp1", steps=400, seed=2))
    run = load(tmp_path / "run")
    cells = [
        replace(cell, steps=replace(cell.steps, wall_s=tuple(STEADY)))
        for cell in run.cells
        if cell.steps is not None
    ]
    with pytest.raises(
        Refused, match="exp1-b1 has exactly the times of deeptweak/run-base-b1: one is a copy"
    ):
        compare(replace(run, cells=tuple(cells)))
