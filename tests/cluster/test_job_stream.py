"""Streams of jobs as Jobs on a real kubelet: events come once, faults are named, nothing stays."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.kubernetes import api as apis
from fixtures.terms import Refused
from tests.cluster.streams import LONG_S, NOTHING, Streams, job, left, of_kind
from tests.sessions import HOUSE

if TYPE_CHECKING:
    from fixtures.kubernetes.client import Cluster


def test_a_stream_runs_two_at_a_time_and_each_event_comes_once(
    streams: Streams, cluster: Cluster
) -> None:
    """A job is suspended until admission; limits equal requests; failures and ends are detailed."""
    with streams.play() as play:
        class_ = of_kind(fails_at=0.5)
        jobs = [job(0, 0.3), job(1, 0.3, class_=class_), job(2, 0.2, replicas=2)]
        for one in jobs:
            play.engine.submit(one)
        assert [one["spec"]["suspend"] for one in apis.list_(cluster, apis.JOBS)[0]] == [True] * 3
        play.engine.admit(jobs[0], 1, 0.0)
        play.engine.admit(jobs[1], 1, 0.0)
        assert play.engine.running().keys() == {0, 1}
        with pytest.raises(Refused, match="needs 2 slots at once, but only 0 of 2 are free"):
            play.engine.admit(jobs[2], 1, 0.0)
        done, failed = play.end_of(0), play.end_of(1)
        play.engine.admit(jobs[2], 1, 0.0)
        both = play.end_of(2)
        assert play.engine.running() == {}
        assert play.once()
    assert (done.outcome, done.reason, done.done_work) == ("done", "", 0.3)
    assert (failed.outcome, failed.reason) == (
        "failed",
        "failed at 0.15 of 0.3, as its class requires",
    )
    assert both.outcome == "done"
    assert done.used.cpu_s is not None
    assert done.used.cpu_s > 0
    assert done.result is not None
    assert done.result["pod_ran_s"] >= 0.3
    assert done.result["server_ended_unix_s"] >= done.result["server_started_unix_s"] > 0
    starts = {one.job: one.at_s for one in play.happened("started")}
    assert all(starts[one.job] <= one.at_s for one in play.happened("ended") if one.job is not None)


def test_a_job_whose_pod_is_killed_goes_on_from_its_checkpoint(
    streams: Streams, tmp_path: Path
) -> None:
    """Checkpoints are told as they are written; what the last one has is not done again."""
    with streams.play(checkpoint_s=0.3, volume=str(tmp_path / "volume")) as play:
        one = job(0, LONG_S)
        play.start(one)
        play.until(lambda: len(play.happened("checkpoint")) >= 2)
        assert play.engine.kill(0)
        end = play.end_of(0)
        assert not play.engine.kill(0)
        assert (end.outcome, end.reason) == ("killed", "its pod was deleted")
        assert end.done_work is not None
        assert end.done_work >= 0.6
        told = [event.done_work for event in play.happened("checkpoint")]
        assert told == sorted(set(told), key=lambda work: work or 0.0)
        again = job(0, end.done_work + 0.2)
        play.events.clear()
        play.engine.admit(again, 2, end.done_work)
        assert play.end_of(0).outcome == "done"
        assert not play.happened("checkpoint")  # of the first attempt's work nothing was repeated


def test_what_a_killed_stream_has_left_restore_takes_away(
    streams: Streams, cluster: Cluster
) -> None:
    """A running and a waiting Job, a cordon, the lease; a living stream is left alone."""
    script = (
        "import os, signal, sys, time; from tests.cluster.streams import job\n"
        "from fixtures.studies.jobs.engines import EngineRequest, opened\n"
        "from pathlib import Path; from tests.cluster.streams import CLASS, Play\n"
        "wanted = EngineRequest(2, 1, (CLASS,), Path(), files={'job_cluster': Path(sys.argv[1])})\n"
        "with opened('jobs', wanted) as engine:\n"
        "    play = Play(engine); play.start(job(0, 1000.0)); engine.submit(job(1, 1.0)); "
        "engine.lose(engine.nodes[0])\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", script, str(streams.settings())], cwd=HOUSE, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    found = left(cluster)
    assert len(found["jobs"]) == 2
    assert found["away"] == [streams.here.node]
    restored = _restore(streams)
    assert restored.returncode == 0, restored.stdout
    assert f"node {streams.here.node}: uncordoned (the run had cordoned it)" in restored.stdout
    assert "2 Jobs removed" in restored.stdout
    assert left(cluster) == NOTHING
    assert _restore(streams).stdout.startswith("Nothing to restore")


def _restore(streams: Streams) -> subprocess.CompletedProcess[str]:
    where = [f"--kubeconfig={streams.here.kubeconfig}", f"--namespace={streams.namespace}"]
    command = [sys.executable, "-m", "fixtures", "restore", "--target=kubernetes", *where]
    return subprocess.run(command, cwd=HOUSE, check=False, capture_output=True, text=True)
