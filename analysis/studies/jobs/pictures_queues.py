"""Queues of jobs: waits by load and their tails against models, policies on the same jobs, and the predicted times they choose by."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analysis.plots.labels import fitted, joined, room_for
from analysis.plots.marks import (
    DOWN,
    SAME,
    UP,
    Ends,
    Mark,
    MarkRow,
    Style,
    dots,
    ends_of,
    forest,
    forest_section,
    interval,
    known,
    log_or_linear,
    rounded,
    ticks,
)
from analysis.plots.page import Page, Section, SmallPanel, SmallPanels, Spec, dot, fill, line, verdict_entries
from analysis.plots.scene import NothingToDraw, Scene
from analysis.plots.style import AGAIN, BAND, COLOURS, FAINT, INK, SMALL, picture
from analysis.terms import Run
from analysis.wording import digits, probability, unsigned

from .estimates import Figure as Estimate
from .estimates import figure, inverse, plural, unit, value_of
from .policies import METRIC_HEADS, Place
from .queue_formulas import Inputs, Queue, Unstable, mmc
from .queue_times import columns
from .queues import RULE, ModelCheck, predicted
from .streams import FIRST_COME, Gathered, GroupWaits, called, settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .records import Stream

JOBS = frozenset({"job"})
LEFT = 0.62
# Shape says the same as colour, for print and for the colour-blind.
ARRIVALS: dict[str, Style] = {
    "poisson": {"color": INK, "marker": "o"},
    "deterministic": {"color": COLOURS[0], "marker": "s"},
    "mmpp": {"color": COLOURS[1], "marker": "^"},
    "trace": {"color": COLOURS[2], "marker": "D"},
    "fltk": {"color": COLOURS[3], "marker": "v"},
}
OTHER: Style = {"color": COLOURS[5], "marker": "<"}
VERDICT_LOOKS: dict[str, Style] = {
    "agrees": {"color": SAME, "marker": "s"},
    "differs": {"color": DOWN, "marker": "X"},
    "open": {"color": INK, "marker": "o", "markerfacecolor": "white"},
    "not judged": {"color": AGAIN, "marker": "o", "markerfacecolor": "white"},
}
POLICY_LOOKS: dict[str, Style] = {
    "shorter": {"color": UP, "marker": "v"},
    "longer": {"color": DOWN, "marker": "^"},
    "not shown": {"color": INK, "marker": "o", "markerfacecolor": "white"},
}
POLICY_WORDS = {"shorter": "less than the baseline's", "longer": "more", "not shown": "no difference is shown"}
DASHED = (0, (5, 1.5))
LEAST, FULLEST = 0.02, 0.97  # loads
FLOOR = 1e-3  # of a service time: what waits less is drawn there
LOWEST, MOST_PANELS = 1e-3, 8
TAILS = SmallPanels(2, above=0.24, tall=1.45, below=0.5, left=0.58, gap=0.1)
SURE = 0.05
NEAR = 2.0  # a factor to either side
MOST_DOTS = 4000


def waits_of(scene: Scene) -> list[tuple[Gathered, GroupWaits]]:
    """Return all streams whose waits were compared with models. Raises: NothingToDraw, with what could not be used."""
    every = [(stream, waits) for stream in scene.streams for waits in stream.waits if waits.validation.wait_s is not None]
    result = [(gathered, waits) for gathered, waits in every if waits.validation.fit.policy in FIRST_COME]
    if every and not result:
        raise NothingToDraw("no stream was served first come, first served, which these models are of")
    if not result:
        reason = next((line.rstrip(".") for stream in scene.streams for line in stream.refused), "")
        raise NothingToDraw(reason or "no stream of jobs came by itself and without faults, which models of waits are of")
    return result


def chosen(waits: GroupWaits) -> ModelCheck | None:
    """Return the model that the data leave standing, as it compares with the waits; None where none does."""
    check = waits.validation.chosen
    return check if check is not None and check.ratio is not None else None


def _only_run(gathered: Iterable[Gathered]) -> Run | None:
    runs = [of.run for of in gathered]
    return runs[0] if all(run is runs[0] for run in runs) else None


@picture(
    -7,
    "Waits by load, measured and predicted",
    "Whether queueing models foretell how long jobs wait, at which loads and arrivals, and how far they are off.",
    REPORTS=JOBS,
)
def jobs_waits(scene: Scene) -> Spec:
    """Draw a panel of curves a number of slots, and below them a row a setting."""
    result = waits_of(scene)
    slots = sorted({fit.servers for _, waits in result if (fit := waits.validation.fit).servers is not None and fit.load is not None})
    named = list(zip(settings(waits for _, waits in result), (waits for _, waits in result), strict=True))
    rows = [(name, waits, check) for name, waits in named if (check := chosen(waits)) is not None]
    if not slots or not rows:
        raise NothingToDraw("of no stream both waits and what a model takes are known (slots, rate, service times)")
    lead = (
        "Above: mean wait over mean service time, by how much of the slots' time is asked for. Points: measured, with 95 % intervals; "
        "curves: the model, which was shown rates and service times but no wait. Below: measured ÷ predicted for the model that the data "
        "leave standing."
    )
    kinds = dict.fromkeys(waits.arrivals for _, waits in result)
    legend = [line(f"{called(kind)}: measured, and model", **ARRIVALS.get(kind, OTHER), markersize=5) for kind in kinds]
    legend += verdict_entries(VERDICT_LOOKS, {check.verdict for _, _, check in rows})
    legend.append(fill(f"±{joined(unsigned(waits.validation.margin) for _, waits, _ in rows)} around 1"))
    panels = SmallPanels(min(3, len(slots)), above=0.24, tall=2.0, below=0.5, left=0.55, gap=0.05)

    def by_load(panel: SmallPanel, many: int) -> None:
        panel.head(plural(many, "slot"))
        curves(panel.axes, [waits for _, waits in result], many)
        panel.axes.set_ylabel("wait ÷ service time" if panel.first else "")

    run = _only_run(gathered for gathered, _ in result)
    sections = [panels.section("Wait by load", slots, by_load, run, xlabel="load: rate × service time ÷ slots"), _off(rows, run)]
    notes = [f"Intervals are {reason}." for reason in dict.fromkeys(waits.validation.fit.units.why for _, waits in result)]
    notes.append(f"{RULE[0].upper()}{RULE[1:]}")
    notes += [f"{name}: UNSTABLE: {waits.validation.unstable}" for name, waits in named if waits.validation.unstable]
    notes += ["SIMULATED: no job of these ever ran."] if any(waits.validation.fit.simulated for _, waits in result) else []
    return Spec(lead, sections, legend, notes)


def curves(axes: Axes, result: Sequence[GroupWaits], slots: int) -> None:
    """Draw the waits of streams with so many slots, and the model's curve of each kind of arrivals, in service times."""
    own = [waits for waits in result if waits.validation.fit.servers == slots and waits.validation.fit.load is not None]
    heights: list[float] = []
    loads = np.linspace(LEAST, FULLEST, 200)
    plain = np.array([mmc(Inputs(float(load) * slots, 1.0, slots)).wait_s for load in loads])
    # What M/M/c is chosen for has its curve; what it is refused for has one of its own variation.
    alike: dict[tuple[str, bool], list[GroupWaits]] = {}
    for waits in own:
        alike.setdefault((waits.arrivals, _variation(waits) == 1), []).append(waits)
    for (kind, exact), group in alike.items():
        style = ARRIVALS.get(kind, OTHER)
        times = fmean(map(_variation, group)) * plain
        axes.plot(loads, times, color=style["color"], linewidth=1.1, linestyle="-" if exact else DASHED, zorder=1)
        for waits in group:
            ends, load = _in_services(waits), waits.validation.fit.load
            if ends is not None and load is not None:
                interval(axes, load.value, ends, {"markersize": 5.5, "linewidth": 1.5, **style}, "y")
                heights += [max(FLOOR, end) for end in known([ends])]
    axes.set_xlim(0, 1)
    ticks(axes, "x", [0, 0.2, 0.4, 0.6, 0.8, 1])
    log_or_linear(axes, "y", min([*heights, 0.05]), max([*heights, 5.0]), most=7)
    axes.grid(visible=True)


def _in_services(waits: GroupWaits) -> Ends | None:
    """Return the mean wait in mean service times, with its interval."""
    wait, service = waits.validation.wait_s, waits.validation.fit.service_s
    return None if wait is None or service is None or service.value <= 0 else ends_of(wait, 1 / service.value)


def _variation(waits: GroupWaits) -> float:
    """Return (ca² + cs²)/2 as the model that was chosen takes it: 1 under M/M/c, which asks for none of it."""
    fit, check = waits.validation.fit, chosen(waits)
    if check is None or check.model.startswith("M/M/") or fit.scv_arrivals is None or fit.scv_service is None:
        return 1.0
    return (fit.scv_arrivals.value + fit.scv_service.value) / 2


def _off(rows: Sequence[tuple[str, GroupWaits, ModelCheck]], run: Run | None) -> Section:
    left = room_for([name for name, _, _ in rows], 2.6)
    scale, short = unit(value_of(waits.validation.wait_s) for _, waits, _ in rows)
    drawn = []
    for name, waits, check in rows:
        (model,) = fitted([check.model.replace("Allen-Cunneen", "A-C")], 0.8, SMALL, lines=1).values()
        texts = figure(waits.validation.wait_s, scale), model, check.verdict
        drawn.append(MarkRow(name, [Mark(ends_of(check.ratio), VERDICT_LOOKS[check.verdict], texts)]))
    margin = max(waits.validation.margin for _, waits, _ in rows)
    reach = min(2.0, 1.08 * max([2 * margin, *(abs(end - 1) for end in known(ends_of(check.ratio) for _, _, check in rows))]))

    def from_one(axes: Axes) -> None:
        axes.set_xlim(max(0.0, 1 - reach), 1 + reach)
        rounded(axes, x=6)

    heads = [(f"wait, {short} [95 %]", 0.1), ("model", 1.6), ("verdict", 0)]
    title, beside, label, band = (
        "How far off the model is",
        "measured ÷ predicted mean wait",
        "measured ÷ predicted",
        (1 - margin, 1 + margin),
    )
    return forest_section(
        title, drawn, beside, run=run, left=left, right=3.1, label=label, heads=heads, scale=from_one, zero=1.0, band=band
    )


@picture(
    -6,
    "How long jobs wait, and how many",
    "Whether the tail of the waits is as the model has it, or rare long waits are missed by a mean that fits.",
    REPORTS=JOBS,
)
def jobs_tail(scene: Scene) -> Spec:
    """Draw a panel a setting, two beside each other; where much waits there is most to see."""
    result = waits_of(scene)
    panels = [(name, *both) for name, both in zip(settings(waits for _, waits in result), result, strict=True)]
    by_load = sorted(panels, key=lambda panel: -(value_of(panel[2].validation.fit.load) or 0.0))
    drawn = [panel for panel in panels if panel in by_load[:MOST_PANELS]]
    lead = (
        "Part of the jobs that waits longer than a time, on a scale of ratios. Where lines begin is the part that waits at all. A straight "
        "line is an exponential tail, which M/M/c has exactly and other models by approximation."
    )
    legend = [
        line("measured, all runs", INK, 1.7),
        line("each run", FAINT, 0.8),
        line("the model that the data leave standing", COLOURS[1], 1.6, linestyle=DASHED),
    ]
    hidden = [panel[0] for panel in panels if panel not in drawn]
    notes = [f"Not drawn, for they wait least: {'; '.join(hidden)}."] if hidden else []
    notes.append("Jobs of one run hang together: a tail of few runs is ragged by chance.")
    run = _only_run(gathered for _, gathered, _ in drawn)
    section = TAILS._replace(abreast=min(2, len(drawn))).section(plural(len(drawn), "setting"), drawn, _survival, run)
    return Spec(lead, [section], legend, notes)


def _survival(panel: SmallPanel, setting: tuple[str, Gathered, GroupWaits]) -> None:
    """Draw the part of jobs that waits longer than a time, of a setting's runs and by its model."""
    (name, _, waits), axes = setting, panel.axes
    panel.head(name, back=0.45)
    axes.set_ylabel("part waiting longer" if panel.first else "")
    every = [columns(stream).wait for stream in waits.streams]
    runs = [np.sort(of_run[~np.isnan(of_run)]) for of_run in every]
    together = np.sort(np.concatenate(runs))
    longest = float(together[-1]) if len(together) else 0.0
    scale, short = unit([longest])
    for run in runs:
        axes.step(*steps_of(run, scale), where="post", color=FAINT, linewidth=0.8, zorder=1)
    axes.step(*steps_of(together, scale), where="post", color=INK, linewidth=1.7, zorder=3)
    queue = _model(waits)
    if queue is not None and queue.p_wait > 0 and queue.wait_s > 0:
        # The last few jobs of all runs say nothing of a tail: a model's line is drawn as far as the measured one.
        times = np.linspace(0, 1.05 * longest, 100)
        style: Style = {"color": COLOURS[1], "linestyle": DASHED, "linewidth": 1.6, "zorder": 4}
        axes.plot(times * scale, queue.p_wait * np.exp(-times * queue.p_wait / queue.wait_s), **style)
        axes.text(0.98, 0.93, queue.model, transform=axes.transAxes, ha="right", va="top", fontsize=SMALL, color=COLOURS[1])
    lowest = max(LOWEST, 0.7 / max(1, len(together)))
    axes.set(yscale="log", ylim=(lowest, 1.15), xlim=(0, 1.05 * longest * scale or 1.0), xlabel=f"wait, {short}")
    ticks(axes, "y", [10.0**power for power in range(math.ceil(math.log10(lowest)), 1)], lambda value: f"{100 * value:g} %")
    rounded(axes, x=5)
    axes.grid(visible=True)


def _model(waits: GroupWaits) -> Queue | None:
    """Return the model that the data leave standing, for the streams' own rate and service times; None where there is none."""
    fit, check = waits.validation.fit, chosen(waits)
    if fit.servers is None or check is None:
        return None
    try:
        return next((one.queue for one in predicted(fit, fit.servers) if one.queue.model == check.model), None)
    except Unstable:
        return None


def steps_of(waits: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the part of the waits that are longer than each of them, from 0 on; shapes (waits + 1,)."""
    count = len(waits)
    times = np.concatenate([[0.0], np.maximum(waits, 0.0)])
    longer = np.concatenate([[float((waits > 0).mean()) if count else 0.0], 1 - np.arange(1, count + 1) / max(1, count)])
    return times * scale, np.minimum(longer, longer[0])


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
def jobs_policies(scene: Scene) -> Spec:
    """Draw a section an engine and number of slots; in it a group of rows a figure."""
    result = places_of(scene)
    every = [row for _, place in result for name in METRIC_HEADS for row in rows_of(place, name)]
    lead = (
        f"Each figure of a stream under a policy, over that of the same stream under {joined(place.baseline for _, place in result)} (the "
        "line at 1): left of it is less. Marks: geometric mean over streams; lines: 95 % intervals, paired; p after Holm over all "
        "policies, each figure by itself."
    )
    legend = verdict_entries(POLICY_LOOKS, {row.verdict for row in every if row.value is not None}, POLICY_WORDS)
    left = max(1.3, room_for([row.policy for row in every], 1.6))
    sections = []
    for run, place in result:
        title, beside = f"{plural(place.slots, 'slot')} of {place.engine}", f"{place.streams} streams, the same for every policy"
        sections.append(
            forest_section(
                title,
                _policy_rows(place),
                beside,
                run=run,
                left=left,
                right=2.05,
                label=f"ratio to {place.baseline}'s",
                heads=[("ratio [95 %]", 0.12), ("p", 0)],
                scale=lambda axes: log_or_linear(axes, "x", *reach_of(every)),
                zero=1.0,
            )
        )
    notes = ["The first tenth of each stream is left out. Slowdown: response over time in service."]
    lost = sum(place.lost for _, place in result)
    notes += [f"{lost} jobs were not done and have no part in these figures."] if lost else []
    grow = sorted({arm.policy for _, place in result for arm in place.arms if arm.grows})
    notes += [f"UNSTABLE under {', '.join(grow)}: the queue grows for as long as jobs come."] if grow else []
    return Spec(lead, sections, legend, notes)


def places_of(scene: Scene) -> list[tuple[Run, Place]]:
    """Return what was compared. Raises: NothingToDraw."""
    result = [(stream.run, place) for stream in scene.streams for place in stream.places]
    if not any(row.value is not None for _, place in result for name in METRIC_HEADS for row in rows_of(place, name)):
        raise NothingToDraw("no two policies met the same jobs in two streams or more")
    return result


def rows_of(place: Place, name: str) -> list[Ratio]:
    """Return a figure of every policy against the baseline's, the least first."""
    contrasts = {arm.policy: arm.against[name] for arm in place.arms if arm.policy != place.baseline}
    rows = [
        Ratio(policy, why=against.reason) if against.effect is None else Ratio(policy, *inverse(against.effect), p=against.p)
        for policy, against in contrasts.items()
    ]
    return sorted(rows, key=lambda row: row.value if row.value is not None else math.inf)


def reach_of(rows: Sequence[Ratio]) -> tuple[float, float]:
    """Return the ends of an axis of ratios: all intervals and 1 are in view."""
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
        scale, short = unit([value]) if name != "slowdown" else (1.0, "")
        small = "" if value is None else f"{place.baseline}: {digits(value * scale)} {short}".rstrip()
        rows.append(MarkRow(head, [], small, bold=True, rule=bool(rows), tall=0.4))
        ratios = rows_of(place, name)
        rows += [MarkRow(row.policy, [row.mark(words(row), "" if row.p is None else probability(row.p))], tall=0.22) for row in ratios]
    return rows


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
def jobs_predicted(scene: Scene) -> Spec:
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
    return Spec(lead, sections, legend, notes)


def pairs_of(streams: Iterable[Stream]) -> list[Pair]:
    """Return the jobs that were done, at their first attempt, and had a prediction."""
    return [
        Pair(job.class_, job.predicted_s, job.end_s - job.taken_s)
        for stream in streams
        for job in stream.jobs
        if job.done_at_once and job.predicted_s and job.taken_s is not None and job.end_s is not None and job.end_s > job.taken_s
    ]


def by_class(pairs: Sequence[Pair]) -> dict[str, list[Pair]]:
    """Return all pairs, then those of each class, where there are several."""
    kinds = sorted({pair.kind for pair in pairs})
    return {"all": list(pairs)} | {kind: [pair for pair in pairs if pair.kind == kind] for kind in kinds if len(kinds) > 1}


def _predictions(sheet: Page, top: float, pairs: Sequence[Pair], colours: Mapping[str, str]) -> None:
    axes = sheet.axes(LEFT, top, 2.7, 2.4)
    scale, short = unit([median(pair.measured_s for pair in pairs)])
    ends = [time * scale for pair in pairs for time in (pair.predicted_s, pair.measured_s)]
    low, high = min(ends), max(ends)
    span = np.array([low / 2, high * 2])
    axes.fill_between(span, span / NEAR, span * NEAR, color=BAND, linewidth=0, zorder=0)
    axes.plot(span, span, color=INK, linewidth=0.9, zorder=1)
    some = pairs[:: max(1, len(pairs) // MOST_DOTS)]
    for kind, color in colours.items():
        own = [pair for pair in some if pair.kind == kind]
        dots(axes, [pair.predicted_s * scale for pair in own], [pair.measured_s * scale for pair in own], color, zorder=2)
    log_or_linear(axes, "x", low, high)
    log_or_linear(axes, "y", low, high)
    axes.set(xlabel=f"predicted, {short}", ylabel=f"measured, {short}")
    axes.grid(visible=True)
    rows, furthest = [], NEAR
    groups = list(by_class(pairs).items())[:9]
    for name, some in groups:
        quarter, middle, most = np.quantile([pair.off for pair in some], (0.25, 0.5, 0.75)).tolist()
        near = f"{100 * sum(pair.off <= NEAR for pair in some) / len(some):.0f} %"
        style: Style = {"color": colours.get(name, INK), "marker": "D"}
        (title,) = fitted([name or "jobs"], 1.0, lines=1).values()
        rows.append(MarkRow(title, [Mark((middle, quarter, most), style, (f"{middle:.2f}", near), bold=False)]))
        furthest = max(furthest, most)
    left = LEFT + 2.7 + 0.2 + room_for([name for name, _ in groups], 1.1)
    heads = [("median", 0.1), (f"within {NEAR:g}", 0)]

    def scaled(axes: Axes) -> None:
        log_or_linear(axes, "x", 1.0, 1.1 * furthest, most=4)

    forest(sheet, top, rows, left=left, right=1.2, label="off by a factor", heads=heads, scale=scaled, zero=1.0, band=(1.0, NEAR))
