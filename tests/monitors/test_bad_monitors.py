"""A faulty monitor fails its cell with a sentence on the fault, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from fixtures.monitors import attend, beside
from tests.monitors.made_up import BESIDE, INSIDE, Made, gone, says, shell

if TYPE_CHECKING:
    Make = Callable[[str], Made]


BAD = {
    "not there": (
        BESIDE + "def command(self, pid, folder): return ['no-such-program']\n",
        "could not be started: no-such-program: No such file or directory.",
    ),
    "a last word": (
        shell("echo 'perf_event_open: Permission denied' >&2; exit 3") + says("at work"),
        "ended with exit code 3 before it was at work: perf_event_open: Permission denied.",
    ),
    "deaf": (
        shell("trap '' TERM; echo deaf; while :; do sleep 0.01; done") + says("deaf"),
        "hung: it was killed 0.5 s after SIGTERM.",
    ),
    # A process that is stopped takes no signal but SIGKILL.
    "stopped": (shell("kill -STOP $$"), "hung: it was killed 0.5 s after SIGTERM."),
    "a bad end": (
        shell(
            "trap 'echo cannot write profile >&2; exit 7' TERM; echo on; while :; do sleep 0.01; "
            "done"
        )
        + says("on"),
        "ended with exit code 7 when it was stopped by SIGTERM: cannot write profile.",
    ),
    # It ends well, and what it wrote has no number of samples in it.
    "no report": (
        shell("exec sleep 1000") + "def samples(self, folder): return None\n",
        "lost its report: its output lacks the number of samples; is the disk full?",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_is_wrong_with_it_is_said_in_its_own_words(
    made: Make, bad: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "STOPPED_WITHIN_S", 0.5)
    source, said = BAD[bad]
    found = made(source)
    assert found.run().error == f"Monitor made_up {said}"
    assert gone(found)


def test_one_that_never_begins_to_watch_is_not_waited_for(
    made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first word is there when it is looked at."""
    monkeypatch.setattr(beside, "STARTED_WITHIN_S", 0.5)
    never = (
        "import time\ndef watches(self, folder):\n    while not (folder / 'stdout').read_text(): "
        "time.sleep(0.01)\n    return False\n"
    )
    found = made(shell("echo warming up; exec sleep 1000") + never)
    run = found.run()
    assert run.error == "Monitor made_up was not at work after 0.5 s: warming up."
    assert run.steps == ()
    assert gone(found)


def test_one_that_dies_while_the_workload_runs_fails_the_cell(
    made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noticed on the way, not only at the end: a thousand steps were asked for.

    It dies when it is looked at for the first time.
    """
    monkeypatch.setattr(attend, "_LOOK_EVERY_S", 0.0)
    found = made(shell("while [ ! -e die ]; do sleep 0.01; done; echo broken pipe >&2; exit 5"))
    look = attend.Attended.still_at_work

    def looked(self: attend.Attended) -> str | None:
        (found.folder / "monitor/die").touch()
        return look(self)

    monkeypatch.setattr(attend.Attended, "still_at_work", looked)
    run = found.run(steps=1000)
    assert (
        run.error == "Monitor made_up ended with exit code 5 while the workload ran: broken pipe."
    )
    assert len(run.steps) < 1000
    assert gone(found)


def test_a_log_without_end_is_cut_by_the_kernel(
    made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "MOST_BYTES", 1 << 20)
    found = made(shell("exec yes"))
    assert found.run(steps=1000).error == "Monitor made_up wrote more than 1 MiB and was stopped."
    assert (found.folder / "monitor/stdout").stat().st_size <= 1 << 20
    assert gone(found)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            (
                "@contextmanager\ndef inside(self, folder):\n    raise OSError('no such device')\n"
                "    yield {}\n"
            ),
            "could not be started: no such device.",
        ),
        (
            (
                "@contextmanager\ndef inside(self, folder):\n    yield {}\n    raise "
                "ValueError('its trace is broken')\n"
            ),
            "failed: its trace is broken.",
        ),
        ("def inside(self, folder): return 1 / 0\n", "could not be started: division by zero."),
    ],
)
def test_an_inside_monitor_that_fails_is_named_as_the_cause(
    made: Make, source: str, said: str
) -> None:
    assert made(INSIDE + source).run().error == f"Monitor made_up {said}"


def test_when_the_workload_dies_its_monitor_goes_too(made: Make) -> None:
    """No step for a second: the workload is given up, and what is beside it ended."""
    found = made(shell("exec sleep 1000"))
    assert "Hung" in str(found.run(wait_s=9, step_timeout_s=0.3).error)
    assert gone(found)
