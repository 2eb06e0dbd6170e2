"""cProfile inside: all calls between entering and leaving, in a file that pstats reads."""

from __future__ import annotations

import pstats
import sys
import threading
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


def test_it_tells_functions_and_primitive_calls(tmp_path: Path) -> None:
    """As pstats counts them in its file."""
    with cprofile.inside(tmp_path) as told:
        fibonacci(4)
        sorted([3, 1, 2], key=abs)
    stats = pstats.Stats(str(tmp_path / PROFILE))
    assert told == {
        "functions": len(stats.get_stats_profile().func_profiles),
        "primitive_calls": vars(stats)["prim_calls"],
    }
    # Fibonacci, sorted and three times abs.
    assert vars(stats)["total_calls"] > vars(stats)["prim_calls"] >= 5


def test_other_threads_are_in_it_from_python_3_12_on(tmp_path: Path) -> None:
    """It stands on sys.monitoring there, which is the whole interpreter's."""
    with cprofile.inside(tmp_path):
        thread = threading.Thread(target=fibonacci, args=(5,))
        thread.start()
        thread.join()
    assert calls(tmp_path) == ({} if sys.version_info < (3, 12) else {"fibonacci": (1, 15)})


def test_it_is_over_when_a_step_fails(tmp_path: Path) -> None:
    with pytest.raises(MemoryError), cprofile.inside(tmp_path):
        failing()
    assert profiler() is None


def test_what_it_is() -> None:
    known = monitor.load("cprofile")
    assert (known.kind, known.params, cprofile.unavailable_reason()) == ("inside", {}, None)
    assert cprofile.version() == f"Python {sys.version.split()[0]}"
