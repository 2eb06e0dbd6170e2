"""Adaptive designs: each next cell follows from what came out so far. Told the same, one asks the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Json = dict[str, Any]


class Factor(Protocol):
    """What is varied; the first level, None, is the machine as it was found, the last the tweak set's own."""

    @property
    def name(self) -> str:
        """The setting."""

    @property
    def levels(self) -> tuple[str | None, ...]:
        """Its values."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The next cell: what is in force, and what it is called (`stock`, the tweak set's own name, or a name of its own)."""

    name: str
    levels: Mapping[str, str | None]


class Engine(Protocol):
    """An adaptive design over one tweak set under one workload.

    `blocks` has the block of each cell it may use at most, in order: cells of a block are compared with each other.
    """

    blocks: Sequence[int]

    def ask(self) -> Trial | None:
        """What the next cell should be; None when it is done, or needs no more cells."""

    def tell(self, trial: Trial, cost: float | None) -> None:
        """What came of it: the cost of a step (seconds, or the inverse of a rate: less is better); None where the cell failed."""

    def conclusion(self) -> Json:
        """What it stands at now: saved with the run. Has `text`, one sentence or a few, and `done`.

        `unmeasured`: whether it could not conclude because cells failed, so that the run does not end as if it had (exit code 2).
        """


def slugs(factors: Sequence[Factor]) -> dict[str, str]:
    """Each factor's name as a part of a tweak set's name: a-z, 0-9, '.', '_' and '-'; no two are alike."""
    made: dict[str, str] = {}
    for factor in factors:
        plain = re.sub(r"[^a-z0-9._-]+", "-", factor.name.lower()).strip("-.") or "x"
        slug, n = plain, 1
        while slug in made.values():
            n += 1
            slug = f"{plain}-{n}"
        made[factor.name] = slug
    return made
