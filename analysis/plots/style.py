"""One look for all pictures: type, colour-blind-safe colours, and reproducible files.

Matplotlib's settings apply only while a picture is drawn or written; pyplot is not used.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib import rc_context

from analysis.files import write_whole
from analysis.terms import Refused

from .scene import NothingToDraw, Scene, changes_something, in_order

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .page import Plot

FONT = "DejaVu Sans"  # matplotlib's own
FONTS = f"{FONT}, Verdana, sans-serif"  # fallbacks of equal width in browsers
DPI, DOTS_DPI = 200, 100  # 1440 pixels: sharp on screens and paper; for dots in an SVG
WIDTH = 7.2  # inches of a sheet
LAST_ANSWER = 25  # in the order of pictures
HEADING, HEADED = "heading", 25.0  # a page writes it above the picture; its height in points
# Characters that XML cannot hold or that reverse the text: shown as unknown, as in browsers.
UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
PLACE = re.compile(r' (?:d|x|y)="[^"]*"')  # hundredths of a point are enough
NOISE = re.compile(  # the font, set on the root; ids of groups, not unique; XML's own names
    "|".join(
        (
            f"; font-family: '{FONT}'",
            r'(?<=<g) id="[\w.]+_\d+"',
            r"(?<= )xlink:(?=href=)",
            r"(?<=>)\s+(?=<)",
            r' transform="rotate\(-0 [^"]*"',
        )
    )
)
SMALL, TEXT, HEAD, TITLE = 8.0, 8.5, 9.5, 12.0  # points
INK, QUIET, FAINT, BAND, GRID = "#1a1a1a", "#5f5f5f", "#b8b8b8", "#eeeeee", "#e2e2e2"
AGAIN = "#8c8c8c"  # an arm that changes nothing
WRONG = "#b00020"
# Okabe and Ito (2008) without yellow, invisible on white, and black, the baseline's; then the same
# with other marks.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "<")
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)), (0, (3, 3)), (0, (8, 3)))
SETTINGS: dict[Any, Any] = {
    "font.family": FONT,
    "font.size": TEXT,
    "text.color": INK,
    "text.hinting": "no_hinting",  # letters are as wide in pixels as on paper
    "text.parse_math": False,  # a $ in a name is a $
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.labelsize": SMALL,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
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
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}


class ArmStyle(NamedTuple):
    """The look of one tweak set in every picture."""

    color: str
    marker: str
    dashes: str | tuple[float, tuple[float, ...]]


@contextmanager
def house_style() -> Iterator[None]:
    """Apply the house's matplotlib settings while something is drawn or written."""
    with rc_context(SETTINGS), warnings.catch_warnings():
        # A name may contain a letter that the font lacks; the SVG viewer may have it, else it shows
        # a box.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


@dataclass(frozen=True)
class Picture:
    """A picture drawn from a scene: its function, place among the others, title and caption.

    The rest selects its runs: `DESIGNS`, the designs it shows (empty: all); `REPORTS`, reports that
    a workload must have, and `NOT_OF`, those it must not have; `MONITORED`, whether it shows runs
    of monitors, or all others.
    """

    function: Callable[[Scene], Plot]
    ORDER: int
    TITLE: str
    ANSWERS: str
    DESIGNS: frozenset[str] = frozenset()
    REPORTS: frozenset[str] = frozenset()
    NOT_OF: frozenset[str] = frozenset()
    MONITORED: bool | None = None

    @property
    def NAME(self) -> str:  # noqa: N802  # as the others
        """The picture's name on the command line: its function's."""
        return self.function.__name__

    @property
    def leads(self) -> bool:
        """Return whether the picture answers the run's question, not only how far to trust it."""
        return self.ORDER <= LAST_ANSWER

    def draw(self, scene: Scene) -> Figure:
        """Draw it on a sheet. Raises: NothingToDraw, with the reason."""
        with house_style():
            return self.function(scene).lay_out(scene.runs, self.TITLE)


def picture(
    order: int, title: str, answers: str = "", **fits: Any
) -> Callable[[Callable[[Scene], Plot]], Picture]:
    """Make a picture from the function that draws it; the docstring's first line is its caption."""
    return lambda function: Picture(
        function, order, title, answers or (function.__doc__ or "").partition("\n")[0], **fits
    )


def looks_of(scene: Scene) -> Mapping[str, ArmStyle]:
    """Return each tweak set's look: black for baselines, grey for those that change nothing."""
    looks: dict[str, ArmStyle] = {}
    for run in scene.runs:
        looks[run.baseline] = ArmStyle(INK, "o", "-")
        for tweakset in run.tweaksets.values():
            if not changes_something(tweakset):
                looks.setdefault(tweakset.name, ArmStyle(AGAIN, "s", "-"))
    names = dict.fromkeys(
        name for run in scene.runs for name in in_order(run, run.tweaksets.values())
    )
    return looks | {
        name: look(place) for place, name in enumerate(name for name in names if name not in looks)
    }


def look(place: int) -> ArmStyle:
    """Return the look by place: colours first, then the same with other marks and dashes."""
    turn, at = divmod(place, len(COLOURS))
    return ArmStyle(COLOURS[at], MARKERS[(at + turn) % len(MARKERS)], DASHES[turn % len(DASHES)])


def svg(figure: Figure, name: str = "", title: str = "", description: str = "") -> str:
    """Write a picture as reproducible SVG: a file, or part of a page if its ids have a `name`."""
    out = StringIO()
    unknown = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with house_style(), rc_context({"svg.hashsalt": f"deeptweak {name}"}):
        figure.savefig(out, format="svg", dpi=DOTS_DPI, metadata=unknown)
    whole = UNSEEN.sub("\ufffd", out.getvalue().replace("\n", ""))
    whole = PLACE.sub(lambda match: re.sub(r"(\.\d\d)\d+", r"\1", match[0]), NOISE.sub("", whole))
    start, wide, tall = re.findall(r'(<svg .*?viewBox="0 0 ([\d.]+) ([\d.]+)".*?>)', whole)[0]
    body = whole.partition("</defs>")[2]  # metadata and a style precede it
    look = f'font-family="{FONTS}" stroke-linejoin="round"'
    if not name:
        return f'<?xml version="1.0" encoding="utf-8"?>\n{start[:-1]} {look}>{body}'
    heading = re.compile(rf'<g id="{HEADING}">.*?</g>')  # which the page writes itself
    top = HEADED if heading.search(body) else 0.0
    title, description = (
        escape(UNSEEN.sub("\ufffd", text), quote=False) for text in (title, description)
    )
    texts = f'<title id="{name}-title">{title}</title><desc id="{name}-desc">{description}</desc>'
    view = f'viewBox="0 {top:g} {wide} {float(tall) - top:g}" role="img"'
    labels = f'aria-labelledby="{name}-title {name}-desc"'
    return f"<svg {view} {labels} {look}>{texts}{heading.sub('', body)}"


def written(figure: Figure, form: str) -> bytes:
    """Write a picture as a file: svg, png or pdf."""
    if form == "svg":
        return svg(figure).encode()
    out = BytesIO()
    with house_style():
        figure.savefig(
            out,
            format=form,
            dpi=DPI,
            metadata={"CreationDate" if form == "pdf" else "Software": None},
        )
    return out.getvalue()


def draw_file(path: Path, draw: Callable[[], Figure]) -> None:
    """Draw a picture into a file; the extension is its format. Raises: Refused, OSError."""
    try:
        write_whole(path, written(draw(), path.suffix.removeprefix(".")))
    except NothingToDraw as reason:
        raise Refused(f"{path}: not drawn: {str(reason).rstrip('.')}.") from None


def draw_into(
    folder: Path, drawings: Mapping[str, Callable[[], Figure]], form: str = "png"
) -> dict[str, str]:
    """Draw pictures into a folder by name; return each one's file, or why there is none.

    Raises: Refused, if one cannot be written.
    """
    outcomes = {name: str(folder / f"{name}.{form}") for name in drawings}
    for name, draw in drawings.items():
        try:
            figure = draw()
        except NothingToDraw as reason:
            outcomes[name] = f"not drawn: {str(reason).rstrip('.')}."
        else:
            write_whole(Path(outcomes[name]), written(figure, form))
    return outcomes
