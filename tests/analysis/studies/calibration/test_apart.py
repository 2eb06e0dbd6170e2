"""Old files against new files: real equal cells in the order of time, cut into arms, and what `compare` says of them.

Every series of at least 16 whole cells of `stock` and `stock-again` in data/runs is taken, in both summaries; a draw is a stretch of
cells that follow each other: the first of them the baseline, or every other one, or any. The table stands in docs/between_runs.md; a
test holds it to the letter.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.special import stdtr

from analysis.arms import Arm
from analysis.compare import compare_arms
from analysis.load import load_each
from analysis.stats.effect import two_sample_effect
from analysis.stats.in_time import step_in_time
from analysis.studies.calibration.rates import band
from analysis.terms import Cell, Metric, Run
from control.t_test import ALPHA

ROOT = Path(__file__).parents[4]
METRICS = (Metric("throughput_samples_per_s", "higher"), Metric("step_time_p10_s", "lower"))
SHAPES = ((8, 8), (4, 4), (8, 1), (15, 1))
WAYS = ("old, then new", "in turn", "at random")
SLOWER = (0, 0.1, 0.2, 0.5)
LEAST = 16


@cache
def stretches() -> list[tuple[Run, list[Cell]]]:
    found = []
    for run in load_each(sorted(map(str, (ROOT / "data" / "runs").glob("*_amd-epyc-2cpu.json"))), []):
        for workload in run.workloads:
            cells = [cell for cell in run.cells if cell.workload == workload and cell.tweakset in {"stock", "stock-again"}]
            whole = (cell for cell in cells if cell.outcome == "measured" and not cell.segments and not cell.slices_s)
            cells = sorted(whole, key=lambda cell: cell.order)
            if len(cells) >= LEAST:
                found.append((run, cells))
    return found


def draws(runs: int) -> list[np.ndarray]:
    found = []
    for _, cells in stretches():
        for metric in METRICS:
            if all(metric.name in cell.metrics for cell in cells):
                series = np.log([cell.metrics[metric.name] for cell in cells]) * (1 if metric.better == "higher" else -1)
                found += [series[at : at + runs] for at in range(len(series) - runs + 1)]
    return found


def turns(n: int, m: int, way: str, seed: int = 0) -> list[int]:
    """Which runs are the candidate's: the last ones, every other one (of many baselines evenly between them), or any."""
    arms = np.zeros(n + m, int)
    if way == "old, then new":
        arms[n:] = 1
    elif way == "in turn":
        arms[1::2] = 1 if n == m else 0
        if n != m:
            arms[np.linspace(0, n + m - 1, m + 2)[1:-1].round().astype(int)] = 1
    else:
        arms[np.random.default_rng(seed).permutation(n + m)[:m]] = 1
    return arms.tolist()


def called(series: np.ndarray, arms: list[int], slower: float = 0) -> float:
    """Share of draws in which the candidate is called different where its runs are slower by so much."""
    shifted = series + np.log1p(-slower) * np.array(arms)
    step, error, df = step_in_time(shifted, arms, range(len(arms)))
    return float(np.mean(2 * stdtr(df, -np.abs(step) / error) < ALPHA))


def share(n: int, m: int, way: str, slower: float = 0) -> float:
    series = np.array(draws(n + m))
    seeds = range(4 if way == "at random" else 1)
    return float(np.mean([called(series, turns(n, m, way, seed), slower) for seed in seeds]))


def welch(series: np.ndarray, arms: list[int]) -> float:
    baseline, candidate = (np.exp([value for value, arm in zip(series, arms, strict=True) if arm == own]).tolist() for own in (0, 1))
    return two_sample_effect(METRICS[0], baseline, candidate, 0.03).p


def table() -> list[str]:
    lines = []
    for n, m in SHAPES:
        series = np.array(draws(n + m))
        for way in WAYS:
            plain = float(np.mean([welch(one, turns(n, m, way)) < ALPHA for one in series]))
            shares = [plain, *(share(n, m, way, slower) for slower in SLOWER)]
            lines.append(f"| {n} + {m} | {way} | {len(series)} | {' | '.join(f'{100 * each:.1f}' for each in shares)} |")
    return lines


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_equal_real_runs_are_called_different_one_time_in_twenty_at_most(n: int, m: int, way: str) -> None:
    assert share(n, m, way) <= ALPHA


@pytest.mark.parametrize("way", ["in turn", "at random"])
def test_ten_percent_are_found_in_six_of_ten_draws_of_real_runs(way: str) -> None:
    """Eight runs an arm that did not all of one arm come first, on machines whose runs scatter by 1 to 37 % (median 8 %)."""
    assert share(8, 8, way, 0.1) >= 0.6


def test_welch_alone_is_wrong_one_time_in_five_where_old_runs_come_first() -> None:
    assert np.mean([welch(one, turns(8, 8, "old, then new")) < ALPHA for one in draws(16)]) > 0.2


def test_the_page_shows_what_comes_out() -> None:
    page = (ROOT / "docs" / "between_runs.md").read_text(encoding="utf-8")
    assert not [line for line in table() if line not in page]


@pytest.mark.parametrize("slower", [1.0, 2.0])
def test_files_of_real_runs_in_order_of_time_get_such_verdicts(slower: float) -> None:
    verdicts = []
    for run, cells in stretches():
        for at in range(0, len(cells) - LEAST + 1, 4):
            files = [one_cell(run, cell, slower if place >= LEAST // 2 else 1.0) for place, cell in enumerate(cells[at : at + LEAST])]
            (one,) = compare_arms(Arm("old", tuple(files[: LEAST // 2])), [Arm("new", tuple(files[LEAST // 2 :]))])
            assert one.primary, one.reason
            verdicts.append(one.verdict)
    claims = sum(verdict in {"improved", "regressed"} for verdict in verdicts) / len(verdicts)
    assert claims <= band(len(verdicts))[1] if slower == 1 else claims > 0.9


def one_cell(run: Run, cell: Cell, slower: float) -> Run:
    changed = {metric.name: cell.metrics[metric.name] * (slower if metric.better == "lower" else 1 / slower) for metric in METRICS}
    primary = run.workloads[cell.workload].primary or run.studies[cell.study].primary
    if primary.name not in changed:
        changed[primary.name] = cell.metrics[primary.name] * slower
    alone = replace(cell, tweakset="stock", block=1, metrics={**cell.metrics, **changed}, applied=cell.applied)
    return replace(run, run_id=cell.id, started_utc=cell.started_utc or "", cells=(alone,))
