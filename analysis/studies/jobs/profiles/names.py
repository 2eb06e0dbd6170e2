"""Short names for systems: what sets each apart from the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

UNDER = " under "


def short(systems: Sequence[str]) -> dict[str, str]:
    """Name → its parameters that not all have alike, and its tweak set; `all alike` where nothing differs."""
    names = list(dict.fromkeys(systems))
    split = {name: name.partition(UNDER) for name in names}
    parts = {name: [part for part in head.split(":")[1:] if "=" in part] for name, (head, _, _) in split.items()}
    same = set.intersection(*map(set, parts.values())) if parts else set()
    found = {}
    for name, (head, under, tweakset) in split.items():
        words = [part for part in parts[name] if part not in same]
        said = " ".join(words) or (head.partition(":")[0] if len(names) == 1 else "as classes have it")
        found[name] = f"{said}{under}{tweakset}"
    return found if len(set(found.values())) == len(names) else {name: name for name in names}
