"""Streams of jobs over time: waiting jobs, and the holders of slots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from matplotlib.ticker import MaxNLocator

from analysis.plots.page import Chart, Page, Plot, body_width, dot, fill
from analysis.plots.style import BAND, COLOURS, FAINT, INK, QUIET, SMALL, WRONG, picture
from analysis.wording import counted

from .pictures_faults import JOBS, LEFT
from .queue_fits import columns, inside
from .records import Attempt
from .streams import called

if TYPE_CHECKING:
    from analysis.plots.marks import Style
    from analysis.plots.scene import Scene
    from analysis.terms import Run

    from .records import Stream

T = TypeVar("T")
ROUNDING_S = 1e-9


SHOWN = 50  # distinguishable jobs side by side
STRIP, QUEUE, LANE, SPACE, BELOW, MOST, MOST_LANES = 0.42, 0.5, 0.17, 0.3, 0.5, 4, 24
REST, STRUCK = "#9a9a9a", "#f6d5d9"
ENDED_BADLY = frozenset({"failed", "killed"})


class SlotHold(NamedTuple):
    """One attempt in its slots, seconds from the stream's start; None or "" if unknown."""

    job: int
    class_: str
    begin_s: float
    end_s: float | None
    outcome: str
    node: str
    replicas: int


class Strip(NamedTuple):
    """One stream to draw: attempts with lanes, its end, and the enlarged time."""

    run: Run
    stream: Stream
    placed: Sequence[tuple[SlotHold, int]]
    until_s: float
    window: tuple[float, float]

    @property
    def height(self) -> int:
        return max((lane + 1 for _, lane in self.placed), default=1)


@picture(-19, "Jobs over time", REPORTS=JOBS)
def jobs_over_time(scene: Scene) -> Plot:
    """One stream over time: busy slots, long queues, and the effect of a fault."""
    strips = _strips(scene)
    kinds = list(dict.fromkeys(hold.class_ for strip in strips for hold in holds(strip.stream)))
    colours = {kind: COLOURS[at] if at < len(COLOURS) else REST for at, kind in enumerate(kinds)}
    lead = (
        "The thin strip is the number of jobs that wait, over the whole stream. Below it, the "
        "shaded time around a fault or the "
        "longest queue: waiting jobs, and the holder of each slot. A bar is an attempt of a job, "
        "from admission to end."
    )
    legend = [fill(kind or "jobs", colours[kind], colours[kind]) for kind in kinds[: len(COLOURS)]]
    legend += [fill("other classes", REST, REST)] if len(kinds) > len(COLOURS) else []
    if any(hold.outcome in ENDED_BADLY for strip in strips for hold in holds(strip.stream)):
        legend.append(dot("ended by a kill or a failure", WRONG, "x"))
    if any(struck(strip.stream) for strip in strips):
        legend.append(fill("a fault is active", STRUCK, WRONG))
    streams = [(one.run.origin, its.group) for one in scene.streams for its in one.streams]
    every = len({*streams})
    left_out = (
        f"{len(strips)} of {every} settings are drawn: one of each kind, those with faults and "
        "long queues first."
    )
    notes = [left_out] if every > len(strips) else []
    if any(strip.height == MOST_LANES for strip in strips):
        notes.append(f"Only the first {MOST_LANES} slots are drawn.")
    sections = []
    for strip in strips:
        stream = strip.stream
        checkpoints = f"checkpoints every {stream.checkpoint_s:g} s" if stream.checkpoint_s else ""
        title = ", ".join(
            filter(None, (called(stream.arrival_kind), stream.policy, stream.fault, checkpoints))
        )
        beside = (
            f"{len(stream.jobs)} jobs, {counted(stream.slots or 0, 'slot')}, block {stream.unit[1]}"
        )
        tall = STRIP + SPACE + QUEUE + 0.06 + LANE * strip.height + BELOW
        sections.append(
            Chart(
                title, tall, partial(_stream, strip=strip, colours=colours), beside, run=strip.run
            )
        )
    return Plot(lead, sections, legend, notes)


def _strips(scene: Scene) -> list[Strip]:
    result: dict[tuple[str, str], Strip] = {}
    nothing = "no job of any stream ever held a slot"
    for run, stream in scene.of_streams("streams", holds, nothing):
        if (run.origin, stream.group) not in result:
            of_stream = holds(stream)
            until_s = last_moment(stream, of_stream)
            placed = [(hold, lane) for hold, lane in lanes(of_stream, until_s) if lane < MOST_LANES]
            result[run.origin, stream.group] = Strip(
                run, stream, placed, until_s, window(stream, len(of_stream), until_s)
            )
    # First faults, then one per policy and arrivals, the fullest first: these differ visibly.
    unlike: dict[tuple[object, ...], Strip] = {}
    for strip in sorted(
        result.values(),
        key=lambda strip: (
            not struck(strip.stream),
            -float(waiting(strip.stream)[1].max(initial=0)),
        ),
    ):
        stream = strip.stream
        unlike.setdefault(
            (bool(stream.fault), stream.policy, stream.arrival_kind, stream.slots), strip
        )
    # Enlarge the same time for the same jobs, so that policies are comparable.
    windows: dict[tuple[object, ...], tuple[float, float]] = {}
    drawn = []
    for strip in list(unlike.values())[:MOST]:
        jobs = (
            *map(str, sorted(strip.stream.arrivals.items())),
            len(strip.stream.jobs),
            strip.stream.slots,
        )
        drawn.append(strip._replace(window=windows.setdefault(jobs, strip.window)))
    return drawn


def struck(stream: Stream) -> list[tuple[float, float]]:
    """Return the intervals in which faults were active, as far as known."""
    return sorted(
        (fault.at_s, max(fault.at_s, fault.until_s or fault.at_s)) for fault in stream.faults
    )


def window(stream: Stream, attempts: int, until_s: float) -> tuple[float, float]:
    """Return the time span to enlarge, around the start of a lasting fault or the longest queue."""
    length_s = min(until_s, until_s * SHOWN / attempts) if until_s > 0 else 1.0
    lasting = [begin_s for begin_s, end_s in struck(stream) if end_s > begin_s]
    times, counts = waiting(stream)
    longest_s = float(times[int(np.argmax(counts))]) if len(times) else 0.0
    begin_s = lasting[0] - length_s / 4 if lasting else longest_s - length_s / 2
    begin_s = min(max(0.0, begin_s), max(0.0, until_s - length_s))
    return begin_s, begin_s + length_s


def _stream(sheet: Page, top: float, strip: Strip, colours: Mapping[str, str]) -> None:
    wide = body_width() - LEFT - 0.05
    times, counts = waiting(strip.stream)
    most = 1.1 * max(1.0, float(counts.max(initial=0)))
    whole = sheet.axes(
        LEFT, top, wide, STRIP, xlim=(0, strip.until_s or 1.0), ylim=(0, most), ylabel="waiting"
    )
    whole.axvspan(*strip.window, color=BAND, linewidth=0, zorder=0)
    whole.step(times, counts, where="post", color=QUIET, linewidth=0.8)
    queue = sheet.axes(
        LEFT, top + STRIP + SPACE, wide, QUEUE, xlim=strip.window, ylim=(0, most), ylabel="waiting"
    )
    queue.fill_between(times, counts, step="post", color=FAINT, linewidth=0)
    queue.step(times, counts, where="post", color=INK, linewidth=0.9)
    queue.tick_params(labelbottom=False)
    for axes in (whole, queue):
        axes.yaxis.set_major_locator(MaxNLocator(2, integer=True))
        axes.grid(axis="y")
    below = top + STRIP + SPACE + QUEUE + 0.06
    slots = sheet.axes(
        LEFT, below, wide, LANE * strip.height, ylim=(strip.height - 0.5, -0.5), yticks=[]
    )
    nodes: dict[str, list[int]] = {}
    for hold, lane in strip.placed:
        nodes.setdefault(hold.node, []).append(lane)
        end_s = strip.until_s if hold.end_s is None else hold.end_s
        if end_s >= strip.window[0] and hold.begin_s <= strip.window[1]:
            look: Style = {"color": colours[hold.class_], "edgecolor": "white", "linewidth": 0.5}
            slots.barh(lane, end_s - hold.begin_s, left=hold.begin_s, height=0.8, **look)
            if hold.outcome in ENDED_BADLY and hold.end_s is not None:
                slots.plot(
                    [hold.end_s],
                    [lane],
                    marker="x",
                    color=WRONG,
                    markersize=5,
                    markeredgewidth=1.4,
                    zorder=3,
                )
    slots.set(xlim=strip.window, xlabel="seconds since the stream began")
    for axes in (whole, queue, slots):
        for ends in struck(strip.stream):
            axes.axvspan(
                *ends, facecolor=STRUCK, edgecolor=WRONG, linewidth=0.6, alpha=0.7, zorder=0.5
            )
    for node, its in nodes.items():
        middle = below + LANE * ((min(its) + max(its)) / 2 + 0.5)
        sheet.text(
            LEFT - 0.08, middle, (node or "slots")[:9], ha="right", va="center", fontsize=SMALL
        )


def holds(stream: Stream) -> list[SlotHold]:
    """Return the holders of slots in order; for a stream without attempts, its jobs."""
    jobs = {job.number: job for job in stream.jobs}
    attempts = stream.attempts or [
        Attempt(job.number, 1, None, job.taken_s, job.end_s, job.outcome) for job in stream.jobs
    ]
    result = [
        SlotHold(
            one.job, job.class_, one.begin_s, one.end_s, one.outcome, one.node or "", job.replicas
        )
        for one in attempts
        if one.begin_s is not None and (job := jobs.get(one.job)) is not None
    ]
    return sorted(result, key=lambda hold: (hold.begin_s, hold.job))


def lanes(of_stream: Sequence[SlotHold], until_s: float) -> list[tuple[SlotHold, int]]:
    """Give each attempt as many lanes as replicas, side by side per node."""
    placed: list[tuple[SlotHold, int]] = []
    free: dict[str, list[float]] = {}
    for hold in of_stream:
        ends = free.setdefault(hold.node, [])
        for _ in range(hold.replicas):
            lane = next(
                (at for at, end in enumerate(ends) if end <= hold.begin_s + ROUNDING_S), len(ends)
            )
            ends[lane : lane + 1] = [until_s if hold.end_s is None else hold.end_s]
            placed.append((hold, lane))
    nodes = sorted(free)
    first = dict(
        zip(nodes, np.cumsum([0, *(len(free[node]) for node in nodes)]).tolist(), strict=False)
    )
    return [(hold, first[hold.node] + lane) for hold, lane in placed]


def waiting(stream: Stream) -> tuple[np.ndarray, np.ndarray]:
    """Return the moments when the number of waiting jobs changes, and the new numbers."""
    times = columns(stream)
    known = ~np.isnan(times.submit) & ~times.backwards
    taken = times.taken[known]
    # Without a slot: for ever.
    moments, counts = inside(times.submit[known], taken[~np.isnan(taken)])
    last = np.flatnonzero(np.diff(moments, append=np.inf) > 0)  # admitted on arrival: no wait
    return moments[last], counts[last]


def last_moment(stream: Stream, of_stream: Iterable[SlotHold]) -> float:
    moments = [
        *(job.submit_s for job in stream.jobs),
        *(moment for hold in of_stream for moment in (hold.begin_s, hold.end_s)),
    ]
    return max([0.0, *(moment for moment in moments if moment is not None)])
