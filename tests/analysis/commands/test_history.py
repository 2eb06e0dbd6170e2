"""`history` over many files: name unreadable ones, judge the rest, exit as a build needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from tests.made_history import night, nights, noisy, stepped

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

SLOWER = stepped((30, 0.1), (12, 0.12))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """42 nights in which one of two benchmarks is 20 % slower in the last 12, and other folders."""
    here = tmp_path_factory.mktemp("history")
    nights(here / "slower", {"sort": noisy(SLOWER, 1), "quiet": noisy([1.0] * 42, 2)})
    for count in (1, 9):
        nights(here / f"{count} runs", {"sort": noisy([1.0] * count)})
    nights(here / "machines", {"sort": noisy([1.0] * 20, 1)})
    nights(
        here / "machines",
        {"sort": noisy([2.0] * 20, 2)},
        {"brand_raw": "Slow CPU", "count": 2},
        first=20,
    )
    for at in range(12):
        nights(here / "unlike", {f"only-{at}": [1.0]}, first=at)
    (here / "damaged").mkdir()
    (here / "damaged/bad.json").write_text("{}")
    return here


@pytest.fixture(autouse=True)
def _here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


GATED = ("slower", "--fail-on-regression")
PAGES: dict[str, tuple[int, tuple[str, ...]]] = {
    "regression": (1, GATED),
    "older": (0, (*GATED, "--recent", "11")),
    "since": (0, (*GATED, "--since", "2026-01-31")),
    # Twice as slow from one night to the next, but on another processor: no change of the program.
    "machines": (0, ("machines",)),
    # Neither a pass nor a failure.
    "one run": (3, ("1 runs", "--fail-on-regression")),
    "nine runs": (3, ("9 runs", "--fail-on-regression")),
    "nothing in common": (3, ("unlike", "--fail-on-regression")),
    "not drawn": (2, ("9 runs", "--plot", "picture.png")),
    "unknown metric": (2, ("slower", "--metric", "speed")),
    "unknown control": (2, ("slower", "--relative-to", "stock")),
    "nothing since": (2, ("slower", "--since", "2027-01-01")),
    "nothing readable": (2, ("damaged",)),
}


@pytest.mark.parametrize("name", PAGES)
def test_pages_and_exit_codes(
    name: str, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    code, words = PAGES[name]
    assert main(["history", *words]) == code
    out, err = capsys.readouterr()
    assert {"out": out, "err": err} == snapshot


def test_what_cannot_be_read_is_named_and_the_rest_is_used(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = nights(Path("runs"), {"sort": noisy([1.0] * 12)})
    (folder / "0003_night.json").write_text('{"truncated": ')
    zero = night(4, {"sort": 0.1})
    zero["benchmarks"][0]["stats"]["mean"] = 0.0
    (folder / "0004_night.json").write_text(json.dumps(zero))
    for at in range(8):
        (folder / f"bad{at}.json").write_text("{}")
    assert main(["history", "runs"]) == 0
    out, err = capsys.readouterr()
    assert {"head": out.splitlines()[1], "err": err} == snapshot
    assert main(["history", "runs", "--all"]) == 0
    assert len(capsys.readouterr().err.splitlines()) == 10


def test_a_regression_fails_the_build_on_its_third_night(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One or two nights at twice the time are not judged, and the answer states this."""
    times_s = noisy(stepped((27, 0.1), (3, 0.2)), cv=0.005)
    for late, code in ((1, 0), (2, 0), (3, 1)):
        folder = nights(tmp_path / str(late), {"sort": times_s[: 27 + late]})
        assert main(["history", str(folder), "--fail-on-regression", "--json"]) == code
        said = json.loads(capsys.readouterr().out)
        assert [one["odd_last"] for one in said["series"]] == [late % 3] * 2
        assert main(["history", str(folder), "--fail-on-regression"]) == code
        out = capsys.readouterr().out
        assert ("Not yet judged: bench.py::sort" in out) == (late < 3)
    (change,) = said["series"][0]["changes"]
    assert (change["first_origin"][-15:], change["gain"]) == (
        "0027_night.json",
        pytest.approx(-0.5, abs=0.005),
    )
    assert change["low"] < -0.5 < change["high"]


def test_json_says_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "slower", "--fail-on-regression", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (
        said["exit_code"],
        said["runs"],
        said["recent_regressions"],
        said["refused"],
        said["notes"],
    ) == (1, 42, 2, [], [])
    assert [
        (one["workload"], one["metric"], one["runs"], len(one["changes"])) for one in said["series"]
    ] == [
        ("bench.py::quiet", "step_time_median_s", 42, 0),
        ("bench.py::quiet", "throughput_samples_per_s", 42, 0),
        ("bench.py::sort", "step_time_median_s", 42, 1),
        ("bench.py::sort", "throughput_samples_per_s", 42, 1),
    ]
    (change,) = said["series"][2]["changes"]
    assert (change["verdict"], change["runs_since"]) == ("regressed", 12)
    assert (change["before"], change["after"]) == (
        pytest.approx(0.099, rel=0.01),
        pytest.approx(0.1188, rel=0.01),
    )
    assert change["low"] < change["gain"] < change["high"] < 0
    assert change["first_origin"].endswith("0030_night.json")
    assert sorted(change["evidence"]) == ["df", "energy", "student_p", "student_t"]


@pytest.mark.parametrize(
    "words",
    [["--since", "yesterday"], ["--recent", "0"], ["--recent", "x"], ["--plot", "picture.bmp"]],
)
def test_bad_usage_is_exit_code_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["history", "slower", *words])
    assert stopped.value.code == 2
