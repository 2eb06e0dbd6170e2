"""Measure what the harness costs on a cluster."""

from __future__ import annotations

import os
import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures import tweaks
from fixtures.cells import STOCK
from fixtures.kubernetes import api, manifests
from fixtures.kubernetes.settings import Shared
from fixtures.kubernetes.skyhook import served
from fixtures.kubernetes.target import Kubernetes
from fixtures.kubernetes.watch import watch
from fixtures.kubernetes.ways import ByAgent, ByOperator
from fixtures.targets import make
from fixtures.terms import CellSpec, Order
from fixtures.workloads import case

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

MAX_BEYOND_S = 3.0
MAX_REQUESTS_PER_S = 5.0
PAIRS = int(os.environ.get("DEEPTWEAK_PAIRS", "10"))
ORDER = Order(case("cnn_train"), steps=10, warmup_steps=2, seed=1)
TWEAKS = "memory-reclaim"


@pytest.fixture
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kubernetes]:
    """Lease a node, so that the first image pull and start are over before a benchmark."""
    if request.config.getoption("target") != "kubernetes":
        pytest.skip("it measures a cluster: --target=kubernetes")
    target = make("kubernetes", request.config, tmp_path)
    assert isinstance(target, Kubernetes)
    sets = {one.name: one for one in (STOCK, *tweaks.resolve(TWEAKS))}
    target.open(uuid.uuid4().hex[:12], [_cell(name, 0) for name in sets], sets)
    try:
        _job_alone_s(target, 0)
        yield target
    finally:
        target.restore()
        target.close()


def bench_cell_beyond_its_job(
    benchmark: BenchmarkFixture, rounds: Callable[[list[float]], None], target: Kubernetes
) -> None:
    """Measure how many seconds longer a cell takes than the same Job alone, in pairs."""
    target._way = ByAgent()  # noqa: SLF001 what is timed is the agent's way, whatever --apply says
    beyond_s: list[float] = []
    requests_per_s: list[float] = []
    for n in range(1, PAIRS + 1):
        alone_s = _job_alone_s(target, n)
        asked, begun_s = target.held.cluster.requests, time.perf_counter()
        _whole_cell(target, n)
        took_s = time.perf_counter() - begun_s
        beyond_s.append(took_s - alone_s)
        requests_per_s.append((target.held.cluster.requests - asked) / took_s)
    benchmark.extra_info["requests_per_s"] = requests_per_s
    rounds(beyond_s)
    assert statistics.median(beyond_s) <= MAX_BEYOND_S
    assert max(requests_per_s) <= MAX_REQUESTS_PER_S


@pytest.mark.parametrize("way", ["agent", "skyhook"])
def bench_apply_and_restore(
    rounds: Callable[[list[float]], None], target: Kubernetes, way: str
) -> None:
    """Time how long three sysctls take to apply and restore, by agent and by operator."""
    kind = next(reversed(served(target.held.cluster)), None)
    if way == "skyhook" and kind is None:
        pytest.skip("no operator is installed in this cluster")
    target._way = ByAgent() if way == "agent" or kind is None else ByOperator(kind)  # noqa: SLF001
    (tweakset,) = tweaks.resolve(TWEAKS)
    took_s: list[float] = []
    for n in range(1, max(3, PAIRS // 2) + 1):
        begun_s = time.perf_counter()
        target.apply(_cell(tweakset.name, n), tweakset, target.plan(tweakset))
        assert not target.restore().stuck
        took_s.append(time.perf_counter() - begun_s)
    rounds(took_s)


def _whole_cell(target: Kubernetes, n: int) -> None:
    (tweakset,) = tweaks.resolve(TWEAKS)
    cell = _cell(tweakset.name, n)
    target.apply(cell, tweakset, target.plan(tweakset))
    ran = target.run(cell, ORDER)
    assert ran.result.error is None, ran.result.error
    assert not target.restore().stuck


def _job_alone_s(target: Kubernetes, n: int) -> float:
    """Return the seconds of the same Job alone, from creation until it is Complete."""
    held, settings = target.held, replace(target.settings, via="job", preset=None)
    held.jobs += 1
    job = manifests.of_cell(
        settings, held.spot, ORDER, held.jobs, f"alone-{n}", Shared(network=False, ipc=False)
    )
    begun_s = time.perf_counter()
    api.apply(held.cluster, api.JOBS, job)
    with watch(
        held.cluster, api.JOBS, name=job["metadata"]["name"], deadline_s=settings.patience_s
    ) as events:
        for _, result in events:
            ended = {
                condition["type"]
                for condition in result.get("status", {}).get("conditions") or []
                if condition["status"] == "True"
            }
            assert "Failed" not in ended, result["status"]
            if "Complete" in ended:
                break
    took_s = time.perf_counter() - begun_s
    api.delete(held.cluster, api.JOBS, job["metadata"]["name"])
    return took_s


def _cell(tweakset: str, n: int) -> CellSpec:
    return CellSpec("harness_cluster", ORDER.case.id, tweakset, n, n, 1)
