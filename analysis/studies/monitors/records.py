"""The cells of a monitored study: the monitor's record and the usage of the workload's process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from analysis.plain import one_line
from analysis.terms import Cell, Metric, Run

MONITOR = ("cpu_s", "wall_s", "peak_rss_bytes", "written_bytes", "samples", "start_s", "stop_s")
START_CPU = "start_cpu_s"
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
CPU = Metric("cpu_s_per_step", "lower")
ALL_CPU, ENERGY = "all_cpu_s", "energy_j"
INSIDE = "inside"


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
    monitor: Mapping[str, float] = field(default_factory=dict)
    usage: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def measured(self) -> bool:
        return self.cell.outcome == "measured"

    @property
    def all_cpu_s(self) -> float | None:
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
        """Return CPU seconds of a monitor's processes per second at work: 1 is a whole core."""
        cpu_s, wall_s = self.monitor.get("cpu_s"), self.monitor.get("wall_s")
        if cpu_s is None or not wall_s or self.kind == INSIDE:
            return None
        if not {START_CPU, "start_s", "stop_s"} <= self.monitor.keys():
            return cpu_s / wall_s
        whole_s = wall_s - self.monitor["start_s"] - self.monitor["stop_s"]
        at_work_s = self.monitor.get(AT_WORK, None if self.cell.segments else whole_s)
        if at_work_s is None or not 0 < at_work_s <= wall_s:
            return None
        return (cpu_s - self.monitor[START_CPU]) / at_work_s


def read(run: Run) -> tuple[Run, list[MonitoredCell]]:
    """Read the cells of a run's studies with monitors.

    Returns: the run with only those studies and CPU time as primary metric, in which monitoring is
    paid; and the cells. Cells that do not match their arm have failed, with the reason; the others
    have total CPU seconds, including the monitor's, and energy as metrics.
    """
    names = {
        cell.study for cell in run.cells if cell.monitor or run.tweaksets[cell.tweakset].monitor
    }
    cells = []
    for cell in (cell for cell in run.cells if cell.study in names):
        reason = _misfit(cell, run) if cell.outcome == "measured" else ""
        if reason:
            failed: dict[str, Any] = {
                "outcome": "failed",
                "reason": reason,
                "metrics": {},
                "steps": None,
            }
            cells.append(MonitoredCell(replace(cell, **failed, segments=())))
            continue
        one = _read_cell(cell) if cell.outcome == "measured" else MonitoredCell(cell)
        more = {ALL_CPU: one.all_cpu_s, ENERGY: one.usage.get(ENERGY)}
        metrics = {**cell.metrics, **{name: value for name, value in more.items() if value}}
        cells.append(replace(one, cell=replace(cell, metrics=metrics)))
    studies = {
        name: replace(study, primary=CPU) for name, study in run.studies.items() if name in names
    }
    workloads = {name: replace(workload, primary=None) for name, workload in run.workloads.items()}
    own = tuple(one.cell for one in cells)
    return replace(run, cells=own, studies=studies, workloads=workloads), cells


def _misfit(cell: Cell, run: Run) -> str:
    if not cell.monitor:
        return "it does not record whether it had a monitor"
    expected, name = run.tweaksets[cell.tweakset].monitor or None, cell.monitor.get("name")
    if name == expected:
        return ""
    shown, arm = (one_line(str(one or "none"), 60) for one in (name, expected))
    return f"it reports {shown}, but its arm is {arm}"


def rate_of(params: Mapping[str, object]) -> tuple[float | None, str | None]:
    for name in (INTERVAL, RATE):
        value = params.get(name)
        if isinstance(value, int | float) and value > 0:
            return 1 / value if name == INTERVAL else float(value), name
    return None, None


def _read_cell(cell: Cell) -> MonitoredCell:
    record: Mapping[str, Any] = cell.monitor
    name, of_monitor = record["name"], {**record, **record["told"]}
    missing = {f"usage.{key}": reason for key, reason in cell.usage.get("missing", {}).items()}
    if name is not None:
        missing |= {f"monitor.{key}": reason for key, reason in record["missing"].items()}
    return MonitoredCell(
        cell,
        name,
        base=record["base"] or "",
        kind=record["kind"] or "",
        params=record["params"],
        monitor=_known(of_monitor, (*MONITOR, START_CPU, AT_WORK)),
        usage=_known(cell.usage, USAGE),
        missing=missing,
    )


def _known(record: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, float]:
    return {name: float(record[name]) for name in names if record.get(name) is not None}
