"""Blocks added until an arm would see what was asked for: how often that is wrong, against a number of blocks fixed beforehand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr, stdtrit

from analysis.stats import many
from analysis.stats.simulate import log_levels
from analysis.wording import unsigned
from control.stopping import BEYOND_DOUBT_P, FEWEST_BLOCKS, widening
from control.t_test import ALPHA, detectable_errors

from .baselines import SLOW
from .rates import Rates

if TYPE_CHECKING:
    from analysis.stats.sessions import Floats

PRECISION = 0.04
MOST_BLOCKS = 24
PROCESS_CVS = (0.01,) * 4 + (0.04,) * 4 + (0.10,) * 4  # of twelve tweak sets: some are decided at once, some never
EFFECTS = (0.04, 0.08)


def stopping_rates(seed: int, trials: int) -> Rates:
    """How often equal tweak sets are called different, and how often real effects are found and lie inside their intervals."""
    rng = np.random.default_rng([seed, *b"stopping"])
    processes = np.array((PROCESS_CVS[4], PROCESS_CVS[4], *PROCESS_CVS))
    shape = trials, MOST_BLOCKS, processes.size
    times = log_levels(SLOW, shape, rng) + processes * rng.standard_normal(shape)
    gains = (times[..., :2].mean(axis=-1)[..., np.newaxis] - times[..., 2:]).swapaxes(1, 2)
    rows: dict[str, tuple[float | None, ...]] = {}
    for way, (stops, widened) in WAYS.items():
        each = [judged(gains, slower, stops=stops, widened=widened) for slower in (0.0, *EFFECTS)]
        alarm, own, _, _, blocks = each[0]
        rows[way] = (alarm, own, *(called for _, _, called, _, _ in each[1:]), *(inside for *_, inside, _ in each), blocks)
    heads = [f"+{unsigned(effect)}" for effect in EFFECTS]
    inside = [f"{head}, inside" for head in ("A/A", *heads)]
    return Rates("Stopping", (f"A/A, any of {len(PROCESS_CVS)}", "A/A, own p", *heads, *inside, "of the, blocks"), rows)


# Whether blocks are added only while they are needed, and whether that is allowed for.
WAYS = {
    f"{MOST_BLOCKS} blocks": (False, False),
    "--precision, at 95 %": (True, False),
    "--precision": (True, True),
}


def judged(equal: Floats, slower: float, *, stops: bool, widened: bool) -> tuple[float, ...]:
    """Shares of sessions with any call; of contrasts with p below .05, called after Holm, whose interval holds the truth; of the blocks."""
    truth = -math.log1p(slower)
    gains = equal + truth
    family, most = gains.shape[1], gains.shape[2]
    blocks = np.full(gains.shape[:2], most)
    open_still = np.ones(gains.shape[:2], dtype=bool)
    for count in range(FEWEST_BLOCKS, most) if stops else ():
        _, error, t = _t(gains[..., :count])
        mde = np.expm1(detectable_errors(count - 1, ALPHA / family) * error * widening(count - 1))
        now = open_still & ((mde <= PRECISION) | (2 * stdtr(count - 1, -np.abs(t)) < BEYOND_DOUBT_P))
        blocks[now], open_still[now] = count, False
    p, inside = np.empty(gains.shape[:2]), np.empty(gains.shape[:2], dtype=bool)
    for count in np.unique(blocks):
        at = blocks == count
        mean, error, t = _t(gains[..., :count][at])
        wider = widening(int(count) - 1) if widened else 1.0
        p[at] = 2 * stdtr(count - 1, -np.abs(t) / wider)
        inside[at] = np.abs(mean - truth) < stdtrit(count - 1, 1 - ALPHA / 2) * error * wider
    called = many.holm(p) < ALPHA
    return (
        float(called.any(axis=1).mean()),
        float((p < ALPHA).mean()),
        float(called.mean()),
        float(inside.mean()),
        float(blocks.mean() / most),
    )


def _t(gains: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, its standard error and their ratio, over the last axis."""
    mean, error = gains.mean(axis=-1), gains.std(axis=-1, ddof=1) / math.sqrt(gains.shape[-1])
    return mean, error, mean / error
