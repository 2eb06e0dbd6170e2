"""Let one process at a time test the real kernel, under the lock of runs on this machine."""

from __future__ import annotations

import contextlib
import fcntl
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from fixtures.terms import MachineHeld
from tests.needs import requires
from tests.waiting import HOUSE

PATIENCE_S = 600
QUEUE = Path(tempfile.gettempdir()) / "deeptweak-tests-queue"


_first: list[None] = []  # set while this process is first
_holding: list[None] = []  # set while this process has the kernel


def _lock() -> contextlib.AbstractContextManager[object]:
    from fixtures.kernel import lock, state_dirs

    return lock.held(state_dirs.ROOT_STATE_DIR)


@contextlib.contextmanager
def turn() -> Iterator[None]:
    """Be the first to wait for the kernel: a process that takes it repeatedly would starve others.

    A test that releases a changed kernel stays first until the kernel is as found.
    """
    if _first:
        yield
        return
    with QUEUE.open("w") as queue:
        fcntl.flock(queue, fcntl.LOCK_EX)
        _first.append(None)
        try:
            yield
        finally:
            _first.clear()


@contextlib.contextmanager
def kernel_held(patience_s: float = PATIENCE_S) -> Iterator[None]:
    """The lock of every run that changes this kernel; waits for a run that is going on.

    Raises: MachineHeld, if that takes longer.
    """
    if _holding:
        yield
        return
    with contextlib.ExitStack() as stack:
        with turn():
            deadline = time.monotonic() + patience_s
            while True:
                try:
                    stack.enter_context(_lock())
                    break
                except MachineHeld:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)
        _holding.append(None)
        stack.callback(_holding.clear)
        yield


def holder() -> str:
    """Return the holder of the lock, or an empty text."""
    try:
        with _lock():
            return ""
    except MachineHeld as error:
        return str(error)


@pytest.fixture(scope="module")
@requires("kernel")
def kernel_lock() -> Iterator[None]:
    """Hold this machine's kernel for a file of tests, where a fixture of the file needs it too."""
    with kernel_held():
        yield


@pytest.fixture
@requires("kernel")
def kernel_unchanged() -> Iterator[None]:
    """Hold this machine's kernel for one test, and check that the test leaves it as found."""
    from fixtures.kernel.tunables import Tunables, diff

    with kernel_held():
        before = Tunables().snapshot()
        yield
        assert diff(before, Tunables().snapshot()) == {}


@cache
def takes_turns(module: str) -> bool:
    """Return whether a file's text shows that its tests hold the kernel; xdist has only names."""
    return "kernel_unchanged" in (text := Path(HOUSE, module).read_text()) or "kernel_lock" in text
