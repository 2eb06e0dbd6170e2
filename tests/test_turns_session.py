"""`--design=turns` from command line to verdict on the real kernel, and however it is stopped."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import jsonschema
import pytest

from analysis.compare import compare
from analysis.load import load
from tests.sessions import Place, another_swappiness, caught, ctrl_c, swappiness
from tests.test_session import SCHEMA

if TYPE_CHECKING:
    import subprocess


pytestmark = pytest.mark.usefixtures("kernel_unchanged")
ADJUSTED = "step_time_round_adjusted_s"


@contextlib.contextmanager
def in_a_slice(place: Place, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A session that stands still for the block, in a slice under its set."""
    value = another_swappiness()
    tweaks = place.manifest("typed", sysctl=f"vm.swappiness = {value}")
    process = place.start(
        "--design=turns", f"--tweaks={tweaks}", "--steps=400", "--benchmark-save=one", *options
    )
    with caught(
        lambda: (
            swappiness() == value
            and (place.state / "journal.jsonl").read_text().count('"switching"') > 1
        ),
        process,
    ):
        yield process


def test_a_whole_run_is_saved_read_and_judged(place: Place) -> None:
    value = another_swappiness()
    typed = place.manifest("typed", sysctl=f"vm.swappiness = {value}")
    limited = place.manifest("limited", ulimit="nofile=512")
    options = (
        "--design=turns",
        f"--tweaks={typed},{limited}",
        "--blocks=3",
        "--steps=8",
        "--benchmark-save=one",
    )
    plan = place.run(*options, "--plan")
    assert plan.lines(
        "12 cells. The cells of a block take turns, slice by slice in random order (seed 1):"
    )
    assert plan.lines("idle: 3 blocks of 4 tweak sets: limited, stock, stock-again, typed")
    done = place.run(*options)
    assert done.code == 0, done.out
    saved = place.saved()
    jsonschema.validate(saved, SCHEMA)
    ours = saved["deeptweak"]
    assert ours["design"]["kind"] == "turns"
    assert sorted((one["tweakset"], one["outcome"]) for one in ours["cells"]) == sorted(
        [(name, "measured") for name in ("stock", "stock-again", "typed", "limited")] * 3
    )
    for block in (1, 2, 3):
        cells = [
            one["extra_info"] for one in saved["benchmarks"] if one["extra_info"]["block"] == block
        ]
        began = sorted(datetime.fromisoformat(one["started_utc"]).timestamp() for one in cells)
        assert began[-1] - began[0] < sum(one["duration_s"] for one in cells), (
            "they begin together, not when the block is over"
        )
    records = [one["extra_info"] for one in saved["benchmarks"]]
    starts = [
        [
            name
            for _, name in sorted(
                (one["steps"]["start_monotonic_s"][0], one["tweakset"])
                for one in records
                if one["block"] == block
            )
        ]
        for block in (1, 2)
    ]
    assert starts[1] == starts[0][::-1]
    order: dict[int, list[tuple[float, str, int]]] = {}
    for record in (one["extra_info"] for one in saved["benchmarks"]):
        assert [(one["round"], one["steps"]) for one in record["turns"]] == [
            (number, 1) for number in range(1, 9)
        ]
        assert 0 <= record["turns"][0]["others_cpu_s"] < 60, (
            "in that slice, not since the machine was started"
        )
        order.setdefault(record["block"], []).extend(
            (record["steps"]["start_monotonic_s"][one["first"]], record["tweakset"], one["round"])
            for one in record["turns"]
        )
        telemetry = record["telemetry"]
        assert telemetry["summary"]["process_rss_bytes_mean"] > 0, telemetry["missing"]
        # In hundredths of a second an idle machine may do nothing.
        assert telemetry["summary"]["cpu_busy_percent_mean"] >= 0
        assert telemetry["samples"] >= 16, "eight slices, each from mark to mark"
        assert record["limits"]["nofile"][0] == 512 or record["tweakset"] != "limited"
        assert record["tweak"]["observed"] == (
            {"vm.swappiness": str(value)} if record["tweakset"] == "typed" else {}
        )
    rounds = [number for number in range(1, 9) for _ in range(4)]
    assert all(
        [number for _, _, number in sorted(slices)] == rounds for slices in order.values()
    ), "round by round"
    assert len({tuple(name for _, name, _ in sorted(slices)) for slices in order.values()}) > 1, (
        "in random order"
    )
    run = load(place.files()[-1])
    assert [warning for warning in run.warnings if ADJUSTED in warning] == []
    found = {one.tweakset: one for one in compare(run)}
    assert found["typed"].primary
    assert (found["typed"].primary.metric.name, found["typed"].pairs) == (ADJUSTED, 3)


def test_ctrl_c_in_a_slice_puts_the_machine_back(place: Place) -> None:
    found = swappiness()
    with in_a_slice(place, "--blocks=1") as process:
        ctrl_c(process)
    done = place.ended(process)
    assert (done.code, swappiness(), (place.state / "journal.jsonl").exists()) == (
        2,
        found,
        False,
    ), done.out
    assert "Traceback" not in done.out


def test_of_an_unfinished_block_nothing_is_kept(place: Place) -> None:
    """Its cells are compared with each other round by round: cells of two attempts cannot be."""
    options = ("--design=turns", "--tweaks=memory-overcommit", "--blocks=2", "--steps=8")
    assert place.run(*options).code == 0
    (progress,) = (place.storage / "progress").glob("*.jsonl")
    # As if it had been killed before the last cell was written down.
    *lines, _ = progress.read_text().splitlines(keepends=True)
    progress.write_text("".join(lines))
    done = place.run(*options, "--resume", "--benchmark-save=one")
    assert done.code == 0, done.out
    assert (len(done.lines(", block 1")), len(done.lines(", block 2"))) == (0, 3)
    assert len(place.saved()["benchmarks"]) == 6


def test_restore_finishes_a_session_killed_in_a_slice(place: Place) -> None:
    found = swappiness()
    with in_a_slice(place, "--blocks=1") as process:
        process.kill()
    place.ended(process)
    done = place.restore()
    assert (done.code, swappiness(), (place.state / "journal.jsonl").exists()) == (
        0,
        found,
        False,
    ), done.out
