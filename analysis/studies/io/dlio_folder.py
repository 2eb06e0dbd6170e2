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
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict, TypeGuard

import yaml

from analysis.files import read_whole
from analysis.formats.checked import Part
from analysis.plain import one_line
from analysis.terms import Unreadable
from control.saved import Count, Duration, Positive

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
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?")
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


def runs_of(path: Path, refused: list[str]) -> list[IoRun]:
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


def run_of(folder: Path) -> IoRun:
    config = _config_of(folder)
    path = folder / SUMMARY
    summary, processes = Part({}, str(path)), 1
    epochs: tuple[Epoch, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    if path.is_file():
        summary = _json_of(path)
        processes = summary.field("num_accelerators", Count)
        summary.read(Summary)
        epochs, checkpoints = _trained(folder, summary, processes, config)
    elif not config.only_generates:  # for that, 2.0.0 writes only configuration and log
        raise Unreadable(
            f"{path}: missing; DLIO writes it at the end, so the run did not finish, or the "
            "folder was not copied completely."
        )
    about, params = summary.value, config.params
    computation = params["computation_time"]
    computation_s = computation.get("mean") if isinstance(computation, Mapping) else computation
    start_steps, end_steps = EXCLUDED_START_STEPS, EXCLUDED_END_STEPS
    if not config.old:  # 2.0.0 has no other mode
        start_steps, end_steps = (config.whole(f"exclude_{end}_steps") for end in ("start", "end"))
    size, threads = config.whole("prefetch_size"), config.whole("read_threads")
    return IoRun(
        origin=str(folder),
        id=_name(folder, processes),
        model=config.workload or str(params.get("model") or "unknown"),
        engine="dlio",
        engine_version="2.0.0 of PyPI" if config.old else None,
        dlio_counts_all=config.old,
        processes=processes,
        batch_size=config.whole("batch_size", 1),
        read_threads=threads,
        prefetch_factor=math.ceil(size / threads) if size and threads else PREFETCH_FACTOR,
        computation_time_s=float(computation_s)
        if _is_number(computation_s) and 0 <= computation_s < math.inf
        else None,
        record_length_bytes=Part(params, config.origin).field("record_length_bytes", Positive),
        epochs=epochs,
        excluded_start_steps=start_steps,
        excluded_end_steps=end_steps,
        checkpoints=checkpoints,
        params=params,
        overrides={
            key: value
            for key, value in config.overrides.items()
            if key == CHECKPOINTS or not key.startswith(NO_FACTORS)
        },
        dataset={
            "format": params["format"],
            "files": config.whole("num_files_train"),
            "samples_per_file": config.whole("num_samples_per_file"),
        },
        reported=about.get("metric") or {},
        started_utc=_started_of(folder, summary),
    )


def _trained(
    folder: Path, summary: Part, processes: int, config: Config
) -> tuple[tuple[Epoch, ...], tuple[Checkpoint, ...]]:
    metric = summary.value.get("metric") or {}
    files = _rank_files(folder, processes)
    epochs = sorted(
        (epoch for rank in files for epoch in _epochs_of(*rank)),
        key=lambda one: (one.number, one.block, one.rank),
    )
    if not epochs and not config.only_generates:
        raise Unreadable(
            f"{folder / SUMMARY}: neither generated data nor has steps in {files[0][1].name}, so "
            "there is nothing to analyse."
        )
    if epochs and len(files) < processes:
        ranks = ", ".join(str(rank) for rank, *_ in files)
        raise Unreadable(
            f"{folder}: {processes} ranks ran, but there are step lists of {ranks} only; copy "
            "every <rank>_output.json."
        )
    size_gb = metric.get("checkpoint_size_GB")
    checkpoints = _checkpoints_of(files[0][2], size_gb * GIB if _is_number(size_gb) else None)
    return tuple(epochs), checkpoints


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


@dataclass
class Config:
    """The parameters of one run, and its overrides: DLIO's dotted key without `workload.` → text.

    `old`: DLIO 2.0.0 from PyPI ran.
    """

    params: Mapping[str, object]
    overrides: Mapping[str, str]
    workload: str | None
    origin: str
    old: bool

    def whole(self, name: str, least: int = 0) -> int:
        value = self.params[name]
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
    old = not any(folder.glob("*_per_epoch_stats.json"))  # 2.0.0 keeps one rank's
    hydra = _hydra_of(folder)
    path, asked = hydra / "config.yaml", hydra / "overrides.yaml"
    top = _document(path)
    sections = top.get("workload") if isinstance(top, Mapping) else None
    if not isinstance(sections, Mapping):
        raise Unreadable(f"{path}: has no section workload, so it is not a DLIO configuration.")
    words = _document(asked) if asked.exists() else []
    if not isinstance(words, list):
        raise Unreadable(f"{asked}: is not a list of overrides.")
    pairs = (str(word).lstrip("+~").partition("=") for word in words)
    overrides = {key.removeprefix("workload."): value for key, _, value in pairs}
    params = {**DEFAULTS, **_flat(sections, old=old)}
    return Config(params, overrides, overrides.pop("workload", None), str(path), old)


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


def _started_of(folder: Path, summary: Part) -> str | None:
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
