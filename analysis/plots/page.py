"""A sheet of paper, 7.2 inches wide: what a picture shows stands above it, how and on what it was measured below it.

Everything is placed in inches from the upper left, so that nothing overlaps whatever the names are and however many rows there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from analysis.plain import one_line
from analysis.terms import Run
from analysis.wording import blocks_of, gpus_of, spoken, unsigned

from .labels import fit, fitted, joined, width_in, wrapped
from .scene import NothingToDraw
from .style import BAND, GRID, HEAD, HEADING, INK, QUIET, SMALL, TEXT, TITLE, WIDTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes


T = TypeVar("T")
EDGE = 0.12
TALLEST = 120.0  # inches that a sheet is high
LINE = 0.16  # of small text
HEAD_LINE = 0.19


def body_width() -> float:
    """Return the width of the body of a sheet, in inches."""
    return WIDTH - 2 * EDGE


class Section(NamedTuple):
    """A part of a page under a head of its own: title, small print beside or below it, lines of text; `draw` fills `tall` inches.

    Without a title it has no head. The foot of the page names the runs of its sections, and no others.
    """

    title: str
    tall: float
    draw: Callable[[Page, float], object]
    beside: str = ""
    lines: Sequence[str] = ()
    run: Run | None = None


class Entry(NamedTuple):
    """A line of the legend: a mark or a line drawn with `style` (matplotlib's words), or a filled `patch`."""

    label: str
    style: Mapping[str, Any]
    patch: bool = False


class Spec(NamedTuple):
    """A picture before it is laid out: how to read it, its sections from above, and what else must be explained.

    Entries that are None and empty notes are left out.
    """

    lead: str
    sections: Sequence[Section]
    legend: Iterable[Entry | None] = ()
    notes: Iterable[str] = ()
    title: str = ""  # in place of the picture's own
    runs: Sequence[Run] = ()  # that it is of, where its sections do not say

    def lay_out(self, every: Sequence[Run], title: str) -> Figure:
        """Draw it on a page of its own, its sections one below the other; `every` run might be on it. Raises: NothingToDraw."""
        sections = [_with_run(section) for section in self.sections] if len(every) > 1 else self.sections
        heads = [_head(section) for section in sections]
        tall = sum(head + section.tall for section, (_, head) in zip(sections, heads, strict=True))
        drawn = [section.run for section in sections if section.run is not None]
        runs = self.runs or ([run for run in every if run in drawn] if len(drawn) == len(sections) else every)
        legend = [entry for entry in self.legend if entry]
        sheet = page(runs, self.title or title, self.lead, tall, legend, list(filter(None, self.notes)))
        top = 0.0
        for section, (texts, head) in zip(sections, heads, strict=True):
            if texts:
                sheet.rule(top + 0.02)
            for left, down, text, style in texts:
                sheet.text(left, top + down, text, **style)
            section.draw(sheet, top + head)
            top += head + section.tall
        return sheet.figure


@dataclass(frozen=True, slots=True)
class Page:
    """A page with its head and foot drawn; the body is empty and `top` inches below the upper edge."""

    figure: Figure
    top: float
    height: float

    @property
    def width(self) -> float:
        """In inches."""
        return float(self.figure.get_figwidth())

    def axes(
        self,
        left: float,
        top: float,
        width: float,
        height: float,
        *,
        grid: str = "",
        most: Mapping[str, int] | None = None,
        whole: str = "",
        **settings: Any,
    ) -> Axes:
        """Add axes to the body; all in inches from its upper left corner.

        `grid` names the axis whose ticks have lines, `most` the largest number of ticks of an axis, `whole` an axis of whole numbers.
        """
        down = self.height - self.top - top - height
        box = ((EDGE + left) / self.width, down / self.height, width / self.width, height / self.height)
        axes: Axes = self.figure.add_axes(box, facecolor="none", **settings)
        if grid:
            axes.grid(axis=grid)  # type: ignore[arg-type]  # x or y
        for which, count in (most or {}).items():
            locator = MaxNLocator(count, steps=[1, 2, 5, 10], integer=which in whole)
            getattr(axes, f"{which}axis").set_major_locator(locator)
        return axes

    def text(self, left: float, top: float, text: str, **settings: Any) -> None:
        """Write in the body; the text hangs from (left, top) unless told otherwise."""
        text = "\n".join(map(one_line, text.split("\n")))
        style: dict[str, Any] = {"fontsize": TEXT, "ha": "left", "va": "top"} | settings
        self.figure.text((EDGE + left) / self.width, 1 - (self.top + top) / self.height, text, **style)

    def rule(self, top: float) -> None:
        """Draw a thin line across the body."""
        at = 1 - (self.top + top) / self.height
        self.figure.add_artist(Line2D([EDGE / self.width, 1 - EDGE / self.width], [at, at], color=GRID, linewidth=0.7))


def page(runs: Iterable[Run], title: str, lead: str, body_in: float, legend: Sequence[Entry] = (), notes: Sequence[str] = ()) -> Page:
    """Lay out a page whose body is `body_in` inches high; `lead` says how to read it, `notes` what must be known besides.

    Raises: NothingToDraw, where nobody could read so long a page.
    """
    head = wrapped(lead, body_width(), TEXT)
    title = fit(title, body_width(), TITLE, weight="bold")
    places, legend_in = _flow(legend)
    foot = [line for note in notes for line in wrapped(note, body_width(), SMALL)]
    stamp = [text for run in runs for text in wrapped(stamp_of(run), body_width(), SMALL)]
    legend_top = EDGE + 0.27 + HEAD_LINE * 0.92 * len(head) + 0.06
    top = legend_top + legend_in + 0.04
    height = top + body_in + 0.08 + LINE * (len(foot) + len(stamp)) + (0.05 if foot else 0) + EDGE
    if height > TALLEST:
        raise NothingToDraw(f"too many workloads and tweak sets for one picture: it would be {height:.0f} inches tall")
    sheet = Page(Figure(figsize=(WIDTH, height), facecolor="white", label=title), top, height)
    sheet.text(0, EDGE - top, title, fontsize=TITLE, fontweight="bold", gid=HEADING)
    for at, line in enumerate(head):
        sheet.text(0, EDGE + 0.27 + HEAD_LINE * 0.92 * at - top, line)
    for entry, left, row in places:
        draw_entry(sheet, entry, left, legend_top - top + HEAD_LINE * (row + 0.5))
    below = body_in + 0.08
    for line in foot:
        sheet.text(0, below, line, fontsize=SMALL)
        below += LINE
    below += 0.05 if foot else 0
    for line in stamp:
        sheet.text(0, below, line, fontsize=SMALL, color=QUIET)
        below += LINE
    return sheet


def _with_run(section: Section) -> Section:
    """Name the run of a section beside its title, unless the title does."""
    name = f"run {section.run.run_id}" if section.run is not None else ""
    return section if name in section.title else section._replace(beside=f"{section.beside}{' · ' if section.beside else ''}{name}")


def _head(section: Section) -> tuple[list[tuple[float, float, str, dict[str, Any]]], float]:
    """Return the texts of a section's head, each with its place and look, and the height of the head."""
    if not section.title:
        return [], 0.0
    shown = fit(section.title, body_width(), HEAD, weight="bold")
    texts: list[tuple[float, float, str, dict[str, Any]]] = [(0.0, 0.07, shown, {"fontsize": HEAD, "fontweight": "bold"})]
    quiet: dict[str, Any] = {"fontsize": SMALL, "color": QUIET}
    down, left = 0.26, width_in(shown, HEAD, "bold") + 0.15
    if section.beside and width_in(one_line(section.beside), SMALL) <= body_width() - left:
        texts.append((left, 0.085, section.beside, quiet))
    else:
        for line in wrapped(section.beside, body_width(), SMALL):
            texts.append((0.0, down, line, quiet))
            down += LINE
    for text in section.lines:
        for line in wrapped(text, body_width(), TEXT):
            texts.append((0.0, down, line, {}))
            down += HEAD_LINE * 0.92
    return texts, down + 0.04


def places(count: int, most: int, tall: float, *, left: float, gap: float, start: float = 0.0) -> list[tuple[float, float, float]]:
    """Set small panels in rows of `most`: left, top and width, inches.

    `left` of each, and `start` of a row, is for numbers.
    """
    wide = (body_width() - start - most * left - (most - 1) * gap - 0.05) / most
    return [(start + left + at % most * (wide + left + gap), at // most * tall, wide) for at in range(count)]


class SmallPanel(NamedTuple):
    """One of several small panels: its axes, and its upper left corner and width in inches; `first` stands at the left end of its row."""

    sheet: Page
    axes: Axes
    left: float
    top: float
    wide: float
    first: bool

    def text(self, down: float, text: str, *, right: bool = False, **style: Any) -> None:
        """Write small above the axes, flush left or right."""
        look = {"fontsize": SMALL, "ha": "right" if right else "left"} | style
        self.sheet.text(self.left + self.wide * right, self.top + down, text, **look)

    def head(self, text: str, back: float = 0.0, **style: Any) -> None:
        """Write a head, made to fit; it begins `back` inches left of the axes."""
        shown = fitted([text], self.wide + back, lines=1, weight="bold")[text]
        self.sheet.text(self.left - back, self.top, shown, fontweight="bold", **style)


class SmallPanels(NamedTuple):
    """Equal panels in rows of `abreast`: inches above, of and below the axes of each.

    `left` of each panel, and `start` of each row, is for the numbers on the axis.
    """

    abreast: int
    above: float
    tall: float
    below: float
    left: float = 0.3
    start: float = 0.0
    gap: float = 0.0

    def height(self, count: int) -> float:
        """Inches that so many panels need."""
        return (self.above + self.tall + self.below) * math.ceil(count / self.abreast)

    def draw(
        self,
        sheet: Page,
        top: float,
        items: Iterable[T],
        **settings: Any,
    ) -> Iterator[tuple[T, SmallPanel]]:
        """Make the axes of a panel for each item."""
        items = list(items)
        spots = places(len(items), self.abreast, self.height(1), left=self.left, gap=self.gap, start=self.start)
        for at, (item, (left, down, wide)) in enumerate(zip(items, spots, strict=True)):
            axes = sheet.axes(left, top + down + self.above, wide, self.tall, **settings)
            yield item, SmallPanel(sheet, axes, left, top + down, wide, first=at % self.abreast == 0)

    def section(
        self, title: str, items: Collection[T], paint: Callable[[SmallPanel, T], object], run: Run | None = None, **settings: Any
    ) -> Section:
        """Make a section of a panel for each item, which `paint` fills."""

        def draw(sheet: Page, top: float) -> None:
            for item, panel in self.draw(sheet, top, items, **settings):
                paint(panel, item)

        return Section(title, self.height(len(items)), draw, run=run)

    def axes(self, sheet: Page, top: float) -> list[Axes]:
        """Make the axes of one row."""
        return [panel.axes for _, panel in self.draw(sheet, top, range(self.abreast))]


def dot(label: str, color: str = INK, marker: str = "o", size: float = 5.0, **style: Any) -> Entry:
    """Explain a mark."""
    return Entry(label, {"color": color, "marker": marker, "markersize": size, "linestyle": "none", **style})


def line(label: str, color: str = INK, width: float = 1.4, **style: Any) -> Entry:
    """Explain a line."""
    return Entry(label, {"color": color, "linewidth": width, **style})


def fill(label: str, color: str = BAND, edge: str = GRID, **style: Any) -> Entry:
    """Explain a filled area; the band inside which a change counts as none, unless told otherwise."""
    return Entry(label, {"facecolor": color, "edgecolor": edge, **style}, patch=True)


def verdict_entries(
    looks: Mapping[str, Mapping[str, Any]], there: Collection[str], words: Mapping[str, str] = MappingProxyType({})
) -> list[Entry]:
    """Explain the verdicts that are there by their marks, in other `words` where a picture has them."""
    return [
        Entry(words.get(name, spoken(name)), {"linestyle": "-", "markersize": 6, **look}) for name, look in looks.items() if name in there
    ]


def margin_entry(margins: Iterable[float | None], text: str = "margin: ±{} counts as no difference", **style: Any) -> Entry | None:
    """Explain the band of the declared margins; None where there is none."""
    sizes = joined(unsigned(margin) for margin in margins if margin)
    return fill(text.format(sizes), **style) if sizes else None


def stamp_of(run: Run) -> str:
    """Say which run and machine a picture is of, and with which parameters: a picture is passed on without its page."""
    facts = run.machine
    gpus = gpus_of(facts)
    blocks = f"{blocks_of(run)}, seed {run.design.seed}" if run.replicated else ""
    parts = (
        f"Run {run.run_id}",
        run.started_utc[:16].replace("T", " ") + " UTC" if run.started_utc else "",
        blocks,
        f"commit {run.commit[:12]}{'+dirty' if run.commit.endswith('+dirty') else ''}" if run.commit else "",
        f"Linux {facts['kernel_release']}" if facts.get("kernel_release") else "",
        str(facts.get("cpu_model") or ""),
        f"{facts['cpu_count']} CPUs" if facts.get("cpu_count") else "",
        f"GPU {', '.join(gpus)}" if gpus else "",
        f"host {facts['hostname']}" if facts.get("hostname") else "",
    )
    return " · ".join(part for part in parts if part)


def _flow(legend: Sequence[Entry]) -> tuple[list[tuple[Entry, float, int]], float]:
    """Set the entries of a legend one after the other, in as many rows as they need."""
    places: list[tuple[Entry, float, int]] = []
    left, row = 0.0, 0
    for entry in legend:
        wide = 0.34 + width_in(entry.label, SMALL) + 0.14
        if places and left + wide > body_width():
            left, row = 0.0, row + 1
        places.append((entry, left, row))
        left += wide
    return places, (row + 1) * HEAD_LINE + 0.04 if places else 0.0


def draw_entry(sheet: Page, entry: Entry, left: float, top: float) -> None:
    """Draw one entry of a legend, its middle `top` inches down."""
    x, y = (EDGE + left) / sheet.width, 1 - (sheet.top + top) / sheet.height
    wide = 0.26 / sheet.width
    if entry.patch:
        size = (wide, 0.11 / sheet.height)
        sheet.figure.add_artist(Rectangle((x, y - size[1] / 2), *size, transform=sheet.figure.transFigure, **entry.style))
    else:
        at = [x, x + wide / 2, x + wide] if entry.style.get("linestyle", "-") != "none" else [x + wide / 2]
        sheet.figure.add_artist(Line2D(at, [y] * len(at), markevery=[len(at) // 2], **entry.style))
    sheet.text(left + 0.34, top, entry.label, fontsize=SMALL, va="center", color=INK)
