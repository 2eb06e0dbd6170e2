"""Which job next: one file per policy, found by its name.

A policy is a module of this folder whose name does not begin with `_`. It has a `DESCRIPTION` of one line, and one of

- `rank(job) -> tuple`: where the order of two jobs does not change while they wait. The smallest is next; of equals the one that came
  first. It takes the slots that run it fastest of those that are free; where it does not fit, it waits and nobody overtakes it.
- `choose(waiting, state) -> Start | None`: where it does. `waiting` is in the order of submission; None starts nothing for now.

A policy is a pure function: it knows what it is given, and no job's true duration.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from control.errors import UnknownName

if TYPE_CHECKING:
    from types import ModuleType


def names() -> tuple[str, ...]:
    """Every policy there is, in alphabetical order."""
    return tuple(sorted(file.stem for file in Path(__file__).parent.glob("[!_]*.py")))


def load(name: str) -> ModuleType:
    """A policy by its name. Raises: UnknownName with the names that exist."""
    if name not in names():
        raise UnknownName(f"No policy {name!r}. There are: {', '.join(names())}.")
    return import_module(f"{__name__}.{name}")
