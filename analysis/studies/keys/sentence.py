"""The sentence that answers the question: which key, how much, how sure; or that none can be named, and what would have been seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.stats.adjust import holm
from analysis.wording import digits, number, percent, probability, speed, unsigned
from control.names import first_few
from control.t_test import ALPHA

from .terms import NAMED, SCREENED, Effects, Term, VariationRow

ADJUSTED = {"holm": "Holm", "bh": "Benjamini-Hochberg"}
PLACES = {"alone": " alone", "in profile": " in the profile", "disagreement": " in the profile less alone"}
MOST = 4  # names written out


def sentence(effects: Effects) -> str:
    if effects.refusal:
        return f"Nothing can be said: {effects.refusal}"
    if effects.observed.scale == "raw" and any(row.f is not None and row.df > 1 and row.factors for row in effects.anova):
        return _by_factor(effects)
    parts = (_keys(effects), *_gaps(effects), *_caveat(effects), _profile(effects), _interactions(effects))
    return " ".join(filter(None, parts))


def sentence_of(effects: Effects, requested: Sequence[tuple[str, ...]]) -> str:
    """Put the answers to the effects asked for, by their factors' names, before the sentence on all of them."""
    if effects.refusal:
        return effects.sentence
    known = {factor.name for factor in effects.observed.factors}
    lines = [_answer(effects, effect) for effect in requested if known.issuperset(effect)]
    return f"{' '.join(lines)} Of all that was looked at: {effects.sentence}" if lines else effects.sentence


def _answer(effects: Effects, effect: tuple[str, ...]) -> str:
    name = ":".join(effect)
    alone = len(effects.observed.factors) == 1
    terms = [term for term in effects.terms if set(term.factors) == set(effect) and (term.means != "profile" or alone)]
    lines = [_term(term, effects) for term in terms if term.p_adjusted is not None]
    if not lines:
        reason = next((reason for label, reason in effects.unestimable if label.split(" ")[0] == name), "there is nothing to judge it by")
        return f"{name} cannot be judged: {reason}."
    halves = {f"{name} alone", f"{name} in the profile"}
    lines += [f"{label} cannot be judged: {reason}" for label, reason in effects.unestimable if label in halves]
    return f"{'; '.join(lines)}."


def _term(term: Term, effects: Effects) -> str:
    mixed = f"; it cannot be told from {', '.join(term.aliases[:MOST])}" if term.aliases else ""
    size = f"{_amount(term, effects)} ({_evidence(term)}){mixed}"
    if term.means == "interaction":
        word = "do something else together" if term.verdict == "interacts" else "are not shown to do anything together beyond their sum"
        return f"{' and '.join(term.factors)} {word}: {size}"
    shown = term.verdict in NAMED or term.verdict == "interacts"
    word = "" if shown else "equivalent, " if term.verdict == "equivalent" else "not shown to matter, "
    return f"{_subject(term, effects)}{_or_others(term, effects)}{PLACES.get(term.means, '')}: {word}{size}"


def _keys(effects: Effects) -> str:
    """Name the keys whose effect is shown, the largest first; or none, with what would have been."""
    family = [term for term in effects.terms if term.means not in SCREENED and term.means != "profile"]
    if not family:
        return f"None of the {_noun(effects)}s can be judged."
    groups: dict[tuple[str, ...], list[Term]] = {}
    for term in family:
        groups.setdefault((*term.factors, term.level or "") if term.means in {"level", "set"} else term.factors, []).append(term)
    named = [terms for terms in groups.values() if any(term.verdict in NAMED for term in terms)]
    named.sort(key=lambda terms: -max(abs(term.effect) for term in terms if term.verdict in NAMED))
    if not named:
        return _none(effects, family)
    # A main effect of a design that mixes it with interactions is not its key's alone.
    noun = "suspect" if any(_or_others(terms[0], effects) for terms in named) else _noun(effects)
    head = f"{len(named)} {noun}s: " if len(named) > 1 else "Suspect: " if noun == "suspect" else ""
    return f"{head}{first_few([_named(terms, effects) for terms in named], MOST, '; ')}."


def _named(terms: Sequence[Term], effects: Effects) -> str:
    parts = []
    for term in sorted(terms, key=lambda term: term.verdict not in NAMED):
        place = PLACES.get(term.means, "")
        if term.verdict in NAMED:
            small = f", within the margin of {unsigned(effects.observed.margin or 0)}" if _is_small(term, effects) else ""
            parts.append(f"{_amount(term, effects)}{place} ({_evidence(term)}{small})")
        else:
            parts.append(f"not shown to matter{place} ({_interval(term)})")
    close = _close_aliases(terms[0], effects)
    mixed = f", which cannot be told from {first_few(close, MOST)}" if close else ""
    return f"{_subject(terms[0], effects)}{_or_others(terms[0], effects)}: {', '.join(parts)}{mixed}"


def _none(effects: Effects, family: Sequence[Term]) -> str:
    noun, scale, margin = _noun(effects), effects.observed.scale, effects.observed.margin
    known = [term for term in family if term.p_adjusted is not None]
    if not known:
        return f"No {noun} can be named: nothing was replicated; run 2 blocks or more."
    clearest = min(known, key=lambda term: (term.p_adjusted or 0.0, term.p or 0.0))
    size = percent(clearest.gain) if clearest.gain is not None else digits(clearest.effect)
    partly = bool(unjudged(effects))
    head = f"Of the {noun}s that can be judged none can be named" if partly else f"No {noun} can be named"
    result = f"{head}: the clearest, {_subject(clearest, effects)}{PLACES.get(clearest.means, '')}, is {size} ({_evidence(clearest)})."
    if effects.again_fails:
        return f"{result} A copy of stock differs from stock as well (A/A): run it again, with more blocks or on a quieter machine."
    equal = sum(term.verdict == "equivalent" for term in family)
    if equal and margin:
        result += f" {equal} of {len(family)} effects are shown to lie within the margin of {unsigned(margin)}."
    mdes = [term.mde for term in known if term.mde is not None]
    if mdes:
        mde = unsigned(max(mdes)) if scale == "log" else digits(max(mdes))
        result += f" One {'of these ' if partly else ''}worth {mde} or more would have been named 4 times in 5."
    return result


def _profile(effects: Effects) -> str:
    profile = next((term for term in effects.terms if term.means == "profile"), None)
    if profile is None:
        return ""
    words = {"equivalent": "equivalent to stock"} | dict.fromkeys(NAMED, _amount(profile, effects))
    return f"The profile as a whole: {words.get(profile.verdict, 'no difference shown')} ({_evidence(profile)})."


def _interactions(effects: Effects) -> str:
    terms = [term for term in effects.terms if term.verdict == "interacts"]
    if not terms:
        rows = [row.name for row in effects.anova if row.p_adjusted is not None and row.p_adjusted < ALPHA]
        return f"Not simply added up: {', '.join(rows)} (a screen; confirm it)." if rows else ""
    parts = []
    for term in terms[:MOST]:
        close = _close_aliases(term, effects)
        mixed = f", or {', '.join(close)}" if close else ""
        size = percent(term.gain) if term.gain is not None else f"{'+' if term.effect > 0 else ''}{digits(term.effect)}"
        if term.means == "disagreement":
            text = f"{term.factors[0]} in the profile {size} beyond what it does alone"
        else:
            text = f"{' with '.join(term.factors)} {size} beyond their sum{mixed}"
        parts.append(f"{text} ({_evidence(term)})")
    return f"Not simply added up: {'; '.join(parts)}: a hint from a screen, to be confirmed."


def _by_factor(effects: Effects) -> str:
    """Name factors of several levels in another study's table by their F tests."""
    rows = [row for row in effects.anova if row.factors and row.p is not None]
    shown = sorted((row for row in rows if _is_significant(row, effects)), key=lambda row: -row.share)
    if not shown:
        clearest = min(rows, key=lambda row: row.p or 0.0)
        return f"No factor can be named: the clearest, {clearest.name}, has {_f(clearest, effects)}."
    return "; ".join(f"{row.name}: {unsigned(row.share)} of the variation, {_f(row, effects)}" for row in shown) + "."


def _is_significant(row: VariationRow, effects: Effects) -> bool:
    if row.p_adjusted is not None:
        return row.p_adjusted < ALPHA
    mains = [main for main in effects.anova if len(main.factors) == 1 and main.p is not None]
    return holm([main.p or 0.0 for main in mains])[mains.index(row)] < ALPHA


def _f(row: VariationRow, effects: Effects) -> str:
    return f"F {digits(row.f or 0.0)} ({row.df}, {effects.error_df}), p {probability(row.p or 0.0)}"


def _gaps(effects: Effects) -> Iterator[str]:
    missing = unjudged(effects)
    if missing:
        yield f"Cannot be judged, so nothing is said of: {first_few(missing, MOST)}."


def _caveat(effects: Effects) -> Iterator[str]:
    """Say where main effects are not those of their keys alone: a design that is for finding suspects."""
    confirm = "what it names is a suspect, and what it does not name may hide; confirm with a design of fewer keys."
    if effects.mixed:
        yield f"A main effect of this design holds shares of others' interactions (up to {effects.mixed:.2f} of each): {confirm}"
    elif effects.resolution is not None and effects.resolution <= 3:
        yield f"A main effect of this design (resolution {'I' * effects.resolution}) is one with interactions of others: {confirm}"


def unjudged(effects: Effects) -> list[str]:
    """List what was planned to be answered and is not: keys, levels of keys, keys alone or in the profile, whole sets."""
    design = effects.observed
    gone = [label for label, _ in effects.unestimable]
    if design.design == "matrix":
        return gone
    result: list[str] = []
    for factor in design.factors:
        terms = [
            term
            for term in effects.terms
            if term.factors == (factor.name,) and term.means not in {*SCREENED, "profile"} and term.p_adjusted is not None
        ]
        if not terms:
            result.append(factor.name)
        elif any(term.means == "level" for term in terms):
            levels = {term.level for term in terms}
            result += [f"{factor.name} = {level}" for level in factor.levels[1:] if level not in levels]
        else:
            result += [label for label in gone if label in {f"{factor.name} alone", f"{factor.name} in the profile"}]
    return result + [f"{label} as a whole" for label in gone if label == design.profile]


def _noun(effects: Effects) -> str:
    """What is named: a key, a whole tweak set, or a factor of another study."""
    if effects.observed.profile:
        return "key"
    return "factor" if effects.observed.design == "table" else "tweak set"


def _subject(term: Term, effects: Effects) -> str:
    if term.means == "set":
        return term.label if term.level is None or term.label.startswith(term.level) else term.level
    if term.means == "profile":
        return term.label
    if term.means == "level":
        return f"{term.factors[0]} = {term.level}"
    name, design = ":".join(term.factors), effects.observed
    if not design.profile or len(term.factors) > 1 or name.startswith("script:"):
        return name
    return next((f"{name} = {factor.levels[-1]}" for factor in design.factors if factor.name == name), name)


def _or_others(term: Term, effects: Effects) -> str:
    """Warn of a main effect that holds interactions of two, wholly or in part."""
    holds = term.means == "main" and (effects.mixed > 0 or any(_order(alias, effects) == 2 for alias in term.aliases))
    return ", or interactions of others" if holds else ""


def _close_aliases(term: Term, effects: Effects) -> list[str]:
    """List the aliases of up to two factors: interactions of three are as good as never there."""
    return [alias for alias in term.aliases if _order(alias, effects) <= 2]


def _order(alias: str, effects: Effects) -> int:
    """Count the factors of an effect's name; names of scripts have colons of their own."""
    for factor in sorted(effects.observed.factors, key=lambda factor: -len(factor.name)):
        alias = alias.replace(factor.name, "\0")
    return alias.count("\0")


def _is_small(term: Term, effects: Effects) -> bool:
    """Whether an effect, however certain, is smaller than what the study calls a difference."""
    margin = effects.observed.margin
    return margin is not None and term.gain is not None and 1 / (1 + margin) < 1 + term.gain < 1 + margin


def _amount(term: Term, effects: Effects) -> str:
    if term.gain is not None and effects.observed.better is not None:
        return speed(term.gain)
    size = digits(abs(term.effect)) if term.gain is None else unsigned(abs(term.gain))
    share = f", {unsigned(term.share)} of the variation" if term.gain is None and term.share is not None else ""
    return f"{size} {'more' if term.effect > 0 else 'less'} {effects.observed.metric}{share}"


def _evidence(term: Term) -> str:
    p = "" if term.p_adjusted is None else f", {ADJUSTED.get(term.adjustment, '')} p {probability(term.p_adjusted)} of {term.family}"
    return f"{_interval(term)}{p}"


def _interval(term: Term) -> str:
    if term.gain_low is not None and term.gain_high is not None:
        return f"95 % {number(term.gain_low)} to {percent(term.gain_high)}"
    if term.low is not None and term.high is not None:
        return f"95 % {digits(term.low)} to {digits(term.high)}"
    return "no interval"
