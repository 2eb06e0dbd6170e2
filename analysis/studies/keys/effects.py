"""Effects of a saved run or another study's table: each design analysed, all adjusted together.

The family of Holm's adjustment are the keys (main effects, levels, keys alone and in the profile,
whole sets) of one study, all its workloads together. Interactions are only screened: they are many,
and each is a hint for another run. They are adjusted among themselves by Benjamini and Hochberg. If
nothing was replicated, effects have a size but no p. If the A/A check fails, no effect is claimed.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from analysis.arms import Arm, declared_baseline
from analysis.compare import GUARD
from analysis.pairing import metric_named, value_of
from analysis.stats.effect import ROUNDING, benjamini_hochberg, holm, moments
from analysis.stats.linear import FEWEST_CELLS, VariationRow
from analysis.terms import AGAIN, NotComparable, Run
from analysis.wording import number, percent, probability
from control.names import first_few
from control.t_test import ALPHA, LARGEST_LOG, detectable_errors, t_interval, t_tail

from .designs import analyse
from .observed import WHOLE_SETS, moved, observed
from .sentence import sentence
from .terms import SCREENED, DesignData, Effects, Term, Word

COMFORTABLE_DF = 4
MOST_POINTS = 4  # listed
UNBALANCED = (
    "the cells are unbalanced: effects are least-squares estimates, each adjusted for the others; "
    "they are not independent, and sums of squares do not add up to the total."
)


def effects_of(run: Run, metric: str | None = None) -> list[Effects]:
    """Return the effects of decomposed tweak sets under each workload; for a matrix, of all sets.

    `metric` replaces the declared primary metric.
    """
    designs = []
    for data in observed(run, metric):
        effects = _analysed(data)
        text, is_failed = again(run, effects)
        designs.append(replace(effects, again=text, again_fails=is_failed))
    return _settled(designs)


def of_table(data: DesignData) -> list[Effects]:
    return _settled([_analysed(data)])


def _analysed(data: DesignData) -> Effects:
    try:
        effects = analyse(data)
    except NotComparable as reason:
        blocks = len({row.block for row in data.rows})
        return Effects(data, blocks=blocks, notes=data.notes, refusal=str(reason))
    return replace(effects, notes=(*data.notes, *effects.notes, *_notes(effects)))


def _notes(effects: Effects) -> Iterator[str]:
    groups: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for lost in effects.observed.lost:
        groups.setdefault((lost.blocks, lost.reason), []).append(lost.point)
    for (blocks, reason), points in groups.items():
        several = "s" if len(blocks) > 1 else ""
        where = f" in block{several} {', '.join(blocks)}" if any(blocks) else ""
        yield f"lost{where}: {first_few(points, MOST_POINTS)}: {reason}."
    if not effects.orthogonal and effects.observed.design not in WHOLE_SETS:
        yield UNBALANCED
    fewest = min((int(term.df) for term in effects.terms if term.df), default=COMFORTABLE_DF)
    if fewest < COMFORTABLE_DF:
        yield (
            f"an effect rests on only {fewest} degrees of freedom: below {COMFORTABLE_DF}, one "
            "outlying cell can decide the result."
        )


Adjusted = dict[
    int, tuple[float, int]
]  # by identity of a test: its p, and the number in its family


def _settled(designs: Sequence[Effects]) -> list[Effects]:
    adjusted: Adjusted = {}
    for study in {effects.observed.study for effects in designs}:
        own = [effects for effects in designs if effects.observed.study == study]
        terms = [term for effects in own for term in effects.terms]
        keys = [term for term in terms if term.means not in SCREENED]
        screen: list[Term | VariationRow] = [term for term in terms if term.means in SCREENED]
        screen += [row for effects in own for row in effects.anova if _stands_alone(row, effects)]
        adjusted |= _family(keys, holm) | _family(screen, benjamini_hochberg)
    result = []
    for effects in designs:
        settled = tuple(_judged(term, effects, adjusted) for term in effects.terms)
        anova = tuple(
            replace(row, p_adjusted=adjusted.get(id(row), (None, 0))[0]) for row in effects.anova
        )
        judged = replace(effects, terms=settled, anova=anova)
        result.append(replace(judged, sentence=sentence(judged)))
    return result


def _family(
    tests: Sequence[Term | VariationRow], adjust: Callable[[Sequence[float]], list[float]]
) -> Adjusted:
    ps = {id(test): test.p for test in tests if test.p is not None}
    adjusted = zip(ps, adjust([*ps.values()]), strict=True)
    return {test: (p, len(tests)) for test, p in adjusted}


def _stands_alone(row: VariationRow, effects: Effects) -> bool:
    is_tested = len(row.factors) > 1 and row.p is not None
    return is_tested and all(term.factors != row.factors for term in effects.terms)


def _judged(term: Term, effects: Effects, adjusted: Adjusted) -> Term:
    if id(term) in adjusted:
        p, family = adjusted[id(term)]
        method: Literal["holm", "bh"] = "bh" if term.means in SCREENED else "holm"
        term = replace(term, p_adjusted=p, family=family, adjustment=method)
    mde = None
    if term.se and term.df:
        mde = detectable_errors(term.df, ALPHA / max(1, term.family)) * term.se
        if effects.observed.scale == "log":
            mde = math.expm1(min(mde, LARGEST_LOG))
    return replace(term, mde=mde, verdict=_word(term, effects))


def _word(term: Term, effects: Effects) -> Word:
    data = effects.observed
    if term.p_adjusted is None:
        return "not comparable"
    if effects.again_fails:  # if a copy of stock differs from stock, such effects may be artefacts
        return "inconclusive"
    if term.p_adjusted >= ALPHA:
        return "equivalent" if _inside(term, data.margin) else "inconclusive"
    if term.means in SCREENED:
        return "interacts"
    if data.better is None:
        return "raises" if term.effect > 0 else "lowers"
    # Effects on logarithms are gains already; those in the response's own unit are larger or
    # smaller.
    better = data.scale == "log" or data.better == "higher"
    return "improved" if (term.effect > 0) == better else "regressed"


def _inside(term: Term, margin: float | None) -> bool:
    if margin is None or term.gain is None or not term.se or term.df is None:
        return False
    errors = (math.log1p(margin) - abs(term.effect)) / term.se
    return t_tail(errors, term.df) < ALPHA


def again(run: Run, effects: Effects) -> tuple[str, bool]:
    """Return the A/A check's sentence and whether it fails, that is, stock-again differs; or "".

    If stock and its copy form the baseline, this is the guard of `compare`: from the scatter of the
    two alone, at its own level.
    """
    data = effects.observed
    guard = bool(declared_baseline(Arm(run.origin, (run,)), data.study))
    level = GUARD if guard else ALPHA
    usable = {row.block for row in data.rows if row.name == next(iter(data.points))}
    stock, copies = (_values(run, data, name) for name in (run.baseline, AGAIN))
    if not copies:
        return "", False
    sign = -1.0 if data.better == "lower" else 1.0
    blocks = sorted(usable & stock.keys() & copies.keys())
    gains = [sign * math.log(copies[block] / stock[block]) for block in blocks]
    if not gains:
        reason = f"{AGAIN} and {run.baseline} share no measured block"
        return f"cannot be checked: {reason}.", False
    mean, spread = moments(gains)
    error, df = spread / math.sqrt(len(gains)), len(gains) - 1
    if not guard and data.design not in WHOLE_SETS:
        error, df = math.sqrt(2 * (effects.error_ms or 0.0) / len(gains)), effects.error_df
    elif len(gains) < FEWEST_CELLS or spread <= ROUNDING:
        error = 0.0
    if not error:
        return f"cannot be checked: {len(gains)} blocks are too few.", False
    effect, low, high, p = t_interval(mean, error, df)
    ends = f"95 % {number(math.expm1(low))} to {percent(math.expm1(high))}"
    text = (
        f"{AGAIN}, which changes nothing, against {run.baseline}: {percent(math.expm1(effect))} "
        f"({ends}, p {probability(p)})"
    )
    if p < level:
        reason = (
            f"By chance this happens once in {1 / level:.0f}; otherwise the machine was not "
            f"quiet, or {run.baseline} was unlucky"
        )
        return f"{text}. {reason}: no key is named.", True
    if p < ALPHA:
        return f"{text}: not below the guard's {GUARD}, but trust these effects less.", False
    return f"{text}: no difference shown.", False


def _values(run: Run, data: DesignData, name: str) -> dict[str, float]:
    values, doubts = {}, moved(run)
    for cell in run.cells:
        place = cell.study, cell.workload, cell.tweakset
        if (
            cell.id not in doubts
            and place == (data.study, data.workload, name)
            and cell.outcome == "measured"
        ):
            with contextlib.suppress(NotComparable):
                values[str(cell.block)] = value_of(cell, metric_named(data.metric))
    return values
