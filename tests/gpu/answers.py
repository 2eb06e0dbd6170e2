"""What a driver answers to each query of NVML that this project makes: `python -m tests.gpu.answers FILE.json`.

Made of a real GPU and of the stand-in (stand_in.py) the two files show where the stand-in is not like the real one. Nothing is changed.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from fixtures.node import nvml
from fixtures.node.sources import SourceMissing


def answered(library: Any, gpu: nvml.Gpu) -> dict[str, list[dict[str, object]]]:  # noqa: ANN401 a module of which much is asked
    """By query, what each name of its call answers: a value and its time in µs (median of 20), or the error."""
    found: dict[str, list[dict[str, object]]] = {}
    for query, reads in nvml.QUERIES.items():
        found[query] = []
        for read in reads:
            took_us = []
            one: dict[str, object] = {}
            try:
                for _ in range(20):
                    began = time.perf_counter()
                    one["value"] = read(library, gpu.handle)
                    took_us.append(1e6 * (time.perf_counter() - began))
                one["took_us"] = round(statistics.median(took_us), 1)
            except (library.NVMLError, library.NVMLLibraryMismatchError, AttributeError) as error:
                one["error"] = f"{type(error).__name__}: {error}"
            found[query].append(one)
    return found


def counted(library: Any, gpu: nvml.Gpu) -> dict[str, object]:  # noqa: ANN401 as above
    """GPM's five quantities after waits of several lengths, each with the reason of one that is missing; or why there are none."""
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
    told: dict[str, object] = {
        "driver": library.nvmlSystemGetDriverVersion(),
        "queries": answered(library, gpu),
        "gpm": counted(library, gpu),
    }
    for name in ("nvmlDeviceGetSupportedMemoryClocks", "nvmlDeviceGetMigMode", "nvmlDeviceGetArchitecture", "nvmlDeviceGetPowerSource"):
        try:
            told[name] = getattr(library, name)(gpu.handle)
        except (library.NVMLError, library.NVMLLibraryMismatchError, AttributeError) as error:
            told[name] = f"{type(error).__name__}: {error}"
    path.write_text(json.dumps(told, indent=1, default=str) + "\n")
    print(f"{path}: {sum('value' in one for ones in told['queries'].values() for one in ones)} queries answered")  # type: ignore[attr-defined]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
