"""The command of the run that was planned: the pilot's design, tweak sets and workloads, with as many blocks as are needed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.plain import one_line
from analysis.printing import WIDTH
from analysis.studies.keys.observed import AGAIN
from analysis.wording import studies_own, study_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analysis.terms import Run

CATALOGUE = Path("data/tweaks")  # its tweak sets are called by name, in whatever copy of the repository


def command_of(pilot: Run, blocks: int) -> str:
    """Write it on lines of a page, each but the last ending in a backslash."""
    words = [shlex.quote(one_line(word)) for word in ("pytest", *study_files(pilot), *_options(pilot), f"--blocks={blocks}")]
    lines = [words[0]]
    for word in words[1:]:
        if len(f"{lines[-1]} {word} \\") <= WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(f"    {word}")
    return " \\\n".join(lines)


def _options(pilot: Run) -> Iterator[str]:
    design = pilot.design
    if design.kind not in {"matrix", "file"}:
        yield f"--design={design.kind}"
    resolutions = {notes.get("resolution") for notes in design.notes.values()}
    if design.kind == "fractional" and len(resolutions) == 1 and (resolution := resolutions.pop()) in {3, 4, 5}:
        yield f"--resolution={resolution}"
    sets = [name for name in pilot.tweaksets if name not in {pilot.baseline, AGAIN}]
    whole = list(dict.fromkeys(factor.tweakset for factor in design.factors)) or sets
    if whole and not studies_own(pilot):  # else a workload that none of them meets would be left out
        yield f"--tweaks={','.join(_named(pilot, name) for name in whole)}"
    if _crossed(pilot, sets):  # else the study says itself which tweak set meets which workload
        yield f"--workloads={','.join(pilot.workloads)}"
    if design.steps is not None:
        yield f"--steps={design.steps}"
    if "target" in pilot.place:
        yield f"--target={pilot.place['target']}"


def _named(pilot: Run, name: str) -> str:
    tweakset = pilot.tweaksets.get(name)
    path = tweakset.path if tweakset is not None else None
    return name if path is None or Path(path).parent == CATALOGUE else path


def _crossed(pilot: Run, sets: list[str]) -> bool:
    """Whether every tweak set met every workload."""
    met = {(cell.workload, cell.tweakset) for cell in pilot.cells}
    return all((workload, name) in met for workload in pilot.workloads for name in sets)
