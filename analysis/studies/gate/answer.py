"""The gate's answer: the word first, then what it rests on, what is not a pass first; and its sentences for CI systems."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from analysis.answer import Answer, Column, Line, Section, Table, Word
from analysis.labels import label_of
from analysis.wording import number

if TYPE_CHECKING:
    from analysis.answer import Tone

    from .gate import Gate, Ruled, Ruling
    from .promote import Promotion

TONES: dict[Ruling, Tone] = {"regression": "bad", "undecided": "open", "pass": "good"}
SHOWN = 40
MOST_DECIMALS = 4


def headline(gate: Gate) -> str:
    """The gate in one sentence, the word that counts first."""
    count = {word: sum(ruling.ruling == word for ruling in gate.rulings) for word in ("regression", "undecided")}
    of = f"{len(gate.rulings)} contrast{'s' if len(gate.rulings) != 1 else ''}"
    if gate.ruling == "regression":
        return f"Regression: {count['regression']} of {of} slower than allowed."
    if gate.ruling == "pass":
        return f"Pass: {of} compared, none slower than allowed."
    if not gate.rulings:
        return "Undecided: nothing was compared, so nothing was shown."
    return f"Undecided: {count['undecided']} of {of} not shown to be within the limit, none shown to be beyond it."


def answer(gate: Gate, promotion: Promotion | None = None, target: str = "") -> Answer:
    """Make the answer; `promotion` says whether the candidate became the next baseline, at `target`."""
    ordered = [ruling for word in TONES for ruling in gate.rulings if ruling.ruling == word]
    marks: dict[str, int] = {}
    rows = [_row(ruling, marks) for ruling in ordered[:SHOWN]]
    columns = (
        *(Column(name, left=True) for name in ("workload", "tweak set", "metric")),
        Column("n"),
        *(Column(name) for name in ("loss\n%", "at most\n%", "limit\n%")),
        Column("ruling", left=True),
        Column("see", left=True),
    )
    notes = [Line(line, f"({mark})") for line, mark in marks.items()]
    if len(ordered) > SHOWN:
        notes.insert(0, Line(f"… and {len(ordered) - SHOWN} more, which stand in --json and --junit."))
    if rows:
        notes.append(Line("loss: how much slower the candidate is, below 0 it is faster; at most: its one-sided 95 % upper bound."))
    return Answer(
        headline(gate),
        findings=[Line(f"{gate.candidate} against {gate.baseline}"), *(_of_promotion(promotion, target) if promotion else ())],
        sections=[Section("", [*([Table(columns, rows)] if rows else []), *notes])] if rows or notes else [],
        warnings=gate.warnings,
    )


def _row(ruled: Ruled, marks: dict[str, int]) -> list[object]:
    lines = [] if ruled.ruling == "pass" else [ruled.reason]
    see = ",".join(str(marks.setdefault(line, len(marks) + 1)) for line in (*lines, *ruled.comparison.notes))
    names = (ruled.comparison.workload, ruled.comparison.tweakset, label_of(ruled.metric))
    return [*names, units(ruled), *(figure or None for figure in figures(ruled)), Word(ruled.ruling, TONES[ruled.ruling]), see or None]


def _of_promotion(promotion: Promotion, target: str) -> list[Line]:
    if promotion.promoted_to is None:
        return [Line(f"Not promoted to {target}: {promotion.not_promoted}")]
    without = f" without its telemetry: {promotion.without_telemetry}" if promotion.without_telemetry else "."
    return [Line(f"Promoted to {promotion.promoted_to}{without}")]


def subject(ruled: Ruled) -> str:
    return f"{ruled.comparison.workload}, {ruled.comparison.tweakset}, {ruled.metric.name}"


def figures(ruled: Ruled) -> tuple[str, str, str]:
    """Write loss, its upper bound and the limit in percent, to as many decimals as show which is larger; empty where unknown."""
    known = [value for value in (ruled.loss, ruled.loss_high) if value is not None]
    for decimals in range(1, MOST_DECIMALS + 1):
        limit, *rounded = (round(100 * value, decimals) for value in (ruled.limit, *known))
        exact = math.isclose(limit, 100 * ruled.limit, rel_tol=1e-9)
        if exact and all(short != limit or value == ruled.limit for short, value in zip(rounded, known, strict=True)):
            break
    loss, high = ("" if value is None else number(value, decimals) for value in (ruled.loss, ruled.loss_high))
    return loss, high, number(ruled.limit, decimals).lstrip("+")


def units(ruled: Ruled) -> str:
    """How much was measured: `7/8` blocks complete in both arms, or `5+6` cells or runs where the arms have no blocks in common."""
    effect = ruled.comparison.primary
    if effect is not None and effect.design == "two-sample":
        return f"{effect.n_baseline}+{effect.n_candidate}"
    return f"{ruled.comparison.pairs}/{ruled.comparison.blocks}"
