"""The vocabulary of `effects`: observations at the points of a design, and findings on factors.

Frozen records without behaviour, each for one workload, one metric, and one decomposed tweak set
(or one table of another study). A *point* is one combination of levels; a *cell* is one run of it,
the unit of replication; steps never are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from analysis.stats.linear import VariationRow

# log: gains as fractions of speed, + is better. raw: differences in the response's own unit, + is
# more.
Scale = Literal["log", "raw"]
# main, interaction: in a two-level design. level: one level of a factor against its first, over the
# others. alone: only this key, against stock. in profile: the profile against it without this key.
# profile: the whole against stock. disagreement: in profile minus alone, a key's interaction with
# its company. set: a tweak set against stock.
Means = Literal[
    "main", "interaction", "level", "alone", "in profile", "profile", "disagreement", "set"
]
SCREENED = frozenset({"interaction", "disagreement"})  # a named one needs a run of its own
NAMED = frozenset({"improved", "regressed", "raises", "lowers"})
Word = Literal[
    "improved",
    "regressed",
    "raises",
    "lowers",
    "equivalent",
    "inconclusive",
    "interacts",
    "not comparable",
]


@dataclass(frozen=True, slots=True)
class DesignFactor:
    """A varied factor: name, letter in tables, and levels, the first as found or low."""

    name: str
    letter: str
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EffectRow:
    """A measured cell: its point (a level per factor), block ("" if none) and response."""

    name: str
    levels: tuple[str, ...]
    block: str
    value: float


@dataclass(frozen=True, slots=True)
class LostPoint:
    """Planned cells of one point that cannot be used, all for the same reason."""

    point: str
    reason: str
    blocks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DesignData:
    """The data to analyse. `points` are all planned, by name, with stock or the all-low one.

    `better` is None if no direction is good (other studies): then the words are raises and lowers.
    `profile` is the decomposed tweak set, "" for a matrix or another study.
    """

    study: str
    workload: str
    metric: str
    factors: tuple[DesignFactor, ...]
    points: dict[str, tuple[str, ...]]
    rows: tuple[EffectRow, ...]
    lost: tuple[LostPoint, ...] = ()
    profile: str = ""
    design: str = "table"
    better: Literal["lower", "higher"] | None = None
    scale: Scale = "raw"
    margin: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Term:
    """One effect.

    label, factors, means, level: how a table calls it; the factors that make it up (two for an
        interaction); what kind of effect it is; the level that it speaks of, of a key its value;
        null for a factor of another study and for interactions
    effect: on the scale of the analysis (log gain, above 0 better, or the response's own unit). Of
        a main effect: from the first to the last level, on average over the others; of an
        interaction: by how much the effect of one changes when the other is set
    se, df, low, high: of `effect`, with its 95 % interval; null where nothing was replicated
    gain, gain_low, gain_high: the same as fractions of speed; null on the raw scale
    coefficient: the same on the coded scale of -1 and +1 (Jain's q: half a main effect, a quarter
        of an interaction)
    p, p_adjusted, adjustment, family: two-sided; adjusted by holm or bh, for how many terms
    share: part of the total variation, a description; of terms that are not orthogonal shares do
        not add up
    mde: the smallest effect (a gain on the log scale) that would have been called 4 times in 5
    aliases: the effects it cannot be told from in this design, each by its factors
    verdict: the word
    """

    label: str
    factors: tuple[str, ...]
    means: Means
    effect: float
    se: float | None = None
    df: float | None = None
    low: float | None = None
    high: float | None = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    share: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    adjustment: Literal["holm", "bh", ""] = ""
    family: int = 0
    aliases: tuple[tuple[str, ...], ...] = ()
    coefficient: float | None = None
    level: str | None = None
    mde: float | None = None
    verdict: Word = "inconclusive"


@dataclass(frozen=True, slots=True)
class Level:
    """A factor's level with the mean response over other factors, adjusted for blocks and losses.

    `mean` is in the metric's unit (geometric on the log scale); `deviation` is from the mean of all
    cells, on the scale of the analysis (log gain, or the response's unit). `low`, `high`: 95 % of
    the mean if there is an error term. `n`: cells.
    """

    factor: str
    level: str
    n: int
    mean: float
    deviation: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Effects:
    """All findings on one observed design.

    observed: cells, factors with letters and levels, points, what was lost, notes
    terms: the effects (below)
    anova: rows of the analysis of variance: `name`, `df`, `ss`, `share`, `ms`, `f`, `p`
    levels: mean at each level of a factor, in the metric's unit
    error, error_df, error_ms: the error term in words, its degrees of freedom (0 where there is
        none) and mean square
    mean, blocks: grand mean on the scale of the analysis, blocks taken off; number of blocks
    resolution, mixed, orthogonal: resolution, where effects are wholly mixed; the largest share of
        an interaction of two in another key's main effect (a Plackett-Burman design, which only a
        design file can have); whether effects are independent
    unestimable, notes: effects that were lost or never there, each with the reason; what a reader
        must know
    again, again_fails: the A/A check (stock-again against stock) in words, and whether it differs
    sentence, refusal: the answer: which key, how much, how sure; why there is none
    """

    observed: DesignData
    terms: tuple[Term, ...] = ()
    anova: tuple[VariationRow, ...] = ()
    levels: tuple[Level, ...] = ()
    error: str = "none"
    error_df: int = 0
    error_ms: float | None = None
    mean: float = 0.0
    blocks: int = 0
    resolution: int | None = None
    orthogonal: bool = False
    unestimable: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    mixed: float = 0.0
    again: str = ""
    again_fails: bool = False
    sentence: str = ""
    refusal: str = ""
