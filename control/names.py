"""Names of workloads as both sides show them."""

from __future__ import annotations

import re

DIGEST = re.compile(r"(?<=[^=])-[0-9a-f]{12}(?=:|$)")  # of a file, at the end of a parameter


def undigested(workload: str) -> str:
    """A workload's name without the digests of files, which only tell versions of them apart."""
    return DIGEST.sub("", workload)
