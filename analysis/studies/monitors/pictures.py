"""What watching costs: each monitor's overhead and what looking more often costs, and what each takes for itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Literal, NamedTuple

from analysis.labels import short_names
from analysis.plots.labels import joined, minus, room_for
from analysis.plots.marks import VERDICTS, Mark, MarkRow, Style, ends_of, forest_section, interval, margin_band, round_ticks, ticks
from analysis.plots.page import Page, Section, Spec, body_width, dot, fill, verdict_entries
from analysis.plots.scene import Scene, some
from analysis.plots.style import BAND, COLOURS, INK, MARKERS, QUIET, picture
from analysis.terms import Run
from analysis.wording import unsigned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .terms import MonitoredArm, Overhead

LINEAR = 1.0  # percent to either side of 0 in which the scale is linear; beyond it is logarithmic
TICKS = (0.0, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
MOST_TICKS = 7
SCALE = "The scale is linear to ±1 % and logarithmic beyond, so that 0.1 % and 60 % can both be read."
SMALLEST = 0.05  # percent of a core: what takes less stands here
LEFT, STRIP, GAP, TALL = 0.62, 1.1, 0.15, 2.6
# More is worse here: orange costs, whatever `compare` calls it.
LOOKS: dict[str, Style] = VERDICTS | {
    "regressed": VERDICTS["regressed"] | {"marker": "^"},
    "improved": VERDICTS["improved"] | {"marker": "v"},
}
WORDS = {
    "regressed": "costs",
    "improved": "less than none",
    "equivalent": "within the margin",
    "inconclusive": "not shown, or underpowered",
    "not comparable": "not claimed",
}


class MonitorPart(NamedTuple):
    """A workload that was watched: its arms whose overhead is known."""

    run: Run
    title: str
    found: Overhead
    arms: list[MonitoredArm]

    @property
    def shares(self) -> list[MonitoredArm]:
        """Monitors whose own share is known too, or that have none by their nature."""
        return [arm for arm in self.arms if arm.base and (arm.own.core is not None or arm.kind == "inside")]

    def scale(self, axes: Axes, which: Literal["x", "y"], arms: Sequence[MonitoredArm]) -> None:
        """Scale one axis for overheads in percent: all of them, 0 and the margin are in view; the margin is shaded."""
        margin = self.found.margin
        ends = [100 * end for arm in arms if arm.cpu for end in (arm.cpu.low, arm.cpu.high)] + [150 * margin, -150 * margin]
        low, high = (end * 1.25 if abs(end) > LINEAR else end + (0.2 if end > 0 else -0.2) for end in (min(ends), max(ends)))
        axes.set(**{f"{which}lim": (low, high)})
        getattr(axes, f"set_{which}scale")("symlog", linthresh=LINEAR, linscale=0.7)
        there = [tick for tick in (*(-tick for tick in reversed(TICKS[1:])), *TICKS) if low <= tick <= high]
        there = [tick for tick in there if abs(tick) != 0.5 or max(high, -low) < 5]
        if len(there) > MOST_TICKS:  # of a noisy run, whose intervals span decades
            there = [tick for tick in there if not f"{abs(tick):g}".startswith("3")]
        ticks(axes, which, there, lambda value: f"{value:+g}" if value else "0")
        across, through = (axes.axvspan, axes.axvline) if which == "x" else (axes.axhspan, axes.axhline)
        across(*margin_band(margin), color=BAND, zorder=0)
        through(0, color=INK, linewidth=0.9, zorder=1)
        axes.grid(axis=which)


def parts_of(scene: Scene) -> list[MonitorPart]:
    """Take every workload that was watched. Raises: NothingToDraw, where none was."""
    parts = []
    for run in scene.runs:
        names = short_names(run.workloads)
        several = f" · run {run.run_id}" if len(scene.runs) > 1 else ""
        for overhead in scene.overhead.get(run.origin, ()):
            arms = [arm for arm in overhead.arms if arm.cpu is not None]
            parts.append(MonitorPart(run, names[overhead.workload] + several, overhead, arms))
    some((arm for part in parts for arm in part.arms), "no monitor was measured beside cells without one")
    return parts


@picture(1, "What watching costs", MONITORED=True)
def overhead_forest(scene: Scene) -> Spec:
    """How much more CPU time the work takes under each monitor or profiler, at each rate, how surely, and which do not matter.

    A section a workload, a row a monitor; above it whether its A/A holds, and what looking more often costs.
    """
    parts = parts_of(scene)
    lead = (
        f"CPU seconds of the workload's measured steps, % more than without a monitor, in n {joined(part.found.units for part in parts)}; "
        f"lines: 95 % intervals. None again is the same without a monitor once more: how far equal cells differ. {SCALE}"
    )
    legend = verdict_entries(LOOKS, {arm.verdict for part in parts for arm in part.arms}, WORDS)
    legend.append(fill(f"±{joined(unsigned(part.found.margin) for part in parts)}: counts as no effect"))
    notes = ["Verdicts stand on Holm's p over all arms of the study, and are not given where none and none again differ."]
    notes += [f"{arm.label} ({part.title}): {arm.said}." for part in parts for arm in part.found.arms if arm.base and arm.cpu is None]
    names = {id(arm): f"{arm.label}, n {arm.n}" for part in parts for arm in part.arms}
    left = room_for(names.values(), 1.9)
    sections = []
    for part in parts:
        rows = []
        for arm in part.arms:
            texts, bold = (minus(arm.cpu.cell if arm.cpu else ""), arm.said), arm.verdict in {"regressed", "improved"}
            mark = Mark(ends_of(arm.cpu, 100), LOOKS[arm.verdict], texts, bold=bold)
            rows.append(MarkRow(names[id(arm)], [mark], color=INK if arm.base else QUIET))
        lines = [minus(text) for text in (part.found.control.sentence, *(dose.sentence for dose in part.found.doses))]
        axis: Style = {"label": "CPU time more than without, %", "zero": None, "scale": partial(part.scale, which="x", arms=part.arms)}
        heads = [("CPU +% [95 %]", 0.12), ("verdict", 0)]
        sections.append(forest_section(part.title, rows, "", lines, part.run, left=left, right=2.45, heads=heads, **axis))
    return Spec(lead, sections, legend, notes)


@picture(2, "What monitors take for themselves, and what they cost the work", MONITORED=True)
def overhead_share(scene: Scene) -> Spec:
    """Which monitors slow the work, which keep a core busy without slowing it, and which do neither.

    Draw a section a workload: the own share of a core across, the overhead upwards; inside monitors stand in a strip of their own.
    """
    reason = "no workload whose two arms without a monitor agree has a monitor that was measured"
    parts = some((part for part in parts_of(scene) if part.found.control.state != "differs" and part.shares), reason)
    lead = (
        "Across: CPU time of the monitor's own processes, % of one core. Upwards: CPU time that the work takes more. Right and low: "
        f"it keeps a core busy and slows nothing; left and high: it slows the work from inside. Lines: 95 %. {SCALE}"
    )
    # A monitor has its colour in all workloads, and a mark for each of its rates.
    monitors = {arm.label: arm.base for part in parts for arm in part.shares}
    bases, turns = list(dict.fromkeys(monitors.values())), defaultdict[str, "count[int]"](count)
    looks: dict[str, Style] = {}
    for label, base in monitors.items():
        turn, at = divmod(bases.index(base), len(COLOURS))
        looks[label] = {"color": COLOURS[at], "marker": MARKERS[(next(turns[base]) + turn) % len(MARKERS)]}
    legend = [dot(label, size=5.5, **look) for label, look in looks.items()] + [fill("counts as no effect")]
    unknown = [arm.label for part in parts for arm in part.arms if arm.base and arm not in part.shares]
    low = [arm.label for part in parts for arm in part.shares if arm.own.core is not None and 100 * arm.own.core.value < SMALLEST]
    notes = [f"Not shown, for their own CPU time is not known: {joined(unknown)}."] if unknown else []
    notes += [f"Under {SMALLEST:g} % of a core, drawn there: {joined(low)}."] if low else []
    sections = []
    for part in parts:
        beside = f"n {max(arm.cpu.n for arm in part.shares if arm.cpu)} {part.found.units} at most"
        sections.append(Section(part.title, TALL + 0.55, partial(_own, part=part, looks=looks), beside, run=part.run))
    return Spec(lead, sections, legend, notes)


def _own(sheet: Page, top: float, part: MonitorPart, looks: dict[str, Style]) -> None:
    inside = list(enumerate(arm for arm in part.shares if arm.own.core is None))
    beside = [(max(SMALLEST, 100 * arm.own.core.value), arm) for arm in part.shares if arm.own.core is not None]
    shares = [share for share, _ in beside]
    low, high = min([0.3, *shares]) / 1.6, max([3.0, *shares]) * 1.6
    strip: Style = {"xlim": (-1, len(inside)), "xticks": [], "xlabel": "inside:\nno process of its own"}
    scale: Style = {"xscale": "log", "xlim": (low, high), "xlabel": "CPU time of the monitor itself, % of one core"}
    left = LEFT
    for places, settings, wide in ((inside, strip, STRIP), (beside, scale, body_width() - LEFT - 0.05 - (STRIP + GAP) * bool(inside))):
        if not places:
            continue
        axes = sheet.axes(left, top, wide, TALL, **settings)
        part.scale(axes, "y", part.shares)
        for x, arm in places:
            interval(axes, x, ends_of(arm.cpu, 100), {"markersize": 5.5, "linewidth": 1.3} | looks[arm.label], "y")
        if settings is scale:
            ticks(axes, "x", round_ticks(low, high, 8))
        axes.tick_params(axis="y", labelleft=left == LEFT)
        axes.set_ylabel("CPU time of the work, % more" if left == LEFT else "")
        left += STRIP + GAP
