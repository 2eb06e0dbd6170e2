"""The cells of a monitored study: each field is a number, or missing with its reason.

They are treated like foreign data: a value that no clock, kernel or meter can produce is missing; a
cell that reports a different monitor from its arm's is omitted, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from analysis.plain import one_line
from analysis.terms import Cell, Metric, Run

MONITOR = ("cpu_s", "wall_s", "peak_rss_bytes", "written_bytes", "samples", "start_s", "stop_s")
START_CPU = "start_cpu_s"  # the part of `cpu_s` spent on its start
AT_WORK = "at_work_s"  # for a monitor stopped in some segments, its active time
USAGE = (
    "wall_s",
    "cpu_s",
    "steps_wall_s",
    "steps_cpu_s",
    "peak_rss_bytes",
    "written_bytes",
    "load_average_1min",
    "energy_j",
)
INTERVAL, RATE = "interval_s", "hz"
LEAST_RATE = 1e-9  # slower, or a billion times per second, is implausible
CPU = Metric("cpu_s_per_step", "lower")
ALL_CPU, ENERGY = "all_cpu_s", "energy_j"  # metrics besides those of the steps
INSIDE = "inside"
# Largest plausible values by the end of the name: 1/3 year; 2^53 bytes, more than any disk; counts
# of 10^9.
MOST = {"_s": 1e7, "_bytes": 2.0**53, "_j": 1e12}
MOST_COUNTED = 1e9
LIFE_S = 1e-3  # shortest life of a process


@dataclass(frozen=True, slots=True)
class MonitoredCell:
    """One cell: its monitor, and the workload's process.

    `monitor` and `usage` hold numbers by the names in the saved file (`docs/reference/run.md`),
    without missing ones: `missing` has the reasons. A cell that was not measured has none.
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
        """Return how often it samples, by its parameters; None if they do not give it."""
        return rate_of(self.params)[0]

    @property
    def all_cpu_s(self) -> float | None:
        """Return the CPU seconds of the workload's process and the monitor's, if both are known."""
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
        """Return the CPU seconds of a monitor's own processes per second: 1 is a whole core.

        The time at work counts, without the start if known: a start may take more than minutes of
        work, and is not a rate. CPU time of the end counts: samples are turned into a report there,
        which grows with the work. If a monitor was stopped in some segments, the others are its
        time at work.
        """
        cpu_s, wall_s = self.monitor.get("cpu_s"), self.monitor.get("wall_s")
        if cpu_s is None or not wall_s or self.kind == INSIDE:
            return None
        if {START_CPU, "start_s", "stop_s"} <= self.monitor.keys():
            at_work_s = self.monitor.get(
                AT_WORK, wall_s - self.monitor["start_s"] - self.monitor["stop_s"]
            )
            return (cpu_s - self.monitor[START_CPU]) / at_work_s if at_work_s > 0 else None
        return cpu_s / wall_s


def read(run: Run) -> tuple[Run, list[MonitoredCell]]:
    """Read the cells of a run's studies with monitors.

    Returns: the run with only those studies and CPU time as primary metric, since monitoring is
    paid in CPU time, even by a workload with a primary metric of its own; and the cells. Cells that
    do not match their arm have failed in that run, with the reason; the others have total CPU
    seconds, including the monitor's, and energy as metrics.
    """
    names = {
        cell.study for cell in run.cells if cell.monitor or run.tweaksets[cell.tweakset].monitor
    }
    own = [cell for cell in run.cells if cell.study in names]
    words: dict[tuple[str, str, str], set[str]] = {}
    for cell in (cell for cell in own if cell.outcome == "measured" and cell.monitor):
        for name in ("kind", "base"):  # all cells of an arm must agree
            words.setdefault((cell.study, cell.tweakset, name), set()).add(
                _shown(cell.monitor.get(name))
            )
    cells = []
    for cell in own:
        reason = _misfit(cell, run, words) if cell.outcome == "measured" else ""
        if reason:
            cells.append(
                MonitoredCell(
                    replace(
                        cell, outcome="failed", reason=reason, metrics={}, steps=None, segments=()
                    )
                )
            )
            continue
        one = _read_cell(cell) if cell.outcome == "measured" else MonitoredCell(cell)
        more = {
            name: value
            for name, value in ((ALL_CPU, one.all_cpu_s), (ENERGY, one.usage.get(ENERGY)))
            if value
        }
        cells.append(replace(one, cell=replace(cell, metrics={**cell.metrics, **more})))
    studies = {
        name: replace(study, primary=CPU) for name, study in run.studies.items() if name in names
    }
    workloads = {name: replace(workload, primary=None) for name, workload in run.workloads.items()}
    return replace(
        run, cells=tuple(one.cell for one in cells), studies=studies, workloads=workloads
    ), cells


def _misfit(cell: Cell, run: Run, words: Mapping[tuple[str, str, str], set[str]]) -> str:
    """Return why a cell does not belong to its arm, or ""; `words` are the arm's monitor names."""
    if not cell.monitor:
        return "it does not record whether it had a monitor"
    expected, called = run.tweaksets[cell.tweakset].monitor or None, cell.monitor.get("name")
    if called != expected:
        return f"it reports {_shown(called)}, but its arm is {_shown(expected)}"
    mixed = [name for name in ("kind", "base") if len(words[cell.study, cell.tweakset, name]) > 1]
    several = [", ".join(sorted(words[cell.study, cell.tweakset, name])) for name in mixed]
    return f"cells of its arm report more than one {mixed[0]}: {several[0]}" if mixed else ""


def _shown(value: object) -> str:
    return "none" if value is None else one_line(str(value), 60)


def rate_of(params: Mapping[str, object]) -> tuple[float | None, str | None]:
    """Return how often a monitor samples, by its parameters, and which of them gives it."""
    for name, value in params.items():
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not LEAST_RATE < value < 1 / LEAST_RATE
        ):
            continue  # such as an integer too large for a float
        if name in (INTERVAL, RATE):
            return 1 / value if name == INTERVAL else float(value), name
    return None, None


def _read_cell(cell: Cell) -> MonitoredCell:
    record: Mapping[str, Any] = cell.monitor
    name, missing = (
        record["name"],
        {f"usage.{key}": reason for key, reason in cell.usage.get("missing", {}).items()},
    )
    if name is not None:
        missing |= {f"monitor.{key}": reason for key, reason in record["missing"].items()}
    numbers = _possible(
        {**record, **record["told"]}, (*MONITOR, START_CPU, AT_WORK), "monitor", missing
    )
    for key, reason in _contradictions(numbers).items():
        missing[f"monitor.{key}"] = reason
        del numbers[key]
    if (
        name is not None
        and cell.segments
        and AT_WORK not in numbers
        and numbers.pop("wall_s", None) is not None
    ):
        missing["monitor.wall_s"] = "the time at work was not recorded"
    about = {key: record[key] or "" for key in ("base", "kind")}
    usage = _possible(cell.usage, USAGE, "usage", missing)
    return MonitoredCell(
        cell,
        name,
        **about,
        params=record["params"],
        version=record["version"],
        monitor=numbers,
        usage=usage,
        missing=missing,
    )


def _contradictions(numbers: Mapping[str, float]) -> dict[str, str]:
    """Return totals that are less than their parts, with the reason."""
    result = {}
    cpu_s, wall_s, at_work_s = (numbers.get(name) for name in ("cpu_s", "wall_s", AT_WORK))
    ends_s = numbers.get("start_s", 0.0) + numbers.get("stop_s", 0.0)
    if cpu_s is not None and numbers.get(START_CPU, 0.0) > cpu_s:
        result["cpu_s"] = (
            f"its start alone has {numbers[START_CPU]:g} CPU seconds, but the total is {cpu_s:g}"
        )
    if wall_s is not None and ends_s >= wall_s:
        result["wall_s"] = f"its start and end take {ends_s:g} s, but the total is {wall_s:g} s"
    elif wall_s is not None and at_work_s is not None and at_work_s > wall_s:
        result["wall_s"] = f"its time at work is {at_work_s:g} s, but the total is {wall_s:g} s"
    return result


def _possible(
    record: Mapping[str, Any], names: Iterable[str], place: str, missing: dict[str, str]
) -> dict[str, float]:
    """Return plausible numbers; add others to `missing` by place and name, with the reason."""
    result = {}
    for name in (name for name in names if record.get(name) is not None):
        low, value = LIFE_S if name == "wall_s" else 0.0, float(record[name])
        high = next((most for end, most in MOST.items() if name.endswith(end)), MOST_COUNTED)
        if low <= value <= high:
            result[name] = value
        else:
            missing[f"{place}.{name}"] = (
                f"{value:g} was recorded, which is not between {low:g} and {high:g}"
            )
    return result
