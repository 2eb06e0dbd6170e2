"""What the pictures of streams of jobs have in common: which streams they show, and how arrivals look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analysis.wording import digits

from .scene import NothingToDraw
from .style import COLOURS, INK

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from matplotlib.axes import Axes

    from analysis.job_streams.gathered import Gathered, Waits
    from analysis.queueing.terms import Figure

    from .scene import Scene

JOBS = frozenset({"job"})
FIRST_COME = frozenset({"", "fifo"})
# Shape says the same as colour, for print and for the colour-blind.
ARRIVALS: dict[str, dict[str, Any]] = {
    "poisson": {"color": INK, "marker": "o"},
    "deterministic": {"color": COLOURS[0], "marker": "s"},
    "mmpp": {"color": COLOURS[1], "marker": "^"},
    "trace": {"color": COLOURS[2], "marker": "D"},
    "fltk": {"color": COLOURS[3], "marker": "v"},
}
OTHER: dict[str, Any] = {"color": COLOURS[5], "marker": "<"}
CALLED = {
    "poisson": "Poisson arrivals",
    "deterministic": "equal gaps",
    "mmpp": "arrivals in bursts (MMPP)",
    "trace": "arrivals of a trace",
    "fltk": "arrivals as FLTK's",
}


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


def called(kind: str) -> str:
    """Say how jobs came."""
    return CALLED.get(kind, f"{kind} arrivals" if kind else "arrivals unknown")


def setting(waits: Waits) -> str:
    """What sets a group of streams apart, in words: `2 slots, load 0.61, Poisson arrivals`; what tells it from its like behind it."""
    fit = waits.validation.fit
    slots = "" if fit.servers is None else f"{fit.servers} slot{'s' if fit.servers > 1 else ''}, "
    load = "" if fit.load is None else f"load {digits(fit.load.value, 2)}, "
    return f"{slots}{load}{called(waits.arrivals)}"


def settings(found: Iterable[tuple[Gathered, Waits]]) -> list[str]:
    """Name groups by their settings; where two read the same, by what the run calls them."""
    found = list(found)
    names = [setting(waits) for _, waits in found]
    return [name if names.count(name) == 1 else f"{name} ({waits.title})" for name, (_, waits) in zip(names, found, strict=True)]


def interval(axes: Axes, at: float, one: Figure, style: dict[str, Any], along: Literal["x", "y"]) -> None:
    """Draw a figure with its interval, along one axis and at a place of the other."""
    if one.low is not None and one.high is not None:
        ends, same = [one.low, one.high], [at, at]
        line = (ends, same) if along == "x" else (same, ends)
        axes.plot(*line, color=style["color"], linewidth=1.5, solid_capstyle="butt", zorder=2)
    point = (one.value, at) if along == "x" else (at, one.value)
    axes.plot([point[0]], [point[1]], **{"linestyle": "none", "markersize": 5.5, "zorder": 3, **style})
