"""Facts on workloads before any of them runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures import workloads
from fixtures.terms import BadInput
from tests.programs import python

ROOT = Path(__file__).parents[2]


def test_a_workload_is_a_file_without_underscore() -> None:
    found = workloads.names()
    assert set(found) >= {"checkpoint_train", "cnn_train", "ddp_train", "lora_finetune"}
    assert not any(name.startswith("_") for name in found)
    folders = [ROOT / "fixtures/workloads", *(ROOT / "fixtures/studies").glob("*/workloads")]
    assert all(sum((folder / f"{name}.py").is_file() for folder in folders) == 1 for name in found)


@pytest.mark.parametrize("name", workloads.names())
def test_every_workload_says_what_it_is(name: str) -> None:
    """The plug-in contract: description, a metric that analysis knows, sizes, default length."""
    workload = workloads.of(name)
    assert workloads.load(name).id == name
    assert workload.description
    assert (workload.primary.name, workload.primary.better) in {
        ("step_time_p10_s", "lower"),
        ("step_time_median_s", "lower"),
        ("step_time_mean_s", "lower"),
        ("throughput_samples_per_s", "higher"),
    }
    steps, warmup_steps = workload.params["steps"], workload.params["warmup_steps"]
    assert isinstance(steps, int)
    assert steps > 0
    assert isinstance(warmup_steps, int)
    assert warmup_steps >= 0
    assert 0 < workload.cell_s() < 20


def test_reading_the_facts_imports_no_framework() -> None:
    """`--plan` and `--help` work, and quickly, where torch is not installed."""
    code = (
        "import sys; from fixtures import workloads; [workloads.load(name) for name in "
        "workloads.names()]; "
        "sys.exit(str(sorted({'torch', 'transformers', 'peft', 'sklearn', 'scipy'} & "
        "set(sys.modules))))"
    )
    process = python(code)
    assert process.stderr.strip() == "[]"


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(
        BadInput,
        match=r"No workload 'cnn_trian'\. Did you mean 'cnn_train'\? Available: capped_inference, "
        r"check",
    ):
        workloads.load("cnn_trian")
