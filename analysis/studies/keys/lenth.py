"""Designs of which nothing was run twice: Lenth's pseudo standard error (Technometrics 31, 1989), with margins simulated for the design.

Where few effects are real, most contrasts show the noise alone. Their median is hardly moved by the few that do not, so it can serve as
the error: s0 = 1.5 · median |c|; PSE = 1.5 · median of those |c| below 2.5 s0. Lenth's own margins (a t with m/3 degrees of freedom) call
too little alone and too much together; here both are quantiles of 100,000 simulated designs without any effect, as Ye & Hamada
(2000) tabulate them. Simulating the estimates of this very design, lost cells included, keeps them right where it is not orthogonal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from analysis.terms import NotComparable
from control.t_test import ALPHA, POWER

from .frame import with_interval
from .terms import Lenth, Term

if TYPE_CHECKING:
    import numpy.typing as npt

    from .frame import Floats

    Singles = npt.NDArray[np.float32]
    from collections.abc import Sequence

    from .frame import Frame, FrameFit


DRAWS = 100_000
CHUNK = 10_000
FEWEST = 3
REAL = 1e9  # standard errors


def pse(contrasts: Floats) -> Floats:
    """Pseudo standard error of contrasts that scatter alike, along the last axis."""
    size = np.abs(contrasts)
    s0 = 1.5 * np.median(size, axis=-1, keepdims=True)
    inner = np.where(size < 2.5 * s0, size, np.nan)
    # All of them nought: nothing lies below 0, and the error is 0 as well.
    inner[np.isnan(inner).all(axis=-1)] = 0
    result: Floats = 1.5 * np.nanmedian(inner, axis=-1)
    return result


@dataclass(frozen=True)
class Null:
    """What designs in which nothing has an effect show, in pseudo standard errors.

    `every` and `largest` are the ratios |c| / PSE of all contrasts, and of the largest of each design, sorted. Beyond `alone` one in 20 of
    the former lies, beyond `together` one in 20 of the latter. An effect of `needed` goes beyond `together` 4 times in 5.
    """

    every: Singles
    largest: Singles
    alone: float
    together: float
    needed: float

    def chances(self, result: float) -> tuple[float, float]:
        """How often so large a ratio comes of nothing, for one contrast and for the largest of all: (1 + hits) / (1 + draws), never 0."""
        alone, together = (
            float((1 + len(ratios) - np.searchsorted(ratios, np.float32(result))) / (1 + len(ratios)))
            for ratios in (self.every, self.largest)
        )
        return alone, together


def null(correlation: Floats) -> Null:
    """Simulate a design whose estimates hang together so (the identity where it is orthogonal).

    Seeded: the same design has the same margins.
    """
    contrasts = len(correlation)
    if np.allclose(correlation, np.eye(contrasts), atol=1e-9):
        return _independent(contrasts)
    return _draw(np.asarray(np.linalg.cholesky(correlation + 1e-12 * np.eye(contrasts)), np.float64))


@lru_cache(maxsize=8)
def _independent(contrasts: int) -> Null:
    return _draw(np.eye(contrasts, dtype=np.float64))


def _draw(root: Floats) -> Null:
    rng = np.random.default_rng(1989)
    parts, errors = [], []
    for _ in range(DRAWS // CHUNK):
        drawn = rng.standard_normal((CHUNK, len(root))) @ root.T
        parts.append((np.abs(drawn) / pse(drawn)[:, None]).astype(np.float32))
        # What one real effect leaves to judge it by: itself it is too large to count.
        errors.append(np.stack([pse(np.column_stack([np.full(CHUNK, REAL), drawn[:, 1:]])), drawn[:, 0]]))
    ratios = np.concatenate(parts)
    every, largest = np.sort(ratios, axis=None), np.sort(ratios.max(axis=1))
    alone, together = (float(np.quantile(one, 1 - ALPHA)) for one in (every, largest))
    error, chance = np.concatenate(errors, axis=1)
    return Null(every, largest, alone, together, float(np.quantile(together * error - chance, POWER)))


def judged_by_each_other(made: Frame, done: FrameFit, columns: Floats, terms: Sequence[Term]) -> tuple[Lenth | None, list[Term]]:
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
    result = []
    for term, size, ratio in zip(terms, scale, ratios, strict=True):
        p, p_adjusted = nothing.chances(abs(float(ratio)) / error)
        times = 2.0 ** len(term.factors) * float(size) * error
        judged = with_interval(term, nothing.alone * times, made.seen.scale == "log")
        result.append(
            replace(judged, se=times, p=p, p_adjusted=p_adjusted, adjustment="lenth", family=len(every), mde=nothing.needed * times)
        )
    labels = [*(term.label for term in terms), *[""] * len(spare)]
    sizes = [*(2 * float(beta) for beta in done.beta[first:]), *(unit * float(one) for one in spare)]
    return Lenth(
        unit * error, unit * error * nothing.alone, unit * error * nothing.together, len(every), tuple(zip(labels, sizes, strict=True))
    ), result


def _completing(columns: Floats) -> Floats:
    """Orthonormal contrasts that the columns leave over: shape (rows, rows - columns)."""
    rows, used = columns.shape
    q, _ = np.linalg.qr(np.column_stack([columns, np.eye(rows)]))
    made: Floats = q[:, used:rows]
    return made
