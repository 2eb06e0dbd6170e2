"""Result folders, tables and repeats together: what is compared, on which error, and what the command says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from analysis.io.dlio_factors import STEADY
from analysis.io.dlio_published import is_published, rows_of
from analysis.io.dlio_study import Excluded, dlio_study
from analysis.terms import Unreadable
from tests.dlio_like import Made, folder

if TYPE_CHECKING:
    from collections.abc import Sequence

RECORDED = Path(__file__).parents[2] / "recordings" / "dlio-2.0.0"
TABLE = """\
Model,Parameter,Value,Procs,AU (%),I/O (MB/s)
unet3d_h100,baseline,,2,{au:.2f},{mb:.2f}
unet3d_h100,read,threads_8,2,97.53,80.50
"""
DESIGN = """\
model,epochs,processes,overrides,run
# the baseline
unet3d_h100,2,2,,Y
unet3d_h100,2,2,++workload.reader.read_threads=8,N
"""
EIGHT = Made(after_s=900, loads=(1.0, *[0.02] * 79), reader={"read_threads": 8}, overrides=("++workload.reader.read_threads=8",))
LONGER = (1.0, *[0.03] * 79)


def said(capsys: pytest.CaptureFixture[str], *asked: str | Path, code: int = 0) -> str:
    assert main(["io", *map(str, asked)]) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return out if code == 0 else err


def baselines(where: Path, waits: Sequence[float]) -> None:
    for at, wait in enumerate(waits):
        folder(where / "2", Made(after_s=100 * at, loads=(1.0, *[wait] * 79)))


def test_without_a_run_repeated_nothing_is_concluded(tmp_path: Path) -> None:
    """Epochs are shown for what they are: pseudo-replication."""
    folder(tmp_path / "2", Made(loads=LONGER))
    folder(tmp_path / "2_read_threads_8", EIGHT)
    found = dlio_study([tmp_path])
    assert {one.factor for one in found.tests} == {"read_threads"}
    assert found.error[STEADY] is None


def test_repeated_baselines_give_the_error_that_counts(tmp_path: Path) -> None:
    """AU of 0.1 / (0.1 + wait): 77.78 % .. 76.45 % for the three baselines; the setting's 83.6 % stands out from their scatter."""
    baselines(tmp_path, (0.030, 0.031, 0.032))
    folder(tmp_path / "2_read_threads_8", EIGHT)
    found = dlio_study([tmp_path])
    error = found.error[STEADY]
    assert error is not None
    assert (error.df, error.settings) == (2, 1)
    (judged,) = [one.runs for one in found.tests if one.response == STEADY and not one.skipped]
    assert judged is not None
    assert (judged.df_between, judged.df_error) == (1, 2)
    assert judged.p < 0.05


def test_a_published_row_without_raw_data_is_a_further_run(tmp_path: Path) -> None:
    """Its setting has one folder here; the table's own figure is another run of it, unless it is the very same one."""
    baselines(tmp_path, (0.030,))
    au = dlio_study([tmp_path]).judged[0].run.reported["train_au_mean_percentage"]
    assert isinstance(au, float)
    (tmp_path / "benchmark_results.csv").write_text(TABLE.format(au=au - 1, mb=50))
    error = dlio_study([tmp_path]).error[STEADY]
    assert error is not None
    assert error.sd == pytest.approx(1 / 2**0.5, abs=0.01)


def test_a_published_row_of_raw_data_here_is_no_second_run(tmp_path: Path) -> None:
    baselines(tmp_path, (0.030,))
    reported = dlio_study([tmp_path]).judged[0].run.reported
    au, mb = reported["train_au_mean_percentage"], reported["train_io_mean_MB_per_second"]
    (tmp_path / "benchmark_results.csv").write_text(TABLE.format(au=au, mb=mb))
    found = dlio_study([tmp_path])
    assert [row.id for row in found.raw] == ["2"]
    assert found.error[STEADY] is None


def test_a_table_is_put_together_again_and_ordered_by_its_design(tmp_path: Path) -> None:
    """`read,threads_8` was `2_read_threads_8` before the notebook cut it at its underscore."""
    table, design = tmp_path / "table.csv", tmp_path / "design.csv"
    table.write_text(TABLE.format(au=1, mb=2))
    design.write_text(DESIGN)
    assert is_published(table)
    assert not is_published(design)
    assert [(row.id, row.setting, row.order) for row in rows_of(table, design)] == [
        ("2", None, 0),
        ("2_read_threads_8", ("read_threads", "8"), 1),
    ]


@pytest.mark.parametrize(
    ("old", "new", "said_of_it"),
    [
        ("97.53", "fast", "line 3: AU (%) = 'fast' is no number"),
        ("8,2,97.53", "8,2", "line 3: has 5 fields"),
        (",2,97", ",0.5,97", "is no count"),
    ],
)
def test_a_damaged_table_is_refused_with_its_line(tmp_path: Path, old: str, new: str, said_of_it: str) -> None:
    table = tmp_path / "table.csv"
    table.write_text(TABLE.format(au=1, mb=2).replace(old, new))
    with pytest.raises(Unreadable, match=r"table\.csv") as refused:
        rows_of(table)
    assert said_of_it in str(refused.value)


def test_other_steps_can_be_left_out(tmp_path: Path) -> None:
    """The first three loads are 1 s, 0.5 s and 0.5 s: leaving all three out is leaving no waiting out of 0.02 s."""
    folder(tmp_path, Made(loads=(1.0, 0.5, 0.5, *[0.02] * 77), waits_s=0.0))
    (usual,), (chosen,) = (dlio_study([tmp_path], excluded).judged for excluded in (Excluded(), Excluded(3, 1)))
    assert chosen.value("au_steady_percent") == pytest.approx(100 / 1.2)
    assert (usual.value("au_steady_percent") or 0) < 80
    assert not chosen.doubts


@pytest.mark.parametrize("start", [40, 41, 99])
def test_as_many_steps_left_out_as_there_are_or_more_leave_no_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], start: int
) -> None:
    """Of 40 steps: the whole epoch stands, and steady figures are refused with the reason."""
    folder(tmp_path, Made())
    page = said(capsys, tmp_path, "--exclude-start", str(start))
    assert "40 steps an epoch, and none is left after the excluded ones" in " ".join(page.split())
    (run,) = dlio_study([tmp_path], Excluded(start)).judged
    assert run.value("au_steady_percent") is None
    assert run.value("au_whole_percent") is not None


def test_the_command_fits_its_page_and_refuses_nothing_that_is_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    baselines(tmp_path, (0.030, 0.031))
    folder(tmp_path / "2_read_threads_8", EIGHT)
    (tmp_path / "benchmark_results.csv").write_text(TABLE.format(au=1, mb=2))
    page = said(capsys, tmp_path, "--mlperf")
    assert max(map(len, page.splitlines())) <= 100
    for words in ("As DLIO reckons it", "pseudo-replication", "F over runs", "Settings that were run again", "MLPerf Storage v2.0"):
        assert words in page


def test_the_recording_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    page = said(capsys, RECORDED)
    assert "3 result folders: 2 trained, 1 only generated data; 1 degenerate" in page
    assert max(map(len, page.splitlines())) <= 100


def test_a_figure_below_zero_is_refused_and_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One step an epoch: DLIO counts S - 2 = -1 of it and reports a negative rate."""
    folder(tmp_path, Made(loads=(1.0,), waits_s=5.0))
    summary = next(tmp_path.rglob("summary.json"))
    assert json.loads(summary.read_text())["metric"]["train_io_mean_MB_per_second"] < 0
    page = said(capsys, tmp_path)
    assert "S - 2 = -1" in page
    assert "below 0" in page
    assert not [word for word in page.split() if word.startswith("-") and word[1:].replace(".", "").isdecimal() and word != "-1"]


def test_the_same_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Figures with unit and label, null with its reason where refused; strict JSON though DLIO's own is none."""
    folder(tmp_path, Made(loads=(1.0, *[0.05] * 4)))
    answer = json.loads(said(capsys, tmp_path, "--json", "--mlperf"))
    (run,) = answer["dlio"]["runs"]
    steady = run["responses"]["au_steady_percent"]
    assert (steady["value"], steady["unit"]) == (None, "%")
    assert steady["why_missing"].startswith("insufficient_steps")
    assert run["responses"]["au_whole_percent"]["value"] > 0
    assert [doubt["kind"] for doubt in run["doubts"]] == ["insufficient_steps"]
    assert answer["mlperf"][0]["division"]["word"] == "INVALID"  # 1 MiB records in a folder that is called unet3d


def test_a_damaged_folder_is_named_and_the_rest_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder(tmp_path / "a", Made())
    (folder(tmp_path / "b", Made(after_s=60)) / "0_output.json").write_text("{")
    assert main(["io", str(tmp_path)]) == 0
    page, errors = capsys.readouterr()
    (line,) = errors.splitlines()
    assert line.startswith("refused: ")
    assert "0_output.json" in line
    assert "1 result folder: 1 trained, 0 only generated data; 1 cannot be read" in page


def test_where_nothing_can_be_used_it_ends_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder(tmp_path, Made()) / "summary.json").unlink()
    line = said(capsys, tmp_path, code=2)
    assert "summary.json: not there" in line
    assert len(line.splitlines()) == 1
    assert len(said(capsys, tmp_path / "nowhere", code=2).splitlines()) == 1


def answered(page: str) -> str:
    """The sentences before the first table, in one line."""
    return " ".join(page.split("\n\n", maxsplit=1)[0].split())


def test_the_page_opens_with_what_it_comes_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two settings that ran once: figures that stand, and no test."""
    baselines(tmp_path, (0.030,))
    folder(tmp_path / "2_read_threads_8", EIGHT)
    (tmp_path / "benchmark_results.csv").write_text(TABLE.format(au=1, mb=2))
    said_first = answered(said(capsys, tmp_path))
    assert "0 of 2 published rows are reproduced from raw data; 2 have none here" in said_first
    assert "steady AU and MB/s can be believed in" in said_first
    assert "over the whole epoch AU goes from" in said_first
    assert "each setting ran once, so no difference can be tested" in said_first


def test_the_opening_says_of_repeats_that_there_are_some(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    baselines(tmp_path, (0.030, 0.031))
    assert "1 of 1 setting ran more than once" in answered(said(capsys, tmp_path))


def test_where_no_steady_figure_stands_it_is_said_first_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder(tmp_path, Made(loads=(1.0, *[0.05] * 4)))
    assert "no steady AU or MB/s can be believed: insufficient steps in 1 of 1 run" in answered(said(capsys, tmp_path))


def test_a_row_whose_folder_holds_another_run_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The row `2` was published with figures that the run in the folder `2` never had, and that run is degenerate."""
    folder(tmp_path / "2", Made(loads=(1.0,), waits_s=5.0))
    (tmp_path / "benchmark_results.csv").write_text(TABLE.format(au=1, mb=2))
    page = said(capsys, tmp_path)
    assert "the folder of 2 holds another, degenerate run" in answered(page)
    assert "another, degenerate run 2" in page


def test_a_table_above_the_folder_is_named_and_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`io study/results` sees no row that ran on stale data; the table that tells lies in `study`."""
    baselines(tmp_path / "study" / "results", (0.030,))
    (tmp_path / "study" / "benchmark_results.csv").write_text(TABLE.format(au=1, mb=2))
    inside = answered(said(capsys, tmp_path / "study" / "results")).replace(" ", "")
    assert f"python-manalysisio{tmp_path / 'study'}checksittoo" in inside
    assert "lies above this folder" not in said(capsys, tmp_path / "study")


def test_a_test_over_epochs_is_called_not_valid_in_its_heading(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for at, wait in enumerate((0.05, 0.06)):
        folder(tmp_path / "2", Made(100 * at, loads=(1.0, *[wait] * 4)))
    folder(tmp_path / "2_read_threads_8", Made(900, loads=(1.0, *[0.03] * 4), reader={"read_threads": 8}, overrides=EIGHT.overrides))
    page = said(capsys, tmp_path)
    (line,) = [line for line in page.splitlines() if line.startswith("Analysis of variance")]
    assert line == "Analysis of variance, over epochs not valid: epochs taken for runs; the figures are refused above"


@pytest.mark.parametrize("command", ["report", "plot", "compare", "describe"])
def test_other_commands_send_to_this_one(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    folder(tmp_path / "results", Made())
    assert main([command, str(tmp_path)]) == 2
    assert f"these are DLIO results and no saved runs: python -m analysis io {tmp_path} --plot OUT" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("nowhere", None, "is not there"),
        ("README.md", "# A study", "is neither"),
        ("experimental_design.csv", "# rows\nmodel,epochs,processes,overrides,run\n", "is a design and holds no results"),
        ("design.csv", "block,workload,tweakset,run\n", "is a design and holds no results"),
    ],
)
def test_what_is_no_input_is_refused_in_words_that_name_what_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: str | None, words: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    line = said(capsys, tmp_path / name, code=2)
    assert words in line
    assert "name a saved run (a .json file of `pytest benchmarks/`), a folder of DLIO results, or a published table" in line
