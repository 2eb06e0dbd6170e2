"""Stock alone as the baseline, or both untouched arms: how often each is wrong, and what each finds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from analysis.stats import many
from analysis.stats.simulate import Machine, log_levels
from analysis.verdict import GUARD
from analysis.wording import unsigned
from control.t_test import ALPHA

from .rates import MARGIN, Rates

if TYPE_CHECKING:
    from analysis.peers import Alarms
    from analysis.stats.sessions import Floats

TWEAKSETS, BLOCKS = 12, 8
PROCESS_CV = 0.04
SLOW = Machine(run_cv=0.04, drift=0.05, carry_over=0.8)  # neighbouring cells share it
EFFECTS = (0.04, 0.08)
OFF = 0.08  # how much longer one of two arms takes that should be equal: where the guard at .01 does worst
# Which arms are the baseline, and the level of the guard between them.
WAYS: dict[str, tuple[bool, float]] = {
    "stock alone": (False, 0.0),
    "both, no guard": (True, 0.0),
    f"both, guard at {GUARD}": (True, GUARD),
    f"both, guard at {ALPHA}": (True, ALPHA),
}


def baseline_rates(seed: int, trials: int) -> Rates:
    """How often each way claims a difference of any of twelve equal tweak sets, and finds one that is there.

    "off": of stock and stock-again one takes longer than everything else, each in half of the sessions.
    """
    rng = np.random.default_rng([seed, *b"baseline"])
    shape = trials, BLOCKS, 2 + TWEAKSETS
    equal = log_levels(SLOW, shape, rng) + PROCESS_CV * rng.standard_normal(shape)
    arm, odd = np.arange(shape[-1]), np.arange(trials)[:, np.newaxis, np.newaxis] % 2
    wrong = equal + math.log1p(OFF) * (arm == odd)
    slower = [equal + math.log1p(effect) * (arm == shape[-1] - 1) for effect in EFFECTS]
    rows = {}
    for way, (together, level) in WAYS.items():
        alarm, off_alarm = (claims(times, level, together=together).any(axis=-1) for times in (equal, wrong))
        own = contrasts(slower[0], together=together).p[:, -1] < ALPHA
        found = [claims(times, level, together=together)[:, -1] for times in slower]
        shares = (alarm, own, *found, guard_p(equal) < level, off_alarm)
        rows[way] = tuple(float(share.mean()) for share in shares)
    heads = [f"+{unsigned(effect)}" for effect in EFFECTS]
    some = f"any of {TWEAKSETS}"
    columns = (f"A/A, {some}", f"{heads[0]}, own p", *heads, "A/A, withheld", f"off, {some}")
    return Rates("Baseline", columns, rows)


def contrasts(times: Floats, *, together: bool) -> many.Effects:
    """Each tweak set against stock, or against both untouched arms.

    `times` are log times of shape (sessions, blocks, arms), the untouched arms first. The family is that of
    `compare`: with stock alone the copy of stock is in it, before the tweak sets.
    """
    base = times[..., :2].mean(axis=-1) if together else times[..., 0]
    gains = base[..., np.newaxis] - times[..., 2 if together else 1 :]
    return many.paired_effects(gains.swapaxes(1, 2), MARGIN)


def guard_p(times: Floats) -> Floats:
    """The p of one untouched arm against the other."""
    return many.paired_effects(times[..., 0] - times[..., 1], MARGIN).p


def claims(times: Floats, level: float, *, together: bool) -> Alarms:
    """Which tweak sets are said to be faster or slower, shape (sessions, tweak sets)."""
    called = many.holm(contrasts(times, together=together).p) < ALPHA
    return np.asarray(called[:, -(times.shape[-1] - 2) :] & (guard_p(times) >= level)[:, np.newaxis])
