"""Which runs were made on the same hardware: a series that goes on on another machine is another series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .wording import gpus_of

if TYPE_CHECKING:
    from collections.abc import Mapping

# The kernel keeps some memory for itself, and a new one keeps more: this much apart is still the same machine.
SAME_MEMORY = 0.05
GIB = 2.0**30


@dataclass(frozen=True, slots=True)
class Machine:
    """What makes two machines different ones. A fact that is not recorded is None, and equal only to None."""

    cpu_model: str | None
    cpu_count: int | None
    mem_total_bytes: int | None
    gpus: tuple[str, ...]

    def same_as(self, other: Machine) -> bool:
        """Whether series may go on from one to the other."""
        if (self.cpu_model, self.cpu_count, self.gpus) != (other.cpu_model, other.cpu_count, other.gpus):
            return False
        mine, theirs = self.mem_total_bytes, other.mem_total_bytes
        if mine is None or theirs is None:
            return mine is theirs
        return abs(mine - theirs) <= SAME_MEMORY * max(mine, theirs)

    def __str__(self) -> str:
        parts = [
            self.cpu_model,
            self.cpu_count and f"{self.cpu_count} CPUs",
            self.mem_total_bytes and f"{self.mem_total_bytes / GIB:.3g} GiB",
            *self.gpus,
        ]
        return ", ".join(part for part in parts if part) or "unknown machine"


def machine_of(facts: Mapping[str, object]) -> Machine:
    model, count, memory = (facts.get(name) for name in ("cpu_model", "cpu_count", "mem_total_bytes"))
    return Machine(
        cpu_model=model if isinstance(model, str) else None,
        cpu_count=count if isinstance(count, int) else None,
        mem_total_bytes=memory if isinstance(memory, int) else None,
        gpus=tuple(sorted(gpus_of(facts))),
    )


class Machines:
    """The machines met so far, by number; equal ones have one number."""

    def __init__(self) -> None:
        self.known: list[Machine] = []

    def number_of(self, facts: Mapping[str, object]) -> int:
        machine = machine_of(facts)
        for number, one in enumerate(self.known):
            if one.same_as(machine):
                return number
        self.known.append(machine)
        return len(self.known) - 1
