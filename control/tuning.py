"""The choice among many settings: what is measured next, the gain of each setting, what leaves.

A block has a balanced set of arms (Plackett and Burman, Biometrika 1946): each setting is on in
half of them, so each cell informs about every setting; one setting per arm would need six times as
many blocks for 15 settings. The arms are drawn again for each heat, so that what two settings do
together falls on others by chance alone. After each pair of heats a setting that helps is adopted:
all later arms have it; one that harms, or is unlikely to gain as much as asked, leaves. *Helps* and
*harms* hold over all looks, whose number is declared, and all settings (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from msgspec import Meta, Struct
from msgspec.structs import replace

from .t_test import ALPHA, t_interval, t_quantile

if TYPE_CHECKING:
    import random

Word = Literal["helps", "harms", "no gain in sight", "not decided"]
Arm = frozenset[str]  # the settings that are on
Gains = dict[str, float]  # by setting
Interactions = dict[str, tuple[float, float]]  # by setting its gain in the race, and beside others
Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(gt=0, lt=1)]
FEW_CHANCES = 0.10  # of gaining as much as asked: with fewer a setting leaves the race
RACE, JOIN = 0.5, 0.1  # shares of the time; fresh blocks have the rest
MOST_JOINS = 3
CHOSEN_P = 0.05  # one-sided, for a setting that is chosen though the race did not decide


class HeatCell(NamedTuple):
    """One measured cell, with the log of its time (for a rate, minus the log)."""

    heat: int
    block: int
    settings: Arm
    log_time: float


class RaceRules(Struct, frozen=True):
    """Rules that are declared before the first block.

    looks: pairs of heats; min_gain: makes a setting worth keeping; margin: a setting within does
        nothing
    """

    looks: Count
    min_gain: Share = 0.01
    margin: Share = 0.03
    alpha: Share = ALPHA


class Gain(Struct, frozen=True):
    """The gain of a setting: the log of a ratio of times, above 0 is faster."""

    gain: float
    error: Annotated[float, Meta(ge=0)]
    df: Count
    word: Word = "not decided"

    def bounds(self, alpha: float) -> tuple[float, float]:
        """Return the two-sided interval; without scatter, the gain twice."""
        if not self.error:
            return self.gain, self.gain
        interval = t_interval(self.gain, self.error, self.df, alpha)
        return interval.low, interval.high


class Look(Struct):
    """Results after a number of pairs of heats, for each setting that was still open.

    No cell could be measured under the settings that `failed`.
    """

    look: int
    settings: dict[str, Gain]
    failed: list[str]

    def words(self) -> dict[str, str]:
        """Return the word for each setting."""
        words = {name: str(gain.word) for name, gain in self.settings.items()}
        return words | dict.fromkeys(self.failed, "fails")


def course(
    names: Sequence[str],
    rules: RaceRules,
    rng: random.Random,
    measure: Callable[[str, list[Arm], float], list[HeatCell]],
    tell: Callable[[Look], None],
) -> tuple[Gains, Interactions]:
    """Choose among settings. Returns: as `stay`.

    `measure` takes the name of a heat, its arms and its share of the time.
    """
    race: list[HeatCell] = []
    adopted: list[str] = []
    alive = list(names)
    gains: dict[str, Gain] = {}
    for number in range(1, rules.looks + 1):
        drawn = draw_arms(alive, rng)
        # In the second heat each arm is reversed: over both, no pair of settings is taken for a
        # third one.
        for half, layout in (("a", drawn), ("b", [frozenset(alive) - arm for arm in drawn])):
            arms = [arm.union(adopted) for arm in layout]
            race += measure(f"race-{number}{half}", arms, RACE / (2 * rules.looks))
        gains = estimate(race)
        judged = {
            name: replace(gain, word=judge(gain, rules, len(names)))
            for name, gain in gains.items()
            if name in alive
        }
        on = frozenset[str]().union(*(cell.settings for cell in race))
        failed = [name for name in alive if race and name not in on]
        tell(Look(number, judged, failed))
        adopted += [name for name, gain in judged.items() if gain.word == "helps"]
        settled = {name for name, gain in judged.items() if gain.word != "not decided"}
        alive = [name for name in alive if name not in settled.union(failed)]
        if not alive:
            break
    found = choose({name: gains[name] for name in adopted + alive if name in gains}, rules)
    chosen = {name: gain.gain for name, gain in found.items()}
    interactions: Interactions = {}
    for number in range(1, MOST_JOINS + 1):
        if len(found) < 2:
            break
        whole = frozenset(found)
        label = f"join-{number}" if number > 1 else "join"
        arms = [whole, *(whole - {name} for name in found)]
        beside = beside_others(measure(label, arms, JOIN), found)
        chosen, differ = stay(found, beside, rules)
        interactions |= differ
        superfluous = [name for name in differ if name not in chosen]
        if len(superfluous) < 2:
            break
        # Each may do another's work: only the least leaves, and the rest is measured again.
        least = min(superfluous, key=lambda name: beside[name].gain)
        left = {*chosen, *superfluous} - {least}
        found = {name: gain for name, gain in found.items() if name in left}
        chosen = {name: gain.gain for name, gain in found.items()}
    return chosen, interactions


def balanced_arms(settings: int) -> int:
    """Return the number of arms of a balanced design."""
    if settings == 1:
        return 2
    # pyDOE3's designs
    sizes = (base << doubled for base in (4, 12, 20) for doubled in range(10))
    return min(size for size in sizes if size > max(3, settings))


def draw_arms(names: Sequence[str], rng: random.Random) -> list[Arm]:
    """Draw the balanced arms of a heat.

    >>> import random
    >>> arms = draw_arms(["a", "b", "c"], random.Random(1))
    >>> sum("a" in arm for arm in arms), len(arms)
    (2, 4)
    """
    if len(names) == 1:
        return [frozenset(), frozenset(names)]
    import pyDOE3

    table = pyDOE3.pbdesign(balanced_arms(len(names)) - 1) > 0
    columns = rng.sample(range(table.shape[1]), len(names))
    turned = [rng.random() < 1 / 2 for _ in names]
    drawn = list(zip(names, columns, turned, strict=True))
    return [frozenset(name for name, at, turn in drawn if row[at] != turn) for row in table]


def estimate(cells: Sequence[HeatCell]) -> dict[str, Gain]:
    """Estimate the gain of each setting by least squares within blocks.

    Settings whose effect the cells cannot tell from that of others are left out.
    """
    import numpy as np

    names = sorted(frozenset[str]().union(*(cell.settings for cell in cells)))
    blocks = {(cell.heat, cell.block) for cell in cells}
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
    alone = np.isclose(inverse @ on.T @ on, np.eye(len(names)), atol=1e-6).all(axis=1)
    return {
        name: Gain(-float(effects[at]), math.sqrt(variance * float(inverse[at, at])), free)
        for at, name in enumerate(names)
        if alone[at]
    }


def judge(gain: Gain, rules: RaceRules, settings: int) -> Word:
    """Judge one of `settings` settings at one of the declared looks."""
    low, high = gain.bounds(rules.alpha / (rules.looks * settings))
    if low > 0:
        return "helps"
    if high < 0:
        return "harms"
    if gain.gain + t_quantile(1 - FEW_CHANCES, gain.df) * gain.error < math.log1p(rules.min_gain):
        return "no gain in sight"
    return "not decided"


def choose(gains: Mapping[str, Gain], rules: RaceRules) -> dict[str, Gain]:
    """Return the settings that are worth keeping, the largest gain first."""
    worth = [
        (name, gain)
        for name, gain in gains.items()
        if gain.gain >= math.log1p(rules.min_gain)
        and gain.gain > t_quantile(1 - CHOSEN_P, gain.df) * gain.error
    ]
    return dict(sorted(worth, key=lambda pair: -pair[1].gain))


def beside_others(cells: Sequence[HeatCell], joint: Collection[str]) -> dict[str, Gain]:
    """Return the gain of each setting of a joint set beside the others, from pairs in blocks."""
    blocks: dict[tuple[int, int], dict[Arm, float]] = {}
    for cell in cells:
        blocks.setdefault((cell.heat, cell.block), {})[cell.settings] = cell.log_time
    result = {}
    whole = frozenset(joint)
    for name in joint:
        rest = whole - {name}
        both = [times for times in blocks.values() if {rest, whole} <= times.keys()]
        pairs = [times[rest] - times[whole] for times in both]
        if len(pairs) > 1 and (spread := stdev(pairs)):
            result[name] = Gain(fmean(pairs), spread / math.sqrt(len(pairs)), len(pairs) - 1)
    return result


def stay(
    race: Mapping[str, Gain], beside: Mapping[str, Gain], rules: RaceRules
) -> tuple[Gains, Interactions]:
    """Choose which settings of a joint set stay.

    race, beside: independent gains over balanced combinations, and beside the others
    Returns: the gain of each that stays, and both gains where they differ (Bonferroni); there the
        gain beside the others decides, else both together.
    """
    kept, interactions = {}, {}
    for name, in_race in race.items():
        gain = beside.get(name, in_race)
        if differs(in_race, gain, rules.alpha / len(race)):
            interactions[name] = (in_race.gain, gain.gain)
        elif name in beside:
            gain = weighted(in_race, gain)
        if choose({name: gain}, rules):
            kept[name] = gain.gain
    return kept, interactions


def weighted(one: Gain, other: Gain) -> Gain:
    """Return the mean of two independent estimates, weighted by their inverse variances.

    An estimate without error is taken as it is.
    """
    if not (one.error and other.error):
        return other if one.error else one
    weights = 1 / one.error**2, 1 / other.error**2
    total = math.fsum(weights)
    mean = (weights[0] * one.gain + weights[1] * other.gain) / total
    return Gain(mean, math.sqrt(1 / total), min(one.df, other.df))


def differs(one: Gain, other: Gain, alpha: float) -> bool:
    """Return True if two independent estimates of a gain differ (Welch)."""
    error = math.hypot(one.error, other.error)
    if not error:
        return one.gain != other.gain
    df = error**4 / (one.error**4 / one.df + other.error**4 / other.df)
    return abs(one.gain - other.gain) > t_quantile(1 - alpha / 2, df) * error
