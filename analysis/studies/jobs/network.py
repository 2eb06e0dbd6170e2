"""Training over lines that lose packets: step time against loss, and whether TCP's square-root law (Mathis) says how it grows.

One line is all that was asked for but the loss. Each loss is compared with no loss on the same line, block by block. The exponent β of
communication time ∝ lossᵝ is fitted in each block over the losses that at least double it: below that the line itself, or the arithmetic,
takes the time. Mathis has β = ½; where each lost packet costs a timeout, it is 1. A shape is named if the interval of β comes near to it,
and not near to the other. Both laws are of one long transfer under Reno's rules, a loss at a time, and of windows that nothing else limits.
In the data of the answer losses are fractions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from analysis.answer import Answer, Column, Columns, Line, Section, Word, bullets, table_of
from analysis.formats.fields import Fields
from analysis.load import load_each
from analysis.terms import Cell, Refused, Run, Unreadable
from control.t_test import ALPHA

from .claims import CLAIMS, claimed, claims_first, verdict
from .estimates import (
    NONE,
    Figure,
    Ratio,
    adjusted,
    average,
    average_of_known,
    by_unit,
    called_apart,
    figure,
    mean,
    number,
    p_value,
    ratio,
    value_of,
)
from .records import LOSS, Unit, condition, of_one_machine, read_cells

if TYPE_CHECKING:
    Spent = Mapping[float, Mapping[Unit, Sequence[float]]]  # seconds of communication by loss and block

RTO_S = 0.2  # Linux waits at least so long before it sends again what nothing was heard of (TCP_RTO_MIN)
SMALL_WINDOW = 4  # segments: with fewer in flight, three duplicate acknowledgements cannot come, and only a timeout ends a loss
STEP = "step_time_mean_s"
FACTS = ("rtt_s", "mss_bytes", "gradient_bytes", "compute_s")
COUNTS = ("segments_out", "segments_retransmitted", "timeouts", "loss_probes")
ROOT, LINEAR, ABOUT = 0.5, 1.0, 0.1  # exponents, and how far off one still is of that shape
DOUBLED = 2.0
NEAR = 2.0  # a factor: a law of one long transfer, by constants, is no nearer than that
Bound = Literal["compute", "line", "timeouts", "Mathis", "other", "not told"]
LossShape = Literal["√p", "linear", "neither", "open", "not fitted"]
LOSS_RULE = (
    "bound by: compute – not shown to be slower; line – slower, and communication not yet doubled; timeouts – at least half of that would "
    f"pass in those counted, {RTO_S * 1000:g} ms each; Mathis – within a factor {NEAR:g} of its time; other – none of these."
)
SHAPES = {
    "√p": "as Mathis has it",
    "linear": "in proportion to the loss: each lost packet costs the same time, as timeouts do",
    "neither": "neither as √p nor in proportion to the loss",
    "open": "these runs cannot tell √p from proportion",
}


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


@dataclass(frozen=True, slots=True)
class TrainedCell:
    """One cell: a mean step over a line of `loss` (a fraction). None is what is not known.

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
    """Read every cell of a training over a line; each that cannot be used adds a line to `refused`.

    Raises: Refused, for none, and for runs of different machines.
    """
    cells = [cell for run in of_one_machine(load_each(names, refused), refused) for cell in cells_of_run(run, refused)]
    if not cells:
        nothing = f"{', '.join(names)}: no workload has a parameter {LOSS}; `pytest benchmarks/bench_cluster_network.py`."
        raise Refused(refused[0] if refused else nothing)
    return cells


def cells_of_run(run: Run, refused: list[str]) -> list[TrainedCell]:
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
        raise Unreadable(f"{run.origin}: {place}: has no {STEP}.")
    facts = Fields({"facts": dict(cell.facts)}, run.origin, place).known_numbers("facts", FACTS)
    steps = [
        Fields({"row": row}, run.origin, f"{place}, report.network[{at}]").known_numbers("row", COUNTS)
        for at, row in enumerate(cell.report.get("network", ()))
    ]
    counted = bool(steps) and all(len(row) == len(COUNTS) for row in steps)
    sums = {name: math.fsum(row[name] for row in steps) if counted else 0.0 for name in COUNTS}
    counts = [Fields(row, run.origin, f"{place}, report.line") for row in cell.report.get("line", ())]
    lost = counts[0].up_to("loss_percent_measured", 100.0) if counts else None
    rtt_s, mss_bytes, gradient_bytes = (facts[name] if facts.get(name, 0.0) > 0 else None for name in FACTS[:3])
    congestion, stand_in = (str(cell.facts.get(name) or "") for name in ("congestion", "stand_in"))
    again = sums["segments_retransmitted"] / sums["segments_out"] if sums["segments_out"] > 0 else None
    timeouts, lost = sums["timeouts"] / len(steps) if counted else None, None if lost is None else lost / 100
    known = rtt_s, mss_bytes, gradient_bytes, facts.get("compute_s")
    line, unit = condition(cell.workload, cell.tweakset, f"{LOSS}="), (run.run_id, cell.block)
    return TrainedCell(unit, line, loss, cell.metrics[STEP], *known, congestion, stand_in, again, timeouts, lost)


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
    """One line, its losses ascending. `exponent` is β over `fitted` losses; `shape` what it looks like.

    `rtt_s` and `mss_bytes` are those measured on the idle line. `of_excess`: the arithmetic of no cell is known, so communication is taken
    to be what a step takes longer than without loss.
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
    by_line: dict[str, dict[float, list[TrainedCell]]] = {}
    for cell in sorted(cells, key=lambda cell: cell.loss):
        by_line.setdefault(cell.line, {}).setdefault(cell.loss, []).append(cell)
    slower: dict[tuple[str, float], Ratio | None] = {}
    for name, by_loss in by_line.items():
        clean = by_unit((cell.unit, cell.step_s) for cell in by_loss.get(0.0, ()))
        for loss, own in by_loss.items():
            steps = by_unit((cell.unit, cell.step_s) for cell in own) if loss > 0 else {}
            slower[name, loss] = ratio({unit: [(average(clean[unit]), average(own))] for unit, own in steps.items() if unit in clean})
    p = adjusted(slower)
    names = dict.fromkeys(cell.line for cell in cells)
    return [_line(name, by_line[name], {loss: (slower[name, loss], p.get((name, loss))) for loss in by_line[name]}) for name in names]


def _line(
    name: str, by_loss: Mapping[float, Sequence[TrainedCell]], slower: Mapping[float, tuple[Ratio | None, float | None]]
) -> LossyLine:
    cells = [cell for own in by_loss.values() for cell in own]
    of_excess = all(cell.compute_s is None for cell in cells)
    clean = by_unit((cell.unit, cell.step_s) for cell in by_loss.get(0.0, ()))
    spent = {}
    for loss, own in by_loss.items():
        excess = ((cell.unit, cell.step_s - average(clean[cell.unit])) for cell in own if cell.unit in clean)
        spent[loss] = by_unit(excess if of_excess else ((cell.unit, cell.communication_s) for cell in own))
    rtt_s = average_of_known(cell.rtt_s for cell in cells)
    rows = [_at(loss, own, spent, *slower[loss]) for loss, own in by_loss.items()]
    above = {loss for loss, times in spent.items() if times and all(average(own) > 0 for own in times.values())}
    fitted = [row.loss for row in rows if row.loss > 0 and row.bound not in {"compute", "line"} and row.loss in above]
    exponent, shape, why = _exponent({loss: spent[loss] for loss in fitted})
    return LossyLine(
        name=name,
        congestion=cells[0].congestion,
        stand_in=cells[0].stand_in,
        rtt_s=rtt_s,
        mss_bytes=average_of_known(cell.mss_bytes for cell in cells),
        losses=tuple(rows),
        exponent=exponent,
        fitted=tuple(fitted),
        shape=shape,
        why=why,
        of_excess=of_excess,
        notes=tuple(_notes([*by_loss], rtt_s, cells[0].congestion)),
    )


def _at(loss: float, cells: Sequence[TrainedCell], spent: Spent, slowdown: Ratio | None, p: float | None) -> AtLoss:
    communication, clean = mean(spent[loss]), mean(spent.get(0.0, {}))
    rtt_s, mss, sent = (average_of_known(getattr(cell, name) for cell in cells) for name in FACTS[:3])
    counted = {name: average_of_known(getattr(cell, name) for cell in cells) for name in ("again", "timeouts", "lost")}
    mathis_s = padhye_s = None
    if loss > 0 and rtt_s is not None and mss is not None and sent is not None:
        mathis_s, padhye_s = (8 * sent / rate(mss, rtt_s, loss) for rate in (rate_bit_s, rate_with_timeouts_bit_s))
    bound: Bound = "not told"
    if loss > 0 and communication is not None:
        bound = _bound(communication.value, clean.value if clean else None, (slowdown, p), (mathis_s, counted["timeouts"]))
    step_s = mean(by_unit((cell.unit, cell.step_s) for cell in cells))
    ratio = communication.value / mathis_s if communication and mathis_s else None
    blocks = len({cell.unit for cell in cells})
    return AtLoss(loss, blocks, step_s, communication, slowdown, p, mathis_s, padhye_s, ratio, bound=bound, **counted)


def _bound(
    spent_s: float, clean_s: float | None, slower: tuple[Ratio | None, float | None], known: tuple[float | None, float | None]
) -> Bound:
    (slowdown, p), (mathis_s, timeouts) = slower, known
    if slowdown is not None and p is not None and (p >= ALPHA or slowdown.value <= 1):
        return "compute"
    if clean_s is not None and spent_s < DOUBLED * clean_s:
        return "line"
    if timeouts is not None and timeouts * RTO_S >= spent_s / 2:
        return "timeouts"
    if mathis_s is None:
        return "not told"
    return "Mathis" if mathis_s / NEAR <= spent_s <= mathis_s * NEAR else "other"


def _exponent(spent: Spent) -> tuple[Figure | None, LossShape, str]:
    """Return the slope of log communication time over log loss, a block at a time, and what it looks like."""
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


def _notes(losses: Sequence[float], rtt_s: float | None, congestion: str) -> Iterator[str]:
    if 0 not in losses:
        yield "no cell without loss on this line: nothing to compare with."
    lossy = [loss for loss in losses if loss > 0]
    if small := [loss for loss in lossy if window(loss) < SMALL_WINDOW]:
        yield f"from a loss of {100 * small[0]:.3g} % fewer than {SMALL_WINDOW} segments are in flight: timeouts, not Mathis."
    if waits := [loss for loss in lossy if rtt_s is not None and timeouts_share(rtt_s, loss) > 0.5]:
        yield (
            f"at this round trip timeouts take more than half of a transfer's time from a loss of {100 * waits[0]:.3g} % on (Padhye), "
            "which Mathis's law leaves out."
        )
    if congestion not in {"", "reno"}:
        yield f"congestion control {congestion}: the law is of Reno's rules."


def lossy(lines: Sequence[LossyLine], refused: Sequence[str]) -> Answer:
    """At which losses a step is slower, and how communication grows with them; then line by line."""
    names, common = called_apart([line.name for line in lines])
    steps = [(word, phrase) for line in lines for word, phrase in _steps(line, names[line.name])]
    grows = [
        f"Communication on {names[line.name]}: loss^{figure(line.exponent)}, {SHAPES[line.shape]}."
        for line in lines
        if line.exponent is not None and line.shape in SHAPES
    ]
    return Answer(
        title=claimed(steps, "without loss") if steps else "No line was measured with loss and without.",
        findings=[*map(Line, grows[:1]), *([Line(f"In all: {common}", tone="quiet")] if common and not grows else [])],
        sections=[_section(line, names[line.name]) for line in lines],
        legend=[("bound by", LOSS_RULE)],
        data={"lines": lines, "rule": LOSS_RULE},
        refused=refused,
    )


def _steps(line: LossyLine, name: str) -> Iterator[tuple[Word, str]]:
    """Each word, and of which losses it is: `delay_ms=5, 1, 3 % (12.7 to 68.8 times as long)`."""
    of_word: dict[Word, list[AtLoss]] = {}
    for row in line.losses:
        if row.loss:
            of_word.setdefault(verdict(row.slowdown, row.p), []).append(row)
    for word, rows in of_word.items():
        times = [number(row.slowdown.value) for row in rows if row.slowdown is not None]
        long = f" ({' to '.join(dict.fromkeys((times[0], times[-1])))} times as long)" if times and word in CLAIMS else ""
        yield word, f"{name}, {', '.join(f'{100 * row.loss:g}' for row in rows)} %{long}"


def _section(line: LossyLine, name: str) -> Section:
    def word(row: AtLoss) -> Word | None:
        return verdict(row.slowdown, row.p) if row.loss else None

    columns: Columns = [
        (Column("loss\n%", "loss_percent", "{:g}".format), lambda row: 100 * row.loss),
        (Column("a step is", "verdict", left=True), word),
        (Column("step\ns", "step_s", number), lambda row: value_of(row.step_s)),
        (Column("times as long\n[95 %]", "slowdown", figure), lambda row: row.slowdown),
        (Column("p\nHolm", "p_adjusted", p_value), lambda row: row.p),
        (Column("communi-\ncation s", "communication_s", number), lambda row: value_of(row.communication_s)),
        (Column("Mathis\ns", "mathis_s", number), lambda row: row.mathis_s),
        (Column("sent\nagain %", "again_percent", lambda again: number(again, 2), spare=2), lambda row: row.again and 100 * row.again),
        (Column("time-\nouts", "timeouts", lambda count: number(count, 2), spare=2), lambda row: row.timeouts),
        (Column("bound by", left=True), lambda row: row.bound if row.loss else None),
        (Column("blocks", spare=1), lambda row: row.blocks),
    ]
    rtt = NONE if line.rtt_s is None else f"{number(line.rtt_s * 1e3)} ms"
    about = [f"round trip {rtt}, segments of {number(line.mss_bytes, 4)} bytes", line.congestion]
    heading = Line(", ".join(part for part in about if part))
    return Section(name, [heading, table_of(columns, claims_first(line.losses, word)), *bullets(_sentences(line))])


def _sentences(line: LossyLine) -> Iterator[str]:
    def listed(values: Mapping[float, str]) -> str:
        return "; ".join(f"{100 * loss:g} %: {value}" for loss, value in values.items())

    if line.stand_in:
        yield f"STAND-IN: {line.stand_in}."
    if line.exponent is not None:
        losses = ", ".join(f"{100 * loss:g}" for loss in line.fitted)
        why = f" ({line.exponent.why})" if line.exponent.why else ""
        yield f"communication grows as loss^{figure(line.exponent)} over losses of {losses} %{why}: {SHAPES[line.shape]}."
    else:
        yield line.why
    if ratios := {row.loss: f"{row.ratio:.3g}" for row in line.losses if row.ratio is not None}:
        yield f"communication over Mathis's time: {listed(ratios)}. The law has one transfer, and the idle line's round trip."
    if padhye := {row.loss: f"{row.padhye_s:.3g} s" for row in line.losses if row.padhye_s is not None}:
        yield f"with timeouts (Padhye): {listed(padhye)}."
    if line.of_excess:
        yield "the arithmetic of no cell is known: communication is taken to be what a step takes longer than without loss."
    if lost := {row.loss: f"{100 * row.lost:.3g} %" for row in line.losses if row.loss and row.lost is not None}:
        yield f"lost, as counted on the line: {listed(lost)}."
    yield from line.notes
