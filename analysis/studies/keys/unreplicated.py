"""A two-level design of which nothing ran twice: its contrasts are the noise by which they are judged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from analysis.terms import NotComparable

from .frame import with_interval
from .lenth import FEWEST, null, pse
from .terms import Lenth, Term

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .frame import Frame
    from .model import Fit, Floats


def judged_by_each_other(made: Frame, done: Fit, columns: Floats, terms: Sequence[Term]) -> tuple[Lenth | None, list[Term]]:
    """Judge contrasts by each other. Those that no term uses up complete the design: noise as good as any."""
    first = made.base.shape[1]
    inverse = done.inverse[first:, first:]
    scale = np.sqrt(np.diag(inverse))
    ratios = np.asarray(done.beta[first:]) / scale
    correlation = inverse / np.outer(scale, scale)
    rest = _completing(columns)
    spare = rest.T @ made.y
    every = np.concatenate([ratios, spare])
    if len(every) < FEWEST:
        return None, list(terms)
    whole = np.eye(len(every))
    whole[: len(ratios), : len(ratios)] = correlation
    nothing = null(whole)
    error = float(pse(every))
    if error <= 0:
        raise NotComparable("most contrasts are exactly nought: these are no measurements.")
    # On the scale of main effects: twice the coefficient of an orthogonal contrast of all cells.
    unit = 2 * float(np.median(scale))
    found = []
    for term, size, ratio in zip(terms, scale, ratios, strict=True):
        p, p_adjusted = nothing.chances(abs(float(ratio)) / error)
        times = 2.0 ** len(term.factors) * float(size) * error
        judged = with_interval(term, nothing.alone * times, made.seen.scale == "log")
        found.append(
            replace(judged, se=times, p=p, p_adjusted=p_adjusted, adjustment="lenth", family=len(every), mde=nothing.needed * times)
        )
    labels = [*(term.label for term in terms), *[""] * len(spare)]
    sizes = [*(2 * float(beta) for beta in done.beta[first:]), *(unit * float(one) for one in spare)]
    return Lenth(
        unit * error, unit * error * nothing.alone, unit * error * nothing.together, len(every), tuple(zip(labels, sizes, strict=True))
    ), found


def _completing(columns: Floats) -> Floats:
    """Orthonormal contrasts that the columns leave over: shape (rows, rows - columns)."""
    rows, used = columns.shape
    q, _ = np.linalg.qr(np.column_stack([columns, np.eye(rows)]))
    made: Floats = q[:, used:rows]
    return made
