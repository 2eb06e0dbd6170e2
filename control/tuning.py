"""Choose among many settings: each block's arms, each setting's gain, what to drop; the record.

Each setting is on in half of a block's arms (Plackett and Burman, Biometrika 1946). *Helps* and
*harms* hold over all looks, whose number is declared, and all settings (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from msgspec import Meta, Struct
from msgspec.structs import replace

from .t_test import ALPHA, t_quantile

if TYPE_CHECKING:
    import random

Word = Literal["helps", "harms", "no gain in sight", "not decided"]
Arm = frozenset[str]  # the settings that are on
Gains = dict[str, float]  # by setting
Interactions = dict[str, tuple[float, float]]  # by setting its gain in the race, and beside others
Count = Annotated[int, Meta(ge=1)]
CHOSEN, WHOLE = "chosen", "all-settings"  # names of arms
CONFIRM = "confirm"  # the label of the heat of fresh blocks
MARGIN = 0.03  # a setting that gains or loses less does nothing
FEW_CHANCES = 0.10  # of gaining as much as asked: with fewer a setting leaves the race
RACE, JOIN = 0.5, 0.1  # shares of the time; fresh blocks have the rest
MOST_JOINS = 3
CHOSEN_P = 0.05  # one-sided, for a setting that is chosen though the race did not decide


class HeatCell(NamedTuple):
    """A measured cell, with the log of its time (minus the log of a rate)."""

    heat: int
    block: int
    settings: Arm
    log_time: float


class RaceRules(Struct, frozen=True):
    """Rules declared before the first block: pairs of heats; the gain worth keeping a setting."""

    looks: Count
    min_gain: Annotated[float, Meta(gt=0, lt=1)] = 0.01


class Gain(Struct, frozen=True):
    """The gain of a setting: the log of a ratio of times; above 0 means faster."""

    gain: float
    error: Annotated[float, Meta(ge=0)]
    df: Count
    word: Word = "not decided"

    def bounds(self, family: int) -> tuple[float, float]:
        """Return the interval that holds jointly for a family of settings and looks."""
        half = t_quantile(1 - ALPHA / (2 * family), self.df) * self.error
        return self.gain - half, self.gain + half


class Look(Struct):
    """Results after some pairs of heats, for each setting that was still undecided.

    No cell could be measured under the settings that `failed`.
    """

    look: int
    settings: dict[str, Gain]
    failed: list[str]

    def words(self) -> dict[str, str]:
        """Return the verdict word for each setting."""
        words = {name: str(gain.word) for name, gain in self.settings.items()}
        return words | dict.fromkeys(self.failed, "fails")


class Heat(Struct):
    """One session: `run` is its file, relative to the record; `arms` maps arms to settings."""

    number: int
    label: str
    run: str
    interrupted: bool
    took_s: float
    arms: dict[str, list[str]]


class TuneRecord(Struct, kw_only=True):
    """The record of one `tune`, as saved in `tune/NAME.json`.

    settings: by candidate; left_out: reasons by setting, or line of a file
    chosen: log gains while choosing; None before the choice
    words: of pytest, for the benchmark and its workload
    """

    schema_version: Literal[1] = 1
    settings: dict[str, tuple[str, ...]]
    left_out: dict[str, str]
    rules: RaceRules
    budget_s: float
    seed: int
    heats: list[Heat]
    looks: list[Look]
    chosen: Gains | None = None
    interactions: Interactions = {}
    words: list[str]
    interrupted: bool = False


def course(
    names: Sequence[str],
    rules: RaceRules,
    rng: random.Random,
    measure: Callable[[str, list[Arm], float], list[HeatCell]],
    tell: Callable[[Look], None],
) -> tuple[Gains, Interactions]:
    """Run the race among settings, and choose. Returns: chosen settings' gains; the rest as `stay`.

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
        look = Look(number, judged, [name for name in alive if race and name not in on])
        tell(look)
        words = look.words()
        adopted += [name for name, word in words.items() if word == "helps"]
        alive = [name for name in alive if words.get(name, "not decided") == "not decided"]
        if not alive:
            break
    chosen = choose({name: gains[name] for name in adopted + alive if name in gains}, rules)
    interactions: Interactions = {}
    for number in range(1, MOST_JOINS + 1):
        if len(chosen) < 2:
            break
        whole = frozenset(chosen)
        arms = [whole, *(whole - {name} for name in chosen)]
        cells = measure(f"join-{number}", arms, JOIN)
        beside = estimate([cell for cell in cells if cell.settings in arms])
        kept, differ = stay(chosen, beside, rules)
        interactions |= differ
        superfluous = [name for name in differ if name not in kept]
        if len(superfluous) < 2:
            chosen = kept
            break
        # Each may do another's work: only the least leaves, and the rest is measured again.
        least = min(superfluous, key=lambda name: beside[name].gain)
        left = {*kept, *superfluous} - {least}
        chosen = {name: gain for name, gain in chosen.items() if name in left}
    return {name: gain.gain for name, gain in chosen.items()}, interactions


def balanced_arms(settings: int) -> int:
    """Return the number of arms in a balanced design."""
    if settings == 1:
        return 2
    # pyDOE3's designs
    sizes = (base << doubled for base in (4, 12, 20) for doubled in range(10))
    return min(size for size in sizes if size > max(3, settings))


def draw_arms(names: Sequence[str], rng: random.Random) -> list[Arm]:
    """Draw the arms of a heat at random, as a balanced design."""
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
    blocks = {cell[:2] for cell in cells}
    free = len(cells) - len(blocks) - len(names)
    if not names or free < 1:
        return {}
    rows = [[cell.log_time, *(name in cell.settings for name in names)] for cell in cells]
    table = np.array(rows, dtype=float)
    for block in blocks:
        inside = [cell[:2] == block for cell in cells]
        table[inside] -= table[inside].mean(axis=0)
    times, on = table[:, 0], table[:, 1:]
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
    """Judge one of `settings` settings at a declared look."""
    low, high = gain.bounds(rules.looks * settings)
    if low > 0:
        return "helps"
    if high < 0:
        return "harms"
    if gain.gain + t_quantile(1 - FEW_CHANCES, gain.df) * gain.error < math.log1p(rules.min_gain):
        return "no gain in sight"
    return "not decided"


def choose(gains: Mapping[str, Gain], rules: RaceRules) -> dict[str, Gain]:
    """Return the settings that are worth keeping, largest gain first."""
    worth = [
        (name, gain)
        for name, gain in gains.items()
        if gain.gain >= math.log1p(rules.min_gain)
        and gain.gain > t_quantile(1 - CHOSEN_P, gain.df) * gain.error
    ]
    return dict(sorted(worth, key=lambda pair: -pair[1].gain))


def stay(
    race: Mapping[str, Gain], beside: Mapping[str, Gain], rules: RaceRules
) -> tuple[dict[str, Gain], Interactions]:
    """Choose which settings of a joint set to keep.

    race, beside: independent gains over balanced combinations, and beside the others
    Returns: the gain of each that stays, and both gains where they differ (Bonferroni); there the
        gain beside the others decides, else both together.
    """
    kept: dict[str, Gain] = {}
    interactions: Interactions = {}
    for name, in_race in race.items():
        gain = beside.get(name, in_race)
        if differs(in_race, gain, ALPHA / len(race)):
            interactions[name] = (in_race.gain, gain.gain)
        elif name in beside:
            gain = weighted(in_race, gain)
        kept |= choose({name: gain}, rules)
    return kept, interactions


def weighted(one: Gain, other: Gain) -> Gain:
    """Return the mean of two independent estimates, weighted by their inverse variances."""
    if not one.error:
        return one
    share = other.error**2 / (one.error**2 + other.error**2)
    mean = share * one.gain + (1 - share) * other.gain
    return Gain(mean, math.sqrt(share) * one.error, min(one.df, other.df))


def differs(one: Gain, other: Gain, alpha: float) -> bool:
    """Return True if two independent estimates of a gain differ (Welch)."""
    error = math.hypot(one.error, other.error)
    if not error:
        return one.gain != other.gain
    df = error**4 / (one.error**4 / one.df + other.error**4 / other.df)
    return abs(one.gain - other.gain) > t_quantile(1 - alpha / 2, df) * error
