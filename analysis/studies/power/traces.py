"""Traces: measured partitions and clocks as CSV, read from other tools or made from saved profiles.

A failed configuration is a row without numbers and with an outcome. Tools that store it as zeros
are supported: zero images at zero watts and zero megahertz were never measured. A skipped point of
a profile was never tried: it is not a row, but counted.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

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
REQUESTED = frozenset({"target_mhz", "mem_mhz"})  # also known for a failed row
STATIC = "static"  # the pseudo-network of idle rows
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One configuration; every missing value is None, and all are unless `outcome` is "measured".

    `shares` in percent of the SMs, `batches` in images; both are empty for idle rows (network
    `static`). `target_mhz` is the requested clock, `sm_mhz` the actual one; `mem_mhz` is rounded,
    since drivers sometimes report one MHz less. `power_max_w` is the largest single reading.
    `extra` has all other columns by name, numbers as such, including ours: `backend`,
    `power_source`, `throttle` (duty cycle, 0 to 1) and `cpu_s_per_s` of a CPU. `line` is the line
    in the file.
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
        """Round the memory clock: rows and models of one clock must have the same number."""
        if self.mem_mhz is not None:
            object.__setattr__(self, "mem_mhz", float(round(self.mem_mhz)))

    @property
    def watts(self) -> float | None:
        """Return the largest reading, which a cap must cover, or else the mean."""
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
    """Read a file of traces.

    Raises: Unreadable, for an invalid file, with the line.
    """
    return parse(read_text(path, "a file of traces is UTF-8 CSV"), str(path))


def parse(text: str, where: str) -> list[PartitionRow]:
    """Read traces from CSV; messages begin with `where`. Raises: Unreadable."""
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        names = [name.strip() for name in next(lines, [])]
        _must_have_columns(names, where)
        rows = []
        for cells in lines:
            if any(cell.strip() for cell in cells):
                at = f"{where}: line {lines.line_num}"
                rows.append(_row_of_cells(_named(cells, names, at), at, lines.line_num))
    except csv.Error as error:
        raise Unreadable(
            f"{where}: line {lines.line_num}: {error}; a file of traces is CSV."
        ) from None
    return rows


def as_csv(rows: Iterable[PartitionRow]) -> str:
    """Write traces as the text of a CSV file."""
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
        numbers = [getattr(row, name) for name in NUMBERS.values()]
        lines.writerow(
            [
                row.network,
                _list(row.shares),
                _list(row.batches),
                *map(_text, numbers),
                *(_text(own.get(name)) for name in more),
            ]
        )
    return said.getvalue()


def _must_have_columns(names: Sequence[str], where: str) -> None:
    missing = [name for name in NEEDED if name not in names]
    if missing:
        result = one_line(", ".join(names)) or "nothing"
        raise Unreadable(
            f"{where}: no column {', '.join(missing)}; found: {result}. A file of traces begins "
            f"with {','.join(COLUMNS)}."
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Unreadable(
            f"{where}: has the column {one_line(twice[0])!r} {names.count(twice[0])} times; keep "
            "one."
        )


def _named(cells: Sequence[str], names: Sequence[str], at: str) -> dict[str, str]:
    if len(cells) != len(names):
        raise Unreadable(
            f'{at}: has {len(cells)} cells for {len(names)} columns; quote lists: "[25, 25]".'
        )
    return dict(zip(names, cells, strict=True))


def _row_of_cells(cells: Mapping[str, str], at: str, line: int) -> PartitionRow:
    network = cells["model_name"].strip()
    shares = _numbers(cells["p_list"], f"{at}: p_list")
    batches = _numbers(cells["b_list"], f"{at}: b_list")
    _must_match(network, shares, batches, at)
    values = {own: _value(cells.get(name, ""), f"{at}: {name}") for name, own in NUMBERS.items()}
    outcome, reason = cells.get("outcome", "").strip(), cells.get("reason", "").strip()
    if outcome and outcome not in OUTCOMES:
        raise Unreadable(
            f"{at}: outcome {one_line(outcome)!r} must be one of {', '.join(OUTCOMES)}."
        )
    # Zero images at no watts: requests in the clock columns do not count.
    told = [value for name, value in values.items() if name not in REQUESTED and value is not None]
    if not outcome and len(told) > 1 and not any(told):
        outcome, reason = "failed", ZEROS
    outcome = outcome or "measured"
    if outcome != "measured":
        values = {name: value if name in REQUESTED else None for name, value in values.items()}
    extra = {
        name: _plain(name, cell)
        for name, cell in cells.items()
        if name not in {*COLUMNS, "outcome", "reason"}
    }
    extra = {name: value for name, value in extra.items() if value != ""}
    throttle, activity = extra.get("throttle", 1.0), extra.get("cpu_s_per_s", 0.0)
    if not (isinstance(throttle, float) and 0.0 < throttle <= 1.0):
        raise Unreadable(
            f"{at}: throttle is {one_line(throttle, 60)!r}; it must be a duty cycle, above 0 and "
            "at most 1."
        )
    if not (isinstance(activity, float) and activity >= 0.0):
        raise Unreadable(
            f"{at}: cpu_s_per_s is {one_line(activity, 60)!r}; it must be a number of at least 0."
        )
    whole = tuple(int(batch) for batch in batches)
    return PartitionRow(
        network,
        tuple(shares),
        whole,
        **values,
        outcome=outcome,
        reason=reason,
        extra=extra,
        line=line,
    )


def _must_match(network: str, shares: Sequence[float], batches: Sequence[float], at: str) -> None:
    if not network:
        raise Unreadable(f"{at}: model_name is empty.")
    if len(shares) != len(batches):
        raise Unreadable(
            f"{at}: {len(shares)} shares and {len(batches)} batches; every process needs one of "
            "each."
        )
    if not shares and network != STATIC:
        raise Unreadable(f"{at}: no process; only rows of {STATIC!r} have none.")
    wrong = [batch for batch in batches if batch != int(batch) or batch < 1]
    if wrong:
        raise Unreadable(f"{at}: a batch of {wrong[0]:g}; it must be a number of images.")


def _number(text: str) -> float | None:
    return float(text) if NUMBER.fullmatch(text) and math.isfinite(float(text)) else None


def _numbers(cell: str, at: str) -> list[float]:
    inner = cell.strip()
    if inner[:1] == "[" and inner[-1:] == "]":
        inner = inner[1:-1]
    numbers = [_number(part.strip()) for part in inner.split(",")] if inner.strip() else []
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        raise Unreadable(
            f"{at} is {one_line(cell, 60)!r}, but must be a list of numbers, such as [25, 25]."
        )
    return known


def _value(cell: str, at: str) -> float | None:
    text = cell.strip()
    number = _number(text)
    if number is None and text.lower() not in MISSING:
        raise Unreadable(
            f"{at} is {one_line(text, 60)!r}, not a number; leave missing values empty."
        )
    return number


def _plain(name: str, cell: str) -> float | str:
    """Return another column's cell: a number, or a text; "" is missing."""
    text = cell.strip()
    is_missing = name in {"throttle", "cpu_s_per_s"} and text.lower() in MISSING
    number = _number(text)
    return "" if is_missing else text if number is None else number


def _list(values: Iterable[float]) -> str:
    return f"[{', '.join(map(_text, values))}]"


def _text(value: float | str | None) -> str:
    if value is None:
        return ""
    return (
        str(int(value))
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e15
        else str(value)
    )


POINT = "point"
# The form of a cell's reason: `Point oom: 2 x 256 images do not fit.`
FAILED = re.compile(
    rf"Point ({'|'.join(text for text in OUTCOMES if text != 'measured')}): (.*)", re.DOTALL
)
COUNTED = re.compile(r"(?:(\d{1,3})x)?(\d+(?:\.\d+)?)")


def is_profile(run: Run) -> bool:
    """Return whether any cell of a run reported a point of a profile."""
    return any(POINT in cell.report for cell in run.cells)


def rows_of(run: Run, refused: list[str]) -> list[PartitionRow]:
    """Convert a run to traces in run order; add skipped and unreadable points to `refused`.

    Raises: Refused, for a run that is not a profile.
    """
    if not is_profile(run):
        raise Refused(
            f"{run.origin}: no cell reports a point; `pytest benchmarks/bench_power_profile.py "
            "--benchmark-save=NAME` makes such a run."
        )
    result = []
    skipped: dict[str, int] = {}
    workloads = {cell.workload.partition(":")[0] for cell in run.cells if POINT in cell.report}
    for cell in run.cells:
        if cell.workload.partition(":")[0] not in workloads:
            continue
        if cell.outcome == "skipped":
            reason = (cell.reason or "no reason was recorded").rstrip(".")
            skipped[reason] = skipped.get(reason, 0) + 1
            continue
        try:
            result.append(
                _measured_point(cell, run.origin)
                if cell.outcome == "measured"
                else _failed_point(cell, run)
            )
        except Unreadable as error:
            refused.append(str(error))
    refused += [
        f"{run.origin}: {count} points were skipped and are omitted: {why}."
        for why, count in skipped.items()
    ]
    return result


def _measured_point(cell: Cell, origin: str) -> PartitionRow:
    told = cell.report.get(POINT, ())
    place = f"{origin}: cell {cell.id}, report.{POINT}"
    if len(told) != 1:
        raise Unreadable(f"{place}: has {len(told)} rows but needs exactly one; measure it again.")
    return _row_of_report(told[0], place)


def _failed_point(cell: Cell, run: Run) -> PartitionRow:
    params = {
        name: str(value)
        for name, value in run.workloads[cell.workload].params.items()
        if value is not None
    }
    place = f"{run.origin}: cell {cell.id}"
    said = FAILED.search(cell.reason or "")
    network = params.get("model", "")
    shares, batches = (
        ([], [])
        if network == STATIC
        else (_listed(params.get(name, ""), place) for name in ("shares", "batches"))
    )
    row = {
        "model_name": network,
        "p_list": shares,
        "b_list": batches * len(shares) if len(batches) == 1 else batches,
        "target_freq": params.get("sm_mhz"),
        "mem_freq": params.get("mem_mhz"),
        "outcome": said[1] if said else "failed",
        "reason": " ".join(
            (said[2] if said else cell.reason or "no reason was recorded").split()
        ).rstrip("."),
        "backend": params.get("backend"),
        "throttle": params.get("throttle"),
    }
    return _row_of_report(row, place)


def _row_of_report(told: Mapping[str, object], place: str) -> PartitionRow:
    """Read a row like one from a file of traces. Raises: Unreadable."""
    names = [*COLUMNS, *OURS]
    text = io.StringIO(newline="")
    csv.writer(text).writerows([names, [_csv_cell(told.get(name)) for name in names]])
    rows = parse(text.getvalue(), place)
    if len(rows) != 1:
        raise Unreadable(f"{place}: is not a row of a trace; measure it again.")
    return replace(rows[0], line=0)


def _csv_cell(value: object) -> str:
    return (
        ""
        if value is None
        else json.dumps(value)
        if isinstance(value, list | tuple)
        else str(value)
    )


def _listed(text: str, place: str) -> list[float]:
    """Parse a name's values per process: `50+2x25` is 50 and twice 25. Raises: Unreadable."""
    parts = [COUNTED.fullmatch(one) for one in text.split("+")]
    if not all(parts):
        raise Unreadable(
            f"{place}: {text!r} is not a list of shares or batches, such as 50+2x25; the file was "
            "edited: measure it again."
        )
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
        lines.append(
            f"{path}: {len(rows)} rows: "
            f"{', '.join(f'{count} {outcome}' for outcome, count in outcomes.items())}"
        )
    return of_parts({"files": records, "refused": refused}, lines, refused)
