"""How well throughput is known once a partition's memory utilisation was measured: a stage of the original's, judged by itself.

The original predicts U_mem of a partition, and throughput from U_mem, κ(b)·U_mem, N, b and the share; the errors of its throughput stage
are of rows whose own U_mem was given. These are such errors, of rows held out. Nobody knows U_mem of a partition that never ran, so the
own model predicts nothing this way: with U_mem predicted first, its throughput comes out no better.

The law: T = k·U_mem^c · b^d · share^e · N^f, and what it leaves over as a Gaussian process over the same logarithms. Before any data it is
the original's κ·U_mem: c is 1, the other exponents are 0, k is anything. The process has the scales that `surface_fit` and `likely` expect
before any data: nothing is tuned, and a row that is held out has no say in anything.
Source: Rasmussen & Williams 2006, ch. 2 (2.7: explicit basis functions).
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # scikit-learn's; it ships no types

from control.power.models.features import see
from control.power.models.surface import matern

from . import held_out
from .likely import AMPLITUDE, NOISE
from .surface_fit import SCALES

if TYPE_CHECKING:
    from collections.abc import Callable

    from control.power.terms import Floats, Partition

    from .held_out import Held, Key
    from .material import Material

QUANTITY = "throughput_images_per_s"
MEMORY_SCALE = 1.0  # expected, in ln of percent
LOOSE, ANYTHING = 0.5, 10.0  # sds of exponents about what is expected, and of ln k


def judge(material: Material) -> dict[str, dict[str, dict[str, Any]]]:
    """Errors by grouping, as `held_out.judge` has them, of throughput alone; empty where too few anchors have a memory utilisation.

    The uncertainty is widened to what the errors were by partition, as the model's is.
    """
    rows, _ = material.values("mem_util_percent")
    if len(rows) < held_out.FEWEST:
        return {}
    found = {name: by_group(material, key) for name, key in held_out.GROUPINGS.items()}
    wider = held_out.inflation(found["partition"])
    return {
        name: {QUANTITY: asdict(held_out.errors([replace(row, z=row.z / wider) for row in its], ordered=name in held_out.ORDERED))}
        for name, its in found.items()
        if its
    }


def by_group(material: Material, key: Callable[[Partition], Key]) -> list[Held]:
    """Hold out each group of anchors in turn; anchors without a memory utilisation are in none."""
    rows, memory = material.values("mem_util_percent")
    points = [material.anchors[row] for row in rows]
    groups = [key(point.partition) for point in points]
    columns = np.column_stack([see([point.partition for point in points]).columns, np.log(memory)])
    logs = np.log(np.array([point.throughput_images_per_s for point in points]) / memory)  # images/s per percent
    # Matrices of a few hundred rows: further threads only wait for each other.
    with threadpool_limits(1, user_api="blas"):
        covariance = ANYTHING**2 + LOOSE**2 * columns @ columns.T
        covariance += AMPLITUDE**2 * matern(columns, columns, np.append(SCALES, MEMORY_SCALE))
        found = []
        for group in sorted(set(groups)) if len(set(groups)) > 1 else []:
            out = np.array([its == group for its in groups])
            if (~out).sum() >= held_out.FEWEST:
                said, sd = predict(covariance[np.ix_(~out, ~out)], covariance[np.ix_(out, ~out)], np.diag(covariance)[out], logs[~out])
                off = said - logs[out]
                found += [held_out.Held(group, float(np.expm1(one)), float(one / its)) for one, its in zip(off, sd, strict=True)]
    return found


def predict(known: Floats, cross: Floats, own: Floats, logs: Floats) -> tuple[Floats, Floats]:
    """Logarithms of rows held out, and their sds. Shapes: (held,).

    `known` are covariances of the rows that were kept, (kept, kept), `cross` those of the rows held out with them, (held, kept), `own` the
    variances of the rows held out, (held,), and `logs` what was measured, (kept,).
    """
    factor = cho_factor(known + NOISE**2 * np.eye(len(known)), lower=True)
    said: Floats = logs.mean() + cross @ cho_solve(factor, logs - logs.mean())
    explained = solve_triangular(factor[0], cross.T, lower=True)
    return said, np.sqrt(np.clip(own - np.einsum("ij,ij->j", explained, explained), 0.0, None) + NOISE**2)
