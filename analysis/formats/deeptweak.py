"""DeepTweak's directories: a folder per configuration with `benchmark.csv` and `skyhook.yaml`.

A node type's folder is one run, and each configuration in it an arm of one cell. The logger
appends: rows after a second header, or after step 1, are a second block. Some column names mislead:
MB and KB are MiB and KiB, `disk_*` counts since boot while `net_*` is a rate.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, NoReturn

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
Row = dict[str, "float | None"]
Remark = tuple[str, str]  # a remark for the reader, and its column

TABLE, MANIFEST = "benchmark.csv", "skyhook.yaml"
STUDY, BASELINE = "deeptweak", "base"
QUESTION = "Which set of kernel tweaks fine-tunes a language model fastest?"
PRIMARY = Metric("throughput_samples_per_s", "higher")
WRITTEN = "disk_written_since_boot_bytes"
LONG_UP = 10  # ratio of bytes written since boot that minutes of uptime cannot explain
KIB, MIB = 1024.0, 1024.0**2
# Step times are rounded to 1 ms and the clock to 10 ms: over minutes they agree far better.
CLOCK_TOLERANCE, CLOCK_SLACK_S = 0.02, 0.1
LARGEST = 1e24  # more than any byte counter: an extra digit, or two numbers joined


class ColumnSpec(NamedTuple):
    """A column under our name; `summary`: statistics kept per cell; `total`: a counter's increase.

    Unless it may be `zero`, 0 in every row can only mean that it was not measured.
    """

    name: str
    scale: float = 1.0
    summary: tuple[str, ...] = ()
    total: str = ""
    zero: bool = False


HOST = {
    "tokens_per_sec": ColumnSpec("tokens_per_s"),
    "samples_per_sec": ColumnSpec("samples_per_s"),
    "loss": ColumnSpec("loss", zero=True),
    "learning_rate": ColumnSpec("learning_rate", zero=True),
    "grad_norm": ColumnSpec("grad_norm", zero=True),
    "cpu_percent": ColumnSpec("cpu_busy_percent", summary=("mean",), zero=True),
    "mem_used": ColumnSpec("mem_used_bytes", summary=("mean", "max")),
    "mem_available": ColumnSpec("mem_available_bytes", summary=("mean", "min")),
    "swap_used": ColumnSpec("swap_used_bytes", summary=("max",), zero=True),
    "mem_percent": ColumnSpec("mem_used_percent", summary=("mean",)),
    "disk_read_MB": ColumnSpec("disk_read_since_boot_bytes", MIB, total="disk_read_bytes_total"),
    "disk_write_MB": ColumnSpec(WRITTEN, MIB, total="disk_written_bytes_total"),
    "net_sent_KB": ColumnSpec("net_all_tx_bytes_per_s", KIB, ("mean",)),
    "net_recv_KB": ColumnSpec("net_all_rx_bytes_per_s", KIB, ("mean",)),
    "fd_count": ColumnSpec("process_open_files", summary=("max",)),
}
GPU = {
    "util": ColumnSpec("util_percent", summary=("mean",), zero=True),
    "mem_used": ColumnSpec("mem_used_bytes", summary=("max",)),
    "mem_total": ColumnSpec("mem_total_bytes"),
    "power_W": ColumnSpec("power_w", summary=("mean", "max")),
    "temp_C": ColumnSpec("temperature_c", summary=("mean", "max")),
    "clock_MHz": ColumnSpec("sm_clock_mhz", summary=("mean", "min")),
    "mem_clock_MHz": ColumnSpec("mem_clock_mhz"),
    "mem_util": ColumnSpec("mem_util_percent", zero=True),
}
# A column without a number in its name is of the first GPU, the only one DeepTweak queries.
OF_GPU = re.compile(r"gpu(\d*)_(.+)")
EXPECTED = (*HOST, *(f"gpu_{name}" for name in GPU))
CONSTANTS = {"total_params": "parameters", "trainable_params": "trainable_parameters"}
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
        name = place.resolve().name
        own_remarks: list[Remark] = []
        try:
            tweakset = _tweakset(place / MANIFEST, name)
            own = list(_Table(place / TABLE, own_remarks).cells(node, name))
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
    times = repr([cell.steps.wall_s for cell in cells if cell.steps])
    untouched = [name for name, own in tweaksets.items() if not own.requested and not own.scripts]
    return Run(
        origin=str(folder),
        run_id=f"{node}-{hashlib.sha256(times.encode()).hexdigest()[:12]}",
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


def _tweakset(path: Path, name: str) -> SavedTweakSet:
    if not path.is_file():
        return SavedTweakSet(name, description="no manifest, so no tweak")
    from . import skyhook

    manifest = skyhook.read(path)
    return SavedTweakSet(
        name,
        manifest.settings,
        manifest.scripts,
        path=str(path),
        sha256=manifest.sha256,
        warnings=manifest.warnings,
    )


@dataclass(slots=True)
class _Table:
    """A `benchmark.csv`; its rows must be the steps of consecutive processes.

    Raises: Unreadable, with file and line.
    """

    path: Path
    remarks: list[Remark]

    def refuse(self, line: float | None, what: str) -> NoReturn:
        raise Unreadable(
            f"{self.path}:{line:.0f}: {what}; the file is damaged or was edited: copy it from its "
            "source again."
        )

    def cells(self, node: str, name: str) -> Iterator[Cell]:
        seen: list[tuple[float, ...]] = []
        processes = self._processes()
        for block, rows in enumerate(processes, 1):
            columns = {column: tuple(row[column] for row in rows) for column in rows[0]}
            samples = (1,) * len(rows)
            if any(count is not None for count in columns.get("batch_size", ())):  # of all GPUs
                samples = tuple(self._whole(row, "batch_size") for row in rows)
            wall_s = tuple(map(self._step_s, rows))
            steps = Steps(wall_s, samples, None, None, warmup=0)
            if gaps := self._gaps(rows):
                self.remarks.append((f"steps without a row: {gaps}", "step"))
            else:
                self._check_clock(rows, wall_s)
            if wall_s in seen:
                self.refuse(
                    rows[0]["line"],
                    "and the rows after it repeat an earlier run's step times: a copy is not a "
                    "measurement",
                )
            seen.append(wall_s)
            series, telemetry, missing = _telemetry(columns, wall_s, self.remarks)
            constants = {ours: set(columns.get(name, ())) for name, ours in CONSTANTS.items()}
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
                    ours: int(value)
                    for ours, values in constants.items()
                    if len(values) == 1 and (value := values.pop()) is not None
                },
                telemetry=telemetry,
                telemetry_missing=missing,
                series=series,
            )
        if len(processes) > 1:
            text = (
                f"starts again {len(processes) - 1} times: consecutive runs, each a block; drift "
                "is part of any difference"
            )
            self.remarks.append((text, "step"))

    def _processes(self) -> list[list[Row]]:
        lines = self._lines()
        header = lines[0][1]
        known = {name for name in header if name in NO_TELEMETRY or _column_of(name)}
        ignored = [name for name in header if name not in known]
        self.remarks += [("not a column of DeepTweak, so ignored", name) for name in ignored]
        if "batch_size" not in known:
            text = "not in the file, so each step counts as one sample"
            self.remarks.append((text, "batch_size"))
        processes: list[list[Row]] = []
        before: int | None = None
        for line, cells in lines:
            if cells == header:
                before = None
                continue
            if len(cells) != len(header):
                self.refuse(line, f"has {len(cells)} fields, but the header has {len(header)}")
            named = zip(header, cells, strict=True)
            row: Row = {"line": line} | {
                name: self._number(line, name, cell) for name, cell in named if name in known
            }
            step = self._whole(row, "step") if "step" in known else (before or 0) + 1
            if before is None or step <= before:
                if before is not None and step != 1:
                    self.refuse(
                        line,
                        f"is step {step} after step {before}: two processes wrote to one file, or "
                        "a row was copied",
                    )
                processes.append([])
            processes[-1].append(row)
            before = step
        if not processes:
            raise Unreadable(
                f"{self.path}: has a header but no steps: the run wrote nothing, so measure again."
            )
        return processes

    def _lines(self) -> list[tuple[int, list[str]]]:
        text = read_text(self.path, "a benchmark.csv is UTF-8")
        reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
        try:
            lines = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
        except csv.Error as error:
            self.refuse(reader.line_num, f"not CSV ({error})")
        header = lines[0][1] if lines else []
        if "step_time" not in header:
            raise Unreadable(
                f"{self.path}: no column step_time in its first line: not a benchmark.csv of "
                "DeepTweak."
            )
        if len(set(header)) < len(header):
            self.refuse(lines[0][0], "has a repeated column")
        return lines

    def _number(self, line: int, name: str, text: str) -> float | None:
        try:
            value = float(text) if text else math.nan
        except ValueError:
            self.refuse(line, f"{name} is {text[:30]!r}, which is not a number")
        if math.isfinite(value) and abs(value) > LARGEST:
            self.refuse(line, f"{name} is {value:g}, which is not a possible measurement")
        return value if math.isfinite(value) else None

    def _whole(self, row: Row, name: str) -> int:
        value = row[name]
        if value is None or not value.is_integer() or not 1 <= value <= LARGEST_COUNT:
            self.refuse(row["line"], f"{name} must be a whole number of at least 1")
        return int(value)

    def _step_s(self, row: Row) -> float:
        time_s = row["step_time"]
        if time_s is None or not SHORTEST_S <= time_s <= LONGEST_S:
            shown = "missing" if time_s is None else time_s
            self.refuse(row["line"], f"step_time is {shown}, but must be above 0 s")
        return time_s

    def _gaps(self, rows: Sequence[Row]) -> int:
        if "step" not in rows[0]:
            return 0
        return self._whole(rows[-1], "step") - self._whole(rows[0], "step") + 1 - len(rows)

    def _check_clock(self, rows: Sequence[Row], wall_s: Sequence[float]) -> None:
        first, last = rows[0].get("time_elapsed"), rows[-1].get("time_elapsed")
        if len(rows) < 2 or first is None or last is None:
            return
        passed_s, added_s = last - first, math.fsum(wall_s[1:])
        if abs(passed_s - added_s) > CLOCK_TOLERANCE * max(passed_s, added_s) + CLOCK_SLACK_S:
            self.refuse(
                rows[0]["line"],
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
    columns: Mapping[str, Values], wall_s: Sequence[float], remarks: list[Remark]
) -> tuple[dict[str, Values], dict[str, float], dict[str, str]]:
    series: dict[str, Values] = {}
    summary: dict[str, float] = {}
    missing: dict[str, str] = {}
    for written in dict.fromkeys([*columns, *EXPECTED]):
        column = _column_of(written)
        if column is None:
            continue
        name, values = column.name, columns.get(written)
        known = [value * column.scale for value in values or () if value is not None]
        if values is None or not known or not (column.zero or any(known)):
            reason = (
                "no such column"
                if values is None
                else "0 in every row"
                if known
                else "empty in every row"
            )
            missing[name] = f"{written}: {reason}, so not measured"
            remarks.append((f"{reason}, so not measured", written))
            continue
        if name.endswith("mem_util_percent") and _is_fill(columns, written):
            name = name.replace("mem_util", "mem_used")
            remarks.append(
                ("shows how full the memory is, not how busy: another program wrote it", written)
            )
        series[name] = tuple(None if value is None else value * column.scale for value in values)
        whole = {"mean": math.fsum(known) / len(known), "min": min(known), "max": max(known)}
        summary |= {f"{name}_{statistic}": whole[statistic] for statistic in column.summary}
        if column.total and known == sorted(known):  # else it was reset, and the whole is unknown
            summary[column.total] = known[-1] - known[0]
        if name.endswith("_power_w") and len(known) == len(wall_s):
            joules = (watts * time_s for watts, time_s in zip(known, wall_s, strict=True))
            summary[name.replace("_power_w", "_energy_j_total")] = math.fsum(joules)
    return series, summary, missing


def _is_fill(columns: Mapping[str, Values], written: str) -> bool:
    """Return whether `gpu_mem_util` is used / total memory in every row, rather than busy time."""
    names = [written.replace("_mem_util", end) for end in ("_mem_util", "_mem_used", "_mem_total")]
    rows = zip(*(columns.get(name, ()) for name in names), strict=False)
    filled = [
        abs(100 * used / total - percent) <= 1
        for percent, used, total in rows
        if percent is not None and used is not None and total
    ]
    return bool(filled) and all(filled)


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
    totals = {
        tuple(
            int(values[0])
            for name, values in cell.series.items()
            if name.endswith("_mem_total_bytes") and values[0]
        )
        for cell in cells
    }
    gpus: list[dict[str, object]] = [
        {"name": f"unknown, {total / 2**30:.0f} GiB", "memory_total_bytes": total}
        for total in (totals.pop() if len(totals) == 1 else ())
    ]
    if len(gpus) == 1:
        gpus[0]["count"] = UNCOUNTED
    return {"gpus": gpus} if gpus else {}


def _grouped(remarks: Mapping[Remark, Sequence[str]]) -> Iterator[str]:
    columns: dict[tuple[str, str], list[str]] = {}
    for (what, column), names in remarks.items():
        columns.setdefault((what, ", ".join(names)), []).append(column)
    yield from (f"{names}: {', '.join(own)}: {what}." for (what, names), own in columns.items())


def _reboots(cells: Sequence[Cell]) -> Iterator[str]:
    written = {
        cell.tweakset: cell.series[WRITTEN][0] or 0.0
        for cell in cells
        if cell.block == 1 and WRITTEN in cell.series
    }
    fresh = [name for name, so_far in written.items() if LONG_UP * so_far < max(written.values())]
    if fresh:
        others = ", ".join(name for name in written if name not in fresh)
        yield (
            f"{', '.join(fresh)}: ran soon after a boot, but {others} long after: this is part of "
            "any difference."
        )
