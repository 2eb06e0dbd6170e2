"""Faults against the same jobs without them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.answer import of_parts
from analysis.render import text
from analysis.studies.jobs.dependability.page import report_page
from analysis.studies.jobs.dependability.study import arms, twin_of
from analysis.studies.jobs.records import Fault, Outage, Stream
from tests.analysis.studies.jobs.dependability.made_streams import attempt, job, stream

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

MARGIN = 0.1


def clean(block: int) -> Stream:
    return stream([job(0, 0, 2), job(1, 1, 3), job(2, 2, 4)], block=block)


def slowed(block: int, factor: float, fault: str = "cpu_hog") -> Stream:
    jobs = [job(at, at, at + 2 * factor) for at in range(3)]
    return stream(jobs, faults=[Fault(fault, 0, 2)], fault=fault, block=block)


@pytest.mark.parametrize(
    ("factors", "word"),
    [
        ((1.01, 1.02, 1.03), "isolated"),
        ((1.5, 1.6, 1.55), "not isolated"),
        ((0.9, 1.3, 1.1), "open"),
        ((0.5, 0.55, 0.52), "open"),  # beside a neighbour nothing gets faster: something else was different
        ((1.05, 1.06, 1.055), "isolated"),  # slower for certain, and by less than matters
        ((0.953, 1.0, 1.05), "isolated"),  # by the 90 % interval, 0.92 to 1.09; that of 95 % reaches from 0.89 to 1.13
        ((1.5, 1.6), "not judged"),
    ],
)
def test_a_neighbour_is_isolated_if_all_that_is_likely_lies_within_the_margin(factors: tuple[float, ...], word: str) -> None:
    streams = [one for block, factor in enumerate(factors) for one in (slowed(block, factor), clean(block))]
    _, hog = arms(streams, MARGIN)
    assert (hog.isolation, hog.thinned) == (word, False)  # no job was lost, however much sooner they are
    assert hog.slowdown is not None
    assert hog.slowdown.value == pytest.approx(_geometric(factors))
    # Three jobs, the last done at 2 + 2·factor seconds in place of 4.
    assert hog.goodput is not None
    assert hog.goodput.value == pytest.approx(_geometric(tuple(4 / (2 + 2 * factor) for factor in factors)))


def _geometric(values: tuple[float, ...]) -> float:
    return math.prod(values) ** (1 / len(values))


def test_only_neighbours_are_asked_for_isolation() -> None:
    streams = [one for block in (1, 2, 3) for one in (slowed(block, 1 + block / 10, "few_cores"), clean(block))]
    plain, limited = arms(streams, MARGIN)
    assert (plain.fault, plain.isolation, plain.slowdown, plain.p) == (None, None, None, None)
    assert (limited.fault, limited.isolation) == ("few_cores", None)
    assert limited.p is not None


def test_p_is_holms_over_all_faults() -> None:
    factors = {"cpu_hog": (1.5, 1.6, 1.55), "io_hog": (1.1, 1.3, 1.2)}
    streams = [slowed(at, factor, fault) for fault, some in factors.items() for at, factor in enumerate(some)]
    _, one, other = arms([*streams, *(clean(block) for block in range(3))], MARGIN)
    assert one.slowdown is not None
    assert other.slowdown is not None
    assert one.slowdown.p is not None
    assert one.p == pytest.approx(2 * one.slowdown.p)
    assert other.p == other.slowdown.p


def test_the_twin_has_the_same_checkpoints_and_retries_if_there_is_one() -> None:
    faulty = replace(slowed(1, 2), checkpoint_s=5.0, retries=3)
    bare, same, other = clean(1), replace(clean(1), checkpoint_s=5.0, retries=3), replace(clean(1), checkpoint_s=1.0)
    assert twin_of(faulty, [other, bare, same]) is same
    assert twin_of(faulty, [other, bare]) is bare
    for stranger in (clean(2), replace(clean(1), workload="another"), replace(clean(1), tweakset="hugepages"), slowed(1, 1)):
        assert twin_of(faulty, [stranger]) is None


def test_without_any_twin_nothing_is_compared_and_it_is_said() -> None:
    (arm,) = arms([slowed(block, 1.5) for block in (1, 2, 3)], MARGIN)
    assert (arm.slowdown, arm.paired, arm.isolation) == (None, 0, "not judged")
    assert "3 of 3" in arm.notes[0]


def test_arms_that_differ_in_retries_alone_are_two() -> None:
    streams = [slowed(1, 1.5), replace(slowed(1, 1.2), retries=3), clean(1)]
    assert [arm.label for arm in arms(streams, MARGIN)] == ["no fault", "cpu_hog retries=0", "cpu_hog retries=3"]


def test_jobs_that_the_fault_cost_for_good_are_counted() -> None:
    streams = []
    for block in (1, 2, 3):
        tried = [attempt(0, 1, 0, 2), attempt(1, 1, 1, 1.5 + block / 10, "killed"), attempt(2, 1, 2, 4.5 + block / 10)]
        jobs = [job(0, 0, 2), job(1, 1, 1.5 + block / 10, "killed"), job(2, 2, 4.5 + block / 10)]
        streams += [clean(block), stream(jobs, tried, [Fault("kill", 1.5, 1.5, "a", 1)], fault="kill", block=block)]
    _, arm = arms(streams, MARGIN)
    assert (arm.lost_jobs, arm.given_up, arm.hit, arm.recovered) == (3, 3, 3, 0)
    assert list(arm.whys.values()) == [3]
    assert arm.recovery_s is None
    # Of jobs 0 and 2: 2 s each without, and (2 + 2.5 + block/10)/2 with it.
    assert arm.slowdown is not None
    assert arm.slowdown.value == pytest.approx((2.3 * 2.35 * 2.4) ** (1 / 3) / 2)
    # Killed attempts lasted 0.6, 0.7 and 0.8 s.
    assert arm.lost_s_per_hit is not None
    assert arm.lost_s_per_hit.value == pytest.approx(0.7)


def killing(block: int, fault: str, killed: int, factor: float) -> Stream:
    """The first of three jobs are killed at once; the others take so many times 2 s."""
    lost = [job(at, at, at + 0.1, "killed") for at in range(killed)]
    return stream(
        [*lost, *(job(at, at, at + 2 * factor) for at in range(killed, 3))], faults=[Fault(fault, 0, 2)], fault=fault, block=block
    )


def test_jobs_that_are_sooner_because_others_were_killed_are_no_gain(snapshot: SnapshotAssertion) -> None:
    streams = [one for block in (1, 2, 3) for one in (killing(block, "little_memory", 2, 0.5 + block / 100), clean(block))]
    _, arm = arms(streams, MARGIN)
    assert arm.slowdown is not None
    assert arm.slowdown.value < 0.6
    assert (arm.lost_jobs, arm.thinned) == (6, True)
    assert text.render(of_parts({}, report_page([arm], (), (), MARGIN))) == snapshot
    slower = [one for block in (1, 2, 3) for one in (killing(block, "little_memory", 2, 1.5 + block / 100), clean(block))]
    assert not arms(slower, MARGIN)[1].thinned


def test_where_every_job_was_killed_nothing_is_left_to_compare(snapshot: SnapshotAssertion) -> None:
    streams = [one for block in (1, 2, 3) for one in (killing(block, "little_memory", 3, 1.0), clean(block))]
    _, arm = arms(streams, MARGIN)
    assert (arm.slowdown, arm.goodput, arm.lost_jobs, arm.thinned) == (None, None, 9, False)
    assert any("3 of 3" in note for note in arm.notes)
    assert text.render(of_parts({}, report_page([arm], (), (), MARGIN))) == snapshot


def test_a_neighbour_that_costs_jobs_is_not_isolated_however_alike_the_others_are() -> None:
    streams = [one for block in (1, 2, 3) for one in (killing(block, "memory_hog", 1, 1 + block / 100), clean(block))]
    assert arms(streams, MARGIN)[1].isolation == "open"


def test_a_mean_of_the_few_quick_recoveries_is_not_given() -> None:
    """Of ten faults in one stream each but the last is followed by the next before its job is done."""
    tried = [attempt(0, at + 1, at / 10, (at + 1) / 10, "killed") for at in range(10)]
    faults = [Fault("kill", one.end_s or 0, one.end_s, "a", 0) for one in tried]
    made = stream([job(0, 0, 3), job(1, 1, 3), job(2, 2, 4)], [*tried, attempt(0, 11, 1, 3)], faults, fault="kill")
    _, arm = arms([made, clean(1)], MARGIN)
    assert (arm.strikes, arm.recovered, arm.recovery_s) == (10, 1, None)


def test_notes(snapshot: SnapshotAssertion) -> None:
    jobs = [job(0, 0, 6), job(1, 1, None, "never ended"), job(2, 2, None, "never started")]
    tried = [attempt(0, 1, 0, 1, "killed"), attempt(0, 2, 4, 6), attempt(1, 1, 4, None, "never ended")]
    alone = stream(jobs, tried, [Fault("node", 1, 4, "a")], [Outage("a", 1, 4)], fault="node")
    situations = {
        "the only node lost": [alone, clean(1)],
        "it never came back": [replace(alone, outages=(Outage("a", 1),)), clean(1)],
        "no fault struck": [replace(clean(1), fault="kill"), clean(1)],
        "twins with other retries": [replace(slowed(1, 1.2), retries=3), clean(1)],
    }
    assert {case: arms(streams, MARGIN)[1].notes for case, streams in situations.items()} == snapshot
