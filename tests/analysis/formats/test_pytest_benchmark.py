"""Read years of stock pytest-benchmark files, a cell per benchmark, or refuse in one line."""

from __future__ import annotations

import copy
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.load import from_json, load
from analysis.terms import Unreadable
from tests.stock_files import JSON, benchmark, document, times

RUNS = Path(__file__).parents[3] / "data" / "runs"
OTHERS = Path(__file__).parent / "other_tools"

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

DATA = times(1)
GOOD = document([benchmark("test_sort", DATA), benchmark("test_hash", times(2))])
STATS = ("benchmarks", 0, "stats")


def changed(place: tuple[str | int, ...], value: object = None, *, gone: bool = False) -> JSON:
    saved: Any = copy.deepcopy(GOOD)
    part = saved
    for step in place[:-1]:
        part = part[step]
    if gone:
        del part[place[-1]]
    else:
        part[place[-1]] = value
    return saved  # type: ignore[no-any-return]


def test_a_benchmark_is_a_cell_and_a_round_a_step() -> None:
    run = from_json(GOOD, "0001_x.json")
    assert [(cell.workload, cell.tweakset, cell.block) for cell in run.cells] == [
        ("tests/test_speed.py::test_sort", "as-run", 1),
        ("tests/test_speed.py::test_hash", "as-run", 1),
    ]
    cell = run.cells[0]
    assert cell.steps is not None
    assert cell.steps.wall_s == tuple(DATA)
    assert cell.metrics["throughput_samples_per_s"] == pytest.approx(1 / statistics.fmean(DATA))
    assert cell.metrics["step_time_median_s"] == pytest.approx(statistics.median(DATA))
    assert cell.metrics["step_time_min_s"] == min(DATA)
    assert (
        min(DATA)
        < cell.metrics["step_time_p10_s"]
        < cell.metrics["step_time_q1_s"]
        < cell.metrics["step_time_median_s"]
    )
    assert (run.format, run.baseline, run.replicated, run.commit) == (
        "pytest-benchmark",
        "as-run",
        False,
        "0123456789abcdef",
    )
    assert run.warnings == ()


def test_without_its_rounds_a_file_still_has_its_statistics() -> None:
    """As `--benchmark-save` writes it: no list of rounds, hence no other quantiles."""
    run = from_json(
        document([benchmark("test_sort", DATA, keep_data=False, iterations=7)]), "0001_x.json"
    )
    cell = run.cells[0]
    assert cell.steps is None
    assert cell.facts == {"rounds": 40, "iterations": 7}
    assert cell.metrics.keys() == {
        "throughput_samples_per_s",
        "step_time_mean_s",
        "step_time_median_s",
        "step_time_q1_s",
        "step_time_min_s",
    }
    assert cell.metrics["throughput_samples_per_s"] == pytest.approx(1 / statistics.fmean(DATA))


def old(version: str) -> JSON:
    saved = copy.deepcopy(GOOD)
    saved["version"] = version
    if version < "5":
        saved["datetime"] = "2019-03-01T10:00:00.000001"  # UTC, unsaid
        # cpuinfo before 6
        saved["machine_info"]["cpu"] = {"brand": "Made-up CPU", "hz_actual": "2.5 GHz", "count": 8}
    if version < "3.2":
        del saved["machine_info"]["cpu"]
        for one in saved["benchmarks"]:
            del one["stats"]["total"]
            del one["stats"]["ops"]
            del one["extra_info"]
            del one["param"]
    return saved


@pytest.mark.parametrize("version", ["3.0.0", "3.4.1", "4.0.0", "5.3.1"])
def test_years_of_files_are_read_alike(version: str) -> None:
    run = from_json(old(version), "x.json")
    assert [cell.metrics for cell in run.cells] == [
        cell.metrics for cell in from_json(GOOD, "x.json").cells
    ]
    facts = {
        "hostname": "worker",
        "kernel_release": "6.8.0",
        "python_version": "3.12.1",
        "cpu_model": "Made-up CPU",
        "cpu_count": 8,
    }
    assert run.machine == {
        name: value
        for name, value in facts.items()
        if version >= "3.2" or not name.startswith("cpu")
    }


@pytest.mark.parametrize("version", ["4.0.0", "5.3.1"])
def test_times_are_utc_wherever_the_reader_lives(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert (
            from_json(old(version), "x.json").started_utc
            == old(version)["datetime"].removesuffix("+00:00") + "+00:00"
        )
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_file_that_does_not_say_when_is_read_with_a_warning() -> None:
    for saved in (
        changed(("datetime",), gone=True),
        changed(("datetime",), "yesterday"),
        changed(("datetime",), "0001-01-01T00:00:00+23:00"),
    ):
        run = from_json(saved, "x.json")
        assert (run.started_utc, run.run_id, len(run.warnings)) == ("", "x.json", 1)


def test_statistics_that_contradict_the_rounds_are_reported(snapshot: SnapshotAssertion) -> None:
    run = from_json(changed((*STATS, "mean"), max(DATA)), "x.json")
    assert run.cells[0].metrics["step_time_mean_s"] == pytest.approx(statistics.fmean(DATA))
    lost = from_json(changed((*STATS, "rounds"), 41), "x.json")
    assert [run.cells[0].contradictions, lost.cells[0].contradictions, lost.warnings] == snapshot


REFUSED = {
    "no benchmark": changed(("benchmarks",), []),
    "benchmarks that are no list": changed(("benchmarks",), {}),
    "a benchmark that is no object": changed(("benchmarks", 1), 5),
    "a machine in words": changed(("machine_info",), "fast"),
    "no name": changed(("benchmarks", 0, "fullname"), gone=True),
    "one twice": changed(("benchmarks", 1), GOOD["benchmarks"][0]),
    "nothing that took a time": document([benchmark("test_sort", [0.0, 0.0])]),
}
LEFT_OUT = {
    "no statistics": changed(STATS, gone=True),
    "no mean": changed((*STATS, "mean"), gone=True),
    "no quartile": changed((*STATS, "q1"), gone=True),
    "a time of zero": changed((*STATS, "min"), 0),
    "a time of null": changed((*STATS, "mean"), None),
    "0.3 ns": changed((*STATS, "min"), 3e-10),
    "a negative time": changed((*STATS, "mean"), -1.0),
    "a time that is no number": changed((*STATS, "mean"), float("nan")),
    "a time without end": changed((*STATS, "mean"), float("inf")),
    "a truth for a time": changed(STATS, {"mean": True}),
    "a time in words": changed((*STATS, "mean"), "2 ms"),
    "a time beyond any float": changed((*STATS, "mean"), 10**400),
    "four months a call": changed((*STATS, "mean"), 1e8),
    "a minimum above the mean": changed((*STATS, "min"), 1.0),
    "a quartile above the median": changed((*STATS, "q1"), 1.0),
    "a mean above the maximum": changed((*STATS, "mean"), 5.0),
    "a maximum below the minimum": changed((*STATS, "max"), 1e-6),
    "a median above the third quartile": changed((*STATS, "q3"), 1e-6),
    "no rounds": changed((*STATS, "data"), []),
    "a round of zero": changed((*STATS, "data", 3), 0.0),
    "a round that is no number": changed((*STATS, "data", 3), float("nan")),
    "a round in words": changed((*STATS, "data", 3), "x"),
    "half a round": changed((*STATS, "rounds"), 1.5),
    "a truth for a count": changed((*STATS, "rounds"), value=True),
    "a clock of nanoseconds": changed(("benchmarks", 0, "options", "timer"), "perf_counter_ns"),
    "another unit": changed((*STATS, "unit"), "ms"),
    "another unit in its options": changed(("benchmarks", 0, "options", "time_unit"), "us"),
}


def test_refusals(snapshot: SnapshotAssertion) -> None:
    messages = {}
    for name, saved in REFUSED.items():
        with pytest.raises(Unreadable) as refusal:
            from_json(saved, "0001_x.json")
        messages[name] = str(refusal.value)
        assert "\n" not in messages[name]
        assert "damaged" not in messages[name]
    assert messages == snapshot


def test_a_benchmark_without_usable_times_is_left_out(snapshot: SnapshotAssertion) -> None:
    """Name and reason stand among the warnings; the other benchmark is read."""
    reasons = {}
    for name, saved in LEFT_OUT.items():
        run = from_json(saved, "0001_x.json")
        assert [cell.workload for cell in run.cells] == ["tests/test_speed.py::test_hash"], name
        (reasons[name],) = run.left_out
        assert run.warnings == run.left_out
    assert reasons == snapshot


def test_what_is_no_time_may_be_any_number() -> None:
    """Saved by pytest-benchmark: Infinity among the parameters, NaN in `extra_info`."""
    run = load(OTHERS / "pytest_benchmark_odd.json")
    assert len(run.cells) == 3
    assert run.warnings == ()


def test_differences_of_times_may_be_negative_and_are_no_times() -> None:
    """A cluster cell takes 0.07 to 1.98 s less than its Job alone; its neighbour is read."""
    found = load(RUNS / "harness-cluster.json")
    assert [(cell.outcome, cell.metrics.get("step_time_mean_s")) for cell in found.cells] == [
        ("skipped", None),
        ("measured", pytest.approx(0.0796, abs=1e-4)),
    ]
    assert "differences" in (found.cells[0].reason or "")


PARTS = st.sampled_from(
    [
        ("benchmarks",),
        ("benchmarks", 0),
        STATS,
        ("machine_info",),
        ("machine_info", "cpu"),
        ("commit_info",),
        ("datetime",),
    ]
    + [("benchmarks", 0, name) for name in ("fullname", "group", "options")]
    + [(*STATS, name) for name in ("mean", "min", "q1", "median", "rounds", "iterations", "data")]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(place=PARTS, value=ANYTHING)
def test_any_field_value_is_read_or_refused_in_one_line(
    place: tuple[str | int, ...], value: object
) -> None:
    try:
        said = len(from_json(changed(place, value), "x.json").cells)
    except Unreadable as error:
        said = -str(error).count("\n")
    assert said >= 0


def test_what_pytest_benchmark_itself_saves_is_read(tmp_path: Path) -> None:
    """A session of the installed version, with rounds and without."""
    (tmp_path / "test_it.py").write_text("def test_it(benchmark): benchmark(sum, range(100))\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--rootdir={tmp_path}",
        "test_it.py",
    ]
    options = [
        "--benchmark-json=with.json",
        "--benchmark-save=without",
        "--benchmark-max-time=0.01",
        "--benchmark-storage=saved",
    ]
    subprocess.run([*command, *options], cwd=tmp_path, check=True, capture_output=True)
    kept, plain = (
        load(tmp_path / "with.json"),
        load(next(tmp_path.glob("saved/*/0001_without.json"))),
    )
    assert kept.cells[0].workload == plain.cells[0].workload == "test_it.py::test_it"
    assert (kept.cells[0].steps is None, plain.cells[0].steps is None) == (False, True)
    assert kept.cells[0].metrics["step_time_mean_s"] == pytest.approx(
        plain.cells[0].metrics["step_time_mean_s"]
    )
    assert kept.machine["cpu_count"] == plain.machine["cpu_count"]
    assert kept.warnings == plain.warnings == ()
