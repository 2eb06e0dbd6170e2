"""`import deeptweak`: saved runs in Python say what the commands say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import deeptweak
from analysis.__main__ import main
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_file, saved_run

HOUSE = Path(__file__).parents[1]
RUNS = HOUSE / "data/runs"
GATE = str(RUNS / "2026-11-21_gate_amd-epyc-2cpu.json")
JOBS = str(RUNS / "cluster-scheduling_2026-11-22_amd-epyc-2cpu.json")
POLICY = {"arm": "policy", "baseline": "fifo"}


def test_the_import_is_cheap() -> None:
    code = (
        "import sys, deeptweak; print({'pandas', 'numpy', 'analysis', 'control'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=HOUSE, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("set()\n", "")


def test_another_module_of_that_name_is_named(tmp_path: Path) -> None:
    (tmp_path / "analysis.py").write_text("")
    code = "import analysis, deeptweak; deeptweak.load('x.json')"
    found = os.environ | {"PYTHONPATH": f"{tmp_path}:{HOUSE}"}
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=found,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        ended.returncode,
        f"{tmp_path / 'analysis.py'} is imported as 'analysis'" in ended.stderr,
    ) == (1, True), ended.stderr


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ([], {}),
        (["--baseline=stock-again"], {"baseline": "stock-again"}),
        (
            ["--tweaks=tcp-buffers-tiny", "--adjust=bh"],
            {"tweaks": "tcp-buffers-tiny", "adjust": "bh"},
        ),
        (["--relative-to=stock"], {"relative_to": "stock"}),
        (["--arm=workload", "--baseline=ddp_train"], {"arm": "workload", "baseline": "ddp_train"}),
    ],
    ids=["plain", "baseline", "one tweak set", "relative", "workloads"],
)
def test_a_comparison_is_the_command_s(
    words: list[str], given: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    runs = deeptweak.load(GATE)
    codes = {
        form: (main(["compare", GATE, *words, *form]), capsys.readouterr())
        for form in ((), ("--json",), ("--csv",))
    }
    if codes[()][0]:
        with pytest.raises(deeptweak.Refused) as refusal:
            deeptweak.compare(runs, **given)
        assert str(refusal.value) in codes[()][1].err
        return
    judgement = deeptweak.compare(runs, **given)
    assert judgement.to_dict() == json.loads(codes[("--json",)][1].out)
    said = [line for line in codes[()][1].out.splitlines() if not line.startswith("next:")]
    assert str(judgement).splitlines() == said
    table = pd.read_csv(StringIO(codes[("--csv",)][1].out))
    pd.testing.assert_frame_equal(judgement.table(), table, check_dtype=False)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"arm": "polcy", "baseline": "fifo"}, "Did you mean 'policy'"),
        ({"arm": "policy"}, "needs --baseline with one of the levels"),
        ({**POLICY, "metric": "mean_wait"}, "Did you mean 'mean_wait_s'"),
        ({"metric": "mean_wait_s"}, "--metric needs --arm"),
        ({"baseline": "stok"}, "Did you mean 'stock'"),
        ({"adjust": "bonferroni"}, "available: holm, bh"),
        ({"workloads": "job_strem"}, "no workload 'job_strem'"),
    ],
)
def test_an_impossible_comparison_raises_the_commands_message(
    given: dict[str, str], words: str
) -> None:
    with pytest.raises(deeptweak.Refused, match=words):
        deeptweak.compare(deeptweak.load(JOBS), **given)


def test_an_arm_not_compared_has_missing_values_in_the_table(tmp_path: Path) -> None:
    broken = Arm("exp1", broken=dict.fromkeys(range(1, 7), ("failed", "out of memory")))
    table = deeptweak.compare(
        deeptweak.load(saved_file(tmp_path, Made(arms=(STOCK, broken))))
    ).table()
    assert table.loc[0, "verdict"] == "not comparable"
    assert table[["gain", "gain_low", "gain_high", "p_adjusted"]].isna().all(axis=None)


def test_doubts_are_warnings_each_once(tmp_path: Path) -> None:
    """`load` tells those of a run, `compare` those that a comparison shows."""
    path = saved_file(
        tmp_path,
        Made(arms=(STOCK, Arm("stock-again", gain=0.2)), baseline=("stock", "stock-again")),
    )
    saved = json.loads(path.read_text())
    saved["deeptweak"]["interrupted"] = True
    path.write_text(json.dumps(saved))
    with pytest.warns(UserWarning, match="interrupted") as at_load:
        runs = deeptweak.load(path)
    assert [str(one.message).partition(" (")[0] for one in at_load] == [
        f"{path}: the run was interrupted: later blocks are missing"
    ]
    assert runs.warnings == tuple(str(one.message) for one in at_load)
    with pytest.warns(UserWarning, match="A/A") as at_comparison:
        judgement = deeptweak.compare(runs)
    assert [str(one.message).partition(":")[0] for one in at_comparison] == ["A/A check"]
    assert [one.filename for one in (*at_load, *at_comparison)] == [__file__] * 2
    assert [line.partition(":")[0] for line in judgement.warnings] == [
        "the run was interrupted",
        "A/A check",
    ]
    assert set(judgement.verdicts()) == {"not comparable"}


def test_a_copy_under_a_new_name_is_refused(tmp_path: Path) -> None:
    saved = saved_run()
    (tmp_path / "one.json").write_text(json.dumps(saved))
    saved["deeptweak"]["run_id"] = "another"
    (tmp_path / "two.json").write_text(json.dumps(saved))
    with pytest.raises(deeptweak.Refused, match="exactly the times"):
        deeptweak.load(tmp_path)


def test_evidence_is_the_command_s(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sysctl = {"vm.swappiness": "10"}
    for seed in (1, 145, 289):  # a day apart
        saved_file(
            tmp_path,
            Made(arms=(STOCK, AGAIN, Arm("exp1", gain=0.1, requested=sysctl)), seed=seed),
            f"{seed}.json",
        )
    assert main(["evidence", str(tmp_path), "--by=machine", "--json"]) == 0
    with pytest.warns(UserWarning, match="grouping by machine was not applied"):
        judgement = deeptweak.evidence(deeptweak.load(tmp_path), by="machine")
    assert len(judgement.warnings) == 1
    assert judgement.to_dict() == json.loads(capsys.readouterr().out)
    assert judgement.verdicts().to_dict() == {("cnn_train", "exp1"): "helps everywhere measured"}
    with pytest.raises(deeptweak.Refused, match="Did you mean 'machine'"):
        deeptweak.evidence(deeptweak.load(tmp_path), by="machin")


def resumed(folder: Path) -> tuple[Path, Path]:
    """Write part of a run and the whole of it, as `--resume` leaves them."""
    part, whole = folder / "part.json", folder / "whole.json"
    saved = saved_run()
    whole.write_text(json.dumps(saved))
    saved["benchmarks"], saved["deeptweak"]["cells"] = (
        saved["benchmarks"][:4],
        saved["deeptweak"]["cells"][:4],
    )
    saved["deeptweak"]["design"]["order"] = saved["deeptweak"]["design"]["order"][:4]
    part.write_text(json.dumps(saved))
    return part, whole


def test_a_report_is_written_and_never_over_another_file(tmp_path: Path) -> None:
    runs = deeptweak.load(saved_file(tmp_path))
    page = deeptweak.report(runs, tmp_path / "r.html")
    assert page == tmp_path / "r.html"
    assert deeptweak.compare(runs).title.split(":")[0] in page.read_text()
    (tmp_path / "notes.html").write_text("mine")
    with pytest.raises(deeptweak.Refused, match="is not a DeepTweak report"):
        deeptweak.report(runs, tmp_path / "notes.html")


def test_a_report_is_the_command_s(tmp_path: Path) -> None:
    runs = resumed(tmp_path)
    page = tmp_path / "r.html"
    assert main(["report", *map(str, runs), "--output", str(page)]) == 0
    of_command = page.read_text()
    with pytest.warns(UserWarning, match="is the same run as"):
        deeptweak.report(deeptweak.load(*runs), page)
    assert page.read_text() == of_command
    assert "12 of 12 cells" in of_command


def test_a_notebook_shows_foreign_text_harmlessly(tmp_path: Path) -> None:
    path = saved_file(tmp_path, Made(arms=(STOCK, AGAIN, Arm("<script>x"))))
    html = deeptweak.compare(deeptweak.load(path))._repr_html_()  # what a notebook calls
    assert "<script>" not in html
    assert "&lt;script&gt;x" in html


def test_a_path_in_the_place_of_runs_is_named() -> None:
    with pytest.raises(TypeError, match=r"str was given, but runs from deeptweak\.load are needed"):
        deeptweak.compare(GATE)  # type: ignore[arg-type]  # that is the mistake
