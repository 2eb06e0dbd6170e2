"""What poisoned clients cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from analysis.studies.jobs.dependability.study import poisonings
from tests.analysis.studies.jobs.dependability.made_streams import job, stream

if TYPE_CHECKING:
    from analysis.studies.jobs.records import Stream


def learned(block: int, name: str, accuracies: tuple[float, ...], **params: Any) -> Stream:  # noqa: ANN401  # numbers and words
    jobs = [replace(job(at, at, at + 1), class_="federated", result={"accuracy": one}) for at, one in enumerate(accuracies)]
    made = {"name": "federated", "kind": "federated", "params": {"clients": 10, **params}}
    return replace(stream(jobs, block=block), workload=f"job_stream:classes={name}:jobs=2", classes=(made,))


def test_a_drop_is_against_the_same_block_without_poisoned_clients() -> None:
    """Blocks of 0.9, 0.8 and 0.7 clean lose 10, 20 and 30 points: 20 ± 4.3027·10/√3."""
    streams = [learned(at, "federated", (1 - at / 10, 1 - at / 10), aggregation="fedavg") for at in (1, 2, 3)]
    streams += [learned(at, "poisoned", (1 - at / 5, 1 - at / 5), aggregation="fedavg", poisoned=4) for at in (1, 2, 3)]
    clean, poisoned = poisonings(streams)
    assert (clean.poisoned, clean.jobs, clean.drop) == (0, 6, None)
    assert poisoned.drop is not None
    assert poisoned.drop.value == pytest.approx(0.2)
    assert poisoned.drop.low == pytest.approx(0.2 - 4.302653 * 0.1 / 3**0.5)
    assert poisoned.clean == poisoned.setting == "aggregation=fedavg, clients=10"


def test_poisoned_clients_may_be_a_parameter_of_the_workload() -> None:
    one = learned(1, "federated", (0.9,))
    _, poisoned = poisonings([one, replace(one, workload=f"{one.workload}:poisoned=3", jobs=learned(1, "", (0.6,)).jobs)])
    assert poisoned.poisoned == 3
    assert poisoned.drop is not None
    assert poisoned.drop.value == pytest.approx(0.3)


def test_without_a_clean_run_no_drop_is_made_up() -> None:
    (only,) = poisonings([learned(1, "poisoned", (0.5,), poisoned=4)])
    assert (only.drop, only.clean) == (None, "")


def test_jobs_that_are_not_federated_or_not_done_have_no_part() -> None:
    other = learned(1, "train", (0.9,))
    trained = replace(other, classes=({"name": "federated", "kind": "train", "params": {"lr": 0.1}},))
    failed = replace(other, jobs=tuple(replace(one, outcome="failed") for one in other.jobs))
    assert poisonings([trained, failed]) == []


def test_a_drop_is_against_its_own_setting_where_that_has_a_clean_run_and_else_against_another() -> None:
    """Median: .7 poisoned, of .9 of the mean's, and of .8 of its own once that was measured."""
    fedavg = learned(1, "federated", (0.9,), aggregation="fedavg")
    poisoned = learned(1, "three", (0.7,), aggregation="median", poisoned=4)
    own = learned(1, "two", (0.8,), aggregation="median")
    for streams, drop, clean in (([fedavg, poisoned], 0.2, "fedavg"), ([fedavg, own, poisoned], 0.1, "median")):
        *_, median = poisonings(streams)
        assert median.drop is not None
        assert median.drop.value == pytest.approx(drop)
        assert clean in median.clean
