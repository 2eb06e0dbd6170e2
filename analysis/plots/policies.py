"""Scheduling policies on the same jobs, and the predicted times that they choose by."""

from __future__ import annotations

import math
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analysis.studies.jobs.estimates import Figure as Estimate
from analysis.studies.jobs.estimates import figure, inverse, unit
from analysis.studies.jobs.policies import METRIC_HEADS
from analysis.wording import digits, probability

from .labels import fitted, joined, room_for
from .marks import DOWN, FOOT, HEADS, UP, Mark, MarkRow, dots, forest, known, log_or_linear
from .page import Section, dot, fill, stack, verdict_entries
from .scene import NothingToDraw
from .style import BAND, COLOURS, INK, picture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.jobs.policies import Place
    from analysis.studies.jobs.records import Stream
    from analysis.terms import Run

    from .marks import Style
    from .page import Page
    from .scene import Scene

JOBS = frozenset({"job"})
LEFT = 0.62

SURE = 0.05
POLICY_LOOKS: dict[str, Style] = {
    "shorter": {"color": UP, "marker": "v"},
    "longer": {"color": DOWN, "marker": "^"},
    "not shown": {"color": INK, "marker": "o", "markerfacecolor": "white"},
}
POLICY_WORDS = {"shorter": "less than the baseline's", "longer": "more", "not shown": "no difference is shown"}


class Ratio(NamedTuple):
    """One policy in one figure: a ratio to the baseline's with its interval, p after Holm; or why there is none."""

    policy: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    why: str = ""

    @property
    def verdict(self) -> str:
        """One of POLICY_LOOKS."""
        if self.value is None or self.p is None or self.p >= SURE:
            return "not shown"
        return "shorter" if self.value < 1 else "longer"

    def mark(self, *texts: str) -> Mark:
        """Make its mark."""
        return Mark((self.value, self.low, self.high), POLICY_LOOKS[self.verdict], texts, bold=False)


@picture(
    -5,
    "Policies on the same jobs",
    "Which policy lets jobs wait less, by how much, and how surely; and whom that costs.",
    REPORTS=JOBS,
)
def jobs_policies(scene: Scene) -> Figure:
    """Draw a section an engine and number of slots; in it a group of rows a figure."""
    result = places_of(scene)
    every = [row for _, place in result for name in METRIC_HEADS for row in rows_of(place, name)]
    lead = (
        f"Each figure of a stream under a policy, over that of the same stream under {joined(place.baseline for _, place in result)} (the "
        "line at 1): left of it is less. Marks: geometric mean over streams; lines: 95 % intervals, paired; p after Holm over all "
        "policies, each figure by itself."
    )
    legend = verdict_entries(POLICY_WORDS, POLICY_LOOKS, {row.verdict for row in every if row.value is not None})
    left = max(1.3, room_for([row.policy for row in every], 1.6))
    sections = []
    for run, place in result:
        rows = _policy_rows(place)
        beside = f"{place.streams} streams, the same for every policy"
        draw = partial(_policies, rows=rows, left=left, baseline=place.baseline, ends=reach_of(every))
        title = f"{place.slots} slot{'s' if place.slots > 1 else ''} of {place.engine}"
        sections.append(Section(title, HEADS + sum(row.tall for row in rows) + FOOT, draw, beside, run=run))
    notes = ["The first tenth of each stream is left out. Slowdown: response over time in service."]
    lost = sum(place.lost for _, place in result)
    notes += [f"{lost} jobs were not done and have no part in these figures."] if lost else []
    grow = sorted({arm.policy for _, place in result for arm in place.arms if arm.grows})
    notes += [f"UNSTABLE under {', '.join(grow)}: the queue grows for as long as jobs come."] if grow else []
    return stack(scene, jobs_policies.TITLE, lead, sections, legend, notes)


def places_of(scene: Scene) -> list[tuple[Run, Place]]:
    """Take what was compared. Raises: NothingToDraw."""
    result = [(stream.run, place) for stream in scene.streams for place in stream.places]
    if not any(row.value is not None for _, place in result for name in METRIC_HEADS for row in rows_of(place, name)):
        raise NothingToDraw("no two policies met the same jobs in two streams or more")
    return result


def rows_of(place: Place, name: str) -> list[Ratio]:
    """Answer a figure of every policy against the baseline's, the least first."""
    rows = []
    for arm in place.arms:
        if arm.policy != place.baseline:
            effect, p = arm.against[name].effect, arm.against[name].p
            rows.append(Ratio(arm.policy, why=arm.against[name].reason) if effect is None else Ratio(arm.policy, *inverse(effect), p=p))
    return sorted(rows, key=lambda row: row.value if row.value is not None else math.inf)


def reach_of(rows: Sequence[Ratio]) -> tuple[float, float]:
    """Answer the ends of an axis of ratios: all intervals and 1 are in view."""
    ends = known((row.value, row.low, row.high) for row in rows)
    return min([0.8, *ends]), max([1.25, *ends])


def words(row: Ratio) -> str:
    """Write a ratio with its interval, or why there is none."""
    return row.why if row.value is None else figure(Estimate(row.value, row.low, row.high))


def _policy_rows(place: Place) -> list[MarkRow]:
    base = next(arm for arm in place.arms if arm.policy == place.baseline)
    rows: list[MarkRow] = []
    for name, head in METRIC_HEADS.items():
        value = base.mean(name)
        scale, short = unit([value or 0.0]) if name != "slowdown" else (1.0, "")
        small = "" if value is None else f"{place.baseline}: {digits(value * scale)} {short}".rstrip()
        rows.append(MarkRow(head, [], small, bold=True, rule=bool(rows), tall=0.4))
        ratios = rows_of(place, name)
        rows += [MarkRow(row.policy, [row.mark(words(row), "" if row.p is None else probability(row.p))], tall=0.22) for row in ratios]
    return rows


def _policies(sheet: Page, top: float, rows: Sequence[MarkRow], left: float, baseline: str, ends: tuple[float, float]) -> None:
    scale: Callable[[Axes], None] = lambda axes: log_or_linear(axes, "x", *ends)  # noqa: E731  # short
    heads = [("ratio [95 %]", 0.12), ("p", 0)]
    forest(sheet, top, rows, left=left, right=2.05, label=f"ratio to {baseline}'s", heads=heads, scale=scale, zero=1.0)


NEAR = 2.0  # a factor to either side
MOST_DOTS = 4000
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


@picture(
    -4,
    "Times of jobs, predicted and measured",
    "How far off the predicted times were that policies chose by, and of which classes.",
    REPORTS=JOBS,
)
def jobs_predicted(scene: Scene) -> Figure:
    """Draw a section a run: a dot a job that was done, and beside it how far off each class is."""
    result = [(stream.run, pairs) for stream in scene.streams if (pairs := pairs_of(stream.streams))]
    if not result:
        raise NothingToDraw("no job that was done had a predicted time")
    kinds = list(dict.fromkeys(pair.kind for _, pairs in result for pair in pairs))
    colours = {kind: COLOURS[at % len(COLOURS)] for at, kind in enumerate(kinds)}
    lead = (
        "Left, a dot is a job that was done: the time it was predicted to take, and the time it held its slots; on the line both are the "
        f"same, in the grey band they are within a factor {NEAR:g}. Right, how far off the middle half of each class is, either way."
    )
    legend = [dot(kind or "jobs", colours[kind], size=4) for kind in kinds] + [fill(f"within a factor {NEAR:g}")]
    notes = ["Waits have no part in either. Jobs of one stream share what happened then: how sure a figure is cannot be told from dots."]
    sections = [
        Section(f"run {run.run_id}", 2.4 + 0.55, partial(_predictions, pairs=pairs, colours=colours), f"{len(pairs)} jobs", run=run)
        for run, pairs in result
    ]
    return stack(scene, jobs_predicted.TITLE, lead, sections, legend, notes)


def pairs_of(streams: Iterable[Stream]) -> list[Pair]:
    """Answer the jobs that were done, at their first attempt, and had a prediction."""
    return [
        Pair(job.class_, job.predicted_s, job.end_s - job.taken_s)
        for stream in streams
        for job in stream.jobs
        if job.done_at_once and job.predicted_s and job.taken_s is not None and job.end_s is not None and job.end_s > job.taken_s
    ]


def by_class(pairs: Sequence[Pair]) -> dict[str, list[Pair]]:
    """All pairs, then those of each class, where there are several."""
    kinds = sorted({pair.kind for pair in pairs})
    return {"all": list(pairs)} | {kind: [pair for pair in pairs if pair.kind == kind] for kind in kinds if len(kinds) > 1}


def _predictions(sheet: Page, top: float, pairs: Sequence[Pair], colours: Mapping[str, str]) -> None:
    axes = sheet.axes(LEFT, top, 2.7, 2.4)
    scale, short = unit([median(pair.measured_s for pair in pairs)])
    ends = [time * scale for pair in pairs for time in (pair.predicted_s, pair.measured_s)]
    low, high = min(ends), max(ends)
    span = [low / 2, high * 2]
    axes.fill_between(span, [end / NEAR for end in span], [end * NEAR for end in span], color=BAND, linewidth=0, zorder=0)
    axes.plot(span, span, color=INK, linewidth=0.9, zorder=1)
    some = pairs[:: max(1, len(pairs) // MOST_DOTS)]
    for kind, color in colours.items():
        mine = [pair for pair in some if pair.kind == kind]
        dots(axes, [pair.predicted_s * scale for pair in mine], [pair.measured_s * scale for pair in mine], color, zorder=2)
    for which in ("x", "y"):
        log_or_linear(axes, which, low, high)
    axes.set(xlabel=f"predicted, {short}", ylabel=f"measured, {short}")
    axes.grid(visible=True)
    rows = []
    groups = list(by_class(pairs).items())[:9]
    left = LEFT + 2.7 + 0.2 + room_for([name for name, _ in groups], 1.1)
    for name, some in groups:
        quarter, middle, most = np.quantile([pair.off for pair in some], (0.25, 0.5, 0.75))
        near = f"{100 * sum(pair.off <= NEAR for pair in some) / len(some):.0f} %"
        title = fitted([name or "jobs"], 1.0, lines=1)[name or "jobs"]
        rows.append(
            MarkRow(
                title,
                [
                    Mark(
                        (float(middle), float(quarter), float(most)),
                        {"color": colours.get(name, INK), "marker": "D"},
                        (f"{middle:.2f}", near),
                        bold=False,
                    )
                ],
            )
        )
    furthest = max(NEAR, *(mark.ends[2] or 1.0 for row in rows for mark in row.marks))
    scaling: Callable[[Axes], None] = lambda axes: log_or_linear(axes, "x", 1.0, 1.1 * furthest, most=4)  # noqa: E731  # short
    heads = [("median", 0.1), (f"within {NEAR:g}", 0)]
    forest(sheet, top, rows, left=left, right=1.2, label="off by a factor", heads=heads, scale=scaling, zero=1.0, band=(1.0, NEAR))
