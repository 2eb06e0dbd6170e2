"""What watching costs: each monitor's overhead, what it takes for itself, and what looking more often costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from analysis.labels import short_names
from analysis.plots.labels import joined, minus, room_for
from analysis.plots.marks import (
    VERDICTS,
    Mark,
    MarkRow,
    Style,
    axis_of,
    ends_of,
    forest_section,
    interval,
    lines,
    margin_band,
    round_ticks,
    ticks,
)
from analysis.plots.page import INSIDE, Page, Section, Spec, dot, fill, line, verdict_entries
from analysis.plots.scene import NothingToDraw, Scene
from analysis.plots.style import BAND, COLOURS, DASHES, INK, MARKERS, QUIET, picture
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
LEFT, STRIP, GAP, SHARE_TALL, DOSE_TALL = 0.62, 1.1, 0.15, 2.6, 2.3
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
    run: Run
    title: str
    found: Overhead


def parts_of(scene: Scene) -> list[MonitorPart]:
    """Take every workload that was watched. Raises: NothingToDraw, where none was."""
    parts = []
    for run in scene.runs:
        names = short_names(run.workloads)
        several = f" · run {run.run_id}" if len(scene.runs) > 1 else ""
        parts += [MonitorPart(run, names[overhead.workload] + several, overhead) for overhead in scene.overhead.get(run.origin, ())]
    if not any(arm.cpu is not None for part in parts for arm in part.found.arms):
        raise NothingToDraw("no monitor was measured beside cells without one")
    return parts


def _percents(axes: Axes, which: Literal["x", "y"], arms: Iterable[MonitoredArm], margin: float) -> None:
    """Scale one axis for overheads in percent: all of them, 0 and the margin are in view; the margin is shaded."""
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
    axis_of(axes, which).grid(visible=True)


def _looks(parts: Iterable[MonitorPart]) -> dict[str, tuple[str, str]]:
    """Give every monitor a colour and a mark, the same in all workloads; of one monitor at several rates the colour is the same."""
    arms = {arm.label: arm for part in parts for arm in part.found.arms if arm.base}
    bases = list(dict.fromkeys(arm.base for arm in arms.values()))
    seen: dict[str, int] = {}
    looks = {}
    for label, arm in arms.items():
        turn, at = divmod(bases.index(arm.base), len(COLOURS))
        seen[arm.base] = seen.get(arm.base, -1) + 1
        looks[label] = COLOURS[at], MARKERS[(seen[arm.base] + turn) % len(MARKERS)]
    return looks


def _name(arm: MonitoredArm) -> str:
    return f"{arm.label}, n {arm.n}"


@picture(
    1,
    "What watching costs",
    "How much more CPU time the work takes under each monitor or profiler, how surely, and which do not matter.",
    MONITORED=True,
)
def overhead_forest(scene: Scene) -> Spec:
    parts = parts_of(scene)
    rows = [[arm for arm in part.found.arms if arm.cpu is not None] for part in parts]
    lead = (
        f"CPU seconds of the workload's measured steps, % more than without a monitor, in n {joined(part.found.units for part in parts)}; "
        f"lines: 95 % intervals. None again is the same without a monitor once more: how far equal cells differ. {SCALE}"
    )
    legend = verdict_entries(LOOKS, {arm.verdict for arms in rows for arm in arms}, WORDS)
    legend.append(fill(f"±{joined(unsigned(part.found.margin) for part in parts)}: counts as no effect"))
    notes = ["Verdicts stand on Holm's p over all arms of the study, and are not given where none and none again differ."]
    notes += [f"{arm.label} ({part.title}): {arm.said}." for part in parts for arm in part.found.arms if arm.base and arm.cpu is None]
    left = room_for([_name(arm) for arms in rows for arm in arms], 1.9)
    sections = [_costs(part, arms, left) for part, arms in zip(parts, rows, strict=True)]
    return Spec(lead, sections, legend, notes)


def _costs(part: MonitorPart, arms: Sequence[MonitoredArm], left: float) -> Section:
    rows = [
        MarkRow(
            _name(arm),
            [Mark(ends_of(arm.cpu, 100), LOOKS[arm.verdict], (minus(arm.cpu.cell if arm.cpu else ""), arm.said))],
            color=INK if arm.base else QUIET,
        )
        for arm in arms
    ]
    return forest_section(
        part.title,
        rows,
        lines=[part.found.control.sentence],
        run=part.run,
        left=left,
        right=2.45,
        label="CPU time more than without, %",
        heads=[("CPU +% [95 %]", 0.12), ("verdict", 0)],
        scale=partial(_percents, which="x", arms=arms, margin=part.found.margin),
        zero=None,
    )


@picture(
    2,
    "What monitors take for themselves, and what they cost the work",
    "Which monitors slow the work, which keep a core busy without slowing it, and which do neither.",
    MONITORED=True,
)
def overhead_share(scene: Scene) -> Spec:
    """Draw a section a workload: the own share of a core across, the overhead upwards; inside monitors stand in a strip of their own."""
    parts = [part for part in parts_of(scene) if part.found.control.state != "differs" and _shares(part)]
    if not parts:
        raise NothingToDraw("no workload whose two arms without a monitor agree has a monitor that was measured")
    looks = _looks(parts)
    lead = (
        "Across: CPU time of the monitor's own processes, % of one core. Upwards: CPU time that the work takes more. Right and low: "
        f"it keeps a core busy and slows nothing; left and high: it slows the work from inside. Lines: 95 %. {SCALE}"
    )
    used = {share.label for part in parts for share in _shares(part)}
    legend = [dot(label, color, marker, 5.5) for label, (color, marker) in looks.items() if label in used] + [fill("counts as no effect")]
    unknown = [arm.label for part in parts for arm in part.found.arms if arm.base and arm.cpu is not None and arm not in _shares(part)]
    low = [share.label for part in parts for share in _shares(part) if share.own.core is not None and 100 * share.own.core.value < SMALLEST]
    notes = [f"Not shown, for their own CPU time is not known: {joined(unknown)}."] if unknown else []
    notes += [f"Under {SMALLEST:g} % of a core, drawn there: {joined(low)}."] if low else []
    sections = []
    for part in parts:
        beside = f"n {max(share.cpu.n for share in _shares(part) if share.cpu)} {part.found.units} at most"
        sections.append(Section(part.title, SHARE_TALL + 0.55, partial(_own, part=part, looks=looks), beside, run=part.run))
    return Spec(lead, sections, legend, notes)


def _shares(part: MonitorPart) -> list[MonitoredArm]:
    """Monitors whose overhead is known, and whose own share is, or that have none by their nature."""
    return [arm for arm in part.found.arms if arm.base and arm.cpu is not None and (arm.own.core is not None or arm.kind == "inside")]


def _own(sheet: Page, top: float, part: MonitorPart, looks: Mapping[str, tuple[str, str]]) -> None:
    arms = _shares(part)
    inside = [(at, arm) for at, arm in enumerate(one for one in arms if one.own.core is None)]
    beside = [(max(SMALLEST, 100 * arm.own.core.value), arm) for arm in arms if arm.own.core is not None]
    left = LEFT
    if inside:
        axes = sheet.axes(left, top, STRIP, SHARE_TALL, xlim=(-1, len(inside)), xticks=[], xlabel="inside:\nno process of its own")
        _marks(axes, inside, arms, part, looks)
        left += STRIP + GAP
    if beside:
        axes = sheet.axes(left, top, INSIDE - left - 0.05, SHARE_TALL, xlabel="CPU time of the monitor itself, % of one core")
        low, high = min(0.3, *(share for share, _ in beside)) / 1.6, max(3.0, *(share for share, _ in beside)) * 1.6
        axes.set(xscale="log", xlim=(low, high))
        ticks(axes, "x", round_ticks(low, high, 8))
        _marks(axes, beside, arms, part, looks)
        axes.tick_params(axis="y", labelleft=not inside)
        axes.set_ylabel("" if inside else axes.get_ylabel())


def _marks(
    axes: Axes,
    places: Iterable[tuple[float, MonitoredArm]],
    arms: Sequence[MonitoredArm],
    part: MonitorPart,
    looks: Mapping[str, tuple[str, str]],
) -> None:
    _percents(axes, "y", arms, part.found.margin)
    axes.set_ylabel("CPU time of the work, % more")
    for x, arm in places:
        color, marker = looks[arm.label]
        interval(axes, x, ends_of(arm.cpu, 100), {"color": color, "marker": marker, "markersize": 5.5, "linewidth": 1.3}, "y")


@picture(3, "Looking more often", "Whether a monitor costs more the oftener it looks, and from which rate on it matters.", MONITORED=True)
def overhead_dose(scene: Scene) -> Spec:
    """Draw a section a workload, a line a monitor that was measured at several rates."""
    parts = [part for part in parts_of(scene) if part.found.doses]
    if not parts:
        raise NothingToDraw("no monitor was measured at several rates under a workload whose A/A holds")
    families = sorted({dose.family for part in parts for dose in part.found.doses})
    looks: dict[str, Style] = {
        name: {
            "color": COLOURS[at % len(COLOURS)],
            "linestyle": DASHES[at % len(DASHES)],
            "marker": MARKERS[at % len(MARKERS)],
            "markersize": 5,
        }
        for at, name in enumerate(families)
    }
    lead = f"CPU time that the work takes more at each rate; upright lines are 95 % intervals over blocks. {SCALE}"
    legend = [line(name, **look) for name, look in looks.items()] + [fill("counts as no effect")]
    sections = [
        Section(
            part.title,
            DOSE_TALL + 0.55,
            partial(_doses, part=part, looks=looks),
            lines=[dose.sentence for dose in part.found.doses],
            run=part.run,
        )
        for part in parts
    ]
    return Spec(lead, sections, legend)


def _doses(sheet: Page, top: float, part: MonitorPart, looks: Mapping[str, Style]) -> None:
    axes = sheet.axes(LEFT, top + 0.05, INSIDE - LEFT - 0.1, DOSE_TALL, xlabel="samples a second", ylabel="CPU time, % more")
    arms, doses = {arm.tweakset: arm for arm in part.found.arms}, sorted(part.found.doses, key=lambda dose: dose.family)
    _percents(axes, "y", [arms[name] for dose in doses for name in dose.arms], part.found.margin)
    rates = sorted({rate for dose in doses for rate in dose.rates_per_s})
    axes.set(xscale="log", xlim=(rates[0] / 1.5, rates[-1] * 1.5))
    ticks(axes, "x", rates)
    for at, dose in enumerate(doses):
        shift = 1.03 ** (at - (len(doses) - 1) / 2)  # so that intervals of neighbours do not lie over one another
        points = [(rate * shift, ends_of(arms[name].cpu, 100)) for rate, name in zip(dose.rates_per_s, dose.arms, strict=True)]
        lines(axes, points, looks[dose.family])
