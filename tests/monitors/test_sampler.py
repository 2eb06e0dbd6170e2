"""The harness's sampler as a monitor: the same process, the same sources, on the workload's process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from fixtures.monitors import sampler
from tests.monitors.watched import watch

if TYPE_CHECKING:
    from pathlib import Path

LONG = "from fixtures.node.sampler import answer; answer({'columns': list(range(40000))})"


def test_it_samples_the_workload_from_all_sources_and_answers_at_its_end(tmp_path: Path) -> None:
    done = watch("sampler:hz=50", tmp_path)
    assert (done.code, done.lines("stderr")) == (0, [])
    ready, begun, answer = map(json.loads, done.lines())
    assert (ready, begun) == ({"ready": True}, {"token": 1, "begun": True})
    assert answer["hz"] == 50
    times = answer["columns"]["t_monotonic_s"]
    assert sampler.samples(tmp_path) == len(times) > 3
    assert {len(column) for column in answer["columns"].values()} == {len(times)}
    # It is this very process that it watched: one that only computes, and has no children.
    assert answer["summary"]["process_cpu_percent_mean"] > 10
    assert answer["summary"]["process_count_max"] == 1
    assert answer["sampler_cpu_s"] > 0
    assert not {*answer["missing"]} & {"cpu", "memory", "process", "vm"}


def test_its_samples_are_counted_only_when_it_has_answered(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text('{"ready":true}\n{"token":1,"begun":true}\n{"token":1,"columns":{"t_monoto')
    assert sampler.samples(tmp_path) is None
    assert sampler.watches(tmp_path, {})


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_answer_that_does_not_fit_is_an_error(tmp_path: Path, unbuffered: str) -> None:
    """As on a full disk: a limit lets the first 64 KiB through, and Python ignores the signal for the rest."""
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536)); {LONG}"
    with (tmp_path / "stdout").open("wb") as out:
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered, "PYTHONPATH": str(sampler.REPOSITORY)}
        done = subprocess.run([sys.executable, "-c", limited], stdout=out, stderr=subprocess.PIPE, env=environment, check=False)
    assert (tmp_path / "stdout").stat().st_size == 65536
    assert done.returncode == 1
    assert b"File too large" in done.stderr
