"""The main job from command line to saved file, on the real kernel."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fixtures.kernel import lock
from fixtures.kernel.tunables import Tunables, diff
from tests.sessions import HOUSE, Done, Place, another_swappiness, swappiness
from tests.waiting import until

SCHEMA = json.loads((HOUSE / "data/run.schema.json").read_text(encoding="utf-8"))
pytestmark = pytest.mark.usefixtures("kernel_unchanged")
SETS = ("typed", "scripted", "limited", "unknown", "refused")
DIRTY = "/proc/sys/vm/dirty_writeback_centisecs"


@pytest.fixture(scope="module")
def place(
    tmp_path_factory: pytest.TempPathFactory,
    kernel_lock: None,  # noqa: ARG001 for all sessions of this file
) -> Place:
    return Place(tmp_path_factory.mktemp("session"))


@pytest.fixture(scope="module")
def asked(place: Place) -> int:
    """The swappiness that the set `typed` asks for."""
    value = another_swappiness()
    place.manifest("typed", sysctl=f"vm.swappiness = {value}")
    place.manifest("scripted", apply=f"echo $(($(cat {DIRTY}) + 1)) > {DIRTY}")
    place.manifest("limited", ulimit="nofile=512")
    place.manifest("unknown", sysctl="vm.swapiness = 10")
    place.manifest("refused", sysctl="vm.swappiness = 999")
    return value


@pytest.fixture(scope="module")
def options(place: Place, asked: int) -> list[str]:
    assert asked != swappiness()
    return [
        "--tweaks=" + ",".join(str(place.folder / f"{name}.yaml") for name in SETS),
        "--blocks=3",
        "--steps=4",
        "--seed=7",
    ]


@pytest.fixture(scope="module")
def plan(place: Place, options: list[str]) -> Done:
    """`--plan`, before anything ran."""
    before = Tunables().snapshot()
    done = place.run(*options, "--plan", "--benchmark-save=exp")
    assert diff(before, Tunables().snapshot()) == {}
    assert not place.state.exists()
    assert [p for p in place.storage.glob("**/*") if p.is_file()] == []
    return done


@pytest.fixture(scope="module")
def session(
    place: Place,
    options: list[str],
    plan: Done,  # noqa: ARG001 the plan comes first
) -> Done:
    """Run 7 sets in 3 blocks: 4 measurable (stock twice), one not, one that the kernel refuses."""
    return place.run(*options, "--benchmark-save=exp")


@pytest.fixture(scope="module")
def saved(place: Place, session: Done) -> dict[str, Any]:
    assert len(place.files()) == 1, session.out
    return place.saved()


def records(saved: dict[str, Any], tweakset: str) -> list[dict[str, Any]]:
    return [b["extra_info"] for b in saved["benchmarks"] if b["extra_info"]["tweakset"] == tweakset]


def planned(plan: Done) -> list[str]:
    """The cells' ids, from lines such as `  3  block 1  idle x typed`."""
    found = re.findall(r"(?m)^ +(\d+)  block (\d+)  (\S+) x (\S+)", plan.out)
    assert [int(number) for number, *_ in found] == list(range(1, len(found) + 1))
    return [
        f"kernel_tweaks/{workload}-{tweakset}-b{block}" for _, block, workload, tweakset in found
    ]


def test_the_plan_lists_cells_in_the_order_in_which_they_run(
    plan: Done, saved: dict[str, Any]
) -> None:
    cells = saved["deeptweak"]["cells"]
    assert plan.code == 0
    assert planned(plan) == saved["deeptweak"]["design"]["order"] == [cell["id"] for cell in cells]
    started = [(b["extra_info"]["started_utc"], b["extra_info"]["id"]) for b in saved["benchmarks"]]
    assert [name for _, name in sorted(started)] == [
        cell["id"] for cell in cells if cell["outcome"] == "measured"
    ]


def test_plan_tells_each_write_and_why_a_set_is_left_out(plan: Done, asked: int) -> None:
    assert f"vm.swappiness: {swappiness()} -> {asked}" in plan.out
    assert "skipped: vm.swapiness: this kernel has no such setting" in plan.out
    assert "workload process limit nofile: soft 512, hard 512" in plan.out
    assert "runs script/apply.sh" in plan.out
    assert "Nothing was touched." in plan.out


def test_every_cell_is_in_the_file_once_with_its_outcome(saved: dict[str, Any]) -> None:
    """7 sets in 3 blocks: 15 measured, 3 skipped, 3 failed; only the measured are benchmarks."""
    jsonschema.Draft202012Validator(SCHEMA).validate(saved)
    outcomes = {(c["tweakset"], c["block"]): c["outcome"] for c in saved["deeptweak"]["cells"]}
    wanted = dict.fromkeys(("stock", "stock-again", "typed", "scripted", "limited"), "measured") | {
        "unknown": "skipped",
        "refused": "failed",
    }
    assert outcomes == {
        (name, block): outcome for name, outcome in wanted.items() for block in (1, 2, 3)
    }
    assert len(saved["deeptweak"]["cells"]) == 21
    assert sorted(b["extra_info"]["id"] for b in saved["benchmarks"]) == sorted(
        c["id"] for c in saved["deeptweak"]["cells"] if c["outcome"] == "measured"
    )
    assert saved["deeptweak"]["interrupted"] is False


def test_reasons_say_what_happened(saved: dict[str, Any]) -> None:
    reasons = {c["tweakset"]: c["reason"] for c in saved["deeptweak"]["cells"]}
    assert reasons["unknown"] == "vm.swapiness: this kernel has no such setting"
    assert "vm.swappiness: the kernel refused '999' (Invalid argument)" in reasons["refused"]
    assert "Correct the value, or remove it from 'refused'" in reasons["refused"]


def test_what_was_asked_for_was_in_force_and_is_back(saved: dict[str, Any], asked: int) -> None:
    found = records(saved, "typed")
    assert len(found) == 3
    for record in found:
        tweak = record["tweak"]
        assert tweak["requested"] == tweak["observed"] == {"vm.swappiness": str(asked)}
        assert tweak["before"] == tweak["restored"] == {"vm.swappiness": str(swappiness())}
        assert (tweak["side_effects"], tweak["already_in_force"]) == ({}, [])
    assert saved["deeptweak"]["machine_check"] == {"changed": {}, "restored": True}


def test_limits_are_the_workload_processs_own(saved: dict[str, Any]) -> None:
    assert [r["limits"]["nofile"] for r in records(saved, "limited")] == [[512, 512]] * 3
    assert all(r["limits"]["nofile"] != [512, 512] for r in records(saved, "stock"))


def test_rounds_are_the_workloads_own_steps(saved: dict[str, Any]) -> None:
    """4 measured steps without the two of warm-up; pytest-benchmark's statistics are on them."""
    for benchmark in saved["benchmarks"]:
        record = benchmark["extra_info"]
        wall_s = record["steps"]["wall_s"]
        assert (len(wall_s), record["steps"]["warmup"]) == (6, 2)
        assert benchmark["stats"]["data"] == wall_s[2:]
        assert benchmark["stats"]["rounds"] == 4
        assert record["metrics"]["throughput_samples_per_s"] == pytest.approx(4 / sum(wall_s[2:]))
        assert benchmark["group"] == "idle"
        assert benchmark["params"] == {
            "workload": "idle",
            "tweakset": record["tweakset"],
            "block": record["block"],
        }


def test_blocks_are_paired_by_the_same_samples(saved: dict[str, Any]) -> None:
    assert len({b["extra_info"]["workload_facts"]["data_crc32"] for b in saved["benchmarks"]}) == 1
    assert {b["extra_info"]["seed"] for b in saved["benchmarks"]} == {7}


def test_every_set_has_a_verdict_or_a_not_measured_line(
    session: Done, saved: dict[str, Any]
) -> None:
    """Asked for by name and not measured: exit code 2."""
    words = ("faster", "slower", "same (", "can't tell", "not comparable")
    for name in {c["tweakset"] for c in saved["deeptweak"]["cells"]} - {
        "stock",
        "stock-again",
        "unknown",
        "refused",
    }:
        assert [line for line in session.lines(name) if any(word in line for word in words)], name
    assert session.lines("NOT MEASURED: unknown: vm.swapiness: this kernel has no such setting")
    assert session.lines("NOT MEASURED: refused: vm.swappiness: the kernel refused")
    assert session.code == 2


def test_progress_says_which_cell_and_what_is_in_force(session: Done, asked: int) -> None:
    assert len(session.lines("idle x typed, block")) == 3
    assert all(
        f"in force: vm.swappiness={asked}" in line for line in session.lines("idle x typed, block")
    )
    assert all("in force: nothing changed" in line for line in session.lines("idle x stock, block"))
    assert session.out.index("[ 1/21]") < session.out.index("[15/21]")


def test_on_a_terminal_one_line_says_what_is_in_force_now(tmp_path: Path) -> None:
    """It is there while the cell runs, and rewrites itself: of successes only the table stays."""
    place, value = Place(tmp_path), another_swappiness()
    ours, theirs = pty.openpty()
    command = place.command(
        f"--tweaks={place.manifest('typed', sysctl=f'vm.swappiness = {value}')}",
        "--blocks=1",
        "--steps=4",
    )
    with subprocess.Popen(
        command, cwd=HOUSE, env=place.env(), stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # EIO: the other end was closed
            while block := os.read(ours, 65536):
                seen += block
    os.close(ours)
    lines = seen.decode().split("\r")
    assert process.returncode == 0
    assert [
        line
        for line in lines
        if f" left: idle x typed, block 1; in force: vm.swappiness={value}" in line
    ]
    assert [
        line for line in lines if line.lstrip().startswith("[3/3] ") and " left: idle x " in line
    ]
    assert not [line for line in lines if "ms per step" in line]


def test_a_finished_run_leaves_nothing_behind(place: Place, session: Done) -> None:
    assert session.code == 2
    assert sorted(p.name for p in place.state.iterdir()) == ["journal.closed", "lock"]
    assert list((place.storage / "progress").iterdir()) == []
    assert list((place.storage / "scratch").iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("compare", "0001", "--group-by=param:tweakset", "--columns=min,median,rounds"),
        ("compare", "--csv=OUT"),
    ],
    ids=" ".join,
)
def test_the_stock_command_works_on_it(
    place: Place, saved: dict[str, Any], arguments: tuple[str, ...]
) -> None:
    """`pytest-benchmark` knows nothing of DeepTweak."""
    given = [a.replace("OUT", str(place.folder / "out.csv")) for a in arguments]
    done = subprocess.run(
        [sys.executable, "-m", "pytest_benchmark", f"--storage={place.storage}", *given],
        capture_output=True,
        text=True,
        check=False,
        cwd=HOUSE,
    )
    assert done.returncode == 0, done.stderr
    assert saved["benchmarks"]
    assert ("0001_exp" if arguments[0] == "list" else "idle-typed-b1") in done.stdout


def test_stock_options_work_in_the_session(place: Place, session: Done, asked: int) -> None:
    """Compare with the run before, group, write JSON elsewhere: pytest-benchmark's own table."""
    assert session.code == 2
    where = place.folder / "own.json"
    done = place.run(
        f"--tweaks={place.folder}/typed.yaml",
        "--blocks=1",
        "--steps=4",
        "--seed=7",
        "--benchmark-compare=0001",
        "--benchmark-group-by=param:tweakset",
        f"--benchmark-json={where}",
        f"--benchmark-histogram={place.folder}/histogram",
    )
    assert done.code == 0, done.out
    for group in ("typed", "stock", "stock-again"):
        assert done.lines(f"benchmark 'tweakset={group}': 2 tests"), done.out
    assert done.lines("(0001_exp)")
    assert done.lines("(NOW)")
    assert not done.lines("machine_info is different")
    assert len(list(place.folder.glob("histogram*.svg"))) == 3
    own = json.loads(where.read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(own)
    assert records(own, "typed")[0]["tweak"]["observed"] == {"vm.swappiness": str(asked)}


def test_whoever_waits_for_the_machine_is_told(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.state.mkdir(exist_ok=True)
    tweaks = place.manifest("reclaim", sysctl=f"vm.swappiness = {another_swappiness()}")
    with lock.held(place.state):
        process = place.start(f"--tweaks={tweaks}", "--blocks=1", "--steps=2", "--wait=5m")
        until(lambda: "Waiting up to 300 s for process" in (tmp_path / "output").read_text())
    assert place.ended(process).code == 0


def test_a_run_of_which_nothing_could_be_measured_is_saved_too(tmp_path: Path) -> None:
    """Both stocks lack memory, the set is skipped: pytest-benchmark alone would write no file."""
    place = Place(tmp_path, environment={"PYTHONPATH": str(tmp_path)})
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\nif 'fixtures.workloads.idle' in sys.orig_argv: os._exit(3)\n"
    )
    done = place.run(
        f"--tweaks={place.manifest('unknown', sysctl='vm.swapiness = 10')}",
        "--blocks=1",
        "--benchmark-save=none",
    )
    assert done.code == 2, done.out
    saved = place.saved()
    jsonschema.Draft202012Validator(SCHEMA).validate(saved)
    assert saved["benchmarks"] == []
    assert sorted(c["outcome"] for c in saved["deeptweak"]["cells"]) == [
        "failed",
        "failed",
        "skipped",
    ]
