"""The verdict table of one workload, as texts for its page: the same numbers as in the terminal, each reason in its row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.labels import absolute, label_of, short_names
from analysis.terms import Comparison, Effect, Metric, Run, Verdict
from analysis.verdict import NAMES, without_guards
from analysis.wording import number, probability, size

from .answers import is_control

TOGETHER = 2  # more workloads than this with one row each share a table


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """One comparison. `gains` stand in the order of the table's metrics; what could not be had is an empty text.

    `control` is true where neither arm asked for anything. `mark` begins what its marks in the pictures say.
    """

    name: str
    mark: str
    control: bool
    verdict: Verdict
    gains: tuple[str, ...]
    p: str
    mde: str
    units: str
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VerdictTable:
    """Comparisons beside each other. `metrics` are label and whether the verdict stands on it; `base` is what gains relate to.

    `heads` says what the names of the rows are: tweak sets, or workloads. `workload` is the whole name, where the title is a shorter one.
    """

    title: str
    workload: str
    heads: str
    base: str
    metrics: tuple[tuple[str, bool], ...]
    adjustment: str
    rows: tuple[VerdictRow, ...]


def tables(comparisons: Sequence[Comparison], run: Run | None = None) -> list[VerdictTable]:
    """Make the tables of some comparisons, in their order; `run` is that of all of them, None between runs.

    There is one for each study and workload; where each workload has but one row, as in other tools' files, one for all.
    """
    names = row_names(comparisons)
    short = short_names(run.workloads) if run else {}
    places = list(dict.fromkeys((comparison.study, comparison.workload) for comparison in comparisons))
    if len(places) == len(comparisons) > TOGETHER and len({comparison.primary_metric for comparison in comparisons}) == 1:
        title = f"{len(places)} workloads"
        named = [(short.get(comparison.workload, comparison.workload), comparison) for comparison in comparisons]
        return [_table(title, title, named, run)]
    return [
        _table(
            short.get(workload, workload),
            workload,
            [
                (names[id(comparison)], comparison)
                for comparison in comparisons
                if (comparison.study, comparison.workload) == (study, workload)
            ],
            run,
        )
        for study, workload in places
    ]


def row_names(comparisons: Sequence[Comparison]) -> dict[int, str]:
    """Name each comparison in its table, by `id`: its tweak set, or its run where there are several, or both where both differ."""
    runs = {comparison.candidate_run for comparison in comparisons}
    stems = {run: Path(run).stem if len({Path(other).stem for other in runs}) == len(runs) else run for run in runs}
    sets = {comparison.tweakset for comparison in comparisons}
    if len(runs) < 2:
        return {id(comparison): comparison.tweakset for comparison in comparisons}
    return {
        id(comparison): stems[comparison.candidate_run] + (f":{comparison.tweakset}" if len(sets) > 1 else "") for comparison in comparisons
    }


def _table(title: str, workload: str, named: Sequence[tuple[str, Comparison]], run: Run | None) -> VerdictTable:
    rows = [comparison for _, comparison in named]
    metrics = _metrics(rows)
    return VerdictTable(
        title=title,
        workload="" if workload == title else workload,
        heads="tweak set" if len({row.workload for row in rows}) == 1 else "workload",
        base=_base(rows, metrics),
        metrics=tuple((label_of(metric), metric == rows[0].primary_metric) for metric in metrics),
        adjustment=NAMES[rows[0].adjustment],
        rows=tuple(_row(name, comparison, metrics, run) for name, comparison in named),
    )


def _metrics(rows: Sequence[Comparison]) -> list[Metric]:
    """Throughput stands left in every table, whichever of the two is the primary."""
    second = next((row.second.metric for row in rows if row.second is not None), None)
    return sorted(
        (metric for metric in (rows[0].primary_metric, second) if metric), key=lambda metric: not metric.name.startswith("throughput")
    )


def _base(rows: Sequence[Comparison], metrics: Sequence[Metric]) -> str:
    """Name the baseline and its absolute values: a ratio without its base says nothing."""
    rows = without_guards(rows)
    if len({(row.baseline, row.workload) for row in rows}) > 1:
        return f"each against its like in {rows[0].baseline_run}"
    shown = [written for metric in metrics if (written := base_value(rows, metric))]
    where = "" if rows[0].baseline_run == rows[0].candidate_run else f" of {rows[0].baseline_run}"
    return f"{rows[0].baseline}{where}{': ' if shown else ''}{', '.join(shown)}"


def base_value(rows: Sequence[Comparison], metric: Metric) -> str | None:
    """Write the baseline's own value in a metric, with its unit; None where no comparison tells it."""
    effects = [effect for row in rows for effect in (row.primary, row.second) if effect is not None and effect.metric == metric]
    known = [effect.baseline for effect in effects]
    known += [row.observed_baseline for row in rows if row.primary_metric == metric and row.observed_baseline is not None]
    return absolute(metric, known[0]) if known else None


def _row(name: str, comparison: Comparison, metrics: Sequence[Metric], run: Run | None) -> VerdictRow:
    effects = {effect.metric: effect for effect in (comparison.primary, comparison.second) if effect is not None}
    gains = [_gain(effects.get(metric)) for metric in metrics]
    if comparison.observed is not None:
        gains[list(metrics).index(comparison.primary_metric)] = f"{number(comparison.observed)} (one run)"
    return VerdictRow(
        name=name,
        mark=f"{comparison.tweakset} · {comparison.workload}",
        control=run is not None and is_control(run, comparison),
        verdict=comparison.verdict,
        gains=tuple(gains),
        p="" if comparison.p_adjusted is None else probability(comparison.p_adjusted),
        mde="" if comparison.mde is None else size(comparison.mde),
        units=_units(comparison),
        why=tuple(_sentence(text, comparison) for text in (comparison.reason, *comparison.notes)),
    )


def _gain(effect: Effect | None) -> str:
    return "" if effect is None else f"{number(effect.gain)} ({number(effect.low)} to {number(effect.high)})"


def _units(comparison: Comparison) -> str:
    if comparison.observed is not None:
        return "1 and 1"
    effect = comparison.primary
    if effect is not None and effect.design == "two-sample":
        return f"{effect.n_baseline} and {effect.n_candidate}"
    return f"{comparison.pairs} of {comparison.blocks}"


def _sentence(text: str, comparison: Comparison) -> str:
    """Begin with a capital, but for a name: that is spelt as it is."""
    first = text.split(maxsplit=1)[0] if text.split() else ""
    return text if first in {comparison.tweakset, comparison.baseline} or not first.isalpha() else text[0].upper() + text[1:]
