"""The rules of MLPerf Storage v2.0 for training: how large a data set must be, which division overrides leave, what runs lack.

The metric is samples/s while AU stays above the workload's threshold. The rules leave the first step's input out of AU and count it in
samples/s; DLIO leaves it out of both. Here the rule is implemented, and DLIO's figure stands beside it under its own name. Nothing here
makes a submission of a run.

Source: MLPerf Storage v2.0, Rules.md (training).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from analysis.answer import Column, Line, Section, Table

from .sentences import counted, letter, listed
from .terms import GIB
from .validity import fewest_steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .responses import JudgedResponse
    from .terms import IoRun

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
FROM_THEM = {"record_length": "record_length_bytes", "record_length_stdev": "record_length_bytes_stdev"}  # as 2.0.0 of PyPI spells them


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
    """Runs of one setting held against the rules. `lacks` is empty where they could be submitted.

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
    """Answer a workload's parameters by its name, `unet3d_a100` or `unet3d`; without an accelerator, its default one. Empty if unknown."""
    import yaml  # noqa: PLC0415  # only this question needs it

    base = next((path for path in sorted(FOLDER.glob("*.yaml")) if model == path.stem or model.startswith(f"{path.stem}_")), None)
    if base is None:
        return {}
    held = yaml.safe_load(base.read_text(encoding="utf-8"))
    accelerators = held.get("accelerators") or {}
    named = [part for part in model.removeprefix(base.stem).split("_") if part in accelerators]
    return {**held.get("parameters", {}), **accelerators.get((named or [held.get("accelerator")])[0], {})}


def files_required(memory_bytes: float, processes: int, batch_size: int, record_length_bytes: float, samples_per_file: int) -> Files:
    """The least number of files: five times the memory of all hosts, and 500 steps an epoch.

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
    for given, value in changed.items():
        key = _parameter(given)
        if key is None:
            continue
        if _among(key, MAY_CHANGE_CLOSED):
            if key.rpartition(".")[2] == "prefetch_size" and str(value) not in PREFETCH_SIZES:
                breaks.append(f"{key} = {value} (may be 0, 1 or 2)")
        else:
            (opens if _among(key, MAY_CHANGE_OPEN) else breaks).append(f"{key} = {value}")
    return Division("INVALID" if breaks else "OPEN" if opens else "CLOSED", tuple(breaks), tuple(opens))


def _parameter(given: str) -> str | None:
    """The key of an override as DLIO has it, without `workload.`; None for what is no parameter of a workload."""
    key = given.lstrip("+").removeprefix("workload.")
    return None if key in NO_PARAMETER or key.startswith(IGNORED) else key


def _among(key: str, allowed: frozenset[str]) -> bool:
    return key in allowed or ("." not in key and any(text.rpartition(".")[2] == key for text in allowed))


def threshold_percent(model: str) -> float | None:
    """The AU that a workload must keep, by its name (`unet3d_h100` is unet3d); None for what is no workload of the benchmark."""
    return next((percent for name, percent in THRESHOLDS_PERCENT.items() if model == name or model.startswith(f"{name}_")), None)


def spread(samples_per_s: Iterable[float]) -> float:
    """How far runs of one setting lie apart, as a fraction of the slowest."""
    values = sorted(samples_per_s)
    return values[-1] / values[0] - 1


# What of a workload was another in a run than its own definition has it, whoever changed it: an override, a copy, a scale.


def departures(run: IoRun, own: Mapping[str, object]) -> dict[str, object]:
    """Everything that effectively differs from the workload's own, by the key that it was asked for by.

    An override that says what the workload says anyway is none; where the workload's own is not known, every override is one.
    """
    result: dict[str, object] = {}
    for given, value in run.overrides.items():
        key = _parameter(given)
        if key is not None and not _same(_effective(run, _name(key), value), own.get(_name(key))):
            result[key] = value
    named = {_name(key) for key in result}
    for key in FIXED:
        value, theirs = _effective(run, key, None), own.get(key)
        if key not in named and value is not None and theirs is not None and not _same(value, theirs):
            result[key] = value
    return result


def _broken(run: IoRun, own: Mapping[str, object], breaks: tuple[str, ...]) -> Iterator[str]:
    """Say what broke the rules, a line each; what a scale of records made of several parameters, in one."""
    scale, named = run.params.get("record_scale", 1), {_name(key) for key in run.overrides}
    broken = [text.split(" = ")[0] for text in breaks]
    scaled = [] if _same(scale, 1) else [name for name in SCALED if name not in named and name in broken]
    if scaled:
        words = [f"its {name.rpartition('_')[2]}" if name.startswith(f"{scaled[0]}_") else name for name in scaled]
        yield f"record_scale = {scale} makes {listed(words)} other than the workload's, which neither division may change"
    for text in breaks:
        key, _, value = text.partition(" = ")
        if key not in scaled:
            theirs = own.get(_name(key))
            its = "" if theirs is None or "(" in value else f", where the workload's own is {theirs}"
            yield f"{key.rpartition('.')[2]} = {value}{its}: neither division may change it"


def _same(value: object, other: object) -> bool:
    """Whether two values are one: numbers within rounding, also such as stand in a text; words to the letter."""
    one, two = _number(value), _number(other)
    return abs(one - two) <= 1e-6 * abs(two) if one is not None and two is not None else str(value) == str(other)


def _name(key: str) -> str:
    leaf = key.rpartition(".")[2]
    return FROM_THEM.get(leaf, leaf)


def _effective(run: IoRun, name: str, given: object) -> object:
    value = run.params.get(name, given)
    return value.get("mean") if isinstance(value, Mapping) else value


def _number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    except ValueError:
        return None


# Runs of one setting together.


def submission(name: str, runs: Sequence[JudgedResponse], own: Mapping[str, object] | None = None) -> Submission:
    """Hold runs of one setting against the rules; `own` are the workload's own parameters, where they are known."""
    run, own = runs[0].run, own or {}
    decided = division(departures(run, own))
    aus, rates, theirs = (
        [value for run in runs if (value := run.value(response)) is not None]
        for response in ("au_steady_percent", "samples_per_s_whole", "samples_per_s_dlio")
    )
    enough = _enough(run, own)
    engine = [] if run.engine == "dlio" else [f"it was run by the engine {run.engine}: the benchmark is run by DLIO (through mlpstorage)"]
    lacks = (*engine, *_broken(run, own, decided.because), *_size(run, enough), *_utilisation(run.model, runs), *_repeats(runs, rates))
    au, rate, dlio = (round(fmean(values), 2) if len(values) == len(runs) else None for values in (aus, rates, theirs))
    apart = spread(rates) if len(rates) > 1 else None
    return Submission(name, run.processes, len(runs), decided, lacks, au, rate, dlio, threshold_percent(run.model), enough, apart)


def _enough(run: IoRun, own: Mapping[str, object]) -> Files | None:
    """The data set that would do: of the workload's own records and batch, which neither division may change, where they are known."""
    samples = run.dataset.get("samples_per_file")
    batch, length = own.get("batch_size", run.batch_size), own.get("record_length_bytes", run.record_length_bytes)
    if run.host.memory_bytes is None or not isinstance(samples, int) or samples < 1:
        return None
    if not isinstance(batch, int) or not isinstance(length, int | float):
        return None
    return files_required(run.host.memory_bytes, run.processes, batch, length, samples)


def _size(run: IoRun, need: Files | None) -> Iterator[str]:
    files, samples = (run.dataset.get(name) for name in ("files", "samples_per_file"))
    if not isinstance(files, int) or not isinstance(samples, int) or samples < 1:
        yield "how many files it read is not recorded"
        return
    if run.host.memory_bytes is None:
        yield "the hosts' memory is not recorded, so the size that the data set must have is unknown"
    elif need is not None and files < need.required:
        yield f"the data set has {files} of at least {need.required} files ({files / need.required:.2%})"
    steps, _ = fewest_steps(run)
    if steps < LEAST_STEPS:
        yield f"an epoch has {counted(steps, 'step')} of at least {LEAST_STEPS}"


def _utilisation(model: str, runs: Sequence[JudgedResponse]) -> Iterator[str]:
    least = threshold_percent(model)
    if least is None:
        yield f"{model} is no workload of the benchmark: 3D-UNet, ResNet-50 and CosmoFlow are"
        return
    figures = [run.responses["au_steady_percent"] for run in runs]
    reason = next((figure.why_missing for figure in figures if figure.value is None), None)
    if reason is not None:
        yield f"its AU cannot be given ({reason.partition(':')[0]})"
    if any(figure.value is not None and figure.value < least for figure in figures):
        yield f"AU is below the {least:g} % it must keep{', in one run or more' if len(runs) > 1 else ''}"


def _repeats(runs: Sequence[JudgedResponse], rates: Sequence[float]) -> Iterator[str]:
    if len(runs) < RUNS:
        yield f"{len(runs)} of {RUNS} measured runs after one to warm up"
    if len(rates) > 1 and spread(rates) > SPREAD:
        yield f"its runs lie more than {SPREAD:.0%} apart"
    if len(runs) == 1:
        return
    seeds = [str(run.run.params["seed"]) for run in runs if "seed" in run.run.params]
    if not seeds and all(run.run.block is not None for run in runs):
        yield "the blocks of a saved run have its one seed, which must change from run to run"
    elif len(set(seeds)) < len(runs):
        yield "the seed was not changed from run to run" if seeds else "no seed is recorded, which must change from run to run"


def largest(result: Sequence[Submission]) -> Submission | None:
    """What would be reported: the most processes that keep their AU, of runs that lack nothing."""
    return max((one for one in result if not one.lacks), key=lambda one: one.processes, default=None)


def section(result: Sequence[Submission]) -> Section:
    """What the settings lack: what all lack once, of each what it lacks beside that by letters."""
    shared = [lack for lack in result[0].lacks if all(lack in one.lacks for one in result)] if len(result) > 1 else []
    others = dict.fromkeys(lack for one in result for lack in one.lacks if lack not in shared)
    marks = {lack: letter(at) for at, lack in enumerate(others)}
    figures = ("au_percent", "au_needed_percent", "samples_per_s", "samples_per_s_dlio")
    columns = [Column("setting", left=True), Column("ranks"), Column("runs"), Column("division")]
    columns += [
        Column(head, name, lambda value: f"{value:.2f}")
        for head, name in zip(("AU %", "needs AU %", "samples/s", "as DLIO"), figures, strict=True)
    ]
    rows = [
        [
            *(one.name, one.processes, one.runs, one.division.word),
            *(getattr(one, name) for name in figures),
            ("" if len(marks) <= 26 else " ").join(marks[lack] for lack in one.lacks if lack in marks) or None,
        ]
        for one in result
    ]
    best = largest(result)
    rate = "no samples/s" if best is None or best.samples_per_s is None else f"{best.samples_per_s:.2f} samples/s"
    lines = [
        Line("No setting could be submitted.")
        if best is None
        else Line(f"To be reported: {best.name}, {best.processes} accelerators, {rate} ({best.division.word}).", tone="good"),
        Line("samples/s: all input counted, as the rules say; DLIO leaves the first step out of it as well.", tone="quiet"),
    ]
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
    """Say what would do, files and runs, and what asks for so many: memory, or steps (which grow with the ranks)."""
    needs: dict[str, set[int]] = {}
    for one in result:
        if one.enough is not None:
            by = f"{TIMES_MEMORY} times the memory" if one.enough.by_memory >= one.enough.by_steps else f"{LEAST_STEPS} steps an epoch"
            needs.setdefault(f"{one.enough.required} files, {one.enough.gib:.0f} GiB ({by})", set()).add(one.processes)
    if needs:
        yield Line(f"Enough would be {RUNS} measured runs after one to warm up, with the workload's own records and batch, and")
        yield from (Line(need, f"{', '.join(map(str, sorted(ranks)))} rank{'' if ranks == {1} else 's'}:") for need, ranks in needs.items())
