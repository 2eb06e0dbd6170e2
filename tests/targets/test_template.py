"""A workload forked after the import of its framework equals a fresh one, and leaves as little."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fixtures.targets import _process
from fixtures.targets._turns import Template
from fixtures.terms import Order, WorkloadRun
from fixtures.workloads import load, of
from tests.needs import requires
from tests.waiting import PATIENCE_S, alive, until


@pytest.fixture(scope="module")
@requires("torch")
def template() -> Iterator[Template]:
    with closing(
        Template(of("cnn_train").framework, {"MALLOC_ARENA_MAX": "1"}, _process.environment())
    ) as template:
        yield template


def order(folder: Path) -> Order:
    """Two slices of one step each, under a limit, a priority and a variable."""
    settings = {"Nice": "5", "MALLOC_ARENA_MAX": "1"}
    return Order(
        load("cnn_train"),
        2,
        1,
        7,
        folder,
        {"nofile": (512, 512)},
        PATIENCE_S,
        PATIENCE_S,
        slice_steps=1,
        process=settings,
    )


def ended(running: _process.Running) -> WorkloadRun:
    """Go on at each pause, to the end."""
    while True:
        try:
            running.send(None)
        except StopIteration as over:
            result: WorkloadRun = over.value
            return result


def test_a_forked_workload_does_the_same_work_as_a_fresh_one(
    template: Template, tmp_path: Path
) -> None:
    forked = ended(_process.running(order(tmp_path / "forked"), template=template))
    fresh = ended(_process.running(order(tmp_path / "fresh")))
    assert (forked.error, fresh.error) == (None, None)
    assert forked.facts == fresh.facts
    assert [step.loss for step in forked.steps] == pytest.approx(
        [step.loss for step in fresh.steps]
    )
    assert forked.limits_observed["nofile"] == (512, 512)
    assert (
        forked.process_observed == fresh.process_observed == {"Nice": "5", "MALLOC_ARENA_MAX": "1"}
    )


def test_closed_at_a_pause_it_is_gone_and_the_template_forks_on(
    template: Template, tmp_path: Path
) -> None:
    pids: list[int] = []
    for number in range(2):
        running = _process.running(
            order(tmp_path / str(number)), template=template, on_start=pids.append
        )
        next(running)
        assert alive(pids[-1])
        running.close()
        assert not alive(pids[-1])


@pytest.mark.needs("torch")
def test_a_killed_template_fails_and_ends_its_workload(tmp_path: Path) -> None:
    pids: list[int] = []
    with closing(Template(of("cnn_train").framework, {}, _process.environment())) as template:
        mine = Order(
            load("cnn_train"),
            2,
            1,
            7,
            tmp_path,
            start_timeout_s=PATIENCE_S,
            step_timeout_s=PATIENCE_S,
            slice_steps=1,
        )
        running = _process.running(mine, template=template, on_start=pids.append)
        next(running)
        os.kill(template._process.pid, signal.SIGKILL)  # as the kernel does that runs out of memory
        until(lambda: not alive(pids[0]), "it goes on")
        result = ended(running)
    assert "SIGKILL" in str(result.error)
