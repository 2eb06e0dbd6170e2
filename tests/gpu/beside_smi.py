"""Compare the telemetry with nvidia-smi on one GPU: `python -m tests.gpu.beside_smi FILE.json`.

For 20 seconds, the GPU rests, alternates work and rest (`load_of_gpu`), multiplies matrices
without a pause, and rests again. `compared` sets each row of nvidia-smi beside the telemetry
within a tenth of a second of it.
"""

from __future__ import annotations

import contextlib
import json
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from fixtures.studies.gpu import device
from fixtures.telemetry import nvml
from fixtures.telemetry.gpu_sources import GpuSensors
from fixtures.terms import Refused

# nvidia-smi's field -> the telemetry's column, and how far the two may be apart where the value
# stands still.
FIELDS = {
    "power.draw.average": ("power_w", 0.01),
    "power.draw.instant": ("power_instant_w", 0.01),
    "temperature.gpu": ("temperature_c", 0.0),
    "clocks.sm": ("sm_clock_mhz", 0.0),
    "clocks.mem": ("mem_clock_mhz", 0.0),
    "utilization.gpu": ("util_percent", 0.0),
    "utilization.memory": ("mem_util_percent", 0.0),
    "memory.used": ("mem_used_bytes", 2.0**20),
    "clocks_event_reasons.active": ("throttle_reasons_bitmask", 0.0),
}
NEAR_S = 0.1
REST_S, TURNS_S, BUSY_S = 3.0, 7.0, 7.0
KERNEL_S, LONGEST_S = 0.005, 0.3
Row = dict[str, float | None]


class Load:
    """Outcome: `why` there is no load, or None."""

    def __init__(self) -> None:
        self.why: str | None = None


@contextlib.contextmanager
def load_of_gpu(seed: int = 1) -> Iterator[Load]:
    """Alternate work and rest (up to 0.3 s) on the first GPU, in a thread with CUDA to itself."""
    state, started, over = Load(), threading.Event(), threading.Event()
    draw = random.Random(seed).uniform

    def work() -> None:
        try:
            with device.CudaGpu() as gpu:
                grid = gpu.grid(8 * gpu.sms, 256)
                grid.check()
                times, kernel_s = device.long_enough(grid.run, KERNEL_S)
                started.set()
                while not over.wait(draw(0.0, LONGEST_S)):
                    grid.stretch(times, device.launches(kernel_s, draw(KERNEL_S, LONGEST_S)))
        except Refused as error:
            state.why = str(error)
        finally:
            started.set()

    thread = threading.Thread(target=work, name="gpu-load", daemon=True)
    thread.start()
    started.wait()
    try:
        yield state
    finally:
        over.set()
        thread.join()


def compared(
    ours: Sequence[Row], theirs: Sequence[Row]
) -> dict[str, dict[str, float | int | None]]:
    """Return, by field, common rows, their share within the telemetry's range, median distance.

    The range is of all readings within `NEAR_S` of the row, since neither reads at the other's
    moment; the distance is to the nearest one.
    """
    found: dict[str, dict[str, float | int | None]] = {}
    for field, (column, apart) in FIELDS.items():
        inside, distances = [], []
        for row in theirs:
            near = [
                one
                for one in ours
                if abs(float(one["at_s"] or 0) - float(row["at_s"] or 0)) <= NEAR_S
            ]
            values = [value for one in near if (value := one.get(column)) is not None]
            value = row.get(field)
            if value is None or not values:
                continue
            inside.append(min(values) - apart <= value <= max(values) + apart)
            nearest = min(
                near, key=lambda one: abs(float(one["at_s"] or 0) - float(row["at_s"] or 0))
            ).get(column)
            if nearest is not None:
                distances.append(abs(nearest - value))
        found[field] = {
            "rows": len(inside),
            "agree": sum(inside) / len(inside) if inside else None,
            "median_distance": statistics.median(distances) if distances else None,
        }
    return found


def energy(ours: Sequence[Row]) -> dict[str, float | None]:
    """Return the counter's rise, J, and the two powers' integrals over that time (trapezoids)."""
    counter = [row["energy_j"] for row in ours if row.get("energy_j") is not None]
    told: dict[str, float | None] = {
        "counter_j": counter[-1] - counter[0] if counter else None,  # type: ignore[operator]
    }
    for column in ("power_w", "power_instant_w"):
        known = [
            (float(row["at_s"] or 0), float(row[column] or 0))
            for row in ours
            if row.get(column) is not None
        ]
        told[f"{column}_integral_j"] = (
            sum((b - a) * (x + y) / 2 for (a, x), (b, y) in pairwise(known))
            if len(known) > 1
            else None
        )
    return told


def watched(over: threading.Event, rows: list[Row]) -> None:
    """Read as the telemetry does, twenty times per second, plus the instantaneous power."""
    library = nvml.library()
    sensors, gpu = GpuSensors(library, 0), nvml.Gpu(library, 0)
    while not over.wait(0.05):
        at_s, values = time.time(), sensors.sample()
        row: Row = {"at_s": at_s}
        row |= {
            field.column.removeprefix("gpu0_"): None if value is None else value * field.scale
            for field, value in zip(sensors.fields, values, strict=True)
        }
        rows.append(row | gpu.told("power_instant_w"))


def smi(text: str) -> list[Row]:
    """Parse `nvidia-smi --query-gpu=timestamp,… --format=csv,noheader,nounits`; absent is None."""
    rows = []
    for line in text.splitlines():
        at, *cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(FIELDS):
            continue  # it was ended in the middle of a line
        row: Row = {"at_s": datetime.strptime(at, "%Y/%m/%d %H:%M:%S.%f").astimezone().timestamp()}
        for field, cell in zip(FIELDS, cells, strict=True):
            try:
                value = float(int(cell, 16)) if cell.startswith("0x") else float(cell)
                row[field] = value * 2.0**20 if field == "memory.used" else value
            except ValueError:
                row[field] = None
        rows.append(row)
    return rows


def multiply(for_s: float) -> str:
    """Keep the tensor cores busy for so long; answers what it did."""
    import torch

    if not torch.cuda.is_available():
        time.sleep(for_s)
        return "nothing: torch sees no CUDA"
    one = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    ended_s, count = time.monotonic() + for_s, 0
    while time.monotonic() < ended_s:
        for _ in range(10):
            one @ one
        torch.cuda.synchronize()
        count += 10
    return f"{count} products of 8192 x 8192 matrices (bfloat16)"


def main(path: Path) -> None:
    """Watch and work; write both down, and say what they differ by."""
    fields = ",".join(("timestamp", *FIELDS))
    with subprocess.Popen(
        [
            "nvidia-smi",
            f"--query-gpu={fields}",
            "--format=csv,noheader,nounits",
            "-lms",
            "100",
            "--id=0",
        ],
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        over, ours = threading.Event(), list[Row]()
        watcher = threading.Thread(target=watched, args=(over, ours))
        watcher.start()
        did: dict[str, Any] = {"rest_s": REST_S}
        time.sleep(REST_S)
        with load_of_gpu() as working:
            time.sleep(TURNS_S)
        did["turns"] = working.why or f"{TURNS_S} s"
        did["busy"] = multiply(BUSY_S)
        time.sleep(REST_S)
        over.set()
        watcher.join()
        other.terminate()
        theirs = smi(other.communicate()[0])
    path.write_text(json.dumps({"did": did, "telemetry": ours, "nvidia_smi": theirs}) + "\n")
    print(json.dumps({"did": did, "energy": energy(ours)}))
    for field, one in compared(ours, theirs).items():
        print(f"{field:28} {one}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
