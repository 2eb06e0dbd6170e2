"""Pictures of input: the time of an epoch, and utilisation and throughput by varied parameter."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from analysis.plots.labels import fit, fitted, room_for
from analysis.plots.marks import FOOT, ROW, bars, ends_of, known, lines, row_axes
from analysis.plots.page import Chart, Page, Plot, SmallPanel, SmallPanels, fill, line
from analysis.plots.scene import Scene, some
from analysis.plots.style import INK, SMALL, picture
from analysis.terms import Run

from .figures import RATE, STEADY, WHOLE, describe_oversleep
from .study import common, configuration

if TYPE_CHECKING:
    from analysis.plots.marks import Ends, Style

    from .study import Configuration, IoStudy
    from .terms import IoRun

IO = frozenset({"io"})
LOOKS: dict[str, Style] = {
    WHOLE: {"color": INK, "marker": "o", "markersize": 5.5},
    STEADY: {"color": "#D55E00", "marker": "o", "markersize": 5.5, "markerfacecolor": "white"},
}
WORDS = {WHOLE: "over the whole epoch", STEADY: "without its first step, as in DLIO"}


class IoPart(NamedTuple):
    """One study: its run (None for DLIO's folders), and its untouched configurations."""

    study: IoStudy
    run: Run | None
    title: str
    rows: Sequence[Configuration]

    def section(self, tall: float, draw: Callable[[Page, float], object]) -> Chart:
        return Chart(self.title, tall, draw, self.study.alike, run=self.run)


def parts_of(scene: Scene) -> list[IoPart]:
    parts = []
    for study in scene.io:
        run = next((run for run in scene.runs if run.origin == study.origin), None)
        rows = [row for row in study.configurations if row.responses[RATE].value is not None]
        title = f"run {run.run_id}" if run else Path(study.origin).name or study.origin
        if rows:
            parts.append(IoPart(study, run, title, rows))
    return some(parts, "no cell that reports its input was measured on the untouched machine")


def notes_of(parts: Sequence[IoPart], *, intervals: bool = True) -> list[str]:
    notes = []
    most = max(mean.n for part in parts for row in part.rows for mean in row.responses.values())
    if intervals and most > 1:
        notes.append(
            "Bars around marks: 95 % of the mean, by Student's t over blocks (whole runs), never "
            "over steps or epochs."
        )
    elif intervals:
        notes.append("Every configuration ran once, so there is no interval.")
    for part in parts:
        if part.run is None:
            engine = part.rows[0].runs[0].engine
            notes.append(f"{part.title}: {len(part.study.cells)} runs of {engine}.")
        if late := describe_oversleep(part.study.cells):
            notes.append(f"{late}.")
    return notes


COUNTS = SmallPanels(4, above=0.26, tall=1.15, below=0.5, left=0.5, gap=0.08)
AU, RATES = "AU, %", "GiB/s, nominal"
KINDS: dict[str, tuple[float, dict[str, str]]] = {
    AU: (1.0, {WHOLE: WHOLE, STEADY: STEADY}),
    RATES: (1 / 1024, {WHOLE: "mb_per_s_nominal_whole", STEADY: "mb_per_s_nominal_steady"}),
}
STYLES = {WHOLE: LOOKS[WHOLE], STEADY: LOOKS[STEADY] | {"linestyle": "--"}}


class ProcessPanel(NamedTuple):
    """Lines of one kind over numbers of processes, for configurations equal otherwise."""

    name: str
    rows: Sequence[Configuration]
    kind: str

    def lines(self) -> Iterator[tuple[str, list[tuple[float, Ends]]]]:
        scale, responses = KINDS[self.kind]
        for side, response in responses.items():
            ends = (ends_of(row.responses[response], scale) for row in self.rows)
            yield side, list(zip((row.runs[0].processes for row in self.rows), ends, strict=True))


def _paint(panel: SmallPanel, item: ProcessPanel, most: float) -> None:
    if item.kind == AU:
        panel.text(0.02, fit(item.name, 2 * panel.wide + 0.4, SMALL), fontweight="bold")
    for side, points in item.lines():
        lines(panel.axes, points, STYLES[side])
    counts = [row.runs[0].processes for row in item.rows]
    room = 0.1 * (counts[-1] - counts[0])
    panel.axes.set(xlim=(counts[0] - room, counts[-1] + room), xlabel="processes")
    panel.axes.set(ylim=(0, 104.0 if item.kind == AU else most), ylabel=item.kind)
    shown = fitted(map(str, counts), panel.wide / len(counts) - 0.04, SMALL)
    panel.axes.set_xticks(counts, [shown[str(count)] for count in counts])


@picture(22, "Utilisation and throughput against processes", REPORTS=IO)
def io_processes(scene: Scene) -> Plot:
    """Utilisation and throughput by number of processes: when accelerators begin to wait."""
    reason = (
        "no configuration was measured with several numbers of processes: `--vary "
        "processes=1,2,4` does"
    )
    parts = some((part for part in parts_of(scene) if _groups(part)), reason)
    lead = (
        "Each process feeds one accelerator. If throughput rises with the processes at constant "
        "utilisation, the input keeps up. "
        "If throughput is constant while utilisation falls, the input is saturated."
    )
    legend = [line(WORDS[name], **style) for name, style in STYLES.items()]
    panels = [
        [ProcessPanel(name, rows, kind) for name, rows in _groups(part).items() for kind in KINDS]
        for part in parts
    ]
    rates = (panel for own in panels for panel in own if panel.kind == RATES)
    ends = (end for panel in rates for _, points in panel.lines() for _, end in points)
    paint = partial(_paint, most=1.06 * max(known(ends), default=1.0))
    sections = [
        COUNTS.section(part.title, own, paint, part.run, grid="y")._replace(beside=part.study.alike)
        for part, own in zip(parts, panels, strict=True)
    ]
    notes = [*notes_of(parts), "A refused figure has no mark."]
    nominal = "Nominal: samples times the mean record length, as DLIO counts; 1 GiB = 2^30 bytes."
    return Plot(lead, sections, legend, [*notes, nominal])


def _groups(part: IoPart) -> dict[str, list[Configuration]]:
    alike = common([cell.run for cell in part.study.cells]) | {"processes"}
    groups: dict[str, list[Configuration]] = defaultdict(list)
    for row in part.rows:
        groups[configuration(row.runs[0], alike)].append(row)
    for group in groups.values():
        group.sort(key=lambda row: row.runs[0].processes)
    return {
        name: group
        for name, group in groups.items()
        if group[0].runs[0].processes < group[-1].runs[0].processes
    }


# Reading warm, computing cool: computation, the purpose of a training, is the one calm colour.
SHARES = {
    "first": ("#D55E00", "waiting for the first batch"),
    "later": ("#E69F00", "waiting for later batches"),
    "compute": ("#56B4E9", "computing"),
    "barrier": ("#8f4b7d", "waiting for other ranks"),
    "rest": ("#d0d0d0", "rest: readers' start and end, checkpoints"),
}
UNCLOCKED = "waiting for other ranks, and the readers' end"


@picture(23, "Where the time of an epoch goes", REPORTS=IO)
def io_bottleneck(scene: Scene) -> Plot:
    """Time of an epoch by activity: waiting for first or later batches or ranks, or computing.

    There is a bar per configuration, over all its runs on the untouched machine.
    """
    parts = parts_of(scene)
    lead = (
        "The wall time of an epoch, as its ranks spent it on average. Ideally there is only one "
        "colour: computing. During the wait for the "
        "first batch, the readers run and the accelerator does not."
    )
    legend = [fill(words, color, color) for color, words in SHARES.values()]
    if all(shares_of(part.rows[0].runs[:1])["barrier"] is None for part in parts):
        legend[-2:] = [fill(UNCLOCKED, SHARES["rest"][0])]
    left = room_for([row.name for part in parts for row in part.rows], 3.0)
    sections = [
        part.section(ROW * len(part.rows) + FOOT, partial(_epochs, part=part, left=left))
        for part in parts
    ]
    return Plot(lead, sections, legend, notes_of(parts, intervals=False))


def _epochs(sheet: Page, top: float, part: IoPart, left: float) -> None:
    names = [row.name for row in part.rows]
    axes = row_axes(
        sheet, top, left, names, right=0.1, xlim=(0, 100), xlabel="part of the epoch, %"
    )
    for at, row in enumerate(part.rows):
        bars(
            axes,
            at,
            [
                (share, SHARES[name][0])
                for name, share in shares_of(row.runs).items()
                if share is not None
            ],
            least=8,
        )


def shares_of(runs: Iterable[IoRun]) -> dict[str, float | None]:
    """Average over all epochs and ranks of all runs, weighted by duration.

    Returns: percent of the wall time of each of `SHARES`, 100 together; the barrier is None if it
    was not clocked separately.
    """
    epochs = [epoch for run in runs for epoch in run.epochs]
    parts: dict[str, float | None] = {
        "first": math.fsum(epoch.load_s[0] for epoch in epochs if epoch.load_s),
        "later": math.fsum(math.fsum(epoch.load_s[1:]) for epoch in epochs),
        "compute": math.fsum(math.fsum(epoch.compute_s) for epoch in epochs),
    }
    clocked = [math.fsum(epoch.barrier_s) for epoch in epochs if epoch.barrier_s is not None]
    parts["barrier"] = math.fsum(clocked) if len(clocked) == len(epochs) else None
    known_s = math.fsum(part or 0.0 for part in parts.values())
    total_s = max(known_s, math.fsum(epoch.duration_s for epoch in epochs))
    return {
        name: None if part is None else 100 * part / total_s
        for name, part in (parts | {"rest": total_s - known_s}).items()
    }
