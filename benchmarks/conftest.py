"""Show and save figures that were not found by timing a call like all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


@pytest.fixture
def rounds(benchmark: BenchmarkFixture) -> Callable[[list[float]], None]:
    """Return a function that passes the seconds of each round to pytest-benchmark."""

    def take(seconds: list[float]) -> None:
        left, now = iter(seconds), [0.0]

        def begin() -> None:
            now[0] = 0.0

        def end() -> None:
            now[0] = next(left)

        # The marker that sets it is read before the figures are known.
        benchmark._timer = lambda: now[0]  # noqa: SLF001
        benchmark.pedantic(end, setup=begin, rounds=len(seconds))

    return take
