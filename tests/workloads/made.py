"""Workloads for tests: `io_train` on 48 samples of 1 MiB, seconds per cell; a class in `made`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest

from fixtures import workloads
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
    return workloads.case(
        "io_train", **{**SMALL, **dict(one.split("=") for one in varied.split(":"))}
    )


def _forget() -> None:
    for known in (workloads._read, workloads.class_of):
        known.cache_clear()


@contextmanager
def beside(kind: type[workloads.Workload]) -> Iterator[None]:
    module = ModuleType(kind.__module__)
    vars(module).update(Made=kind)
    known = workloads.names()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)
        patch.setattr(workloads, "names", lambda: (*known, "made"))
        _forget()
        yield
    _forget()
