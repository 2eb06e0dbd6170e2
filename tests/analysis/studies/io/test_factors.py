"""Which factor, how much, how sure: runs with known effects or none, and with unequal scatter."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from analysis.stats.effect import holm
from analysis.studies.io.answers import reversals
from analysis.studies.io.figures import IoFigure, Judged, judge
from analysis.studies.io.study import (
    Analysis,
    EffectStep,
    analyse,
    factors_of,
    levels_of,
    mean_of,
)
from tests.made_io import MadeIo, io_runs

if TYPE_CHECKING:
    from analysis.studies.io.terms import IoRun


RATE = "samples_per_s_whole"
FORMATS = {"raw": 0.0, "hdf5": 0.02, "png": -1.2}
COLD = {"raw": -0.6, "hdf5": -0.6, "png": 0.0}


def gain(levels: Mapping[str, object], _tweakset: str) -> float:
    """Decoding slows png; a cold cache slows the others."""
    name = str(levels["format"])
    return FORMATS[name] + (COLD[name] if levels["cache"] == "cold" else 0.0)


MADE = MadeIo(
    factors={"format": tuple(FORMATS), "read_threads": (1, 4), "cache": ("cold", "warm")}, gain=gain
)


def analysis_of(made: MadeIo, response: str = RATE) -> Analysis:
    return analyse([judge(run) for run in io_runs(made)], response)


Effects = dict[tuple[str, ...], list[EffectStep]]


def effects_in(analysis: Analysis) -> Effects:
    """Return the steps of each effect, by its factors."""
    found: Effects = {}
    for step in analysis.steps:
        found.setdefault(step.factors, []).append(step)
    return found


def named(effects: Effects) -> set[tuple[str, ...]]:
    return {factors for factors, steps in effects.items() if any(step.shown for step in steps)}


def clearest(steps: Sequence[EffectStep]) -> EffectStep:
    """Return the largest step that is shown, else that with the smallest p."""
    shown = [step for step in steps if step.shown]
    if shown:
        return max(shown, key=lambda step: abs(step.value))
    return min(steps, key=lambda step: step.p)


def test_an_effect_that_is_there_is_found_at_its_size() -> None:
    """Cell scatter 1 %, 5 blocks, stock and copy: raw to png is e^-1.2 warm, e^-0.9 on average."""
    found = effects_in(analysis_of(MADE))
    assert named(found) == {("format",), ("cache",), ("format", "cache")}
    png = clearest(found["format",])
    assert (png.name, png.n) == ("raw → png", 5)
    assert png.low < math.expm1(-1.2 + 0.3) < png.high
    assert png.high - png.low < 0.02
    steps = {step.name: step for step in found["format", "cache"]}
    both = steps["raw → png, cold → warm"]
    assert both.low < math.expm1(-0.6) < both.high


def test_a_step_is_a_paired_t_over_blocks() -> None:
    """Of cell means per block; the smaller p of two steps is doubled, then Holm's over effects."""
    made = MadeIo(
        factors={"format": ("raw", "npz", "png"), "cache": ("cold", "warm")},
        tweaksets=("stock",),
        blocks=5,
        cell_sd=0.05,
    )
    cells = [judge(run) for run in io_runs(made)]
    y = np.log(
        [
            [one.value(RATE) or math.nan for one in cells if one.run.block == block]
            for block in range(1, 6)
        ]
    ).reshape(5, 3, 2)
    found = effects_in(analyse(cells, RATE))
    hand = {
        ("format",): [y[:, at].mean(1) - y[:, 0].mean(1) for at in (1, 2)],
        ("cache",): [y[:, :, 1].mean(1) - y[:, :, 0].mean(1)],
        ("format", "cache"): [y[:, at, 1] - y[:, at, 0] - y[:, 0, 1] + y[:, 0, 0] for at in (1, 2)],
    }
    for factors, each in hand.items():
        for step, changes in zip(found[factors], each, strict=True):
            ends = (
                np.mean(changes),
                *scipy.stats.t.interval(
                    1 - 0.05 / len(each), 4, np.mean(changes), scipy.stats.sem(changes)
                ),
            )
            assert (step.value, step.low, step.high) == pytest.approx(tuple(map(math.expm1, ends)))
            assert step.p == pytest.approx(scipy.stats.ttest_1samp(changes, 0).pvalue)
    smallest = [len(steps) * min(step.p for step in steps) for steps in found.values()]
    adjusted = [min(step.p_adjusted or 0.0 for step in steps) for steps in found.values()]
    assert adjusted == pytest.approx(holm([min(1.0, p) for p in smallest]))


def test_two_blocks_are_refused_and_incomplete_ones_not_counted() -> None:
    for blocks in (1, 2):
        few = analysis_of(replace(MADE, blocks=blocks, tweaksets=("stock",)))
        assert (f"{blocks} block" in few.refusal, few.steps) == (True, ())
    small = MadeIo(tweaksets=("stock",), lost=[({"format": "raw", "cache": "cold"}, "stock", 2)])
    assert effects_in(analysis_of(small))["cache",][0].n == 4
    twice = replace(
        small,
        lost=[
            ({"format": name, "cache": "cold"}, "stock", block)
            for name in ("raw", "npz")
            for block in (2, 3, 4)
        ],
    )
    refused = analysis_of(twice)
    assert any(note.startswith("cache") and "3 blocks" in note for note in refused.notes)
    assert ("cache",) not in effects_in(refused)


def test_one_factor_at_a_time_yields_main_effects_alone() -> None:
    runs = [
        run
        for run in io_runs(MADE)
        if sum(run.overrides[name] != base for name, base in BASE.items()) <= 1
    ]
    found = analyse([judge(run) for run in runs], RATE)
    assert effects_in(found).keys() == {("format",), ("read_threads",), ("cache",)}
    assert sum("cannot be estimated" in note for note in found.notes) == 3


BASE = {"format": "raw", "read_threads": 1, "cache": "warm"}


def design(**levels: Sequence[object]) -> list[IoRun]:
    """One run per combination, named by these parameters alone."""
    (run,) = io_runs(MadeIo(factors={"cache": ("warm",)}, blocks=1, tweaksets=("stock",)))
    return [
        replace(run, overrides=dict(zip(levels, values, strict=True)))
        for values in itertools.product(*levels.values())
    ]


def test_what_is_a_factor_and_in_which_order_its_levels_stand() -> None:
    """By size, or plainest first; two parameters that always agree are one; implied ones none."""
    runs = design(read_threads=(16, 2, 1), format=("png", "hdf5", "raw"))
    factors, _ = factors_of(levels_of(runs))
    assert [*factors.values()] == [["1", "2", "16"], ["raw", "hdf5", "png"]]
    twins = [
        replace(
            run,
            overrides={**run.overrides, "transfer_size": 4096 * (run.overrides["format"] == "png")},
        )
        for run in design(format=("raw", "png"))
    ]
    factors, same = factors_of(levels_of(twins))
    assert (len(factors), same) == (1, {"transfer_size": "format"})
    models = [
        replace(run, model=name, batch_size=size)
        for name, size in (("unet3d", 7), ("resnet50", 400))
        for run in design(format=("raw", "png"))
    ]
    assert [*factors_of(levels_of(models))[0]] == ["model", "format"]


def test_reading_moved_into_the_first_step_is_hidden_not_saved() -> None:
    made = replace(MADE, steps=60, first=lambda levels: 0.9 if levels["read_threads"] == 4 else 0.1)
    (line,) = reversals(
        [analysis_of(made, name) for name in ("au_steady_percent", "au_whole_percent")]
    )
    assert line.startswith("read_threads 1 → 4: AU without the first step +41.7 points")


ONE = judge(io_runs(MadeIo(blocks=1))[0])


@given(st.lists(st.one_of(st.none(), st.floats(0.5, 100)), min_size=1, max_size=8))
def test_a_mean_is_of_present_values_with_its_interval_in_range(values: list[float | None]) -> None:
    """A rate's on a logarithmic scale, whose mean is the geometric one; AU's within 0 to 100.

    Missing values are named.
    """
    known = [one for one in values if one is not None]
    for name, middle, highest in (
        (RATE, scipy.stats.gmean, math.inf),
        ("au_whole_percent", statistics.fmean, 100),
    ):
        figures = [IoFigure(one, None if one is not None else "too few steps") for one in values]
        mean = mean_of(
            name,
            [
                replace(ONE, run=replace(ONE.run, block=at), responses={name: each})
                for at, each in enumerate(figures)
            ],
        )
        assert mean.n == len(known)
        assert (mean.missing is None) == (len(known) == len(values))
        assert mean.value == (pytest.approx(middle(known)) if known else None)
        assert (mean.low is None) == (len(known) < 2)
        assert mean.low is None or (
            0 <= mean.low <= (mean.value or 0) * (1 + 1e-9) and (mean.high or 0) <= highest + 1e-9
        )


def test_an_extra_job_beside_a_design_changes_no_other_effect() -> None:
    """The job writes checkpoints at half speed: the cache's effect on raw is the readers' alone."""
    lone = MadeIo(
        factors={
            "format": ("raw",),
            "read_threads": (1,),
            "cache": ("warm",),
            "checkpoint": ("on",),
        },
        gain=lambda *_: -0.7,
    )
    design = [replace(run, params={**run.params, "checkpoint": "off"}) for run in io_runs(MADE)]
    found = effects_in(analyse([judge(run) for run in (*design, *io_runs(lone))], RATE))
    alone = effects_in(analysis_of(MADE))
    (step,) = found.pop(("checkpoint",))
    assert step.low < math.expm1(-0.7) < step.high
    assert [[step.value for step in steps] for steps in found.values()] == [
        pytest.approx([step.value for step in steps]) for steps in alone.values()
    ]


def bare(factors: Mapping[str, Sequence[object]], blocks: int) -> list[Judged]:
    """Cells of a crossed design, with figures from `answered`."""
    return [
        judge(run)
        for run in io_runs(MadeIo(factors=factors, tweaksets=("stock",), blocks=blocks, steps=3))
    ]


def answered(
    cells: Sequence[Judged],
    scatter: Callable[[Mapping[str, object]], float],
    rng: np.random.Generator,
    gain: Callable[[Mapping[str, object]], float] = lambda _levels: 0.0,
) -> list[Judged]:
    """Give cells made-up samples/s: blocks 10 % apart, each configuration with its own scatter."""
    blocks = {block: rng.normal(0, 0.1) for block in dict.fromkeys(one.run.block for one in cells)}
    logs = [
        blocks[one.run.block] + gain(one.run.overrides) + rng.normal(0, scatter(one.run.overrides))
        for one in cells
    ]
    return [
        replace(one, responses={RATE: IoFigure(math.exp(log))})
        for one, log in zip(cells, logs, strict=True)
    ]


SCATTER = {
    "all alike": lambda _levels: 0.02,
    "raw from a disk": lambda levels: 0.3 if levels == {"format": "raw", "cache": "cold"} else 0.02,
    "raw": lambda levels: 0.3 if levels["format"] == "raw" else 0.02,
    "cold": lambda levels: 0.3 if levels["cache"] == "cold" else 0.02,
}


@pytest.mark.parametrize("blocks", [3, 5])
@pytest.mark.parametrize("scatter", SCATTER)
def test_without_effects_at_most_one_design_in_twenty_names_one(scatter: str, blocks: int) -> None:
    """However unequally configurations scatter.

    60 designs: 5 % is 3, and 1 % of such simulations have more than 7.

    On one error pooled over all, 19 % of designs named something where raw scatters by 0.3, and 21
    % of intervals missed 0. Here that of the step that is told misses in 5 % at most, though it was
    chosen among four; where there is but one step, in 5 %.
    """
    designs = 60
    cells = bare(
        {"format": ("raw", "hdf5", "npz", "png", "tfrecord"), "cache": ("cold", "warm")}, blocks
    )
    rng = np.random.default_rng(7)
    found = [
        effects_in(analyse(answered(cells, SCATTER[scatter], rng), RATE)) for _ in range(designs)
    ]
    assert sum(bool(named(each)) for each in found) <= scipy.stats.binom.ppf(0.99, designs, 0.05)
    low, high = scipy.stats.binom.interval(0.99, designs, 0.05)
    missed = {
        factors: sum(
            not clearest(each[factors]).low <= 0 <= clearest(each[factors]).high for each in found
        )
        for factors in (("format",), ("cache",), ("format", "cache"))
    }
    assert low <= missed.pop(("cache",)) <= high
    assert max(missed.values()) <= high


def test_five_blocks_mostly_find_a_format_3_5_scatters_away() -> None:
    """As docs/io.md promises; and the interval holds its true size.

    60 designs: 0.8 of them, within the binomial 99 % band.
    """
    designs, size = 60, 3.5 * 0.02

    def slower(levels: Mapping[str, object]) -> float:
        return size * (levels["format"] == "tfrecord")

    cells = bare(
        {"format": ("raw", "hdf5", "npz", "png", "tfrecord"), "cache": ("cold", "warm")}, 5
    )
    rng = np.random.default_rng(5)
    found = [
        effects_in(analyse(answered(cells, SCATTER["all alike"], rng, slower), RATE))["format",]
        for _ in range(designs)
    ]
    low, high = scipy.stats.binom.interval(0.99, designs, 0.8)
    shown = [clearest(steps) for steps in found if clearest(steps).shown]
    assert low <= len(shown) <= high
    assert {step.name for step in shown} == {"raw → tfrecord"}
    missed = sum(not steps[-1].low <= math.expm1(size) <= steps[-1].high for steps in found)
    assert missed <= scipy.stats.binom.ppf(0.99, designs, 0.05)
