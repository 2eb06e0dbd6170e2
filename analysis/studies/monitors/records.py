"""What the cells of a monitored study told, read as a foreign file is: a field is a number, or missing with its reason.

What a clock, a kernel or a meter cannot have said is missing; a cell that tells of another monitor than its arm's is left out, and said.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.formats.fields import Fields
from analysis.plain import one_line
from analysis.terms import Metric

from .terms import Watched

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.terms import Cell, Run

MONITOR = ("cpu_s", "wall_s", "peak_rss_bytes", "written_bytes", "samples", "start_s", "stop_s")
START_CPU = "start_cpu_s"  # what its start took of `cpu_s`
AT_WORK = "at_work_s"  # of one that stood still in some segments, how long it did not
USAGE = ("wall_s", "cpu_s", "steps_wall_s", "steps_cpu_s", "peak_rss_bytes", "written_bytes", "load_average_1min", "energy_j")
INTERVAL, RATE = "interval_s", "hz"
LEAST_RATE = 1e-9  # nobody looks so seldom, or a billion times a second
CPU = Metric("cpu_s_per_step", "lower")
# Metrics beside those of the steps.
ALL_CPU, ENERGY = "all_cpu_s", "energy_j"
INSIDE = "inside"


def is_monitored(run: Run) -> bool:
    """Whether any cell of a run told of a monitor, or that it had none beside others that had."""
    return any(cell.monitor for cell in run.cells) or any(tweakset.monitor for tweakset in run.tweaksets.values())


def watched(run: Run) -> list[Watched]:
    """Read every measured cell that told of a monitor, or of having none.

    Raises: Unreadable, naming cell and field.
    """
    places = _places(run.cells)
    return [_watched(cell, places[key_of(cell)], run.origin) for cell in run.cells if cell.outcome == "measured" and cell.monitor]


def key_of(cell: Cell | Watched) -> tuple[str, str, str, int]:
    """What a cell is of: study, workload, arm and block."""
    return cell.study, cell.workload, cell.tweakset, cell.block


def with_metrics(run: Run, cells: Sequence[Watched]) -> Run:
    """Answer a run whose cells have as metrics what they told: all CPU seconds, the monitor's included, and energy.

    What is paid for watching is CPU time, also by a workload that has a primary metric of its own.
    """
    told = {key_of(cell): cell for cell in cells}
    names = studies(run)
    kept = [
        replace(cell, metrics={**cell.metrics, **_metrics(told[key_of(cell)])}) if key_of(cell) in told else cell
        for cell in run.cells
        if cell.study in names
    ]
    return replace(
        run,
        cells=tuple(kept),
        studies={name: replace(run.studies[name], primary=CPU) for name in names},
        workloads={name: replace(workload, primary=None) for name, workload in run.workloads.items()},
    )


def studies(run: Run) -> list[str]:
    """Names of the studies that had monitors."""
    result = {cell.study for cell in run.cells if cell.monitor or run.tweaksets[cell.tweakset].monitor}
    return [name for name in run.studies if name in result]


def all_cpu_s(one: Watched) -> float | None:
    """CPU seconds of the workload's whole process and of the monitor's own; None where one of the two is not known."""
    whole, own = one.usage.get("cpu_s"), one.monitor.get("cpu_s")
    if whole is None or (own is None and one.name is not None and one.kind != INSIDE):
        return None
    return whole + (own or 0.0)


def rate_of(params: Mapping[str, object]) -> tuple[float | None, str | None]:
    """How often a monitor looks, by its parameters, and which of them says so."""
    for name, value in params.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not LEAST_RATE < value < 1 / LEAST_RATE:
            continue  # as of a whole number that no float can hold
        if name == INTERVAL:
            return 1 / value, name
        if name == RATE:
            return float(value), name
    return None, None


def _metrics(one: Watched) -> dict[str, float]:
    values = {ALL_CPU: all_cpu_s(one), ENERGY: one.usage.get("energy_j")}
    return {name: value for name, value in values.items() if value is not None and value > 0}


def _watched(cell: Cell, place: int, origin: str) -> Watched:
    part = Fields({"monitor": cell.monitor, "usage": cell.usage}, origin, f"cell {cell.id}")
    fields, usage = part.optional_fields("monitor"), part.optional_fields("usage")
    params = fields.optional_mapping("params")
    rate, by = rate_of(params)
    rest = [f"{key}={value}" for key, value in params.items() if key != by]
    name = fields.optional_text("name")
    missing = {f"usage.{field}": str(reason) for field, reason in usage.optional_mapping("missing").items()}
    if name is not None:
        missing |= {f"monitor.{field}": str(reason) for field, reason in fields.optional_mapping("missing").items()}
    numbers = possible({**part.known_numbers("monitor", MONITOR), **fields.known_numbers("told", (START_CPU, AT_WORK))}, "monitor", missing)
    _drop_what_cannot_be(numbers, missing)
    if name is not None and cell.segments and AT_WORK not in numbers and numbers.pop("wall_s", None) is not None:
        missing["monitor.wall_s"] = "for how long of it the monitor was at work is not told"
    return Watched(
        id=cell.id,
        study=cell.study,
        workload=cell.workload,
        tweakset=cell.tweakset,
        block=cell.block,
        place=place,
        name=name,
        base=fields.optional_text("base") or "",
        kind=fields.optional_text("kind") or "",
        params=params,
        version=fields.optional_text("version"),
        rate_per_s=rate,
        rest=" ".join(rest),
        monitor=numbers,
        usage=possible(part.known_numbers("usage", USAGE), "usage", missing),
        missing=missing,
    )


def _drop_what_cannot_be(numbers: dict[str, float], missing: dict[str, str]) -> None:
    """Take out of what a cell tells of its monitor a whole that is less than its parts."""
    start_cpu_s, cpu_s = numbers.get(START_CPU), numbers.get("cpu_s")
    if start_cpu_s is not None and cpu_s is not None and start_cpu_s > cpu_s:
        missing["monitor.cpu_s"] = f"its start alone is said to have taken {start_cpu_s:g} CPU seconds of {cpu_s:g}"
        del numbers["cpu_s"]
    ends_s, wall_s = numbers.get("start_s", 0.0) + numbers.get("stop_s", 0.0), numbers.get("wall_s")
    if wall_s is not None and ends_s >= wall_s:
        missing["monitor.wall_s"] = f"its start and its end are said to have taken {ends_s:g} s of {wall_s:g}"
        del numbers["wall_s"]
    elif wall_s is not None and numbers.get(AT_WORK, 0.0) > wall_s:
        missing["monitor.wall_s"] = f"it is said to have been at work for {numbers[AT_WORK]:g} s of {wall_s:g}"
        del numbers["wall_s"]


def _places(cells: Sequence[Cell]) -> dict[tuple[str, str, str, int], int]:
    """Rank every cell among those of its block, of all workloads together: that is how the block ran."""
    blocks: dict[tuple[str, int], list[Cell]] = {}
    for cell in sorted(cells, key=lambda cell: cell.order):
        blocks.setdefault((cell.study, cell.block), []).append(cell)
    return {key_of(cell): at for block in blocks.values() for at, cell in enumerate(block)}


# A third of a year; 2^53 bytes are more than any disk holds, and 10^9 of anything more than any cell can count.
SECONDS, BYTES, COUNT, JOULES = 1e7, 2.0**53, 1e9, 1e12
LIFE_S = 1e-3  # so long a process lives at least
MOST = {
    "cpu_s": SECONDS,
    "start_cpu_s": SECONDS,
    "at_work_s": SECONDS,
    "wall_s": SECONDS,
    "start_s": SECONDS,
    "stop_s": SECONDS,
    "steps_wall_s": SECONDS,
    "steps_cpu_s": SECONDS,
    "peak_rss_bytes": BYTES,
    "written_bytes": BYTES,
    "samples": COUNT,
    "load_average_1min": COUNT,
    "energy_j": JOULES,
}
LEAST = {"wall_s": LIFE_S}


def possible(numbers: Mapping[str, float], place: str, missing: dict[str, str]) -> dict[str, float]:
    """Answer those that can be; what cannot goes into `missing` by place and name, with the reason."""
    result = {}
    for name, value in numbers.items():
        low, high = LEAST.get(name, 0.0), MOST[name]
        if low <= value <= high:
            result[name] = value
        else:
            missing[f"{place}.{name}"] = f"{value:g} was recorded, which is not from {low:g} to {high:g}"
    return result


SAME = ("kind", "base")  # what all cells of an arm must agree in


def held(run: Run) -> Run:
    """Answer a run whose cells that do not fit their arm have failed, with the reason."""
    names = studies(run)
    told: dict[tuple[str, str], dict[str, set[str]]] = {}
    for cell in run.cells:
        if cell.outcome == "measured" and cell.monitor:
            arm = told.setdefault((cell.study, cell.tweakset), {name: set() for name in SAME})
            for name in SAME:
                arm[name].add(_shown(cell.monitor.get(name)))
    cells = []
    for cell in run.cells:
        reason = _misfit(cell, run, told) if cell.study in names and cell.outcome == "measured" else ""
        cells.append(replace(cell, outcome="failed", reason=reason, metrics={}, steps=None, segments=()) if reason else cell)
    return replace(run, cells=tuple(cells))


def _misfit(cell: Cell, run: Run, told: Mapping[tuple[str, str], Mapping[str, set[str]]]) -> str:
    wanted = run.tweaksets[cell.tweakset].monitor or None
    if not cell.monitor:
        return "it does not tell whether it had a monitor"
    name = cell.monitor.get("name")
    if name != wanted:
        return f"it tells of {_shown(name)}, where its arm is {_shown(wanted)}"
    for field, words in told[cell.study, cell.tweakset].items():
        if len(words) > 1:
            return f"cells of its arm tell of more than one {field}: {', '.join(sorted(words))}"
    return ""


def _shown(value: object) -> str:
    return "none" if value is None else one_line(str(value), 60)
