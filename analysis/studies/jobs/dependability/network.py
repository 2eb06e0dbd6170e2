"""Training over lines that lose packets: step time against loss, and whether TCP's square-root law (Mathis) says how it grows.

One line is all that was asked for but the loss. Each loss is held against no loss on the same line, block by block. The exponent β of
communication time ∝ lossᵝ is fitted in each block over the losses that at least double it: below that the line itself, or the arithmetic,
takes the time. Mathis has β = ½; where each lost packet costs a timeout, it is 1. A shape is told if the interval of β comes near to it,
and not near to the other. Both laws are of one long transfer under Reno's rules, a loss at a time, and of windows that nothing else limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from analysis.formats.fields import Fields
from analysis.load import load_each
from analysis.studies.jobs.estimates import average, grouped, holm_by_key, mean, ratio
from analysis.studies.jobs.records import LOSS, condition, read_cells
from analysis.studies.jobs.replicates import of_one_machine
from analysis.terms import Refused, Unreadable
from control.t_test import ALPHA

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analysis.studies.jobs.estimates import Figure, Ratio
    from analysis.studies.jobs.records import Unit
    from analysis.terms import Cell, Run

    ByLevel = Mapping[float, Mapping[Unit, Sequence[float]]]  # by loss or interval, and block


RTO_S = 0.2  # Linux waits at least so long before it sends again what nothing was heard of (TCP_RTO_MIN)
SMALL_WINDOW = 4  # segments: with fewer in flight, three duplicate acknowledgements cannot come, and only a timeout ends a loss


def rate_bit_s(mss_bytes: float, rtt_s: float, loss: float) -> float:
    """Rate by the law MSS/RTT·√(3/2)/√p. Source: Mathis, Semke, Mahdavi & Ott, CCR 27(3), 1997; every segment acknowledged."""
    return 8 * mss_bytes / rtt_s * window(loss)


def window(loss: float) -> float:
    """Segments in flight on average by the same law, √(3/(2p))."""
    return math.sqrt(1.5 / loss)


def rate_with_timeouts_bit_s(mss_bytes: float, rtt_s: float, loss: float, rto_s: float = RTO_S) -> float:
    """Rate with the time that timeouts take. Source: Padhye, Firoiu, Towsley & Kurose, SIGCOMM 1998, eq. 30, every segment acknowledged.

    With `rto_s` 0 it is the law above.
    """
    return 8 * mss_bytes / (rtt_s / window(loss) + _timeouts_s(loss, rto_s))


def timeouts_share(rtt_s: float, loss: float, rto_s: float = RTO_S) -> float:
    waited = _timeouts_s(loss, rto_s)
    return waited / (rtt_s / window(loss) + waited)


def _timeouts_s(loss: float, rto_s: float) -> float:
    return max(rto_s, 0.0) * min(1.0, 3 * math.sqrt(3 * loss / 8)) * loss * (1 + 32 * loss**2)


STEP = "step_time_mean_s"
FACTS = ("rtt_s", "mss_bytes", "gradient_bytes", "compute_s")
COUNTS = ("segments_out", "segments_retransmitted", "timeouts", "loss_probes")


@dataclass(frozen=True, slots=True)
class TrainedCell:
    """One cell: a mean step over a line of `loss` (a fraction). What was not told is None.

    `compute_s` is a step without communication, `gradient_bytes` what each end sends in one. `again` is the share of segments that were
    sent again, `timeouts` their number in a step; `lost` the share of packets that the line did lose.
    """

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
        return None if self.compute_s is None else self.step_s - self.compute_s


def trained(names: Sequence[str], refused: list[str]) -> list[TrainedCell]:
    """Read every cell that tells of a line; what cannot be used is said in `refused`, a line each.

    Raises: Refused, for none, and for runs of different machines.
    """
    cells = [cell for run in of_one_machine(load_each(names, refused), refused) for cell in cells_of_run(run, refused)]
    if not cells:
        nothing = f"{', '.join(names)}: no workload has a parameter {LOSS}; `pytest benchmarks/bench_cluster_network.py`."
        raise Refused(refused[0] if refused else nothing)
    return cells


def cells_of_run(run: Run, refused: list[str]) -> list[TrainedCell]:
    """Read every cell of one run that tells of a line; what cannot be used is said in `refused`, a line each."""
    lossy = {name for name, workload in run.workloads.items() if LOSS in workload.params}
    return [*read_cells(run, lambda cell: cell.workload in lossy, _trained, refused)]


def _trained(run: Run, cell: Cell) -> TrainedCell:
    place, loss_percent = f"cell {cell.id}", run.workloads[cell.workload].params[LOSS]
    try:
        loss = float(str(loss_percent)) / 100
    except ValueError:
        loss = math.nan
    if not 0 <= loss < 1:
        raise Unreadable(f"{run.origin}: {place}: {LOSS} is {loss_percent!r}; a number from 0 to 100 belongs there.")
    if cell.metrics.get(STEP, 0.0) <= 0:
        raise Unreadable(f"{run.origin}: {place}: tells no {STEP}.")
    facts = Fields({"facts": dict(cell.facts)}, run.origin, place).known_numbers("facts", FACTS)
    counts = _counts(cell, run.origin)
    counted = [Fields(row, run.origin, f"{place}, report.line") for row in cell.report.get("line", ())]
    lost = counted[0].up_to("loss_percent_measured", 100.0) if counted else None
    return TrainedCell(
        unit=(run.run_id, cell.block),
        line=condition(cell.workload, cell.tweakset, f"{LOSS}="),
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
    rows = cell.report.get("network", ())
    place = f"cell {cell.id}, report.network"
    steps = [Fields({"row": row}, origin, f"{place}[{at}]").known_numbers("row", COUNTS) for at, row in enumerate(rows)]
    if not steps or any(len(row) < len(COUNTS) for row in steps):
        return None
    return {name: math.fsum(row[name] for row in steps) for name in COUNTS}


def _positive(value: float | None) -> float | None:
    return value if value is not None and value > 0 else None


ROOT, LINEAR, ABOUT = 0.5, 1.0, 0.1  # exponents, and how far off one still is of that shape
DOUBLED = 2.0
NEAR = 2.0  # a factor: a law of one long transfer, by constants, is no nearer than that
Bound = Literal["compute", "line", "timeouts", "Mathis", "other", "not told"]
LossShape = Literal["√p", "linear", "neither", "open", "not fitted"]
LOSS_RULE = (
    "bound by: compute – not shown to be slower; line – slower, and communication not yet doubled; timeouts – at least half of that would "
    f"pass in those counted, {RTO_S * 1000:g} ms each; Mathis – within a factor {NEAR:g} of its time; other – none of these."
)


@dataclass(frozen=True, slots=True)
class AtLoss:
    """One loss on a line. Times are means over blocks, in seconds a step; `slowdown` is against no loss, `p` after Holm over all.

    `mathis_s` and `padhye_s` are what the gradients take one way at those rates; `ratio` is communication over Mathis's.
    """

    loss: float
    blocks: int
    step_s: Figure | None
    communication_s: Figure | None
    slowdown: Ratio | None
    p: float | None
    mathis_s: float | None
    padhye_s: float | None
    ratio: float | None
    again: float | None
    timeouts: float | None
    lost: float | None
    bound: Bound


@dataclass(frozen=True, slots=True)
class LossyLine:
    """One line, its losses ascending. `exponent` is β over `fitted` losses; `unlike` what is left of a step without the arithmetic.

    `rtt_s` and `mss_bytes` are those measured on the idle line. `of_excess`: no cell told its arithmetic, so communication is taken to be
    what a step takes longer than without loss.
    """

    name: str
    congestion: str
    stand_in: str
    rtt_s: float | None
    mss_bytes: float | None
    losses: tuple[AtLoss, ...]
    exponent: Figure | None
    fitted: tuple[float, ...]
    shape: LossShape
    why: str
    of_excess: bool
    notes: tuple[str, ...] = ()


def lines(cells: Sequence[TrainedCell]) -> list[LossyLine]:
    by_line: dict[str, list[TrainedCell]] = {}
    for cell in cells:
        by_line.setdefault(cell.line, []).append(cell)
    slower = {
        (name, loss): _slowdown(own, loss) for name, own in by_line.items() for loss in sorted({cell.loss for cell in own}) if loss > 0
    }
    adjusted = holm_by_key({key: slowdown.p for key, slowdown in slower.items() if slowdown is not None and slowdown.p is not None})
    return [
        _line(name, own, {loss: (slowdown, adjusted.get((line, loss))) for (line, loss), slowdown in slower.items() if line == name})
        for name, own in by_line.items()
    ]


def _slowdown(cells: Sequence[TrainedCell], loss: float) -> Ratio | None:
    clean, lossy = (grouped((cell.unit, cell.step_s) for cell in cells if cell.loss == level) for level in (0.0, loss))
    return ratio({unit: [(average(clean[unit]), average(values))] for unit, values in lossy.items() if unit in clean})


def _line(name: str, cells: Sequence[TrainedCell], slower: Mapping[float, tuple[Ratio | None, float | None]]) -> LossyLine:
    of_excess = all(cell.compute_s is None for cell in cells)
    spent = {loss: _communication(cells, loss, of_excess=of_excess) for loss in sorted({cell.loss for cell in cells})}
    rows = [_at(loss, [cell for cell in cells if cell.loss == loss], spent, *slower.get(loss, (None, None))) for loss in spent]
    fitted = [row.loss for row in rows if row.loss > 0 and row.bound not in {"compute", "line"} and _all_positive(spent[row.loss])]
    exponent, shape, why = _exponent({loss: spent[loss] for loss in fitted})
    return LossyLine(
        name=name,
        congestion=cells[0].congestion,
        stand_in=cells[0].stand_in,
        rtt_s=_mean_of(cell.rtt_s for cell in cells),
        mss_bytes=_mean_of(cell.mss_bytes for cell in cells),
        losses=tuple(rows),
        exponent=exponent,
        fitted=tuple(fitted),
        shape=shape,
        why=why,
        of_excess=of_excess,
        notes=tuple(_notes(rows, cells)),
    )


def _communication(cells: Sequence[TrainedCell], loss: float, *, of_excess: bool) -> dict[Unit, list[float]]:
    own = [cell for cell in cells if cell.loss == loss]
    if not of_excess:
        return grouped((lossy.unit, lossy.communication_s) for lossy in own)
    clean = grouped((cell.unit, cell.step_s) for cell in cells if cell.loss == 0)
    return grouped((lossy.unit, lossy.step_s - average(clean[lossy.unit])) for lossy in own if lossy.unit in clean)


def _at(loss: float, cells: Sequence[TrainedCell], spent: ByLevel, slower: Ratio | None, p: float | None) -> AtLoss:
    communication = mean(spent[loss])
    clean = mean(spent[0.0]) if 0.0 in spent else None
    root_s, padhye_s = _predicted(loss, cells)
    timeouts = _mean_of(cell.timeouts for cell in cells)
    bound: Bound = "not told"
    if loss > 0 and communication is not None:
        bound = _bound(communication.value, clean.value if clean else None, (slower, p), (root_s, timeouts))
    return AtLoss(
        loss=loss,
        blocks=len({cell.unit for cell in cells}),
        step_s=mean(grouped((cell.unit, cell.step_s) for cell in cells)),
        communication_s=communication,
        slowdown=slower,
        p=p,
        mathis_s=root_s,
        padhye_s=padhye_s,
        ratio=communication.value / root_s if communication and root_s else None,
        again=_mean_of(cell.again for cell in cells),
        timeouts=timeouts,
        lost=_mean_of(cell.lost for cell in cells),
        bound=bound,
    )


def _predicted(loss: float, cells: Sequence[TrainedCell]) -> tuple[float | None, float | None]:
    rtt_s, mss, sent = (_mean_of(getattr(cell, name) for cell in cells) for name in ("rtt_s", "mss_bytes", "gradient_bytes"))
    if loss == 0 or rtt_s is None or mss is None or sent is None:
        return None, None
    return 8 * sent / rate_bit_s(mss, rtt_s, loss), 8 * sent / rate_with_timeouts_bit_s(mss, rtt_s, loss)


def _bound(
    spent_s: float, clean_s: float | None, slower: tuple[Ratio | None, float | None], known: tuple[float | None, float | None]
) -> Bound:
    slowdown, p = slower
    root_s, timeouts = known
    if slowdown is not None and p is not None and (p >= ALPHA or slowdown.value <= 1):
        return "compute"
    if clean_s is not None and spent_s < DOUBLED * clean_s:
        return "line"
    if timeouts is not None and timeouts * RTO_S >= spent_s / 2:
        return "timeouts"
    if root_s is None:
        return "not told"
    return "Mathis" if root_s / NEAR <= spent_s <= root_s * NEAR else "other"


def _exponent(spent: ByLevel) -> tuple[Figure | None, LossShape, str]:
    """The slope of log communication time over log loss, a block at a time, and what it looks like."""
    units = sorted(set.intersection(*(set(own) for own in spent.values()))) if spent else []
    if len(spent) < 2 or not units:
        return None, "not fitted", "fewer than two losses at which communication takes twice as long as without: no exponent."
    x = np.log(sorted(spent))
    slopes = {unit: [float(np.polyfit(x, [math.log(average(spent[loss][unit])) for loss in sorted(spent)], 1)[0])] for unit in units}
    slope = mean(slopes)
    if slope is None or slope.low is None or slope.high is None:
        return slope, "open", slope.why if slope else ""
    root, linear = (slope.low <= exponent + ABOUT and slope.high >= exponent - ABOUT for exponent in (ROOT, LINEAR))
    shape: LossShape = "open" if root and linear else "√p" if root else "linear" if linear else "neither"
    return slope, shape, ""


def _notes(rows: Sequence[AtLoss], cells: Sequence[TrainedCell]) -> list[str]:
    notes = []
    if not any(row.loss == 0 for row in rows):
        notes.append("no cell without loss on this line: nothing to be held against.")
    small = [row.loss for row in rows if row.loss > 0 and window(row.loss) < SMALL_WINDOW]
    if small:
        notes.append(f"from a loss of {100 * small[0]:.3g} % fewer than {SMALL_WINDOW} segments are in flight: timeouts, not Mathis.")
    waits = [row.loss for row in rows if row.loss > 0 and _waits(row.loss, cells)]
    if waits:
        notes.append(
            f"at this round trip timeouts take more than half of a transfer's time from a loss of {100 * waits[0]:.3g} % on (Padhye), "
            "which Mathis's law leaves out."
        )
    if cells[0].congestion not in {"", "reno"}:
        notes.append(f"congestion control {cells[0].congestion}: the law is of Reno's rules.")
    return notes


def _waits(loss: float, cells: Sequence[TrainedCell]) -> bool:
    rtt_s = _mean_of(cell.rtt_s for cell in cells)
    return rtt_s is not None and timeouts_share(rtt_s, loss) > 0.5


def _all_positive(values: Mapping[Unit, Sequence[float]]) -> bool:
    return bool(values) and all(average(own) > 0 for own in values.values())


def _mean_of(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
