"""A step's time in an arm that took turns with others, cleared of what the machine did to all of them alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

HUBER = 1.345  # standard deviations: 95 % as efficient as the mean where noise is normal
NORMAL_MAD = 1.4826  # what the median absolute deviation of normal noise is multiplied with to be its standard deviation
SWEEPS, SETTLED = 200, 1e-5  # at most so many, and no more once one moves nothing by a thousandth of a per cent
SMALLEST = 1e-12
MOST_CORES = 1.0  # of others in a slice: what they use on further CPUs holds up the same steps
HALF = 0.5  # of a slice: where others took more of it, by how much they held it up is no longer to be told
# Slow steps count a third of fast ones where nobody else uses the CPUs: what is left only ever slows a step. The more others use, the more
# alike they count, since few steps are free of them then; from so many cores on all do, and where nobody saw what others used.
FAST, ALIKE = 0.25, 0.5
BUSY_CORES = 0.2


def round_adjusted_s(slices_s: Sequence[Sequence[Sequence[float]]], others_cpu_s: Sequence[Sequence[float | None]] = ()) -> list[float]:
    """One step time an arm, of step times by arm, round and place in the slice (arms × rounds × places, seconds).

    Steps of one round and one place stand beside each other. Their logs are an arm's value plus a level that all arms share: what the
    machine did then, and what that place is (a first step after a pause, one that writes a checkpoint). Both are fitted robustly, so that
    single slow steps do not move them, and to the faster steps rather than the slower. Places count by their share of the time; the result
    is the mean step time of all arms times what an arm differs from it.

    `others_cpu_s` is what others used of the CPUs in each slice (arms × rounds, seconds; None where that was not seen). By how much a step
    is slower where they use more is one slope for the whole block, and is taken out too: who gets more of them is a matter of chance.
    Nobody makes a step faster by using the CPUs, and a second that others take holds it up by about a second at most: the rest is noise.
    """
    import numpy as np

    times_s = np.asarray(slices_s)
    shift, asymmetry = np.zeros(times_s.shape[:2]), ALIKE
    if others_cpu_s:
        whole_s = times_s.sum(axis=2)
        cores = np.minimum(np.array(others_cpu_s, dtype=float) / whole_s, MOST_CORES)
        if not np.isnan(cores).all():
            shift = _slowed(whole_s, cores)
            asymmetry = FAST + (ALIKE - FAST) * min(float(np.nanmean(cores)) / BUSY_CORES, 1.0)
    logs = np.moveaxis(np.log(times_s), 2, 0) - shift
    typical_s = np.exp(logs.mean(axis=(1, 2)))
    values_s: list[float] = (typical_s.mean() * np.exp(typical_s @ additive(logs, asymmetry) / typical_s.sum())).tolist()
    return values_s


def _slowed(slices_s: Array, cores: Array) -> Array:
    """By how much (log) each slice was slower than the mean one because others used the CPUs: least squares within rounds and arms.

    Both are arms × rounds: seconds, and how many cores others used, NaN where that was not seen.
    """
    import numpy as np

    middle = float(np.nanmean(cores))
    differs = np.nan_to_num(cores - middle)
    x, y = _centred(differs), _centred(np.log(slices_s))
    spread = float((x * x).sum())
    slope = float((x * y).sum()) / spread if spread else 0.0
    slower: Array = differs * min(max(slope, 0.0), 1 / (1 - min(middle, HALF)))
    return slower


def _centred(table: Array) -> Array:
    """Less the means of its rows and columns."""
    centred: Array = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    return centred


def additive(tables: Array, asymmetry: float = ALIKE) -> Array:
    """The rows' values of tables that are row plus column plus noise, their mean 0: M-quantiles (Breckling and Chambers, Biometrika 1988).

    By turns, rows and columns are means in which a number counts the less, the farther it lies beyond 1.345 standard deviations (Huber,
    Robust Statistics, 1981), and numbers above what is fitted count `asymmetry`, those below 1 - `asymmetry`; 0.5 is Huber's M-estimate.
    `tables` has the shape (…, rows, columns), the result (…, rows).
    """
    import numpy as np

    columns = tables.mean(axis=-2, keepdims=True)
    rows = np.median(tables - columns, axis=-1, keepdims=True)
    for _ in range(SWEEPS):
        before = rows
        residuals = tables - rows - columns
        left = np.abs(residuals)
        limit = HUBER * np.maximum(NORMAL_MAD * np.median(left, axis=(-2, -1), keepdims=True), SMALLEST)
        weights = limit / np.maximum(left, limit) * np.where(residuals > 0, asymmetry, 1 - asymmetry)
        columns = (weights * (tables - rows)).sum(axis=-2, keepdims=True) / weights.sum(axis=-2, keepdims=True)
        rows = (weights * (tables - columns)).sum(axis=-1, keepdims=True) / weights.sum(axis=-1, keepdims=True)
        middle = rows.mean(axis=-2, keepdims=True)
        rows, columns = rows - middle, columns + middle
        if np.abs(rows - before).max() < SETTLED:
            break
    values: Array = rows[..., 0]
    return values
