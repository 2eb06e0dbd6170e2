"""What faults cost a stream: how much slower its jobs were than the same jobs without it, and when it had caught up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analysis.studies.jobs.queues.words import figure, number, unit
from analysis.studies.jobs.streams.words import in_order, names
from analysis.wording import digits, probability, unsigned

from .lettering import fitted, room_for
from .marks import log_or_linear
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .scene import NothingToDraw
from .style import BAND, GRID, INK, QUIET, SMALL, drawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.jobs.dependability.study import Arm
    from analysis.terms import Run

    from .page import Page
    from .scene import Scene

TITLE = "What faults cost"
ANSWERS = "How much longer jobs took under each fault, how long a stream took to catch up, and what work was lost."
ORDER = -3
REPORTS = frozenset({"job", "fault"})

ROW, NAMES, WORDS, AXIS = 0.24, 2.2, 2.75, 0.46
MARGIN = 0.10
SURE = 0.05
# Shape says the same as colour.
LOOKS: dict[str, dict[str, Any]] = {
    "slower": {"color": "#D55E00", "marker": "^"},
    "faster": {"color": "#0072B2", "marker": "v"},
    "isolated": {"color": "#009E73", "marker": "s"},
    "lost jobs": {"color": "#CC79A7", "marker": "X"},
    "not shown": {"color": INK, "marker": "o", "markerfacecolor": "white"},
}
CALLED = {
    "slower": "slower",
    "faster": "faster",
    "isolated": "isolated: as fast within the margin",
    "lost jobs": "sooner, for others were lost: no gain",
    "not shown": "neither is shown",
}


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel a condition, a row a fault with what is done against it."""
    found = arms_of(scene)
    panels: dict[tuple[str, str], list[Arm]] = {}
    for run, arm in found:
        panels.setdefault((run.run_id, arm.condition), []).append(arm)
    lead = (
        "Response times under a fault over those of the same jobs without it, paired by block (the line at 1): right of it is slower. "
        "Lines: 95 % intervals over blocks. Recovery: from a fault until as many jobs are done as were by then without it."
    )
    legend = [
        Entry(CALLED[word], {"linestyle": "-", "markersize": 6, **style})
        for word, style in LOOKS.items()
        if any(verdict(arm) == word and arm.slowdown is not None for _, arm in found)
    ]
    legend.append(Entry(f"within {unsigned(MARGIN)} of 1", {"facecolor": BAND, "edgecolor": GRID}, patch=True))
    tall = [PANEL_HEAD + ROW * len(rows) + AXIS for rows in panels.values()]
    sheet = page(scene, TITLE, lead, sum(tall), legend, _notes([arm for _, arm in found]))
    left = room_for(names(arm for _, arm in found), NAMES)
    limits = reach([arm for _, arm in found])
    top = 0.0
    for (run_id, condition), rows in panels.items():
        panel_head(sheet, top, condition.partition(":")[2].replace(":", " · ") or condition, f"run {run_id}" if len(scene.runs) > 1 else "")
        _panel(sheet, (top + PANEL_HEAD, left), in_order(rows), limits)
        top += PANEL_HEAD + ROW * len(rows) + AXIS
    return sheet.figure


def arms_of(scene: Scene) -> list[tuple[Run, Arm]]:
    """Take all streams under faults. Raises: NothingToDraw."""
    found = [(one.run, arm) for one in scene.streams for arm in one.arms if arm.fault]
    if not found:
        raise NothingToDraw("no stream had a fault")
    if all(arm.slowdown is None for _, arm in found):
        raise NothingToDraw("no stream without a fault met the same jobs: nothing to hold the faults against")
    return found


def verdict(arm: Arm) -> str:
    """One of LOOKS."""
    if arm.isolation == "isolated":
        return "isolated"
    if arm.thinned:
        return "lost jobs"
    if arm.slowdown is None or arm.p is None or arm.p >= SURE:
        return "not shown"
    return "slower" if arm.slowdown.value > 1 else "faster"


def reach(arms: Sequence[Arm]) -> tuple[float, float]:
    """Answer the ends of an axis of slowdowns: all intervals and the margin are in view."""
    ends = [end for arm in arms if (one := arm.slowdown) is not None for end in (one.value, one.low, one.high) if end is not None]
    return min([1 / (1 + 2 * MARGIN), *ends]), max([1 + 2 * MARGIN, *ends])


def forest(axes: Axes, arms: Sequence[Arm], limits: tuple[float, float]) -> None:
    """Draw slowdowns with their intervals, a row each."""
    axes.spines["left"].set_visible(False)
    log_or_linear(axes, "x", *limits)
    axes.axvspan(1 / (1 + MARGIN), 1 + MARGIN, color=BAND, zorder=0)
    axes.axvline(1, color=INK, linewidth=0.9, zorder=1)
    axes.grid(axis="x")
    for at, arm in enumerate(arms):
        one, style = arm.slowdown, LOOKS[verdict(arm)]
        if one is None:
            continue
        if one.low is not None and one.high is not None:
            axes.plot([one.low, one.high], [at, at], color=style["color"], linewidth=1.6, solid_capstyle="butt", zorder=2)
        axes.plot([one.value], [at], **{"linestyle": "none", "markersize": 6, "zorder": 3, **style})


def words(arm: Arm) -> str:
    """Write a slowdown with its interval."""
    one = arm.slowdown
    if one is None:
        return "no job done" if arm.paired else "no twin"
    return digits(one.value, 3) + ("" if one.low is None or one.high is None else f" [{digits(one.low, 3)}, {digits(one.high, 3)}]")


def _panel(sheet: Page, place: tuple[float, float], arms: Sequence[Arm], limits: tuple[float, float]) -> None:
    top, left = place
    wide = INSIDE - left - WORDS - 0.1
    axes = sheet.axes(left, top, wide, ROW * len(arms), ylim=(len(arms) - 0.5, -0.5), yticks=[])
    forest(axes, arms, limits)
    axes.set_xlabel("response time, ratio")
    scale, short = unit(one.value for arm in arms for one in (arm.recovery_s, arm.lost_s) if one is not None)
    at = (left + wide + 0.12, left + wide + 1.42, left + wide + 2.15, INSIDE)
    heads = ("ratio [95 %]", f"recovery, {short}", f"lost, {short}", "p")
    for place_in, head in zip(at, heads, strict=True):
        sheet.text(place_in, top + ROW * len(arms) + 0.24, head, fontsize=SMALL, color=QUIET, ha="right" if place_in == INSIDE else "left")
    called = names(arms)
    shown = fitted(called, left - 0.12, lines=1)
    for row, (arm, name) in enumerate(zip(arms, called, strict=True)):
        middle = top + ROW * (row + 0.5)
        sheet.text(left - 0.1, middle, shown[name], ha="right", va="center")
        told = (words(arm), figure(arm.recovery_s, scale).partition(" ")[0], number(arm.lost_s.value * scale if arm.lost_s else None))
        for place_in, text in zip(at, (*told, "" if arm.p is None else probability(arm.p)), strict=True):
            sheet.text(place_in, middle, text, va="center", fontsize=SMALL, ha="right" if place_in == INSIDE else "left")


def _notes(arms: Sequence[Arm]) -> list[str]:
    said = ["Lost: seconds of attempts a stream whose work no checkpoint kept. p after Holm over all faults."]
    never = sum(arm.hit for arm in arms if arm.recovered == 0 and arm.hit)
    said += [f"{never} hits have no recovery: the stream ended first, another fault came, or jobs were given up."] if never else []
    said += [
        f"{name}: {arm.lost_jobs} jobs were done without it, and not with it."
        for arm, name in zip(arms, names(arms), strict=True)
        if arm.lost_jobs
    ]
    notes: dict[str, list[str]] = {}
    called = names(arms)
    for arm, name in zip(arms, called, strict=True):
        for note in arm.notes:
            notes.setdefault(note, []).append(name)
    return said + [f"{'all' if len(whose) == len(arms) > 1 else '; '.join(whose)}: {note}" for note, whose in notes.items()]
