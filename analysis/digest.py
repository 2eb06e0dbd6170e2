"""Hundreds of comparisons on one screen: how many of each verdict, and those that say something."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from .terms import Verdict
from .wording import interval, percent, probability, unsigned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Comparison

ROWS = 40  # more than this and a table is no longer looked at
SHOWN = 15
NAME = 54


def lines(comparisons: Sequence[Comparison]) -> list[str]:
    """Write the digest: a count for each verdict, the largest differences that were shown, the commonest reasons for no verdict."""
    counts = Counter(one.verdict for one in comparisons)
    said = [
        f"{len(comparisons)} comparison{'s' if len(comparisons) != 1 else ''}: "
        + ", ".join(f"{counts[word]} {word}" for word in get_args(Verdict) if counts[word])
        + "."
    ]
    shown = [one for one in comparisons if one.verdict in {"improved", "regressed"} and one.primary]
    shown.sort(key=lambda one: -abs(math.log1p(one.primary.gain)) if one.primary else 0.0)
    if shown:
        said += ["", f"{'largest differences shown':{NAME}} {'gain':>9}  {'95 % interval':<20} adjusted p"]
    said += [_row(one) for one in shown[:SHOWN]]
    if len(shown) > SHOWN:
        said.append(f"… and {len(shown) - SHOWN} more (--all).")
    reasons = Counter(one.reason for one in comparisons if one.verdict == "not comparable" or one.observed is not None)
    if reasons:
        said += ["", "no verdict, most often:"]
        said += [f"{count:6} × {reason}" for reason, count in reasons.most_common(3)]
    alone = [one for one in comparisons if one.observed is not None]
    if alone:
        widest = max(alone, key=lambda one: abs(math.log1p(one.observed or 0.0)))
        said.append(f"       the widest apart: {_name(widest)} {percent(widest.observed or 0.0)}, one run against one")
    mdes = sorted(one.mde for one in comparisons if one.mde is not None)
    if mdes:
        said += ["", f"What half of them could have seen: {unsigned(mdes[len(mdes) // 2])} or more, with 80 % probability."]
    return said


def _row(one: Comparison) -> str:
    if one.primary is None or one.p_adjusted is None:
        raise ValueError("only a judged comparison has a row")
    gain, ends = percent(one.primary.gain), interval(one.primary)
    return f"{_name(one):{NAME}} {gain:>9}  {ends:<20} {probability(one.p_adjusted)}"


def _name(one: Comparison) -> str:
    name = f"{Path(one.candidate_run).stem}: {one.workload}" + (f", {one.tweakset}" if one.tweakset != one.baseline else "")
    return name if len(name) <= NAME else f"…{name[-NAME + 1 :]}"
