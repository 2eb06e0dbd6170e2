"""The gate before a fit, and what `partition` says below its answers: what traces and parameters show that no GPU does.

A finding either refuses (nothing should be built on it) or is a note (it was left out, or the answer must be read with it in mind).
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.plain import one_line

from . import traces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .traces import Row

FALL = 0.03  # of the value before: less is noise between two measurements
COPIED = 3  # configurations with the same numbers are no coincidence
ROUNDING_PERCENT = 0.05


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong. `kind` is one word of zeros, failed, impossible, copy, falls, bound, static; `what` a sentence."""

    kind: str
    where: str
    what: str
    refuses: bool = False

    @property
    def mark(self) -> str:
        """What it is marked with on a page: `!`, if nothing should be built on it."""
        return "!" if self.refuses else "·"


def findings(rows: Sequence[Row], where: str = "traces") -> list[Finding]:
    """Answer what is wrong with traces; `where` names them."""
    measured = [row for row in rows if row.outcome == "measured"]
    found = [*_left_out(rows, where), *_impossible(measured, where), *_copies(measured, where)]
    found += _falls(measured, where, "throughput", _throughput)
    found += _falls(measured, where, "power", _power)
    return found


def clock_of(row: Row) -> float | None:
    """The throttle, 0 to 1, where there is one, as a fit has it; else the SM clock as it was, MHz, or as it was asked for."""
    throttle = row.extra.get("throttle")
    if isinstance(throttle, float):
        return throttle
    return row.sm_mhz if row.sm_mhz is not None else row.target_mhz


def _left_out(rows: Sequence[Row], where: str) -> Iterator[Finding]:
    for kind, chosen, said in (
        ("zeros", [row for row in rows if row.reason == traces.ZEROS], "stored as zeros; they failed, and were left out"),
        ("failed", [row for row in rows if row.outcome != "measured" and row.reason != traces.ZEROS], "failed; they were left out"),
    ):
        if chosen:
            yield Finding(kind, where, f"{len(chosen)} of {len(rows)} rows {said}: {_lines(chosen)}.")


def _impossible(rows: Sequence[Row], where: str) -> Iterator[Finding]:
    checks: tuple[tuple[str, Callable[[Row], bool], bool], ...] = (
        ("a value below 0", _negative, True),
        ("no images at all", lambda row: row.throughput_images_per_s == 0 and row.network != traces.STATIC, True),
        ("a share of more than 100 % or none", lambda row: any(not 0 < share <= 100 for share in row.shares), True),
        ("a mean power above the largest reading", _mean_above_max, True),
        ("a utilisation above 100 %, which NVML never says (it was computed)", _above_full, False),
    )
    for said, wrong, refuses in checks:
        chosen = [row for row in rows if wrong(row)]
        if chosen:
            yield Finding("impossible", where, f"{len(chosen)} of {len(rows)} rows with {said}: {_lines(chosen)}.", refuses)


def _copies(rows: Sequence[Row], where: str) -> Iterator[Finding]:
    """Find networks whose numbers are another's: two networks never give the same images/s and watts at several configurations."""
    told: dict[str, dict[object, set[object]]] = defaultdict(lambda: defaultdict(set))
    for row in rows:
        values = (row.throughput_images_per_s, _power(row))
        if row.network != traces.STATIC and values[0]:
            told[row.network][row.shares, row.batches, clock_of(row), row.mem_mhz].add(values)
    for one, other in itertools.combinations(sorted(told), 2):
        both = told[one].keys() & told[other].keys()
        same = sum(1 for key in both if told[one][key] & told[other][key])
        if same >= COPIED and same >= len(both) / 2:
            what = f"{one_line(one)} and {one_line(other)} have the same numbers in {same} of {len(both)} common configurations"
            yield Finding("copy", where, f"{what}: one is a copy of the other.", refuses=True)


def _falls(rows: Sequence[Row], where: str, name: str, value: Callable[[Row], float | None]) -> list[Finding]:
    """Find configurations whose value falls while the clock rises."""
    curves: dict[object, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        clock, said = clock_of(row), value(row)
        if clock is not None and said is not None and said > 0:
            curves[row.network, row.shares, row.batches, row.mem_mhz].append((clock, said))
    of_clock = {key: sorted(_means(points).items()) for key, points in curves.items()}
    swept = {key: points for key, points in of_clock.items() if len(points) > 1}
    falling = [
        (low, high, after / before - 1)
        for points in swept.values()
        for (low, before), (high, after) in itertools.pairwise(points)
        if after < before * (1 - FALL)
    ]
    if not falling:
        return []
    low, high, worst = min(falling, key=lambda fall: fall[2])
    what = f"{name} falls by more than {FALL:.0%} with the clock in {len(falling)} steps of {len(swept)} configurations"
    return [Finding("falls", where, f"{what}, at worst by {-worst:.1%} from {low:g} to {high:g}.")]


def _means(points: Sequence[tuple[float, float]]) -> dict[float, float]:
    """Repetitions of one clock are one point."""
    at: dict[float, list[float]] = defaultdict(list)
    for clock, value in points:
        at[clock].append(value)
    return {clock: sum(values) / len(values) for clock, values in at.items()}


def _throughput(row: Row) -> float | None:
    return row.throughput_images_per_s


def _power(row: Row) -> float | None:
    """Watts; without a sensor the CPU's activity, CPU seconds per second."""
    activity = row.extra.get("cpu_s_per_s")
    known = row.power_max_w if row.power_max_w is not None else row.power_mean_w
    return known if known is not None else activity if isinstance(activity, float) else None


def _numbers(row: Row) -> list[float]:
    values = [getattr(row, name) for name in traces.NUMBERS.values()]
    return [value for value in values if value is not None]


def _negative(row: Row) -> bool:
    return any(value < 0 for value in _numbers(row))


def _mean_above_max(row: Row) -> bool:
    return row.power_mean_w is not None and row.power_max_w is not None and row.power_mean_w > row.power_max_w * 1.001


def _above_full(row: Row) -> bool:
    return any(value is not None and value > 100 + ROUNDING_PERCENT for value in (row.sm_util_percent, row.mem_util_percent))


def _lines(rows: Sequence[Row]) -> str:
    said = ", ".join(str(row.line) for row in rows[:5])
    return f"line{'s' * (len(rows) > 1)} {said}{' …' * (len(rows) > 5)}"
