"""One look for all pictures: type, colours that the colour-blind can tell apart, and files that come out the same each time.

Matplotlib's settings hold only while a picture is drawn or written; nothing of pyplot is used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg

from analysis.files import write_whole
from analysis.terms import Refused

from .scene import NothingToDraw, Scene, changes_something, in_order
from .vector import FONT, as_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .page import Spec

LIKE_IT = "Verdana, sans-serif"  # what a browser takes that lacks our font: as wide
DPI = 200  # 1440 pixels: sharp on dense screens and on paper
WIDTH = 7.2  # inches of a sheet
LAST_ANSWER = 25  # of the order of pictures
FORMATS = ("svg", "png", "pdf")
SMALL, TEXT, HEAD, TITLE = 8.0, 8.5, 9.5, 12.0  # points
INK, QUIET, FAINT, BAND, GRID = "#1a1a1a", "#5f5f5f", "#b8b8b8", "#eeeeee", "#e2e2e2"
AGAIN = "#8c8c8c"  # an arm that changes nothing
BAR = "#8fb8d8"
WARM_UP, WRONG = "#f3e3c3", "#b00020"
# Okabe and Ito (2008) without yellow, which white paper swallows, and black, which is the baseline's; then the same with other marks.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "<")
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)), (0, (3, 3)), (0, (8, 3)))
SETTINGS: dict[Any, Any] = {
    "font.family": FONT,
    "font.size": TEXT,
    "text.color": INK,
    "text.hinting": "no_hinting",  # letters are as wide in pixels as on paper: text was wrapped by that
    "text.parse_math": False,  # a $ in a name is a $
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.labelsize": SMALL,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "axes.formatter.useoffset": False,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.2,
    "pdf.fonttype": 42,
}


class Look(NamedTuple):
    """How one tweak set is drawn wherever it appears."""

    color: str
    marker: str
    dashes: str | tuple[float, tuple[float, ...]]


@contextmanager
def house_style() -> Iterator[None]:
    """Hold the house's settings for as long as something is drawn or written; matplotlib's own are as before afterwards."""
    with rc_context(SETTINGS), warnings.catch_warnings():
        # A name may hold a letter the font lacks; a viewer of the SVG has it, or the picture shows a box.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


@dataclass(frozen=True)
class Picture:
    """A picture that is drawn from a scene: how, its place among the others, its title, and the question it answers.

    The rest says of which runs it is: `DESIGNS`, the designs whose picture it is, of all where there are none; `REPORTS`, what a workload
    must have reported, and `NOT_OF`, what it must not; `MONITORED`, whether it is of runs of monitors, or of all others.
    """

    function: Callable[[Scene], Spec]
    ORDER: int
    TITLE: str
    ANSWERS: str
    DESIGNS: frozenset[str] = frozenset()
    REPORTS: frozenset[str] = frozenset()
    NOT_OF: frozenset[str] = frozenset()
    MONITORED: bool | None = None

    @property
    def NAME(self) -> str:  # noqa: N802  # as the others
        """By which it is asked for: its function's."""
        return self.function.__name__

    @property
    def leads(self) -> bool:
        """Whether it answers what a run asked; those that say how far to trust the answer stand behind."""
        return self.ORDER <= LAST_ANSWER

    def draw(self, scene: Scene) -> Figure:
        """Draw it on a sheet. Raises: NothingToDraw, with the reason."""
        with house_style():
            return self.function(scene).lay_out(scene.runs, self.TITLE)


def picture(order: int, title: str, answers: str = "", **fits: Any) -> Callable[[Callable[[Scene], Spec]], Picture]:
    """Make a picture of the function that draws it; what it answers is the first line of its docstring, unless it is given."""
    return lambda function: Picture(function, order, title, answers or (function.__doc__ or "").partition("\n")[0], **fits)


def looks_of(scene: Scene) -> Mapping[str, Look]:
    """Give every tweak set its look: black for a baseline, grey for what changes nothing else, then colour and mark."""
    looks: dict[str, Look] = {}
    for run in scene.runs:
        looks[run.baseline] = Look(INK, "o", "-")
        looks |= {
            tweakset.name: Look(AGAIN, "s", "-")
            for tweakset in run.tweaksets.values()
            if not changes_something(tweakset) and tweakset.name not in looks
        }
    names = dict.fromkeys(name for run in scene.runs for name in in_order(run, run.tweaksets.values()))
    return looks | {name: look(place) for place, name in enumerate(name for name in names if name not in looks)}


def look(place: int) -> Look:
    """The look of one of several, by its place: colours first, then the same with other marks and dashes."""
    turn, at = divmod(place, len(COLOURS))
    return Look(COLOURS[at], MARKERS[(at + turn) % len(MARKERS)], DASHES[turn % len(DASHES)])


def svg(figure: Figure, name: str = "", title: str = "", description: str = "") -> str:
    """Write a picture as SVG, the same bytes each time: a file by itself, or with a name as part of a page."""
    with house_style():
        return as_svg(figure, f"{FONT}, {LIKE_IT}", name, title, description)


def written(figure: Figure, form: str) -> bytes:
    """Write a picture as a file of one of `FORMATS`."""
    if form == "svg":
        return svg(figure).encode()
    out = BytesIO()
    dateless = {"CreationDate": None} if form == "pdf" else {"Software": None}
    with house_style():
        FigureCanvasAgg(figure)
        figure.savefig(out, format=form, dpi=DPI, metadata=dateless)
    return out.getvalue()


def draw_file(path: Path, draw: Callable[[], Figure]) -> None:
    """Draw a picture into a file, whose name says its format. Raises: Refused, OSError."""
    try:
        write_whole(path, written(draw(), path.suffix.removeprefix(".")))
    except NothingToDraw as reason:
        raise Refused(f"{path}: not drawn: {str(reason).rstrip('.')}.") from None


def draw_into(folder: Path, drawings: Mapping[str, Callable[[], Figure]], form: str = "png") -> dict[str, str]:
    """Draw pictures into a folder by their names; return each one's file, or why there is none. Raises: OSError."""
    outcomes = {name: str(folder / f"{name}.{form}") for name in drawings}
    for name, draw in drawings.items():
        try:
            draw_file(Path(outcomes[name]), draw)
        except Refused as reason:
            outcomes[name] = str(reason).removeprefix(f"{outcomes[name]}: ")
    return outcomes
