"""Training over lines that lose packets, out of saved runs: one line is all that was asked for but the loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.formats.fields import Fields
from analysis.load import load_each
from analysis.studies.jobs.profiles.one_machine import of_one_machine
from analysis.studies.jobs.queues.records import AGAIN
from analysis.terms import Refused, Unreadable

from .records import STOCK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.terms import Cell, Run

    from .terms import Unit

LOSS, STEP = "loss_percent", "step_time_mean_s"
FACTS = ("rtt_s", "mss_bytes", "gradient_bytes", "compute_s")
COUNTS = ("segments_out", "segments_retransmitted", "timeouts", "loss_probes")


@dataclass(frozen=True, slots=True)
class Trained:
    """One cell: a mean step over a line of `loss` (a fraction). What was not told is None.

    `compute_s` is a step without communication, `gradient_bytes` what each end sends in one. `again` is the share of segments that were
    sent again, `timeouts` their number in a step; `lost` the share of packets that the line did lose.
    """

    cell: str
    unit: Unit
    line: str
    loss: float
    step_s: float
    rtt_s: float | None
    mss_bytes: float | None
    gradient_bytes: float | None
    compute_s: float | None
    congestion: str
    stand_in: str
    again: float | None
    timeouts: float | None
    lost: float | None

    @property
    def communication_s(self) -> float | None:
        """What of a step is not arithmetic."""
        return None if self.compute_s is None else self.step_s - self.compute_s


def trained(names: Sequence[str], refused: list[str]) -> list[Trained]:
    """Read every cell that tells of a line; what cannot be used is said in `refused`, a line each.

    Raises: Refused, for none, and for runs of different machines.
    """
    found = [one for run in of_one_machine(load_each(names, refused), refused) for one in of_run(run, refused)]
    if not found:
        where = ", ".join(names)
        raise Refused(
            refused[0] if refused else f"{where}: no workload has a parameter {LOSS}; `pytest benchmarks/bench_cluster_network.py`."
        )
    return found


def of_run(run: Run, refused: list[str]) -> list[Trained]:
    """Read every cell of one run that tells of a line; what cannot be used is said in `refused`, a line each."""
    found = []
    for cell in run.cells:
        params = run.workloads[cell.workload].params if cell.workload in run.workloads else {}
        if LOSS not in params:
            continue
        if cell.outcome != "measured":
            refused.append(f"{run.origin}: {cell.id} {cell.outcome}: {(cell.reason or 'no reason was recorded').rstrip('.')}.")
            continue
        try:
            found.append(_trained(run, cell, params))
        except Unreadable as error:
            refused.append(str(error))
    return found


def _trained(run: Run, cell: Cell, params: Mapping[str, object]) -> Trained:
    place = f"cell {cell.id}"
    try:
        loss = float(str(params[LOSS])) / 100
    except ValueError:
        loss = math.nan
    if not 0 <= loss < 1:
        raise Unreadable(f"{run.origin}: {place}: {LOSS} is {params[LOSS]!r}; a number from 0 to 100 belongs there.")
    if cell.metrics.get(STEP, 0.0) <= 0:
        raise Unreadable(f"{run.origin}: {place}: tells no {STEP}.")
    facts = Fields({"facts": dict(cell.facts)}, run.origin, place).known_numbers("facts", FACTS)
    counts = _counts(cell, run.origin)
    told = [Fields(one, run.origin, f"{place}, report.line") for one in cell.report.get("line", ())]
    lost = told[0].up_to("loss_percent_measured", 100.0) if told else None
    base, *parts = cell.workload.split(":")
    line = ":".join([base, *(part for part in parts if not part.startswith(f"{LOSS}="))])
    return Trained(
        cell=cell.id,
        unit=(run.run_id, cell.block),
        line=line + ("" if cell.tweakset in {STOCK, AGAIN} else f" under {cell.tweakset}"),
        loss=loss,
        step_s=cell.metrics[STEP],
        rtt_s=_positive(facts.get("rtt_s")),
        mss_bytes=_positive(facts.get("mss_bytes")),
        gradient_bytes=_positive(facts.get("gradient_bytes")),
        compute_s=facts.get("compute_s"),
        congestion=str(cell.facts.get("congestion") or ""),
        stand_in=str(cell.facts.get("stand_in") or ""),
        again=counts["segments_retransmitted"] / counts["segments_out"] if counts and counts["segments_out"] > 0 else None,
        timeouts=counts["timeouts"] / len(cell.report["network"]) if counts else None,
        lost=None if lost is None else lost / 100,
    )


def _counts(cell: Cell, origin: str) -> dict[str, float] | None:
    """TCP's counters over all steps; None where a step does not tell all of them."""
    rows = cell.report.get("network", ())
    place = f"cell {cell.id}, report.network"
    told = [Fields({"row": row}, origin, f"{place}[{at}]").known_numbers("row", COUNTS) for at, row in enumerate(rows)]
    if not told or any(len(row) < len(COUNTS) for row in told):
        return None
    return {name: math.fsum(row[name] for row in told) for name in COUNTS}


def _positive(value: float | None) -> float | None:
    return value if value is not None and value > 0 else None
