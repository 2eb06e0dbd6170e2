"""Steps over lines that lose packets, as text of at most 100 columns and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import one_line, printable_json
from analysis.printing import columns, hanging, in_lines, on_page
from analysis.studies.jobs.queues.words import NONE, figure, number
from analysis.wording import probability

from .network import RULE
from .report_page import ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from .network import AtLoss, Line

SHAPES = {
    "√p": "as √p, as Mathis has it",
    "linear": "in proportion to the loss: each lost packet costs the same time, as timeouts do",
    "neither": "neither as √p nor in proportion to the loss",
    "open": "these runs cannot tell √p from proportion",
}


def as_json(lines: Sequence[Line], refused: Sequence[str]) -> str:
    """Write all of it for programs; losses are fractions."""
    return printable_json({"lines": [asdict(one) for one in lines], "rule": RULE, "refused": list(refused)})


def render(lines: Sequence[Line], *, color: bool = False) -> str:
    """Write it for people."""
    parts = [part for one in lines for part in _line(one)]
    return on_page([*parts, hanging([("•", RULE)], "dim", "dim")], color=color)


def _line(one: Line) -> Iterator[RenderableType]:
    yield Text(in_lines(one_line(one.name)), "bold")
    rtt = NONE if one.rtt_s is None else f"{number(one.rtt_s * 1e3)} ms"
    told = [f"round trip {rtt}, segments of {number(one.mss_bytes, 4)} bytes", one.congestion]
    yield ", ".join(one_line(part) for part in told if part)
    yield columns(
        ("loss %", "blocks", "step s", "slower [95 %]", "p", "comm. s", "Mathis s", "again %", "timeouts", "bound by"), map(_at, one.losses)
    )
    yield hanging(("•", line) for line in _said(one))
    yield ""


def _at(row: AtLoss) -> list[str]:
    communication = None if row.communication_s is None else row.communication_s.value
    return [
        f"{100 * row.loss:g}",
        f"{row.blocks}",
        NONE if row.step_s is None else number(row.step_s.value),
        ratio(row.slowdown),
        NONE if row.p is None else probability(row.p),
        number(communication),
        number(row.mathis_s),
        NONE if row.again is None else number(100 * row.again, 2),
        number(row.timeouts, 2),
        row.bound if row.loss else "",
    ]


def _said(one: Line) -> Iterator[str]:
    if one.stand_in:
        yield f"STAND-IN: {one_line(one.stand_in)}."
    if one.exponent is not None:
        losses = ", ".join(f"{100 * loss:g}" for loss in one.fitted)
        why = f" ({one.exponent.why})" if one.exponent.why else ""
        yield f"communication grows as loss^{figure(one.exponent)} over losses of {losses} %{why}: {SHAPES[one.shape]}."
    else:
        yield one.why
    ratios = [f"{100 * row.loss:g} %: {row.ratio:.3g}" for row in one.losses if row.ratio is not None]
    if ratios:
        yield f"communication over Mathis's time: {'; '.join(ratios)}. The law has one transfer, and the idle line's round trip."
    padhye = [f"{100 * row.loss:g} %: {row.padhye_s:.3g} s" for row in one.losses if row.padhye_s is not None]
    if padhye:
        yield f"with timeouts (Padhye): {'; '.join(padhye)}."
    if one.of_excess:
        yield "no cell told its arithmetic: communication is taken to be what a step takes longer than without loss."
    lost = [f"{100 * row.loss:g} %: {100 * row.lost:.3g} %" for row in one.losses if row.loss and row.lost is not None]
    if lost:
        yield f"lost, as counted on the line: {'; '.join(lost)}."
    yield from one.notes
