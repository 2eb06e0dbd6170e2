"""How overheads are written: a profiler's 60 % and a sampler's 0.1 % stand in one table, and both must be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.wording import LARGEST

if TYPE_CHECKING:
    from .terms import Figure

FINE = 0.10  # below it two decimals


def amount(figure: Figure) -> str:
    """Write an overhead: `+0.12 %`, `+60.3 %`."""
    return f"{_number(figure.value, _decimals(figure))} %"


def ends(figure: Figure) -> str:
    """Write its interval: `[-0.04, +0.43]`."""
    decimals = _decimals(figure)
    return f"[{_number(figure.low, decimals)}, {_number(figure.high, decimals)}]"


def whole(figure: Figure | None) -> str:
    """Write both for a column whose head says percent: `+0.12 [-0.04, 0.43]`; nothing, where there is none."""
    return "" if figure is None else f"{amount(figure).removesuffix(' %')} {ends(figure).replace('+', '')}"


def shown(figure: Figure) -> str:
    """Write an overhead with its interval and how many blocks it is of."""
    return f"{amount(figure)} {ends(figure)}, n {figure.n}"


def signed(fraction: float) -> str:
    """Write an overhead that has no interval of its own here: `+0.12 %`."""
    return f"{_number(fraction, 2 if abs(fraction) < FINE else 1)} %"


def _decimals(figure: Figure) -> int:
    return 2 if max(abs(figure.value), abs(figure.low), abs(figure.high)) < FINE else 1


def _number(fraction: float, decimals: int) -> str:
    if abs(fraction) >= LARGEST:
        return f"{fraction * 100:+.1e}"
    return f"{round(fraction * 100, decimals) + 0.0:+.{decimals}f}"
