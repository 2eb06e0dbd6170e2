"""Whether it matters where in its block a cell ran: block, arm and place in one model, by least squares on the log of the primary metric.

Arms run in random order, so that place falls on all of them alike; where it matters it is noise that could be had out, and a reason to
look at what the machine does as a block goes on (warmth, a cache, a neighbour).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from analysis.wording import probability
from control.t_test import ALPHA, t_quantile, t_tail

from .terms import Figure, Position
from .words import amount, ends

if TYPE_CHECKING:
    from collections.abc import Sequence

Cell = tuple[int, str, int, float]  # block, arm, place, value


def position(cells: Sequence[Cell], none: str) -> Position | None:
    """Fit block + arm + place; None where the cells are too few for it, or place cannot be told from block and arm."""
    blocks, arms = sorted({cell[0] for cell in cells}), sorted({cell[1] for cell in cells})
    if none not in arms or len(arms) < 2:
        return None
    others = [arm for arm in arms if arm != none]
    last = max(cell[2] for cell in cells) or 1
    levels = np.array([[block == number for number in blocks] + [arm == text for text in others] for block, arm, _, _ in cells], float)
    place = np.array([[at / last] for _, _, at, _ in cells], float)
    values = np.array([math.log(value) for *_, value in cells])
    model = np.hstack([levels, place])
    df = len(cells) - model.shape[1]
    if df < 1 or np.linalg.matrix_rank(model) < model.shape[1]:
        return None
    fitted, *_ = np.linalg.lstsq(model, values)
    without, *_ = np.linalg.lstsq(levels, values)
    rest = values - model @ fitted
    error = math.sqrt(float(rest @ rest) / df * float(np.linalg.inv(model.T @ model)[-1, -1]))
    if not error > 0:
        return None
    slope, half = float(fitted[-1]), t_quantile(1 - ALPHA / 2, df) * error
    p = 2 * t_tail(abs(slope) / error, df)
    at = slice(len(blocks), len(blocks) + len(others))
    moved = float(np.abs(np.expm1(fitted[at]) - np.expm1(without[at])).max())
    low, value, high = (math.expm1(end) for end in (slope - half, slope, slope + half))
    figure = Figure(value, low, high, len(cells), p)
    shown = f"{amount(figure)} {ends(figure)} from first place to last, p {probability(p)}, {len(cells)} cells"
    tells = f"with place in the model no overhead moves by more than {100 * moved:.2f} %"
    verb = "matters" if p < ALPHA else "is not shown to matter"
    return Position(figure, moved, f"Place in the block {verb}: {shown}; {tells}.")
