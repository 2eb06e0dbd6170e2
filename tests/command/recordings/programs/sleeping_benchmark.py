"""A test for pytest-benchmark: each call sleeps SLEEP_S seconds."""

from __future__ import annotations

import os
import time
from typing import Any


def test_sleep(benchmark: Any) -> None:
    """Benchmark a sleep of SLEEP_S seconds."""
    benchmark(time.sleep, float(os.environ["SLEEP_S"]))
    fails_by_design = os.environ.get("FAIL")
    assert not fails_by_design
