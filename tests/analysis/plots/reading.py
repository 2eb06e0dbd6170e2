"""Read a picture as a viewer does: positions and overlaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from analysis.plots.scene import NothingToDraw, Scene
from analysis.plots.style import SMALL, WIDTH, Picture, house_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.transforms import Bbox


def said(figure: Figure) -> str:
    """All text of a picture, line by line."""
    return "\n".join(text for one in figure.findobj(Text) if (text := one.get_text().strip()))


def sentences(figure: Figure) -> list[str]:
    """Text of a picture besides names and numbers: lines of three or more words, last lines."""
    lines = (" ".join(one.get_text().split()) for one in figure.findobj(Text))
    return list(
        dict.fromkeys(
            line
            for line in lines
            if line.endswith(".") or sum(word[0].isalpha() for word in line.split()) > 2
        )
    )


def refusal(picture: Picture, scene: Scene) -> str:
    """The reason why a picture cannot be drawn."""
    with pytest.raises(NothingToDraw) as refused:
        picture.draw(scene)
    return str(refused.value)


def lines_of(axes: Axes, marker: str) -> list[Line2D]:
    """The lines that are drawn with a marker."""
    return [line for line in axes.lines if line.get_marker() == marker]


def points(line: Line2D) -> list[tuple[float, float]]:
    """Coordinates of a line's points."""
    return [
        (float(x), float(y))  # type: ignore[arg-type]  # numbers here
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)  # type: ignore[arg-type]
    ]


def faults(figure: Figure) -> list[str]:
    """Faults of a picture at 720 pixels or on paper: text cut, too small or overlapping."""
    found = _boxes(figure)
    width, height = figure.bbox.width, figure.bbox.height
    wrong = (
        []
        if figure.get_size_inches()[0] == pytest.approx(WIDTH)
        else [f"it is not {WIDTH} inches wide"]
    )
    wrong += [
        f"{one.get_text()!r} is too small" for one, _ in found if float(one.get_fontsize()) < SMALL
    ]
    texts = [(one.get_text(), box) for one, box in found]
    wrong += [
        f"{text!r} is cut"
        for text, box in texts
        if min(box.x0, box.y0) < -0.5 or box.x1 > width + 0.5 or box.y1 > height + 0.5
    ]
    return wrong + [
        f"{one!r} over {other!r}"
        for at, (one, box) in enumerate(texts)
        for other, its in texts[at + 1 :]
        if min(box.x1, its.x1) - max(box.x0, its.x0) > 1
        and min(box.y1, its.y1) - max(box.y0, its.y0) > 1
    ]


def _boxes(figure: Figure) -> list[tuple[Text, Bbox]]:
    """Visible texts and their places in pixels at 100 dpi, without tick labels beyond an axis."""
    with house_style():
        figure.draw_without_rendering()  # places ticks and legends
        renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
        hidden = set()
        for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-9 * (high - low)
            hidden |= {
                id(tick.label1)
                for tick in axis.get_major_ticks()
                if not low - slack <= tick.get_loc() <= high + slack
            }
        texts = [
            one
            for one in figure.findobj(Text)
            if isinstance(one, Text) and one.get_visible() and id(one) not in hidden
        ]
        boxes = [(one, one.get_window_extent(renderer)) for one in texts if one.get_text().strip()]
    return [(one, box) for one, box in boxes if box.width > 1]
