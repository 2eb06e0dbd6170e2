"""What a picture is drawn from: runs, what was compared in them, and their telemetry; and how it says that it cannot be drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from analysis import studies
from analysis.compare import compare
from analysis.labels import short_names
from analysis.telemetry import Missing, Series, series_of
from analysis.terms import Cell, Comparison, Metric, Run, TweakSet

T = TypeVar("T")
TIMELESS = frozenset({"iteration", "job", "point"})  # of such reports steps are stretches of time and say nothing of speed


class NothingToDraw(Exception):
    """The runs have nothing of what this picture shows; the message is the reason, a sentence without its full stop."""


def some(items: Iterable[T], reason: str) -> list[T]:
    """Return what there is to draw. Raises: NothingToDraw, with the reason, where that is nothing."""
    result = list(items)
    if not result:
        raise NothingToDraw(reason)
    return result


@dataclass(frozen=True, slots=True)
class Scene:
    """Runs and what is known of them.

    `series` has the samples of a cell under `series_key`; `series_missing` says why some have none. The rest is what studies have for
    their pictures (`for_pictures`): `effects` of keys and `overhead` of monitors by a run's origin, `io` and `streams` a run each.
    """

    runs: tuple[Run, ...]
    comparisons: tuple[Comparison, ...] = ()
    series: Mapping[str, Series] = field(default_factory=dict)
    series_missing: str | None = None
    effects: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    io: Sequence[Any] = ()
    overhead: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    streams: Sequence[Any] = ()

    def of_streams(self, field: str, where: Callable[[Any], object], reason: str) -> list[tuple[Run, Any]]:
        """Return what streams have under `field`, with their runs, `where` there is something to draw. Raises: NothingToDraw: `reason`."""
        return some(((stream.run, one) for stream in self.streams for one in getattr(stream, field) if where(one)), reason)


@dataclass(frozen=True, slots=True)
class Panel:
    """One workload of one study in one run, with its cells in the order they ran and its tweak sets, the baseline first."""

    run: Run
    study: str
    workload: str
    title: str
    metric: Metric
    cells: tuple[Cell, ...]
    arms: tuple[str, ...]


def scene_of(runs: Sequence[Run]) -> Scene:
    """Look at runs side by side: each compared within itself, with its telemetry where it can be read."""
    series: dict[str, Series] = {}
    missing: list[str] = []
    for run in runs:
        try:
            series |= {series_key(run, name): series for name, series in series_of(run).items()}
        except Missing as reason:
            missing.append(f"{run.run_id}: {reason}" if len(runs) > 1 else str(reason))
    comparisons = tuple(comparison for run in runs for comparison in compare(run))
    of_studies: dict[str, Any] = {}
    for study in studies.with_hook("for_pictures"):
        if own := [run for run in runs if study.tells_of(run)]:
            of_studies |= study.for_pictures(own)
    return Scene(tuple(runs), comparisons, series, "; ".join(missing) or None, **of_studies)


def series_key(run: Run, cell_id: str) -> str:
    """Name a cell across runs: cells of two runs of one study have equal ids."""
    return f"{run.origin}\n{cell_id}"


def panels_of(scene: Scene) -> list[Panel]:
    """Return what has measured cells, in the order of the runs and of their studies and workloads as they list them.

    Raises: NothingToDraw, where no cell of any run was measured.
    """
    result: list[Panel] = []
    for run in scene.runs:
        places: dict[tuple[str, str], list[Cell]] = {(study, workload): [] for study in run.studies for workload in run.workloads}
        for cell in sorted(run.cells, key=lambda cell: cell.order):
            places[cell.study, cell.workload].append(cell)
        known = {place: cells for place, cells in places.items() if any(cell.outcome == "measured" for cell in cells)}
        names = short_names(run.workloads)
        for (study, workload), cells in known.items():
            title = f"{names[workload]} ({study})" if sum(name == workload for _, name in known) > 1 else names[workload]
            if len(scene.runs) > 1 and title != run.run_id:
                title = f"{title} · run {run.run_id}"
            arms = tuple(name for name in in_order(run, run.tweaksets.values()) if any(cell.tweakset == name for cell in cells))
            metric = run.workloads[workload].primary or run.studies[study].primary
            result.append(Panel(run, study, workload, title, metric, tuple(cells), arms))
    return some(result, "no cell was measured")


def in_order(run: Run, tweaksets: Iterable[TweakSet]) -> list[str]:
    """Names of tweak sets: the baseline first, then what else leaves the machine as it is, then the rest as the run lists them."""
    return [one.name for one in sorted(tweaksets, key=lambda tweakset: (tweakset.name != run.baseline, changes_something(tweakset)))]


def changes_something(tweakset: TweakSet) -> bool:
    """Whether a tweak set asks for anything, or is a monitor: the two stocks are neither."""
    return bool(tweakset.requested or tweakset.scripts or tweakset.monitor)


def measured(panel: Panel, arm: str) -> list[Cell]:
    """Return the measured cells of one tweak set, in the order they ran."""
    return [cell for cell in panel.cells if cell.tweakset == arm and cell.outcome == "measured"]


def comparison_of(scene: Scene, panel: Panel, arm: str) -> Comparison | None:
    """Find what was said of one tweak set; None for the baseline itself."""
    place = panel.run.origin, panel.study, panel.workload, arm
    comparisons = (one for one in scene.comparisons if (one.candidate_run, one.study, one.workload, one.tweakset) == place)
    return next(comparisons, None)


def contrasts_of(scene: Scene, panel: Panel) -> list[Comparison]:
    """Return what was said of a workload's tweak sets."""
    return [comparison for arm in panel.arms if (comparison := comparison_of(scene, panel, arm))]
