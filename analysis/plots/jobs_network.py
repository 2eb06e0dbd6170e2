"""Training over lines that lose packets: step time by loss, and communication beside what TCP's own law has it take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from analysis.studies.jobs.queues.words import figure, unit
from analysis.wording import digits

from .jobs_shared import interval, scaled
from .marks import log_or_linear
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .scene import NothingToDraw
from .style import COLOURS, INK, QUIET, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.jobs.dependability.network import Line
    from analysis.terms import Run

    from .page import Page
    from .scene import Scene

TITLE = "Training over lines that lose packets"
ANSWERS = "How much longer a step takes at which loss, and whether it is TCP's law, its timeouts or something else that decides."
ORDER = -1
REPORTS = frozenset({"network"})

LEFT, GAP, TALL, BELOW = 0.62, 0.35, 1.9, 0.55
MATHIS, PADHYE = COLOURS[1], COLOURS[0]
NONE = 3.0  # by which factor below the smallest loss "none" is drawn


@drawn
def draw(scene: Scene) -> Figure:
    """Draw two panels a line: steps, and what of them is communication."""
    found = lines_of(scene)
    lead = (
        "Left: mean time of a step by the share of packets lost, 95 % intervals over blocks. Right: what of it is communication, where "
        "packets were lost, beside the time that TCP would need for as many bytes by Mathis's law (∝ √p) and with timeouts (Padhye)."
    )
    legend = [
        Entry("measured", {"color": INK, "marker": "o", "markersize": 5.5}),
        Entry("Mathis's law", {"color": MATHIS, "linestyle": (0, (5, 1.5)), "linewidth": 1.4}),
        Entry("with timeouts (Padhye)", {"color": PADHYE, "linestyle": (0, (1.5, 1.2)), "linewidth": 1.4}),
    ]
    height = PANEL_HEAD + TALL + BELOW
    sheet = page(scene, TITLE, lead, height * len(found), legend, [note for _, line in found for note in _notes(line)])
    for at, (run, line) in enumerate(found):
        whose = f" · run {run.run_id}" if len(scene.runs) > 1 else ""
        panel_head(sheet, at * height, title(line) + whose, _beside(line))
        _panel(sheet, at * height + PANEL_HEAD, line)
    return sheet.figure


def lines_of(scene: Scene) -> list[tuple[Run, Line]]:
    """Take every line that lost packets. Raises: NothingToDraw."""
    found = [(one.run, line) for one in scene.streams for line in one.lines if any(row.loss > 0 and row.step_s for row in line.losses)]
    if not found:
        raise NothingToDraw("no line lost packets")
    return found


def title(line: Line) -> str:
    """What a line is called: what was asked for besides the loss."""
    return line.name.partition(":")[2].replace(":", " · ") or "a line without a delay"


def _beside(line: Line) -> str:
    parts = ["" if line.rtt_s is None else f"round trip {digits(1000 * line.rtt_s, 2)} ms", line.congestion, line.stand_in]
    return ", ".join(part for part in parts if part)


def _panel(sheet: Page, top: float, line: Line) -> None:
    wide = (INSIDE - GAP) / 2 - LEFT
    _steps(sheet.axes(LEFT, top, wide, TALL), line)
    _communication(sheet.axes(LEFT + wide + GAP + LEFT, top, wide - 0.05, TALL), line)


def _steps(axes: Axes, line: Line) -> None:
    rows = [row for row in line.losses if row.step_s is not None]
    scale, short = unit(row.step_s.value for row in rows if row.step_s is not None)
    smallest = min(row.loss for row in rows if row.loss > 0)
    none = smallest / NONE
    for row in rows:
        if row.step_s is not None:
            interval(axes, row.loss or none, scaled(row.step_s, scale), {"color": INK, "marker": "o"}, "y")
    places = [(row.loss or none, row.step_s.value * scale) for row in rows if row.step_s is not None]
    axes.plot(*zip(*places, strict=True), color=QUIET, linewidth=0.9, zorder=1)
    ends = [end * scale for row in rows if (one := row.step_s) for end in (one.value, one.low, one.high) if end is not None and end > 0]
    log_or_linear(axes, "y", min(ends), max(ends))
    losses(axes, sorted({row.loss or none for row in rows}), none if any(row.loss == 0 for row in rows) else None)
    axes.set_ylabel(f"step, {short}")


def _communication(axes: Axes, line: Line) -> None:
    rows = [row for row in line.losses if row.loss > 0 and row.communication_s is not None and row.communication_s.value > 0]
    laws = [(MATHIS, (0, (5, 1.5)), "mathis_s"), (PADHYE, (0, (1.5, 1.2)), "padhye_s")]
    told = [row.communication_s.value for row in rows if row.communication_s is not None]
    scale, short = unit(told)
    heights = [one * scale for one in told]
    for color, dashes, name in laws:
        law = [(row.loss, value * scale) for row in rows if (value := getattr(row, name)) is not None]
        heights += [value for _, value in law]
        if law:
            axes.plot(*zip(*law, strict=True), color=color, linestyle=dashes, linewidth=1.4, zorder=1)
    for row in rows:
        if row.communication_s is not None:
            interval(axes, row.loss, scaled(row.communication_s, scale), {"color": INK, "marker": "o"}, "y")
    if not rows:
        axes.text(0.5, 0.5, "no communication time is known", transform=axes.transAxes, ha="center", color=QUIET)
        axes.set(xticks=[], yticks=[])
        return
    log_or_linear(axes, "y", min(heights), max(heights))
    losses(axes, [row.loss for row in rows], None)
    axes.set_ylabel(f"communication, {short}")


def losses(axes: Axes, places: list[float], none: float | None) -> None:
    """Scale an axis of losses by ratios; `none` is where no loss stands, left of all others."""
    axes.set(xscale="log", xlim=(min(places) / 1.6, max(places) * 1.6), xlabel="packets lost")
    axes.xaxis.set_major_locator(FixedLocator(places))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: "none" if value == none else f"{100 * value:g} %"))
    axes.grid(axis="y")


def _notes(line: Line) -> list[str]:
    bounds = [f"{row.bound} at {100 * row.loss:g} %" for row in line.losses if row.loss > 0]
    said = [f"{title(line)}: bound by {', '.join(bounds)}."] if bounds else []
    if line.exponent is not None:
        said.append(f"{title(line)}: communication goes as loss^β with β {figure(line.exponent)} ({line.shape}); Mathis has ½.")
    return [*said, *(f"{title(line)}: {note}" for note in line.notes)]
