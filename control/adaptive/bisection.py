"""`--design=bisect`: which one key of a profile is it? Group testing with sequential evidence.

Blocks of four cells. While searching: two times a subset of the keys and its complement, chosen so that what is still suspected is split
in half (the first block has stock and the whole profile in place of one such pair). Once a key is suspected enough: stock, the profile,
the profile without the key, and the key alone, three such blocks. A key is named if the belief in it from all cells is at least 0.95
and the interval of "profile against profile without it", from these last blocks alone, leaves out zero. How often that is right, wrong
and undecided on synthetic machines stands in docs/adaptive.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, expm1, isfinite, log, log1p
from typing import TYPE_CHECKING
from zlib import crc32

from . import Factor, Json, Trial, slugs
from .belief import LEAST, Belief, comparisons, prior, smallest, uneven, unknown, weigh, whole
from .confirmation import Difference, differences

if TYPE_CHECKING:
    import numpy as np


PER_BLOCK, CONFIRMATIONS = 4, 3
NAMED, SUSPECTED, LIKELY, ACQUITS = 0.95, 0.9, 0.5, 0.5
SPLITS = 128

Keys = tuple[int, ...]


class Bisection:
    """State: the cells so far. All else follows from them and the seed, so a run that is resumed asks the same again."""

    def __init__(self, profile: str, factors: Sequence[Factor], blocks: int, *, seed: int, margin: float) -> None:
        self.profile, self.factors, self.seed, self.margin = profile, tuple(factors), seed, margin
        self.blocks: Sequence[int] = [cell // PER_BLOCK + 1 for cell in range(blocks * PER_BLOCK)]
        self._most = blocks
        self._slugs = list(slugs(factors).values())
        self._asked: list[Keys] = []
        self._plan: list[Keys] = []  # what is left of the present block, or pair
        self._logs: list[float | None] = []
        self._names: dict[Keys, str] = {}
        self._suspects: dict[int, int] = {}  # block (from 0) that confirms -> the key it is about
        self._beliefs: dict[int, Belief] = {}

    def ask(self) -> Trial | None:
        if self._verdict() is not None:
            return None
        if not self._plan:
            self._plan = self._next()
        keys = self._plan[0]
        levels = {factor.name: factor.levels[-1] if on else None for factor, on in zip(self.factors, keys, strict=True)}
        return Trial(self._name(keys), levels)

    def tell(self, trial: Trial, cost: float | None) -> None:
        """Cost of a step of the cell asked for; one that is no positive number counts as not measured, as None does."""
        keys = tuple(int(trial.levels[factor.name] is not None) for factor in self.factors)
        if not self._plan or keys != self._plan[0]:
            raise ValueError(f"bisect: told of {trial.name}, which was not asked for")
        self._plan.pop(0)
        self._asked.append(keys)
        self._logs.append(log(cost) if cost is not None and isfinite(cost) and cost > 0 else None)

    def _measured(self, cells: int | None = None) -> tuple[list[Keys], list[int], list[float]]:
        measured = [(self._asked[at], self.blocks[at], value) for at, value in enumerate(self._logs[:cells]) if value is not None]
        return [keys for keys, _, _ in measured], [block for _, block, _ in measured], [value for _, _, value in measured]

    def _after(self, cells: int) -> Belief:
        if cells not in self._beliefs:
            measured = self._measured(cells)
            self._beliefs[cells] = weigh(*measured) if comparisons(measured[1]) else prior(len(self.factors))
        return self._beliefs[cells]

    # What is asked next.

    def _next(self) -> list[Keys]:
        import numpy as np

        cell = len(self._asked)
        dice = np.random.default_rng([self.seed, crc32(self.profile.encode()), cell])
        block, inside = divmod(cell, PER_BLOCK)
        stock, whole = self._none(), tuple(1 - on for on in self._none())
        if inside == 0:
            suspect = self._suspect()
            guilt, left = self._now().keys[suspect], self._most - block
            missing = CONFIRMATIONS - list(self._suspects.values()).count(suspect)
            if block and (guilt >= SUSPECTED or (guilt >= LIKELY and left <= missing)):
                self._suspects[block] = suspect
                alone = tuple(int(key == suspect) for key in range(len(self.factors)))
                arms = [stock, whole, alone, tuple(1 - on for on in alone)]
                return [arms[arm] for arm in dice.permutation(len(arms))]
        pair = [stock, whole] if cell == 0 else self._split(dice, self._asked[cell - inside :])
        return [pair[arm] for arm in dice.permutation(2)]

    def _split(self, dice: np.random.Generator, taken: list[Keys]) -> list[Keys]:
        """A subset and its complement that part as much suspicion as possible, from keys that were seldom parted before."""
        import numpy as np

        count = len(self.factors)
        subsets = dice.permuted(np.tile(np.arange(count) < count // 2, (SPLITS, 1)), axis=1)
        guilt = np.asarray(self._now().keys)
        trials = np.asarray(self._asked)
        parted = trials.T @ (1 - trials)
        weight = (np.outer(guilt, guilt) + (0.05 / count) ** 2) / (1 + parted + parted.T)
        for best in np.argsort(-((subsets @ weight) * ~subsets).sum(axis=1), kind="stable"):
            keys = tuple(int(on) for on in subsets[best])
            if keys not in taken:  # its complement is then not taken either: they come in pairs
                return [keys, tuple(1 - on for on in keys)]
        return [self._none(), tuple(1 - on for on in self._none())]

    def _name(self, keys: Keys) -> str:
        if not any(keys):
            return "stock"
        if all(keys):
            return self.profile
        if sum(keys) == 1:
            return f"{self.profile}.only-{self._slugs[keys.index(1)]}"
        if sum(keys) == len(keys) - 1:
            return f"{self.profile}.no-{self._slugs[keys.index(0)]}"
        return self._names.setdefault(keys, f"{self.profile}.t{len(self._names) + 1:02d}")

    # What it stands at.

    def verdict(self) -> tuple[str | None, str]:
        return self._verdict(), self.factors[self._suspect()].name

    def _none(self) -> Keys:
        return (0,) * len(self.factors)

    def _now(self) -> Belief:
        return self._after(len(self._asked))

    def _unknown(self) -> list[int]:
        on, blocks, _ = self._measured()
        return unknown(on, blocks, len(self.factors))

    def _suspect(self) -> int:
        keys, never = self._now().keys, set(self._unknown())
        return max(range(len(keys)), key=lambda key: (key not in never, keys[key]))

    def _enough_measured(self) -> bool:
        return comparisons(self._measured()[1]) >= LEAST

    def _verdict(self) -> str | None:
        """Why it is over, at the end of a block: `named`, `clear`, `undecided` or `not measured`; None while it goes on."""
        block, inside = divmod(len(self._asked), PER_BLOCK)
        if inside or not block:
            return None
        last = block == self._most
        if not self._enough_measured():
            return "not measured" if last else None
        suspect = self._suspect()
        if self._now().keys[suspect] >= NAMED:
            confirmed = list(self._suspects.values()).count(suspect)
            effect = self._effects(suspect)["key"]
            if (confirmed >= CONFIRMATIONS or last) and effect is not None and effect.differs():
                return "named"
        if block >= CONFIRMATIONS and self._each_is_small() and self._now().none >= ACQUITS and not (self._unknown() or self._misfit()):
            return "clear"
        return "undecided" if last else None

    def _each_is_small(self) -> bool:
        return self._now().bound < log1p(self.margin)

    def _misfit(self) -> bool:
        """Is there more than keys, each taken for the only one, can explain: the profile is not stock, or effects do not add up?"""
        profile = self._profile()
        return uneven(*self._measured()) or (profile is not None and profile.differs())

    def _profile(self) -> Difference | None:
        """The whole profile against stock: from the blocks that confirm, else from all that hold both."""
        return self._effects(self._suspect())["profile"] or whole(*self._measured())

    def _effects(self, suspect: int) -> dict[str, Difference | None]:
        """From the blocks that confirm it: what the key adds to the rest, and alone; what the rest and the whole add to stock."""
        arms = {(0, 0): "stock", (1, 0): "alone", (0, 1): "rest", (1, 1): "whole"}
        cells: list[dict[str, float]] = []
        for block in (number for number, about in self._suspects.items() if about == suspect):
            cells_of_block = range(block * PER_BLOCK, min((block + 1) * PER_BLOCK, len(self._asked)))
            named = {cell: (self._asked[cell][suspect], self._asked[cell][suspect - 1]) for cell in cells_of_block}
            cells.append({arms[named[cell]]: value for cell in cells_of_block if (value := self._logs[cell]) is not None})
        pairs = {"key": ("whole", "rest"), "alone": ("alone", "stock"), "rest": ("rest", "stock"), "profile": ("whole", "stock")}
        result = differences(cells, list(pairs.values()))
        return {what: result[arms] for what, arms in pairs.items()}

    def smallest(self, noise: float | None = None) -> float:
        """Effect, as a fraction, that these blocks name in about four of five runs at the noise reckoned with."""
        sd = self._now().noise if noise is None else noise
        return smallest(sd, len(self.factors), self._most, confirmations=max(CONFIRMATIONS, self._most // 2), arms=PER_BLOCK)

    def conclusion(self) -> Json:
        """Verdict and its sentence, belief after each cell, the differences that the last blocks show, all as fractions of cost.

        Where too little was measured there are no beliefs and no noise: they would be those from before the first cell.
        """
        verdict, suspect, belief, enough = self._verdict(), self._suspect(), self._now(), self._enough_measured()
        effects, names, profile = self._effects(suspect), [factor.name for factor in self.factors], self._profile()
        never = [names[key] for key in self._unknown()]
        state = {
            "done": verdict is not None,
            "verdict": verdict or "going on",
            "unmeasured": verdict == "not measured" or (verdict == "undecided" and bool(never)),
            "unknown": never,
            "key": names[suspect] if verdict == "named" else None,
            "suspect": {"key": names[suspect], "belief": belief.keys[suspect]} if enough else None,
            "belief": [
                {"cell": cell + 1, "none": after.none, "keys": dict(zip(names, after.keys, strict=True))}
                for cell in range(len(self._asked) if enough else 0)
                for after in [self._after(cell + 1)]
            ],
            "cells": [
                {
                    "order": cell + 1,
                    "name": self._name(keys),
                    "block": self.blocks[cell],
                    "keys": [name for name, on in zip(names, keys, strict=True) if on],
                    "stage": "confirmation" if cell // PER_BLOCK in self._suspects else "search",
                    "cost": None if (value := self._logs[cell]) is None else exp(value),
                }
                for cell, keys in enumerate(self._asked)
            ],
            "effects": {what: effect.saved() if effect else None for what, effect in effects.items()},
            "profile": profile.saved() if profile and enough else None,
            "small": enough and self._each_is_small(),
            "uneven": enough and uneven(*self._measured()),
            "noise": belief.cell_noise if enough else None,
            "smallest": self.smallest() if enough else None,
            "failing": failing(self._asked, self._logs, names),
        }
        return state | {"text": sentence(self.profile, state, effects | {"profile": profile}, belief, self.margin)}


def failing(trials: Sequence[Sequence[int]], logs: Sequence[float | None], names: Sequence[str]) -> list[str]:
    """Keys that were set in each cell that failed and in none that was measured: what to look at first if cells fail."""
    failed = [keys for keys, value in zip(trials, logs, strict=True) if value is None]
    passed = [keys for keys, value in zip(trials, logs, strict=True) if value is not None]
    if not failed:
        return []
    return [name for at, name in enumerate(names) if all(keys[at] for keys in failed) and not any(keys[at] for keys in passed)]


def sentence(profile: str, state: Json, effects: Mapping[str, Difference | None], belief: Belief, margin: float) -> str:
    """Honest sentences: the verdict with its interval, the whole profile against stock, what else the cells say, what they cannot."""
    cells, failed = len(state["cells"]), sum(cell["cost"] is None for cell in state["cells"])
    if state["noise"] is None:
        measured = f"{cells - failed or 'none'} of {cells} cells {'was' if cells - failed < 2 else 'were'} measured"
        if state["verdict"] == "going on":
            return f"{profile}: not decided yet, {measured}."
        few = ", too few to compare" if failed < cells else ""
        return f"Nothing can be said of the keys of {profile}: {measured}{few}.{_blamed(state, failed, cells)}"
    suspect, sure = state["suspect"]["key"], state["suspect"]["belief"]
    text = {
        "named": lambda: _named(profile, suspect, effects, f"belief {sure:.3f}, {cells} cells", margin),
        "clear": lambda: (
            f"No key of {profile}, each taken for the only one that matters, changes the cost of a step by {margin:.0%} or more "
            f"(no more than {expm1(belief.bound):.1%}, 95 % one-sided; {cells} cells, run-to-run noise {belief.cell_noise:.1%})."
        ),
        "undecided": lambda: (
            f"No key of {profile} is named after {cells} cells: the most suspected, {suspect}, has a belief of {sure:.2f}, no key at all "
            f"{belief.none:.2f}.{_by_itself(effects)} {_missed(state, effects['profile'], belief, margin)}"
        ),
        "going on": lambda: f"{profile}: not decided after {cells} cells; the most suspected key is {suspect} (belief {sure:.2f}).",
    }[state["verdict"]]()
    return text + _whole(profile, state, effects["profile"], margin) + _unknown(state["unknown"]) + _blamed(state, failed, cells)


def _by_itself(effects: Mapping[str, Difference | None]) -> str:
    """What confirming blocks show of the suspect where the profile, or the profile without it, did not run."""
    alone = effects["alone"] if effects["key"] is None else None
    return f" By itself against stock: speed {alone.said()}." if alone is not None else ""


def _missed(state: Json, whole: Difference | None, belief: Belief, margin: float) -> str:
    """What no single key explains; else what would have been seen, of the keys that were compared."""
    if state["uneven"]:
        return (
            "The cells differ as no effects that add up can (keys that act only together, or a machine that changes within a block): "
            "--design=ablation or factorial."
        )
    if state["small"] and whole is not None and whole.differs():
        return (
            f"Each key, taken for the only one that matters, changes the cost by less than {margin:.0%}, yet the profile is not stock: "
            "several small effects, or keys that act only together (--design=ablation or factorial)."
        )
    lost = any(cell["cost"] is None for cell in state["cells"])
    which = " that was compared and" if state["unknown"] else " that"
    return (
        f"At the noise seen ({belief.cell_noise:.1%} from run to run), one key{which} changes the cost "
        f"by {state['smallest']:.0%} or more would have been named in about four of five such runs"
        f"{' if no cell had failed' if lost else ''}; a smaller one may be there (--trials gives more cells)."
    )


def _whole(profile: str, state: Json, whole: Difference | None, margin: float) -> str:
    if state["verdict"] == "going on":
        return ""
    if whole is None:
        return f" {profile} as a whole was not measured beside stock."
    more = ""
    if state["verdict"] == "clear" and max(-whole.low, whole.high) > log1p(margin):
        more = ": effects that add up to that are not ruled out"
    elif state["verdict"] == "undecided" and whole.differs() and not (state["small"] or state["uneven"]):
        more = ", which no single key is shown to explain"
    return f" {profile} as a whole against stock: speed {whole.said()}{more}."


def _unknown(keys: Sequence[str]) -> str:
    return f" Nothing is known of {', '.join(keys)}: no cell with it ran beside one without it." if keys else ""


def _blamed(state: Json, failed: int, cells: int) -> str:
    if not failed or (failed == cells and not state["failing"]):
        return ""
    blamed = f", each with {' and '.join(state['failing'])} set, as in no cell that ran" if state["failing"] else ""
    return f" {failed} of the cells failed{blamed}."


def _named(profile: str, key: str, effects: Mapping[str, Difference | None], ground: str, margin: float) -> str:
    effect, alone, rest = effects["key"], effects["alone"], effects["rest"]
    if effect is None:
        raise ValueError(f"{profile}: {key} is named without an interval")
    verb = "costs" if effect.log > 0 else "saves"
    text = f"{key} {verb}: {profile} with it against {profile} without it, speed {effect.said()} ({ground})."
    if alone is not None and not alone.differs() and not (alone.low < effect.log < alone.high):
        text += f" By itself it shows no such effect ({alone.said()}): it acts together with another key."
    if rest is not None:
        if rest.high < 0:
            what = "the rest gains over stock"
        elif rest.low > 0:
            what = "the rest still costs more than stock"
        elif max(-rest.low, rest.high) <= log1p(margin):
            what = f"the rest equals stock within {margin:.0%}"
        else:
            what = "the rest shows no gain over stock"
        text += f" Without it, {what}: {rest.said()}."
    return text
