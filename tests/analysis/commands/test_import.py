"""`import` makes runs of other tools into valid runs of ours that say neither more nor less than their sources."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.__main__ import main
from analysis.compare import compare
from analysis.load import load
from analysis.telemetry import series_of
from analysis.terms import Run
from tests.analysis.answers import refusals, refused
from tests.deeptweak_like import NO_TWEAKS, SCRIPTS, SYSCTLS, Like, directory, table
from tests.stock_files import MACHINE, benchmark, document, session, stock_file, times
from tests.synthetic import saved_file

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


SCHEMA = json.loads((Path(__file__).parents[3] / "data/run.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
CONFIGURATIONS = (Like("base"), Like("exp1", manifest=SYSCTLS, run_effect=0.05), Like("exp2", manifest=SCRIPTS, several_gpus=True))


def imported(folder: Path, *words: str) -> tuple[Run, dict[str, Any]]:
    output = folder / "ours.json"
    assert main(["import", *words, "--output", str(output)]) == 0
    parsed = json.loads(output.read_text())
    VALIDATOR.validate(parsed)
    return load(output), parsed


def must_be_equal(one: Run, other: Run) -> None:
    for cell, same in zip(one.cells, other.cells, strict=True):
        place = {"id": cell.id, "window_s": cell.window_s, "series": cell.series}
        assert replace(same, **place) == cell  # type: ignore[arg-type]  # values of one cell, put into the other
    for field in ("studies", "workloads", "tweaksets", "machine", "baseline", "replicated", "warnings", "started_utc", "commit"):
        assert getattr(one, field) == getattr(other, field), field


def test_a_deeptweak_directory_comes_through_unchanged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    node = directory(tmp_path / "one_node", *CONFIGURATIONS)
    run, parsed = imported(tmp_path, str(node))
    must_be_equal(load(node), run)
    assert (run.format, run.baseline, run.replicated) == ("deeptweak", "base", False)
    assert len(parsed["deeptweak"]["imported_from"]["sources"]) == 6
    out, err = capsys.readouterr()
    assert out.replace(str(tmp_path), "") == snapshot
    assert err.count("warning: ") == len(run.warnings) == 3


def test_its_series_lie_in_the_telemetry_file_beside_it(tmp_path: Path) -> None:
    node = directory(tmp_path / "one_node", *CONFIGURATIONS)
    run, _ = imported(tmp_path, str(node))
    for name, series in series_of(load(node)).items():
        kept = series_of(run)[name]
        assert kept.columns == series.columns
        assert kept.time_s == pytest.approx(series.time_s)
        assert (kept.measured_from_s, kept.measured_to_s) == pytest.approx((series.measured_from_s, series.measured_to_s))


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    made=st.lists(
        st.builds(
            Like,
            st.sampled_from(["base", "exp1", "exp2"]),
            steps=st.integers(1, 12),
            manifest=st.sampled_from([None, NO_TWEAKS, SYSCTLS, SCRIPTS]),
            batch=st.integers(1, 9),
            several_gpus=st.booleans(),
            without=st.sets(st.sampled_from(["batch_size", "time_elapsed", "gpu_util", "loss", "step"])).map(tuple),
            empty=st.sets(st.sampled_from(["gpu_temp_C", "cpu_percent"])).map(tuple),
            written_mib=st.floats(1, 1e5),
        ),
        min_size=1,
        max_size=3,
        unique_by=lambda made: made.name,
    )
)
def test_whatever_is_imported_has_the_metrics_it_had(tmp_path_factory: pytest.TempPathFactory, made: list[Like]) -> None:
    folder = tmp_path_factory.mktemp("import")
    node = directory(folder / "one_node", *made)
    must_be_equal(load(node), imported(folder, str(node))[0])


def test_what_was_appended_to_a_file_is_a_block_in_ours_too(tmp_path: Path) -> None:
    node = directory(tmp_path / "one_node", Like("base"), Like("exp1", manifest=SYSCTLS))
    path = node / "base" / "benchmark.csv"
    path.write_text(f"{path.read_text()}\n{table(Like('base', seed=2))}")
    run, _ = imported(tmp_path, str(node))
    assert [(cell.tweakset, cell.block) for cell in run.cells] == [("base", 1), ("base", 2), ("exp1", 1)]
    assert (run.design.blocks, run.replicated) == (2, True)


def test_the_same_node_measured_again_is_another_block(tmp_path: Path) -> None:
    nodes = [directory(tmp_path / f"day{n}" / "one_node", Like("base", seed=n), Like("exp1", manifest=SYSCTLS, seed=n)) for n in (1, 2)]
    run, parsed = imported(tmp_path, *map(str, nodes))
    assert [(cell.tweakset, cell.block) for cell in run.cells] == [("base", 1), ("exp1", 1), ("base", 2), ("exp1", 2)]
    assert parsed["deeptweak"]["design"]["order"] == [cell.id for cell in run.cells]


def stock_arms(folder: Path, blocks: int = 5, *, turns: bool = True, keep_data: bool = True) -> list[str]:
    words: list[str] = []
    for at, (name, level_s) in enumerate((("stock", 0.002), ("faster", 0.0015))):
        minutes = [2 * block + at if turns else blocks * at + block for block in range(blocks)]
        files = [session(folder / f"{name}-{m}.json", seed=100 * m, level_s=level_s, minute=m, keep_data=keep_data) for m in minutes]
        words += ["--tweakset", name, *map(str, files)]
    return words


@pytest.mark.parametrize("keep_data", [True, False], ids=["with rounds", "without rounds"])
def test_stock_files_become_arms_and_blocks_of_one_run(tmp_path: Path, *, keep_data: bool) -> None:
    run, _ = imported(tmp_path, *stock_arms(tmp_path, keep_data=keep_data))
    assert len(run.cells) == 20  # 2 tweak sets × 5 files × 2 benchmarks
    assert (run.baseline, run.replicated, run.design.blocks, run.warnings) == ("stock", True, 5, ())
    assert run.started_utc == "2026-01-01T10:00:00.000001+00:00"
    for cell in run.cells:
        source = load(tmp_path / f"{cell.tweakset}-{2 * (cell.block - 1) + (cell.tweakset == 'faster')}.json")
        (original,) = (one for one in source.cells if one.workload == cell.workload)
        assert (cell.metrics, cell.steps, cell.facts) == (original.metrics, original.steps, original.facts)
    assert [(one.tweakset, one.verdict, one.pairs) for one in compare(run)] == [("faster", "improved", 5)] * 2


def test_what_a_stock_file_said_in_its_own_words_is_kept(tmp_path: Path) -> None:
    path = session(tmp_path / "one.json", seed=1, keep_data=False)
    _, parsed = imported(tmp_path, str(path), "--tweakset", "stock")
    assert [one["stats"] for one in parsed["benchmarks"]] == [one["stats"] for one in json.loads(path.read_text())["benchmarks"]]


def test_tweak_sets_that_did_not_take_turns_are_said(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """Nor are they made pairs of: each is a run, five against five, with the times at which they ran."""
    run, _ = imported(tmp_path, *stock_arms(tmp_path, turns=False))
    assert run.warnings == snapshot
    assert [(one.pairs, one.primary and (one.primary.design, one.primary.n_candidate)) for one in compare(run)] == [
        (0, ("two-sample", 5))
    ] * 2


def test_a_workload_may_be_called_otherwise(tmp_path: Path) -> None:
    path = stock_file(tmp_path / "one.json", document([benchmark("test_sort", times(1))]))
    run, _ = imported(tmp_path, str(path), "--workload", "sorting")
    assert [(cell.id, cell.tweakset) for cell in run.cells] == [("pytest-benchmark/sorting-as-run-b1", "as-run")]


def test_facts_on_which_sources_differ_are_said_and_left_out(tmp_path: Path) -> None:
    one = session(tmp_path / "one.json", seed=1)
    other = document([benchmark("test_sort", times(2))], "2026-01-02T00:00:00+00:00", MACHINE | {"release": "6.9.0"})
    run, _ = imported(tmp_path, str(one), str(stock_file(tmp_path / "other.json", other)), "--tweakset", "stock")
    assert "kernel_release" not in run.machine
    (warning,) = run.warnings
    assert "kernel_release: 6.8.0, 6.9.0" in warning


def test_the_same_sources_make_the_same_run_wherever_they_lie(tmp_path: Path) -> None:
    first, _ = imported(tmp_path, str(session(tmp_path / "one.json", seed=1)))
    (tmp_path / "elsewhere").mkdir()
    second, _ = imported(tmp_path / "elsewhere", str(session(tmp_path / "elsewhere" / "renamed.json", seed=1)))
    assert first.run_id == second.run_id


def test_json_says_what_was_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    imported(tmp_path, str(session(tmp_path / "one.json", seed=1)), "--json", "--tweakset", "stock")
    said = json.loads(capsys.readouterr().out)
    assert (said["tweaksets"], said["blocks"], said["cells"], said["sources"]) == (["stock"], 1, 2, [f"{tmp_path}/one.json"])


def test_nothing_is_overwritten_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = str(session(tmp_path / "one.json", seed=1)), tmp_path / "precious.json"
    output.write_text("mine")
    assert "--force" in refused(capsys, "import", source, "--output", output)
    assert output.read_text() == "mine"
    assert main(["import", source, "--output", str(output), "--force"]) == 0
    assert load(output).cells
    assert str(tmp_path) in refused(capsys, "import", source, "--output", tmp_path, "--force")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.json", "precious.json"]


def test_sources_that_do_not_go_together_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    here = Path()
    for name in ("one.json", "two.json"):
        session(here / name, seed=1)
    elsewhere = document([benchmark("a", times(1))], "2026-02-01T00:00:00+00:00", MACHINE | {"cpu": {"brand_raw": "Other"}})
    stock_file(here / "foreign.json", elsewhere)
    saved_file(here)
    directory(here / "one_node", *CONFIGURATIONS)
    directory(here / "other" / "one_node", Like("exp1", manifest=SCRIPTS, seed=3))
    cases: dict[str, tuple[str, ...]] = {
        "a copy": ("one.json", "two.json"),
        "another machine": ("one.json", "foreign.json"),
        "ours": ("run.json",),
        "another format": ("one.json", "one_node"),
        "names its own": ("one_node", "--tweakset", "mine"),
        "the same name for another": ("one_node", "other/one_node"),
        "two workloads": ("one.json", "--workload", "mine"),
        "no file": ("--tweakset", "a"),
        "no file of the second": ("one.json", "--tweakset", "a", "--tweakset", "b"),
        "nothing": (),
        "not there": ("one.json", "nothing.json"),
    }
    complaints = refusals(capsys, {name: ("import", *words, "--output", "never.json") for name, words in cases.items()})
    assert not Path("never.json").exists()
    assert complaints | {"not writable": refused(capsys, "import", "one.json", "--output", "one.json/below.json")} == snapshot


@pytest.mark.parametrize("option", ["--tweakset", "--workload"])
def test_a_name_that_no_file_could_have_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    path = stock_file(tmp_path / "one.json", document([benchmark("test_sort", times(1))]))
    for name in ("", ".", "..", "../x", "a/b", "a\nb", "x" * 300):
        assert "be a file" in refused(capsys, "import", path, option, name, "--output", tmp_path / "ours.json")


def test_its_own_source_is_never_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = stock_file(tmp_path / "one.json", document([benchmark("test_sort", times(1))]))
    node = directory(tmp_path / "one_node", Like("base"), Like("exp1", manifest=SYSCTLS))
    for source, output in ((path, path), (node, node / "base" / "benchmark.csv")):
        before = output.read_bytes()
        assert "a source is" in refused(capsys, "import", str(source), "--output", str(output), "--force")
        assert output.read_bytes() == before
