"""The answer about what was named: each saved run and each folder of DLIO's results as a study, and one answer of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.answer import Answer, Line, Section
from analysis.files import reason_of
from analysis.load import find
from analysis.plain import one_line
from analysis.terms import Refused, Unreadable

from . import saved
from .dlio_folder import SUMMARY, folders_under, runs_of
from .run_answer import answer
from .study import IoStudy, study

if TYPE_CHECKING:
    from .terms import IoRun

NO_RUN = "no saved run (*.json)"  # as `find` says it


def answer_of(names: Sequence[str], *, plot: Path | None = None) -> Answer:
    """Read and analyse what was named; `plot` is a folder for pictures.

    Raises: Refused, for a name that is nothing of the kind, and where nothing can be used.
    """
    dlio = [Path(name) for name in names if _is_dlio(Path(name))]
    refused: list[str] = []
    own = [one for path in _files([name for name in names if Path(name) not in dlio]) for one in _saved(path, refused)]
    own += [one for path in dlio for one in _dlio(path, refused)]
    if not own:
        raise Refused(refused[0] if refused else f"{', '.join(names)}: no run that reports what its input did.")
    parts = [(Path(one.origin).stem, answer(one)) for one in own]
    drawn = {} if plot is None else pictures([cell.run for one in own for cell in one.cells], plot)
    whole = _together(parts)
    extra = [Section("Pictures", [Line(outcome, f"{name}:") for name, outcome in drawn.items()])] if drawn else []
    return replace(
        whole,
        sections=[*whole.sections, *extra],
        next=() if plot is not None else whole.next,
        data={"saved": [part.data for _, part in parts], "pictures": drawn},
        refused=list(dict.fromkeys(refused)),
    )


def _together(parts: Sequence[tuple[str, Answer]]) -> Answer:
    if len(parts) == 1:
        return parts[0][1]
    return Answer(
        f"{len(parts)} sources",
        [replace(line, text=f"{name}: {line.text}") for name, part in parts for line in (Line(part.title, "•", "strong"), *part.findings)],
        [replace(section, title=f"{name}: {section.title}") for name, part in parts for section in part.sections],
        [f"{name}: {text}" for name, part in parts for text in part.warnings],
        list(dict.fromkeys(entry for _, part in parts for entry in part.legend)),
    )


def _files(names: Sequence[str]) -> list[Path]:
    """Find saved runs. Raises: Refused; of a folder, with the reason that it holds no results of DLIO either."""
    try:
        return find(names)
    except Refused as error:
        if NO_RUN not in str(error):
            raise
        raise Refused(f"{str(error).rstrip('.')}, and no result folder of DLIO ({SUMMARY}) in it or under it.") from None


def _is_dlio(path: Path) -> bool:
    """Whether a path is a result folder of DLIO or has such under it; a folder with saved runs is none."""
    try:
        return path.is_dir() and (not any(path.glob("*.json")) or (path / SUMMARY).is_file()) and bool(folders_under(path))
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: cannot be read: {reason_of(error)}.") from None


def _dlio(path: Path, refused: list[str]) -> list[IoStudy]:
    """Read result folders of DLIO; those that only generated data are passed over."""
    runs = [run for run in runs_of(path, refused) if run.kind != "generation"]
    return [study(str(path), runs)] if runs else []


def _saved(path: Path, refused: list[str]) -> list[IoStudy]:
    left_out: list[str] = []
    try:
        runs = saved.runs_of(path, left_out)
    except Unreadable as error:
        refused.append(one_line(error))
        return []
    if not runs:
        refused.extend(left_out or [f"{path}: no cell of it reports what its input did; bench_io_patterns saves such."])
        return []
    return [study(str(path), runs, left_out)]


def pictures(runs: Sequence[IoRun], folder: Path) -> dict[str, str]:
    """Draw every picture of input into a folder; return each one's file, or why there is none. Raises: OSError."""
    from analysis import plots
    from analysis.plots.scene import Scene
    from analysis.plots.style import draw_into

    from .responses import judged_alike

    scene = Scene((), io=tuple(judged_alike(run for run in runs if run.epochs)))
    known = {name: picture for name, picture in plots.pictures().items() if "io" in getattr(picture, "REPORTS", ())}
    return draw_into(folder, {name: partial(picture.draw, scene) for name, picture in known.items()})
