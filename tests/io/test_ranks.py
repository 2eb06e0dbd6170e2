"""Ranks end together: in order, or with one sentence that names who was missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.needs("torch")

ROOT = Path(__file__).parents[2]
# Two ranks whose barrier waits so long. A process of its own: forking the tests' would copy all
# that they have open.
PROGRAM = """
import os, signal, time
from fixtures.studies.io import ranks
from fixtures.terms import Refused

ranks.BARRIER_TIMEOUT_S = ranks._WHO_DIED_S = {patience_s}

def work(team):
    {other}

try:
    with ranks.started({size}, work) as team:
        {first}
except Refused as problem:
    print(problem)
"""


def said(first: str, other: str, size: int = 2, patience_s: float = PATIENCE_S) -> str:
    """Return the first rank's last words."""
    program = PROGRAM.format(first=first, other=other, size=size, patience_s=patience_s)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_ranks_meet_and_tell_the_first() -> None:
    other = "assert team.share(0) == 17; team.gather({'rank': team.rank}); team.barrier()"
    assert (
        said("team.share(17); print(team.gather({'rank': 0})); team.barrier()", other, size=3)
        == "[{'rank': 0}, {'rank': 1}, {'rank': 2}]\n"
    )


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ("time.sleep(600)", "did not reach the barrier within 5 s: it hung or read too slowly."),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "was killed by SIGSEGV."),
        (
            "raise Refused('Rank 1, epoch 3, step 4: no such file.')",
            "Rank 1, epoch 3, step 4: no such file.",
        ),
        ("raise KeyError('batch')", "Rank 1: KeyError: 'batch'"),
    ],
    ids=["hangs", "killed", "refused", "broken"],
)
def test_a_missing_rank_is_named_in_a_line(other: str, says: str) -> None:
    (line,) = said(
        "team.barrier()", other, patience_s=5.0 if "sleep" in other else PATIENCE_S
    ).splitlines()
    assert line.startswith("Rank 1")
    assert line.endswith(says)
