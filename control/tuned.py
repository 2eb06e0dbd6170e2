"""What `deeptweak tune` writes down and `deeptweak tuned` judges: `tune/NAME.json` beside the saved runs."""

from typing import Annotated, NotRequired, TypedDict

from msgspec import Meta

from .tuning import Word

SCHEMA_VERSION = 1
WHOLE = "all-settings"  # the name of an arm
Count = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(gt=0, lt=1)]


class HeatRecord(TypedDict):
    """One session: `run` is its file, from the folder of the record; `arms` has the settings of each by its name."""

    number: int
    phase: str
    label: str
    run: str
    interrupted: bool
    took_s: float
    arms: dict[str, list[str]]


class SettingRecord(TypedDict):
    """What a look knew of a setting: gain and error are of the log of its speed."""

    gain: float
    error: NotNegative
    df: Count
    word: Word


class LookRecord(TypedDict):
    """What was known after so many pairs of heats; `failed` are settings under which no cell could be measured."""

    look: int
    settings: dict[str, SettingRecord]
    failed: list[str]


class RulesRecord(TypedDict):
    """What was declared before the first block; fractions."""

    looks: Count
    min_gain: Share
    margin: Share
    alpha: Share


class TuneRecord(TypedDict):
    """One `tune`.

    settings: by the name of a candidate the settings that it is made of
    chosen: by the name of a candidate the log gain that it seemed to have; None before the choice
    interactions: by the name of a candidate its log gain in the race, and beside the other chosen
        ones
    words: of pytest, that name the benchmark and its workload
    again: the words of the command that measures the manifest on another day
    """

    schema_version: int
    name: str
    started_utc: str
    tweaks: str
    settings: dict[str, list[str]]
    left_out: dict[str, str]
    rules: RulesRecord
    budget_s: float
    seed: int
    heats: list[HeatRecord]
    looks: list[LookRecord]
    chosen: dict[str, float] | None
    interactions: dict[str, tuple[float, float]]
    manifest: str | None
    again: list[str]
    words: list[str]
    interrupted: NotRequired[bool]
