"""xgboost.train with its line per round (xgboost 3.2.0): `python xgboost_train.py EVERY SLEEP_S`.

EVERY is `verbose_eval`: a line per EVERY rounds.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import xgboost
from clock import Clock

EVERY, SLEEP_S = int(sys.argv[1]), float(sys.argv[2])
clock = Clock(SLEEP_S, warmup=2)


class Ticks(xgboost.callback.TrainingCallback):  # type: ignore[misc]
    """Sleeps in every round, and tells the clock."""

    def after_iteration(self, *_: Any) -> bool:
        """Count a round and continue."""
        clock.sleep()
        clock.step()
        return False


generator = np.random.default_rng(1)
data = xgboost.DMatrix(generator.random((500, 8)), generator.random(500))
held_out = xgboost.DMatrix(generator.random((100, 8)), generator.random(100))
xgboost.train(
    {"max_depth": 3, "nthread": 1},
    data,
    num_boost_round=120,
    evals=[(data, "train"), (held_out, "valid")],
    verbose_eval=EVERY,
    callbacks=[Ticks()],
)
clock.tell()
