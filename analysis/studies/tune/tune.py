"""A saved `tune`: the settings as the race left them, and the choice's results in fresh blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from analysis.again import command_for
from analysis.checks import lost_cells, warnings_of
from analysis.compare import CompareOptions, compare
from analysis.formats.checked import Part
from analysis.load import load, parsed
from analysis.terms import Comparison, Unreadable
from control.tuning import CHOSEN, CONFIRM, MARGIN, WHOLE, TuneRecord

ORIGIN = "deeptweak tune writes it; name the file tune/NAME.json beside the saved runs"


@dataclass(frozen=True, slots=True)
class SettingGain:
    """One setting: gain and interval as fractions; the interval holds over all looks and settings.

    Without a gain, no look could estimate it.
    """

    name: str
    kept: bool
    word: str = "not measured"
    look: int | None = None
    gain: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Fresh blocks: the choice and all settings against stock, and against each other."""

    chosen: Comparison
    whole: Comparison | None  # None where all settings were chosen
    beside: Comparison | None
    warnings: tuple[str, ...]
    again: tuple[str, ...]  # the command that measures the choice on another day


@dataclass(frozen=True, slots=True)
class Tuning:
    """A `tune`, its confirmation if there is one, and the reasons why files cannot be read."""

    record: TuneRecord
    manifest: str  # of the choice
    settings: tuple[SettingGain, ...]
    confirmed: Confirmed | None
    refused: tuple[str, ...]


def read(path: Path) -> Tuning:
    """Read a `tune` and the runs that confirm it. Raises: Unreadable, without its record."""
    record = Part(parsed(path), str(path), remedy=ORIGIN).read(TuneRecord)
    manifest = str(path.with_suffix("") / f"{CHOSEN}.yaml")
    confirmed: list[Confirmed] = []
    refused = []
    for heat in record.heats:
        if heat.label == CONFIRM:
            try:
                confirmed += _judged(path.parent / heat.run, manifest)
            except Unreadable as error:
                refused.append(str(error))
    # If a confirmation was interrupted and begun again, the longer run counts.
    longest = max(confirmed, key=lambda one: one.chosen.pairs, default=None)
    return Tuning(record, manifest, _settings(record), longest, tuple(refused))


def _settings(record: TuneRecord) -> tuple[SettingGain, ...]:
    kept = record.chosen or {}
    family = record.rules.looks * len(record.settings)
    result = {name: SettingGain(name, name in kept) for name in record.settings}
    for look in record.looks:
        for name, word in look.words().items():
            result[name] = SettingGain(name, name in kept, word)
        for name, known in look.settings.items():
            gain, low, high = map(math.expm1, (known.gain, *known.bounds(family)))
            settled = known.word in ("helps", "harms")
            nothing = low > -MARGIN and high < MARGIN and not settled
            word = "does nothing" if nothing else known.word
            result[name] = SettingGain(name, name in kept, word, look.look, gain, low, high)
    return tuple(sorted(result.values(), key=lambda one: (one.gain is None, -(one.gain or 0))))


def _judged(path: Path, manifest: str) -> list[Confirmed]:
    run = load(path)
    comparisons = compare(run)
    contrasts = {one.tweakset: one for one in comparisons if not one.guard}
    if CHOSEN not in contrasts:
        return []
    whole = contrasts.get(WHOLE)
    both = compare(run, WHOLE, CompareOptions(tweaksets=(CHOSEN,))) if whole else []
    warnings = *warnings_of(run, comparisons), *lost_cells(run, run.cells)
    tweaks, words = "--tweaks=", command_for(run, "--benchmark-save=NAME")
    again = tuple(tweaks + manifest if word.startswith(tweaks) else word for word in words)
    return [Confirmed(contrasts[CHOSEN], whole, next(iter(both), None), warnings, again)]
