"""`-n N`: blocks on several nodes at once; the saved run is a serial one's but for the places."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests import waiting
from tests.sessions import HOUSE, Done, Place, ctrl_c, terminate, until
from tests.spread.fleet import FLEET, FLEET_HALT, FLEET_NODES
from tests.test_session import SCHEMA

if TYPE_CHECKING:
    import subprocess

pytestmark = [pytest.mark.slow]
ON_FLEET = ("-p", "tests.spread.plugin", "--target=fleet")
SWAPPINESS = "root/proc/sys/vm/swappiness"  # 60 there
BLOCKS = 4
# `typed` is the middle cell of the first three blocks; the fourth is for the first to finish.
ORDER = ("--seed=16",)
Json = dict[str, Any]


def place_in(folder: Path, **environment: str) -> Place:
    """Results and a fleet of its own."""
    place = Place(
        folder, environment={FLEET: str(folder / "fleet"), "PYTHONPATH": str(HOUSE), **environment}
    )
    place.manifest("typed", sysctl="vm.swappiness = 10")
    place.manifest("unknown", sysctl="vm.swapiness = 10")
    return place


def options(place: Place, *more: str, steps: int = 10, sets: str = "typed") -> list[str]:
    named = ",".join(f"{place.folder}/{name}.yaml" for name in sets.split(","))
    return [*ON_FLEET, f"--tweaks={named}", f"--blocks={BLOCKS}", f"--steps={steps}", *more]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return place_in(tmp_path)


def session(folder: Path, *more: str) -> tuple[Place, Done, Json]:
    place = place_in(folder)
    done = place.run(*options(place, "--benchmark-save=exp", *more, sets="typed,unknown"))
    assert len(place.files()) == 1, done.out
    return place, done, place.saved()


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, Done, Json]:
    return session(tmp_path_factory.mktemp("serial"))


@pytest.fixture(scope="module")
def spread(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, Done, Json]:
    return session(tmp_path_factory.mktemp("spread"), "-n", "3")


def shape(value: object) -> object:
    """A JSON value without its numbers and texts: which keys, which types, how long the lists."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shape(one) for one in value]
    return (
        "number"
        if isinstance(value, int | float) and not isinstance(value, bool)
        else type(value).__name__
    )


def records(saved: Json) -> dict[str, Json]:
    return {b["extra_info"]["id"]: b["extra_info"] for b in saved["benchmarks"]}


# -- one run


def test_a_spread_run_has_the_cells_and_outcomes_of_a_serial_one(
    serial: tuple[Place, Done, Json], spread: tuple[Place, Done, Json]
) -> None:
    ours, theirs = spread[2], serial[2]
    jsonschema.Draft202012Validator(SCHEMA).validate(ours)
    assert ours["deeptweak"]["cells"] == theirs["deeptweak"]["cells"]
    assert {c["outcome"] for c in ours["deeptweak"]["cells"]} == {"measured", "skipped"}
    for name in ("design", "studies", "workloads", "interrupted", "schema_version"):
        assert ours["deeptweak"][name] == theirs["deeptweak"][name]
    assert {n: t["requested"] for n, t in ours["deeptweak"]["tweaksets"].items()} == {
        n: t["requested"] for n, t in theirs["deeptweak"]["tweaksets"].items()
    }


def test_pytest_benchmarks_part_is_laid_out_as_in_a_serial_run(
    serial: tuple[Place, Done, Json], spread: tuple[Place, Done, Json]
) -> None:
    """Names, groups, parameters and options to the letter; statistics by kind and order."""
    ours, theirs = spread[2], serial[2]
    assert list(ours) == list(theirs)
    assert len(ours["benchmarks"]) == len(theirs["benchmarks"]) == 3 * BLOCKS
    for mine, other in zip(ours["benchmarks"], theirs["benchmarks"], strict=True):
        assert {k: v for k, v in mine.items() if k not in ("stats", "extra_info")} == {
            k: v for k, v in other.items() if k not in ("stats", "extra_info")
        }
        assert list(mine) == list(other)
        assert list(mine["stats"]) == list(other["stats"])
        assert shape(mine["stats"]) == shape(other["stats"])
        assert mine["extra_info"].keys() == other["extra_info"].keys()


def test_a_block_stays_on_one_node_and_keeps_its_order(spread: tuple[Place, Done, Json]) -> None:
    """3 workers and 4 blocks: 3 nodes, one of which has run two blocks, one after the other."""
    saved = spread[2]
    nodes: dict[int, set[str]] = {}
    for record in records(saved).values():
        nodes.setdefault(record["block"], set()).add(record["node"])
    assert all(len(one) == 1 for one in nodes.values()), nodes
    assert {node for one in nodes.values() for node in one} == {"node-0", "node-1", "node-2"}
    measured = [c["id"] for c in saved["deeptweak"]["cells"] if c["outcome"] == "measured"]
    for node in ("node-0", "node-1", "node-2"):
        ran = sorted(
            (r["started_utc"], r["id"]) for r in records(saved).values() if r["node"] == node
        )
        assert [name for _, name in ran] == [
            name for name in measured if name in {one for _, one in ran}
        ]


def test_nodes_keep_their_facts_and_the_machine_the_shared_ones(
    spread: tuple[Place, Done, Json],
) -> None:
    nodes, common = spread[2]["deeptweak"]["nodes"], spread[2]["machine_info"]["deeptweak"]
    assert {name: facts["hostname"] for name, facts in nodes.items()} == {
        name: name for name in ("node-0", "node-1", "node-2")
    }
    assert "hostname" not in common
    assert all(facts[key] == value for facts in nodes.values() for key, value in common.items())
    assert common["kernel_release"]


# -- what is said


def test_nothing_is_left_behind(spread: tuple[Place, Done, Json]) -> None:
    place = spread[0]
    assert list((place.storage / "progress").iterdir()) == []
    assert not list((place.folder / "fleet").glob("*/state/journal.jsonl"))
    assert {
        path.read_text().strip() for path in (place.folder / "fleet").glob(f"*/{SWAPPINESS}")
    } == {"60"}


def test_more_workers_than_blocks_is_said(place: Place) -> None:
    done = place.run(*options(place, "-n", "3", "--benchmark-save=x", "-k", "b1 or b2", steps=3))
    assert done.code == 0, done.out
    assert done.lines("-n 3: the plan has 2 blocks, which stay whole, so 1 worker will be idle.")
    assert {r["node"] for r in records(place.saved()).values()} <= {f"node-{n}" for n in range(3)}
    assert len({r["node"] for r in records(place.saved()).values()}) == 2


# -- who reads it


def test_a_gate_and_a_comparison_with_a_saved_run_work(
    spread: tuple[Place, Done, Json], place: Place
) -> None:
    """A sleeping workload ignores vm.swappiness: no step is twice as fast; one block can't tell."""
    gate = place.folder / "gate.yaml"
    earlier = spread[0].files()[0]
    target = place.storage / earlier.parent.name / earlier.name
    target.parent.mkdir(parents=True)
    target.write_bytes(earlier.read_bytes())
    gate.write_text("max_regression: 90%\n")
    done = place.run(
        *options(place, "-n", "2", f"--gate={gate}", "--benchmark-compare=0001", "--benchmark-only")
    )
    assert done.code == 0, done.out
    assert done.lines("Pass: 1 contrast compared")
    assert len(done.lines("(0001_exp)")) == len(done.lines("(NOW)")) == 3 * BLOCKS
    done = place.run(*options(place, "-n", "2", f"--gate={gate}", "-k", "b1"))
    assert (done.code, len(done.lines("Can't tell: 1 of 1 contrast"))) == (3, 1), done.out


# -- what is asked for


def test_a_plan_or_cell_list_of_several_nodes_needs_no_worker(
    place: Place, spread: tuple[Place, Done, Json]
) -> None:
    """Several nodes have whole cells by default; one has the study's own design, with turns."""
    ran = [
        f"{cell['workload']}-{cell['tweakset']}-b{cell['block']}]"
        for cell in spread[2]["deeptweak"]["cells"]
    ]
    many = place.run(*options(place, "--collect-only", "-q", "-n", "3", sets="typed,unknown"))
    assert many.code == 0, many.out
    assert [line.partition("[")[2] for line in many.lines("idle-")] == ran
    many = place.run(*options(place, "--plan", "-q", "-n", "3"))
    assert many.code == 0, many.out
    assert many.lines(f"{3 * BLOCKS} cells in this order (seed 1):")
    assert many.lines(" on 3 nodes of 2 cores")
    one = place.run(*options(place, "--plan", "-q", "-n", "1"))
    assert one.lines(f"idle: {BLOCKS} blocks of 3 tweak sets: stock, stock-again, typed")
    assert not one.lines(" nodes of ")
    assert not list(place.folder.glob("fleet/*/pid")), "a node was opened"


def test_a_plan_refuses_what_a_run_on_several_nodes_refuses(place: Place) -> None:
    plan, run = (
        place.run(*options(place, "-n", "2", "--budget=30s", *more)) for more in (("--plan",), ())
    )
    assert (plan.code, run.code) == (2, 2), plan.out
    assert plan.lines("--budget") == run.lines("--budget") != []


def test_one_worker_is_a_serial_run(place: Place) -> None:
    done = place.run(*options(place, "-n", "1", "-k", "b1", steps=3))
    assert done.code == 0, done.out
    assert not done.lines("worker")


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (("-n", "2", "--dist=loadgroup"), "--dist, --tx: use only -n N"),
        (("--dist=load", "--tx=2*popen"), "--dist, --tx: use only -n N"),
        (("-n", "2", "--tweaks=nosuch"), "no tweak set is called 'nosuch'"),
        (("-n", "2", "--resume"), "--resume: no interrupted run of this plan"),
        (("-n", "2", "--benchmark-compare=0007"), "--benchmark-compare: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_makes_no_sense_is_answered_before_anything_runs(
    place: Place, asked: Sequence[str], answer: str
) -> None:
    done = place.run(*options(place, *asked))
    assert done.code == 2, done.out
    assert done.lines(answer)
    assert not done.lines("idle x")
    assert not done.lines("Traceback")


# -- what goes wrong


def test_where_fewer_nodes_are_free_the_others_take_the_blocks(tmp_path: Path) -> None:
    place = place_in(tmp_path, **{FLEET_NODES: "2"})
    done = place.run(*options(place, "-n", "3", "--benchmark-save=x"))
    assert done.code == 0, done.out
    assert done.lines("worker 3 ended: no node is free")
    saved = place.saved()
    assert len(saved["benchmarks"]) == 3 * BLOCKS
    assert {r["node"] for r in records(saved).values()} == {"node-0", "node-1"}
    assert saved["deeptweak"]["machine_check"] == {"changed": {}, "restored": True}


def test_where_no_node_is_free_the_run_ends_with_the_reason(tmp_path: Path) -> None:
    place = place_in(tmp_path, **{FLEET_NODES: "0"})
    done = place.run(*options(place, "-n", "2", "--benchmark-save=x"))
    assert done.code == 2, done.out
    assert done.lines("Interrupted: no node is free")
    assert place.files() == []


@pytest.fixture
def halting(tmp_path: Path) -> Iterator[Place]:
    """Its sessions halt in the middle, and do not stay there, whatever becomes of the test."""
    (tmp_path / "halt").write_text("typed b[2-9] *\n")
    place = place_in(tmp_path, **{FLEET_HALT: str(tmp_path / "halt")})
    yield place
    place.clear_up()


def in_the_middle(place: Place) -> subprocess.Popen[str]:
    """Finish block 1; begin another on each of three nodes, its setting in force until `go_on`."""
    process = place.start(*options(place, "-n", "3", "--benchmark-save=x", *ORDER))
    until(lambda: block_sizes(place.finished())[1] == 3 and values(place) == ["10"] * 3, process)
    return process


def go_on(place: Place) -> None:
    (place.folder / "halt").unlink()


def block_sizes(found: Json) -> dict[int, int]:
    """Return the number of cells per block in these records."""
    return {
        block: sum(record["block"] == block for record in found.values())
        for block in range(1, BLOCKS + 1)
    }


def value(place: Place, node: int) -> str | None:
    path = place.folder / f"fleet/node-{node}" / SWAPPINESS
    return path.read_text().strip() if path.exists() else None


def values(place: Place) -> list[str | None]:
    return [value(place, node) for node in range(3)]


def resumed(place: Place, part: Json, workers: Sequence[str]) -> None:
    """Resume with other workers: the file is that of a whole run in which no block is split."""
    done = place.run(*options(place, *workers, "--resume", "--benchmark-save=x", *ORDER))
    assert done.code == 0, done.out
    whole = place.saved()
    jsonschema.Draft202012Validator(SCHEMA).validate(whole)
    assert [c["id"] for c in whole["deeptweak"]["cells"]] == whole["deeptweak"]["design"]["order"]
    assert {c["outcome"] for c in whole["deeptweak"]["cells"]} == {"measured"}
    assert whole["deeptweak"]["interrupted"] is False
    assert whole["deeptweak"]["run_id"] == part["deeptweak"]["run_id"]
    by_block = sorted((r["block"], r["node"]) for r in records(whole).values())
    assert all(
        len({node for _, node in one}) == 1
        for _, one in groupby(by_block, key=lambda pair: pair[0])
    )
    before, after = records(part), records(whole)
    blocks = {
        block: [r for r in before.values() if r["block"] == block] for block in range(1, BLOCKS + 1)
    }
    kept = [r for one in blocks.values() if len(one) == 3 for r in one]
    assert len(kept) >= 3
    assert all(after[r["id"]] == r for r in kept)
    assert values(place) == ["60"] * 3
    assert list((place.storage / "progress").iterdir()) == []


@pytest.mark.parametrize(("stop", "workers"), [(ctrl_c, ("-n", "2")), (terminate, ())])
def test_a_signal_restores_every_node_and_saves_finished_cells(
    halting: Place, stop: Callable[[subprocess.Popen[str]], None], workers: Sequence[str]
) -> None:
    place = halting
    process = in_the_middle(place)
    stop(process)
    done = place.ended(process)
    go_on(place)
    assert done.code == 2, done.out
    assert "Traceback" not in done.out
    assert values(place) == ["60"] * 3
    assert done.lines("Machine: as it was found (54 settings compared).")
    assert done.lines("Interrupted. To continue, run the same command with --resume.")
    part = place.saved()
    jsonschema.Draft202012Validator(SCHEMA).validate(part)
    assert part["deeptweak"]["interrupted"] is True
    assert 3 <= len(records(part)) < 3 * BLOCKS
    resumed(place, part, workers)


def test_a_worker_that_is_killed_costs_its_block_and_no_other(halting: Place) -> None:
    place = halting
    process = in_the_middle(place)
    finished = {name for name, record in place.finished().items() if record["node"] == "node-1"}
    os.kill(int((place.folder / "fleet/node-1/pid").read_text()), signal.SIGKILL)
    go_on(place)
    done = place.ended(process)
    assert done.code == 2, done.out
    assert done.lines("worker 2 died, and its current block is lost")
    assert done.lines("THE MACHINE WAS NOT PUT BACK: worker 2 on node-1 died. Run `")
    assert done.lines("Interrupted. To continue, run the same command with --resume.")
    part = place.saved()
    jsonschema.Draft202012Validator(SCHEMA).validate(part)
    assert part["deeptweak"]["interrupted"] is True
    assert part["deeptweak"]["machine_check"]["restored"] is False
    assert finished <= records(part).keys()
    lost, *whole = sorted(block_sizes(records(part)).values())
    assert (lost < 3, whole) == (True, [3, 3, 3])
    assert value(place, 1) == "10"
    resumed(place, part, ("-n", "2"))


def test_workers_of_a_killed_controller_end_and_restore_nodes(
    halting: Place,
) -> None:
    place = halting
    process = in_the_middle(place)
    kept = place.finished()
    process.kill()
    go_on(place)
    place.ended(process)
    waiting.until(
        lambda: values(place) == ["60"] * 3 and not any(alive(place, node) for node in range(3))
    )
    assert kept.keys() <= place.finished().keys()
    done = place.run(*options(place, "-n", "3", "--resume", "--benchmark-save=x", *ORDER))
    assert done.code == 0, done.out
    assert len(place.saved()["benchmarks"]) == 3 * BLOCKS


def alive(place: Place, node: int) -> bool:
    pid = int((place.folder / f"fleet/node-{node}/pid").read_text())
    return Path(f"/proc/{pid}").exists()
