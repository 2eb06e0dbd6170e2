"""Federated averaging: the effect of poisoned clients, robust servers, and the arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.studies.jobs import kinds
from fixtures.studies.jobs.kinds import federated


def asked(folder: Path, params: Mapping[str, object], **more: Any) -> kinds.JobRequest:
    given_ = {
        "work": 10,
        "from_work": 0,
        "seed": 3,
        "attempt": 1,
        "checkpoint_s": 0,
        "report": lambda _: None,
        **more,
    }
    return kinds.JobRequest(
        job=1,
        params=kinds.complete("federated", params),
        replica=0,
        replicas=1,
        folder=folder,
        **given_,
    )


def accuracy(folder: Path, seed: int = 3, **params: object) -> float:
    return float(str(federated.run(asked(folder, params, seed=seed))["accuracy"]))


@pytest.mark.parametrize("seed", [3, 4])
def test_poisoning_costs_less_accuracy_with_robust_aggregation(seed: int, tmp_path: Path) -> None:
    """Four of ten flip their labels; a model that guesses has 0.1."""
    clean = accuracy(tmp_path, seed)
    mean, median, trimmed = (
        accuracy(tmp_path, seed, poisoned=4, aggregation=how)
        for how in ("fedavg", "median", "trimmed")
    )
    assert clean > 0.88
    assert mean < clean - 0.05
    assert median > mean + 0.02
    assert trimmed > mean + 0.02


def test_a_job_resumes_from_its_checkpoint_with_the_same_result(tmp_path: Path) -> None:
    """The checkpoint after each round; the second attempt begins with the fifth."""
    whole = federated.run(asked(tmp_path, {}))
    told: list[Mapping[str, object]] = []
    federated.run(asked(tmp_path, {}, work=5, checkpoint_s=1e-9, report=told.append))
    assert [one["checkpoint"] for one in told if "checkpoint" in one] == [1, 2, 3, 4]
    again = federated.run(asked(tmp_path, {}, attempt=2, from_work=4, report=told.append))
    assert again["accuracy"] == whole["accuracy"]
    assert told[-1] == {"round": 10, "accuracy": whole["accuracy"]}


def test_a_mean_weighs_clients_by_their_samples() -> None:
    """(3·1 + 1·5)/4 = 2."""
    assert federated.aggregate(np.array([[1.0], [5.0]]), np.array([3, 1]), "fedavg", 0.3) == [[2.0]]


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=10, max_size=10),
    st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=3),
)
def test_robust_aggregates_stay_within_the_honest_clients_range(
    honest: list[float], wild: list[float]
) -> None:
    """Whatever they send: median and mean without three at each end stay among the other seven."""
    sent = np.array([*honest[:7], *wild])[:, None]
    for how in ("median", "trimmed"):
        (found,) = federated.aggregate(sent, np.ones(10), how, 0.3)
        assert min(honest[:7]) - 1e-6 <= found <= max(honest[:7]) + 1e-6
