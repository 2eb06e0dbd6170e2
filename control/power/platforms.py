"""GPUs and their clock states, out of `data/power/gpus.yaml`."""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml

from control.errors import Refused, one_line

from .grid import DATA
from .terms import Platform


@cache
def platforms() -> dict[str, Platform]:
    """Every GPU that is known, by name."""
    said: dict[str, Any] = yaml.safe_load((DATA / "gpus.yaml").read_text(encoding="utf-8"))
    return {
        name: Platform(
            name=name,
            sm_mhz=tuple(float(mhz) for mhz in range(one["sm_mhz"]["first"], one["sm_mhz"]["last"] + 1, one["sm_mhz"]["step"])),
            mem_mhz=tuple(map(float, one["mem_mhz"])),
            searched_mem_mhz=tuple(map(float, one["searched_mem_mhz"])),
            anchor_mhz=float(one["anchor_mhz"]),
            tdp_w=float(one["tdp_w"]),
        )
        for name, one in said["gpus"].items()
    }


def platform(name: str) -> Platform:
    """Answer the GPU of this name. Raises: Refused, with the names there are."""
    known = platforms()
    if name not in known:
        raise Refused(f"GPU {one_line(name)!r} is not known; there are {', '.join(known)}. Its clocks belong into data/power/gpus.yaml.")
    return known[name]
