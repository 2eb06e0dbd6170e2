"""Parameters × effect: which key is in which tweak set, and what the set as a whole did under each workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle

from analysis.summary import SECTIONS, changes
from analysis.wording import number

from .lettering import fitted, room_for, width_in
from .measures import minus
from .page import INSIDE, Entry, page
from .points import judged_by_key, spoken
from .scene import NothingToDraw, changes_something, comparison_of, in_order, panels_of
from .style import BAND, FAINT, GRID, INK, QUIET, SMALL, drawn
from .untouched import is_called

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.terms import Run

    from .page import Page
    from .scene import Panel, Scene

TITLE = "Parameters and effects"
ANSWERS = "Which kernel parameter is in which tweak set, and what each set as a whole did to the speed."
ORDER = 60
MONITORED = False

ROW, KEYS, HEADS, VALUES, WIDEST, NARROWEST = 0.19, 2.45, 1.7, 1.2, 0.55, 0.125
# Blue is faster, orange slower: also told apart by the colour-blind, and by the sign.
FASTER, SLOWER = "#8fc1e3", "#f3b48a"
COLOURS = LinearSegmentedColormap.from_list("gain", ["#D55E00", SLOWER, "#f7f7f7", FASTER, "#0072B2"])
UNPROVEN = 0.15  # of its colour: what was not shown must not be what is seen first
FRAME: dict[str, Any] = {"edgecolor": INK, "linewidth": 1.5, "zorder": 3}
ON_COLOUR, DARK = "#1a1a1b", 0.75
SMALLEST_SCALE = 0.05
SECTION_TITLES = {
    "boot": "boot tokens",
    "ulimit": "limits",
    "service": "service units",
    "environment": "variables",
    "script": "changed by scripts",
}


@dataclass(frozen=True, slots=True)
class Key:
    """A parameter: its section and name, and tweak set → value asked for."""

    section: str
    name: str
    values: Mapping[str, str]


@drawn
def draw(scene: Scene) -> Figure:
    """Draw columns of tweak sets: above, the gain of each under each workload; below, the keys it changes."""
    panels = panels_of(scene)
    tweaksets = {name: run.tweaksets[name] for run in scene.runs for name in in_order(run, run.tweaksets.values())}
    ran = {arm for panel in panels for arm in panel.arms}
    names = [name for name, one in tweaksets.items() if changes_something(one) and name in ran]
    keys = keys_of(scene.runs, names)
    if not keys:
        raise NothingToDraw("no tweak set that was measured asks for any kernel parameter")
    said = [one for panel in panels for name in names if (one := comparison_of(scene, panel, name))]
    called = any(is_called(scene, one) for one in said)
    dot = {"color": INK, "marker": "o", "markersize": 6, "linestyle": "none"}
    legend = [
        Entry("changed alone: an effect framed there is this key's" if called else "changed alone", dot),
        Entry("changed together with others", dot | {"markerfacecolor": "white"}),
        Entry("faster", {"facecolor": FASTER}, patch=True),
        Entry("slower", {"facecolor": SLOWER}, patch=True),
        Entry("framed: improved or regressed; faint: no difference shown", FRAME | {"facecolor": "white"}, patch=True),
    ]
    lead = "Above: gain of each tweak set as a whole, %, in the workload's primary metric. Below: the keys it changes. "
    if judged_by_key(scene.runs):
        lead += f"Each against {scene.runs[0].baseline}; what single keys do is judged in “Effect of each key”."
    else:
        lead += "Keys that were changed together cannot be told apart: to know which one did it, measure a set with that key alone."
    if not called:
        doubted = any(one.verdict in {"improved", "regressed"} for one in said)
        lead += " A copy of stock differs as well (A/A): no set is called." if doubted else " No set was shown to differ."
    wide = [room_for([key.name for key in keys], KEYS, SMALL), room_for([panel.title for panel in panels], KEYS)]
    left = max([*wide, room_for([_section(key) for key in keys], KEYS)])
    labels = spoken(scene.runs, names)
    heads = room_for(labels.values(), HEADS, SMALL)
    titled = len({key.section for key in keys})
    wide_in = min(WIDEST, (INSIDE - left - VALUES - 0.1) / len(names))
    if wide_in < NARROWEST:
        raise NothingToDraw(f"{len(names)} tweak sets are too many columns for one page: nobody could read their names")
    sheet = page(scene, TITLE, lead, heads + ROW * (len(panels) + len(keys) + titled) + 0.3, legend)
    grid = Grid(sheet, left, wide_in, names)
    _heads(grid, heads, labels)
    _effects(grid, heads, panels, scene)
    _keys(grid, heads + ROW * len(panels) + 0.22, keys)
    return sheet.figure


def keys_of(runs: Sequence[Run], names: Sequence[str]) -> list[Key]:
    """List every parameter that some tweak sets change, section by section; of several runs, the first that has a set speaks for it."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for name in names:
        for section, key, value in changes(next(run for run in runs if name in run.tweaksets), name):
            values = found.setdefault((section, key), {})
            # Boot tokens may come twice (hugepagesz, hugepages): all of them count.
            values[name] = f"{values[name]} {value}" if name in values else value
    places = {section: place for place, section in enumerate(SECTIONS)}
    ordered = sorted(found.items(), key=lambda one: places.get(one[0][0], len(places)))
    return [Key(section, key, values) for (section, key), values in ordered]


class Grid(NamedTuple):
    """Where the columns stand: inches from the left of the page, width of each, and the tweak sets they are."""

    sheet: Page
    left: float
    column: float
    names: Sequence[str]

    def table(self, top: float, rows: int) -> Axes:
        """Add axes with a unit square for each row and column."""
        wide = self.column * len(self.names)
        axes = self.sheet.axes(self.left, top, wide, ROW * rows, xlim=(0, len(self.names)), ylim=(rows, 0), xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        for place in range(len(self.names) + 1):
            axes.axvline(place, color=GRID, linewidth=0.6, zorder=0.5)
        return axes

    def row_text(self, left: float, top: float, text: str, **style: Any) -> None:  # noqa: ANN401  # matplotlib's words
        """Write in the middle of the row that begins at `top`."""
        self.sheet.text(left, top + ROW / 2, text, va="center", **style)


def _section(key: Key) -> str:
    return SECTION_TITLES.get(key.section, key.section)


def _heads(grid: Grid, tall: float, labels: Mapping[str, str]) -> None:
    shown = fitted(labels.values(), tall - 0.1, SMALL, lines=2 if grid.column > 0.3 else 1)
    for place, name in enumerate(grid.names):
        middle = grid.left + grid.column * (place + 0.5)
        grid.sheet.text(middle, tall - 0.06, shown[labels[name]], rotation=90, ha="center", va="bottom", fontsize=SMALL, linespacing=1.0)


def _effects(grid: Grid, top: float, panels: Sequence[Panel], scene: Scene) -> None:
    places = [(row, place, panel, name) for row, panel in enumerate(panels) for place, name in enumerate(grid.names)]
    said = {(row, place): one for row, place, panel, name in places if (one := comparison_of(scene, panel, name))}
    gains = {at: gain for at, one in said.items() if (gain := one.primary.gain if one.primary else one.observed) is not None}
    largest = max([SMALLEST_SCALE, *map(abs, gains.values())])
    axes = grid.table(top, len(panels))
    titles = fitted([panel.title for panel in panels], grid.left - 0.15, lines=1)
    for row, panel in enumerate(panels):
        grid.row_text(grid.left - 0.1, top + ROW * row, titles[panel.title], ha="right")
    for (row, place), one in said.items():
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL, "zorder": 4}
        if (row, place) not in gains:
            axes.text(place + 0.5, row + 0.52, "×", color=QUIET, **style)
            continue
        called = is_called(scene, one)
        heat_cell(axes, (row, place), Heat(gains[row, place], gains[row, place] / largest, proven=called, called=called), grid.column)


class Heat(NamedTuple):
    """A gain as a coloured cell: `depth` of its colour from -1 to 1, pale where nothing was proven, framed where it was called."""

    gain: float
    depth: float
    proven: bool
    called: bool


def heat_cell(axes: Axes, at: tuple[int, int], heat: Heat, room_in: float) -> None:
    """Fill the cell at (row, column) of axes with a unit square for each, and write the gain into it."""
    row, place = at
    shade = heat.depth if heat.proven else heat.depth * UNPROVEN
    axes.add_patch(Rectangle((place + 0.03, row + 0.05), 0.94, 0.9, facecolor=COLOURS(0.5 + shade / 2), **(FRAME if heat.called else {})))
    color, weight = "white" if abs(shade) > DARK else ON_COLOUR, "bold" if heat.called else "normal"
    text = _short(heat.gain, room_in)
    axes.text(place + 0.5, row + 0.52, text, color=color, fontweight=weight, ha="center", va="center", fontsize=SMALL, zorder=4)


def _short(gain: float, room_in: float) -> str:
    """Write a gain as exactly as there is room for."""
    exact, rounded = minus(number(gain)), minus(f"{gain * 100:+.0f}")
    return next((text for text in (exact, rounded) if width_in(text, SMALL) <= room_in), "")


def _keys(grid: Grid, top: float, keys: Sequence[Key]) -> None:
    rows: list[Key | str] = []
    for one in keys:
        title = _section(one)
        rows += [one] if title in rows else [title, one]
    axes = grid.table(top, len(rows))
    shown = fitted([one.name for one in keys], grid.left - 0.15, SMALL, lines=1)
    right = grid.left + grid.column * len(grid.names) + 0.1
    grid.row_text(right, top, "values", fontsize=SMALL, fontweight="bold")
    alone = {name for name in grid.names if sum(name in one.values for one in keys) == 1}
    for row, key in enumerate(rows):
        down = top + ROW * row
        if isinstance(key, str):
            grid.row_text(grid.left - 0.1, down, key, ha="right", fontsize=SMALL, fontweight="bold")
            axes.axhline(row + 1, color=FAINT, linewidth=0.7)
            continue
        axes.axhspan(row, row + 1, color=BAND if row % 2 else "white", linewidth=0, zorder=0)
        grid.row_text(grid.left - 0.1, down, shown[key.name], ha="right", fontsize=SMALL)
        asked = ", ".join(dict.fromkeys(key.values.values()))
        grid.row_text(right, down, fitted([asked], INSIDE - right, SMALL, lines=1)[asked], fontsize=SMALL, color=QUIET)
        for place, name in enumerate(grid.names):
            if name in key.values:
                face = INK if name in alone else "white"
                axes.plot(place + 0.5, row + 0.5, "o", markersize=6, color=INK, markerfacecolor=face, markeredgewidth=1.1)
