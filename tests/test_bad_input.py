"""What is wrong is said in one line with what to do, before anything is touched; what the kernel refuses costs its own cell only."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from fixtures.workloads import names
from tests.sessions import HOUSE, Done, Place, another_swappiness, swappiness, until

on_the_kernel = pytest.mark.usefixtures("kernel_unchanged")  # the others end before anything is touched
QUICK = ("--blocks=1", "--steps=3")
TUNING = (
    "apiVersion: skyhook.nvidia.com/v1alpha1\nkind: Skyhook\nmetadata: {name: one}\n"
    "spec: {packages: {one: {version: 1.0.0, image: ghcr.io/nvidia/skyhook-packages/tuning, configMap: {sysctl.conf: '%s'}}}}\n"
)


def refused(done: Done) -> str:
    """The one line that says why; nothing else was done."""
    assert done.code == 2, done.out
    assert "Traceback" not in done.out
    said = re.findall(r"(?m)^!+ ERROR: (.*?) !+$|^(?:ERROR|error): (.*)$", done.out)
    assert len(said) == 1, done.out
    return "".join(said[0])


def untouched(place: Place) -> bool:
    """No result, no progress, no lock, no journal."""
    return not place.state.exists() and [p for p in place.storage.glob("**/*") if p.is_file()] == []


@pytest.mark.parametrize(
    ("options", "workload", "says"),
    [
        (("--tweaks=thp-alway",), "idle", r"no tweak set is called 'thp-alway'\. Did you mean 'thp-always'\? There are: .*thp-never"),
        ((), "idel", rf"No workload 'idel'. Did you mean 'idle'\? There are: {', '.join(names())}"),
        ((), " , ", r"--workloads= , : .*There are: "),
        (("--blocks=0",), "idle", r"--blocks=0: at least 1 is needed"),
        (("--plan", "--blocks=99999999999"), "idle", r"--blocks=99999999999: .*; a run has 20,000 at most"),
        (("--plan", "--tweaks="), "idle", r"--tweaks: is empty\."),
        (("--plan", "--tweaks", " "), "idle", r"--tweaks: is empty\."),
        (("--design=\x1b[31mx",), "idle", r"'?\\x1b\[31mx"),
        (("--steps=1",), "idle", r"--steps=1: at least 2 are needed"),
        (("--nodes=bench=yes",), "idle", r"--nodes is an option of --target=kubernetes: add that, or leave it out"),
        (("--target=kubernetes", "--gpus=-1"), "idle", r"--gpus=-1: 0 or more"),
        (("--target=kubernetes", "--design=turns"), "idle", r"--design=turns: on a cluster .* that takes --apply=agent .*--design=matrix"),
        (("--target=kubernetes", "--apply=agent", "--design=turns", "--gpus=1"), "idle", r"no --gpus \(each Job would have"),
        (("--target=kubernetes", "--apply=agent", "--design=turns", "--workload-via=kaito"), "idle", r"no --workload-via=kaito"),
        (("--target=kubernetes", "--workload-via=pod"), "idle", r"--workload-via=pod: no such way\. There are: job, kaito, or FILE"),
        (("--target=kubernetes", "--workload-via=/none.yaml"), "idle", r"--workload-via=/none\.yaml: .*No such file"),
        (("--target=kubernetes", "--apply=agent", "--design=turns", "-n", "2"), "idle", r"no --gpus .* and no -n\."),
        (("--target=kubernetes", "--apply=agent", "--design=switch"), "idle", r"--design=switch: settings take turns there between pods"),
        (("--target=cloud",), "idle", r"--target=cloud: no such target\. There are: kubernetes, local"),
        (("-n", "2"), "idle", r"-n: this is one machine with one kernel, .*Leave -n out"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_answered(place: Place, options: tuple[str, ...], workload: str, says: str) -> None:
    """Before the first cell."""
    assert re.search(says, refused(place.run(*options, workload=workload)))
    assert untouched(place)


@pytest.mark.parametrize(
    ("path", "meant"), [("benchmarks/bench_powercap.py", "benchmarks/bench_power_cap.py"), ("benchmark/", "benchmarks/")]
)
def test_a_misspelt_benchmark_is_answered_with_the_one_that_was_meant(place: Place, tmp_path: Path, path: str, meant: str) -> None:
    """By pytest's own error, also where what the tests need is not installed."""
    (tmp_path / "hypothesis.py").write_text("raise ImportError")
    done = place.call("env", f"PYTHONPATH={tmp_path}", sys.executable, "-m", "pytest", path, "--plan", "-p", "no:hypothesispytest")
    assert (done.code, done.out.strip()) == (4, f"ERROR: file or directory not found: {path}. Did you mean {meant!r}?")


@on_the_kernel
def test_there_must_be_something_to_resume(place: Place) -> None:
    assert refused(place.run("--resume", "--tweaks=thp-never")).startswith("--resume: there is no interrupted run of this plan")


def test_without_the_plugin_that_keeps_what_is_measured_nothing_begins(place: Place) -> None:
    assert refused(place.call(sys.executable, "-m", "pytest", "benchmarks/", "--plan", "-p", "no:benchmark")).startswith(
        "-p no:benchmark: "
    )


def test_a_number_that_is_none_is_refused_by_name(place: Place) -> None:
    done = place.run("--steps=1.5")
    assert done.code == 4  # pytest's own for its command line
    assert done.lines("--steps")
    assert untouched(place)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [1,\n", r"one\.yaml"),
        (TUNING % f"vm.swappiness = {'1' * 200_000}", r"one\.yaml: .* line 1: 'vm\.swappiness = 1+'… has 200,016 characters"),
    ],
    ids=["broken YAML", "a long value"],
)
def test_a_manifest_that_cannot_be_read_is_named(place: Place, text: str, says: str) -> None:
    path = place.folder / "one.yaml"
    path.write_text(text)
    assert re.search(says, refused(place.run(f"--tweaks={path}")))
    assert untouched(place)


def test_a_plan_shows_control_characters_and_lets_no_terminal_obey_them(place: Place) -> None:
    """They may stand in any text of a manifest."""
    path = place.manifest("red", sysctl="vm.swappiness = 1\x1b[31m0", apply="echo \x1b[2J > /proc/sys/vm/\x1b[2Jx")
    done = place.run(f"--tweaks={path}", "--plan", *QUICK)
    assert done.code == 0, done.out
    assert {one for one in done.out if not one.isprintable()} <= {"\n", "\t"}
    assert done.lines("vm.swappiness: ")[0].endswith(r"-> 1\x1b[31m0")
    assert done.lines(r"/proc/sys/vm/\x1b[2Jx: ")


def outcomes(place: Place) -> dict[str, str]:
    return {c["tweakset"]: c["outcome"] for c in place.saved()["deeptweak"]["cells"]}


def reason(place: Place, tweakset: str) -> str:
    return next(str(c["reason"]) for c in place.saved()["deeptweak"]["cells"] if c["tweakset"] == tweakset)


@on_the_kernel
def test_a_set_whose_second_key_is_refused_is_put_back_whole(place: Place) -> None:
    """Its first key was in force already; the workload never ran under half a set."""
    path = place.manifest("half", sysctl=f"vm.swappiness = {another_swappiness()}\nvm.dirty_ratio = 101")
    found = swappiness()
    done = place.run(f"--tweaks={path}", *QUICK, "--benchmark-save=one")
    assert done.code == 2
    assert outcomes(place) == {"stock": "measured", "stock-again": "measured", "half": "failed"}
    assert "vm.dirty_ratio: the kernel refused '101' (Invalid argument)" in reason(place, "half")
    assert swappiness() == found
    assert "half-b1" not in {b["extra_info"]["id"].rpartition("idle-")[2] for b in place.saved()["benchmarks"]}


@on_the_kernel
def test_a_script_that_fails_is_put_back_and_quoted(place: Place) -> None:
    """What it had changed by then included."""
    text = f"echo {another_swappiness()} > /proc/sys/vm/swappiness\necho no luck >&2\nexit 7"
    found = swappiness()
    place.run(f"--tweaks={place.manifest('unlucky', apply=text)}", *QUICK, "--benchmark-save=one")
    assert outcomes(place)["unlucky"] == "failed"
    assert "script/apply.sh ended with exit code 7: no luck" in reason(place, "unlucky")
    assert swappiness() == found


def on_a_small_disk(place: Place, free_kib: int) -> Done:
    """A session that saves to a disk with this much room, and the same with --resume once there is more; `after` is what it held."""
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
    place.before = ("unshare", "--mount", "--propagation=private", "bash", "-ec", "; ".join(script), "bash")
    done = place.run(f"--tweaks={place.manifest('none', ulimit='nofile=512')}", *QUICK, "--benchmark-save=one")
    assert done.code == 2, done.out
    assert "Traceback" not in done.out
    assert list((place.folder / "full").glob("*/*_one.json*")) == list((place.folder / "full").glob("*/.*_one.json*")) == []
    assert len(list((place.folder / "after").glob("*/0001_one.json"))) == 1
    return done


# Three cells of idle take 16 KiB as progress, and with their telemetry, record and JSON as much again.
@on_the_kernel
@pytest.mark.needs("unshare")
def test_a_disk_that_is_full_when_the_run_is_saved_costs_no_measurement(place: Place) -> None:
    """Nothing half written, the file is named, and --resume saves without measuring again once there is room."""
    done = on_a_small_disk(place, free_kib=24)
    (line,) = done.lines("NOT SAVED: ")
    assert re.search(r"/(0001_one\.json|record-\w+-\w+\.jsonl\.xz|telemetry-\w+\.jsonl\.xz): No space left on device\.$", line)
    assert done.lines("--resume saves them without measuring again")
    assert "idle x" not in (place.folder / "output").read_text()


@on_the_kernel
@pytest.mark.needs("unshare")
def test_a_disk_that_is_full_while_cells_run_ends_the_run(place: Place) -> None:
    """What cannot be stored need not be measured; --resume measures the rest once there is room."""
    done = on_a_small_disk(place, free_kib=8)
    assert done.lines("No space left on device: results cannot be stored")
    assert 0 < (place.folder / "output").read_text().count("idle x") <= 3


@on_the_kernel
@pytest.mark.parametrize(
    ("path", "says"), [("/dev/full", "the file of --benchmark-json: No space left"), ("{}/gone/x.json", "gone/x.json: No such file")]
)
def test_json_that_cannot_be_written_costs_no_measurement(place: Place, path: str, says: str) -> None:
    """The file that pytest-benchmark itself writes: the cells are kept, and --resume writes it elsewhere."""
    tweaks = f"--tweaks={place.manifest('none', ulimit='nofile=512')}"
    done = place.run(tweaks, *QUICK, f"--benchmark-json={path.format(place.folder)}")
    assert done.code == 2, done.out
    assert done.lines("NOT SAVED: ")[0].find(says) > 0
    again = place.run(tweaks, *QUICK, "--resume", f"--benchmark-json={place.folder}/x.json")
    assert (again.code, again.lines("idle x")) == (0, [])
    assert (place.folder / "x.json").stat().st_size > 0


NO_TORCH = "import sys; sys.modules['torch'] = None"  # as import and find_spec see a module that is not there


@on_the_kernel
def test_a_workload_whose_framework_is_missing_says_how_to_get_it(place: Place) -> None:
    """Nothing of it is measured, which no exit status hides; the command that helps is there."""
    (place.folder / "sitecustomize.py").write_text(NO_TORCH)
    place.environment = {"PYTHONPATH": str(place.folder)}
    done = place.run(f"--tweaks={place.manifest('none', ulimit='nofile=512')}", *QUICK, "--benchmark-save=one", workload="cnn_train")
    assert done.code == 2
    assert set(outcomes(place).values()) == {"skipped"}
    [line] = done.lines("NOT MEASURED: ")
    assert line.startswith("NOT MEASURED: cnn_train: it needs torch, which this Python does not have: run `make bench`")


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


@on_the_kernel
def test_a_workload_that_dies_or_prints_garbage_costs_its_own_cell_only(place: Place) -> None:
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
    done = place.run(f"--tweaks={','.join(sets.values())}", "--blocks=2", "--steps=3", "--benchmark-save=one")
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


def test_a_state_folder_that_cannot_be_written_is_named(place: Place) -> None:
    (place.folder / "state").write_text("a file, no folder")
    said = refused(place.run(*QUICK, f"--tweaks={place.manifest('none', ulimit='nofile=512')}"))
    assert said.startswith(f"{place.state}: cannot be written")
    assert "Set DEEPTWEAK_STATE_DIR" in said


@on_the_kernel
def test_a_second_run_is_refused_and_told_who_holds_the_machine(place: Place, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The first one, which sleeps meanwhile so as not to be over before they are, goes on undisturbed."""
    tweaks = f"--tweaks={place.manifest('none', ulimit='nofile=512')}"
    first = place.start(tweaks, "--blocks=2", "--steps=200", "--benchmark-save=one")
    until(lambda: bool(place.finished()), first)
    os.kill(first.pid, signal.SIGSTOP)
    second = Place(tmp_path_factory.mktemp("second"), environment={"DEEPTWEAK_STATE_DIR": str(place.state)})
    said = refused(second.run(tweaks, *QUICK))
    restore = place.call(sys.executable, "-m", "fixtures", "restore")
    doctor = place.call(sys.executable, "-m", "fixtures", "doctor")
    os.kill(first.pid, signal.SIGCONT)
    done = place.ended(first)
    assert f"this machine is held by process {first.pid} (" in said
    assert "pytest benchmarks/" in said
    assert (restore.code, restore.out.count("\n")) == (2, 1)
    assert f"held by process {first.pid}" in restore.out
    assert doctor.code == 2
    assert [line for line in doctor.lines("machine lock") if f"held by process {first.pid}" in line]
    assert done.code == 0, done.out
    assert len(place.saved()["benchmarks"]) == 6


@pytest.mark.parametrize("arguments", [(".",), (), ("tests/test_cells.py", ".")], ids=["pytest .", "pytest", "tests and ."])
def test_benchmarks_are_never_collected_unless_named(place: Place, arguments: tuple[str, ...]) -> None:
    """They change a kernel."""
    folders = [f"--ignore={path}" for path in (HOUSE / "tests").iterdir() if path.is_dir()]  # which would take half a minute to collect
    plugins = ("-p", "no:cacheprovider", "-p", "no:syrupy")
    done = place.call(sys.executable, "-m", "pytest", "--collect-only", "-q", *plugins, *folders, *arguments)
    assert done.code == 0, done.out
    assert done.lines("tests/test_cells.py::")
    assert not [line for line in done.lines("benchmarks/") if line.startswith("benchmarks/")]  # some tests are named after a command


def test_from_the_folder_of_the_benchmarks_too(place: Place) -> None:
    """`cd benchmarks; pytest ../tests`."""
    done = place.call(
        "bash",
        "-c",
        f"cd '{HOUSE}/benchmarks' && exec '{sys.executable}' -m pytest --collect-only -q -p no:cacheprovider ../tests/test_cells.py",
    )
    assert (done.code, done.lines("bench_")) == (0, [])
