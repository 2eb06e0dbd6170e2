"""Mark the end of a step: `from deeptweak.steps import step`, and call `step()` after each."""

from __future__ import annotations

import os
import socket
import time

VARIABLE = "DEEPTWEAK_STEPS"  # the listener's abstract socket address
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
_listener: socket.socket | None = None


def step(samples: int | None = None) -> None:
    """Mark the end of a step of this many samples (default: `deeptweak run --samples`)."""
    global _listener  # noqa: PLW0603 connected at the first call
    name = os.environ.get(VARIABLE)
    if not name or any(os.environ.get(rank, "0") != "0" for rank in RANKS):
        return
    now_s = time.clock_gettime(time.CLOCK_MONOTONIC)
    try:
        if _listener is None:
            _listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            _listener.connect(f"\0{name}")
        _listener.send(f"{now_s!r} {samples or 0}".encode())
    except OSError:  # nobody listens any more: the script goes on
        os.environ.pop(VARIABLE, None)
