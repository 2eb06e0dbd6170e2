"""What KAITO says of a whole measurement, as a cell's one step: rates come out as it said them, what it does not say is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures import record
from fixtures.cluster.preset_workload import as_step, declared
from fixtures.targets.local import Local
from fixtures.terms import Cell, WorkloadRun

SERVING = {"inference": {"preset": {"name": "phi-4"}}}
TUNING = {"tuning": {"preset": {"name": "phi-4"}}}


def recorded(**told: Any) -> dict[str, Any]:  # noqa: ANN401 JSON
    found = record.opened(Cell("study", "kaito-phi-4", "stock", 1, 1, 1), Local(Path()), "2026-01-01T00:00:00+00:00")
    record.steps(found, as_step(WorkloadRun((), {"kaito": told}, {}, 0)))
    return found


def test_a_served_model_has_the_throughput_that_its_image_measured() -> None:
    """370 959 tokens in 61.3 s; KAITO calls it 363 092 a minute."""
    found = recorded(metrics={"throughput_tokens_per_s": 6051.5}, window_s=61.3, tokens=370959)
    assert found["metrics"]["throughput_tokens_per_s"] == pytest.approx(370959 / 61.3)
    assert found["steps"]["wall_s"] == [61.3]


def test_an_image_that_does_not_say_how_long_it_measured_is_taken_at_its_word_for_a_minute() -> None:
    found = recorded(metrics={"throughput_tokens_per_s": 100.0})
    assert found["metrics"]["throughput_tokens_per_s"] == pytest.approx(100.0)
    assert found["steps"]["wall_s"] == [60.0]


def test_a_tuning_has_the_throughput_of_its_trainer() -> None:
    found = recorded(metrics={"throughput_samples_per_s": 4.0, "train_loss": 1.5}, window_s=250.0)
    assert found["metrics"]["throughput_samples_per_s"] == pytest.approx(4.0)
    assert found["steps"]["loss"] == [1.5]


def test_what_is_not_told_has_no_column_and_no_metric() -> None:
    """No processor time, no start by the node's clock, no loss of a model that is only served: missing, never zero."""
    found = recorded(metrics={"throughput_tokens_per_s": 100.0})
    assert not {"cpu_s", "start_monotonic_s", "loss"} & found["steps"].keys()
    assert "cpu_s_per_step" not in found["metrics"]


def test_a_measurement_that_failed_is_no_step() -> None:
    """KAITO writes -1, and no rate comes of it."""
    failed = WorkloadRun((), {"kaito": {"missing": {"throughput_tokens_per_s": "KAITO says -1"}}}, {}, 0)
    assert as_step(failed).steps == ()
    broken = WorkloadRun((), {"kaito": {"metrics": {"throughput_tokens_per_s": 5.0}}}, {}, 0, "the pod was evicted")
    assert as_step(broken).steps == ()


@pytest.mark.parametrize(("workspace", "metric"), [(SERVING, "throughput_tokens_per_s"), (TUNING, "throughput_samples_per_s")])
def test_the_primary_metric_is_declared_before_the_run(workspace: dict[str, Any], metric: str) -> None:
    assert declared(workspace).primary.name == metric
    assert declared(workspace).name == "kaito-phi-4"
