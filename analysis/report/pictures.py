"""All pictures of a report: drawn and put into the page, or named with the reason why they could not be drawn."""

from __future__ import annotations

import base64
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from analysis.plots import fitting
from analysis.plots.scene import NothingToDraw
from analysis.plots.style import svg, written

from .answers import joined

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analysis.plots.scene import Scene
    from analysis.plots.style import Picture as Module

# From here on a drawing goes in as pixels, where those are fewer bytes: a dozen pictures and the data have to fit into 2 MB.
HEAVY_BYTES = 300_000


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: `markup` for the page, or `missing`, the reason why there is none; `leads` if it may stand at the top."""

    name: str
    title: str
    answers: str
    leads: bool
    markup: Markup | None = None
    missing: str | None = None


def pictures_of(scene: Scene) -> list[Picture]:
    """Draw everything that can be drawn of a scene, in the order a reader wants it."""
    result = []
    for name, module in fitting(scene.runs).items():
        try:
            with warnings.catch_warnings():
                # A name in letters that the font here lacks is drawn by the reader's own.
                warnings.filterwarnings("ignore", message="Glyph .* missing from")
                figure = module.draw(scene)
                title = str(figure.get_label())
                markup = _embedded(figure, name, title, f"{module.ANSWERS} {_found(scene, module)}{_shown(scene)}")
            result.append(Picture(name, title, module.ANSWERS, module.leads, markup))
        except NothingToDraw as reason:
            result.append(Picture(name, module.TITLE, module.ANSWERS, leads=False, missing=str(reason).rstrip(".")))
    return result


def _found(scene: Scene, module: Module) -> str:
    """Say what a picture of a design shows, in the sentences of its effects."""
    if not hasattr(module, "DESIGNS"):
        return ""
    lines = [f"{effects.observed.workload}: {effects.sentence} " for run in scene.runs for effects in scene.effects.get(run.origin, ())]
    return "".join(lines)


def _embedded(figure: Figure, name: str, title: str, description: str) -> Markup:
    drawing = svg(figure, name, title, description)
    pixels = base64.b64encode(written(figure, "png")).decode() if len(drawing) > HEAVY_BYTES else ""
    if not pixels or len(drawing) <= len(pixels):
        return Markup(drawing)  # noqa: S704  # what draws has escaped every text in it
    return Markup('<img alt="{}. {}" src="data:image/png;base64,{}">').format(title, description, Markup(pixels))  # noqa: S704  # base64 has no markup


def _shown(scene: Scene) -> str:
    """Say what is in a picture for those who cannot see it, and where its numbers are."""
    workloads = list(dict.fromkeys(cell.workload for run in scene.runs for cell in run.cells))
    tweaksets = list(dict.fromkeys(cell.tweakset for run in scene.runs for cell in run.cells))
    where = "The numbers are in cells.csv and comparisons.csv, below."
    return f"Workloads: {joined(workloads)}. Tweak sets: {joined(tweaksets)}. {where}" if workloads else where
