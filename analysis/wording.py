"""How numbers are written for people, the same in sentences and in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .terms import Effect

# Beyond a thousandfold change digits say nothing.
LARGEST = 10.0


def percent(fraction: float) -> str:
    """Write a signed change: 0.0123 is `+1.2 %`."""
    return f"{number(fraction)} %"


def number(fraction: float) -> str:
    """Write a signed change without its unit, for a column whose head says percent."""
    if abs(fraction) >= LARGEST:
        return f"{fraction * 100:+.1e}"
    rounded = round(fraction * 100, 1)
    return f"{rounded + 0.0:+.1f}"  # the sum turns -0.0 into 0.0


def interval(effect: Effect) -> str:
    """Write an effect's 95 % interval: `-0.4 to +1.2 %`."""
    return f"{number(effect.low)} to {percent(effect.high)}"


def unsigned(fraction: float) -> str:
    """Write a size: 0.031 is `3.1 %`; a margin of 0.03 is `3 %`."""
    if fraction >= LARGEST:
        return f"over {LARGEST * 100:.0f} %"
    return f"{fraction * 100:.1f}".removesuffix(".0") + " %"


def size(fraction: float) -> str:
    """Write a size for a column whose head says percent."""
    return f">{LARGEST * 100:.0f}" if fraction >= LARGEST else f"{fraction * 100:.1f}"


def probability(p: float) -> str:
    """Write a p-value: two digits, never 0."""
    return "<0.001" if p < 0.001 else f"{p:.3f}" if p < 0.0995 else f"{p:.2f}"


def listed(numbers: Iterable[int]) -> str:
    """Write block numbers: `block 3`, `blocks 1, 2`."""
    ordered = sorted(numbers)
    return f"block{'s' if len(ordered) > 1 else ''} {', '.join(map(str, ordered))}"
