"""When a run has measured enough: its budget is spent, or its arms would see what was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest
from scipy import stats

from control import stopping
from fixtures.options import Options
from fixtures.progress import Here
from fixtures.session import Session
from fixtures.targets.local import Local
from fixtures.terms import CellSpec, Limit, Metric, Refused, Study
from fixtures.workloads import Workload

STUDY = Study("study", "Why?", ("idle",), (), Metric("step_time_p10_s", "lower"), blocks=20)
STEP_TIMES = ("step_time_p10_s", "step_time_median_s", "step_time_round_adjusted_s")
NOISE = (0.4, -0.9, 1.3, -0.2, 0.7, -1.4, 0.1, 0.0, 1.1, -1.1)  # of a unit, a block each


def run_of(folder: Path, tweaks: str, workloads: str = "idle", **options: Any) -> Session:
    """A run before its begin."""
    found = Session(
        replace(Options(tweaks, workloads, None, None, 1, resume=False, folder=folder), **options),
        Local(folder),
    )
    found.choose(found.declare(STUDY))
    return found


def play(
    run: Session,
    step_s: Callable[[CellSpec], float],
    took_s: Callable[[CellSpec], float] = lambda _: 1.0,
    outcome: Callable[[CellSpec], str] = lambda _: "measured",
) -> list[CellSpec]:
    """Go through the plan as pytest does. Returns: the cells that were begun."""
    measured = []
    for cell in list(run.cells.values()):
        if run.is_dropped(cell):
            continue
        measured.append(cell)
        run.records[cell.id] = {
            **{name: getattr(cell, name) for name in ("study", "workload", "tweakset", "block")},
            "id": cell.id,
            "order": cell.order,
            "outcome": outcome(cell),
            "reason": None,
            "duration_s": took_s(cell),
            "metrics": {
                **dict.fromkeys(STEP_TIMES, step_s(cell)),
                "throughput_samples_per_s": 1 / step_s(cell),
            },
        }
    return measured


def test_a_block_is_skipped_if_earlier_ones_took_too_long(tmp_path: Path) -> None:
    """Blocks of 3, 5 and 4 s: a fourth of 4 s would end at 16 s.

    Results have no say, a block that has begun is finished.
    """
    run = run_of(tmp_path, "malloc-hugepages", budget_s=Limit(12.0, "12s"))
    lines: list[str] = []
    run.tell = lines.append
    took_s = {1: 1.0, 2: 5 / 3, 3: 4 / 3}
    measured = play(run, lambda cell: float(cell.block), lambda cell: took_s.get(cell.block, 4 / 3))
    assert [cell.block for cell in measured] == [1] * 3 + [2] * 3 + [3] * 3
    assert list(run.cells.values()) == measured
    assert [run.spent_s(STUDY.name), run.left_s] == pytest.approx([12.0, 0.0])
    assert lines == ["Skipping block 4 of idle: it needs about 4 s, and 0 s of the budget remain."]
    assert run.document()["design"] | {"budget_s": 12.0, "blocks": 3} == run.document()["design"]


@pytest.mark.parametrize(
    ("outcomes", "target", "blocks"),
    [
        ({"stock": "failed", "stock-again": "failed", "malloc-hugepages": "failed"}, "local", 1),
        (
            {"stock": "failed", "stock-again": "failed", "malloc-hugepages": "failed"},
            "kubernetes",
            2,
        ),
        ({"stock": "failed", "stock-again": "failed", "malloc-hugepages": "skipped"}, "local", 1),
        ({"stock": "failed", "stock-again": "failed", "malloc-hugepages": "measured"}, "local", 3),
        ({"stock": "skipped", "stock-again": "skipped", "malloc-hugepages": "failed"}, "local", 3),
    ],
)
def test_a_workload_whose_whole_first_block_failed_has_no_other(
    tmp_path: Path, outcomes: dict[str, str], target: str, blocks: int
) -> None:
    """One failed cell proves nothing, nor does one block on a cluster: its agent may be lost."""
    run = run_of(tmp_path, "malloc-hugepages", blocks=3)
    run.target.name = target
    begun = play(run, lambda _: 1.0, outcome=lambda cell: outcomes[cell.tweakset])
    assert {cell.block for cell in begun} == set(range(1, blocks + 1))
    assert list(run.cells.values()) == begun, "so the run is complete"


@pytest.mark.parametrize("seed", range(1, 4))
def test_every_workload_gets_one_block_whatever_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """By the third cell the budget is spent. The second workload's torch may be missing here."""
    monkeypatch.setattr(Workload, "missing_package", lambda _: None)
    run = run_of(
        tmp_path,
        "malloc-hugepages",
        "idle,cnn_train",
        design="turns",
        budget_s=Limit(2.0, "2s"),
        seed=seed,
    )
    measured = play(run, lambda _: 1.0)
    assert {(cell.workload, cell.block) for cell in measured} == {("idle", 1), ("cnn_train", 1)}


def test_an_arm_left_out_for_memory_goes_first_in_the_next_block(
    tmp_path: Path,
) -> None:
    """Four of five start; next, the one left out and the untouched arms are in the first four."""
    run = run_of(
        tmp_path, "malloc-hugepages,malloc-one-arena,malloc-keep-memory", design="turns", blocks=2
    )
    first, second = (
        [cell for cell in run.cells.values() if cell.block == block] for block in (1, 2)
    )
    assert run.waiting(first) == set()
    play(run, lambda _: 1.0)
    left = next(cell for cell in first if cell.tweakset == "malloc-one-arena")
    run.records[left.id]["outcome"] = "skipped"
    run.no_room[left.id] = "100 MiB are left"
    (name,) = run.waiting(second)
    assert next(cell.tweakset for cell in second if cell.id == name) in {
        "malloc-hugepages",
        "malloc-keep-memory",
    }


def test_what_the_blocks_say_of_an_arm() -> None:
    ratios = [0.01 * one for one in NOISE]
    gain = stopping.detectable(ratios, family=5)
    assert gain is not None
    error = stdev(ratios) / math.sqrt(10)
    critical = stats.t.isf(0.05 / 5 / 2, 9)
    assert stats.nct.sf(critical, 9, math.log1p(gain) / error) == pytest.approx(0.8, abs=1e-4)
    assert stopping.detectable(ratios[:2], family=5) is None


def resumed(folder: Path, **facts: str) -> Session:
    """A run of which a cell of block 1 and all of block 2 were measured with these facts."""
    before = run_of(folder, "malloc-hugepages")
    before.keep_progress()
    here = before.target.environment()
    for cell in before.cells.values():
        if cell.block == 2 or (cell.block, cell.tweakset) == (1, "stock"):
            before.records[cell.id] = {
                "id": cell.id,
                "outcome": "measured",
                "node": facts.get("node", before.target.node),
                "environment": here | facts,
            }
            before.finish(cell)
    run = run_of(folder, "malloc-hugepages", resume=True)
    run.keep_progress()
    return run


def place_of(run: Session) -> Here:
    return Here.of(run.target.node, run.target.environment())


def test_a_block_begun_before_a_reboot_is_measured_again(tmp_path: Path) -> None:
    run = resumed(tmp_path, boot_id="another boot")
    assert run._progress
    assert len(place_of(run).earlier(run._progress.records)) == 4
    begun = run._progress.forget_begun_elsewhere(list(run.cells.values()), place_of(run))
    again = {cell.block for cell in run.cells.values() if not run.is_finished(cell)}
    assert again == {1, *range(3, 21)}
    assert list(begun) == [(STUDY.name, 1)]


@pytest.mark.parametrize("facts", [{}, {"node": "the container's new name"}])
def test_a_run_goes_on_in_its_own_boot_without_a_word(
    tmp_path: Path, facts: dict[str, str]
) -> None:
    run = resumed(tmp_path, **facts)
    assert run._progress
    assert place_of(run).earlier(run._progress.records) == []
    begun = run._progress.forget_begun_elsewhere(list(run.cells.values()), place_of(run))
    assert begun == {}
    assert sum(run.is_finished(cell) for cell in run.cells.values()) == 4


@pytest.mark.parametrize("fact", ["node", "uname_release"])
def test_a_run_is_of_one_machine_and_kernel(tmp_path: Path, fact: str) -> None:
    run = resumed(tmp_path, boot_id="another boot", **{fact: "other"})
    assert run._progress
    with pytest.raises(Refused, match=r"--resume: .* was measured on .*other"):
        place_of(run).earlier(run._progress.records)


def test_a_run_that_goes_on_measures_no_whole_block_again(tmp_path: Path) -> None:
    """One set failed in block 3, and the run was cut off in block 10."""
    before = run_of(tmp_path, "malloc-hugepages,malloc-keep-memory", design="turns")
    before.keep_progress()
    for cell in before.cells.values():
        outcome = (
            "failed" if (cell.block, cell.tweakset) == (3, "malloc-keep-memory") else "measured"
        )
        if cell.block < 10 or (cell.block, cell.tweakset) == (10, "stock"):
            before.records[cell.id] = {"id": cell.id, "outcome": outcome}
            before.finish(cell)
    run = run_of(tmp_path, "malloc-hugepages,malloc-keep-memory", resume=True, design="turns")
    run.keep_progress()
    assert run._progress is not None
    run._progress.forget_parts(list(run.cells.values()))
    again = {cell.block for cell in run.cells.values() if not run.is_finished(cell)}
    assert again == {3, *range(10, 21)}
    assert not [
        cell.id for cell in run.cells.values() if cell.block in again and run.is_finished(cell)
    ], "blocks are measured whole"
