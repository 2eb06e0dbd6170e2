"""Designs without any effect, and with one, whose configurations scatter unequally: what is named, and what the intervals hold."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import scipy.stats

from analysis.studies.io.effects import analysed
from analysis.studies.io.responses import judge
from analysis.studies.io.terms import IoResponse
from tests.made_io import MadeIo, io_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from analysis.studies.io.responses import JudgedResponse

RATE = "samples_per_s_whole"


def bare(factors: Mapping[str, Sequence[object]], blocks: int) -> list[JudgedResponse]:
    """Cells of a crossed design, whose figures come from `answered`."""
    return [judge(run) for run in io_runs(MadeIo(factors=factors, tweaksets=("stock",), blocks=blocks, steps=3))]


def answered(
    cells: Sequence[JudgedResponse],
    scatter: Callable[[Mapping[str, object]], float],
    rng: np.random.Generator,
    gain: Callable[[Mapping[str, object]], float] = lambda _levels: 0.0,
) -> list[JudgedResponse]:
    """Give cells samples/s out of thin air: blocks 10 % apart, each configuration with its own scatter."""
    blocks = {block: rng.normal(0, 0.1) for block in dict.fromkeys(one.run.block for one in cells)}
    logs = [blocks[one.run.block] + gain(one.run.overrides) + rng.normal(0, scatter(one.run.overrides)) for one in cells]
    return [replace(one, responses={RATE: IoResponse(RATE, "samples/s", "", math.exp(log))}) for one, log in zip(cells, logs, strict=True)]


SCATTER = {
    "all alike": lambda _levels: 0.02,
    "raw from a disk": lambda levels: 0.3 if levels == {"format": "raw", "cache": "cold"} else 0.02,
    "raw": lambda levels: 0.3 if levels["format"] == "raw" else 0.02,
    "cold": lambda levels: 0.3 if levels["cache"] == "cold" else 0.02,
}


@pytest.mark.parametrize("blocks", [3, 5])
@pytest.mark.parametrize("scatter", SCATTER)
def test_where_nothing_has_an_effect_one_design_in_twenty_at_most_names_one(scatter: str, blocks: int) -> None:
    """However unequally configurations scatter. 60 designs: 5 % is 3, and 1 % of such simulations have more than 7.

    On one error pooled over all, 19 % of designs named something where raw scatters by 0.3, and 21 % of intervals missed 0. Here that of
    the step that is told misses in 5 % at most, though it was chosen among four; where there is but one step, in 5 %.
    """
    designs = 60
    cells = bare({"format": ("raw", "npy", "hdf5", "npz", "png"), "cache": ("cold", "warm")}, blocks)
    rng = np.random.default_rng(7)
    found = [analysed(answered(cells, SCATTER[scatter], rng), RATE, sets=False).findings for _ in range(designs)]
    assert sum(any(one.shown for one in each) for each in found) <= scipy.stats.binom.ppf(0.99, designs, 0.05)
    low, high = scipy.stats.binom.interval(0.99, designs, 0.05)
    missed = {
        factors: sum(not one.clearest.low <= 0 <= one.clearest.high for each in found for one in each if one.factors == factors)
        for factors in (("format",), ("cache",), ("format", "cache"))
    }
    assert low <= missed.pop(("cache",)) <= high
    assert max(missed.values()) <= high


def test_five_blocks_find_four_times_in_five_a_format_that_differs_by_three_and_a_half_of_its_scatter() -> None:
    """As docs/io_answers.md promises; and the interval holds its true size. 60 designs: 0.8 of them, within the binomial 99 % band."""
    designs, size = 60, 3.5 * 0.02
    cells = bare({"format": ("raw", "npy", "hdf5", "npz", "png"), "cache": ("cold", "warm")}, 5)
    rng = np.random.default_rng(5)
    found = [
        next(one for one in analysed(made, RATE, sets=False).findings if one.factors == ("format",))
        for made in (answered(cells, SCATTER["all alike"], rng, lambda levels: size * (levels["format"] == "png")) for _ in range(designs))
    ]
    low, high = scipy.stats.binom.interval(0.99, designs, 0.8)
    assert low <= sum(one.shown for one in found) <= high
    assert {one.clearest.name for one in found if one.shown} == {"raw → png"}
    missed = sum(not one.steps[-1].low <= math.expm1(size) <= one.steps[-1].high for one in found)
    assert missed <= scipy.stats.binom.ppf(0.99, designs, 0.05)


def test_what_scatters_little_is_found_beside_what_scatters_much() -> None:
    """A cold cache costs png a fifth, steady to 2 %, while raw from a disk scatters by 30 %: what is said of png is as sure as png is."""
    cells = bare({"format": ("raw", "png"), "cache": ("cold", "warm")}, 5)
    rng = np.random.default_rng(3)
    costs = answered(cells, SCATTER["raw from a disk"], rng, lambda levels: -0.2 * (levels == {"format": "png", "cache": "cold"}))
    one = next(one for one in analysed(costs, RATE, sets=False).findings if len(one.factors) > 1)
    assert one.together is not None
    widths = {step.name: step.high - step.low for step in one.together.steps}
    inside = next(step for step in one.together.steps if step.name == "png")
    assert 0 < inside.low < math.expm1(0.2) < inside.high
    assert widths["raw"] > 4 * widths["png"]
