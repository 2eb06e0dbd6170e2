"""The gate's limits as a file gives them; no slip of the pen goes unnoticed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.gate.limits import Limits, read, unknown
from analysis.terms import Refused
from analysis.wording import parse_percent

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

T = TypeVar("T")
FILE = """\
max_regression: 3%            # for all that is not named below
metrics: [primary]
tweaksets: [my-tuning]
baseline: stock
workloads:
  ddp_train: 10%
  lora_finetune: {step_time_p10_s: 5%, throughput_samples_per_s: 12.5 %}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "limits.yml"
    path.write_text(text, encoding="utf-8")
    return path


def answer(reading: Callable[[T], float], given: T) -> float | str:
    try:
        return reading(given)
    except Refused as error:
        return str(error)


def test_the_nearest_limit_holds(tmp_path: Path) -> None:
    limits = read(written(tmp_path, FILE))
    assert limits.limit_of("cnn_train", "step_time_p10_s") == 0.03
    assert limits.limit_of("ddp_train", "step_time_p10_s") == 0.10
    assert limits.limit_of("lora_finetune", "step_time_p10_s") == 0.05
    assert limits.limit_of("lora_finetune", "throughput_samples_per_s") == 0.125
    assert limits.limit_of("lora_finetune", "step_time_mean_s") == 0.03


def test_a_metric_with_a_limit_of_its_own_is_gated(tmp_path: Path) -> None:
    limits = read(written(tmp_path, FILE))
    assert limits.metrics_of("lora_finetune") == (
        "primary",
        "step_time_p10_s",
        "throughput_samples_per_s",
    )
    assert limits.metrics_of("ddp_train") == ("primary",)


@pytest.mark.parametrize(
    "name",
    [
        "../runs/stock.json",
        "stock.json",
        "stock.json:stock",
        "baselines/",
        "runs/*_stock.json",
        "/srv/stock.json",
    ],
)
def test_a_saved_baseline_is_found_from_the_files_own_folder(tmp_path: Path, name: str) -> None:
    limits = read(written(tmp_path, f'max_regression: 3%\nbaseline: "{name}"\n'))
    assert limits.baseline_tweakset is None
    assert limits.baseline_run == str(tmp_path / name)


def test_the_command_line_takes_the_place_of_the_default_alone(tmp_path: Path) -> None:
    limits = read(written(tmp_path, FILE), max_regression=0.07)
    assert limits.limit_of("cnn_train", "step_time_p10_s") == 0.07
    assert limits.limit_of("ddp_train", "step_time_p10_s") == 0.10


NOT_UNDERSTOOD = (
    "max_regression: inf%\n",
    "max_regression: nan%\n",
    "max_regression: 1e400%\n",
    f"max_regression: {'9' * 400}%\n",
    "",
    "# nothing\n",
    "workloads: {a: 3%}\n",
    "max_regresion: 3%\n",
    "max_regression: 3%\nmax_regression: 5%\n",
    "max_regression: 3%\nworkloads:\n  a: 3%\n  a: 5%\n",
    "max_regression: 3\n",
    "max_regression: 0.03\n",
    "max_regression: yes\n",
    "max_regression:\n",
    "max_regression: [3%]\n",
    "max_regression: 0%\n",
    "max_regression: 100%\n",
    "max_regression: -3%\n",
    "max_regression: .nan\n",
    "max_regression: 3%\nmetrics: primary\n",
    "max_regression: 3%\nmetrics: []\n",
    "max_regression: 3%\nmetrics: [primary, primary]\n",
    "max_regression: 3%\ntweaksets: [[a]]\n",
    "max_regression: 3%\nbaseline: [stock]\n",
    "max_regression: 3%\nbaseline: ''\n",
    "max_regression: 3%\nworkloads: 3%\n",
    "max_regression: 3%\nworkloads:\n  a:\n",
    "max_regression: 3%\nworkloads:\n  a: [3%]\n",
    "max_regression: 3%\nworkloads:\n  a: {step_time_p10_s: 0.5}\n",
    "max_regression: 3%\nworkloads:\n  a: {primary: 5%}\n",
    "max_regression: 3%\nworkloads: {[a]: 3%}\n",
    "max_regression: &m 3%\nworkloads: {a: *m}\n",
    "max_regression: 3%\n---\nmax_regression: 5%\n",
    "max_regression: 3%\nworkloads: {a: 3%\n",
    "max_regression: 3%\n\tworkloads: {}\n",
    "max_regression: 3%\nworkloads: " + "[" * 50_000,
    "max_regression: 3%\nbaseline: \x01\n",
    "- max_regression: 3%\n",
    "max_regression: 3% #" + " " * 70_000,
)


def test_what_is_not_understood_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("latin.yml").write_bytes(b"# ok\nbaseline: caf\xe9\n")
    complaints: dict[str, str] = {}
    for name in ("nothing.yml", ".", "latin.yml"):
        with pytest.raises(Refused) as refused:
            read(Path(name))
        complaints[name] = str(refused.value)
    for text in NOT_UNDERSTOOD:
        with pytest.raises(Refused) as refused:
            read(written(Path(), text))
        complaints[repr(text[:60])] = str(refused.value)
    assert all("\n" not in line for line in complaints.values())
    assert complaints == snapshot


def test_unknown_names_are_reported_with_those_of_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    of_file = read(written(Path(), FILE))
    metrics = read(
        written(
            Path(),
            "max_regression: 3%\nmetrics: [both, step_time]\nworkloads: {a: {latency: 3%}}\n",
        )
    )
    of_command = Limits(0.03, metrics=("step_time",), tweaksets=("mine",))
    assert [
        unknown(
            of_file,
            ["lora_finetune", "cnn_train"],
            ["stock", "tuned"],
            ["step_time_p10_s", "throughput_samples_per_s"],
        ),
        unknown(metrics, ["a"], ["stock"], ["step_time_p10_s"]),
        unknown(of_command, ["a"], ["stock"], ["step_time_p10_s"]),
    ] == snapshot


@given(st.integers(1, 9999))
def test_a_percentage_is_read_to_its_last_digit(hundredths: int) -> None:
    assert parse_percent(f"{hundredths / 100:.2f} %") == hundredths / 10_000


@given(st.text(max_size=12))
def test_a_text_is_a_share_from_0_to_1_or_refused_in_one_line(text: str) -> None:
    said = answer(parse_percent, text)
    assert 0 < said < 1 and "%" in text if isinstance(said, float) else len(said.splitlines()) == 1


@given(st.text(alphabet="max_regression: 3%\n[]{},'\"&*!|>-?#\\workloads", max_size=60))
def test_any_text_is_limits_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = written(tmp_path_factory.mktemp("limits"), text)
    said = answer(lambda path: read(path).max_regression, path)
    assert 0 < said < 1 if isinstance(said, float) else len(said.splitlines()) == 1
