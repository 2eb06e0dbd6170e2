"""DeepTweak's directories: a folder per configuration with `benchmark.csv` and `skyhook.yaml`.

`benchmark.csv` has a row per step; `skyhook.yaml` has the requested settings. A node type's folder
is one run: each configuration in it is an arm of one cell. The logger appends, and begins with a
header or with step 1 each time it starts: rows appended later form a second block. The format does
not record the training samples, whether the tweaks were in force, or any date.

Some column names mislead: MB and KB are MiB and KiB, `disk_*` counts since boot while `net_*` is a
rate, and `gpu_mem_util` is how busy or how full the memory was, depending on the program queried.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

from analysis.files import read_text
from analysis.metrics import metrics_of
from analysis.terms import (
    Cell,
    Design,
    Metric,
    Run,
    SavedStudy,
    SavedTweakSet,
    SavedWorkload,
    Steps,
    Unreadable,
)
from analysis.wording import UNCOUNTED
from control.saved import LARGEST_COUNT, LONGEST_S, SHORTEST_S

Values = tuple["float | None", ...]
Remark = tuple[str, str]  # a remark for the reader, and its column

TABLE, MANIFEST = "benchmark.csv", "skyhook.yaml"
STUDY, BASELINE = "deeptweak", "base"
QUESTION = "Which set of kernel tweaks fine-tunes a language model fastest?"
PRIMARY = Metric("throughput_samples_per_s", "higher")
LONG_UP = 10  # ratio of bytes written since boot that minutes of uptime cannot explain
KIB, MIB = 1024.0, 1024.0**2
# Step times are rounded to 1 ms and the clock to 10 ms: over minutes they agree far better than
# this.
CLOCK_TOLERANCE, CLOCK_SLACK_S = 0.02, 0.1
LARGEST = 1e24  # more than any byte counter: an extra digit, or two numbers joined


class ColumnSpec(NamedTuple):
    """A column under our name; `summary`: statistics kept per cell; `total`: a counter's increase.

    `never_zero`: 0 in every row can only mean that it was not measured.
    """

    name: str
    scale: float = 1.0
    summary: tuple[Literal["mean", "min", "max"], ...] = ()
    total: str = ""
    never_zero: bool = False


HOST = {
    "tokens_per_sec": ColumnSpec("tokens_per_s", never_zero=True),
    "samples_per_sec": ColumnSpec("samples_per_s", never_zero=True),
    "loss": ColumnSpec("loss"),
    "learning_rate": ColumnSpec("learning_rate"),
    "grad_norm": ColumnSpec("grad_norm"),
    "cpu_percent": ColumnSpec("cpu_busy_percent", summary=("mean",)),
    "mem_used": ColumnSpec("mem_used_bytes", summary=("mean", "max"), never_zero=True),
    "mem_available": ColumnSpec("mem_available_bytes", summary=("mean", "min"), never_zero=True),
    "swap_used": ColumnSpec("swap_used_bytes", summary=("max",)),
    "mem_percent": ColumnSpec("mem_used_percent", summary=("mean",), never_zero=True),
    "disk_read_MB": ColumnSpec(
        "disk_read_since_boot_bytes", MIB, total="disk_read_bytes_total", never_zero=True
    ),
    "disk_write_MB": ColumnSpec(
        "disk_written_since_boot_bytes", MIB, total="disk_written_bytes_total", never_zero=True
    ),
    "net_sent_KB": ColumnSpec("net_all_tx_bytes_per_s", KIB, ("mean",), never_zero=True),
    "net_recv_KB": ColumnSpec("net_all_rx_bytes_per_s", KIB, ("mean",), never_zero=True),
    "fd_count": ColumnSpec("process_open_files", summary=("max",), never_zero=True),
}
GPU = {
    "util": ColumnSpec("util_percent", summary=("mean",)),
    "mem_used": ColumnSpec("mem_used_bytes", summary=("max",), never_zero=True),
    "mem_total": ColumnSpec("mem_total_bytes", never_zero=True),
    "power_W": ColumnSpec("power_w", summary=("mean", "max"), never_zero=True),
    "temp_C": ColumnSpec("temperature_c", summary=("mean", "max"), never_zero=True),
    "clock_MHz": ColumnSpec("sm_clock_mhz", summary=("mean", "min"), never_zero=True),
    "mem_clock_MHz": ColumnSpec("mem_clock_mhz", never_zero=True),
    "mem_util": ColumnSpec("mem_util_percent"),
}
# A column without a number in its name is of the first GPU, the only one DeepTweak queries.
OF_GPU = re.compile(r"gpu(\d*)_(.+)")
EXPECTED = (*HOST, *(f"gpu_{name}" for name in GPU))
CONSTANTS = {"total_params": "parameters", "trainable_params": "trainable_parameters"}
# Known columns without telemetry: step number and duration; constants, the last of them the
# quotient of two others.
NO_TELEMETRY = ("step", "step_time", "time_elapsed", "batch_size", *CONSTANTS, "param_ratio")


def read(folder: Path) -> Run:
    """Read all configurations in a node type's folder, or a configuration's own folder, as one run.

    An unreadable one is omitted with a warning. Raises: Unreadable, if none can be read.
    """
    alone = (folder / TABLE).is_file()
    node = (folder.resolve().parent if alone else folder.resolve()).name or STUDY
    places = [folder] if alone else sorted(path.parent for path in folder.glob(f"*/{TABLE}"))
    tweaksets: dict[str, SavedTweakSet] = {}
    cells: list[Cell] = []
    remarks: dict[Remark, list[str]] = {}
    refused: list[str] = []
    for place in places:
        try:
            name = place.resolve().name
            tweakset, own_remarks = _tweakset(place, name), list[Remark]()
            own = list(_cells(_read_table(place / TABLE), node, name, own_remarks))
        except Unreadable as error:
            refused.append(str(error))
            continue
        tweaksets[name] = tweakset
        cells += own
        for remark in dict.fromkeys(own_remarks):
            remarks.setdefault(remark, []).append(name)
    if not cells:
        several = f"{folder}: none of its {len(refused)} configurations can be read; the first: "
        raise Unreadable(f"{several if len(refused) > 1 else ''}{refused[0]}")
    cells = [replace(cell, order=order) for order, cell in enumerate(cells)]
    blocks = max(cell.block for cell in cells)
    # Runs are identified by their times: folders often share a name.
    digest = hashlib.sha256(
        repr([cell.steps.wall_s for cell in cells if cell.steps]).encode()
    ).hexdigest()[:12]
    untouched = [
        name
        for name, tweakset in tweaksets.items()
        if not tweakset.requested and not tweakset.scripts
    ]
    return Run(
        origin=str(folder),
        run_id=f"{node}-{digest}",
        started_utc="",
        interrupted=False,
        studies={STUDY: SavedStudy(STUDY, QUESTION, 0.03, blocks, PRIMARY)},
        workloads={
            node: SavedWorkload(
                node, description="fine-tuning under DeepTweak's logger", params=_params(cells)
            )
        },
        tweaksets=tweaksets,
        cells=tuple(cells),
        machine=_machine(cells),
        design=Design(seed=0, blocks=blocks, steps=None, order=tuple(cell.id for cell in cells)),
        warnings=(*(f"left out: {line}" for line in refused), *_grouped(remarks), *_reboots(cells)),
        format="deeptweak-csv",
        baseline=BASELINE if BASELINE in tweaksets else [*untouched, *tweaksets][0],
        replicated=blocks > 1,
    )


def _tweakset(folder: Path, name: str) -> SavedTweakSet:
    """Read a configuration's manifest. Raises: Unreadable, since the arm is then unknown."""
    path = folder / MANIFEST
    if not path.is_file():
        return SavedTweakSet(name, description="no manifest, so no tweak")
    from . import skyhook

    manifest = skyhook.read(path)
    settings = tuple(request.setting for request in manifest.settings)
    return SavedTweakSet(
        name,
        settings,
        len(manifest.scripts),
        path=str(path),
        sha256=manifest.sha256,
        warnings=manifest.warnings,
    )


class CsvTable(NamedTuple):
    """A file's rows by column; `lines` are line numbers, `starts` the rows after a header."""

    path: Path
    columns: Mapping[str, Values]
    lines: Sequence[int]
    starts: Collection[int]
    unknown: Sequence[str]

    def refuse(self, row: int, what: str) -> NoReturn:
        _refuse(self.path, self.lines[row], what)


def _refuse(path: Path, line: int, what: str) -> NoReturn:
    raise Unreadable(
        f"{path}:{line}: {what}; the file is damaged or was edited: copy it from its source again."
    )


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return the rows of a file with their line numbers, the header first."""
    text = read_text(path, "a benchmark.csv is UTF-8")
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
    except csv.Error as error:
        _refuse(path, reader.line_num, f"not CSV ({error})")
    if not rows or "step_time" not in rows[0][1]:
        raise Unreadable(
            f"{path}: no column step_time in its first line: not a benchmark.csv of DeepTweak."
        )
    return rows


def _read_table(path: Path) -> CsvTable:
    numbered = _rows(path)
    header = numbered[0][1]
    if len(set(header)) < len(header):
        _refuse(path, numbered[0][0], "has a repeated column")
    known = [name for name in header if name in NO_TELEMETRY or _column_of(name)]
    values: dict[str, list[float | None]] = {name: [] for name in known}
    lines: list[int] = []
    starts: set[int] = set()
    for line, row in numbered:
        if row == header:
            starts.add(len(lines))
            continue
        if len(row) != len(header):
            _refuse(path, line, f"has {len(row)} fields, but the header has {len(header)}")
        lines.append(line)
        for name, cell in zip(header, row, strict=True):
            if name in values:
                values[name].append(_number(path, line, name, cell))
    if not lines:
        raise Unreadable(
            f"{path}: has a header but no steps: the run wrote nothing, so measure again."
        )
    return CsvTable(
        path,
        {name: tuple(own) for name, own in values.items()},
        lines,
        starts,
        [name for name in header if name not in known],
    )


def _number(path: Path, line: int, name: str, text: str) -> float | None:
    try:
        value = float(text) if text else math.nan
    except ValueError:
        _refuse(path, line, f"{name} is {text[:30]!r}, which is not a number")
    if math.isfinite(value) and abs(value) > LARGEST:
        _refuse(path, line, f"{name} is {value:g}, which is not a possible measurement")
    return value if math.isfinite(value) else None


def _cells(table: CsvTable, node: str, name: str, remarks: list[Remark]) -> Iterator[Cell]:
    """Make a cell from the rows of each process.

    Raises: Unreadable, with file and line, for rows that cannot be the steps of consecutive
    processes.
    """
    count = len(table.lines)
    numbers = _whole(table, "step") if "step" in table.columns else list(range(1, count + 1))
    # With several GPUs this is the total batch, so it is used unchanged.
    batch = any(value is not None for value in table.columns.get("batch_size", ()))
    samples = _whole(table, "batch_size") if batch else [1] * count
    wall_s = list(_times(table))
    starts = _starts(table, numbers)
    remarks += [("not a column of DeepTweak, so ignored", column) for column in table.unknown]
    if "batch_size" not in table.columns:
        remarks.append(("not in the file, so each step counts as one sample", "batch_size"))
    seen: list[tuple[float, ...]] = []
    for block, (first, end) in enumerate(zip(starts, [*starts[1:], count], strict=True), 1):
        steps = Steps(tuple(wall_s[first:end]), tuple(samples[first:end]), None, None, warmup=0)
        columns = {column: values[first:end] for column, values in table.columns.items()}
        gaps = numbers[end - 1] - numbers[first] + 1 - (end - first)
        if not gaps:
            _check_clock(table, first, steps, columns.get("time_elapsed", ()))
        if steps.wall_s in seen:
            table.refuse(
                first,
                "and the rows after it repeat an earlier run's step times: a copy is not a "
                "measurement",
            )
        seen.append(steps.wall_s)
        series, telemetry, missing = _telemetry(columns, steps, remarks)
        if gaps:
            remarks.append((f"steps without a row: {gaps}", "step"))
        constant = ((ours, columns.get(theirs, ())) for theirs, ours in CONSTANTS.items())
        yield Cell(
            id=f"{STUDY}/{node}-{name}-b{block}",
            study=STUDY,
            workload=node,
            tweakset=name,
            block=block,
            order=0,
            outcome="measured",
            steps=steps,
            metrics=metrics_of(steps),
            facts={
                ours: int(values[0])
                for ours, values in constant
                if len(set(values)) == 1 and values[0] is not None
            },
            telemetry=telemetry,
            telemetry_missing=missing,
            series=series,
        )
    if len(starts) > 1:
        text = (
            f"starts again {len(starts) - 1} times: consecutive runs, each a block; drift is part "
            "of any difference"
        )
        remarks.append((text, "step"))


def _whole(table: CsvTable, name: str) -> list[int]:
    for row, value in enumerate(table.columns[name]):
        if value is None or not value.is_integer() or not 1 <= value <= LARGEST_COUNT:
            table.refuse(row, f"{name} must be a whole number of at least 1")
    return [int(value or 0) for value in table.columns[name]]


def _times(table: CsvTable) -> Iterator[float]:
    for row, seconds in enumerate(table.columns["step_time"]):
        if seconds is None or not SHORTEST_S <= seconds <= LONGEST_S:
            table.refuse(
                row,
                f"step_time is {'missing' if seconds is None else seconds}, but must be above 0 s",
            )
        yield seconds


def _starts(table: CsvTable, numbers: Sequence[int]) -> list[int]:
    starts = {0, *(row for row in table.starts if row < len(numbers))}
    for row in range(1, len(numbers)):
        before, now = numbers[row - 1], numbers[row]
        if now <= before and row not in starts:
            if now != 1:
                table.refuse(
                    row,
                    f"is step {now} after step {before}: two processes wrote to one file, or a "
                    "row was copied",
                )
            starts.add(row)
    return sorted(starts)


def _check_clock(table: CsvTable, first: int, steps: Steps, clock_s: Values) -> None:
    """Refuse steps that do not add up to the clock beside them: other units, or foreign rows."""
    if len(clock_s) < 2 or clock_s[0] is None or clock_s[-1] is None:
        return
    passed_s, added_s = clock_s[-1] - clock_s[0], math.fsum(steps.wall_s[1:])
    if abs(passed_s - added_s) > CLOCK_TOLERANCE * max(passed_s, added_s) + CLOCK_SLACK_S:
        table.refuse(
            first,
            f"and after it step_time adds up to {added_s:.6g} s but time_elapsed to "
            f"{passed_s:.6g} s: check the units",
        )


def _column_of(written: str) -> ColumnSpec | None:
    match = OF_GPU.fullmatch(written)
    if match is None or match[2] not in GPU:
        return HOST.get(written)
    known = GPU[match[2]]
    return known._replace(name=f"gpu{int(match[1] or 0)}_{known.name}")


def _telemetry(
    columns: Mapping[str, Values], steps: Steps, remarks: list[Remark]
) -> tuple[dict[str, Values], dict[str, float], dict[str, str]]:
    """Return columns with our names and units, their summaries, and reasons for missing ones."""
    series: dict[str, Values] = {}
    summary: dict[str, float] = {}
    missing: dict[str, str] = {}
    for written in dict.fromkeys([*columns, *EXPECTED]):
        column = _column_of(written)
        if column is None:
            continue
        known = [value * column.scale for value in columns.get(written, ()) if value is not None]
        if not known or (column.never_zero and not any(known)):
            reason = (
                "0 in every row"
                if known
                else "empty in every row"
                if written in columns
                else "no such column"
            )
            missing[column.name] = f"{written}: {reason}, so not measured"
            remarks.append((f"{reason}, so not measured", written))
            continue
        if written.endswith("_mem_util") and _is_fill(columns, written):
            column = column._replace(name=column.name.replace("mem_util", "mem_used"))
            remarks.append(
                ("shows how full the memory is, not how busy: another program wrote it", written)
            )
        series[column.name] = tuple(
            None if value is None else value * column.scale for value in columns[written]
        )
        whole = {"mean": math.fsum(known) / len(known), "min": min(known), "max": max(known)}
        summary |= {f"{column.name}_{statistic}": whole[statistic] for statistic in column.summary}
        # A counter that fell was reset: what it counted in between is unknown.
        if column.total and known == sorted(known):
            summary[column.total] = known[-1] - known[0]
        if column.name.endswith("_power_w") and len(known) == len(steps.wall_s):
            joules = math.fsum(
                watts * seconds for watts, seconds in zip(known, steps.wall_s, strict=True)
            )
            summary[column.name.replace("_power_w", "_energy_j_total")] = joules
    return series, summary, missing


def _is_fill(columns: Mapping[str, Values], written: str) -> bool:
    """Return whether `gpu_mem_util` is used / total memory in every row, rather than busy time.

    The program that also reports power and clocks reports busy time.
    """
    used, total = (
        columns.get(written.replace("_mem_util", name), ()) for name in ("_mem_used", "_mem_total")
    )
    rows = [
        (a, b, c)
        for a, b, c in zip(columns[written], used, total, strict=False)
        if a is not None and b is not None and c
    ]
    return bool(rows) and all(
        abs(100 * in_use / whole - percent) <= 1 for percent, in_use, whole in rows
    )


def _params(cells: Sequence[Cell]) -> dict[str, object]:
    seen: dict[str, set[object]] = {
        name: {cell.facts.get(name) for cell in cells} for name in CONSTANTS.values()
    }
    seen["batch_size"] = {count for cell in cells if cell.steps for count in cell.steps.samples}
    return {
        name: values.pop()
        for name, values in seen.items()
        if len(values) == 1 and None not in values
    }


def _machine(cells: Sequence[Cell]) -> dict[str, object]:
    """Return the known facts about the machine: GPU memory, if all configurations agree on it.

    The logger queries one GPU, whether or not the machine has two, so their number is unknown.
    """
    totals = {
        tuple(
            values[0]
            for name, values in cell.series.items()
            if name.endswith("_mem_total_bytes") and values[0]
        )
        for cell in cells
    }
    if len(totals) != 1:
        return {}
    gpus: list[dict[str, object]] = [
        {"name": f"unknown, {total / 2**30:.0f} GiB", "memory_total_bytes": int(total)}
        for total in totals.pop()
        if total
    ]
    return {"gpus": [{**gpus[0], "count": UNCOUNTED}] if len(gpus) == 1 else gpus}


def _grouped(remarks: Mapping[Remark, Sequence[str]]) -> Iterator[str]:
    """Write each remark once, with its configurations and columns."""
    columns: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (what, column), names in remarks.items():
        columns.setdefault((what, tuple(names)), []).append(column)
    yield from (
        f"{', '.join(names)}: {', '.join(about)}: {what}."
        for (what, names), about in columns.items()
    )


def _reboots(cells: Sequence[Cell]) -> Iterator[str]:
    """Report that some arms ran soon after a boot and others did not, judging by bytes written."""
    name = "disk_written_since_boot_bytes"
    written = {
        cell.tweakset: cell.series[name][0] or 0.0
        for cell in cells
        if cell.block == 1 and name in cell.series
    }
    fresh = [text for text, so_far in written.items() if LONG_UP * so_far < max(written.values())]
    if fresh:
        others = ", ".join(text for text in written if text not in fresh)
        yield (
            f"{', '.join(fresh)}: ran soon after a boot, but {others} long after: this is part of "
            "any difference."
        )
