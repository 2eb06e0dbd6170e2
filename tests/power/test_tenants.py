"""A pool of tenants: those set run at the same time, failures are reported, and none is left."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.studies.power.tenants import Pool, Work
from fixtures.studies.power.terms import Inference
from tests.waiting import alive, doomed, until

STUB = (sys.executable, str(Path(__file__).with_name("stub_tenant.py")))


def job(folder: Path, model: str = "stub") -> Inference:
    return Inference(model, 32, 1, folder)


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    with Pool(job(tmp_path), STUB) as one:
        yield one
    assert list(tmp_path.iterdir()) == [], "what it wrote it takes away again"


def test_all_tenants_run_in_the_same_window(pool: Pool) -> None:
    """A batch of 10 in 10 ms is at most 1000 images/s; each infers some and times its batches."""
    assert pool.set([Work(10), Work(20)]) == ({}, {})
    window = pool.run(0.1, 0.3)
    assert window.measured_s == 0.3
    assert not window.oom
    assert not window.crashed
    for images, latency_ms, batch in zip(window.images, window.latency_ms, (10, 20), strict=True):
        assert 0 < images <= 300 * 1.01
        assert min(latency_ms) >= batch


def test_a_tenant_restarts_only_if_its_environment_changes(pool: Pool) -> None:
    begun: list[int] = []
    pool.set([Work(10), Work(10, environment=(("SHARE", "25"),))], lambda _, pid: begun.append(pid))
    assert pool.pids == begun
    first, second = begun
    pool.set([Work(20), Work(10, environment=(("SHARE", "50"),))])
    assert pool.pids[0] == first
    assert pool.pids[1] != second
    assert not alive(second)
    pool.set([Work(20)])
    assert pool.pids == [first]


def test_a_batch_that_does_not_fit_is_said_and_the_others_run(pool: Pool) -> None:
    oom, crashed = pool.set([Work(10), Work(4096)])
    assert oom == {1: "batch 4096 does not fit"}
    assert not crashed
    window = pool.run(0.0, 0.5)
    assert window.images[0] > 0
    assert window.images[1] == 0
    assert window.oom == oom
    assert pool.set([Work(10), Work(10)]) == ({}, {})
    assert pool.run(0.0, 0.5).images[1] > 0


def test_a_dead_tenant_is_reported_and_started_again_when_set(pool: Pool) -> None:
    pool.set([Work(10), Work(13)])
    window = pool.run(0.0, 0.5)
    assert list(window.crashed) == [1]
    assert window.crashed[1].startswith("tenant 1 died of SIGKILL")
    assert window.images[0] > 0
    assert pool.run(0.0, 0.5).crashed == {1: "tenant 1 had already ended"}
    assert pool.set([Work(10), Work(10)]) == ({}, {})
    assert pool.run(0.0, 0.5).images[1] > 0


def test_a_tenant_that_cannot_start_says_its_last_word(tmp_path: Path) -> None:
    with Pool(job(tmp_path, "none-such"), STUB) as pool:
        _, crashed = pool.set([Work(1)])
    assert crashed == {0: "tenant 0 ended with exit code 1: no network of that name"}


def test_a_pace_leaves_fewer_images(pool: Pool) -> None:
    """A tenth of 0.5 s is 0.05 s: five batches of 10 ms, and at most one more begun."""
    pool.set([Work(10, duty=0.1)])
    assert 0 < pool.run(0.0, 0.5).images[0] <= 60


def test_no_tenant_outlives_whoever_started_it(tmp_path: Path) -> None:
    script = (
        "import threading; from pathlib import Path; "
        "from fixtures.studies.power.tenants import Pool, Work; from fixtures.studies.power.terms "
        "import Inference\n"
        f"pool = Pool(Inference('stub', 32, 1, Path({str(tmp_path)!r})), {STUB!r}); "
        "pool.set([Work(1000), Work(1000)])\n"
        "threading.Timer(0.3, print, pool.pids, {'flush': True}).start(); pool.run(0, 600)"
    )
    with doomed(script) as (_, *pids):
        assert len(pids) == 2
    until(lambda: not any(map(alive, pids)))
