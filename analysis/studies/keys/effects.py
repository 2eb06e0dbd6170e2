"""Effects of a saved run or another study's table: each design analysed, all adjusted together.

The declared family is the design's questions: the keys (main effects, levels, keys alone and in the
profile, whole sets) of one study, all its workloads together. A single false claim would be one too
many, so the adjustment is Holm's. Interactions are only screened: they are many, few matter, and
each is a hint for another run. They are adjusted among themselves by Benjamini and Hochberg,
without cost to the keys. If nothing was replicated, effects have a size but no p. If the A/A check
fails, no effect is claimed.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

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
    "they are not independent, "
    "and sums of squares do not add up to the total."
)


def effects_of(run: Run, metric: str | None = None) -> list[Effects]:
    """Return the effects of decomposed tweak sets under each workload; for a matrix, of all sets.

    `metric` replaces the declared primary metric.
    """
    designs = []
    for data in observed(run, metric):
        effects = _analysed(data)
        text, fails = again(run, effects)
        designs.append(replace(effects, again=text, again_fails=fails))
    return _settled(designs)


def of_table(data: DesignData) -> list[Effects]:
    return _settled([_analysed(data)])


def _analysed(data: DesignData) -> Effects:
    try:
        effects = analyse(data)
    except NotComparable as reason:
        return Effects(
            data,
            blocks=len({row.block for row in data.rows}),
            notes=data.notes,
            refusal=str(reason),
        )
    return replace(effects, notes=(*data.notes, *effects.notes, *_notes(effects)))


def _notes(effects: Effects) -> Iterator[str]:
    groups: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for lost in effects.observed.lost:
        groups.setdefault((lost.blocks, lost.reason), []).append(lost.point)
    for (blocks, reason), points in groups.items():
        where = (
            f" in block{'s' if len(blocks) > 1 else ''} {', '.join(blocks)}" if any(blocks) else ""
        )
        yield f"lost{where}: {first_few(points, MOST_POINTS)}: {reason}."
    if not effects.orthogonal and effects.observed.design not in WHOLE_SETS:
        yield UNBALANCED
    fewest = min((int(term.df) for term in effects.terms if term.df), default=COMFORTABLE_DF)
    if fewest < COMFORTABLE_DF:
        yield (
            f"an effect rests on only {fewest} degrees of freedom: below {COMFORTABLE_DF}, one "
            "outlying cell can decide the result."
        )


def _settled(designs: Sequence[Effects]) -> list[Effects]:
    settled: dict[int, Effects] = {}
    for study in dict.fromkeys(effects.observed.study for effects in designs):
        own = [
            (at, effects) for at, effects in enumerate(designs) if effects.observed.study == study
        ]
        keys = [term for _, effects in own for term in effects.terms if term.means not in SCREENED]
        screen = [term for _, effects in own for term in effects.terms if term.means in SCREENED]
        rows = [row for _, effects in own for row in effects.anova if _stands_alone(row, effects)]
        p_adjusted = _adjusted(keys, holm) | _adjusted([*screen, *rows], benjamini_hochberg)
        for at, effects in own:
            judged = replace(
                effects,
                terms=tuple(
                    _judged(
                        term,
                        effects,
                        p_adjusted.get(id(term)),
                        len(screen) + len(rows) if term.means in SCREENED else len(keys),
                    )
                    for term in effects.terms
                ),
                anova=tuple(
                    replace(row, p_adjusted=p_adjusted.get(id(row))) for row in effects.anova
                ),
            )
            settled[at] = replace(judged, sentence=sentence(judged))
    return [settled[at] for at in range(len(designs))]


def _adjusted(
    tests: Sequence[Term | VariationRow], adjust: Callable[[Sequence[float]], list[float]]
) -> dict[int, float]:
    ps = {id(test): test.p for test in tests if test.p is not None}
    return dict(zip(ps, adjust([*ps.values()]), strict=True))


def _stands_alone(row: VariationRow, effects: Effects) -> bool:
    return (
        len(row.factors) > 1
        and row.p is not None
        and not any(term.factors == row.factors for term in effects.terms)
    )


def _judged(term: Term, effects: Effects, p_adjusted: float | None, family: int) -> Term:
    if p_adjusted is not None:
        term = replace(
            term,
            p_adjusted=p_adjusted,
            family=family,
            adjustment="bh" if term.means in SCREENED else "holm",
        )
    mde = (
        detectable_errors(term.df, ALPHA / max(1, term.family)) * term.se
        if term.se and term.df
        else None
    )
    if mde is not None and effects.observed.scale == "log":
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
    edge = math.log1p(margin)
    return (
        max(
            t_tail((edge - term.effect) / term.se, term.df),
            t_tail((edge + term.effect) / term.se, term.df),
        )
        < ALPHA
    )


def again(run: Run, effects: Effects) -> tuple[str, bool]:
    """Return the A/A check's sentence and whether it fails, that is, stock-again differs; or "".

    An error too small for this machine, or an unlucky stock, would blame keys and stock-again
    alike. If both form the baseline, this is the guard of `compare`: from the scatter of the two
    alone, at its own level.
    """
    data = effects.observed
    guard = bool(declared_baseline(Arm(run.origin, (run,)), data.study))
    level = GUARD if guard else ALPHA
    usable = {row.block for row in data.rows if row.name == next(iter(data.points))}
    stock, copies = (_values(run, data, name) for name in (run.baseline, AGAIN))
    if not copies:
        return "", False
    sign = -1.0 if data.better == "lower" else 1.0
    gains = [
        sign * math.log(copies[block] / stock[block])
        for block in sorted(usable & stock.keys() & copies.keys())
    ]
    error, df = _error(gains, effects, alone=guard or data.design in WHOLE_SETS)
    if not error:
        reason = (
            f"{len(gains)} blocks are too few"
            if gains
            else f"{AGAIN} and {run.baseline} share no measured block"
        )
        return f"cannot be checked: {reason}.", False
    effect, low, high, p = t_interval(math.fsum(gains) / len(gains), error, df)
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


def _error(gains: Sequence[float], effects: Effects, *, alone: bool) -> tuple[float, int]:
    """Return the standard error and d.f. of the gains' mean: `alone`, or from the common error."""
    count = len(gains)
    if not alone:
        return (
            (math.sqrt(2 * effects.error_ms / count), effects.error_df)
            if count and effects.error_ms
            else (0.0, 0)
        )
    _, spread = moments(gains) if count >= FEWEST_CELLS else (0.0, 0.0)
    return (spread / math.sqrt(count), count - 1) if spread > ROUNDING else (0.0, 0)
