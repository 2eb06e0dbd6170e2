"""Training over lines that lose packets: step time against loss.

One line is all that was asked for but the loss. Each loss is compared with no loss on the same line, block by block. In the data of the
answer losses are fractions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.answer import Answer, Column, Columns, Line, Section, Word, bullets, table_of
from analysis.formats.fields import Fields
from analysis.load import load_each
from analysis.terms import Cell, Refused, Run, Unreadable

from .claims import CLAIMS, Contrast, apart, claimed, claims_first, contrasts_of, ratio_columns, verdict
from .estimates import NONE, Figure, average_of_known, number, over_blocks, value_of
from .records import LOSS, Condition, Unit, condition, of_one_machine, params_of, read_cells

STEP = "step_time_mean_s"
FACTS = ("rtt_s", "mss_bytes", "compute_s")
COUNTS = ("segments_out", "segments_retransmitted", "timeouts", "loss_probes")


@dataclass(frozen=True, slots=True)
class TrainedCell:
    """One cell: a mean step over a line of `loss` (a fraction). None is what is not known.

    `compute_s` is a step without communication. `again` is the share of segments that were sent again, `timeouts` their number in a step;
    `lost` the share of packets that the line did lose.
    """

    unit: Unit
    line: Condition
    loss: float
    step_s: float
    rtt_s: float | None
    mss_bytes: float | None
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
    return [*read_cells(run, (cell for cell in run.cells if cell.workload in lossy), _trained, refused)]


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
    rtt_s, mss_bytes = (facts[name] if facts.get(name, 0.0) > 0 else None for name in FACTS[:2])
    congestion, stand_in = (str(cell.facts.get(name) or "") for name in ("congestion", "stand_in"))
    again = sums["segments_retransmitted"] / sums["segments_out"] if sums["segments_out"] > 0 else None
    timeouts, lost = sums["timeouts"] / len(steps) if counted else None, None if lost is None else lost / 100
    known = rtt_s, mss_bytes, facts.get("compute_s")
    line = condition(params_of(run, cell), cell.tweakset, LOSS)
    return TrainedCell((run.run_id, cell.block), line, loss, cell.metrics[STEP], *known, congestion, stand_in, again, timeouts, lost)


@dataclass(frozen=True, slots=True)
class AtLoss:
    """One loss on a line. Times are means over blocks, in seconds a step; `slowdown` is against no loss."""

    loss: float
    blocks: int
    step_s: Figure | None
    communication_s: Figure | None
    slowdown: Contrast | None
    again: float | None
    timeouts: float | None
    lost: float | None


@dataclass(frozen=True, slots=True)
class LossyLine:
    """One line, its losses ascending.

    `rtt_s` and `mss_bytes` are those measured on the idle line. `of_excess`: the arithmetic of no cell is known, so communication is taken
    to be what a step takes longer than without loss.
    """

    name: str
    congestion: str
    stand_in: str
    rtt_s: float | None
    mss_bytes: float | None
    losses: tuple[AtLoss, ...]
    of_excess: bool
    notes: tuple[str, ...] = ()


def lines(cells: Sequence[TrainedCell]) -> list[LossyLine]:
    by_line: dict[Condition, dict[float, list[TrainedCell]]] = {}
    for cell in sorted(cells, key=lambda cell: cell.loss):
        by_line.setdefault(cell.line, {}).setdefault(cell.loss, []).append(cell)
    keys = list(dict.fromkeys(cell.line for cell in cells))
    rows = [
        {"line": keys.index(cell.line), "loss": cell.loss, "run": cell.unit[0], "block": cell.unit[1], "step_s": cell.step_s}
        for cell in cells
    ]
    slower = {(row.line, row.arm): row for row in contrasts_of(rows, "loss", 0.0, {"step_s": "log"}, by=["line"])}
    names = apart([dict(key) for key in keys])
    return [_line(names[at], by_line[key], {loss: slower.get((at, loss)) for loss in by_line[key]}) for at, key in enumerate(keys)]


def _line(name: str, by_loss: Mapping[float, Sequence[TrainedCell]], slower: Mapping[float, Contrast | None]) -> LossyLine:
    cells = [cell for own in by_loss.values() for cell in own]
    of_excess = all(cell.compute_s is None for cell in cells)
    clean = {cell.unit: cell.step_s for cell in by_loss.get(0.0, ())}

    def spent_s(cell: TrainedCell) -> float | None:
        if not of_excess:
            return cell.communication_s
        return cell.step_s - clean[cell.unit] if cell.unit in clean else None

    return LossyLine(
        name=name,
        congestion=cells[0].congestion,
        stand_in=cells[0].stand_in,
        rtt_s=average_of_known(cell.rtt_s for cell in cells),
        mss_bytes=average_of_known(cell.mss_bytes for cell in cells),
        losses=tuple(
            AtLoss(
                loss=loss,
                blocks=len({cell.unit for cell in own}),
                step_s=over_blocks((cell.unit, cell.step_s) for cell in own),
                communication_s=over_blocks((cell.unit, spent_s(cell)) for cell in own),
                slowdown=slower[loss],
                again=average_of_known(cell.again for cell in own),
                timeouts=average_of_known(cell.timeouts for cell in own),
                lost=average_of_known(cell.lost for cell in own),
            )
            for loss, own in by_loss.items()
        ),
        of_excess=of_excess,
        notes=() if clean else ("no cell without loss on this line: nothing to compare with.",),
    )


def lossy(lines: Sequence[LossyLine], refused: Sequence[str]) -> Answer:
    """At which losses a step is slower; then line by line."""
    steps = [(word, phrase) for line in lines for word, phrase in _steps(line)]
    return Answer(
        title=claimed(steps, "without loss") if steps else "No line was measured with loss and without.",
        sections=[_section(line) for line in lines],
        data={"lines": lines},
        refused=refused,
    )


def _steps(line: LossyLine) -> Iterator[tuple[Word, str]]:
    """Each word, and of which losses it is: `delay_ms=5, 1, 3 % (12.7 to 68.8 times as long)`."""
    of_word: dict[Word, list[AtLoss]] = {}
    for row in line.losses:
        if row.loss:
            of_word.setdefault(verdict(row.slowdown), []).append(row)
    for word, rows in of_word.items():
        times = [number(row.slowdown.value) for row in rows if row.slowdown is not None]
        long = f" ({' to '.join(dict.fromkeys((times[0], times[-1])))} times as long)" if times and word in CLAIMS else ""
        losses = ", ".join(f"{100 * row.loss:g}" for row in rows)
        yield word, ", ".join(filter(None, (line.name, f"{losses} %{long}")))


def _section(line: LossyLine) -> Section:
    def word(row: AtLoss) -> Word | None:
        return verdict(row.slowdown) if row.loss else None

    columns: Columns = [
        (Column("loss\n%", "loss_percent", "{:g}".format), lambda row: 100 * row.loss),
        *ratio_columns("a step is", "slowdown", word, lambda row: row.slowdown),
        (Column("step\ns", "step_s", number), lambda row: value_of(row.step_s)),
        (Column("communi-\ncation s", "communication_s", number), lambda row: value_of(row.communication_s)),
        (Column("sent\nagain %", "again_percent", lambda again: number(again, 2), spare=2), lambda row: row.again and 100 * row.again),
        (Column("time-\nouts", "timeouts", lambda count: number(count, 2), spare=2), lambda row: row.timeouts),
        (Column("blocks", spare=1), lambda row: row.blocks),
    ]
    rtt = NONE if line.rtt_s is None else f"{number(line.rtt_s * 1e3)} ms"
    about = [f"round trip {rtt}, segments of {number(line.mss_bytes, 4)} bytes", line.congestion]
    heading = Line(", ".join(part for part in about if part))
    return Section(line.name, [heading, table_of(columns, claims_first(line.losses, word)), *bullets(_sentences(line))])


def _sentences(line: LossyLine) -> Iterator[str]:
    if line.stand_in:
        yield f"STAND-IN: {line.stand_in}."
    if line.of_excess:
        yield "the arithmetic of no cell is known: communication is taken to be what a step takes longer than without loss."
    if lost := [f"{100 * row.loss:g} %: {100 * row.lost:.3g} %" for row in line.losses if row.loss and row.lost is not None]:
        yield f"lost, as counted on the line: {'; '.join(lost)}."
    yield from line.notes
