"""Zeus' tables: real training under a power limit (A13)."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import pytest

from analysis.studies.power import limits as zeus
from analysis.studies.power.limits import Trained
from analysis.terms import Refused, Unreadable
from tests.conftest import REFERENCE

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion


HEAD = ",".join(zeus.COLUMNS)


@pytest.mark.needs("reference")
@pytest.mark.parametrize(
    ("gpu", "rows", "above", "best", "error"),
    [("v100", 476, 8, (256, 150.0, 4148.7), 0.013), ("a40", 453, 39, (64, 150.0, 5825.6), 0.030)],
)
def test_the_tables_say_what_the_study_counted(gpu: str, rows: int, above: int, best: tuple[int, float, float], error: float) -> None:
    """Rows; means above the limit; best batch, limit and epoch of resnet50 at a mean of 150 W; what a line between limits misses."""
    table = zeus.read(REFERENCE / "pctodl" / f"zeus_power_limit_{gpu}.csv")
    assert len(table) == rows
    assert len(zeus.above_limit(table)) == above
    fastest = zeus.best(table, "resnet50", 150)
    assert (fastest.batch, fastest.limit_w, round(fastest.epoch_s, 1)) == best
    assert median(zeus.interpolation_errors(table)) == pytest.approx(error, abs=5e-4)


def job(limit_w: float, epoch_s: float, power_mean_w: float, batch: int = 8) -> Trained:
    return Trained("d", "n", batch, "adam", limit_w, epoch_s, power_mean_w)


def test_the_best_is_the_fastest_that_was_measured_below_the_cap() -> None:
    table = [job(100, 9.0, 104.0), job(125, 5.0, 118.0), job(150, 4.0, 149.0)]
    assert zeus.best(table, "n", 120).epoch_s == 5.0
    assert zeus.above_limit(table) == table[:1]


def test_a_cap_nothing_holds_is_answered_with_the_smallest_that_something_does() -> None:
    for network, words in (("n", "104.0 W"), ("m", "'m'")):
        with pytest.raises(Refused, match=words):
            zeus.best([job(100, 9.0, 104.0)], network, 90)


def test_a_line_between_limits_is_one_of_speed() -> None:
    """Epochs of 10, 4 and 2 s are speeds of 0.1, 0.25 and 0.5/s: the line says 0.3 in the middle, 20 % too much."""
    assert zeus.interpolation_errors([job(200, 2.0, 1.0), job(100, 10.0, 1.0), job(150, 4.0, 1.0)]) == [pytest.approx(0.2)]


def test_limits_of_one_job_are_in_order_and_apart_from_other_jobs() -> None:
    table = [job(200, 2.0, 1.0), job(100, 4.0, 1.0), job(100, 5.0, 1.0, batch=16)]
    assert [[row.limit_w for row in rows] for rows in zeus.by_limit(table).values()] == [[100, 200], [100]]


def test_a_wrong_table_is_refused(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    cells = ("8,adam,100,0,90", "8,adam,100,inf,90", "8,adam,100", "eight,adam,100,1,90", "0.5,adam,100,1,90", "8,adam,100,1e-320,90")
    messages = []
    for text in ("a,b\n1,2\n", *(f"{HEAD}\nd,n,{one}\n" for one in cells)):
        (tmp_path / "zeus.csv").write_text(text)
        with pytest.raises(Unreadable) as refused:
            zeus.read(tmp_path / "zeus.csv")
        messages.append(str(refused.value).replace(f"{tmp_path}/", ""))
    assert messages == snapshot
