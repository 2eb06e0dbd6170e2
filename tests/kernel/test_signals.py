"""Ctrl-C and its like wait while the machine is half changed."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.kernel.signals import STOPPING, shielded, stop_if_asked, stop_like_ctrl_c
from fixtures.kernel.tunables import Tunables
from fixtures.targets import _process
from fixtures.terms import Order
from fixtures.workloads import load
from tests.fake_root import FakeRoot, writes
from tests.programs import python

SWAPPINESS, RATIO = "/proc/sys/vm/swappiness", "/proc/sys/vm/dirty_ratio"


def in_child(work: Callable[[], int]) -> int:
    """Run `work` in a child of its own, so that a signal hits nothing else.

    Returns: its status; -n if killed by signal n.
    """
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = work()
        except KeyboardInterrupt:
            code = 42
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def signalled_writes(number: int) -> None:
    """Every write of a setting is followed by the signal, really sent."""
    write = Tunables.write

    def noisy(self: Tunables, path: str, value: str | None) -> None:
        write(self, path, value)
        os.kill(os.getpid(), number)

    Tunables.write = noisy  # type: ignore[method-assign] # in a child that ends with it


@pytest.mark.parametrize("number", STOPPING)
@pytest.mark.parametrize("like_ctrl_c", [True, False])
def test_a_signal_during_apply_waits_and_the_machine_is_put_back(
    fake: FakeRoot, number: signal.Signals, *, like_ctrl_c: bool
) -> None:
    """All settings are written, read back and restored; then the signal raises or kills."""

    def work() -> int:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if like_ctrl_c:
            stop_like_ctrl_c()
        signalled_writes(number)
        fake.machine().apply("x", writes([(SWAPPINESS, "10"), (RATIO, "5")]))
        return 0

    expected = 42 if like_ctrl_c or number == signal.SIGINT else -number
    assert in_child(work) == expected
    fake.must_be_as_found()


@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_during_restore_waits_until_all_is_back(
    fake: FakeRoot, number: signal.Signals
) -> None:
    fake.machine().apply("x", writes([(SWAPPINESS, "10"), (RATIO, "5")]))

    def work() -> int:
        stop_like_ctrl_c()
        signalled_writes(number)
        fake.machine().restore()
        return 0

    assert in_child(work) == 42
    fake.must_be_as_found()


def test_a_script_is_not_cut_off_by_a_signal_to_us(fake: FakeRoot) -> None:
    script = fake.script(
        "apply", f"kill -TERM {'$PPID'}; sleep 0.05; echo 1 > $ROOT{SWAPPINESS}; touch $ROOT/done"
    )

    def work() -> int:
        stop_like_ctrl_c()
        fake.machine().apply("x", [], [script])
        return 0

    assert in_child(work) == 42
    assert fake.get("/done") == ""
    fake.put("/done", None)
    fake.must_be_as_found()


def test_what_nohup_ignores_stays_ignored(fake: FakeRoot) -> None:
    def work() -> int:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        stop_like_ctrl_c()
        with shielded():
            os.kill(os.getpid(), signal.SIGHUP)
        fake.machine().apply("x", writes([(SWAPPINESS, "10")]))
        os.kill(os.getpid(), signal.SIGHUP)
        return 7 if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else 8

    assert in_child(work) == 7
    assert fake.wrong() == {SWAPPINESS: "10"}


def test_an_ignored_signal_during_apply_changes_nothing(fake: FakeRoot) -> None:
    def work() -> int:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signalled_writes(signal.SIGHUP)
        fake.machine().apply("x", writes([(SWAPPINESS, "10")]))
        return 7

    assert in_child(work) == 7
    assert fake.wrong() == {SWAPPINESS: "10"}


def test_handlers_are_as_before_afterwards() -> None:
    before = [signal.getsignal(number) for number in STOPPING]
    with shielded(), shielded():
        assert all(signal.getsignal(number) not in before for number in STOPPING)
    assert [signal.getsignal(number) for number in STOPPING] == before
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()


def test_an_inner_shield_hands_the_signal_to_the_outer_one() -> None:
    reached = []
    with pytest.raises(KeyboardInterrupt), shielded() as waiting:  # noqa: PT012 its order counts
        with shielded():
            os.kill(os.getpid(), signal.SIGINT)
        reached.append(list(waiting))
    assert reached == [[signal.SIGINT]]


def test_scripts_inherit_no_blocked_signal(fake: FakeRoot) -> None:
    fake.machine().apply(
        "x",
        [],
        [
            fake.script("apply", "grep -E 'Sig(Blk|Ign)' /proc/self/status > $ROOT/mask"),
            fake.script("apply_check", "true"),
        ],
    )
    masks = [int(line.split()[1], 16) for line in (fake.get("/mask") or "").splitlines()]
    assert [mask >> (number - 1) & 1 for mask in masks for number in STOPPING] == [0] * 6


def test_in_another_thread_it_is_no_shield_and_no_error() -> None:
    seen: list[object] = []

    def work() -> None:
        with shielded() as waiting:
            seen.append(waiting)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [[]]


TWO_AT_ONCE = """
import os, signal, sys
from fixtures.kernel.signals import STOPPING, shielded, stop_like_ctrl_c
from fixtures.workloads import load
two = [signal.Signals(int(number)) for number in sys.argv[1:]]
stop_like_ctrl_c()
signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
for number in two:
    os.kill(os.getpid(), number)
try:
    # The kernel delivers both before Python can handle one.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
except KeyboardInterrupt as stopped:
    with shielded() as waiting:
        os.kill(os.getpid(), two[0])
        print(stopped, waiting, flush=True)
"""


@pytest.mark.parametrize("two", list(itertools.permutations(STOPPING, 2)))
def test_two_signals_at_once_stop_it_once_and_print_no_traceback(
    two: tuple[signal.Signals, signal.Signals],
) -> None:
    """Ctrl-C in a closing terminal, or a group's and a controller's signal; no third is awaited."""
    numbers = [str(int(number)) for number in two]
    done = python(TWO_AT_ONCE, *numbers)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in {f"{number.name} []\n" for number in two}


def test_a_signal_while_a_workload_is_started_ends_the_run(tmp_path: Path) -> None:
    """Python ignores exceptions from a handler during fork: the run went on, deaf to signals.

    The workload is gone too.
    """

    def work() -> int:
        stop_like_ctrl_c()
        os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGTERM))
        order = Order(load("idle"), 1, 0, 1, tmp_path / "scratch", start_timeout_s=5)
        _process.run(order, program=("sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 100"))
        return 0

    assert in_child(work) == 42
    started = (tmp_path / "pid").read_text() if (tmp_path / "pid").exists() else ""
    assert not started or not Path(f"/proc/{started.strip()}").exists()


def test_a_signal_python_ignored_ends_the_run_at_the_next_cell() -> None:
    class Noisy:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    def work() -> int:
        stop_like_ctrl_c()
        stop_if_asked()
        noisy = Noisy()
        del noisy
        stop_if_asked()
        return 0

    assert in_child(work) == 42
