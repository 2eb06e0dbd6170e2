"""The rules of MLPerf Storage v2.0 for training: how large a data set must be, which division overrides leave, what a run lacks.

The metric is samples/s while AU stays above the workload's threshold. The rules leave the first step's input out of AU and count it in
samples/s; DLIO leaves it out of both. Here the rule is implemented, and DLIO's figure stands beside it under its own name.

Source: MLPerf Storage v2.0, Rules.md (training).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Word = Literal["CLOSED", "OPEN", "INVALID"]

THRESHOLDS_PERCENT = {"unet3d": 90.0, "resnet50": 90.0, "cosmoflow": 70.0}
TIMES_MEMORY = 5
LEAST_STEPS = 500
RUNS = 5
SPREAD = 0.05
MAY_CHANGE_CLOSED = frozenset(
    {
        "dataset.num_files_train",
        "dataset.num_subfolders_train",
        "dataset.data_folder",
        "reader.read_threads",
        "reader.computation_threads",
        "reader.transfer_size",
        "reader.prefetch_size",
        "reader.odirect",  # not in the text of the rules; their checker admits it
        "checkpoint.checkpoint_folder",
        "storage.storage_root",
        "storage.storage_type",
    }
)
MAY_CHANGE_OPEN = frozenset({"framework", "dataset.format", "dataset.num_samples_per_file", "reader.data_loader"})
PREFETCH_SIZES = frozenset({"0", "1", "2"})
# What is no parameter of DLIO's workload: how many accelerators there are is for the submitter to choose, and engine, page cache, scales
# and whether there are checkpoints (`workflow`) are this project's. What scales make of other parameters is seen in those.
NO_PARAMETER = frozenset({"workload", "model", "processes", "engine", "cache", "checkpoint", "sample_scale", "record_scale"})
IGNORED = ("workflow.", "hydra.", "output.")


@dataclass(frozen=True, slots=True)
class Division:
    """Where a run belongs by what was changed: `because` names what keeps it out of both, `disclosed` what OPEN alone may change."""

    word: Word
    because: tuple[str, ...] = ()
    disclosed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Files:
    """How many files the data set must have at least: by host memory, by steps, and the larger of the two."""

    by_memory: int
    by_steps: int
    required: int
    gib: float


@dataclass(frozen=True, slots=True)
class Load:
    """What decides the size of a data set: `memory_bytes` of all hosts together, and the workload's own figures."""

    memory_bytes: float
    processes: int
    batch_size: int
    record_length_bytes: float
    samples_per_file: int


def files_required(load: Load, *, as_the_code_counts: bool = False) -> Files:
    """The least number of files: five times the hosts' memory, and 500 steps an epoch.

    The benchmark's own code rounds down, and so may fall one file short of its rule; here it is rounded up.
    """
    rounded = math.floor if as_the_code_counts else math.ceil
    file_bytes = load.record_length_bytes * load.samples_per_file
    by_memory = rounded(TIMES_MEMORY * load.memory_bytes / file_bytes)
    by_steps = rounded(LEAST_STEPS * load.processes * load.batch_size / load.samples_per_file)
    required = max(by_memory, by_steps)
    return Files(by_memory, by_steps, required, required * file_bytes / 2**30)


def division(changed: Mapping[str, object]) -> Division:
    """Decide by what was changed: CLOSED, OPEN (to be disclosed), or INVALID for both.

    Keys are DLIO's, with `workload.` before them or without, and with their section or without.
    """
    opens, breaks = list[str](), list[str]()
    for given, value in changed.items():
        key = parameter(given)
        if key is None:
            continue
        if _among(key, MAY_CHANGE_CLOSED):
            if key.rpartition(".")[2] == "prefetch_size" and str(value) not in PREFETCH_SIZES:
                breaks.append(f"{key} = {value} (may be 0, 1 or 2)")
        else:
            (opens if _among(key, MAY_CHANGE_OPEN) else breaks).append(f"{key} = {value}")
    word: Word = "INVALID" if breaks else "OPEN" if opens else "CLOSED"
    return Division(word, tuple(breaks), tuple(opens))


def parameter(given: str) -> str | None:
    """The key of an override as DLIO has it, without `workload.`; None for what is no parameter of a workload."""
    key = given.lstrip("+").removeprefix("workload.")
    return None if key in NO_PARAMETER or key.startswith(IGNORED) else key


def threshold_percent(model: str) -> float | None:
    """The AU that a workload must keep, by its name (`unet3d_h100` is unet3d); None for what is no workload of the benchmark."""
    return next((percent for name, percent in THRESHOLDS_PERCENT.items() if model == name or model.startswith(f"{name}_")), None)


def spread(samples_per_s: Iterable[float]) -> float:
    """How far runs of one setting lie apart, as a fraction of the slowest."""
    values = sorted(samples_per_s)
    return values[-1] / values[0] - 1


def _among(key: str, allowed: frozenset[str]) -> bool:
    return key in allowed or ("." not in key and any(one.rpartition(".")[2] == key for one in allowed))
