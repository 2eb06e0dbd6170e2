"""The harness's sampler as a monitor: same process, same sources, on the workload's process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from fixtures.monitors.monitor import load
from tests.monitors.watched import until, watch
from tests.waiting import PATIENCE_S

sampler = load("sampler")


def test_the_sampler_reads_all_sources_and_answers_at_the_end(tmp_path: Path) -> None:
    done = watch("sampler:hz=50", tmp_path)
    assert (done.code, done.lines("stderr")) == (0, [])
    ready, begun, answer = map(json.loads, done.lines())
    assert (ready, begun) == ({"ready": True}, {"token": 1, "begun": True})
    assert answer["hz"] == 50
    times = answer["columns"]["t_monotonic_s"]
    assert sampler.samples(tmp_path) == len(times) > 3
    assert {len(column) for column in answer["columns"].values()} == {len(times)}
    # It is this very process that it watched: one that has computed for half a second meanwhile,
    # and has no children.
    assert answer["summary"]["process_cpu_percent_mean"] / 100 * (times[-1] - times[0]) > 0.4
    assert answer["summary"]["process_count_max"] == 1
    assert answer["sampler_cpu_s"] > 0
    assert not {*answer["missing"]} & {"cpu", "memory", "process", "vm"}


def test_a_pause_has_no_ticks_that_are_taken_or_missed(tmp_path: Path) -> None:
    """At 50 Hz half a second would be 25; ticks go on where they would have been."""
    command = load("sampler:hz=50").command(os.getpid(), tmp_path)
    with (tmp_path / "stdout").open("wb") as out, subprocess.Popen(command, stdout=out) as process:
        until(lambda: sampler.watches(tmp_path), process)
        process.send_signal(signal.SIGSTOP)
        stopped_s = time.monotonic()
        time.sleep(0.5)
        over_s = time.monotonic()
        process.send_signal(signal.SIGCONT)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
    answer = json.loads((tmp_path / "stdout").read_text().splitlines()[-1])
    times = answer["columns"]["t_monotonic_s"]
    assert not [at for at in times if stopped_s + 0.05 < at < over_s]
    after = [at for at in times if at >= over_s]
    assert after
    # What it missed since, on a busy machine; with the pause it would be 25 more.
    assert answer["summary"]["sampler_missed_ticks_total"] <= 50 * (after[-1] - over_s) + 50 * (
        stopped_s - times[0]
    )
