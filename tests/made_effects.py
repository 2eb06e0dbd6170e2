"""Make effects of a design by hand: gains and standard errors go in, nothing is estimated.

For pictures and pages.

The numbers of one `Effects` agree with each other (levels with its terms), so that a picture of it
can be checked by arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Literal

from analysis.stats.linear import VariationRow
from analysis.studies.keys.terms import (
    DesignData,
    DesignFactor,
    Effects,
    Level,
    LostPoint,
    Means,
    Term,
    Word,
)

KEYS = {
    "vm.swappiness": "10",
    "vm.dirty_ratio": "40",
    "net.ipv4.tcp_congestion_control": "bbr",
    "kernel.numa_balancing": "0",
}
T = 2.1  # of a 95 % interval here, whatever the degrees of freedom
BASE = 120.0  # samples/s on average


def term(
    means: Means,
    factors: Sequence[str],
    log: float,
    se: float = 0.01,
    *,
    margin: float = 0.03,
    word: Word | None = None,
    level: str | None = None,
    aliases: tuple[tuple[str, ...], ...] = (),
) -> Term:
    """Make a term from a log effect and its standard error, which give the word by default."""
    low, high = log - T * se, log + T * se
    called: Word = "improved" if low > 0 else "regressed" if high < 0 else "inconclusive"
    if called == "inconclusive" and max(-low, high) < math.log1p(margin):
        called = "equivalent"
    if means in {"interaction", "disagreement"} and called in {"improved", "regressed"}:
        called = "interacts"
    p = math.erfc(abs(log) / se / math.sqrt(2))
    return Term(
        label=" × ".join(factors),
        factors=tuple(factors),
        means=means,
        effect=log,
        se=se,
        df=18.0,
        low=low,
        high=high,
        gain=math.expm1(log),
        gain_low=math.expm1(low),
        gain_high=math.expm1(high),
        p=p,
        p_adjusted=min(1.0, 4 * p),
        adjustment="holm",
        family=4,
        share=None,
        aliases=aliases,
        coefficient=log / 2,
        level=level,
        mde=3 * se,
        verdict=word or called,
    )


def observed(
    keys: Mapping[str, str],
    design: str,
    workload: str,
    *,
    points: Mapping[str, tuple[str, ...]],
    lost: Sequence[LostPoint] = (),
) -> DesignData:
    """Make what was observed, without its cells: levels are `found` and the value asked for."""
    factors = tuple(
        DesignFactor(name, "ABCDEFGHJKLMNOPQRSTUVWXYZ"[at], ("as found", value))
        for at, (name, value) in enumerate(keys.items())
    )
    return DesignData(
        study="made_up",
        workload=workload,
        profile="tuned",
        design=design,
        metric="throughput_samples_per_s",
        better="higher",
        scale="log",
        margin=0.03,
        factors=factors,
        points=dict(points),
        rows=(),
        lost=tuple(lost),
    )


def factorial(
    gains: Mapping[str, float],
    *,
    together: Mapping[tuple[str, str], float] | None = None,
    keys: Mapping[str, str] = KEYS,
    se: float = 0.01,
    design: Literal["factorial", "fractional", "file"] = "factorial",
    workload: str = "cnn_train",
    replicated: bool = True,
    lost: Sequence[LostPoint] = (),
) -> Effects:
    """Make a two-level design from log effects of keys and pairs; all others are slight noise."""
    together = together or {}
    noise = {name: se * ((7 * at) % 11 - 5) / 6 for at, name in enumerate(keys)}
    main = {name: gains.get(name, noise[name]) for name in keys}
    pairs = list(combinations(keys, 2)) if design != "file" else []
    both = {pair: together.get(pair, se * ((5 * at) % 13 - 6) / 7) for at, pair in enumerate(pairs)}
    terms = [term("main", [name], log, se) for name, log in main.items()]
    terms += [term("interaction", pair, log, 2 * se) for pair, log in both.items()]
    mid = math.log(BASE)
    seen = observed(
        keys,
        design,
        workload,
        points={
            f"p{at}": levels for at, levels in enumerate(product("-+", repeat=min(len(keys), 4)))
        },
        lost=lost,
    )
    levels = []
    for factor in seen.factors:
        for side, level in zip((-0.5, 0.5), factor.levels, strict=True):
            log = side * main[factor.name]
            ends = (
                (math.exp(mid + log - se), math.exp(mid + log + se)) if replicated else (None, None)
            )
            levels.append(Level(factor.name, level, 8, math.exp(mid + log), log, *ends))
    guilty = max(terms, key=lambda one: abs(one.effect))
    clear = guilty.verdict in {"improved", "regressed", "interacts"}
    sentence = (
        f"{guilty.label}: {100 * (guilty.gain or 0):+.1f} % under {workload} (95 % interval "
        f"{100 * (guilty.gain_low or 0):+.1f} to "
        f"{100 * (guilty.gain_high or 0):+.1f} %, p = 0.001 adjusted for {len(terms)} effects)."
        if clear
        else f"No key of tuned was shown to change the speed of {workload}: the design would have "
        "seen ±4.1 % with 80 % probability."
    )
    return Effects(
        observed=seen,
        terms=tuple(terms),
        anova=(VariationRow("error", 18, 0.01, 0.2, 0.0005),) if replicated else (),
        levels=tuple(levels),
        error="cells within blocks" if replicated else "none",
        error_df=18 if replicated else 0,
        error_ms=(se * 2) ** 2 if replicated else None,
        mean=mid,
        blocks=2 if replicated else 1,
        resolution=None if design == "factorial" else 4 if design == "fractional" else 3,
        orthogonal=True,
        unestimable=(),
        again="stock-again against stock: +0.3 % [-1.1, +1.7].",
        notes=(),
        sentence=sentence,
    )


def ablation(
    profile: Mapping[str, float],
    alone: Mapping[str, float],
    *,
    keys: Mapping[str, str] = KEYS,
    se: float = 0.01,
    workload: str = "cnn_train",
    missing: Sequence[tuple[Means, str]] = (),
) -> Effects:
    terms = [term("profile", ["tuned"], sum(profile.get(name, 0.0) for name in keys), se)]
    for at, name in enumerate(keys):
        small = se * ((7 * at) % 11 - 5) / 6
        inside, outside = profile.get(name, small), alone.get(name, -small)
        terms += [
            term("in profile", [name], inside, se),
            term("alone", [name], outside, se),
            term("disagreement", [name], inside - outside, 1.7 * se),
        ]
    terms = [one for one in terms if (one.means, one.factors[0]) not in missing]
    guilty = max(terms[1:], key=lambda one: abs(one.effect), default=terms[0])
    lost = tuple(
        LostPoint(
            f"tuned.{'only' if means == 'alone' else 'no'}-{name}", "exit status 1", ("1", "2")
        )
        for means, name in missing
    )
    base = factorial({}, keys=keys, se=se, workload=workload)
    seen = observed(keys, "ablation", workload, points={"tuned": ("+",) * len(keys)}, lost=lost)
    found = guilty.verdict in {"improved", "regressed"}
    return Effects(
        observed=seen,
        terms=tuple(terms),
        anova=base.anova,
        levels=(),
        error=base.error,
        error_df=base.error_df,
        error_ms=base.error_ms,
        mean=base.mean,
        blocks=6,
        resolution=None,
        orthogonal=False,
        unestimable=(),
        again=base.again,
        notes=(),
        sentence=f"{guilty.label} did it: {100 * (guilty.gain or 0):+.1f} % under {workload}."
        if found
        else base.sentence,
    )
