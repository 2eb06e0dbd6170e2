"""Faults against the same jobs without them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from analysis.render import text
from analysis.studies.jobs.faults import arms, reported, twin_of
from analysis.studies.jobs.poisoning import WORSE, lost_accuracy, poisonings, word_of
from analysis.studies.jobs.records import Fault, Stream
from tests.analysis.answers import known
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
        (
            (0.5, 0.55, 0.52),
            "open",
        ),  # beside a neighbour nothing gets faster: something else was different
        ((1.05, 1.06, 1.055), "isolated"),  # slower for certain, and by less than matters
        (
            (0.953, 1.0, 1.05),
            "isolated",
        ),  # by the 90 % interval, 0.92 to 1.09; that of 95 % reaches from 0.89 to 1.13
        ((1.5, 1.6), "not judged"),
    ],
)
def test_a_neighbour_with_its_interval_in_the_margin_is_isolated(
    factors: tuple[float, ...], word: str
) -> None:
    streams = [
        one for block, factor in enumerate(factors) for one in (slowed(block, factor), clean(block))
    ]
    _, hog = arms(streams, MARGIN)
    # No job was lost, however much sooner they are.
    assert (hog.isolation, hog.thinned) == (word, False)
    assert known(hog.slowdown).value == pytest.approx(_geometric(factors))
    # Three jobs, the last done at 2 + 2·factor seconds in place of 4.
    assert known(hog.goodput).value == pytest.approx(
        _geometric(tuple(4 / (2 + 2 * factor) for factor in factors))
    )


def _geometric(values: tuple[float, ...]) -> float:
    return math.prod(values) ** (1 / len(values))


def test_p_is_holms_over_all_faults() -> None:
    factors = {"cpu_hog": (1.5, 1.6, 1.55), "io_hog": (1.1, 1.3, 1.2)}
    streams = [
        slowed(at, factor, fault)
        for fault, some in factors.items()
        for at, factor in enumerate(some)
    ]
    _, one, other = arms([*streams, *(clean(block) for block in range(3))], MARGIN)
    assert [known(arm.slowdown).p_adjusted for arm in (one, other)] == pytest.approx(
        [2 * known(one.slowdown).p, known(other.slowdown).p]
    )


def test_the_twin_has_equal_checkpoints_and_retries_if_it_exists() -> None:
    faulty = replace(slowed(1, 2), checkpoint_s=5.0, retries=3)
    bare, same, other = (
        clean(1),
        replace(clean(1), checkpoint_s=5.0, retries=3),
        replace(clean(1), checkpoint_s=1.0),
    )
    assert twin_of(faulty, [other, bare, same]) is same
    assert twin_of(faulty, [other, bare]) is bare
    for stranger in (
        clean(2),
        replace(clean(1), params={"jobs": 9}),
        replace(clean(1), tweakset="hugepages"),
        slowed(1, 1),
    ):
        assert twin_of(faulty, [stranger]) is None


def test_jobs_that_the_fault_cost_for_good_are_counted() -> None:
    streams = []
    for block in (1, 2, 3):
        tried = [
            attempt(0, 1, 0, 2),
            attempt(1, 1, 1, 1.5 + block / 10, "killed"),
            attempt(2, 1, 2, 4.5 + block / 10),
        ]
        jobs = [job(0, 0, 2), job(1, 1, 1.5 + block / 10, "killed"), job(2, 2, 4.5 + block / 10)]
        streams += [
            clean(block),
            stream(jobs, tried, [Fault("kill", 1.5, 1.5, "a", 1)], fault="kill", block=block),
        ]
    _, arm = arms(streams, MARGIN)
    assert (arm.lost_jobs, arm.hit, arm.recovered, arm.figures["recovery_s"]) == (3, 3, 0, None)
    # Of jobs 0 and 2: 2 s each without, and (2 + 2.5 + block/10)/2 with it.
    assert known(arm.slowdown).value == pytest.approx((2.3 * 2.35 * 2.4) ** (1 / 3) / 2)
    # Killed attempts lasted 0.6, 0.7 and 0.8 s.
    assert known(arm.figures["lost_s_per_hit"]).value == pytest.approx(0.7)


def killing(block: int, fault: str, killed: int, factor: float) -> Stream:
    """The first of three jobs are killed at once; the others take a multiple of 2 s."""
    lost = [job(at, at, at + 0.1, "killed") for at in range(killed)]
    return stream(
        [*lost, *(job(at, at, at + 2 * factor) for at in range(killed, 3))],
        faults=[Fault(fault, 0, 2)],
        fault=fault,
        block=block,
    )


def test_jobs_that_are_sooner_because_others_died_are_no_gain(snapshot: SnapshotAssertion) -> None:
    streams = [
        one
        for block in (1, 2, 3)
        for one in (killing(block, "little_memory", 2, 0.5 + block / 100), clean(block))
    ]
    _, arm = arms(streams, MARGIN)
    assert known(arm.slowdown).value < 0.6
    assert (arm.lost_jobs, arm.thinned) == (6, True)
    assert text.render(reported(streams, MARGIN, ())) == snapshot
    slower = [
        one
        for block in (1, 2, 3)
        for one in (killing(block, "little_memory", 2, 1.5 + block / 100), clean(block))
    ]
    assert not arms(slower, MARGIN)[1].thinned


def learned(block: int, name: str, accuracies: tuple[float, ...], **params: Any) -> Stream:
    jobs = [
        replace(job(at, at, at + 1), class_="federated", result={"accuracy": one})
        for at, one in enumerate(accuracies)
    ]
    made = {"name": "federated", "kind": "federated", "params": {"clients": 10, **params}}
    return replace(stream(jobs, block=block), params={"classes": name, "jobs": 2}, classes=(made,))


def test_a_drop_is_claimed_by_holms_p_and_never_of_two_blocks() -> None:
    """10, 20, 30 points: t = 0.2 / (0.1/√3) = 3.46, 2 d.f.; 19, 20, 21: t = 34.6; Holm: times 2."""
    streams = [learned(at, "federated", (0.9,), aggregation="fedavg") for at in (1, 2, 3)]
    streams += [
        learned(at, "poisoned", (0.9 - at / 10,), aggregation="fedavg", poisoned=4)
        for at in (1, 2, 3)
    ]
    streams += [
        learned(at, "median", (0.68 + at / 100,), aggregation="median", poisoned=4)
        for at in (1, 2, 3)
    ]
    _, wide, narrow = poisonings(streams)
    assert [known(one.change).p_adjusted for one in (wide, narrow)] == pytest.approx(
        [0.0742, 2 * 0.00083], rel=0.01
    )
    assert "Worse: aggregation=median, clients=10 (20.0 " in lost_accuracy([wide, narrow])
    better = replace(narrow, change=known(narrow.change)._replace(value=0.2))
    assert [word_of(one) is WORSE for one in (wide, narrow, better)] == [False, True, False]
    assert [
        known(one.change).p for one in poisonings([*streams[:2], *streams[3:5]]) if one.poisoned
    ] == [None]


def test_a_drop_is_against_its_own_clean_run_or_another_s() -> None:
    """Median: .7 poisoned, of .9 of the mean's, and of .8 of its own once that was measured."""
    fedavg = learned(1, "federated", (0.9,), aggregation="fedavg")
    poisoned = learned(1, "three", (0.7,), aggregation="median", poisoned=4)
    own = learned(1, "two", (0.8,), aggregation="median")
    for streams, drop, clean in (
        ([fedavg, poisoned], 0.2, "fedavg"),
        ([fedavg, own, poisoned], 0.1, "median"),
    ):
        *_, median = poisonings(streams)
        assert known(median.drop).value == pytest.approx(drop)
        assert clean in median.clean
