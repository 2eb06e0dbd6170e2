"""Files of the run side obey the schema, and the read side reads them as they were meant."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from analysis.load import from_json
from analysis.terms import Run as Loaded
from analysis.terms import Unreadable
from fixtures import host, record, storage
from fixtures.kernel.machine import ChangeSet, Restored, Write
from fixtures.options import Options
from fixtures.session import Session
from fixtures.targets import Ran
from fixtures.targets.local import Local
from fixtures.terms import CellSpec, Metric, Step, Study, Telemetry, WorkloadRun
from fixtures.tweaks.local import Plan

SCHEMA = json.loads(
    (Path(__file__).parents[1] / "data/run.schema.json").read_text(encoding="utf-8")
)
STUDY = Study(
    "study",
    "Why?",
    ("idle",),
    ("memory-reclaim",),
    Metric("throughput_samples_per_s", "higher"),
    blocks=2,
    margin=0.05,
)
SWAPPINESS = "/proc/sys/vm/swappiness"
# Warm-up of 9 s left out: 6 samples in 2 s are 3 a second.
STEPS = [Step(0, 1.0, 9.0, 9.0, 2, 5, 3.0, warmup=True)] + [
    Step(n, 9.0 + n, 1.0, 0.5, 3, 10, 2.0, warmup=False) for n in (1, 2)
]
TOLD: dict[str, list[Mapping[str, object]]] = {
    "io": [{"engine": "torch"}],
    "epochs": [{"epoch": 1, "load_s": [0.5]}, {"epoch": 2}],
}


def finished(run: Session, cell: CellSpec) -> dict[str, Any]:
    """A cell as the plugin brings it about, with a made-up kernel and workload."""
    found = run.records[cell.id] = record.opened(cell, run.target, "2026-01-01T00:00:00+00:00")
    writes = (
        (Write(SWAPPINESS, "10", "vm.swappiness"),) if cell.tweakset == "memory-reclaim" else ()
    )
    changed: dict[str, tuple[str | None, str | None]] = {w.path: ("60", "10") for w in writes}
    record.applied(found, Plan(writes), ChangeSet({SWAPPINESS: "60"}, changed, 0.001))
    result = WorkloadRun(
        tuple(STEPS),
        {"device": "cpu", "data_crc32": "0" * 8},
        {"nofile": (1024, 4096)},
        7,
        report=TOLD,
    )
    seen = Telemetry(
        {"cpu": [1.0]}, {"cpu_busy_percent_mean": 50.0}, {"nvml": "no driver"}, 10.0, 0.001
    )
    record.ran(found, Ran(result, seen))
    record.restored(
        found,
        Restored(
            back={path: (after, before) for path, (before, after) in changed.items()}, seconds=0.001
        ),
    )
    record.close(found, "measured", None, 12.0)
    return found


def benchmark(found: dict[str, Any]) -> dict[str, Any]:
    """As pytest-benchmark saves it, as far as it is read."""
    data = found["steps"]["wall_s"][found["steps"]["warmup"] :]
    return {
        "group": found["workload"],
        "name": f"bench[{found['id']}]",
        "params": {},
        "extra_info": found,
        "stats": {"data": data},
    }


@pytest.fixture
def written(tmp_path: Path) -> dict[str, Any]:
    """Write three sets in two blocks; in block 2 one cell fails, one fails late, one is skipped."""
    run = Session(
        Options("memory-reclaim", "idle", None, None, 7, resume=False, folder=tmp_path),
        Local(tmp_path),
    )
    benchmarks = []
    for cell in run.declare(STUDY):
        run.fullnames[cell.id] = f"benchmarks/bench_study.py::bench[{cell.param_id}]"
        found = finished(run, cell)
        benchmarks.append(benchmark(found))
        if cell.block == 1:
            continue
        if cell.tweakset == "stock":
            record.close(found, "failed", "not put back", 13.0)
        else:
            benchmarks.pop()
            del found["metrics"], found["outcome"]
            found["outcome"] = None
            record.close(
                found, "failed" if cell.tweakset == "stock-again" else "skipped", "why", 1.0
            )
    document: dict[str, Any] = {
        "machine_info": {"deeptweak": host.facts()},
        "benchmarks": benchmarks,
    }
    storage.extend(run, document, storage=None)
    parsed: dict[str, Any] = json.loads(json.dumps(document, allow_nan=False))
    return parsed


@pytest.fixture
def loaded(written: dict[str, Any]) -> Loaded:
    """The same, read."""
    return from_json(written, "here")


def test_what_is_written_obeys_the_schema(written: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(written)


def test_every_cell_is_read_with_its_outcome_and_reason(loaded: Loaded) -> None:
    outcomes = {(c.tweakset, c.block): (c.outcome, c.reason) for c in loaded.cells}
    assert outcomes == {
        ("stock", 1): ("measured", None),
        ("stock-again", 1): ("measured", None),
        ("memory-reclaim", 1): ("measured", None),
        ("stock", 2): ("failed", "not put back"),
        ("stock-again", 2): ("failed", "why"),
        ("memory-reclaim", 2): ("skipped", "why"),
    }


def test_a_cell_that_failed_after_measuring_is_no_benchmark(written: dict[str, Any]) -> None:
    assert sorted(b["extra_info"]["id"] for b in written["benchmarks"]) == [
        "study/idle-memory-reclaim-b1",
        "study/idle-stock-again-b1",
        "study/idle-stock-b1",
    ]


def test_throughput_is_the_same_on_both_sides(loaded: Loaded, written: dict[str, Any]) -> None:
    """N/Σt = (3 + 3) / (1 s + 1 s); a reader recomputes it and does not object."""
    metrics = [c.metrics for c in loaded.cells if c.outcome == "measured"]
    assert [m["throughput_samples_per_s"] for m in metrics] == [3.0] * 3
    assert [m["throughput_tokens_per_s"] for m in metrics] == [10.0] * 3
    assert written["benchmarks"][0]["extra_info"]["metrics"]["throughput_samples_per_s"] == 3.0
    assert loaded.warnings == ()


def test_settings_are_read_as_asked_for_found_and_put_back(loaded: Loaded) -> None:
    applied = next(
        c.applied
        for c in loaded.cells
        if c.tweakset == "memory-reclaim" and c.outcome == "measured"
    )
    assert applied is not None
    assert (applied.requested, applied.before) == ({"vm.swappiness": "10"}, {"vm.swappiness": "60"})
    assert (applied.observed, applied.restored) == (
        {"vm.swappiness": "10"},
        {"vm.swappiness": "60"},
    )


def test_the_design_is_read_as_it_was_run(loaded: Loaded, written: dict[str, Any]) -> None:
    assert (loaded.design.seed, loaded.design.blocks, loaded.design.steps) == (7, 2, None)
    assert (
        list(loaded.design.order)
        == [c.id for c in loaded.cells]
        == [c["id"] for c in written["deeptweak"]["cells"]]
    )
    assert loaded.studies["study"].margin == 0.05
    assert loaded.workloads["idle"].primary is not None
    assert loaded.workloads["idle"].primary.name == "step_time_p10_s"
    assert loaded.tweaksets["memory-reclaim"].requested


def test_reports_of_a_workload_are_read_in_their_order(loaded: Loaded) -> None:
    told = [cell.report for cell in loaded.cells if cell.outcome == "measured"]
    assert told == [{name: tuple(values) for name, values in TOLD.items()}] * 3


def test_a_run_without_reports_is_read(
    written: dict[str, Any],
) -> None:
    for one in written["benchmarks"]:
        del one["extra_info"]["report"]
    read = from_json(written, "here")
    assert [cell.report for cell in read.cells] == [{}] * 6
    assert len([cell for cell in read.cells if cell.outcome == "measured"]) == 3


@pytest.mark.parametrize(
    ("report", "says"),
    [
        ([], "has report: "),
        ({"epochs": {}}, "expected `array`"),
        ({"epochs": [1]}, "expected `object`"),
    ],
)
def test_a_report_of_another_shape_is_refused(
    written: dict[str, Any], report: object, says: str
) -> None:
    written["benchmarks"][0]["extra_info"]["report"] = report
    with pytest.raises(Unreadable, match=says):
        from_json(written, "here")
