"""Traces: measured partitions and clocks as CSV, read from files or made from saved profiles."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from analysis.answer import Answer, of_parts
from analysis.files import must_be_a_name, read_text, write_whole
from analysis.load import load_each, read_each
from analysis.plain import one_line
from analysis.terms import Cell, Refused, Run, Unreadable

# Column → field. The `sm_util` of other tools is NVML's utilisation: percent of time, not
# occupancy.
NUMBERS = {
    "target_freq": "target_mhz",
    "mem_freq": "mem_mhz",
    "sm_freq": "sm_mhz",
    "sm_util": "sm_util_percent",
    "mem_util": "mem_util_percent",
    "throughput_total": "throughput_images_per_s",
    "power_avg": "power_mean_w",
    "power_max": "power_max_w",
}
COLUMNS = ("model_name", "p_list", "b_list", *NUMBERS)
NEEDED = COLUMNS[:3]
OURS = ("outcome", "reason", "backend", "power_source", "throttle", "cpu_s_per_s")
OUTCOMES = ("measured", "oom", "failed", "refused")
MISSING = frozenset({"", "nan", "none", "null", "n/a", "na"})
ZEROS = "stored as zeros: it failed and was not measured"
REQUESTED = ("target_freq", "mem_freq")  # also known for a failed row
STATIC = "static"  # the pseudo-network of idle rows
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
HINT = 'leave missing values empty, and write lists as "[25, 25]"'


class ProfilerRow(Struct):
    """A row by its columns; `throttle` is a duty cycle."""

    model_name: Annotated[str, Meta(min_length=1)]
    p_list: list[float]
    b_list: list[Annotated[float, Meta(ge=1, multiple_of=1)]]
    target_freq: float | None = None
    mem_freq: float | None = None
    sm_freq: float | None = None
    sm_util: float | None = None
    mem_util: float | None = None
    throughput_total: float | None = None
    power_avg: float | None = None
    power_max: float | None = None
    outcome: Literal["measured", "oom", "failed", "refused"] | None = None
    reason: str | float | None = None
    throttle: Annotated[float, Meta(gt=0, le=1)] | None = None
    cpu_s_per_s: Annotated[float, Meta(ge=0)] | None = None


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One configuration; every missing value is None, and all are unless `outcome` is "measured".

    `shares` in percent of the SMs, `batches` in images; both are empty for idle rows (network
    `static`). `target_mhz` is the requested clock, `sm_mhz` the actual one; `mem_mhz` is rounded,
    since drivers sometimes report one MHz less. `power_max_w` is the largest single reading.
    `extra` has all other columns by name, numbers as such; `line` is the line in the file.
    """

    network: str
    shares: tuple[float, ...]
    batches: tuple[int, ...]
    target_mhz: float | None = None
    mem_mhz: float | None = None
    sm_mhz: float | None = None
    sm_util_percent: float | None = None
    mem_util_percent: float | None = None
    throughput_images_per_s: float | None = None
    power_mean_w: float | None = None
    power_max_w: float | None = None
    outcome: str = "measured"
    reason: str = ""
    extra: Mapping[str, float | str] = field(default_factory=dict)
    line: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        if self.mem_mhz is not None:
            object.__setattr__(self, "mem_mhz", float(round(self.mem_mhz)))

    @property
    def watts(self) -> float | None:
        return self.power_mean_w if self.power_max_w is None else self.power_max_w

    @property
    def power(self) -> float | None:
        """Return watts; without a sensor, the CPU's activity in CPU seconds per second."""
        activity = self.extra.get("cpu_s_per_s")
        return activity if self.watts is None and isinstance(activity, float) else self.watts

    @property
    def clock(self) -> float | None:
        """Return the throttle, 0 to 1, or else the SM clock in MHz: actual, or requested."""
        throttle = self.extra.get("throttle")
        return throttle if isinstance(throttle, float) else self.sm_mhz or self.target_mhz


def read(path: Path) -> list[PartitionRow]:
    return parse(read_text(path, "a file of traces is UTF-8 CSV"), str(path))


def parse(text: str, where: str) -> list[PartitionRow]:
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        names = [name.strip() for name in next(lines, [])]
        if len(set(names)) < len(names) or not {*NEEDED} <= {*names}:
            raise Unreadable(
                f"{where}: its columns are {one_line(', '.join(names)) or 'none'}. A file of "
                f"traces begins with {','.join(COLUMNS)}; the first three are needed, each once."
            )
        rows = []
        for cells in lines:
            at = f"{where}: line {lines.line_num}"
            if len(cells) != len(names) and any(cells):
                raise Unreadable(f"{at}: has {len(cells)} cells for {len(names)} columns; {HINT}.")
            if any(cell.strip() for cell in cells):
                rows.append(_row(dict(zip(names, cells, strict=True)), at, lines.line_num))
    except csv.Error as error:
        raise Unreadable(
            f"{where}: line {lines.line_num}: {error}; a file of traces is CSV."
        ) from None
    return rows


def as_csv(rows: Iterable[PartitionRow]) -> str:
    rows = list(rows)
    used = {name for row in rows for name in row.extra}
    if any(row.outcome != "measured" or row.reason for row in rows):
        used |= {"outcome", "reason"}
    more = [name for name in OURS if name in used] + sorted(used - set(OURS))
    said = io.StringIO(newline="")
    lines = csv.writer(said, lineterminator="\n")
    lines.writerow([*COLUMNS, *more])
    for row in rows:
        own = {"outcome": row.outcome, "reason": row.reason, **row.extra}
        values = [getattr(row, name) for name in NUMBERS.values()]
        values += [own.get(name) for name in more]
        setting = row.network, _list(row.shares), _list(row.batches)
        lines.writerow([*setting, *map(_text, values)])
    return said.getvalue()


def _row(cells: Mapping[str, Any], at: str, line: int = 0) -> PartitionRow:
    values = {name: _value(name, cell) for name, cell in cells.items()}
    try:
        row = msgspec.convert(values, ProfilerRow)
    except msgspec.ValidationError as error:
        raise Unreadable(f"{at}: {one_line(error)}; {HINT}.") from None
    if len(row.p_list) != len(row.b_list) or bool(row.p_list) != (row.model_name != STATIC):
        raise Unreadable(
            f"{at}: {len(row.p_list)} shares and {len(row.b_list)} batches; every process needs "
            f"one of each, and only rows of {STATIC!r} have no process."
        )
    outcome, reason = row.outcome, str(row.reason or "")
    measured = [getattr(row, name) for name in NUMBERS if name not in REQUESTED]
    told = [value for value in measured if value is not None]
    if outcome is None and len(told) > 1 and not any(told):
        outcome, reason = "failed", ZEROS  # zero images at no watts
    is_measured = outcome in {None, "measured"}
    numbers = {
        own: getattr(row, name) for name, own in NUMBERS.items() if is_measured or name in REQUESTED
    }
    others = {*COLUMNS, "outcome", "reason"}
    return PartitionRow(
        row.model_name,
        tuple(row.p_list),
        tuple(map(int, row.b_list)),
        **numbers,
        outcome=outcome or "measured",
        reason=reason,
        extra={
            name: value
            for name, value in values.items()
            if name not in others and value is not None and value != ""
        },
        line=line,
    )


def _value(name: str, cell: object) -> Any:
    if not isinstance(cell, str):
        return float(cell) if isinstance(cell, int) and not isinstance(cell, bool) else cell
    text = cell.strip()
    if name in {"p_list", "b_list"}:
        inner = text.removeprefix("[").removesuffix("]").strip()
        return [_value("", part) for part in inner.split(",")] if inner else []
    if name == "model_name" or not NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        is_number = name in {*NUMBERS, "throttle", "cpu_s_per_s"}
        return None if not text or (is_number and text.lower() in MISSING) else text
    return float(text)


def _list(values: Iterable[float]) -> str:
    return f"[{', '.join(map(_text, values))}]"


def _text(value: float | str | None) -> str:
    if value is None:
        return ""
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    return str(int(value)) if is_whole else str(value)


POINT = "point"
# The form of a cell's reason: `Point oom: 2 x 256 images do not fit.`
FAILED = re.compile(rf"Point ({'|'.join(OUTCOMES[1:])}): (.*)", re.DOTALL)
COUNTED = re.compile(r"(?:(\d{1,3})x)?(\d+(?:\.\d+)?)")


def rows_of(run: Run, refused: list[str]) -> list[PartitionRow]:
    """Convert a run to traces in run order; add skipped and unreadable points to `refused`.

    Raises: Refused, for a run that is not a profile.
    """
    workloads = {cell.workload.partition(":")[0] for cell in run.cells if POINT in cell.report}
    if not workloads:
        raise Refused(
            f"{run.origin}: no cell reports a point; `pytest benchmarks/bench_power_profile.py "
            "--benchmark-save=NAME` makes such a run."
        )
    result = []
    skipped = Counter[str]()
    for cell in run.cells:
        if cell.workload.partition(":")[0] not in workloads:
            continue
        if cell.outcome == "skipped":
            skipped[(cell.reason or "no reason was recorded").rstrip(".")] += 1
            continue
        place = f"{run.origin}: cell {cell.id}"
        told = cell.report.get(POINT, ()) if cell.outcome == "measured" else (_failed(cell, run),)
        row = {name: told[0].get(name) for name in (*COLUMNS, *OURS)} if len(told) == 1 else {}
        try:
            result.append(_row(row, f"{place}, report.{POINT}"))
        except Unreadable as error:
            refused.append(str(error))
    refused += [
        f"{run.origin}: {count} points were skipped and are omitted: {why}."
        for why, count in skipped.items()
    ]
    return result


def _failed(cell: Cell, run: Run) -> dict[str, object]:
    params = run.workloads[cell.workload].params
    reason = cell.reason or "no reason was recorded"
    said = FAILED.search(reason)
    shares, batches = (
        [] if params.get("model") == STATIC else _listed(str(params.get(name) or ""))
        for name in ("shares", "batches")
    )
    return {
        "model_name": params.get("model") or "",
        "p_list": shares,
        "b_list": batches * len(shares) if len(batches) == 1 else batches,
        "target_freq": str(params.get("sm_mhz") or ""),
        "mem_freq": str(params.get("mem_mhz") or ""),
        "outcome": said[1] if said else "failed",
        "reason": " ".join((said[2] if said else reason).split()).rstrip("."),
        "backend": params.get("backend"),
        "throttle": str(params.get("throttle") or ""),
    }


def _listed(text: str) -> list[float]:
    """Parse a name's values per process: `50+2x25` is 50 and twice 25; [] for what is none."""
    parts = [COUNTED.fullmatch(one) for one in text.split("+")]
    if not all(parts):
        return []
    return [float(part[2]) for part in parts if part for _ in range(int(part[1] or 1))]


def saved_profiles(runs: Sequence[str], folder: Path) -> Answer:
    """Write the points of saved profiles to a folder, a file per network: `cpu/mobilenet_v2.csv`.

    A file of the same name is replaced. Raises: Refused, OSError.
    """
    refused: list[str] = []
    files: dict[Path, list[PartitionRow]] = {}
    for _, rows in read_each(load_each(runs, refused), lambda run: rows_of(run, refused), refused):
        for row in rows:
            backend = must_be_a_name(
                str(row.extra.get("backend", "unknown")), "traces of a back-end"
            )
            name = must_be_a_name(row.network, "traces of a network")
            files.setdefault(folder / backend / f"{name}.csv", []).append(row)
    if not files:
        raise Refused(refused[0] if refused else f"{', '.join(runs)}: no run is a profile.")
    records, lines = [], []
    for path, rows in files.items():
        write_whole(path, as_csv(rows).encode())
        outcomes = Counter(row.outcome for row in rows)
        records.append({"path": str(path), "rows": len(rows), "outcomes": outcomes})
        counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
        lines.append(f"{path}: {len(rows)} rows: {counts}")
    return of_parts({"files": records, "refused": refused}, lines, refused)
