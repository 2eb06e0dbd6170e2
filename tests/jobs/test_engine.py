"""The pool: jobs are processes of this machine, held to their limits, and nothing of them stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fixtures.kernel import cgroups
from fixtures.studies.jobs import engines, forker
from fixtures.studies.jobs.engines import EngineRequest, unavailable_reason
from fixtures.studies.jobs.engines.pool import ProcessPool
from fixtures.studies.jobs.kinds import complete
from fixtures.studies.jobs.terms import Event, JobClass, Planned
from fixtures.terms import BadInput, Refused
from tests import waiting
from tests.jobs.made_jobs import a_class
from tests.waiting import PATIENCE_S

HOUSE = Path(__file__).parents[2]
PLAIN = a_class()
HELD = {
    name: place
    for name in ("cpu", "memory")
    if isinstance(place := cgroups.place(controller=name), cgroups.CgroupRoot)
}


@contextmanager
def opened(
    folder: Path,
    class_: JobClass = PLAIN,
    slots: int = 2,
    nodes: int = 2,
    checkpoint_s: float = 0.0,
) -> Iterator[ProcessPool]:
    with ProcessPool.opened(EngineRequest(slots, nodes, (class_,), folder, checkpoint_s)) as engine:
        yield engine


def a_job(number: int, work: float = 0.01, class_: JobClass = PLAIN, **more: Any) -> Planned:
    return Planned(number, class_, 0.0, work, seed=number, **more)


def admit(
    engine: ProcessPool,
    number: int,
    work: float = 0.01,
    class_: JobClass = PLAIN,
    attempt: int = 1,
    **more: Any,
) -> Planned:
    job = a_job(number, work, class_, **more)
    engine.admit(job, attempt, 0.0)
    return job


def until(engine: ProcessPool, what: str, times: int = 1) -> list[Event]:
    """All that happens until something of that name has happened so often."""
    found: list[Event] = []
    until_s = time.monotonic() + PATIENCE_S
    while sum(one.what == what for one in found) < times:
        assert time.monotonic() < until_s, found
        found += engine.events(until_s)
    return found


def test_a_job_starts_works_and_ends(tmp_path: Path) -> None:
    """On the clock of whoever asks; its CPU time is that of the process, and its folder is gone."""
    with opened(tmp_path) as engine:
        job, began_s = a_job(7, 0.05), time.monotonic()
        engine.submit(job)
        engine.admit(job, 1, 0.0)
        assert engine.running() == {7: "node-1"}
        started, ended = until(engine, "ended")
        assert engine.running() == {}
        assert not list(tmp_path.glob("job-*"))
    assert (started.what, started.job, ended.job, ended.outcome, ended.done_work) == (
        "started",
        7,
        7,
        "done",
        0.05,
    )
    assert began_s < started.at_s < ended.at_s - 0.05 < time.monotonic()
    assert ended.used.cpu_s is not None
    assert 0 < ended.used.cpu_s < ended.at_s - began_s


def test_more_replicas_are_more_processes_and_each_has_its_part(tmp_path: Path) -> None:
    """0.2 s of work, half of it serial, on two replicas: 0.15 s each, and what starting takes."""
    class_ = a_class("spin", params={"serial": 0.5})
    with opened(tmp_path, class_) as engine:
        admit(engine, 1, 0.2, class_, replicas=2)
        with pytest.raises(Refused, match="Job 2 needs 1 slots at once, but only 0 of 2 are free"):
            admit(engine, 2, class_=class_)
        ended = until(engine, "ended")[-1]
    assert 0.28 < (ended.used.cpu_s or 0) < 0.4


def test_a_job_that_is_killed_has_what_its_last_checkpoint_has(tmp_path: Path) -> None:
    """And its next attempt begins there."""
    with opened(tmp_path, checkpoint_s=0.01) as engine:
        admit(engine, 1, 600.0)
        until(engine, "checkpoint", 2)
        assert engine.kill(1)
        ended = until(engine, "ended")[-1]
        assert (ended.outcome, ended.reason) == ("killed", "it was killed")
        assert ended.done_work is not None
        assert ended.done_work >= 0.02
        assert not engine.kill(1)
        last = a_job(1, ended.done_work + 0.02)
        engine.admit(last, 2, ended.done_work)
        again = until(engine, "ended")[-1]
    assert (again.outcome, again.done_work) == ("done", last.work)


def test_a_checkpoint_is_dated_by_its_writing_not_its_reading(
    tmp_path: Path,
) -> None:
    """It was before the job's end: else more time was lost than there was, or less than none."""
    with opened(tmp_path, checkpoint_s=0.01) as engine:
        admit(engine, 1, 600.0)
        until(engine, "checkpoint")
        seen = {(tmp_path / "job-1" / "checkpoint").read_text()}
        while len(seen) < 3:  # the last but one has been told by then
            seen.add((tmp_path / "job-1" / "checkpoint").read_text())
        (process,) = waiting.children(engine._forker._process.pid)
        os.kill(process, signal.SIGKILL)
        while Path(f"/proc/{process}").exists():  # until it has been waited for
            time.sleep(0.001)
        *checkpoints, ended = until(engine, "ended")
    assert checkpoints
    assert all(one.at_s < ended.at_s for one in checkpoints)


@pytest.mark.parametrize(
    ("kind", "params", "sentence"),
    [
        ("sleep", {"serial": 1.5}, "sleep: serial=1.5: must be a number from 0 to 1"),
        ("spin", {"restore_s": -0.1}, r"spin: restore_s=-0\.1: must be a number of at least 0"),
        ("train", {"optimiser": "sdg"}, "train: optimiser=sdg: no such value"),
        ("train", {"lr": float("nan")}, "train: lr=nan: must be a number of at least 1e-09"),
        ("federated", {"trim": 0.5}, "trim=0.5: must be a number from 0 to 0.499"),
        ("federated", {"poisoned": 11}, "poisoned=11 exceeds clients=10"),
        ("slep", {}, r"Unknown kind of job 'slep'. Did you mean 'sleep'\?"),
        ("sleep", {"serail": 1}, r"Kind 'sleep': no parameter 'serail'. Did you mean 'serial'\?"),
    ],
)
def test_impossible_job_parameters_are_refused_before_any_run(
    kind: str, params: dict[str, object], sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        complete(kind, params)


def test_a_full_disk_fails_all_replicas_and_keeps_the_checkpoint(
    tmp_path: Path,
) -> None:
    """`/dev/full` answers ENOSPC, as a full disk does; the other replica would sleep for 600 s."""
    class_ = a_class(params={"serial": 1.0})
    with opened(tmp_path, class_, checkpoint_s=0.01) as engine:
        (tmp_path / "job-1").mkdir()
        (tmp_path / "job-1" / "checkpoint").write_text("0.5")
        (tmp_path / "job-1" / "checkpoint.2.0").symlink_to("/dev/full")
        engine.admit(a_job(1, 600.0, class_, replicas=2), 2, 0.5)
        ended = until(engine, "ended")[-1]
        assert (tmp_path / "job-1" / "checkpoint").read_text() == "0.5"
    assert (ended.outcome, ended.done_work) == ("failed", 0.5)
    assert "cannot write its checkpoint at 0.51 (No space left on device)" in ended.reason


def test_a_lost_node_kills_its_jobs_and_gets_no_new_ones(tmp_path: Path) -> None:
    """Two nodes of two slots each; a job with a replica there is killed too."""
    with opened(tmp_path, slots=4) as engine:
        for number in (1, 2):
            admit(engine, number, 600.0)
        admit(engine, 3, 600.0, replicas=2)
        until(engine, "started", 3)
        assert engine.running() == {1: "node-1", 2: "node-2", 3: "node-1"}
        engine.lose("node-2")
        ended = [one for one in until(engine, "ended", 2) if one.what == "ended"]
        assert {one.job for one in ended} == {2, 3}
        assert {one.reason for one in ended} == {"node-2 was lost"}
        admit(engine, 4, 600.0)
        assert engine.running() == {1: "node-1", 4: "node-1"}
        with pytest.raises(Refused, match="0 of 4 are free"):
            admit(engine, 5)
        with pytest.raises(Refused, match=r"node-2 cannot be lost\. Nodes left: node-1"):
            engine.lose("node-2")
        engine.back("node-2")
        admit(engine, 5)
        found = until(engine, "ended")
        assert [one.what for one in found if one.job is None] == ["node back"]
        with pytest.raises(Refused, match="is not lost"):
            engine.back("node-2")


@pytest.mark.needs("cgroups")
def test_the_kernel_holds_a_job_to_its_cores(tmp_path: Path) -> None:
    """0.03 CPU s at a twentieth of a core take 0.5 s or more, and time without CPU is reported."""
    class_ = a_class("spin", cores=0.05)
    with opened(tmp_path, class_) as engine:
        admit(engine, 1, 0.03, class_)
        started, ended = until(engine, "ended")
    assert ended.at_s - started.at_s > 0.25
    assert ended.used.throttled_s is not None
    assert ended.used.throttled_s > 0


@pytest.mark.needs("cgroups")
def test_a_job_over_its_memory_limit_is_killed_with_the_reason(
    tmp_path: Path,
) -> None:
    class_ = a_class("spin", memory_mib=16, params={"memory_mib": 64})
    with opened(tmp_path, class_) as engine:
        admit(engine, 1, class_=class_)
        ended = until(engine, "ended")[-1]
    assert (ended.outcome, ended.reason) == (
        "killed",
        "the kernel killed it for exceeding its memory limit of 16 MiB",
    )


@pytest.mark.needs("cgroups")
def test_a_memory_limit_counts_only_what_the_job_itself_holds(
    tmp_path: Path,
) -> None:
    """32 MiB in each of two replicas; resident memory has what they share with their parent too."""
    class_ = a_class("spin", memory_mib=64, params={"memory_mib": 32})
    with opened(tmp_path, class_) as engine:
        admit(engine, 1, class_=class_, replicas=2)
        used = until(engine, "ended")[-1].used
    assert 64 <= (used.memory_peak_mib or 0) < 2 * 64
    assert (used.max_rss_mib or 0) > (used.memory_peak_mib or 0)


@pytest.mark.needs("cgroups")
def test_no_group_is_left(tmp_path: Path) -> None:
    """Neither of a job that ended, nor of one that still runs when the engine is closed."""
    assert len(HELD) == 2
    class_ = a_class("spin", cores=0.5, memory_mib=64)

    def groups() -> list[Path]:
        return [
            one
            for place in HELD.values()
            for one in place.folder.glob(f"deeptweak-jobs-{os.getpid()}-*")
        ]

    with opened(tmp_path, class_) as engine:
        admit(engine, 1, class_=class_)
        admit(engine, 2, 600.0, class_)
        until(engine, "ended")
        assert len(groups()) == len({place.folder for place in HELD.values()})
    assert groups() == []


def test_where_no_group_can_be_made_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "place", lambda **_: "cgroup v2 is not mounted")
    assert (
        unavailable_reason("pool", [a_class(cores=1)])
        == "the cores of jobs cannot be enforced: cgroup v2 is not mounted"
    )
    assert (
        unavailable_reason("pool", [a_class(memory_mib=9)])
        == "the memory_mib of jobs cannot be enforced: cgroup v2 is not mounted"
    )
    assert unavailable_reason("pool", [a_class()]) is None


@pytest.mark.parametrize("version", [1, 2])
def test_groups_of_either_version_are_written_and_read(tmp_path: Path, version: int) -> None:
    """With made-up kernel files; both controllers share one folder in version 2."""
    folders = {"cpu": tmp_path / "cpu", "memory": tmp_path / ("memory" if version == 1 else "cpu")}
    for folder in folders.values():
        folder.mkdir(exist_ok=True)
    held = cgroups.Groups(
        {name: cgroups.CgroupRoot(folder, version) for name, folder in folders.items()}, "jobs"
    )
    joined = held.make(3, 0.5, 64)
    assert len(joined) == (2 if version == 1 else 1)
    told = {one.name: one.read_text() for path in joined for one in path.parent.iterdir()}
    stat = (
        ("cpu.cfs_quota_us", "10000", "memory.limit_in_bytes")
        if version == 1
        else ("cpu.max", "10000 20000", "memory.max")
    )
    assert (told[stat[0]], told[stat[2]]) == (stat[1], f"{64 << 20}")
    (joined[0].parent / "cpu.stat").write_text(
        "nr_periods 3\nthrottled_time 2500000000\n" if version == 1 else "throttled_usec 2500000\n"
    )
    oom = "oom_kill_disable 0\noom_kill 1\n" if version == 1 else "max 7\noom_kill 1\n"
    (joined[-1].parent / ("memory.oom_control" if version == 1 else "memory.events")).write_text(
        oom
    )
    assert held.ended(3) == cgroups.Held(2.5, out_of_memory=True)


def test_the_death_of_the_forker_is_reported_and_ends_its_jobs(
    tmp_path: Path,
) -> None:
    with opened(tmp_path) as engine:
        admit(engine, 1, 600.0)
        until(engine, "started")
        process = engine._forker._process
        (child,) = waiting.children(process.pid)
        process.kill()
        with pytest.raises(
            Refused, match="The process that starts jobs has ended: it died of SIGKILL"
        ):
            engine.events(time.monotonic() + PATIENCE_S)
        waiting.until(lambda: not waiting.alive(child))


def test_a_run_that_is_killed_leaves_no_process_and_no_group() -> None:
    """The kernel kills the starter of jobs, and the jobs with it; a keeper removes the groups."""
    script = (
        "import sys, tempfile, time; from pathlib import Path\n"
        "from fixtures.studies.jobs.engines import EngineRequest, opened; from "
        "tests.jobs.made_jobs import a_class, planned\n"
        "class_ = a_class('spin', cores=float(sys.argv[1]) or None)\n"
        "with tempfile.TemporaryDirectory() as folder, opened('pool', EngineRequest(1, 1, "
        "(class_,), Path(folder))) as engine:\n"
        "    engine.admit(planned(0.0, work=600.0, class_=class_)[0], 1, 0.0)\n"
        "    while not engine.events(time.monotonic() + 300): pass\n"
        "    print(vars(vars(engine)['_forker'])['_process'].pid, flush=True); time.sleep(600)"
    )
    cores = "0.5" if len(HELD) == 2 else "0"
    with waiting.doomed(script, cores) as (run, started):
        processes = [started, *waiting.children(started)]
        assert len(processes) == 2
    waiting.until(lambda: not any(map(waiting.alive, processes)))
    if len(HELD) == 2:
        folders = [place.folder for place in HELD.values()]
        waiting.until(
            lambda: (
                not [one for folder in folders for one in folder.glob(f"deeptweak-jobs-{run}-*")]
            )
        )


def test_what_a_job_started_ends_with_it(tmp_path: Path) -> None:
    """Its whole process group is killed."""
    with opened(tmp_path) as engine:
        admit(engine, 1, 600.0)
        until(engine, "started")
        (job,) = waiting.children(engine._forker._process.pid)
        with subprocess.Popen(["sleep", "600"], process_group=job) as other:
            engine.kill(1)
            until(engine, "ended")
            assert other.wait() == -signal.SIGKILL


def test_hundreds_that_are_admitted_at_once_are_all_heard(tmp_path: Path) -> None:
    """More lines than a pipe holds go one way while answers come the other."""
    with opened(tmp_path, slots=200, nodes=1) as engine:
        for number in range(200):
            admit(engine, number, 0.001)
        ended = [one for one in until(engine, "ended", 200) if one.what == "ended"]
    assert {one.job for one in ended} == set(range(200))
    assert {one.outcome for one in ended} == {"done"}


@pytest.mark.parametrize(
    ("slots", "nodes", "each"), [(5, 2, [3, 2]), (2, 2, [1, 1]), (1, 3, [1, 0, 0])]
)
def test_slots_are_dealt_onto_nodes_evenly(slots: int, nodes: int, each: list[int]) -> None:
    names = [f"n{number}" for number in range(nodes)]
    assert engines.slots_of_nodes(slots, names) == dict(zip(names, each, strict=True))


def test_what_a_job_tells_has_no_number_that_json_lacks() -> None:
    said = {"loss": float("inf"), "all": [1.5, float("nan")], "epoch": 3}
    assert forker.finite(said) == {"loss": None, "all": [1.5, None], "epoch": 3}
    json.dumps(forker.finite(said), allow_nan=False)
