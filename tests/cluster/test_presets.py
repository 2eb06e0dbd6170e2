"""KAITO's benchmark lines and the trainer's last line, in every form in which they were seen.

The lines of the vLLM image are those of kaito-project/kaito: its benchmark_entrypoint (.sh, later
.py), its tests, and logs in its issues.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fixtures import record
from fixtures.kubernetes.kaito import as_step, benchmark, declared, training
from fixtures.targets.local import Local
from fixtures.terms import CellSpec, WorkloadRun

RESULT = "KAITO_BENCHMARK_RESULT"
STAMP = "2026-01-01T00:00:00Z"
GOOD = f'{RESULT} {STAMP} {{"vllm_total_tpm":99999,"ttft_avg_ms":10,"tpot_avg_ms":5}}'
FAILED = f'{RESULT} {STAMP} {{"vllm_total_tpm":-1.0,"ttft_avg_ms":-1.0,"tpot_avg_ms":-1.0}}'
# 99999 tokens a minute are 99999 / 60 a second; milliseconds become seconds.
SAID = {
    "throughput_tokens_per_s": pytest.approx(1666.65),
    "ttft_mean_s": pytest.approx(0.010),
    "tpot_mean_s": pytest.approx(0.005),
}
FAILURE = "KAITO's own measurement failed"
NAMES = ["vllm_total_tpm", "ttft_avg_ms", "tpot_avg_ms"]


@pytest.mark.parametrize(
    ("lines", "metrics", "why_missing"),
    [
        ([GOOD], SAID, set()),
        (
            [f'{RESULT} {{ "vllm_total_tpm": 99999.0, "ttft_avg_ms": 10.0, "tpot_avg_ms": 5.0 }}'],
            SAID,
            set(),
        ),
        (["vllm startup", f"(APIServer pid=1) INFO {GOOD}", "[info] ready"], SAID, set()),
        ([FAILED, GOOD], SAID, set()),
        ([GOOD, FAILED], {}, {FAILURE}),
        ([FAILED.replace("-1.0", "0")], {}, {FAILURE}),
        (
            [f"{RESULT} {STAMP} {{no-json}}"],
            {},
            {f"{RESULT} has no number {name}: '{{no-json}}'" for name in NAMES},
        ),
        (
            [f"{RESULT} vllm_total_tpm=12345.67"],
            {"throughput_tokens_per_s": pytest.approx(12345.67 / 60)},
            {f"{RESULT} has no number {name}: 'vllm_total_tpm=12345.67'" for name in NAMES[1:]},
        ),
        (
            [
                (
                    f'{RESULT} {{ "vllm_total_tpm": 315276.13, "ttft_avg_ms": 0.0, "tpot_avg_ms": '
                    f"59.71 }}"
                )
            ],
            {
                "throughput_tokens_per_s": pytest.approx(5254.602),
                "tpot_mean_s": pytest.approx(0.05971),
            },
            {f"{RESULT} reports an impossible ttft_avg_ms of 0"},
        ),
    ],
    ids=[
        "dated",
        "spaced",
        "in a log",
        "the last counts",
        "the last failed",
        "zero",
        "no JSON",
        "the oldest",
        "a time of 0",
    ],
)
def test_what_a_vllm_image_says(
    lines: list[str], metrics: dict[str, Any], why_missing: set[str]
) -> None:
    """A 57 GiB model was reported with time 0: throughput and tpot were measured, ttft was not."""
    found = benchmark(lines)
    assert found is not None
    assert (found.metrics, set(found.missing.values())) == (metrics, why_missing)


@pytest.mark.parametrize(
    "line",
    [
        "no benchmark here",
        RESULT,
        f"{RESULT} {STAMP}",
        f"KAITO_BENCHMARK {STAMP} benchmark_done elapsed=75s",
    ],
)
def test_a_log_without_a_result_has_none(line: str) -> None:
    assert benchmark([line]) is None


def test_the_trainers_last_line() -> None:
    """Behind its progress bar; a newer trainer quotes its numbers."""
    bar = "100%|██████████| 25/25 [01:40<00:00]"
    old = (
        f"{bar}{{'train_runtime': 100.5, 'train_samples_per_second': 2.0, "
        f"'train_steps_per_second': 0.25, 'train_loss': 1.5, 'epoch': 1.0}}"
    )
    new = (
        "{'train_runtime': '100.5', 'train_samples_per_second': '2', 'train_steps_per_second': "
        "'0.25', 'train_loss': '1.5', 'epoch': '1'}"
    )
    for line in (old, new):
        found = training(["{'loss': 1.7, 'learning_rate': 5e-05, 'epoch': 0.5}", line])
        assert found is not None
        assert found.metrics == {
            "train_runtime_s": 100.5,
            "throughput_samples_per_s": 2.0,
            "throughput_steps_per_s": 0.25,
            "train_loss": 1.5,
            "epochs": 1.0,
        }
        assert found.window_s == 100.5
    assert training(["{'loss': 1.7, 'epoch': 0.5}", "train_loss=0.5"]) is None
    # Taken up from a checkpoint.
    last = training(
        ["{'train_runtime': 1.0}", "{'train_runtime': 10.0, 'train_loss': nan, 'epoch': 1.0}"]
    )
    assert last is not None
    assert last.metrics == {"train_runtime_s": 10.0, "epochs": 1.0}
    assert last.missing["train_loss"] == "the trainer reported no finite train_loss"


NUMBERS = st.one_of(st.floats(), st.integers(), st.none(), st.booleans(), st.text(max_size=5))


@example(tpm=5e-324, ttft=None, tpot=None, stamp="")  # a sixtieth of it is 0
@given(
    tpm=NUMBERS, ttft=NUMBERS, tpot=NUMBERS, stamp=st.sampled_from(["", "2026-01-01T00:00:00Z "])
)
def test_each_metric_is_positive_or_missing_with_a_reason(
    tpm: object, ttft: object, tpot: object, stamp: str
) -> None:
    found = benchmark(
        [
            (
                "KAITO_BENCHMARK_RESULT "
                + stamp
                + json.dumps({"vllm_total_tpm": tpm, "ttft_avg_ms": ttft, "tpot_avg_ms": tpot})
            )
        ]
    )
    assert found is not None
    assert found.metrics.keys() | found.missing.keys() == {
        "throughput_tokens_per_s",
        "ttft_mean_s",
        "tpot_mean_s",
    }
    assert not found.metrics.keys() & found.missing.keys()
    assert all(math.isfinite(value) and value > 0 for value in found.metrics.values())
    assert all(found.missing.values())


SERVING = {"inference": {"preset": {"name": "phi-4"}}}
TUNING = {"tuning": {"preset": {"name": "phi-4"}}}


def recorded(**told: Any) -> dict[str, Any]:
    found = record.opened(
        CellSpec("study", "kaito-phi-4", "stock", 1, 1, 1),
        Local(Path()),
        "2026-01-01T00:00:00+00:00",
    )
    record.steps(found, as_step(WorkloadRun((), {"kaito": told}, {}, 0)))
    return found


def test_a_served_models_throughput_is_what_its_image_measured() -> None:
    """As one minute."""
    found = recorded(metrics={"throughput_tokens_per_s": 100.0})
    assert found["metrics"]["throughput_tokens_per_s"] == pytest.approx(100.0)
    assert found["steps"]["wall_s"] == [60.0]


def test_a_tuning_has_the_throughput_of_its_trainer() -> None:
    found = recorded(metrics={"throughput_samples_per_s": 4.0, "train_loss": 1.5}, window_s=250.0)
    assert found["metrics"]["throughput_samples_per_s"] == pytest.approx(4.0)
    assert found["steps"]["loss"] == [1.5]


def test_a_measurement_that_failed_is_no_step() -> None:
    """KAITO writes -1, and no rate comes of it."""
    failed = WorkloadRun(
        (), {"kaito": {"missing": {"throughput_tokens_per_s": "KAITO says -1"}}}, {}, 0
    )
    assert as_step(failed).steps == ()
    broken = WorkloadRun(
        (), {"kaito": {"metrics": {"throughput_tokens_per_s": 5.0}}}, {}, 0, "the pod was evicted"
    )
    assert as_step(broken).steps == ()


@pytest.mark.parametrize(
    ("workspace", "metric"),
    [(SERVING, "throughput_tokens_per_s"), (TUNING, "throughput_samples_per_s")],
)
def test_the_primary_metric_is_declared_before_the_run(
    workspace: dict[str, Any], metric: str
) -> None:
    name, preset = declared(workspace)
    assert (name, preset.primary.name) == ("kaito-phi-4", metric)
