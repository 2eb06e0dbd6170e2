"""Finished cells survive an interruption, and only the very same plan continues from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures.cells import STOCK, STOCK_AGAIN, pairs, randomized_blocks
from fixtures.progress import Here, ProgressFile, digest
from fixtures.terms import CellSpec, TweakSet
from fixtures.tweaks.manifest import parse

MANIFEST = """\
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {name: one}
spec:
  packages:
    tuning: {version: 1.1.2, image: ghcr.io/nvidia/skyhook-packages/tuning, \
configMap: {sysctl.conf: "vm.swappiness = 10"}}
"""


def record(name: str, outcome: str = "measured") -> dict[str, Any]:
    return {"id": name, "outcome": outcome}


def interrupted(folder: Path, *names: str) -> ProgressFile:
    """A run that stopped after these cells."""
    progress = ProgressFile(folder, "plan", "first", resume=False)
    for name in names:
        progress.add(record(name), {"cpu": [1.0]})
    return progress


def test_a_resumed_run_keeps_its_id_finished_cells_and_telemetry(
    tmp_path: Path,
) -> None:
    interrupted(tmp_path, "a", "b")
    again = ProgressFile(tmp_path, "plan", "second", resume=True)
    assert again.run_id == "first"
    assert again.finished == {
        name: {"record": record(name), "columns": {"cpu": [1.0]}} for name in ("a", "b")
    }


def test_a_resumed_run_goes_on_writing_where_the_first_stopped(tmp_path: Path) -> None:
    interrupted(tmp_path, "a")
    ProgressFile(tmp_path, "plan", "second", resume=True).add(record("b"), {})
    assert list(ProgressFile(tmp_path, "plan", "third", resume=True).finished) == ["a", "b"]


@pytest.mark.parametrize("cut", [1, 40])
def test_a_line_that_a_crash_tore_costs_its_cell_only(tmp_path: Path, cut: int) -> None:
    """However much is missing: earlier cells are kept, it runs again, and the next run reads it."""
    progress = interrupted(tmp_path, "a", "b")
    whole = progress.path.read_bytes()
    progress.path.write_bytes(whole[:-cut])
    again = ProgressFile(tmp_path, "plan", "second", resume=True)
    assert list(again.finished) == ["a"]
    again.add(record("b"), {})
    again.add(record("c"), {})
    assert list(ProgressFile(tmp_path, "plan", "third", resume=True).finished) == ["a", "b", "c"]


def test_a_torn_header_is_a_run_without_finished_cells(tmp_path: Path) -> None:
    progress = interrupted(tmp_path)
    progress.path.write_bytes(progress.path.read_bytes()[:-3])
    again = ProgressFile(tmp_path, "plan", "second", resume=True)
    assert (again.finished, again.run_id) == ({}, "second")
    again.add(record("a"), {})
    third = ProgressFile(tmp_path, "plan", "third", resume=True)
    assert (list(third.finished), third.run_id) == (["a"], "second")


def test_cells_that_were_not_measured_run_again(tmp_path: Path) -> None:
    interrupted(tmp_path, "a").add(record("b", "failed"), {})
    assert list(ProgressFile(tmp_path, "plan", "second", resume=True).finished) == ["a"]


def test_a_cell_left_out_for_want_of_memory_is_finished(tmp_path: Path) -> None:
    """Its block was measured without it, and is not measured again for its sake."""
    interrupted(tmp_path, "a").add(record("b", "skipped"), {}, no_room=True)
    again = ProgressFile(tmp_path, "plan", "second", resume=True)
    assert {name: entry.get("no_room") for name, entry in again.finished.items()} == {
        "a": None,
        "b": True,
    }


def test_a_run_that_is_saved_leaves_nothing_to_resume(tmp_path: Path) -> None:
    interrupted(tmp_path, "a").done()
    assert list(tmp_path.iterdir()) == []


def planned(seed: int = 1, blocks: int = 2, name: str = "one") -> list[CellSpec]:
    return randomized_blocks("study", pairs(["idle"], [TweakSet(name)], crossed=True), blocks, seed)


SETS = [STOCK, STOCK_AGAIN, parse(MANIFEST, "one")]


@pytest.mark.parametrize(
    ("cells_", "sets", "steps"),
    [
        (planned(seed=2), SETS, 5),
        (planned(name="two"), SETS, 5),
        (planned(), SETS, 6),
        (planned(), [STOCK, STOCK_AGAIN, parse(MANIFEST.replace("10", "11"), "one")], 5),
        (planned(), [STOCK, STOCK_AGAIN, parse(MANIFEST + "# only a comment\n", "one")], 5),
    ],
    ids=["seed", "another set", "steps", "a value in the file", "a comment in the file"],
)
def test_another_plan_has_another_digest(
    cells_: list[CellSpec], sets: list[TweakSet], steps: int | None
) -> None:
    assert digest(cells_, sets, steps) != digest(planned(), SETS, 5)


def test_workers_of_one_run_write_to_one_file(tmp_path: Path) -> None:
    """One began it; those that join neither restart it nor take over what others just finished."""
    begun = ProgressFile(tmp_path, "plan", "first", resume=False)
    workers = [ProgressFile(tmp_path, "plan", "first", resume=False, joined=True) for _ in range(2)]
    workers[0].add(record("a"), {})
    late = ProgressFile(tmp_path, "plan", "first", resume=False, joined=True)
    late.add(record("b"), {})
    workers[1].add(record("c"), {})
    assert late.finished == begun.finished == {}
    again = ProgressFile(tmp_path, "plan", "second", resume=True)
    assert (again.run_id, list(again.finished)) == ("first", ["a", "b", "c"])


def test_a_joining_worker_leaves_an_unfinished_line_alone(
    tmp_path: Path,
) -> None:
    """Only the process that begins or resumes a run mends its file, which has no writer then."""
    progress = interrupted(tmp_path, "a", "b")
    half = progress.path.read_bytes()[:-10]
    progress.path.write_bytes(half)
    joined = ProgressFile(tmp_path, "plan", "second", resume=True, joined=True)
    assert (list(joined.finished), progress.path.read_bytes()) == (["a"], half)


def test_a_torn_line_of_a_killed_worker_spares_the_next_line(tmp_path: Path) -> None:
    progress = interrupted(tmp_path, "a", "b")
    progress.path.write_bytes(progress.path.read_bytes()[:-10])
    ProgressFile(tmp_path, "plan", "first", resume=False, joined=True).add(record("c"), {})
    assert list(ProgressFile(tmp_path, "plan", "second", resume=True).finished) == ["a", "c"]


def test_resume_forgets_blocks_begun_but_unfinished_elsewhere(
    tmp_path: Path,
) -> None:
    """Cells of a block are compared, so they must have run on one node.

    Block 1 is whole, block 2 half done there, block 3 half done here.
    """
    plan = randomized_blocks("study", pairs(["idle"], [], crossed=False), 3, 1)
    progress = ProgressFile(tmp_path, "plan", "first", resume=False)
    blocks = {block: [cell.id for cell in plan if cell.block == block] for block in (1, 2, 3)}
    for name, node in [
        *((name, "there") for name in blocks[1]),
        (blocks[2][0], "there"),
        (blocks[3][0], "here"),
    ]:
        progress.add(record(name) | {"node": node}, {})
    again = ProgressFile(tmp_path, "plan", "second", resume=True)
    assert again.forget_begun_elsewhere(plan, Here("here", None, None)) == {("study", 2): "there"}
    assert list(again.finished) == [*blocks[1], blocks[3][0]]
