"""`python -m analysis report` names its page, refuses in one line, overwrites only a report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from analysis.compare import compare
from analysis.compare_answer import answer_of
from analysis.load import load
from tests.analysis.report.pages import SWAPPINESS, text_of, two_pictures
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_file

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

HOUSE = Path(__file__).parents[3]
MADE = Made(arms=(STOCK, AGAIN, Arm("faster", 0.1, SWAPPINESS), Arm("same", 0.0, SWAPPINESS)))


@pytest.fixture(autouse=True)
def few_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.report.page.fitting", two_pictures)


def report(tmp_path: Path, *runs: Path | str, options: Sequence[str] = ()) -> tuple[int, Path]:
    output = tmp_path / "out" / "report.html"
    output.parent.mkdir(exist_ok=True)
    return main(["report", *map(str, runs), "--output", str(output), *options]), output


def test_a_page_is_written_and_said_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, output = report(tmp_path, saved_file(tmp_path, MADE))
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert out.startswith(f"{output}: {output.stat().st_size / 1000:.0f} kB")
    assert "\nrun.json\nFaster: faster " in out
    assert out.endswith("3 contrasts with stock: 1 faster, 2 same (within 3 %).\n")


def test_json_says_path_size_verdicts_and_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved_file(tmp_path, MADE)
    _, output = report(tmp_path, path, options=["--json"])
    said = json.loads(capsys.readouterr().out)
    assert (said["path"], said["size_bytes"]) == (str(output), output.stat().st_size)
    (run,) = said["runs"]
    answer = answer_of(compare(load(path)), [load(path)])
    assert run["answers"] == [
        {"study": "verdicts", "said": [answer.title, *(line.text for line in answer.findings)]}
    ]
    assert (said["pictures"].keys(), said["pictures"]["points"]) == ({"points", "telemetry"}, None)


def test_the_command_on_the_page_makes_it_again(tmp_path: Path) -> None:
    path = saved_file(tmp_path, MADE, "with blank.json")
    _, output = report(tmp_path, path)
    assert f"report '{path}' --output {output}" in text_of(output.read_text("utf-8"))


def test_a_copy_is_no_second_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = saved_file(tmp_path, MADE), saved_file(tmp_path, MADE, "copy.json")
    _, output = report(tmp_path, one, other)
    assert capsys.readouterr().err.startswith(f"refused: {other}: ")
    assert "Between the runs" not in output.read_text("utf-8")


def test_what_cannot_be_reported_is_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(tmp_path)
    saved_file(tmp_path, MADE)
    before = Path("run.json").read_bytes()
    Path("many").mkdir()
    for seed in range(1, 12):
        saved_file(tmp_path, Made(blocks=1, steps=4, seed=seed), f"many/{seed}.json")
    cases = {
        "nothing": ("nothing.json",),
        "no match": ("no*such.json",),
        "many": ("many/*.json",),
        "itself": ("run.json", "--output", "run.json"),
    }
    complaints = {}
    monkeypatch.delattr("analysis.report.page.page_of")  # refused before any work is done
    for name, words in cases.items():
        assert main(["report", "--output", "report.html", *words]) == 2
        complaints[name] = capsys.readouterr().err
    assert complaints == snapshot
    assert not Path("report.html").exists()
    assert Path("run.json").read_bytes() == before


@pytest.mark.parametrize("error", [OverflowError, RecursionError, ValueError, KeyError])
def test_whatever_a_damaged_file_breaks_is_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
) -> None:
    def choke(*_: object) -> None:
        raise error("first\nsecond")

    monkeypatch.setattr("analysis.report.page.page_of", choke)
    path = saved_file(tmp_path, MADE)
    code, output = report(tmp_path, path)
    err = capsys.readouterr().err
    assert (code, output.exists(), err.count("\n")) == (2, False, 1)
    assert error.__name__ in err
