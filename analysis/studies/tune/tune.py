"""A `tune` as it was written down, and its confirmation judged by `compare`: only fresh blocks say what the choice gains."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

from analysis.checks import lost_cells, warnings_of
from analysis.compare import Options, compare
from analysis.files import read_whole
from analysis.formats.checked import Part
from analysis.load import load
from analysis.terms import Comparison, Run, Unreadable
from control.tuned import SCHEMA_VERSION, WHOLE, HeatRecord, SettingRecord, TuneRecord
from control.tuning import Gain, Rules

ORIGIN = "deeptweak tune writes it; name the file tune/NAME.json beside the saved runs"


@dataclass(frozen=True, slots=True)
class Setting:
    """What the race says of one setting: gain and interval as fractions; the interval holds over all looks and settings."""

    name: str
    word: str
    look: int
    gain: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What fresh blocks say.

    run: the saved run
    chosen, whole: against the untouched arms; whole is None where all settings were chosen
    beside: chosen against whole
    warnings: of the saved run, as `compare` has them
    """

    run: Run
    chosen: Comparison
    whole: Comparison | None
    beside: Comparison | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tuning:
    """A `tune` and its confirmation, None where there is none."""

    record: TuneRecord
    path: Path
    settings: tuple[Setting, ...]
    confirmed: Confirmed | None

    @property
    def selection_gain(self) -> float | None:
        """Return what the choice seemed to gain while it was made, as a fraction; settings together."""
        chosen = self.record["chosen"]
        return math.expm1(math.fsum(chosen.values())) if chosen else None


def read(path: Path) -> Tuning:
    """Read a `tune` and the run that confirms it.

    Raises: Unreadable, where either cannot be read.
    """
    try:
        content = json.loads(read_whole(path))
    except ValueError as error:
        raise Unreadable(f"{path} is not JSON ({error}); {ORIGIN}.") from None
    if not isinstance(content, dict) or "looks" not in content:
        raise Unreadable(f"{path} is not a record of `tune`; {ORIGIN}.")
    if content.get("schema_version") != SCHEMA_VERSION:
        raise Unreadable(
            f"{path}: is of schema version {content.get('schema_version')}; this version reads "
            f"{SCHEMA_VERSION}."
        )
    record = Part(content, str(path), remedy=ORIGIN).read(TuneRecord)
    _find_manifest(record, path)
    return Tuning(record, path, tuple(_settings(record)), _confirmed(record, path))


def _find_manifest(record: TuneRecord, path: Path) -> None:
    """Name the manifest where it is now: beside its record, where the folder was moved."""
    written = record["manifest"]
    beside = path.resolve().with_suffix("") / Path(written or "").name
    if written and not Path(written).exists() and beside.is_file():
        record["manifest"] = str(beside)
        record["again"] = [word.replace(written, str(beside)) for word in record["again"]]


def _settings(record: TuneRecord) -> list[Setting]:
    rules = Rules(**record["rules"])
    last: dict[str, tuple[int, SettingRecord]] = {}
    for one in record["looks"]:
        for name, judged in one["settings"].items():
            last[name] = one["look"], judged
    alpha = rules.alpha / (rules.looks * len(record["settings"]))
    result = []
    for name, (look, judged) in last.items():
        ends = Gain(name, judged["gain"], judged["error"], judged["df"]).bounds(alpha)
        gain, low, high = (math.expm1(end) for end in (judged["gain"], *ends))
        word = "does nothing" if -rules.margin < low and high < rules.margin else judged["word"]
        result.append(
            Setting(
                name,
                judged["word"] if judged["word"] in ("helps", "harms") else word,
                look,
                gain,
                low,
                high,
            )
        )
    return sorted(result, key=lambda setting: -setting.gain)


def _confirmed(record: TuneRecord, path: Path) -> Confirmed | None:
    """Judge the fresh blocks; of a confirmation that was interrupted and begun again, the run with more of them."""
    known = [_judged(record, path, heat) for heat in record["heats"] if heat["phase"] == "confirm"]
    return max(filter(None, known), key=_fresh_blocks, default=None)


def _fresh_blocks(confirmed: Confirmed) -> int:
    return confirmed.chosen.primary.n_candidate if confirmed.chosen.primary else 0


def _judged(record: TuneRecord, path: Path, heat: HeatRecord) -> Confirmed | None:
    run = load(path.parent / heat["run"])
    chosen = set(record["chosen"] or {})
    arm = next((name for name, settings in heat["arms"].items() if set(settings) == chosen), "")
    comparisons = compare(run)
    contrasts = {
        comparison.tweakset: comparison for comparison in comparisons if not comparison.guard
    }
    if arm not in contrasts:
        return None
    whole = contrasts.get(WHOLE)
    beside = compare(run, WHOLE, Options(tweaksets=(arm,))) if whole else []
    against_whole = next((one for one in beside if one.tweakset == arm), None)
    return Confirmed(
        run,
        contrasts[arm],
        whole,
        against_whole,
        (*warnings_of(run, comparisons), *lost_cells(run, run.cells)),
    )
