"""Tasks one after another with joblib's lines (joblib 1.6.0): `python joblib_tasks.py SLEEP_S`."""

from __future__ import annotations

import sys

from clock import Clock
from joblib import Parallel, delayed

clock = Clock(float(sys.argv[1]))


def task() -> None:
    """Sleep as long as told, and tell the clock."""
    clock.sleep()
    clock.step()


Parallel(n_jobs=1, verbose=10)(delayed(task)() for _ in range(150))
clock.tell()
