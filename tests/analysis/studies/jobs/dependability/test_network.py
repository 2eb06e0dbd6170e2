"""Step times over lines that lose packets: each shape is made, and must be told for what it is."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from analysis.studies.jobs.dependability import network
from analysis.studies.jobs.dependability.network import LossyLine
from analysis.studies.jobs.dependability.network import lines as judged
from tests.analysis.studies.jobs.dependability.made_faults import told_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SENT, MSS, RTT_S, COMPUTE_S, CLEAN_S = 2.2e6, 1448.0, 0.02, 0.03, 0.01


@dataclass(frozen=True)
class MadeLine:
    """How long communication takes at a loss, and how many timeouts a step has then."""

    spent_s: Callable[[float], float]
    timeouts: Callable[[float], float] = lambda _: 0.0
    losses: tuple[float, ...] = (0.0, 0.1, 0.3, 1.0, 3.0)
    compute_s: float | None = COMPUTE_S
    congestion: str = "reno"
    rtt_s: float = RTT_S


def saved(folder: Path, made: MadeLine, blocks: int = 5) -> str:
    names = [f"ddp_network:loss_percent={loss:g}:delay_ms=10" for loss in made.losses]
    rows: dict[tuple[str, int], dict[str, list[dict[str, Any]]]] = {}
    for name, loss in zip(names, made.losses, strict=True):
        counts = {"segments_out": 1600, "segments_retransmitted": 16 * loss, "timeouts": made.timeouts(loss / 100), "loss_probes": 0}
        line = {"packets": 10000, "dropped": 100 * loss, "loss_percent_measured": loss}
        rows |= {(name, block): {"network": [{"step": at, **counts} for at in range(3)], "line": [line]} for block in range(1, blocks + 1)}
    run = told_run(rows, steps_s={name: COMPUTE_S + made.spent_s(loss / 100) for name, loss in zip(names, made.losses, strict=True)})
    for name, loss in zip(names, made.losses, strict=True):
        run["deeptweak"]["workloads"][name]["params"] = {"loss_percent": f"{loss:g}", "delay_ms": "10", "mtu": 1500}
    for one in run["benchmarks"]:
        facts = {"rtt_s": made.rtt_s, "mss_bytes": MSS, "gradient_bytes": SENT, "compute_s": made.compute_s, "congestion": made.congestion}
        one["extra_info"]["workload_facts"] |= facts
    path = folder / "run.json"
    path.write_text(json.dumps(run))
    return str(path)


def line_of(folder: Path, made: MadeLine, blocks: int = 5) -> LossyLine:
    (found,) = judged(network.trained([saved(folder, made, blocks)], []))
    return found


def root(loss: float) -> float:
    return CLEAN_S + (8 * SENT / network.rate_bit_s(MSS, RTT_S, loss) if loss else 0.0)


def test_communication_by_mathis_is_told_for_what_it_is(tmp_path: Path) -> None:
    found = line_of(tmp_path, MadeLine(root, losses=(0.0, 0.3, 1.0, 3.0)))
    assert found.exponent is not None
    assert found.exponent.value == pytest.approx(0.5, abs=0.02)
    assert (found.shape, found.fitted) == ("√p", (0.003, 0.01, 0.03))
    assert [row.bound for row in found.losses] == ["not told", "Mathis", "Mathis", "Mathis"]
    last = found.losses[-1]
    # 8·2.2 MB at 1448·8/0.02·√50 bit/s.
    assert last.mathis_s == pytest.approx(8 * SENT / (MSS * 8 / RTT_S * math.sqrt(50)))
    assert last.ratio == pytest.approx(1, abs=0.1)
    assert last.lost == pytest.approx(0.03)
    assert last.again == pytest.approx(0.03)


def test_each_lost_packet_that_costs_a_timeout_makes_it_proportional(tmp_path: Path) -> None:
    made = MadeLine(lambda p: 0.002 + 100 * 0.2 * p, lambda p: 100 * p)
    found = line_of(tmp_path, made)
    assert found.exponent is not None
    assert found.exponent.value == pytest.approx(1, abs=0.1)
    assert {row.bound for row in found.losses[2:]} == {"timeouts"}


def test_a_step_that_no_loss_makes_longer_is_bound_by_its_arithmetic(tmp_path: Path) -> None:
    found = line_of(tmp_path, MadeLine(lambda _: CLEAN_S))
    assert {row.bound for row in found.losses if row.loss} == {"compute"}
    assert (found.exponent, found.shape) == (None, "not fitted")


def test_communication_that_is_not_doubled_is_bound_by_the_line_and_not_fitted(tmp_path: Path) -> None:
    found = line_of(tmp_path, MadeLine(lambda p: CLEAN_S * (1 + 20 * p)))
    assert {row.bound for row in found.losses if row.loss >= 0.01} == {"line"}
    assert found.shape == "not fitted"


def test_without_the_time_of_the_arithmetic_what_a_step_takes_longer_is_fitted(tmp_path: Path) -> None:
    found = line_of(tmp_path, MadeLine(root, losses=(0.0, 1.0, 3.0), compute_s=None))
    assert found.of_excess
    assert found.exponent is not None
    assert found.exponent.value == pytest.approx(0.5, abs=0.05)


def test_one_block_has_no_interval_and_no_word_for_its_shape(tmp_path: Path) -> None:
    found = line_of(tmp_path, MadeLine(root, losses=(0.0, 1.0, 3.0)), blocks=1)
    assert found.exponent is not None
    assert (found.exponent.low, found.shape) == (None, "open")
    assert [row.p for row in found.losses] == [None, None, None]


def test_slowdowns_are_adjusted_over_all_losses_of_all_lines(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    found = line_of(tmp_path, MadeLine(lambda _: CLEAN_S * float(np.exp(rng.normal(0, 0.3)))))
    ps = [(row.slowdown.p, row.p) for row in found.losses if row.slowdown is not None]
    first, adjusted = min((raw, after) for raw, after in ps if raw is not None and after is not None)
    assert adjusted == pytest.approx(min(1, 4 * first))


def test_facts_that_are_no_numbers_refuse_the_cell_and_counts_that_are_missing_are_missing(tmp_path: Path) -> None:
    path = saved(tmp_path, MadeLine(root, losses=(0.0, 1.0)), blocks=1)
    run = json.loads((tmp_path / "run.json").read_text())
    one, other = run["benchmarks"]
    one["extra_info"]["workload_facts"]["rtt_s"] = "short"
    del other["extra_info"]["report"]["network"][1]["timeouts"]
    (tmp_path / "run.json").write_text(json.dumps(run))
    refused: list[str] = []
    (found,) = network.trained([path], refused)
    assert "rtt_s" in refused[0]
    assert (found.timeouts, found.again) == (None, None)


@pytest.mark.parametrize("loss", ["much", "150", "-1", "nan"])
def test_a_loss_that_is_none_refuses_its_cells(tmp_path: Path, loss: str) -> None:
    path = saved(tmp_path, MadeLine(root, losses=(0.0, 1.0)), blocks=1)
    run = json.loads((tmp_path / "run.json").read_text())
    run["deeptweak"]["workloads"]["ddp_network:loss_percent=1:delay_ms=10"]["params"]["loss_percent"] = loss
    (tmp_path / "run.json").write_text(json.dumps(run))
    refused: list[str] = []
    assert len(network.trained([path], refused)) == 1
    assert ["loss_percent" in line for line in refused] == [True]


@pytest.mark.parametrize(("power", "shape"), [(0.5, "√p"), (1.0, "linear"), (2.0, "neither")])
def test_shapes_have_their_names(tmp_path: Path, power: float, shape: str) -> None:
    found = line_of(tmp_path, MadeLine(lambda p: 1e-3 + 100 * p**power if p else 1e-3))
    assert found.shape == shape
