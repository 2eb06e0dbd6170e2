"""`history` looks back over many files: it names what it cannot read, judges the rest, and its exit code is what a build needs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from analysis.__main__ import main
from tests.made_history import night, nights, noisy, stepped
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_file, saved_run

SLOWER = stepped((30, 0.1), (12, 0.12))


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """42 nights; in the last 12 one benchmark of two is slower by a fifth."""
    return nights(tmp_path_factory.mktemp("slower") / "runs", {"sort": noisy(SLOWER, 1), "quiet": noisy([1.0] * 42, 2)})


def ours(folder: Path, count: int, made: Made) -> Path:
    """Files of our own, a day each, in which the whole machine is half as fast from the 16th day on."""
    folder.mkdir()
    for day in range(count):
        saved = saved_run(Made(made.arms, blocks=2, steps=4, seed=day + 1, base_s=0.04 if day < 15 else 0.08))
        saved["deeptweak"] |= {"run_id": f"day-{day}", "started_utc": f"2026-02-{day + 1:02}T00:00:00+00:00"}
        (folder / f"{day:02}.json").write_text(json.dumps(saved))
    return folder


def test_it_prints_what_changed_and_is_done(slower: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(slower)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("42 runs, 2026-01-01 to 2026-02-11. 4 series judged: 2 changed.\n")
    assert "  2026-01-31  000001d→000001e" in said.out
    assert said.err == ""


def test_a_recent_regression_fails_a_build_that_asks(slower: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(slower), "--fail-on-regression"]) == 1
    assert capsys.readouterr().out.endswith("Regression: 2 unacknowledged changes in the last 20 runs: bench.py::sort.\n")


def test_an_older_one_does_not(slower: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It began 12 runs ago."""
    assert main(["history", str(slower), "--fail-on-regression", "--recent", "11"]) == 0
    assert capsys.readouterr().out.endswith("No change for the worse in the last 11 runs that is not acknowledged.\n")


def test_nor_does_one_that_is_acknowledged(slower: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = tmp_path / "known.yaml"
    known.write_text("- {workload: 'bench.py::sort', date: 2026-01-31, note: checks its input}\n")
    assert main(["history", str(slower), "--fail-on-regression", "--acknowledged", str(known)]) == 0
    assert "(1) acknowledged: checks its input" in capsys.readouterr().out


def test_an_improvement_fails_nothing(tmp_path: Path) -> None:
    assert main(["history", str(nights(tmp_path / "runs", {"sort": noisy(SLOWER[::-1])})), "--fail-on-regression"]) == 0


def test_json_says_all_of_it(slower: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(slower), "--fail-on-regression", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["exit_code"], said["runs"], said["recent_regressions"], said["refused"], said["notes"]) == (1, 42, 2, [], [])
    assert [(one["workload"], one["metric"], one["runs"], len(one["changes"])) for one in said["series"]] == [
        ("bench.py::quiet", "step_time_median_s", 42, 0),
        ("bench.py::quiet", "throughput_samples_per_s", 42, 0),
        ("bench.py::sort", "step_time_median_s", 42, 1),
        ("bench.py::sort", "throughput_samples_per_s", 42, 1),
    ]
    (change,) = said["series"][2]["changes"]
    assert (change["verdict"], change["acknowledged"], change["runs_since"]) == ("regressed", None, 12)
    assert (change["before"], change["after"]) == (pytest.approx(0.099, rel=0.01), pytest.approx(0.1188, rel=0.01))
    assert change["low"] < change["gain"] < change["high"] < 0
    assert change["first"]["origin"].endswith("0030_night.json")
    assert sorted(change["evidence"]) == ["df", "energy", "student_p", "student_t"]


def test_what_cannot_be_read_is_named_and_the_rest_is_used(slower: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree(slower, tmp_path / "runs"))
    (folder / "0003_night.json").write_text('{"truncated": ')
    zero = night(4, {"sort": 0.1, "quiet": 1.0})
    zero["benchmarks"][0]["stats"]["mean"] = 0.0
    (folder / "0004_night.json").write_text(json.dumps(zero))
    assert main(["history", str(folder)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("40 runs, 2026-01-01 to 2026-02-11, 2 files refused. 4 series judged: 2 changed.\n")
    lines = said.err.splitlines()
    assert lines[0].startswith(f"refused: {folder / '0003_night.json'}: not JSON at line 1 column 15")
    assert lines[1].startswith(f"refused: {folder / '0004_night.json'}: ")
    assert len(lines) == 2


def test_many_refusals_do_not_push_the_answer_off_the_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = nights(tmp_path / "runs", {"sort": noisy([1.0] * 12)})
    for at in range(8):
        (folder / f"bad{at}.json").write_text("{}")
    assert main(["history", str(folder)]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == "refused: and 3 more files (--all)."
    assert main(["history", str(folder), "--all"]) == 0
    assert len(capsys.readouterr().err.splitlines()) == 8


def test_too_few_runs_are_not_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One run, and nine: neither a pass nor a failure."""
    for count in (1, 9):
        folder = nights(tmp_path / f"{count}", {"sort": noisy([1.0] * count)})
        assert main(["history", str(folder), "--fail-on-regression"]) == 3
        assert "No series is long enough to be judged." in capsys.readouterr().out


def test_runs_with_nothing_in_common_are_not_judged(tmp_path: Path) -> None:
    for at in range(12):
        nights(tmp_path / "runs", {f"only-{at}": [1.0]}, first=at)
    assert main(["history", str(tmp_path / "runs")]) == 3


def test_machines_are_not_mixed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twice as slow from one night to the next, but on another processor: no change of the program."""
    folder = nights(tmp_path / "runs", {"sort": noisy([1.0] * 20, 1)})
    nights(folder, {"sort": noisy([2.0] * 20, 2)}, {"brand_raw": "Slow CPU", "count": 2}, first=20)
    assert main(["history", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "40 runs, 2026-01-01 to 2026-02-09. 4 series judged: none changed.\n" in said
    assert "note: 2 machines, whose runs are separate series: Made-up CPU, 8 CPUs; Slow CPU, 2 CPUs.\n" in said


def test_relative_to_stock_a_slower_machine_is_no_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ours(tmp_path / "runs", 28, Made(arms=(STOCK, AGAIN, Arm("faster", 0.1, {"vm.swappiness": "1"}))))
    assert main(["history", str(folder)]) == 0
    assert "6 series judged: 6 changed." in capsys.readouterr().out
    assert main(["history", str(folder), "--relative-to", "stock"]) == 0
    assert "4 series judged: none changed." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--metric", "speed"], "no run has a metric 'speed'; they have step_time_mean_s, "),
        (["--relative-to", "stock"], "no run has a tweak set 'stock' to be relative to; they have as-run."),
        (["--acknowledged", "nowhere.yaml"], "nowhere.yaml: "),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    slower: Path, words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", str(slower), *words]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"error: {complaint}")
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_no_readable_run_is_an_error_that_comes_after_the_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.json").write_text("{}")
    assert main(["history", str(tmp_path)]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"refused: {tmp_path / 'bad.json'}: not a saved run")
    assert second == f"error: {tmp_path}: no run could be used, so there is no history."


@pytest.mark.parametrize("words", [["--recent", "0"], ["--recent", "x"], ["--plot", "picture.bmp"]])
def test_bad_usage_is_exit_code_2(slower: Path, words: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["history", str(slower), *words])
    assert stopped.value.code == 2


@pytest.mark.parametrize(("form", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_it_draws(slower: Path, tmp_path: Path, form: str, magic: bytes) -> None:
    path = tmp_path / "new" / f"history.{form}"
    assert main(["history", str(slower), "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(magic)


def test_where_nothing_can_be_drawn_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = nights(tmp_path / "runs", {"sort": [1.0, 2.0]})
    assert main(["history", str(folder), "--plot", str(tmp_path / "x.png")]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path / 'x.png'}: not drawn: no series has enough runs to be judged.\n"


def test_where_nothing_was_judged_nothing_is_said_to_be_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And what was found is told even where it cannot be drawn."""
    for seed in (1, 2, 3):
        saved_file(tmp_path, Made(seed=seed), f"{seed}.json")
    assert main(["history", str(tmp_path), "--fail-on-regression"]) == 3
    assert "No change for the worse" not in capsys.readouterr().out
    assert main(["history", str(tmp_path), "--plot", str(tmp_path / "plot.png")]) == 2
    out, err = capsys.readouterr()
    assert "No series is long enough to be judged" in out
    assert "not drawn" in err
