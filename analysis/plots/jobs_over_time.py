"""Streams as they went: who held which slot, how many waited, and what went wrong meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from matplotlib.ticker import MaxNLocator

from analysis.formats.fields import Fields
from analysis.studies.jobs.streams.held import attempts, busiest, lanes, last_moment, waiting
from analysis.studies.jobs.streams.words import called
from analysis.terms import Unreadable

from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .scene import NothingToDraw
from .style import BAND, COLOURS, FAINT, INK, QUIET, SMALL, WRONG, drawn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.jobs.streams.gathered import Told
    from analysis.studies.jobs.streams.held import Held

    from .page import Page
    from .scene import Scene

TITLE = "Jobs over time"
ANSWERS = "How a stream went: when slots were busy and queues long, and what a fault took away."
ORDER = -8
REPORTS = frozenset({"job"})

LEFT, STRIP, QUEUE, LANE, SPACE, BELOW = 0.62, 0.42, 0.5, 0.17, 0.3, 0.5
SHOWN = 50  # jobs that one can tell apart beside each other
MOST, MOST_LANES = 4, 24
REST, STRUCK = "#9a9a9a", "#f6d5d9"


class Strip(NamedTuple):
    """One stream to be drawn: its attempts, when it was over, and the time that is drawn large."""

    title: str
    told: Told
    held: Sequence[Held]
    until_s: float
    window: tuple[float, float]

    @property
    def lanes(self) -> int:
        """How many lanes its attempts take."""
        return min(MOST_LANES, max((lane + 1 for _, lane in lanes(self.held, self.until_s)), default=1))


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel a stream: all of it as the number that waits, then the time about its longest queue slot by slot."""
    found = _strips(scene)
    kinds = list(dict.fromkeys(one.kind for strip in found for one in strip.held))
    colours = {kind: COLOURS[at] if at < len(COLOURS) else REST for at, kind in enumerate(kinds)}
    lead = (
        "The thin strip is the number of jobs that wait, over the whole stream. Below it the shaded time, of a fault or of the "
        "longest queue: who waits, and who holds which slot. A bar is an attempt of a job, from when it is let in until it ends."
    )
    legend = [Entry(kind or "jobs", {"facecolor": colours[kind]}, patch=True) for kind in kinds[: len(COLOURS)]]
    legend += [Entry("other classes", {"facecolor": REST}, patch=True)] if len(kinds) > len(COLOURS) else []
    broken = any(one.outcome in {"failed", "killed"} for strip in found for one in strip.held)
    if broken:
        legend.append(Entry("ended by a kill or a failure", {"color": WRONG, "marker": "x", "linestyle": "none", "markersize": 5}))
    struck = any(_faults(strip.told) for strip in found)
    legend += [Entry("a fault at work", {"facecolor": STRUCK, "edgecolor": WRONG}, patch=True)] if struck else []
    tall = [PANEL_HEAD + STRIP + SPACE + QUEUE + 0.06 + LANE * strip.lanes + BELOW for strip in found]
    sheet = page(scene, TITLE, lead, sum(tall), legend, _notes(scene, found))
    top = 0.0
    for strip, height in zip(found, tall, strict=True):
        jobs, slots = strip.told.stream.jobs, strip.told.stream.slots
        panel_head(sheet, top, strip.title, f"{len(jobs)} jobs, {slots} slot{'s' if slots != 1 else ''}, block {strip.told.cell.block}")
        _panel(sheet, top + PANEL_HEAD, strip, colours)
        top += height
    return sheet.figure


def _strips(scene: Scene) -> list[Strip]:
    """Take of each workload the first block; of many, those of whose kind there is none yet. Raises: NothingToDraw."""
    found: dict[tuple[str, str], Strip] = {}
    why = ""
    for one in scene.streams:
        for told in one.told:
            if (one.run.origin, told.stream.group) in found:
                continue
            try:
                held = attempts(told)
            except Unreadable as error:
                why = str(error)
                continue
            if held:
                title = _title(told) + (f" · run {one.run.run_id}" if len(scene.runs) > 1 else "")
                found[one.run.origin, told.stream.group] = _strip(title, told, held)
    if not found:
        raise NothingToDraw(why.rstrip(".") or "no job of any stream ever held a slot")
    strips = list(found.values())
    # First those with faults, then one of each policy and arrivals, the fullest first: what differs is worth a look.
    strips.sort(key=lambda strip: (not _faults(strip.told), -float(waiting(strip.told)[1].max(initial=0))))
    unlike: dict[tuple[object, ...], Strip] = {}
    for strip in strips:
        stream = strip.told.stream
        unlike.setdefault((strip.told.fault is not None, stream.policy, stream.arrivals.get("kind"), stream.slots), strip)
    # Of the same jobs the same time is drawn large: policies are then seen beside each other.
    windows: dict[str, tuple[float, float]] = {}
    kept = list(unlike.values())[:MOST]
    return [strip._replace(window=windows.setdefault(_jobs(strip), strip.window)) for strip in kept]


def _jobs(strip: Strip) -> str:
    stream = strip.told.stream
    return f"{sorted(stream.arrivals.items())} {len(stream.jobs)} {stream.slots}"


def _title(told: Told) -> str:
    """What was asked for, in words: `Poisson arrivals, fifo, kill, checkpoints every 0.2 s`."""
    about = told.cell.report["stream"][0]
    every = about.get("checkpoint_s")
    fault = "" if told.fault is None else str(told.fault.get("fault", "a fault"))
    checkpoints = f"checkpoints every {every:g} s" if isinstance(every, int | float) and every else ""
    return ", ".join(part for part in (called(str(told.stream.arrivals.get("kind", ""))), told.stream.policy, fault, checkpoints) if part)


def _strip(title: str, told: Told, held: Sequence[Held]) -> Strip:
    until_s = last_moment(told, held)
    length_s = min(until_s, until_s * SHOWN / len(held)) if until_s > 0 else 1.0
    lasting = [begin_s for begin_s, end_s in _faults(told) if end_s > begin_s]
    if lasting:
        begin_s = min(max(0.0, lasting[0] - length_s / 4), max(0.0, until_s - length_s))
        return Strip(title, told, held, until_s, (begin_s, begin_s + length_s))
    return Strip(title, told, held, until_s, busiest(told, length_s, until_s))


def _faults(told: Told) -> list[tuple[float, float]]:
    """From when to when faults were at work, as far as it was told."""
    found = []
    for at, row in enumerate(told.cell.report.get("fault", ())):
        numbers = Fields({"row": row}, told.cell.id, f"report.fault[{at}]").known_numbers("row", ("at_s", "until_s"))
        if "at_s" in numbers:
            found.append((numbers["at_s"], max(numbers["at_s"], numbers.get("until_s", numbers["at_s"]))))
    return sorted(found)


def _panel(sheet: Page, top: float, strip: Strip, colours: Mapping[str, str]) -> None:
    wide = INSIDE - LEFT - 0.05
    times, counts = waiting(strip.told)
    most = max(1.0, float(counts.max(initial=0)))
    whole = sheet.axes(LEFT, top, wide, STRIP, xlim=(0, strip.until_s or 1.0), ylim=(0, 1.1 * most))
    whole.axvspan(*strip.window, color=BAND, linewidth=0, zorder=0)
    whole.step(times, counts, where="post", color=QUIET, linewidth=0.8)
    whole.set_ylabel("waiting")
    queue = sheet.axes(LEFT, top + STRIP + SPACE, wide, QUEUE, xlim=strip.window, ylim=(0, 1.1 * most))
    queue.fill_between(times, counts, step="post", color=FAINT, linewidth=0)
    queue.step(times, counts, where="post", color=INK, linewidth=0.9)
    queue.set_ylabel("waiting")
    queue.tick_params(labelbottom=False)
    for axes in (whole, queue):
        axes.yaxis.set_major_locator(MaxNLocator(2, integer=True))
        axes.grid(axis="y")
    below = top + STRIP + SPACE + QUEUE + 0.06
    slots = sheet.axes(LEFT, below, wide, LANE * strip.lanes, xlim=strip.window, ylim=(strip.lanes - 0.5, -0.5), yticks=[])
    slots.set_xlabel("seconds since the stream began")
    _bars(slots, strip, colours)
    for axes in (whole, queue, slots):
        for begin_s, end_s in _faults(strip.told):
            axes.axvspan(begin_s, end_s, facecolor=STRUCK, edgecolor=WRONG, linewidth=0.6, alpha=0.7, zorder=0.5)
    _nodes(sheet, below, strip)


def _bars(axes: Axes, strip: Strip, colours: Mapping[str, str]) -> None:
    low, high = strip.window
    for one, lane in lanes(strip.held, strip.until_s):
        end_s = strip.until_s if one.end_s is None else one.end_s
        if lane >= MOST_LANES or end_s < low or one.begin_s > high:
            continue
        axes.barh(lane, end_s - one.begin_s, left=one.begin_s, height=0.8, color=colours[one.kind], edgecolor="white", linewidth=0.5)
        if one.outcome in {"failed", "killed"} and one.end_s is not None:
            axes.plot([one.end_s], [lane], marker="x", color=WRONG, markersize=5, markeredgewidth=1.4, zorder=3)
    axes.set_xlim(low, high)


def _nodes(sheet: Page, top: float, strip: Strip) -> None:
    """Name the nodes beside their lanes, or say that these are slots."""
    placed: dict[str, list[int]] = {}
    for one, lane in lanes(strip.held, strip.until_s):
        if lane < MOST_LANES:
            placed.setdefault(one.node, []).append(lane)
    for node, mine in placed.items():
        middle = top + LANE * ((min(mine) + max(mine)) / 2 + 0.5)
        sheet.text(LEFT - 0.08, middle, (node or "slots")[:9], ha="right", va="center", fontsize=SMALL)


def _notes(scene: Scene, found: Sequence[Strip]) -> list[str]:
    every = len({(one.run.origin, told.stream.group) for one in scene.streams for told in one.told})
    notes = []
    if every > len(found):
        notes.append(f"{len(found)} of {every} settings are drawn: one of each kind, those with faults and long queues first.")
    if any(max((lane for _, lane in lanes(strip.held, strip.until_s)), default=0) >= MOST_LANES for strip in found):
        notes.append(f"Of many slots the first {MOST_LANES} are drawn.")
    return notes
