"""Notes of `compare` where each arm ran once: only the arm's own steps are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.compare import compare
from analysis.load import load
from analysis.terms import Refused
from tests.deeptweak_like import Like, directory

STEADY, OTHER = np.random.default_rng(1).normal(1, 0.02, (2, 400)).tolist()


def notes(tmp_path: Path, *arms: Sequence[float]) -> list[str]:
    """Return the notes of a directory of two runs whose steps take such times."""
    directory(
        tmp_path / "run", Like("base", steps=len(arms[0])), Like("exp1", steps=len(arms[1]), seed=2)
    )
    run = load(tmp_path / "run")
    cells = [
        replace(cell, steps=replace(cell.steps, wall_s=tuple(wall_s)))
        for cell, wall_s in zip(run.cells, arms, strict=True)
        if cell.steps is not None
    ]
    (comparison,) = compare(replace(run, cells=tuple(cells)))
    assert comparison.verdict == "inconclusive"
    return [note.partition("run-")[2] for note in comparison.notes]


def test_a_quiet_run_has_no_note(tmp_path: Path) -> None:
    assert notes(tmp_path, STEADY, OTHER) == []


def test_a_stall_is_named_with_the_mean_without_it(tmp_path: Path) -> None:
    """Five of 400 steps five times as long: 20 steps more, 4.8 % of all."""
    stalled = np.where(np.arange(400) // 5 == 40, 5.0, STEADY).tolist()
    (note,) = notes(tmp_path, STEADY, stalled)
    assert (
        note
        == "exp1-b1 stalled: steps 201 to 205 took 25 s, 5 times the median each; without them "
        "its mean step is -4.8 %."
    )


def test_a_run_that_slows_down_is_noted(tmp_path: Path) -> None:
    (note,) = notes(tmp_path, [*STEADY[:200], *(1.05 * time_s for time_s in STEADY[200:])], OTHER)
    assert (
        note
        == "base-b1 drifted: in its second half the median step is +4.8 % (Kolmogorov-Smirnov p "
        "<0.001)."
    )


def test_two_arms_of_one_file_with_the_same_times_are_copies(tmp_path: Path) -> None:
    with pytest.raises(
        Refused, match="exp1-b1 has exactly the times of deeptweak/run-base-b1: one is a copy"
    ):
        notes(tmp_path, STEADY, STEADY)


@pytest.mark.parametrize("wall_s", [1.0, 1e-9])
def test_steps_that_never_vary_have_no_note(tmp_path: Path, wall_s: float) -> None:
    assert notes(tmp_path, [wall_s] * 400, [wall_s] * 400) == []
