"""What poisoned clients cost a federated run: accuracy without them less accuracy with them, in the same block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .blocks import average, mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.studies.jobs.queues.terms import Figure

    from .terms import Stream, Unit

POISONED, ACCURACY, FEDERATED = "poisoned", "accuracy", "federated"


@dataclass(frozen=True, slots=True)
class Poisoning:
    """One setting with so many poisoned clients.

    `drop` is the accuracy that was lost against the same setting without poisoned clients, or where there is none, against `clean`, another
    setting without; a fraction, None where no block has either.
    """

    condition: str
    setting: str
    poisoned: float
    jobs: int
    accuracy: Figure | None
    drop: Figure | None
    clean: str = ""


def poisonings(streams: Sequence[Stream]) -> list[Poisoning]:
    """Every setting of the jobs that tell an accuracy and how many of their clients were poisoned; the clean ones first in each."""
    found: dict[tuple[str, str], dict[float, dict[Unit, list[float]]]] = {}
    for stream in streams:
        kinds = {str(one.get("name")): one for one in stream.classes}
        condition, given = _apart(stream.condition)
        for job in stream.jobs:
            params = _params(kinds.get(job.kind, {}), given)
            level = _number(params.pop(POISONED, None))
            if job.outcome != "done" or ACCURACY not in job.result or level is None:
                continue
            setting = ", ".join(f"{name}={value}" for name, value in sorted(params.items()))
            units = found.setdefault((condition, setting), {}).setdefault(level, {})
            units.setdefault(stream.unit, []).append(job.result[ACCURACY])
    return [
        _poisoning(condition, setting, level, units, _clean(found, condition, setting))
        for (condition, setting), levels in found.items()
        for level, units in sorted(levels.items())
    ]


def _clean(
    found: Mapping[tuple[str, str], Mapping[float, Mapping[Unit, list[float]]]], condition: str, setting: str
) -> tuple[str, Mapping[Unit, list[float]]]:
    """What a setting is held against: its own jobs without poisoned clients, or those of the first setting that has some."""
    there = {other: levels[0.0] for (where, other), levels in found.items() if where == condition and 0.0 in levels}
    if not there:
        return "", {}
    name = setting if setting in there else next(iter(there))
    return name, there[name]


def _poisoning(
    condition: str, setting: str, level: float, units: Mapping[Unit, list[float]], against: tuple[str, Mapping[Unit, list[float]]]
) -> Poisoning:
    name, clean = against
    drops = {unit: [average(clean[unit]) - average(values)] for unit, values in units.items() if unit in clean}
    drop = mean(drops) if level else None
    return Poisoning(condition, setting, level, sum(map(len, units.values())), mean(units), drop, name)


def _apart(condition: str) -> tuple[str, str | None]:
    """A condition without its poisoned clients and the file its classes are from, and how many it has."""
    parts = condition.split(":")
    said = [part.removeprefix(f"{POISONED}=") for part in parts if part.startswith(f"{POISONED}=")]
    return ":".join(part for part in parts if not part.startswith((f"{POISONED}=", "classes="))), said[0] if said else None


def _params(kind: Mapping[str, object], given: str | None) -> dict[str, object]:
    params = kind.get("params")
    own: dict[str, object] = {POISONED: 0} if kind.get("kind") == FEDERATED else {}  # its default need not be told
    own |= params if isinstance(params, dict) else {}
    return own if given is None else {**own, POISONED: given}


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None
