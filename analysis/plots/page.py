"""A sheet, 7.2 inches wide: how to read a picture above it, details of its run below it.

Everything is placed in inches from the upper left, so that nothing overlaps whatever the names and
number of rows. (Matplotlib's constrained layout does so too, but lays out each text twice more,
which doubles the time per picture.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Affine2D

from analysis.plain import one_line
from analysis.terms import Run
from analysis.wording import blocks_of, gpus_of, spoken, unsigned

from .labels import fit, joined, width_in, wrapped
from .scene import NothingToDraw
from .style import BAND, GRID, HEAD, HEADING, INK, QUIET, SMALL, TEXT, TITLE, WIDTH

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

T = TypeVar("T")
EDGE = 0.12
TALLEST = 120.0  # inches: the tallest sheet
# Inches: a line of small text, of text, of the legend.
LINE, TEXT_LINE, LEGEND_LINE = (0.16, 0.175, 0.19)
HANDLE, APART = 0.34, 0.16  # inches: the mark of a legend entry, the space before the next
TICK = 0.36  # inches: a number on an axis
ROUND = (1, 2, 5, 10)


def body_width() -> float:
    """Return the width of the body of a sheet, in inches."""
    return WIDTH - 2 * EDGE


class Chart(NamedTuple):
    """A part of a page with a head: title, small print beside or below it, lines of text.

    `draw` fills `tall` inches. Without a title there is no head. The foot of the page names only
    the runs of its sections.
    """

    title: str
    tall: float
    draw: Callable[[Page, float], object]
    beside: str = ""
    lines: Sequence[str] = ()
    run: Run | None = None

    def write_head(self, sheet: Page, top: float) -> float:
        """Write the head; return where the rest begins."""
        if not self.title:
            return top
        sheet.rule(top + 0.02)
        title = fit(self.title, body_width(), HEAD, weight="bold")
        sheet.text(0, top + 0.07, title, fontsize=HEAD, fontweight="bold")
        left = width_in(title, HEAD, "bold") + 0.15
        small: dict[str, Any] = {"fontsize": SMALL, "color": QUIET}
        top += 0.26
        if left + width_in(one_line(self.beside), SMALL) <= body_width():
            sheet.text(left, top - 0.175, self.beside, **small)
        else:
            top = sheet.lines(top, wrapped(self.beside, body_width(), SMALL), LINE, **small)
        return (
            sheet.lines(top, [line for text in self.lines for line in wrapped(text, body_width())])
            + 0.04
        )


class Entry(NamedTuple):
    """A line of the legend: a mark or line drawn with `style` (matplotlib), or a filled `patch`."""

    label: str
    style: Mapping[str, Any]
    patch: bool = False

    def artist(self) -> Artist:
        """Return the artist from which matplotlib's legend makes an entry."""
        return (
            Patch(label=self.label, **self.style)
            if self.patch
            else Line2D([], [], label=self.label, **self.style)
        )


class Plot(NamedTuple):
    """A picture before layout: how to read it, its sections from the top, and further notes.

    None entries and empty notes are omitted.
    """

    lead: str
    sections: Sequence[Chart]
    legend: Iterable[Entry | None] = ()
    notes: Iterable[str] = ()
    title: str = ""  # replaces the picture's own
    runs: Sequence[Run] = ()  # its runs, unless its sections name them

    def lay_out(self, every: Sequence[Run], title: str) -> Figure:
        """Draw it on a page, its sections one below the other. Raises: NothingToDraw.

        `every` is the list of runs that may be on it.
        """
        sections = [_with_run(section) if len(every) > 1 else section for section in self.sections]
        of = [section.run for section in sections]
        runs = self.runs or (every if None in of else [run for run in every if run in of])
        room = sum(section.tall for section in sections)
        if room > TALLEST:
            raise NothingToDraw(
                f"too many workloads and tweak sets for one picture: it would be {room:.0f} "
                "inches tall"
            )
        title = fit(self.title or title, body_width(), TITLE, weight="bold")
        sheet = Page(Figure(figsize=(WIDTH, TALLEST), facecolor="white", label=title), Affine2D())
        sheet.text(0, EDGE, title, fontsize=TITLE, fontweight="bold", gid=HEADING)
        top = sheet.lines(EDGE + 0.27, wrapped(self.lead, body_width())) + 0.06
        top = sheet.legend(top, [entry for entry in self.legend if entry]) + 0.04
        for section in sections:
            top = section.write_head(sheet, top)
            section.draw(sheet, top)
            top += section.tall
        notes = [line for note in self.notes for line in wrapped(note, body_width(), SMALL)]
        top = sheet.lines(top + 0.08, notes, LINE, fontsize=SMALL) + 0.05 * bool(notes)
        stamp = [line for run in runs for line in wrapped(stamp_of(run), body_width(), SMALL)]
        sheet.end(sheet.lines(top, stamp, LINE, fontsize=SMALL, color=QUIET) + EDGE)
        return sheet.figure


class Page(NamedTuple):
    """A page filled from the top, in inches from its upper edge and its body's left edge."""

    figure: Figure
    inches: Affine2D  # from these places to the page's lower left corner, once its height is known

    def axes(
        self,
        left: float,
        top: float,
        width: float,
        height: float,
        *,
        grid: str = "",
        most: Mapping[str, int] | None = None,
        **settings: Any,
    ) -> Axes:
        """Add axes; `grid`: the axis whose ticks have lines, `most`: an axis's most ticks."""
        box = ((EDGE + left) / WIDTH, 1 - (top + height) / TALLEST, width / WIDTH, height / TALLEST)
        axes: Axes = self.figure.add_axes(box, facecolor="none", **settings)
        if grid:
            axes.grid(axis=grid)  # type: ignore[arg-type]  # x or y
        rounded(axes, **(most or {}))
        return axes

    def text(self, left: float, top: float, text: str, **settings: Any) -> None:
        """Write text that hangs from (left, top) by default."""
        text = "\n".join(map(one_line, text.split("\n")))
        style: dict[str, Any] = {"fontsize": TEXT, "ha": "left", "va": "top"} | settings
        self.figure.text(
            EDGE + left, top, text, transform=self.inches + self.figure.dpi_scale_trans, **style
        )

    def lines(
        self, top: float, lines: Iterable[str], apart: float = TEXT_LINE, **settings: Any
    ) -> float:
        """Write lines one below the other; return where the next would begin."""
        for line in lines:
            self.text(0, top, line, **settings)
            top += apart
        return top

    def rule(self, top: float) -> None:
        """Draw a thin line across the body."""
        place = self.inches + self.figure.dpi_scale_trans
        self.figure.add_artist(
            Line2D([EDGE, WIDTH - EDGE], [top, top], color=GRID, linewidth=0.7, transform=place)
        )

    def legend(self, top: float, entries: Sequence[Entry]) -> float:
        """Explain marks in as many columns as fit; return where the rest begins."""
        if not entries:
            return top
        wide = [HANDLE + width_in(entry.label, SMALL) + APART for entry in entries]
        columns = next(
            (
                n
                for n in range(len(wide), 1, -1)
                if sum(map(max, np.array_split(wide, n))) <= body_width()
            ),
            1,
        )
        em = 72 / SMALL  # per inch
        self.figure.legend(
            handles=[entry.artist() for entry in entries],
            ncols=columns,
            loc="upper left",
            bbox_to_anchor=(EDGE, top),
            bbox_transform=self.inches + self.figure.dpi_scale_trans,
            borderaxespad=0,
            borderpad=0,
            handlelength=0.26 * em,
            handletextpad=(HANDLE - 0.26) * em,
            columnspacing=APART * em,
            labelspacing=LEGEND_LINE * em - 1.16,  # less the height of the letters
        )
        return top + LEGEND_LINE * math.ceil(len(entries) / columns) + 0.04

    def end(self, height: float) -> None:
        """Cut the page at this height; its content stays in place."""
        self.inches.scale(1, -1).translate(0, height)
        self.figure.set_figheight(height)
        for axes in self.figure.axes:
            box = axes.get_position()
            axes.set_position(
                (
                    box.x0,
                    1 - (1 - box.y0) * TALLEST / height,
                    box.width,
                    box.height * TALLEST / height,
                )
            )


def rounded(axes: Axes, **most: int) -> None:
    """Put at most `x=` and `y=` round numbers on the axes."""
    for which, count in most.items():
        fit_in = axes.get_position().width * WIDTH / TICK if which == "x" else count
        locator = MaxNLocator(min(count, max(2, int(fit_in))), steps=ROUND)
        getattr(axes, f"{which}axis").set_major_locator(locator)


def _with_run(section: Chart) -> Chart:
    name = f"run {section.run.run_id}" if section.run is not None else ""
    return (
        section
        if name in section.title
        else section._replace(beside=" · ".join(filter(None, (section.beside, name))))
    )


class SmallPanel(NamedTuple):
    """One of several small panels: its axes, and its upper left corner and width in inches.

    `first` is at the left end of its row.
    """

    sheet: Page
    axes: Axes
    left: float
    top: float
    wide: float
    first: bool

    def text(self, down: float, text: str, **style: Any) -> None:
        """Write small text above the axes."""
        self.sheet.text(self.left, self.top + down, text, **{"fontsize": SMALL, **style})

    def head(self, text: str, back: float = 0.0, **style: Any) -> None:
        """Write a heading, cut to fit; it begins `back` inches left of the axes."""
        self.sheet.text(
            self.left - back,
            self.top,
            fit(text, self.wide + back, weight="bold"),
            fontweight="bold",
            **style,
        )


class SmallPanels(NamedTuple):
    """Equal panels, `abreast` per row: inches above, of and below the axes of each.

    `left` of each panel, and `start` of each row, leave room for the numbers on the axis.
    """

    abreast: int
    above: float
    tall: float
    below: float
    left: float = 0.3
    start: float = 0.0
    gap: float = 0.0

    def height(self, count: int) -> float:
        """Return the height that this many panels need, in inches."""
        return (self.above + self.tall + self.below) * math.ceil(count / self.abreast)

    def draw(
        self, sheet: Page, top: float, items: Iterable[T], **settings: Any
    ) -> Iterator[tuple[T, SmallPanel]]:
        """Make the axes of a panel for each item."""
        wide = (
            body_width()
            - self.start
            - self.abreast * self.left
            - (self.abreast - 1) * self.gap
            - 0.05
        ) / self.abreast
        for at, item in enumerate(items):
            row, column = divmod(at, self.abreast)
            left, down = (
                self.start + self.left + column * (wide + self.left + self.gap),
                top + self.height(1) * row,
            )
            axes = sheet.axes(left, down + self.above, wide, self.tall, **settings)
            yield item, SmallPanel(sheet, axes, left, down, wide, first=column == 0)

    def section(
        self,
        title: str,
        items: Collection[T],
        paint: Callable[[SmallPanel, T], object],
        run: Run | None = None,
        **settings: Any,
    ) -> Chart:
        """Make a section with a panel for each item, which `paint` fills."""

        def draw(sheet: Page, top: float) -> None:
            for item, panel in self.draw(sheet, top, items, **settings):
                paint(panel, item)

        return Chart(title, self.height(len(items)), draw, run=run)

    def axes(self, sheet: Page, top: float) -> list[Axes]:
        """Make the axes of one row."""
        return [panel.axes for _, panel in self.draw(sheet, top, range(self.abreast))]


def dot(label: str, color: str = INK, marker: str = "o", size: float = 5.0, **style: Any) -> Entry:
    """Explain a mark."""
    return Entry(
        label, {"color": color, "marker": marker, "markersize": size, "linestyle": "none", **style}
    )


def line(label: str, color: str = INK, width: float = 1.4, **style: Any) -> Entry:
    """Explain a line."""
    return Entry(label, {"color": color, "linewidth": width, **style})


def fill(label: str, color: str = BAND, edge: str = GRID, **style: Any) -> Entry:
    """Explain a filled area, by default the band in which a change counts as none."""
    return Entry(label, {"facecolor": color, "edgecolor": edge, **style}, patch=True)


def verdict_entries(
    looks: Mapping[str, Mapping[str, Any]],
    drawn: Collection[str],
    words: Mapping[str, str] = MappingProxyType({}),
) -> list[Entry]:
    """Explain the marks of the verdicts present, in other `words` if a picture has them."""
    return [
        Entry(words.get(name, spoken(name)), {"markersize": 6, **look})
        for name, look in looks.items()
        if name in drawn
    ]


def margin_entry(
    margins: Iterable[float | None], text: str = "margin: ±{} counts as no difference", **style: Any
) -> Entry | None:
    """Explain the band of the declared margins; None if there are none."""
    sizes = joined(unsigned(margin) for margin in margins if margin)
    return fill(text.format(sizes), **style) if sizes else None


def stamp_of(run: Run) -> str:
    """Write a picture's run, machine and parameters: pictures are passed on without their page."""
    facts = run.machine
    parts = (
        f"Run {run.run_id}",
        run.started_utc and f"{run.started_utc[:16].replace('T', ' ')} UTC",
        f"{blocks_of(run)}, seed {run.design.seed}" if run.replicated else "",
        run.commit
        and f"commit {run.commit[:12]}{'+dirty' if run.commit.endswith('+dirty') else ''}",
        facts.get("kernel_release") and f"Linux {facts['kernel_release']}",
        facts.get("cpu_model"),
        facts.get("cpu_count") and f"{facts['cpu_count']} CPUs",
        (gpus := gpus_of(facts)) and f"GPU {', '.join(gpus)}",
        facts.get("hostname") and f"host {facts['hostname']}",
    )
    return " · ".join(str(part) for part in parts if part)
