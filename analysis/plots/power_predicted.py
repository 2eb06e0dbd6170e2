"""What the model said against what was measured: the error of each iteration, images/s and the largest reading."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from matplotlib.ticker import FuncFormatter, MaxNLocator

from analysis.studies.power.reporting.figures import steady
from analysis.studies.power.reporting.study import PREDICTED, as_asked
from analysis.studies.power.reporting.words import unit_of

from .labels import minus
from .lettering import wrapped
from .page import INSIDE, LINE, PANEL_HEAD, Entry, page, panel_head
from .power_shared import CAPPED, looks, parts_of, sources
from .scene import NothingToDraw
from .style import INK, SMALL, drawn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matplotlib.figure import Figure

    from analysis.studies.power.reporting.terms import Iteration

    from .page import Page
    from .power_shared import Part
    from .scene import Scene
    from .style import Look

TITLE = "Predicted and measured"
ANSWERS = "How far the model that algorithms plan with is off, which way, and where."
ORDER = 8
REPORTS = CAPPED

TALL, BELOW, LEFT, GAP = 2.0, 0.5, 0.55, 0.3
LEAST = 2.0  # percent to either side that are in view
Errors = dict[str, list[tuple[float, float]]]  # algorithm → (measured, predicted ÷ measured − 1)


@drawn
def draw(scene: Scene) -> Figure:
    """Draw two panels a back-end."""
    parts = parts_of(scene)
    errors = [[_errors(part, of) for of in PREDICTED.values()] for part in parts]
    kept = [(part, both) for part, both in zip(parts, errors, strict=True) if any(both)]
    if not kept:
        raise NothingToDraw("no algorithm predicted what it set, or no iteration that was predicted ran as it was asked to")
    style = looks(parts)
    lead = (
        "Each dot is a steady iteration that ran as it was asked to: its measured value, and by how much more (above 0) or less was "
        "predicted. Power is foretold as the largest reading of an iteration. In words: the median of all errors, and of their sizes."
    )
    shown = sorted({name for _, both in kept for one in both for name in one})
    legend = [
        Entry(name, {"color": style[name].color, "marker": style[name].marker, "markersize": 4.5, "linestyle": "none"}) for name in shown
    ]
    words = [_words(both) for _, both in kept]
    tall = [PANEL_HEAD + LINE * len(lines) + 0.12 + TALL + BELOW for lines in words]
    sheet = page(scene, TITLE, lead, sum(tall), legend, sources([part for part, _ in kept]))
    top = 0.0
    for (part, both), lines, height in zip(kept, words, tall, strict=True):
        several = f" · run {part.run.run_id}" if len(parts) > 1 else ""
        panel_head(sheet, top, f"back-end {part.side.backend}{several}")
        for at, line in enumerate(lines):
            sheet.text(0, top + PANEL_HEAD + LINE * at, line, fontsize=SMALL)
        _panels(sheet, top + PANEL_HEAD + LINE * len(lines) + 0.12, part, both, style)
        top += height
    return sheet.figure


def _errors(part: Part, of: Callable[[Iteration], tuple[float | None, float | None]]) -> Errors:
    found: Errors = {}
    for cell in part.cells:
        for row in as_asked(steady(cell.iterations)):
            said, was = of(row)
            if said is not None and was:
                found.setdefault(cell.arm, []).append((was, said / was - 1))
    return found


def _words(both: list[Errors]) -> list[str]:
    """A line an algorithm: the middle of its errors, and how large one is as a rule."""
    lines = []
    for name in sorted({name for one in both for name in one}):
        known = [(what, [error for _, error in errors[name]]) for what, errors in zip(PREDICTED, both, strict=True) if name in errors]
        said = [
            f"{what} {100 * statistics.median(errors):+.1f} % (off by {100 * statistics.median(map(abs, errors)):.1f} %)"
            for what, errors in known
        ]
        lines += wrapped(minus(f"{name}: {', '.join(said)}; {len(known[0][1])} iterations"), INSIDE, SMALL)
    return lines


def _panels(sheet: Page, top: float, part: Part, both: list[Errors], style: Mapping[str, Look]) -> None:
    wide = (INSIDE - 2 * LEFT - GAP) / 2
    labels = ("images/s, measured", f"largest reading, {unit_of(part.side)}, measured")
    for at, (errors, label) in enumerate(zip(both, labels, strict=True)):
        axes = sheet.axes(LEFT + at * (wide + LEFT + GAP / 2), top, wide, TALL)
        axes.axhline(0, color=INK, linewidth=0.9, zorder=1)
        axes.grid(visible=True)
        far = max([LEAST, *(abs(100 * error) for points in errors.values() for _, error in points)])
        for name, points in errors.items():
            look = style[name]
            axes.plot(
                [x for x, _ in points],
                [100 * y for _, y in points],
                linestyle="none",
                marker=look.marker,
                markersize=3,
                color=look.color,
                markeredgewidth=0,
                alpha=0.5,
                zorder=2,
                rasterized=True,
            )
        axes.set(xlabel=label, ylabel="predicted is more, %")
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: minus(f"{value:+g}") if value else "0"))
        axes.margins(0.08)
        axes.set_ylim(-1.1 * far, 1.1 * far)
