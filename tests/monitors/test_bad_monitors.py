"""A monitor that is not what it should be: its cell fails with a sentence that says so, and nothing of it is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.studies.monitors import attend, beside
from tests.monitors.made_up import BESIDE, INSIDE, gone, says, shell

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.monitors.made_up import Made

    Make = Callable[[str], Made]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second is long enough for a monitor that will never stop."""
    monkeypatch.setattr(beside, "STOPPED_WITHIN_S", 0.5)


def test_a_program_that_is_not_there_is_said_to_be_so(made: Make) -> None:
    found = made(BESIDE + "def command(self, pid, folder): return ['no-such-program']\n")
    assert found.run().error == "Monitor made_up could not be started: no-such-program: No such file or directory."
    assert gone(found)


def test_what_a_monitor_without_rights_says_last_is_told(made: Make) -> None:
    """It ends at once, with a word on stderr, before it was ever at work."""
    found = made(shell("echo 'perf_event_open: Permission denied' >&2; exit 3") + says("at work"))
    assert found.run().error == "Monitor made_up ended with exit code 3 before it was at work: perf_event_open: Permission denied."
    assert gone(found)


def test_one_that_never_begins_to_watch_is_not_waited_for(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first word is there when it is looked at."""
    monkeypatch.setattr(beside, "STARTED_WITHIN_S", 0.5)
    never = "import time\ndef watches(self, folder):\n    while not (folder / 'stdout').read_text(): time.sleep(0.01)\n    return False\n"
    found = made(shell("echo warming up; exec sleep 1000") + never)
    run = found.run()
    assert run.error == "Monitor made_up was not seen to be at work 0.5 s after its start: warming up."
    assert run.steps == ()
    assert gone(found)


def test_one_that_dies_while_the_workload_runs_fails_the_cell(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noticed on the way, not only at the end: a thousand steps were asked for. It dies when it is looked at for the first time."""
    monkeypatch.setattr(attend, "_LOOK_EVERY_S", 0.0)
    found = made(shell("while [ ! -e die ]; do sleep 0.01; done; echo broken pipe >&2; exit 5"))
    look = attend.Attended.still_at_work

    def looked(self: attend.Attended, done: float) -> str | None:
        (found.folder / "monitor/die").touch()
        return look(self, done)

    monkeypatch.setattr(attend.Attended, "still_at_work", looked)
    run = found.run(steps=1000)
    assert run.error == "Monitor made_up ended with exit code 5 while the workload ran: broken pipe."
    assert len(run.steps) < 1000
    assert gone(found)


def test_one_that_is_killed_is_found_to_be_at_the_latest_when_it_is_to_stop(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attend, "_LOOK_EVERY_S", 1e9)
    found = made(shell("kill -KILL $$"))
    assert "Monitor made_up died of SIGKILL before " in str(found.run().error)
    assert gone(found)


@pytest.mark.usefixtures("impatient")
def test_one_that_does_not_stop_is_killed(made: Make) -> None:
    found = made(shell("trap '' TERM; echo deaf; while :; do sleep 0.01; done") + says("deaf"))
    assert found.run().error == "Monitor made_up was hung: 0.5 s after SIGTERM it was still there; it was killed."
    assert gone(found)


@pytest.mark.usefixtures("impatient")
def test_one_that_stands_still_is_hung_too(made: Make) -> None:
    """A process that is stopped takes no signal but SIGKILL."""
    assert "was hung" in str(made(shell("kill -STOP $$")).run().error)


def test_a_log_without_end_is_cut_by_the_kernel(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "MOST_BYTES", 1 << 20)
    found = made(shell("exec yes"))
    assert found.run(steps=1000).error == "Monitor made_up wrote more than 1 MiB: it was stopped."
    assert (found.folder / "monitor/stdout").stat().st_size <= 1 << 20
    assert gone(found)


def test_many_files_are_too_much_together(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attend, "MOST_BYTES", 1 << 20)
    found = made(shell("for n in 1 2 3; do head -c 600000 /dev/zero > $n; done; echo on; exec sleep 1000") + says("on"))
    assert "wrote more than" in str(found.run().error)
    assert gone(found)


def test_one_that_ends_badly_when_it_is_stopped_has_no_report(made: Make) -> None:
    found = made(shell("trap 'echo cannot write profile >&2; exit 7' TERM; echo on; while :; do sleep 0.01; done") + says("on"))
    assert found.run().error == "Monitor made_up ended with exit code 7 when it was stopped by SIGTERM: cannot write profile."


COUNTS = "def samples(self, folder): return (folder / 'stdout').read_text().count('table')\n"
TICKS = COUNTS + "def due(self, seconds): return 10 * seconds\n"


def test_one_that_stops_sampling_half_way_was_hung(made: Make) -> None:
    """A table at first and then nothing: of 3 seconds 10 samples a second were due."""
    run = made(shell("echo table; exec sleep 1000") + says("table") + TICKS).run(steps=60, wait_s=0.05)
    assert run.error is not None
    assert run.error.startswith("Monitor made_up was hung: in the second half of the steps (")
    assert run.error.endswith(" samples were due, it took 0.")


def test_one_that_hangs_after_a_flood_of_samples_was_hung_too(made: Make) -> None:
    """Hundreds before it is seen to be at work, more than all that were due."""
    script = "i=0; while [ $i -lt 500 ]; do echo table; i=$((i+1)); done; echo on; exec sleep 1000"
    assert "was hung" in str(made(shell(script) + says("on") + TICKS).run(steps=60, wait_s=0.05).error)


def test_one_that_is_only_slow_was_not(made: Make) -> None:
    """Every 0.05 s of four hundred a second, as on a machine that has no time for it."""
    slow = COUNTS + "def due(self, seconds): return 400 * seconds\n"
    assert made(shell("while :; do echo table; sleep 0.05; done") + says("table") + slow).run(steps=60, wait_s=0.05).error is None


def test_one_that_is_due_too_seldom_cannot_be_judged(made: Make) -> None:
    """One every 3 seconds, in a cell of 3."""
    seldom = COUNTS + "def due(self, seconds): return seconds / 3\n"
    assert made(shell("echo table; exec sleep 1000") + says("table") + seldom).run(steps=60, wait_s=0.05).error is None


def test_one_that_lost_its_report_fails_the_cell(made: Make) -> None:
    """It ends well, and what it wrote has no number of samples in it."""
    run = made(shell("exec sleep 1000") + "def samples(self, folder): return None\n").run()
    assert run.error == "Monitor made_up lost its report: how many samples it took is not in what it wrote; is the disk full?"


@pytest.mark.parametrize(("sample", "hung"), [("taken = told", True), ("taken = {}", False)])
def test_one_inside_tells_when_its_last_sample_was(made: Make, sample: str, hung: bool) -> None:  # noqa: FBT001 a case
    """Many samples, all of them at once or to the end."""
    source = f"""
import time
@contextmanager
def inside(self, folder):
    told = {{"samples": 1000, "last_sample_s": time.monotonic()}}
    {sample}
    yield told
    taken["last_sample_s"] = taken.get("last_sample_s", time.monotonic())
    told |= taken
def due(self, seconds): return 10 * seconds
"""
    run = made(INSIDE + source).run(steps=60, wait_s=0.05)
    assert ("was hung" in str(run.error)) == hung
    assert run.monitor is not None
    assert "last_sample_s" not in run.monitor["told"]  # type: ignore[operator]


def test_when_the_workload_dies_its_monitor_goes_too(made: Make) -> None:
    """No step for a second: the workload is given up, and what is beside it ended."""
    found = made(shell("exec sleep 1000"))
    assert "Hung" in str(found.run(wait_s=9, step_timeout_s=0.3).error)
    assert gone(found)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "@contextmanager\ndef inside(self, folder):\n    raise OSError('no such device')\n    yield {}\n",
            "could not be started: no such device.",
        ),
        (
            "@contextmanager\ndef inside(self, folder):\n    yield {}\n    raise ValueError('its trace is broken')\n",
            "failed: its trace is broken.",
        ),
        ("def inside(self, folder): return 1 / 0\n", "could not be started: division by zero."),
    ],
)
def test_one_inside_the_workload_that_fails_is_told_from_the_workload(made: Make, source: str, said: str) -> None:
    assert made(INSIDE + source).run().error == f"Monitor made_up {said}"


def test_one_around_the_workload_that_is_not_there(made: Make) -> None:
    run = made('kind = "around"\ndef around(self, folder): return ["no-such-profiler"]\n').run()
    assert run.error == "Cannot start 'no-such-profiler': there is no such program."
