"""Tests of the real kernel, one process at a time: they hold the very lock that a run on this machine holds."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import pytest

from fixtures.node import lock
from fixtures.node.journal import ROOT_STATE_DIR
from fixtures.node.tunables import Tunables, diff
from fixtures.terms import MachineHeld

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_S = 600


@contextlib.contextmanager
def kernel_held(patience_s: float = PATIENCE_S) -> Iterator[None]:
    """The lock of every run that changes this kernel; waits for a run that is going on. Raises: MachineHeld, if that takes longer."""
    deadline = time.monotonic() + patience_s
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(lock.held(ROOT_STATE_DIR))
                break
            except MachineHeld:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
        yield


@pytest.fixture(scope="module")
def kernel_lock() -> Iterator[None]:
    """The kernel of this machine, held for a file of tests."""
    with kernel_held():
        yield


@pytest.fixture
def kernel_unchanged(kernel_lock: None) -> Iterator[None]:  # noqa: ARG001 nobody else may change it meanwhile
    """Whatever the test does, the machine is afterwards as it was."""
    before = Tunables().snapshot()
    yield
    assert diff(before, Tunables().snapshot()) == {}
