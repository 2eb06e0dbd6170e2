"""The protocol, line by line: what is believed and what is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fixtures.targets._report import Broken, Report
from fixtures.terms import Order
from fixtures.workloads import load

READY = {"event": "ready", "facts": {}}
STEP: dict[str, object] = {
    "event": "step",
    "index": 0,
    "start_monotonic_s": 1.0,
    "wall_s": 0.5,
    "cpu_s": 0.25,
    "samples": 4,
    "tokens": 0,
    "loss": 1,
    "warmup": True,
}
TOLD = {"event": "report", "name": "epochs", "value": {"epoch": 1, "load_s": [0.5, 0.25]}}


def report(*events: object) -> Report:
    """Take lines as from a workload ordered to do one warm-up and one measured step."""
    taken = Report(Order(load("idle"), steps=1, warmup_steps=1, seed=0, scratch=Path()))
    for event in events:
        taken.take(json.dumps(event).encode())
    return taken


def test_a_whole_report_lacks_nothing() -> None:
    """Integers are numbers too: a loss of 1 is 1.0."""
    done = report(READY, STEP, STEP | {"index": 1, "warmup": False}, {"event": "end"})
    assert done.shortfall() is None
    assert [step.loss for step in done.steps] == [1.0, 1.0]


def test_a_step_may_tell_its_rate() -> None:
    done = report(READY, STEP | {"rate_per_s": 104e6}, STEP | {"index": 1, "warmup": False})
    assert [step.rate_per_s for step in done.steps] == [104e6, None]


@pytest.mark.parametrize("rate_per_s", [0, -1.0, float("inf"), float("nan")])
def test_a_rate_that_is_none_ends_the_run(rate_per_s: float) -> None:
    with pytest.raises(Broken, match="The rate of step 0"):
        report(READY, STEP | {"rate_per_s": rate_per_s})


@pytest.mark.parametrize(
    "wrong",
    [
        {"index": "0"},
        {"warmup": False},
        {"wall_s": -0.5},
        {"wall_s": float("nan")},
        {"start_monotonic_s": float("inf")},
        {"cpu_s": "0.25"},
        {"samples": 4.5},
        {"samples": -4},
        {"loss": 10**400},
        {"rate_per_s": "104 MB/s"},
    ],
)
def test_a_step_with_a_wrong_field_is_garbage(wrong: dict[str, object]) -> None:
    """Missing, negative, of another type, out of order, or a warm-up step that was not ordered."""
    with pytest.raises(Broken, match="Printed an invalid line"):
        report(READY, STEP | wrong)


@pytest.mark.parametrize(
    "events",
    [
        [STEP],
        [{"event": "end"}],
        [READY, READY],
        [READY, {"event": "end"}, STEP],
        [{"event": "hello"}],
        [["ready"]],
        [None],
        [TOLD],
        [READY, STEP, STEP | {"index": 1, "warmup": False}, {"event": "end"}, TOLD],
        [READY, TOLD | {"name": 1}],
        [READY, TOLD | {"name": ""}],
        [READY, TOLD | {"value": [1]}],
        [READY, TOLD | {"value": {"x": float("nan")}}],
        [READY, TOLD | {"value": {"x": [1e999]}}],
    ],
)
def test_other_events_than_may_come_are_garbage(events: list[object]) -> None:
    with pytest.raises(Broken, match="Printed an invalid line"):
        report(*events)


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[" * 60_000, b'{"index": ' + b"9" * 5000 + b"}", b"\xff"]
)
def test_what_is_not_json_is_garbage(line: bytes) -> None:
    """Also where Python's parser gives up: endless nesting, huge integers; the start is shown."""
    with pytest.raises(Broken, match="Printed an invalid line") as caught:
        report().take(line)
    assert len(str(caught.value)) < 300


def test_reports_are_kept_by_name_in_their_order() -> None:
    more, other = TOLD | {"value": {"epoch": 2}}, TOLD | {"name": "io", "value": {}}
    done = report(
        READY, other, STEP, TOLD, STEP | {"index": 1, "warmup": False}, more, {"event": "end"}
    )
    assert done.reports == {
        "io": [{}],
        "epochs": [{"epoch": 1, "load_s": [0.5, 0.25]}, {"epoch": 2}],
    }
    assert done.shortfall() is None
