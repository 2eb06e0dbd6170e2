"""Answer of a saved run: factors, DLIO's agreement, tweak sets with a negative control."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import scipy.stats

from analysis.render.text import render
from analysis.studies.io.answers import answer, findings
from analysis.studies.io.figures import judge
from analysis.studies.io.study import (
    DIFFERENCE,
    IoContrast,
    IoStudy,
    configurations,
    contrasts,
    study,
)
from tests.made_io import MadeIo, io_runs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from syrupy.assertion import SnapshotAssertion

    from analysis.studies.io.terms import IoRun


RATE = "samples_per_s_whole"
SMALL = "block-readahead-128"
SPEED = {"raw": 0.0, "hdf5": 0.0, "png": -1.2}


def gain(levels: Mapping[str, object], tweakset: str) -> float:
    """Decoding slows png; less read-ahead costs raw files 20 % where they come from disk."""
    slower = tweakset == SMALL and levels["format"] == "raw" and levels["cache"] == "cold"
    return SPEED[str(levels["format"])] + (math.log(0.8) if slower else 0.0)


MADE = MadeIo(
    factors={"format": tuple(SPEED), "cache": ("cold", "warm")},
    tweaksets=("stock", "stock-again", SMALL),
    gain=gain,
    cell_sd=0.02,
)


def studied(runs: Iterable[IoRun]) -> IoStudy:
    return study("made.json", [judge(run) for run in runs])


def test_the_page_opens_with_the_answer(snapshot: SnapshotAssertion) -> None:
    page = render(answer(studied(io_runs(MADE))))
    assert max(map(len, page.splitlines())) <= 100
    assert page == snapshot


def test_what_is_alike_is_not_told_apart() -> None:
    """Eight equal configurations: these figures also choose the best, so all pairs are adjusted."""
    made = MadeIo(
        factors={"format": tuple("abcdefgh"), "cache": ("warm",)},
        tweaksets=("stock",),
        blocks=5,
        cell_sd=0.05,
        steps=16,
    )
    false = sum(
        "Most samples/s" in line and "%" in line
        for seed in range(30)
        for line in findings(studied(io_runs(replace(made, seed=seed))))
    )
    assert false <= scipy.stats.binom.ppf(0.999, 30, 0.05)


def test_the_fastest_is_told_though_blocks_lost_others() -> None:
    made = replace(
        MADE,
        tweaksets=("stock",),
        blocks=6,
        lost=[
            ({"format": name, "cache": "cold"}, "stock", at)
            for at, name in ((1, "raw"), (2, "png"))
        ],
    )
    (line,) = [line for line in findings(studied(io_runs(made))) if "Most samples/s" in line]
    assert re.search(r"png · cold -\d\d\.\d % \[", line)
    assert "(Holm over" in line


def engines(seed: int, factor: float) -> list[IoRun]:
    """The same configurations by both engines; DLIO's rate is `factor` times ours, plus scatter."""
    runs = []
    for engine, base, its in (("torch", 400.0, seed), ("dlio", 400.0 * factor, seed + 1)):
        made = replace(MADE, tweaksets=("stock",), base_per_s=base, seed=its, block_sd=0.0)
        runs += [
            replace(
                run,
                engine=engine,
                overrides={"engine": engine, **run.overrides},
                id=run.id + engine,
            )
            for run in io_runs(made)
        ]
    return runs


def test_the_engine_is_a_factor_paired_by_block() -> None:
    analysis = next(one for one in studied(engines(1, 0.9)).analyses if one.response == RATE)
    (step,) = [one for one in analysis.steps if one.factors == ("engine",)]
    assert (step.name, step.n) == ("torch → dlio", 5)
    assert step.low < 0.9 - 1 < step.high < 0


def test_stock_and_copy_are_one_block_value_whatever_the_epochs() -> None:
    made = replace(MADE, tweaksets=("stock", "stock-again", SMALL), epochs=3)
    found = list(configurations([judge(run) for run in io_runs(made)]))
    assert {one.responses[RATE].n for one in found} == {5}
    assert {len(one.runs) for one in found} == {10}


# Tweak sets against stock, block by block.


def read_ahead_gain(levels: Mapping[str, object], tweakset: str) -> float:
    """Less read-ahead costs 15 % for raw files from disk, and nothing elsewhere."""
    return (
        math.log(0.85)
        if tweakset == SMALL and levels == {"format": "raw", "cache": "cold"}
        else 0.0
    )


CROSSED = MadeIo(
    factors={"format": ("raw", "png"), "cache": ("cold", "warm")},
    tweaksets=("stock", "stock-again", SMALL),
    gain=read_ahead_gain,
    blocks=6,
)


@cache
def found_in(**changed: Any) -> list[IoContrast]:
    return contrasts([judge(run) for run in io_runs(replace(CROSSED, **changed))])


def test_read_ahead_shows_on_cold_raw_and_not_on_its_control() -> None:
    shown = {(one.tweakset, one.rest, one.cache): one for one in found_in() if one.shown}
    assert shown.keys() == {(SMALL, "raw", "cold"), (SMALL, "raw", DIFFERENCE)}
    one = shown[SMALL, "raw", "cold"]
    assert one.low is not None
    assert one.high is not None
    assert one.low < -0.15 < one.high < 0


def test_a_copy_of_stock_that_differs_is_said() -> None:
    def drift(_levels: Mapping[str, object], tweakset: str) -> float:
        return 0.1 if tweakset == "stock-again" else 0.0

    (line,) = [
        line
        for line in findings(studied(io_runs(replace(CROSSED, gain=drift))))
        if line.startswith("A/A")
    ]
    assert re.match(
        r"A/A: stock and its copy differ in 4 of 4 configurations, although nothing was changed: "
        r"\+1\d\.\d % \[.*\] with ",
        line,
    )
    quiet = findings(studied(io_runs(CROSSED)))
    assert not [line for line in quiet if line.startswith("A/A")]
