"""Result folders, tables and repeats together: what is compared, on which error, what ran on stale data, and what the command shows."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from scipy import stats

from analysis.__main__ import main
from analysis.studies.io.dlio_published import PublishedRow, is_published, rows_of
from analysis.studies.io.dlio_study import DlioStudy, RunError, dlio_study, on_run_error, over_epochs, run_error
from analysis.studies.io.formulas import STEADY
from analysis.studies.io.stale import stale_rows
from tests.dlio_like import Made, folder

if TYPE_CHECKING:
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
    assert page(capsys, here, "--mlperf", "--all") == snapshot


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
    for request in [*requests, *([command, "results"] for command in ("report", "plot", "compare"))]:
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


BIG = {"record_length_bytes": 4 * 1048576}  # 320 files of 4 MiB, 1.25 GiB, where a run's own are 0.3125 GiB
QUICK, SLOW = (1.0, *[0.02] * 39), (2.0, *[0.3] * 39)
GIB_KB = 2**20


def study(where: Path, *made: tuple[str, Made]) -> DlioStudy:
    for name, one in made:
        folder(where / name, one)
    found = dlio_study([where])
    assert not found.refused
    return found


def test_a_data_set_made_for_another_run_and_left_in_place(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    found = study(
        tmp_path,
        ("2", Made()),
        ("2_record_length_bytes_4194304", Made(after_s=100, generates=True, dataset=BIG)),
        ("2_record_length_bytes_4194304", Made(after_s=200, dataset=BIG, loads=SLOW)),
        ("2_prefetch_size_8", Made(after_s=300, loads=SLOW, reader={"prefetch_size": 8})),
    )
    (stale,) = found.stale
    assert stale.id == "2_prefetch_size_8"
    assert stale.evidence == snapshot
    assert [one.run.id for one in found.usable] == ["2", "2_record_length_bytes_4194304"]
    (refused,) = [one for one in found.judged if one not in found.usable]
    assert all(response.value is None for response in refused.responses.values())
    assert (refused.responses["au_whole_percent"].why_missing or "").startswith("stale data")


HARMLESS = {
    "made anew for the next run": (
        ("2_record_length_bytes_4194304", Made(after_s=0, generates=True, dataset=BIG)),
        ("2_record_length_bytes_4194304", Made(after_s=100, dataset=BIG, loads=SLOW)),
        ("2", Made(after_s=200, generates=True)),
        ("2", Made(after_s=300)),
    ),
    # Files of another format have other names: a run on npz after png was made reads its own.
    "another format": (("2_format_png", Made(generates=True, dataset={"format": "png", **BIG})), ("2", Made(after_s=100))),
    "more files": (("8", Made(generates=True, dataset={"num_files_train": 640})), ("2", Made(after_s=100))),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_what_does_no_harm(case: str, tmp_path: Path) -> None:
    assert study(tmp_path, *HARMLESS[case]).stale == ()


def suspects(where: Path, cached_gib: float, loads: tuple[float, ...] = SLOW) -> DlioStudy:
    """No generation was kept: a run on its own data, one on others, and one whose data nobody saw made."""
    return study(
        where,
        ("2", Made(cached_kb=4 * GIB_KB)),
        ("2_record_length_bytes_4194304", Made(after_s=100, dataset=BIG, loads=SLOW, cached_kb=5 * GIB_KB)),
        ("2_prefetch_size_8", Made(after_s=200, loads=loads, reader={"prefetch_size": 8}, cached_kb=int(cached_gib * GIB_KB))),
    )


def test_throughput_and_a_page_cache_that_stood_still(tmp_path: Path) -> None:
    """It has the samples/s of the run before it and not its own kind's; putting its data back would have freed 0.94 GiB."""
    (stale,) = suspects(tmp_path, 5.0).stale
    assert (stale.id, stale.ran_on) == ("2_prefetch_size_8", "2_record_length_bytes_4194304")
    assert "0.9 GiB" in stale.evidence


@pytest.mark.parametrize(("cached_gib", "loads"), [(4.1, SLOW), (5.0, QUICK)])
def test_a_page_cache_that_moved_or_a_throughput_of_its_own_kind_clears_it(
    tmp_path: Path, cached_gib: float, loads: tuple[float, ...]
) -> None:
    """Its own data were put back: Cached fell by about the difference, so the throughput may be the setting's own doing."""
    assert suspects(tmp_path, cached_gib, loads).stale == ()


def rows(*rates: float) -> list[PublishedRow]:
    """A baseline, a row with other records (4 MiB), and rows after it, in the design's order; MB/s as published."""
    settings = [None, ("record_length_bytes", "4194304"), ("checkpoint", "False"), ("prefetch_size", "2")]
    return [
        PublishedRow(at + 2, "unet3d", 4, setting, 50.0, rate, at) for at, (setting, rate) in enumerate(zip(settings, rates, strict=False))
    ]


def test_published_rows_after_one_that_changed_the_data() -> None:
    """Records of 1 MiB: 100 samples/s, then 80 MB/s / 4 MiB = 20 samples/s; 20.1 after it is that data set, 99 is not."""
    table = rows(100.0, 80.0, 20.1, 99.0)
    (stale,) = stale_rows(table, 2.0**20, {table[1]: 4 * 2.0**20})
    assert (stale.id, stale.ran_on, stale.origin) == ("4_checkpoint_False", "4_record_length_bytes_4194304", "line 4")
    assert "20.10 and 20.00" in stale.evidence
    unordered = [replace(row, order=None) for row in table]
    assert stale_rows(unordered, 2.0**20, {unordered[1]: 4 * 2.0**20}) == []


def test_a_table_by_itself_is_judged_by_its_utilisation() -> None:
    """Nobody knows what record length its MB/s were reckoned with: AU of 20.1 % after 20 % is that data set's, not the baseline's 50."""
    table = [replace(row, au_percent=au) for row, au in zip(rows(1.0, 1.0, 1.0, 1.0), (50.0, 20.0, 20.1, 49.0), strict=True)]
    (stale,) = stale_rows(table, None, {table[1]: 4 * 2.0**20})
    assert stale.id == "4_checkpoint_False"
    assert all(figure in stale.evidence for figure in ("20.10", "20.00", "50.00"))
