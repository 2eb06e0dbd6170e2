"""Format rates for users: `104 MB/s`, `43.6 requests/s`, `3,120 tokens/s`."""

from __future__ import annotations

import math

# Units that take a prefix: kB, Gbit, TFLOP; other units are words.
SYMBOLS = frozenset({"B", "bit", "FLOP"})
PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
WORDS_FROM = 1e6  # below that a word's rate is written out: 3,120 tokens/s
DIGITS = 3


def scale_of(rate_per_s: float, unit: str) -> tuple[float, str]:
    """Return the factor and the unit with which to write a rate of `unit` per second."""
    rounded = _rounded(rate_per_s)
    least = 0.0 if unit in SYMBOLS else WORDS_FROM
    prefixes = (entry for entry in PREFIXES if entry[0] >= least and entry[0] <= rounded)
    size, prefix = next(prefixes, (1.0, ""))
    blank = " " if prefix and unit and unit not in SYMBOLS else ""
    return 1 / size, f"{prefix}{blank}{unit}/s"


def written(rate_per_s: float, unit: str) -> str:
    """Format a rate with three significant digits."""
    scale, name = scale_of(rate_per_s, unit)
    value = _rounded(rate_per_s * scale)
    decimals = DIGITS - 1 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:,.{max(0, decimals)}f} {name}"


def _rounded(value: float) -> float:
    """Round to three significant digits, so that 999.6 kB/s becomes 1.00 MB/s."""
    return float(f"{value:.{DIGITS}g}")
