"""A limit on the size of files: what a full disk is to a program, without any privilege."""

from __future__ import annotations

import contextlib
import resource
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def file_size_limit(most_bytes: int) -> Iterator[None]:
    """Let this process write no longer file, and no bytecode.

    Of a module's bytecode, Python 3.11 would keep what fits, and each later import would fail
    (`findings/bytecode-kept-cut-off.sh`).
    """
    limits, without_bytecode = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        sys.dont_write_bytecode = without_bytecode
