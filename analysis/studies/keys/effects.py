"""The effects of a saved run, or of another study's table: each design is analysed as what it is, all are adjusted together.

The declared family is what the design was laid out to answer: the keys (main effects, levels, keys alone and in the profile, whole
sets) of one study, all its workloads together. One false accusation would be one too many, so it is Holm's. Interactions are looked
at because they are there: they are many, few matter, each is a hint for another run. So they are a screen after Benjamini and Hochberg,
adjusted among themselves and costing the keys nothing. Where nothing was
replicated effects have a size and no p. Where the A/A check fails nothing is called.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from analysis.arms import Arm, declared_baseline
from analysis.pairing import metric_named, value_of
from analysis.stats.adjust import benjamini_hochberg, holm
from analysis.stats.effect import ROUNDING, moments
from analysis.terms import AGAIN, NotComparable, Run
from analysis.verdict import GUARD
from analysis.wording import number, percent, probability
from control.names import first_few
from control.t_test import ALPHA, LARGEST_LOG, detectable_errors, t_interval, t_tail

from .designs import analyse
from .model import FEWEST_CELLS
from .observed import WHOLE_SETS, moved, observed
from .sentence import sentence
from .terms import SCREENED, Effects, Observed, Term, VariationRow, Word

COMFORTABLE_DF = 5
MOST_POINTS = 4  # written out
UNBALANCED = (
    "the cells do not balance: effects are least squares, each adjusted for the others; they are not independent of each other, "
    "and sums of squares do not add up to the total."
)


def effects_of(run: Run, metric: str | None = None, requested: Sequence[tuple[str, ...]] = ()) -> list[Effects]:
    """Answer the effects of every tweak set of a run that was taken apart, under each workload; of a matrix, of all its sets.

    `metric` takes the place of the declared primary one. `asked` are effects that must be told, by their factors' names.

    Raises: Refused, where an effect asked for cannot be told from others.
    """
    result = []
    for data in observed(run, metric):
        factor_names = {factor.name for factor in data.factors}
        effects = _analysed(data, [effect for effect in requested if set(effect) <= factor_names])
        text, fails = again(run, effects)
        result.append(replace(effects, again=text, again_fails=fails))
    return finished(result)


def of_table(data: Observed, requested: Sequence[tuple[str, ...]] = ()) -> list[Effects]:
    return finished([_analysed(data, requested)])


def finished(result: Iterable[Effects]) -> list[Effects]:
    return [replace(effects, sentence=sentence(effects)) for effects in settle(list(result))]


def _analysed(data: Observed, requested: Iterable[tuple[str, ...]]) -> Effects:
    try:
        effects = analyse(data, requested)
    except NotComparable as reason:
        return Effects(data, blocks=len({row.block for row in data.rows}), notes=data.notes, refusal=str(reason))
    return replace(effects, notes=(*data.notes, *effects.notes, *_notes(effects)))


def _notes(effects: Effects) -> Iterator[str]:
    data = effects.observed
    groups: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for lost in data.lost:
        groups.setdefault((lost.blocks, lost.reason), []).append(lost.point)
    for (blocks, reason), points in groups.items():
        where = f" in block{'s' if len(blocks) > 1 else ''} {', '.join(blocks)}" if any(blocks) else ""
        yield f"lost{where}: {first_few(points, MOST_POINTS)}: {reason}."
    if not effects.orthogonal and data.design not in WHOLE_SETS:
        yield UNBALANCED
    if 0 < effects.error_df < COMFORTABLE_DF:
        yield f"{effects.error_df} degrees of freedom only for the error: with fewer than {COMFORTABLE_DF} one odd cell can decide."


def settle(result: Sequence[Effects]) -> list[Effects]:
    settled = list(result)
    for study in dict.fromkeys(effects.observed.study for effects in result):
        indices = [at for at, effects in enumerate(result) if effects.observed.study == study]
        for at, effects in zip(indices, _settled([result[at] for at in indices]), strict=True):
            settled[at] = effects
    return settled


def _settled(designs: Sequence[Effects]) -> list[Effects]:
    keys = [term.p for design in designs for term in design.terms if term.means not in SCREENED]
    screened = [term.p for design in designs for term in design.terms if term.means in SCREENED]
    rows = [row.p for design in designs for row in design.anova if _own_test(design, row)]
    holms = iter(holm([p for p in keys if p is not None]))
    bhs = iter(benjamini_hochberg([p for p in (*screened, *rows) if p is not None]))
    terms = [
        [
            _adjusted(term, bhs, len(screened) + len(rows)) if term.means in SCREENED else _adjusted(term, holms, len(keys))
            for term in design.terms
        ]
        for design in designs
    ]
    anova = [[replace(row, p_adjusted=next(bhs)) if _own_test(design, row) else row for row in design.anova] for design in designs]
    return [
        replace(design, terms=tuple(_judged(term, design) for term in settled), anova=tuple(table))
        for design, settled, table in zip(designs, terms, anova, strict=True)
    ]


def _own_test(effects: Effects, row: VariationRow) -> bool:
    """Whether a row is an interaction that no term stands for."""
    return len(row.factors) > 1 and row.p is not None and not any(term.factors == row.factors for term in effects.terms)


def _adjusted(term: Term, ps: Iterator[float], family: int) -> Term:
    if term.p is None:
        return term
    return replace(term, p_adjusted=next(ps), family=family, adjustment="bh" if term.means in SCREENED else "holm")


def _judged(term: Term, effects: Effects) -> Term:
    data = effects.observed
    mde = detectable_errors(term.df, ALPHA / max(1, term.family)) * term.se if term.se and term.df else None
    if mde is not None and data.scale == "log":
        mde = math.expm1(min(mde, LARGEST_LOG))
    return replace(term, mde=mde, verdict=_word(term, effects))


def _word(term: Term, effects: Effects) -> Word:
    if term.p_adjusted is None:
        return "not comparable"
    if term.p_adjusted < ALPHA and not effects.again_fails:
        if term.means in SCREENED:
            return "interacts"
        more = term.effect > 0
        if effects.observed.better is None:
            return "raises" if more else "lowers"
        # Effects of logarithms are gains already; those in the response's own unit are more or less of it.
        good = more if effects.observed.scale == "log" else more == (effects.observed.better == "higher")
        return "improved" if good else "regressed"
    # Where a copy of stock differs from stock, an effect of that kind is what this run makes out of nothing.
    return "equivalent" if _inside(term, effects.observed.margin) and not effects.again_fails else "inconclusive"


def _inside(term: Term, margin: float | None) -> bool:
    if margin is None or term.gain is None or not term.se or term.df is None:
        return False
    edge = math.log1p(margin)
    return max(t_tail((edge - term.effect) / term.se, term.df), t_tail((edge + term.effect) / term.se, term.df)) < ALPHA


def again(run: Run, effects: Effects) -> tuple[str, bool]:
    """Say what the check found, and whether it fails: stock-again changes nothing and differs all the same; "" where there is none.

    An error that is too small for this machine, or a stock that had bad luck, would call keys guilty: it calls stock-again, too. Where
    both are the baseline it is the guard of `compare`: by the scatter of the two alone, at its own level.
    """
    data = effects.observed
    guard = bool(declared_baseline(Arm(run.origin, (run,)), data.study))
    level = GUARD if guard else ALPHA
    usable = {row.block for row in data.rows if row.name == next(iter(data.points))}
    stock, copies = (_values(run, data, name) for name in (run.baseline, AGAIN))
    both = sorted(usable & stock.keys() & copies.keys())
    if not copies:
        return "", False
    sign = -1.0 if data.better == "lower" else 1.0
    gains = [sign * math.log(copies[block] / stock[block]) for block in both]
    error, df = _error(gains, effects, alone=guard or data.design in WHOLE_SETS)
    if not error:
        reason = f"{len(both)} blocks are too few" if both else f"{AGAIN} and {run.baseline} were measured in no block together"
        return f"cannot be checked: {reason}.", False
    effect, low, high, p = t_interval(math.fsum(gains) / len(gains), error, df)
    ends = f"95 % {number(math.expm1(low))} to {percent(math.expm1(high))}"
    result = f"{AGAIN}, which changes nothing, against {run.baseline}: {percent(math.expm1(effect))} ({ends}, p {probability(p)})"
    if p < level:
        reason = f"By chance that is so once in {1 / level:.0f}; else the machine was not quiet, or {run.baseline} had bad luck"
        return f"{result}. {reason}: no key is called.", True
    if p < ALPHA:
        return f"{result}: not below the guard's {GUARD}, yet trust these effects less.", False
    return f"{result}: no difference shown.", False


def _values(run: Run, data: Observed, name: str) -> dict[str, float]:
    result, doubts = {}, moved(run)
    for cell in run.cells:
        place = cell.study, cell.workload, cell.tweakset
        if cell.id not in doubts and place == (data.study, data.workload, name) and cell.outcome == "measured":
            with contextlib.suppress(NotComparable):
                result[str(cell.block)] = value_of(cell, metric_named(data.metric))
    return result


def _error(gains: Sequence[float], effects: Effects, *, alone: bool) -> tuple[float, int]:
    """Standard error and degrees of freedom of their mean: their own scatter `alone`, else the common error; 0 where there is none."""
    count = len(gains)
    if not alone:
        return (math.sqrt(2 * effects.error_ms / count), effects.error_df) if count and effects.error_ms else (0.0, 0)
    if count < FEWEST_CELLS:
        return 0.0, 0
    _, spread = moments(gains)
    return (spread / math.sqrt(count), count - 1) if spread > ROUNDING else (0.0, 0)
