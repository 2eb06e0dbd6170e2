"""Names of workloads and CPUs, as both sides print them."""

from __future__ import annotations

import re
from collections.abc import Sequence

DIGEST = re.compile(r"(?<=[^=])-[0-9a-f]{12}(?=:|$)")  # of a file, at the end of a parameter


def undigested(workload: str) -> str:
    """Return a workload's name without file digests; for a command, only its name."""
    return DIGEST.sub("", workload).removeprefix("command:run=")


def cpu_name(name: str, family: object, model: object) -> str:
    """Return a CPU's name, with family and model if the name has no number.

    Hypervisors shorten names: `AMD EPYC` may be Milan (25, 1), Genoa (25, 17) or Turin (26, 2).
    """
    if not name or family is None or model is None or any(map(str.isdigit, name)):
        return name
    return f"{name} (family {family}, model {model})"


def first_few(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """Join the first names, and count the rest: `a, b and 3 more`."""
    shown = separator.join(names[:most])
    if len(names) <= most:
        return shown
    return f"{shown}{';' if separator == '; ' else ''} and {len(names) - most} more"
