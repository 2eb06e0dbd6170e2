"""DLIO's result folders as runs: one folder (`summary.json`, `<rank>_output.json`, `.hydra/`), or all that lie under one.

The step lists are read; DLIO's own averages are kept beside them, as `reported`, and never taken for them.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.files import read_whole
from analysis.plain import one_line
from analysis.terms import Unreadable

from .dlio_config import DAMAGED, config_of, json_of, yaml_of
from .terms import EXCLUDED_END_STEPS, EXCLUDED_START_STEPS, GIB, MIB, Checkpoint, Epoch, Host, IoRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analysis.formats.fields import Fields

    from .dlio_config import Config

SUMMARY = "summary.json"
BEGAN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?")
STAMPED = re.compile(r"\d{4}(-\d\d){5}")  # how hydra names a run's folder
CHECKPOINTS = "workflow.checkpoint"
NO_FACTORS = ("workflow.", "hydra.", "dataset.data_folder", "checkpoint.checkpoint_folder")
BLOCK = re.compile(r"block(\d+)")
CHECKPOINT = re.compile(r"(?:save_)?ckpt(\d+)")
MOST_IN_NAME = 2
IGNORED_SIZE_BYTES = 10240  # what DLIO writes as a checkpoint where no size reaches it


def runs_of(path: Path, refused: list[str]) -> list[IoRun]:
    """Read every result folder at or under a path, in the order in which they ran; `refused` says what cannot be read, a line each."""
    runs = []
    for folder in folders_under(path):
        try:
            runs.append(run_of(folder))
        except Unreadable as error:
            refused.append(one_line(error))
    return sorted(runs, key=lambda run: run.started_utc or "")


def folders_under(path: Path) -> list[Path]:
    """Find result folders: those with a summary, and those that look like one without.

    DLIO 2.0.0 lets each rank name its own folder by the clock; other ranks' beside one with a summary belong to that one.
    """
    result = sorted(_looks_like(path))
    whole = {folder.parent for folder in result if (folder / SUMMARY).is_file()}
    return [folder for folder in result if not (folder.parent in whole and _of_another_rank(folder))]


def _of_another_rank(folder: Path) -> bool:
    return not (folder / SUMMARY).exists() and not (folder / "0_output.json").exists() and any(folder.glob("*_output.json"))


def _looks_like(path: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(path):
        hidden = {name for name in folders if name.startswith(".")}
        if SUMMARY in files or any(name.endswith("_output.json") for name in files) or {".hydra", "dlio.log"} <= {*hidden, *files}:
            folders.clear()
            yield Path(where)
        folders[:] = [name for name in folders if name not in hidden]  # nobody keeps results there, and environments are large


def run_of(folder: Path) -> IoRun:
    """Read one result folder; one that only generated data is a run without epochs. Raises: Unreadable, naming the file."""
    path = folder / SUMMARY
    old = not any(folder.glob("*_per_epoch_stats.json"))  # 2.0.0 as on PyPI kept the stamps of one rank; those after it keep each rank's
    config = config_of(folder, old=old)
    if not path.is_file():
        if config.only_generates:  # of that, 2.0.0 leaves its configuration and log alone
            return _run(folder, config, None)
        raise Unreadable(f"{path}: not there; DLIO writes it at the end, so that run did not end, or the folder was not copied whole.")
    summary = json_of(path)
    metric, processes = summary.optional_fields("metric"), summary.whole("num_accelerators")
    files = _rank_files(folder, processes)
    epochs = _epochs_of(files, config.notes)
    if not epochs and any(name.startswith("train_") for name in metric.value):
        raise Unreadable(f"{path}: reports a training, and {files[0].output.name} holds no step of it; the folder is incomplete.")
    if not epochs and not config.only_generates:
        did = "neither trained nor generated data" if config.known else "trained nothing, and no .hydra/config.yaml says that it made data"
        raise Unreadable(f"{path}: {did}, so there is nothing to analyse.")
    if epochs and len(files) < processes:
        there = ", ".join(str(file.rank) for file in files)
        raise Unreadable(f"{folder}: {processes} ranks ran and there are step lists of {there} only; copy every <rank>_output.json.")
    if any(file.output.parent != folder for file in files):
        config.notes.append("ranks left their files in folders of their own, as DLIO 2.0.0 does when the clock ticks between them")
    size_gb = metric.value.get("checkpoint_size_GB")
    checkpoints = _checkpoints_of(files[0], float(size_gb) if isinstance(size_gb, int | float) and not isinstance(size_gb, bool) else None)
    size = config.params.get("model_size")
    if size and any(checkpoint.bytes == IGNORED_SIZE_BYTES for checkpoint in checkpoints):
        config.notes.append(f"checkpoints hold {IGNORED_SIZE_BYTES} bytes: model_size = {size} is no key of the DLIO that ran")
    return _run(folder, config, summary, epochs, checkpoints)


def _run(
    folder: Path, config: Config, summary: Fields | None, epochs: tuple[Epoch, ...] = (), checkpoints: tuple[Checkpoint, ...] = ()
) -> IoRun:
    processes = summary.whole("num_accelerators") if summary else 1
    reported, usual = _reported_in(summary), (EXCLUDED_START_STEPS, EXCLUDED_END_STEPS)
    return IoRun(
        origin=str(folder),
        id=_name(folder, config, processes),
        model=config.workload or str(config.params.get("model") or _model_above(folder)),
        engine="dlio",
        engine_version="2.0.0 of PyPI" if config.old else None,
        dlio_counts_all=config.old,
        kind="training" if epochs else "generation",
        processes=processes,
        batch_size=config.optional_whole("batch_size", 1),
        read_threads=config.optional_whole("read_threads"),
        prefetch_factor=config.prefetch_factor,
        computation_time_s=config.computation_time_s,
        record_length_bytes=config.number("record_length_bytes") if config.known else _record_length_of(reported),
        epochs=epochs,
        excluded_start_steps=usual[0] if config.old or not config.known else config.whole("exclude_start_steps"),
        excluded_end_steps=usual[1] if config.old or not config.known else config.whole("exclude_end_steps"),
        checkpoints=checkpoints,
        params=config.params if config.known else {},
        overrides={key: value for key, value in config.asked.items() if key == CHECKPOINTS or not key.startswith(NO_FACTORS)},
        dataset=_dataset_of(folder, config),
        reported=reported,
        host=_host_of(summary) if summary else Host(),
        started_utc=_started_of(folder, summary),
        notes=tuple(config.notes),
    )


def _name(folder: Path, config: Config, processes: int) -> str:
    """Call a run as the study did that kept it in a folder of its own; otherwise by what distinguishes it."""
    above = folder.resolve().parent.name
    if not STAMPED.fullmatch(folder.name):
        return folder.resolve().name
    if re.match(rf"{processes}(_|$)", above):
        return above
    asked = [f"{key.rpartition('.')[2]}={value}" for key, value in config.asked.items() if not key.startswith(NO_FACTORS)]
    return " ".join([str(processes), *asked]) if len(asked) <= MOST_IN_NAME and config.known else f"{above}/{folder.name}"


def _model_above(folder: Path) -> str:
    """The name of the folder that is neither of its time nor of its number of ranks."""
    place = folder.resolve()
    names = (path.name for path in (place, *place.parents) if not STAMPED.fullmatch(path.name) and not re.match(r"\d+(_|$)", path.name))
    return next(names, "") or "unknown"


# What DLIO notes beside its step lists.


def _reported_in(summary: Fields | None) -> dict[str, object]:
    if summary is None:
        return {}
    return {**summary.optional_mapping("metric"), "data_size_per_host_GB": summary.value.get("data_size_per_host_GB")}


def _record_length_of(reported: Mapping[str, object]) -> float | None:
    """The record length that DLIO counted with, by its two rates."""
    rate, mb = (reported.get(name) for name in ("train_throughput_mean_samples_per_second", "train_io_mean_MB_per_second"))
    if not (isinstance(rate, float) and isinstance(mb, float) and 0 < rate < math.inf and 0 < mb < math.inf):
        return None
    return mb * MIB / rate


def _dataset_of(folder: Path, config: Config) -> dict[str, object]:
    """What the run was to read. Its folder is relative to where the job ran: two jobs may use the same name."""
    hydra = folder / ".hydra" / "hydra.yaml"
    result = yaml_of(hydra) if hydra.is_file() else None
    for key in ("hydra", "runtime", "cwd"):
        result = result.get(key) if isinstance(result, Mapping) else None
    return {
        "folder": str(Path(str(result or "")) / str(config.params.get("data_folder", ""))),
        "format": config.params.get("format"),
        "files": config.optional_whole("num_files_train"),
        "samples_per_file": config.optional_whole("num_samples_per_file"),
    }


def _host_of(summary: Fields) -> Host:
    memory, cpus = (summary.value.get(name) for name in ("host_memory_GB", "host_cpu_count"))
    cached = str(summary.optional_mapping("host_meminfo").get("Cached", "")).removesuffix(" kB")
    return Host(
        name=summary.optional_text("hostname"),
        hosts=summary.whole("num_hosts") if summary.has("num_hosts") else None,
        cpus=cpus[0] if isinstance(cpus, list) and cpus and isinstance(cpus[0], int) else None,
        memory_bytes=sum(memory) * GIB if isinstance(memory, list) and all(isinstance(one, int | float) for one in memory) else None,
        cached_bytes=float(cached) * 1024 if cached.isdecimal() else None,
    )


def _started_of(folder: Path, summary: Fields | None) -> str | None:
    """When it began, by its summary or its log; DLIO writes UTC without saying so."""
    text = summary.optional_text("start") if summary else None
    log = folder / "dlio.log"
    if text is None and log.is_file():
        match = BEGAN.search(read_whole(log).decode(errors="replace"))
        text = match[0] if match else None
    try:
        return text and datetime.fromisoformat(text).replace(tzinfo=UTC).isoformat()
    except ValueError:
        raise Unreadable(f"{folder / 'summary.json'}: has start = {text!r}, where a time belongs; {DAMAGED}.") from None


# The step lists of its ranks and the clock stamps around them.


@dataclass(frozen=True, slots=True)
class _RankFiles:
    """What one rank wrote; with `shared_clock` its stamps are rank 0's, the only ones there."""

    rank: int
    output: Path
    stamps: Path
    shared_clock: bool


def _rank_files(folder: Path, processes: int) -> list[_RankFiles]:
    """Find each rank's files, in the folder or in one that DLIO 2.0.0 named a moment earlier or later. Raises: Unreadable."""
    result = []
    shared = folder / "per_epoch_stats.json"
    for rank in range(processes):
        home = next((path for path in (folder, *_beside(folder)) if (path / f"{rank}_output.json").is_file()), None)
        if home is not None:
            own = home / f"{rank}_per_epoch_stats.json"
            alone = shared.is_file() and not own.is_file()
            result.append(_RankFiles(rank, home / f"{rank}_output.json", shared if alone else own, alone))
    if not result or result[0].rank:
        raise Unreadable(f"{folder / '0_output.json'}: not there; it holds the steps, copy the folder whole.")
    return result


def _beside(folder: Path) -> list[Path]:
    """Sibling folders without a summary, nearest in name (that is, in time) first."""
    siblings = [path for path in folder.parent.iterdir() if path != folder and path.is_dir() and not (path / "summary.json").exists()]
    return sorted(siblings, key=lambda sibling: abs(_stamp_s(sibling.name) - _stamp_s(folder.name)))


def _stamp_s(name: str) -> float:
    try:
        return datetime.strptime(name, "%Y-%m-%d-%H-%M-%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return float("inf")


def _epochs_of(files: Sequence[_RankFiles], notes: list[str]) -> tuple[Epoch, ...]:
    """Read all epochs of all ranks; blocks in which no step was taken are left out.

    Raises: Unreadable.
    """
    result: list[Epoch] = []
    for file in files:
        output, stamps = json_of(file.output), None
        for number in sorted(int(key) for key in output.value if key.isdecimal()):
            epoch = output.fields(str(number))
            lists = {name: epoch.optional_fields(name) for name in ("load", "proc", "compute")}
            for block in sorted(int(match[1]) for name in lists["compute"].value if (match := BLOCK.fullmatch(name))):
                load, proc, compute = (lists[name].times(f"block{block}", zero=True) for name in ("load", "proc", "compute"))
                load = _with_first(load, proc, compute) if block > 1 else load
                steps = min(len(load), len(proc), len(compute))
                if max(len(load), len(proc), len(compute)) > steps + 1:
                    epoch.refuse(f"has {len(load)} load, {len(proc)} proc and {len(compute)} compute times in block{block}", DAMAGED)
                if not steps:
                    continue
                stamps = stamps or json_of(file.stamps)
                start_s, end_s = _span(stamps.fields(str(number)).fields(f"block{block}"))
                result.append(Epoch(number, file.rank, start_s, end_s, load[:steps], compute[:steps], proc_s=proc[:steps], block=block))
    result.sort(key=lambda epoch: (epoch.number, epoch.block, epoch.rank))
    if any(file.shared_clock for file in files[1:]) and result:
        notes.append("all ranks are timed by rank 0's stamps, the only ones that this DLIO writes")
    return tuple(result)


def _with_first(load: Sequence[float], proc: Sequence[float], compute: Sequence[float]) -> tuple[float, ...]:
    """Put back a block's first wait after a checkpoint: DLIO notes it before it clears the list for the new block."""
    missing = len(load) == len(proc) - 1 == len(compute) - 1
    return (max(0.0, proc[0] - compute[0]), *load) if missing else tuple(load)


def _checkpoints_of(files: _RankFiles, size_gb: float | None) -> tuple[Checkpoint, ...]:
    """The checkpoints of rank 0; `size_gb` is what DLIO says of each, in units of 2^30 bytes. Raises: Unreadable."""
    if not files.stamps.is_file():
        return ()
    stamps, result = json_of(files.stamps), []
    for number in sorted(int(key) for key in stamps.value if key.isdecimal()):
        epoch = stamps.fields(str(number))
        for name in epoch.value:
            if CHECKPOINT.fullmatch(name):
                start_s, end_s = _span(epoch.fields(name))
                result.append(Checkpoint(None if size_gb is None else size_gb * GIB, end_s - start_s))
    return tuple(result)


def _span(fields: Fields) -> tuple[float, float]:
    """Start and end in seconds since 1970; only their difference is used."""
    start_s, end_s = (_seconds(fields, name) for name in ("start", "end"))
    if end_s < start_s:
        fields.refuse("ends before it starts", "the clock was set while it ran: run again")
    return start_s, end_s


def _seconds(fields: Fields, name: str) -> float:
    text = fields.text(name)
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        fields.refuse(f"has {name} = {text!r}, where a time belongs", DAMAGED)
