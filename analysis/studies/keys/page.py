"""Effects as text of at most 100 columns: per design its factors, effects, variation and error; last of all the sentence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.arms import TOGETHER
from analysis.checks import warnings_of
from analysis.compare import compare
from analysis.disturbance import partial
from analysis.labels import MACHINE, label_of
from analysis.plain import one_line
from analysis.printing import columns, hanging, on_page
from analysis.wording import digits, number, probability, size, unsigned

from .printable import LONGEST, printable
from .sentence import ADJUSTED
from .settle import SCREENED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from analysis.terms import Run

    from .terms import Effects, Means, Term

MOST_ALIASES = 4
KINDS = {
    "ablation": "each key taken away, and each alone",
    "factorial": "all combinations of levels",
    "fractional": "a fraction of all combinations",
    "screening": "Plackett-Burman",
    "bisect": "bisected",
    "search": "searched",
    "matrix": "whole tweak sets side by side",
    "table": "",
}


def render(found: Sequence[Effects], run: Run | None = None, *, color: bool = False) -> str:
    """Write effects as text; `run` is the saved run they are of, None for a table."""
    # Names are made printable below, by which studies are not found any more.
    questions = {} if run is None else {one.observed.study: run.studies[one.observed.study].question for one in found}
    return on_page(_parts([printable(one) for one in found], run, questions), color=color)


def _parts(found: Sequence[Effects], run: Run | None, questions: Mapping[str, str]) -> Iterator[RenderableType]:
    if run is not None:
        measured = sum(cell.outcome == "measured" for cell in run.cells)
        head = f"Run {run.run_id}: {measured} of {len(run.cells)} cells measured, design {run.design.kind}, seed {run.design.seed}"
        yield Text(one_line(head), "bold")
        machine = ", ".join(form.format(run.machine[name]) for name, form in MACHINE.items() if run.machine.get(name))
        yield Text(one_line(machine or "machine unknown"))
        for name, question in questions.items():
            yield Text(one_line(f"{name}: {question}", LONGEST))
        doubts = list(dict.fromkeys(one_line(line, LONGEST) for line in (*warnings_of(run, ()), *_partial(run))))
        if doubts:
            yield hanging((("warning:", line) for line in doubts), "yellow")
    for one in found:
        yield ""
        yield from _design(one)
    legend = hanging(_legend(found), "dim", "dim")
    if legend.row_count:
        yield ""
        yield legend
    yield ""
    for one in found:
        whose = ", ".join(filter(None, (one.observed.workload if run is not None else "", one.observed.profile)))
        yield Text(f"{whose}: {one.sentence}" if whose else one.sentence, "bold")


def _mean(metric: str) -> str:
    return f"mean {label_of(metric)}{', s' * (metric.endswith('_s') and not metric.endswith('_per_s'))}"


def _partial(run: Run) -> Iterator[str]:
    """Of cells that took turns: whether what others did may be an arm's own effect."""
    return partial(run, compare(run)) if run.design.kind == "turns" else iter(())


def _design(one: Effects) -> Iterator[RenderableType]:
    seen = one.observed
    what = ", ".join(filter(None, (seen.profile or "", KINDS.get(seen.design, seen.design))))
    blocks = f" in {one.blocks} blocks" if one.blocks else ""
    label = label_of(seen.metric)
    cells = f"{len(seen.rows)} cells at {len({row.levels for row in seen.rows})} points{blocks}"
    yield Text.assemble((seen.workload, "bold"), f"   {what}{': ' if what else ''}{cells}; {label}")
    if seen.profile or seen.design == "table":
        yield hanging((f"  {factor.letter}", f"{factor.name}: {' → '.join(factor.levels)}") for factor in seen.factors)
    if one.refusal:
        yield Text(f"nothing can be said: {one.refusal}", "yellow")
        return
    yield ""
    yield _terms(one)
    yield from _aliases(one)
    yield ""
    yield _anova(one)
    if any(term.means in {"level", "set"} for term in one.terms):
        yield ""
        yield _levels(one)
    yield ""
    yield hanging(_lines(one))


def _terms(one: Effects) -> RenderableType:
    """The table of effects: those the design was laid out for first, then the screen of interactions."""
    log = one.observed.scale == "log"
    ordered = [*(term for term in one.terms if term.means not in SCREENED), *(term for term in one.terms if term.means in SCREENED)]
    coded = any(term.coefficient is not None for term in one.terms) and not log
    heads = ["effect", *(["q"] if coded else []), _head(one), "share", "p adj.", "MDE", "verdict"]
    rows = []
    for term in ordered:
        q = [] if not coded else ["" if term.coefficient is None else digits(term.coefficient)]
        p = "" if term.p_adjusted is None else f"{probability(term.p_adjusted)} {SHORT[term.adjustment]}"
        share = "" if term.share is None else size(term.share)
        mde = "" if term.mde is None else size(term.mde) if log else digits(term.mde, 3)
        rows.append([_label(term, one), *q, _effect(term), share, p, mde, term.verdict])
    return columns(heads, rows)


SHORT = {"holm": "H", "bh": "BH", "lenth": "sim", "": ""}


def _head(one: Effects) -> str:
    if one.observed.scale == "raw":
        return f"{label_of(one.observed.metric)} [95 %]"
    return "+ % faster [95 %]" if one.observed.better is not None else "% [95 %]"


def _label(term: Term, one: Effects) -> str:
    if term.means == "disagreement":
        return f"{term.label} in the profile − alone"
    if term.means == "interaction":
        letters = {factor.name: factor.letter for factor in one.observed.factors}
        return ":".join(letters[name] for name in term.factors)
    stock = next(iter(one.observed.points))
    against = f"({stock})" if TOGETHER in stock else stock
    return f"{term.label} − {against}" if term.means in {"set", "profile"} else term.label


def _effect(term: Term) -> str:
    if term.gain is not None:
        ends = "" if term.gain_low is None or term.gain_high is None else f" [{_bare(term.gain_low)}, {_bare(term.gain_high)}]"
        return number(term.gain) + ends
    ends = "" if term.low is None or term.high is None else f" [{digits(term.low)}, {digits(term.high)}]"
    return digits(term.effect) + ends


def _bare(value: float) -> str:
    return number(value).lstrip("+")


def _aliases(one: Effects) -> Iterator[RenderableType]:
    """Which effects share a column, by the letters of their factors."""
    letters = {factor.name: factor.letter for factor in one.observed.factors}
    said = []
    for term in one.terms:
        if term.aliases:
            # Names of scripts have colons of their own: take effects apart by the names there are.
            others = [_lettered(alias, letters) for alias in term.aliases]
            more = f" and {len(others) - MOST_ALIASES} more" if len(others) > MOST_ALIASES else ""
            said.append(f"{''.join(letters[name] for name in term.factors)} = {' = '.join(others[:MOST_ALIASES])}{more}")
    if said:
        yield hanging([("cannot be told apart:", "; ".join(said))])


def _lettered(alias: str, letters: dict[str, str]) -> str:
    for name in sorted(letters, key=len, reverse=True):
        alias = alias.replace(name, letters[name])
    return alias.replace(":", "")


def _anova(one: Effects) -> RenderableType:
    letters = {factor.name: factor.letter for factor in one.observed.factors}
    rows = []
    for row in one.anova:
        name = ":".join(letters[factor] for factor in row.factors) if len(row.factors) > 1 else row.name
        ms, f = ("" if value is None else digits(value) for value in (row.ms, row.f))
        rows.append([name, str(row.df), digits(row.ss), size(row.share), ms, f, "" if row.p is None else probability(row.p)])
    return columns(["variation", "df", "SS", "%", "MS", "F", "p"], rows)


def _levels(one: Effects) -> RenderableType:
    rows = []
    for level in one.levels:
        deviation = number(_gain(level.deviation)) if one.observed.scale == "log" else f"{level.deviation:+.4g}"
        ends = "" if level.low is None or level.high is None else f"[{digits(level.low)}, {digits(level.high)}]"
        rows.append([level.factor, level.level, str(level.n), digits(level.mean), ends, deviation])
    return columns(["factor", "level", "n", _mean(one.observed.metric), "95 %", "from the mean"], rows, left=2)


def _gain(log_gain: float) -> float:
    return math.expm1(log_gain)


def _lines(one: Effects) -> Iterator[tuple[str, str]]:
    df = f" ({one.error_df} df)" if one.error_df else ""
    yield "error:", f"{one.error}{df}."
    if one.lenth is not None:
        shown = [
            unsigned(_gain(value)) if one.observed.scale == "log" else digits(value)
            for value in (one.lenth.pse, one.lenth.me, one.lenth.sme)
        ]
        yield (
            "Lenth:",
            f"PSE {shown[0]}; beyond {shown[1]} a main effect stands out alone, beyond {shown[2]} among all {one.lenth.contrasts}.",
        )
    if one.again:
        yield "A/A:", one.again
    for name, reason in one.unestimable[:6]:
        yield "not known:", f"{name}: {reason}."
    if len(one.unestimable) > 6:
        yield "not known:", f"and {len(one.unestimable) - 6} effects more."
    for note in one.notes:
        yield "note:", note


def _legend(found: Sequence[Effects]) -> list[tuple[str, str]]:
    terms = [term for one in found for term in one.terms]
    if not terms:
        return []
    log = any(one.observed.scale == "log" for one in found)
    used = {term.adjustment for term in terms}
    family = ", ".join(dict.fromkeys(str(term.family) for term in terms if term.adjustment == "holm"))
    means = {term.means for term in terms}
    said = [
        ("effect", f"{_average(means)}{': + is faster, - is slower.' if log else '; + is more.'}"),
        ("X:Y", "by how much the effect of X changes when Y is set."),
        ("q", "the same on the scale of -1 and +1: half a main effect, a quarter of an interaction of two."),
        ("share", "% of the total variation that goes with it: a description."),
        ("H", f"{ADJUSTED['holm']}: adjusted for all the keys' effects of the study ({family})."),
        ("BH", f"{ADJUSTED['bh']}: interactions are a screen, adjusted among themselves."),
        ("sim", "simulated for this design: how often the largest of its contrasts is so large where there is nothing."),
        ("MDE", "the smallest effect this design would have called with 80 % probability."),
    ]
    there = {
        "effect": bool(means - SCREENED),
        "X:Y": any(term.means == "interaction" for term in terms),
        "q": not log and any(term.coefficient is not None for term in terms),
        "H": "holm" in used,
        "BH": "bh" in used,
        "sim": "lenth" in used,
    }
    return [(word, meaning) for word, meaning in said if there.get(word, True)]


def _average(means: set[Means]) -> str:
    """Say what an effect is in the designs that are shown."""
    if means & {"main", "level"}:
        return "what going from a factor's first level to another does, on average over the other factors"
    if means & {"alone", "in profile"}:
        return "a key alone against stock; in the profile: the profile against it without the key"
    return "a tweak set against stock"
