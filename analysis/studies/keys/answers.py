"""What a design says of its keys, as an answer: the sentence first, then effects, variation and error of each design."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from analysis.answer import TONES, Answer, Column, Line, Section, Table, Word, bullets, command, grouped
from analysis.arms import TOGETHER
from analysis.checks import partial, warnings_of
from analysis.compare import compare
from analysis.labels import headline, label_of, provenance
from analysis.terms import Run
from analysis.wording import bracket, digits, number, probability, size
from control.names import first_few

from .sentence import ADJUSTED
from .terms import NAMED, SCREENED, Effects, Level, Means, Term, VariationRow

MOST_ALIASES = 4
KINDS = {
    "ablation": "each key taken away, and each alone",
    "factorial": "all combinations of levels",
    "fractional": "a fraction of all combinations",
    "matrix": "whole tweak sets side by side",
    "table": "",
}


MOST_SENTENCES = 3  # findings; of more designs those that name nothing are counted
MOST_UNKNOWN = 6
SHORT = {"holm": "H", "bh": "BH", "": ""}


def answer(result: Sequence[Effects], run: Run | None = None) -> Answer:
    several = len(result) > MOST_SENTENCES
    ordered = sorted(result, key=lambda effects: not _names(effects))
    shared = [(_name(effects, run), line) for effects in ordered for line in _doubts(effects)]
    sections = [_design(effects, with_sentence=several and not _names(effects)) for effects in ordered]
    if shared:
        sections.append(Section("", bullets(grouped(shared, of=len(result)) if len(result) > 1 else [line for _, line in shared], "note:")))
    return Answer(
        title="" if run is None else headline([run]).replace("\n", "; "),
        findings=[
            *_sentences([effects for effects in result if not several or _names(effects)], run),
            *(_silent(result) if several else ()),
        ],
        sections=sections,
        warnings=[] if run is None else [*warnings_of(run, ()), *(partial(run, compare(run)) if run.design.kind == "turns" else ())],
        legend=[*(provenance([run]) if run else ()), *_questions(result, run), *_legend(result)],
        next=() if run is None else _next(result, run),
        data={"run": None if run is None else _about(run), "effects": result},
        rows=_flat(result),
    )


def brief(result: Sequence[Effects], run: Run) -> Answer:
    """What a session ends with: which key did it, in a sentence, and whether the A/A check holds."""
    checks = [
        Line(effects.again if len(result) == 1 else f"{_name(effects, run)}: {effects.again}", "A/A:")
        for effects in result
        if effects.again
    ]
    return Answer(
        title=headline([run]).replace("\n", "; "),
        findings=[*(Line(f"{name}: {study.question}") for name, study in run.studies.items()), *_sentences(result, run), *checks],
        warnings=list(warnings_of(run, ())),
        data={"run": _about(run), "effects": result},
    )


def _questions(result: Sequence[Effects], run: Run | None) -> list[tuple[str, str]]:
    return (
        [] if run is None else [(name, run.studies[name].question) for name in dict.fromkeys(effects.observed.study for effects in result)]
    )


def _about(run: Run) -> dict[str, object]:
    return {"run_id": run.run_id, "origin": run.origin, "design": run.design.kind, "commit": run.commit}


def _name(effects: Effects, run: Run | None) -> str:
    return ", ".join(filter(None, (effects.observed.workload if run is not None else "", effects.observed.profile)))


def _sentences(result: Sequence[Effects], run: Run | None) -> list[Line]:
    return [Line(": ".join(filter(None, (_name(effects, run), effects.sentence))), tone="strong") for effects in result]


def _names(effects: Effects) -> bool:
    return any(term.verdict in NAMED for term in effects.terms)


def _silent(result: Sequence[Effects]) -> Iterator[Line]:
    silent = list(dict.fromkeys(effects.observed.workload for effects in result if not _names(effects)))
    if silent:
        yield Line(f"Nothing can be named under {', '.join(silent)}.", tone="strong")


def _next(result: Sequence[Effects], run: Run) -> tuple[str, ...]:
    hint = any(term.verdict == "interacts" for effects in result for term in effects.terms)
    named = hint or any(map(_names, result))
    return command(*(["report"] if named else ["plan", "--effect", "3%"]), run.origin)


def _design(effects: Effects, *, with_sentence: bool) -> Section:
    data = effects.observed
    what = ", ".join(filter(None, (data.profile or "", KINDS.get(data.design, data.design))))
    blocks = f" in {effects.blocks} block{'s' * (effects.blocks > 1)}" if effects.blocks else ""
    cells = f"{len(data.rows)} cells at {len({row.levels for row in data.rows})} points{blocks}"
    parts: list[Line | Table] = [Line(effects.sentence)] if with_sentence else []
    if data.profile or data.design == "table":
        parts += [Line(f"{factor.name}: {' → '.join(factor.levels)}", f"  {factor.letter}") for factor in data.factors]
    title = f"{data.workload}: {what}{', ' if what else ''}{cells}; {label_of(data.metric)}"
    if effects.refusal:
        return Section(title, [*parts, Line(f"nothing can be said: {effects.refusal}", tone="open")])
    parts += [_terms(effects), *_aliases(effects), _anova(effects)]
    if any(term.means in {"level", "set"} for term in effects.terms):
        parts.append(_levels(effects))
    return Section(title, [*parts, *_lines(effects)])


def _terms(effects: Effects) -> Table:
    log = effects.observed.scale == "log"
    ordered = sorted(effects.terms, key=lambda term: (term.means in SCREENED, term.verdict not in NAMED and term.verdict != "interacts"))
    coded = any(term.coefficient is not None for term in effects.terms) and not log
    against = _stock(effects) if all(term.means == "set" for term in effects.terms) else ""
    columns = [
        Column(f"tweak set − {against}" if against else "effect", left=True),
        *([Column("q", write=digits)] if coded else []),
        Column(_head(effects)),
        Column("share", write=size, spare=1),
        Column("p adj."),
        Column("MDE", write=size if log else lambda value: digits(value, 3)),
        Column("verdict", left=True),
    ]
    rows = [
        [
            term.label if against else _label(term, effects),
            *([term.coefficient] if coded else []),
            Word(_effect(term)),
            term.share,
            Word(_p(term)) if term.p_adjusted is not None else None,
            term.mde,
            Word(term.verdict, TONES.get(term.verdict, "strong")),
        ]
        for term in ordered
    ]
    return Table(columns, rows)


def _p(term: Term) -> str:
    return f"{probability(term.p_adjusted or 0.0)} {SHORT[term.adjustment]}"


def _head(effects: Effects) -> str:
    if effects.observed.scale == "raw":
        return f"{label_of(effects.observed.metric)} [95 %]"
    return "+ % faster [95 %]" if effects.observed.better is not None else "% [95 %]"


def _label(term: Term, effects: Effects) -> str:
    if term.means == "disagreement":
        return f"{term.label} in the profile − alone"
    if term.means == "interaction":
        letters = {factor.name: factor.letter for factor in effects.observed.factors}
        return ":".join(letters[name] for name in term.factors)
    return f"{term.label} − {_stock(effects)}" if term.means in {"set", "profile"} else term.label


def _stock(effects: Effects) -> str:
    stock = next(iter(effects.observed.points))
    return f"({stock})" if TOGETHER in stock else stock


def _effect(term: Term) -> str:
    if term.gain is not None:
        return number(term.gain) + bracket(term.gain_low, term.gain_high)
    return digits(term.effect) + bracket(term.low, term.high, digits)


def _aliases(effects: Effects) -> Iterator[Line]:
    letters = {factor.name: factor.letter for factor in effects.observed.factors}
    lines = []
    for term in effects.terms:
        if term.aliases:
            # Names of scripts have colons of their own: take effects apart by the names there are.
            others = [_lettered(alias, letters) for alias in term.aliases]
            lines.append(f"{''.join(letters[name] for name in term.factors)} = {first_few(others, MOST_ALIASES, ' = ')}")
    if lines:
        yield Line("; ".join(lines), "cannot be told apart:")


def _lettered(alias: str, letters: dict[str, str]) -> str:
    for name in sorted(letters, key=len, reverse=True):
        alias = alias.replace(name, letters[name])
    return alias.replace(":", "")


def _anova(effects: Effects) -> Table:
    letters = {factor.name: factor.letter for factor in effects.observed.factors}

    def name(row: VariationRow) -> str:
        return ":".join(letters[factor] for factor in row.factors) if len(row.factors) > 1 else row.name

    columns = [Column("df"), *(Column(head, write=digits) for head in ("SS", "MS", "F"))]
    columns = [*columns[:2], Column("%", write=size), *columns[2:], Column("p", write=probability)]
    rows = [[name(row), row.df, row.ss, row.share, row.ms, row.f, row.p] for row in effects.anova]
    return Table([Column("variation", left=True), *columns], rows)


def _levels(effects: Effects) -> Table:
    log, metric = effects.observed.scale == "log", effects.observed.metric
    unit = ", s" * (metric.endswith("_s") and not metric.endswith("_per_s"))
    alone = len({level.factor for level in effects.levels}) == 1  # then its name is the head
    columns = (
        *(() if alone else (Column("factor", left=True),)),
        Column(effects.levels[0].factor if alone else "level", left=True),
        Column("n"),
        Column(f"mean {label_of(metric)}{unit}", write=digits),
        Column("95 %", write=_ends),
        Column("from the mean", write=(lambda value: number(math.expm1(value))) if log else (lambda value: f"{value:+.4g}")),
    )
    rows = [
        [*(() if alone else (level.factor,)), level.level, level.n, level.mean, None if level.low is None else level, level.deviation]
        for level in effects.levels
    ]
    return Table(columns, rows)


def _ends(level: Level) -> str:
    return bracket(level.low, level.high, digits).lstrip()


def _lines(effects: Effects) -> Iterator[Line]:
    if effects.again:
        yield Line(effects.again, "A/A:")


def _doubts(effects: Effects) -> Iterator[str]:
    """What a reader must know before believing a number; often the same of several designs."""
    if effects.error_df or effects.error != "none":
        yield f"Error term: {effects.error}."
    yield from (f"{name} is not known: {reason}." for name, reason in effects.unestimable[:MOST_UNKNOWN])
    if len(effects.unestimable) > MOST_UNKNOWN:
        yield f"{len(effects.unestimable) - MOST_UNKNOWN} effects more are not known."
    yield from effects.notes


def _flat(result: Sequence[Effects]) -> Table:
    fields = (
        "effect",
        "low",
        "high",
        "gain",
        "gain_low",
        "gain_high",
        "share",
        "p",
        "p_adjusted",
        "adjustment",
        "family",
        "mde",
        "verdict",
    )
    names = ("workload", "profile", "metric", "label", "means", "level", *fields)
    rows = [
        [effects.observed.workload, effects.observed.profile, effects.observed.metric, *(getattr(term, name) for name in names[3:])]
        for effects in result
        for term in effects.terms
    ]
    return Table([Column(name) for name in names], rows)


def _legend(result: Sequence[Effects]) -> list[tuple[str, str]]:
    terms = [term for effects in result for term in effects.terms]
    if not terms:
        return []
    log = any(effects.observed.scale == "log" for effects in result)
    used = {term.adjustment for term in terms}
    family = ", ".join(dict.fromkeys(str(term.family) for term in terms if term.adjustment == "holm"))
    means = {term.means for term in terms}
    lines = [
        ("effect", f"{_average(means)}{': + is faster, - is slower.' if log else '; + is more.'}"),
        ("X:Y", "by how much the effect of X changes when Y is set."),
        ("q", "the same on the scale of -1 and +1: half a main effect, a quarter of an interaction of two."),
        ("share", "% of the total variation that goes with it: a description."),
        ("H", f"{ADJUSTED['holm']}: adjusted for all the keys' effects of the study ({family})."),
        ("BH", f"{ADJUSTED['bh']}: interactions are a screen, adjusted among themselves."),
        ("MDE", "the smallest effect this design would have called with 80 % probability."),
    ]
    shown = {
        "effect": bool(means - SCREENED),
        "X:Y": any(term.means == "interaction" for term in terms),
        "q": not log and any(term.coefficient is not None for term in terms),
        "H": "holm" in used,
        "BH": "bh" in used,
    }
    return [(word, meaning) for word, meaning in lines if shown.get(word, True)]


def _average(means: set[Means]) -> str:
    if means & {"main", "level"}:
        return "what going from a factor's first level to another does, on average over the other factors"
    if means & {"alone", "in profile"}:
        return "a key alone against stock; in the profile: the profile against it without the key"
    return "a tweak set against stock"
