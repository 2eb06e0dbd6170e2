"""The original's procedure recovers the parameters behind traces, and its own old slopes."""

from __future__ import annotations

import json
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from analysis.studies.power import fit_original, traces
from analysis.studies.power.fit_original import slopes_by_batch
from analysis.studies.power.material import gather
from analysis.terms import Refused
from control.power import catalog
from control.power.models import laws
from control.power.models.laws import mem_prior_percent, padded, sm_prior_percent
from control.power.terms import Partition
from tests.analysis.studies.power import made_traces
from tests.conftest import REFERENCE

if TYPE_CHECKING:
    from control.power.models.reference import Reference

TRUTH = made_traces.Truth()
FOLDER = REFERENCE / "pctodl"
SETS = sorted(FOLDER.glob("reconstructed_anchor_*.csv"))


@pytest.fixture(scope="module")
def found() -> Reference:
    return fit_original.fit(gather(made_traces.rows(), "made", 5001.0, "3080Ti"))


def test_parameters_come_back_from_exact_traces(found: Reference) -> None:
    """A9: utilisation was rounded to 0.1 points.

    Power's base and static curve are within a fifth of a watt.
    """
    assert astuple(found.sm_single) == pytest.approx(astuple(TRUTH.sm_single), rel=0.02)
    assert (found.throughput.kappa_a, found.throughput.kappa_b) == pytest.approx(
        (1.5, 20.0), rel=0.005
    )
    assert (found.throughput.gamma, found.power.gamma) == pytest.approx((0.55, 1.25), rel=0.02)
    assert found.power.base_w == pytest.approx(30.0, abs=0.2)
    clocks = np.arange(210.0, 1951.0, 15.0)
    assert (
        np.abs(laws.static_w(found.power, clocks) - laws.static_w(TRUTH.power, clocks)).max() <= 0.2
    )


def test_curves_of_several_processes_return_without_parameters(found: Reference) -> None:
    """Memory over the grid within 0.1 points (RMS), SMs over full partitions within 2.

    The line of the SM prior is read off full partitions, which lie on it only where they are least
    filled; κ then makes up for it.
    """
    among = padded(catalog.grid())
    full = padded([one for one in catalog.grid() if len(one.shares) == 100 // one.shares[0]])
    memory = [mem_prior_percent(its.mem_single, its.mem_system, among) for its in (found, TRUTH)]
    sms = [sm_prior_percent(its.sm_single, its.sm_system, full) for its in (found, TRUTH)]
    assert [
        np.sqrt(np.mean((said - true) ** 2)) <= most
        for (said, true), most in ((memory, 0.1), (sms, 2.0))
    ] == [True, True]


@pytest.mark.parametrize(
    ("lacks", "said"),
    [
        (lambda row: row.network == traces.STATIC, "4 rows of `static`"),
        (
            lambda row: row.target_mhz is not None and row.network != traces.STATIC,
            "a partition at three clocks",
        ),
        (lambda row: len(row.shares) == 1, "6 rows of one process"),
    ],
)
def test_insufficient_traces_are_refused_by_the_missing_part(lacks: object, said: str) -> None:
    rows = [row for row in made_traces.rows() if not lacks(row)]  # type: ignore[operator]
    with pytest.raises(Refused, match=said):
        fit_original.fit(gather(rows, "made", 5001.0, "3080Ti"))


@pytest.mark.needs("reference")
@pytest.mark.parametrize(
    "path", SETS, ids=lambda path: path.stem.removeprefix("reconstructed_anchor_")
)
def test_slopes_of_reconstructed_anchors_are_those_once_shipped(path: Path) -> None:
    """Within 5 %, bucket by bucket (A10)."""
    network, name = path.stem.removeprefix("reconstructed_anchor_").split("__")
    shipped = json.loads((FOLDER / "fitted_params.json").read_text())[f"{network}|{name}"][
        "throughput_params"
    ]["kappa_per_batch"]
    rows = traces.read(path)
    partitions = [Partition(row.shares, row.batches) for row in rows]
    mem, throughput = (
        np.array([getattr(row, one) for row in rows])
        for one in ("mem_util_percent", "throughput_images_per_s")
    )
    found = slopes_by_batch(partitions, mem, throughput)
    assert found == pytest.approx(
        {int(bucket): slope for bucket, slope in shipped.items()}, rel=0.05
    )
