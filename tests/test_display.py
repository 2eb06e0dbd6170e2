"""Output for people: durations as spoken, a plan in full, and a restore line by line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fixtures import ticker
from fixtures.display import Display, in_force, plan_lines, restored_lines
from fixtures.kernel.machine import Machine, Restored, Write
from fixtures.options import Options
from fixtures.session import Session
from fixtures.targets.local import Local
from fixtures.terms import CellSpec, Metric, Order, Script, Study
from fixtures.tweaks.local import Plan
from fixtures.workloads import load

STUDY = Study(
    "study",
    "Why?",
    ("idle",),
    ("memory-reclaim", "thp-never", "process-limits"),
    Metric("step_time_p10_s", "lower"),
    blocks=2,
)
PLANS = {
    "stock": Plan(),
    "stock-again": Plan(),
    "memory-reclaim": Plan((Write("/proc/sys/vm/swappiness", "10", "vm.swappiness"),)),
    "thp-never": Plan(
        scripts=(Script("thp", "apply", "true"),),
        cannot=("its scripts need root", "its scripts call x: it is not installed"),
    ),
    "process-limits": Plan(
        scripts=(Script("limits", "apply", "true"),), limits={"nofile": (1024, 4096)}
    ),
}


@pytest.fixture
def run(tmp_path: Path) -> Session:
    """A run on a small machine made of files, with plans of every kind."""
    path = tmp_path / "proc/sys/vm/swappiness"
    path.parent.mkdir(parents=True)
    path.write_text("60\n")
    target = Local(tmp_path)
    target.machine = Machine(tmp_path, tmp_path / "state")
    run = Session(
        Options(None, "idle", None, None, 3, resume=False, folder=tmp_path / "results"), target
    )
    run.plans = dict(PLANS)
    return run


@pytest.fixture
def cells(run: Session) -> list[CellSpec]:
    return run.declare(STUDY)


@pytest.mark.parametrize(
    ("workload", "report", "said"),
    [
        ("idle", {}, "20.0 ms per step (median)"),
        ("checkpoint_train", {}, "123.5 samples/s"),
        (
            "io_train",
            {"epochs": [{"resident_before": 0.004}, {}]},
            "123.5 samples/s, 0 % cached before",
        ),
        (
            "io_train",
            {"epochs": [{"resident_before": 1.0}, {"resident_before": 0.09}]},
            "123.5 samples/s, 9 % to 100 % cached before",
        ),
        ("io_train", {"epochs": [{"resident_before": None}]}, "123.5 samples/s"),
    ],
)
def test_a_finished_cell_is_shown_with_its_workloads_figure(
    run: Session,
    workload: str,
    report: dict[str, object],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines: list[str] = []
    display = Display(None)
    monkeypatch.setattr(display, "say", lines.append)
    cell = CellSpec("study", workload, "stock", 1, 1, 1)
    metrics = {"step_time_median_s": 0.02, "throughput_samples_per_s": 123.456}
    run.records[cell.id] = {
        "outcome": "measured",
        "duration_s": 1.0,
        "metrics": metrics,
        "report": report,
    }
    display.ended(run, cell, run.records[cell.id])
    assert f"{workload} x stock, block 1: {said}; in force: " in lines[0]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the lines of a session without pytest's own lines, one due at each look."""
    said: list[str] = []
    monkeypatch.setattr(ticker, "EVERY_S", 0.0)
    monkeypatch.setattr(Display, "say", lambda _, line: said.append(line))
    return said


def display_of(run: Session, cells: list[CellSpec], *, alone: bool = True) -> Display:
    display = Display(None)
    display.expect(cells)
    display.opened(run)
    display.alone = alone
    return display


def test_a_slow_cell_says_at_which_step_it_is(
    run: Session, cells: list[CellSpec], lines: list[str]
) -> None:
    order = Order(load("idle"), steps=20, warmup_steps=3, seed=1)
    heard = display_of(run, cells).stepped(cells[0], order)
    lines.clear()
    for done in (0, 11, 23):  # all are done, and it has not ended yet
        heard(done)
    where = f"[ 1/10] 2 s left: idle x {cells[0].tweakset}, block 1"
    assert lines == [f"{where}: step {number} of 23" for number in (1, 12, 23)]


def test_in_turns_it_says_the_round_and_the_arm_too(
    run: Session, cells: list[CellSpec], lines: list[str]
) -> None:
    order = Order(load("idle"), steps=20, warmup_steps=3, seed=1, slice_steps=4)
    display = display_of(run, cells)
    heard = display.stepped(cells[1], order, cells[0])
    lines.clear()
    heard(0)
    display.turned(cells[0])(2, 5)
    heard(11)
    where = f"[ 1/10] 2 s left: idle x {cells[0].tweakset}, block 1 and the others in turns"
    assert lines == [
        f"{where}: {cells[1].tweakset}, step 1 of 23",
        f"{where}, round 2 of 5: {cells[1].tweakset}, step 12 of 23",
    ]


def test_a_line_is_due_so_long_after_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    one = ticker.Ticker()
    now_s += 4
    assert (one.is_due(), one.left_s()) == (False, ticker.EVERY_S - 4)
    now_s += 1
    assert (one.left_s(), one.is_due(), one.left_s()) == (0.0, True, ticker.EVERY_S)
    now_s += 3
    one.restart()
    assert one.left_s() == ticker.EVERY_S <= 5


def test_a_plan_names_every_cell_in_order_with_the_skipped(
    run: Session, cells: list[CellSpec]
) -> None:
    lines = list(plan_lines(run, cells))
    assert lines[0] == "10 cells in this order (seed 3):"
    assert [line.split()[1:6] for line in lines[1:11]] == [
        ["block", str(c.block), "idle", "x", c.tweakset] for c in cells
    ]
    assert [line.endswith("(skipped, see below)") for line in lines[1:11]] == [
        c.tweakset == "thp-never" for c in cells
    ]
    # 8 cells of 0.2 s; the two of thp-never take no time
    assert lines[-1] == "Expected: about 2 s on 2 cores. Nothing was touched."


def test_a_long_plan_shortens_blocks_that_repeat_the_first(
    run: Session, cells: list[CellSpec]
) -> None:
    pair = [
        next(cell for cell in cells if cell.tweakset == name) for name in ("stock", "stock-again")
    ]
    blocks = [[replace(cell, block=block) for cell in pair] for block in range(1, 61)]
    blocks[1].reverse()
    blocks[59] = blocks[59][:1]
    cells = [cell for block in blocks for cell in block]
    lines = list(plan_lines(run, cells))
    assert lines[:4] == [
        "119 cells in this order (seed 3); -v lists all of them:",
        "    1  block 1  idle x stock",
        "    2  block 1  idle x stock-again",
        "    3  block 2  the same 2 cells in another order",
    ]
    assert "  119  block 60  idle x stock" in lines  # it is not the same
    assert "    3  block 2  idle x stock-again" in list(plan_lines(run, cells, every=True))


def told(run: Session, cells: list[CellSpec], name: str) -> list[str]:
    """The lines below a tweak set's name."""
    lines = list(plan_lines(run, cells))
    start = lines.index(f"  {name}:") + 1
    end = next(at for at in range(start, len(lines)) if not lines[at].startswith("    "))
    return [line.strip() for line in lines[start:end]]


def test_a_plan_tells_what_each_set_would_write_run_and_limit(
    run: Session, cells: list[CellSpec]
) -> None:
    assert told(run, cells, "stock") == told(run, cells, "stock-again") == ["nothing"]
    assert told(run, cells, "memory-reclaim")[0] == "vm.swappiness: 60 -> 10"
    assert told(run, cells, "process-limits")[:3] == [
        "runs limits/apply.sh; then what still differs is put back",
        "its writes are known only after it has run",
        "workload process limit nofile: soft 1024, hard 4096",
    ]


@pytest.mark.parametrize(
    ("tweak", "limits", "said"),
    [
        ({}, {}, "nothing changed"),
        ({"observed": {"vm.swappiness": "10"}}, {}, "vm.swappiness=10"),
        (
            {"side_effects": {"/sys/kernel/mm/transparent_hugepage/enabled": ["madvise", "never"]}},
            {},
            "transparent_hugepage/enabled=never",
        ),
        (
            {"observed": {"vm.swappiness": "10"}},
            {"nofile": (512, 512), "core": (0, 0)},
            "vm.swappiness=10 and 2 more",
        ),
    ],
)
def test_what_is_in_force_is_said_in_a_few_words(
    run: Session,
    cells: list[CellSpec],
    tweak: dict[str, object],
    limits: dict[str, tuple[int, int]],
    said: str,
) -> None:
    run.records[cells[0].id] = {"tweak": tweak}
    run.plans[cells[0].tweakset] = Plan(limits=limits)
    assert in_force(run, cells[0]) == said


def test_what_a_script_wrote_is_shown_before_side_effects(
    run: Session, cells: list[CellSpec]
) -> None:
    (cell,) = {cell.tweakset: cell for cell in cells if cell.tweakset == "thp-never"}.values()
    thp = "/sys/kernel/mm/transparent_hugepage/enabled"
    changed = {"/proc/sys/vm/min_free_kbytes": ["1", "2"], thp: ["madvise", "never"]}
    run.records[cell.id] = {"tweak": {"side_effects": changed, "by_scripts": [thp]}}
    assert in_force(run, cell) == "transparent_hugepage/enabled=never and 1 more"
    run.records[cell.id] = {
        "tweak": {"side_effects": {"/sys/block/vda/queue/nr_requests": ["1", "2"]}}
    }
    assert in_force(run, cell) == "vda/queue/nr_requests=2"


def test_everything_a_restore_did_is_said() -> None:
    result = Restored(
        back={
            "/sys/kernel/mm/transparent_hugepage/enabled": (
                "[always] madvise never",
                "always [madvise] never",
            )
        },
        left_alone={"/proc/sys/vm/swappiness": ("33", "10")},
        stuck={"/proc/sys/vm/dirty_ratio": "Invalid argument"},
        notes=("the machine was rebooted meanwhile",),
        label="one",
    )
    assert list(restored_lines(result)) == [
        "An earlier run ended inside tweak set 'one' and left this machine changed; put back now:",
        "  /sys/kernel/mm/transparent_hugepage/enabled: always -> madvise",
        (
            "  /proc/sys/vm/swappiness: is 33, not 10 as the run set it: changed by another "
            "program, so left alone"
        ),
        "  /proc/sys/vm/dirty_ratio: NOT put back: Invalid argument",
        "  the machine was rebooted meanwhile",
    ]
