"""Programs written in Python that take the place of others, on PATH for one."""

from __future__ import annotations

import sys

# What stands after `#!` is cut at its first blank, and this Python may lie in a folder with one. The second line starts it for a shell
# and is a string to Python.
PYTHON = f"#!/bin/sh\n''''exec '{sys.executable}' \"$0\" \"$@\" # '''\n"
