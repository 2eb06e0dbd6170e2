"""Batch × power limit under a cap: within a hundredth of the true best, from a part of the points, on real measurements."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from analysis.studies.power import limits
from analysis.studies.power.limits import At, Job, Measured, first, judge, predict, search
from analysis.terms import Unreadable
from tests.analysis.studies.power.command import Power, refusals
from tests.conftest import REFERENCE

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


TABLES = {"V100": "zeus_power_limit_v100.csv", "A40": "zeus_power_limit_a40.csv"}
Grid = dict[At, Measured]


def made(batch: int, limit_w: float) -> Measured:
    """A card that draws 180 W at most, and less with small batches; speed rises with the root of the power."""
    power = min(limit_w, 180.0 * batch / (batch + 4.0))
    return Measured(At(batch, limit_w), power**0.5 * batch / (batch + 8.0), power)


MADE = {At(batch, limit): made(batch, limit) for batch in (8, 16, 32, 64, 128, 256) for limit in np.arange(100.0, 276.0, 25.0)}


@cache
def jobs(table: str) -> dict[Job, Grid]:
    return limits.read(REFERENCE / "pctodl" / TABLES[table])


def test_what_it_answers_was_measured_and_is_within_the_cap() -> None:
    found = search(list(MADE), MADE.__getitem__, 140.0)
    assert found.best in found.measured
    assert found.best is not None
    assert found.best.power_w <= 140.0


@pytest.mark.parametrize("cap_w", [110.0, 170.0, 300.0])
def test_a_smooth_card_is_searched_in_less_than_half_its_points(cap_w: float) -> None:
    found = search(list(MADE), MADE.__getitem__, cap_w)
    best = max((one for one in MADE.values() if one.power_w <= cap_w), key=lambda one: one.speed)
    assert found.best is not None
    assert found.best.speed >= 0.99 * best.speed
    assert len(found.measured) < len(MADE) / 2


def test_a_cap_that_nothing_keeps_has_no_answer() -> None:
    assert search(list(MADE), MADE.__getitem__, 50.0).best is None


def test_it_begins_at_corners_edges_and_middle() -> None:
    assert len(first(list(MADE))) == 9
    assert {at.batch for at in first(list(MADE))} == {8, 64, 256}
    assert {at.limit_w for at in first(list(MADE))} == {100.0, 200.0, 275.0}


def test_points_that_were_not_measured_are_predicted_with_an_interval_that_holds_them() -> None:
    start = first(list(MADE))
    rest = [at for at in MADE if at not in start]
    speed, speed_log_sd, _, _ = predict([MADE[at] for at in start], rest)
    off = np.log(speed / [MADE[at].speed for at in rest])
    assert np.abs(off).mean() < 0.05
    assert np.mean(np.abs(off) < 2.0 * speed_log_sd) > 0.8


@pytest.mark.needs("reference")
@pytest.mark.parametrize(("table", "epoch_s"), [("V100", 4148.7), ("A40", 5825.6)])
def test_resnet50_under_150_w_is_found_on_both_cards(table: str, epoch_s: float) -> None:
    grid = next(grid for (_, network, _), grid in jobs(table).items() if network == "resnet50")
    found = search(list(grid), grid.__getitem__, 150.0)
    assert found.best is not None
    assert found.best.power_w <= 150.0
    assert 1.0 / found.best.speed == pytest.approx(epoch_s, rel=0.01)
    assert len(found.measured) < len(grid) / 3


@pytest.mark.slow
@pytest.mark.needs("reference")
@pytest.mark.parametrize("table", TABLES)
def test_real_jobs_are_within_one_percent_of_their_best(table: str) -> None:
    """Caps are every third limit of a table; the true best is the fastest row whose mean power, not its nominal limit, keeps the cap."""
    judged = [judge(job, grid, cap_w) for job, grid in jobs(table).items() for cap_w in sorted({at.limit_w for at in grid})[::3]]
    for one in judged:
        assert (one.answer is None) == (one.best is None), one
        assert one.slower is None or one.slower <= 0.01, one
    assert np.mean([one.measured / one.points for one in judged]) < 0.3


def write_table(path: Path) -> None:
    """The made card's points as a table of one job, and a second job at one point."""
    head = "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n"
    rows = [f"images,net,{at.batch},sgd,{at.limit_w},{1.0 / one.speed},{one.power_w}\n" for at, one in MADE.items()]
    path.write_text(head + "".join(rows) + "images,tiny,8,sgd,100,3.0,90.0\n")


def test_the_command_says_the_answer_its_points_and_how_far_it_is_from_the_best(
    tmp_path: Path, power: Power, snapshot: SnapshotAssertion
) -> None:
    write_table(tmp_path / "table.csv")
    for cap in ("140", "20"):
        assert re.sub(r"\d+(\.\d+)?", "#", power("limits", tmp_path / "table.csv", "--cap", cap, "--network", "net").out) == snapshot(
            name=cap
        )
    (said,) = power("limits", tmp_path / "table.csv", "--cap", "20", "--network", "net", "--json").json["jobs"]
    assert (said["batch"], said["slower_than_best"], said["points"]) == (None, None, 48)


def test_a_wrong_table_is_refused(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    cells = ("8,adam,100,0,90", "8,adam,100,inf,90", "8,adam,100", "eight,adam,100,1,90", "0.5,adam,100,1,90", "8,adam,100,1e-320,90")
    messages = []
    for text in ("a,b\n1,2\n", *(f"{','.join(limits.COLUMNS)}\nd,n,{one}\n" for one in cells)):
        (tmp_path / "zeus.csv").write_text(text)
        with pytest.raises(Unreadable) as refused:
            limits.read(tmp_path / "zeus.csv")
        messages.append(str(refused.value).replace(f"{tmp_path}/", ""))
    assert messages == snapshot


def test_refusals(tmp_path: Path, power: Power, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "table.csv")
    calls = [["--cap", "0"], ["--cap", "100", "--network", "nets"], ["--cap", "100", "--network", "tiny"]]
    assert refusals(power, "limits", [["table.csv", *args] for args in calls]) == snapshot
