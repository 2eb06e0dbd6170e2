"""The gate: a pass is proven, a regression is beyond chance, the rest stays undecided."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest

from analysis.__main__ import main
from analysis.compare import compare
from analysis.load import from_json
from analysis.studies.gate.gate import Gate, blocks_needed, gate
from analysis.studies.gate.limits import Limits
from tests.analysis.answers import printed
from tests.stock_files import benchmark, document, stock_file, times
from tests.synthetic import AGAIN, JSON, STOCK, Arm, Made, saved_file, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


RUNS = Path(__file__).parents[4] / "data" / "runs"
REAL = RUNS / "2026-11-21_gate_amd-epyc-2cpu.json"
SWAPPINESS = {"vm.swappiness": "1"}
MADE = Made(arms=(STOCK, AGAIN), blocks=10)


def with_arm(gain: float, **how: object) -> Made:
    return replace(
        MADE,
        arms=(STOCK, Arm("tuned", gain, SWAPPINESS)),
        **how,  # type: ignore[arg-type]
    )


def answer(made: Made, limit: float = 0.03) -> Gate:
    return gate(compare(from_json(saved_run(made), "run")), Limits(limit), ("base", "candidate"))


def test_a_loss_beyond_the_limit_is_a_regression() -> None:
    """10 % slower at a run CV of 1 %: far from chance, and more than the 3 % allowed."""
    (one,) = answer(with_arm(-0.10)).rulings
    assert one.ruling == "regression"
    assert one.loss == pytest.approx(0.10, abs=0.02)


def test_a_pass_needs_the_upper_bound_below_the_limit() -> None:
    found = answer(with_arm(0.0))
    (one,) = found.rulings
    assert (found.ruling, one.ruling) == ("pass", "pass")
    assert one.loss_high is not None
    assert one.loss_high < 0.03


def test_a_real_but_allowed_loss_passes() -> None:
    """1 % slower, certain, and 3 % is allowed: the purpose of a limit."""
    (one,) = answer(with_arm(-0.01, run_cv=0.002, step_cv=0.002)).rulings
    assert one.comparison.verdict == "regressed"
    assert one.ruling == "pass"


def test_too_little_data_is_undecided_with_the_blocks_needed() -> None:
    (one,) = answer(with_arm(0.0, run_cv=0.06, seed=3)).rulings
    assert one.ruling == "undecided"
    assert one.blocks_needed is not None
    assert one.blocks_needed > 10


def test_many_equal_candidates_are_no_regression() -> None:
    """30 idle sets, 20 runs: Holm keeps runs with a false alarm at 5 % (99 % band: 0 to 4)."""
    arms = (STOCK, *(Arm(f"idle-{at}", 0.0, SWAPPINESS) for at in range(30)))
    made = Made(arms=arms, blocks=6, steps=3, warmup=0, run_cv=0.03)
    alarms = sum(
        answer(replace(made, seed=seed), limit=0.001).ruling == "regression" for seed in range(20)
    )
    assert alarms <= 4


def test_a_pass_is_wrong_one_time_in_twenty_at_most() -> None:
    """A candidate that loses exactly the limit passes in at most 5 % of runs (99 %: 12 of 120)."""
    made = with_arm(-0.03, steps=3, warmup=0, run_cv=0.01)
    passes = sum(answer(replace(made, seed=seed)).ruling == "pass" for seed in range(120))
    assert passes <= 12


def test_the_blocks_needed_pass_an_equal_candidate_in_80_percent() -> None:
    """S = √2 · 2 %: (t_0.95 + t_0.80) · s / √n meets ln(1/0.97); 100 runs try the count out."""
    (one,) = answer(with_arm(0.0, run_cv=0.02, step_cv=0.001)).rulings
    assert one.comparison.primary
    needed = blocks_needed(replace(one.comparison.primary, log_sd=2**0.5 * 0.02), 0.03)
    assert needed is not None
    made = with_arm(0.0, run_cv=0.02, step_cv=0.001, blocks=needed, steps=2, warmup=0)
    passes = sum(answer(replace(made, seed=seed)).ruling == "pass" for seed in range(100))
    assert 0.70 * 100 <= passes <= 0.90 * 100


@pytest.mark.parametrize(
    ("design", "limit", "needed"), [("paired", 0.03, 5), ("two-sample", 0.04, 4)]
)
def test_how_many_are_needed_is_the_arithmetic_of_the_design(
    design: Literal["paired", "two-sample"], limit: float, needed: int
) -> None:
    """Pairs: (2.132 + 0.941) · 2 % / √5 = 2.7 %, less than -ln(0.97); 4 give 3.3.

    Arms: (1.943 + 0.906) · 2 % · √(2/4) = 4 %; 3 give 5.
    """
    (one,) = answer(with_arm(0.0)).rulings
    assert one.comparison.primary
    assert (
        blocks_needed(replace(one.comparison.primary, design=design, log_sd=0.02), limit) == needed
    )


@pytest.mark.parametrize(
    ("tweakset", "metric", "code"),
    [
        ("tcp-buffers-tiny", "primary", 1),
        ("tcp-buffers-tiny", "cpu_s_per_step", 1),
        ("stock-again", "primary", 0),
    ],
)
def test_a_slow_tweak_set_turns_the_gate_red_and_stock_green(
    tweakset: str, metric: str, code: int
) -> None:
    """Real runs: TCP windows of 16 KiB under `ddp_train`, and the untouched machine again.

    CPU time is a cost, though its name has a `per` in it: 2.5 times that of stock is no gain.
    """
    assert (
        main(
            [
                "gate",
                f"{REAL}:stock",
                f"{REAL}:{tweakset}",
                "--max-regression",
                "5%",
                "--metric",
                metric,
            ]
        )
        == code
    )


def test_a_baseline_of_another_day_is_gated_relative_to_stock() -> None:
    """Alone, the runs are undecided: tweak or day? Relative to their own stock they compare."""
    stored, now = (RUNS / f"turns_2026-11-{day}_amd-epyc-2cpu.json.xz" for day in (25, 28))
    slow = [
        f"{stored}:malloc-keep-memory",
        f"{now}:stock-again",
        "--max-regression",
        "10%",
        "--workloads",
        "cnn_train",
    ]
    assert main(["gate", *slow]) == 3
    assert main(["gate", *slow, "--relative-to", "stock"]) == 1
    equal = [f"{stored}:stock-again", f"{now}:stock-again", *slow[2:]]
    assert main(["gate", *equal, "--relative-to", "stock"]) == 0


def test_bad_usage_is_exit_code_2_and_never_a_pass(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    """A folder with a damaged file is refused whole: skipping the file could pass by default."""
    monkeypatch.chdir(tmp_path)
    saved_file(tmp_path, with_arm(0.0), "run.json")
    Path("broken.json").write_text('{"benchmarks": [')
    for name in ("folder", "week"):
        Path(name).mkdir()
        for seed in (1, 2):
            saved_file(tmp_path, with_arm(0.0, seed=seed), f"{name}/{seed}.json")
    Path("folder/2.json").write_text("{}")
    arms, limit = ("run.json:stock", "run.json:tuned"), ("--max-regression", "3%")
    cases: dict[str, tuple[str, ...]] = {
        "no limit": arms,
        "no percentage": (*arms, "--max-regression", "3"),
        "unknown tweak set": ("run.json:stock", "run.json:other", *limit),
        "no match": ("*.none", "run.json", *limit),
        "broken": ("run.json", "broken.json", *limit),
        "unknown metric": (*arms, *limit, "--metric", "luck"),
        "nowhere to write": (*arms, *limit, "--junit", "folder"),
        "damaged folder": ("folder", "run.json", *limit),
        "last week's runs too": ("week/*.json:stock", "week/*.json:tuned", *limit),
    }
    complaints = {}
    for name, words in cases.items():
        assert main(["gate", *words]) == 2, name
        complaints[name] = capsys.readouterr().err
    assert complaints == snapshot


def test_limits_by_workload_and_metric(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A 10 % loss: allowed for one workload, too much for the other, in both limited metrics."""
    path = saved_file(tmp_path, with_arm(-0.10, workloads=("cnn_train", "ddp_train")))
    limits = tmp_path / "gate.yaml"
    limits.write_text(
        "max_regression: 3%\nworkloads:\n  ddp_train: 30%\n  cnn_train: {step_time_median_s: 40%}\n"
    )
    assert main(["gate", f"{path}:stock", f"{path}:tuned", "--limits", str(limits), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    found = {
        (one["comparison"]["workload"], one["metric"]["name"]): one["ruling"]
        for one in said["rulings"]
    }
    assert found == {
        ("cnn_train", "throughput_samples_per_s"): "regression",
        ("cnn_train", "step_time_median_s"): "pass",
        ("ddp_train", "throughput_samples_per_s"): "pass",
    }
    assert said["exit_code"] == 1


def test_step_summary_annotations_and_files_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved_file(tmp_path, with_arm(-0.10))
    summary = tmp_path / "summary.md"
    summary.write_text("earlier step\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    files = {name: tmp_path / f"{name}.out" for name in ("junit", "comment")}
    options = [word for name, file in files.items() for word in (f"--{name}", str(file))]
    assert main(["gate", f"{path}:stock", f"{path}:tuned", "--max-regression", "3%", *options]) == 1
    assert "::error" in capsys.readouterr().out
    assert summary.read_text().startswith("earlier step\n<!-- deeptweak-gate -->")
    assert files["comment"].read_text().startswith("<!-- deeptweak-gate -->")
    assert "<failure" in files["junit"].read_text()


@pytest.mark.parametrize("gain", [0.0, -0.01])
def test_survivors_of_failed_cells_do_not_pass(gain: float) -> None:
    broken = dict.fromkeys((1, 2), ("failed", "out of memory"))
    made = replace(
        with_arm(gain, run_cv=0.002, step_cv=0.002),
        arms=(STOCK, Arm("tuned", gain, SWAPPINESS, broken=broken)),
    )
    (one,) = answer(made).rulings
    assert one.ruling == "undecided"


def moved(made: Made) -> JSON:
    saved = saved_run(made)
    for part in (saved["deeptweak"]["cells"], [one["extra_info"] for one in saved["benchmarks"]]):
        for cell in part:
            if cell["workload"] == "ddp_train" and cell["tweakset"] == "tuned":
                cell["tweakset"], cell["id"] = "other", cell["id"].replace("tuned", "other")
    saved["deeptweak"]["tweaksets"]["other"] = saved["deeptweak"]["tweaksets"]["tuned"]
    return saved


def test_pages(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(tmp_path)
    both = with_arm(0.0, workloads=("cnn_train", "ddp_train"))
    saved_file(tmp_path, with_arm(-0.10), "slow.json")
    saved_file(tmp_path, with_arm(0.0), "equal.json")
    saved_file(tmp_path, with_arm(0.0, run_cv=0.06, seed=3), "noisy.json")
    saved_file(tmp_path, with_arm(0.0, blocks=1), "short.json")
    Path("other.json").write_text(json.dumps(moved(both)))
    Path("gate.yaml").write_text("max_regression: 10%\nworkloads: {ddp_train: 5%}\n")
    Path("base").mkdir()
    for seed in range(1, 5):
        saved_file(
            tmp_path,
            replace(MADE, seed=seed, workloads=("cnn_train", "ddp_train")),
            f"base/{seed}.json",
        )
    saved_file(
        tmp_path,
        replace(MADE, arms=(STOCK, AGAIN, Arm("tuned", 0.0, SWAPPINESS)), seed=5),
        "less.json",
    )
    limit = ("--max-regression", "3%")
    cases: dict[str, tuple[int, tuple[str, ...]]] = {
        "regression": (1, ("slow.json:stock", "slow.json:tuned", *limit)),
        "pass": (0, ("equal.json", "equal.json", *limit)),
        "noise": (3, ("noisy.json:stock", "noisy.json:tuned", *limit)),
        "one block": (3, ("short.json:stock", "short.json:tuned", *limit)),
        "one run an arm": (3, ("slow.json", "noisy.json", *limit)),
        "a workload is gone": (3, ("base", "less.json", "--max-regression", "20%")),
        "a workload with a limit was not run": (
            3,
            ("other.json:stock", "other.json:tuned", "--limits", "gate.yaml"),
        ),
    }
    assert {
        name: printed(capsys, "gate", *words, code=code) for name, (code, words) in cases.items()
    } == snapshot


def nightly(folder: Path, nights: int, slower: float = 1.0) -> list[Path]:
    """Write nights without rounds: means scatter by tens of percent, minima by 0.5 %."""
    rng = np.random.default_rng(7)
    folder.mkdir()
    paths = []
    for night in range(nights):
        level_s = 0.002 * float(np.exp(rng.normal(0, 0.005))) * slower
        data = [level_s * (1 + float(rng.exponential(0.01))) for _ in range(40)]
        data[5] += level_s * float(rng.exponential(12))
        one = benchmark("test_sort", data, keep_data=False)
        one["stats"]["min"] = level_s
        day = f"2026-01-{1 + night:02}T0{3 if slower == 1.0 else 9}:00:00+00:00"
        paths.append(stock_file(folder / f"{night:04}.json", document([one], day)))
    return paths


@pytest.mark.parametrize("word", ["min", "step_time_min_s"])
def test_a_metric_goes_by_pytest_benchmark_s_name_too(
    tmp_path: Path, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nightly(tmp_path / "old", 8)
    last = nightly(tmp_path / "new", 8, slower=1.08)[-1]
    command = ["gate", str(tmp_path / "old"), str(last), "--max-regression=3%"]
    assert main([*command, "--metric", word]) == 1
    limits = tmp_path / "limits.yml"
    limits.write_text(f"max_regression: 3%\nmetrics: [{word}]\n")
    assert main([*command[:3], "--limits", str(limits)]) == 1
    limits.write_text(
        f"max_regression: 3%\nmetrics: [{word}]\nworkloads:\n  tests/test_speed.py::test_sort: "
        f"{{{word}: 20%}}\n"
    )
    assert main([*command[:3], "--limits", str(limits)]) == 0
    assert "scatters" not in capsys.readouterr().out


@pytest.mark.parametrize(("slower", "code"), [(1.08, 1), (1.0, 0)])
def test_one_odd_accepted_night_does_not_blind_the_gate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], slower: float, code: int
) -> None:
    """14 nights, 1 % scatter, one 1.5 times as long: that one is named, the others judge."""
    folder = tmp_path / "accepted"
    folder.mkdir()
    for night in range(14):
        data = [benchmark("test_sort", times(night, 0.002 * (1.5 if night == 6 else 1)))]
        stock_file(
            folder / f"{night:02}.json",
            document(data, f"2026-01-{1 + night:02}T03:00:00.000001+00:00"),
        )
    saved = document(
        [benchmark("test_sort", times(99, 0.002 * slower))], "2026-01-15T03:00:00.000001+00:00"
    )
    candidate = stock_file(tmp_path / "new.json", saved)
    assert main(["gate", str(folder), str(candidate), "--max-regression=5%"]) == code
    page = " ".join(capsys.readouterr().out.split())
    odd = re.search(
        rf"{folder}/06.json is ([\d.]+) % slower .* by throughput than the other runs of its arm: "
        r"an outlier",
        page,
    )
    assert odd, page
    assert float(odd[1]) == pytest.approx(33.3, abs=2)
