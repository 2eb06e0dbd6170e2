"""Small panels side by side on one scale: the first of a row names it, and the margin lies around the mean of all cells."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from matplotlib.ticker import MaxNLocator

from .lettering import width_in
from .style import BAND, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from analysis.studies.keys.terms import Effects

    from .measures import Measure
    from .page import Page


class Small(NamedTuple):
    """Where a small panel stands: inches in the body of the page."""

    left: float
    top: float
    wide: float
    tall: float


def centre(effects: Effects) -> float:
    """Answer the mean of all cells in the metric's own unit."""
    return math.exp(effects.mean) if effects.observed.scale == "log" else effects.mean


def band(effects: Effects) -> tuple[float, ...]:
    """Answer how far the margin reaches around the mean; it is always in view, so that noise does not fill a picture."""
    margin = effects.observed.margin
    return (centre(effects) / (1 + margin), centre(effects) * (1 + margin)) if margin and effects.observed.scale == "log" else ()


def small_axes(sheet: Page, place: Small, ylim: tuple[float, float], measure: Measure, effects: Effects, *, first: bool) -> Axes:  # noqa: PLR0913  # a place, and what stands there
    """Make the axes of one panel, with the margin; the `first` of a row has the numbers and says what they are."""
    axes = sheet.axes(place.left, place.top, place.wide, place.tall, ylim=ylim)
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    if first:
        axes.set_ylabel(measure.label if width_in(measure.label, SMALL) < place.tall + 0.4 else measure.unit or measure.label)
    else:
        axes.tick_params(axis="y", labelleft=False)
    axes.grid(axis="y")
    if ends := band(effects):
        axes.axhspan(*(end * measure.scale for end in ends), color=BAND, linewidth=0, zorder=0)
    return axes
