"""A child is heard in time, and neither our end nor its own leaves anything of it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from subprocess import PIPE

import pytest

from fixtures.process import child, proc
from fixtures.process.child import Child, ask
from fixtures.process.parent import fork
from tests.waiting import PATIENCE_S, alive, doomed, until

ECHO = [
    sys.executable,
    "-c",
    "import sys; [print(line, end='', flush=True) for line in sys.stdin]; sys.exit('no more')",
]


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


def test_it_answers_in_lines_of_json_and_its_last_words_are_kept() -> None:
    with Child(ECHO, stdin=PIPE, stdout=PIPE, log=True) as echo:
        echo.send(number=1)
        echo.send(number=2)
        assert [echo.receive(PATIENCE_S) for _ in range(2)] == [{"number": 1}, {"number": 2}]
        with pytest.raises(TimeoutError):
            echo.receive(0.01)
        assert echo.ended() is None
        assert echo.stdin
        echo.stdin.close()
        with pytest.raises(EOFError):
            echo.receive(PATIENCE_S)
        assert echo.ended(PATIENCE_S) == 1
    assert echo.last_words() == ": no more"


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [("exit 3", 3, "ended with exit code 3"), ("kill -9 $$", -9, "died of SIGKILL")],
)
def test_its_end_is_seen_without_giving_its_number_away(script: str, code: int, words: str) -> None:
    with Child(sh(script)) as process:
        assert process.ended(PATIENCE_S) == code
        assert proc.stat(f"/proc/{process.pid}").state == "Z"
    assert process.returncode == code
    assert child.how_it_ended(code) == words


@pytest.mark.parametrize("start", ["sleep 900 &", "setsid sleep 900 &"])
def test_orphans_of_a_child_end_with_it_by_session_or_mark(start: str) -> None:
    with Child(sh(f"{start} echo $!"), stdout=PIPE, mark="DEEPTWEAK_TEST=1") as process:
        pid = int(process.stdout.readline()) if process.stdout else 0
        assert process.ended(PATIENCE_S) == 0
        assert alive(pid)
    until(lambda: not alive(pid))


def test_an_orphan_in_the_middle_of_exec_is_checked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From exec until the new one stands, the kernel shows no environment: here, at first."""
    looks: list[int] = []

    def environment(pid: int) -> bytes:
        looks.extend([pid] * (pid == late))
        return b"" if looks == [pid] else read(pid)

    with Child(sh("setsid sleep 900 & echo $!"), stdout=PIPE, mark="DEEPTWEAK_TEST=2") as process:
        late, read = int(process.stdout.readline()) if process.stdout else 0, proc.environment
        until(lambda: proc.stat(f"/proc/{late}").name == "sleep")
        monkeypatch.setattr(proc, "environment", environment)
    assert len(looks) > 1
    until(lambda: not alive(late))


def test_a_child_started_during_an_interrupt_is_not_left_behind() -> None:
    us, before = os.getpid(), proc.children()
    with pytest.raises(KeyboardInterrupt):
        Child(["sleep", "900"], prepare=lambda: os.kill(us, signal.SIGINT))
    assert proc.children() == before


@pytest.mark.parametrize("start", ["Child(['sleep', '900']).pid", "fork(lambda: time.sleep(900))"])
def test_it_dies_with_us_whatever_we_die_of(start: str) -> None:
    script = (
        "import time; from fixtures.process.child import *; from fixtures.process.parent import "
        f"*; print({start}, flush=True)"
    )
    with doomed(f"{script}; time.sleep(900)") as (_, pid):
        assert alive(pid)
    until(lambda: not alive(pid))


def test_ask_reads_all_output_and_does_not_wait_for_a_daemon() -> None:
    answer = ask(*sh("sleep 900 & cat; echo $! >&2; exit 3"), stdin=b"question\n")
    assert (answer.code, answer.out) == (3, "question\n")
    assert alive(int(answer.last_line))
    os.kill(int(answer.last_line), signal.SIGKILL)


@pytest.mark.parametrize(("work", "code"), [(lambda: None, 0), (lambda: 1 / 0, 1)])
def test_a_copy_of_this_process_ends_after_its_work(work: Callable[[], object], code: int) -> None:
    assert os.waitstatus_to_exitcode(os.waitpid(fork(work), 0)[1]) == code
