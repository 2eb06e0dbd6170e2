"""The verdict table of one workload, as texts for its page: the same numbers as in the terminal, each reason in its row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.labels import absolute, label_of
from analysis.verdict import NAMES, without_guards
from analysis.wording import number, probability, size

from .answers import is_control

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.terms import Comparison, Effect, Metric, Run, Verdict

TOGETHER = 2  # more workloads than this with one row each share a table


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. `gains` stand in the order of the table's metrics; what could not be had is an empty text.

    `control` is true where neither arm asked for anything.
    """

    name: str
    control: bool
    verdict: Verdict
    gains: tuple[str, ...]
    p: str
    mde: str
    units: str
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Comparisons beside each other. `metrics` are label and whether the verdict stands on it; `base` is what gains relate to.

    `heads` says what the names of the rows are: tweak sets, or workloads.
    """

    title: str
    heads: str
    base: str
    metrics: tuple[tuple[str, bool], ...]
    adjustment: str
    rows: tuple[Row, ...]


def tables(comparisons: Sequence[Comparison], run: Run | None = None) -> list[Table]:
    """Make the tables of some comparisons, in their order; `run` is that of all of them, None between runs.

    There is one for each study and workload; where each workload has but one row, as in other tools' files, one for all.
    """
    names = row_names(comparisons)
    places = list(dict.fromkeys((one.study, one.workload) for one in comparisons))
    if len(places) == len(comparisons) > TOGETHER and len({one.primary_metric for one in comparisons}) == 1:
        return [_table(f"{len(places)} workloads", [(one.workload, one) for one in comparisons], run)]
    return [
        _table(workload, [(names[id(one)], one) for one in comparisons if (one.study, one.workload) == (study, workload)], run)
        for study, workload in places
    ]


def row_names(comparisons: Sequence[Comparison]) -> dict[int, str]:
    """Name each comparison in its table, by `id`: its tweak set, or its run where there are several, or both where both differ."""
    runs = {one.candidate_run for one in comparisons}
    stems = {run: Path(run).stem if len({Path(other).stem for other in runs}) == len(runs) else run for run in runs}
    sets = {one.tweakset for one in comparisons}
    if len(runs) < 2:
        return {id(one): one.tweakset for one in comparisons}
    return {id(one): stems[one.candidate_run] + (f":{one.tweakset}" if len(sets) > 1 else "") for one in comparisons}


def _table(title: str, named: Sequence[tuple[str, Comparison]], run: Run | None) -> Table:
    rows = [one for _, one in named]
    metrics = _metrics(rows)
    return Table(
        title=title,
        heads="tweak set" if len({one.workload for one in rows}) == 1 else "workload",
        base=_base(rows, metrics),
        metrics=tuple((label_of(metric), metric == rows[0].primary_metric) for metric in metrics),
        adjustment=NAMES[rows[0].adjustment],
        rows=tuple(_row(name, one, metrics, run) for name, one in named),
    )


def _metrics(rows: Sequence[Comparison]) -> list[Metric]:
    """Throughput stands left in every table, whichever of the two is the primary."""
    second = next((one.second.metric for one in rows if one.second is not None), None)
    return sorted((metric for metric in (rows[0].primary_metric, second) if metric), key=lambda one: not one.name.startswith("throughput"))


def _base(rows: Sequence[Comparison], metrics: Sequence[Metric]) -> str:
    """Name the baseline and its absolute values: a ratio without its base says nothing."""
    rows = without_guards(rows)
    if len({(one.baseline, one.workload) for one in rows}) > 1:
        return f"each against its like in {rows[0].baseline_run}"
    shown = [written for metric in metrics if (written := base_value(rows, metric))]
    where = "" if rows[0].baseline_run == rows[0].candidate_run else f" of {rows[0].baseline_run}"
    return f"{rows[0].baseline}{where}{': ' if shown else ''}{', '.join(shown)}"


def base_value(rows: Sequence[Comparison], metric: Metric) -> str | None:
    """Write the baseline's own value in a metric, with its unit; None where no comparison tells it."""
    effects = [effect for one in rows for effect in (one.primary, one.second) if effect is not None and effect.metric == metric]
    known = [effect.baseline for effect in effects]
    known += [one.observed_baseline for one in rows if one.primary_metric == metric and one.observed_baseline is not None]
    return absolute(metric, known[0]) if known else None


def _row(name: str, one: Comparison, metrics: Sequence[Metric], run: Run | None) -> Row:
    effects = {effect.metric: effect for effect in (one.primary, one.second) if effect is not None}
    gains = [_gain(effects.get(metric)) for metric in metrics]
    if one.observed is not None:
        gains[list(metrics).index(one.primary_metric)] = f"{number(one.observed)} (one run)"
    return Row(
        name=name,
        control=run is not None and is_control(run, one),
        verdict=one.verdict,
        gains=tuple(gains),
        p="" if one.p_adjusted is None else probability(one.p_adjusted),
        mde="" if one.mde is None else size(one.mde),
        units=_units(one),
        why=tuple(_sentence(text, one) for text in (one.reason, *one.notes)),
    )


def _gain(effect: Effect | None) -> str:
    return "" if effect is None else f"{number(effect.gain)} ({number(effect.low)} to {number(effect.high)})"


def _units(one: Comparison) -> str:
    if one.observed is not None:
        return "1 and 1"
    effect = one.primary
    if effect is not None and effect.design == "two-sample":
        return f"{effect.n_baseline} and {effect.n_candidate}"
    return f"{one.pairs} of {one.blocks}"


def _sentence(text: str, one: Comparison) -> str:
    """Begin with a capital, but for a name: that is spelt as it is."""
    first = text.split(maxsplit=1)[0] if text.split() else ""
    return text if first in {one.tweakset, one.baseline} or not first.isalpha() else text[0].upper() + text[1:]
