"""The sentence that answers the question: which key, how much, how sure; or that none can be named, and what would have been seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.wording import digits, number, percent, probability, speed, unsigned

from .terms import NAMED, SCREENED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .terms import Effects, Term, VariationSource


ADJUSTED = {"holm": "Holm", "bh": "Benjamini-Hochberg", "lenth": "simulated"}
MOST = 4  # keys named one by one
ALPHA = 0.05


def sentence(effects: Effects) -> str:
    if effects.conclusion:
        return f"The design's own conclusion: {effects.conclusion.rstrip('.')}. What its cells say, set against stock: {_cells(effects)}"
    return _cells(effects)


def _cells(effects: Effects) -> str:
    if effects.refusal:
        return f"Nothing can be said: {effects.refusal}"
    if effects.observed.scale == "raw" and any(row.f is not None and row.df > 1 and row.factors for row in effects.anova):
        return _by_factor(effects)
    return " ".join(filter(None, (_keys(effects), *not_covered(effects), *caveat(effects), _whole(effects), _company(effects))))


def subject(term: Term, effects: Effects) -> str:
    if term.means == "set":
        return term.label if term.level is None or term.label.startswith(term.level) else term.level
    if term.means == "profile":
        return term.label
    if term.means == "level":
        return f"{term.factors[0]} = {term.level}"
    factor = next((known for known in effects.observed.factors if known.name == term.factors[0]), None)
    value = factor.levels[-1] if factor is not None and effects.observed.profile and not term.factors[0].startswith("script:") else ""
    return f"{term.factors[0]} = {value}" if value and len(term.factors) == 1 else ":".join(term.factors)


def _noun(effects: Effects) -> str:
    """What is named: a key, a candidate of a search, a whole tweak set, or a factor of another study."""
    if effects.observed.design == SEARCH:
        return "candidate"
    if effects.observed.profile:
        return "key"
    return "factor" if effects.observed.design == "table" else "tweak set"


def _keys(effects: Effects) -> str:
    """Name the keys whose effect is shown, the largest first; or none, with what would have been."""
    # Of a search the profile is a candidate as good as any; elsewhere it has a sentence of its own.
    whole = "" if effects.observed.design == SEARCH else "profile"
    family = [term for term in effects.terms if term.means not in SCREENED and term.means != whole]
    if not family:
        return f"None of the {_noun(effects)}s can be judged."
    groups: dict[tuple[str, ...], list[Term]] = {}
    for term in family:
        groups.setdefault((*term.factors, term.level or "") if term.means in {"level", "set"} else term.factors, []).append(term)
    named = [terms for terms in groups.values() if any(term.verdict in NAMED for term in terms)]
    named.sort(key=lambda terms: -max(abs(term.effect) for term in terms if term.verdict in NAMED))
    if not named:
        return _none(effects, family)
    text = "; ".join(_named(terms, effects) for terms in named[:MOST])
    more = f"; and {len(named) - MOST} more" if len(named) > MOST else ""
    # A main effect of a design that mixes it with interactions is not its key's alone.
    called = "suspect" if any(or_others(terms[0], effects) for terms in named) else _noun(effects)
    head = f"{len(named)} {called}s: " if len(named) > 1 else "Suspect: " if called == "suspect" else ""
    return f"{head}{text}{more}."


def _named(terms: Sequence[Term], effects: Effects) -> str:
    what = f"{subject(terms[0], effects)}{', or interactions of others' if or_others(terms[0], effects) else ''}"
    said = []
    for term in sorted(terms, key=lambda term: term.verdict not in NAMED):
        place = {"alone": " alone", "in profile": " in the profile"}.get(term.means, "")
        if term.verdict in NAMED:
            small = f", within the margin of {unsigned(effects.observed.margin or 0)}" if _small(term, effects) else ""
            said.append(f"{amount(term, effects)}{place} ({evidence(term, effects)}{small})")
        else:
            said.append(f"not shown to matter{place} ({_interval(term, effects)})")
    # Interactions of three are as good as never there.
    close = [alias for alias in terms[0].aliases if _factors_in(alias, effects) <= 2]
    more = f" and {len(close) - MOST} more" if len(close) > MOST else ""
    mixed = f", which cannot be told from {', '.join(close[:MOST])}{more}" if close else ""
    return f"{what}: {', '.join(said)}{mixed}"


def or_others(term: Term, effects: Effects) -> bool:
    """Whether a main effect holds interactions of two, wholly or in part."""
    return term.means == "main" and (effects.mixed > 0 or any(_factors_in(alias, effects) == 2 for alias in term.aliases))


def _small(term: Term, effects: Effects) -> bool:
    """Whether an effect, however certain, is smaller than what the study calls a difference."""
    margin = effects.observed.margin
    return margin is not None and term.gain is not None and 1 / (1 + margin) < 1 + term.gain < 1 + margin


def _factors_in(alias: str, effects: Effects) -> int:
    """How many factors an effect's name is of; names of scripts have colons of their own."""
    for factor in sorted(effects.observed.factors, key=lambda factor: -len(factor.name)):
        alias = alias.replace(factor.name, "\0")
    return alias.count("\0")


def amount(term: Term, effects: Effects) -> str:
    if term.gain is not None:
        if effects.observed.better is None:
            return f"{unsigned(abs(term.gain))} {'more' if term.gain > 0 else 'less'} {effects.observed.metric}"
        return speed(term.gain)
    share = "" if term.share is None else f", {unsigned(term.share)} of the variation"
    return f"{digits(abs(term.effect))} {'more' if term.effect > 0 else 'less'} {effects.observed.metric}{share}"


def evidence(term: Term, effects: Effects) -> str:
    p = "" if term.p_adjusted is None else f", {ADJUSTED.get(term.adjustment, '')} p {probability(term.p_adjusted)} of {term.family}"
    return f"{_interval(term, effects)}{p}"


def _interval(term: Term, effects: Effects) -> str:
    del effects
    if term.gain_low is not None and term.gain_high is not None:
        return f"95 % {number(term.gain_low)} to {percent(term.gain_high)}"
    if term.low is not None and term.high is not None:
        return f"95 % {digits(term.low)} to {digits(term.high)}"
    return "no interval"


def _none(effects: Effects, family: Sequence[Term]) -> str:
    noun = _noun(effects)
    known = [term for term in family if judged(term)]
    if not known:
        return (
            f"No {noun} can be named: nothing was replicated, and {len(family)} contrasts are too few to judge each other; run more blocks."
        )
    largest = min(known, key=lambda term: (term.p_adjusted or 0.0, term.p or 0.0))
    place = {"alone": " alone", "in profile": " in the profile"}.get(largest.means, "")
    size = percent(largest.gain) if largest.gain is not None else f"{digits(largest.effect)}"
    equal = sum(term.verdict == "equivalent" for term in family)
    some = bool(unjudged(effects))
    head = f"Of the {noun}s that can be judged none can be named" if some else f"No {noun} can be named"
    margin = effects.observed.margin
    shown = f" {equal} of {len(family)} effects are shown to lie within the margin of {unsigned(margin)}." if equal and margin else ""
    mdes = [term.mde for term in known if term.mde is not None]
    worth = "" if not mdes else unsigned(max(mdes)) if effects.observed.scale == "log" else digits(max(mdes))
    seen = f" One {'of these ' if some else ''}worth {worth} or more would have been named 4 times in 5." if worth else ""
    if effects.again_fails:
        shown, seen = "", " A copy of stock differs from stock as well (A/A): run it again, with more blocks or on a quieter machine."
    return f"{head}: the clearest, {subject(largest, effects)}{place}, is {size} ({evidence(largest, effects)}).{shown}{seen}"


def _whole(effects: Effects) -> str:
    profile = next((term for term in effects.terms if term.means == "profile"), None)
    if profile is None or effects.observed.design == SEARCH:
        return ""
    if profile.verdict in NAMED:
        return f"The profile as a whole: {amount(profile, effects)} ({evidence(profile, effects)})."
    word = "equivalent to stock" if profile.verdict == "equivalent" else "no difference shown"
    return f"The profile as a whole: {word} ({evidence(profile, effects)})."


def _company(effects: Effects) -> str:
    result = [term for term in effects.terms if term.verdict == "interacts"]
    if not result:
        rows = [row for row in effects.anova if row.p_adjusted is not None and row.p_adjusted < ALPHA]
        return f"Not simply added up: {', '.join(row.name for row in rows)} (a screen; confirm it)." if rows else ""
    said = []
    for term in result[:MOST]:
        close = [alias for alias in term.aliases if _factors_in(alias, effects) <= 2]
        mixed = f", or {', '.join(close)}" if close else ""
        size = percent(term.gain) if term.gain is not None else f"{'+' if term.effect > 0 else ''}{digits(term.effect)}"
        if term.means == "disagreement":
            what = f"{term.factors[0]} in the profile {size} beyond what it does alone"
        else:
            what = f"{' with '.join(term.factors)} {size} beyond their sum{mixed}"
        said.append(f"{what} ({evidence(term, effects)})")
    return f"Not simply added up: {'; '.join(said)}: a hint from a screen, to be confirmed."


def _by_factor(effects: Effects) -> str:
    """Factors of several levels in another study's table: by their F tests."""
    rows = [row for row in effects.anova if row.factors and row.p is not None]
    shown = [row for row in rows if _significant(row, effects)]
    if not shown:
        clearest = min(rows, key=lambda row: row.p or 0.0)
        return f"No factor can be named: the clearest, {clearest.name}, has {_f(clearest, effects)}."
    return (
        "; ".join(
            f"{row.name}: {unsigned(row.share)} of the variation, {_f(row, effects)}" for row in sorted(shown, key=lambda row: -row.share)
        )
        + "."
    )


def _significant(row: VariationSource, effects: Effects) -> bool:
    if row.p_adjusted is not None:
        return row.p_adjusted < ALPHA
    from analysis.stats.adjust import holm  # noqa: PLC0415

    mains = [other for other in effects.anova if len(other.factors) == 1 and other.p is not None]
    return holm([other.p or 0.0 for other in mains])[mains.index(row)] < ALPHA


def _f(row: VariationSource, effects: Effects) -> str:
    return f"F {digits(row.f or 0.0)} ({row.df}, {effects.error_df}), p {probability(row.p or 0.0)}"


def answered(effects: Effects, wanted: Sequence[tuple[str, ...]]) -> str:
    """Put the answers to the effects asked for before the sentence on all of them."""
    if effects.refusal:
        return effects.sentence
    known = {factor.name for factor in effects.observed.factors}
    lines = [_answer(effects, effect) for effect in wanted if known.issuperset(effect)]
    return f"{' '.join(lines)} Of all that was looked at: {effects.sentence}" if lines else effects.sentence


def _answer(effects: Effects, effect: tuple[str, ...]) -> str:
    name = ":".join(effect)
    terms = [
        term
        for term in effects.terms
        if set(term.factors) == set(effect) and (term.means != "profile" or len(effects.observed.factors) == 1)
    ]
    known = [term for term in terms if term.p_adjusted is not None]
    if not known:
        why = next((reason for label, reason in effects.unestimable if label.split(" ")[0] == name), "there is nothing to judge it by")
        return f"{name} cannot be judged: {why}."
    lines = [_said(term, effects) for term in known]
    gone = [
        f"{label} cannot be judged: {reason}"
        for label, reason in effects.unestimable
        if label in {f"{name} alone", f"{name} in the profile"}
    ]
    return f"{'; '.join([*lines, *gone])}."


def _said(term: Term, effects: Effects) -> str:
    place = {"alone": " alone", "in profile": " in the profile", "disagreement": " in the profile less alone"}.get(term.means, "")
    mixed = f"; it cannot be told from {', '.join(term.aliases[:4])}" if term.aliases else ""
    if term.means in SCREENED and term.means != "disagreement":
        word = "do something else together" if term.verdict == "interacts" else "are not shown to do anything together beyond their sum"
        return f"{' and '.join(term.factors)} {word}: {amount(term, effects)} ({evidence(term, effects)}){mixed}"
    shown = term.verdict in NAMED or term.verdict == "interacts"
    how = (
        amount(term, effects)
        if shown
        else f"{'equivalent' if term.verdict == 'equivalent' else 'not shown to matter'}, {amount(term, effects)}"
    )
    what = f"{subject(term, effects)}{', or interactions of others' if or_others(term, effects) else ''}"
    return f"{what}{place}: {how} ({evidence(term, effects)}){mixed}"


SEARCH = "search"


def judged(term: Term) -> bool:
    return term.p_adjusted is not None


def unjudged(effects: Effects) -> list[str]:
    """What was planned to be answered and is not, as the sentence calls it: keys, levels of keys, keys alone or in the profile, whole sets.

    An adaptive design leaves out what it acquitted on its way: that is not judged by the cells that confirm, and is listed as well.
    """
    seen = effects.observed
    gone = [label for label, _ in effects.unestimable]
    terms = [term for term in effects.terms if term.means not in SCREENED and judged(term)]
    if seen.design in {SEARCH, "matrix"}:
        return gone
    result: list[str] = []
    for factor in seen.factors:
        mine = [term for term in terms if term.factors == (factor.name,) and term.means != "profile"]
        if not mine:
            result.append(factor.name)
        elif any(term.means == "level" for term in mine):
            there = {term.level for term in mine}
            result += [f"{factor.name} = {level}" for level in factor.levels[1:] if level not in there]
        else:
            result += [label for label in gone if label in {f"{factor.name} alone", f"{factor.name} in the profile"}]
    return result + [f"{label} as a whole" for label in gone if label == seen.profile]


def not_covered(effects: Effects) -> Iterator[str]:
    missing = unjudged(effects)
    if missing:
        more = f" and {len(missing) - MOST} more" if len(missing) > MOST else ""
        yield f"Cannot be judged, so nothing is said of: {', '.join(missing[:MOST])}{more}."


def caveat(effects: Effects) -> Iterator[str]:
    """Say where main effects are not those of their keys alone: a design that is for finding suspects."""
    confirm = "what it names is a suspect, and what it does not name may hide; confirm with a design of fewer keys."
    if effects.mixed:
        yield f"A main effect of this design holds shares of others' interactions (up to {effects.mixed:.2f} of each): {confirm}"
    elif effects.resolution is not None and effects.resolution <= 3:
        yield f"A main effect of this design (resolution {'I' * effects.resolution}) is one with interactions of others: {confirm}"
