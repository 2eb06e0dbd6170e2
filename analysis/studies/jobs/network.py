"""Training over lossy lines: step time against packet loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Annotated, Any, NamedTuple, TypedDict

from msgspec import Meta

from analysis.answer import Answer, Columns, Line, Section, Word, bullets, table_of
from analysis.formats.checked import Part
from analysis.load import load_each
from analysis.terms import Cell, Refused, Run, Unreadable
from control.saved import Duration  # noqa: TC001  # msgspec reads by it

from .claims import (
    CLAIMS,
    Contrast,
    apart,
    claimed,
    claims_first,
    column,
    contrasts_of,
    ratio_columns,
    verdict,
)
from .estimates import NONE, Figure, as_number, average_of_known, middle, number, over_blocks
from .records import LOSS, Condition, Unit, condition, of_one_machine, params_of, read_cells

TrainedCell = dict[str, Any]
STEP = "step_time_mean_s"


class LineFacts(TypedDict, total=False):
    """A cell's facts about its line."""

    rtt_s: Duration | None
    mss_bytes: Annotated[float, Meta(ge=0)] | None
    compute_s: Duration | None
    congestion: str | None
    stand_in: str | None


class LineRow(TypedDict, total=False):
    loss_percent_measured: Annotated[float, Meta(ge=0, le=100)] | None


class AtLoss(NamedTuple):
    """One loss rate on a line: means over blocks, seconds per step; `slowdown` is against no loss.

    `lost` is the measured share of lost packets. None is unknown.
    """

    loss: float
    blocks: int
    step_s: Figure | None
    communication_s: Figure | None
    slowdown: Contrast | None
    lost: float | None


class LossyLine(NamedTuple):
    """One line with ascending losses; `rtt_s` and `mss_bytes` were measured on the idle line."""

    name: str
    congestion: str
    stand_in: str
    rtt_s: float | None
    mss_bytes: float | None
    losses: Sequence[AtLoss]

    @property
    def alone(self) -> bool:
        return self.losses[0].loss > 0


def lossy_cells(names: Sequence[str], refused: list[str]) -> list[TrainedCell]:
    """Read every cell that trained over a line; add a line to `refused` for each unusable one.

    Raises: Refused, for none, and for runs of different machines.
    """
    cells = [
        cell
        for run in of_one_machine(load_each(names, refused), refused)
        for cell in cells_of_run(run, refused)
    ]
    if not cells:
        nothing = (
            f"{', '.join(names)}: no workload has a parameter {LOSS}; `pytest "
            "benchmarks/bench_cluster_network.py`."
        )
        raise Refused(refused[0] if refused else nothing)
    return cells


def cells_of_run(run: Run, refused: list[str]) -> list[TrainedCell]:
    return [
        *read_cells(
            run, (cell for cell in run.cells if LOSS in params_of(run, cell)), _trained, refused
        )
    ]


def _trained(run: Run, cell: Cell) -> TrainedCell:
    place, loss_percent = f"cell {cell.id}", params_of(run, cell)[LOSS]
    loss = as_number(loss_percent)
    if loss is None or not 0 <= loss < 100:
        raise Unreadable(
            f"{run.origin}: {place}: {LOSS} is {loss_percent!r}; it must be a number from 0 to 100."
        )
    if cell.metrics.get(STEP, 0.0) <= 0:
        raise Unreadable(f"{run.origin}: {place}: has no {STEP}.")
    facts = Part({**cell.facts}, run.origin, f"{place}, workload_facts").read(LineFacts)
    rows = [
        row.read(LineRow)
        for row in Part(cell.report.get("line", ()), run.origin, f"{place}, report.line").each()
    ]
    lost = rows[0].get("loss_percent_measured") if rows else None
    return {
        "run": run.run_id,
        "block": cell.block,
        "line": condition(params_of(run, cell), cell.tweakset, LOSS),
        "loss": loss / 100,
        "step_s": cell.metrics[STEP],
        "rtt_s": facts.get("rtt_s") or None,
        "mss_bytes": facts.get("mss_bytes") or None,
        "compute_s": facts.get("compute_s"),
        "congestion": facts.get("congestion") or "",
        "stand_in": facts.get("stand_in") or "",
        "lost": None if lost is None else lost / 100,
    }


def lines(cells: Sequence[TrainedCell]) -> list[LossyLine]:
    by_line: dict[Condition, list[TrainedCell]] = {}
    for cell in cells:
        by_line.setdefault(cell["line"], []).append(cell)
    ratios = {
        (row.line, row.arm): row
        for row in contrasts_of(cells, "loss", 0.0, {"step_s": "log"}, by=["line"])
    }
    result = []
    for name, line in zip(apart([dict(line) for line in by_line]), by_line, strict=True):
        slower = {loss: row for (other, loss), row in ratios.items() if other == line}
        result.append(_line(name, by_line[line], slower))
    return result


def _line(name: str, cells: Sequence[TrainedCell], slower: Mapping[float, Contrast]) -> LossyLine:
    def mean(name: str, own: Sequence[TrainedCell]) -> float | None:
        return average_of_known(cell[name] for cell in own)

    def communication_s(cell: TrainedCell) -> float | None:
        return None if cell["compute_s"] is None else cell["step_s"] - cell["compute_s"]

    losses = []
    for loss in sorted({cell["loss"] for cell in cells}):
        own = [cell for cell in cells if cell["loss"] == loss]
        step_s, spent_s = (
            over_blocks((_unit(cell), of(cell)) for cell in own)
            for of in (itemgetter("step_s"), communication_s)
        )
        losses.append(
            AtLoss(
                loss,
                len({_unit(cell) for cell in own}),
                step_s,
                spent_s,
                slower.get(loss),
                mean("lost", own),
            )
        )
    first = cells[0]
    return LossyLine(
        name,
        first["congestion"],
        first["stand_in"],
        mean("rtt_s", cells),
        mean("mss_bytes", cells),
        losses,
    )


def _unit(cell: TrainedCell) -> Unit:
    return cell["run"], cell["block"]


def lossy(lines: Sequence[LossyLine], refused: Sequence[str]) -> Answer:
    """Return the losses at which a step is slower, then a table per line."""
    steps = [(word, phrase) for line in lines for word, phrase in _steps(line)]
    return Answer(
        title=claimed(steps, "without loss")
        if steps
        else "No line was measured both with and without loss.",
        sections=[_section(line) for line in lines],
        data={"lines": lines},
        refused=refused,
    )


def _steps(line: LossyLine) -> Iterator[tuple[Word, str]]:
    of_word: dict[Word, list[AtLoss]] = {}
    for row in line.losses:
        if row.loss:
            of_word.setdefault(verdict(row.slowdown), []).append(row)
    for word, rows in of_word.items():
        times = [number(row.slowdown.value) for row in rows if row.slowdown is not None]
        long = (
            f" ({' to '.join(dict.fromkeys((times[0], times[-1])))} times as long)"
            if times and word in CLAIMS
            else ""
        )
        losses = ", ".join(f"{100 * row.loss:g}" for row in rows)
        yield word, ", ".join(filter(None, (line.name, f"{losses} %{long}")))


def _word(row: AtLoss) -> Word | None:
    return verdict(row.slowdown) if row.loss else None


def _section(line: LossyLine) -> Section:
    columns: Columns = [
        column("loss\n%", "loss", lambda loss: f"{100 * loss:g}"),
        *ratio_columns("a step is", _word, "slowdown"),
        column("step\ns", "step_s", middle),
        column("communi-\ncation s", "communication_s", middle),
        column("blocks", spare=1),
    ]
    rtt = NONE if line.rtt_s is None else f"{number(line.rtt_s * 1e3)} ms"
    about = [f"round trip {rtt}, segments of {number(line.mss_bytes, 4)} bytes", line.congestion]
    heading = Line(", ".join(part for part in about if part))
    return Section(
        line.name,
        [heading, table_of(columns, claims_first(line.losses, _word)), *bullets(_sentences(line))],
    )


def _sentences(line: LossyLine) -> Iterator[str]:
    if line.stand_in:
        yield f"STAND-IN: {line.stand_in}."
    if lost := [
        f"{100 * row.lost:.3g} % ({100 * row.loss:g} % requested)"
        for row in line.losses
        if row.loss and row.lost is not None
    ]:
        yield f"packets lost, as counted on the line: {', '.join(lost)}."
    if line.alone:
        yield "no cell without loss on this line: nothing to compare with."
