"""The closing summary comes from a child: whatever its fate, the session ends as it should."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Iterator

import pytest

from fixtures import display
from fixtures.kernel.signals import STOPPING, heard, listen_no_more
from fixtures.terms import USAGE


@pytest.fixture(autouse=True)
def signals_as_they_were() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in STOPPING}
    listen_no_more()  # as at the end of a session
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_text_and_status_come_back_whole() -> None:
    text = "ü " * 1_000_000  # more than a pipe holds
    assert display.apart(lambda: (text, 3)) == (text, 3)


@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_ends_the_summary_and_not_the_session(number: int) -> None:
    def stopped() -> tuple[str, int]:
        parent = os.getppid()
        while True:
            os.kill(parent, number)
            time.sleep(0.01)

    text, status = display.apart(stopped)
    assert (text.startswith("No verdict: "), status) == (True, USAGE)
    assert signal.getsignal(number) is heard


def test_work_without_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "CLOSING_CPU_S", 0.2)

    def endless() -> tuple[str, int]:
        while True:
            pass

    text, status = display.apart(endless)
    assert ("0.2 s of CPU time" in text, status) == (True, USAGE)


def too_little_memory() -> tuple[str, int]:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
    return str(bytearray(1 << 30)), 0


def killed() -> tuple[str, int]:
    os.kill(os.getpid(), signal.SIGKILL)
    return "never", 0


def an_error_that_cannot_be_said() -> tuple[str, int]:
    return "x", object()  # type: ignore[return-value]


@pytest.mark.parametrize("work", [too_little_memory, killed, an_error_that_cannot_be_said])
def test_whatever_the_child_dies_of_is_said(work: object) -> None:
    text, status = display.apart(work)  # type: ignore[arg-type]
    assert (text.startswith("No verdict: "), "Traceback" in text, status) == (True, False, USAGE)
