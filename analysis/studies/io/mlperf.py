"""The rules of MLPerf Storage v2.0 for training: how large a data set must be, which division overrides leave, what runs lack.

The metric is samples/s while AU stays above the workload's threshold. The rules leave the first step's input out of AU and count it in
samples/s; DLIO leaves it out of both. Here the rule is implemented, and DLIO's figure stands beside it under its own name. Nothing here
makes a submission of a run.

Source: MLPerf Storage v2.0, Rules.md (training).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Literal

import yaml

from analysis.answer import Column, Line, Section, Table

from .formulas import RATE, STEADY
from .sentences import counted, letter, listed
from .terms import GIB, IoResponse, IoRun
from .validity import fewest_steps

if TYPE_CHECKING:
    from .responses import JudgedResponse

FOLDER = Path(__file__).parents[3] / "data" / "io"  # of DLIO's workloads, for both sides of the house
THRESHOLDS_PERCENT = {"unet3d": 90.0, "resnet50": 90.0, "cosmoflow": 70.0}
TIMES_MEMORY = 5
LEAST_STEPS = 500
RUNS = 5
SPREAD = 0.05
MAY_CHANGE_CLOSED = frozenset(
    {
        *(f"dataset.{name}" for name in ("num_files_train", "num_subfolders_train", "data_folder")),
        # odirect is not in the text of the rules; their checker admits it
        *(f"reader.{name}" for name in ("read_threads", "computation_threads", "transfer_size", "prefetch_size", "odirect")),
        *("checkpoint.checkpoint_folder", "storage.storage_root", "storage.storage_type"),
    }
)
MAY_CHANGE_OPEN = frozenset({"framework", "dataset.format", "dataset.num_samples_per_file", "reader.data_loader"})
PREFETCH_SIZES = frozenset({"0", "1", "2"})
# What is no parameter of DLIO's workload: how many accelerators there are is for the submitter to choose, and engine, page cache, scales
# and whether there are checkpoints (`workflow`) are this project's. What scales make of other parameters is seen in those.
NO_PARAMETER = frozenset({"workload", "model", "processes", "engine", "cache", "checkpoint", "sample_scale", "record_scale"})
IGNORED = ("workflow.", "hydra.", "output.")
# What a workload's own definition fixes, beside what overrides say: a copy of it may differ without one.
LENGTHS = ("record_length_bytes", "record_length_bytes_stdev", "record_length_bytes_resize")
FIXED = ("batch_size", "computation_time", "epochs", *LENGTHS, "num_samples_per_file", "format", "file_shuffle", "sample_shuffle")
SCALED = (*LENGTHS, "computation_time")
OLD_NAMES = {"record_length": "record_length_bytes", "record_length_stdev": "record_length_bytes_stdev"}  # as 2.0.0 of PyPI spells them
FIGURES = {"au_percent": "AU %", "au_needed_percent": "needs AU %", "samples_per_s": "samples/s", "samples_per_s_dlio": "as DLIO"}


@dataclass(frozen=True, slots=True)
class Division:
    """Where a run belongs by what was changed: `because` names what keeps it out of both, `disclosed` what OPEN alone may change."""

    word: Literal["CLOSED", "OPEN", "INVALID"]
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
class Submission:
    """Runs of one setting, measured against the rules. `lacks` is empty where they could be submitted.

    `samples_per_s` is the mean as the rules count it (all input), `samples_per_s_dlio` as DLIO reports it; `au_needed_percent` is what
    the workload must keep, `enough` the data set that would do, where that is known, and `apart` how far runs lie apart (of the slowest).
    """

    name: str
    processes: int
    runs: int
    division: Division
    lacks: tuple[str, ...]
    au_percent: float | None = None
    samples_per_s: float | None = None
    samples_per_s_dlio: float | None = None
    au_needed_percent: float | None = None
    enough: Files | None = None
    apart: float | None = None


def own_parameters(model: str) -> Mapping[str, object]:
    """Return a workload's parameters by its name, `unet3d_a100` or `unet3d`; without an accelerator, its default one. Empty if unknown."""
    base = next((path for path in sorted(FOLDER.glob("*.yaml")) if model == path.stem or model.startswith(f"{path.stem}_")), None)
    if base is None:
        return {}
    workload = yaml.safe_load(base.read_text(encoding="utf-8"))
    accelerators = workload.get("accelerators") or {}
    named = [part for part in model.removeprefix(base.stem).split("_") if part in accelerators]
    return {**workload.get("parameters", {}), **accelerators.get((named or [workload.get("accelerator")])[0], {})}


def files_required(memory_bytes: float, processes: int, batch_size: int, record_length_bytes: float, samples_per_file: int) -> Files:
    """Return the least number of files: five times the memory of all hosts, and 500 steps an epoch.

    The benchmark's own code rounds down, and so may fall one file short of its rule; here it is rounded up.
    """
    file_bytes = record_length_bytes * samples_per_file
    by_memory = math.ceil(TIMES_MEMORY * memory_bytes / file_bytes)
    by_steps = math.ceil(LEAST_STEPS * processes * batch_size / samples_per_file)
    required = max(by_memory, by_steps)
    return Files(by_memory, by_steps, required, required * file_bytes / GIB)


def division(changed: Mapping[str, object]) -> Division:
    """Decide by what was changed: CLOSED, OPEN (to be disclosed), or INVALID for both.

    Keys are DLIO's, with `workload.` before them or without, and with their section or without.
    """
    opens, breaks = list[str](), list[str]()
    for override, value in changed.items():
        key = _parameter(override)
        if key is None:
            continue
        if not _among(key, MAY_CHANGE_CLOSED):
            (opens if _among(key, MAY_CHANGE_OPEN) else breaks).append(f"{key} = {value}")
        elif _name(key) == "prefetch_size" and str(value) not in PREFETCH_SIZES:
            breaks.append(f"{key} = {value} (may be 0, 1 or 2)")
    return Division("INVALID" if breaks else "OPEN" if opens else "CLOSED", tuple(breaks), tuple(opens))


def _parameter(override: str) -> str | None:
    """Return the key of an override as DLIO has it, without `workload.`; None for what is no parameter of a workload."""
    key = override.lstrip("+").removeprefix("workload.")
    return None if key in NO_PARAMETER or key.startswith(IGNORED) else key


def _among(key: str, allowed: frozenset[str]) -> bool:
    return key in allowed or key in {text.rpartition(".")[2] for text in allowed}


def threshold_percent(model: str) -> float | None:
    """Return the AU that a workload must keep, by its name (`unet3d_h100` is unet3d); None for no workload of the benchmark."""
    return next((percent for name, percent in THRESHOLDS_PERCENT.items() if model == name or model.startswith(f"{name}_")), None)


def departures(run: IoRun, own: Mapping[str, object]) -> dict[str, object]:
    """Return what effectively differs from the workload's own definition, whoever changed it: an override, a copy, a scale.

    An override that says what the workload says anyway is none; where the workload's own is not known, every override is one.
    """
    overrides = {key: value for override, value in run.overrides.items() if (key := _parameter(override)) is not None}
    result = {key: value for key, value in overrides.items() if not _same(_effective(run, _name(key), value), own.get(_name(key)))}
    named = {_name(key) for key in result}
    for key in FIXED:
        value = _effective(run, key, None)
        if key not in named and value is not None and own.get(key) is not None and not _same(value, own[key]):
            result[key] = value
    return result


def _same(value: object, other: object) -> bool:
    """Whether two values are one: numbers within rounding, also such as stand in a text; words to the letter."""
    try:
        first, second = float(str(value)), float(str(other))
    except ValueError:
        return str(value) == str(other)
    return abs(first - second) <= 1e-6 * abs(second)


def _name(key: str) -> str:
    leaf = key.rpartition(".")[2]
    return OLD_NAMES.get(leaf, leaf)


def _effective(run: IoRun, name: str, given: object) -> object:
    value = run.params.get(name, given)
    return value.get("mean") if isinstance(value, Mapping) else value


# Runs of one setting together.


def submission(name: str, runs: Sequence[JudgedResponse], own: Mapping[str, object] | None = None) -> Submission:
    """Measure runs of one setting against the rules; `own` are the workload's own parameters, where they are known."""
    run, own = runs[0].run, own or {}
    decided = division(departures(run, own))
    aus, rates, dlio = ([value for one in runs if (value := one.value(name)) is not None] for name in (STEADY, RATE, "samples_per_s_dlio"))
    enough = _enough(run, own)
    apart = max(rates) / min(rates) - 1 if len(rates) > 1 else None
    lacks = tuple(_lacks(run, runs, own, decided, enough, apart))
    au, rate, reported = (round(fmean(values), 2) if len(values) == len(runs) else None for values in (aus, rates, dlio))
    needed = threshold_percent(run.model)
    return Submission(name, run.processes, len(runs), decided, lacks, au, rate, reported, needed, enough, apart)


def _enough(run: IoRun, own: Mapping[str, object]) -> Files | None:
    """Return the data set that would do: of the workload's own records and batch, which neither division may change, if known."""
    samples = run.dataset.get("samples_per_file")
    batch, length = own.get("batch_size", run.batch_size), own.get("record_length_bytes", run.record_length_bytes)
    if run.host.memory_bytes is None or not isinstance(samples, int) or samples < 1:
        return None
    if not isinstance(batch, int) or not isinstance(length, int | float):
        return None
    return files_required(run.host.memory_bytes, run.processes, batch, length, samples)


def _lacks(
    run: IoRun, runs: Sequence[JudgedResponse], own: Mapping[str, object], decided: Division, enough: Files | None, apart: float | None
) -> Iterator[str]:
    if run.engine != "dlio":
        yield f"it was run by the engine {run.engine}: the benchmark is run by DLIO (through mlpstorage)"
    yield from _broken(run, own, decided)
    files, samples = (run.dataset.get(name) for name in ("files", "samples_per_file"))
    if not isinstance(files, int) or not isinstance(samples, int) or samples < 1:
        yield "how many files it read is not recorded"
    else:
        if run.host.memory_bytes is None:
            yield "the hosts' memory is not recorded, so the size that the data set must have is unknown"
        elif enough is not None and files < enough.required:
            yield f"the data set has {files} of at least {enough.required} files ({files / enough.required:.2%})"
        if (steps := fewest_steps(run)[0]) < LEAST_STEPS:
            yield f"an epoch has {counted(steps, 'step')} of at least {LEAST_STEPS}"
    yield from _utilisation(run.model, [one.responses[STEADY] for one in runs])
    if len(runs) < RUNS:
        yield f"{len(runs)} of {RUNS} measured runs after one to warm up"
    if apart is not None and apart > SPREAD:
        yield f"its runs lie more than {SPREAD:.0%} apart"
    seeds = {str(one.run.params["seed"]) for one in runs if "seed" in one.run.params}
    if len(runs) > 1 and len(seeds) < len(runs):
        yield "the seed was not changed from run to run" if seeds else "no seed is recorded, which must change from run to run"


def _broken(run: IoRun, own: Mapping[str, object], decided: Division) -> Iterator[str]:
    """Yield what broke the rules, a line each; what a scale of records made of several parameters, in one."""
    scale, named = run.params.get("record_scale", 1), {_name(key) for key in run.overrides}
    broken = [text.partition(" = ") for text in decided.because]
    scaled = [] if _same(scale, 1) else [name for name in SCALED if name not in named and name in {key for key, _, _ in broken}]
    if scaled:
        yield f"record_scale = {scale} makes {listed(scaled)} other than the workload's, which neither division may change"
    for key, _, value in broken:
        if key not in scaled:
            its = own.get(_name(key))
            where = "" if its is None or "(" in value else f", where the workload's own is {its}"
            yield f"{key.rpartition('.')[2]} = {value}{where}: neither division may change it"


def _utilisation(model: str, figures: Sequence[IoResponse]) -> Iterator[str]:
    least = threshold_percent(model)
    if least is None:
        yield f"{model} is no workload of the benchmark: 3D-UNet, ResNet-50 and CosmoFlow are"
        return
    if reason := next((figure.why_missing for figure in figures if figure.value is None), None):
        yield f"its AU cannot be given ({reason.partition(':')[0]})"
    if any(figure.value is not None and figure.value < least for figure in figures):
        yield f"AU is below the {least:g} % it must keep{', in one run or more' if len(figures) > 1 else ''}"


def largest(result: Iterable[Submission]) -> Submission | None:
    """Return what would be reported: the most processes that keep their AU, of runs that lack nothing."""
    return max((one for one in result if not one.lacks), key=lambda one: one.processes, default=None)


def section(result: Sequence[Submission]) -> Section:
    """Return what the settings lack: what all lack once, of each what it lacks beside that by letters."""
    shared = [lack for lack in result[0].lacks if all(lack in one.lacks for one in result)] if len(result) > 1 else []
    others = dict.fromkeys(lack for one in result for lack in one.lacks if lack not in shared)
    marks = {lack: letter(at) for at, lack in enumerate(others)}
    columns = [Column("setting", left=True), Column("ranks"), Column("runs"), Column("division")]
    columns += [Column(head, name, "{:.2f}".format) for name, head in FIGURES.items()]
    rows = []
    for one in result:
        letters = ("" if len(marks) <= 26 else " ").join(marks[lack] for lack in one.lacks if lack in marks)
        rows.append([one.name, one.processes, one.runs, one.division.word, *(getattr(one, name) for name in FIGURES), letters or None])
    best = largest(result)
    lines = [Line("No setting could be submitted.")]
    if best is not None:
        rate = "no samples/s" if best.samples_per_s is None else f"{best.samples_per_s:.2f} samples/s"
        lines = [Line(f"To be reported: {best.name}, {best.processes} accelerators, {rate} ({best.division.word}).", tone="good")]
    lines.append(Line("samples/s: all input counted, as the rules say; DLIO leaves the first step out of it as well.", tone="quiet"))
    if disclosed := dict.fromkeys(change for one in result for change in one.division.disclosed):
        lines.append(Line(f"OPEN alone may change, and is to disclose: {', '.join(disclosed)}.", tone="quiet"))
    if shared:
        lines += [Line(f"Lacking in all {len(result)}"), *(Line(f"{lack}.", "-") for lack in shared)]
    if marks:
        lines += [Line("Lacking in those with its letter" if len(result) > 1 else "Lacking")]
        lines += [Line(f"{lack}.", mark) for lack, mark in marks.items()]
    table = Table([*columns, Column("lacks")], rows)
    return Section("MLPerf Storage v2.0, training: what is lacking to a submission", [table, *lines, *_would_do(result)])


def _would_do(result: Sequence[Submission]) -> Iterator[Line]:
    """Yield what would do, files and runs, and what asks for so many: memory, or steps (which grow with the ranks)."""
    needs: dict[str, set[int]] = defaultdict(set)
    for one in result:
        if one.enough is not None:
            by = f"{TIMES_MEMORY} times the memory" if one.enough.by_memory >= one.enough.by_steps else f"{LEAST_STEPS} steps an epoch"
            needs[f"{one.enough.required} files, {one.enough.gib:.0f} GiB ({by})"].add(one.processes)
    if needs:
        yield Line(f"Enough would be {RUNS} measured runs after one to warm up, with the workload's own records and batch, and")
        yield from (Line(need, f"{', '.join(map(str, sorted(ranks)))} rank{'' if ranks == {1} else 's'}:") for need, ranks in needs.items())
