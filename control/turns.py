"""Adjust the step times of arms that took turns for what affected all arms alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

HUBER = 1.345  # standard deviations: 95 % as efficient as the mean where noise is normal
# what the median absolute deviation of normal noise is multiplied with to be its standard deviation
NORMAL_MAD = 1.4826
# At most so many, and no more once one moves nothing by a thousandth of a per cent.
SWEEPS, SETTLED = (200, 1e-5)
SMALLEST = 1e-12
MOST_CORES = 1.0  # of others in a slice: what they use on further CPUs holds up the same steps
# of a slice: where others took more of it, by how much they held it up is no longer to be told
HALF = 0.5
# Slow steps count a third of fast ones where nobody else uses the CPUs: what is left only ever
# slows a step. The more others use, the more alike they count, since few steps are free of them
# then; from so many cores on all do, and where nobody saw what others used.
FAST, ALIKE = 0.25, 0.5
BUSY_CORES = 0.2


Slices = Sequence[Sequence[Sequence[float]]]  # of a block: arms × rounds × places, seconds
# Of a block: arms × rounds, seconds; None where that was not seen.
Others = Sequence[Sequence["float | None"]]


def round_adjusted_s(slices_s: Slices, others_cpu_s: Others = ()) -> list[float]:
    """Return one step time per arm, from step times by arm, round and place in the slice.

    Steps of one round and one place stand beside each other. Their logs are an arm's value plus a
    level that all arms share: what the machine did then, and what that place is (a first step after
    a pause, one that writes a checkpoint). Both are fitted robustly, so that single slow steps do
    not move them, and to the faster steps rather than the slower. Places count by their share of
    the time; the result is the mean step time of all arms times what an arm differs from it.

    `others_cpu_s` is what others used of the CPUs in each slice. By how much a step is slower where
    they use more is one slope for the whole block, and is taken out too: who gets more of them is a
    matter of chance. Nobody makes a step faster by using the CPUs, and a second that others take
    holds it up by about a second at most: the rest is noise.
    """
    return blocks_adjusted_s([(slices_s, others_cpu_s)])[0]


def blocks_adjusted_s(blocks: Sequence[tuple[Slices, Others]]) -> list[list[float]]:
    """Return `round_adjusted_s` for several blocks of the same shape."""
    import numpy as np

    times_s = np.asarray([slices_s for slices_s, _ in blocks])
    whole_s = times_s.sum(axis=-1)
    unseen = np.full(whole_s.shape[1:], np.nan)
    used_s = np.array([others_cpu_s or unseen for _, others_cpu_s in blocks], dtype=float)
    shift, asymmetry = np.zeros(whole_s.shape), np.full(len(blocks), ALIKE)
    for block, cores in enumerate(np.minimum(used_s / whole_s, MOST_CORES)):
        if not np.isnan(cores).all():
            shift[block] = _slowed(whole_s[block], cores)
            asymmetry[block] = FAST + (ALIKE - FAST) * min(
                float(np.nanmean(cores)) / BUSY_CORES, 1.0
            )
    logs = np.moveaxis(np.log(times_s), 3, 1) - shift[:, None]
    typical_s = np.exp(logs.mean(axis=(2, 3)))
    fitted = additive(logs, asymmetry)
    return [
        (typical.mean() * np.exp(typical @ values / typical.sum())).tolist()
        for typical, values in zip(typical_s, fitted, strict=True)
    ]


def _slowed(slices_s: Array, cores: Array) -> Array:
    """Return the log slowdown of slices by others' CPU use: least squares within rounds and arms.

    Both are arms × rounds: seconds, and cores that others used, NaN if unknown.
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
    centred: Array = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    return centred


def additive(tables: Array, asymmetry: Array) -> Array:
    """Fit row + column + noise tables by M-quantiles; return the row values, with mean 0.

    Source: Breckling and Chambers, Biometrika 1988.

    By turns, rows and columns are means in which a number counts the less, the farther it lies
    beyond 1.345 standard deviations (Huber, Robust Statistics, 1981), and numbers above what is
    fitted count `asymmetry`, those below 1 - `asymmetry`; 0.5 is Huber's M-estimate. `tables` has
    the shape (blocks, places, rows, columns), `asymmetry` (blocks,), the result (blocks, places,
    rows). A block that has settled stays as it is.
    """
    import numpy as np

    above = asymmetry[:, None, None, None]
    columns = tables.mean(axis=-2, keepdims=True)
    rows = _median(tables - columns)
    values = np.empty(tables.shape[:-1])
    open_blocks = np.arange(len(tables))
    for _ in range(SWEEPS):
        before = rows
        residuals = tables - rows - columns
        left = np.abs(residuals)
        spread = NORMAL_MAD * _median(left.reshape(*left.shape[:-2], 1, -1))
        limit = HUBER * np.maximum(spread, SMALLEST)
        weights = limit / np.maximum(left, limit) * np.where(residuals > 0, above, 1 - above)
        columns = (weights * (tables - rows)).sum(axis=-2, keepdims=True) / weights.sum(
            axis=-2, keepdims=True
        )
        rows = (weights * (tables - columns)).sum(axis=-1, keepdims=True) / weights.sum(
            axis=-1, keepdims=True
        )
        middle = rows.mean(axis=-2, keepdims=True)
        rows, columns = rows - middle, columns + middle
        values[open_blocks] = rows[..., 0]
        moving = np.abs(rows - before).max(axis=(1, 2, 3)) >= SETTLED
        if not moving.any():
            break
        if not moving.all():
            open_blocks, tables, above, rows, columns = (
                each[moving] for each in (open_blocks, tables, above, rows, columns)
            )
    return values


def _median(values: Array) -> Array:
    """Return medians along the last axis, for few numbers three times as fast as `np.median`."""
    ordered, count = values.copy(), values.shape[-1]
    ordered.sort()
    middle: Array = (ordered[..., (count - 1) // 2, None] + ordered[..., count // 2, None]) / 2
    return middle
