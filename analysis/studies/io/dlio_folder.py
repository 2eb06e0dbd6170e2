"""DLIO's result folders as runs: one (`summary.json`, `<rank>_output.json`, `.hydra/`), or a tree.

The step lists are read; DLIO's own averages are kept separately, as `reported`. The parameters of a
run are hydra's composed configuration, flattened to DLIO's parameter names. DLIO 2.0.0 has
`record_length`, later versions `record_length_bytes`; both are read.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, TypeGuard

import yaml
from msgspec import Struct, structs

from analysis.files import read_whole
from analysis.formats.checked import Part
from analysis.plain import one_line
from analysis.terms import Unreadable
from control.saved import Count, Duration, Ordinal, Positive

from .terms import (
    EXCLUDED_END_STEPS,
    EXCLUDED_START_STEPS,
    GIB,
    PREFETCH_FACTOR,
    Checkpoint,
    Epoch,
    IoRun,
)

SUMMARY = "summary.json"
HYDRA_FILES = ("hydra.yaml", "overrides.yaml")
DAMAGED = "it was damaged or cut short: run DLIO again, or copy the folder from its source"
STAMPED = re.compile(r"\d{4}(-\d\d){5}")
BLOCK = re.compile(r"block(\d+)")
CHECKPOINT = re.compile(r"(?:save_)?ckpt(\d+)")
CHECKPOINTS = "workflow.checkpoint"
NO_FACTORS = ("workflow.", "hydra.", "dataset.data_folder", "checkpoint.checkpoint_folder")
OLD_NAMES = {
    "record_length": "record_length_bytes",
    "record_length_stdev": "record_length_bytes_stdev",
    "record_length_resize": "record_length_bytes_resize",
    "model_size": "model_size_bytes",
}


class Parameters(Struct):
    """The parameters that must be of a type, with DLIO's defaults; others are taken as they are."""

    format: Any = "tfrecord"
    num_files_train: Count = 8
    num_samples_per_file: Count = 1
    record_length_bytes: Positive = 65536.0
    record_length_bytes_stdev: Any = 0
    batch_size: Ordinal = 1
    read_threads: Count = 1
    prefetch_size: Count = 0
    file_shuffle: Any = "off"
    sample_shuffle: Any = "off"
    epochs: Any = 1
    computation_time: Any = 0.0
    exclude_start_steps: Count = EXCLUDED_START_STEPS
    exclude_end_steps: Count = EXCLUDED_END_STEPS


def runs_of(path: Path, refused: list[str]) -> list[IoRun]:
    """Read the runs below a folder; skip those that only generated data."""
    runs = []
    for folder in folders_under(path):
        try:
            config = _config_of(folder)
            runs += [] if config.only_generates else [run_of(folder, config)]
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
        folder
        for folder in result
        if folder.parent not in whole
        or (folder / SUMMARY).exists()
        or (folder / "0_output.json").exists()
        or not any(folder.glob("*_output.json"))
    ]


def _candidates(path: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        log = "dlio.log" in files and _hydra_of(Path(where)).exists()
        if SUMMARY in files or any(name.endswith("_output.json") for name in files) or log:
            folders.clear()
            yield Path(where)


def run_of(folder: Path, config: Config) -> IoRun:
    path = folder / SUMMARY
    if not path.is_file():
        raise Unreadable(
            f"{path}: missing; DLIO writes it at the end, so the run did not finish, or the "
            "folder was not copied completely."
        )
    summary = _json_of(path)
    processes = summary.field("num_accelerators", Count)
    known = summary.read(Summary)
    files = _rank_files(folder, processes)
    epochs = sorted(
        (epoch for rank in files for epoch in _epochs_of(*rank)),
        key=lambda one: (one.number, one.block, one.rank),
    )
    if not epochs:
        raise Unreadable(
            f"{path}: neither generated data nor has steps in {files[0][1].name}, so there is "
            "nothing to analyse."
        )
    if len(files) < processes:
        ranks = ", ".join(str(rank) for rank, *_ in files)
        raise Unreadable(
            f"{folder}: {processes} ranks ran, but there are step lists of {ranks} only; copy "
            "every <rank>_output.json."
        )
    metric = known.get("metric") or {}
    size_gb = metric.get("checkpoint_size_GB")
    checkpoints = _checkpoints_of(files[0][2], size_gb * GIB if _is_number(size_gb) else None)
    about, computation_s = config.about, config.about.computation_time
    if isinstance(computation_s, Mapping):
        computation_s = computation_s.get("mean")
    is_known = _is_number(computation_s) and 0 <= computation_s < math.inf
    size, threads = about.prefetch_size, about.read_threads
    return IoRun(
        origin=str(folder),
        id=_name(folder, processes),
        model=config.workload or str(config.params.get("model") or "unknown"),
        engine="dlio",
        engine_version="2.0.0 of PyPI" if config.old else None,
        dlio_counts_all=config.old,
        processes=processes,
        batch_size=about.batch_size,
        read_threads=threads,
        prefetch_factor=math.ceil(size / threads) if size and threads else PREFETCH_FACTOR,
        computation_time_s=float(computation_s) if is_known else None,
        record_length_bytes=about.record_length_bytes,
        epochs=tuple(epochs),
        # 2.0.0 has no other mode.
        excluded_start_steps=EXCLUDED_START_STEPS if config.old else about.exclude_start_steps,
        excluded_end_steps=EXCLUDED_END_STEPS if config.old else about.exclude_end_steps,
        checkpoints=checkpoints,
        params=config.params,
        overrides={
            key: value
            for key, value in config.overrides.items()
            if key == CHECKPOINTS or not key.startswith(NO_FACTORS)
        },
        dataset={
            "format": about.format,
            "files": about.num_files_train,
            "samples_per_file": about.num_samples_per_file,
        },
        reported=metric,
        started_utc=_moment(summary, "start").isoformat() if known.get("start") else None,
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
    metric: dict[str, Any] | None
    start: str | None


def _json_of(path: Path) -> Part:
    part = Part(_document(path), str(path))
    part.read(dict[str, Any])
    return part


def _inner(part: Part, name: str) -> Part:
    part.field(name, dict[str, Any])
    return part.at(name)


class Config(NamedTuple):
    """The parameters of one run, and its overrides: DLIO's dotted key without `workload.` → text.

    `old`: DLIO 2.0.0 from PyPI ran.
    """

    params: Mapping[str, Any]
    about: Parameters
    overrides: Mapping[str, str]
    workload: str | None
    old: bool

    @property
    def only_generates(self) -> bool:
        return self.params.get("generate_data") is True and self.params.get("train") is False


def _config_of(folder: Path) -> Config:
    old = not any(folder.glob("*_per_epoch_stats.json"))  # 2.0.0 keeps one rank's
    hydra = _hydra_of(folder)
    path, asked = hydra / "config.yaml", hydra / "overrides.yaml"
    top = _document(path)
    sections = top.get("workload") if isinstance(top, Mapping) else None
    if not isinstance(sections, Mapping):
        raise Unreadable(f"{path}: has no section workload, so it is not a DLIO configuration.")
    words = Part(_document(asked) if asked.exists() else [], str(asked)).read(list[Any])
    pairs = (str(word).lstrip("+~").partition("=") for word in words)
    overrides = {key.removeprefix("workload."): value for key, _, value in pairs}
    params = {**structs.asdict(Parameters()), **_flat(sections, old=old)}
    params |= {
        name: int(value)
        for name, value in params.items()
        if isinstance(value, float) and value.is_integer()
    }
    about = Part(params, str(path)).read(Parameters)
    return Config(params, about, overrides, overrides.pop("workload", None), old)


def _hydra_of(folder: Path) -> Path:
    """Find hydra's configuration: `.hydra`, or `hydra.output_subdir` (MLPerf Storage: configs)."""
    usual = folder / ".hydra"
    beside = sorted(
        path.parent
        for path in folder.glob("*/config.yaml")
        if any((path.parent / name).exists() for name in HYDRA_FILES)
    )
    return usual if usual.exists() or not beside else beside[0]


def _flat(sections: Mapping[object, object], *, old: bool) -> dict[str, object]:
    params: dict[str, object] = {}
    for name, section in sections.items():
        values = (
            {str(key): value for key, value in section.items()}
            if isinstance(section, Mapping)
            else {str(name): section}
        )
        if name == "model" and isinstance(section, Mapping):
            # `name` and `type` are unclear without their section; no DLIO reads a `model_size`
            # here, which keeps its own name.
            names = {"name": "model", "type": "model_type"}
            params |= {names.get(key, key): value for key, value in values.items()}
            continue
        for before, after in OLD_NAMES.items():
            # Each version reads its own spelling; a single one was meant for the version that ran.
            if before in values and after in values:
                del values[after if old else before]
        params |= {OLD_NAMES.get(key, key): value for key, value in values.items()}
    for name in ("file_shuffle", "sample_shuffle"):
        if params.get(name) is False:
            params[name] = "off"
    return params


def _name(folder: Path, processes: int) -> str:
    place = folder.resolve()
    if not STAMPED.fullmatch(place.name):
        return place.name
    of_study = re.match(rf"{processes}(_|$)", place.parent.name)
    return place.parent.name if of_study else f"{place.parent.name}/{place.name}"


def _moment(part: Part, name: str) -> datetime:
    text = part.field(name, str)
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        part.refuse(f"has {name} = {text!r}, but a time is expected", DAMAGED)


def _rank_files(folder: Path, processes: int) -> list[tuple[int, Path, Path]]:
    """Find each rank's step lists and stamps, in the folder or in a sibling of DLIO 2.0.0.

    Siblings are named a moment earlier or later. Raises: Unreadable.
    """
    siblings = [
        path
        for path in folder.parent.iterdir()
        if path != folder and path.is_dir() and not (path / SUMMARY).exists()
    ]
    siblings.sort(key=lambda sibling: abs(_stamp_s(sibling.name) - _stamp_s(folder.name)))
    shared, result = folder / "per_epoch_stats.json", []
    for rank in range(processes):
        for home in (folder, *siblings):
            output, own = home / f"{rank}_output.json", home / f"{rank}_per_epoch_stats.json"
            if output.is_file():
                alone = shared.is_file() and not own.is_file()
                result.append((rank, output, shared if alone else own))
                break
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


class StepLists(TypedDict, total=False):
    load: dict[str, Any] | None
    proc: dict[str, Any] | None
    compute: dict[str, Any] | None


def _epochs_of(rank: int, path: Path, stamps_path: Path) -> Iterator[Epoch]:
    output, stamps = _json_of(path), None
    for number in sorted(int(key) for key in output.value if key.isdecimal()):
        epoch = _inner(output, str(number))
        known = epoch.read(StepLists)
        lists = [
            epoch._replace(value=known.get(name) or {}, place=f"{epoch.place}.{name}")
            for name in ("load", "proc", "compute")
        ]
        blocks = (BLOCK.fullmatch(name) for name in lists[-1].value)
        for block in sorted(int(match[1]) for match in blocks if match):
            load, proc, compute = (
                part.field(f"block{block}", tuple[Duration, ...]) for part in lists
            )
            if block > 1 and len(load) == len(proc) - 1 == len(compute) - 1:
                # After a checkpoint, DLIO records a block's first wait before it clears the list.
                load = (max(0.0, proc[0] - compute[0]), *load)
            counts = len(load), len(proc), len(compute)
            steps = min(counts)
            if max(counts) > steps + 1:
                epoch.refuse(
                    "has {} load, {} proc and {} compute times in block{}".format(*counts, block),
                    DAMAGED,
                )
            if steps:
                stamps = stamps or _json_of(stamps_path)
                start_s, end_s = _ends_s(_inner(_inner(stamps, str(number)), f"block{block}"))
                own = load[:steps], compute[:steps]
                times = number, rank, start_s, end_s
                yield Epoch(*times, *own, proc_s=proc[:steps], block=block)


def _checkpoints_of(stamps_path: Path, size_bytes: float | None) -> tuple[Checkpoint, ...]:
    stamps = _json_of(stamps_path) if stamps_path.is_file() else Part({}, str(stamps_path))
    numbers = sorted((key for key in stamps.value if key.isdecimal()), key=int)
    spans = [
        _ends_s(_inner(epoch, name))
        for epoch in (_inner(stamps, number) for number in numbers)
        for name in epoch.value
        if CHECKPOINT.fullmatch(name)
    ]
    return tuple(Checkpoint(size_bytes, end_s - start_s) for start_s, end_s in spans)


def _ends_s(part: Part) -> tuple[float, float]:
    start_s, end_s = (_moment(part, name).timestamp() for name in ("start", "end"))
    if end_s < start_s:
        part.refuse("ends before it starts", "the clock was changed during the run: run again")
    return start_s, end_s
