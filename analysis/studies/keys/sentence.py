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
    parts = (_caveats(effects), _profile(effects), _interactions(effects))
    return " ".join([_keys(effects), *(line for lines in parts for line in lines)])


def only(designs: Iterable[Effects], requested: Sequence[tuple[str, ...]]) -> list[Effects]:
    """Keep only the requested effects, given by factors, in the table; the sentence is of all.

    Raises: Refused, if a design cannot distinguish one from others.
    """
    result = []
    for effects in designs:
        factors = {factor.name for factor in effects.observed.factors}
        sets = [frozenset(effect) for effect in requested if factors.issuperset(effect)]
        if sets and not effects.refusal:
            for effect in sets:
                _must_be_separate(effects, effect)
            terms = tuple(term for term in effects.terms if frozenset(term.factors) in sets)
            sentence = f"Of all effects: {effects.sentence}"
            result.append(replace(effects, terms=terms, sentence=sentence))
        else:
            result.append(effects)
    return result


def _must_be_separate(effects: Effects, effect: frozenset[str]) -> None:
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
    places = {name, *(f"{name}{place}" for place in PLACES.values())}
    lost = [f"{name}: {reason}" for label, reason in effects.unestimable if label in places]
    if not terms and lost:
        raise Refused(f"cannot be judged: {'; '.join(lost)}.")
    if not terms and effect not in (frozenset(row.factors) for row in effects.anova):
        labels = first_few([term.label for term in effects.terms], MOST)
        raise Refused(
            f"this design does not separate {name}; it separates {labels}. Lay out a factorial "
            "over these keys."
        )


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
    parts, margin = [], effects.observed.margin
    for term in sorted(terms, key=lambda term: term.verdict not in NAMED):
        word = "equivalent" if term.verdict == "equivalent" else "not shown to matter"
        small = ""
        if term.verdict in NAMED:
            word = _amount(term, effects)
            if margin and term.gain is not None and 1 / (1 + margin) < 1 + term.gain < 1 + margin:
                small = f", within the margin of {unsigned(margin)}"
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
    partly = bool(unjudged(effects))
    head = f"Of the {noun}s that can be judged none" if partly else f"No {noun}"
    answer = (
        f"{head} can be named: the clearest, {_subject(clearest)}"
        f"{PLACES.get(clearest.means, '')}, is {_size(clearest)} ({_evidence(clearest)})."
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
    least = unsigned(worth) if effects.observed.scale == "log" else digits(worth)
    return (
        f"{answer} {'Of these, an' if partly else 'An'} effect of {least} or more would be named 4 "
        "times in 5."
    )


def _size(term: Term) -> str:
    return percent(term.gain) if term.gain is not None else digits(term.effect)


def _caveats(effects: Effects) -> Iterator[str]:
    if missing := unjudged(effects):
        yield f"Cannot be judged: {first_few(missing, MOST)}."
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
            words = dict.fromkeys(NAMED, _amount(term, effects))
            words["equivalent"] = "equivalent to stock"
            shown = words.get(term.verdict, "no difference shown")
            yield f"The profile as a whole: {shown} ({_evidence(term)})."


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
    sign = "+" if term.gain is None and term.effect > 0 else ""
    beyond = f"{sign}{_size(term)} beyond their sum"
    if term.means == "disagreement":
        beyond = f"in the profile {sign}{_size(term)} beyond its effect alone"
    mixed = "".join(f", or {alias}" for alias in _close_aliases(term))
    shown = "" if term.verdict == "interacts" else ": not shown to interact,"
    return f"{' with '.join(term.factors)}{shown} {beyond}{mixed} ({_evidence(term)})"


def _by_factor(effects: Effects) -> str:
    rows = [row for row in effects.anova if row.factors and row.p is not None]
    mains = [row for row in rows if row.p_adjusted is None]
    adjusted = [*zip(mains, holm([row.p or 0.0 for row in mains]), strict=True)]
    adjusted += [(row, row.p_adjusted) for row in rows if row.p_adjusted is not None]
    shown = sorted((row for row, p in adjusted if p < ALPHA), key=lambda row: -row.share)
    if shown:
        return f"{'; '.join(_tested(row, effects) for row in shown)}."
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
    missing: list[str] = []
    for factor in design.factors:
        own = [
            term
            for term in effects.terms
            if term.means not in {*SCREENED, "profile"}
            and term.p_adjusted is not None
            and term.factors == (factor.name,)
        ]
        levels = {term.level for term in own}
        if not own:
            missing.append(factor.name)
        elif own[0].means == "level":
            others = [level for level in factor.levels[1:] if level not in levels]
            missing += [f"{factor.name} = {level}" for level in others]
        else:
            places = [f"{factor.name}{place}" for place in PLACES.values()]
            missing += [label for label in gone if label in places]
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


def _amount(term: Term, effects: Effects) -> str:
    if term.gain is not None and effects.observed.better is not None:
        return speed(term.gain)
    size = digits(abs(term.effect)) if term.gain is None else unsigned(abs(term.gain))
    is_shared = term.gain is None and term.share is not None
    share = f", {unsigned(term.share or 0.0)} of the variation" if is_shared else ""
    return f"{size} {'more' if term.effect > 0 else 'less'} {effects.observed.metric}{share}"


def _evidence(term: Term) -> str:
    p = ""
    if term.p_adjusted is not None:
        method = ADJUSTED.get(term.adjustment, "")
        p = f", {method} p {probability(term.p_adjusted)} of {term.family}"
    if term.gain_low is not None and term.gain_high is not None:
        return f"95 % {number(term.gain_low)} to {percent(term.gain_high)}{p}"
    if term.low is not None and term.high is not None:
        return f"95 % {digits(term.low)} to {digits(term.high)}{p}"
    return f"no interval{p}"
