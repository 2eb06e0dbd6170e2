"""On the reference's parameters: the original's answers to the last digit, and our better ones."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analysis.studies.power import parameters
from control.power.catalog import platform
from control.power.greedy import greedy
from control.power.search import best

if TYPE_CHECKING:
    from control.power.terms import Model

pytestmark = pytest.mark.needs("reference")

REFERENCE = Path(__file__).parents[5] / "shared" / "reference" / "pctodl"
GPUS = {"3080ti": "3080Ti", "a100": "A100"}


def golden(mode: str) -> list[Any]:
    """The original's answers, a parameter per task; empty without the reference."""
    file = REFERENCE / f"golden_greedy_{mode}.json"
    return (
        [pytest.param(one, id=f"task{one['task']}") for one in json.loads(file.read_text())]
        if file.exists()
        else []
    )


@cache
def models(network: str, gpu: str) -> dict[float, Model]:
    return parameters.models_for(REFERENCE, network, gpu)


@pytest.mark.parametrize("said", golden("vec"))
def test_the_fast_greedy_search_answers_as_the_original_does(said: dict[str, Any]) -> None:
    gpu = GPUS[said["platform"]]
    found = greedy(models(said["model"], gpu), platform(gpu), said["cap"], network=said["model"])
    setting = found.setting
    assert list(setting.partition.shares) == said["p"]
    assert list(setting.partition.batches) == said["b"]
    assert (setting.sm_mhz, setting.mem_mhz, found.evaluations) == (
        said["f"],
        said["mem"],
        said["evaluations"],
    )
    predicted = [
        found.sm_util_percent,
        found.mem_util_percent,
        found.throughput_images_per_s,
        found.power_w,
    ]
    assert predicted == pytest.approx(said["pred"], rel=1e-6)


@pytest.mark.parametrize("said", golden("std"))
def test_the_slow_greedy_search_answers_as_the_original_does(said: dict[str, Any]) -> None:
    gpu = GPUS[said["platform"]]
    found = greedy(
        models(said["model"], gpu), platform(gpu), said["cap"], network=said["model"], fast=False
    )
    setting = found.setting
    assert list(setting.partition.shares) == said["p"]
    assert list(setting.partition.batches) == said["b"]
    assert setting.sm_mhz == pytest.approx(said["f"], abs=0.01)
    assert (setting.mem_mhz, found.evaluations) == (said["mem"], said["evaluations"])


@pytest.mark.parametrize("said", golden("vec"))
def test_our_search_keeps_the_cap_and_matches_either_reference(said: dict[str, Any]) -> None:
    gpu = GPUS[said["platform"]]
    place = platform(gpu)
    found = best(models(said["model"], gpu), place, said["cap"], network=said["model"])
    assert found.power_w <= said["cap"]
    assert found.setting.sm_mhz in place.sm_mhz
    assert found.setting.sm_mhz <= place.anchor_mhz
    assert found.throughput_images_per_s >= said["best_profiled"]["tput"] - 0.1
