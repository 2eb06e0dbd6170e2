"""Python programs that take the place of others, on PATH for one, or that a test runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HOUSE = Path(__file__).parents[1]
# What stands after `#!` is cut at its first blank, and this Python may lie in a folder with one.
# The second line starts it for a shell and is a string to Python.
PYTHON = f"#!/bin/sh\n''''exec '{sys.executable}' \"$0\" \"$@\" # '''\n"


def python(
    code: str,
    *arguments: str,
    before: Sequence[str] = (),
    told: str | None = None,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run a program that imports from the house: `before` precedes its command, `told` is stdin."""
    command = [*before, sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command,
        cwd=HOUSE,
        env={**os.environ, **environment},
        input=told,
        capture_output=True,
        text=True,
        check=False,
    )
