"""Monitors in place of tweak sets, from command line to saved file, in real sessions here."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import uuid
from pathlib import Path

import jsonschema
import pytest

from analysis.load import load
from tests.monitors.made_up import TRACE, traced, vanished
from tests.sandbox import as_nobody
from tests.sessions import Place, caught, until
from tests.test_session import SCHEMA

pytestmark = [
    pytest.mark.needs("psutil"),
    pytest.mark.usefixtures("kernel_unchanged"),
]
MONITORS = ("placebo", "sampler:hz=100")
AT_WORK = "fixtures.telemetry.sampler 100"  # the harness's own has no rate in its command
OPTIONS = (f"--monitors={','.join(MONITORS)}", "--blocks=2", "--benchmark-save=one")


@pytest.fixture
def place(place: Place) -> Place:
    """All that its sessions start has its mark in the environment."""
    place.environment = {TRACE: uuid.uuid4().hex}
    return place


def test_a_run_of_monitors_is_saved_read_and_judged(place: Place) -> None:
    """Stock and its copy go the same way without one; the verdict is on the study's own metric."""
    done = place.run(*OPTIONS)
    assert done.code == 0, done.out
    assert done.lines("in force: monitor placebo")
    saved = place.saved()
    jsonschema.Draft202012Validator(SCHEMA).validate(saved)
    ours = saved["deeptweak"]
    assert ours["studies"]["monitoring_overhead"]["monitors"] == list(MONITORS)
    assert {name: known.get("monitor") for name, known in ours["tweaksets"].items()} == {
        "stock": None,
        "stock-again": None,
        **{name: name for name in MONITORS},
    }
    assert ours["workloads"]["idle"]["primary"] is None
    assert ours["machine_check"] == {"changed": {}, "restored": True}
    for cell in load(place.files()[-1]).cells:
        assert cell.outcome == "measured"
        assert cell.monitor["name"] == (cell.tweakset if cell.tweakset in MONITORS else None)
        assert cell.usage["cpu_s"]
        assert list(cell.telemetry_missing) == ["sampler"]
        assert cell.applied is not None
        assert not cell.applied.observed
    assert vanished(place.environment[TRACE])


def test_a_monitor_takes_turns_inside_a_process(place: Place) -> None:
    """From command line to verdict: no stock cell, both arms in each process, nothing left."""
    done = place.run(
        "--design=switch",
        "--monitors=sampler:hz=100",
        "--blocks=2",
        "--steps=2",
        "--benchmark-save=one",
    )
    assert done.code == 0, done.out
    saved = place.saved()
    jsonschema.Draft202012Validator(SCHEMA).validate(saved)
    ours = saved["deeptweak"]
    assert ours["design"]["kind"] == "switch"
    assert sorted({one["tweakset"] for one in ours["cells"]}) == ["sampler:hz=100", "stock-again"]
    for one in saved["benchmarks"]:
        record = one["extra_info"]
        assert len(record["segments"]) == 128
        assert record["tweak"]["requested"] == {}
        if record["monitor"]["name"] is None:
            assert "a waiting process" in record["monitor"]["missing"]["monitor"]
        else:
            assert 0 < record["monitor"]["told"]["at_work_s"] < record["monitor"]["wall_s"]
    assert vanished(place.environment[TRACE])


def test_a_run_killed_in_monitor_turns_leaves_nothing_stopped(
    place: Place,
) -> None:
    options = (
        "--design=switch",
        "--monitors=sampler:hz=100",
        "--blocks=1",
        "--steps=200",
        "--benchmark-save=one",
    )
    process = place.start(*options)
    turns = ("sleep infinity", AT_WORK)  # whichever of the two cells comes first
    until(
        lambda: any(
            one in command for command in traced(place.environment[TRACE]).values() for one in turns
        ),
        process,
    )
    process.kill()
    place.ended(process)
    assert vanished(place.environment[TRACE])


def test_what_cannot_run_here_is_skipped_and_with_all_no_failure(place: Place) -> None:
    """A monitor asked for by name that is absent ends the run with 2, as a tweak set does."""
    absent = next((one for one in ("nsys", "dcgmi", "ncu") if not shutil.which(one)), None)
    if absent is None:
        pytest.skip("every profiler is here")
    done = place.run(f"--monitors=placebo,{absent}", "--blocks=1")
    assert done.code == 2, done.out
    assert done.lines(f"NOT MEASURED: {absent}: monitor {absent}: ")
    assert done.lines("idle x placebo, block 1")


def test_an_interrupted_run_leaves_nothing_and_goes_on(place: Place) -> None:
    """Ctrl-C while a monitor beside the workload is at work; then --resume runs what is left."""
    process = place.start(*OPTIONS, "--steps=200")
    with caught(lambda: len(place.finished()) >= 1 and _at_work(place), process):
        os.killpg(process.pid, signal.SIGINT)
    assert place.ended(process).code == 2
    assert vanished(place.environment[TRACE])
    finished = place.finished()
    done = place.run(*OPTIONS, "--steps=200", "--resume")
    assert done.code == 0, done.out
    cells = {one["extra_info"]["id"]: one["extra_info"] for one in place.saved()["benchmarks"]}
    assert len(cells) == 8
    assert {name: cells[name]["started_utc"] for name in finished} == {
        name: one["started_utc"] for name, one in finished.items()
    }


def test_a_killed_run_leaves_neither_workload_nor_monitor(place: Place) -> None:
    process = place.start(*OPTIONS, "--steps=1000")
    until(lambda: _at_work(place), process)
    process.kill()
    place.ended(process)
    assert vanished(place.environment[TRACE])


@pytest.mark.needs("unshare")
def test_an_ordinary_user_measures_monitors_too() -> None:
    folder, hold = (
        Path(tempfile.mkdtemp(prefix=f"deeptweak-{name}-")) for name in ("nobody", "hold")
    )
    shutil.chown(folder, 65534, 65534)
    place = Place(
        folder,
        before=as_nobody(hold),
        environment={"HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    done = place.run(
        "--monitors=placebo,psutil_thread,sampler", "--blocks=1", "--benchmark-save=one"
    )
    assert done.code == 0, done.out
    assert len(place.saved()["benchmarks"]) == 5
    shutil.rmtree(folder)
    shutil.rmtree(hold)


def _at_work(place: Place) -> bool:
    return any(AT_WORK in command for command in traced(place.environment[TRACE]).values())
