"""How many SMs a GPU has and what fits on one, by its name: NVIDIA's data sheets, and its table of compute capabilities.

A name that several chips share, a MIG instance (a part of a chip) and one that is not in the list give no number, and say why.
"""

from __future__ import annotations

import re

from .terms import Chip

# Name, SMs, warps an SM holds at most, blocks an SM holds at most. The first that matches.
KNOWN: tuple[tuple[str, int, int, int], ...] = (
    (r"V100", 80, 64, 32),
    (r"\bT4\b", 40, 32, 16),
    (r"A100|A800", 108, 64, 32),
    (r"\bA30\b", 56, 64, 32),
    (r"\bA40\b", 84, 48, 16),
    (r"\bA10\b", 72, 48, 16),
    (r"\bL4\b", 58, 48, 24),
    (r"\bL40S?\b", 142, 48, 24),
    (r"GH200|H200", 132, 64, 32),
    (r"H100.*PCIe", 114, 64, 32),
    (r"H100.*(HBM3|NVL|SXM)", 132, 64, 32),
    (r"\bB200\b", 148, 64, 32),
)
HOW = "say how many with --sms"


def chip_of(name: str | None, sms: int | None = None) -> Chip:
    """Find a GPU by its name; `sms` is what the user said, who knows better."""
    known = next(((number, warps, blocks) for pattern, number, warps, blocks in KNOWN if re.search(pattern, name or "")), None)
    if sms is not None:
        warps, fits = known[1:] if known else (None, None)
        return Chip(name, sms, warps, fits, source="as --sms says")
    if name is None:
        return Chip(missing=f"no log names the GPU; {HOW}")
    if "MIG" in name:
        return Chip(name, missing=f"{name} is a part of a chip; {HOW}")
    if known is None:
        two = ": an H100 has 132 or 114" if "H100" in name else ""
        return Chip(name, missing=f"how many SMs {name} has is not known here{two}; {HOW}")
    count, warps, fits = known
    return Chip(name, count, warps, fits, source="by its name")
