"""Tweak sets against stock block by block, cold beside its negative control, and stock against its copy."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.stats

from analysis.studies.io.effects import contrasts
from analysis.studies.io.responses import judge
from analysis.studies.io.sentences import tweaks, untouched
from analysis.studies.io.study import study
from tests.made_io import MadeIo, io_runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from syrupy.assertion import SnapshotAssertion

    from analysis.studies.io.effects import Contrasts

RATE = "samples_per_s_whole"
SMALL = "block-readahead-128"


def gain(levels: Mapping[str, object], tweakset: str) -> float:
    """Reading ahead less costs 15 % where raw files are read from the disk, and nothing elsewhere."""
    return math.log(0.85) if tweakset == SMALL and levels == {"format": "raw", "cache": "cold"} else 0.0


MADE = MadeIo(factors={"format": ("raw", "png"), "cache": ("cold", "warm")}, tweaksets=("stock", "stock-again", SMALL), gain=gain, blocks=6)


@cache
def found_in(response: str = RATE, **changed: Any) -> Contrasts:  # noqa: ANN401  # fields of MadeIo
    return contrasts([judge(run) for run in io_runs(replace(MADE, **changed))], response)


def test_read_ahead_shows_on_cold_raw_and_not_on_its_negative_control() -> None:
    found = found_in()
    shown = {(one.rest, one.cache): one for one in found.tweaks if one.shown}
    assert shown.keys() == {("raw", "cold")}
    one = shown["raw", "cold"]
    assert one.low is not None
    assert one.high is not None
    assert one.low < -0.15 < one.high < 0
    assert {one.rest for one in found.differences if one.shown} == {"raw"}


def test_sentences(snapshot: SnapshotAssertion) -> None:
    """Of tweak sets beside their negative control, and of stock beside its copy."""

    def nothing(_levels: Mapping[str, object], _tweakset: str) -> float:
        return 0.0

    def drift(_levels: Mapping[str, object], tweakset: str) -> float:
        return 0.1 if tweakset == "stock-again" else 0.0

    situations = {
        "small on cold raw": found_in(),
        "no effect": found_in(gain=nothing),
        "one block": found_in(blocks=1),
        "the copy differs": found_in(gain=drift),
        "no copy": found_in(tweaksets=("stock", SMALL)),
    }
    assert {case: (tweaks(found), untouched(found)) for case, found in situations.items()} == snapshot


def test_a_contrast_is_a_paired_t_on_log_ratios() -> None:
    cells = {
        (one.run.overrides["format"], one.run.overrides["cache"], one.run.tweakset, one.run.block): one for one in map(judge, io_runs(MADE))
    }
    change = [
        math.log((cells["png", "warm", SMALL, block].value(RATE) or 0.0) / (cells["png", "warm", "stock", block].value(RATE) or 1.0))
        for block in range(1, 7)
    ]
    low, high = scipy.stats.t.interval(0.95, 5, np.mean(change), scipy.stats.sem(change))
    one = next(one for one in found_in().tweaks if (one.rest, one.cache) == ("png", "warm"))
    assert (one.low, one.high) == pytest.approx((math.expm1(low), math.expm1(high)))
    assert one.p == pytest.approx(scipy.stats.ttest_1samp(change, 0).pvalue)


def test_a_tweak_set_that_met_some_configurations_only_is_judged_where_it_was() -> None:
    runs = [run for run in io_runs(MADE) if run.tweakset != SMALL or run.overrides["format"] == "raw"]
    found = study("made.json", runs)
    with_sets = next(one for one in found.analyses if one.sets)
    assert [factor.name for factor in with_sets.layout.factors] == ["cache", "tweak set"]
    assert {one.factors for one in with_sets.findings if one.shown} >= {("tweak set",), ("cache", "tweak set")}
    assert {one.rest for one in found.contrasts.tweaks} == {"raw"}


def test_values_that_are_copies_of_each_other_are_no_measurements() -> None:
    runs = io_runs(replace(MADE, blocks=3))
    stock = {(run.overrides["format"], run.overrides["cache"], run.block): run for run in runs if run.tweakset == "stock"}
    copied = [replace(run, epochs=stock[run.overrides["format"], run.overrides["cache"], run.block].epochs) for run in runs]
    assert all("no measurements" in (one.missing or "") for one in contrasts([judge(run) for run in copied], RATE).tweaks)


def test_configurations_that_met_other_tweak_sets_are_analysed_apart() -> None:
    writing = MadeIo(
        factors={"format": ("raw",), "cache": ("warm",), "checkpoint": ("on",)}, tweaksets=("stock", "writeback-eager"), blocks=6
    )
    found = study("made.json", [*io_runs(MADE), *io_runs(writing)])
    with_sets = [one for one in found.analyses if one.sets]
    assert [one.layout.factors[-1].levels for one in with_sets] == [("stock", SMALL), ("stock", "writeback-eager")]
    assert {one.tweakset for one in found.contrasts.tweaks} == {SMALL, "writeback-eager"}
