"""Stock alone as the baseline, or both untouched arms together: what each finds, and what it claims where one of the two is off."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from analysis.stats import many
from analysis.stats.effect import ALPHA
from analysis.stats.simulate import Machine, log_levels
from analysis.verdict import GUARD

from .rates import MARGIN, Rates

if TYPE_CHECKING:
    from analysis.peers import Alarms
    from analysis.stats.sessions import Floats

TWEAKSETS, BLOCKS = 12, 8
PROCESS_CV = 0.04
SLOW = Machine(run_cv=0.04, drift=0.05, carry_over=0.8)  # what falls on cells that run after each other, besides
EFFECTS = (0.04, 0.08)
OFF = 0.08  # how much longer one of two arms takes that should be equal
# Which arms are the baseline, and the level of the guard between them.
WAYS: dict[str, tuple[bool, float]] = {
    "stock alone": (False, 0.0),
    "both, no guard": (True, 0.0),
    f"both, guard at {GUARD}": (True, GUARD),
    "both, guard at 0.05": (True, 0.05),
}


def baseline_rates(seed: int, trials: int) -> Rates:
    """How often each way claims a difference of any of twelve equal tweak sets, and finds that of the one that is not.

    "off": of stock and stock-again one takes longer than everything else, each in half of the sessions.
    """
    rng = np.random.default_rng([seed, *b"baseline"])
    shape = trials, BLOCKS, 2 + TWEAKSETS
    equal = log_levels(SLOW, shape, rng) + PROCESS_CV * rng.standard_normal(shape)
    off = np.where(np.arange(trials) % 2, 1, 0)
    wrong = equal + math.log1p(OFF) * (np.arange(shape[-1]) == off[:, np.newaxis, np.newaxis])
    slower = [equal + math.log1p(effect) * (np.arange(shape[-1]) == shape[-1] - 1) for effect in EFFECTS]
    rows = {}
    for way, (together, level) in WAYS.items():
        found = [float(claims(times, together, level)[:, -1].mean()) for times in slower]
        alarms = [float(claims(times, together, level).any(axis=-1).mean()) for times in (equal, wrong)]
        own = float((contrasts(slower[0], together).p[:, -1] < ALPHA).mean())
        rows[way] = (alarms[0], own, *found, float((guard_p(equal) < level).mean()), alarms[1])
    heads = (f"+{effect:.0%}".replace("%", " %") for effect in EFFECTS)
    return Rates("Baseline", ("A/A, any of 12", "+4 %, own p", *heads, "A/A, withheld", "off, any of 12"), rows)


def contrasts(times: Floats, together: bool) -> many.Effects:  # noqa: FBT001  # which of two ways
    """Each tweak set against stock, or against both untouched arms; `times` are log times of shape (sessions, blocks, arms), these first.

    The family is what `compare` makes it: with stock alone the copy of stock is in it, before the tweak sets.
    """
    base = times[..., :2].mean(axis=-1) if together else times[..., 0]
    gains = base[..., np.newaxis] - times[..., 2 if together else 1 :]
    return many.paired_effects(gains.swapaxes(1, 2), MARGIN)


def guard_p(times: Floats) -> Floats:
    """The p of one untouched arm against the other."""
    return many.paired_effects(times[..., 0] - times[..., 1], MARGIN).p


def claims(times: Floats, together: bool, level: float) -> Alarms:  # noqa: FBT001  # which of two ways
    """Which tweak sets are said to be faster or slower, shape (sessions, tweak sets)."""
    called = many.holm(contrasts(times, together).p) < ALPHA
    return np.asarray(called[:, -(times.shape[-1] - 2) :] & (guard_p(times) >= level)[:, np.newaxis])
