"""What the pictures of streams of jobs have in common: which streams they show, and how arrivals look."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.studies.jobs.streams.said import FIRST_COME

from .scene import NothingToDraw
from .style import COLOURS, INK

if TYPE_CHECKING:
    from typing import Literal

    from matplotlib.axes import Axes

    from analysis.studies.jobs.queues.terms import Figure
    from analysis.studies.jobs.streams.gathered import Gathered, Waits

    from .scene import Scene

JOBS = frozenset({"job"})
# Shape says the same as colour, for print and for the colour-blind.
ARRIVALS: dict[str, dict[str, Any]] = {
    "poisson": {"color": INK, "marker": "o"},
    "deterministic": {"color": COLOURS[0], "marker": "s"},
    "mmpp": {"color": COLOURS[1], "marker": "^"},
    "trace": {"color": COLOURS[2], "marker": "D"},
    "fltk": {"color": COLOURS[3], "marker": "v"},
}
OTHER: dict[str, Any] = {"color": COLOURS[5], "marker": "<"}


def waits_of(scene: Scene) -> list[tuple[Gathered, Waits]]:
    """Take all streams whose waits were held against models. Raises: NothingToDraw, with what could not be used."""
    every = [(one, waits) for one in scene.streams for waits in one.waits if waits.validation.wait_s is not None]
    found = [(one, waits) for one, waits in every if waits.validation.fit.policy in FIRST_COME]
    if every and not found:
        raise NothingToDraw("no stream was served first come, first served, which these models are of")
    if not found:
        why = next((line.rstrip(".") for one in scene.streams for line in one.refused), "")
        raise NothingToDraw(why or "no stream of jobs came by itself and without faults, which models of waits are of")
    return found


def look(kind: str) -> dict[str, Any]:
    """Answer colour and mark of one kind of arrivals."""
    return ARRIVALS.get(kind, OTHER)


def scaled(one: Figure, by: float) -> Figure:
    """Answer a figure in another unit."""
    low, high = (None if end is None else end * by for end in (one.low, one.high))
    return replace(one, value=one.value * by, low=low, high=high)


def interval(axes: Axes, at: float, one: Figure, style: dict[str, Any], along: Literal["x", "y"]) -> None:
    """Draw a figure with its interval, along one axis and at a place of the other."""
    if one.low is not None and one.high is not None:
        ends, same = [one.low, one.high], [at, at]
        line = (ends, same) if along == "x" else (same, ends)
        axes.plot(*line, color=style["color"], linewidth=1.5, solid_capstyle="butt", zorder=2)
    point = (one.value, at) if along == "x" else (at, one.value)
    axes.plot([point[0]], [point[1]], **{"linestyle": "none", "markersize": 5.5, "zorder": 3, **style})
