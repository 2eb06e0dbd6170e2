"""Read files of hyperfine, google-benchmark, asv and AIPerf; write files for Bencher and others."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from analysis.__main__ import main
from analysis.commands import export
from analysis.load import from_json, load
from analysis.terms import Unreadable
from control.saved import LONGEST_S

# As hyperfine 1.15, google-benchmark 1.7 and asv 0.6 wrote them on one machine.
HERE = Path(__file__).parent / "other_tools"
EXPORTS = Path(__file__).parents[2] / "command/recordings/exports"  # as AIPerf 0.13 wrote them
TURNS = Path(__file__).parents[3] / "data/runs/turns_2026-11-25_amd-epyc-2cpu.json.xz"
# The field names of AIPerf 0.3's export, with invented numbers: measuring needs a server.
AIPERF: dict[str, Any] = {
    "request_throughput": {"unit": "requests/sec", "avg": 8.0},
    "request_latency": {
        "unit": "ms",
        "avg": 130.0,
        "min": 100.0,
        "p25": 110.0,
        "p50": 120.0,
        "p75": 140.0,
        "max": 200.0,
    },
}


def cells(name: str) -> dict[str, int]:
    return {
        cell.workload: len(cell.steps.wall_s) if cell.steps else 0
        for cell in load(HERE / name).cells
    }


def test_a_hyperfine_command_is_a_benchmark_and_each_run_a_step() -> None:
    assert cells("hyperfine.json") == {"sleep 0.01": 5, "sleep 0.02": 5}
    first, second = load(HERE / "hyperfine.json").cells
    assert 0.01 < first.metrics["step_time_median_s"] < 0.02 < second.metrics["step_time_median_s"]


def test_google_repetitions_are_steps_and_google_summaries_not() -> None:
    assert cells("google.json") == {"BM_Push/64/min_time:0.010": 3, "BM_Push/512/min_time:0.010": 3}
    run = load(HERE / "google.json")
    saved = json.loads((HERE / "google.json").read_text())["benchmarks"]
    first = [one["real_time"] * 1e-9 for one in saved if one["run_type"] == "iteration"][:3]
    assert run.cells[0].steps is not None
    assert list(run.cells[0].steps.wall_s) == pytest.approx(first)
    assert run.machine["cpu_count"] == 2
    assert run.started_utc


def test_each_asv_parameter_set_is_a_benchmark_of_times_alone() -> None:
    names = {f"b.Sort.time_sort({n}, '{way}')" for n in (10, 1000) for way in ("up", "down")}
    assert cells("asv.json").keys() == {"b.time_sum", *names}
    run = load(HERE / "asv.json")
    assert run.commit
    assert run.started_utc
    assert (run.baseline, set(run.tweaksets)) == ("existing-python3", {"existing-python3"})


@pytest.mark.parametrize(
    ("name", "read", "left_out"),
    [
        (
            "google_odd.json",
            {"BM_Push/64": 1, "BM_Push/512": 1, "BM_Push/4096": 1},
            {"BM_Add": "times[0]", "BM_Empty": "times[0]", "BM_NoDevice": "no device"},
        ),
        ("hyperfine_odd.json", {"sleep 0.02": 3}, {":": "times", "false": "non-zero exit code"}),
        (
            "asv_results/vm/0fcbc6e7-virtualenv-py3.11-MALLOC_ARENA_MAX1.json",
            {"b.Sort.time_sort(1000, 'up')": 1, "b.time_sum": 1},
            {"b.Sort.time_sort(10, 'up')": "skipped", "b.time_broken": "failed"},
        ),
    ],
)
def test_what_was_not_measured_is_left_out_and_named(
    name: str, read: dict[str, int], left_out: dict[str, str]
) -> None:
    """Original files: loops below 1 ns, a clock that read 0, failed and skipped benchmarks."""
    assert cells(name) == read
    lines = load(HERE / name).left_out
    for line, (benchmark, reason) in zip(lines, left_out.items(), strict=True):
        assert line.startswith(f"left out, {benchmark}: it ")
        assert reason in line


def test_a_message_of_google_benchmark_1_8_is_a_reason() -> None:
    saved = json.loads((HERE / "google_odd.json").read_text())
    last = saved["benchmarks"][-1]
    del last["error_occurred"]
    del last["error_message"]
    last |= {"skipped": True, "skip_message": "no GPU here"}
    assert (
        from_json(saved, "g.json").left_out[-1]
        == "left out, BM_NoDevice: it was not measured: no GPU here."
    )


@pytest.mark.parametrize("older", [False, True])
def test_summaries_of_google_benchmark_are_no_benchmarks(*, older: bool) -> None:
    """Before 1.5 only the name of an entry gave its kind."""
    saved = json.loads((HERE / "google_repeated.json").read_text())
    for one in saved["benchmarks"] if older else ():
        for field in (
            "run_type",
            "run_name",
            "aggregate_name",
            "family_index",
            "per_family_instance_index",
            "repetition_index",
        ):
            one.pop(field, None)
    assert {cell.workload for cell in from_json(saved, "g.json").cells} == {
        "BM_Push/64",
        "BM_Push/512",
        "BM_Push/4096",
    }


def test_bare_summaries_are_refused_with_the_option_named() -> None:
    saved = json.loads((HERE / "google_repeated.json").read_text())
    saved["benchmarks"] = [one for one in saved["benchmarks"] if one["run_type"] == "aggregate"]
    with pytest.raises(
        Unreadable,
        match="contains only aggregates of repetitions; write it without "
        "--benchmark_report_aggregates_only",
    ):
        from_json(saved, "g.json")


def nights(folder: Path, *, odd: bool) -> list[Path]:
    """Write twelve nights of google-benchmark with different times.

    `odd` keeps loops below 1 ns and a failure.
    """
    folder.mkdir()
    paths = []
    for night in range(12):
        saved = json.loads((HERE / "google_odd.json").read_text())
        saved["context"]["date"] = f"2026-01-{1 + night:02}T03:00:00+00:00"
        saved["benchmarks"] = [one for one in saved["benchmarks"] if odd or "Push" in one["name"]]
        for one in saved["benchmarks"]:
            if "Push/" in one["name"]:
                one["real_time"] *= 1 + (night * 7 % 5) / 500
        paths.append(folder / f"{night:02}.json")
        paths[-1].write_text(json.dumps(saved))
    return paths


@pytest.mark.parametrize("command", ["compare", "gate", "history"])
def test_all_commands_judge_the_rest_and_name_what_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Their figures equal those of files without the odd benchmarks."""
    answers = []
    for odd in (False, True):
        paths = nights(tmp_path / str(odd), odd=odd)
        new = paths[-1].rename(tmp_path / f"new-{odd}.json")
        words = {
            "compare": ["compare", str(paths[0].parent), str(new)],
            "gate": ["gate", str(paths[0].parent), str(new), "--max-regression=3%"],
            "history": ["history", str(paths[0].parent), str(new)],
        }[command]
        assert main(words) == 0
        page = capsys.readouterr().out.replace("True", "False")
        answers.append(page)
    plain, odd_page = (" ".join(page.split()) for page in answers)
    for name in ("BM_Add", "BM_Empty", "BM_NoDevice"):
        assert name not in plain
        assert odd_page.count(f"left out, {name}: it ") == 1
    assert "BM_Push/512" in plain or command == "history"


def test_throughput_of_aiperf_is_its_requests_per_second() -> None:
    """With several requests in flight, throughput is not one over the mean latency."""
    run = load(EXPORTS / "aiperf-fast.json")
    assert run.cells[0].metrics["throughput_samples_per_s"] == pytest.approx(8.60716734698034)
    assert run.started_utc == "2026-11-28T22:11:14.513258+00:00"
    assert run.warnings == ()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"error_request_count": {"unit": "requests", "avg": 90}}, "has 90 failed requests"),
        (
            {"error_summary": [{"error_details": {"code": 500}, "count": 3}, {"count": 1}]},
            "has 4 failed requests",
        ),
        ({"was_cancelled": True}, "was cancelled before it ended"),
        ({"request_throughput": {"unit": "requests/min", "avg": 8.0}}, "requests/min"),
        (
            {"request_latency": {**AIPERF["request_latency"], "avg": 5000.0}},
            "the mean does not lie between",
        ),
        ({"request_latency": {**AIPERF["request_latency"], "max": 90.0}}, "are not in order"),
    ],
)
def test_a_failed_or_inconsistent_aiperf_run_is_refused(more: dict[str, Any], why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        from_json({**AIPERF, **more}, "a.json")


def two_of_a_name(
    path: Path, times_ns: tuple[float, float], labels: tuple[str, str] | None = None
) -> Path:
    """Write google-benchmark's file with one name twice, as when two families share the name."""
    entries: list[dict[str, Any]] = [
        {
            "name": "BM_x/8",
            "family_index": at,
            "run_type": "iteration",
            "real_time": time_ns,
            "time_unit": "ns",
        }
        for at, time_ns in enumerate(times_ns)
    ]
    for entry, label in zip(entries, labels or (), strict=False):
        entry["label"] = label
    date = f"2026-01-{1 + int(path.stem[1:]):02}T03:00:00+00:00"
    path.write_text(json.dumps({"context": {"date": date, "num_cpus": 2}, "benchmarks": entries}))
    return path


def test_equal_names_in_several_files_are_not_paired_by_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for at in range(8):
        two_of_a_name(tmp_path / f"a{at}.json", (100 + at / 10, 200 + at / 10))
        two_of_a_name(tmp_path / f"b{at + 8}.json", (200 + at / 20, 100 + at / 20))
    assert {cell.workload for cell in load(tmp_path / "a0.json").cells} == {"BM_x/8", "BM_x/8 #2"}
    arms = [str(tmp_path / "a*.json"), str(tmp_path / "b*.json")]
    assert main(["compare", *arms, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["comparisons"]
    assert [(one["workload"], one["verdict"]) for one in said] == [
        ("BM_x/8", "not comparable"),
        ("BM_x/8 #2", "not comparable"),
    ]
    assert "differ only in their place" in said[0]["reason"]
    assert main(["gate", *arms, "--max-regression=3%"]) == 3
    assert main(["history", str(tmp_path)]) == 3


@pytest.mark.parametrize(
    ("saved", "why"),
    [
        (
            {"results": [{"command": "x", "times": [0.1, -1.0]}]},
            "usable times: left out, x: it has times",
        ),
        ({"results": [{"command": "x", "times": []}]}, "no times"),
        ({"results": [{"command": "x", "times": [LONGEST_S * 2]}]}, "times"),
        ({"results": [{"command": "x", "times": [0.1], "exit_codes": [1]}]}, "non-zero exit code"),
        ({"results": [{"command": 7, "times": [0.1]}]}, "command"),
        (
            {"context": {}, "benchmarks": [{"name": "x", "real_time": 1.0, "time_unit": "weeks"}]},
            "weeks",
        ),
        ({"context": {}, "benchmarks": []}, "no benchmark"),
        ({"result_columns": ["result"], "results": {"b.time_x": 3}}, "no results for"),
        (
            {
                "result_columns": ["result", "params"],
                "results": {"b.time_x": [[1.0], [["1", "2"]]]},
            },
            "parameters",
        ),
        ({**AIPERF, "request_latency": {"unit": "ms"}}, "missing required field `avg`"),
    ],
)
def test_a_damaged_file_is_refused_by_name(saved: dict[str, Any], why: str) -> None:
    with pytest.raises(Unreadable, match=why) as refused:
        from_json(saved, "odd.json")
    assert str(refused.value).startswith("odd.json: ")


def test_a_frame_has_a_row_a_cell_with_what_its_run_knows_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Runs of two studies in one frame: figures that one study lacks are missing there."""
    paths = [TURNS, TURNS.with_name("io_readahead_2026-11-22_amd-epyc-2cpu.json")]
    assert main(["export", *map(str, paths), "--to=csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    turns, reads = map(load, paths)
    assert [row["run"] for row in rows] == [run.run_id for run in (turns, reads) for _ in run.cells]
    for cell, row in zip(turns.cells, rows, strict=False):
        assert (row["workload"], row["tweakset"], row["block"]) == (
            cell.workload,
            cell.tweakset,
            str(cell.block),
        )
        assert {name: float(row[name]) for name in cell.metrics} == cell.metrics
        assert {name: float(row[f"telemetry.{name}"]) for name in cell.telemetry} == cell.telemetry
    assert [bool(row["param.read_threads"]) for row in rows] == [False] * len(turns.cells) + [
        True
    ] * len(reads.cells)


def test_bencher_gets_nanoseconds_with_an_interval_over_blocks() -> None:
    found = {one.name: one for one in export.figures(load(TURNS))}
    told = export.bmf(list(found.values()))["cnn_train malloc-keep-memory"]["latency"]
    run = load(TURNS)
    values = [
        c.metrics["step_time_round_adjusted_s"]
        for c in run.cells
        if (c.workload, c.tweakset) == ("cnn_train", "malloc-keep-memory")
    ]
    assert told["value"] == pytest.approx(1e9 * sum(values) / len(values))
    assert told["lower_value"] < told["value"] < told["upper_value"]


def test_github_action_benchmark_gets_names_units_and_values() -> None:
    told = export.github_action(list(export.figures(load(HERE / "hyperfine.json"))))
    assert [(one["name"], one["extra"]) for one in told] == [
        ("sleep 0.01", "1 blocks"),
        ("sleep 0.02", "1 blocks"),
    ]
    assert all(one["value"] > 0 and "range" not in one for one in told)


def test_otava_gets_a_row_per_run_oldest_first_with_gaps_empty() -> None:
    asv, google = load(HERE / "asv.json"), load(HERE / "google.json")
    head, *rows = csv.reader(io.StringIO(export.otava([google, asv])))
    assert head[:2] == ["time", "commit"]
    assert [row[0] for row in rows] == sorted([asv.started_utc, google.started_utc])
    assert (
        sum(not place for place in rows[0]) + sum(not place for place in rows[1]) >= len(head) - 2
    )


@pytest.mark.parametrize("words", [["--to=bmf"], ["--to=github-action"]])
def test_one_run_at_a_time_where_the_format_has_no_time(words: list[str]) -> None:
    assert main(["export", str(HERE / "asv.json"), str(HERE / "google.json"), *words]) == 2


def test_a_run_without_a_date_has_no_place_in_a_history() -> None:
    assert main(["export", str(HERE / "hyperfine.json"), "--to=otava"]) == 2
