"""Figures that were found otherwise than by timing a call, shown and saved as the others are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


@pytest.fixture
def rounds(benchmark: BenchmarkFixture) -> Callable[[list[float]], None]:
    """Return the function that takes the seconds of each round."""

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
