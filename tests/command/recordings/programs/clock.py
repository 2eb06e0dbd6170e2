"""A clock for the training programs of this folder: it tells the recorder what a step took.

Every program here is recorded again, from the root of the repository, by a line like

    python -m tests.command.recordings.record tqdm-default-slow --program='tqdm 4.70.1' \
        -- python tests/command/recordings/programs/tqdm_bars.py default 0.04

The last argument is always the sleep of a step in seconds. `make.sh` has the lines of all.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from statistics import fmean


class Clock:
    """Paces the steps of training, and measures them.

    `sleep()` in each step, `step()` at its end, and `pause()` before anything that is no step.
    """

    def __init__(self, pace_s: float, warmup: int = 1) -> None:
        self._pace_s = pace_s
        self._left_out = warmup
        self._began_s: float | None = None
        self._steps_s: list[float] = []

    def sleep(self) -> None:
        """Sleep as long as a step is to take."""
        time.sleep(self._pace_s)

    def step(self) -> None:
        """A step ends here, and the next begins; the first since a pause only begins one."""
        now_s = time.perf_counter()
        if self._began_s is not None:
            self._steps_s.append(now_s - self._began_s)
        self._began_s = now_s

    def pause(self) -> None:
        """The time from here to the next step is no step's: validation, or another epoch."""
        self._began_s = None

    def tell(self) -> None:
        """Write the truth where the recorder reads it."""
        steps_s = self._steps_s[self._left_out :]
        truth = {"step_s": round(fmean(steps_s), 7)}
        if told := os.environ.get("RECORDING_TRUTH"):
            Path(told).write_text(json.dumps(truth), encoding="utf-8")
