"""I/O runs in words: the fastest, and which factor matters, how much, how certainly.

Configurations are compared in pairs on the untouched machine, paired by block. Holm adjusts for all
pairs of a cache state, because the best is chosen by the same figures.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pandas as pd

from analysis.contrasts import contrast_of
from analysis.stats.estimate import Estimate, adjusted
from analysis.terms import AGAIN, STOCK
from analysis.wording import bracket, counted, digits, number, percent, unsigned

from .design import level_of, scale_of
from .figures import RATE, STEADY, WHOLE
from .study import FEWEST_PAIRS, IoStudy, by_name, in_order, mean_of

if TYPE_CHECKING:
    from .effects import Analysis
    from .figures import Judged
    from .study import IoContrast
    from .terms import IoRun

MOST = 3


def change_text(response: str, change: Estimate) -> str:
    """Write a change with its interval: `+12.3 % [+1.2, +23.4]` for a rate, else in points."""
    rate = scale_of(response) == "log"
    value, *ends = (end or 0.0 for end in (change.value, change.low, change.high))
    written = percent(value) if rate else f"{_points(value)} points"
    return f"{written} [{', '.join(map(number if rate else _points, ends))}]"


def _points(points: float) -> str:
    return f"{round(points, 1) + 0.0:+.1f}"  # the sum turns -0.0 into 0.0


def findings(study: IoStudy) -> list[str]:
    states: dict[tuple[str, ...], list[Judged]] = defaultdict(list)
    for cell in in_order([cell for cell in study.cells if cell.run.tweakset in {STOCK, AGAIN}]):
        if cell.value(RATE) is not None:
            states[_state(cell.run)].append(cell)
    groups = {state: by_name(members) for state, members in states.items()}
    several = {state: own for state, own in groups.items() if len(own) > 1}
    fastest, tweaked = [*_fastest(several or groups)], [*_tweak_sets(study)]
    return fastest + tweaked if several else tweaked + fastest


def _state(run: IoRun) -> tuple[str, ...]:
    known = {*run.overrides, *run.params}
    cache = f"{level_of(run, 'cache').replace('_', ' ')} cache" if "cache" in known else ""
    writes = "checkpoint" in known and level_of(run, "checkpoint") == "on"
    computing_s = run.computation_time_s
    return (
        run.model,
        cache,
        "with checkpoints" if writes else "",
        f"records of {run.record_length_bytes:.0f} bytes",
        "" if computing_s is None else f"{1000 * computing_s:g} ms per step",
        run.engine,
    )


def _fastest(states: Mapping[tuple[str, ...], Mapping[str, Sequence[Judged]]]) -> Iterator[str]:
    for state, groups in states.items():
        words = [
            word
            for at, word in enumerate(state)
            if word and (at == 1 or len({other[at] for other in states}) > 1)
        ]
        where = ", ".join(words) or "all"
        yield f"{where[0].upper()}{where[1:]}: {_highest(groups)}."


def _highest(groups: Mapping[str, Sequence[Judged]]) -> str:
    means = {name: mean_of(RATE, cells) for name, cells in groups.items()}
    best = max(means, key=lambda name: means[name].value or 0.0)
    mean = means[best]
    rate = (
        f"{digits(mean.value or 0.0, 3)} "
        f"samples/s{bracket(mean.low, mean.high, lambda end: digits(end, 3))}"
    )
    if len(groups) == 1:
        return rate
    pairs = [sorted(pair, key=lambda name: name != best) for pair in combinations(groups, 2)]
    logs = _logs(groups)
    tested = adjusted([_gain(logs[pair].dropna()) for pair in pairs])
    slower = {
        pair[1]: gain
        for pair, gain in zip(pairs, tested, strict=True)
        if pair[0] == best and gain.shown
    }
    others = [name for name in groups if name != best and name not in slower]
    parts = [f"{best} was fastest, {rate}"]
    if others:
        parts.append(f"not distinguishable from {_few(others)}")
    each = [
        f"{name} was {_speed(gain)}"
        for name, gain in sorted(slower.items(), key=lambda one: -(one[1].value or 0.0))
    ]
    if each:
        few = len(each) < MOST
        several = f"{len(each)} were slower, from {each[0]} to {each[-1]}"
        parts.append(", ".join(each) if few else several)
    count = sum(gain.p is not None for gain in tested)
    family = f"Holm over {counted(count, 'pair')}"
    return f"{'; '.join(parts)} ({family if count else 'no two configurations share two blocks'})"


def _logs(groups: Mapping[str, Sequence[Judged]]) -> pd.DataFrame:
    rows = [
        (name, cell.run.block, math.log(value))
        for name, cells in groups.items()
        for cell in cells
        if (value := cell.value(RATE)) and cell.run.block is not None
    ]
    frame = pd.DataFrame(rows, columns=["name", "block", "log"])
    return frame.pivot_table("log", "block", "name").reindex(columns=list(groups))


def _gain(logs: pd.DataFrame) -> Estimate:
    pairs = {at: [(math.exp(one), math.exp(other))] for at, one, other in logs.itertuples()}
    row: Mapping[str, Any] = contrast_of(pairs, "log", FEWEST_PAIRS)
    if "p" not in row:
        return Estimate(len(pairs), missing=row["missing"])
    value, low, high = (row[name] - 1 for name in ("value", "low", "high"))
    return Estimate(len(pairs), value, low, high, row["p"])


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return f"{', '.join(names[:MOST])}{more}"


def _tweak_sets(study: IoStudy) -> Iterator[str]:
    known = [one for one in study.contrasts.tweaks if one.p is not None]
    copies = [one for one in study.contrasts.again if one.p is not None]
    shown = sorted(
        (one for one in known if one.shown), key=lambda one: -abs(math.log1p(one.value or 0.0))
    )
    if shown:
        each = "; ".join(f"{_named(one)} {_speed(one)}" for one in shown[:MOST])
        more = f" and {len(shown) - MOST} more" if len(shown) > MOST else ""
        family = f"Holm over {len(known) + len(copies)}"
        yield f"Tweak sets that differ from stock: {each}{more} ({family})."
    elif known:
        names = list(dict.fromkeys(one.tweakset for one in known))
        none = f"{names[0]} is not" if len(names) == 1 else f"none of {len(names)} is"
        yield f"Tweak sets: {none} shown to differ from stock."
    if differing := [one for one in copies if one.shown]:
        clearest = min(differing, key=lambda one: one.p or 0.0)
        where = f"{clearest.configuration}: " if clearest.configuration else ""
        yield (
            f"A/A: stock and its copy differ in {len(differing)} of "
            f"{counted(len(copies), 'configuration')}, although nothing was changed: "
            f"{where}{change_text(RATE, clearest)}. "
            "One run in 20 shows that by chance; otherwise the machine was not quiet: trust the "
            "tweak sets' figures less."
        )


def _named(one: IoContrast) -> str:
    return f"{one.tweakset} with {one.configuration}" if one.configuration else one.tweakset


def _speed(change: Estimate) -> str:
    value = change.value or 0.0
    interval = change_text(RATE, change).partition(" % ")[2]
    return f"{unsigned(abs(value))} {'faster' if value > 0 else 'slower'} {interval}"


def reversals(analyses: Sequence[Analysis]) -> Iterator[str]:
    """Yield effects that appear or reverse without the first step: reading was moved, not saved."""
    whole, steady = (
        {
            (effect.factors[0], step.levels): (effect, step)
            for analysis in analyses
            if analysis.response == response
            for effect in analysis.findings
            if len(effect.factors) == 1
            for step in effect.steps
        }
        for response in (WHOLE, STEADY)
    )
    for key, (_, step) in steady.items():
        if key not in whole or not step.shown:
            continue
        effect, other = whole[key]
        turned = other.shown and other.value * step.value < 0
        if turned or not effect.shown:
            outcome = "the opposite" if turned else "no difference shown"
            yield (
                f"{key[0]} {step.name}: AU without the first step {_points(step.value)} points, "
                f"over the whole epoch {_points(other.value)} ({outcome}): reading moved into the "
                "excluded step and was not saved."
            )
