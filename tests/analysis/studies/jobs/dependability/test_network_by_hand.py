"""One line at a time, by hand: a percent of loss at a round trip of 100 ms, segments of 1460 bytes, a megabyte of gradients."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.studies.jobs.dependability import network
from analysis.studies.jobs.dependability.intervals import advise, time_per_work
from analysis.studies.jobs.dependability.network import TrainedCell, _bound, rate_with_timeouts_bit_s
from analysis.studies.jobs.dependability.network import lines as judged
from analysis.studies.jobs.estimates import Ratio
from tests.analysis.studies.jobs.dependability.test_network import MadeLine, saved

if TYPE_CHECKING:
    from pathlib import Path

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
    """Five in each of three steps."""
    found = network.trained([saved(tmp_path, MadeLine(lambda _: 0.01, timeouts=lambda _: 5.0))], [])
    assert {one.timeouts for one in found} == {5}


def test_no_more_than_every_loss_is_a_timeout() -> None:
    """At 40 % 3·√(3p/8) is 1.16, and counts as 1: 1/(0.1·√(0.8/3) + 0.2·0.4·(1 + 32·0.16)) segments/s."""
    assert rate_with_timeouts_bit_s(1, 0.1, 0.4, 0.2) / 8 == pytest.approx(1 / (0.1 * math.sqrt(0.8 / 3) + 0.2 * 0.4 * 6.12))


def test_a_checkpoint_of_half_the_time_between_failures_is_too_dear_and_a_restart_is_in_the_time() -> None:
    found = advise(5, 10, 2)
    assert found.too_dear
    assert found.daly_overhead == pytest.approx(time_per_work(found.daly_s, 5, 10, 2) - 1)
    assert found.young_overhead == pytest.approx(time_per_work(10, 5, 10, 2) - 1)
    assert found.best_overhead <= min(found.daly_overhead, found.young_overhead)
