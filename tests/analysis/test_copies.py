"""Copies among runs are recognised by their measurements, never by their second alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from analysis.__main__ import main
from analysis.arms import alike_by_chance, no_copies, read_arm
from analysis.load import from_json
from analysis.studies.history.history import gather
from analysis.terms import Refused
from tests.stock_files import benchmark, document, session, stock_file
from tests.synthetic import JSON, saved_run

OTHERS = Path(__file__).parent / "formats" / "other_tools"


def test_two_files_of_one_second_are_two_runs(tmp_path: Path) -> None:
    """Google-benchmark writes the second alone; both files were written by one version of it."""
    shutil.copy(OTHERS / "google_odd.json", tmp_path / "a.json")
    shutil.copy(OTHERS / "google_repeated.json", tmp_path / "b.json")
    runs = read_arm(str(tmp_path), []).runs
    assert runs[0].started_utc == runs[1].started_utc
    assert runs[0].run_id != runs[1].run_id
    assert gather(runs).runs == 2


def test_a_copy_of_such_a_file_is_refused_and_the_other_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        shutil.copy(OTHERS / "google_odd.json", tmp_path / f"{name}.json")
    refused: list[str] = []
    (run,) = read_arm(str(tmp_path), refused).runs
    assert run.origin == str(tmp_path / "a.json")
    (line,) = refused
    assert line.startswith(
        f"{tmp_path / 'b.json'}: ignored as a copy: it is the same run as {tmp_path / 'a.json'}"
    )
    assert main(["show", str(tmp_path)]) == 0
    assert "it is the same run as" in capsys.readouterr().err
    assert main(["gate", str(tmp_path), str(OTHERS / "google.json"), "--max-regression=3%"]) == 2


def test_of_the_files_of_one_run_the_one_with_most_cells_is_read(tmp_path: Path) -> None:
    """As where a run was interrupted, saved, and went on."""
    whole, part = saved_run(), saved_run()
    part["deeptweak"]["cells"] = part["deeptweak"]["cells"][:6]
    part["benchmarks"] = part["benchmarks"][:6]
    stock_file(tmp_path / "a.json", part)
    stock_file(tmp_path / "b.json", whole)
    refused: list[str] = []
    (run,) = read_arm(str(tmp_path), refused).runs
    assert (run.origin, len(run.cells)) == (str(tmp_path / "b.json"), 12)
    assert [line.partition(":")[0] for line in refused] == [str(tmp_path / "a.json")]


@pytest.mark.parametrize("place", ["asv_results", "asv_results/vm", "asv_results/*/*.json"])
def test_environments_of_one_commit_are_series_of_their_own(place: str) -> None:
    """Results of asv as stored: entries listed beside them are not runs."""
    refused: list[str] = []
    history = gather(read_arm(str(OTHERS / place), refused).runs, metric="step_time_median_s")
    assert refused == []
    assert {
        (series.workload, series.tweakset, len(series.points)) for series in history.series
    } == {
        (workload, f"virtualenv-py3.11-MALLOC_ARENA_MAX{arenas}", 1)
        for workload in ("b.time_sum", "b.Sort.time_sort(1000, 'up')")
        for arenas in (1, 4)
    }


@pytest.mark.parametrize(
    ("times", "alike"),
    [
        ([0.01, 0.02, 0.01, 0.01, 0.02], True),  # a tick of 10 ms
        ([0.015625, 0.03125, 0.046875], True),  # a tick of 1/64 s
        ([0.01 / 7, 0.02 / 7, 0.03 / 7], True),  # the mean of 7 calls
        ([0.003608065, 0.002629511, 0.008055947], False),  # hyperfine
        ([3.66699998e-07, 4.062625e-07, 4.267999e-07, 1.592694e-06], False),
        ([0.040001, 0.040007], True),  # six microseconds, saved to the microsecond
        ([0.040001123, 0.040007456], False),
    ],
)
def test_equal_times_of_a_coarse_clock_are_no_copy(times: list[float], *, alike: bool) -> None:
    assert alike_by_chance(times) == alike
    assert alike_by_chance([1000 * time for time in times]) == alike
    runs = [
        from_json(
            document([benchmark("test_sort", times)], f"2026-01-0{day}T10:00:00.000001+00:00"),
            f"{day}.json",
        )
        for day in (1, 2)
    ]
    if alike:
        no_copies(runs)
    else:
        with pytest.raises(Refused, match="exactly the times"):
            no_copies(runs)


def with_a_copied_arm(saved: JSON, shift: int) -> JSON:
    """The file, in which stock-again has the steps of stock, `shift` blocks later."""
    of_cell = {bench["extra_info"]["id"]: bench for bench in saved["benchmarks"]}
    blocks = saved["deeptweak"]["design"]["blocks"]
    for block in range(1, blocks + 1):
        original = of_cell[f"cnn_train-stock-b{(block - 1 + shift) % blocks + 1}"]
        copied = of_cell[f"cnn_train-stock-again-b{block}"]
        copied["stats"] = original["stats"]
        for name in ("steps", "metrics"):
            copied["extra_info"][name] = original["extra_info"][name]
    return saved


COMMANDS = [
    ["compare", "run.json"],
    ["gate", "run.json:stock", "run.json:stock-again", "--max-regression=3%"],
    ["report", "run.json"],
    ["evidence", "run.json"],
]


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_copy_of_an_arm_is_refused_in_whatever_block_it_lies(
    shift: int,
    command: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    stock_file(tmp_path / "run.json", with_a_copied_arm(saved_run(), shift))
    assert main(command) == 2
    assert "has exactly the times of cnn_train-stock-" in capsys.readouterr().err


@pytest.mark.parametrize("other_name", [False, True])
@pytest.mark.parametrize("dated", [False, True])
def test_a_candidate_in_its_own_baseline_is_left_out_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, other_name: bool, dated: bool
) -> None:
    """A job that is rerun after acceptance is judged by the earlier runs."""
    folder = tmp_path / "accepted"
    folder.mkdir()
    for night in range(6):
        session(folder / f"{night}.json", seed=10 * night, minute=night)
    candidate = session(tmp_path / "new.json", seed=99, minute=8)
    assert main(["gate", str(folder), str(candidate), "--max-regression=10%"]) == 0
    before = capsys.readouterr().out
    accepted = folder / ("accepted.json" if other_name else "new.json")
    shutil.copy(candidate, accepted)
    if not dated:
        content = json.loads(accepted.read_text())
        stock_file(accepted, content | {"datetime": "2026-01-01T10:31:00.000001+00:00"})
    for command in (["gate", "--max-regression=10%"], ["compare"]):
        assert main([command[0], str(folder), str(candidate), *command[1:]]) == 0
        page = "".join(capsys.readouterr().out.split())  # a long path is broken
        assert (
            f"{accepted}: left out of the baseline, because it is the candidate itself.".replace(
                " ", ""
            )
            in page
        )
        assert "6+1" in page or command[0] == "compare"
    assert "6+1" in before


def test_a_candidate_that_is_its_whole_baseline_does_not_pass(tmp_path: Path) -> None:
    path = session(tmp_path / "new.json", seed=1)
    assert main(["gate", str(path), str(path), "--max-regression=10%"]) == 3
    assert main(["gate", str(tmp_path), str(path), "--max-regression=10%"]) == 3
