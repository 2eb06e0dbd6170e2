"""What streams of jobs are called, on pictures and in sentences: how jobs came, what sets streams apart, which fault it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.wording import digits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analysis.studies.jobs.dependability.study import Arm

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


def names(arms: Iterable[Arm]) -> list[str]:
    """Name arms where only these are shown: by their fault, and by what sets arms of one fault apart, their streams last."""
    arms = list(arms)
    words = [arm.label.split(" ") for arm in arms]
    found = [_apart(own, [other for other in words if other[0] == own[0]]) for own in words]
    conditions = [arm.condition.split(":") for arm in arms]
    where = [[other for other, name in zip(conditions, found, strict=True) if name == mine] for mine in found]
    apart = [_apart(own, others)[1:] for own, others in zip(conditions, where, strict=True)]
    return [", ".join(map(_word, (*name, *more))) for name, more in zip(found, apart, strict=True)]


def _apart(own: list[str], others: list[list[str]]) -> list[str]:
    """The first word, and those others that not all have."""
    return own[:1] + [word for word in own[1:] if not all(word in other for other in others)]


def _word(word: str) -> str:
    key, _, value = word.partition("=")
    if key == "checkpoint_s":
        return "no checkpoints" if value == "0" else f"checkpoints every {value} s"
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
