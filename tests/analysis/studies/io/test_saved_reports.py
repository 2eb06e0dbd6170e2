"""Reports of saved runs that are against themselves or against each other, and what only a saved run knows."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from analysis.load import from_json
from analysis.studies.io.mlperf import submission
from analysis.studies.io.responses import judge
from analysis.studies.io.saved import io_runs
from tests.made_io import MadeIo, saved_io

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

MADE = MadeIo(factors={"format": ("raw", "npz"), "cache": ("cold", "warm"), "processes": (2,)}, blocks=3, epochs=2)


def changed(saved: dict[str, Any]) -> dict[str, Any]:
    """The report of the first cell, to be changed."""
    report: dict[str, Any] = saved["benchmarks"][0]["extra_info"]["report"]
    return report


def with_hashes(*hashes: str) -> tuple[int, list[str]]:
    """How many runs of one configuration remain that read such data sets."""
    saved = saved_io(MadeIo(factors={"format": ("raw",)}, tweaksets=("stock",), blocks=len(hashes)))
    for one, name in zip(saved["benchmarks"], hashes, strict=True):
        one["extra_info"]["report"]["io"][0]["dataset"]["sizes_sha256"] = name
    refused: list[str] = []
    return len(io_runs(from_json(saved, "run.json"), refused)), refused


def test_runs_of_a_configuration_read_the_same_data() -> None:
    kept, refused = with_hashes("a" * 64, "a" * 64, "b" * 64)
    assert kept == 2
    assert ("bbbbbbbbbbbb," in refused[0], "2 of 3" in refused[0]) == (True, True)
    assert with_hashes("a" * 64, "b" * 64)[0] == 0
    assert with_hashes("a" * 64, "a" * 64) == (2, [])


@pytest.mark.parametrize(("steps", "kept"), [(48, 24), (47, 23), (96, 23)])
def test_an_epoch_has_the_steps_that_its_report_says(steps: int, kept: int) -> None:
    """48 were taken."""
    saved = saved_io(MADE)
    changed(saved)["io"][0]["steps_per_epoch"] = steps
    refused: list[str] = []
    run = from_json(saved, "run.json")
    assert len(io_runs(run, refused)) == kept
    assert kept == 24 or (f"{steps} steps" in refused[0])
    assert sum("samples_per_s_whole" in cell.metrics for cell in run.cells) == kept


def test_steps_that_were_capped_cut_the_last_epoch_short_and_no_other() -> None:
    saved = copy.deepcopy(saved_io(MADE))
    saved["deeptweak"]["design"]["steps"] = 90
    told = changed(saved)
    told["io"][0]["steps_per_epoch"] = 48
    for one in (one for one in told["epochs"] if one["epoch"] == 2):
        one |= {name: one[name][:42] for name in ("load_s", "compute_s", "barrier_s")}
        one["rchar_bytes"] = one["read_bytes"] = one["read_bytes"] * 42 // 48
    assert len(io_runs(from_json(saved, "run.json"), [])) == 24
    for one in (one for one in told["epochs"] if one["epoch"] == 1):
        one |= {name: one[name][:42] for name in ("load_s", "compute_s", "barrier_s")}
    assert len(io_runs(from_json(saved, "run.json"), [])) == 23


def test_a_seed_that_was_saved_is_recorded(snapshot: SnapshotAssertion) -> None:
    runs = [judge(run) for run in io_runs(from_json(saved_io(MADE), "run.json"), [])]
    lacks = submission("one", runs[:2]).lacks
    assert [lack for lack in lacks if "seed" in lack] == snapshot


@pytest.mark.parametrize(
    ("about", "counts_all"),
    [
        ({"engine": "dlio", "engine_version": "2.0.0", "engine_keys": "record_length"}, True),
        ({"engine": "dlio", "engine_version": "2.0.0"}, True),
        ({"engine": "dlio", "engine_version": "2.0.0", "engine_keys": "record_length_bytes"}, False),
        ({"engine": "torch", "engine_version": "2.0.0"}, False),
    ],
)
def test_a_cell_that_dlio_2_0_0_ran_is_counted_as_that_counts(about: dict[str, str], counts_all: bool) -> None:  # noqa: FBT001  # a column
    """All samples over all time: its figure is that of the whole epoch. Later trees call themselves 2.0.0 too and have another key."""
    saved = saved_io(MadeIo(factors={"format": ("raw",)}, tweaksets=("stock",), blocks=1))
    changed(saved)["io"][0] |= about
    (run,) = io_runs(from_json(saved, "run.json"), [])
    assert run.dlio_counts_all == counts_all
    judged = judge(run)
    assert (judged.value("samples_per_s_dlio") == judged.value("samples_per_s_whole")) == counts_all
    assert ("2.0.0" in judged.responses["samples_per_s_dlio"].label) == counts_all
