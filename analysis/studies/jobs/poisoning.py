"""What poisoned clients cost a federated model: its accuracy against that of the same jobs without them, block by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from analysis.answer import Column, Columns, Section, Word, bullets, table_of
from analysis.stats.estimate import change_in
from control.t_test import ALPHA

from .claims import CANT_TELL, claimed
from .estimates import FEWEST, Figure, as_number, average, figure, holm_by_key, mean

if TYPE_CHECKING:
    from .records import Stream, Unit

    Accuracies = Mapping[Unit, Sequence[float]]

WORSE = Word("worse", "bad")
POISONED, ACCURACY, FEDERATED = "poisoned", "accuracy", "federated"


@dataclass(frozen=True, slots=True)
class Poisoning:
    """One setting with so many poisoned clients.

    `drop` is the accuracy that was lost against the same setting without poisoned clients, or where there is none, against `clean`, another
    setting without; a fraction, None where no block has either. Its `p` is after Holm over all settings.
    """

    condition: str
    setting: str
    poisoned: float
    jobs: int
    accuracy: Figure | None
    drop: Figure | None
    clean: str = ""
    p: float | None = None


def poisonings(streams: Sequence[Stream], result: str = ACCURACY) -> list[Poisoning]:
    """Return every setting of the jobs whose accuracy and number of poisoned clients are known; the clean ones first in each.

    `result` is what jobs call the accuracy that is meant: the last, by default.
    """
    settings: dict[tuple[str, str], dict[float, dict[Unit, list[float]]]] = {}
    for stream in streams:
        classes = {str(class_.get("name")): _params(class_) for class_ in stream.classes}
        parts = stream.condition.split(":")
        condition = ":".join(part for part in parts if not part.startswith((f"{POISONED}=", "classes=")))
        levels = [part.removeprefix(f"{POISONED}=") for part in parts if part.startswith(f"{POISONED}=")]
        for job in stream.jobs:
            params = classes.get(job.class_, {})
            level = as_number(levels[0] if levels else params.get(POISONED))
            if job.done and result in job.result and level is not None and level >= 0:
                setting = ", ".join(f"{name}={value}" for name, value in sorted(params.items()) if name != POISONED)
                units = settings.setdefault((condition, setting), {}).setdefault(level, {})
                units.setdefault(stream.unit, []).append(job.result[result])
    every = [
        _poisoning(*place, level, units, _clean(settings, *place))
        for place, by_level in settings.items()
        for level, units in sorted(by_level.items())
    ]
    p = holm_by_key({at: of.p for at, of in enumerate(every)})
    return [replace(of, p=p.get(at)) for at, of in enumerate(every)]


def _params(class_: Mapping[str, object]) -> dict[str, object]:
    params = class_.get("params")
    default = {POISONED: 0} if class_.get("kind") == FEDERATED else {}  # its default need not be recorded
    return {**default, **(params if isinstance(params, dict) else {})}


def _clean(settings: Mapping[tuple[str, str], Mapping[float, Accuracies]], condition: str, setting: str) -> tuple[str, Accuracies]:
    """Return what a setting is compared with: its own jobs without poisoned clients, or those of the first setting that has some."""
    clean = {other: levels[0.0] for (where, other), levels in settings.items() if where == condition and 0.0 in levels}
    name = setting if setting in clean else next(iter(clean), "")
    return name, clean.get(name, {})


def _poisoning(condition: str, setting: str, level: float, units: Accuracies, against: tuple[str, Accuracies]) -> Poisoning:
    name, clean = against
    drops = {unit: [average(clean[unit]) - average(values)] for unit, values in units.items() if unit in clean and level}
    p = change_in([drop for (drop,) in drops.values()], log=False).p if len(drops) >= FEWEST else None
    return Poisoning(condition, setting, level, sum(map(len, units.values())), mean(units), mean(drops), name, p)


def lost_accuracy(poisonings: Sequence[Poisoning]) -> str:
    costs = [of for of in poisonings if of.poisoned and of.drop is not None]
    names = [(_worse(of), f"{of.setting or of.condition} ({figure(of.drop, 100)} points lost)") for of in costs]
    return f"Accuracy with poisoned clients. {claimed(names)}" if names else ""


def _worse(of: Poisoning) -> Word:
    if of.drop is None or of.p is None or of.p >= ALPHA:
        return CANT_TELL
    return WORSE if of.drop.value > 0 else Word("better", "good")


def lowers(of: Poisoning) -> bool:
    """Whether accuracy is shown to be lost."""
    return _worse(of) is WORSE


def section(poisonings: Sequence[Poisoning]) -> Section:
    columns: Columns = [
        (Column("setting", left=True), lambda setting: setting.setting or setting.condition),
        (Column("poisoned", write="{:g}".format), lambda setting: setting.poisoned),
        (Column("jobs"), lambda setting: setting.jobs),
        (Column("accuracy\n% [95 %]", "accuracy", partial(figure, scale=100)), lambda setting: setting.accuracy),
        (Column("lost, points\n[95 %]", "lost", partial(figure, scale=100)), lambda setting: setting.drop if setting.poisoned else None),
    ]
    lines = [
        f"what has no clean run of its own is compared with {clean}."
        for clean in dict.fromkeys(setting.clean for setting in poisonings if setting.clean not in {"", setting.setting})
    ]
    if any(setting.poisoned and setting.drop is None for setting in poisonings):
        lines.append("no loss of accuracy where no block has the same without poisoned clients.")
    return Section("Accuracy of federated runs", [table_of(columns, sorted(poisonings, key=lambda of: not of.drop)), *bullets(lines)])
