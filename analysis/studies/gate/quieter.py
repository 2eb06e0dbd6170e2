"""Quieter metrics: if the gate can't tell, suggest a metric with far less scatter for next time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from analysis.metrics import COLUMNS
from control.names import first_few, undigested

if TYPE_CHECKING:
    from analysis.terms import Comparison, Effect, Run

    from .gate import Ruled

# A metric with a third of the scatter needs a ninth of the runs.
TIMES_QUIETER = 3.0
OF_TIME = ("step_time_", "throughput_")
SPOKEN = {name: word for word, name in COLUMNS.items()}
ADVICE = (
    "declare it for the next runs (--metric {}); choosing a metric by these results would bias "
    "them."
)


def recorded(runs: Iterable[Run]) -> tuple[str, ...]:
    """Return the metrics of speed that any cell has."""
    names = {name for run in runs for cell in run.cells for name in cell.metrics}
    return tuple(sorted(name for name in names if name.startswith(OF_TIME)))


def quieter(undecided: Sequence[Ruled], comparisons: Iterable[Comparison]) -> list[str]:
    """Write a line per metric that is `TIMES_QUIETER` times quieter than a judged one."""
    effects = {_place(comparison): comparison.others for comparison in comparisons}
    found: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for ruled in undecided:
        judged = next(
            (one for one in _all_effects(ruled.comparison) if one.metric == ruled.metric), None
        )
        if judged is None:
            continue
        others = effects.get(_place(ruled.comparison), ())
        quiet = [effect for effect in others if judged.log_se >= TIMES_QUIETER * effect.log_se > 0]
        if not quiet:
            continue
        best = min(quiet, key=lambda effect: (effect.metric.name not in SPOKEN, effect.log_se))
        times = judged.log_se / best.log_se
        found.setdefault((best.metric.name, ruled.metric.name), []).append(
            (times, undigested(ruled.comparison.workload))
        )
    return [_line(best, judged, places) for (best, judged), places in found.items()]


def _line(best: str, judged: str, places: Sequence[tuple[float, str]]) -> str:
    times = sorted(time for time, _ in places)
    span = f"{times[0]:.0f}" if len(times) == 1 else f"{times[0]:.0f} to {times[-1]:.0f}"
    names = first_few([name for _, name in places], 2)
    return (
        f"{names}: {best} scatters {span} times less than {judged}; "
        f"{ADVICE.format(SPOKEN.get(best, best))}"
    )


def _place(comparison: Comparison) -> tuple[str, str, str]:
    return comparison.study, comparison.workload, comparison.tweakset


def _all_effects(comparison: Comparison) -> list[Effect]:
    return [
        one
        for one in (comparison.primary, comparison.second, *comparison.others)
        if one is not None
    ]
