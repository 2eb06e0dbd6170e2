"""io_train with 48 samples of 1 MiB: a cell lasts seconds."""

from __future__ import annotations

from fixtures import workloads

RECORD, FILES, BATCH = 1 << 20, 48, 2
SIZE = RECORD * FILES
SMALL = {
    "format": "raw",
    "read_threads": "2",
    "batch_size": f"{BATCH}",
    "num_files_train": f"{FILES}",
    "record_length_bytes": f"{RECORD}",
    "record_length_bytes_stdev": "0",
}


def small(varied: str) -> str:
    """48 samples of 1 MiB with these parameters beside: `processes=2:cache=cold`."""
    return workloads.varied("io_train", SMALL | dict(one.split("=") for one in varied.split(":")))
