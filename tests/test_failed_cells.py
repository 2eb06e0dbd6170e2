"""A refusal by kernel, script, disk or workload costs its own cell; the machine is put back."""

from __future__ import annotations

import re

import pytest

from tests.sessions import Done, Place, another_swappiness
from tests.test_bad_input import QUICK, refused

pytestmark = pytest.mark.usefixtures("kernel_unchanged")


def test_there_must_be_something_to_resume(place: Place) -> None:
    assert refused(place.run("--resume", "--tweaks=thp-never")).startswith(
        "--resume: no interrupted run of this plan"
    )


def outcomes(place: Place) -> dict[str, str]:
    return {c["tweakset"]: c["outcome"] for c in place.saved()["deeptweak"]["cells"]}


def reason(place: Place, tweakset: str) -> str:
    return next(
        str(c["reason"]) for c in place.saved()["deeptweak"]["cells"] if c["tweakset"] == tweakset
    )


def on_a_small_disk(place: Place, free_kib: int) -> Done:
    """Save a session to a disk with this room, then --resume with more; `after` is its content."""
    place.storage.mkdir()
    script = (
        f"mount -t tmpfs -o size=1024k none {place.storage}",
        f"head -c {(1024 - free_kib) * 1024} /dev/zero > {place.storage}/filler",
        'code=0; "$@" || code=$?',
        f"cp -a {place.storage} {place.folder}/full",
        f"rm {place.storage}/filler",
        f'"$@" --resume > {place.folder}/output || exit 99',
        f"cp -a {place.storage} {place.folder}/after",
        "exit $code",
    )
    place.before = (
        "unshare",
        "--mount",
        "--propagation=private",
        "bash",
        "-ec",
        "; ".join(script),
        "bash",
    )
    done = place.run(
        f"--tweaks={place.manifest('none', ulimit='nofile=512')}", *QUICK, "--benchmark-save=one"
    )
    assert done.code == 2, done.out
    assert "Traceback" not in done.out
    assert (
        list((place.folder / "full").glob("*/*_one.json*"))
        == list((place.folder / "full").glob("*/.*_one.json*"))
        == []
    )
    assert len(list((place.folder / "after").glob("*/0001_one.json"))) == 1
    return done


# Three cells of idle take 16 KiB as progress, and with their telemetry, record and JSON as much
# again.
@pytest.mark.needs("unshare")
def test_a_full_disk_on_saving_loses_no_measurement(place: Place) -> None:
    """Nothing half written, the file is named, and with room --resume saves without measuring."""
    done = on_a_small_disk(place, free_kib=24)
    (line,) = done.lines("NOT SAVED: ")
    assert re.search(
        r"/(0001_one\.json|record-\w+-\w+\.jsonl\.xz|telemetry-\w+\.jsonl\.xz): No space left on "
        r"device\.$",
        line,
    )
    assert done.lines("run the same command with --resume to save them without measuring again")
    assert "idle x" not in (place.folder / "output").read_text()


@pytest.mark.needs("unshare")
def test_a_disk_that_is_full_while_cells_run_ends_the_run(place: Place) -> None:
    """Unstorable cells are not measured; --resume measures the rest once there is room."""
    done = on_a_small_disk(place, free_kib=8)
    assert done.lines("No space left on device: results cannot be stored")
    assert 0 < (place.folder / "output").read_text().count("idle x") <= 3


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/dev/full", "the file of --benchmark-json: No space left"),
        ("{}/gone/x.json", "gone/x.json: No such file"),
    ],
)
def test_json_that_cannot_be_written_costs_no_measurement(
    place: Place, path: str, says: str
) -> None:
    """pytest-benchmark's own file: the cells are kept, and --resume writes it elsewhere."""
    tweaks = f"--tweaks={place.manifest('none', ulimit='nofile=512')}"
    done = place.run(tweaks, *QUICK, f"--benchmark-json={path.format(place.folder)}")
    assert done.code == 2, done.out
    assert done.lines("NOT SAVED: ")[0].find(says) > 0
    again = place.run(tweaks, *QUICK, "--resume", f"--benchmark-json={place.folder}/x.json")
    assert (again.code, again.lines("idle x")) == (0, [])
    assert (place.folder / "x.json").stat().st_size > 0


# as import and find_spec see a module that is not there
NO_TORCH = "import sys; sys.modules['torch'] = None"


def test_a_missing_framework_is_named_with_its_install_command(place: Place) -> None:
    """Nothing of it is measured, which no exit status hides; the command that helps is there."""
    (place.folder / "sitecustomize.py").write_text(NO_TORCH)
    place.environment = {"PYTHONPATH": str(place.folder)}
    done = place.run(
        f"--tweaks={place.manifest('none', ulimit='nofile=512')}",
        *QUICK,
        "--benchmark-save=one",
        workload="cnn_train",
    )
    assert done.code == 2
    assert set(outcomes(place).values()) == {"skipped"}
    [line] = done.lines("NOT MEASURED: ")
    assert line.startswith(
        "NOT MEASURED: cnn_train: it needs torch, which is not installed: run `make setup`"
    )


DEATHS = """\
import os, resource, signal, sys
if "fixtures.workloads.idle" in sys.orig_argv:
    what = resource.getrlimit(resource.RLIMIT_SIGPENDING)[0]
    if what == 101:
        print("all is lost", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if what == 102:
        print("this is no step", flush=True)
        sys.exit(0)
    if what == 103:
        os._exit(0)
"""


def test_a_workload_that_dies_or_prints_garbage_costs_one_cell(place: Place) -> None:
    """Its last lines are kept; the cells after it are measured; the machine is back each time."""
    (place.folder / "sitecustomize.py").write_text(DEATHS)
    place.environment = {"PYTHONPATH": str(place.folder)}
    setting = f"vm.swappiness = {another_swappiness()}"
    sets = {
        name: place.manifest(name, sysctl=setting, ulimit=f"sigpending={n}")
        for n, name in ((101, "killed"), (102, "garbage"), (103, "silent"))
    }
    # A real death: an address space in which Python cannot start.
    sets["starved"] = place.manifest("starved", ulimit="as=16384")
    done = place.run(
        f"--tweaks={','.join(sets.values())}", "--blocks=2", "--steps=3", "--benchmark-save=one"
    )
    assert done.code == 2
    cells = place.saved()["deeptweak"]["cells"]
    assert {c["tweakset"] for c in cells if c["outcome"] == "measured"} == {"stock", "stock-again"}
    assert len([c for c in cells if c["outcome"] == "measured"]) == 4
    assert len([c for c in cells if c["outcome"] == "failed"]) == 8
    killed = next(c for c in cells if c["tweakset"] == "killed")
    assert "Died of SIGKILL" in killed["reason"]
    assert killed["last_lines"] == ["all is lost"]
    assert "this is no step" in reason(place, "garbage")
    assert reason(place, "silent")
    assert reason(place, "starved")
