"""cProfile inside: all calls between entering and leaving, in a file that pstats reads."""

from __future__ import annotations

import pstats
import sys
from pathlib import Path

import pytest

from fixtures.monitors import monitor
from fixtures.monitors.catalogue.python import PROFILE

cprofile = monitor.load("cprofile")


def fibonacci(number: int) -> int:
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def profiler() -> object:
    """Return the profiler of this thread."""
    monitoring = getattr(sys, "monitoring", None)
    return monitoring.get_tool(monitoring.PROFILER_ID) if monitoring else sys.getprofile()


def failing() -> None:
    assert profiler() is not None
    raise MemoryError


def calls(folder: Path) -> dict[str, tuple[int, int]]:
    """Return calls of each function of this file: without recursive ones, and in all."""
    stats = pstats.Stats(str(folder / PROFILE)).get_stats_profile().func_profiles
    counts = {
        name: one.ncalls.partition("/")
        for name, one in stats.items()
        if Path(one.file_name).name == Path(__file__).name
    }
    return {
        name: (int(primitive or total), int(total))
        for name, (total, _, primitive) in counts.items()
    }


def test_every_call_is_in_the_file_that_it_leaves(tmp_path: Path) -> None:
    """fibonacci(5) calls itself 14 times: 15 calls, one of them primitive.

    What came before or after is not in it.
    """
    fibonacci(3)
    with cprofile.inside(tmp_path) as told:
        fibonacci(5)
        assert told == {}, "it is told when all is over"
    fibonacci(3)
    assert calls(tmp_path) == {"fibonacci": (1, 15)}


def test_it_is_over_when_a_step_fails(tmp_path: Path) -> None:
    with pytest.raises(MemoryError), cprofile.inside(tmp_path):
        failing()
    assert profiler() is None
