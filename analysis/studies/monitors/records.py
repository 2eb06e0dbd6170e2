"""The cells of a monitored study, read as a foreign file is: a field is a number, or missing with its reason.

A value that no clock, kernel or meter can have given is missing; a cell that reports another monitor than its arm's is left out, with the
reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from analysis.plain import one_line
from analysis.terms import Cell, Metric, Run

MONITOR = ("cpu_s", "wall_s", "peak_rss_bytes", "written_bytes", "samples", "start_s", "stop_s")
START_CPU = "start_cpu_s"  # the part of `cpu_s` that its start took
AT_WORK = "at_work_s"  # of one that stood still in some segments, how long it did not
USAGE = ("wall_s", "cpu_s", "steps_wall_s", "steps_cpu_s", "peak_rss_bytes", "written_bytes", "load_average_1min", "energy_j")
INTERVAL, RATE = "interval_s", "hz"
LEAST_RATE = 1e-9  # nobody looks so seldom, or a billion times a second
CPU = Metric("cpu_s_per_step", "lower")
ALL_CPU, ENERGY = "all_cpu_s", "energy_j"  # metrics beside those of the steps
INSIDE = "inside"
# A third of a year; 2^53 bytes are more than any disk holds, and 10^9 of anything more than any cell can count. By the end of a name.
MOST = {"_s": 1e7, "_bytes": 2.0**53, "_j": 1e12}
MOST_COUNTED = 1e9
LIFE_S = 1e-3  # so long a process lives at least


@dataclass(frozen=True, slots=True)
class MonitoredCell:
    """One cell: its monitor, and the workload's process.

    `monitor` and `usage` hold numbers by the names of the saved file (`docs/reference/run.md`), without those missing: `missing` says
    why. A cell that was not measured has none.
    """

    cell: Cell
    name: str | None = None
    base: str = ""
    kind: str = ""
    params: Mapping[str, object] = field(default_factory=dict)
    version: str | None = None
    monitor: Mapping[str, float] = field(default_factory=dict)
    usage: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def measured(self) -> bool:
        return self.cell.outcome == "measured"

    @property
    def rate_per_s(self) -> float | None:
        """How often it looks, by its parameters; None where they do not say."""
        return rate_of(self.params)[0]

    @property
    def all_cpu_s(self) -> float | None:
        """CPU seconds of the workload's whole process and of the monitor's own; None where one of the two is not known."""
        whole, own = self.usage.get("cpu_s"), self.monitor.get("cpu_s")
        if whole is None or (own is None and self.name is not None and self.kind != INSIDE):
            return None
        return whole + (own or 0.0)

    @property
    def outside_s(self) -> float | None:
        wall_s, steps_s = self.usage.get("wall_s"), self.usage.get("steps_wall_s")
        return None if wall_s is None or steps_s is None else wall_s - steps_s

    @property
    def core_share(self) -> float | None:
        """CPU seconds of a monitor's own processes by seconds: 1 is a whole core.

        Of the time at work and without its start, where that is known: a start may take more than minutes of work, and is no rate. The CPU
        of its end counts: there samples are turned into a report, work that grows with them. Of one that stood still in some segments the
        others alone are its time at work.
        """
        cpu_s, wall_s = self.monitor.get("cpu_s"), self.monitor.get("wall_s")
        if cpu_s is None or not wall_s or self.kind == INSIDE:
            return None
        if {START_CPU, "start_s", "stop_s"} <= self.monitor.keys():
            at_work_s = self.monitor.get(AT_WORK, wall_s - self.monitor["start_s"] - self.monitor["stop_s"])
            return (cpu_s - self.monitor[START_CPU]) / at_work_s if at_work_s > 0 else None
        return cpu_s / wall_s


def read(run: Run) -> tuple[Run, list[MonitoredCell]]:
    """Read the cells of a run's studies with monitors.

    Returns: the run with those studies alone and CPU time as their primary metric: what is paid for watching is CPU time, also by a
    workload that has a primary metric of its own. Cells that do not fit their arm have failed there, with the reason; the others have all
    CPU seconds, the monitor's included, and energy as metrics. And the cells.
    """
    names = {cell.study for cell in run.cells if cell.monitor or run.tweaksets[cell.tweakset].monitor}
    own = [cell for cell in run.cells if cell.study in names]
    words: dict[tuple[str, str, str], set[str]] = {}
    for cell in (cell for cell in own if cell.outcome == "measured" and cell.monitor):
        for name in ("kind", "base"):  # all cells of an arm must agree in them
            words.setdefault((cell.study, cell.tweakset, name), set()).add(_shown(cell.monitor.get(name)))
    cells = []
    for cell in own:
        reason = _misfit(cell, run, words) if cell.outcome == "measured" else ""
        if reason:
            cells.append(MonitoredCell(replace(cell, outcome="failed", reason=reason, metrics={}, steps=None, segments=())))
            continue
        one = _read_cell(cell) if cell.outcome == "measured" else MonitoredCell(cell)
        more = {name: value for name, value in ((ALL_CPU, one.all_cpu_s), (ENERGY, one.usage.get(ENERGY))) if value}
        cells.append(replace(one, cell=replace(cell, metrics={**cell.metrics, **more})))
    studies = {name: replace(study, primary=CPU) for name, study in run.studies.items() if name in names}
    workloads = {name: replace(workload, primary=None) for name, workload in run.workloads.items()}
    return replace(run, cells=tuple(one.cell for one in cells), studies=studies, workloads=workloads), cells


def _misfit(cell: Cell, run: Run, words: Mapping[tuple[str, str, str], set[str]]) -> str:
    """Say why a cell is none of its arm; "" where it is. `words` are what the cells of each arm call their monitor."""
    if not cell.monitor:
        return "it does not say whether it had a monitor"
    expected, called = run.tweaksets[cell.tweakset].monitor or None, cell.monitor.get("name")
    if called != expected:
        return f"it reports {_shown(called)}, but its arm is {_shown(expected)}"
    mixed = [name for name in ("kind", "base") if len(words[cell.study, cell.tweakset, name]) > 1]
    several = [", ".join(sorted(words[cell.study, cell.tweakset, name])) for name in mixed]
    return f"cells of its arm report more than one {mixed[0]}: {several[0]}" if mixed else ""


def _shown(value: object) -> str:
    return "none" if value is None else one_line(str(value), 60)


def rate_of(params: Mapping[str, object]) -> tuple[float | None, str | None]:
    """How often a monitor looks, by its parameters, and which of them says so."""
    for name, value in params.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not LEAST_RATE < value < 1 / LEAST_RATE:
            continue  # as of a whole number that no float can hold
        if name in (INTERVAL, RATE):
            return 1 / value if name == INTERVAL else float(value), name
    return None, None


def _read_cell(cell: Cell) -> MonitoredCell:
    record: Mapping[str, Any] = cell.monitor
    name, missing = record["name"], {f"usage.{key}": reason for key, reason in cell.usage.get("missing", {}).items()}
    if name is not None:
        missing |= {f"monitor.{key}": reason for key, reason in record["missing"].items()}
    numbers = _possible({**record, **record["told"]}, (*MONITOR, START_CPU, AT_WORK), "monitor", missing)
    for key, reason in _contradictions(numbers).items():
        missing[f"monitor.{key}"] = reason
        del numbers[key]
    if name is not None and cell.segments and AT_WORK not in numbers and numbers.pop("wall_s", None) is not None:
        missing["monitor.wall_s"] = "the time at work was not recorded"
    about = {key: record[key] or "" for key in ("base", "kind")}
    usage = _possible(cell.usage, USAGE, "usage", missing)
    return MonitoredCell(
        cell, name, **about, params=record["params"], version=record["version"], monitor=numbers, usage=usage, missing=missing
    )


def _contradictions(numbers: Mapping[str, float]) -> dict[str, str]:
    """Wholes that are less than their parts, and why."""
    result = {}
    cpu_s, wall_s, at_work_s = (numbers.get(name) for name in ("cpu_s", "wall_s", AT_WORK))
    ends_s = numbers.get("start_s", 0.0) + numbers.get("stop_s", 0.0)
    if cpu_s is not None and numbers.get(START_CPU, 0.0) > cpu_s:
        result["cpu_s"] = f"its start alone is recorded with {numbers[START_CPU]:g} CPU seconds, of {cpu_s:g} in all"
    if wall_s is not None and ends_s >= wall_s:
        result["wall_s"] = f"its start and end are recorded with {ends_s:g} s, of {wall_s:g} s in all"
    elif wall_s is not None and at_work_s is not None and at_work_s > wall_s:
        result["wall_s"] = f"its time at work is recorded as {at_work_s:g} s, of {wall_s:g} s in all"
    return result


def _possible(record: Mapping[str, Any], names: Iterable[str], place: str, missing: dict[str, str]) -> dict[str, float]:
    """Return the numbers that can be; what cannot goes into `missing` by place and name, with the reason."""
    result = {}
    for name in (name for name in names if record.get(name) is not None):
        low, value = LIFE_S if name == "wall_s" else 0.0, float(record[name])
        high = next((most for end, most in MOST.items() if name.endswith(end)), MOST_COUNTED)
        if low <= value <= high:
            result[name] = value
        else:
            missing[f"{place}.{name}"] = f"{value:g} was recorded, which is not from {low:g} to {high:g}"
    return result
