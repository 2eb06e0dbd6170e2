"""What was learnt of each partition that ran: by how much it draws and gives more than its model says.

A model's error is not the same for all partitions, and one that is chosen because it promises most has likely been promised too much.
So what ran is judged by what it gave, and what did not by what the others gave.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .terms import Settings, Tenant

    Key = tuple[float | None, tuple[Tenant, ...]]

MEMORY = 0.3  # the weight of the newest iteration


@dataclass(frozen=True, slots=True)
class Ran:
    """Power and images per second of a partition, as parts of what its model says; its settings as they were last."""

    settings: Settings
    power: float
    images: float


@dataclass(slots=True)
class Tried:
    """Partitions and memory clocks that ran."""

    known: dict[Key, Ran] = field(default_factory=dict)

    def note(self, settings: Settings, power: float, images: float | None) -> None:
        """Take an iteration: the level as it is known by now, and images per second over what the model says (None: none were seen)."""
        before = self.known.get(_key(settings))
        if images is None:
            images = self.images(settings)
        elif before is not None:
            images = (1 - MEMORY) * before.images + MEMORY * images
        self.known[_key(settings)] = Ran(settings, power, images)

    def power(self, settings: Settings, otherwise: float) -> float:
        """By how much more than its model a partition draws; `otherwise` where it did not run."""
        found = self.known.get(_key(settings))
        return otherwise if found is None else found.power

    def images(self, settings: Settings) -> float:
        """By how much more than its model a partition gives; where it did not run the mean of those that did, 1 where none did."""
        found = self.known.get(_key(settings))
        if found is not None:
            return found.images
        return fmean(one.images for one in self.known.values()) if self.known else 1.0

    def forget(self, settings: Settings, from_batch: int | None = None) -> None:
        """Do not come back to these settings, nor to any with a batch of `from_batch` or more."""
        self.known.pop(_key(settings), None)
        if from_batch is not None:
            self.known = {key: one for key, one in self.known.items() if all(tenant.batch < from_batch for tenant in one.settings.tenants)}

    def has(self, settings: Settings) -> bool:
        """Whether it ran."""
        return _key(settings) in self.known


def _key(settings: Settings) -> Key:
    return settings.mem_mhz, settings.tenants
