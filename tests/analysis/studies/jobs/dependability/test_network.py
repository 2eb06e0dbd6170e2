"""Step times over lines that lose packets: each shape is made, and must be told for what it is."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.jobs import network
from analysis.studies.jobs.estimates import Ratio
from analysis.studies.jobs.network import (
    LossyLine,
    TrainedCell,
    _bound,
    rate_bit_s,
    rate_with_timeouts_bit_s,
    timeouts_share,
    window,
)
from analysis.studies.jobs.network import lines as judged
from tests.analysis.answers import known
from tests.analysis.studies.jobs.dependability.made_faults import told_run

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
    assert known(found.exponent).value == pytest.approx(0.5, abs=0.02)
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
    assert known(found.exponent).value == pytest.approx(1, abs=0.1)
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
    assert known(found.exponent).value == pytest.approx(0.5, abs=0.05)


def test_one_block_has_no_interval_and_no_word_for_its_shape(tmp_path: Path) -> None:
    found = line_of(tmp_path, MadeLine(root, losses=(0.0, 1.0, 3.0)), blocks=1)
    assert (known(found.exponent).low, found.shape) == (None, "open")
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


LOSSES, RTTS = st.floats(1e-6, 0.3), st.floats(1e-5, 1.0)


def test_mathis_for_a_percent_at_a_tenth_of_a_second() -> None:
    """1460·8/0.1·√(1.5/0.01) = 1.43050 Mbit/s."""
    assert rate_bit_s(1460, 0.1, 0.01) == pytest.approx(1.43050e6, rel=1e-5)
    assert window(0.01) == pytest.approx(12.2474, rel=1e-5)


@given(loss=LOSSES, rtt_s=RTTS)
def test_timeouts_only_take_time_and_without_them_it_is_mathis(loss: float, rtt_s: float) -> None:
    assert rate_with_timeouts_bit_s(1448, rtt_s, loss, 0) == pytest.approx(rate_bit_s(1448, rtt_s, loss))
    assert rate_with_timeouts_bit_s(1448, rtt_s, loss) == pytest.approx(rate_bit_s(1448, rtt_s, loss) * (1 - timeouts_share(rtt_s, loss)))


def test_padhyes_rate_by_hand() -> None:
    """At p = 1 %, RTT 100 ms, RTO 200 ms: 1/(0.1·√(2/300) + 0.2·3√(3/800)·0.01·1.0032) = 117.18 segments/s."""
    assert rate_with_timeouts_bit_s(1, 0.1, 0.01, 0.2) / 8 == pytest.approx(117.18, rel=1e-4)


def test_on_a_short_round_trip_it_is_timeouts_that_take_the_time() -> None:
    """The loopback of a machine, 50 µs, against a line of 100 ms."""
    assert timeouts_share(50e-6, 0.01) > 0.95
    assert timeouts_share(0.1, 0.01) < 0.05


CLEAN = TrainedCell(("r", 1), "line", 0.0, 1.5, 0.1, 1460, 1e6, 1.0, "reno", "", None, None, None)
LOSSY = replace(CLEAN, loss=0.01, step_s=12.185)


def test_a_megabyte_at_mathis_rate_and_at_padhyes() -> None:
    """8 Mbit at 1.43050 Mbit/s and at 117.18 · 1460 · 8 bit/s: 5.5925 and 5.845 s; 11.185 s of communication are twice the first."""
    (line,) = judged([CLEAN, LOSSY])
    clean, lossy = line.losses
    assert (clean.mathis_s, clean.padhye_s, clean.ratio) == (None, None, None)
    assert lossy.mathis_s == pytest.approx(5.5925, rel=1e-4)
    assert lossy.padhye_s == pytest.approx(5.845, rel=1e-4)
    assert lossy.ratio == pytest.approx(2, rel=1e-4)
    assert not line.of_excess


def test_where_no_cell_tells_its_arithmetic_communication_is_what_a_step_takes_longer() -> None:
    (line,) = judged([replace(one, compute_s=None) for one in (CLEAN, LOSSY)])
    assert line.of_excess
    assert [one.communication_s.value for one in line.losses if one.communication_s] == pytest.approx([0, 12.185 - 1.5])


def test_from_which_loss_timeouts_rule_is_said() -> None:
    """√(3/(2p)) is 3.9 segments at 10 %; of a transfer's time timeouts take 37 % there and 67 % at 20 %."""
    (line,) = judged([CLEAN, *(replace(LOSSY, loss=loss) for loss in (0.01, 0.1, 0.2))])
    small, waits = line.notes
    assert ("10 %" in small, "20 %" in waits) == (True, True)


@pytest.mark.parametrize(
    ("spent_s", "clean_s", "slower", "told", "bound"),
    [
        (1.0, None, (Ratio(0.8, 3), 0.01), (1.0, None), "compute"),  # faster for certain
        (1.0, None, (Ratio(1.2, 3), 0.2), (1.0, None), "compute"),  # not shown to be slower
        (1.0, 0.6, (None, None), (1.0, None), "line"),
        (1.0, 0.4, (None, None), (1.0, 2.5), "timeouts"),  # 2.5 · 0.2 s are half
        (1.0, 0.4, (None, None), (1.0, 2.4), "Mathis"),
        (1.9, None, (None, None), (1.0, None), "Mathis"),
        (3.0, None, (None, None), (1.0, None), "other"),
        (0.4, None, (None, None), (1.0, None), "other"),
        (0.4, None, (None, None), (None, None), "not told"),
    ],
)
def test_what_bounds_a_step(
    spent_s: float,
    clean_s: float | None,
    slower: tuple[Ratio | None, float | None],
    told: tuple[float | None, float | None],
    bound: str,
) -> None:
    assert _bound(spent_s, clean_s, slower, told) == bound


def test_timeouts_are_counted_by_the_step(tmp_path: Path) -> None:
    found = network.trained([saved(tmp_path, MadeLine(lambda _: 0.01, timeouts=lambda _: 5.0))], [])
    assert {one.timeouts for one in found} == {5}


def test_no_more_than_every_loss_is_a_timeout() -> None:
    """At 40 % 3·√(3p/8) is 1.16, and counts as 1: 1/(0.1·√(0.8/3) + 0.2·0.4·(1 + 32·0.16)) segments/s."""
    assert rate_with_timeouts_bit_s(1, 0.1, 0.4, 0.2) / 8 == pytest.approx(1 / (0.1 * math.sqrt(0.8 / 3) + 0.2 * 0.4 * 6.12))
