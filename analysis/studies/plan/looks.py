"""Stopping early without fooling oneself: when to look at an unfinished run, and how clear a difference must be at each look."""

from __future__ import annotations

import math
from dataclasses import dataclass

from analysis.stats.power import FEWEST
from analysis.stats.sequential import blocks_factor, expected_share, naive_type_i, obrien_fleming, pocock, spending
from analysis.terms import Refused
from control.t_test import ALPHA

RULES = {"O'Brien-Fleming": obrien_fleming, "Lan-DeMets": spending, "Pocock": pocock}


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to divide the level among the looks.

    At each look, after so many `blocks`, a difference is called where the unadjusted paired p of its contrast is below `p` (|z| above
    `z`); the run may stop once all are called. `expected_blocks` are run on average for a contrast with the effect planned for.
    """

    name: str
    blocks: tuple[int, ...]
    z: tuple[float, ...]
    p: tuple[float, ...]
    expected_blocks: float


@dataclass(frozen=True, slots=True)
class Looks:
    """A plan to look several times. `naive` is how often equals are called different at 5 % when each look is taken for the only one."""

    looks: int
    alpha: float
    naive: float
    rules: tuple[Rule, ...]


def looks_of(looks: int, blocks: int, alpha: float, power: float) -> Looks:
    """Plan equally spaced looks for one contrast held to `alpha`; one look at the end would need so many `blocks`.

    Bounds are those of z, applied to the p-value of each look's t-test: with 3 blocks a look and more that keeps the level.

    Raises: Refused, where the first look would come before 3 blocks.
    """
    if looks < 2:
        raise Refused(f"--looks {looks}: one look at the end is what a run without it has; give 2 or more.")
    if blocks < FEWEST * looks:
        raise Refused(
            f"--looks {looks}: with {FEWEST} blocks between looks at most {blocks // FEWEST} fit into the {blocks} blocks needed."
        )
    rules = []
    for name, bounds_of in RULES.items():
        bounds = bounds_of(looks, alpha)
        last = math.ceil(blocks * blocks_factor(bounds, alpha, power))
        at = tuple(math.ceil(last * look / looks) for look in range(1, looks + 1))
        p = tuple(math.erfc(z / math.sqrt(2)) for z in bounds)
        rules.append(Rule(name, at, tuple(bounds), p, last * expected_share(bounds, alpha, power)))
    return Looks(looks, alpha, naive_type_i(looks, ALPHA), tuple(rules))
