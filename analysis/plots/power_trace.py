"""Controllers at work: what was drawn from iteration to iteration against the cap, and below it what was set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.ticker import MaxNLocator

from analysis.studies.power.reporting.figures import RULE, phases, steady

from .lettering import fitted
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .power_shared import CAPPED, limited, looks, parts_of, sources
from .scene import NothingToDraw
from .style import BAND, FAINT, GRID, INK, QUIET, SMALL, TEXT, WRONG, drawn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.power.reporting.terms import Capped, Group, Iteration, Knobs

    from .page import Page
    from .power_shared import Part
    from .scene import Scene
    from .style import Look

TITLE = "Controllers at work"
ANSWERS = "How each algorithm comes to a cap, whether it stays below it, and what it sets to do so."
ORDER = 6
REPORTS = CAPPED

BESIDE, LEFT, GAP, NAME, DRAW, KNOB, SPACE, BELOW = 4, 0.5, 0.42, 0.22, 1.05, 0.45, 0.24, 0.5
MOST_TASKS = 3
# What sets the pace, the first of these that was set; its name, and its factor.
PACES: tuple[tuple[str, Callable[[Knobs], float | None]], ...] = (
    ("SM clock, MHz", lambda one: one.sm_mhz),
    ("throttle, part of the time", lambda one: one.throttle),
    ("power limit, W", lambda one: one.power_limit_w),
    ("images in batches", lambda one: float(sum(one.batches)) if one.batches else None),
)


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a small panel an algorithm and task."""
    parts = parts_of(scene)
    every = [(part, group) for part in parts for group in part.side.groups if _arms(part, group)]
    if not every:
        raise NothingToDraw("nothing read what was drawn: there is no sensor of power and no measure of activity")
    # Where the cap changes there is most to see.
    kept = sorted(sorted(range(len(every)), key=lambda at: -len(every[at][1].caps))[:MOST_TASKS])
    panels = [every[at] for at in kept]
    style = looks(parts)
    lead = (
        "Above: means of iterations, strong in the first block, faint in the others, and as dots the largest reading of each iteration in "
        "the first block. Below: what set the pace, as it was. On the shaded ground iterations are steady: figures are of these."
    )
    legend = [
        Entry("mean of an iteration", {"color": INK, "linewidth": 1.5}),
        Entry("largest reading", {"color": INK, "marker": ".", "markersize": 5, "linestyle": "none"}),
        Entry("other blocks, and copies", {"color": FAINT}),
        Entry("cap", {"color": WRONG, "linestyle": "--"}),
        Entry("asked for and not had", {"color": QUIET, "linestyle": ":"}),
        Entry("steady", {"facecolor": BAND, "edgecolor": GRID}, patch=True),
    ]
    left_out = len(every) - len(panels)
    notes = [*sources(parts), f"{RULE[0].upper()}{RULE[1:]}."]
    notes += [f"{left_out} more tasks are not drawn: those with most changes of the cap are, then the first."] if left_out else []
    tall = [PANEL_HEAD + _rows(part, group) * _row_in() for part, group in panels]
    sheet = page(scene, TITLE, lead, sum(tall), legend, notes)
    top = 0.0
    for (part, group), height in zip(panels, tall, strict=True):
        panel_head(sheet, top, part.title(group, parts), limited(part))
        _task(sheet, top + PANEL_HEAD, part, group, style)
        top += height
    return sheet.figure


def _row_in() -> float:
    return NAME + DRAW + SPACE + KNOB + BELOW


def _arms(part: Part, group: Group) -> list[str]:
    """Algorithms of which something was read."""
    return [
        one.name for one in group.arms if any(row.power_mean is not None for cell in part.of(group, one.name) for row in cell.iterations)
    ]


def _rows(part: Part, group: Group) -> int:
    return -(-len(_arms(part, group)) // BESIDE)


def _task(sheet: Page, top: float, part: Part, group: Group, style: Mapping[str, Look]) -> None:
    names = _arms(part, group)
    every = [row for name in names for cell in part.of(group, name) for row in cell.iterations]
    highest = 1.06 * max(value for row in every for value in (row.cap, row.power_max or row.power_mean or 0.0))
    lowest = 0.94 * min(value for row in every for value in (row.cap, row.power_mean or row.cap))
    last = max(row.number for row in every)
    wide = (INSIDE - LEFT - (BESIDE - 1) * GAP - 0.05) / BESIDE
    shown = fitted(names, wide, TEXT, lines=1, weight="bold")
    for at, name in enumerate(names):
        row, column = divmod(at, BESIDE)
        left, above = LEFT + column * (wide + GAP), top + row * _row_in()
        sheet.text(left, above + 0.02, shown[name], fontweight="bold", color=style[name].color)
        axes = sheet.axes(left, above + NAME, wide, DRAW, xlim=(-0.5, last + 0.5), ylim=(lowest, highest))
        cells = part.of(group, name)
        _draws(axes, cells, style[name])
        axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        axes.tick_params(labelbottom=False, labelleft=not column)
        knob = sheet.axes(left, above + NAME + DRAW + SPACE, wide, KNOB, xlim=(-0.5, last + 0.5))
        _knob(knob, cells[0], style[name])
        knob.set_xlabel("iteration")


def _draws(axes: Axes, cells: Sequence[Capped], look: Look) -> None:
    _ground(axes, cells[0].iterations)
    for cell in cells[1:]:
        known = [row for row in cell.iterations if row.power_mean is not None]
        axes.plot([row.number for row in known], [row.power_mean or 0.0 for row in known], color=FAINT, linewidth=0.6, zorder=1)
    rows = [row for row in cells[0].iterations if row.power_mean is not None]
    axes.plot([row.number for row in rows], [row.power_mean or 0.0 for row in rows], color=look.color, linewidth=1.5, zorder=3)
    most = [row for row in rows if row.power_max is not None]
    axes.plot([row.number for row in most], [row.power_max or 0.0 for row in most], ".", color=look.color, markersize=3.5, zorder=3)
    numbers = [row.number for row in cells[0].iterations]
    axes.step(numbers, [row.cap for row in cells[0].iterations], where="mid", color=WRONG, linestyle="--", linewidth=1.1, zorder=2)


def _ground(axes: Axes, rows: Sequence[Iteration]) -> None:
    for phase in phases(rows):
        if counted := steady(phase):
            axes.axvspan(counted[0].number - 0.5, counted[-1].number + 0.5, color=BAND, linewidth=0, zorder=0)


def _knob(axes: Axes, cell: Capped, look: Look) -> None:
    """What set the pace in the first block; where another was asked for than was had, that too."""
    _ground(axes, cell.iterations)
    name, of = next((one for one in PACES if any(one[1](row.actual) is not None for row in cell.iterations)), ("", None))
    axes.text(0.0, 1.02, name, transform=axes.transAxes, fontsize=SMALL, color=QUIET, va="bottom", ha="left")
    axes.yaxis.set_major_locator(MaxNLocator(2, steps=[1, 2, 5, 10]))
    if of is None:
        return
    numbers = [row.number for row in cell.iterations]
    had, asked = (
        [of(knobs) for knobs in ones] for ones in ([row.actual for row in cell.iterations], [row.asked for row in cell.iterations])
    )
    if any(one is not None and one != other for one, other in zip(asked, had, strict=True)):
        axes.step(numbers, [float("nan") if one is None else one for one in asked], where="mid", color=QUIET, linestyle=":", linewidth=1.0)
    axes.step(numbers, [float("nan") if one is None else one for one in had], where="mid", color=look.color, linewidth=1.3)
    axes.margins(y=0.25)
