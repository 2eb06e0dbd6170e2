"""Pictures of queues: waits by load against models, and policies on the same jobs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from analysis.plots import marks
from analysis.plots.labels import joined, room_for
from analysis.plots.marks import Mark, MarkRow, Style, ends_of, known
from analysis.plots.page import Plot, SmallPanel, SmallPanels, line, verdict_entries
from analysis.plots.scene import NothingToDraw, Scene
from analysis.plots.style import COLOURS, INK, picture
from analysis.wording import counted, digits, probability

from .estimates import figure, unit
from .pictures_faults import JOBS, LOOKS, WORDS, ratio_rows, shown, verdicts_of
from .policies import METRICS, PolicyGroup, lacking
from .queue_fits import why_of
from .queue_formulas import Inputs, mmc
from .streams import FIRST_COME, GroupWaits, called, settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from analysis.terms import Run

    from .queues import ModelCheck
    from .records import Stream

# Shape repeats the meaning of colour, for print and for the colour-blind.
LOOKS_OF_ARRIVALS = zip(
    ("poisson", "deterministic", "mmpp", "trace", "fltk"), (INK, *COLOURS), "os^Dv", strict=False
)
ARRIVALS: dict[str, Style] = {
    kind: {"color": color, "marker": marker} for kind, color, marker in LOOKS_OF_ARRIVALS
}
OTHER: Style = {"color": COLOURS[5], "marker": "<"}
DASHED = (0, (5, 1.5))
LEAST, FULLEST = 0.02, 0.97  # loads
FLOOR = 1e-3  # of a service time: shorter waits are drawn there


def waits_of(scene: Scene) -> list[GroupWaits]:
    """Return the streams whose waits the models describe. Raises: NothingToDraw."""

    def described(waits: GroupWaits) -> bool:
        return (
            waits.validation.wait_s is not None
            and waits.validation.fit.policy in FIRST_COME
            and all(job.replicas == 1 for stream in waits.streams for job in stream.jobs)
        )

    needed = (
        "models of waits need an open stream without faults, of jobs of one slot each, served "
        "first come, first served"
    )
    return [waits for _, waits in scene.of_streams("waits", described, needed)]


def chosen(waits: GroupWaits) -> ModelCheck | None:
    """Return the comparison with the model that the data do not reject, or None."""
    check = waits.validation.chosen
    return check if check is not None and check.ratio is not None else None


def off(every: Iterable[GroupWaits]) -> str:
    """Write how far waits are from the models' predictions; "" if unknown."""
    checks = [check for waits in every if (check := chosen(waits))]
    ratios = sorted((check.ratio for check in checks if check.ratio), key=lambda one: one.value)
    if len(ratios) == 1:
        return f"The measured wait is {figure(ratios[0])} times the model's"
    ends = " to ".join(digits(ratio.value, 2) for ratio in (*ratios[:1], *ratios[-1:]))
    return f"Measured waits are {ends} times those of models" if ratios else ""


def runs_of(scene: Scene, streams: Iterable[Stream]) -> list[Run]:
    units = {stream.unit[0] for stream in streams}
    return [run for run in scene.runs if run.run_id in units]


@picture(-22, "Waits by load, measured and predicted", REPORTS=JOBS)
def jobs_waits(scene: Scene) -> Plot:
    """Mean wait by load and arrivals, with the predictions of queueing models."""
    result = waits_of(scene)
    slots = sorted(
        {
            fit.servers
            for waits in result
            if (fit := waits.validation.fit).servers is not None and fit.load is not None
        }
    )
    named = list(zip(settings(result), result, strict=True))
    if not slots or not any(map(chosen, result)):
        raise NothingToDraw(
            "no stream has both waits and the inputs of a model (slots, rate, service times)"
        )
    lead = (
        "Mean wait over mean service time, by load of the slots, with 95 % intervals; "
        "curves: the model that the data do not reject, which used rates and service times but no "
        "waits."
    )
    kinds = dict.fromkeys(waits.arrivals for waits in result)
    legend = [
        line(f"{called(kind)}: measured, and model", **ARRIVALS.get(kind, OTHER), markersize=5)
        for kind in kinds
    ]
    panels = SmallPanels(min(3, len(slots)), above=0.24, tall=2.0, below=0.5, left=0.55, gap=0.05)

    def by_load(panel: SmallPanel, many: int) -> None:
        panel.head(counted(many, "slot"))
        curves(panel.axes, result, many)
        panel.axes.set_ylabel("wait ÷ service time" if panel.first else "")

    sections = [
        panels.section("Wait by load", slots, by_load, xlabel="load: rate × service time ÷ slots")
    ]
    fits = [waits.validation.fit for waits in result]
    notes = [*dict.fromkeys(f"Intervals {why_of(fit.sums)}." for fit in fits)]
    notes += [
        f"{name}: UNSTABLE: {waits.validation.unstable}"
        for name, waits in named
        if waits.validation.unstable
    ]
    notes += ["SIMULATED: none of these jobs ran."] * any(fit.simulated for fit in fits)
    return Plot(
        lead,
        sections,
        legend,
        notes,
        off(result),
        runs_of(scene, (stream for waits in result for stream in waits.streams)),
    )


def curves(axes: Axes, result: Sequence[GroupWaits], slots: int) -> None:
    """Draw waits of streams with this many slots, and a model curve per kind of arrivals."""
    own = [
        waits
        for waits in result
        if waits.validation.fit.servers == slots and waits.validation.fit.load is not None
    ]
    heights: list[float] = []
    loads = np.linspace(LEAST, FULLEST, 200)
    plain = np.array([mmc(Inputs(float(load) * slots, 1.0, slots)).wait_s for load in loads])
    # Streams that M/M/c fits share its curve; others have one for their variation.
    alike: dict[tuple[str, bool], list[GroupWaits]] = {}
    for waits in own:
        alike.setdefault((waits.arrivals, _variation(waits) == 1), []).append(waits)
    for (kind, exact), group in alike.items():
        style = ARRIVALS.get(kind, OTHER)
        times = fmean(map(_variation, group)) * plain
        axes.plot(
            loads,
            times,
            color=style["color"],
            linewidth=1.1,
            linestyle="-" if exact else DASHED,
            zorder=1,
        )
        for waits in group:
            fit, wait = waits.validation.fit, waits.validation.wait_s
            service, load = fit.service_s, fit.load
            if wait is not None and service is not None and service.value > 0 and load is not None:
                ends = ends_of(wait, 1 / service.value)
                marks.interval(
                    axes, load.value, ends, {"markersize": 5.5, "linewidth": 1.5, **style}, "y"
                )
                heights += [max(FLOOR, end) for end in known([ends])]
    axes.set_xlim(0, 1)
    marks.ticks(axes, "x", [0, 0.2, 0.4, 0.6, 0.8, 1])
    marks.log_or_linear(axes, "y", min([*heights, 0.05]), max([*heights, 5.0]), most=7)
    axes.grid(visible=True)


def _variation(waits: GroupWaits) -> float:
    fit, check = waits.validation.fit, chosen(waits)
    if (
        check is None
        or check.model.startswith("M/M/")
        or fit.scv_arrivals is None
        or fit.scv_service is None
    ):
        return 1.0
    return (fit.scv_arrivals.value + fit.scv_service.value) / 2


@picture(-24, "Policies on the same jobs", REPORTS=JOBS)
def jobs_policies(scene: Scene) -> Plot:
    """Mean waits per policy, with uncertainty; and the cost to other figures."""
    result = places_of(scene)
    lead = (
        "Each figure divided by that of the same jobs under "
        f"{joined(place.policies.baseline for _, place in result)} (at 1): left is less. "
        "Marks: geometric mean over streams, with 95 % intervals, paired; p after Holm over all "
        "policies, each figure separately."
    )
    sections, every = [], []
    for run, place in result:
        baseline = place.policies.baseline
        base = next(row for row in place.policies.figures if row.policy == baseline)
        rows: list[MarkRow] = []
        for name, head in METRICS.items():
            value = getattr(base, name)
            scale, short = unit([value]) if name != "slowdown" else (1.0, "")
            small = "" if value is None else f"{baseline}: {digits(value * scale)} {short}".rstrip()
            rows += [
                MarkRow(head, [], small, bold=True, rule=bool(rows), tall=0.4),
                *rows_of(place, name, 0.22),
            ]
        beside = f"{place.streams} streams, the same for every policy"
        left, label = max(1.3, room_for([row.name for row in rows], 1.6)), f"ratio to {baseline}'s"
        settings: Style = {
            "left": left,
            "right": 2.05,
            "heads": [("ratio [95 %]", 0.12), ("p", 0)],
            "beside": beside,
            "run": run,
        }
        sections.append(
            ratio_rows(
                f"{counted(place.slots, 'slot')} of {place.engine}", rows, 1.25, label, **settings
            )
        )
        every += rows
    notes = ["The first tenth of each stream is left out. Slowdown: response over time in service."]
    notes += dict.fromkeys(note for _, place in result for note in place.notes)
    grow = sorted({policy for _, place in result for policy in place.policies.growing})
    if grow:
        notes.append(
            f"UNSTABLE under {', '.join(grow)}: the queue grows for as long as jobs arrive."
        )
    legend = verdict_entries(
        LOOKS, verdicts_of(every), WORDS | {"faster": "less than the baseline's", "slower": "more"}
    )
    return Plot(lead, sections, legend, notes, best(result[0][1]))


def places_of(scene: Scene) -> list[tuple[Run, PolicyGroup]]:
    nothing = "no two policies ran the same jobs in two streams or more"
    result = scene.of_streams("places", bool, nothing)
    rows = [row for _, place in result for name in METRICS for row in rows_of(place, name)]
    if not any(known(mark.ends for mark in row.marks) for row in rows):
        raise NothingToDraw(nothing)
    return result


def rows_of(place: PolicyGroup, name: str, tall: float = marks.ROW) -> list[MarkRow]:
    """Make a row per policy: ratio to the baseline, smallest first, or why there is none."""
    rows = []
    for ratio in place.policies.contrasts:
        if ratio.metric == name:
            why = lacking(ratio)
            texts = (
                why or figure(ratio),
                "" if ratio.p_adjusted is None else probability(ratio.p_adjusted),
            )
            rows.append(
                MarkRow(
                    ratio.arm,
                    [Mark(ends_of(None if why else ratio), LOOKS[shown(ratio)], texts, bold=False)],
                    tall=tall,
                )
            )
    return sorted(
        rows, key=lambda row: math.inf if (value := row.marks[0].ends[0]) is None else value
    )


def best(place: PolicyGroup) -> str:
    least = rows_of(place, "mean_wait_s")[0]
    if verdicts_of([least]) != {"faster"}:
        return f"No policy is shown to let jobs wait less than {place.policies.baseline}"
    return (
        f"Jobs wait least under {least.name}: {digits(least.marks[0].ends[0] or 0.0, 2)} of "
        f"{place.policies.baseline}'s mean wait"
    )
