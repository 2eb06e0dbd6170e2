"""io_train with 48 samples of 1 MiB: a cell lasts seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fixtures.workloads import case

if TYPE_CHECKING:
    from fixtures.terms import Case

RECORD, FILES, BATCH = 1 << 20, 48, 2
SIZE = RECORD * FILES
SMALL = {
    "format": "raw",
    "read_threads": 2,
    "batch_size": BATCH,
    "num_files_train": FILES,
    "record_length_bytes": RECORD,
    "record_length_bytes_stdev": 0,
}


def small(varied: str) -> Case:
    """48 samples of 1 MiB with these parameters beside: `processes=2:cache=cold`."""
    return case("io_train", **{**SMALL, **dict(one.split("=") for one in varied.split(":"))})
