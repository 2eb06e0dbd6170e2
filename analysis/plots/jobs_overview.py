"""A study of cluster jobs on one page: how jobs came, how long they waited, which policy served them best, what faults cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from analysis.studies.jobs.queues.sound import columns
from analysis.studies.jobs.streams.words import called, in_order, names
from analysis.wording import digits

from . import jobs_faults, jobs_policies, jobs_waits
from .jobs_shared import JOBS, look, waits_of
from .lettering import fitted, width_in, wrapped
from .page import INSIDE, LINE, Entry, page
from .scene import NothingToDraw
from .style import HEAD, QUIET, SMALL, drawn

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from matplotlib.figure import Figure

    from analysis.studies.jobs.streams.gathered import Waits

    from .page import Page
    from .scene import Scene

TITLE = "Cluster jobs at a glance"
ANSWERS = "How jobs came, whether models foretell their waits, which policy serves them best, and what faults cost, on one page."
ORDER = -9
REPORTS = JOBS

GAP, LEFT, HEAD_IN, TALL, BELOW, SIDE = 0.45, 0.55, 0.62, 1.85, 0.55, 1.25
HEADS = ("A  How jobs came", "B  How long they waited", "C  Which policy serves them best", "D  What faults cost")
LEAST = 1e-3
MOST_ROWS = 8


@drawn
def draw(scene: Scene) -> Figure:
    """Draw four panels; what was not measured says so in its place."""
    lead = (
        "Marks: means over runs or blocks with 95 % intervals. Models were told rates and service times, no wait. Policies met the same "
        "jobs, and so did streams with a fault and without."
    )
    kinds = _kinds(scene)
    legend = [Entry(called(kind), {**look(kind), "markersize": 5}) for kind in kinds]
    height = HEAD_IN + TALL + BELOW
    panels: tuple[Callable[[Page, float, float, float, Scene], None], ...] = (_arrivals, _waits, _policies, _faults)
    sheet = page(scene, TITLE, lead, 2 * height, legend, _notes(scene))
    wide = (INSIDE - GAP) / 2
    for at, panel in enumerate(panels):
        row, column = divmod(at, 2)
        try:
            panel(sheet, column * (wide + GAP), row * height, wide, scene)
        except NothingToDraw as why:
            _head(sheet, (column * (wide + GAP), row * height, wide), HEADS[at], f"Not in these runs: {why}.")
    return sheet.figure


def _kinds(scene: Scene) -> list[str]:
    told = [str(told.stream.arrivals.get("kind", "")) for one in scene.streams for told in one.told]
    if not told:
        raise NothingToDraw("no cell tells of a stream of jobs")
    # In a closed stream a job comes when another ends: its gaps are times of service.
    return [kind for kind in dict.fromkeys(told) if kind != "closed"] or ["closed"]


def _head(sheet: Page, place: tuple[float, float, float], title: str, finding: str) -> None:
    """Write a panel's title and, in two lines, what it shows; `place` is left, top and width."""
    left, top, wide = place
    sheet.text(left, top + 0.05, title, fontsize=HEAD, fontweight="bold")
    lines = wrapped(finding, wide, SMALL)
    for at, line in enumerate([lines[0], lines[1] + ("…" if len(lines) > 2 else "")] if len(lines) > 1 else lines):
        sheet.text(left, top + 0.25 + LINE * at, line, fontsize=SMALL, color=QUIET)


def _arrivals(sheet: Page, left: float, top: float, wide: float, scene: Scene) -> None:
    """Part of the gaps between jobs that is longer than so many mean gaps: a straight line if they come by chance."""
    axes = sheet.axes(left + LEFT, top + HEAD_IN, wide - LEFT - 0.05, TALL)
    counts: dict[str, int] = {}
    for kind in _kinds(scene):
        gaps = list(_gaps(scene, kind))
        if not gaps:
            continue
        every = np.sort(np.concatenate(gaps))
        counts[kind] = len(every)
        style = look(kind)
        axes.step(every, 1 - np.arange(len(every)) / len(every), where="post", color=style["color"], linewidth=1.6, zorder=2)
    if not counts:
        raise NothingToDraw("no two jobs came after each other")
    axes.plot([0, 12], np.exp([0, -12]), color=QUIET, linewidth=1.0, linestyle=(0, (5, 1.5)), zorder=3)
    axes.set(yscale="log", ylim=(LEAST, 1.2), xlim=(0, 9), xlabel="gap between jobs ÷ mean gap", ylabel="share of gaps longer")
    axes.yaxis.set_major_locator(FixedLocator([1e-3, 1e-2, 1e-1, 1]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.grid(visible=True)
    finding = f"{sum(counts.values())} gaps. Dashed: exponential gaps, as of jobs that come by pure chance."
    _head(sheet, (left, top, wide), HEADS[0], finding)


def _gaps(scene: Scene, kind: str) -> Iterator[np.ndarray]:
    """Gaps of each stream, over their mean. What chance drew for a block counts once, of a stream without a fault if there is one."""
    seen: set[Hashable] = set()
    for told in sorted((told for one in scene.streams for told in one.told), key=lambda told: told.fault is not None):
        keys = set(told.stream.drawn)
        gap = np.diff(columns(told.stream).submit)
        if told.stream.arrivals.get("kind", "") != kind or keys & seen or not len(gap) or gap.mean() <= 0:
            continue
        seen |= keys
        yield gap / gap.mean()


def _waits(sheet: Page, left: float, top: float, wide: float, scene: Scene) -> None:
    """Waits by load for the number of slots of which most is known."""
    found = [one for _, one in waits_of(scene) if one.validation.fit.servers is not None and one.validation.fit.load is not None]
    if not found:
        raise NothingToDraw("nothing tells how many slots there were")
    slots = [one.validation.fit.servers or 0 for one in found]
    most = max(sorted(set(slots), reverse=True), key=slots.count)
    axes = sheet.axes(left + LEFT, top + HEAD_IN, wide - LEFT - 0.05, TALL)
    jobs_waits.curves(axes, found, most)
    axes.set(xlabel=f"load of {most} slot{'s' if most > 1 else ''}", ylabel="wait ÷ service time")
    _head(sheet, (left, top, wide), HEADS[1], _fits(found))


def _fits(found: list[Waits]) -> str:
    held = [one for waits in found if (one := jobs_waits.chosen(waits)) is not None]
    counts = {word: sum(one.verdict == word for one in held) for word in jobs_waits.VERDICTS}
    said = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    off = sorted(one.ratio.value for one in held if one.ratio is not None)
    span = f"; measured ÷ predicted {digits(off[0], 2)} to {digits(off[-1], 2)}" if off else ""
    return f"Curves: model. Of {len(held)} setting{'s' if len(held) > 1 else ''} {said}{span}."


def _policies(sheet: Page, left: float, top: float, wide: float, scene: Scene) -> None:
    """Mean waits under every policy of the first place, against the baseline's."""
    _, place = jobs_policies.places_of(scene)[0]
    rows = [row for row in jobs_policies.rows_of(place, "mean_wait_s") if row.ratio is not None][:MOST_ROWS]
    if not rows:
        raise NothingToDraw("no policy's waits could be held against the baseline's")
    side = min(SIDE, max(width_in(row.policy) for row in rows) + 0.2)
    axes = sheet.axes(left + side, top + HEAD_IN, wide - side - 0.05, TALL, ylim=(len(rows) - 0.5, -0.5), yticks=[])
    jobs_policies.forest(axes, rows, jobs_policies.reach_of(rows))
    axes.set_xlabel(f"mean wait ÷ {place.baseline}'s")
    _names(sheet, left + side - 0.1, top + HEAD_IN, [row.policy for row in rows], side - 0.12)
    best = rows[0]
    finding = f"{place.streams} streams, the same jobs for each. "
    finding += (
        f"Jobs wait least under {best.policy}: {jobs_policies.words(best)} of {place.baseline}'s wait."
        if best.verdict == "shorter"
        else f"No policy is shown to let them wait less than {place.baseline}."
    )
    _head(sheet, (left, top, wide), HEADS[2], finding)


def _faults(sheet: Page, left: float, top: float, wide: float, scene: Scene) -> None:
    """How much slower jobs are under each fault."""
    arms = [arm for _, arm in jobs_faults.arms_of(scene) if arm.slowdown is not None]
    arms = in_order(arms)[:MOST_ROWS]
    called_so = names(arms)
    side = min(SIDE + 0.5, max(width_in(part) for one in called_so for part in one.split(", ")) + 0.2)
    axes = sheet.axes(left + side, top + HEAD_IN, wide - side - 0.05, TALL, ylim=(len(arms) - 0.5, -0.5), yticks=[])
    jobs_faults.forest(axes, arms, jobs_faults.reach(arms))
    axes.set_xlabel("times as long")
    _names(sheet, left + side - 0.1, top + HEAD_IN, called_so, side - 0.12)
    worst, its = max(zip(arms, called_so, strict=True), key=lambda one: one[0].slowdown.value if one[0].slowdown is not None else 0.0)
    slower = sum(jobs_faults.verdict(arm) == "slower" for arm in arms)
    finding = f"{slower} of {len(arms)} are shown to be slower; most: {its}, {jobs_faults.words(worst)} times as long."
    _head(sheet, (left, top, wide), HEADS[3], finding)


def _names(sheet: Page, right: float, top: float, names: list[str], room: float) -> None:
    for at, name in enumerate(names):
        lines = [shown for part in name.split(", ") for shown in fitted([part], room, lines=1).values()]
        sheet.text(right, top + TALL * (at + 0.5) / len(names), ",\n".join(lines), ha="right", va="center", linespacing=1.0)


def _notes(scene: Scene) -> list[str]:
    jobs = sum(len(told.stream.jobs) for one in scene.streams for told in one.told)
    streams = sum(len(one.told) for one in scene.streams)
    engines = ", ".join(sorted({told.stream.engine for one in scene.streams for told in one.told}))
    return [f"{jobs} jobs in {streams} streams; engine {engines}."]
