"""Which of many settings to keep: what is measured next, what each setting gains, and what leaves the race.

A block has a balanced set of arms (Plackett and Burman, Biometrika 1946): each setting is on in
half of them, so each cell tells of every setting. One setting an arm would need six times as many
blocks for 15 settings. Which arms a setting is on in is drawn anew for each heat, so that what two
settings do together falls on others by chance alone.

After each heat a setting that helps is adopted: all later arms have it. A setting that harms, or
that is unlikely to gain as much as asked, leaves. *Helps* and *harms* hold over all looks and
settings together (Bonferroni), and the number of looks is declared before the first. The estimates
choose; the gain of what was chosen is measured afresh.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Literal, NamedTuple

from .t_test import ALPHA, t_interval, t_quantile

if TYPE_CHECKING:
    import random

    import numpy as np

Word = Literal["helps", "harms", "no gain in sight", "not decided", "fails"]
# Of gaining as much as asked, by its own estimate: a setting with fewer leaves the race.
FEW_CHANCES = 0.10
RACE, JOIN = 0.5, 0.1  # shares of the time; fresh blocks have the rest
MOST_JOINS = 3
CHOSEN_P = 0.05  # one-sided, of a setting that is chosen though the race did not decide it


class Cell(NamedTuple):
    """One measured cell: its heat and block, the settings that were on, and the log of its time (of a rate, minus it)."""

    heat: int
    block: int
    settings: frozenset[str]
    log_time: float


class Rules(NamedTuple):
    """What is declared before the first block.

    looks: after how many heats the settings are judged
    min_gain: the gain that makes a setting worth keeping, a fraction
    margin: within which a setting does nothing, a fraction
    """

    looks: int
    min_gain: float = 0.01
    margin: float = 0.03
    alpha: float = ALPHA


class Gain(NamedTuple):
    """What a setting gains (the log of a ratio of times, above 0 is faster), its standard error and degrees of freedom."""

    name: str
    gain: float
    error: float
    df: int

    def bounds(self, alpha: float) -> tuple[float, float]:
        """Return the two-sided interval at this error rate; where nothing scatters, the gain itself."""
        if not self.error:
            return self.gain, self.gain
        interval = t_interval(self.gain, self.error, self.df, alpha)
        return interval.low, interval.high


class Heat(NamedTuple):
    """A heat to be measured: its phase and name, its arms, and its share of the time."""

    phase: str
    label: str
    arms: list[frozenset[str]]
    share: float


class Look(NamedTuple):
    """What was known after so many pairs of heats: of each setting that was still open its gain and the word for it.

    A setting *fails* where no cell could be measured under it; it has no gain.
    """

    look: int
    gains: dict[str, Gain]
    words: dict[str, Word]


class Choice(NamedTuple):
    """What was chosen, each with the gain that it seemed to have, and what gains otherwise beside the others (`stay`)."""

    chosen: dict[str, float]
    interactions: dict[str, tuple[float, float]]


def course(
    names: Sequence[str], rules: Rules, rng: random.Random
) -> Generator[Heat | Look, list[Cell] | None, Choice]:
    """Go through a tune: yield what is to be measured next, and be sent the cells; yield what each look found.

    Whoever measures decides how many blocks a heat has; cells of a heat that was not measured are
    none.
    """
    race: list[Cell] = []
    adopted: list[str] = []
    alive = list(names)
    for look in range(1, rules.looks + 1):
        drawn = draw_arms(alive, rng)
        for half, layout in zip("ab", (drawn, mirrored(drawn, alive)), strict=True):
            arms = [arm | frozenset(adopted) for arm in layout]
            race += (yield Heat("race", f"race-{look}{half}", arms, RACE / (2 * rules.looks))) or []
        known = {name: gain for name, gain in estimate(race).items() if name in alive}
        words = {name: judge(gain, rules, len(names)) for name, gain in known.items()}
        measured = frozenset[str]().union(*(cell.settings for cell in race))
        words |= {name: "fails" for name in alive if race and name not in measured}
        yield Look(look, known, words)
        adopted += [name for name, word in words.items() if word == "helps"]
        alive = [name for name in alive if words.get(name, "not decided") == "not decided"]
        if not alive:
            break
    gains = estimate(race)
    found = {
        gain.name: gain
        for gain in choose((gains[name] for name in adopted + alive if name in gains), rules)
    }
    chosen = {name: gain.gain for name, gain in found.items()}
    interactions: dict[str, tuple[float, float]] = {}
    for number in range(1, MOST_JOINS + 1):
        if len(found) < 2:
            break
        arms = [frozenset(found), *each_left_out(found).values()]
        join = (yield Heat("join", f"join-{number}" if number > 1 else "join", arms, JOIN)) or []
        beside = beside_others(join, found)
        chosen, differ = stay(found, beside, rules)
        interactions |= differ
        superfluous = [name for name in differ if name not in chosen]
        if len(superfluous) < 2:
            break
        # Each of them may do the work of another one: the least of them leaves, and the rest is
        # measured again.
        least = min(superfluous, key=lambda name: beside[name].gain)
        found = {
            name: gain
            for name, gain in found.items()
            if name != least and (name in chosen or name in superfluous)
        }
        chosen = {name: gain.gain for name, gain in found.items()}
    return Choice(chosen, interactions)


def balanced_arms(settings: int) -> int:
    """Return how many arms a balanced design of so many settings takes.

    pyDOE3 has designs of 4, 12 and 20 arms times a power of two.
    """
    if settings == 1:
        return 2
    known = sorted(base << doubled for base in (4, 12, 20) for doubled in range(10))
    return next(arms for arms in known if arms > max(3, settings))


def draw_arms(names: Sequence[str], rng: random.Random) -> list[frozenset[str]]:
    """Draw the balanced arms of a heat: each setting, and of four in five each pair of them, is on in equally many.

    >>> import random
    >>> arms = draw_arms(["a", "b", "c"], random.Random(1))
    >>> sum("a" in arm for arm in arms), len(arms)
    (2, 4)
    """
    if not names:
        return []
    if len(names) == 1:
        return [frozenset(), frozenset(names)]
    import pyDOE3

    table = pyDOE3.pbdesign(balanced_arms(len(names)) - 1) > 0
    columns = rng.sample(range(table.shape[1]), len(names))
    turned = [rng.random() < 1 / 2 for _ in names]
    return [
        frozenset(
            name
            for name, column, turn in zip(names, columns, turned, strict=True)
            if row[column] != turn
        )
        for row in table
    ]


def mirrored(arms: Sequence[frozenset[str]], names: Collection[str]) -> list[frozenset[str]]:
    """Turn each arm round: what was on is off.

    Over both, no pair of settings is taken for a third one.
    """
    return [frozenset(names) - arm for arm in arms]


def estimate(cells: Sequence[Cell]) -> dict[str, Gain]:
    """Estimate the gain of each setting by least squares within blocks.

    Returns: only settings whose effect the cells can tell from that of the others.
    """
    import numpy as np

    names = sorted(frozenset[str]().union(*(cell.settings for cell in cells)))
    blocks = sorted({(cell.heat, cell.block) for cell in cells})
    free = len(cells) - len(blocks) - len(names)
    if not names or free < 1:
        return {}
    on = np.array([[name in cell.settings for name in names] for cell in cells], dtype=float)
    times = np.array([cell.log_time for cell in cells])
    for block in blocks:
        rows = [row for row, cell in enumerate(cells) if (cell.heat, cell.block) == block]
        on[rows] -= on[rows].mean(axis=0)
        times[rows] -= times[rows].mean()
    inverse = np.linalg.pinv(on.T @ on)
    effects = inverse @ on.T @ times
    variance = float(np.sum((times - on @ effects) ** 2)) / free
    known = _estimable(on, inverse)
    return {
        name: Gain(name, -float(effects[at]), math.sqrt(variance * float(inverse[at, at])), free)
        for at, name in enumerate(names)
        if known[at]
    }


def _estimable(on: np.ndarray, inverse: np.ndarray) -> list[bool]:
    """Of each column whether it is no mixture of others."""
    import numpy as np

    projected = inverse @ on.T @ on
    return [
        bool(np.allclose(projected[at], np.eye(len(projected))[at], atol=1e-6))
        for at in range(len(projected))
    ]


def judge(gain: Gain, rules: Rules, settings: int) -> Word:
    """Judge one of so many settings at one of the declared looks."""
    low, high = gain.bounds(rules.alpha / (rules.looks * settings))
    if low > 0:
        return "helps"
    if high < 0:
        return "harms"
    if gain.gain + t_quantile(1 - FEW_CHANCES, gain.df) * gain.error < math.log1p(rules.min_gain):
        return "no gain in sight"
    return "not decided"


def choose(gains: Iterable[Gain], rules: Rules) -> list[Gain]:
    """Choose the settings that are worth keeping by what is known of each; the largest gain first."""
    worth = [
        gain
        for gain in gains
        if gain.gain >= math.log1p(rules.min_gain)
        and gain.gain > t_quantile(1 - CHOSEN_P, gain.df) * gain.error
    ]
    return sorted(worth, key=lambda gain: -gain.gain)


def each_left_out(joint: Collection[str]) -> dict[str, frozenset[str]]:
    """Return by setting the joint set without it."""
    return {name: frozenset(joint) - {name} for name in joint}


def beside_others(cells: Sequence[Cell], joint: Collection[str]) -> dict[str, Gain]:
    """Return what each setting of a joint set gains beside the others: pairs by block with the set without it."""
    by_block: dict[tuple[int, int], dict[frozenset[str], float]] = {}
    for cell in cells:
        by_block.setdefault((cell.heat, cell.block), {})[cell.settings] = cell.log_time
    result = {}
    whole = frozenset(joint)
    for name, rest in each_left_out(joint).items():
        pairs = [
            times[rest] - times[whole]
            for times in by_block.values()
            if {rest, whole} <= times.keys()
        ]
        if len(pairs) > 1 and (spread := stdev(pairs)):
            result[name] = Gain(name, fmean(pairs), spread / math.sqrt(len(pairs)), len(pairs) - 1)
    return result


def stay(
    race: Mapping[str, Gain], beside: Mapping[str, Gain], rules: Rules
) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Choose which settings of a joint set stay in it.

    race, beside: what each gains over balanced combinations, and beside the others; independent of
        each other
    Returns: the gain of each that stays, and by setting both gains where they differ (Bonferroni);
        there the gain beside the others decides, else both together.
    """
    kept, interactions = {}, {}
    for name, in_race in race.items():
        gain = in_race
        if name in beside and differs(in_race, beside[name], rules.alpha / len(race)):
            interactions[name] = (in_race.gain, beside[name].gain)
            gain = beside[name]
        elif name in beside:
            gain = weighted(in_race, beside[name])
        if choose([gain], rules):
            kept[name] = gain.gain
    return kept, interactions


def weighted(one: Gain, other: Gain) -> Gain:
    """Return the mean of two independent estimates of a gain, each by the inverse of its variance.

    An estimate without error is taken as it is.
    """
    if not (one.error and other.error):
        return other if one.error else one
    weights = 1 / one.error**2, 1 / other.error**2
    total = math.fsum(weights)
    mean = (weights[0] * one.gain + weights[1] * other.gain) / total
    return Gain(one.name, mean, math.sqrt(1 / total), min(one.df, other.df))


def differs(one: Gain, other: Gain, alpha: float) -> bool:
    """Tell whether two independent estimates of a gain differ (Welch)."""
    error = math.hypot(one.error, other.error)
    if not error:
        return one.gain != other.gain
    df = error**4 / (one.error**4 / one.df + other.error**4 / other.df)
    return abs(one.gain - other.gain) > t_quantile(1 - alpha / 2, df) * error
