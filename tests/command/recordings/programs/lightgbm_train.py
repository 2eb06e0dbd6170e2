"""lightgbm.train with log_evaluation (lightgbm 4.7.0): `python lightgbm_train.py EVERY SLEEP_S`.

EVERY is log_evaluation's period: a line per EVERY rounds.
"""

from __future__ import annotations

import sys
from typing import Any

import lightgbm
import numpy as np
from clock import Clock

EVERY, SLEEP_S = int(sys.argv[1]), float(sys.argv[2])
clock = Clock(SLEEP_S, warmup=2)


def tick(_: Any) -> None:
    """Sleep in every round, and tell the clock."""
    clock.sleep()
    clock.step()


generator = np.random.default_rng(1)
data = lightgbm.Dataset(generator.random((500, 8)), generator.random(500))
held_out = data.create_valid(generator.random((100, 8)), generator.random(100))
lightgbm.train(
    {"objective": "regression", "num_threads": 1},
    data,
    num_boost_round=120,
    valid_sets=[data, held_out],
    callbacks=[lightgbm.log_evaluation(EVERY), tick],
)
clock.tell()
