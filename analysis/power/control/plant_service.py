"""The simulated plant over lines of JSON: settings in, what they give out."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.power import grid, parameters
from analysis.power.algorithms._configured import every_batch
from analysis.power.platforms import platform
from analysis.terms import Refused

from .messages import mapping, maybe, number, numbers, read, settings_of, text, whole
from .plant import Mismatch, Plant
from .tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from .plant import Ran

    Write = Callable[[dict[str, Any]], None]

LONGEST_S = 3600.0
MOST_LATENCIES = 1000  # of a tenant and a window: all are alike


def serve(lines: Iterable[str], write: Write) -> int:
    """Answer each line. Returns: 0 when there are no more, 2 after a line that could not be used: `{"error": …}`."""
    plant: Plant | None = None
    try:
        for line in lines:
            said = read(line)
            if plant is None:
                plant = plant_of(said)
                write({"ready": True, "knobs": asdict(plant.knobs)})
            elif "apply" in said:
                actual, refused = plant.apply(settings_of(mapping(said, "apply")))
                write({"applied": asdict(actual), "refused": list(refused)})
            else:
                write(_told(plant.run(_seconds(said))))
    except Refused as reason:
        write({"error": str(reason)})
        return 2
    return 0


def plant_of(said: Mapping[str, Any]) -> Plant:
    """The plant that is asked for. Raises: Refused."""
    if said.get("hello") != 1:
        raise Refused(f"hello: version {said.get('hello')!r} is not spoken here, only 1.")
    gpu = text(said, "gpu")
    mismatch = Mismatch(
        gain_error=number(said, "gain_error", otherwise=0.0),
        partition_error=number(said, "partition_error", otherwise=0.0),
        noise_w=number(said, "noise_w", otherwise=0.0),
        lag_s=number(said, "lag_s", otherwise=0.0),
        seed=whole(said, "seed", otherwise=1.0),
        oom_above_batch=None if maybe(said, "oom_above_batch") is None else whole(said, "oom_above_batch"),
        refuse_clocks=numbers(said, "refuse_clocks"),
    )
    if min(mismatch.noise_w, mismatch.lag_s, mismatch.seed, mismatch.partition_error) < 0 or not 0 <= mismatch.gain_error < 1:
        raise Refused("noise_w, lag_s, seed and partition_error are 0 or more, gain_error is from 0 to below 1.")
    models = parameters.models_for(Path(text(said, "parameters")), text(said, "network"), gpu)
    return Plant(Tables(models, platform(gpu)), mismatch, batches())


def batches() -> tuple[int, ...]:
    """Every batch that the plant takes: those of the grid and of all ladders."""
    return tuple(sorted({*every_batch(), *(point.batch for point in grid.anchor())}))


def _seconds(said: Mapping[str, Any]) -> float:
    seconds = number(said, "run_s")
    if not 0 < seconds <= LONGEST_S:
        raise Refused(f"run_s: {seconds:g} is not above 0 and up to {LONGEST_S:g} s.")
    return seconds


def _told(ran: Ran) -> dict[str, Any]:
    """A window in lists; a tenant's batches that ended in it are all of one latency."""
    seconds = float(ran.t_s[-1])
    ended = [0 if one is None else min(int(1000 * seconds / one), MOST_LATENCIES) for one in ran.latency_ms]
    return {
        "samples": [[round(float(t), 3), round(float(watts), 3)] for t, watts in zip(ran.t_s, ran.readings_w, strict=True)],
        "images": list(ran.images),
        "latency_ms": [[one] * count for one, count in zip(ran.latency_ms, ended, strict=True)],
        "sm_util_percent": ran.sm_util_percent,
        "mem_util_percent": ran.mem_util_percent,
        "oom": list(ran.oom),
    }
