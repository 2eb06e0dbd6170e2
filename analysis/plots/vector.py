"""Figures as SVG that is small, sharp and can be asked: text stays text, equal marks are drawn once, and a mark says what it is.

An artist's `gid` is what its marks say (`<title>`), a line of text each: `set_tooltip`.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import lru_cache
from io import BytesIO
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.sax.saxutils import escape

import numpy as np
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.colors import to_hex
from matplotlib.font_manager import FontProperties, weight_dict
from matplotlib.path import Path
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D
from PIL import Image

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

FONT = "DejaVu Sans"  # matplotlib's own
LARGE = 100.0  # points, at which letters are measured
DOTS_DPI = 130  # of the clouds of dots
HEADING, HEADED = "the heading", 25.0  # what a page says itself, above a picture in it; points that it takes
WIDE = 20.0  # points: no mark is wider
LETTERS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C"}
SHORT = 5  # vertices: a mark of fewer is written out, of more drawn once and used
# What XML cannot hold, and what would turn the letters around: shown as unknown, as a browser would.
UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
ANCHORS = {"center": ' text-anchor="middle"', "right": ' text-anchor="end"', "left": ""}


class Node(NamedTuple):
    """A piece of the drawing; strokes (`path`) of one style that follow each other become one path."""

    style: str
    body: str
    path: bool = False


def set_tooltip(artist: Artist, *texts: str) -> None:
    """Give the marks of an artist what they say when they are pointed at: a text for all, or one each."""
    artist.set_gid("\n".join(text.replace("\n", " ") for text in texts))


def as_svg(figure: Figure, fonts: str, name: str = "", title: str = "", description: str = "") -> str:
    """Write a figure; `name` begins its ids, so that it can stand beside others in a page, with its title and description.

    Without a name it is a file by itself, in points.
    """
    before = figure.dpi
    figure.set_dpi(72)
    try:
        wide, tall = figure.get_size_inches()
        vector = Vector(72 * wide, 72 * tall, name or "m", inline=bool(name))
        renderer: Any = MixedModeRenderer(figure, wide, tall, DOTS_DPI, vector)  # type: ignore[no-untyped-call]
        figure.draw(renderer)  # whose annotations are of another renderer's class
    finally:
        figure.set_dpi(before)
    size = f"{_short(72 * wide)} {_short(72 * tall)}"
    look = f'font-family="{fonts}" fill="none" stroke-linejoin="round"'
    if not name:
        across, down = size.split()
        head = f'<?xml version="1.0" encoding="utf-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="{across}pt" height="{down}pt"'
        return f'{head} viewBox="0 0 {size}" {look}>{vector.drawing()}</svg>'
    text = f'<title id="{name}-title">{_text(title)}</title><desc id="{name}-desc">{_text(description)}</desc>'
    box = f"0 {_short(vector.top)} {_short(vector.width)} {_short(vector.height - vector.top)}"
    return f'<svg viewBox="{box}" role="img" aria-labelledby="{name}-title {name}-desc" {look}>{text}{vector.drawing()}</svg>'


class Vector(RendererBase):
    """What draws: everything in points from the upper left."""

    def __init__(self, width: float, height: float, name: str, *, inline: bool) -> None:
        super().__init__()
        self.width, self.height, self.name, self.inline = width, height, name, inline
        self._flip = Affine2D().scale(1, -1).translate(0, height)
        self._nodes: list[Node] = []
        self._outer: list[list[Node]] = []
        self._marks: dict[str, int] = {}
        self._clips: dict[tuple[float, ...], int] = {}
        self._patterns: dict[str, int] = {}
        self._told: list[str] = []
        self.top = 0.0

    def drawing(self) -> str:
        """All that was drawn."""
        defs = [f'<path id="{self.name}-{number}" d="{d}"/>' for d, number in self._marks.items()]
        for (x, y, wide, tall), number in self._clips.items():
            box = f'x="{_short(x)}" y="{_short(y)}" width="{_short(wide)}" height="{_short(tall)}"'
            defs.append(f'<clipPath id="{self.name}-c{number}"><rect {box}/></clipPath>')
        box = 'patternUnits="userSpaceOnUse" width="6" height="6"'
        for color, number in self._patterns.items():
            defs.append(f'<pattern id="{self.name}-h{number}" {box}><path d="M-1 1L1-1M0 6L6 0M5 7L7 5" stroke="{color}"/></pattern>')
        head = f"<defs>{''.join(defs)}</defs>" if defs else ""
        return head + "".join(_written(self._nodes))

    # What matplotlib calls; its own docstrings tell of the arguments.

    def get_canvas_width_height(self) -> tuple[float, float]:
        """In points."""
        return self.width, self.height

    def flipy(self) -> bool:
        """Say that y points down."""
        return True

    def get_text_width_height_descent(self, s: str, prop: FontProperties, ismath: object) -> tuple[float, float, float]:
        """Return the size of a line of text; the same ones come again in every picture."""
        del ismath
        return extent(s, prop.get_size_in_points(), prop.get_weight(), prop.get_style(), prop.get_name())

    def open_group(self, s: str, gid: str | None = None) -> None:
        """Begin what belongs together: of an axis, ticks of one look may be drawn in one go."""
        self._told = gid.split("\n") if gid else []
        if s == "matplotlib.axis":
            self._outer.append(self._nodes)
            self._nodes = []

    def close_group(self, s: str) -> None:
        """End it."""
        self._told = []
        if s == "matplotlib.axis":
            inner, self._nodes = self._nodes, self._outer.pop()
            places = {style: place for place, style in reversed(list(enumerate(node.style for node in inner)))}
            self._nodes += sorted(inner, key=lambda node: places[node.style])

    def draw_path(self, gc: Any, path: Any, transform: Any, rgbFace: Any = None) -> None:  # noqa: N803  # matplotlib's
        """Draw a line or an area."""
        moved = transform + self._flip
        if not path.vertices.size:
            return
        bare = rgbFace is None and gc.get_hatch() is None
        window = (0.0, 0.0, self.width, self.height) if bare else None
        d = _outline(path, moved, window, simplify=bool(path.should_simplify and bare))
        if not d:
            return
        style = self._look(gc, rgbFace) + self._clipped(gc, moved.transform(path.vertices))
        text = self._told[0] if len(self._told) == 1 else ""
        plain = bare and not text and "opacity" not in style
        self._nodes.append(Node(style, d, path=True) if plain else Node(style, _element("path", f'd="{d}"', text)))

    def draw_markers(self, gc: Any, marker_path: Any, marker_trans: Any, path: Any, trans: Any, rgbFace: Any = None) -> None:  # noqa: N803  # matplotlib's
        """Draw one mark in several places."""
        if len(path.vertices) == 1 and marker_path.get_extents(marker_trans).width > WIDE:  # an area, which stands where it is
            moved = marker_trans + Affine2D().translate(*trans.transform(path.vertices)[0])
            self.draw_path(gc, marker_path, moved, rgbFace)
            return
        places = (trans + self._flip).transform(path.vertices)
        inside = np.isfinite(places).all(axis=1)
        box = self._box(gc)
        if box is not None:
            x, y, wide, tall = box
            inside &= (places[:, 0] >= x - 1) & (places[:, 0] <= x + wide + 1) & (places[:, 1] >= y - 1) & (places[:, 1] <= y + tall + 1)
        area = len(marker_path.vertices) > 2  # a tick has none
        style = self._look(gc, rgbFace if area else None)
        upright = marker_trans + Affine2D().scale(1, -1)
        several = len(self._told) == len(places)
        written = len(marker_path.vertices) < SHORT and not (area and rgbFace is not None) and not self._told
        number = 0
        if not written:
            number = self._marks.setdefault(_outline(marker_path, upright, places=2), len(self._marks) + 1)
        for at in np.flatnonzero(inside):
            across, down = places[at]
            if written:
                self._nodes.append(Node(style, _outline(marker_path, upright + Affine2D().translate(across, down)), path=True))
                continue
            text = self._told[at] if several else "".join(self._told[:1])
            where = f'href="#{self.name}-{number}" x="{_short(across)}" y="{_short(down)}"'
            self._nodes.append(Node(style, _element("use", where, text)))

    def draw_text(
        self,
        gc: Any,
        x: float,
        y: float,
        s: str,
        prop: FontProperties,
        angle: float,
        ismath: Any = False,  # noqa: FBT002
        mtext: Any = None,
    ) -> None:
        """Write a line."""
        del ismath
        if self._told == [HEADING] and self.inline:
            self.top = HEADED
            return
        anchor = ""
        if mtext is not None and (angle == 0 or mtext.get_rotation_mode() == "anchor"):
            # Its own anchor, so that a font of another width stays where it belongs; upright, matplotlib has placed it.
            own_x, own_y = mtext.get_transform().transform(mtext.get_unitless_position())
            own_y = self.height - own_y
            sine, cosine = math.sin(math.radians(angle)), math.cos(math.radians(angle))
            off = sine * (x - own_x) + cosine * (y - own_y)
            x, y, anchor = own_x + off * sine, own_y + off * cosine, ANCHORS[mtext.get_ha()]
        weight: Any = prop.get_weight()
        weight = weight_dict.get(weight, weight)
        style = f' fill="{to_hex(gc.get_rgb())}" font-size="{_short(prop.get_size())}"{anchor}'
        style += f' font-weight="{weight}"' if weight != weight_dict["normal"] else ""
        style += ' font-style="italic"' if prop.get_style() != "normal" else ""
        alpha = gc.get_alpha() if gc.get_forced_alpha() else gc.get_rgb()[3]
        style += f' opacity="{alpha:g}"' if alpha != 1 else ""
        turned = f' transform="rotate({_short(-angle)} {_short(x)} {_short(y)})"' if angle else ""
        self._nodes.append(Node(style, f'<text x="{_short(x)}" y="{_short(y)}"{turned}>{_text(s)}</text>'))

    def draw_image(self, gc: Any, x: float, y: float, im: Any, transform: Any = None) -> None:
        """Put pixels in: a cloud of dots has one colour at a few opacities, so that a palette makes it a quarter of the size."""
        del gc, transform
        tall, wide = (72 * side / DOTS_DPI for side in im.shape[:2])
        out = BytesIO()
        few = Image.fromarray(np.ascontiguousarray(im[::-1])).quantize(32, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        few.save(out, "png", optimize=True)
        box = f'x="{_short(x)}" y="{_short(self.height - y - tall)}" width="{_short(wide)}" height="{_short(tall)}"'
        self._nodes.append(Node("", f'<image {box} href="data:image/png;base64,{b64encode(out.getvalue()).decode()}"/>'))

    def _look(self, gc: Any, face: Any) -> str:
        forced = gc.get_alpha() if gc.get_forced_alpha() else None
        style = ""
        if gc.get_hatch() is not None:
            number = self._patterns.setdefault(to_hex(gc.get_hatch_color()), len(self._patterns) + 1)
            style += f' fill="url(#{self.name}-h{number})"'
        elif face is not None:
            style += f' fill="{to_hex(face)}"'
            opacity = forced if forced is not None else (face[3] if len(face) > 3 else 1.0)  # red, green, blue, opacity
            style += f' fill-opacity="{opacity:g}"' if opacity != 1 else ""
        width, color = gc.get_linewidth(), gc.get_rgb()
        opacity = forced if forced is not None else color[3]
        if width and opacity:
            style += f' stroke="{to_hex(color)}"'
            style += f' stroke-width="{width:g}"' if width != 1 else ""
            style += f' stroke-opacity="{opacity:g}"' if opacity != 1 else ""
            offset, dashes = gc.get_dashes()
            style += f' stroke-dasharray="{" ".join(f"{dash:g}" for dash in dashes)}"' if dashes is not None else ""
            style += f' stroke-dashoffset="{offset:g}"' if dashes is not None and offset else ""
            style += {"projecting": ' stroke-linecap="square"', "round": ' stroke-linecap="round"'}.get(gc.get_capstyle(), "")
            style += ' stroke-linejoin="miter"' if gc.get_joinstyle() == "miter" else ""
        return style

    def _box(self, gc: Any) -> tuple[float, float, float, float] | None:
        clip = gc.get_clip_rectangle()
        if clip is None:
            return None
        x, y, wide, tall = clip.bounds
        return x, self.height - y - tall, wide, tall

    def _clipped(self, gc: Any, places: Any) -> str:
        """Cut at the edges of the axes what reaches beyond them."""
        box = self._box(gc)
        if box is None:
            return ""
        x, y, wide, tall = box
        low, high = np.nanmin(places, axis=0), np.nanmax(places, axis=0)
        if low[0] >= x - 0.5 and low[1] >= y - 0.5 and high[0] <= x + wide + 0.5 and high[1] <= y + tall + 0.5:
            return ""
        number = self._clips.setdefault(box, len(self._clips) + 1)
        return f' clip-path="url(#{self.name}-c{number})"'


def _written(nodes: Sequence[Node]) -> Iterator[str]:
    for (style, path), run in groupby(nodes, key=lambda node: (node.style, node.path)):
        bodies = [node.body for node in run]
        if path:
            yield f'<path{style} d="{"".join(bodies)}"/>'
        elif style and len(bodies) > 1:
            yield f"<g{style}>{''.join(bodies)}</g>"
        else:
            tag, rest = re.match(r"<\w+", bodies[0]).group(), bodies[0]  # type: ignore[union-attr]  # an element
            yield f"{tag}{style}{rest[len(tag) :]}" if style else "".join(bodies)


def _element(tag: str, attributes: str, text: str) -> str:
    return f"<{tag} {attributes}><title>{_text(text)}</title></{tag}>" if text else f"<{tag} {attributes}/>"


def _outline(path: Path, transform: Any, window: Any = None, *, simplify: bool = False, places: int = 1) -> str:
    """Write a path as short as can be: what follows a letter goes on as it says."""
    clean = path.cleaned(transform=transform, remove_nans=True, clip=window, simplify=simplify, curves=True)
    d: list[str] = []
    before: Any = 0
    for (x, y), code in zip(clean.vertices.tolist(), clean.codes.tolist(), strict=True):  # type: ignore[union-attr]  # it has codes
        if code == Path.STOP:
            break
        if code == Path.CLOSEPOLY:
            d.append("z")
        else:
            letter = LETTERS[code] if code != before and (before, code) != (Path.MOVETO, Path.LINETO) else " "
            d.append(f"{letter}{_short(x, places)} {_short(y, places)}")
        before = code
    return "".join(d)


def _short(number: float, places: int = 1) -> str:
    text = f"{number:.{places}f}"
    text = text.rstrip("0").rstrip(".") if places else text
    return "0" if text == "-0" else text


def _text(text: str) -> str:
    return escape(UNSEEN.sub("\ufffd", text))


def extent(text: str, size: float, weight: Any = "normal", slant: str = "normal", family: str = FONT) -> tuple[float, float, float]:
    """Return how wide a line of text is, how tall and how deep below its base line, in points: the sum of its letters."""
    letters = [_letter(one, weight, slant, family) for one in text]
    tall, deep = _line(weight, slant, family)
    return sum(letters) * size / LARGE, tall * size / LARGE, deep * size / LARGE


@lru_cache(maxsize=4096)
def _letter(letter: str, weight: Any, slant: str, family: str) -> float:
    twice, once = (_measured(text, weight, slant, family)[0] for text in (f"x{letter}x", "xx"))
    return twice - once


@lru_cache(maxsize=16)
def _line(weight: Any, slant: str, family: str) -> tuple[float, float]:
    return _measured("lp", weight, slant, family)[1:]


def _measured(text: str, weight: Any, slant: Any, family: str) -> tuple[float, float, float]:
    font = FontProperties(family=family, size=LARGE, weight=weight, style=slant)
    return text_to_path.get_text_width_height_descent(text, font, ismath=False)
