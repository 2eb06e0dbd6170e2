"""A run stopped in any way leaves the machine as it was, or the means to make it so."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from tests import waiting
from tests.sessions import (
    Done,
    Place,
    another_swappiness,
    caught,
    ctrl_c,
    swappiness,
    terminate,
    until,
    workload_of,
)
from tests.test_session import SCHEMA

if TYPE_CHECKING:
    import subprocess


pytestmark = pytest.mark.usefixtures("kernel_unchanged")


ENDLESS = 1_000_000  # steps of a workload that is killed


def options(place: Place, value: int) -> tuple[str, ...]:
    """Six cells, two of them with another swappiness: the second and the fourth."""
    typed = place.manifest("typed", sysctl=f"vm.swappiness = {value}")
    return (f"--tweaks={typed}", "--blocks=2", "--steps=50", "--seed=3", "--benchmark-save=one")


@contextlib.contextmanager
def in_the_middle(
    place: Place, value: int, *more: str, finished: int = 1
) -> Iterator[subprocess.Popen[str]]:
    """Hold a session still for the block, with its setting in force after `finished` cells."""
    process = place.start(*options(place, value), *more)
    with caught(
        lambda: (
            swappiness() == value
            and len(place.finished()) >= finished
            and workload_of(process) is not None
        ),
        process,
    ):
        yield process


def ctrl_c_twice(process: subprocess.Popen[str]) -> None:
    """Somebody is impatient: once more while the machine is put back, or just has been."""
    value = swappiness()
    ctrl_c(process)
    process.send_signal(signal.SIGCONT)
    until(lambda: swappiness() != value, process)
    ctrl_c(process)


@pytest.mark.parametrize("stop", [ctrl_c, ctrl_c_twice, terminate])
def test_a_signal_mid_cell_restores_and_saves_finished_cells(
    place: Place, stop: Callable[[subprocess.Popen[str]], None]
) -> None:
    """Then --resume runs what is left, and only that, and the file is that of a whole run."""
    found, value = swappiness(), another_swappiness()
    with in_the_middle(place, value) as process:
        finished = place.finished()
        stop(process)
    done = place.ended(process)
    assert done.code == 2, done.out
    assert "Traceback" not in done.out
    assert swappiness() == found
    assert not (place.state / "journal.jsonl").exists()
    assert done.lines("Interrupted. To continue, run the same command with --resume.")
    part = place.saved()
    jsonschema.Draft202012Validator(SCHEMA).validate(part)
    assert part["deeptweak"]["interrupted"] is True
    assert part["deeptweak"]["machine_check"] == {"changed": {}, "restored": True}
    before = {b["extra_info"]["id"]: b["extra_info"] for b in part["benchmarks"]}
    assert before.keys() == finished.keys()
    assert len(before) in (1, 3)
    assert all(c["outcome"] == "measured" for c in part["deeptweak"]["cells"])

    again = place.run(*options(place, value), "--resume")
    assert again.code == 0, again.out
    whole = place.saved()
    jsonschema.Draft202012Validator(SCHEMA).validate(whole)
    after = {b["extra_info"]["id"]: b["extra_info"] for b in whole["benchmarks"]}
    assert len(after) == 6
    assert {name: after[name] for name in before} == before
    assert [line[:5] for line in again.lines("idle x")] == [
        f"[{number}/6]" for number in range(len(before) + 1, 7)
    ]
    assert whole["deeptweak"]["interrupted"] is False
    assert whole["deeptweak"]["run_id"] == part["deeptweak"]["run_id"]
    assert whole["deeptweak"]["design"] == part["deeptweak"]["design"]
    assert [c["id"] for c in whole["deeptweak"]["cells"]] == whole["deeptweak"]["design"]["order"]
    assert list((place.storage / "progress").iterdir()) == []


def test_a_signal_while_the_summary_is_made_costs_that_at_most(place: Place) -> None:
    process = place.start(
        f"--tweaks={place.manifest('none', ulimit='nofile=512')}",
        "--blocks=1",
        "--steps=3",
        "--benchmark-save=one",
    )
    with caught(lambda: bool(place.files()), process):
        ctrl_c(process)
    done = place.ended(process)
    assert done.code in (0, 2), done.out
    assert "Traceback" not in done.out
    assert done.lines("Machine: as it was found")
    assert done.lines("Saved: ")
    assert (done.code == 2) == bool(done.lines("No verdict: it was interrupted"))
    jsonschema.Draft202012Validator(SCHEMA).validate(place.saved())
    assert place.saved()["deeptweak"]["interrupted"] is False


def killed(place: Place, value: int, *more: str, finished: int = 1) -> int | None:
    """Returns: the process of its workload."""
    with in_the_middle(place, value, *more, finished=finished) as process:
        workload = workload_of(process)
        process.kill()
    place.ended(process)
    assert swappiness() == value
    return workload


def test_restore_after_a_kill_puts_the_machine_back_and_reports(place: Place) -> None:
    found, value = swappiness(), another_swappiness()
    killed(place, value)
    done = place.restore()
    assert (done.code, swappiness()) == (0, found)
    assert (
        "An earlier run ended inside tweak set 'typed' and left this machine changed; put back now:"
        in done.out
    )
    assert f"/proc/sys/vm/swappiness: {value} -> {found}" in done.out
    assert place.restore() == Done(0, "Nothing to restore: no run has left this machine changed.\n")


def test_the_next_run_after_a_kill_first_restores_the_machine(place: Place) -> None:
    """So its stock is the machine's own, not what the killed run had left.

    It can be a --resume: finished cells are kept.
    """
    found, value = swappiness(), another_swappiness()
    killed(place, value)
    kept = place.finished()
    done = place.run(*options(place, value), "--resume")
    assert (done.code, swappiness()) == (0, found)
    assert done.lines(
        "An earlier run ended inside tweak set 'typed' and left this machine changed; put back now:"
    )
    assert done.lines(f"/proc/sys/vm/swappiness: {value} -> {found}")
    saved = {b["extra_info"]["id"]: b["extra_info"] for b in place.saved()["benchmarks"]}
    assert len(saved) == 6
    assert {name: saved[name] for name in kept} == kept
    assert {
        r["tweak"]["before"]["vm.swappiness"] for r in saved.values() if r["tweakset"] == "typed"
    } == {str(found)}


def test_a_value_changed_by_others_since_is_reported_and_kept(
    place: Place,
) -> None:
    found, value = swappiness(), another_swappiness()
    killed(place, value)
    theirs = value + 3
    place.call("sysctl", "-q", f"vm.swappiness={theirs}")
    done = place.restore()
    stayed = swappiness()
    place.call("sysctl", "-q", f"vm.swappiness={found}")
    assert (done.code, stayed) == (0, theirs)
    assert (
        f"/proc/sys/vm/swappiness: is {theirs}, not {value} as the run set it: changed by another "
        "program, so left alone" in done.out
    )


def test_a_cell_whose_setting_was_overwritten_is_not_measured(place: Place) -> None:
    """Somebody else writes the setting while the workload runs: what was measured was neither.

    His value stays, and is named.
    """
    found, value = swappiness(), another_swappiness()
    theirs = value + 3
    with in_the_middle(place, value) as process:
        place.call("sysctl", "-q", f"vm.swappiness={theirs}")
    done = place.ended(process)
    stayed = swappiness()
    place.call("sysctl", "-q", f"vm.swappiness={found}")
    failed = [cell for cell in place.saved()["deeptweak"]["cells"] if cell["outcome"] == "failed"]
    assert done.code == 1, done.out
    assert stayed == theirs
    assert failed
    assert all(
        f"/proc/sys/vm/swappiness was '{theirs}' when the workload ended, not '{value}'"
        in cell["reason"]
        for cell in failed[:1]
    )
    assert not [
        b
        for b in place.saved()["benchmarks"]
        if b["extra_info"]["id"] in {cell["id"] for cell in failed}
    ]


def test_a_workload_does_not_outlive_a_killed_run(place: Place) -> None:
    """It would disturb whatever runs next.

    This one, the first of its run, would outlast any patience here.
    """
    assert 0.002 * ENDLESS > 5 * waiting.PATIENCE_S
    workload = killed(place, another_swappiness(), "--seed=5", f"--steps={ENDLESS}", finished=0)
    waiting.until(lambda: not Path(f"/proc/{workload}").exists(), "it goes on")
    assert place.restore().code == 0


# In mounts of the session's own the setting becomes read-only while the workload runs.
SABOTAGE = """\
import resource, subprocess, sys
if ("fixtures.workloads.idle" in sys.orig_argv
        and resource.getrlimit(resource.RLIMIT_SIGPENDING)[0] == 104):
    setting = "/proc/sys/vm/swappiness"
    subprocess.run(["mount", "--bind", setting, setting], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", setting], check=True)
"""


@pytest.mark.needs("unshare")
def test_a_setting_that_cannot_be_restored_fails_cell_and_run(
    place: Place,
) -> None:
    """The next cell would be measured on a changed machine.

    The journal stays, and restores once it can.
    """
    found, value = swappiness(), another_swappiness()
    (place.folder / "sitecustomize.py").write_text(SABOTAGE)
    place.environment = {"PYTHONPATH": str(place.folder)}
    place.before = ("unshare", "--mount", "--propagation=private")
    stuck = place.manifest("stuck", sysctl=f"vm.swappiness = {value}", ulimit="sigpending=104")
    done = place.run(f"--tweaks={stuck}", "--blocks=3", "--steps=4", "--benchmark-save=one")
    still = swappiness()
    journal = (place.state / "journal.jsonl").exists()
    place.before, place.environment = (), {}
    back = place.restore()
    assert (still, journal, back.code, swappiness()) == (value, True, 0, found)

    assert done.code == 2, done.out
    assert done.lines("!! Interrupted: the machine could not be put back !!")
    assert done.lines("THE MACHINE WAS NOT PUT BACK. Run `python -m fixtures restore`.")
    saved = place.saved()
    jsonschema.Draft202012Validator(SCHEMA).validate(saved)
    cells = saved["deeptweak"]["cells"]
    assert (cells[-1]["tweakset"], cells[-1]["outcome"]) == ("stuck", "failed")
    assert cells[-1]["reason"].startswith("not put back: /proc/sys/vm/swappiness: ")
    assert len(cells) < 9
    assert {c["outcome"] for c in cells[:-1]} <= {"measured"}
    assert [b["extra_info"]["id"] for b in saved["benchmarks"]] == [c["id"] for c in cells[:-1]]
    assert saved["deeptweak"]["machine_check"]["restored"] is False
    assert saved["deeptweak"]["interrupted"] is True
