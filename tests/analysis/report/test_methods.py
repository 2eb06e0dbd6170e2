"""The methods on a page are those of its runs: the layout of cells and the judged metrics."""

from __future__ import annotations

from pathlib import Path

from analysis.compare import compare
from analysis.compare_answer import METRICS
from analysis.load import load
from analysis.report import methods as m
from tests.analysis.report.pages import read

RUNS = Path("data/runs")
SAVED_IN_TURNS = RUNS / "turns_2026-11-25_amd-epyc-2cpu.json.xz"


def test_a_run_in_turns_is_not_described_as_whole_cells() -> None:
    run = load(SAVED_IN_TURNS)
    text = str(m.methods([run], compare(run)))
    assert m.IN_TURNS in text
    assert m.WHOLE not in text
    assert METRICS["step_time_round_adjusted_s"] in text
    assert METRICS["step_time_p10_s"] not in text


def test_whole_cells_are_judged_by_their_own_metrics() -> None:
    run = read()
    text = str(m.methods([run], compare(run)))
    assert m.WHOLE in text
    assert m.IN_TURNS not in text
    assert METRICS["throughput_samples_per_s"] in text
    assert METRICS["step_time_round_adjusted_s"] not in text
