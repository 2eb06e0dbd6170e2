"""Names of workloads as both sides show them."""

from __future__ import annotations

import re
from collections.abc import Sequence

DIGEST = re.compile(r"(?<=[^=])-[0-9a-f]{12}(?=:|$)")  # of a file, at the end of a parameter


def undigested(workload: str) -> str:
    """Return a workload's name without digests of files; for a command, its own name."""
    return DIGEST.sub("", workload).removeprefix("command:run=")


def first_few(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """Join the first names, and count the rest: `a, b and 3 more`."""
    shown = separator.join(names[:most])
    if len(names) <= most:
        return shown
    return f"{shown}{';' if separator == '; ' else ''} and {len(names) - most} more"
