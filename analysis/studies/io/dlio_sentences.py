"""What DLIO results say in sentences: where leaving out the first step turns a finding round."""

from __future__ import annotations

from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING

from analysis.wording import digits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .dlio_factors import Compared
    from .responses import Judged

LEAST = 0.02  # of the value: below it two figures are taken for the same
PAIRS = (
    ("AU", " %", "au_steady_percent", "au_whole_percent"),
    ("MB/s", "", "mb_per_s_nominal_dlio", "mb_per_s_nominal_whole"),
)


def reversals(groups: Iterable[Compared]) -> list[str]:
    """Say where a figure without the first step rises and the same over the whole epoch falls, or the other way round."""
    return [line for group in groups for line in _reversals(group)]


def _reversals(group: Compared) -> Iterator[str]:
    for first, last in combinations(group.levels, 2):
        for what, unit, steady, whole in PAIRS:
            (a, b), (c, d) = ([_mean(group.levels[level], name) for level in (first, last)] for name in (steady, whole))
            if not (a and b and c and d):
                continue
            if abs(b / a - 1) > LEAST and abs(d / c - 1) > LEAST and (b > a) != (d > c):
                theirs, ours = (f"{digits(start)} to {digits(end)}{unit}" for start, end in ((a, b), (c, d)))
                yield (
                    f"{group.among}{group.factor} {first} to {last}: {what} goes from {theirs} as DLIO reckons it, "
                    f"and from {ours} over the whole epoch ({d / c - 1:+.0%})"
                )
                break  # both figures are one measurement


def _doubtful(one: Judged) -> bool:
    """Whether the formulas give something else than what was run; that steps are few is what is told here."""
    return any(doubt.kind in {"contradiction", "oversleep"} for doubt in one.doubts)


def _mean(runs: Iterable[Judged], name: str) -> float | None:
    values = [value for one in runs if (value := one.formula(name)) is not None and not _doubtful(one)]
    return fmean(values) if values else None
