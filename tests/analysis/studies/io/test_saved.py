"""Saved runs as I/O runs: each reported field is read, each fault is named with its cell."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analysis.__main__ import main
from analysis.compare import CompareOptions, compare
from analysis.load import from_json
from analysis.studies.io.figures import judge
from analysis.studies.io.saved import judged_of
from analysis.studies.io.study import common, configuration, factors_of, levels_of, study
from tests.made_io import MadeIo, saved_io
from tests.made_io import io_runs as made_runs

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from analysis.studies.io.terms import IoRun
    from analysis.terms import Run

MADE = MadeIo(
    factors={"format": ("raw", "npz"), "cache": ("cold", "warm"), "processes": (2,)},
    blocks=3,
    epochs=2,
)


def io_runs(run: Run, refused: list[str]) -> list[IoRun]:
    return [one.run for one in judged_of(run, refused)]


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "an epoch missing": lambda told: told["epochs"].pop(),
    "an epoch twice": lambda told: told["epochs"].append(dict(told["epochs"][0])),
    "epoch 9**18": lambda told: told["epochs"][0].update(epoch=9**18),
    "9**18 ranks": lambda told: told["io"][0].update(processes=9**18),
    "one load": lambda told: told["epochs"][1].update(load_s=[0.1]),
    "no step": lambda told: told["epochs"][1].update(load_s=[], compute_s=[], barrier_s=[]),
    "ends at 1 s": lambda told: told["epochs"][1].update(end_monotonic_s=1.0),
    "-1 bytes": lambda told: told["epochs"][0].update(rchar_bytes=-1),
    "-0.5 resident": lambda told: told["epochs"][0].update(resident_before=-0.5),
    "1.5 resident": lambda told: told["epochs"][0].update(resident_after=1.5),
    "nan s": lambda told: told["epochs"][0]["compute_s"].__setitem__(0, math.nan),
    "io twice": lambda told: told["io"].append(told["io"][0]),
    "no batch size": lambda told: told["io"][0].pop("batch_size"),
    "records of 0 bytes": lambda told: told["io"][0].update(record_length_bytes=0),
    "records of 1e300 bytes": lambda told: told["io"][0].update(record_length_bytes=1e300),
}


def test_an_impossible_report_is_refused_by_name_and_others_stay(
    snapshot: SnapshotAssertion,
) -> None:
    made = MadeIo(factors={"cache": ("cold",), "processes": (2,)}, blocks=1, epochs=2)
    found = {}
    for case, change in CHANGES.items():
        saved = saved_io(made)
        change(saved["benchmarks"][0]["extra_info"]["report"])
        refused: list[str] = []
        assert len(io_runs(from_json(saved, "run.json"), refused)) == 1
        (found[case],) = refused
    assert found == snapshot


def test_a_saved_run_reads_as_the_runs_it_was_made_of() -> None:
    refused: list[str] = []
    found = {
        (one.tweakset, one.block, *one.overrides.values()): one
        for one in io_runs(from_json(saved_io(MADE), "run.json"), refused)
    }
    assert refused == []
    assert len(found) == 2 * 2 * 2 * 3
    for made in made_runs(MADE):
        read = found[made.tweakset, made.block, *made.overrides.values()]
        assert read.epochs == made.epochs
        assert (read.processes, read.batch_size, read.params["format"]) == (
            2,
            4,
            made.params["format"],
        )
        assert read.dataset == made.dataset


def test_the_default_level_is_a_level_although_no_name_has_it() -> None:
    """Names omit defaults (npz, cold); factors and configurations still have both levels."""
    text = json.dumps(saved_io(MADE)).replace(":format=npz", "").replace(":cache=cold", "")
    runs = io_runs(from_json(json.loads(text), "run.json"), [])
    factors, _ = factors_of(levels_of(runs))
    assert factors == {"format": ["raw", "npz"], "cache": ["cold", "warm"]}
    assert {configuration(run, common(runs)) for run in runs} == {
        "raw · cold",
        "raw · warm",
        "npz · cold",
        "npz · warm",
    }


def test_an_option_of_one_workload_alone_is_in_its_name_only() -> None:
    made = MadeIo(
        factors={"format": ("raw", "npz"), "cache": ("cold", "warm")},
        blocks=1,
        tweaksets=("stock",),
    )
    saved = saved_io(made)
    text = json.dumps(saved).replace(
        "io_train:format=raw:cache=warm", "io_train:format=raw:cache=warm:model_size_bytes=9"
    )
    runs = io_runs(from_json(json.loads(text), "run.json"), [])
    assert [list(run.overrides) for run in runs].count(["format", "cache"]) == 3
    assert "raw · warm · model_size_bytes 9" in {configuration(run, common(runs)) for run in runs}


def test_a_checkpoint_within_an_epoch_is_no_time_of_its_steps() -> None:
    """As in DLIO's figures, where a checkpoint ends a block: 0.25 s shorten the epoch by 0.25 s."""
    made = MadeIo(factors={"format": ("raw",)}, blocks=1, tweaksets=("stock",))
    saved = saved_io(made)
    (before,) = io_runs(from_json(saved, "run.json"), [])
    for cell in saved["benchmarks"]:
        for epoch in cell["extra_info"]["report"]["epochs"]:
            epoch["checkpoint_s"] = 0.25
    (after,) = io_runs(from_json(saved, "run.json"), [])
    assert [e.end_s for e in after.epochs] == pytest.approx([e.end_s - 0.25 for e in before.epochs])


def test_a_cell_that_failed_is_left_out_with_its_reason() -> None:
    levels = {"format": "raw", "cache": "cold", "processes": 2}
    refused: list[str] = []
    found = io_runs(
        from_json(saved_io(MadeIo(factors=MADE.factors, lost=[(levels, "stock", 2)])), "run.json"),
        refused,
    )
    assert len(found) == 2 * 2 * 2 * 5 - 1
    (line,) = refused
    assert line.startswith("run.json: io_train:format=raw")
    assert "b2 failed" in line


def test_cold_epochs_read_the_whole_data_set_and_warm_ones_none() -> None:
    proofs = study("made.json", [judge(run) for run in made_runs(MADE)]).caches
    cold, warm = proofs["raw · cold"], proofs["raw · warm"]
    assert (cold["before_low"], cold["before_high"], warm["before_low"]) == (0.0, 0.0, 1.0)
    assert (cold["fetched"], warm["fetched"], warm["device"]) == (1.0, 0.0, 0.0)
    assert cold["device"] == pytest.approx(1.0, abs=1e-4)
    assert cold["asked"] == pytest.approx(1.0, abs=1e-4)
    assert cold["epochs"] == 2 * 2 * 3


def test_figures_of_the_input_are_cell_metrics_to_compare() -> None:
    """A tenth more samples/s per epoch is a tenth more utilisation: the computation is the same."""
    made = MadeIo(
        factors={"cache": ("cold",)},
        tweaksets=("stock", "block-better"),
        gain=lambda _levels, tweakset: math.log(1.1) if tweakset == "block-better" else 0.0,
        blocks=6,
    )
    run = from_json(saved_io(made), "run.json")
    (one,) = compare(
        run,
        options=CompareOptions(
            metrics=("au_whole_percent", "samples_per_s_whole", "first_step_share")
        ),
    )
    gains = {effect.metric.name: effect for effect in one.others}
    assert gains["samples_per_s_whole"].low < 0.1 < gains["samples_per_s_whole"].high
    assert gains["au_whole_percent"].gain == pytest.approx(
        gains["samples_per_s_whole"].gain, abs=0.002
    )
    assert gains["au_whole_percent"].metric.better == "higher"
    assert gains["first_step_share"].metric.better == "lower"


def test_the_command_on_a_page_and_for_programs(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "io.json").write_text(json.dumps(saved_io(MADE)), encoding="utf-8")
    assert main(["io", "io.json", "--all"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    assert out == snapshot
    assert main(["io", "io.json", "--json", "--plot", "pictures"]) == 0
    told = json.loads(capsys.readouterr().out)
    (said,) = told["saved"]
    assert len(said["runs"]) == 24
    assert {one["response"] for one in said["analyses"]} == {
        "au_whole_percent",
        "au_steady_percent",
        "samples_per_s_whole",
    }
    assert said["caches"]["raw · cold"]["before_high"] == 0.0
    assert told["pictures"]["io_bottleneck"] == "pictures/io_bottleneck.png"
    assert (tmp_path / "pictures/io_bottleneck.png").stat().st_size > 10_000


# Reports against themselves or against each other.


def changed(saved: dict[str, Any]) -> dict[str, Any]:
    """The report of the first cell, to be changed."""
    report: dict[str, Any] = saved["benchmarks"][0]["extra_info"]["report"]
    return report


@pytest.mark.parametrize(("steps", "kept"), [(48, 24), (47, 23), (96, 23)])
def test_an_epoch_has_the_steps_that_its_report_says(steps: int, kept: int) -> None:
    saved = saved_io(MADE)
    changed(saved)["io"][0]["steps_per_epoch"] = steps
    refused: list[str] = []
    run = from_json(saved, "run.json")
    assert len(io_runs(run, refused)) == kept
    assert kept == 24 or (f"{steps} steps" in refused[0])
    assert sum("samples_per_s_whole" in cell.metrics for cell in run.cells) == kept


def test_capped_steps_cut_the_last_epoch_short_and_no_other() -> None:
    saved = saved_io(MADE)
    saved["deeptweak"]["design"]["steps"] = 90
    report = changed(saved)
    report["io"][0]["steps_per_epoch"] = 48
    for epoch, kept in ((2, 24), (1, 23)):
        for one in (one for one in report["epochs"] if one["epoch"] == epoch):
            one |= {name: one[name][:42] for name in ("load_s", "compute_s", "barrier_s")}
            one["rchar_bytes"] = one["read_bytes"] = one["read_bytes"] * 42 // 48
        assert len(io_runs(from_json(saved, "run.json"), [])) == kept


@pytest.mark.parametrize(
    ("about", "counts_all"),
    [
        ({"engine": "dlio", "engine_version": "2.0.0", "engine_keys": "record_length"}, True),
        ({"engine": "dlio", "engine_version": "2.0.0"}, True),
        (
            {"engine": "dlio", "engine_version": "2.0.0", "engine_keys": "record_length_bytes"},
            False,
        ),
        ({"engine": "torch", "engine_version": "2.0.0"}, False),
    ],
)
def test_a_cell_that_dlio_2_0_0_ran_is_counted_as_that_counts(
    about: dict[str, str],
    counts_all: bool,  # noqa: FBT001  # a column
) -> None:
    """All samples over all time: the figure of the whole epoch.

    Later trees call themselves 2.0.0 too and have another key.
    """
    saved = saved_io(MadeIo(factors={"format": ("raw",)}, tweaksets=("stock",), blocks=1))
    changed(saved)["io"][0] |= about
    (run,) = io_runs(from_json(saved, "run.json"), [])
    assert run.dlio_counts_all == counts_all
    judged = judge(run)
    assert (judged.value("samples_per_s_dlio") == judged.value("samples_per_s_whole")) == counts_all
