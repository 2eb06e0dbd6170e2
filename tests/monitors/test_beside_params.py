"""Parameters of monitors beside and around the workload: valid values, and the program's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.monitors import monitor
from fixtures.terms import BadInput

FOLDER = Path("/where/it/writes")
RANGES = {
    "sampler": ("hz", 0.1, 1000),
    "nvidia_smi": ("interval_s", 0.01, 60),
    "dcgmi": ("interval_s", 0.1, 5),
    "py_spy": ("hz", 1, 1000),
    "perf_stat": ("interval_s", 0.01, 60),
    "perf_record": ("hz", 1, 10_000),
}
# The word of the command line in which the parameter is, at 2 a second or every 2 seconds.
SAID = {
    "sampler:hz=2": "2",
    "nvidia_smi:interval_s=2": "-lms 2000",
    "dcgmi:interval_s=2": "-d 2000",
    "py_spy:hz=2": "--rate 2",
    "perf_stat:interval_s=2": "-I 2000",
    "perf_record:hz=2": "-F 2",
}


@pytest.mark.parametrize("name", RANGES)
def test_out_of_range_is_refused_with_the_range(name: str) -> None:
    key, smallest, largest = RANGES[name]
    # Top with a delay of 0 never waits, and fills a disk.
    for wrong in (smallest * 0.99, largest * 1.01, -1, 0, "nan", "inf", "fast", "1e-9"):
        with pytest.raises(
            BadInput,
            match=f"{name}.*{key}={wrong}: must be a .*number from {smallest:g} to {largest:g}",
        ):
            monitor.load(f"{name}:{key}={wrong}")
    for right in (smallest, largest):
        assert monitor.load(f"{name}:{key}={right}").params == {key: right}


@pytest.mark.parametrize("name", SAID)
def test_the_program_is_told_the_parameter_and_the_process(name: str) -> None:
    known = monitor.load(name)
    command = known.command(4711, FOLDER)
    assert f" {SAID[name]} " in f" {' '.join(command)} "
    # These watch the whole machine.
    assert ("4711" in command) == (known.base not in ("nvidia_smi", "dcgmi"))
