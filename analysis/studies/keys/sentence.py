"""The answer in a sentence: the keys, their effects and certainty, or the detectable effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.stats.effect import holm
from analysis.terms import Refused
from analysis.wording import digits, number, percent, probability, speed, unsigned
from control.names import first_few
from control.t_test import ALPHA

from .terms import NAMED, SCREENED, Effects, Term

if TYPE_CHECKING:
    from analysis.stats.linear import VariationRow

ADJUSTED = {"holm": "Holm", "bh": "Benjamini-Hochberg"}
PLACES = {"alone": " alone", "in profile": " in the profile"}
CONFIRM = (
    "named keys are suspects, and unnamed keys may be masked; confirm with a design of fewer keys."
)
MOST = 4  # number of listed names
ROMAN = {1: "I", 2: "II", 3: "III", 4: "IV", 5: "V"}


def sentence(effects: Effects) -> str:
    if effects.refusal:
        return f"No effects: {effects.refusal}"
    if effects.observed.scale == "raw" and any(
        row.f is not None and row.df > 1 and row.factors for row in effects.anova
    ):
        return _by_factor(effects)
    return " ".join(
        (
            _keys(effects),
            *_gaps(effects),
            *_caveat(effects),
            *_profile(effects),
            *_interactions(effects),
        )
    )


def only(designs: Iterable[Effects], requested: Sequence[tuple[str, ...]]) -> list[Effects]:
    """Keep only the requested effects, given by factors, and answer them before the sentence.

    Raises: Refused, if a design cannot distinguish one from others.
    """
    result = []
    for effects in designs:
        factors = {factor.name for factor in effects.observed.factors}
        sets = [
            frozenset(effect)
            for effect in requested
            if not effects.refusal and factors.issuperset(effect)
        ]
        text = " ".join(
            (*(_answer(effects, effect) for effect in sets), "Of all effects:", effects.sentence)
        )
        terms = tuple(term for term in effects.terms if frozenset(term.factors) in sets)
        result.append(replace(effects, terms=terms, sentence=text if sets else effects.sentence))
    return result


def _answer(effects: Effects, effect: frozenset[str]) -> str:
    name = ":".join(factor.name for factor in effects.observed.factors if factor.name in effect)
    terms = [term for term in effects.terms if effect == frozenset(term.factors)]
    others = [alias for term in terms for alias in term.aliases if len(alias) <= len(effect)]
    others += [
        term.factors
        for term in effects.terms
        if effect in map(frozenset, term.aliases) and len(term.factors) <= len(effect)
    ]
    if others:
        same = ", ".join(map(":".join, others))
        grade = f" (resolution {ROMAN[effects.resolution]})" if effects.resolution in ROMAN else ""
        raise Refused(
            f"{name} cannot be distinguished from {same} in this design{grade}; use a higher "
            "resolution, or a factorial."
        )
    keys = [term for term in terms if term.means not in SCREENED and term.p_adjusted is not None]
    lines = [_described(group, effects) for group in _by_subject(keys)]
    lines += [
        _together(term) for term in terms if term.means in SCREENED and term.p_adjusted is not None
    ]
    lines += [
        _tested(row, effects)
        for row in effects.anova
        if not terms and effect == frozenset(row.factors) and row.f is not None
    ]
    places = {name, *(f"{name}{place}" for place in PLACES.values())}
    lines += [
        f"{label} cannot be judged: {reason}"
        for label, reason in effects.unestimable
        if label in places
    ]
    if not terms and not lines:
        labels = first_few([term.label for term in effects.terms], MOST)
        raise Refused(
            f"this design does not separate {name}; it separates {labels}. Lay out a factorial "
            "over these keys."
        )
    return f"{'; '.join(lines) or f'{name} cannot be judged: there is no error term'}."


def _keys(effects: Effects) -> str:
    family = [
        term for term in effects.terms if term.means not in SCREENED and term.means != "profile"
    ]
    if not family:
        return f"None of the {_noun(effects)}s can be judged."
    named = [terms for terms in _by_subject(family) if any(term.verdict in NAMED for term in terms)]
    named.sort(key=lambda terms: -max(abs(term.effect) for term in terms if term.verdict in NAMED))
    if not named:
        return _none(effects, family)
    # An aliased main effect does not belong to its key alone.
    suspect = any(_or_others(terms[0], effects) for terms in named)
    noun = "suspect" if suspect else _noun(effects)
    head = f"{len(named)} {noun}s: " if len(named) > 1 else "Suspect: " if suspect else ""
    return f"{head}{first_few([_described(terms, effects) for terms in named], MOST, '; ')}."


def _by_subject(terms: Iterable[Term]) -> list[list[Term]]:
    groups: dict[str, list[Term]] = {}
    for term in terms:
        groups.setdefault(_subject(term), []).append(term)
    return [*groups.values()]


def _described(terms: Sequence[Term], effects: Effects) -> str:
    parts = []
    for term in sorted(terms, key=lambda term: term.verdict not in NAMED):
        word = (
            _amount(term, effects)
            if term.verdict in NAMED
            else "equivalent"
            if term.verdict == "equivalent"
            else "not shown to matter"
        )
        small = (
            f", within the margin of {unsigned(effects.observed.margin or 0)}"
            if _is_small(term, effects)
            else ""
        )
        parts.append(f"{word}{PLACES.get(term.means, '')} ({_evidence(term)}{small})")
    close = _close_aliases(terms[0])
    mixed = f", which cannot be distinguished from {first_few(close, MOST)}" if close else ""
    return f"{_subject(terms[0])}{_or_others(terms[0], effects)}: {', '.join(parts)}{mixed}"


def _none(effects: Effects, family: Sequence[Term]) -> str:
    noun, margin = _noun(effects), effects.observed.margin
    known = [term for term in family if term.p_adjusted is not None]
    if not known:
        return f"No {noun} can be named: nothing was replicated; run 2 blocks or more."
    clearest = min(known, key=lambda term: (term.p_adjusted or 0.0, term.p or 0.0))
    size = percent(clearest.gain) if clearest.gain is not None else digits(clearest.effect)
    partly = bool(unjudged(effects))
    head = (
        f"Of the {noun}s that can be judged none can be named"
        if partly
        else f"No {noun} can be named"
    )
    answer = (
        f"{head}: the clearest, {_subject(clearest)}{PLACES.get(clearest.means, '')}, is {size} "
        f"({_evidence(clearest)})."
    )
    if effects.again_fails:
        return (
            f"{answer} A copy of stock also differs from stock (A/A): run it again, with more "
            "blocks or on a quieter machine."
        )
    equal = sum(term.verdict == "equivalent" for term in family)
    if equal and margin:
        answer += (
            f" {equal} of {len(family)} effects are shown to lie within the margin of "
            f"{unsigned(margin)}."
        )
    worth = max(term.mde or 0.0 for term in known)
    write = unsigned if effects.observed.scale == "log" else digits
    return (
        f"{answer} {'Of these, an' if partly else 'An'} effect of {write(worth)} or more would be "
        "named 4 times in 5."
    )


def _gaps(effects: Effects) -> Iterator[str]:
    missing = unjudged(effects)
    if missing:
        yield f"Cannot be judged: {first_few(missing, MOST)}."


def _caveat(effects: Effects) -> Iterator[str]:
    if effects.mixed:
        yield (
            "A main effect in this design includes shares of others' interactions (up to "
            f"{effects.mixed:.2f} of each): {CONFIRM}"
        )
    elif effects.resolution is not None and effects.resolution <= 3:
        yield (
            f"A main effect in this design (resolution {ROMAN[effects.resolution]}) is aliased "
            f"with others' interactions: {CONFIRM}"
        )


def _profile(effects: Effects) -> Iterator[str]:
    for term in effects.terms:
        if term.means == "profile":
            words = {"equivalent": "equivalent to stock"} | dict.fromkeys(
                NAMED, _amount(term, effects)
            )
            yield (
                f"The profile as a whole: {words.get(term.verdict, 'no difference shown')} "
                f"({_evidence(term)})."
            )


def _interactions(effects: Effects) -> Iterator[str]:
    terms = [term for term in effects.terms if term.verdict == "interacts"]
    rows = [
        row.name for row in effects.anova if row.p_adjusted is not None and row.p_adjusted < ALPHA
    ]
    if terms:
        yield (
            f"Not additive: {'; '.join(map(_together, terms[:MOST]))}: a hint from a screen, to "
            "be confirmed."
        )
    elif rows:
        yield f"Not additive: {', '.join(rows)} (a screen; confirm it)."


def _together(term: Term) -> str:
    size = (
        percent(term.gain)
        if term.gain is not None
        else f"{'+' if term.effect > 0 else ''}{digits(term.effect)}"
    )
    mixed = "".join(f", or {alias}" for alias in _close_aliases(term))
    beyond = (
        "in the profile {} beyond its effect alone"
        if term.means == "disagreement"
        else "{} beyond their sum"
    )
    shown = "" if term.verdict == "interacts" else ": not shown to interact,"
    return f"{' with '.join(term.factors)}{shown} {beyond.format(size)}{mixed} ({_evidence(term)})"


def _by_factor(effects: Effects) -> str:
    rows = [row for row in effects.anova if row.factors and row.p is not None]
    mains = [row for row in rows if row.p_adjusted is None]
    adjusted = zip(mains, holm([row.p or 0.0 for row in mains]), strict=True)
    shown = [
        row
        for row, p in (*adjusted, *((row, row.p_adjusted) for row in rows))
        if p is not None and p < ALPHA
    ]
    if shown:
        ordered = sorted(shown, key=lambda row: -row.share)
        return f"{'; '.join(_tested(row, effects) for row in ordered)}."
    clearest = min(rows, key=lambda row: row.p or 0.0)
    return f"No factor can be named; the clearest is {_tested(clearest, effects)}."


def _tested(row: VariationRow, effects: Effects) -> str:
    f = f"F {digits(row.f or 0.0)} ({row.df}, {effects.error_df})"
    return f"{row.name}: {unsigned(row.share)} of the variation, {f}, p {probability(row.p or 0.0)}"


def unjudged(effects: Effects) -> list[str]:
    """List planned questions without an answer: keys, levels, keys in an ablation, sets."""
    design = effects.observed
    gone = [label for label, _ in effects.unestimable]
    if design.design == "matrix":
        return gone
    judged = [
        term
        for term in effects.terms
        if term.means not in {*SCREENED, "profile"} and term.p_adjusted is not None
    ]
    missing: list[str] = []
    for factor in design.factors:
        levels = {term.level for term in judged if term.factors == (factor.name,)}
        several = any(term.means == "level" for term in judged)
        if not levels:
            missing.append(factor.name)
        elif several:
            missing += [
                f"{factor.name} = {level}" for level in factor.levels[1:] if level not in levels
            ]
        else:
            missing += [
                label
                for label in gone
                if label in {f"{factor.name}{place}" for place in PLACES.values()}
            ]
    return missing + [f"{label} as a whole" for label in gone if label == design.profile]


def _noun(effects: Effects) -> str:
    if effects.observed.profile:
        return "key"
    return "factor" if effects.observed.design == "table" else "tweak set"


def _subject(term: Term) -> str:
    if term.means in {"set", "profile"}:
        return term.label
    name = ":".join(term.factors)
    return name if term.level is None or name.startswith("script:") else f"{name} = {term.level}"


def _or_others(term: Term, effects: Effects) -> str:
    holds = term.means == "main" and (
        effects.mixed > 0 or any(len(alias) == 2 for alias in term.aliases)
    )
    return ", or interactions of others" if holds else ""


def _close_aliases(term: Term) -> list[str]:
    return [":".join(alias) for alias in term.aliases if len(alias) <= 2]


def _is_small(term: Term, effects: Effects) -> bool:
    margin = effects.observed.margin
    return (
        margin is not None
        and term.gain is not None
        and term.verdict in NAMED
        and 1 / (1 + margin) < 1 + term.gain < 1 + margin
    )


def _amount(term: Term, effects: Effects) -> str:
    if term.gain is not None and effects.observed.better is not None:
        return speed(term.gain)
    size = digits(abs(term.effect)) if term.gain is None else unsigned(abs(term.gain))
    share = (
        f", {unsigned(term.share)} of the variation"
        if term.gain is None and term.share is not None
        else ""
    )
    return f"{size} {'more' if term.effect > 0 else 'less'} {effects.observed.metric}{share}"


def _evidence(term: Term) -> str:
    p = (
        ""
        if term.p_adjusted is None
        else f", {ADJUSTED.get(term.adjustment, '')} p {probability(term.p_adjusted)} of "
        f"{term.family}"
    )
    if term.gain_low is not None and term.gain_high is not None:
        return f"95 % {number(term.gain_low)} to {percent(term.gain_high)}{p}"
    if term.low is not None and term.high is not None:
        return f"95 % {digits(term.low)} to {digits(term.high)}{p}"
    return f"no interval{p}"
