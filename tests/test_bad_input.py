"""Each mistake is one line with a remedy, before anything is touched."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from fixtures.workloads import names
from tests.sessions import HOUSE, Done, Place

QUICK = ("--blocks=1", "--steps=3")
TUNING = (
    "apiVersion: skyhook.nvidia.com/v1alpha1\nkind: Skyhook\nmetadata: {name: one}\n"
    "spec: {packages: {one: {version: 1.0.0, image: ghcr.io/nvidia/skyhook-packages/tuning, "
    "configMap: {sysctl.conf: '%s'}}}}\n"
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
        (
            ("--tweaks=thp-alway",),
            "idle",
            (
                r"no tweak set is called 'thp-alway'\. Did you mean 'thp-always'\? Available: "
                r".*thp-never"
            ),
        ),
        ((), "idel", rf"No workload 'idel'. Did you mean 'idle'\? Available: {', '.join(names())}"),
        ((), " , ", r"--workloads= , : names no workload\. Available: "),
        (("--blocks=0",), "idle", r"--blocks=0: must be at least 1"),
        (
            ("--plan", "--blocks=99999999999"),
            "idle",
            r"--blocks=99999999999 .*; a run may have at most 20,000",
        ),
        (("--plan", "--tweaks="), "idle", r"--tweaks is empty: "),
        (("--plan", "--tweaks", " "), "idle", r"--tweaks is empty: "),
        (("--design=\x1b[31mx",), "idle", r"'?\\x1b\[31mx"),
        (("--steps=1",), "idle", r"--steps=1: .* at least 2 steps"),
        (
            ("--nodes=bench=yes",),
            "idle",
            r"--nodes needs --target=kubernetes: add that, or omit --nodes",
        ),
        (("--target=kubernetes", "--gpus=-1"), "idle", r"--gpus=-1: must be at least 0"),
        (
            ("--target=kubernetes", "--design=turns"),
            "idle",
            r"--design=turns: on a cluster, .* which needs --apply=agent, .*--design=matrix",
        ),
        (
            ("--target=kubernetes", "--workload-via=pod"),
            "idle",
            r"--workload-via=pod: must be job, kaito, or FILE",
        ),
        (
            ("--target=kubernetes", "--workload-via=/none.yaml"),
            "idle",
            r"--workload-via=/none\.yaml: .*No such file",
        ),
        (
            ("--target=kubernetes", "--apply=agent", "--design=turns", "-n", "2"),
            "idle",
            r"without --workload-via=kaito, --gpus and -n\.",
        ),
        (
            ("--target=kubernetes", "--apply=agent", "--design=switch"),
            "idle",
            r"--design=switch: settings take turns there between pods",
        ),
        (
            ("--target=cloud",),
            "idle",
            r"--target=cloud: no such target\. Available: kubernetes, local",
        ),
        (("-n", "2"), "idle", r"-n: this machine has only one kernel, .*Omit -n"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_answered(
    place: Place, options: tuple[str, ...], workload: str, says: str
) -> None:
    assert re.search(says, refused(place.run(*options, workload=workload)))
    assert untouched(place)


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("benchmarks/bench_powercap.py", "benchmarks/bench_power_cap.py"),
        ("benchmark/", "benchmarks/"),
    ],
)
def test_a_misspelt_benchmark_is_answered_with_a_suggestion(
    place: Place, tmp_path: Path, path: str, meant: str
) -> None:
    (tmp_path / "hypothesis.py").write_text("raise ImportError")
    done = place.call(
        "env",
        f"PYTHONPATH={tmp_path}",
        sys.executable,
        "-m",
        "pytest",
        path,
        "--plan",
        "-p",
        "no:hypothesispytest",
    )
    assert (done.code, done.out.strip()) == (
        4,
        f"ERROR: file or directory not found: {path}. Did you mean {meant!r}?",
    )


def test_without_pytest_benchmark_nothing_begins(place: Place) -> None:
    assert refused(
        place.call(sys.executable, "-m", "pytest", "benchmarks/", "--plan", "-p", "no:benchmark")
    ).startswith("-p no:benchmark: ")


def test_a_number_that_is_none_is_refused_by_name(place: Place) -> None:
    done = place.run("--steps=1.5")
    assert done.code == 4  # pytest's own for its command line
    assert done.lines("--steps")
    assert untouched(place)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [1,\n", r"one\.yaml"),
        (
            TUNING % f"vm.swappiness = {'1' * 200_000}",
            r"one\.yaml: .* line 1: 'vm\.swappiness = 1+'… has 200,016 characters",
        ),
    ],
    ids=["broken YAML", "a long value"],
)
def test_a_manifest_that_cannot_be_read_is_named(place: Place, text: str, says: str) -> None:
    path = place.folder / "one.yaml"
    path.write_text(text)
    assert re.search(says, refused(place.run(f"--tweaks={path}")))
    assert untouched(place)


def test_a_plan_escapes_control_characters(place: Place) -> None:
    invalid = place.manifest("invalid", sysctl="vm.swappiness = 1\x1b[31m0")
    script = place.manifest("script", apply="echo \x1b[2J > /proc/sys/vm/\x1b[2Jx")
    done = place.run(f"--tweaks={invalid},{script}", "--plan", *QUICK)
    assert done.code == 0, done.out
    assert {one for one in done.out if not one.isprintable()} <= {"\n", "\t"}
    assert r"not '1\x1b[31m0'" in done.lines("vm.swappiness: ")[0]
    assert done.lines(r"/proc/sys/vm/\x1b[2Jx: ")


@pytest.mark.parametrize(
    "arguments",
    [(".",), (), ("tests/test_cells.py", ".")],
    ids=["pytest .", "pytest", "tests and ."],
)
def test_benchmarks_are_never_collected_unless_named(
    place: Place, arguments: tuple[str, ...]
) -> None:
    """They change a kernel."""
    # Which would take half a minute to collect.
    folders = [f"--ignore={path}" for path in (HOUSE / "tests").iterdir() if path.is_dir()]
    plugins = ("-p", "no:cacheprovider", "-p", "no:syrupy")
    done = place.call(
        sys.executable, "-m", "pytest", "--collect-only", "-q", *plugins, *folders, *arguments
    )
    assert done.code == 0, done.out
    assert done.lines("tests/test_cells.py::")
    # Some tests are named after a command.
    assert not [line for line in done.lines("benchmarks/") if line.startswith("benchmarks/")]


def test_from_the_folder_of_the_benchmarks_too(place: Place) -> None:
    """`cd benchmarks; pytest ../tests`."""
    done = place.call(
        "bash",
        "-c",
        f"cd '{HOUSE}/benchmarks' && exec '{sys.executable}' -m pytest --collect-only -q -p "
        "no:cacheprovider ../tests/test_cells.py",
    )
    assert (done.code, done.lines("bench_")) == (0, [])
