"""Lengths of slices and cells for blocks in turns: before and after the first blocks."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from fixtures import workloads
from fixtures.terms import BadInput, CellSpec, Limit
from fixtures.turn_layout import (
    FEWEST_STEPS,
    FIRST_BLOCKS,
    LASTING,
    LONG_STEPS,
    OVERHEAD,
    Timing,
    TurnLayout,
    choose,
    first,
    seen,
)
from fixtures.workloads import Workload
from tests.test_stopping import STUDY, run_of

Record = dict[str, Any]

DIRTY, SWAP, NET = (
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/swappiness",
    "/proc/sys/net/ipv4/tcp_congestion_control",
)
COLLAPSE = "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag"
ALL = frozenset(LASTING)
TYPICAL = Timing(start_s=0.5, step_s=0.05, switch_s=0.004, step_sd=0.1, process_variance=0.015**2)
MANY = 1e6  # blocks: enough to know their own scatter


@pytest.mark.parametrize(
    ("requested", "cycle", "paths", "lasting", "expected"),
    [
        (None, 1, (), ALL, (20, 1)),
        (None, 4, (), ALL, (40, 4)),
        # what a setting started in the kernel outlasts a step, of a workload that feels it
        (None, 1, (SWAP, DIRTY), ALL, (40, 4)),
        (None, 1, (SWAP, NET), ALL, (40, 4)),
        (None, 1, ("/sys/block/vda/queue/scheduler",), ALL, (40, 4)),
        (None, 1, (COLLAPSE,), ALL, (40, 4)),
        (None, 1, (DIRTY, NET), frozenset({"collapse"}), (20, 1)),
        (None, 3, (DIRTY,), ALL, (120, 12)),
        # steps that were asked for stay, in equal slices, two at least
        (40, 1, (), ALL, (40, 1)),
        (40, 4, (), ALL, (40, 4)),
        (6, 4, (), ALL, (6, 3)),
        (7, 4, (), ALL, (7, 1)),
        (2, 4, (), ALL, (2, 1)),
    ],
)
def test_first_slices_are_as_short_as_the_work_allows(
    requested: int | None,
    cycle: int,
    paths: tuple[str, ...],
    lasting: frozenset[str],
    expected: tuple[int, int],
) -> None:
    assert first(requested, cycle, paths, lasting) == expected


@pytest.mark.parametrize(
    ("requested", "paths", "advice"),
    [(7, (DIRTY,), "--steps=8"), (10, (NET,), "--steps=8 or --steps=12"), (3, (DIRTY,), "=8")],
)
def test_steps_that_do_not_fill_long_slices_are_refused(
    requested: int, paths: tuple[str, ...], advice: str
) -> None:
    with pytest.raises(BadInput, match=f"--steps={requested}: .*{advice}"):
        first(requested, 1, paths, ALL)
    assert first(requested, 1, (SWAP,), ALL) == (requested, 1)


def test_a_set_with_a_script_keeps_long_slices(tmp_path: Path) -> None:
    config = {"apply.sh": "sysctl -w vm.dirty_ratio=11", "uninstall.sh": "true"}
    package = {
        "version": "1.1.2",
        "image": "ghcr.io/nvidia/skyhook-packages/shellscript",
        "configMap": config,
    }
    metadata, spec = {"name": "writer"}, {"packages": {"script": package}}
    skyhook = {
        "apiVersion": "skyhook.nvidia.com/v1alpha1",
        "kind": "Skyhook",
        "metadata": metadata,
        "spec": spec,
    }
    (tmp_path / "writer.yaml").write_text(yaml.safe_dump(skyhook))
    run = run_of(tmp_path, str(tmp_path / "writer.yaml"), design="turns")
    cell = cells_of(run, 1)[0]
    assert run.order_of(cell).slice_steps == 4
    # Once its first cells have shown what it changes, that alone decides.
    for path, slice_steps in ((SWAP, 1), ("/proc/sys/vm/dirty_ratio", 4)):
        assert run.shortest(cell, {"writer": {path}}).slice_steps == slice_steps


@pytest.mark.parametrize(
    ("step_sd", "process_sd", "start_s"), [(0.1, 0.015, 0.5), (0.2, 0.01, 0.2), (0.15, 0.03, 1.0)]
)
def test_with_many_blocks_cell_length_follows_kalibera_and_jones(
    step_sd: float, process_sd: float, start_s: float
) -> None:
    """The least variance × time: √(variance of step / process × cost of process / step)."""
    shown = TYPICAL._replace(step_sd=step_sd, process_variance=process_sd**2, start_s=start_s)
    optimum = step_sd / process_sd * math.sqrt(start_s / (shown.step_s + shown.switch_s))
    layout = choose(shown, TurnLayout(20, 1), MANY, 1, 1)
    assert layout.slice_steps == 1
    assert layout.steps == pytest.approx(max(optimum, FEWEST_STEPS), abs=1)


@pytest.mark.parametrize(
    ("switch_s", "slice_steps"), [(0.004, 1), (0.008, 2), (0.016, 4), (0.031, 8)]
)
def test_a_slice_is_as_long_as_keeps_switches_to_a_small_share(
    switch_s: float, slice_steps: int
) -> None:
    layout = choose(TYPICAL._replace(switch_s=switch_s), TurnLayout(20, 1), 20, 17, 1)
    assert layout.slice_steps == slice_steps
    assert switch_s <= OVERHEAD * slice_steps * TYPICAL.step_s
    assert layout.steps % slice_steps == 0


def block_of(
    steps_s: dict[str, np.ndarray], start_s: float, switch_s: float, number: int = 1
) -> dict[str, Record]:
    """Records of cells that took turns, in slices of one step after one of warm-up."""
    rounds = len(next(iter(steps_s.values())))
    begins: dict[str, list[float]] = {name: [0.0] for name in steps_s}
    now_s = 0.0
    for at in range(rounds):
        for name, times_s in steps_s.items():
            begins[name].append(now_s)
            now_s += times_s[at] + switch_s
    turns_s = now_s - switch_s
    return {
        name: {
            "study": STUDY.name,
            "workload": "idle",
            "tweakset": name,
            "block": number,
            "outcome": "measured",
            "duration_s": start_s + turns_s / len(steps_s),
            "steps": {"wall_s": [9.9, *times_s], "start_monotonic_s": begins[name], "warmup": 1},
            "turns": [{"round": at + 1, "first": at + 1, "steps": 1} for at in range(rounds)],
        }
        for name, times_s in steps_s.items()
    }


def drawn(
    step_sd: float, process_sd: float, rounds: int, generator: np.random.Generator
) -> dict[str, np.ndarray]:
    """Step times of equal arms around 50 ms."""
    names = ("stock", "stock-again", "candidate")
    return {
        name: 0.05
        * np.exp(
            process_sd * generator.standard_normal() + step_sd * generator.standard_normal(rounds)
        )
        for name in names
    }


def test_what_blocks_show_is_what_they_were_made_of() -> None:
    generator = np.random.default_rng(3)
    blocks = [
        block_of(drawn(0.1, 0.03, 400, generator), 0.5 + 2 * (at == 0), 0.004) for at in range(300)
    ]
    shown = seen(blocks, {"stock", "stock-again"})
    assert shown
    # Not that of the first, which waits for an import.
    assert shown.start_s == pytest.approx(0.5, abs=1e-6)
    assert shown.switch_s == pytest.approx(0.004, rel=0.01)
    assert shown.step_s == pytest.approx(0.05, rel=0.02)
    assert shown.step_sd == pytest.approx(0.1, rel=0.05)
    assert shown.process_variance == pytest.approx(0.03**2, rel=0.2)


@pytest.mark.parametrize(
    ("options", "chooses"),
    [({}, True), ({"steps": 12}, False), ({"budget_s": None, "blocks": 9}, False)],
)
def test_untouched_arms_of_first_blocks_set_the_later_layout(
    tmp_path: Path, options: dict[str, Any], *, chooses: bool
) -> None:
    layouts = set()
    for slower in (1.0, 3.0):
        run = run_of(
            tmp_path,
            "malloc-hugepages",
            **{"design": "turns", "budget_s": Limit(600.0, "10m"), **options},
        )
        opening = run.order_of(cell := cells_of(run, 1)[0])
        generator = np.random.default_rng(3)
        for number in range(1, FIRST_BLOCKS + 1):
            made = drawn(0.3, 0.01, opening.steps, generator)
            made["malloc-hugepages"] = slower * made.pop("candidate")
            run.records |= {
                f"{name}-{number}": one for name, one in block_of(made, 0.5, 0.004, number).items()
            }
        for number in (1, 2, 3):
            run.lay_out(cells_of(run, number)[0])
        assert (run.order_of(cell).steps, run.order_of(cell).slice_steps) == (
            opening.steps,
            opening.slice_steps,
        )
        later = run.order_of(cells_of(run, 3)[0])
        layouts.add((later.steps, later.slice_steps))
        assert ((later.steps, later.slice_steps) != (opening.steps, opening.slice_steps)) is chooses
    if chooses:
        assert len(layouts) == 1


@pytest.mark.parametrize("slower", [1.0, 20.0])
def test_a_resumed_run_keeps_the_layout_of_its_first_blocks(tmp_path: Path, slower: float) -> None:
    chosen = []
    for measured in (FIRST_BLOCKS, FIRST_BLOCKS + 4):
        run = run_of(tmp_path, "malloc-hugepages", design="turns", budget_s=Limit(120.0, "2m"))
        generator = np.random.default_rng(3)
        steps = run.order_of(cells_of(run, 1)[0]).steps
        for number in range(1, measured + 1):
            made = drawn(0.3, 0.01, steps, generator)
            made["malloc-hugepages"] = made.pop("candidate")
            start_s = 0.5 if number <= FIRST_BLOCKS else 0.5 * slower
            run.records |= {
                f"{name}-{number}": one
                for name, one in block_of(made, start_s, 0.004, number).items()
            }
        run.lay_out(cells_of(run, 3)[0])
        later = run.order_of(cells_of(run, 3)[0])
        chosen.append((later.steps, later.slice_steps))
    assert chosen[0] == chosen[1]


def test_a_set_that_cannot_run_here_lengthens_no_slice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(tmp_path, "tcp-cubic,malloc-hugepages", design="turns")
    cell = cells_of(run, 1)[0]
    assert run.shortest(cell, {}).slice_steps == LONG_STEPS
    plan = run.plan_of("tcp-cubic")
    monkeypatch.setitem(run.plans, "tcp-cubic", replace(plan, cannot=("no such file",)))
    assert run.shortest(cell, {}).slice_steps == 1


def cells_of(run: Any, number: int) -> list[CellSpec]:
    return [cell for cell in run.cells.values() if cell.block == number]


def test_a_workload_feels_all_kinds_of_settings_by_default() -> None:
    assert Workload.lasting == ALL
    assert all(workloads.of(name).lasting <= ALL for name in workloads.names())
