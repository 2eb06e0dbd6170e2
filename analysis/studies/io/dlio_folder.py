"""DLIO's result folders as runs: one (`summary.json`, `<rank>_output.json`, `.hydra/`), or a tree.

The step lists are read; DLIO's own averages are kept separately, as `reported`. The parameters of a
run are hydra's composed configuration, flattened to DLIO's parameter names; a copy of a folder
often lacks it, and then the log has some of it. DLIO 2.0.0 has `record_length`, later versions
`record_length_bytes`; both are read. Missing parameters have DLIO's defaults.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict, TypeGuard

import yaml

from analysis.files import read_whole
from analysis.formats.checked import Part
from analysis.plain import one_line
from analysis.terms import Unreadable
from control.saved import Count, Duration, Positive  # needed by msgspec at run time

from .terms import (
    EXCLUDED_END_STEPS,
    EXCLUDED_START_STEPS,
    GIB,
    MIB,
    PREFETCH_FACTOR,
    Checkpoint,
    Epoch,
    IoRun,
)

SUMMARY = "summary.json"
HYDRA_FILES = ("hydra.yaml", "overrides.yaml")
DAMAGED = "it was damaged or cut short: run DLIO again, or copy the folder from its source"
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?")
STAMPED = re.compile(r"\d{4}(-\d\d){5}")  # hydra's name of a run's folder
BLOCK = re.compile(r"block(\d+)")
CHECKPOINT = re.compile(r"(?:save_)?ckpt(\d+)")
# In the log: samples per file * files / batch size / ranks; the configured computation time.
STEPS = re.compile(
    r"Max steps per epoch: \d{1,9} = (\d{1,9}) \* (\d{1,9}) / ([1-9]\d{0,8}) / \d{1,9} \(samples "
    r"per file"
)
COMPUTATION = re.compile(r"\(set value: (?:\{'mean': )?(\d{1,9}(?:\.\d{1,20})?)\}?\)")
CHECKPOINTS = "workflow.checkpoint"
NO_FACTORS = ("workflow.", "hydra.", "dataset.data_folder", "checkpoint.checkpoint_folder")
IGNORED_SIZE_BYTES = 10240  # DLIO's checkpoint size if none is configured
OLD_NAMES = {
    "record_length": "record_length_bytes",
    "record_length_stdev": "record_length_bytes_stdev",
    "record_length_resize": "record_length_bytes_resize",
    "model_size": "model_size_bytes",
}
DEFAULTS: Mapping[str, object] = {
    "format": "tfrecord",
    "num_files_train": 8,
    "num_samples_per_file": 1,
    "record_length_bytes": 65536,
    "record_length_bytes_stdev": 0,
    "batch_size": 1,
    "read_threads": 1,
    "prefetch_size": 0,
    "file_shuffle": "off",
    "sample_shuffle": "off",
    "epochs": 1,
    "computation_time": 0.0,
    "exclude_start_steps": EXCLUDED_START_STEPS,
    "exclude_end_steps": EXCLUDED_END_STEPS,
}
NO_CONFIGURATION = (
    "its configuration (.hydra/config.yaml) is missing, so its parameters and excluded steps are "
    "unknown"
)


def runs_of(path: Path, refused: list[str]) -> list[IoRun]:
    """Read all result folders at or under a path, in run order; add errors to `refused`."""
    runs = []
    for folder in folders_under(path):
        try:
            runs.append(run_of(folder))
        except Unreadable as error:
            refused.append(one_line(error))
    return sorted(runs, key=lambda run: run.started_utc or "")


def folders_under(path: Path) -> list[Path]:
    """Find result folders: those with a summary, and those that look like one but lack it.

    In DLIO 2.0.0 each rank names its own folder by the clock; other ranks' folders beside one with
    a summary belong to it.
    """
    result = sorted(_candidates(path))
    whole = {folder.parent for folder in result if (folder / SUMMARY).is_file()}
    return [
        folder for folder in result if not (folder.parent in whole and _of_another_rank(folder))
    ]


def _of_another_rank(folder: Path) -> bool:
    return (
        not (folder / SUMMARY).exists()
        and not (folder / "0_output.json").exists()
        and any(folder.glob("*_output.json"))
    )


def _candidates(path: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(path):
        hidden = {name for name in folders if name.startswith(".")}
        log = "dlio.log" in files and hydra_of(Path(where)).exists()
        if SUMMARY in files or any(name.endswith("_output.json") for name in files) or log:
            folders.clear()
            yield Path(where)
        folders[:] = [name for name in folders if name not in hidden]  # they have no results


def run_of(folder: Path) -> IoRun:
    """Read a result folder; one that only generated data has no epochs. Raises: Unreadable."""
    config = _config_of(folder)
    path = folder / SUMMARY
    if path.is_file():
        summary = _json_of(path)
        processes = summary.field("num_accelerators", Count)
        epochs, checkpoints = _trained(
            folder, summary.read(Summary).get("metric") or {}, processes, config
        )
    elif config.only_generates:  # for that, 2.0.0 writes only configuration and log
        summary, processes, epochs, checkpoints = Part({}, str(path)), 1, (), ()
    else:
        raise Unreadable(
            f"{path}: missing; DLIO writes it at the end, so the run did not finish, or the "
            "folder was not copied completely."
        )
    metric = summary.value.get("metric") or {}
    reported = (
        {**metric, "data_size_per_host_GB": summary.value.get("data_size_per_host_GB")}
        if summary.value
        else {}
    )
    params = config.params
    computation = params.get("computation_time")
    computation_s = computation.get("mean") if isinstance(computation, Mapping) else computation
    start_steps, end_steps = EXCLUDED_START_STEPS, EXCLUDED_END_STEPS
    if config.known and not config.old:  # 2.0.0 has no other mode
        start_steps, end_steps = (
            config.whole(f"exclude_{end}_steps") or 0 for end in ("start", "end")
        )
    asked_bytes = (
        Part(params, config.origin).field("record_length_bytes", Positive) if config.known else None
    )
    return IoRun(
        origin=str(folder),
        id=_name(folder, processes),
        model=config.workload or str(params.get("model") or _model_above(folder)),
        engine="dlio",
        engine_version="2.0.0 of PyPI" if config.old else None,
        dlio_counts_all=config.old,
        kind="training" if epochs else "generation" if config.only_generates else "summary",
        processes=processes,
        batch_size=config.whole("batch_size", 1),
        read_threads=config.whole("read_threads"),
        prefetch_factor=_prefetch_factor(config),
        computation_time_s=float(computation_s)
        if _is_number(computation_s) and 0 <= computation_s < math.inf
        else None,
        record_length_bytes=asked_bytes or _record_length(reported),
        epochs=epochs,
        excluded_start_steps=start_steps,
        excluded_end_steps=end_steps,
        checkpoints=checkpoints,
        params=params if config.known else {},
        overrides={
            key: value
            for key, value in config.overrides.items()
            if key == CHECKPOINTS or not key.startswith(NO_FACTORS)
        },
        dataset=_dataset_of(config),
        reported=reported,
        host=_host_of(summary),
        started_utc=_started_of(folder, summary),
        notes=tuple(config.notes),
    )


def _trained(
    folder: Path, metric: Mapping[str, Any], processes: int, config: Config
) -> tuple[tuple[Epoch, ...], tuple[Checkpoint, ...]]:
    """Read the complete output of a run's ranks. Raises: Unreadable, if some of it is missing."""
    notes = config.notes
    if _is_alone(folder, metric):
        notes.append("only its summary exists, so the figures are DLIO's own")
        return (), ()
    files = _rank_files(folder, processes)
    epochs = tuple(
        sorted(
            (epoch for rank in files for epoch in _epochs_of(*rank)),
            key=lambda one: (one.number, one.block, one.rank),
        )
    )
    if not epochs and any(name.startswith("train_") for name in metric):
        raise Unreadable(
            f"{folder / SUMMARY}: reports a training, but {files[0][1].name} has no steps; the "
            "folder is incomplete."
        )
    if not epochs and not config.only_generates:
        did = (
            "neither trained nor generated data"
            if config.known
            else "trained nothing, and no .hydra/config.yaml shows data generation"
        )
        raise Unreadable(f"{folder / SUMMARY}: {did}, so there is nothing to analyse.")
    if epochs and len(files) < processes:
        ranks = ", ".join(str(rank) for rank, *_ in files)
        raise Unreadable(
            f"{folder}: {processes} ranks ran, but there are step lists of {ranks} only; copy "
            "every <rank>_output.json."
        )
    if epochs and len({stamps for _, _, stamps in files}) < len(files):
        notes.append(
            "all ranks are timed by rank 0's stamps, the only ones in this version of DLIO"
        )
    if any(output.parent != folder for _, output, _ in files):
        notes.append(
            "ranks wrote to separate folders, as in DLIO 2.0.0 when the clock ticks between them"
        )
    size_gb = metric.get("checkpoint_size_GB")
    checkpoints = _checkpoints_of(files[0][2], size_gb * GIB if _is_number(size_gb) else None)
    size = config.params.get("model_size")
    if size and any(checkpoint.bytes == IGNORED_SIZE_BYTES for checkpoint in checkpoints):
        notes.append(
            f"checkpoints hold {IGNORED_SIZE_BYTES} bytes: model_size = {size} is not a key of "
            "the DLIO version that ran"
        )
    return epochs, checkpoints


def _is_alone(folder: Path, metric: Mapping[str, object]) -> bool:
    """Return whether a summary reports a training without any rank's step lists."""
    trained = any(name.startswith("train_") for name in metric)
    return (
        trained
        and not any(folder.glob("*_output.json"))
        and not any(folder.parent.glob("*/0_output.json"))
    )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _document(path: Path) -> object:
    """Read JSON or YAML; DLIO's bare `NaN` counts as missing. Raises: Unreadable."""
    try:
        text = read_whole(path).decode()
        return (
            yaml.safe_load(text)
            if path.suffix == ".yaml"
            else json.loads(text, parse_constant=lambda _word: None)
        )
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Unreadable(
            f"{path}: cannot be read as {path.suffix[1:].upper()} ({one_line(error, 200)}); "
            f"{DAMAGED}."
        ) from None


class Summary(TypedDict, total=False):
    """The fields read from a summary, besides the number of accelerators."""

    metric: dict[str, Any] | None
    hostname: str | None
    num_hosts: Count | None
    start: str | None


class StepLists(TypedDict, total=False):
    """Times of the steps of a rank's epoch, by block."""

    load: dict[str, Any] | None
    proc: dict[str, Any] | None
    compute: dict[str, Any] | None


def _json_of(path: Path) -> Part:
    part = Part(_document(path), str(path))
    part.read(dict[str, Any])
    return part


def _inner(part: Part, name: str) -> Part:
    """Return a nested object. Raises: Unreadable, if it is not an object."""
    part.field(name, dict[str, Any])
    return part.at(name)


# The run's configuration.


@dataclass
class Config:
    """The parameters of one run, and its overrides: DLIO's dotted key without `workload.` → text.

    `old`: DLIO 2.0.0 from PyPI ran. `known`: these are all its parameters.
    """

    params: Mapping[str, object]
    overrides: Mapping[str, str]
    workload: str | None
    origin: str
    old: bool
    notes: list[str] = field(default_factory=list)
    known: bool = True

    def whole(self, name: str, least: int = 0) -> int | None:
        """Return a whole number; None if unknown. Raises: Unreadable."""
        value = self.params.get(name)
        if name not in self.params and not self.known:
            return None
        if not _is_number(value) or value != value // 1 or value < least:
            raise Unreadable(
                f"{self.origin}: has {name} = {value!r}, but a whole number of at least {least} "
                "is expected."
            )
        return int(value)

    @property
    def only_generates(self) -> bool:
        return self.params.get("generate_data") is True and self.params.get("train", True) is False


def _config_of(folder: Path) -> Config:
    """Read the configuration and overrides of a result folder, or its log's. Raises: Unreadable."""
    old = not any(folder.glob("*_per_epoch_stats.json"))  # 2.0.0 keeps one rank's
    hydra, log = hydra_of(folder), folder / "dlio.log"
    path = hydra / "config.yaml"
    overrides = _overrides_of(hydra / "overrides.yaml")
    workload = overrides.pop("workload", None)
    if path.exists():
        top = _document(path)
        sections = top.get("workload") if isinstance(top, Mapping) else None
        if not isinstance(sections, Mapping):
            raise Unreadable(f"{path}: has no section workload, so it is not a DLIO configuration.")
        notes: list[str] = []
        flat = _flat(sections, notes, old=old)
        return Config({**DEFAULTS, **flat}, overrides, workload, str(path), old, notes)
    text = read_whole(log).decode(errors="replace") if log.is_file() else ""
    steps, computation = STEPS.search(text), COMPUTATION.search(text)
    names = ("num_samples_per_file", "num_files_train", "batch_size")
    params: dict[str, object] = (
        dict(zip(names, map(int, steps.groups()), strict=True)) if steps else {}
    )
    params |= {"computation_time": float(computation[1])} if computation else {}
    return Config(params, overrides, workload, str(log), old, [NO_CONFIGURATION], known=False)


def hydra_of(folder: Path) -> Path:
    """Find hydra's configuration: `.hydra`, or `hydra.output_subdir` (MLPerf Storage: configs)."""
    usual = folder / ".hydra"
    beside = sorted(
        path.parent
        for path in folder.glob("*/config.yaml")
        if any((path.parent / name).exists() for name in HYDRA_FILES)
    )
    return usual if usual.exists() or not beside else beside[0]


def _overrides_of(path: Path) -> dict[str, str]:
    words = _document(path) if path.exists() else []
    if not isinstance(words, list):
        raise Unreadable(f"{path}: is not a list of overrides.")
    pairs = (str(word).lstrip("+~").partition("=") for word in words)
    return {key.removeprefix("workload."): value for key, _, value in pairs}


def _flat(sections: Mapping[object, object], notes: list[str], *, old: bool) -> dict[str, object]:
    params: dict[str, object] = {}
    for name, section in sections.items():
        given = (
            {str(key): value for key, value in section.items()}
            if isinstance(section, Mapping)
            else {str(name): section}
        )
        if name == "model" and isinstance(section, Mapping):
            # `name` and `type` are unclear without their section; no DLIO reads a `model_size`
            # here, which keeps its own name.
            params |= {
                {"name": "model", "type": "model_type"}.get(key, key): value
                for key, value in given.items()
            }
            continue
        for before, after in OLD_NAMES.items():
            # Each version reads its own spelling; a single one was meant for the version that ran.
            if before in given and after in given:
                ignored = after if old else before
                notes.append(
                    f"{ignored} is not a key of the DLIO version that ran, which silently ignores "
                    "it"
                )
                del given[ignored]
        params |= {OLD_NAMES.get(key, key): value for key, value in given.items()}
    # YAML `off`.
    shuffles = {
        name: "off" for name in ("file_shuffle", "sample_shuffle") if params.get(name) is False
    }
    return params | shuffles


def _prefetch_factor(config: Config) -> int | None:
    """Return each reader's prefetched batches, as DLIO passes to the DataLoader; default 2."""
    if not config.known:
        return None
    size, threads = config.whole("prefetch_size"), config.whole("read_threads")
    return math.ceil(size / threads) if size and threads else PREFETCH_FACTOR


def _name(folder: Path, processes: int) -> str:
    """Name a run after the folder in which its study kept it: `4_read_threads_8/<stamp>`."""
    place = folder.resolve()
    if not STAMPED.fullmatch(place.name):
        return place.name
    return (
        place.parent.name
        if re.match(rf"{processes}(_|$)", place.parent.name)
        else f"{place.parent.name}/{place.name}"
    )


def _model_above(folder: Path) -> str:
    """Return the name of the nearest folder other than a time or a number of ranks."""
    place = folder.resolve()
    names = (
        path.name
        for path in (place, *place.parents)
        if not STAMPED.fullmatch(path.name) and not re.match(r"\d+(_|$)", path.name)
    )
    return next(names, "") or "unknown"


# DLIO's notes beside its step lists.


def _record_length(reported: Mapping[str, object]) -> float | None:
    rate, mb = (
        reported.get(name)
        for name in ("train_throughput_mean_samples_per_second", "train_io_mean_MB_per_second")
    )
    if not (
        isinstance(rate, float)
        and isinstance(mb, float)
        and 0 < rate < math.inf
        and 0 < mb < math.inf
    ):
        return None
    return mb * MIB / rate


def _dataset_of(config: Config) -> dict[str, object]:
    return {
        "format": config.params.get("format"),
        "files": config.whole("num_files_train"),
        "samples_per_file": config.whole("num_samples_per_file"),
    }


def _host_of(summary: Part) -> dict[str, object]:
    known = summary.read(Summary)
    memory, cpus = (summary.value.get(name) for name in ("host_memory_GB", "host_cpu_count"))
    return {
        "name": known.get("hostname"),
        "hosts": known.get("num_hosts"),
        "cpus": cpus[0] if isinstance(cpus, list) and cpus and isinstance(cpus[0], int) else None,
        "memory_bytes": sum(memory) * GIB
        if isinstance(memory, list) and all(map(_is_number, memory))
        else None,
    }


def _started_of(folder: Path, summary: Part) -> str | None:
    """Return the run's start from its summary or log; DLIO's times are UTC."""
    if summary.value.get("start"):
        return _moment(summary, "start").isoformat()
    log = folder / "dlio.log"
    match = STAMP.search(read_whole(log).decode(errors="replace")) if log.is_file() else None
    return _moment(Part({"start": match[0]}, str(log)), "start").isoformat() if match else None


def _moment(part: Part, name: str) -> datetime:
    text = part.field(name, str)
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        part.refuse(f"has {name} = {text!r}, but a time is expected", DAMAGED)


# The step lists of its ranks and the surrounding time stamps.


def _rank_files(folder: Path, processes: int) -> list[tuple[int, Path, Path]]:
    """Find each rank's step lists and stamps, in the folder or in a sibling of DLIO 2.0.0.

    Siblings are named a moment earlier or later.

    Raises: Unreadable.
    """
    siblings = [
        path
        for path in folder.parent.iterdir()
        if path != folder and path.is_dir() and not (path / SUMMARY).exists()
    ]
    # Nearest in time first.
    siblings.sort(key=lambda sibling: abs(_stamp_s(sibling.name) - _stamp_s(folder.name)))
    shared, result = folder / "per_epoch_stats.json", []
    for rank in range(processes):
        home = next(
            (path for path in (folder, *siblings) if (path / f"{rank}_output.json").is_file()), None
        )
        if home is not None:
            own = home / f"{rank}_per_epoch_stats.json"
            result.append(
                (
                    rank,
                    home / f"{rank}_output.json",
                    shared if shared.is_file() and not own.is_file() else own,
                )
            )
    if not result or result[0][0]:
        raise Unreadable(
            f"{folder / '0_output.json'}: missing; it contains the steps, so copy the complete "
            "folder."
        )
    return result


def _stamp_s(name: str) -> float:
    try:
        return datetime.strptime(name, "%Y-%m-%d-%H-%M-%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return math.inf


def _epochs_of(rank: int, path: Path, stamps_path: Path) -> Iterator[Epoch]:
    """Read all epochs of one rank; skip blocks without steps. Raises: Unreadable."""
    output, stamps = _json_of(path), None
    for number in sorted(int(key) for key in output.value if key.isdecimal()):
        epoch = _inner(output, str(number))
        known = epoch.read(StepLists)
        lists = [
            epoch._replace(value=known.get(name) or {}, place=f"{epoch.place}.{name}")
            for name in ("load", "proc", "compute")
        ]
        for block in sorted(
            int(match[1]) for name in lists[-1].value if (match := BLOCK.fullmatch(name))
        ):
            load, proc, compute = (
                part.field(f"block{block}", tuple[Duration, ...]) for part in lists
            )
            if block > 1 and len(load) == len(proc) - 1 == len(compute) - 1:
                # After a checkpoint, DLIO records a block's first wait before it clears the list.
                load = (max(0.0, proc[0] - compute[0]), *load)
            steps = min(len(load), len(proc), len(compute))
            if max(len(load), len(proc), len(compute)) > steps + 1:
                epoch.refuse(
                    f"has {len(load)} load, {len(proc)} proc and {len(compute)} compute times in "
                    f"block{block}",
                    DAMAGED,
                )
            if steps:
                stamps = stamps or _json_of(stamps_path)
                start_s, end_s = _span(_inner(_inner(stamps, str(number)), f"block{block}"))
                yield Epoch(
                    number,
                    rank,
                    start_s,
                    end_s,
                    load[:steps],
                    compute[:steps],
                    proc_s=proc[:steps],
                    block=block,
                )


def _checkpoints_of(stamps_path: Path, size_bytes: float | None) -> tuple[Checkpoint, ...]:
    """Return the checkpoints of rank 0, in order. Raises: Unreadable."""
    stamps = _json_of(stamps_path) if stamps_path.is_file() else Part({}, str(stamps_path))
    epochs = [
        _inner(stamps, name)
        for name in sorted((key for key in stamps.value if key.isdecimal()), key=int)
    ]
    spans = [
        _span(_inner(epoch, name))
        for epoch in epochs
        for name in epoch.value
        if CHECKPOINT.fullmatch(name)
    ]
    return tuple(Checkpoint(size_bytes, end_s - start_s) for start_s, end_s in spans)


def _span(part: Part) -> tuple[float, float]:
    start_s, end_s = (_moment(part, name).timestamp() for name in ("start", "end"))
    if end_s < start_s:
        part.refuse("ends before it starts", "the clock was changed during the run: run again")
    return start_s, end_s
