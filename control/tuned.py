"""The record that `deeptweak tune` writes and `tuned` judges: `tune/NAME.json`."""

from typing import Annotated

from msgspec import Meta, Struct

from .tuning import Gains, Interactions, Look, RaceRules

SCHEMA_VERSION = 1
WHOLE = "all-settings"  # the name of an arm
CONFIRM = "confirm"  # the label of the heat of fresh blocks


class Heat(Struct):
    """One session of a tune: its run's file, relative to the record, and settings by arm."""

    number: int
    label: str
    run: str
    interrupted: bool
    took_s: float
    arms: dict[str, list[str]]


class TuneRecord(Struct, kw_only=True):
    """The record of one `tune`.

    settings: by candidate; left_out: reasons by setting, or line of a file
    chosen: log gains while choosing; None before the choice
    words: of pytest, for the benchmark and its workload
    again: the command that measures the manifest on another day
    """

    schema_version: Annotated[int, Meta(ge=SCHEMA_VERSION, le=SCHEMA_VERSION)] = SCHEMA_VERSION
    started_utc: str
    settings: dict[str, tuple[str, ...]]
    left_out: dict[str, str]
    rules: RaceRules
    budget_s: float
    seed: int
    heats: list[Heat]
    looks: list[Look]
    chosen: Gains | None = None
    interactions: Interactions = {}
    manifest: str | None = None
    again: list[str]
    words: list[str]
    interrupted: bool = False
