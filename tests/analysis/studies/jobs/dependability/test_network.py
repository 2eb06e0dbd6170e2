"""Step times over lines that lose packets."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.studies.jobs import network
from analysis.studies.jobs.network import LossyLine
from analysis.studies.jobs.network import lines as judged
from tests.analysis.answers import known
from tests.analysis.studies.jobs.dependability.made_faults import told_run

SENT, MSS, RTT_S, COMPUTE_S, CLEAN_S = 2.2e6, 1448.0, 0.02, 0.03, 0.01


@dataclass(frozen=True)
class MadeLine:
    """Communication times by loss."""

    spent_s: Callable[[float], float]
    losses: tuple[float, ...] = (0.0, 0.1, 0.3, 1.0, 3.0)
    compute_s: float | None = COMPUTE_S
    congestion: str = "reno"
    rtt_s: float = RTT_S


def lossy_run(made: MadeLine, blocks: int = 5) -> dict[str, Any]:
    names = [f"ddp_network:loss_percent={loss:g}:delay_ms=10" for loss in made.losses]
    rows: dict[tuple[str, int], dict[str, list[dict[str, Any]]]] = {}
    for name, loss in zip(names, made.losses, strict=True):
        counts = {
            "segments_out": 1600,
            "segments_retransmitted": 16 * loss,
            "timeouts": 0,
            "loss_probes": 0,
        }
        line = {"packets": 10000, "dropped": 100 * loss, "loss_percent_measured": loss}
        rows |= {
            (name, block): {"network": [{"step": at, **counts} for at in range(3)], "line": [line]}
            for block in range(1, blocks + 1)
        }
    run = told_run(
        rows,
        steps_s={
            name: COMPUTE_S + made.spent_s(loss / 100)
            for name, loss in zip(names, made.losses, strict=True)
        },
    )
    for name, loss in zip(names, made.losses, strict=True):
        run["deeptweak"]["workloads"][name]["params"] = {
            "loss_percent": f"{loss:g}",
            "delay_ms": "10",
            "mtu": 1500,
        }
    for one in run["benchmarks"]:
        facts = {
            "rtt_s": made.rtt_s,
            "mss_bytes": MSS,
            "gradient_bytes": SENT,
            "compute_s": made.compute_s,
            "congestion": made.congestion,
        }
        one["extra_info"]["workload_facts"] |= facts
    return run


def saved(folder: Path, made: MadeLine, blocks: int = 5) -> str:
    path = folder / "run.json"
    path.write_text(json.dumps(lossy_run(made, blocks)))
    return str(path)


def line_of(folder: Path, made: MadeLine, blocks: int = 5) -> LossyLine:
    (found,) = judged(network.lossy_cells([saved(folder, made, blocks)], []))
    return found


def root(loss: float) -> float:
    """By Mathis's law: bytes over MSS/RTT·√(3/2)/√p."""
    return CLEAN_S + (SENT * RTT_S / MSS * math.sqrt(loss / 1.5) if loss else 0.0)


def test_times_and_counts_by_loss(tmp_path: Path) -> None:
    found = line_of(tmp_path, MadeLine(root, losses=(0.0, 0.3, 1.0, 3.0)))
    last = found.losses[-1]
    assert known(last.step_s).value == pytest.approx(COMPUTE_S + root(0.03), rel=0.1)
    assert known(last.communication_s).value == pytest.approx(root(0.03), rel=0.1)
    assert last.lost == pytest.approx(0.03)


def test_slowdowns_are_adjusted_over_all_losses_of_all_lines(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    found = line_of(tmp_path, MadeLine(lambda _: CLEAN_S * float(np.exp(rng.normal(0, 0.3)))))
    ps = [
        (row.slowdown.p, row.slowdown.p_adjusted)
        for row in found.losses
        if row.slowdown is not None
    ]
    first, adjusted = min(
        (raw, after) for raw, after in ps if raw is not None and after is not None
    )
    assert adjusted == pytest.approx(min(1, 4 * first))


@pytest.mark.parametrize("loss", ["much", "150", "-1", "nan"])
def test_a_loss_that_is_none_refuses_its_cells(tmp_path: Path, loss: str) -> None:
    path = saved(tmp_path, MadeLine(root, losses=(0.0, 1.0)), blocks=1)
    run = json.loads((tmp_path / "run.json").read_text())
    run["deeptweak"]["workloads"]["ddp_network:loss_percent=1:delay_ms=10"]["params"][
        "loss_percent"
    ] = loss
    (tmp_path / "run.json").write_text(json.dumps(run))
    refused: list[str] = []
    assert len(network.lossy_cells([path], refused)) == 1
    assert ["loss_percent" in line for line in refused] == [True]
