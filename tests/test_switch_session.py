"""`--design=switch` from command line to verdict on the real kernel, and however it is stopped."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from analysis.compare import compare
from analysis.load import load
from fixtures.kernel.tunables import shown
from tests.sessions import Place, another_swappiness, caught, ctrl_c, swappiness, until, workload_of
from tests.test_session import SCHEMA

if TYPE_CHECKING:
    import subprocess


pytestmark = pytest.mark.usefixtures("kernel_unchanged")


THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def huge_pages() -> str | None:
    """The word that is chosen now."""
    return shown(THP.read_text())


@pytest.fixture
def huge_set() -> str:
    """The set of the catalogue whose value does not stand there already."""
    if not THP.exists():
        pytest.skip("this kernel has no transparent huge pages")
    return "thp-never" if huge_pages() == "always" else "thp-always"


def typed(place: Place, value: int) -> str:
    return f"--tweaks={place.manifest('typed', sysctl=f'vm.swappiness = {value}')}"


@contextlib.contextmanager
def going_to_and_fro(
    place: Place,
    tweaks: str,
    look: Callable[[], object],
    values: Sequence[object],
    moment: Callable[[], bool] = lambda: True,
) -> Iterator[subprocess.Popen[str]]:
    """Hold a session that switches through these values, then to the last, per 0.2 s segment."""
    process = place.start(
        "--design=switch", tweaks, "--blocks=1", "--steps=80", "--benchmark-save=one"
    )
    journal = place.state / "journal.jsonl"
    for now in values[:-1]:
        until(lambda now=now: look() == now and journal.exists(), process)  # type: ignore[misc]
    with caught(
        lambda: look() == values[-1] and workload_of(process) is not None and moment(), process
    ):
        yield process


def test_a_whole_run_is_saved_read_and_judged(place: Place) -> None:
    """A set with a process limit is skipped, stock is in every cell, rounds are under the set."""
    value = another_swappiness()
    limited = place.manifest("limited", ulimit="nofile=512")
    done = place.run(
        "--design=switch",
        f"{typed(place, value)},{limited}",
        "--blocks=2",
        "--steps=4",
        "--benchmark-save=one",
    )
    assert done.code == 2, done.out  # a set that was asked for by name was not measured
    assert "nofile: a process limit is set before a process starts" in done.out
    saved = place.saved()
    jsonschema.validate(saved, SCHEMA)
    ours = saved["deeptweak"]
    assert ours["design"]["kind"] == "switch"
    assert sorted((one["tweakset"], one["outcome"]) for one in ours["cells"]) == sorted(
        [("stock-again", "measured"), ("typed", "measured"), ("limited", "skipped")] * 2
    )
    orders = set()
    for one in saved["benchmarks"]:
        record = one["extra_info"]
        mine = [segment for segment in record["segments"] if segment["arm"] == "set"]
        counted = [
            step
            for s in mine
            for step in range(s["first"] + s["settle"], s["first"] + s["settle"] + s["steps"])
        ]
        assert one["stats"]["data"] == [record["steps"]["wall_s"][step] for step in counted]
        assert len(counted) == 16 * 4
        orders.add((record["block"], tuple(segment["arm"] for segment in record["segments"])))
    assert len(orders) == 2, "each block draws its own order"
    found = {one.tweakset: one for one in compare(load(place.files()[-1]))}
    assert (found["typed"].pairs, found["stock-again"].untouched) == (32, True)
    assert "alternated inside 2 processes" in done.out


def test_ctrl_c_between_two_segments_puts_the_machine_back(place: Place) -> None:
    found, value = swappiness(), another_swappiness()
    with going_to_and_fro(
        place, typed(place, value), swappiness, (value, found, value, found)
    ) as process:
        ctrl_c(process)
    done = place.ended(process)
    assert (done.code, swappiness(), (place.state / "journal.jsonl").exists()) == (
        2,
        found,
        False,
    ), done.out
    assert "Traceback" not in done.out


def test_a_session_that_is_killed_is_finished_by_restore(place: Place) -> None:
    found, value = swappiness(), another_swappiness()
    with going_to_and_fro(
        place, typed(place, value), swappiness, (value, found, value, found)
    ) as process:
        process.kill()
    place.ended(process)
    done = place.restore()
    assert (done.code, swappiness(), (place.state / "journal.jsonl").exists()) == (
        0,
        found,
        False,
    ), done.out


def test_who_writes_the_setting_meanwhile_ends_the_cell(place: Place) -> None:
    """In the middle of a segment under the set.

    It is said who to ask for, and what they wrote is left alone.
    """
    found, value = swappiness(), another_swappiness()

    def switched() -> bool:
        """To the values set; while that is under way, the journal's last word is another."""
        lines = (place.state / "journal.jsonl").read_bytes().splitlines()
        return bool(json.loads(lines[-1])["record"] == "applied")

    with going_to_and_fro(
        place, typed(place, value), swappiness, (value, found, value), switched
    ) as process:
        Path("/proc/sys/vm/swappiness").write_text(str(value + 1))
    done = place.ended(process)
    stayed = swappiness()
    Path("/proc/sys/vm/swappiness").write_text(str(found))
    assert (done.code != 0, stayed) == (True, value + 1)
    (cell,) = [cell for cell in place.saved()["deeptweak"]["cells"] if cell["tweakset"] == "typed"]
    assert (
        f"was '{value + 1}' at a segment's end, not '{value}': something else writes it"
        in cell["reason"]
    )
    assert "something else writes it" in done.out


def test_what_a_script_sets_takes_turns_from_segment_to_segment(
    place: Place, huge_set: str
) -> None:
    """The file is read during the session; each answer within a segment must be its arm's."""
    found, value = huge_pages(), huge_set.rpartition("-")[2]
    answers = []
    process = place.start(
        "--design=switch",
        f"--tweaks={huge_set}",
        "--blocks=1",
        "--steps=40",
        "--benchmark-save=one",
    )
    while process.poll() is None:
        asked_s, word = time.monotonic(), huge_pages()
        answers.append((asked_s, word, time.monotonic()))
        time.sleep(0.003)
    done = place.ended(process)
    assert (done.code, huge_pages(), (place.state / "journal.jsonl").exists()) == (
        0,
        found,
        False,
    ), done.out
    seen = set()
    for record in (one["extra_info"] for one in place.saved()["benchmarks"]):
        other = value if record["tweakset"] == huge_set else found
        start_s, wall_s = record["steps"]["start_monotonic_s"], record["steps"]["wall_s"]
        for one in record["segments"]:
            last = one["first"] + one["settle"] + one["steps"] - 1
            since_s, until_s = start_s[one["first"]], start_s[last] + wall_s[last]
            words = {
                word
                for asked_s, word, told_s in answers
                if since_s <= asked_s and told_s <= until_s
            }
            assert words <= {other if one["arm"] == "set" else found}, (record["tweakset"], one)
            seen |= {(record["tweakset"], one["arm"]) for _ in words}
    assert {(huge_set, "found"), (huge_set, "set")} <= seen, "either arm was looked into"


def test_restore_finishes_a_killed_session_with_a_script(place: Place, huge_set: str) -> None:
    found, value = huge_pages(), huge_set.rpartition("-")[2]
    with going_to_and_fro(
        place, f"--tweaks={huge_set}", huge_pages, (value, found, value, found, value)
    ) as process:
        process.kill()
    place.ended(process)
    done = place.restore()
    assert (done.code, huge_pages(), (place.state / "journal.jsonl").exists()) == (
        0,
        found,
        False,
    ), done.out
    assert not Path("/run/deeptweak", huge_set).exists(), "its uninstall.sh has run"
