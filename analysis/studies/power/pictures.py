"""Pictures of inference under a power cap: throughput, whether the cap holds, controllers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from analysis.plots.labels import joined, minus, room_for
from analysis.plots.marks import (
    DOWN,
    FOOT,
    SAME,
    VERDICTS,
    Mark,
    MarkRow,
    dots,
    ends_of,
    forest,
    margin_band,
)
from analysis.plots.page import (
    Chart,
    Page,
    Plot,
    SmallPanels,
    body_width,
    dot,
    fill,
    line,
    rounded,
    verdict_entries,
)
from analysis.plots.scene import Scene, some
from analysis.plots.style import (
    AGAIN,
    BAND,
    FAINT,
    INK,
    QUIET,
    SMALL,
    WRONG,
    ArmStyle,
    look,
    picture,
)
from analysis.terms import Refused, Run
from analysis.wording import unsigned

from .figures import POWER, ROWS, RULE, is_capped
from .report import drawn_from, source, unit_of
from .study import LIMIT, PREDICTED, errors_of, prediction_words, sides

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from analysis.plots.marks import Style

    from .study import Group, PowerArm, PowerSide


CAPPED = frozenset({ROWS})
# Shape repeats the meaning of colour, for print and for the colour-blind.
HOLDS: dict[str, Style] = {
    "yes": {"marker": "s", "color": SAME, "markerfacecolor": SAME},
    "no": {"marker": "^", "color": DOWN, "markerfacecolor": DOWN},
    "not shown": {"marker": "o", "color": INK, "markerfacecolor": "white"},
}
HELD = {"yes": "holds the cap", "no": "does not hold it", "not shown": "neither is shown"}
RATES = {
    "improved": "more images/s",
    "regressed": "fewer",
    "equivalent": "alike",
    "inconclusive": "not shown",
}
WIDEST = 100.0  # percent to either side: longer intervals are cut, with an arrow
LINE, GAP = 0.23, 0.55
NO_POWER = "no readings: there is no power sensor and no measure of activity"


class PowerPart(NamedTuple):
    """One back-end of one run."""

    run: Run
    side: PowerSide

    def title(self, title: str, parts: Iterable[PowerPart]) -> str:
        several = [part.side.backend for part in parts]
        backend = f" · {self.side.backend}" if len(set(several)) > 1 else ""
        run = f" · run {self.run.run_id}" if several.count(self.side.backend) > 1 else ""
        return f"{title}{backend}{run}"

    @property
    def drawn(self) -> str:
        return f"{drawn_from(self.side)}, {unit_of(self.side)}"


def parts_of(scene: Scene) -> list[PowerPart]:
    parts: list[PowerPart] = []
    for run in filter(is_capped, scene.runs):
        try:
            parts += [PowerPart(run, side) for side in sides(run, [])]
        except Refused:
            continue
    arms = (arm for part in parts for group in part.side.groups for arm in group.arms)
    some((arm for arm in arms if arm.means), "no cell under a cap has steady iterations")
    return parts


def _looks(parts: Sequence[PowerPart]) -> dict[str, ArmStyle]:
    names = sorted({arm.name for part in parts for group in part.side.groups for arm in group.arms})
    baselines = {part.side.baseline for part in parts}
    looks = {name: ArmStyle(AGAIN, "s", "-") for name in names if name in baselines}
    return looks | {
        name: look(place) for place, name in enumerate(name for name in names if name not in looks)
    }


def _sources(parts: Iterable[PowerPart]) -> list[str]:
    return list(dict.fromkeys(source(part.side) for part in parts))


@picture(5, "Throughput under the cap, and whether the cap is held", REPORTS=CAPPED)
def power_forest(scene: Scene) -> Plot:
    """Throughput of each algorithm, with its uncertainty, and its time above the cap."""
    parts = parts_of(scene)
    panels = [(part, *panel) for part in parts for panel in _panels(part, parts)]
    rows = [row for _, _, ones in panels for row in ones]
    lead = (
        "Left: images/s in steady iterations, % more than "
        f"{joined(part.side.baseline for part in parts)} (the line at 0), paired by "
        "block. Right: part of the same time in which the reading was above 1.02 times the cap. "
        "More images/s count only if the cap is "
        "held. Lines: 95 % intervals over blocks."
    )
    legend = verdict_entries(
        VERDICTS, {row.verdict for row in rows if row.rate.value is not None}, RATES
    )
    legend += verdict_entries(HOLDS, {row.holds for row in rows}, HELD)
    margins = joined(unsigned(part.side.margin) for part in parts)
    legend.append(fill(f"left ±{margins}, right up to {unsigned(LIMIT)}: alike, held"))
    left = room_for([f"{row.name} (0)" for row in rows], 1.9)
    ends = [
        100 * abs(end) for row in rows for end in (row.rate.low, row.rate.high) if end is not None
    ]
    reach = min(WIDEST, 1.1 * max([5.0, *ends]))
    most = 105 * max(
        [3 * LIMIT, *(row.above.high or row.above.value for row in rows if row.above is not None)]
    )
    sections = []
    for part, title, ones in panels:
        draw = partial(
            _throughput,
            left=left,
            rows=ones,
            baseline=part.side.baseline,
            margin=part.side.margin,
            reach=reach,
            most=most,
        )
        sections.append(Chart(title, LINE * len(ones) + FOOT, draw, run=part.run))
    none = [
        (arm, group)
        for part in parts
        for group in part.side.groups
        for arm in group.arms
        if not arm.n
    ]
    lost = [
        f"No figures of {arm.name} on {group.label}: {next(iter(arm.lost), 'no cell')}"
        for arm, group in none
    ]
    return Plot(lead, sections, legend, _sources(parts) + lost)


def _panels(part: PowerPart, parts: Sequence[PowerPart]) -> list[tuple[str, Sequence[PowerArm]]]:
    panels: dict[str, Sequence[PowerArm]] = {
        f"all {len(part.side.groups)} tasks together": part.side.together
    }
    panels |= {group.title: [arm for arm in group.arms if arm.n] for group in part.side.groups}
    return [(part.title(title, parts), arms) for title, arms in panels.items() if arms]


def _throughput(
    sheet: Page,
    top: float,
    left: float,
    rows: Sequence[PowerArm],
    baseline: str,
    margin: float,
    reach: float,
    most: float,
) -> None:
    wide = (body_width() - left - GAP - 0.1) / 2
    names = [f"{row.name} (0)" if row.name == baseline else row.name for row in rows]
    rates = [
        MarkRow(name, [Mark(ends_of(row.rate, 100), VERDICTS[row.verdict])], tall=LINE)
        for name, row in zip(names, rows, strict=True)
    ]
    label = "images/s, % more than the baseline"
    forest(
        sheet,
        top,
        rates,
        left=left,
        right=body_width() - left - wide,
        label=label,
        reach=reach,
        band=margin_band(margin),
    )
    known = [
        Mark(ends_of(row.above, 100), HOLDS[row.holds])
        if row.above and row.holds in HOLDS
        else None
        for row in rows
    ]
    above = [MarkRow("", [mark] if mark else [], tall=LINE) for mark in known]
    label, band = "steady time above 1.02 × cap, %", (0, 100 * LIMIT)
    axes = forest(
        sheet,
        top,
        above,
        left=left + wide + GAP,
        right=0.1,
        label=label,
        reach=most,
        zero=None,
        band=band,
    )
    axes.set_xlim(-0.02 * most, most)
    for at, row in enumerate(rows):
        if row.above is None:
            reason = "no sensor" if row.holds == "no sensor" else "readings are missing"
            axes.text(
                0.02 * most, LINE * (at + 0.5), reason, va="center", fontsize=SMALL, color=QUIET
            )


NAME, DRAW, KNOB, SPACE, MOST_TASKS = 0.22, 1.05, 0.45, 0.24, 3
TRACES = SmallPanels(5, above=NAME, tall=DRAW, below=SPACE + KNOB + 0.5, left=0.46, gap=0.05)
# The knob that sets the pace: the first of these that was set.
PACES = {
    "sm_mhz": "SM clock, MHz",
    "throttle": "throttle, part of time",
    "power_limit_w": "power limit, W",
    "batches": "images in batches",
}


@picture(6, "Controllers at work", REPORTS=CAPPED)
def power_trace(scene: Scene) -> Plot:
    """Each algorithm's approach to a cap: whether it stays below, and its settings."""
    parts = parts_of(scene)
    every = some(
        ((part, group) for part in parts for group in part.side.groups if _read(part, group)),
        NO_POWER,
    )
    # Cap changes are the most instructive.
    kept = sorted(sorted(range(len(every)), key=lambda at: -len(every[at][1].caps))[:MOST_TASKS])
    lead = (
        "Above: means of iterations, strong in the first block, faint in the others, and as dots "
        "the largest reading of each iteration in "
        "the first block. Below: the knob that set the pace, as measured. Iterations on shaded "
        "ground are steady: figures are from these."
    )
    legend = [
        line("mean of an iteration", INK, 1.5),
        dot("largest reading", marker=".", size=5),
        line("other blocks, and copies", FAINT),
        line("cap", WRONG, linestyle="--"),
        line("requested but not in force", QUIET, linestyle=":"),
        fill("steady"),
    ]
    notes = [*_sources(parts), f"{RULE[0].upper()}{RULE[1:]}."]
    hidden = len(every) - len(kept)
    notes += (
        [
            (
                f"{hidden} more tasks are not drawn: those with most cap changes are preferred, "
                "then the first."
            )
        ]
        if hidden
        else []
    )
    looks, sections = _looks(parts), []
    for part, group in (every[at] for at in kept):
        of = _read(part, group)
        traces = TRACES._replace(abreast=min(TRACES.abreast, max(2, len(of))))
        draw = partial(_task, of=of, traces=traces, looks=looks)
        sections.append(
            Chart(
                part.title(group.title, parts),
                traces.height(len(of)),
                draw,
                part.drawn,
                run=part.run,
            )
        )
    return Plot(lead, sections, legend, notes)


def _read(part: PowerPart, group: Group) -> dict[str, list[pd.DataFrame]]:
    rows = part.side.rows[part.side.rows["task"] == group.name]
    every = {arm.name: rows[rows["arm"] == arm.name] for arm in group.arms}
    return {
        name: [cell for _, cell in own.groupby(["again", "block"])]
        for name, own in every.items()
        if own[POWER].notna().any()
    }


def _task(
    sheet: Page,
    top: float,
    of: Mapping[str, list[pd.DataFrame]],
    traces: SmallPanels,
    looks: Mapping[str, ArmStyle],
) -> None:
    caps, means, most = (
        [value for cells in of.values() for cell in cells for value in cell[name].dropna()]
        for name in ("cap", POWER, "power_max")
    )
    ends = 0.94 * min(*caps, *means), 1.06 * max(*caps, *means, *most)
    across = (-0.5, max(cell["number"].max() for cells in of.values() for cell in cells) + 0.5)
    for name, panel in traces.draw(sheet, top, of, xlim=across, ylim=ends):
        color, first = looks[name].color, of[name][0]
        panel.head(name, back=0.3, color=color)
        below = panel.top + NAME + DRAW + SPACE
        knob = sheet.axes(panel.left, below, panel.wide, KNOB, xlim=across, xlabel="iteration")
        steady = first["number"][first["steady"]]
        for axes in (panel.axes, knob):
            for _, counted in steady.groupby((steady.diff() > 1).cumsum()):
                axes.axvspan(
                    counted.min() - 0.5, counted.max() + 0.5, color=BAND, linewidth=0, zorder=0
                )
        for at, cell in enumerate(of[name]):
            faint: Style = {"color": FAINT, "linewidth": 0.6, "zorder": 1}
            panel.axes.plot(
                cell["number"],
                cell[POWER],
                **(faint if at else {"color": color, "linewidth": 1.5, "zorder": 3}),
            )
        panel.axes.plot(
            first["number"], first["power_max"], ".", color=color, markersize=3.5, zorder=3
        )
        panel.axes.step(
            first["number"],
            first["cap"],
            where="mid",
            color=WRONG,
            linestyle="--",
            linewidth=1.1,
            zorder=2,
        )
        rounded(panel.axes, y=4)
        panel.axes.tick_params(labelbottom=False, labelleft=panel.first)
        _knob(knob, first, color)


def _knob(axes: Axes, rows: pd.DataFrame, color: str) -> None:
    name = next((name for name in PACES if rows[f"actual.{name}"].notna().any()), "")
    axes.text(
        0.0,
        1.02,
        PACES.get(name, ""),
        transform=axes.transAxes,
        fontsize=SMALL,
        color=QUIET,
        va="bottom",
        ha="left",
    )
    rounded(axes, y=2)
    if not name:
        return
    asked, actual = rows[f"asked.{name}"], rows[f"actual.{name}"]
    if (asked.notna() & (asked != actual)).any():
        axes.step(rows["number"], asked, where="mid", color=QUIET, linestyle=":", linewidth=1.0)
    axes.step(rows["number"], actual, where="mid", color=color, linewidth=1.3)
    axes.margins(y=0.25)


LEAST = 2.0  # percent to either side, always in view
OFFS = SmallPanels(2, above=0.1, tall=2.0, below=0.5, left=0.6, gap=0.1)
# Algorithm → (measured, percent by which more was predicted).
Errors = dict[str, list[tuple[float, float]]]


@picture(8, "Predicted and measured", REPORTS=CAPPED)
def power_predicted(scene: Scene) -> Plot:
    """Prediction errors of the algorithms' model: how far, which way, and where."""
    parts = parts_of(scene)
    every = [(part, [_errors(part, *columns) for columns in PREDICTED.values()]) for part in parts]
    reason = "no algorithm made predictions, or no predicted iteration ran as requested"
    kept = some(((part, errors) for part, errors in every if any(errors)), reason)
    looks = _looks(parts)
    lead = (
        "Each dot is a steady iteration that ran as requested: its measured value, and how "
        "much more (above 0) or less was "
        "predicted. Power is predicted as the largest reading of an iteration. In the text: the "
        "median of all errors, and of their sizes."
    )
    names = sorted({name for _, errors in kept for error in errors for name in error})
    legend = [dot(name, looks[name].color, looks[name].marker, 4.5) for name in names]
    sections = []
    for part, errors in kept:
        title = f"back-end {part.side.backend}"
        rows = part.side.rows
        words = {name: prediction_words(rows[rows["arm"] == name]) for name in names}
        lines = [minus(f"{name}: {text}") for name, text in words.items() if text]
        draw = partial(_offs, part=part, errors=errors, looks=looks)
        sections.append(Chart(title, OFFS.height(2), draw, lines=lines, run=part.run))
    return Plot(lead, sections, legend, _sources(part for part, _ in kept))


def _errors(part: PowerPart, predicted: str, measured: str) -> Errors:
    rows = part.side.rows
    off = 100 * errors_of(rows, predicted, measured)
    known = rows.loc[off.index].assign(off=off)
    return {
        str(name): list(zip(own[measured], own["off"], strict=True))
        for name, own in known.groupby("arm", sort=False)
    }


def _offs(
    sheet: Page,
    top: float,
    part: PowerPart,
    errors: Sequence[Errors],
    looks: Mapping[str, ArmStyle],
) -> None:
    labels = ("images/s, measured", f"largest reading, {unit_of(part.side)}, measured")
    for result, label, axes in zip(errors, labels, OFFS.axes(sheet, top), strict=True):
        far = 1.1 * max([LEAST, *(abs(error) for points in result.values() for _, error in points)])
        axes.set(xlabel=label, ylabel="predicted is more, %")
        axes.axhline(0, color=INK, linewidth=0.9, zorder=1)
        axes.grid(visible=True)
        for name, points in result.items():
            xs, ys = zip(*points, strict=True)
            dots(
                axes, xs, ys, looks[name].color, marker=looks[name].marker, markersize=3, alpha=0.5
            )
        rounded(axes, x=5)
        axes.margins(0.08)
        axes.set_ylim(-far, far)
