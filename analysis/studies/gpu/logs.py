"""A grid's files: pairs of logs, `<blocks>.<threads>.dcgmi.txt` and `<blocks>.<threads>.nvsm.txt`, and summary tables as CSV.

The kernel ran on one GPU of several. Which one is found in the logs themselves, over all cells: the one that worked. nvidia-smi may number
them in another order than dcgmi, so each log's is found by itself. A table has one statistic (mean.csv, median.csv, max.csv), a row a cell.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.files import read_whole
from analysis.logs.nvidia_smi import read_nvidia_smi
from analysis.logs.readers import read_dcgmi
from analysis.plain import one_line
from analysis.terms import Refused, Unreadable
from control.names import first_few

from .grid import (
    DRAM,
    GRACT,
    MAX,
    MEAN,
    MEDIAN,
    MEMORY_MIB,
    MEMORY_UTILIZATION,
    SMACT,
    SMOCC,
    TENSOR,
    UTILIZATION,
    CellTable,
    GridCell,
    KernelGrid,
    chip_of,
    log_of,
    named,
)

if TYPE_CHECKING:
    from .grid import GpuLog, Samples, Size

NAME = re.compile(r"(\d{1,9})\.(\d{1,9})\.(dcgmi|nvsm)\.txt", re.ASCII)
DCGMI, NVSM = "dcgmi", "nvsm"
PROGRAM = {DCGMI: "dcgmi dmon", NVSM: "nvidia-smi"}
FIELDS = {
    "GPUTL": UTILIZATION,
    "MCUTL": MEMORY_UTILIZATION,
    "GRACT": GRACT,
    "SMACT": SMACT,
    "SMOCC": SMOCC,
    "TENSO": TENSOR,
    "DRAMA": DRAM,
}
NVSM_COLUMNS = {"utilization.gpu": (UTILIZATION, "%"), "utilization.memory": (MEMORY_UTILIZATION, "%"), "memory.used": (MEMORY_MIB, "MiB")}
MOST_THREADS = 1024  # a block of CUDA's
ALSO_BUSY = 0.05
SHOWN = 6  # cells named in one sentence


@dataclass
class _CellLogs:
    """The logs of one cell as they were read: program → GPU → columns; `names` is what nvidia-smi calls each GPU."""

    size: Size
    logs: dict[str, dict[str, dict[str, Samples]]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


def folders_with_pairs(path: Path) -> list[Path]:
    """Find the folders at or under a path that hold such logs; hidden ones are passed over."""
    result = {one.parent for one in path.rglob("*.txt") if NAME.fullmatch(one.name)}
    return sorted(one for one in result if not any(part.startswith(".") for part in one.relative_to(path).parts))


def grid_of_logs(
    folder: Path, refused: list[str], *, gpu: str | None = None, sms: int | None = None, read: tuple[CellTable, ...] = ()
) -> KernelGrid:
    """Read all pairs of a folder. What cannot be read is added to `refused`, and the rest is used all the same.

    Raises: Refused, where no cell is left.
    """
    ignored: list[str] = []
    cells, hows = _read(folder, refused, ignored)
    chosen, notes = {}, list(hows)
    for program in (NVSM, DCGMI):
        busy = {size: _busy(cell.logs[program]) for size, cell in cells.items() if program in cell.logs}
        if busy:
            every = sorted({name for cell in cells.values() for name in cell.logs.get(program, {})}, key=lambda name: (len(name), name))
            chosen[program], text = _choose(program, busy, every, gpu)
            notes.append(text)
    places = {program: re.sub(r"\D", "", one) for program, one in chosen.items()}
    if len(set(places.values())) > 1:
        notes.append(f"the two programs number their GPUs differently: {' is '.join(_gpu_name(*entry) for entry in chosen.items())}")
    made = [cell for size, one in sorted(cells.items()) if (cell := _cell(folder, one, chosen, refused)) is not None]
    if not made:
        raise Refused(f"{folder}: no pair of logs in it can be used; {refused[-1] if refused else 'none was found'}")
    also = [cell for cell in made if any((log.others or 0) > ALSO_BUSY for log in cell.logs)]
    if also:
        notes.append(f"another GPU was at work as well in {first_few([named(cell.size) for cell in also], SHOWN)}")
    alone = {program: [cell for cell in made if PROGRAM[program] not in {log.source for log in cell.logs}] for program in (DCGMI, NVSM)}
    notes += [
        f"no log of {PROGRAM[program]} of {first_few([named(cell.size) for cell in missing], SHOWN)}"
        for program, missing in alone.items()
        if missing
    ]
    devices = Counter(cell.device for cell in made if cell.device)
    if len(devices) > 1:
        notes.append(f"the GPU is not the same in all cells: {', '.join(one_line(name, 40) for name in devices)}")
    device = devices.most_common(1)[0][0] if len(devices) == 1 else None
    return KernelGrid(str(folder), tuple(made), chip_of(device, sms), read, tuple(ignored), tuple(notes))


def _read(folder: Path, refused: list[str], ignored: list[str]) -> tuple[dict[Size, _CellLogs], list[str]]:
    cells: dict[Size, _CellLogs] = {}
    hows: Counter[str] = Counter()
    for path in sorted(folder.iterdir()):
        match = NAME.fullmatch(path.name)
        if match is None:
            continue
        size = int(match[1]), int(match[2])
        if not size[0] or not 0 < size[1] <= MOST_THREADS:
            refused.append(f"{path}: no kernel has {named(size)}: blocks are from 1, threads from 1 to {MOST_THREADS}; mend its name.")
            continue
        read = cells.setdefault(size, _CellLogs(size))
        if match[3] in read.logs:  # 1.1 and 01.1
            refused.append(f"{path}: is a second log of {named(size)}; leave one of them.")
            continue
        try:
            if match[3] == DCGMI:
                read.logs[DCGMI] = _dcgmi(path, ignored)
            else:
                twin = path.with_name(path.name.replace(f".{NVSM}.", f".{DCGMI}."))
                read.logs[NVSM], read.names, how = _nvsm(path, ignored, len(read.logs.get(DCGMI, {})) if twin.is_file() else 0)
                hows[how] += 1
        except Unreadable as error:
            refused.append(one_line(error))
    return {size: cell for size, cell in cells.items() if cell.logs}, [
        f"rows of nvidia-smi have {how} ({n} logs)" for how, n in hows.items()
    ]


def _dcgmi(path: Path, ignored: list[str]) -> dict[str, dict[str, Samples]]:
    log = read_dcgmi(path)
    ignored += [f"{path.name}: {line}" for line in log.ignored]
    result = {gpu: {FIELDS[name]: values for name, values in columns.items() if name in FIELDS} for gpu, columns in log.entities.items()}
    if not any(result.values()):
        raise Unreadable(f"{path}: has none of the fields {', '.join(FIELDS)}; record it with `dcgmi dmon -e 203,1001,1002,1003`.")
    return result


def _nvsm(path: Path, ignored: list[str], gpus: int) -> tuple[dict[str, dict[str, Samples]], dict[str, str], str]:
    """Read a log of nvidia-smi; where nothing in it tells how many GPUs there are, as many as dcgmi saw (`gpus`) are taken."""
    log = read_nvidia_smi(path)
    if "?" in log.gpus and gpus:
        log = read_nvidia_smi(path, gpus=gpus)
    if "?" in log.gpus:
        raise Unreadable(f"{path}: {log.how}.")
    ignored += [f"{path.name}: {line}" for line in log.ignored]
    result = {
        key: {
            to: gpu.columns[name] for name, (to, unit) in NVSM_COLUMNS.items() if name in gpu.columns and log.units.get(name, unit) == unit
        }
        for key, gpu in log.gpus.items()
    }
    if not any(result.values()):
        raise Unreadable(
            f"{path}: has none of the columns {', '.join(NVSM_COLUMNS)}; record it with `nvidia-smi --query-gpu=utilization.gpu,…`."
        )
    names = {key: gpu.texts["name"][0] for key, gpu in log.gpus.items() if gpu.texts.get("name")}
    return result, names, log.how


def _busy(gpus: Mapping[str, Mapping[str, Samples]]) -> dict[str, float]:
    """Return how busy each GPU was: the mean of the share of time in which anything ran on it."""
    busy = {}
    for gpu, columns in gpus.items():
        for name, scale in ((GRACT, 1.0), (UTILIZATION, 100.0)):
            if name in columns and not np.isnan(columns[name]).all():
                busy[gpu] = float(np.nanmean(columns[name])) / scale
                break
    return busy


def _choose(program: str, busy: Mapping[Size, Mapping[str, float]], every: Sequence[str], gpu: str | None) -> tuple[str, str]:
    """Choose the GPU that the kernel ran on: the busiest of most cells, or the one that was asked for.

    Raises: Refused, for one that no log has.
    """
    if gpu is not None:
        match = next((text for text in every if gpu in (text, text.removeprefix("GPU "))), None)
        if match is None:
            raise Refused(f"--gpu={gpu}: the logs of {PROGRAM[program]} have no such GPU; they have {', '.join(every) or 'none'}.")
        return match, f"{_gpu_name(program, match)} of {len(every)}, as --gpu says"
    most = Counter(max(cell, key=lambda text: cell[text]) for cell in busy.values() if cell and max(cell.values()) > 0)
    if not most:
        first = every[0] if every else "GPU 0"
        return first, f"{_gpu_name(program, first)} was taken: no GPU worked in any log of {PROGRAM[program]}"
    best, times = most.most_common(1)[0]
    how = "" if len(every) == 1 else f" of {len(every)}: the busiest in {times} of {len(busy)} cells"
    return best, _gpu_name(program, best) + how


def _gpu_name(program: str, gpu: str) -> str:
    return f"{gpu if gpu.startswith('GPU') else f'GPU {gpu}'} in {PROGRAM[program]}"


def _cell(folder: Path, read: _CellLogs, chosen: Mapping[str, str], refused: list[str]) -> GridCell | None:
    logs: list[GpuLog] = []
    place = f"{read.size[0]}.{read.size[1]}"
    for program in (NVSM, DCGMI):  # utilisation is nvidia-smi's where both have it
        gpus = read.logs.get(program)
        if gpus is None:
            continue
        gpu = chosen[program]
        if gpu not in gpus or not gpus[gpu]:
            refused.append(f"{folder / place}.{program}.txt: has no {gpu}, on which the others ran; it has {', '.join(gpus)}.")
            continue
        others = [busy for other, busy in _busy(gpus).items() if other != gpu]
        logs.append(log_of(PROGRAM[program], gpu, gpus[gpu], max(others, default=None)))
    return GridCell(place, *read.size, tuple(logs), read.names.get(chosen.get(NVSM, ""))) if logs else None


# Summary tables.

BLOCKS, THREADS = "#Thread Blocks", "#Threads"
COLUMNS = {
    "GPU Utilization": UTILIZATION,
    "GPU Memory Utilization": MEMORY_UTILIZATION,
    "GPU Memory usage (MB)": MEMORY_MIB,  # MiB, as nvidia-smi says
    "GRACT": GRACT,
    "SMACT": SMACT,
    "SMOCC": SMOCC,
}
TABLE_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Agreement:
    """How a table that was read compares with what the logs come to: `differing` are cell, metric, what it has and what they come to."""

    table: str
    cells: int
    of: int
    compared: int
    largest: float
    differing: tuple[tuple[Size, str, float, float], ...]


def is_table(path: Path) -> bool:
    """Whether a file is such a table, by its header."""
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            head = next(csv.reader([lines.readline(4096)]), [])
    except (OSError, csv.Error):
        return False
    return {BLOCKS, THREADS} <= {name.strip() for name in head}


def read_table(path: Path) -> CellTable:
    """Read a table; which statistic it holds is its name.

    Raises: Unreadable, with the line.
    """
    statistic = next((text for text in (MEAN, MEDIAN, MAX) if text in path.stem.lower()), None)
    if statistic is None:
        raise Unreadable(f"{path}: which statistic it holds is not in its name; call it mean.csv, median.csv or max.csv.")
    try:
        lines = list(csv.reader(StringIO(read_whole(path).decode("utf-8-sig"))))
    except (UnicodeDecodeError, csv.Error) as error:
        raise Unreadable(f"{path}: no table of comma-separated text: {one_line(error, 80)}.") from None
    heads = [name.strip() for name in lines[0]] if lines else []
    if not {BLOCKS, THREADS} <= set(heads):
        raise Unreadable(f"{path}: has no columns {BLOCKS!r} and {THREADS!r}: no summary of a grid.")
    rows: dict[Size, dict[str, float]] = {}
    for number, cells in enumerate(lines[1:], 2):
        if not any(cell.strip() for cell in cells):
            continue
        try:
            row = dict(zip(heads, cells, strict=True))
            size = _whole(row[BLOCKS]), _whole(row[THREADS])
            values = {metric: value for name, metric in COLUMNS.items() if (value := _figure(row.get(name, ""))) is not None}
        except ValueError as error:
            raise Unreadable(f"{path}: line {number}: {one_line(error, 80)}; it is damaged, take it from its source again.") from None
        if size in rows:
            raise Unreadable(f"{path}: line {number}: {size[0]},{size[1]} is there twice; it was edited, take it from its source again.")
        rows[size] = values
    if not rows:
        raise Unreadable(f"{path}: holds no cell.")
    return CellTable(statistic, f"{path.name}, {len(rows)} cells", rows)


def _whole(text: str) -> int:
    value = float(text)
    if not value.is_integer() or not 0 < value < 1e9:
        raise ValueError(f"{text!r} is no number of blocks or threads")
    return int(value)


def _figure(text: str) -> float | None:
    """Read a figure; an empty cell and NaN are missing."""
    value = float(text) if text.strip() else math.nan
    if math.isinf(value):
        raise ValueError(f"{text!r} is no measurement")
    return None if math.isnan(value) else value


def table_text(table: CellTable) -> str:
    """Write a table with the same columns, its figures to the last digit; what is missing stays empty."""
    out = StringIO()
    sheet = csv.writer(out, lineterminator="\n")
    sheet.writerow(["", BLOCKS, THREADS, *COLUMNS])
    for at, (size, row) in enumerate(sorted(table.rows.items())):
        sheet.writerow([at, *size, *(row.get(metric, "") for metric in COLUMNS.values())])
    return out.getvalue()


def agreement(published: CellTable, ours: CellTable) -> Agreement:
    """Compare a table that was read with the one computed, in the cells and metrics that both have."""
    differing: list[tuple[Size, str, float, float]] = []
    largest, compared, cells = 0.0, 0, 0
    for size, row in sorted(published.rows.items()):
        mine = ours.rows.get(size, {})
        both = [metric for metric in row if metric in mine]
        cells += bool(both)
        for metric in both:
            off = abs(row[metric] - mine[metric])
            compared, largest = compared + 1, max(largest, off)
            if off > TABLE_TOLERANCE * max(1.0, abs(row[metric])):
                differing.append((size, metric, row[metric], mine[metric]))
    return Agreement(published.label, cells, len(published.rows), compared, largest, tuple(differing))


def agreements(published: Sequence[CellTable], ours: Iterable[CellTable]) -> list[Agreement]:
    """Compare each table that was read with ours of its statistic, where they have a cell in common."""
    by_statistic = {table.statistic: table for table in ours}
    result = [agreement(table, by_statistic[table.statistic]) for table in published if table.statistic in by_statistic]
    return [one for one in result if one.compared]
