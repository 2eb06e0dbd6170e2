"""Figures of a stream, by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from analysis.answer import Word
from analysis.contrasts import SAME
from analysis.studies.jobs.claims import (
    CANT_TELL,
    FASTER,
    NOT_COMPARABLE,
    SLOWER,
    claimed,
    claims_first,
    verdict,
)
from analysis.studies.jobs.estimates import FEW, over_blocks
from analysis.studies.jobs.records import Fault, Outage, Stream
from analysis.studies.jobs.recovery import (
    after,
    shared,
    totals,
)
from tests.analysis.answers import known
from tests.analysis.studies.jobs.dependability.made_streams import attempt, job, stream


def test_useful_time_is_the_rest_after_lost_work_and_checkpoints() -> None:
    """Job 0: 2 s and 4 s, less 1.5 s lost and 0.5 s of checkpoints; job 1: 2 s. 6 s of 8."""
    tried = [
        attempt(0, 1, 0, 2, "killed"),
        replace(attempt(0, 2, 2, 6), checkpoints=2, cost_s=0.5),
        attempt(1, 1, 6, 8),
    ]
    found = totals(stream([job(0, 0, 6, lost_s=1.5), job(1, 1, 8)], tried))
    assert (found.lost_s, found.useful) == (1.5, 0.75)


def test_unreported_lost_time_is_known_only_without_checkpoints() -> None:
    tried = [attempt(0, 1, 0, 2, "killed"), attempt(0, 2, 2, 6)]
    assert totals(stream([job(0, 0, 6, lost_s=None)], tried)).lost_s == 2
    tried[0] = replace(tried[0], checkpoints=1)
    assert totals(stream([job(0, 0, 6, lost_s=None)], tried)).lost_s is None


def test_times_that_are_missing_or_go_back_leave_no_figure() -> None:
    assert totals(stream([job(0, 0, 6)], [attempt(0, 1, 6, 2)])).useful is None
    assert totals(stream([job(0, 0, 6)], [attempt(0, 1, 2, None)])).useful is None


def test_availability_counts_slots_and_time() -> None:
    """Ten seconds, two nodes; one was away from 2 to 4 s, the other from 3 s on: 9 of 20."""
    made = stream([job(0, 0, 10)], outages=[Outage("a", 2, 4), Outage("b", 3)], nodes=2)
    assert totals(made).available == pytest.approx(1 - 9 / 20)
    assert totals(stream([job(0, 0, 10)])).available == 1


def test_streams_share_jobs_of_one_number_class_size_and_plan() -> None:
    one, other = (
        stream([job(0, 0, 1), job(1, 1, 2), job(2, 2, 3), job(9, 4, 5)]),
        stream([job(0, 0, 2), job(1, 1, 3), job(2, 2, 4)]),
    )
    changed = replace(
        other,
        jobs=(
            other.jobs[0],
            replace(other.jobs[1], work=2.0),
            replace(other.jobs[2], planned_s=2.1),
        ),
    )
    assert [mine.number for mine, _ in shared(one, other)] == [0, 1, 2]
    assert [mine.number for mine, _ in shared(one, changed)] == [0]
    assert shared(one, replace(other, jobs=(replace(other.jobs[0], class_="large"),))) == []


# Without a fault: three jobs a second apart, each done 2 s after it came.
TWIN = stream([job(0, 0, 2), job(1, 1, 3), job(2, 2, 4)])


def test_a_killed_job_is_over_when_done_and_others_caught_up() -> None:
    """Job 1 is killed at 2 s, restarts at 2.5 s, ends at 5 s; job 2 waits till 6 s, 2 s late."""
    tried = [
        attempt(0, 1, 0, 2),
        attempt(1, 1, 1, 2, "killed"),
        attempt(1, 2, 2.5, 5),
        attempt(2, 1, 5, 6),
    ]
    made = stream(
        [job(0, 0, 2), job(1, 1, 5, lost_s=1), job(2, 2, 6)],
        tried,
        [Fault("kill", 2, 2, "a", 1)],
        fault="kill",
    )
    (found,) = after(made, TWIN)
    assert (found.hit, found.restart_s) == (1, 0.5)
    assert found.recovery_s == 4  # at 6 s: one job was still behind when job 1 was done


def test_a_lost_node_hits_all_that_ran_on_it_and_nothing_else() -> None:
    tried = [
        attempt(0, 1, 0, 2),
        attempt(0, 2, 4, 5),
        attempt(1, 1, 1, 3, node="b"),
        attempt(2, 1, 2, 2.5, "failed", "a"),
    ]
    tried[0] = attempt(0, 1, 0, 1.5, "killed", "a")
    made = stream(
        [job(0, 0, 5), job(1, 1, 3), job(2, 2, 4)],
        tried,
        [Fault("node", 1.5, 3, "a")],
        nodes=2,
        fault="node",
    )
    (found,) = after(made, TWIN)
    assert (found.hit, found.restart_s, found.recovery_s) == (1, 2.5, 3.5)


def test_a_job_that_is_given_up_has_no_recovery() -> None:
    tried = [attempt(0, 1, 0, 2), attempt(1, 1, 1, 2, "killed"), attempt(2, 1, 2, 4)]
    made = stream(
        [job(0, 0, 2), job(1, 1, 2, "killed"), job(2, 2, 4)],
        tried,
        [Fault("kill", 2, 2, "a", 1)],
        fault="kill",
    )
    (found,) = after(made, TWIN)
    assert (found.restart_s, found.recovery_s) == (None, None)


def test_the_next_fault_ends_the_wait_for_recovery() -> None:
    tried = [
        attempt(0, 1, 0, 2),
        attempt(1, 1, 1, 2, "killed"),
        attempt(1, 2, 2, 3, "killed"),
        attempt(1, 3, 3, 5),
        attempt(2, 1, 5, 6),
    ]
    faults = [Fault("kill", 3, 3, "a", 1), Fault("kill", 2, 2, "a", 1)]
    made = stream([job(0, 0, 2), job(1, 1, 5), job(2, 2, 6)], tried, faults, fault="kill")
    first, second = after(made, TWIN)
    assert (first.fault.at_s, first.recovery_s) == (2, None)
    assert second.recovery_s == 3


def test_a_closed_stream_never_catches_up() -> None:
    closed = [replace(one, planned_s=None) for one in TWIN.jobs]
    tried = [
        attempt(0, 1, 0, 1, "killed"),
        attempt(0, 2, 1, 3),
        attempt(1, 1, 3, 5),
        attempt(2, 1, 5, 7),
    ]
    made = stream(
        [replace(one, end_s=3.0 + 2 * at) for at, one in enumerate(closed)],
        tried,
        [Fault("kill", 1, 1, "a", 0)],
        fault="kill",
    )
    (found,) = after(made, replace(TWIN, jobs=tuple(closed)))
    assert (found.hit, found.restart_s, found.recovery_s) == (1, 0, None)


def test_a_flood_is_over_when_its_own_jobs_are_done() -> None:
    made = stream(
        [job(0, 0, 2), job(1, 1, 3), job(2, 2, 4), job(7, 1, 9)],
        faults=[Fault("flood", 1, 1)],
        fault="flood",
    )
    assert after(made, TWIN)[0].recovery_s == 8


@pytest.mark.parametrize("twin", [None, TWIN])
def test_without_an_end_or_a_twin_there_is_no_recovery(twin: Stream | None) -> None:
    made = stream([job(0, 0, 2), job(1, 1, 3)], faults=[Fault("memory_hog", 1)], fault="memory_hog")
    assert after(made, twin)[0].recovery_s is None


def test_a_block_counts_once_however_much_is_in_it() -> None:
    """Blocks of mean 2, 4 and 6: 4 ± 4.3027·2/√3; a block without a value has no part."""
    values = {1: (1.0, 3.0), 2: (4.0,), 3: (6.0, 6.0, 6.0), 4: (None,)}
    found = known(
        over_blocks((("r", block), value) for block, own in values.items() for value in own)
    )
    assert found.value == 4
    assert found.low == pytest.approx(4 - 4.302653 * 2 / math.sqrt(3))
    assert found.high == pytest.approx(4 + 4.302653 * 2 / math.sqrt(3))


@pytest.mark.parametrize(
    ("values", "why"), [([1.0, 2.0], FEW), ([1.0], FEW), ([2.0, 2.0, 2.0], SAME)]
)
def test_what_has_no_interval_says_why(values: list[float], why: str) -> None:
    found = known(over_blocks((("r", at), value) for at, value in enumerate(values)))
    assert (found.low, found.why) == (None, why)


@pytest.mark.parametrize(
    ("times", "p", "word"),
    [
        (2.0, 0.04, SLOWER),
        (0.5, 0.04, FASTER),
        (2.0, 0.05, CANT_TELL),
        (2.0, None, CANT_TELL),
        (None, None, NOT_COMPARABLE),
    ],
)
def test_a_ratio_is_slower_or_faster_only_where_it_is_shown(
    times: float | None, p: float | None, word: Word
) -> None:
    assert verdict(SimpleNamespace(value=times, p_adjusted=p)) == word


def test_claims_come_first() -> None:
    verdicts = [
        (NOT_COMPARABLE, "a"),
        (CANT_TELL, "b"),
        (FASTER, "c"),
        (SLOWER, "d"),
        (SLOWER, "e"),
    ]
    assert (
        claimed(verdicts, "stock")
        == "Slower than stock: d, e. Faster than stock: c. Can't tell: b. Not comparable: a."
    )
    assert [name for _, name in claims_first([(None, "f"), *verdicts], lambda row: row[0])] == [
        "d",
        "e",
        "c",
        "b",
        "a",
        "f",
    ]
