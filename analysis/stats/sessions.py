"""Step times of many benchmark sessions, simulated or real, and the summaries that decision rules begin with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sessions:
    """Step times, shape (sessions, blocks, 2, steps), seconds; arm 0 is the baseline, 1 the candidate.

    Blocks are in time order. Where arms are not interleaved, all of arm 1 came after all of arm 0.
    """

    steps_s: Floats
    interleaved: bool = True

    @property
    def blocks(self) -> int:
        """How many runs an arm has."""
        return int(self.steps_s.shape[1])


def run_means(sessions: Sessions) -> Floats:
    """Mean step time of each run, shape (sessions, blocks, 2)."""
    return np.asarray(sessions.steps_s.mean(axis=-1))


def pooled(sessions: Sessions, steps: int | None = None) -> Floats:
    """All steps of an arm in one heap, or the first few of each run: shape (sessions, 2, blocks · steps)."""
    return sessions.steps_s[..., :steps].swapaxes(1, 2).reshape(len(sessions.steps_s), 2, -1)


def few_runs(sessions: Sessions, runs: int) -> Floats:
    """What a rule sees that looks at a few runs an arm: blocks that follow each other, shape (sessions, runs, 2, steps).

    It is another stretch in each session, so that no part of a session speaks for all of it.
    """
    count = len(sessions.steps_s)
    starts = np.arange(count) % (sessions.blocks - runs + 1)
    return np.asarray(sessions.steps_s[np.arange(count)[:, np.newaxis], starts[:, np.newaxis] + np.arange(runs)])


def history_and_newest(sessions: Sessions, history: int, newest: int) -> tuple[Floats, Floats]:
    """Mean step time of the last baseline runs and of the candidate runs that came right after, shape (sessions, runs) each.

    Where arms were interleaved no candidate run came after all of the baseline; the last ones are taken.
    """
    means = run_means(sessions)
    return means[:, -history:, 0], means[:, -newest:, 1] if sessions.interleaved else means[:, :newest, 1]
