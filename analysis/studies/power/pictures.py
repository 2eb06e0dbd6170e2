"""Pictures of inference under a power cap: throughput, whether the cap holds, controllers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from analysis.plots.labels import joined, room_for
from analysis.plots.marks import (
    DOWN,
    FOOT,
    SAME,
    VERDICTS,
    Mark,
    MarkRow,
    ends_of,
    forest,
    known,
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
from .study import LIMIT, sides

if TYPE_CHECKING:
    import pandas as pd

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
    rows = [row for _, _, arms in panels for row in arms]
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
    ends = known(ends_of(row.rate, 100) for row in rows)
    reach = min(WIDEST, 1.1 * max(map(abs, [5.0, *ends])))
    shares = [row.above.high or row.above.value for row in rows if row.above is not None]
    most = 105 * max([3 * LIMIT, *shares])
    sections = []
    for part, title, arms in panels:
        draw = partial(_throughput, left=left, rows=arms, side=part.side, reach=reach, most=most)
        sections.append(Chart(title, LINE * len(arms) + FOOT, draw, run=part.run))
    lost = [
        f"No figures of {arm.name} on {group.label}: {next(iter(arm.lost), 'no cell')}"
        for part in parts
        for group in part.side.groups
        for arm in group.arms
        if not arm.n
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
    side: PowerSide,
    reach: float,
    most: float,
) -> None:
    wide = (body_width() - left - GAP - 0.1) / 2
    rates, above = [], []
    for row in rows:
        name = f"{row.name} (0)" if row.name == side.baseline else row.name
        mark = Mark(ends_of(row.rate, 100), VERDICTS[row.verdict])
        rates.append(MarkRow(name, [mark], tall=LINE))
        share = [Mark(ends_of(row.above, 100), HOLDS[row.holds])] if row.above else []
        above.append(MarkRow("", share, tall=LINE))
    first: Style = {"left": left, "right": body_width() - left - wide, "reach": reach}
    first |= {"label": "images/s, % more than the baseline", "band": margin_band(side.margin)}
    forest(sheet, top, rates, **first)
    second: Style = {"left": left + wide + GAP, "right": 0.1, "reach": most, "zero": None}
    second |= {"label": "steady time above 1.02 × cap, %", "band": (0, 100 * LIMIT)}
    axes = forest(sheet, top, above, **second)
    axes.set_xlim(-0.02 * most, most)
    small: Style = {"va": "center", "fontsize": SMALL, "color": QUIET}
    for at, row in enumerate(rows):
        if row.above is None:
            reason = "no sensor" if row.holds == "no sensor" else "readings are missing"
            axes.text(0.02 * most, LINE * (at + 0.5), reason, **small)


MOST_TASKS = 3
TRACES = SmallPanels(5, above=0.22, tall=1.2, below=0.5, left=0.46, gap=0.05)


@picture(6, "Controllers at work", REPORTS=CAPPED)
def power_trace(scene: Scene) -> Plot:
    """Each algorithm's approach to a cap, and whether it stays below."""
    parts = parts_of(scene)
    every = some(
        ((part, group) for part in parts for group in part.side.groups if _read(part, group)),
        NO_POWER,
    )
    # Cap changes are the most instructive.
    kept = sorted(sorted(range(len(every)), key=lambda at: -len(every[at][1].caps))[:MOST_TASKS])
    lead = (
        "Lines: means of iterations, strong in the first block, faint in the others. Dots: the "
        "largest reading of each iteration in the first block. Iterations on shaded ground are "
        "steady: figures are from these."
    )
    legend = [
        line("mean of an iteration", INK, 1.5),
        dot("largest reading", marker=".", size=5),
        line("other blocks, and copies", FAINT),
        line("cap", WRONG, linestyle="--"),
        fill("steady"),
    ]
    notes = [*_sources(parts), f"{RULE[0].upper()}{RULE[1:]}."]
    hidden = len(every) - len(kept)
    if hidden:
        notes.append(f"{hidden} more tasks, with fewer changes of the cap, are not drawn.")
    looks, sections = _looks(parts), []
    for part, group in (every[at] for at in kept):
        of = _read(part, group)
        traces = TRACES._replace(abreast=min(TRACES.abreast, max(2, len(of))))
        draw = partial(_task, of=of, traces=traces, looks=looks)
        title = part.title(group.title, parts)
        sections.append(Chart(title, traces.height(len(of)), draw, part.drawn, run=part.run))
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
    last = max(cell["number"].max() for cells in of.values() for cell in cells)
    axis: Style = {"xlim": (-0.5, last + 0.5), "ylim": ends, "xlabel": "iteration"}
    for name, panel in traces.draw(sheet, top, of, **axis):
        color, first = looks[name].color, of[name][0]
        panel.head(name, back=0.3, color=color)
        steady = first["number"][first["steady"]]
        for _, own in steady.groupby((steady.diff() > 1).cumsum()):
            panel.axes.axvspan(own.min() - 0.5, own.max() + 0.5, color=BAND, linewidth=0, zorder=0)
        looks_of: list[Style] = [{"color": color, "linewidth": 1.5, "zorder": 3}]
        looks_of += [{"color": FAINT, "linewidth": 0.6, "zorder": 1}] * (len(of[name]) - 1)
        for cell, style in zip(of[name], looks_of, strict=True):
            panel.axes.plot(cell["number"], cell[POWER], **style)
        numbers = first["number"]
        dots: Style = {"color": color, "markersize": 3.5, "zorder": 3}
        panel.axes.plot(numbers, first["power_max"], ".", **dots)
        dashed: Style = {"color": WRONG, "linestyle": "--", "linewidth": 1.1, "zorder": 2}
        panel.axes.step(numbers, first["cap"], where="mid", **dashed)
        rounded(panel.axes, y=4)
        panel.axes.tick_params(labelleft=panel.first)
