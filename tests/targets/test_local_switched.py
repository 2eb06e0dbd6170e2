"""The local target between segments: values in force, on a fake root, with a pausing workload."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.targets import _process
from fixtures.targets.local import Local
from fixtures.terms import CellSpec, InForce, Order, Switching, Telemetry, WorkloadRun
from fixtures.workloads import load
from tests import fake_root

if TYPE_CHECKING:
    from tests.fake_root import FakeRoot

SWAPPINESS = "/proc/sys/vm/swappiness"
ARMS: tuple[InForce, ...] = ("found", "set", "set", "found")
ORDER = Order(
    load("idle"), steps=8, warmup_steps=1, seed=1, switching=Switching(ARMS, steps=1, settle=1)
)
CELL = CellSpec("study", "idle", "one", 1, 1, 1)


class Sampler:
    def begin(self, pid: int | None = None) -> None:
        pass

    def end(self, window: tuple[float, float] | None = None) -> Telemetry:
        del window
        return Telemetry({}, {}, {}, 10.0, 0.0)


@pytest.fixture
def fake(tmp_path: Path) -> FakeRoot:
    return fake_root.make(tmp_path)


@pytest.fixture
def target(fake: FakeRoot, tmp_path: Path) -> Local:
    """With swappiness 10 in force, 60 before."""
    target = Local(tmp_path / "results")
    target.machine = fake.machine()
    target._sampler = Sampler()  # type: ignore[assignment]  # what samples the real machine
    target.machine.apply("one", fake_root.writes([(SWAPPINESS, "10")]))
    return target


def workload(
    fake: FakeRoot, seen: list[str | None], meanwhile: Callable[[int], None] = lambda _segment: None
) -> Callable[..., WorkloadRun]:
    """Notes what stands in each segment."""

    def run(
        order: Order,
        *,
        on_start: Callable[[int], None],
        on_pause: Callable[[int], str | None],
        **_: Any,
    ) -> WorkloadRun:
        del order
        on_start(7)
        for segment in range(len(ARMS)):
            seen.append(fake.get(SWAPPINESS))
            meanwhile(segment)
            why = on_pause(segment)
            if why:
                return WorkloadRun((), {}, {}, 7, why)
        return WorkloadRun((), {}, {}, 7)

    return run


def test_each_segment_has_its_arm_and_the_run_ends_under_the_set(
    target: Local, fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first arm stands before the process starts; at the end, the set does, to be read back."""
    seen: list[str | None] = []
    monkeypatch.setattr(_process, "run", workload(fake, seen))
    assert target.run(CELL, ORDER).result.error is None
    assert seen == ["60", "10", "10", "60"]
    assert fake.get(SWAPPINESS) == "10"
    assert target.restore().back == {SWAPPINESS: ("10", "60")}


@pytest.mark.parametrize("segment", [0, 3])
def test_somebody_elses_value_ends_the_run_in_any_segment(
    target: Local, fake: FakeRoot, monkeypatch: pytest.MonkeyPatch, segment: int
) -> None:
    seen: list[str | None] = []
    monkeypatch.setattr(
        _process,
        "run",
        workload(fake, seen, lambda now: fake.put(SWAPPINESS, "77") if now == segment else None),
    )
    assert "was '77' at a segment's end" in str(target.run(CELL, ORDER).result.error)
    assert len(seen) == segment + 1
    assert set(target.restore().left_alone) == {SWAPPINESS}


def test_a_refusal_before_the_first_segment_starts_no_workload(
    target: Local, fake: FakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []
    monkeypatch.setattr(_process, "run", workload(fake, seen))
    fake.put(SWAPPINESS, "77")
    result = target.run(CELL, ORDER).result
    assert "was '77'" in str(result.error)
    assert (result.steps, seen) == ((), [])
