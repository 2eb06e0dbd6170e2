"""Commands that really run: their steps, their ends, and that nothing of them is left."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.kernel import cgroups
from fixtures.process.proc import disband
from fixtures.studies.command import spec as command
from fixtures.studies.command.running import CommandSteps, Running, clock_s, watched, whole
from fixtures.terms import Refused
from tests.waiting import doomed, state, until

HERE = command.Command("c", ("true",), "/", {}, command.RUNS, None, 3, 1, timeout_s=20.0)


def sh(script: str, **how: Any) -> command.Command:
    """A command of the shell."""
    return replace(HERE, program=("sh", "-c", script), **how)


def python(script: str, **how: Any) -> command.Command:
    return replace(HERE, program=(sys.executable, "-c", script), **how)


def alive(word: str) -> list[str]:
    """Processes that have a word in their command line."""
    return [
        pid
        for pid in filter(str.isdecimal, os.listdir("/proc"))  # noqa: PTH208 names
        if word.encode() in _line(pid)
    ]


def _line(pid: str) -> bytes:
    try:
        return Path("/proc", pid, "cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("seconds", [0.01, 0.05, 0.2])
def test_a_run_is_never_shorter_than_what_it_slept(tmp_path: Path, seconds: float) -> None:
    """Its clock starts before its program is loaded; what it takes us to start it stands beside."""
    runs = [whole(replace(HERE, program=("sleep", str(seconds))), tmp_path) for _ in range(20)]
    assert all(seconds <= run.wall_s < 5 for run in runs)
    assert all(run.spawn_s > 0 for run in runs)
    assert runs[0].samples == 1


def test_a_run_is_what_its_figure_says(tmp_path: Path) -> None:
    assert whole(
        sh("echo took 250 ms", pattern=r"took (?P<ms>\d+) ms"), tmp_path
    ).wall_s == pytest.approx(0.25)


def test_the_last_figure_of_a_file_that_it_writes_counts(tmp_path: Path) -> None:
    wanted = sh(
        "echo rate 4 > out.txt",
        pattern=r"rate (?P<rate>\d+)",
        folder=str(tmp_path),
        output="out.txt",
    )
    run = whole(wanted, tmp_path)
    assert run.rate_per_s == 4


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (replace(HERE, program=("no-such-program",)), "Cannot start no-such-program"),
        (replace(HERE, folder="/no/such/folder"), "Cannot start true in /no/such/folder"),
        (sh("echo bad luck >&2; exit 3"), "ended with exit code 3.*bad luck"),
        (sh("kill -9 $$"), "died of SIGKILL"),
        (sh("sleep 60", timeout_s=0.2), "did not end in 0.2 s"),
        (
            sh("while true; do echo more; sleep 0.01; done", timeout_s=0.2),
            "did not end in 0.2 s.*more",
        ),
        (sh("echo nothing", pattern="took ([0-9.]+)"), "Nothing that the command printed matches"),
        (sh("true", pattern="x", output="missing.txt"), "missing.txt"),
    ],
)
def test_a_run_that_is_worth_nothing_says_why(
    wanted: command.Command, why: str, tmp_path: Path
) -> None:
    with pytest.raises(Refused, match=why):
        whole(wanted, tmp_path)


def test_what_it_leaves_in_the_background_is_ended_with_it(tmp_path: Path) -> None:
    word = f"987.{os.getpid()}"
    whole(sh(f"setsid sleep {word} & sleep 0.05"), tmp_path)
    until(lambda: not alive(word), "its child goes on")


def test_what_has_cleared_its_environment_is_ended_too(tmp_path: Path) -> None:
    word = f"986.{os.getpid()}"
    whole(sh(f"env -i setsid -f sleep {word}; sleep 0.05"), tmp_path)
    until(lambda: not alive(word), "its daemon goes on")


@pytest.mark.needs("root", "cgroups")
@pytest.mark.parametrize(
    "how", ["env -i", "su - -s /bin/sh nobody -c", "env -i setsid -f"], ids=["env", "su", "daemon"]
)
def test_a_new_environment_does_not_outlive_a_killed_run(how: str, tmp_path: Path) -> None:
    """As with `sudo` and `su -`: the killed process's children are found by their control group."""
    word = f"985.{os.getpid()}"
    line = f"sleep {word}" if how.startswith("env") else f"'sleep {word}'"
    script = """
import sys
from pathlib import Path
from fixtures.studies.command.running import watched, whole
from tests.command.test_running import sh
with watched() as variables:
    print(flush=True)
    whole(sh(sys.argv[2]), Path(sys.argv[1]), variables)
"""
    with doomed(script, str(tmp_path), f"{how} {line}; sleep 600") as (pid,):
        until(
            lambda: b"sleep" in b"".join(_line(pid)[:5] for pid in alive(word)), "it does not start"
        )
        entered = (
            Path(f"/proc/{pid}/cgroup").read_text().partition("/deeptweak-command-")[2].split()[0]
        )
    until(lambda: not alive(word), "it goes on")
    until(lambda: not list(Path("/sys/fs/cgroup").rglob(f"*{entered}")), "its group stays")


@pytest.mark.needs("root", "cgroups")
@pytest.mark.parametrize("goes_back", [True, False])
def test_who_starts_commands_shares_their_group_and_outlives_it(
    tmp_path: Path, *, goes_back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watcher kills what is in it at its end, and not who started the command."""
    own = Path("/proc/self/cgroup").read_text()
    group = cgroups.below("mark")
    assert group
    with watched() as variables:
        assert "/deeptweak-command-" in Path("/proc/self/cgroup").read_text()
        whole(sh("cat /proc/self/cgroup > seen", folder=str(tmp_path)), tmp_path, variables)
        assert (tmp_path / "seen").read_text() == Path("/proc/self/cgroup").read_text()
        if not goes_back:
            monkeypatch.setattr(cgroups, "enter", lambda _: None)
    monkeypatch.undo()
    entered = Path("/proc/self/cgroup").read_text()
    assert (entered == own) is goes_back
    cgroups.enter(group.parent)
    if not goes_back:
        disband(
            group.with_name(
                "deeptweak-command-" + entered.partition("/deeptweak-command-")[2].split()[0]
            )
        )


def test_of_a_flood_nothing_is_lost(tmp_path: Path) -> None:
    script = (
        "for i in range(40_000): print(f'step {i // 100}', flush=i % 50 == 0)\nprint('the end'); "
        "raise SystemExit(3)"
    )
    wanted = python(script, kind=command.LINES, pattern=r"^step (\d+)")
    with Running(wanted, os.environ, tmp_path) as running:
        texts = "\n".join(
            event.text or "" for event in running.events(lambda: running.began_s + 60)
        )
        assert texts.split("\n") == [*(f"step {i // 100}" for i in range(40_000)), "the end"]
        assert (
            running.exit_problem()
            == f"{sys.executable} ended with exit code 3; last line: 'the end'."
        )


def test_calls_beside_a_flood_of_output_all_arrive(tmp_path: Path) -> None:
    script = (
        "from deeptweak.steps import step\nfor i in range(400): print('x' * 50, flush=True); "
        "step(samples=i + 1)"
    )
    wanted = python(script, kind=command.CALLS)
    with Running(wanted, os.environ, tmp_path) as running:
        events = running.events(lambda: running.began_s + 60)
        assert [event.samples for event in events if event.text is None] == [*range(1, 401)]


def test_the_last_words_of_a_run_that_is_only_timed_are_known(tmp_path: Path) -> None:
    """Its lines are not looked at one by one, which would take the time that is measured."""
    with pytest.raises(Refused, match=r"died of signal 40; last line: 'the end'"):
        whole(sh("yes | head -n 100000; echo the end; kill -40 $$"), tmp_path)


@pytest.mark.parametrize("name", ["missing", "/dev/zero"])
def test_a_figure_is_read_from_a_file_alone(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused, match="did not write this file"):
        whole(replace(sh("true"), pattern=r"(?P<s>\d+)", output=name), tmp_path)


def test_steps_are_the_seconds_of_its_lines(tmp_path: Path) -> None:
    script = "for i in range(5): print(f'step {i} took 0.{i + 1} s', flush=True)"
    with Running(
        python(script, kind=command.LINES, pattern=r"took ([\d.]+) s"), os.environ, tmp_path
    ) as running:
        steps = CommandSteps(running._spec, running)
        assert [steps.next()[0].wall_s for _ in range(5)] == pytest.approx(
            [0.1, 0.2, 0.3, 0.4, 0.5]
        )
        with pytest.raises(Refused, match=r"The command ended.*took 0\.5 s"):
            steps.next()


def test_steps_are_told_by_calls_with_their_samples(tmp_path: Path) -> None:
    """`deeptweak.steps` can be imported, and the rest of the house is not on its path."""
    script = (
        "import os, time; from deeptweak.steps import step\n"
        "for i in range(4): time.sleep(0.05); step(samples=8)\n"
        "raise SystemExit(sorted(os.listdir(os.environ['PYTHONPATH'])))"
    )
    with Running(
        python(script, kind=command.CALLS), {**os.environ, "PYTHONPATH": ""}, tmp_path
    ) as running:
        steps = CommandSteps(running._spec, running)
        found = [steps.next() for _ in range(3)]
        assert [samples for _, samples in found] == [8, 8, 8]
        assert all(0.05 <= step.wall_s < 2 for step, _ in found)
        with pytest.raises(Refused, match=r"ended with exit code 1; last line: .*\['deeptweak'\]"):
            steps.next()


CALLS = "import time; from deeptweak.steps import step\nwhile True: time.sleep(0.02); step()"
LINES = (
    "import time\nwhile True: t = time.monotonic(); time.sleep(0.02); print(f'took "
    "{time.monotonic() - t:.4f}', flush=True)"
)
STOOD_S = 1.0  # fifty times what a step takes


@pytest.mark.parametrize(
    "wanted",
    [
        python(CALLS, kind=command.CALLS),
        python(LINES, kind=command.LINES, pattern=r"took ([\d.]+)"),
    ],
)
def test_no_step_holds_time_in_which_its_command_stood_still(
    wanted: command.Command, tmp_path: Path
) -> None:
    """Not even the one that was under way, whoever times it."""
    with Running(wanted, os.environ, tmp_path) as running:
        steps = CommandSteps(wanted, running)
        steps.next()
        steps.pause()
        until(lambda: state(running.process.pid) == "T", "it goes on")
        time.sleep(STOOD_S)
        steps.go_on()
        assert all(steps.next()[0].wall_s < STOOD_S for _ in range(3))


def test_a_call_from_before_a_pause_ends_no_step_after_it(tmp_path: Path) -> None:
    """With steps of microseconds, calls wait for room in the socket while the command stands."""
    wanted = python(CALLS.replace("time.sleep(0.02); ", ""), kind=command.CALLS)
    with Running(wanted, os.environ, tmp_path) as running:
        steps = CommandSteps(wanted, running)
        for _ in range(20):
            steps.next()
            time.sleep(0.005)  # the socket fills up
            steps.pause()
            until(lambda: state(running.process.pid) == "T", "it goes on")
            resumed_s = clock_s()
            steps.go_on()
            step = steps.next()[0]
            assert step.at_s - step.wall_s >= resumed_s


def test_lines_that_were_kept_back_tell_no_steps(tmp_path: Path) -> None:
    wanted = python("print('step\\n' * 200)", kind=command.LINES, pattern="^step")
    with Running(wanted, os.environ, tmp_path) as running:
        steps = CommandSteps(wanted, running)
        with pytest.raises(Refused, match=r"200 of its lines arrived together"):
            steps.next()
