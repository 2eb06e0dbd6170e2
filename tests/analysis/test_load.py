"""Read a saved run unchanged, or refuse it in one line with fault, place and remedy."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.load import find, from_json, load
from analysis.metrics import disagreements, metrics_of, quantile
from analysis.terms import Steps, Unreadable
from control.record import SCHEMA_VERSION
from tests.synthetic import AGAIN, JSON, STOCK, Arm, Made, saved_file, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


BROKEN = Arm(
    "broken",
    requested={"vm.swappiness": "1"},
    broken=dict.fromkeys(range(1, 7), ("skipped", "no root")),
)
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
    assert cell.metrics["throughput_samples_per_s"] == pytest.approx(
        8 * 12 / sum(cell.steps.wall_s[2:])
    )


@pytest.mark.parametrize(
    ("name", "facts", "read"),
    [
        ("AMD EPYC", {}, "AMD EPYC (family 26, model 2)"),
        ("AMD EPYC 9755", {}, "AMD EPYC 9755"),
        ("AMD EPYC", {"kubernetes": {}}, "AMD EPYC"),
    ],
)
def test_a_cpu_without_a_number_is_named_by_its_generation(
    name: str, facts: JSON, read: str
) -> None:
    """On a cluster, `cpu` is the client's."""
    info = {"deeptweak": {"cpu_model": name, **facts}, "cpu": {"family": 26, "model": 2}}
    assert from_json(changed(("machine_info",), info), "here").machine["cpu_model"] == read


def test_a_foreign_benchmark_in_the_same_session_is_passed_over() -> None:
    run = copy.deepcopy(GOOD)
    run["benchmarks"].append({"name": "test_harness_cost", "extra_info": {}})
    assert from_json(run, "here").cells == from_json(GOOD, "here").cells


def test_a_cell_that_failed_after_its_steps_were_timed_is_failed() -> None:
    """Pytest-benchmark keeps timings from before a failure; the cell's outcome decides."""
    run = copy.deepcopy(GOOD)
    record = run["benchmarks"][0]["extra_info"]
    record.update(outcome="failed", reason="not put back")
    entry = next(cell for cell in run["deeptweak"]["cells"] if cell["id"] == record["id"])
    entry.update(outcome="failed", reason="not put back")
    cell = next(cell for cell in from_json(run, "here").cells if cell.id == record["id"])
    assert (cell.outcome, cell.reason, cell.steps) == ("failed", "not put back", None)


def test_metrics_that_contradict_the_steps_are_reported() -> None:
    run = from_json(
        changed(("benchmarks", 0, "extra_info", "metrics", "step_time_p10_s"), 0.001), "here"
    )
    (line,) = run.warnings
    assert "step_time_p10_s is 0.001" in line
    assert all(
        cell.metrics["step_time_p10_s"] > 0.03 for cell in run.cells if cell.outcome == "measured"
    )


def test_what_putting_the_machine_back_took_is_reported() -> None:
    check = {"changed": {}, "restored": True, "notes": ["node1: pod p was deleted by force"]}
    assert from_json(changed(("deeptweak", "machine_check"), check), "here").warnings == (
        "putting the machine back: node1: pod p was deleted by force",
    )


def copied(since: int, step_s: float | None = None) -> JSON:
    run = copy.deepcopy(GOOD)
    one, other = [
        part["extra_info"]
        for part in run["benchmarks"]
        if part["extra_info"]["tweakset"] == "stock"
    ][:2]
    if step_s:
        one["steps"]["wall_s"] = [step_s] * 14
    other["steps"]["wall_s"][since:] = one["steps"]["wall_s"][since:]
    return run


@pytest.mark.parametrize("alike", ["coarse clock", "one step", "other arm"])
def test_times_that_may_be_alike_by_chance_are_no_copies(alike: str) -> None:
    """Equally long steps on a coarse clock, or a single measured step.

    Arms are compared elsewhere: see `paired_effect`.
    """
    run = copied(0, 0.04)
    if alike == "one step":
        run = copied(13)
        for part in run["benchmarks"]:
            part["extra_info"]["steps"]["warmup"] = 13
    elif alike == "other arm":
        run = copy.deepcopy(GOOD)
        one, other = (
            next(
                part["extra_info"]
                for part in run["benchmarks"]
                if part["extra_info"]["tweakset"] == name
            )
            for name in ("stock", "stock-again")
        )
        other["steps"]["wall_s"] = one["steps"]["wall_s"]
    assert len(from_json(run, "here").cells) == 18


STEPS = ("benchmarks", 0, "extra_info", "steps")
METRICS = ("benchmarks", 0, "extra_info", "metrics")
STUDY = ("deeptweak", "studies", "made_up")


def rotated(cells: list[JSON]) -> list[JSON]:
    """Let each cell be of the next block, and keep its id."""
    return [{**cell, "block": cell["block"] % 6 + 1} for cell in cells]


CELL = ("deeptweak", "cells", 0)
EDITED: dict[str, tuple[tuple[str | int, ...], object]] = {
    "a newer version": (("deeptweak", "schema_version"), SCHEMA_VERSION + 1),
    "a newer cell": (("benchmarks", 0, "extra_info", "schema_version"), SCHEMA_VERSION + 1),
    "a version that never was": (("deeptweak", "schema_version"), 0),
    "a version in words": (("deeptweak", "schema_version"), "one"),
    "no studies": (("deeptweak", "studies"), None),
    "a margin in percent": ((*STUDY, "margin"), 3),
    "no good direction": ((*STUDY, "primary", "better"), "more"),
    "an unknown study": ((*CELL, "study"), "other"),
    "an unknown outcome": ((*CELL, "outcome"), "fine"),
    "a missing field": (("benchmarks", 0, "extra_info", "steps"), {"warmup": 0}),
    "a negative time": ((*STEPS, "wall_s", 3), -0.1),
    "a time of zero": ((*STEPS, "wall_s", 0), 0),
    "a time that is no number": ((*STEPS, "wall_s", 0), float("nan")),
    "an endless time": ((*STEPS, "wall_s", 0), float("inf")),
    "a time in words": ((*STEPS, "wall_s", 0), "40 ms"),
    "a truth for a time": ((*STEPS, "wall_s"), [True]),
    "negative processor time": ((*STEPS, "cpu_s", 0), -1.0),
    "a time beyond any float": ((*STEPS, "wall_s", 0), 10**400),
    "times too long to add up": ((*STEPS, "wall_s"), [1e308] * 14),
    "times shorter than a clock's tick": ((*STEPS, "wall_s"), [1e-320] * 14),
    "endless processor time": ((*STEPS, "cpu_s", 0), 1e308),
    "hardly any processor time": ((*STEPS, "cpu_s"), [1e-320] * 14),
    "more samples than can be counted": ((*STEPS, "samples", 3), 10**400),
    "more blocks than can be counted": ((*STUDY, "blocks"), 2**63),
    "a margin beyond any float": ((*STUDY, "margin"), 10**400),
    "metrics beyond any float": ((*METRICS, "step_time_p10_s"), 10**400),
    "metrics in words": ((*METRICS, "step_time_p10_s"), "fast"),
    "metrics that are no object": (METRICS, [1]),
    "block 0": ((*CELL, "block"), 0),
    "a block that was not planned": ((*CELL, "block"), 7),
    "a truth for a block": ((*CELL, "block"), True),
    "truths for samples": ((*STEPS, "samples"), [True] * 14),
    "half a sample": ((*STEPS, "samples", 0), 0.5),
    "no samples": ((*STEPS, "samples"), [0] * 14),
    "samples in the warm-up alone": ((*STEPS, "samples"), [8, 8] + [0] * 12),
    "columns of different length": ((*STEPS, "tokens"), [1]),
    "nothing but warm-up": ((*STEPS, "warmup"), 14),
    "times that are no list": ((*STEPS, "wall_s"), 0.1),
    "a measured cell without its benchmark": (("benchmarks",), GOOD["benchmarks"][1:]),
    "a cell listed twice": (
        ("deeptweak", "cells"),
        [*GOOD["deeptweak"]["cells"], GOOD["deeptweak"]["cells"][0]],
    ),
    "a cell measured twice": (("benchmarks",), [*GOOD["benchmarks"], GOOD["benchmarks"][0]]),
    "a cell that is not listed": (("deeptweak", "cells"), GOOD["deeptweak"]["cells"][:-3]),
    "a contradiction": (
        ("deeptweak", "cells"),
        [{**cell, "outcome": "failed", "reason": "x"} for cell in GOOD["deeptweak"]["cells"]],
    ),
    "flags in words": (("deeptweak", "interrupted"), "no"),
    "an id that is no text": ((*CELL, "id"), 5),
    "the id of another cell": ((*CELL, "id"), GOOD["deeptweak"]["cells"][-1]["id"]),
    "the order of another cell": ((*CELL, "order"), 1),
    "an end before the start": (("deeptweak", "ended_utc"), "2020-01-01T00:00:00+00:00"),
    "blocks that change places": (("deeptweak", "cells"), rotated(GOOD["deeptweak"]["cells"])),
    "more work a second is worse": (
        (*STUDY, "primary"),
        {"name": "throughput_samples_per_s", "better": "lower"},
    ),
}
REFUSED = {name: changed(place, value) for name, (place, value) in EDITED.items()} | {
    "a list": [1, 2],
    "another program's JSON": {"hello": 1},
    "a file without a benchmark": {"machine_info": {}, "benchmarks": []},
    "a block with another's times": copied(0),
    "a block with another's measured times": copied(2),
}


def test_a_damaged_or_foreign_run_is_refused_in_one_line(snapshot: SnapshotAssertion) -> None:
    complaints = {}
    for name, saved in REFUSED.items():
        with pytest.raises(Unreadable) as refusal:
            from_json(saved, "run.json")
        complaints[name] = str(refusal.value)
    assert all("\n" not in line and len(line) < 250 for line in complaints.values())
    assert complaints == snapshot


def test_a_path_that_holds_no_json_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    contents = {
        "empty": b"",
        "cut short": b'{"machine_info": {"node": ',
        "NaN": b'{"deeptweak": NaN}',
        "infinity": b'{"deeptweak": -Infinity}',
        "compressed": b"\x1f\x8b\x08\x00\xff\xfe",
        "a bomb": b"[" * 100_000,
        "half a character": json.dumps(
            {**GOOD, "deeptweak": {**GOOD["deeptweak"], "run_id": "half \ud800"}}
        ).encode(),
    }
    Path("a folder").mkdir()
    complaints = {}
    for name in (*contents, "a folder", "no file"):
        if name in contents:
            Path(name).write_bytes(contents[name])
        with pytest.raises(Unreadable) as refusal:
            load(Path(name))
        complaints[name] = str(refusal.value)
    assert complaints == snapshot


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b'{\n "run": "a\xff"}', "line 2 column 11 (byte 0xff)"),
        ('{\n "ü": "\xe4'.encode() + b"\xc3", "line 2 column 9 (byte 0xc3)"),
        (b'{"a": "\\ud83d\\ude00 \\\\ud800",\n "b": "\\ud800"}', "half a character"),
        ('{"a": "'.encode("utf-16") + b"x", "not UTF-8 at line 1"),
    ],
)
def test_a_character_that_is_none_is_refused_with_its_place(
    content: bytes, place: str, tmp_path: Path
) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(Unreadable, match=re.escape(place)):
        load(tmp_path / "run.json")


def test_folders_of_runs_storages_and_nodes_are_all_found(
    tmp_path: Path,
) -> None:
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
    for name, there in {
        "flat": ["a.json", "b.json"],
        "storage": ["Linux-64bit/0001.json"],
        "nodes": ["1", "2"],
    }.items():
        folder = tmp_path / name
        assert [str(path.relative_to(folder)) for path in find([str(folder)])] == there


def steps(wall_s: list[float], warmup: int = 0, tokens: tuple[int, ...] | None = None) -> Steps:
    return Steps(
        tuple(wall_s), (8,) * len(wall_s), tokens, tuple(2 * value for value in wall_s), warmup
    )


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=50), st.floats(0, 1))
def test_percentiles_are_numpys(wall_s: list[float], q: float) -> None:
    assert quantile(wall_s, q) == pytest.approx(np.quantile(wall_s, q))


def test_work_without_tokens_has_no_token_throughput() -> None:
    """It is absent and not 0: nothing was measured."""
    assert "throughput_tokens_per_s" not in metrics_of(steps([0.1, 0.2], tokens=(0, 0)))
    assert metrics_of(steps([0.1, 0.3], tokens=(10, 30)))[
        "throughput_tokens_per_s"
    ] == pytest.approx(100)


@pytest.mark.parametrize("wall_s", [1e308, 1e-320])
def test_times_whose_sums_are_no_numbers_have_no_metrics(wall_s: float) -> None:
    with pytest.raises(ArithmeticError):
        metrics_of(steps([wall_s] * 3))


def test_a_file_that_contradicts_its_own_steps_is_told_so() -> None:
    """Rounding is forgiven (1 in 10,000), another formula is not."""
    computed = {"step_time_p10_s": 0.1}
    assert disagreements({"step_time_p10_s": 0.100001, "unknown": 7}, computed) == []
    (line,) = disagreements({"step_time_p10_s": 0.11}, computed)
    assert "0.11" in line
    assert "0.1;" in line
