"""Result folders, tables and repeats together: what is compared, on which error, and what the command says of it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from scipy import stats

from analysis.__main__ import main
from analysis.studies.io.dlio_published import is_published, rows_of
from analysis.studies.io.dlio_study import RunError, dlio_study, on_run_error, over_epochs, run_error
from analysis.studies.io.formulas import STEADY
from tests.dlio_like import Made, folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from syrupy.assertion import SnapshotAssertion

RECORDED = Path(__file__).parents[3] / "recordings" / "dlio-2.0.0"
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


def baselines(where: Path, waits: Sequence[float]) -> None:
    for at, wait in enumerate(waits):
        folder(where / "2", Made(after_s=100 * at, loads=(1.0, *[wait] * 79)))


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


def test_runs_of_several_models_are_told_apart_in_every_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for model in ("unet3d_h100", "resnet50_h100"):
        baselines(tmp_path / model, (0.030,))
        folder(tmp_path / model / "2_read_threads_8", EIGHT)
        for overrides in (tmp_path / model).rglob("overrides.yaml"):
            overrides.write_text(overrides.read_text().replace("unet3d_h100", model))
    found = dlio_study([tmp_path])
    names = {one.run.id for one in found.judged}
    assert names == {f"{model} {name}" for model in ("unet3d_h100", "resnet50_h100") for name in ("2", "2_read_threads_8")}
    lines = [(one.among, one.factor, one.levels, one.response, one.skipped) for one in found.tests]
    assert len(lines) == len(set(lines))
    assert {among for among, factor, *_ in lines if factor == "read_threads"} == {"unet3d_h100: ", "resnet50_h100: "}
    assert main(["io", str(tmp_path)]) == 0
    page = capsys.readouterr().out
    assert min(page.count(model) for model in ("unet3d_h100", "resnet50_h100")) >= 4  # each run in each of two tables


def test_a_published_row_without_raw_data_is_a_further_run(tmp_path: Path) -> None:
    """Its setting has one folder here; the table's own figure is another run of it, unless it is the very same one."""
    baselines(tmp_path, (0.030,))
    reported = dlio_study([tmp_path]).judged[0].run.reported
    au, mb = reported["train_au_mean_percentage"], reported["train_io_mean_MB_per_second"]
    assert isinstance(au, float)
    (tmp_path / "benchmark_results.csv").write_text(TABLE.format(au=au - 1, mb=50))
    error = dlio_study([tmp_path]).error[STEADY]
    assert error is not None
    assert error.sd == pytest.approx(1 / 2**0.5, abs=0.01)
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


def test_other_steps_can_be_left_out(tmp_path: Path) -> None:
    """The first three loads are 1 s, 0.5 s and 0.5 s: leaving all three out is leaving no waiting out of 0.02 s."""
    folder(tmp_path, Made(loads=(1.0, 0.5, 0.5, *[0.02] * 77), waits_s=0.0))
    (usual,), (chosen,) = (dlio_study([tmp_path], *excluded).judged for excluded in ((), (3, 1)))
    assert chosen.value("au_steady_percent") == pytest.approx(100 / 1.2)
    assert (usual.value("au_steady_percent") or 0) < 80
    assert not chosen.doubts


def test_eta_squared_by_hand() -> None:
    """1, 3 and 5, 7: means 2 and 6 around 4 are 16 of 20 between, 4 within; F = 16 / (4 / 2) = 8."""
    found = over_epochs({"low": [1, 3], "high": [5, 7]})
    assert found is not None
    assert (found.f, found.eta2) == pytest.approx((8, 0.8))
    assert (found.df_between, found.df_error) == (1, 2)


@pytest.mark.parametrize("levels", [{}, {"one": [1.0, 2.0]}, {"a": [1.0], "b": [2.0]}, {"a": [1.0, 1.0], "b": [2.0, 2.0]}])
def test_what_gives_no_f(levels: dict[str, list[float]]) -> None:
    assert over_epochs(levels) is None


def test_pairs_scatter_by_the_root_of_half_their_mean_squared_difference() -> None:
    """Differences 1 and 3: root of (1 + 9) / 2 / 2 = 1.581 with one degree of freedom each."""
    error = run_error([[10.0, 11.0], [20.0, 23.0], [5.0]])
    assert error is not None
    assert error.sd == pytest.approx(math.sqrt(2.5))
    assert (error.df, error.settings) == (2, 2)
    assert run_error([[10.0], [20.0]]) is None


def test_f_on_repeated_runs() -> None:
    """Means 2 and 6 of one run each: 8 between them over 2² of run error = 2, with the run error's degrees of freedom.

    A mean of two runs counts twice: 2 and 6 around 10 / 3.
    """
    found = on_run_error([[2.0], [6.0]], RunError(2.0, 5, 5))
    assert found is not None
    assert found.f == pytest.approx(2)
    assert (found.df_between, found.df_error) == (1, 5)
    assert found.p == pytest.approx(float(stats.f.sf(2, 1, 5)))
    several = on_run_error([[1.0, 3.0], [6.0]], RunError(2.0, 5, 5))
    assert several is not None
    assert several.f == pytest.approx((2 * (2 - 10 / 3) ** 2 + (6 - 10 / 3) ** 2) / 4)
    assert on_run_error([[2.0]], RunError(2.0, 5, 5)) is None
    assert on_run_error([[2.0], [6.0]], RunError(0.0, 5, 5)) is None


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder the command runs in, so that no path is on its pages."""
    monkeypatch.chdir(tmp_path)
    return Path("study")


def page(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert main(["io", *map(str, words)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, out.splitlines())) <= 100
    return out


def test_the_whole_page(here: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    """Baselines run twice, a setting once, published rows beside them; the rules of MLPerf Storage below."""
    baselines(here, (0.030, 0.031))
    folder(here / "2_read_threads_8", EIGHT)
    (here / "benchmark_results.csv").write_text(TABLE.format(au=1, mb=2))
    assert page(capsys, here, "--mlperf") == snapshot


def test_openings(here: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    """What stands before the first table, and the heading of a test that is not valid."""

    def opening(*words: str | Path) -> list[str]:
        first, *rest = page(capsys, *words).split("\n\n")
        return [first, *(line for part in rest for line in part.splitlines() if line.startswith("Analysis of variance"))]

    few = (1.0, *[0.05] * 4)
    baselines(here / "once", (0.030,))
    folder(here / "once" / "2_read_threads_8", EIGHT)
    (here / "once" / "benchmark_results.csv").write_text(TABLE.format(au=1, mb=2))
    baselines(here / "twice", (0.030, 0.031))
    folder(here / "short", Made(loads=few))
    folder(here / "other" / "2", Made(loads=(1.0,), waits_s=5.0))
    (here / "other" / "benchmark_results.csv").write_text(TABLE.format(au=1, mb=2))
    for at, wait in enumerate((0.05, 0.06)):
        folder(here / "epochs" / "2", Made(100 * at, loads=(1.0, *[wait] * 4)))
    eight = Made(900, loads=(1.0, *[0.03] * 4), reader={"read_threads": 8}, overrides=EIGHT.overrides)
    folder(here / "epochs" / "2_read_threads_8", eight)
    openings = {name: opening(here / name) for name in ("once", "twice", "short", "other", "epochs")}
    assert str((here / "once").resolve()) in "".join(opening(here / "once" / "2")[0].split())  # where the table lies
    openings["no step left"] = opening(here / "twice", "--exclude-start", "40")
    openings["the recording"] = opening(RECORDED)
    assert openings == snapshot


def test_a_damaged_folder_is_named_and_the_rest_is_judged(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder(here / "a", Made())
    (folder(here / "b", Made(after_s=60)) / "0_output.json").write_text("{")
    assert main(["io", str(here)]) == 0
    out, err = capsys.readouterr()
    assert (err.count("\n"), err.startswith("refused: "), "0_output.json" in err) == (1, True, True)
    assert "1 cannot" in out


def test_refusals_are_one_line_on_stderr_and_exit_code_2(
    here: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    files = {
        "README.md": "# A study",
        "experimental_design.csv": "# rows\nmodel,epochs,processes,overrides,run\n",
        "design.csv": "block,workload,tweakset,run\n",
        "word.csv": TABLE.format(au=1, mb=2).replace("97.53", "fast"),
        "short.csv": TABLE.format(au=1, mb=2).replace("8,2,97.53", "8,2"),
        "half.csv": TABLE.format(au=1, mb=2).replace(",2,97", ",0.5,97"),
    }
    for name, text in files.items():
        Path(name).write_text(text)
    Path("empty").mkdir()
    (folder(here, Made()) / "summary.json").unlink()
    folder(Path("results"), Made())
    found = {}
    requests = [["io", name] for name in (*files, str(here), "nowhere", "empty")]
    for request in [*requests, *([command, "results"] for command in ("report", "plot", "compare", "describe"))]:
        assert main(request) == 2
        out, err = capsys.readouterr()
        assert out == ""
        found[" ".join(request)] = err
    assert found == snapshot


def test_the_same_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder(tmp_path, Made(loads=(1.0, *[0.05] * 4)))
    assert main(["io", str(tmp_path), "--json", "--mlperf"]) == 0
    answer = json.loads(capsys.readouterr().out)
    (run,) = answer["dlio"]["runs"]
    steady = run["responses"]["au_steady_percent"]
    assert (steady["value"], steady["unit"]) == (None, "%")
    assert steady["why_missing"].startswith("insufficient_steps")
    assert run["responses"]["au_whole_percent"]["value"] > 0
    assert [doubt["kind"] for doubt in run["doubts"]] == ["insufficient_steps"]
    assert answer["mlperf"][0]["division"]["word"] == "INVALID"  # 1 MiB records in a folder that is called unet3d
