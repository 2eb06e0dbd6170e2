"""keras' fit on a toy (keras 3.15.1): `KERAS_BACKEND=torch python keras_fit.py FORM SLEEP_S`.

FORM: `verbose-1`, `verbose-2`, `auto` (the default), or `validated` (verbose 1, with validation).
"""

from __future__ import annotations

import sys
import time
from typing import Any

import keras
import numpy as np
from clock import Clock

FORM, SLEEP_S = sys.argv[1], float(sys.argv[2])
FORMS: dict[str, dict[str, Any]] = {
    "verbose-1": {"verbose": 1},
    "verbose-2": {"verbose": 2},
    "auto": {},
    "validated": {"verbose": 1},
}
EPOCHS, STEPS, BATCH = 3, 40, 8
clock = Clock(SLEEP_S, warmup=2)


class Ticks(keras.callbacks.Callback):  # type: ignore[misc]
    """Sleeps in every batch of training, and tells the clock."""

    def on_train_batch_begin(self, *_: object, **__: object) -> None:
        """Sleep as long as told."""
        clock.sleep()

    def on_train_batch_end(self, *_: object, **__: object) -> None:
        """A step ends."""
        clock.step()

    def on_test_batch_begin(self, *_: object, **__: object) -> None:
        """Sleep 15 ms in validation."""
        time.sleep(0.015)

    def on_epoch_begin(self, *_: object, **__: object) -> None:
        """Exclude the time since the last step."""
        clock.pause()


generator = np.random.default_rng(1)
x, y = generator.random((STEPS * BATCH, 8)), generator.random((STEPS * BATCH, 1))
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile("sgd", "mse", metrics=["mae"])
validation = {"validation_data": (x, y)} if FORM == "validated" else {}
model.fit(x, y, BATCH, EPOCHS, callbacks=[Ticks()], **FORMS[FORM], **validation)
clock.tell()
