"""The answer stands first: what feeds most, whether DLIO agrees, which tweak sets differ, and on what all of it stands."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from analysis.io.answer import answer, head
from analysis.io.configurations import configurations, mean_of
from analysis.io.page import render
from analysis.io.responses import judge
from analysis.io.saved import io_runs as read
from analysis.io.study import study
from analysis.io.terms import Response
from analysis.load import from_json
from tests.made_io import MadeIo, io_runs, saved_io

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analysis.io.study import Study
    from analysis.io.terms import IoRun

RATE = "samples_per_s_whole"
SMALL, LARGE = "block-readahead-128", "block-readahead-8192"
SPEED = {"raw": 0.0, "npy": 0.0, "png": -1.2}


def gain(levels: Mapping[str, object], tweakset: str) -> float:
    """Decoding costs png its speed; reading ahead less costs raw files a fifth where they come from the disk."""
    slower = tweakset == SMALL and levels["format"] == "raw" and levels["cache"] == "cold"
    return SPEED[str(levels["format"])] + (math.log(0.8) if slower else 0.0)


MADE = MadeIo(
    factors={"format": tuple(SPEED), "cache": ("cold", "warm")}, tweaksets=("stock", "stock-again", SMALL, LARGE), gain=gain, cell_sd=0.02
)


def study_of(made: MadeIo = MADE) -> Study:
    """Read ahead stands at 8192 KiB on this machine."""
    disk = {"device": "vda", "read_ahead_kb": "8192", "scheduler": "none"}
    return study("made.json", [replace(run, changed_nothing=run.tweakset == LARGE, disk=disk) for run in io_runs(made)])


def line_of(found: Study, start: str) -> str:
    (line,) = [line for line in answer(found) if line.startswith(start)]
    return line


def test_the_page_opens_with_the_answer() -> None:
    text = render(study_of())
    assert (
        text.index("Stock: read_ahead_kb 8192, scheduler none of vda") < text.index("Cold cache: the highest is") < text.index("AU whole")
    )
    assert len(answer(study_of())) <= 8
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("png · warm") >= 2


def test_for_each_cache_state_the_highest_and_what_is_clearly_lower() -> None:
    said = line_of(study_of(), "Warm cache: ")
    assert "the highest is " in said
    assert "not told apart from it: " in said
    _, _, lower = said.partition("clearly lower: png (")
    low, high = (float(end) for end in lower.partition("[")[2].partition("]")[0].split(","))
    assert low < 100 * math.expm1(-1.2) < high
    assert "Holm over 3 pairs" in said


def test_what_is_alike_is_not_told_apart() -> None:
    """Eight configurations and nothing between them: the best of them is chosen by these very figures, so all pairs are adjusted."""
    made = MadeIo(factors={"format": tuple("abcdefgh"), "cache": ("cold", "warm")}, blocks=5, cell_sd=0.05)
    false = sum("clearly lower" in line for seed in range(40) for line in answer(study("x", io_runs(replace(made, seed=seed)))))
    assert false <= scipy.stats.binom.ppf(0.999, 80, 0.05)


def test_one_block_tells_nothing_apart() -> None:
    said = line_of(study_of(replace(MADE, blocks=1)), "Cold cache: ")
    assert "clearly lower" not in said
    assert "no two share two blocks" in said


def test_tweak_sets_that_differ_are_named_and_no_others() -> None:
    found = study_of()
    said = line_of(found, "Tweak sets")
    assert SMALL in said
    assert "raw · cold -2" in said
    assert "(Holm over 6)" in said
    assert "none of" in line_of(study_of(replace(MADE, gain=lambda _levels, _set: 0.0, tweaksets=("stock", SMALL, "b"))), "Tweak sets")


def test_a_tweak_set_that_changes_nothing_is_no_treatment() -> None:
    found = study_of()
    assert {one.tweakset for one in found.contrasts.tweaks} == {SMALL}
    assert {one.tweakset for one in found.idle} == {LARGE}
    assert all(LARGE not in factor.levels for one in found.analyses for factor in one.observed.factors)
    assert f"{LARGE} changed nothing here: a second A/A" in " ".join(answer(found))
    assert "(=) changed nothing here: a second A/A." in render(found)


@pytest.mark.parametrize(
    ("tweak", "nothing"),
    [
        ({"already_in_force": ["vm.x"]}, True),
        ({"already_in_force": []}, False),
        ({"already_in_force": ["vm.x"], "side_effects": {"/sys/block/vda/queue/read_ahead_kb": ["128", "8192"]}}, False),
    ],
)
def test_whether_it_changed_anything_is_read_from_the_saved_cells(tweak: Mapping[str, object], *, nothing: bool) -> None:
    saved = saved_io(replace(MADE, blocks=2))
    for one in saved["benchmarks"]:
        info = one["extra_info"]
        info["workload_facts"] |= {"device": "vda", "device_read_ahead_kb": "8192", "device_scheduler": "[mq-deadline] none"}
        if info["tweakset"] == LARGE:
            info["tweak"] |= {"requested": {"vm.x": "1"}, "before": {"vm.x": "1"}, "observed": {"vm.x": "1"}, **tweak}
    runs = read(from_json(saved, "io.json"), [])
    assert {run.changed_nothing for run in runs if run.tweakset == LARGE} == {nothing}
    assert not any(run.changed_nothing for run in runs if run.tweakset != LARGE)
    assert head(study("io.json", runs))[0] == "Stock: read_ahead_kb 8192, scheduler mq-deadline of vda, as the machine was found."


def engines(seed: int, factor: float) -> list[IoRun]:
    """The same configurations by both engines; DLIO's samples/s are so many times ours, each with its own scatter."""
    runs = []
    for engine, base, its in (("torch", 400.0, seed), ("dlio", 400.0 * factor, seed + 1)):
        made = replace(MADE, tweaksets=("stock",), base_per_s=base, seed=its, block_sd=0.0)
        runs += [replace(run, engine=engine, overrides={"engine": engine, **run.overrides}, id=run.id + engine) for run in io_runs(made)]
    return runs


def test_dlio_is_set_against_torch_paired_by_block() -> None:
    runs = engines(1, 0.9)
    (said,) = [line for line in answer(study("x", runs)) if line.startswith("DLIO against torch: ")]
    values: dict[tuple[str, int], list[float]] = {}
    for one in map(judge, runs):
        values.setdefault((one.run.engine, one.run.block or 0), []).append(math.log(one.value(RATE) or math.nan))
    change = [np.mean(values["dlio", block]) - np.mean(values["torch", block]) for block in range(1, 6)]
    low, high = (100 * math.expm1(end) for end in scipy.stats.t.interval(0.95, 4, np.mean(change), scipy.stats.sem(change)))
    assert f"samples/s {100 * math.expm1(float(np.mean(change))):+.1f} % [{low:+.1f}, {high:+.1f}]" in said
    assert "AU whole -" in said
    assert "they differ" in said
    assert "no difference shown" in line_of(study("x", engines(3, 1.0)), "DLIO against torch")


def test_a_step_of_fractions_of_a_millisecond_is_doubted_at_the_head() -> None:
    def heads(seconds: float, scale: float) -> list[str]:
        runs = [replace(run, computation_time_s=seconds, params={**run.params, "record_scale": scale}) for run in io_runs(MADE)]
        return head(study("x", runs))

    assert heads(0.00065, 0.002)[0].startswith("Doubt: a step computes 0.65 ms")
    assert "record_scale" in heads(0.00065, 0.002)[0]
    assert heads(0.02, 0.002) == []
    assert heads(0.0035, 1) == []


@given(st.lists(st.floats(0.5, 100.0), min_size=2, max_size=8))
def test_no_interval_leaves_what_it_measures(values: list[float]) -> None:
    """A rate's on a logarithmic scale, whose mean is the geometric one; AU's within 0 to 100."""
    rate = mean_of([Response(RATE, "samples/s", "", one) for one in values])
    assert rate.value == pytest.approx(scipy.stats.gmean(values))
    assert rate.low is not None
    assert 0 < rate.low <= (rate.value or 0) * (1 + 1e-9)
    au = mean_of([Response("au_whole_percent", "%", "", one) for one in values])
    assert au.value == pytest.approx(np.mean(values))
    assert au.low is not None
    assert au.high is not None
    assert au.low >= 0
    assert au.high <= 100 + 1e-9


def test_stock_and_its_copy_in_one_block_are_one_value_in_the_table_as_in_the_sentences() -> None:
    found = configurations([judge(run) for run in io_runs(replace(MADE, tweaksets=("stock", "stock-again")))])
    assert {one.tweakset for one in found} == {"stock"}
    assert {one.responses[RATE].runs for one in found} == {5}
    assert {len(one.runs) for one in found} == {10}
