"""What the pictures of designs over keys have in common: which effects they show, how an effect is written, and what stands at its head."""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.wording import digits, number

from .forest import VERDICTS, WIDEST
from .lettering import fitted, wrapped
from .measures import measure_of, minus
from .page import HEAD_LINE, INSIDE, LINE
from .scene import NothingToDraw
from .style import HEAD, INK, QUIET, SMALL, TEXT
from .untouched import untouched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from matplotlib.axes import Axes

    from analysis.studies.keys.terms import Effects, Term
    from analysis.terms import Run

    from .page import Page
    from .scene import Scene

# The words of `compare`, and those that a design adds to them; shape says the same as colour.
MARKS: dict[str, dict[str, Any]] = VERDICTS | {
    "raises": {"marker": "^", "color": INK, "markerfacecolor": INK},
    "lowers": {"marker": "v", "color": INK, "markerfacecolor": INK},
    "interacts": {"marker": "D", "color": "#8f4b7d", "markerfacecolor": "#8f4b7d"},
}
CALLED = frozenset({"improved", "regressed", "raises", "lowers", "interacts"})
# Designs whose cells vary several keys at once; "file" is any of them, read from a design file.
FACTORIAL = frozenset({"factorial", "fractional", "screening", "file"})


@dataclass(frozen=True, slots=True)
class Part:
    """One panel: what was said of one tweak set under one workload, in which run; `title` tells it from the other panels.

    `again` is the A/A check as if it were an effect: what the machine does where nothing is changed; None where it was not measured.
    """

    run: Run | None
    effects: Effects
    title: str
    again: Term | None = None


def parts_of(scene: Scene, fits: Callable[[Effects], bool], reason: str) -> list[Part]:
    """Answer the effects of a scene that a picture can show.

    Raises: NothingToDraw, for `reason` where a design was measured and none fits, or because no design was.
    """
    every = [(run, one) for run in scene.runs for one in scene.effects.get(run.origin, ())]
    if not every:
        raise NothingToDraw("the run took no tweak set apart: `--design` names the designs that do")
    shown = [(run, one) for run, one in every if not one.refusal and fits(one)]
    if not shown:
        refused = dict.fromkeys(one.refusal.rstrip(".") for _, one in every if one.refusal)
        raise NothingToDraw("; ".join(refused) or reason)
    others = [one for _, one in shown]
    return [Part(run, one, _title(run, one, others, several=len(scene.runs) > 1), untouched(scene, run, one)) for run, one in shown]


def _title(run: Run, one: Effects, others: Sequence[Effects], *, several: bool) -> str:
    """Name the workload, and what else tells this panel from the others."""
    title = one.observed.workload
    if any(other.observed.profile != one.observed.profile for other in others):
        title = f"{title} · {one.observed.profile}"
    return f"{title} · run {run.run_id}" if several else title


def head_in(part: Part) -> float:
    """Answer how tall a panel's head is: its title, what was found, and how it was measured."""
    return 0.28 + HEAD_LINE * 0.92 * len(_finding(part)) + LINE * len(wrapped(design_of(part.effects), INSIDE, SMALL)) + 0.09


def head(sheet: Page, top: float, part: Part) -> float:
    """Write a panel's head; answers where its body begins."""
    sheet.rule(top + 0.02)
    title = fitted([part.title], INSIDE, HEAD, lines=1, weight="bold")[part.title]
    sheet.text(0, top + 0.07, title, fontsize=HEAD, fontweight="bold")
    down = top + 0.26
    for line in _finding(part):
        sheet.text(0, down, line, fontsize=TEXT)
        down += HEAD_LINE * 0.92
    for line in wrapped(design_of(part.effects), INSIDE, SMALL):
        sheet.text(0, down + 0.01, line, fontsize=SMALL, color=QUIET)
        down += LINE
    return top + head_in(part)


def _finding(part: Part) -> list[str]:
    lines = wrapped(minus_signs(part.effects.sentence), INSIDE, TEXT)
    return [*lines[:5], "…"] if len(lines) > 6 else lines


def minus_signs(text: str) -> str:
    """Write minus signs where a sentence has hyphens before digits."""
    return re.sub(r"(?<![\w.])-(?=\d)", "\N{MINUS SIGN}", text)


def design_of(effects: Effects) -> str:
    """Say how it was measured: design, points, blocks, cells, metric."""
    seen = effects.observed
    resolution = f" of resolution {ROMAN.get(effects.resolution, effects.resolution)}" if effects.resolution else ""
    parts = [
        f"{seen.design}{resolution}",
        f"{len(seen.factors)} key{'' if len(seen.factors) == 1 else 's'} of {seen.profile}"
        if seen.profile
        else f"{len(seen.factors)} factors",
        f"{len(seen.rows)} cells{f' in {effects.blocks} blocks' if effects.blocks > 1 else ''}",
        measure_of(seen.metric, []).name,
        f"error: {effects.error}" if effects.error_df else "not replicated",
    ]
    return " · ".join(parts)


ROMAN = {3: "III", 4: "IV", 5: "V"}


@dataclass(frozen=True, slots=True)
class Shown:
    """An effect as it stands on an axis: percent of speed, or the response's own unit; the interval is None where there is none."""

    value: float
    low: float | None
    high: float | None


def shown(effects: Effects, term: Term) -> Shown:
    """Put an effect on the axis of its picture."""
    if effects.observed.scale == "raw" or term.gain is None:
        return Shown(term.effect, term.low, term.high)
    low, high = (None if end is None else 100 * end for end in (term.gain_low, term.gain_high))
    return Shown(100 * term.gain, low, high)


def words(effects: Effects, one: Shown) -> str:
    """Write an effect with its interval: `−9.6 [−11.2, −8.0]`."""
    write = _raw if effects.observed.scale == "raw" else _percent
    if one.low is None or one.high is None:
        return minus(f"{write(one.value)} [no interval]")
    return minus(f"{write(one.value)} [{write(one.low)}, {write(one.high)}]")


def _percent(value: float) -> str:
    return number(value / 100)


def _raw(value: float) -> str:
    return ("+" if value > 0 else "") + digits(value, 3)


def limit_of(every: Iterable[Shown], margin: float) -> float:
    """Answer how far an axis reaches to either side, so that one endless interval does not squash the others."""
    every = list(every)
    reach = [max(abs(end) for end in (one.value, one.low, one.high) if end is not None) for one in every]
    values = max((abs(one.value) for one in every), default=0.0)
    usual = max(WIDEST * statistics.median(reach), 1.5 * values) if reach else 0.0
    return 1.1 * max(1.5 * margin, *(min(one, usual) for one in reach)) or 1.0


def draw_effect(axes: Axes, at: float, one: Shown, style: dict[str, Any], limit: float) -> None:
    """Draw a mark and its interval on a row; ends beyond the axis are cut with an arrow."""
    width = style.get("linewidth", 1.6)
    if one.low is not None and one.high is not None:
        axes.plot(
            [max(one.low, -limit), min(one.high, limit)], [at, at], color=style["color"], linewidth=width, solid_capstyle="butt", zorder=2
        )
        for end, cut, mark in ((-limit, one.low < -limit, "<"), (limit, one.high > limit, ">")):
            if cut:
                axes.plot([end], [at], marker=mark, color=style["color"], markersize=5, clip_on=False)
    if abs(one.value) <= limit:
        axes.plot([one.value], [at], **{"markersize": 6.5, "linestyle": "none", "zorder": 3, **style, "linewidth": width})


def concluded(scene: Scene, kind: str) -> list[Run]:
    """Answer the runs of an adaptive design. Raises: NothingToDraw, where there is none that came to anything."""
    runs = [run for run in scene.runs if run.design.kind == kind]
    if not runs:
        raise NothingToDraw(f"no run is of `--design={kind}`")
    told = [run for run in runs if run.design.conclusion]
    if not told:
        raise NothingToDraw("the run ended before its design came to any conclusion")
    return told


def conclusion_in(run: Run) -> float:
    """Answer how tall the head of an adaptive design's panel is."""
    return 0.28 + HEAD_LINE * 0.92 * len(_conclusion(run)) + 0.09


def conclusion_head(sheet: Page, top: float, run: Run) -> float:
    """Write what an adaptive design was about and what it came to; answers where the panel's body begins."""
    sheet.rule(top + 0.02)
    about = dict.fromkeys(factor.tweakset for factor in run.design.factors)
    title = f"{', '.join(dict.fromkeys(cell.workload for cell in run.cells))} · {', '.join(about)} · run {run.run_id}"
    sheet.text(0, top + 0.07, fitted([title], INSIDE, HEAD, lines=1, weight="bold")[title], fontsize=HEAD, fontweight="bold")
    for at, line in enumerate(_conclusion(run)):
        sheet.text(0, top + 0.26 + HEAD_LINE * 0.92 * at, line, fontsize=TEXT)
    return top + conclusion_in(run)


def _conclusion(run: Run) -> list[str]:
    return wrapped(minus_signs(str(run.design.conclusion.get("text", ""))), INSIDE, TEXT)
