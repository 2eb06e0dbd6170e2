"""The gate's answer in sentences, the same on the terminal, in the step summary, in annotations and in JUnit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from analysis.wording import number

if TYPE_CHECKING:
    from .terms import Gate, Ruled

MOST_DECIMALS = 4


def headline(gate: Gate) -> str:
    """The gate in one sentence, the word that counts first."""
    count = {word: sum(one.ruling == word for one in gate.rulings) for word in ("regression", "undecided")}
    of = f"{len(gate.rulings)} contrast{'s' if len(gate.rulings) != 1 else ''}"
    if gate.ruling == "regression":
        return f"Regression: {count['regression']} of {of} slower than allowed."
    if gate.ruling == "pass":
        return f"Pass: {of} compared, none slower than allowed."
    if not gate.rulings:
        return "Undecided: nothing was compared, so nothing was shown."
    return f"Undecided: {count['undecided']} of {of} not shown to be within the limit, none shown to be beyond it."


def subject(one: Ruled) -> str:
    """What a ruling is about."""
    return f"{one.comparison.workload}, {one.comparison.tweakset}, {one.metric.name}"


def figures(one: Ruled) -> tuple[str, str, str]:
    """Write loss, its upper bound and the limit in percent, to as many decimals as show which is larger; empty where unknown."""
    known = [value for value in (one.loss, one.loss_high) if value is not None]
    for decimals in range(1, MOST_DECIMALS + 1):
        limit, *rounded = (round(100 * value, decimals) for value in (one.limit, *known))
        exact = math.isclose(limit, 100 * one.limit, rel_tol=1e-9)
        if exact and all(short != limit or value == one.limit for short, value in zip(rounded, known, strict=True)):
            break
    loss, high = ("" if value is None else number(value, decimals) for value in (one.loss, one.loss_high))
    return loss, high, number(one.limit, decimals).lstrip("+")


def units(one: Ruled) -> str:
    """How much was measured: `7/8` blocks complete in both arms, or `5+6` cells or runs where the arms have no blocks in common."""
    effect = one.comparison.primary
    if effect is not None and effect.design == "two-sample":
        return f"{effect.n_baseline}+{effect.n_candidate}"
    return f"{one.comparison.pairs}/{one.comparison.blocks}"
