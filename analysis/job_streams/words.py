"""What streams of jobs are called, on pictures and in sentences: how jobs came, what sets streams apart, which fault it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.wording import digits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analysis.depending.study import Arm

    from .gathered import Gathered, Waits

CALLED = {
    "poisson": "Poisson arrivals",
    "deterministic": "equal gaps",
    "mmpp": "arrivals in bursts (MMPP)",
    "trace": "arrivals of a trace",
    "fltk": "arrivals as FLTK's",
}


def called(kind: str) -> str:
    """Say how jobs came."""
    return CALLED.get(kind, f"{kind} arrivals" if kind else "arrivals unknown")


def setting(waits: Waits) -> str:
    """What sets a group of streams apart, in words: `2 slots, load 0.61, Poisson arrivals`; what tells it from its like behind it."""
    fit = waits.validation.fit
    slots = "" if fit.servers is None else f"{fit.servers} slot{'s' if fit.servers > 1 else ''}, "
    load = "" if fit.load is None else f"load {digits(fit.load.value, 2)}, "
    return f"{slots}{load}{called(waits.arrivals)}"


def settings(found: Iterable[tuple[Gathered, Waits]]) -> list[str]:
    """Name groups by their settings; where two read the same, by what the run calls them."""
    found = list(found)
    names = [setting(waits) for _, waits in found]
    return [name if names.count(name) == 1 else f"{name} ({waits.title})" for name, (_, waits) in zip(names, found, strict=True)]


def names(arms: Sequence[Arm]) -> dict[str, str]:
    """Label → what a fault is called where only these are shown: what all of them had is left out."""
    words = {arm.label: arm.label.split(" ") for arm in arms}
    common = {word for word in next(iter(words.values()), []) if "=" in word and all(word in own for own in words.values())}
    return {label: ", ".join(map(_word, (word for word in own if word not in common))) for label, own in words.items()}


def _word(word: str) -> str:
    key, _, value = word.partition("=")
    if key == "checkpoint_s":
        return f"checkpoints every {value} s"
    try:
        return f"{key} {digits(float(value), 3)}" if value else key
    except ValueError:
        return f"{key} {value}"


def in_order(arms: Sequence[Arm]) -> list[Arm]:
    """Put arms of one fault together, by what is done against it: numbers as numbers."""

    def key(arm: Arm) -> list[tuple[str, float]]:
        parts = (word.partition("=") for word in arm.label.split(" "))
        return [(name, float(value) if value.replace(".", "", 1).isdecimal() else 0.0) for name, _, value in sorted(parts)]

    return sorted(arms, key=lambda arm: (arm.fault or "", arm.label.count("checkpoint_s"), key(arm)))
