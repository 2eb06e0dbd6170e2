"""Times that jobs were predicted to take beside those they took: how good the predictions were that policies worked with."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from analysis.formats.fields import Fields
from analysis.studies.jobs.queues.words import unit
from analysis.terms import Unreadable
from analysis.wording import digits

from .jobs_shared import JOBS
from .marks import log_or_linear
from .page import PANEL_HEAD, Entry, page, panel_head
from .scene import NothingToDraw
from .style import BAND, COLOURS, GRID, INK, QUIET, SMALL, drawn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.jobs.streams.gathered import Told

    from .scene import Scene

TITLE = "Times of jobs, predicted and measured"
ANSWERS = "How far off the predicted times were that policies chose by, and of which classes."
ORDER = -4
REPORTS = JOBS

LEFT, GAP, TALL, BELOW = 0.62, 0.35, 2.4, 0.55
NEAR = 2.0  # a factor to either side
MOST = 4000  # dots
TIMES = ("predicted_s", "admit_s", "start_s", "end_s")


class Pair(NamedTuple):
    """A job: what it was predicted to take, and how long it held its slots; seconds."""

    kind: str
    predicted_s: float
    measured_s: float

    @property
    def off(self) -> float:
        """By which factor the prediction is off, whichever way."""
        return math.exp(abs(math.log(self.measured_s / self.predicted_s)))


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel a run: a dot a job that was done, and below it how far off each class is."""
    found = [(one.run, pairs) for one in scene.streams if (pairs := pairs_of(one.told))]
    if not found:
        raise NothingToDraw("no job that was done had a predicted time")
    kinds = list(dict.fromkeys(pair.kind for _, pairs in found for pair in pairs))
    colours = {kind: COLOURS[at % len(COLOURS)] for at, kind in enumerate(kinds)}
    lead = (
        "A dot is a job that was done: the time it was predicted to take, and the time it held its slots. On the line both are the same; "
        f"in the grey band they are within a factor {NEAR:g}. Waits have no part in either."
    )
    legend = [Entry(kind or "jobs", {"color": colours[kind], "marker": "o", "markersize": 4, "linestyle": "none"}) for kind in kinds]
    legend.append(Entry(f"within a factor {NEAR:g}", {"facecolor": BAND, "edgecolor": GRID}, patch=True))
    height = PANEL_HEAD + TALL + BELOW
    notes = ["Jobs of one stream share what happened then: how sure a figure is cannot be told from dots."]
    sheet = page(scene, TITLE, lead, height * len(found), legend, notes)
    for at, (run, pairs) in enumerate(found):
        panel_head(sheet, at * height, f"run {run.run_id}", f"{len(pairs)} jobs")
        wide = TALL + 0.4
        axes = sheet.axes(LEFT, at * height + PANEL_HEAD, wide, TALL)
        cloud(axes, pairs, colours)
        for row, line in enumerate(words(pairs)):
            sheet.text(LEFT + wide + GAP, at * height + PANEL_HEAD + 0.1 + 0.2 * row, line, fontsize=SMALL, color=QUIET if row else INK)
    return sheet.figure


def pairs_of(told: Iterable[Told]) -> list[Pair]:
    """Answer the jobs that were done, at their first attempt, and had a prediction."""
    found = []
    for one in told:
        for at, row in enumerate(one.cell.report["job"]):
            part = Fields(row, one.cell.id, f"report.job[{at}]")
            try:
                numbers = Fields({"row": row}, one.cell.id, part.place).known_numbers("row", TIMES)
            except Unreadable:
                continue  # said where the stream was read
            begin_s = numbers.get("admit_s", numbers.get("start_s"))
            predicted_s, end_s = numbers.get("predicted_s", 0.0), numbers.get("end_s")
            first = row.get("attempts") in {None, 1} and row.get("outcome") == "done"
            if first and predicted_s > 0 and begin_s is not None and end_s is not None and end_s > begin_s:
                found.append(Pair(part.optional_text("class") or "", predicted_s, end_s - begin_s))
    return found


def cloud(axes: Axes, pairs: Sequence[Pair], colours: Mapping[str, str]) -> None:
    """Draw the dots, the line on which both times are the same, and the band about it."""
    scale, short = unit([median(pair.measured_s for pair in pairs)])
    ends = [time * scale for pair in pairs for time in (pair.predicted_s, pair.measured_s)]
    low, high = min(ends), max(ends)
    span = [low / 2, high * 2]
    axes.fill_between(span, [end / NEAR for end in span], [end * NEAR for end in span], color=BAND, linewidth=0, zorder=0)
    axes.plot(span, span, color=INK, linewidth=0.9, zorder=1)
    step = max(1, len(pairs) // MOST)
    size, alpha = (3.0, 0.5) if len(pairs) < 600 else (1.8, 0.3)
    for kind, color in colours.items():
        mine = [pair for pair in pairs[::step] if pair.kind == kind]
        places = [pair.predicted_s * scale for pair in mine], [pair.measured_s * scale for pair in mine]
        axes.plot(*places, "o", color=color, markersize=size, alpha=alpha, markeredgewidth=0, rasterized=True, zorder=2)
    log_or_linear(axes, "x", low, high)
    log_or_linear(axes, "y", low, high)
    axes.set(xlabel=f"predicted, {short}", ylabel=f"measured, {short}")
    axes.grid(visible=True)


def words(pairs: Sequence[Pair]) -> list[str]:
    """Say how far off each class is: the median factor, and which part is near; of all first."""
    kinds = sorted({pair.kind for pair in pairs})
    every = [("all", list(pairs)), *((kind, [pair for pair in pairs if pair.kind == kind]) for kind in kinds if len(kinds) > 1)]
    return [
        f"{name}: off by a factor {digits(median(pair.off for pair in some), 3)} (median), "
        f"{100 * sum(pair.off <= NEAR for pair in some) / len(some):.0f} % within {NEAR:g}"
        for name, some in every[:12]
    ]
