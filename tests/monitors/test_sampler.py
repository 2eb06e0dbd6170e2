"""The harness's sampler as a monitor: same process, same sources, on the workload's process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fixtures.monitors.monitor import REPOSITORY, load
from tests.monitors.watched import until, watch
from tests.waiting import PATIENCE_S

sampler = load("sampler")
LONG = "from fixtures.telemetry.sampler import answer; answer({'columns': list(range(40000))})"


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


def test_its_samples_are_counted_only_when_it_has_answered(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text(
        '{"ready":true}\n{"token":1,"begun":true}\n{"token":1,"columns":{"t_monoto'
    )
    assert sampler.samples(tmp_path) is None
    assert sampler.watches(tmp_path)


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


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_answer_that_does_not_fit_is_an_error(tmp_path: Path, unbuffered: str) -> None:
    """As on a full disk: a limit admits the first 64 KiB, and Python ignores the signal then."""
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536)); {LONG}"
    with (tmp_path / "stdout").open("wb") as out:
        # Without bytecode, as in tests/file_size.py; until the very end, where Python writes what
        # is left.
        ours = {
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": unbuffered,
            "PYTHONPATH": str(REPOSITORY),
        }
        environment = {**os.environ, **ours}
        done = subprocess.run(
            [sys.executable, "-c", limited],
            stdout=out,
            stderr=subprocess.PIPE,
            env=environment,
            check=False,
        )
    assert (tmp_path / "stdout").stat().st_size == 65536
    assert done.returncode == 1
    assert b"File too large" in done.stderr
