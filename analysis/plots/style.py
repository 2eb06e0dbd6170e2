"""One look for all pictures: type, colours that the colour-blind can tell apart, and files that come out the same each time.

Matplotlib's settings hold only while a picture is drawn or written; nothing of pyplot is used.
"""

from __future__ import annotations

import re
import warnings
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary
from xml.etree import ElementTree as ET

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from analysis.files import write_whole
from analysis.terms import Refused

from .scene import NothingToDraw, Scene, changes_something, in_order

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

    from .page import Spec

FONT = "DejaVu Sans"  # matplotlib's own
LIKE_IT = "Verdana, sans-serif"  # what a browser takes that lacks our font: as wide
DPI, DOTS_DPI = 200, 130  # 1440 pixels: sharp on dense screens and on paper; and that of clouds of dots in an SVG
WIDTH = 7.2  # inches of a sheet
LAST_ANSWER = 25  # of the order of pictures
FORMATS = ("svg", "png", "pdf")
PNG = "data:image/png;base64,"
HEADING, HEADED = "the heading", 25.0  # what a page says itself, above a picture in it; points that it takes
SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
# What XML cannot hold, and what would turn the letters around: shown as unknown, as a browser would.
UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
TOLD: WeakKeyDictionary[Artist, Sequence[str]] = WeakKeyDictionary()
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
    "svg.fonttype": "none",
    "svg.hashsalt": "deeptweak",
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


def set_tooltip(artist: Artist, *texts: str) -> None:
    """Give the marks of an artist what they say when they are pointed at: a text for all, or one each."""
    TOLD[artist] = texts


def svg(figure: Figure, name: str = "", title: str = "", description: str = "") -> str:
    """Write a picture as SVG, the same bytes each time: a file, or, with a name that begins its ids, a part of a page."""
    told = {f"told-{at}": artist for at, artist in enumerate(one for one in figure.findobj() if one in TOLD)}
    for gid, artist in told.items():
        artist.set_gid(gid)
    out = StringIO()
    with house_style():
        figure.savefig(out, format="svg", dpi=DOTS_DPI)
    root = ET.fromstring(UNSEEN.sub("\ufffd", out.getvalue()))  # noqa: S314  # written a line above
    root.remove(root[0])  # who wrote it
    root.remove(root[0])  # a style, which the root has as well
    groups: dict[str, ET.Element] = {}
    for part in root.iter():
        part.tag, part.text, part.tail = part.tag.removeprefix(SVG), (part.text or "").strip() or None, None
        if part.tag == "g":
            groups[part.attrib.pop("id", "")] = part
        part.attrib = {key.removeprefix(XLINK): _attribute(key, value, name or "m") for key, value in part.items()}
    for group in root.iter("g"):
        _join(group)
    for gid, artist in told.items():
        if gid in groups:
            _tell(groups[gid], TOLD[artist])
    look = {"font-family": f"{FONT}, {LIKE_IT}", "stroke-linejoin": "round"}
    if not name:
        root.attrib |= {"xmlns": SVG[1:-1], **look}
        return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}'
    wide, tall = float(root.attrib["width"][:-2]), float(root.attrib["height"][:-2])
    heading = groups.get(HEADING)
    if heading is not None:  # which the page says itself
        heading.clear()
    top = HEADED if heading is not None else 0.0
    root.attrib = {"viewBox": f"0 {top:g} {wide:g} {tall - top:g}", "role": "img", "aria-labelledby": f"{name}-title {name}-desc", **look}
    for at, (tag, text) in enumerate({"title": title, "desc": description}.items()):
        root.insert(at, ET.Element(tag, id=f"{name}-{tag}"))
        root[at].text = UNSEEN.sub("\ufffd", text)
    return ET.tostring(root, encoding="unicode")


def _attribute(key: str, value: str, name: str) -> str:
    """Write an attribute shorter, ids with the picture's name before them, and no font: the root has it."""
    if key == "id":
        return f"{name}-{value}"
    if value.startswith(PNG):
        return PNG + b64encode(_fewer(b64decode(value.removeprefix(PNG)))).decode()
    if key in {"d", "x", "y"}:  # hundredths of a point are enough
        value = re.sub(r"(\.\d\d)\d+", r"\1", value)
    return re.sub(r"^#|(?<=url\()#", f"#{name}-", " ".join(value.split())).replace(f"; font-family: '{FONT}'", "")


def _fewer(pixels: bytes) -> bytes:
    """Give a cloud of dots, which has one colour at a few opacities, a palette: a quarter of the size."""
    out = BytesIO()
    Image.open(BytesIO(pixels)).quantize(32, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(out, "png", optimize=True)
    return out.getvalue()


def _join(group: ET.Element) -> None:
    """Give a look that all parts of a group have to the group."""
    looks = {part.get("style", "") for part in group}
    look = looks.pop() if len(looks) == 1 else ""
    if look and len(group) > 1 and " opacity" not in f" {look}":  # which would be that of the group as a whole
        group.set("style", look)
        for part in group:
            del part.attrib["style"]


def _tell(group: ET.Element, texts: Sequence[str]) -> None:
    """Put a text before all marks of a group, or one into each; nothing where some marks lie beyond the sheet."""
    marks = list(group.iter("use")) if len(texts) > 1 else [group]
    for mark, text in zip(marks, texts, strict=True) if len(marks) == len(texts) else ():
        said = ET.Element("title")
        said.text = UNSEEN.sub("\ufffd", text.replace("\n", " "))
        mark.insert(0, said)


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
