"""The cells of an adaptive design: what its engine is told of them, and under which names they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from control.adaptive import Trial
from fixtures.declaration import Adaptive, cost
from fixtures.designs import _factors
from fixtures.terms import Cell, Refused
from fixtures.tweaks import manifest as manifests
from tests.designs.chain import Chain
from tests.test_declaration import manifest


def record(cell: Cell, value: float | None = 0.2) -> dict[str, Any]:
    outcome = "measured" if value else "failed"
    return {"id": cell.id, "workload": cell.workload, "outcome": outcome, "metrics": {"step_time_p10_s": value} if value else {}}


@pytest.fixture
def adaptive(tmp_path: Path) -> Adaptive:
    profile = manifests.read(Path(manifest(tmp_path)))
    return Adaptive(Chain(profile, _factors.factors(profile), 6), "study", "idle", profile, seed=1)


def test_each_slot_is_filled_with_what_the_engine_asks_for(adaptive: Adaptive) -> None:
    assert [slot.tweakset for slot in adaptive.slots.values()] == [f"knobs.t0{n}" for n in range(1, 7)]
    asked = []
    while cell := adaptive.next():
        asked.append((cell.tweakset, cell.block, cell.order))
        adaptive.tell(record(cell))
    assert asked == [("stock", 1, 1), ("knobs.t01", 1, 2), ("stock", 2, 3), ("knobs.t02", 2, 4), ("stock", 3, 5), ("knobs.t03", 3, 6)]
    assert adaptive.ended
    assert [t.key for t in adaptive.tweaksets["knobs.t02"].tweaks] == ["vm.dirty_ratio"]
    assert [point.name for point in adaptive.points] == ["knobs.t01", "knobs.t02", "knobs.t03"]


def test_the_engine_hears_each_cell_once(adaptive: Adaptive) -> None:
    """A cell's teardown may report again what has been told."""
    cell = adaptive.next()
    assert cell is not None
    adaptive.tell(record(cell, 0.5))
    adaptive.tell(record(cell, 0.7))
    assert adaptive.engine.told == [("stock", 0.5)]  # type: ignore[attr-defined]


def test_a_cell_that_is_asked_for_twice_in_a_block_is_a_fault(adaptive: Adaptive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its record would take the other's place."""
    monkeypatch.setattr(adaptive.engine, "ask", lambda: Trial("stock", {}))
    adaptive.next()
    with pytest.raises(Refused, match="study/idle-stock-b1: the design asks for it twice in one block"):
        adaptive.next()


def test_what_was_kept_must_be_what_is_asked_for(adaptive: Adaptive) -> None:
    cell = adaptive.next()
    assert cell is not None
    adaptive.replayed([cell.id, "study/idle-whatever-b1"])  # the second is not asked for yet
    adaptive.tell(record(cell))
    adaptive.next()
    with pytest.raises(Refused, match=r"went on with study/idle-whatever-b1, now the design asks for study/idle-knobs\.t01-b1"):
        adaptive.replayed([cell.id, "study/idle-whatever-b1"])


@pytest.mark.parametrize(
    ("conclusion", "unmeasured"),
    [({"done": True, "unmeasured": True}, True), ({"done": False, "unmeasured": True}, False), ({"done": True}, False)],
)
def test_only_what_is_over_is_unmeasured(
    adaptive: Adaptive, conclusion: dict[str, bool], monkeypatch: pytest.MonkeyPatch, *, unmeasured: bool
) -> None:
    """An engine that says nothing of it (one from elsewhere) has concluded."""
    monkeypatch.setattr(adaptive.engine, "conclusion", lambda: {"text": "", **conclusion})
    assert adaptive.unmeasured() is unmeasured


@pytest.mark.parametrize(
    ("workload", "metrics", "outcome", "costs"),
    [
        ("idle", {"step_time_p10_s": 0.25, "throughput_samples_per_s": 7.0}, "measured", 0.25),
        ("rate", {"throughput_samples_per_s": 4.0}, "measured", 0.25),
        ("rate", {"throughput_samples_per_s": None}, "measured", None),
        ("idle", {}, "measured", None),
        ("idle", {"step_time_p10_s": 0.25}, "failed", None),
        ("idle", {}, "skipped", None),
    ],
)
def test_a_cost_is_less_where_more_is_done(
    workload: str, metrics: dict[str, float], outcome: str, costs: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4 samples a second cost a quarter of a second each; what has no result costs nothing that could be compared."""
    from fixtures import workloads
    from fixtures.terms import Metric

    class Rate(workloads.Workload):
        primary = Metric("throughput_samples_per_s", "higher")

    monkeypatch.setattr(workloads, "_BROUGHT", {})
    workloads.bring("rate", Rate({}))
    assert cost({"workload": workload, "outcome": outcome, "metrics": metrics}) == costs
