"""DeepTweak's directories get our names and units; gaps are named, damage is refused by line."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.arms import read_arm
from analysis.compare import compare, compare_arms
from analysis.load import load
from analysis.plots.page import stamp_of
from analysis.terms import Cell, Run, Unreadable
from analysis.wording import gpus_of
from tests.conftest import REFERENCE
from tests.deeptweak_like import SCRIPTS, SYSCTLS, Like, directory, step_times, table

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


BASE, EXP1, EXP2 = (
    Like("base"),
    Like("exp1", manifest=SYSCTLS, run_effect=0.1),
    Like("exp2", steps=50, manifest=SCRIPTS),
)


@pytest.fixture
def node(tmp_path: Path) -> Path:
    return directory(tmp_path / "one_node", BASE, EXP1, EXP2)


def steps_of(cell: Cell) -> tuple[float, ...]:
    assert cell.steps is not None
    return cell.steps.wall_s


def one(folder: Path, made: Like) -> Cell:
    (cell,) = load(directory(folder, made)).cells
    return cell


def refusal(folder: Path) -> str:
    with pytest.raises(Unreadable) as refused:
        load(folder)
    assert "\n" not in str(refused.value)
    return str(refused.value).replace(str(folder), ".")


def read_or_refused(folder: Path) -> tuple[tuple[Cell, ...], str]:
    try:
        return load(folder).cells, ""
    except Unreadable as error:
        return (), str(error)


def warnings_of(folder: Path) -> tuple[str, ...]:
    return tuple(line.replace(f"{folder}/", "") for line in load(folder).warnings)


def test_a_node_types_folder_is_a_run_of_one_cell_an_arm(node: Path) -> None:
    run = load(node)
    assert [(cell.workload, cell.tweakset, cell.block, cell.order) for cell in run.cells] == [
        ("one_node", "base", 1, 0),
        ("one_node", "exp1", 1, 1),
        ("one_node", "exp2", 1, 2),
    ]
    assert (run.format, run.baseline, run.replicated) == ("deeptweak-csv", "base", False)
    assert [steps_of(cell) for cell in run.cells] == [
        tuple(step_times(made)) for made in (BASE, EXP1, EXP2)
    ]


def test_two_folders_are_compared_as_tweak_sets_of_their_node(node: Path) -> None:
    refused: list[str] = []
    ways = [
        [read_arm(f"{node}{sign}{name}", refused) for name in ("base", "exp1")]
        for sign in ("/", ":")
    ]
    ((named,), (marked,)) = (compare_arms(base, [candidate]) for base, candidate in ways)
    assert (named, refused) == (marked, [])
    assert (named.baseline, named.tweakset, named.verdict) == ("base", "exp1", "inconclusive")
    assert named.observed is not None


@pytest.mark.parametrize(
    ("configurations", "baseline"),
    [
        ((Like("a", manifest=SYSCTLS), Like("plain")), "plain"),
        ((Like("a", manifest=SYSCTLS), Like("plain", manifest=None)), "plain"),
        ((Like("b", manifest=SYSCTLS), Like("a", manifest=SCRIPTS)), "a"),
    ],
    ids=["comments only", "no manifest", "none untouched"],
)
def test_the_baseline_is_base_else_untouched_else_the_first(
    tmp_path: Path, configurations: tuple[Like, ...], baseline: str
) -> None:
    assert load(directory(tmp_path, *configurations)).baseline == baseline


def test_columns_have_our_names_and_units(tmp_path: Path) -> None:
    cell = one(tmp_path, Like("base", written_mib=300.0))
    assert cell.series["gpu0_mem_used_bytes"][0] == 4.7e9
    # The column says MB and means MiB.
    assert cell.series["disk_written_since_boot_bytes"][0] == 300 * 2**20
    assert cell.telemetry["disk_written_bytes_total"] == pytest.approx(0.1 * 59 * 2**20)
    assert cell.series["swap_used_bytes"] == (0.0,) * 60  # a measured 0
    assert cell.facts == {"parameters": 2_000_000, "trainable_parameters": 4_000}
    assert [value is None for value in cell.series["loss"]] == [True] * 20 + [False] * 40


def test_several_gpus_lose_power_and_clocks(tmp_path: Path) -> None:
    """The logger falls back to another program, whose `gpu_mem_util` is the used memory share."""
    cell = one(tmp_path, Like("base", several_gpus=True))
    assert {
        "gpu0_power_w",
        "gpu0_sm_clock_mhz",
        "gpu0_mem_clock_mhz",
    } <= cell.telemetry_missing.keys()
    assert "gpu0_energy_j_total" not in cell.telemetry
    assert "gpu0_mem_util_percent" not in cell.series
    assert cell.series["gpu0_mem_used_percent"][0] == 21.0  # 3.6e9 of 16 GiB


def test_one_logged_gpu_is_not_said_to_be_the_only_one(tmp_path: Path) -> None:
    """The logger asks GPU 0, also on a node with two; only columns of a second GPU show two."""
    run = load(directory(tmp_path / "one_node_two_gpu", Like("base", several_gpus=True)))
    assert gpus_of(run.machine) == ["unknown, 16 GiB (number not recorded)"]
    assert "1 ×" not in stamp_of(run)
    assert gpus_of({"gpus": [{"name": "A100"}, {"name": "A100"}]}) == ["2 × A100"]


def test_warnings(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    directory(
        tmp_path,
        Like("base", without=("gpu_temp_C", "batch_size"), written_mib=60_000),
        Like("exp1", several_gpus=True),
        EXP2,
    )
    base, exp2 = tmp_path / "base" / "benchmark.csv", tmp_path / "exp2" / "benchmark.csv"
    base.write_text(base.read_text().replace("fd_count", "weather"))
    lines = exp2.read_text().splitlines()
    exp2.write_text("\n".join([*lines[:10], *lines[13:], table(replace(EXP2, seed=2))]))
    assert warnings_of(tmp_path) == snapshot
    cells = load(tmp_path).cells
    assert [(cell.tweakset, cell.block) for cell in cells] == [
        ("base", 1),
        ("exp1", 1),
        ("exp2", 1),
        ("exp2", 2),
    ]
    assert cells[0].steps is not None
    assert set(cells[0].steps.samples) == {1}


def test_a_run_appended_to_the_file_is_a_second_block(tmp_path: Path) -> None:
    directory(tmp_path, EXP1, BASE)
    again = replace(BASE, seed=2, steps=40)
    path = tmp_path / "base" / "benchmark.csv"
    path.write_text(f"{path.read_text()}\n{table(again)}\n")
    run = load(tmp_path)
    assert [(cell.tweakset, cell.block, len(steps_of(cell))) for cell in run.cells] == [
        ("base", 1, 60),
        ("base", 2, 40),
        ("exp1", 1, 60),
    ]
    assert run.replicated
    assert {len(values) for values in run.cells[1].series.values()} == {40}


def test_a_second_run_without_a_header_is_found_by_step_count(tmp_path: Path) -> None:
    path = directory(tmp_path, BASE) / "base" / "benchmark.csv"
    path.write_text(f"{path.read_text()}\n{table(replace(BASE, seed=2)).partition(chr(10))[2]}")
    assert [cell.block for cell in load(tmp_path).cells] == [1, 2]


def test_an_arm_with_a_damaged_manifest_has_no_known_settings(node: Path) -> None:
    (node / "exp1" / "skyhook.yaml").write_text("kind: [")
    run = load(node)
    assert "exp1" not in run.tweaksets
    assert "skyhook.yaml" in run.warnings[0]


DAMAGED = {
    "no time": Like("base", cells={(5, "step_time"): ""}),
    "a time of zero": Like("base", cells={(5, "step_time"): "0.0"}),
    "a negative time": Like("base", cells={(5, "step_time"): "-0.4"}),
    "an endless time": Like("base", cells={(5, "step_time"): "inf"}),
    "a time in words": Like("base", cells={(5, "step_time"): "0.4 s"}),
    "milliseconds": Like("base", cells={(n, "step_time"): "500" for n in range(1, 61)}),
    "half a sample": Like("base", cells={(5, "batch_size"): "0.5"}),
    "no samples": Like("base", cells={(5, "batch_size"): "0"}),
    "half a step": Like("base", cells={(5, "step"): "4.5"}),
    "a row twice": Like("base", cells={(5, "step"): "4"}),
    "too many digits": Like("base", cells={(5, "mem_used"): "9" * 30}),
    "an open quote": Like("base", cells={(5, "loss"): '"'}),
    "no time column": Like("base", without=("step_time",)),
    "nothing but a header": Like("base", steps=0),
}


def test_refusals(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    messages = {name: refusal(directory(tmp_path / name, made)) for name, made in DAMAGED.items()}
    twice = directory(tmp_path / "a run and its copy", BASE) / "base" / "benchmark.csv"
    twice.write_text(f"{twice.read_text()}\n{twice.read_text()}")
    messages["a run and its copy"] = refusal(tmp_path / "a run and its copy")
    empty = directory(tmp_path / "no configuration", BASE, EXP1)
    for path in empty.glob("*/benchmark.csv"):
        path.write_text("")
    messages["no configuration"] = refusal(empty)
    for content in (b"\xff\xfe", b"step_time,step_time\n1,1", b"a,b\n1,2"):
        (tmp_path / "benchmark.csv").write_bytes(content)
        messages[repr(content)] = refusal(tmp_path)
    assert messages == snapshot


SMALL = table(Like("base", steps=8)).encode()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    at=st.integers(0, len(SMALL)),
    cut=st.integers(0, 300),
    put=st.one_of(st.binary(max_size=12), st.sampled_from([b"1e308", b"\n", b",", b'"'])),
)
def test_any_altered_table_is_read_or_refused_in_one_line(
    tmp_path: Path, at: int, cut: int, put: bytes
) -> None:
    (tmp_path / "benchmark.csv").write_bytes(SMALL[:at] + put + SMALL[at + cut :])
    cells, refused = read_or_refused(tmp_path)
    assert (refused.count("\n"), refused.startswith(str(tmp_path))) == (0, not cells)
    assert all(
        math.isfinite(value)
        for cell in cells
        for value in (*cell.metrics.values(), *cell.telemetry.values())
    )


@pytest.fixture(scope="module")
def reference() -> Run:
    return load(REFERENCE / "deeptweak" / "one_node_one_gpu")


@pytest.mark.needs("reference")
class TestTheStudyItself:
    """Figures that the specification recomputed from the study's files: A1-A7, A16-A18, A22."""

    def test_rows_and_empty_cells(self, reference: Run) -> None:
        """A1, A2: only the trainer's own columns have empty cells, 500 each."""
        assert [len(steps_of(cell)) for cell in reference.cells] == [1555, 1507, 1511, 1561]
        for cell in reference.cells:
            empty = {
                name: values.count(None) for name, values in cell.series.items() if None in values
            }
            assert empty == {"loss": 500, "learning_rate": 500, "grad_norm": 500}

    def test_what_was_not_measured(self, reference: Run) -> None:
        """A3: swap_used is 0 too, and measured."""
        for cell in reference.cells:
            assert cell.telemetry_missing.keys() == {
                "tokens_per_s",
                "net_all_tx_bytes_per_s",
                "net_all_rx_bytes_per_s",
            }
            assert set(cell.series["swap_used_bytes"]) == {0.0}

    @pytest.mark.parametrize(
        ("metric", "expected", "within"),
        [
            ("step_time_mean_s", (0.612958, 0.623800, 0.614088, 0.618420), 1e-6),
            ("step_time_median_s", (0.474, 0.479, 0.476, 0.476), 1e-9),
            ("throughput_samples_per_s", (1.63143, 1.60308, 1.62843, 1.61703), 1e-5),
        ],
        ids=["A4", "A5", "A6"],
    )
    def test_metrics(
        self, reference: Run, metric: str, expected: tuple[float, ...], within: float
    ) -> None:
        assert [cell.metrics[metric] for cell in reference.cells] == pytest.approx(
            expected, abs=within
        )

    def test_the_mean_of_rates_that_misled_the_study(self, reference: Run) -> None:
        """A7, from the column: 16 to 18 % above the throughput, in another order."""
        means = [
            math.fsum(value or 0 for value in cell.series["samples_per_s"]) / len(steps_of(cell))
            for cell in reference.cells
        ]
        assert means == pytest.approx((1.92542, 1.87160, 1.89826, 1.87616), abs=1e-5)

    def test_energy(self, reference: Run) -> None:
        """A16: Σ power · step time / N."""
        joules = [
            cell.telemetry["gpu0_energy_j_total"] / len(steps_of(cell)) for cell in reference.cells
        ]
        assert joules == pytest.approx((37.383, 38.801, 38.226, 40.659), abs=0.005)

    def test_utilisation(self, reference: Run) -> None:
        """A17."""
        values = reference.cells[0].series["gpu0_util_percent"]
        assert reference.cells[0].telemetry["gpu0_util_percent_mean"] == pytest.approx(
            93.696, abs=0.001
        )
        assert values.count(100.0) / len(values) == pytest.approx(0.572, abs=0.001)

    def test_the_learning_rate_tells_how_long_the_training_was_to_be(self, reference: Run) -> None:
        """A18: lr = 5e-5 · (1 - s / total); the rate logged at step s is in the row after it."""
        for cell in reference.cells:
            rates = cell.series["learning_rate"]
            changes = [
                (row, now)
                for row, (before, now) in enumerate(pairwise(rates), 1)
                if now is not None and now != before
            ]
            assert len(changes) == 3
            assert [row / (1 - rate / 5e-5) for row, rate in changes] == pytest.approx(
                [45_033] * 3, abs=1
            )

    def test_the_verdict(self, reference: Run) -> None:
        """A22."""
        assert {(one.tweakset, one.verdict) for one in compare(reference)} == {
            (name, "inconclusive") for name in ("exp1", "exp2", "exp3")
        }
