"""The contract of all back-ends, and back-ends with tenants that need no framework."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from control.power.terms import Knobs, Settings, Tenant
from fixtures.kernel import cgroups
from fixtures.studies.power import __main__ as listing
from fixtures.studies.power import backends
from fixtures.studies.power.backends import cpu
from fixtures.studies.power.backends.gpu_readonly import GpuReadonly
from fixtures.studies.power.sensors import Meter
from fixtures.studies.power.tenants import Pool
from fixtures.studies.power.terms import Inference, Probe
from fixtures.terms import Refused
from tests.gpu import stand_in

HOUSE = Path(__file__).parents[2]
STUB = (sys.executable, str(Path(__file__).with_name("stub_tenant.py")))


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inference:
    """Tenants of the back-end cpu are stubs."""
    monkeypatch.setattr(cpu, "Pool", partial(Pool, program=STUB))
    return Inference("stub", 32, 1, tmp_path)


@pytest.mark.parametrize("name", backends.names())
def test_every_back_end_says_what_it_can_do_and_why_not_more(name: str) -> None:
    module = backends.load(name)
    assert module.DESCRIPTION
    probe = module.probe({})
    assert probe.backend == name
    assert (probe.power_source == "none") <= (
        probe.cap_unit == "cpu_s_per_s" or probe.unusable is not None
    )
    saved = json.loads(json.dumps(asdict(probe)))
    missing = [knob for knob, value in saved["can"].items() if value is None or value is False]
    assert probe.unusable or set(missing) <= set(probe.cannot)


def test_tenants_may_use_memory_that_the_page_cache_fills(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemFree: 700000 kB\nMemAvailable: 4200000 kB\n")
    assert cpu.probe({}, tmp_path).can.most_processes == 6


def test_what_each_can_do_here_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert listing.main([]) == 0
    said = capsys.readouterr().out
    assert all(f"{name}: " in said for name in backends.names())
    assert "  throttle: 0.1 to 1\n" in said


def test_the_cpus_have_no_clocks_and_say_so(job: Inference) -> None:
    with cpu.opened(job) as backend:
        applied = backend.apply(
            Settings((Tenant(25, 10), Tenant(50, 10)), sm_mhz=1410, throttle=0.5)
        )
        assert applied.actual == Settings((Tenant(25, 10), Tenant(50, 10)), throttle=0.5)
        assert [one.partition(":")[0] for one in applied.refused] == ["sm_mhz"]
        seen = backend.run(0.0, 0.5)
    assert all(images > 0 for images in seen.images)
    assert seen.cpu_s_per_s is not None
    if backend.probe.power_source == "none":
        assert seen.energy_j is None
        assert seen.draw
        # CPU seconds per second: these tenants sleep.
        assert statistics.median(value for _, value in seen.draw) < 3
    assert seen.sm_mhz is None
    assert not list(job.scratch.iterdir())


@pytest.mark.needs("cgroups")
def test_a_share_is_a_quota_of_the_kernels_as_it_answers(job: Inference) -> None:
    """25 % of the cores at throttle 0.5; changed where it runs; gone afterwards."""
    where, cores = cgroups.place(), len(os.sched_getaffinity(0))
    assert not isinstance(where, str)
    with cpu.opened(job) as backend:
        backend.apply(Settings((Tenant(25, 10),), throttle=0.5))
        (group,) = where.folder.glob(f"deeptweak-power-{os.getpid()}-*")
        assert (group / "cgroup.procs").read_text().split() == [f"{backend.pool.pids[0]}"]
        given = (
            [int((group / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period")]
            if where.version == 1
            else [1, 1]
        )
        assert where.version == 2 or given[0] / given[1] == pytest.approx(0.125 * cores)
        assert backend.apply(Settings((Tenant(75, 10),))).actual.tenants == (Tenant(75, 10),)
    assert not group.exists()


def test_a_quota_that_the_kernel_refuses_is_not_taken_for_given(job: Inference) -> None:
    answers = [0.25 * len(os.sched_getaffinity(0)), None, None]
    groups = mock.MagicMock()
    groups.hold.side_effect = lambda *_: answers.pop(0) or _refuse()
    with Pool(job, STUB) as pool:
        backend = cpu.CpuBackend(cpu.probe({}), pool, Meter([], 1.0), groups)
        assert backend.apply(Settings((Tenant(25, 10),))).actual.tenants == (Tenant(25, 10),)
        applied = backend.apply(Settings((Tenant(50, 10), Tenant(50, 10))))
    assert applied.actual.tenants == (Tenant(25, 10), Tenant(100, 10))
    assert applied.refused == ("shares: tenant 0: made up", "shares: tenant 1: made up")


def _refuse() -> float:
    raise Refused("made up")


def test_without_cgroups_a_tenant_keeps_to_its_share_itself(
    job: Inference, monkeypatch: pytest.MonkeyPatch
) -> None:
    """25 % of the cores, at throttle 0.5 half of that; the probe says how it is done, and why."""
    monkeypatch.setattr(cgroups, "place", lambda *_: "no cgroups: made up")
    cores = len(os.sched_getaffinity(0))
    assert cpu.probe({}).facts["no_quota"] == "no cgroups: made up"
    with cpu.opened(job) as backend:
        (work,) = backend.works(Settings((Tenant(25, 8),), throttle=0.5))
        assert work.cores == pytest.approx(0.25 * cores * 0.5)
        assert backend.apply(Settings((Tenant(25, 8),), throttle=0.5)).refused == ()


@pytest.fixture(scope="module")
def on_a_gpu(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return gpu-readonly's output on tests/telemetry/fake_nvml.c, with 61.5 W at the moment."""
    folder = stand_in.built(tmp_path_factory.mktemp("driver"))
    environment = {
        **stand_in.environment(folder),
        "PYTHONPATH": str(HOUSE),
        "CUDA_VISIBLE_DEVICES": "",
    }
    script = str(Path(__file__).with_name("gpu_by_stand_in.py"))
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.needs("cc")
def test_a_gpu_that_is_only_read_has_watts_and_no_partition(on_a_gpu: dict[str, Any]) -> None:
    assert on_a_gpu["probe"]["power_source"] == "nvml"
    applied = on_a_gpu["applied"]
    assert [one.partition(":")[0] for one in applied["refused"]] == ["sm_mhz", "shares"]
    assert applied["actual"]["sm_mhz"] is None
    assert applied["actual"]["tenants"] == [{"share_percent": 100.0, "batch": 10}] * 2
    assert applied["actual"]["throttle"] == 0.5
    assert on_a_gpu["tenant"]["gpu"] == "GPU-00000000-0000-0000-0000-000000000000"


def test_a_gpus_watts_are_not_those_of_tenants_on_the_cpus() -> None:
    probe = Probe(
        "gpu-readonly", Knobs(shares=False, batches=(1, 10), most_processes=4), {}, "nvml", "W"
    )
    pool = mock.Mock(facts={"device": "cpu"}, set=mock.Mock(return_value=({}, {})))
    backend = GpuReadonly(probe, pool, mock.Mock(), "GPU-1")
    with pytest.raises(Refused, match="no CUDA"):
        backend.apply(Settings((Tenant(100, 10),)))


@pytest.mark.needs("cc")
def test_a_gpu_that_is_not_as_it_was_is_told(on_a_gpu: dict[str, Any]) -> None:
    assert "power_limit_w: 700.0, now 300.0" in on_a_gpu["refused"]
