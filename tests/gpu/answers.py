"""Record a driver's answers to the project's NVML queries: `python -m tests.gpu.answers FILE.json`.

Files from a real GPU and from the stand-in (stand_in.py) show where the two differ. Nothing is
changed. `data/gpu/answers_2026-11-26_nvidia-h200.json` has the answers of an H200.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from fixtures.telemetry import nvml
from fixtures.telemetry.sources import SourceMissing

# Queries beside the project's, and those that identify the machine.
BESIDES = (
    "nvmlDeviceGetSupportedMemoryClocks",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetArchitecture",
    "nvmlDeviceGetPowerSource",
)


def answer(library: Any, ask: Callable[[Any, Any], object], gpu: nvml.Gpu) -> dict[str, object]:
    """A value, or the error."""
    try:
        return {"value": ask(library, gpu.handle)}
    except (library.NVMLError, library.NVMLLibraryMismatchError, AttributeError) as error:
        return {"error": f"{type(error).__name__}: {error}"}


def call(name: str, library: Any, handle: object) -> object:
    """Return the answer of an NVML function that takes a GPU alone."""
    return getattr(library, name)(handle)


def counted(library: Any, gpu: nvml.Gpu) -> dict[str, object]:
    """Return GPM's five quantities after several waits, or why one, or all of them, are missing."""
    try:
        counters = nvml.Counters(library, gpu.handle)
    except SourceMissing as missing:
        return {"error": str(missing)}
    after: dict[str, object] = {}
    for wait_s in (0.001, 0.02, 0.05, 0.09, 0.11, 0.2, 0.5):
        time.sleep(wait_s)
        after[f"{wait_s:g}"] = counters.peek()
    counters.close()
    return {"metrics": list(nvml.METRICS), "after_s": after, "why": counters.why}


def main(path: Path) -> None:
    """Ask, and write the answers."""
    library = nvml.library()
    gpu = nvml.Gpu(library, 0)
    queries = {
        query: [answer(library, read, gpu) for read in reads]
        for query, reads in nvml.QUERIES.items()
    }
    told = {
        "driver": library.nvmlSystemGetDriverVersion(),
        "queries": queries,
        "gpm": counted(library, gpu),
    }
    told |= {name: answer(library, partial(call, name), gpu) for name in BESIDES}
    path.write_text(json.dumps(told, indent=1, default=str) + "\n")
    print(
        f"{path}: {sum('value' in one for ones in queries.values() for one in ones)} queries "
        "answered"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
