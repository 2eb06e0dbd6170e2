"""DeepTweak's directories: one folder per configuration with `benchmark.csv` (a row a step) and `skyhook.yaml` (what was asked for).

A node type's folder is one run: each configuration below it is an arm of one cell; what was appended to its file later is a second block.
Nothing in the format says which samples were trained on, whether the tweaks were in force, or when any of it happened.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from analysis.metrics import metrics_of
from analysis.terms import Cell, Design, Metric, Run, Study, TweakSet, Unreadable, Workload
from analysis.wording import UNCOUNTED

from . import deeptweak_table
from .deeptweak_columns import CONSTANTS, KNOWN, column_of, told

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from .deeptweak_columns import ColumnFact
    from .deeptweak_table import Process

TABLE, MANIFEST = "benchmark.csv", "skyhook.yaml"
STUDY, BASELINE = "deeptweak", "base"
QUESTION = "Which set of kernel tweaks fine-tunes a language model fastest?"
PRIMARY = Metric("throughput_samples_per_s", "higher")
# So many times the bytes written to disk since boot: not a matter of minutes any more.
LONG_UP = 10
# What a reader should know, and the columns it is about.
Remark = tuple[str, tuple[str, ...]]


class Configuration(NamedTuple):
    tweakset: TweakSet
    cells: tuple[Cell, ...]
    remarks: tuple[Remark, ...]


def recognises(folder: Path) -> bool:
    """Whether a folder is of this format: itself a configuration, or one above them."""
    return (folder / TABLE).is_file() or any(folder.glob(f"*/{TABLE}"))


def read(folder: Path) -> Run:
    """Read all configurations under one node type's folder, or the one that the folder itself is, as one run.

    One that cannot be read is left out and said so. Raises: Unreadable, where none can be.
    """
    alone = (folder / TABLE).is_file()
    node = (folder.resolve().parent if alone else folder.resolve()).name or STUDY
    places = [folder] if alone else sorted(path.parent for path in folder.glob(f"*/{TABLE}"))
    result: list[Configuration] = []
    refused: list[str] = []
    for place in places:
        try:
            result.append(_configuration(place, node))
        except Unreadable as error:
            refused.append(str(error))
    if not result:
        raise Unreadable(
            refused[0] if len(refused) == 1 else f"{folder}: none of its {len(refused)} configurations can be read; the first: {refused[0]}"
        )
    cells = [replace(cell, order=order) for order, cell in enumerate(cell for configuration in result for cell in configuration.cells)]
    blocks = max(cell.block for cell in cells)
    return Run(
        origin=str(folder),
        run_id=f"{node}-{_digest(cells)}",
        started_utc="",
        interrupted=False,
        studies={STUDY: Study(STUDY, QUESTION, 0.03, blocks, PRIMARY)},
        workloads={node: Workload(node, description="fine-tuning under DeepTweak's logger", params=_params(cells))},
        tweaksets={configuration.tweakset.name: configuration.tweakset for configuration in result},
        cells=tuple(cells),
        machine=_machine(cells),
        design=Design(seed=0, blocks=blocks, steps=None, order=tuple(cell.id for cell in cells)),
        warnings=(*(f"left out: {line}" for line in refused), *_remarks(result), *_reboots(cells)),
        format="deeptweak-csv",
        baseline=_baseline([configuration.tweakset for configuration in result]),
        replicated=blocks > 1,
    )


def _configuration(folder: Path, node: str) -> Configuration:
    """Read one folder. Raises: Unreadable; an arm whose manifest cannot be read is not known to be anything."""
    name = folder.resolve().name
    tweakset = _tweakset(folder, name)
    rows = deeptweak_table.read(folder / TABLE)
    known = [column for column in rows.header if column in KNOWN or column_of(column)]
    remarks: list[Remark] = []
    if len(known) < len(rows.header):
        remarks.append(("no column of DeepTweak, so left out", tuple(text for text in rows.header if text not in known)))
    if "batch_size" not in known:
        remarks.append(("not in the file, so each step counts as one sample", ("batch_size",)))
    cells: list[Cell] = []
    result = deeptweak_table.processes(rows, known)
    for block, process in enumerate(result, 1):
        columns = told(process.columns, process.steps)
        cells.append(_cell(node, name, block, process, columns))
        remarks += [*columns.noticed.items(), *([(f"steps without a row: {process.gaps}", ("step",))] if process.gaps else [])]
    if len(result) > 1:
        remarks.append(
            (f"begins anew {len(result) - 1} times: runs one after the other, each a block; drift is part of any difference", ("step",))
        )
    return Configuration(tweakset, tuple(cells), tuple(dict.fromkeys(remarks)))


def _tweakset(folder: Path, name: str) -> TweakSet:
    path = folder / MANIFEST
    if not path.is_file():
        return TweakSet(name, description="no manifest, so no tweak")
    from . import skyhook  # noqa: PLC0415  # few readers of runs have need of YAML

    manifest = skyhook.read(path)
    return TweakSet(
        name=name,
        requested=tuple(request.setting for request in manifest.asked),
        scripts=len(manifest.scripts),
        path=str(path),
        sha256=manifest.sha256,
        warnings=manifest.warnings,
    )


def _cell(node: str, name: str, block: int, process: Process, columns: ColumnFact) -> Cell:
    constant = ((ours, process.columns.get(theirs, ())) for theirs, ours in CONSTANTS.items())
    return Cell(
        id=f"{STUDY}/{node}-{name}-b{block}",
        study=STUDY,
        workload=node,
        tweakset=name,
        block=block,
        order=0,
        outcome="measured",
        steps=process.steps,
        metrics=metrics_of(process.steps),
        facts={ours: int(values[0]) for ours, values in constant if len(set(values)) == 1 and values[0] is not None},
        telemetry=columns.summary,
        telemetry_missing=columns.missing,
        series=columns.series,
    )


def _digest(cells: Sequence[Cell]) -> str:
    """Tell runs apart by what was timed: a folder's name is often that of another folder too."""
    times = repr([cell.steps.wall_s for cell in cells if cell.steps])
    return hashlib.sha256(times.encode()).hexdigest()[:12]


def _params(cells: Sequence[Cell]) -> dict[str, object]:
    seen: dict[str, set[object]] = {name: {cell.facts.get(name) for cell in cells} for name in CONSTANTS.values()}
    seen["batch_size"] = {count for cell in cells if cell.steps for count in cell.steps.samples}
    return {name: values.pop() for name, values in seen.items() if len(values) == 1 and None not in values}


def _machine(cells: Sequence[Cell]) -> dict[str, object]:
    """Say what is known of the machine: the memory of its GPUs, where all configurations agree on it.

    The logger asks one GPU, whether the machine has two or not: of how many that is is not known.
    """
    seen = {
        tuple((name, values[0]) for name, values in cell.series.items() if name.endswith("_mem_total_bytes") and values[0])
        for cell in cells
    }
    if len(seen) != 1:
        return {}
    gpus: list[dict[str, object]] = [
        {"name": f"unknown, {total / 2**30:.0f} GiB", "memory_total_bytes": int(total)} for _, total in seen.pop() if total
    ]
    return {"gpus": [{**gpus[0], "count": UNCOUNTED}] if len(gpus) == 1 else gpus}


def _baseline(tweaksets: Sequence[TweakSet]) -> str:
    untouched = [tweakset.name for tweakset in tweaksets if not tweakset.requested and not tweakset.scripts]
    names = [tweakset.name for tweakset in tweaksets]
    return BASELINE if BASELINE in names else [*untouched, *names][0]


def _remarks(result: Sequence[Configuration]) -> Iterator[str]:
    about: dict[Remark, list[str]] = {}
    for configuration in result:
        for remark in configuration.remarks:
            about.setdefault(remark, []).append(configuration.tweakset.name)
    for (what, columns), names in about.items():
        yield f"{', '.join(names)}: {', '.join(columns)}: {what}."


def _reboots(cells: Sequence[Cell]) -> Iterator[str]:
    """Say where some arms ran on a machine long up and others soon after a boot: what was written to disk since then tells."""
    name = "disk_written_since_boot_bytes"
    written = {cell.tweakset: cell.series[name][0] or 0.0 for cell in cells if cell.block == 1 and name in cell.series}
    fresh = [text for text, so_far in written.items() if LONG_UP * so_far < max(written.values())]
    if fresh:
        others = ", ".join(text for text in written if text not in fresh)
        yield f"{', '.join(fresh)}: ran soon after a boot, and {others} on a machine long up: that is part of any difference."
