"""What the pictures of monitors have in common: a scale on which 0.1 % and 60 % are both read, and the words beside a workload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from analysis.variants import short_names

from .scene import NothingToDraw
from .style import COLOURS, MARKERS, QUIET, WRONG

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes

    from analysis.studies.monitors.terms import Overhead

    from .scene import Scene

LINEAR = 1.0  # percent to either side of 0 in which the scale is linear; beyond it is logarithmic
TICKS = (0.0, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
MOST_TICKS = 7
SCALE = "The scale is linear to ±1 % and logarithmic beyond, so that 0.1 % and 60 % can both be read."
STATES = {"quiet": QUIET, "underpowered": WRONG, "differs": WRONG, "missing": WRONG}


class Part(NamedTuple):
    """One workload of one run."""

    title: str
    found: Overhead


def parts_of(scene: Scene) -> list[Part]:
    """Take every workload that was watched. Raises: NothingToDraw, where none was."""
    found = []
    for run in scene.runs:
        names = short_names(run.workloads)
        for one in scene.overhead.get(run.origin, ()):
            title = names[one.workload]
            found.append(Part(f"{title} · run {run.run_id}" if len(scene.runs) > 1 else title, one))
    if not any(arm.cpu is not None for part in found for arm in part.found.arms):
        raise NothingToDraw("no monitor was measured beside cells without one")
    return found


def percents(axes: Axes, which: Literal["x", "y"], values: Iterable[float], margin: float) -> None:
    """Scale one axis for overheads in percent: all of them, 0 and the margin are in view."""
    values = [*values, 1.5 * 100 * margin, -1.5 * 100 * margin]
    low, high = _beyond(min(values)), _beyond(max(values))
    axis = axes.xaxis if which == "x" else axes.yaxis
    if which == "x":
        axes.set_xscale("symlog", linthresh=LINEAR, linscale=0.7)
        axes.set_xlim(low, high)
    else:
        axes.set_yscale("symlog", linthresh=LINEAR, linscale=0.7)
        axes.set_ylim(low, high)
    ticks = [tick for tick in (*(-tick for tick in reversed(TICKS[1:])), *TICKS) if low <= tick <= high]
    kept = [tick for tick in ticks if abs(tick) != 0.5 or max(high, -low) < 5]
    if len(kept) > MOST_TICKS:  # of a noisy run, whose intervals span decades
        kept = [tick for tick in kept if not f"{abs(tick):g}".startswith("3")]
    axis.set_major_locator(FixedLocator(kept))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:+g}".replace("-", "\N{MINUS SIGN}") if value else "0"))


def looks(parts: Iterable[Part]) -> dict[str, tuple[str, str]]:
    """Give every monitor a colour and a mark, the same in all workloads; of one monitor at several rates the colour is the same."""
    arms = {arm.label: arm for part in parts for arm in part.found.arms if arm.base}
    bases = list(dict.fromkeys(arm.base for arm in arms.values()))
    seen: dict[str, int] = {}
    found = {}
    for label, arm in arms.items():
        turn, at = divmod(bases.index(arm.base), len(COLOURS))
        seen[arm.base] = seen.get(arm.base, -1) + 1
        found[label] = COLOURS[at], MARKERS[(seen[arm.base] + turn) % len(MARKERS)]
    return found


def _beyond(end: float) -> float:
    return end * 1.25 if abs(end) > LINEAR else end + (0.2 if end > 0 else -0.2)
