"""Everything that is said of some I/O runs together: by configuration, by factor, and of tweak sets against stock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .configurations import caches, configurations
from .effects import analysed, contrasts
from .factors import STOCK, alike_in_words, configuration, touched
from .responses import judged_alike

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .configurations import Cache, Configuration
    from .effects import Analysis, Contrasts, IoContrast
    from .responses import JudgedResponse
    from .terms import IoRun

RATE = "samples_per_s_whole"
# What is answered unless asked otherwise: both utilisations, for the first step may hide what a factor does; and samples/s, which is as
# good as AU where computation and batch are the same, and speaks where nothing is computed.
RESPONSES = ("au_whole_percent", "au_steady_percent", RATE)


@dataclass(frozen=True, slots=True)
class IoStudy:
    """I/O runs of one source and what they say. `alike` is what all of them have in common, in words; `refused` what could not be used.

    `idle` are tweak sets that changed nothing here, each against stock: further copies of stock, in no analysis. `analyses` are of
    untouched machines, and of samples/s with tweak sets as a factor, one for all configurations that met the same ones.
    """

    origin: str
    cells: tuple[JudgedResponse, ...]
    alike: str
    configurations: tuple[Configuration, ...]
    caches: Mapping[str, Cache]
    analyses: tuple[Analysis, ...]
    contrasts: Contrasts
    idle: tuple[IoContrast, ...] = ()
    refused: tuple[str, ...] = ()


def study(origin: str, runs: Sequence[IoRun], refused: Sequence[str] = (), responses: Sequence[str] = RESPONSES) -> IoStudy:
    """Say of training runs all there is to say; runs that only generated data have nothing to tell."""
    cells = tuple(judged_alike(run for run in runs if run.epochs))
    treated, copies = apart(cells)
    analyses = [analysed(treated, response, sets=False) for response in responses] if cells else []
    analyses += [analysed(group, RATE, sets=True) for group in _crossed(treated)]
    return IoStudy(
        origin,
        cells,
        alike_in_words([cell.run for cell in cells]),
        tuple(configurations(cells)),
        caches(cells),
        tuple(analyses),
        contrasts(treated, RATE),
        contrasts(copies, RATE).tweaks if copies else (),
        tuple(refused),
    )


def apart(cells: Sequence[JudgedResponse]) -> tuple[list[JudgedResponse], list[JudgedResponse]]:
    """Part the cells of tweak sets that changed nothing anywhere from the others; stock stands on both sides."""
    idle = {cell.run.tweakset for cell in cells} - {cell.run.tweakset for cell in cells if not cell.run.changed_nothing}
    treated = [cell for cell in cells if cell.run.tweakset not in idle]
    return treated, [cell for cell in cells if cell.run.tweakset in idle | {STOCK}] if idle else []


def _crossed(cells: Sequence[JudgedResponse]) -> list[list[JudgedResponse]]:
    """Put configurations together that met the same tweak sets: stock elsewhere has nothing to stand beside."""
    met: dict[str, set[str]] = {}
    for cell in cells:
        met.setdefault(configuration(cell.run), set()).add(cell.run.tweakset)
    changed = set(touched(cells))
    groups: dict[frozenset[str], list[JudgedResponse]] = {}
    for cell in cells:
        if sets := frozenset(met[configuration(cell.run)] & changed):
            groups.setdefault(sets, []).append(cell)
    return list(groups.values())
