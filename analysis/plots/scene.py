"""The data of pictures: runs, comparisons and telemetry; and why a picture cannot be drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from analysis import studies
from analysis.compare import compare
from analysis.labels import short_names
from analysis.telemetry import Missing, Series, series_of
from analysis.terms import Cell, Comparison, Metric, Run, SavedTweakSet

T = TypeVar("T")
TIMELESS = frozenset({"iteration", "job", "point"})  # steps of such reports are intervals


class NothingToDraw(Exception):
    """The runs have no data for this picture; the message is the reason, without a full stop."""


def some(items: Iterable[T], reason: str) -> list[T]:
    """Return the items to draw. Raises: NothingToDraw, with the reason, if there are none."""
    result = list(items)
    if not result:
        raise NothingToDraw(reason)
    return result


@dataclass(frozen=True, slots=True)
class Scene:
    """Runs with their comparisons, telemetry and studies' data.

    `series` has the samples of a cell under `series_key`; `series_missing` is the reason why some
    have none. The rest is what studies provide for their pictures (`for_pictures`): `effects` of
    keys and `overhead` of monitors by a run's origin, `io` and `streams` one per run.
    """

    runs: tuple[Run, ...]
    comparisons: tuple[Comparison, ...] = ()
    series: Mapping[str, Series] = field(default_factory=dict)
    series_missing: str | None = None
    effects: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    io: Sequence[Any] = ()
    overhead: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    streams: Sequence[Any] = ()

    def of_streams(
        self, field: str, where: Callable[[Any], object], reason: str
    ) -> list[tuple[Run, Any]]:
        """Return a field's items that satisfy `where`, each with its run. Raises: NothingToDraw."""
        return some(
            (
                (stream.run, one)
                for stream in self.streams
                for one in getattr(stream, field)
                if where(one)
            ),
            reason,
        )


@dataclass(frozen=True, slots=True)
class Panel:
    """One workload of a study in a run: cells in run order and tweak sets, the baseline first."""

    run: Run
    study: str
    workload: str
    title: str
    metric: Metric
    cells: tuple[Cell, ...]
    arms: tuple[str, ...]


def scene_of(runs: Sequence[Run]) -> Scene:
    """Read runs side by side: each with its own comparisons, and its telemetry if readable."""
    series: dict[str, Series] = {}
    missing: list[str] = []
    for run in runs:
        try:
            series |= {series_key(run, name): series for name, series in series_of(run).items()}
        except Missing as reason:
            missing.append(f"{run.run_id}: {reason}" if len(runs) > 1 else str(reason))
    comparable = (run for run in runs if run.baseline in run.tweaksets)
    comparisons = tuple(comparison for run in comparable for comparison in compare(run))
    of_studies: dict[str, Any] = {}
    for study in studies.with_hook("for_pictures"):
        if own := [run for run in runs if study.tells_of(run)]:
            of_studies |= study.for_pictures(own)
    return Scene(tuple(runs), comparisons, series, "; ".join(missing) or None, **of_studies)


def series_key(run: Run, cell_id: str) -> str:
    """Identify a cell across runs: cells of two runs of one study have equal ids."""
    return f"{run.origin}\n{cell_id}"


def panels_of(scene: Scene) -> list[Panel]:
    """Return panels with measured cells, in the order of the runs, their studies and workloads.

    Raises: NothingToDraw, if no cell of any run was measured.
    """
    result: list[Panel] = []
    for run in scene.runs:
        places: dict[tuple[str, str], list[Cell]] = {
            (study, workload): [] for study in run.studies for workload in run.workloads
        }
        for cell in sorted(run.cells, key=lambda cell: cell.order):
            places[cell.study, cell.workload].append(cell)
        known = {
            place: cells
            for place, cells in places.items()
            if any(cell.outcome == "measured" for cell in cells)
        }
        names = short_names(run.workloads)
        for (study, workload), cells in known.items():
            title = (
                f"{names[workload]} ({study})"
                if sum(name == workload for _, name in known) > 1
                else names[workload]
            )
            if len(scene.runs) > 1 and title != run.run_id:
                title = f"{title} · run {run.run_id}"
            arms = tuple(
                name
                for name in in_order(run, run.tweaksets.values())
                if any(cell.tweakset == name for cell in cells)
            )
            metric = run.workloads[workload].primary or run.studies[study].primary
            result.append(Panel(run, study, workload, title, metric, tuple(cells), arms))
    return some(result, "no cell was measured")


def in_order(run: Run, tweaksets: Iterable[SavedTweakSet]) -> list[str]:
    """Return tweak sets in order: the baseline, other untouched arms, then the rest as listed."""
    return [
        one.name
        for one in sorted(
            tweaksets,
            key=lambda tweakset: (tweakset.name != run.baseline, changes_something(tweakset)),
        )
    ]


def changes_something(tweakset: SavedTweakSet) -> bool:
    """Return whether a tweak set sets anything, or is a monitor: the two stocks do neither."""
    return bool(tweakset.requested or tweakset.scripts or tweakset.monitor)


def measured(panel: Panel, arm: str) -> list[Cell]:
    """Return the measured cells of one tweak set, in the order they ran."""
    return [cell for cell in panel.cells if cell.tweakset == arm and cell.outcome == "measured"]


def comparison_of(scene: Scene, panel: Panel, arm: str) -> Comparison | None:
    """Return the comparison of one tweak set; None for the baseline itself."""
    place = panel.run.origin, panel.study, panel.workload, arm
    comparisons = (
        one
        for one in scene.comparisons
        if (one.candidate_run, one.study, one.workload, one.tweakset) == place
    )
    return next(comparisons, None)


def contrasts_of(scene: Scene, panel: Panel) -> list[Comparison]:
    """Return the comparisons of a workload's tweak sets."""
    return [comparison for arm in panel.arms if (comparison := comparison_of(scene, panel, arm))]
