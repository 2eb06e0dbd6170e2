"""What the model says of one setting, as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .terms import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from control.power.terms import Model, Setting


def answer(models: Mapping[float, Model], setting: Setting, cap_w: float, evaluations: int, *, profiled: bool) -> Answer:
    """Ask the model of the setting's memory clock."""
    model = models[setting.mem_mhz]
    anchor = model.anchor([setting.partition])
    clock = np.array([setting.sm_mhz])
    return Answer(
        setting=setting,
        throughput_images_per_s=float(model.throughput_images_per_s(anchor, clock)[0]),
        power_w=float(model.power_w(anchor, clock)[0]),
        sm_util_percent=float(anchor.sm_util_percent[0]),
        mem_util_percent=float(anchor.mem_util_percent[0]),
        cap_w=cap_w,
        evaluations=evaluations,
        profiled=profiled,
    )
