"""Rates as people write them."""

from __future__ import annotations

import pytest

from control import rates


@pytest.mark.parametrize(
    ("rate_per_s", "unit", "text"),
    [
        (104e6, "B", "104 MB/s"),
        (1.2444e9, "B", "1.24 GB/s"),
        (999.6e3, "B", "1.00 MB/s"),
        (12.0, "B", "12.0 B/s"),
        (9.41e9, "bit", "9.41 Gbit/s"),
        (43.59, "requests", "43.6 requests/s"),
        (3123.0, "tokens", "3,120 tokens/s"),
        (0.01234, "steps", "0.0123 steps/s"),
        (2.5e6, "requests", "2.50 M requests/s"),
        (9996.0, "tokens", "10,000 tokens/s"),
        (104e6, "", "104 M/s"),
        (43.6, "", "43.6 /s"),
    ],
)
def test_three_digits_with_the_prefix_that_people_read(
    rate_per_s: float, unit: str, text: str
) -> None:
    assert rates.written(rate_per_s, unit) == text
