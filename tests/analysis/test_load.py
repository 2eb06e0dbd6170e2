"""A saved run is read as it is, or refused in one line that says what, where, and what to do."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from analysis.formats.saved_run import SCHEMA_VERSION
from analysis.load import find, from_json, load
from analysis.terms import Unreadable
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_file, saved_run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.synthetic import JSON

BROKEN = Arm("broken", requested={"vm.swappiness": "1"}, broken=dict.fromkeys(range(1, 7), ("skipped", "no root")))
GOOD = saved_run(Made(arms=(STOCK, AGAIN, BROKEN)))


def changed(place: tuple[str | int, ...], value: object) -> JSON:
    run: Any = copy.deepcopy(GOOD)
    part = run
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    return run  # type: ignore[no-any-return]


def test_a_run_is_read_whole(tmp_path: Path) -> None:
    run = load(saved_file(tmp_path, Made(arms=(STOCK, AGAIN, BROKEN))))
    assert len(run.cells) == 18
    assert [cell.order for cell in run.cells] == list(range(18))
    assert run.studies["made_up"].margin == 0.03
    assert run.tweaksets["broken"].requested[0].key == "vm.swappiness"
    assert run.machine["cpu_model"] == "Made-up CPU"
    assert run.warnings == ()
    cell = next(cell for cell in run.cells if cell.tweakset == "stock")
    assert cell.steps is not None
    assert len(cell.steps.wall_s) == 14
    assert cell.metrics["throughput_samples_per_s"] == pytest.approx(8 * 12 / sum(cell.steps.wall_s[2:]))


def test_skipped_cells_are_read_with_their_reason() -> None:
    cells = [cell for cell in from_json(GOOD, "here").cells if cell.tweakset == "broken"]
    assert {(cell.outcome, cell.reason, cell.steps) for cell in cells} == {("skipped", "no root", None)}


def test_a_run_in_memory_is_read_like_a_file(tmp_path: Path) -> None:
    assert load(saved_file(tmp_path)).cells == from_json(saved_run(), "memory").cells


def test_what_a_newer_writer_adds_is_passed_over() -> None:
    """An unknown field is no reason to refuse a file of a known version."""
    run = changed(("benchmarks", 0, "extra_info", "weather"), "fine")
    assert from_json(run, "here").cells == from_json(GOOD, "here").cells


def test_somebody_elses_benchmark_in_the_same_session_is_passed_over() -> None:
    run = copy.deepcopy(GOOD)
    run["benchmarks"].append({"name": "test_harness_cost", "extra_info": {}})
    assert from_json(run, "here").cells == from_json(GOOD, "here").cells


def test_a_cell_that_failed_after_its_steps_were_timed_is_failed() -> None:
    """Pytest-benchmark keeps what was timed before a test failed; the cell's outcome is what counts."""
    run = copy.deepcopy(GOOD)
    record = run["benchmarks"][0]["extra_info"]
    record.update(outcome="failed", reason="not put back: vm.swappiness")
    entry = next(cell for cell in run["deeptweak"]["cells"] if cell["id"] == record["id"])
    entry.update(outcome="failed", reason="not put back: vm.swappiness")
    cell = next(cell for cell in from_json(run, "here").cells if cell.id == record["id"])
    assert (cell.outcome, cell.reason, cell.steps) == ("failed", "not put back: vm.swappiness", None)


def test_metrics_that_the_steps_do_not_give_are_reported_and_not_believed() -> None:
    run = from_json(changed(("benchmarks", 0, "extra_info", "metrics", "step_time_p10_s"), 0.001), "here")
    (line,) = run.warnings
    assert "step_time_p10_s = 0.001" in line
    assert all(cell.metrics["step_time_p10_s"] > 0.03 for cell in run.cells if cell.outcome == "measured")


def test_a_machine_that_was_not_put_back_is_reported() -> None:
    run = from_json(
        changed(("deeptweak", "machine_check"), {"changed": {"/proc/sys/vm/swappiness": ["60", "1"]}, "restored": False}), "here"
    )
    assert run.warnings == ("the machine was not as before when the run ended: /proc/sys/vm/swappiness.",)


def copied(since: int, step_s: float | None = None) -> JSON:
    """Two blocks of stock with the same times from one step on; with `step_s`, every step of both took that long."""
    run = copy.deepcopy(GOOD)
    one, other = [part["extra_info"] for part in run["benchmarks"] if part["extra_info"]["tweakset"] == "stock"][:2]
    if step_s:
        one["steps"]["wall_s"] = [step_s] * 14
    other["steps"]["wall_s"][since:] = one["steps"]["wall_s"][since:]
    return run


@pytest.mark.parametrize("alike", ["coarse clock", "one step", "other arm"])
def test_times_that_may_be_alike_by_chance_are_no_copies(alike: str) -> None:
    """Equally long steps on a coarse clock, or a single measured step. Arms are compared elsewhere: see `paired_effect`."""
    run = copied(0, 0.04)
    if alike == "one step":
        run = copied(13)
        for part in run["benchmarks"]:
            part["extra_info"]["steps"]["warmup"] = 13
    elif alike == "other arm":
        run = copy.deepcopy(GOOD)
        one, other = (
            next(part["extra_info"] for part in run["benchmarks"] if part["extra_info"]["tweakset"] == name)
            for name in ("stock", "stock-again")
        )
        other["steps"]["wall_s"] = one["steps"]["wall_s"]
    assert len(from_json(run, "here").cells) == 18


STEPS = ("benchmarks", 0, "extra_info", "steps")
METRICS = ("benchmarks", 0, "extra_info", "metrics")
REFUSED = {
    "a list": ([1, 2], "is [1, 2] where an object belongs"),
    "another program's JSON": ({"hello": 1}, "not a saved run"),
    "a file without a benchmark": ({"machine_info": {}, "benchmarks": []}, "holds no benchmark"),
    "a newer version": (changed(("deeptweak", "schema_version"), SCHEMA_VERSION + 1), "newer than 6"),
    "a newer cell": (changed(("benchmarks", 0, "extra_info", "schema_version"), 9), "schema_version 9, newer than 6"),
    "a version that never was": (changed(("deeptweak", "schema_version"), 0), "never existed"),
    "a version in words": (changed(("deeptweak", "schema_version"), "one"), "schema_version = 'one'"),
    "no studies": (changed(("deeptweak", "studies"), None), "where an object belongs"),
    "a margin in percent": (changed(("deeptweak", "studies", "made_up", "margin"), 3), "0.03 is 3 %"),
    "no good direction": (changed(("deeptweak", "studies", "made_up", "primary", "better"), "more"), "one of lower, higher"),
    "an unknown study": (changed(("deeptweak", "cells", 0, "study"), "other"), "names 'other'"),
    "an unknown outcome": (changed(("deeptweak", "cells", 0, "outcome"), "fine"), "outcome = 'fine'"),
    "a missing field": (changed(("benchmarks", 0, "extra_info", "steps"), {"warmup": 0}), "steps has no 'wall_s'"),
    "a negative time": (changed((*STEPS, "wall_s", 3), -0.1), "wall_s[3] = -0.1, where a number above 0"),
    "a time of zero": (changed((*STEPS, "wall_s", 0), 0), "wall_s[0] = 0"),
    "a time that is no number": (changed((*STEPS, "wall_s", 0), float("nan")), "wall_s[0] = nan, where a finite number"),
    "an endless time": (changed((*STEPS, "wall_s", 0), float("inf")), "wall_s[0] = inf"),
    "a time in words": (changed((*STEPS, "wall_s", 0), "40 ms"), "wall_s[0] = '40 ms'"),
    "a truth for a time": (changed((*STEPS, "wall_s"), [True]), "wall_s[0] = True"),
    "negative processor time": (changed((*STEPS, "cpu_s", 0), -1.0), "cpu_s[0] = -1.0, where a time"),
    "a time beyond any float": (changed((*STEPS, "wall_s", 0), 10**400), "where a finite number"),
    "times too long to add up": (changed((*STEPS, "wall_s"), [1e308] * 14), "wall_s[0] = 1e+308, where a time"),
    "times shorter than a clock's tick": (changed((*STEPS, "wall_s"), [1e-320] * 14), "where a time from 1e-09 to 1e+07 s"),
    "endless processor time": (changed((*STEPS, "cpu_s", 0), 1e308), "cpu_s[0] = 1e+308, where a time"),
    "hardly any processor time": (changed((*STEPS, "cpu_s"), [1e-320] * 14), "or 0 belongs"),
    "more samples than can be counted": (changed((*STEPS, "samples", 3), 10**400), "samples[3] = 1000"),
    "more blocks than can be counted": (changed(("deeptweak", "studies", "made_up", "blocks"), 2**63), "where a whole number"),
    "a margin beyond any float": (changed(("deeptweak", "studies", "made_up", "margin"), 10**400), "where a finite number"),
    "metrics beyond any float": (changed((*METRICS, "step_time_p10_s"), 10**400), "metrics has step_time_p10_s = 1000"),
    "metrics in words": (changed((*METRICS, "step_time_p10_s"), "fast"), "step_time_p10_s = 'fast', where a finite number"),
    "metrics that are no object": (changed(METRICS, [1]), "metrics is [1] where an object"),
    "block 0": (changed(("deeptweak", "cells", 0, "block"), 0), "is of block 0, but its study has blocks 1 to 6"),
    "a block that was not planned": (changed(("deeptweak", "cells", 0, "block"), 7), "is of block 7, but its study has blocks 1 to 6"),
    "a block with another's times": (copied(0), "with identical wall_s: one is a copy of the other"),
    "a block with another's measured times": (copied(2), "with identical wall_s: one is a copy of the other"),
    "half a sample": (changed((*STEPS, "samples", 0), 0.5), "samples[0] = 0.5, where a count"),
    "no samples": (changed((*STEPS, "samples"), [0] * 14), "no samples in its measured steps"),
    "columns of different length": (changed((*STEPS, "tokens"), [1]), "1 tokens for 14 wall_s"),
    "nothing but warm-up": (changed((*STEPS, "warmup"), 14), "14 are warm-up"),
    "times that are no list": (changed((*STEPS, "wall_s"), 0.1), "where a list belongs"),
    "a measured cell without its benchmark": (changed(("benchmarks",), GOOD["benchmarks"][1:]), "no benchmark holds it"),
    "a cell listed twice": (
        changed(("deeptweak", "cells"), [*GOOD["deeptweak"]["cells"], GOOD["deeptweak"]["cells"][0]]),
        "is there twice",
    ),
    "a cell measured twice": (changed(("benchmarks",), [*GOOD["benchmarks"], GOOD["benchmarks"][0]]), "is there twice"),
    "a cell that is not listed": (changed(("deeptweak", "cells"), GOOD["deeptweak"]["cells"][:-3]), "not in the list of cells"),
    "a contradiction": (
        changed(("deeptweak", "cells"), [{**cell, "outcome": "failed", "reason": "x"} for cell in GOOD["deeptweak"]["cells"]]),
        "was saved as measured, but the list of cells says failed",
    ),
    "flags in words": (changed(("deeptweak", "interrupted"), "no"), "where true or false belongs"),
    "an id that is no text": (changed(("deeptweak", "cells", 0, "id"), 5), "id = 5, where a text"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_damaged_or_foreign_run_is_refused_in_one_line(name: str) -> None:
    saved, said = REFUSED[name]
    with pytest.raises(Unreadable) as refusal:
        from_json(saved, "runs/0001_exp1.json")
    line = str(refusal.value)
    assert line.startswith("runs/0001_exp1.json: ")
    assert said in line
    assert "\n" not in line
    assert len(line) < 250


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not JSON at line 1 column 1"),
        (json.dumps(GOOD).encode()[:5000], "damaged or cut short"),
        (b'{"deeptweak": NaN}', "holds NaN"),
        (b'{"deeptweak": -Infinity}', "holds -Infinity"),
        (b"\x1f\x8b\x08\x00\xff\xfe", "not a text file"),
        (b"[" * 100_000, "nested too deeply"),
    ],
    ids=["empty", "cut short", "NaN", "infinity", "compressed", "a bomb"],
)
def test_a_file_that_is_no_json_is_refused_in_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content)
    with pytest.raises(Unreadable, match=r"run\.json") as refusal:
        load(path)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_what_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="no such file; `pytest benchmarks/"):
        load(tmp_path / "nothing.json")
    with pytest.raises(Unreadable, match="is a directory; name one saved run"):
        load(tmp_path)


def test_a_folder_of_runs_a_storage_of_pytest_benchmark_and_a_folder_of_deeptweak_nodes_are_all_found(tmp_path: Path) -> None:
    for name in (
        "flat/b.json",
        "flat/a.json",
        "storage/Linux-64bit/0001.json",
        "nodes/1/base/benchmark.csv",
        "nodes/2/base/benchmark.csv",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for name, there in {"flat": ["a.json", "b.json"], "storage": ["Linux-64bit/0001.json"], "nodes": ["1", "2"]}.items():
        folder = tmp_path / name
        assert [str(path.relative_to(folder)) for path in find([str(folder)])] == there


def test_half_a_character_is_refused() -> None:
    """JSON can escape a lone surrogate, which no file and no picture can hold."""
    saved = saved_run()
    saved["deeptweak"]["run_id"] = "half \ud800"
    with pytest.raises(Unreadable, match="where a text of whole characters belongs"):
        from_json(saved, "run.json")
