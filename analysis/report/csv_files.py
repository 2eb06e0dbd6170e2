"""The data behind a report as files for other programs: every cell, every comparison, and every effect of a key.

Full precision; the names carry the units; what is missing is an empty field.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from analysis.terms import Cell, Comparison, Effect, Run

if TYPE_CHECKING:
    from analysis.studies.keys.terms import Effects

Value = str | int | float | bool | None
Rows = list[dict[str, Value]]

# A spreadsheet would take a text that begins so for a formula and run it; an apostrophe keeps it a text.
EXACT = 2.0**53  # below it a float has every whole number
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def cells(runs: Iterable[Run]) -> Rows:
    """One row a cell, measured or not, in the order they ran: all metrics and all telemetry summaries."""
    return [_cell(run, cell) for run in runs for cell in run.cells]


def _cell(run: Run, cell: Cell) -> dict[str, Value]:
    known: dict[str, Value] = {
        "run_id": run.run_id,
        "order": cell.order,
        "cell": cell.id,
        "study": cell.study,
        "workload": cell.workload,
        "tweakset": cell.tweakset,
        "block": cell.block,
        "outcome": cell.outcome,
        "reason": cell.reason,
        "started_utc": cell.started_utc,
        "duration_s": cell.duration_s,
        "warmup_steps": cell.steps.warmup if cell.steps else None,
        "measured_steps": len(cell.steps.wall_s) - cell.steps.warmup if cell.steps else None,
    }
    return known | dict(cell.metrics) | {f"telemetry.{name}": value for name, value in cell.telemetry.items()}


def comparisons(result: Iterable[Comparison]) -> Rows:
    """One row a comparison; gains, margins and the detectable effect are fractions, above 0 is faster."""
    return [
        {
            "baseline_run": comparison.baseline_run,
            "candidate_run": comparison.candidate_run,
            "study": comparison.study,
            "workload": comparison.workload,
            "baseline": comparison.baseline,
            "tweakset": comparison.tweakset,
            "verdict": comparison.verdict,
            "reason": comparison.reason,
            "blocks_paired": comparison.pairs,
            "blocks_planned": comparison.blocks,
            "margin_fraction": comparison.margin,
            "p_adjusted": comparison.p_adjusted,
            "adjustment": comparison.adjustment,
            "family": comparison.family,
            "mde_fraction": comparison.mde,
            "observed_fraction": comparison.observed,
            "untouched": comparison.untouched,
            "notes": " ".join(comparison.notes),
            **_effect("primary", comparison.primary),
            **_effect("second", comparison.second),
        }
        for comparison in result
    ]


def _effect(place: str, effect: Effect | None) -> dict[str, Value]:
    if effect is None:
        return {}
    known: dict[str, Value] = {
        "metric": effect.metric.name,
        "baseline_value": effect.baseline,
        "gain_fraction": effect.gain,
        "low95_fraction": effect.low,
        "high95_fraction": effect.high,
        "low90_fraction": effect.low90,
        "high90_fraction": effect.high90,
        "log_sd": effect.log_sd,
        "p": effect.p,
        "p_equivalent": effect.p_equivalent,
    }
    return {f"{place}_{name}": value for name, value in known.items()}


def effects(result: Sequence[tuple[str, Effects]]) -> Rows:
    """One row an effect for other programs; each with the id of its run. Gains are fractions, above 0 is faster."""
    return [
        {
            "run_id": run_id,
            "study": one.observed.study,
            "workload": one.observed.workload,
            "tweakset": one.observed.profile,
            "design": one.observed.design,
            "metric": one.observed.metric,
            "effect": " × ".join(term.factors),
            "means": term.means,
            "level": term.level,
            "verdict": term.verdict,
            "gain_fraction": term.gain,
            "low95_fraction": term.gain_low,
            "high95_fraction": term.gain_high,
            "log_effect": term.effect,
            "log_se": term.se,
            "df": term.df,
            "p": term.p,
            "p_adjusted": term.p_adjusted,
            "adjustment": term.adjustment,
            "family": term.family,
            "share_of_variation": term.share,
            "mde_log": term.mde,
            "aliases": "; ".join(term.aliases),
        }
        for run_id, one in result
        for term in one.terms
    ]


def as_csv(rows: Rows) -> str:
    """Write rows as CSV (RFC 4180) with one header for all; columns in order of first use."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(name for row in rows for name in row)), restval="")
    writer.writeheader()
    writer.writerows({name: field(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def field(value: object) -> object:
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return int(value)  # the same number, and a report is two letters shorter for each
    return "" if value is None else value
