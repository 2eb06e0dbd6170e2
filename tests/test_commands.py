"""`python -m fixtures`: commands beside the main job; test_interrupt.py has their effects."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from control.power import algorithms
from control.scheduling import policies
from fixtures import __main__ as commands
from fixtures import designs, tweaks, workloads
from fixtures.__main__ import main
from fixtures.kernel import gpus, lock
from fixtures.monitors import monitor
from fixtures.studies.jobs import arrivals, classes, engines, faults
from fixtures.terms import USAGE
from tests import fake_root
from tests.sessions import Done, Place
from tests.telemetry.test_nvml import library


@pytest.fixture
def command(place: Place) -> Callable[..., Done]:
    return partial(place.call, sys.executable, "-m", "fixtures")


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """A command that touches nothing, in this process."""

    def call(*words: str) -> Done:
        monkeypatch.setenv("COLUMNS", "160")
        monkeypatch.setattr(sys, "argv", ["fixtures", *words])
        try:
            code = main()
        except SystemExit as left:
            code = int(left.code or 0)
        return Done(code, "".join(capsys.readouterr()))

    return call


def test_list_names_all_that_can_be_named(call: Callable[..., Done]) -> None:
    done = call("list")
    assert done.code == 0
    described = [(tweakset.name, tweakset.description) for tweakset in tweaks.resolve("all")]
    described += [(name, workloads.of(name).description) for name in workloads.names()]
    described += [(name, designs.load(name).DESCRIPTION) for name in designs.names()[1:]]
    assert [
        pair
        for pair in described
        if not any(pair[1] in line for line in done.lines(f"  {pair[0]} "))
    ] == []
    of_jobs = (arrivals.names(), classes.names(), engines.ENGINES, faults.FAULTS, policies.POLICIES)
    for names in (monitor.names(), algorithms.names(), *of_jobs):
        assert done.lines(", ".join(names))


def test_list_says_more_of_what_is_named(call: Callable[..., Done]) -> None:
    done = call("list", "psutil_thread", "io_train", "memory-reclaim", "train")
    assert done.code == 0
    assert done.lines("psutil_thread:interval_s=…: ")
    assert done.lines("--vary read_threads=…: ")
    assert done.lines("vm.swappiness = ")
    assert done.lines(classes.description("train"))
    assert [line for line in done.lines("thp-always") if "thp-never" in line] == []


def test_list_takes_the_path_of_a_manifest(call: Callable[..., Done], tmp_path: Path) -> None:
    """A file without a reason for its settings; a catalogue's path prints what its name does."""
    own = tmp_path / "own.yaml"
    own.write_text(
        Path("data/tweaks/memory-reclaim.yaml")
        .read_text()
        .replace("reason.deeptweak/vm.swappiness", "other/reason")
    )
    assert "vm.swappiness = " in call("list", str(own)).out
    path, name = (
        call("list", word).out.splitlines()[1:]
        for word in ("data/tweaks/memory-reclaim.yaml", "memory-reclaim")
    )
    assert path == name


def test_list_of_an_unknown_name_names_the_nearest(call: Callable[..., Done]) -> None:
    done = call("list", "idle", "thp")
    assert done.code == USAGE
    assert "'thp-always' or 'thp-never'" in done.out
    assert not done.lines("sleep")


def test_list_for_a_reader_that_has_seen_enough_ends_quietly(
    monkeypatch: pytest.MonkeyPatch, call: Callable[..., Done]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as broken:
        monkeypatch.setattr(sys, "stdout", broken)
        assert call("list") == Done(0, "")


@pytest.mark.parametrize("target", ["local", "kubernetes"])
@pytest.mark.parametrize("option", ["--context=", "--kubeconfig= ", "--namespace=", "--image="])
def test_a_restore_whose_option_is_empty_is_refused(
    call: Callable[..., Done], option: str, target: str
) -> None:
    """A variable that is not set: it would have restored another cluster, or this machine."""
    done = call("restore", f"--target={target}", option)
    assert done.code == 2
    assert done.lines(f"error: {option.partition('=')[0]} is empty: ")


@pytest.mark.parametrize("words", [(), ("put-back",)])
def test_what_is_no_command_is_answered_with_those_there_are(
    call: Callable[..., Done], words: tuple[str, ...]
) -> None:
    done = call(*words)
    assert done.code == 2
    assert "{restore,doctor,list,run,tune,arrivals}" in done.out


def test_doctor_reports_whether_each_tweak_set_can_be_applied(
    command: Callable[..., Done],
) -> None:
    """The answer first, then what cannot be done here; what is fine is one line at the end."""
    done = command("doctor")
    # 2 where a run holds this machine.
    answer = {0: "A run can start. ", 2: "No run can start. "}[done.code]
    assert done.out.startswith(answer)
    marks = re.findall(r"(?m)^\[ +(\w+) +\]", done.out)
    assert marks == sorted(marks, key=["no", "warn", "ok"].index)
    assert all(len(line) <= 100 or "/" in line for line in done.out.splitlines())
    whole = Done(done.code, re.sub(r"\n {9}", " ", done.out))
    fine = set(whole.lines("] tweak sets: ")[0].partition("can be applied: ")[2].split(", "))
    for tweakset in tweaks.resolve("all"):
        assert tweakset.name in fine or done.lines(f"tweak set {tweakset.name}: "), tweakset.name
    assert not fine & {"memory-overcommit", "deeptweak-exp1-sysctl"}


@pytest.mark.usefixtures("kernel_lock")
def test_a_journal_that_somebody_edited_is_not_guessed_at(
    place: Place, command: Callable[..., Done]
) -> None:
    place.state.mkdir()
    (place.state / "journal.jsonl").write_text("not a record\n")
    (place.state / "journal.jsonl").chmod(0o600)
    done = command("restore")
    assert (done.code, done.out.count("\n")) == (2, 1)
    assert f"{place.state}/journal.jsonl, line 1: " in done.out
    # A real run on this machine would take it for one of a killed run.
    (place.state / "journal.jsonl").unlink()


def test_restore_from_a_damaged_journal_ends_with_2(
    call: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = fake_root.make(tmp_path)
    monkeypatch.setattr(commands, "Machine", fake.machine)
    monkeypatch.setattr(lock, "machine_held", lambda *_: contextlib.nullcontext())
    fake.machine().apply("x", fake_root.writes([("/proc/sys/vm/swappiness", "10")]))
    fake.journal.write_text("garbage")
    done = call("restore")
    assert (done.code, fake.wrong()) == (2, {})
    assert done.lines("journal.jsonl, line 1: ")
    again = call("restore")
    assert (again.code, again.lines("Nothing to restore")) == (0, [again.out.strip()])


@pytest.mark.needs("cc", "root")
@pytest.mark.usefixtures("kernel_lock")
def test_restore_puts_back_the_gpu_of_a_killed_run(place: Place, tmp_path: Path) -> None:
    """On a stand-in for NVML; for clocks, limit and MPS see power/test_cap_gpu_full.py."""
    uuid, gpu = "GPU-00000000-0000-0000-0000-000000000000", tmp_path / "gpu"
    gpu.write_text("150000 1200 0\n")
    place.environment = {"LD_LIBRARY_PATH": str(library(tmp_path)), "FAKE_NVML_STATE": str(gpu)}
    kept = gpus.Gpus(place.state).journal
    kept.begin(
        {
            "record": "begin",
            "version": 1,
            "pid": 2**22,
            "started": 1,
            "power_limit_mw": {uuid: 250000},
            "mps": None,
        }
    )
    kept.add({"record": "write", "gpu": uuid, "knob": "sm_mhz", "value": 1200})
    kept.add({"record": "write", "gpu": uuid, "knob": "power_limit_mw", "value": 150000})
    done = place.restore()
    assert (done.code, gpu.read_text()) == (0, "250000 0 0\n")
    assert done.lines(f"  {uuid} power_limit_mw: 150000 -> 250000")
    assert place.restore().lines("Nothing to restore")
    kept.close()


@pytest.mark.needs("cc")
def test_detect_gpu_names_the_studys_gpu_and_sets_the_exit_code(
    place: Place, tmp_path: Path
) -> None:
    place.environment = {"LD_LIBRARY_PATH": str(library(tmp_path))}
    done = place.call(sys.executable, "-m", "fixtures.studies.power", "detect-gpu")
    assert (done.code, done.out.partition(":")[0]) == (1, "Fake GPU")
