"""A saved `tune`: the settings as the race left them, and the choice as fresh blocks judge it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from analysis.checks import lost_cells, warnings_of
from analysis.compare import CompareOptions, compare
from analysis.formats.checked import Part
from analysis.load import load, parsed
from analysis.terms import Comparison, Unreadable
from control.tuned import CONFIRM, WHOLE, Heat, TuneRecord

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
    """Fresh blocks.

    chosen, whole: against the untouched arms; whole is None where all settings were chosen
    chosen_against_whole: the two beside each other
    warnings: of the saved run, as `compare` has them
    """

    run_id: str
    chosen: Comparison
    whole: Comparison | None
    chosen_against_whole: Comparison | None
    warnings: tuple[str, ...]

    @property
    def blocks(self) -> int:
        return self.chosen.primary.n_candidate if self.chosen.primary else 0


@dataclass(frozen=True, slots=True)
class Tuning:
    """A `tune`, its confirmation if there is one, and the files that cannot be read."""

    record: TuneRecord
    settings: tuple[SettingGain, ...]
    confirmed: Confirmed | None
    refused: tuple[str, ...]

    @property
    def selection_gain(self) -> float | None:
        """Return the gain of the choice while choosing, as a fraction; settings together."""
        chosen = self.record.chosen
        return math.expm1(math.fsum(chosen.values())) if chosen else None


def read(path: Path) -> Tuning:
    """Read a `tune` and the runs that confirm it. Raises: Unreadable, without its record."""
    record = Part(parsed(path), str(path), remedy=ORIGIN).read(TuneRecord)
    written = record.manifest
    beside = path.resolve().with_suffix("") / Path(written or "").name
    if written and not Path(written).exists() and beside.is_file():  # the folder was moved
        record.manifest = str(beside)
        record.again = [word.replace(written, str(beside)) for word in record.again]
    confirmed, refused = [], []
    for heat in record.heats:
        if heat.label == CONFIRM:
            try:
                confirmed += _judged(heat, path.parent / heat.run, set(record.chosen or ()))
            except Unreadable as error:
                refused.append(str(error))
    # If a confirmation was interrupted and begun again, the longer run counts.
    longest = max(confirmed, key=lambda one: one.blocks, default=None)
    return Tuning(record, _settings(record), longest, tuple(refused))


def _settings(record: TuneRecord) -> tuple[SettingGain, ...]:
    rules, kept = record.rules, record.chosen or {}
    alpha = rules.alpha / (rules.looks * len(record.settings))
    result = {name: SettingGain(name, name in kept) for name in record.settings}
    for look in record.looks:
        result |= {name: SettingGain(name, name in kept, "fails") for name in look.failed}
        for name, known in look.settings.items():
            gain, low, high = map(math.expm1, (known.gain, *known.bounds(alpha)))
            inside = -rules.margin < low and high < rules.margin
            open_ = known.word not in ("helps", "harms")
            word = "does nothing" if inside and open_ else known.word
            result[name] = SettingGain(name, name in kept, word, look.look, gain, low, high)
    return tuple(sorted(result.values(), key=lambda one: (one.gain is None, -(one.gain or 0))))


def _judged(heat: Heat, path: Path, chosen: set[str]) -> list[Confirmed]:
    run = load(path)
    comparisons = compare(run)
    contrasts = {one.tweakset: one for one in comparisons if not one.guard}
    whole = contrasts.get(WHOLE)
    warnings = *warnings_of(run, comparisons), *lost_cells(run, run.cells)
    for arm in (name for name, settings in heat.arms.items() if set(settings) == chosen):
        if arm in contrasts:
            both = compare(run, WHOLE, CompareOptions(tweaksets=(arm,))) if whole else []
            beside = next((one for one in both if one.tweakset == arm), None)
            return [Confirmed(run.run_id, contrasts[arm], whole, beside, warnings)]
    return []
