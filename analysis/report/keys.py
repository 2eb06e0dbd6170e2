"""Which setting did it, as texts for the page: the sentence, the table of effects, where the variation went, and what must be known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.labels import label_of
from analysis.studies.keys.answers import KINDS
from analysis.studies.keys.sentence import ADJUSTED
from analysis.wording import digits, number, probability, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.studies.keys.terms import Effects, Means, Term, VariationSource
    from analysis.terms import Comparison

    from .csv_files import Rows

# How an effect came to be, as the table says it.
WAYS: dict[Means, str] = {
    "main": "on average over the other keys",
    "level": "against as found, over the other keys",
    "interaction": "how much one changes what the other does",
    "alone": "alone, against stock",
    "in profile": "in the profile, against it without this key",
    "profile": "all keys, against stock",
    "disagreement": "in the profile less alone",
    "set": "against stock",
}
# What a design was laid out for stands first.
ORDER: dict[Means, int] = {"profile": 0, "disagreement": 2, "interaction": 3}
MOST_INTERACTIONS = 12  # the strongest; all are in effects.csv


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One effect, its numbers as texts; what there is not is an empty text."""

    name: str
    way: str
    verdict: str
    gain: str
    p: str
    adjusted: str
    share: str
    mde: str
    aliases: str


@dataclass(frozen=True, slots=True)
class KeyVariation:
    """One row of the analysis of variance, as texts."""

    name: str
    df: str
    ss: str
    share: str
    ms: str
    f: str
    p: str


@dataclass(frozen=True, slots=True)
class Keys:
    """One tweak set that was taken apart under one workload. `hidden` counts interactions that the table leaves out."""

    workload: str
    profile: str
    design: str
    sentence: str
    refusal: str
    rows: tuple[KeyRow, ...]
    hidden: int
    variation: tuple[KeyVariation, ...]
    known: tuple[str, ...]


def keys(effects: Sequence[Effects], controls: Sequence[Comparison] = ()) -> list[Keys]:
    """Tell the effects of a run, in their order; `controls` are its A/A comparisons, which may find what the effects' check does not."""
    differing = {
        (control.study, control.workload) for control in controls if control.primary is not None and control.verdict == "not comparable"
    }
    return [_keys(effect, doubted=(effect.observed.study, effect.observed.workload) in differing) for effect in effects]


def _keys(effects: Effects, *, doubted: bool) -> Keys:
    seen = effects.observed
    by_size = sorted(effects.terms, key=lambda term: (ORDER.get(term.means, 1), -abs(term.effect)))
    interactions = [term for term in by_size if term.means == "interaction"]
    hidden = interactions[MOST_INTERACTIONS:]
    cells = (
        f"{len(seen.rows)} cells at {len({row.levels for row in seen.rows})} "
        f"points{f' in {effects.blocks} blocks' if effects.blocks > 1 else ''}"
    )
    return Keys(
        workload=seen.workload,
        profile=seen.profile,
        design=f"{seen.design}, {KINDS.get(seen.design, seen.design)}: {cells}; {label_of(seen.metric)}",
        sentence=effects.conclusion if effects.refusal and effects.conclusion else effects.sentence,
        refusal=effects.refusal,
        rows=tuple(_row(term, seen.profile) for term in by_size if term not in hidden),
        hidden=len(hidden),
        variation=tuple(_variation(row) for row in effects.anova),
        known=tuple(_known(effects, doubted=doubted)),
    )


def _row(term: Term, profile: str) -> KeyRow:
    gain = "" if term.gain is None else number(term.gain)
    if gain and term.gain_low is not None and term.gain_high is not None:
        gain += f" ({number(term.gain_low)} to {number(term.gain_high)})"
    name = profile if term.means == "profile" else term.label if term.means == "set" else " × ".join(term.factors)
    return KeyRow(
        name=f"{name} = {term.level}" if term.level is not None and term.means == "level" else name,
        way=WAYS[term.means],
        verdict=term.verdict,
        gain=gain or digits(term.effect),
        p="" if term.p_adjusted is None else probability(term.p_adjusted),
        adjusted="" if term.p_adjusted is None else f" {ADJUSTED.get(term.adjustment, '')}, {term.family} effects",
        share="" if term.share is None else size(term.share),
        mde="" if term.mde is None else size(term.mde),
        aliases=", ".join(term.aliases),
    )


def _variation(row: VariationSource) -> KeyVariation:
    ms, f = ("" if value is None else digits(value) for value in (row.ms, row.f))
    return KeyVariation(row.name, str(row.df), digits(row.ss), size(row.share), ms, f, "" if row.p is None else probability(row.p))


def _known(effects: Effects, *, doubted: bool) -> list[str]:
    """What must be known before the effects are believed."""
    df = f" ({effects.error_df} degrees of freedom)" if effects.error_df else ""
    lines = [] if effects.refusal else [f"Error term: {effects.error}{df}."]
    worse = " Block by block, as verdicts are found, it differs: trust no effect here." if doubted and not effects.again_fails else ""
    lines += [f"A/A check: {effects.again}{worse}"] if effects.again else []
    lines += [f"Not known: {what}: {reason.rstrip('.')}." for what, reason in effects.unestimable]
    return lines + [f"{note[:1].upper()}{note[1:]}" for note in effects.notes]


def as_rows(effects: Sequence[tuple[str, Effects]]) -> Rows:
    """One row an effect for other programs; each with the id of its run. Gains are fractions, above 0 is faster."""
    return [
        {
            "run_id": run_id,
            "study": one.observed.study,
            "workload": one.observed.workload,
            "tweakset": one.observed.profile,
            "design": one.observed.design,
            "metric": one.observed.metric,
            "effect": " × ".join(term.factors),
            "means": term.means,
            "level": term.level,
            "verdict": term.verdict,
            "gain_fraction": term.gain,
            "low95_fraction": term.gain_low,
            "high95_fraction": term.gain_high,
            "log_effect": term.effect,
            "log_se": term.se,
            "df": term.df,
            "p": term.p,
            "p_adjusted": term.p_adjusted,
            "adjustment": term.adjustment,
            "family": term.family,
            "share_of_variation": term.share,
            "mde_log": term.mde,
            "aliases": "; ".join(term.aliases),
        }
        for run_id, one in effects
        for term in one.terms
    ]
