"""What a history holds: runs in time order, series of one value a run, their changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from analysis.stats.changepoint import ChangePoint
    from analysis.terms import Metric

# What formats that know no tweak sets call the only one they have: it tells a reader nothing.
AS_RUN = "as-run"


@dataclass(frozen=True, slots=True)
class Mark:
    """A run's place in time; `started_utc` is ISO 8601 in UTC, so that its text sorts as the time does."""

    run_id: str
    started_utc: str
    origin: str
    commit: str | None


@dataclass(frozen=True, slots=True)
class Point:
    """A run's value of a series: the geometric mean over its blocks, in the metric's unit (a ratio, where the series is relative)."""

    mark: Mark
    value: float


@dataclass(frozen=True, slots=True)
class Series:
    """One metric of a workload under a tweak set on one kind of machine, in time order.

    `variant` tells workloads of one name with different parameters apart (`batch=16`), empty where there are none. `relative_to`: the
    tweak set of the same run and block that each value was divided by.
    """

    study: str
    workload: str
    variant: str
    tweakset: str
    metric: Metric
    machine: str
    points: tuple[Point, ...]
    relative_to: str | None = None

    @property
    def name(self) -> str:
        """What it is of, metric and machine aside."""
        variant = f" ({self.variant})" if self.variant else ""
        tweakset = f", {self.tweakset}" if self.tweakset != AS_RUN else ""
        relative = f" relative to {self.relative_to}" if self.relative_to else ""
        return f"{self.workload}{variant}{tweakset}{relative}"


@dataclass(frozen=True, slots=True)
class Change:
    """A lasting change of a series; `found.index` is the place of the first run on the new level.

    `gain`, `low` and `high` are fractions, above 0 is better whichever way the metric runs. `before` and `after` are the levels, in the
    metric's unit. `found` is the same on the logarithm of the values. `acknowledged` is the note of whoever knows of it.
    """

    series: Series
    found: ChangePoint
    gain: float
    low: float
    high: float
    before: float
    after: float
    acknowledged: str | None = None

    @property
    def last_before(self) -> Mark:
        """The last run on the old level."""
        return self.series.points[self.found.index - 1].mark

    @property
    def first(self) -> Mark:
        """The first run on the new level."""
        return self.series.points[self.found.index].mark

    @property
    def verdict(self) -> Literal["improved", "regressed"]:
        """In the words of all verdicts."""
        return "improved" if self.gain > 0 else "regressed"

    @property
    def runs_since(self) -> int:
        """How many runs there are on the new level and after it."""
        return len(self.series.points) - self.found.index


@dataclass(frozen=True, slots=True)
class Judged:
    """A series, its changes, and the p-value of there being none; `p_adjusted` is that for all series together (Benjamini-Hochberg).

    A series whose `p_adjusted` is above the level has no changes, whatever its own p-value says. `reason` says why a series was not
    judged, and then there are no p-values.
    """

    series: Series
    changes: tuple[Change, ...] = ()
    p: float | None = None
    p_adjusted: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class History:
    """What the runs say together. `refused` are files that could not be read, `notes` what a reader must know, one line each."""

    runs: int
    first_utc: str
    last_utc: str
    judged: tuple[Judged, ...]
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def changes(self) -> list[Change]:
        """All changes, the newest first, of equally new ones the largest first."""
        every = [change for one in self.judged for change in one.changes]
        every.sort(key=lambda change: abs(change.found.shift), reverse=True)
        every.sort(key=lambda change: change.first.started_utc, reverse=True)
        return every
