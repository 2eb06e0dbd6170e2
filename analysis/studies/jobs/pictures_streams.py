"""Streams of jobs: what a study of them shows at a glance, and who held which slot when."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from analysis.plots.labels import fitted, joined, room_for, wrapped
from analysis.plots.marks import MarkRow, Style, forest, log_or_linear, ticks
from analysis.plots.page import INSIDE, LINE, Page, Section, Spec, dot, fill, line, places
from analysis.plots.scene import NothingToDraw, Scene
from analysis.plots.style import BAND, COLOURS, FAINT, HEAD, INK, QUIET, SMALL, WRONG, picture
from analysis.terms import Run
from analysis.wording import digits

from . import pictures_faults as faults
from .estimates import by_fault, names, plural
from .pictures_queues import ARRIVALS, DASHED, OTHER, VERDICT_LOOKS, chosen, curves, places_of, reach_of, rows_of, waits_of, words
from .queue_times import columns
from .streams import called

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .records import Stream

JOBS = frozenset({"job"})
LEFT = 0.62
ROUNDING_S = 1e-9


@picture(
    -9,
    "Cluster jobs at a glance",
    "How jobs came, whether models foretell their waits, which policy serves them best, and what faults cost, on one page.",
    REPORTS=JOBS,
)
def jobs_overview(scene: Scene) -> Spec:
    """Draw a panel for each of four questions that the runs answer."""
    kinds = _kinds(scene)
    panels: list[tuple[str, str, Callable[[Page, tuple[float, float, float]], None]]] = []
    missing = []
    for title, make in (
        ("How jobs came", _arrivals),
        ("How long they waited", _waited),
        ("Which policy serves them best", _served),
        ("What faults cost", _cost),
    ):
        try:
            panels.append((title, *make(scene)))
        except NothingToDraw as why:
            missing.append(f"{title}: not in these runs, {why}.")
    if len(panels) < 2:
        raise NothingToDraw("there are no waits under a model, no policies and no faults to set beside how jobs came")
    lead = (
        "Marks: means over runs or blocks with 95 % intervals. Models were given rates and service times, not waits. Policies met the same "
        "jobs, and so did streams with a fault and without."
    )
    tall = 0.62 + 1.85 + 0.55
    every = [stream for gathered in scene.streams for stream in gathered.streams]
    jobs = sum(len(stream.jobs) for stream in every)
    engines = joined(sorted(stream.engine for stream in every))

    def draw(sheet: Page, top: float) -> None:
        spots = places(len(panels), 2, tall, left=0.0, gap=0.4)
        spots[-1] = (*spots[-1][:2], INSIDE - spots[-1][0])  # alone in its row it takes all of it
        for (title, finding, panel), (left, down, wide) in zip(panels, spots, strict=True):
            sheet.text(left, top + down, title, fontsize=HEAD, fontweight="bold")
            texts = wrapped(finding, wide, SMALL)
            for at, text in enumerate(texts[:2]):
                sheet.text(left, top + down + 0.2 + LINE * at, text + ("…" if at and len(texts) > 2 else ""), fontsize=SMALL, color=QUIET)
            panel(sheet, (left, top + down + 0.62, wide))

    section = Section(f"{jobs} jobs in {len(every)} streams", tall * math.ceil(len(panels) / 2), draw, f"engine {engines}")
    return Spec(
        lead,
        [section],
        [line(called(kind), **ARRIVALS.get(kind, OTHER), markersize=5) for kind in kinds],
        missing,
    )


def _kinds(scene: Scene) -> list[str]:
    kinds = dict.fromkeys(stream.arrival_kind for gathered in scene.streams for stream in gathered.streams)
    if not kinds:
        raise NothingToDraw("no cell tells of a stream of jobs")
    # In a closed stream a job comes when another ends: its gaps are times of service.
    return [kind for kind in kinds if kind != "closed"] or ["closed"]


OnPage = tuple[str, "Callable[[Page, tuple[float, float, float]], None]"]


def _arrivals(scene: Scene) -> OnPage:
    """Part of the gaps between jobs that is longer than so many mean gaps: a straight line if they come by chance."""
    gaps = {kind: np.sort(np.concatenate(every)) for kind in _kinds(scene) if (every := list(_gaps(scene, kind)))}
    if not gaps:
        raise NothingToDraw("no two jobs came after each other")

    def draw(sheet: Page, spot: tuple[float, float, float]) -> None:
        axes = _panel(sheet, spot, "gap between jobs ÷ mean gap", "share of gaps longer")
        for kind, every in gaps.items():
            longer = 1 - np.arange(len(every)) / len(every)
            axes.step(every, longer, where="post", color=ARRIVALS.get(kind, OTHER)["color"], linewidth=1.6, zorder=2)
        axes.plot([0, 12], np.exp([0, -12]), color=QUIET, linewidth=1.0, linestyle=DASHED, zorder=3)
        axes.set(yscale="log", ylim=(1e-3, 1.2), xlim=(0, 9))
        ticks(axes, "y", [1e-3, 1e-2, 1e-1, 1], lambda value: f"{100 * value:g} %")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.grid(visible=True)

    return f"{sum(map(len, gaps.values()))} gaps. Dashed: exponential gaps, as of jobs that come by pure chance.", draw


def _gaps(scene: Scene, kind: str) -> Iterator[np.ndarray]:
    """Gaps of each stream, over their mean. What chance drew for a block counts once, of a stream without a fault if there is one."""
    seen: set[Hashable] = set()
    for stream in sorted((stream for gathered in scene.streams for stream in gathered.streams), key=lambda stream: bool(stream.fault)):
        drawn, gap = set(stream.drawn), np.diff(columns(stream).submit)
        if stream.arrival_kind == kind and not drawn & seen and len(gap) and gap.mean() > 0:
            seen |= drawn
            yield gap / gap.mean()


def _panel(sheet: Page, spot: tuple[float, float, float], xlabel: str, ylabel: str) -> Axes:
    left, top, wide = spot
    return sheet.axes(left + 0.55, top, wide - 0.6, 1.85, xlabel=xlabel, ylabel=ylabel)


def _waited(scene: Scene) -> OnPage:
    """Waits by load for the number of slots of which most is known."""
    result = [waits for _, waits in waits_of(scene) if waits.validation.fit.servers is not None and waits.validation.fit.load is not None]
    if not result:
        raise NothingToDraw("the number of slots is not known")
    slots = [waits.validation.fit.servers or 0 for waits in result]
    most = max(sorted(set(slots), reverse=True), key=slots.count)
    judged = [check for waits in result if (check := chosen(waits)) is not None]
    counts = {word: sum(check.verdict == word for check in judged) for word in VERDICT_LOOKS}
    verdicts = joined(f"{count} {word}" for word, count in counts.items() if count)
    finding = f"Curves: model. Of {plural(len(judged), 'setting')} {verdicts}"
    off = sorted(check.ratio.value for check in judged if check.ratio is not None)
    finding += f"; measured ÷ predicted {digits(off[0], 2)} to {digits(off[-1], 2)}." if off else "."

    def draw(sheet: Page, spot: tuple[float, float, float]) -> None:
        curves(_panel(sheet, spot, f"load of {plural(most, 'slot')}", "wait ÷ service time"), result, most)

    return finding, draw


MOST_ROWS = 8


def _served(scene: Scene) -> OnPage:
    """Mean waits under every policy of the first place, against the baseline's."""
    _, place = places_of(scene)[0]
    rows = [row for row in rows_of(place, "mean_wait_s") if row.value is not None][:MOST_ROWS]
    if not rows:
        raise NothingToDraw("no policy's waits could be compared with the baseline's")
    best = rows[0]
    less = f"Jobs wait least under {best.policy}: {words(best)} of {place.baseline}'s wait."
    finding = less if best.verdict == "shorter" else f"No policy is shown to let them wait less than {place.baseline}."
    drawn = [MarkRow(row.policy, [row.mark()]) for row in rows]
    label = f"mean wait ÷ {place.baseline}'s"
    return f"{place.streams} streams, the same jobs for each. {finding}", partial(_ratios, rows=drawn, label=label, ends=reach_of(rows))


def _cost(scene: Scene) -> OnPage:
    """How much slower jobs are under each fault."""
    arms = by_fault([arm for _, arm in faults.arms_of(scene) if arm.slowdown is not None])[:MOST_ROWS]
    titles = names(arms)
    worst, its = max(zip(arms, titles, strict=True), key=lambda entry: entry[0].slowdown.value if entry[0].slowdown is not None else 0.0)
    slower = sum(faults.verdict(arm) == "slower" for arm in arms)
    finding = f"{slower} of {len(arms)} are shown to be slower; most: {its}, {faults.words(worst)} times as long."
    rows = [MarkRow(name, [faults.mark(arm)]) for arm, name in zip(arms, titles, strict=True)]
    return finding, partial(_ratios, rows=rows, label="times as long", ends=faults.reach(arms))


def _ratios(sheet: Page, spot: tuple[float, float, float], rows: Sequence[MarkRow], label: str, ends: tuple[float, float]) -> None:
    """Draw a small forest of ratios beside the line at 1."""
    left, top, wide = spot
    side = room_for([row.name for row in rows], 1.75)
    shown = fitted([row.name for row in rows], side - 0.12, lines=1)
    tall = min(0.34, 1.85 / len(rows))
    rows = [row._replace(name=shown[row.name], tall=tall) for row in rows]
    scale: Callable[[Axes], None] = lambda axes: log_or_linear(axes, "x", *ends, most=5)  # noqa: E731  # short
    forest(sheet, top, rows, left=left + side, right=INSIDE - left - wide + 0.05, label=label, scale=scale, zero=1.0)


SHOWN = 50  # jobs that one can tell apart beside each other
STRIP, QUEUE, LANE, SPACE, BELOW, MOST, MOST_LANES = 0.42, 0.5, 0.17, 0.3, 0.5, 4, 24
REST, STRUCK = "#9a9a9a", "#f6d5d9"
ENDED_BADLY = frozenset({"failed", "killed"})


class Strip(NamedTuple):
    """One stream to be drawn: its attempts, when it was over, and the time that is drawn large."""

    run: Run
    title: str
    stream: Stream
    held: Sequence[SlotHold]
    until_s: float
    window: tuple[float, float]

    @property
    def lanes(self) -> list[tuple[SlotHold, int]]:
        """The attempts, each with its lane."""
        return [(held, lane) for held, lane in lanes(self.held, self.until_s) if lane < MOST_LANES]

    @property
    def height(self) -> int:
        """How many lanes its attempts take."""
        return max((lane + 1 for _, lane in self.lanes), default=1)


@picture(
    -8,
    "Jobs over time",
    "How a stream went: when slots were busy and queues long, and what a fault took away.",
    REPORTS=JOBS,
)
def jobs_over_time(scene: Scene) -> Spec:
    """Draw a section a stream: all of it as the number that waits, then the time about its longest queue slot by slot."""
    strips = _strips(scene)
    kinds = list(dict.fromkeys(held.class_ for strip in strips for held in strip.held))
    colours = {kind: COLOURS[at] if at < len(COLOURS) else REST for at, kind in enumerate(kinds)}
    lead = (
        "The thin strip is the number of jobs that wait, over the whole stream. Below it the shaded time, of a fault or of the "
        "longest queue: who waits, and who holds which slot. A bar is an attempt of a job, from when it is let in until it ends."
    )
    legend = [fill(kind or "jobs", colours[kind], colours[kind]) for kind in kinds[: len(COLOURS)]]
    legend += [fill("other classes", REST, REST)] if len(kinds) > len(COLOURS) else []
    if any(held.outcome in ENDED_BADLY for strip in strips for held in strip.held):
        legend.append(dot("ended by a kill or a failure", WRONG, "x"))
    legend += [fill("a fault at work", STRUCK, WRONG)] if any(_struck(strip.stream) for strip in strips) else []
    every = len({(gathered.run.origin, stream.group) for gathered in scene.streams for stream in gathered.streams})
    notes = (
        [f"{len(strips)} of {every} settings are drawn: one of each kind, those with faults and long queues first."]
        if every > len(strips)
        else []
    )
    notes += [f"Of many slots the first {MOST_LANES} are drawn."] if any(strip.height == MOST_LANES for strip in strips) else []
    sections = []
    for strip in strips:
        beside = f"{len(strip.stream.jobs)} jobs, {plural(strip.stream.slots or 0, 'slot')}, block {strip.stream.unit[1]}"
        tall = STRIP + SPACE + QUEUE + 0.06 + LANE * strip.height + BELOW
        sections.append(Section(strip.title, tall, partial(_stream, strip=strip, colours=colours), beside, run=strip.run))
    return Spec(lead, sections, legend, notes)


def _strips(scene: Scene) -> list[Strip]:
    """Return of each workload the first block; of many, those of whose kind there is none yet. Raises: NothingToDraw."""
    result: dict[tuple[str, str], Strip] = {}
    for run, stream in ((gathered.run, stream) for gathered in scene.streams for stream in gathered.streams):
        if (run.origin, stream.group) not in result and (held := holds(stream)):
            result[run.origin, stream.group] = _strip(run, stream, held)
    if not result:
        raise NothingToDraw("no job of any stream ever held a slot")
    # First those with faults, then one of each policy and arrivals, the fullest first: what differs is worth a look.
    strips = sorted(result.values(), key=lambda strip: (not _struck(strip.stream), -float(waiting(strip.stream)[1].max(initial=0))))
    unlike: dict[tuple[object, ...], Strip] = {}
    for strip in strips:
        stream = strip.stream
        unlike.setdefault((bool(stream.fault), stream.policy, stream.arrivals.get("kind"), stream.slots), strip)
    # Of the same jobs the same time is drawn large: policies are then seen beside each other.
    windows: dict[tuple[object, ...], tuple[float, float]] = {}
    drawn = []
    for strip in list(unlike.values())[:MOST]:
        stream = strip.stream
        jobs = (*map(str, sorted(stream.arrivals.items())), len(stream.jobs), stream.slots)
        drawn.append(strip._replace(window=windows.setdefault(jobs, strip.window)))
    return drawn


def _strip(run: Run, stream: Stream, held: Sequence[SlotHold]) -> Strip:
    checkpoints = f"checkpoints every {stream.checkpoint_s:g} s" if stream.checkpoint_s else ""
    parts = (called(stream.arrival_kind), stream.policy, stream.fault, checkpoints)
    title = ", ".join(part for part in parts if part)
    until_s = last_moment(stream, held)
    length_s = min(until_s, until_s * SHOWN / len(held)) if until_s > 0 else 1.0
    lasting = [begin_s for begin_s, end_s in _struck(stream) if end_s > begin_s]
    if not lasting:
        return Strip(run, title, stream, held, until_s, busiest(stream, length_s, until_s))
    begin_s = min(max(0.0, lasting[0] - length_s / 4), max(0.0, until_s - length_s))
    return Strip(run, title, stream, held, until_s, (begin_s, begin_s + length_s))


def _struck(stream: Stream) -> list[tuple[float, float]]:
    """From when to when faults were at work, as far as it is known."""
    return sorted((fault.at_s, max(fault.at_s, fault.until_s or fault.at_s)) for fault in stream.faults)


def _stream(sheet: Page, top: float, strip: Strip, colours: Mapping[str, str]) -> None:
    wide = INSIDE - LEFT - 0.05
    times, counts = waiting(strip.stream)
    most = 1.1 * max(1.0, float(counts.max(initial=0)))
    whole = sheet.axes(LEFT, top, wide, STRIP, xlim=(0, strip.until_s or 1.0), ylim=(0, most), ylabel="waiting")
    whole.axvspan(*strip.window, color=BAND, linewidth=0, zorder=0)
    whole.step(times, counts, where="post", color=QUIET, linewidth=0.8)
    queue = sheet.axes(LEFT, top + STRIP + SPACE, wide, QUEUE, xlim=strip.window, ylim=(0, most), ylabel="waiting")
    queue.fill_between(times, counts, step="post", color=FAINT, linewidth=0)
    queue.step(times, counts, where="post", color=INK, linewidth=0.9)
    queue.tick_params(labelbottom=False)
    for axes in (whole, queue):
        axes.yaxis.set_major_locator(MaxNLocator(2, integer=True))
        axes.grid(axis="y")
    below = top + STRIP + SPACE + QUEUE + 0.06
    slots = sheet.axes(LEFT, below, wide, LANE * strip.height, ylim=(strip.height - 0.5, -0.5), yticks=[])
    nodes: dict[str, list[int]] = {}
    for held, lane in strip.lanes:
        nodes.setdefault(held.node, []).append(lane)
        end_s = strip.until_s if held.end_s is None else held.end_s
        if end_s >= strip.window[0] and held.begin_s <= strip.window[1]:
            look: Style = {"color": colours[held.class_], "edgecolor": "white", "linewidth": 0.5}
            slots.barh(lane, end_s - held.begin_s, left=held.begin_s, height=0.8, **look)
            if held.outcome in ENDED_BADLY and held.end_s is not None:
                slots.plot([held.end_s], [lane], marker="x", color=WRONG, markersize=5, markeredgewidth=1.4, zorder=3)
    slots.set(xlim=strip.window, xlabel="seconds since the stream began")
    for axes in (whole, queue, slots):
        for ends in _struck(strip.stream):
            axes.axvspan(*ends, facecolor=STRUCK, edgecolor=WRONG, linewidth=0.6, alpha=0.7, zorder=0.5)
    for node, mine in nodes.items():
        middle = below + LANE * ((min(mine) + max(mine)) / 2 + 0.5)
        sheet.text(LEFT - 0.08, middle, (node or "slots")[:9], ha="right", va="center", fontsize=SMALL)


@dataclass(frozen=True, slots=True)
class SlotHold:
    """One attempt in its slots: seconds since the stream's start. `end_s` is None where it is not known; so is an empty `node`."""

    job: int
    class_: str
    begin_s: float
    end_s: float | None
    outcome: str
    node: str = ""
    replicas: int = 1


def holds(stream: Stream) -> list[SlotHold]:
    jobs = {job.number: job for job in stream.jobs}
    attempts = [(one.job, one.begin_s, one.end_s, one.outcome, one.node or "") for one in stream.attempts if one.job in jobs]
    if not stream.attempts:
        attempts = [(job.number, job.taken_s, job.end_s, job.outcome, "") for job in jobs.values()]
    held = [
        SlotHold(number, jobs[number].class_, begin_s, end_s, outcome, node, jobs[number].replicas)
        for number, begin_s, end_s, outcome, node in attempts
        if begin_s is not None
    ]
    return sorted(held, key=lambda hold: (hold.begin_s, hold.job))


def lanes(of_stream: Sequence[SlotHold], until_s: float) -> list[tuple[SlotHold, int]]:
    """Give each attempt as many lanes as it has replicas, those of one node beside each other."""
    placed: list[tuple[SlotHold, int]] = []
    free: dict[str, list[float]] = {}
    for hold in of_stream:
        ends = free.setdefault(hold.node, [])
        for _ in range(hold.replicas):
            lane = next((at for at, end in enumerate(ends) if end <= hold.begin_s + ROUNDING_S), len(ends))
            ends[lane : lane + 1] = [until_s if hold.end_s is None else hold.end_s]
            placed.append((hold, lane))
    nodes = sorted(free)
    first = dict(zip(nodes, np.cumsum([0, *(len(free[node]) for node in nodes)]).tolist(), strict=False))
    return [(hold, first[hold.node] + lane) for hold, lane in placed]


def waiting(stream: Stream) -> tuple[np.ndarray, np.ndarray]:
    """Return the moments at which the number of waiting jobs changes, and that number from then on."""
    times = columns(stream)
    known = ~np.isnan(times.submit) & ~times.backwards
    begin, end = times.submit[known], times.taken[known]
    end = end[~np.isnan(end)]  # who never got a slot waits for ever
    moments = np.concatenate([begin, end])
    order = np.argsort(moments, kind="stable")
    counts = np.cumsum(np.repeat([1.0, -1.0], [len(begin), len(end)])[order])
    moments = moments[order]
    last = np.flatnonzero(np.diff(moments, append=np.inf) > 0)  # who comes and is let in at one moment has not waited
    return moments[last], counts[last]


def last_moment(stream: Stream, of_stream: Iterable[SlotHold]) -> float:
    moments = [*(job.submit_s for job in stream.jobs), *(moment for hold in of_stream for moment in (hold.begin_s, hold.end_s))]
    return max([0.0, *(moment for moment in moments if moment is not None)])


def busiest(stream: Stream, length_s: float, until_s: float) -> tuple[float, float]:
    """Return the time of such a length with the longest queue in its middle, within the stream."""
    times, counts = waiting(stream)
    at = float(times[int(np.argmax(counts))]) if len(times) else 0.0
    begin_s = min(max(0.0, at - length_s / 2), max(0.0, until_s - length_s))
    return begin_s, begin_s + (length_s if math.isfinite(length_s) else until_s)
