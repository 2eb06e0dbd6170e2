"""The gate: is a candidate slower than is allowed? It says yes, no, or that the data cannot tell; it never passes by default.

A pass is a claim like any other and needs evidence: the one-sided 95 % upper bound of the loss lies below the limit (non-inferiority).
Every contrast must show it, so no adjustment for their number is due (intersection-union test). A regression needs that the
loss is no chance, after Holm's adjustment for everything the gate was asked, and at best estimate larger than the limit. All else is
undecided, and that is no pass.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.stats.adjust import holm
from analysis.switched.inside import outlasts
from analysis.terms import Metric
from analysis.wording import exactly, number, percent, probability, speed
from control.t_test import ALPHA, POWER, t_quantile

from .terms import Gate, Ruled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analysis.terms import Comparison, Effect

    from .limits import Limits
    from .terms import Ruling

FEWEST_BLOCKS, MOST_BLOCKS = 3, 10_000
SURVIVORS = "{} cell{} failed: those that got through are no fair sample of how the arms run."
Question = tuple["Comparison", "Metric", "Effect | None"]


def gate(
    comparisons: Iterable[Comparison],
    limits: Limits,
    arms: tuple[str, str],
    warnings: Sequence[str] = (),
    unquiet: Mapping[str, str] | None = None,
) -> Gate:
    """Rule on every comparison in every metric that is gated; `arms` are the names of baseline and candidate.

    An A/A comparison is judged like any other: the gate's own calibration is that it passes. Under a workload that is `unquiet` nothing
    passes, for the reason given.
    """
    unquiet = unquiet or {}
    asked = [question for one in comparisons for question in _questions(one, limits)]
    tried = [index for index, (_, _, effect) in enumerate(asked) if effect is not None]
    adjusted = dict(zip(tried, holm([effect.p for _, _, effect in asked if effect is not None]), strict=True))
    rulings = tuple(
        _held(
            _ruled(comparison, metric, effect, limits.limit_of(comparison.workload, metric.name), adjusted.get(index, 1.0)),
            unquiet.get(comparison.workload),
        )
        for index, (comparison, metric, effect) in enumerate(asked)
    )
    words = {one.ruling for one in rulings}
    overall: Ruling = "regression" if "regression" in words else "pass" if words == {"pass"} else "undecided"
    return Gate(*arms, rulings, overall, tuple(warnings))


def _held(one: Ruled, why: str | None) -> Ruled:
    return one if why is None or one.ruling != "pass" else replace(one, ruling="undecided", reason=f"{one.reason} {why}")


def _questions(one: Comparison, limits: Limits) -> list[Question]:
    """Find the metrics that are gated for one comparison, each with its effect where there is one."""
    effects = {effect.metric.name: effect for effect in (one.primary, one.second, *one.others) if effect is not None}
    asked: list[Question] = []
    for word in limits.metrics_of(one.workload):
        if word == "primary":
            asked.append((one, one.primary_metric, one.primary))
        elif word == "second":
            asked.append((one, one.second.metric if one.second else Metric("second", "lower"), one.second))
        else:
            effect = effects.get(word)
            asked.append((one, effect.metric if effect else Metric(word, "lower"), effect))
    return list({(metric.name): (one, metric, effect) for one, metric, effect in asked}.values())


def _ruled(one: Comparison, metric: Metric, effect: Effect | None, limit: float, p: float) -> Ruled:
    if effect is None:
        missing = one.reason if one.primary is None else f"{metric.name} was not measured in both arms."
        return Ruled(one, metric, limit, "undecided", missing)
    loss, high = -effect.gain, -effect.low90
    found = f"{speed(effect.gain)} by {metric.name} (95 % loss {number(-effect.high)} to {percent(-effect.low)})"
    if one.verdict == "not comparable" or outlasts(one):
        return Ruled(one, metric, limit, "undecided", one.reason, loss, high)
    if one.failed and not (p < ALPHA and loss > limit):
        return Ruled(one, metric, limit, "undecided", SURVIVORS.format(one.failed, "" if one.failed == 1 else "s"), loss, high)
    if p < ALPHA and loss > limit:
        return Ruled(one, metric, limit, "regression", f"{found}, Holm p {probability(p)}: more than {exactly(limit)} is lost.", loss, high)
    if high < limit:
        return Ruled(one, metric, limit, "pass", f"{found}: at most {percent(max(high, 0.0)).lstrip('+')} is lost.", loss, high)
    needed = blocks_needed(effect, limit)
    more = "" if needed is None else f"; a candidate that loses nothing would pass with about {needed} {_units(effect)}"
    return Ruled(one, metric, limit, "undecided", f"{found}: a loss of {exactly(limit)} cannot be excluded{more}.", loss, high, needed)


def _units(effect: Effect) -> str:
    words = {"paired": "blocks", "switched": "processes, or pairs of segments where they are few", "two-sample": "runs an arm"}
    return words[effect.design]


def blocks_needed(effect: Effect, limit: float) -> int | None:
    """How many blocks (or runs an arm) let a candidate that loses nothing pass 4 times in 5; None where thousands would not.

    Solves (t_0.95 + t_0.80) · s / √n = -ln(1 - limit); two samples have √(2/n) and twice the degrees of freedom.
    """
    edge = -math.log1p(-limit)
    paired = effect.design != "two-sample"
    low, high = FEWEST_BLOCKS, MOST_BLOCKS
    if _reach(effect.log_sd, high, paired=paired) > edge:
        return None
    while low < high:
        middle = (low + high) // 2
        if _reach(effect.log_sd, middle, paired=paired) > edge:
            low = middle + 1
        else:
            high = middle
    return low


def _reach(sd: float, n: int, *, paired: bool) -> float:
    df = n - 1 if paired else 2 * n - 2
    return (t_quantile(1 - ALPHA, df) + t_quantile(POWER, df)) * sd * math.sqrt((1 if paired else 2) / n)
