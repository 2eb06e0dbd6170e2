"""Runs whose arms were measured until enough was known: which blocks count, and what their p and interval allow for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scipy import stats

from analysis.compare import compare
from analysis.load import from_json
from analysis.terms import Comparison
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_run

EARLY, LATE = (Arm(name, requested={"vm.swappiness": name[-1]}) for name in ("decided-1", "open-2"))
MADE = Made(arms=(STOCK, AGAIN, EARLY, LATE), blocks=10, baseline=("stock", "stock-again"))


def compared(*, sequential: bool) -> dict[str, Comparison]:
    saved = saved_run(MADE)
    gone = {cell["id"] for cell in saved["deeptweak"]["cells"] if cell["tweakset"] == EARLY.name and cell["block"] > 8}
    saved["deeptweak"]["cells"] = [cell for cell in saved["deeptweak"]["cells"] if cell["id"] not in gone]
    saved["benchmarks"] = [one for one in saved["benchmarks"] if one["extra_info"]["id"] not in gone]
    if sequential:
        decided = {"study": "made_up", "workload": "cnn_train", "tweakset": EARLY.name, "blocks": 8}
        saved["deeptweak"]["design"]["precision"] = {"mde": 0.03, "decided": [decided]}
    return {one.tweakset: one for one in compare(from_json(saved, "made up"))}


def test_a_decided_arm_has_all_its_blocks() -> None:
    found = compared(sequential=True)
    assert [(found[name].pairs, found[name].blocks) for name in (EARLY.name, LATE.name, "stock-again")] == [(8, 8), (10, 10), (10, 10)]
    assert not any("left out" in note for note in found[EARLY.name].notes)
    without = compared(sequential=False)[EARLY.name]
    assert (without.pairs, without.blocks) == (8, 10)
    assert any("left out" in note for note in without.notes)


@pytest.mark.parametrize("name", [EARLY.name, LATE.name])
def test_interval_and_p_allow_for_the_looks_at_the_data(name: str) -> None:
    """An interval of 96 % stands where that of 95 would; the effect itself is the same."""
    fixed, found = (compared(sequential=one)[name].primary for one in (False, True))
    assert fixed is not None
    assert found is not None
    wider = stats.t.isf(0.02, found.df) / stats.t.isf(0.025, found.df)
    assert (found.gain, found.df) == (fixed.gain, fixed.df)
    assert found.log_se == pytest.approx(wider * fixed.log_se)
    assert found.p > fixed.p
    assert found.low < fixed.low < fixed.high < found.high


def test_the_rule_needs_its_own_run() -> None:
    found = compare(from_json(saved_run(replace(MADE, seed=2)), "made up"))
    assert all(one.primary is None or one.primary.design == "paired" for one in found)
    assert not any("96 %" in note for one in found for note in one.notes)
