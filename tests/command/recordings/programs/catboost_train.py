"""catboost with its line per iteration (catboost 1.2.10): `python catboost_train.py EVERY SLEEP_S`.

EVERY is `verbose`: a line per EVERY iterations.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import numpy as np
from catboost import CatBoostRegressor
from clock import Clock

EVERY, SLEEP_S = int(sys.argv[1]), float(sys.argv[2])
clock = Clock(SLEEP_S, warmup=2)


class Ticks:
    """Sleeps in every iteration, and tells the clock."""

    def after_iteration(self, *_: Any) -> bool:
        """Count an iteration and continue."""
        clock.sleep()
        clock.step()
        return True


generator = np.random.default_rng(1)
data, held_out = generator.random((500, 8)), generator.random((100, 8))
with tempfile.TemporaryDirectory() as folder:
    model = CatBoostRegressor(
        iterations=120, depth=3, thread_count=1, verbose=EVERY, train_dir=folder
    )
    model.fit(data, data[:, 0], eval_set=(held_out, held_out[:, 0]), callbacks=[Ticks()])
clock.tell()
