"""What a tweak set changes: the settings its manifest asks for, and what its scripts were seen to do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.terms import Run

SECTIONS = ("sysctl", "boot", "ulimit", "service", "environment", "process", "script")


class Change(NamedTuple):
    """One parameter: its section, its key (the path of a tunable, where a script changed it) and the value asked for or found."""

    section: str
    key: str
    value: str


def changes(run: Run, name: str) -> list[Change]:
    """List what one tweak set changes, in the order of its manifest.

    A script says nothing of itself: it counts by the tunables that differed after it in any cell, and as one unnamed change where none
    did.
    """
    tweakset = run.tweaksets[name]
    asked = [Change(one.kind, one.key, one.value) for one in tweakset.requested]
    if not tweakset.scripts:
        return asked
    applied = [cell.applied for cell in run.cells if cell.tweakset == name and cell.applied is not None]
    # A tunable that is gone afterwards (an I/O scheduler's own, when it is replaced) is a consequence, not a setting.
    seen = {path: after for one in applied for path, change in one.side_effects.items() if (after := _after(change)) is not None}
    return asked + ([Change("script", path, after) for path, after in seen.items()] or [Change("script", f"script of {name}", "not seen")])


def sections(changed: Sequence[Change]) -> dict[str, int]:
    """Count changes by section, those without any left out."""
    counts = Counter(one.section for one in changed)
    return {section: counts[section] for section in (*SECTIONS, *sorted(counts.keys() - set(SECTIONS))) if counts[section]}


def _after(change: object) -> str | None:
    if not isinstance(change, list | tuple) or len(change) != 2 or change[1] is None:
        return None
    return str(change[1])
