"""The contract of every monitor: each class of the catalogue, run for real where possible."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from fixtures import record
from fixtures.monitors import monitor
from fixtures.targets import _process
from fixtures.terms import BadInput, Order, TweakSet
from fixtures.workloads import load
from tests.monitors.made_up import TRACE, traced
from tests.test_run_schema import SCHEMA

# Needs of monitors that a CI machine meets; it may lack the others.
THERE = {
    "placebo",
    "psutil_thread",
    "sampler",
    "py_spy",
    "perf_stat",
    "perf_record",
    "cprofile",
    "torch_profiler",
}
EVERY = monitor.names()
pytestmark = pytest.mark.slow


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """In the environment of all that a cell starts: when it is over there is nothing with it."""
    name = uuid.uuid4().hex  # other workers' tests have theirs
    monkeypatch.setenv(TRACE, name)
    yield name
    assert traced(name) == {}


@pytest.mark.parametrize("name", EVERY)
def test_it_says_what_it_is(name: str) -> None:
    known = monitor.load(name)
    assert known.name == known.base == name  # its defaults give the bare name
    assert known.kind in get_args(monitor.Kind)
    assert known.description
    assert "\n" not in known.description
    assert monitor.tweakset(name) == TweakSet(
        name, description=known.description, monitor=name, workloads=known.workloads
    )


@pytest.mark.parametrize("name", EVERY)
def test_what_it_does_not_know_it_refuses(name: str) -> None:
    with pytest.raises(BadInput, match="no parameter"):
        monitor.load(f"{name}:no_such_parameter=1")
    for key in monitor.load(name).parameters:
        with pytest.raises(BadInput, match=key):
            monitor.load(f"{name}:{key}=.")


def run(name: str, folder: Path) -> dict[str, Any]:
    """A cell of two seconds under it, as it is saved."""
    order = Order(
        load("idle:wait_s=0.05"), 40, 2, 7, folder, monitored=True, monitor=name, step_timeout_s=120
    )
    result = _process.run(order)
    assert result.error is None, (result.error, result.last_lines)
    found: dict[str, Any] = {}
    record.steps(found, result)
    return found


@pytest.mark.parametrize("name", EVERY)
def test_it_runs_and_what_it_cost_is_told(name: str, tmp_path: Path, trace: str) -> None:
    """Everything in the schema is there, each null has a reason, and nothing is left behind."""
    if why := monitor.unavailable_reason(name):
        assert not (os.environ.get("CI") and name in THERE), why
        pytest.skip(why)
    found = run(name, tmp_path)
    for part, kind in {"monitor": "MonitorRecord", "usage": "Usage"}.items():
        jsonschema.Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/{kind}"}).validate(found[part])
        assert {key for key, value in found[part].items() if value is None} == set(
            found[part]["missing"]
        )
    told, known = found["monitor"], monitor.load(name)
    assert (told["name"], told["base"], told["kind"], told["params"]) == (
        name,
        name,
        known.kind,
        known.params,
    )
    assert told["wall_s"] >= found["usage"]["steps_wall_s"] >= 40 * 0.05
    assert (told["cpu_s"] is None) == (known.kind == "inside")
    # Whose timer stands while the workload sleeps.
    assert told["samples"] is None or told["samples"] > 0 or name == "perf_record"
    assert trace


def test_without_a_monitor_a_cell_goes_the_same_way(tmp_path: Path, trace: str) -> None:
    found = run("", tmp_path)
    assert found["monitor"]["name"] is None
    assert found["monitor"]["missing"] == {"monitor": "no monitor in this arm"}
    assert found["usage"]["wall_s"] > found["usage"]["steps_wall_s"]
    assert trace
