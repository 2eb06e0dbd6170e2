"""Designs over keys from command line to saved run, on a fake machine: laid out, or by file."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from analysis.load import load
from fixtures import design_file
from tests.fake_root import FakeRoot
from tests.sessions import HOUSE, Done, Place, until
from tests.spread.fleet import FLEET, FLEET_HALT
from tests.test_session import SCHEMA

if TYPE_CHECKING:
    import subprocess

pytestmark = [pytest.mark.slow]
ON_FLEET = ("-p", "tests.spread.plugin", "--target=fleet")
KNOBS = "vm.swappiness = 10\nvm.dirty_ratio = 40\nnet.core.rmem_max = 500000"
Json = dict[str, Any]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A machine in a folder, a set of three keys, and one whose second key is missing there."""
    environment = {
        FLEET: str(tmp_path / "fleet"),
        FLEET_HALT: str(tmp_path / "halt"),
        "PYTHONPATH": str(HOUSE),
    }
    place = Place(tmp_path, environment=environment)
    place.manifest("knobs", sysctl=KNOBS)
    place.manifest(
        "broken", sysctl="vm.swappiness = 10\nvm.dirty_rati = 40\nnet.core.rmem_max = 500000"
    )
    return place


def options(
    place: Place, design: str, *more: str, sets: str = "knobs", steps: int = 4
) -> list[str]:
    return [
        *ON_FLEET,
        f"--tweaks={place.folder}/{sets}.yaml",
        f"--design={design}",
        f"--steps={steps}",
        "--benchmark-save=one",
        *more,
    ]


def halted(place: Place, asked: Sequence[str], at: str) -> subprocess.Popen[str]:
    """A session that has begun a cell (see `tests.spread.fleet`) and stays there until `go_on`."""
    (place.folder / "halt").write_text(at)
    process = place.start(*asked)
    until((place.folder / "halt.there").exists, process)
    return process


def go_on(place: Place) -> None:
    (place.folder / "halt").unlink()


def interrupted(place: Place, asked: Sequence[str], how: int, after: int = 3) -> Done:
    """Stop a session in the cell after `after` finished ones."""
    process = halted(place, asked, f"* #{after + 1}")
    os.killpg(process.pid, how)
    done = place.ended(process)
    go_on(place)
    return done


def file_of(place: Place) -> Path:
    return place.folder / "design.csv"


def order(saved: Json) -> list[str]:
    """The cells as they ran: tweak set and block."""
    ours = saved["deeptweak"]
    assert ours["design"]["order"] == [cell["id"] for cell in ours["cells"]]
    return [f"{cell['tweakset']} {cell['block']}" for cell in ours["cells"]]


def outcomes(saved: Json) -> dict[str, str]:
    return {
        f"{cell['tweakset']} {cell['block']}": cell["outcome"]
        for cell in saved["deeptweak"]["cells"]
    }


def letters(place: Place) -> dict[str, str]:
    return {f"{row.tweakset} {row.block}": row.run for row in design_file.read(file_of(place)).rows}


def started(saved: Json) -> dict[str, str]:
    return {b["extra_info"]["id"]: b["extra_info"]["started_utc"] for b in saved["benchmarks"]}


def refused(done: Done) -> str:
    assert done.code == 2, done.out
    assert "Traceback" not in done.out
    return done.out


# -- static designs


def test_an_ablation_is_saved_with_the_levels_of_each_point(place: Place) -> None:
    """Three keys: the whole, three without one, three with one; stock and its copy.

    Two blocks of nine.
    """
    done = place.run(*options(place, "ablation", "--blocks=2"))
    assert done.code == 0, done.out
    saved = place.saved()
    jsonschema.Draft202012Validator(SCHEMA).validate(saved)
    design = load(place.files()[-1]).design
    assert (design.kind, len(design.order), len(design.points)) == ("ablation", 18, 7)
    assert design.points["knobs.no-vm.dirty_ratio"].levels == {
        "vm.swappiness": "10",
        "vm.dirty_ratio": None,
        "net.core.rmem_max": "500000",
    }
    found = {
        b["extra_info"]["tweakset"]: b["extra_info"]["tweak"]["requested"]
        for b in saved["benchmarks"]
    }
    for name, point in design.points.items():
        assert found[name] == {
            key: level for key, level in point.levels.items() if level is not None
        }


def test_an_unmeasurable_point_is_named_and_the_run_goes_on(
    place: Place,
) -> None:
    done = place.run(*options(place, "ablation", "--blocks=1", sets="broken"))
    assert done.code == 2
    (line,) = done.lines("NOT MEASURED: vm.dirty_rati: this kernel has no such setting: 4 of ")
    assert "broken.only-vm.dirty_rati (vm.dirty_rati=40)" in line
    saved = place.saved()
    assert not saved["deeptweak"]["interrupted"]
    lost = [name for name, outcome in outcomes(saved).items() if outcome != "measured"]
    assert sorted(lost) == [
        "broken 1",
        "broken.no-net.core.rmem_max 1",
        "broken.no-vm.swappiness 1",
        "broken.only-vm.dirty_rati 1",
    ]


def test_another_writer_costs_the_cells_that_leave_the_key(place: Place) -> None:
    """From 60 to 33 in stock of block 2: earlier cells are measured; the change is left alone."""
    process = halted(place, options(place, "factorial", "--blocks=2"), "stock b2 *")
    FakeRoot(place.folder / "fleet" / "node-0").put("/proc/sys/vm/swappiness", "33")
    go_on(place)
    done = place.ended(process)
    assert done.code in (1, 2), done.out  # 2 where a point was measured in no block
    saved = place.saved()
    points = load(place.files()[-1]).design.points
    sets = {name for name, point in points.items() if point.levels["vm.swappiness"] is not None}
    cells = saved["deeptweak"]["cells"]
    first = next(number for number, cell in enumerate(cells) if cell["outcome"] == "failed")
    assert (cells[first]["tweakset"], cells[first]["block"]) == ("stock", 2)
    assert cells[first]["reason"].startswith(
        "vm.swappiness was '33' when the workload ended, but '60' when the run began"
    )
    later = cells[first + 1 :]
    assert sets & {cell["tweakset"] for cell in later}
    assert {cell["outcome"] for cell in later if cell["tweakset"] in sets} == {"measured"}
    failed = [cell for cell in later if cell["tweakset"] not in sets]
    assert {cell["outcome"] for cell in failed} == {"failed"}
    assert all(
        cell["reason"].startswith(
            "vm.swappiness was '33' when the cell began, but '60' when the run began"
        )
        for cell in failed
    )
    assert done.lines(
        "changed since the run began: /proc/sys/vm/swappiness: 60 -> 33; not changed by this run, "
        "and left as it is"
    )
    assert not done.lines("NOT PUT BACK")
    assert saved["deeptweak"]["machine_check"] == {
        "changed": {"/proc/sys/vm/swappiness": ["60", "33"]},
        "restored": True,
    }


def test_nodes_share_the_blocks_of_a_design_and_mark_one_file(place: Place) -> None:
    done = place.run(
        *options(place, "ablation", "--blocks=3", f"--design-file={file_of(place)}", "-n", "3")
    )
    assert done.code == 0, done.out
    assert len(order(place.saved())) == 27
    assert set(letters(place).values()) == {"Y"}


@pytest.mark.usefixtures("kernel_unchanged")
def test_a_budget_is_spent_on_whole_blocks(place: Place) -> None:
    """By the mean of those before, each block but the last left time for another; all is whole."""
    budget_s, more = (
        6,
        ("--workloads=idle", "--tweaks=memory-overcommit", "--steps=20", "--benchmark-save=one"),
    )
    done = place.run(f"--budget={budget_s}s", *more)
    assert done.code == 0, done.out
    ours = place.saved()["deeptweak"]
    jsonschema.validate(place.saved(), SCHEMA)
    assert (ours["interrupted"], ours["design"]["budget_s"]) == (False, budget_s)
    took_s = [
        sum(
            one["extra_info"]["duration_s"]
            for one in place.saved()["benchmarks"]
            if one["extra_info"]["block"] == block
        )
        for block in range(1, ours["design"]["blocks"] + 1)
    ]
    assert len(took_s) > 1
    assert {one["outcome"] for one in ours["cells"]} == {"measured"}
    assert len(ours["cells"]) == len(ours["design"]["order"]) == 3 * len(took_s)
    fits = [
        sum(took_s[:done]) * (done + 1) / done <= budget_s for done in range(1, len(took_s) + 1)
    ]
    assert fits == [True] * (len(took_s) - 1) + [False]
    assert done.lines(f"Skipping block {len(took_s) + 1} of idle: it needs about ")


# -- by file


def test_an_unwritable_file_ends_the_run_before_the_first_cell(place: Place) -> None:
    said = refused(place.run(*options(place, "ablation", "--design-file=/nowhere/design.csv")))
    assert (
        "--design-file=/nowhere/design.csv: cannot be written (No such file or directory). Use "
        "another path." in said
    )
    assert place.files() == []
    assert place.run(*options(place, "matrix", "--blocks=1")).code == 0


def test_a_file_by_hand_is_the_design(place: Place) -> None:
    """With a level that the manifest lacks, under the author's own name; comments stay."""
    file_of(place).write_text(
        "# by hand\n"
        "order,block,workload,tweakset,vm.swappiness,vm.dirty_ratio,net.core.rmem_max,run,reason\n"
        "2,1,idle,stock,,,,N,\n"
        "# now the middle\n"
        "1,1,idle,middle,33,,,N,\n"
        "3,1,idle,knobs,+,+,+,F,it rained\n"
    )
    asked = [
        one
        for one in options(place, "ablation", f"--design-file={file_of(place)}")
        if not one.startswith("--design=")
    ]
    assert "a design other than --design=ablation makes. Omit --design," in refused(
        place.run("--design=ablation", *asked)
    )
    done = place.run(*asked)
    assert done.code == 0, done.out
    saved = place.saved()
    assert order(saved) == ["middle 1", "stock 1", "knobs 1"]
    design = load(place.files()[-1]).design
    assert design.kind == "file"  # it is not what an ablation would have laid out
    assert design.factors[0].levels == (None, "33", "10")
    assert file_of(place).read_text() == (
        "# by hand\n"
        "# now the middle\n"
        "order,block,workload,tweakset,vm.swappiness,vm.dirty_ratio,net.core.rmem_max,run,reason\n"
        "1,1,idle,middle,33,,,Y,\n"
        "2,1,idle,stock,,,,Y,\n"
        "3,1,idle,knobs,+,+,+,Y,\n"
    )


def test_after_a_kill_the_file_says_what_is_left(place: Place) -> None:
    """Finished cells are in the progress file, rows set back to N are run again, comments stay."""
    asked = options(place, "ablation", "--blocks=2", f"--design-file={file_of(place)}")
    interrupted(place, asked, signal.SIGKILL, after=4)
    text = file_of(place).read_text()
    before = letters(place)
    done_before = [name for name, run in before.items() if run == "Y"]
    assert len(done_before) == 4
    again = done_before[0]
    kept = {name: record["started_utc"] for name, record in place.finished().items()}
    lines = text.splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if f",{again.split(' ')[0]}," in line)
    lines[at] = lines[at].replace(",Y,", ",N,")
    file_of(place).write_text("# I had a look\n" + "".join(lines))
    done = place.run(*asked, "--resume")
    assert done.code == 0, done.out
    assert file_of(place).read_text().startswith("# I had a look\n")
    assert set(letters(place).values()) == {"Y"}
    saved = place.saved()
    assert len(order(saved)) == 18
    assert load(place.files()[-1]).design.kind == "ablation"
    anew = {
        cell["id"]
        for cell in saved["deeptweak"]["cells"]
        if f"{cell['tweakset']} {cell['block']}" == again
    }
    same = {name for name, when in started(saved).items() if kept.get(name) == when}
    assert (
        same == {f"kernel_tweaks/idle-{'-b'.join(name.split(' '))}" for name in done_before} - anew
    )
    assert not list((place.storage / "progress").iterdir())


@pytest.mark.parametrize("more", [(), ("-n", "2")], ids=["serial", "spread"])
def test_what_failed_is_tried_again_with_resume_and_nothing_else(
    place: Place, more: tuple[str, ...]
) -> None:
    columns = (
        "order,block,workload,tweakset,vm.swappiness,vm.dirty_rati,net.core.rmem_max,run,reason\n"
    )
    file_of(place).write_text(
        columns + "1,1,idle,stock,,,,N,\n2,1,idle,broken.x,,7,,N,\n3,1,idle,broken.y,1,,,N,\n"
    )
    asked = [
        one
        for one in options(place, "", f"--design-file={file_of(place)}", *more, sets="broken")
        if one != "--design="
    ]
    assert place.run(*asked).code == 2
    assert letters(place) == {"stock 1": "Y", "broken.x 1": "F", "broken.y 1": "Y"}
    assert "F,skipped" not in file_of(place).read_text()
    assert "vm.dirty_rati: this kernel has no such setting" in file_of(place).read_text()
    file_of(place).write_text(
        file_of(place)
        .read_text()
        .replace("broken.x,,7,", "broken.x,3,,")
        .replace("broken.y,1,", "broken.y,2,")
    )
    first = started(place.saved())
    done = place.run(*asked, "--resume")
    assert done.code == 0, done.out
    second = started(place.saved())
    assert [name for name, when in second.items() if first.get(name) == when] == [
        "kernel_tweaks/idle-stock-b1"
    ]
    assert set(letters(place).values()) == {"Y"}
