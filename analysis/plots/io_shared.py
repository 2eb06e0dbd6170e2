"""What the pictures of I/O runs have in common: which configurations they show, in which order, and how a figure is drawn."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from os.path import commonpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.studies.io.configurations import configurations
from analysis.studies.io.factors import STOCK, alike_in_words
from analysis.studies.io.identity import slept_in_words
from analysis.studies.keys.observed import AGAIN

from .scene import NothingToDraw
from .style import INK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from analysis.studies.io.configurations import Configuration, Mean
    from analysis.studies.io.responses import Judged

    from .scene import Scene

IO = frozenset({"io"})
RATE = "samples_per_s_whole"  # what every run has that has any figure
STEADY_COLOR = "#D55E00"
WHOLE_STYLE: dict[str, Any] = {"color": INK, "marker": "o", "markersize": 5.5}
STEADY_STYLE: dict[str, Any] = {"color": STEADY_COLOR, "marker": "o", "markersize": 5.5, "markerfacecolor": "white", "linestyle": "--"}
WHY = {"degenerate": "too few steps, or epochs under 1 s"}
WHOLE_WORDS = "over the whole epoch"
STEADY_WORDS = "its first step left out, as DLIO does"


@dataclass(frozen=True, slots=True)
class Part:
    """The untouched machine in one saved run, or in a study of DLIO's folders: its cells and what they come to, in the order of levels.

    `left_out` is why runs have no figure at all, a word a run.
    """

    origin: str
    title: str
    alike: str
    cells: tuple[Judged, ...]
    configurations: tuple[Configuration, ...]
    left_out: tuple[str, ...] = ()


def parts_of(scene: Scene) -> list[Part]:
    """Take a scene's I/O runs on the untouched machine, a part a saved run or folder.

    Raises: NothingToDraw, where there is none.
    """
    found = []
    for origin, every in _by_origin(scene).items():
        cells = tuple(one for one in every if one.value(RATE) is not None)
        if not cells:
            continue
        left_out = [doubt.kind.replace("_", " ") for one in every if one not in cells for doubt in one.doubts[:1]]
        alike = alike_in_words([one.run for one in cells])
        name = next((run.run_id for run in scene.runs if run.origin == origin), Path(origin).name or origin)
        found.append(
            Part(
                origin,
                f"run {name}" if scene.runs else name,
                alike if scene.runs else alike.removeprefix(name).lstrip(", "),  # a folder of DLIO's is called as its workload is
                cells,
                tuple(configurations(cells) if cells[0].run.block is not None else sorted(configurations(cells), key=_by_name)),
                tuple(left_out),
            )
        )
    if not found:
        raise NothingToDraw("no cell that reports its input was measured on the untouched machine")
    return found


def _by_name(one: Configuration) -> list[tuple[int, str]]:
    """Order as a reader looks a name up: words by the alphabet, numbers by size, so that what changed one parameter stands together."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", one.name)]


def _by_origin(scene: Scene) -> dict[str, list[Judged]]:
    """Put untouched runs together that are one study: those of a saved run, or all folders (which know no blocks) that were read."""
    kept = [one for one in scene.io if one.run.tweakset in {STOCK, AGAIN} and one.run.epochs]
    folders = [one.run.origin for one in kept if one.run.block is None]
    above = commonpath(folders) if folders else ""
    found: dict[str, list[Judged]] = {}
    for one in kept:
        found.setdefault(above if one.run.block is None else one.run.origin, []).append(one)
    return found


def refused_in(parts: Sequence[Part], response: str, words: str) -> list[str]:
    """Say of how many configurations a figure is refused in all runs, and why: nothing is drawn of it, for any place would be a value."""
    every = [one for part in parts for one in part.configurations]
    why = [one.responses[response].missing or "" for one in every if one.responses[response].value is None]
    kinds = ", ".join(dict.fromkeys(reason.partition(":")[0].replace("_", " ") for reason in why))
    return [f"No figure of {words} in {len(why)} of {len(every)} configurations ({kinds}): nothing is drawn of it."] if why else []


def across(axes: Axes, at: float, one: Mean, style: dict[str, Any], scale: float = 1.0) -> None:
    """Draw a mean with its interval on a row."""
    if one.value is None:
        return
    if one.low is not None and one.high is not None:
        axes.plot([one.low * scale, one.high * scale], [at, at], color=style["color"], linewidth=1.4, solid_capstyle="butt", zorder=2)
    axes.plot([one.value * scale], [at], **{**style, "linestyle": "none", "zorder": 3})


def upright(axes: Axes, points: Sequence[tuple[float, Mean]], style: dict[str, Any], scale: float = 1.0) -> None:
    """Draw means over an axis, joined by a line, each with its interval."""
    known = [(x, one) for x, one in points if one.value is not None]
    for x, one in known:
        if one.low is not None and one.high is not None:
            axes.plot([x, x], [one.low * scale, one.high * scale], color=style["color"], linewidth=1.4, solid_capstyle="butt", zorder=2)
    axes.plot([x for x, _ in known], [(one.value or 0.0) * scale for _, one in known], **{"linewidth": 1.3, "zorder": 3, **style})


def notes_of(scene: Scene, parts: Sequence[Part], *, intervals: bool = True) -> list[str]:
    """What must be known of any picture of I/O runs: what a mark stands for, and where folders came from."""
    found = []
    if intervals:
        most = max(mean.runs for part in parts for one in part.configurations for mean in one.responses.values())
        if most > 1:
            found.append("Bars around marks: 95 % of the mean, by Student's t over blocks (whole runs), never over steps or epochs.")
            found.append("Means of rates are geometric, those of AU and shares arithmetic; stock and its copy in one block are one value.")
        else:
            found.append("Every configuration ran once: how far equal runs differ is not known, and there is no interval.")
    for part in parts:
        if not scene.runs:
            machine = part.cells[0].run.host.name
            found.append(f"{part.title}: {len(part.cells)} runs of {part.cells[0].run.engine}{f' on {machine}' if machine else ''}.")
        late = slept_in_words(part.cells)
        if late is not None:
            found.append(f"{late[0].upper()}{late[1:]}.")
        if part.left_out:
            found.append(f"Left out: {', '.join(_counted(kind, count) for kind, count in Counter(part.left_out).items())}.")
    return found


def _counted(kind: str, count: int) -> str:
    """Say how many runs have no figure at all, and why: `3 degenerate runs (too few steps or too short epochs)`."""
    return f"{count} {kind} run{'' if count == 1 else 's'}{f' ({WHY[kind]})' if kind in WHY else ''}"
