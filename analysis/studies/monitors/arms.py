"""An arm of a monitored study: how it is called and written, where it stands in a table, and what its monitor took for itself."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import TYPE_CHECKING

from analysis.stats.effect import mean_of
from analysis.wording import LARGEST

from .records import AT_WORK, INSIDE, INTERVAL, START_CPU, rate_of
from .terms import MonitorUse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from analysis.terms import Cell, Run

    from .terms import OverheadFigure, Watched

AGAIN = "stock-again"
PLACEBO = "placebo"
KINDS = ("inside", "beside", "around")
COPY = "none again (A/A)"
FEWEST_DUE, LEAST_TAKEN = 10, 0.5  # samples, below which a cell says nothing of what sampling takes


def labels(run: Run, cells: Mapping[str, Sequence[Watched]], names: Iterable[str]) -> dict[str, str]:
    """What tables call the arms: `none`, and a monitor with its interval or rate, `psutil_thread 0.01 s`; never two alike."""
    result = {name: {run.baseline: "none", AGAIN: COPY}.get(name) or _label(name, next(iter(cells.get(name, ())), None)) for name in names}
    return result if len(set(result.values())) == len(result) else {name: name for name in result}


def _label(name: str, watched: Watched | None) -> str:
    if watched is None or watched.rate_per_s is None:
        return name
    _, by = rate_of(watched.params)
    often = f"{watched.params[by]:g}" if by is not None and isinstance(watched.params[by], int | float) else ""
    others = [part for part in name.split(":")[1:] if part.partition("=")[0] != by]
    return ":".join([f"{watched.base} {often} {'s' if by == INTERVAL else 'Hz'}", *others])


def in_order(names: Iterable[str], cells: Mapping[str, Sequence[Watched]], run: Run) -> list[str]:
    """Order arms: none again, placebos, then inside, beside and around, each by monitor and from the lowest rate to the highest."""

    def place(name: str) -> tuple[object, ...]:
        watched = next(iter(cells.get(name, ())), None)
        if watched is None:
            base = run.tweaksets[name].monitor.partition(":")[0] or name
            return name != AGAIN, base != PLACEBO, len(KINDS), base, 0.0, name
        kind = KINDS.index(watched.kind) if watched.kind in KINDS else len(KINDS)
        return name != AGAIN, watched.base != PLACEBO, kind, watched.base, watched.rate_per_s or 0.0, name

    return sorted(names, key=place)


def own(cells: Sequence[Watched], none: Mapping[int, Watched]) -> MonitorUse:
    """Summarise what a monitor took; `none` are the cells without one, by block."""
    if not cells or cells[0].name is None:
        return MonitorUse()
    grown = _differences(cells, none, lambda watched: watched.usage.get("peak_rss_bytes"))
    peaks = _known(cells, "peak_rss_bytes")
    inside = cells[0].kind == INSIDE
    own_peak = _median(peaks)
    memory = None if grown is None or (own_peak is None and not inside) else grown + (own_peak or 0.0)
    return MonitorUse(
        core=mean_of([share for cell in cells if (share := core_share(cell)) is not None]),
        unproven="" if inside else unproven(cells),
        cpu_s=_median(_known(cells, "cpu_s")),
        samples=_median(_known(cells, "samples")),
        memory_bytes=memory,
        own_peak_bytes=own_peak,
        written_bytes=_median(_known(cells, "written_bytes")),
        start_s=_median(_known(cells, "start_s")),
        stop_s=_median(_known(cells, "stop_s")),
        outside_s=_differences(cells, none, outside_s),
    )


def core_share(watched: Watched) -> float | None:
    """CPU seconds of a monitor's own processes by seconds: 1 is a whole core.

    Of the time at work and without its start, where that is known: a start may take more than minutes of work, and is no rate. What its end
    took counts: it is there that samples are turned into a report, work that grows with them. Of one that stood still in some segments
    the others alone are its time at work.
    """
    cpu_s, wall_s = watched.monitor.get("cpu_s"), watched.monitor.get("wall_s")
    if cpu_s is None or not wall_s or watched.kind == INSIDE:
        return None
    if {START_CPU, "start_s", "stop_s"} <= watched.monitor.keys():
        at_work_s = watched.monitor.get(AT_WORK, wall_s - watched.monitor["start_s"] - watched.monitor["stop_s"])
        return (cpu_s - watched.monitor[START_CPU]) / at_work_s if at_work_s > 0 else None
    return cpu_s / wall_s


def unproven(cells: Sequence[Watched]) -> str:
    """Say why shares of a core prove nothing: of one that hardly looked they are low whatever a look costs; "" where they do."""
    result = [reason for cell in cells if (reason := _unproven(cell))]
    return f"{result[0]}, in {len(result)} of {len(cells)} cells" if result else ""


def _unproven(watched: Watched) -> str:
    samples, steps_s = watched.monitor.get("samples"), watched.monitor.get(AT_WORK, watched.usage.get("steps_wall_s"))
    if core_share(watched) is None:
        return "its share of a core is not known"
    if watched.rate_per_s is None or steps_s is None:
        return "how many samples were due is not known"
    due = watched.rate_per_s * steps_s
    if due < FEWEST_DUE:
        where = "it was at work for" if AT_WORK in watched.monitor else "the steps took"
        return f"{where} {steps_s:.3g} s, in which {due:.3g} samples were due, fewer than {FEWEST_DUE}"
    if samples is None:
        return "how many samples it took is not known"
    return f"it took {samples:.0f} samples where {due:.0f} were due" if samples < LEAST_TAKEN * due else ""


def outside_s(watched: Watched) -> float | None:
    """Seconds of a process outside its measured steps."""
    wall_s, steps_s = watched.usage.get("wall_s"), watched.usage.get("steps_wall_s")
    return None if wall_s is None or steps_s is None else wall_s - steps_s


def load(cells: Sequence[Watched]) -> tuple[float, float, float] | None:
    """Load average of an arm's cells: mean, smallest, largest."""
    values = [cell.usage["load_average_1min"] for cell in cells if "load_average_1min" in cell.usage]
    return (statistics.fmean(values), min(values), max(values)) if values else None


def missing(cells: Sequence[Watched]) -> dict[str, str]:
    """Why figures are missing, the first reason of each."""
    result: dict[str, str] = {}
    for cell in cells:
        for name, reason in cell.missing.items():
            result.setdefault(name, reason)
    return result


def lost(cells: Sequence[Cell]) -> dict[str, int]:
    """Why cells of an arm were not measured: sentence → how many."""
    return dict(
        Counter(f"{cell.outcome}: {(cell.reason or 'no reason was recorded').rstrip('.')}." for cell in cells if cell.outcome != "measured")
    )


def _known(cells: Sequence[Watched], name: str) -> list[float]:
    return [cell.monitor[name] for cell in cells if name in cell.monitor]


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _differences(cells: Sequence[Watched], none: Mapping[int, Watched], of: Callable[[Watched], float | None]) -> float | None:
    """Median over blocks of how much more there was than without a monitor."""
    both = [(of(cell), of(none[cell.block])) for cell in cells if cell.block in none]
    return _median([value - other for value, other in both if value is not None and other is not None])


FINE = 0.10  # below it two decimals


def amount(figure: OverheadFigure) -> str:
    """Write an overhead: `+0.12 %`, `+60.3 %`."""
    return f"{_number(figure.value, _decimals(figure))} %"


def ends(figure: OverheadFigure) -> str:
    """Write its interval: `[-0.04, +0.43]`."""
    decimals = _decimals(figure)
    return f"[{_number(figure.low, decimals)}, {_number(figure.high, decimals)}]"


def whole(figure: OverheadFigure | None) -> str:
    """Write both for a column whose head says percent: `+0.12 [-0.04, 0.43]`; nothing, where there is none."""
    return "" if figure is None else f"{amount(figure).removesuffix(' %')} {ends(figure).replace('+', '')}"


def shown(figure: OverheadFigure) -> str:
    """Write an overhead with its interval and how many blocks it is of."""
    return f"{amount(figure)} {ends(figure)}, n {figure.n}"


def signed(fraction: float) -> str:
    """Write an overhead that has no interval of its own here: `+0.12 %`."""
    return f"{_number(fraction, 2 if abs(fraction) < FINE else 1)} %"


def _decimals(figure: OverheadFigure) -> int:
    return 2 if max(abs(figure.value), abs(figure.low), abs(figure.high)) < FINE else 1


def _number(fraction: float, decimals: int) -> str:
    if abs(fraction) >= LARGEST:
        return f"{fraction * 100:+.1e}"
    return f"{round(fraction * 100, decimals) + 0.0:+.{decimals}f}"
