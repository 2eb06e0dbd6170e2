"""Make saved runs of designs over keys from a seed, with known effects and noise.

A key with gain -0.1 makes the work a tenth slower wherever it is set; `together` adds the effect of
a set of keys where all of them are set.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from analysis.studies.keys.terms import DesignData, DesignFactor, EffectRow
from tests.synthetic import AGAIN, JSON, STOCK, Arm, Made, saved_run

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

What = TypeVar("What")
PROFILE = "profile"
MADE = Made()
# Keys that are set, of all keys by their number: a point of a two-level design.
On = frozenset[int]


@dataclass(frozen=True)
class Keys:
    """The keys of a made-up profile, each set to 1, and what they do.

    `broken` are cells: (name of the tweak set, block) → outcome and reason. `odd` are cells that
    went wrong unseen: → their gain.
    """

    gains: Mapping[str, float]
    together: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    broken: Mapping[tuple[str, int], tuple[str, str]] = field(default_factory=dict)
    odd: Mapping[tuple[str, int], float] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The keys in order."""
        return list(self.gains)

    def gain(self, on: On) -> float:
        """Return the gain of a set of keys: effects multiply."""
        names = {self.names[at] for at in on}
        log = sum(math.log1p(self.gains[name]) for name in names)
        return math.expm1(
            log
            + sum(
                math.log1p(gain) for keys, gain in self.together.items() if names.issuperset(keys)
            )
        )


def ablation(keys: int) -> dict[str, On]:
    """The profile, the profile without each key, each key alone."""
    every = frozenset(range(keys))
    return (
        {PROFILE: every}
        | {f"{PROFILE}.no-{at}": every - {at} for at in every}
        | {f"{PROFILE}.only-{at}": frozenset({at}) for at in every}
    )


def factorial(keys: int) -> dict[str, On]:
    """All combinations but stock, in standard order."""
    points = [frozenset(at for at in range(keys) if one >> at & 1) for one in range(1, 2**keys)]
    return numbered(points, keys)


def fraction(base: int, *words: Sequence[int]) -> dict[str, On]:
    """Return all combinations of the base keys; a word of these sets each further key.

    The coded column of a further key is the product of its word's, signed so that stock is a point.
    """
    points = []
    for signs in itertools.product((-1, 1), repeat=base):
        first = list(reversed(signs))
        more = [
            math.prod(first[at] for at in word) * (1 if len(word) % 2 else -1) for word in words
        ]
        points.append(frozenset(at for at, sign in enumerate([*first, *more]) if sign > 0))
    return numbered([point for point in points if point], base + len(words))


def plackett_burman_12(keys: int) -> dict[str, On]:
    """Twelve runs for up to eleven keys (Plackett & Burman 1946): turns of one row, and stock."""
    first = "++-+++---+-"
    rows = [first[-turn:] + first[:-turn] for turn in range(11)]
    return numbered([frozenset(at for at in range(keys) if row[at] == "+") for row in rows], keys)


def numbered(points: Sequence[On], keys: int) -> dict[str, On]:
    """Call points as a run does: the one with everything set by the profile's own name."""
    return {
        PROFILE if len(point) == keys else f"{PROFILE}.p{at:02}": point
        for at, point in enumerate(points, 2)
    }


def designed(kind: str, keys: Keys, points: Mapping[str, On], made: Made = MADE) -> JSON:
    """Make the JSON of a run of a design; `made` gives blocks, noise, drift and seed."""
    arms = [_arm(name, on, keys) for name, on in points.items()]
    stocks = [
        Arm(one.name, broken=_of(one.name, keys.broken), odd=_of(one.name, keys.odd))
        for one in (STOCK, AGAIN)
    ]
    saved = saved_run(replace(made, arms=(*stocks, *arms)))
    ours = saved["deeptweak"]
    ours["design"] |= {
        "kind": kind,
        "factors": [
            {"tweakset": PROFILE, "name": name, "kind": "sysctl", "levels": [None, "1"]}
            for name in keys.names
        ],
        "points": {
            name: {
                "tweakset": PROFILE,
                "levels": {key: "1" if at in on else None for at, key in enumerate(keys.names)},
            }
            for name, on in points.items()
        },
        "notes": {},
    }
    # A tweak set that is taken apart is described even where it is none of the points.
    if PROFILE not in points:
        ours["tweaksets"][PROFILE] = ours["tweaksets"]["stock"] | {"requested": []}
    return saved


def designed_file(
    folder: Path, kind: str, keys: Keys, points: Mapping[str, On], made: Made = MADE
) -> Path:
    path = folder / f"{kind}.json"
    path.write_text(json.dumps(designed(kind, keys, points, made)), encoding="utf-8")
    return path


def seen(kind: str, keys: int, points: Mapping[str, On], log_gains: Floats) -> DesignData:
    """Return an observed design with these gains: shape (blocks, points), stock first.

    For simulations: no file is made.
    """
    factors = tuple(
        DesignFactor(f"key{at}", letter, ("as found", "1"))
        for at, letter in enumerate("ABCDEFGHJKLMNPQ"[:keys])
    )
    levels = {
        name: tuple("1" if at in on else "as found" for at in range(keys))
        for name, on in {"stock": frozenset[int](), **points}.items()
    }
    rows = tuple(
        EffectRow(name, point, str(block), float(np.exp(gain)))
        for block, gains in enumerate(log_gains, 1)
        for (name, point), gain in zip(levels.items(), gains, strict=True)
    )
    return DesignData(
        "made_up",
        "made_up",
        "throughput_samples_per_s",
        factors,
        levels,
        rows,
        (),
        PROFILE,
        kind,
        "higher",
        "log",
        0.03,
    )


def noise(
    rng: np.random.Generator, blocks: int, points: int, cv: float = 0.02, drift: float = 0.05
) -> Floats:
    order = np.array([block * points + rng.permutation(points) for block in range(blocks)])
    late = order / (blocks * points - 1) * 2 - 1
    return np.log1p(drift * late) + rng.normal(0, cv, (blocks, points))


def _arm(name: str, on: On, keys: Keys) -> Arm:
    requested = {keys.names[at]: "1" for at in sorted(on)}
    return Arm(
        name, keys.gain(on), requested, broken=_of(name, keys.broken), odd=_of(name, keys.odd)
    )


def _of(name: str, cells: Mapping[tuple[str, int], What]) -> dict[int, What]:
    return {block: what for (tweakset, block), what in cells.items() if tweakset == name}
