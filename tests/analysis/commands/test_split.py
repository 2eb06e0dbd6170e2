"""`split` writes files that stock pytest-benchmark compares, tweak set with tweak set."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from analysis.load import load
from tests.analysis.answers import refusals
from tests.deeptweak_like import SYSCTLS, Like, directory
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_file, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

COMMITTED = next((Path(__file__).parents[3] / "data" / "runs").glob("2*.json"))
MADE = Made(arms=(STOCK, AGAIN, Arm("faster", 0.1, {"vm.swappiness": "1"}, broken={2: ("failed", "out of memory")})), blocks=3)


def stock_compare(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = "from pytest_benchmark.cli import main; main()"
    return subprocess.run([sys.executable, "-c", program, "compare", *words], cwd=folder, capture_output=True, text=True, check=False)


def names(path: Path) -> list[str]:
    return sorted(one["fullname"] for one in json.loads(path.read_text())["benchmarks"])


def test_every_tweak_set_has_a_file_with_the_same_names(tmp_path: Path) -> None:
    out = tmp_path / "by-tweak"
    assert main(["split", str(saved_file(tmp_path, MADE)), "--output", str(out)]) == 0
    expected = [f"benchmarks/bench_made_up.py::bench[cnn_train-b{block}]" for block in (1, 2, 3)]
    assert names(out / "stock.json") == names(out / "stock-again.json") == expected
    assert names(out / "faster.json") == [expected[0], expected[2]]  # what failed is in none


def test_the_tweak_set_is_in_no_name_and_where_it_came_from_is_kept(tmp_path: Path) -> None:
    main(["split", str(saved_file(tmp_path, MADE)), "--output", str(tmp_path)])
    for one in json.loads((tmp_path / "faster.json").read_text())["benchmarks"]:
        assert "faster" not in json.dumps({name: one[name] for name in ("name", "fullname", "param", "params", "group")})
        assert one["extra_info"]["tweakset"] == "faster"
        assert one["extra_info"]["run_id"] == "made-up-1"


def test_pytest_benchmark_compares_the_tweak_sets_of_a_real_run(tmp_path: Path) -> None:
    """One group a benchmark, both files in it, and the numbers of the run."""
    assert main(["split", str(COMMITTED), "--output", str(tmp_path)]) == 0
    done = stock_compare(tmp_path, "stock.json", "stock-again.json", "--group-by=fullname", "--columns=median,rounds")
    assert done.returncode == 0, done.stderr
    shared = set(names(tmp_path / "stock.json")) & set(names(tmp_path / "stock-again.json"))
    assert len(shared) == done.stdout.count("': 2 tests") > 0
    assert "': 1 tests" not in done.stdout


def test_the_files_are_stock_files_to_us_too(tmp_path: Path) -> None:
    main(["split", str(COMMITTED), "--output", str(tmp_path)])
    whole, part = load(COMMITTED), load(tmp_path / "stock.json")
    measured = [cell for cell in whole.cells if cell.tweakset == "stock" and cell.outcome == "measured"]
    assert part.format == "pytest-benchmark"
    assert [cell.metrics["step_time_median_s"] for cell in part.cells] == pytest.approx(
        [cell.metrics["step_time_median_s"] for cell in measured]
    )


@pytest.mark.slow
def test_an_imported_run_can_be_split(tmp_path: Path) -> None:
    node = directory(tmp_path / "one_node", Like("base"), Like("exp1", manifest=SYSCTLS, run_effect=0.1))
    assert main(["import", str(node), "--output", str(tmp_path / "ours.json")]) == 0
    assert main(["split", str(tmp_path / "ours.json"), "--output", str(tmp_path / "out")]) == 0
    done = stock_compare(tmp_path / "out", "base.json", "exp1.json", "--group-by=fullname")
    assert (done.returncode, done.stdout.count("imported[one_node-b1]': 2 tests")) == (0, 1)


def test_json_lists_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["split", str(saved_file(tmp_path, MADE)), "--output", str(tmp_path), "--json"])
    assert json.loads(capsys.readouterr().out)["files"][str(tmp_path / "faster.json")] == 2


def test_nothing_is_overwritten_unasked_and_then_nothing_at_all_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "stock-again.json").write_text("mine")
    words = ["split", str(saved_file(tmp_path, MADE)), "--output", str(tmp_path)]
    assert main(words) == 2
    assert "--force" in capsys.readouterr().err
    assert not (tmp_path / "stock.json").exists()
    assert (tmp_path / "stock-again.json").read_text() == "mine"
    assert main([*words, "--force"]) == 0
    assert len(names(tmp_path / "stock-again.json")) == 3


BROKEN = Made(arms=(Arm("stock", broken=dict.fromkeys((1, 2, 3), ("failed", "out of memory"))),), blocks=3)


def test_a_run_that_cannot_be_split_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    saved_file(tmp_path, BROKEN, "broken.json")
    saved_file(tmp_path, Made(arms=(STOCK, Arm("../../etc/cron")), blocks=3), "path.json")
    other, bare = saved_run(MADE), saved_run(MADE)
    other["benchmarks"][0]["extra_info"]["id"] = "other"
    Path("other.json").write_text(json.dumps(other))
    del bare["deeptweak"]
    bare["benchmarks"] = json.loads(COMMITTED.read_text())["benchmarks"][:1]
    Path("bare.json").write_text(json.dumps(bare))
    cases = {name: ("split", f"{name}.json", "--output", "out") for name in ("broken", "path", "other", "bare")}
    assert refusals(capsys, cases) == snapshot
    assert not Path("out").exists()


def test_its_own_source_is_never_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved_file(tmp_path, MADE, "stock.json")
    before = path.read_bytes()
    (tmp_path / "link.json").symlink_to("stock.json")
    for source in (path, tmp_path / "link.json"):
        assert main(["split", str(source), "--output", str(tmp_path), "--force"]) == 2
        assert "a source is" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert not (tmp_path / "faster.json").exists()


def test_two_pieces_are_two_runs_and_say_of_which_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All pieces were saved at the same time on the same machine, and are no copies of one another."""
    main(["split", str(COMMITTED), "--output", str(tmp_path)])
    whole = load(COMMITTED)
    one, other = (tmp_path / f"{name}.json" for name in ("stock", "stock-again"))
    assert [load(path).run_id for path in (one, other)] == [f"{whole.run_id}/stock", f"{whole.run_id}/stock-again"]
    capsys.readouterr()
    assert main(["compare", str(one), str(other), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {line["verdict"] for line in said["comparisons"]} == {"inconclusive"}
    words = ["--tweakset", "stock", str(one), "--tweakset", "other", str(other)]
    assert main(["import", *words, "--output", str(tmp_path / "again.json")]) == 0
    assert list(load(tmp_path / "again.json").tweaksets) == ["stock", "other"]
