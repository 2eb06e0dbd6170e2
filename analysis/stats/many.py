"""The verdicts of many families of contrasts at once: the arithmetic of `effect`, `adjust`, `verdict` and the gate, on arrays.

It exists for calibration alone, where a hundred thousand contrasts are judged; a test holds every word of it against `analysis.compare`
and `analysis.studies.gate.gate`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr, stdtrit
from scipy.stats import wilcoxon

from control.t_test import ALPHA

from .adjust import holm
from .in_time import step_in_time

if TYPE_CHECKING:
    import numpy.typing as npt

    from .simulate import Floats, Sessions

WORDS = ("improved", "regressed", "equivalent", "inconclusive")
RULINGS = ("pass", "regression", "undecided")


@dataclass(frozen=True, slots=True)
class Effects:
    """Mean log gain (above 0 the candidate is better), its one-sided 95 % lower bound, two-sided p and equivalence p, each of shape (…)."""

    log_gain: Floats
    log_low90: Floats
    p: Floats
    p_equivalent: Floats


def log_gains(sessions: Sessions, quantile: float | None = None) -> Floats:
    logs = _logs(sessions, quantile)
    return logs[..., 0] - logs[..., 1]


def _logs(sessions: Sessions, quantile: float | None) -> Floats:
    summary = sessions.steps_s.mean(axis=-1) if quantile is None else np.quantile(sessions.steps_s, quantile, axis=-1)
    return np.asarray(np.log(summary))


def effects(sessions: Sessions, margin: float, quantile: float | None = None) -> Effects:
    if sessions.interleaved:
        return paired_effects(log_gains(sessions, quantile), margin)
    logs = _logs(sessions, quantile)
    return in_time_effects(-logs[..., 0], -logs[..., 1], margin)


def paired_effects(gains: Floats, margin: float) -> Effects:
    blocks = gains.shape[-1]
    return _t_test(gains.mean(axis=-1), gains.std(axis=-1, ddof=1) / math.sqrt(blocks), blocks - 1, margin)


def in_time_effects(baseline: Floats, candidate: Floats, margin: float) -> Effects:
    """Log values of two arms, the candidate's runs after the baseline's at equal distances: as `effect.two_sample_effect` with times.

    Takes: shape (…, runs) each, above is better.
    """
    n, m = baseline.shape[-1], candidate.shape[-1]
    return _t_test(*step_in_time(np.concatenate([baseline, candidate], axis=-1), [0] * n + [1] * m, range(n + m)), margin)


def _t_test(mean: Floats, error: Floats, df: Floats | float, margin: float) -> Effects:
    edge = math.log1p(margin)
    nearest = np.minimum(edge - mean, edge + mean)
    return Effects(
        log_gain=mean,
        log_low90=mean - stdtrit(df, 1 - ALPHA) * error,
        p=2 * stdtr(df, -np.abs(mean) / error),
        p_equivalent=stdtr(df, -nearest / error),
    )


def signed_rank_p(gains: Floats) -> Floats:
    return np.asarray(wilcoxon(gains, axis=-1).pvalue)


def words(effects: Effects) -> npt.NDArray[np.int64]:
    """Index into WORDS for every contrast, each family along the last axis: as `verdict.judge` after Holm."""
    differs = holm(effects.p) < ALPHA
    direction = np.where(effects.log_gain > 0, WORDS.index("improved"), WORDS.index("regressed"))
    quiet = np.where(effects.p_equivalent < ALPHA, WORDS.index("equivalent"), WORDS.index("inconclusive"))
    return np.where(differs, direction, quiet)


def rulings(effects: Effects, limit: float) -> npt.NDArray[np.int64]:
    """Index into RULINGS for every contrast, each family along the last axis: as the gate with this largest loss allowed."""
    loss, loss_high = -np.expm1(effects.log_gain), -np.expm1(effects.log_low90)
    lost = (holm(effects.p) < ALPHA) & (loss > limit)
    kept = np.where(loss_high < limit, RULINGS.index("pass"), RULINGS.index("undecided"))
    return np.where(lost, RULINGS.index("regression"), kept)


def side_by_side(effects: Sequence[Effects]) -> Effects:
    return Effects(*(np.stack([getattr(effect, field.name) for effect in effects], axis=-1) for field in fields(Effects)))


def first(effects: Effects, size: int) -> Effects:
    return Effects(*(getattr(effects, field.name)[..., :size] for field in fields(Effects)))
