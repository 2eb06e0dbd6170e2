"""The cost of poisoned clients: a federated model's accuracy with and without them, by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from analysis.answer import Columns, Section, Word, bullets, table_of

from .claims import Contrast, claimed, column, contrasts_of, verdict
from .estimates import Figure, as_number, figure, over_blocks
from .records import AGAINST, OF_FAULT

if TYPE_CHECKING:
    from .records import Condition, Stream, Unit

    Accuracies = list[tuple[Unit, float]]

WORSE, BETTER = Word("worse", "bad"), Word("better", "good")
POISONED, ACCURACY, FEDERATED = "poisoned", "accuracy", "federated"


@dataclass(frozen=True, slots=True)
class Poisoning:
    """One setting with a number of poisoned clients.

    `change` is the contrast of its accuracy, a fraction, with the same setting without poisoned
    clients or, if there is none, with `clean`, another setting without; None if no block has
    either.
    """

    condition: Condition
    setting: str
    poisoned: float
    jobs: int
    accuracy: Figure | None
    clean: str = ""
    change: Contrast | None = None

    @property
    def drop(self) -> Figure | None:
        change = self.change
        if change is None:
            return None
        low, high = (None if end is None else -end for end in (change.high, change.low))
        return Figure(-change.value, low, high)


def poisonings(streams: Sequence[Stream]) -> list[Poisoning]:
    """Return every setting with known accuracy and poisoned clients; clean ones first in each."""
    settings: dict[tuple[Condition, str], dict[float, Accuracies]] = {}
    for stream in streams:
        classes = {str(class_.get("name")): _params(class_) for class_ in stream.classes}
        for job in stream.jobs:
            params = classes.get(job.class_, {})
            level = as_number(stream.params.get(POISONED, params.get(POISONED)))
            if job.done and ACCURACY in job.result and level is not None and level >= 0:
                setting = ", ".join(
                    f"{name}={value}" for name, value in sorted(params.items()) if name != POISONED
                )
                condition = stream.condition_without(OF_FAULT, *AGAINST, POISONED, "classes")
                settings.setdefault((condition, setting), {}).setdefault(level, []).append(
                    (stream.unit, job.result[ACCURACY])
                )
    every = [(*place, level) for place, levels in settings.items() for level in sorted(levels)]
    clean = {place: _clean(settings, *place) for place in settings}
    rows = [
        {"place": at, POISONED: arm, "run": run, "block": block, ACCURACY: accuracy}
        for at, (condition, setting, level) in enumerate(every)
        for arm, place in (
            (0.0, (condition, clean[condition, setting])),
            (level, (condition, setting)),
        )
        if level
        for (run, block), accuracy in settings.get(place, {}).get(arm, ())
        if place in settings
    ]
    changes = {
        row.place: row for row in contrasts_of(rows, POISONED, 0.0, {ACCURACY: "raw"}, by=["place"])
    }
    return [
        Poisoning(
            condition,
            setting,
            level,
            len(own := settings[condition, setting][level]),
            over_blocks(own),
            clean[condition, setting],
            changes.get(at),
        )
        for at, (condition, setting, level) in enumerate(every)
    ]


def _params(class_: Mapping[str, object]) -> dict[str, object]:
    params = class_.get("params")
    # Its default need not be recorded.
    default = {POISONED: 0} if class_.get("kind") == FEDERATED else {}
    return {**default, **(params if isinstance(params, dict) else {})}


def _clean(
    settings: Mapping[tuple[Condition, str], Mapping[float, Accuracies]],
    condition: Condition,
    setting: str,
) -> str:
    clean = [
        other for (where, other), levels in settings.items() if where == condition and 0.0 in levels
    ]
    return setting if setting in clean else next(iter(clean), "")


def lost_accuracy(poisonings: Sequence[Poisoning]) -> str:
    names = [
        (word_of(of), f"{of.setting} ({figure(of.drop, 100)} points lost)")
        for of in poisonings
        if of.change is not None
    ]
    return f"Accuracy with poisoned clients. {claimed(names)}" if names else ""


def word_of(of: Poisoning) -> Word:
    return verdict(of.change, BETTER, WORSE, 0.0)


def section(poisonings: Sequence[Poisoning]) -> Section:
    columns: Columns = [
        column("setting", left=True),
        column("poisoned", write="{:g}".format),
        column("jobs"),
        column("accuracy\n% [95 %]", "accuracy", partial(figure, scale=100)),
        column("lost, points\n[95 %]", "drop", partial(figure, scale=100)),
    ]
    lines = [
        f"settings without a clean run are compared with {clean}."
        for clean in dict.fromkeys(
            setting.clean for setting in poisonings if setting.clean not in {"", setting.setting}
        )
    ]
    if any(setting.poisoned and setting.change is None for setting in poisonings):
        lines.append("no loss is given where no block has the same jobs without poisoned clients.")
    return Section(
        "Accuracy of federated runs",
        [table_of(columns, sorted(poisonings, key=lambda of: not of.change)), *bullets(lines)],
    )
