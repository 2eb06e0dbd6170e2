"""Answer of a design over keys: the sentence, then effects, variation and error of each design."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from operator import attrgetter

from analysis.answer import (
    TONES,
    Answer,
    Column,
    Columns,
    Line,
    Section,
    Table,
    Word,
    bullets,
    command,
    grouped,
    table_of,
)
from analysis.arms import TOGETHER
from analysis.checks import partial as left_out_of
from analysis.checks import warnings_of
from analysis.compare import compare
from analysis.labels import headline, label_of, provenance
from analysis.terms import Run
from analysis.wording import bracket, counted, digits, number, probability, size
from control.names import first_few

from .sentence import ADJUSTED
from .terms import NAMED, SCREENED, Effects, Level, Term

MOST_ALIASES = 4
MOST_UNKNOWN = 6
SHORT = {"holm": "H", "bh": "BH", "": ""}
KINDS = {
    "ablation": "each key removed, and each key alone",
    "factorial": "all combinations of levels",
    "fractional": "a fraction of all combinations",
    "matrix": "whole tweak sets side by side",
    "table": "",
}
Q = "the same on the scale of -1 and +1: half a main effect, a quarter of an interaction of two."
EFFECT = {
    "level": "the change from a factor's first level to another, averaged over the other factors",
    "key": (
        "a key alone against stock; in the profile: the whole profile against the profile without "
        "the key"
    ),
    "set": "a tweak set against stock",
}


def answer(result: Sequence[Effects], run: Run | None = None) -> Answer:
    """Answer with every design, those that name a key first; `run` is None for a table."""
    ordered = sorted(result, key=lambda one: NAMED.isdisjoint(term.verdict for term in one.terms))
    findings = [": ".join(filter(None, (_name(one, run), one.sentence))) for one in result]
    notes = [(_name(effects, run), note) for effects in ordered for note in _notes(effects)]
    lines = grouped(notes, of=len(result)) if len(result) > 1 else [note for _, note in notes]
    whole = Answer(
        title="",
        findings=[Line(text, tone="strong") for text in findings],
        sections=[
            *map(_design, ordered),
            *([Section("", bullets(lines, "note:"))] if lines else []),
        ],
        legend=_legend(result),
        data={"run": None, "effects": result},
        rows=_flat(result),
    )
    if run is None:
        return whole
    names = dict.fromkeys(effects.observed.study for effects in result)
    questions = [(name, run.studies[name].question) for name in names]
    left_out = left_out_of(run, compare(run)) if run.design.kind == "turns" else ()
    about = {"run_id": run.run_id, "origin": run.origin, "design": run.design.kind}
    return replace(
        whole,
        title=headline([run]).replace("\n", "; "),
        warnings=[*warnings_of(run, ()), *left_out],
        legend=[*provenance([run]), *questions, *whole.legend],
        next=_next(result, run),
        data={"run": about | {"commit": run.commit}, "effects": result},
    )


def brief(result: Sequence[Effects], run: Run) -> Answer:
    """Return the end of a session: the sentence, and whether the A/A check holds."""
    whole = answer(result, run)
    questions = [Line(f"{name}: {study.question}") for name, study in run.studies.items()]
    checks = [
        Line(one.again if len(result) == 1 else f"{_name(one, run)}: {one.again}", "A/A:")
        for one in result
        if one.again
    ]
    findings = [*questions, *whole.findings, *checks]
    return replace(whole, findings=findings, sections=(), legend=(), next=(), rows=None)


def _name(effects: Effects, run: Run | None) -> str:
    data = effects.observed
    return ", ".join(filter(None, (data.workload if run else "", data.profile)))


def _next(result: Sequence[Effects], run: Run) -> tuple[str, ...]:
    verdicts = {term.verdict for effects in result for term in effects.terms}
    is_open = verdicts and verdicts.isdisjoint({*NAMED, "interacts"})
    return command(*(["plan", "--effect", "3%"] if is_open else ["report"]), run.origin)


def _design(effects: Effects) -> Section:
    data = effects.observed
    blocks = f" in {counted(effects.blocks, 'block')}" if effects.blocks else ""
    points = counted(len({row.levels for row in data.rows}), "point")
    cells = f"{counted(len(data.rows), 'cell')} at {points}{blocks}"
    what = ", ".join(filter(None, (data.profile, KINDS.get(data.design, data.design), cells)))
    parts: list[Line | Table] = []
    if data.profile or data.design == "table":
        parts += [
            Line(f"{factor.name}: {' → '.join(factor.levels)}", f"  {factor.letter}")
            for factor in data.factors
        ]
    if effects.refusal:
        parts.append(Line(f"no effects: {effects.refusal}", tone="open"))
    else:
        parts += [_terms(effects)] if effects.terms else []
        parts += [*_aliases(effects), _anova(effects)]
        if any(term.means in {"level", "set"} for term in effects.terms):
            parts.append(_levels(effects))
    parts += bullets([effects.again] if effects.again else [], "A/A:")
    return Section(f"{data.workload}: {what}; {label_of(data.metric)}", parts)


def _terms(effects: Effects) -> Table:
    data, log = effects.observed, effects.observed.scale == "log"
    stock = next(iter(data.points))
    stock = f"({stock})" if TOGETHER in stock else stock
    of_sets = all(term.means == "set" for term in effects.terms)
    gain = "% [95 %]" if data.better is None else "+ % faster [95 %]"
    head = gain if log else f"{label_of(data.metric)} [95 %]"

    def label(term: Term) -> str:
        if term.means == "disagreement":
            return f"{term.label} in the profile − alone"
        if term.means == "interaction":
            return _letters(term.factors, effects, ":")
        return f"{term.label} − {stock}" if term.means == "profile" else term.label

    def adjusted(term: Term) -> str | None:
        if term.p_adjusted is None:
            return None
        return f"{probability(term.p_adjusted)} {SHORT[term.adjustment]}"

    def order(term: Term) -> tuple[bool, bool]:
        return term.means in SCREENED, term.verdict not in {*NAMED, "interacts"}

    columns: Columns = [
        (Column(f"tweak set − {stock}" if of_sets else "effect", left=True), label),
        (Column("q", write=digits), lambda term: None if log else term.coefficient),
        (Column(head), _effect),
        (Column("share", write=size, spare=1), lambda term: term.share),
        (Column("p adj."), adjusted),
        (Column("MDE", write=size if log else partial(digits, most=3)), lambda term: term.mde),
        (
            Column("verdict", left=True),
            lambda term: Word(term.verdict, TONES.get(term.verdict, "strong")),
        ),
    ]
    return table_of(columns, sorted(effects.terms, key=order))


def _letters(factors: Sequence[str], effects: Effects, between: str = "") -> str:
    letters = {factor.name: factor.letter for factor in effects.observed.factors}
    return between.join(letters[name] for name in factors)


def _effect(term: Term) -> str:
    if term.gain is not None:
        return number(term.gain) + bracket(term.gain_low, term.gain_high)
    return digits(term.effect) + bracket(term.low, term.high, digits)


def _aliases(effects: Effects) -> Iterator[Line]:
    lines = [
        f"{_letters(term.factors, effects)} = "
        + first_few([_letters(alias, effects) for alias in term.aliases], MOST_ALIASES, " = ")
        for term in effects.terms
        if term.aliases
    ]
    if lines:
        yield Line("; ".join(lines), "cannot be distinguished:")


def _anova(effects: Effects) -> Table:
    columns: Columns = [
        (
            Column("variation", left=True),
            lambda row: _letters(row.factors, effects, ":") if len(row.factors) > 1 else row.name,
        ),
        (Column("df"), lambda row: row.df),
        (Column("SS", write=digits), lambda row: row.ss),
        (Column("%", write=size), lambda row: row.share),
        (Column("MS", write=digits), lambda row: row.ms),
        (Column("F", write=digits), lambda row: row.f),
        (Column("p", write=probability), lambda row: row.p),
    ]
    return table_of(columns, effects.anova)


def _levels(effects: Effects) -> Table:
    metric, log = effects.observed.metric, effects.observed.scale == "log"
    unit = ", s" * (metric.endswith("_s") and not metric.endswith("_per_s"))
    alone = len({level.factor for level in effects.levels}) == 1  # then its name is the heading
    columns: Columns = [
        (Column("factor", left=True), lambda level: None if alone else level.factor),
        (
            Column(effects.levels[0].factor if alone else "level", left=True),
            lambda level: level.level,
        ),
        (Column("n"), lambda level: level.n),
        (Column(f"mean {label_of(metric)}{unit}", write=digits), lambda level: level.mean),
        (Column("95 %", write=_ends), lambda level: None if level.low is None else level),
        (
            Column("from the mean", write=_gain if log else "{:+.4g}".format),
            lambda level: level.deviation,
        ),
    ]
    return table_of(columns, effects.levels)


def _ends(level: Level) -> str:
    return bracket(level.low, level.high, digits).lstrip()


def _gain(log: float) -> str:
    return number(math.expm1(log))


def _notes(effects: Effects) -> Iterator[str]:
    if effects.error_df or effects.error != "none":
        yield f"Error term: {effects.error}."
    yield from (
        f"{name} is unknown: {reason}." for name, reason in effects.unestimable[:MOST_UNKNOWN]
    )
    if len(effects.unestimable) > MOST_UNKNOWN:
        yield f"{len(effects.unestimable) - MOST_UNKNOWN} more effects are unknown."
    yield from effects.notes


def _flat(result: Sequence[Effects]) -> Table:
    of_design = ("workload", "profile", "metric")
    omitted = {"factors", "aliases", "se", "df", "coefficient"}
    of_term = [field.name for field in fields(Term) if field.name not in omitted]
    rows = [
        [*attrgetter(*of_design)(effects.observed), *attrgetter(*of_term)(term)]
        for effects in result
        for term in effects.terms
    ]
    return Table([Column(name) for name in (*of_design, *of_term)], rows)


def _legend(result: Sequence[Effects]) -> list[tuple[str, str]]:
    terms = [term for effects in result for term in effects.terms]
    if not terms:
        return []
    log = any(effects.observed.scale == "log" for effects in result)
    means = {term.means for term in terms}
    kind = "key" if means & {"alone", "in profile"} else "set"
    kind = "level" if means & {"main", "level"} else kind
    families = dict.fromkeys(str(term.family) for term in terms if term.adjustment == "holm")
    every = {
        "effect": f"{EFFECT[kind]}{': + is faster, - is slower.' if log else '; + is more.'}",
        "X:Y": "the change of X's effect when Y is set." if "interaction" in means else "",
        "q": "" if log else Q,
        "share": "% of the total variation explained: a description.",
        "H": f"{ADJUSTED['holm']}: adjusted for all the keys' effects of the study "
        f"({', '.join(families)})."
        if families
        else "",
        "BH": f"{ADJUSTED['bh']}: interactions are a screen, adjusted among themselves."
        if means & SCREENED
        else "",
        "MDE": "the smallest effect that this design would have detected with 80 % probability.",
    }
    return [(name, text) for name, text in every.items() if text]
