"""Implausible runs give no figure: sleeps that end late, a page cache unlike its name."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analysis.__main__ import main
from analysis.studies.io.figures import (
    COLD_AT_MOST,
    EVERY,
    OVERSLEPT,
    WARM_AT_LEAST,
    judge,
    judged_alike,
)
from fixtures.studies.io import pagecache
from tests.dlio_like import epoch, io_run
from tests.made_io import MadeIo, saved_io
from tests.made_io import io_runs as made_runs

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from analysis.studies.io.terms import Epoch, IoRun

MADE = MadeIo(
    factors={"format": ("raw", "npz"), "cache": ("cold", "warm"), "processes": (2,)},
    blocks=3,
    epochs=2,
)
AU = ("au_steady_percent", "au_whole_percent")


def made(cache: str, **epochs: object) -> IoRun:
    """A run of one cache state; `epochs` replaces fields of all its epochs."""
    run = next(one for one in made_runs(MADE) if one.params["cache"] == cache)
    return replace(
        run,
        epochs=tuple(replace(one, **epochs) for one in run.epochs),  # type: ignore[arg-type]
    )


def late(one: Epoch, times: float) -> Epoch:
    """The same epoch with sleeps `times` as long; its readers caught up, so it took no longer."""
    compute_s = tuple(times * value for value in one.compute_s)
    caught_up_s = math.fsum(compute_s) - math.fsum(one.compute_s)
    waits_s = math.fsum(one.load_s[1:])
    return replace(
        one,
        compute_s=compute_s,
        load_s=(one.load_s[0], *(value * (1 - caught_up_s / waits_s) for value in one.load_s[1:])),
    )


def overslept(run: IoRun, times: float = 1.3) -> IoRun:
    return replace(run, epochs=tuple(late(one, times) for one in run.epochs))


def test_a_sleep_that_ended_late_is_no_work_of_the_accelerator() -> None:
    """Equal throughput; sleeps of the second run took 1.3 times as long, so its AU would, too."""
    quiet = made("cold")
    loaded = overslept(quiet)
    refused = judge(loaded)
    assert all(refused.value(name) is None for name in AU)
    assert (refused.responses["au_whole_percent"].why_missing or "").startswith("oversleep")
    assert refused.value("samples_per_s_whole") == judge(quiet).value("samples_per_s_whole")
    clocked, before = (
        judge(run).responses["au_whole_percent"].per_epoch for run in (loaded, quiet)
    )
    assert clocked == pytest.approx([1.3 * value for value in before])
    one, other = judged_alike([judge(quiet), judge(replace(loaded, id="other"))])
    assert (one.nominal, other.nominal) == (True, True)
    assert other.value("au_whole_percent") == pytest.approx(one.value("au_whole_percent"))
    asked_s, steps = MADE.computation_time_s, MADE.steps
    by_hand = sum(100 * asked_s * steps / each.duration_s for each in loaded.epochs) / len(
        loaded.epochs
    )
    assert other.value("au_whole_percent") == pytest.approx(by_hand)


def test_where_no_sleep_ended_late_utilisation_is_as_dlio_has_it() -> None:
    """Up to 5 %: as clocked.

    Beyond it in one run: the nominal time in all of that saved run, and in no other.
    """
    near, beyond = (
        overslept(made("cold"), OVERSLEPT - 0.002),
        overslept(made("cold"), OVERSLEPT + 0.002),
    )
    assert judge(near).value("au_whole_percent") is not None
    assert judge(beyond).value("au_whole_percent") is None
    elsewhere = replace(near, origin="another.json")
    assert [
        one.nominal for one in judged_alike([judge(run) for run in (near, beyond, elsewhere)])
    ] == [True, True, False]


def test_a_computation_that_was_drawn_at_random_is_no_late_sleep() -> None:
    drawn = {"computation_time": {"type": "normal", "mean": 0.1, "stdev": 0.05}}
    assert (
        judge(io_run(epoch([0.1] * 20, [0.13] * 20), params=drawn)).value("au_whole_percent")
        is not None
    )


def test_a_page_cache_in_another_state_refuses_every_figure(snapshot: SnapshotAssertion) -> None:
    runs = {
        "warm, 20 % resident": made("warm", resident_before=0.2),
        "warm, fetched": made("warm", read_bytes=150 * 2**20),
        "cold, 50 % resident": made("cold", resident_before=0.5),
        "cold, nothing fetched": made("cold", read_bytes=0),
        "cold, fetched twice": made("cold", read_bytes=800 * 2**20),
    }
    reasons = {}
    for case, run in runs.items():
        judged = judge(run)
        assert [one.kind for one in judged.doubts] == ["cache"]
        assert all(judged.value(name) is None for name in EVERY)
        reasons[case] = judged.responses["samples_per_s_whole"].why_missing
    assert reasons == snapshot


STANDS = [
    made("warm"),
    made("cold"),
    made("warm", resident_before=None, read_bytes=None),
    made("warm", read_bytes=400_000),  # pages of Python: no more than a megabyte of both ranks
    made(
        "warm", read_bytes=15_000_000, locked=True
    ),  # of libraries: nothing of the data set can have been among it
    made(
        "cold", read_bytes=0, device_read_bytes=None
    ),  # a file system on no device, of which nobody counts
    replace(made("warm", resident_before=0.2), params={"cache": "as_found"}),
]


def test_what_is_as_it_was_called_or_was_not_recorded_stands() -> None:
    assert [judge(run).doubts for run in STANDS] == [()] * len(STANDS)


def test_a_part_of_the_data_set_is_fetched_for_part_of_its_steps() -> None:
    """Half the steps of each epoch read half the bytes: this is no half-warm cold epoch."""
    run = made("cold")
    half = [
        replace(one, load_s=one.load_s[:24], compute_s=one.compute_s[:24], barrier_s=None)
        for one in run.epochs
    ]
    size = int(str(run.dataset["bytes"]))
    cut = [replace(one, rchar_bytes=size // 4, read_bytes=size // 4) for one in half]
    assert "cache" not in {one.kind for one in judge(replace(run, epochs=tuple(cut))).doubts}
    warm = [replace(one, rchar_bytes=size // 4, read_bytes=size // 8) for one in half]
    assert "cache" in {one.kind for one in judge(replace(run, epochs=tuple(warm))).doubts}


def test_the_reader_holds_a_run_to_what_its_workload_was_held_to() -> None:
    for fraction in (0.0, 0.01, 0.0101, 0.5, 0.9899, 0.99, 1.0):
        assert pagecache.is_state("cold", fraction) == (fraction <= COLD_AT_MOST)
        assert pagecache.is_state("warm", fraction) == (fraction >= WARM_AT_LEAST)


def changed(saved: dict[str, Any], name: str) -> dict[str, Any]:
    """The report of the first cell whose name contains this, to be changed."""
    report: dict[str, Any] = next(
        one["extra_info"]["report"]
        for one in saved["benchmarks"]
        if name in one["extra_info"]["workload"]
    )
    return report


def test_a_refused_figure_is_nowhere_in_what_programs_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = saved_io(replace(MADE, steps=10))
    changed(saved, "cache=warm")["epochs"][0]["resident_before"] = 0.1
    (tmp_path / "io.json").write_text(json.dumps(saved), encoding="utf-8")
    assert main(["io", str(tmp_path / "io.json"), "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["saved"][0]["runs"]
    refused = [one for run in runs for one in run["responses"].values() if one["value"] is None]
    assert len(refused) > 24
    assert all(one["why_missing"] and one["per_epoch"] == [] for one in refused)
    (gone,) = [run for run in runs if next(doubt["kind"] for doubt in run["doubts"]) == "cache"]
    assert gone["identity"]["measured"] is None


@pytest.mark.parametrize("over_s", [0.004, -0.004])
def test_clocks_that_differ_by_rounding_contradict_nothing(over_s: float) -> None:
    """0.1 % of an epoch of 4 s either way; a share below 0 by that is 0."""
    judged = judge(io_run(epoch([0.1] * 20, over_s=over_s)))
    assert judged.doubts == ()
    assert (judged.value("barrier_share") or 0.0) == pytest.approx(max(0.0, over_s / (4 + over_s)))
