"""What was asked for by name: results of DLIO as one study, saved runs each as its own, and one answer of all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.answer import Answer, Line, Section
from analysis.files import reason_of
from analysis.load import GLOB, find
from analysis.plain import one_line
from analysis.terms import Refused, Unreadable

from . import dlio_answer, mlperf, saved
from .dlio_folder import SUMMARY, folders_under
from .dlio_published import begun, is_design, is_published
from .dlio_study import dlio_study, excluding, settings
from .factors import STOCK, common, configuration
from .run_answer import answer
from .study import BY_DEFAULT, in_order, study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .dlio_study import Excluded
    from .responses import JudgedResponse
    from .study import IoStudy
    from .terms import IoRun


KINDS = "name a saved run (a .json file of `pytest benchmarks/`), a folder of DLIO results, or a published table of them (.csv)"
NO_RUN = "no saved run (*.json)"  # as `find` says it


def answer_of(names: Sequence[str], excluded: Excluded, *, rules: bool = False, plot: Path | None = None) -> Answer:
    """Read and analyse what was named; `rules` holds it against those of MLPerf Storage, `plot` is a folder for pictures.

    Raises: Refused, for a name that is nothing of the kind, and where nothing can be used.
    """
    paths = {name: Path(name) for name in names}
    for path in paths.values():
        _must_be_input(path)
    of_dlio = [path for path in paths.values() if is_dlio(path)]
    refused: list[str] = []
    files = _files([name for name, path in paths.items() if path not in of_dlio])
    ours = [one for path in files for one in _saved(path, excluded, refused)]
    theirs = dlio_study(of_dlio, excluded) if of_dlio else None
    if theirs is not None:
        refused += theirs.refused
        theirs = theirs if theirs.judged or theirs.generations or theirs.rows else None
    refused = list(dict.fromkeys(refused))
    if theirs is None and not ours:
        raise Refused(refused[0] if refused else f"{', '.join(names)}: no run that reports what its input did.")
    parts = [(Path(one.origin).stem, answer(one)) for one in ours]
    parts += [] if theirs is None else [("DLIO", dlio_answer.answer(theirs))]
    judged = [*(theirs.judged if theirs is not None else ()), *(cell for each in ours for cell in each.cells)]
    submissions = _submissions(judged) if rules else []
    drawn = {} if plot is None else pictures([one.run for one in judged], plot)
    whole = _together(parts)
    if plot is not None or (rules and whole.next.endswith("--mlperf")):
        whole = replace(whole, next="")
    return replace(
        whole,
        sections=[
            *whole.sections,
            *([mlperf.section(submissions)] if submissions else []),
            *([Section("Pictures", [Line(outcome, f"{name}:") for name, outcome in drawn.items()])] if drawn else []),
        ],
        data={
            "dlio": None if theirs is None else dlio_answer.record_of(theirs),
            "saved": [part.data for (_, part), _ in zip(parts, ours, strict=False)],
            "mlperf": submissions,
            "pictures": drawn,
        },
        refused=refused,
    )


def _together(parts: Sequence[tuple[str, Answer]]) -> Answer:
    """One answer of several, each with its name before what it says."""
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
    """Find saved runs. Raises: Refused, which of a folder says that it holds no results of DLIO either."""
    try:
        return find(names)
    except Refused as error:
        if NO_RUN not in str(error):
            raise
        raise Refused(f"{str(error).rstrip('.')}, and no result folder of DLIO ({SUMMARY}) in it or under it.") from None


def is_dlio(path: Path) -> bool:
    """Whether a path is a result folder of DLIO, has such under it, or is a published table; a folder with saved runs is none.

    Raises: Refused, for a path that cannot be looked at.
    """
    try:
        if not path.is_dir():
            return path.is_file() and is_published(path)
        return (not any(path.glob("*.json")) or (path / SUMMARY).is_file()) and bool(folders_under(path))
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: cannot be read: {reason_of(error)}.") from None


def _must_be_input(path: Path) -> None:
    """Refuse what is neither kind of input, in words that name both; a glob is left to those who read saved runs."""
    try:
        there, a_file = path.exists(), path.is_file() and path.suffix != ".json"
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: cannot be read: {reason_of(error)}.") from None
    if is_design(path):
        raise Refused(f"{path}: is a design and holds no results; {KINDS}.")
    if (not there and not GLOB & set(str(path))) or (a_file and not is_published(path) and not begun(path).lstrip().startswith("{")):
        raise Refused(f"{path}: {'is neither' if there else 'is not there'}; {KINDS}.")


def _saved(path: Path, excluded: Excluded, refused: list[str]) -> list[IoStudy]:
    left_out: list[str] = []
    try:
        runs = [excluding(run, excluded) for run in saved.runs_of(path, left_out)]
    except Unreadable as error:
        refused.append(one_line(error))
        return []
    if not runs:
        refused.extend(left_out or [f"{path}: no cell of it reports what its input did; bench_io_patterns saves such."])
        return []
    return [study(str(path), runs, left_out)]


def _submissions(judged: Sequence[JudgedResponse]) -> list[mlperf.Submission]:
    """Hold each setting against the rules, on the untouched machine."""
    kept = [one for one in judged if one.run.tweakset == STOCK] or judged
    same = [runs for inner in settings(in_order(kept)).values() for runs in inner.values()]
    alike = common([one.run for one in kept if one.run.block is not None])
    made = [mlperf.submission(_name(runs[0].run, alike), runs, mlperf.own_parameters(runs[0].run.model)) for runs in same]
    return sorted(made, key=lambda submission: submission.processes)


def _name(run: IoRun, alike: frozenset[str]) -> str:
    """A folder's name, or what sets a configuration of ours apart, as `io` calls it everywhere."""
    return run.id if run.block is None else configuration(run, alike) or BY_DEFAULT


def pictures(runs: Sequence[IoRun], folder: Path, form: str = "png") -> dict[str, str]:
    """Draw every picture of input into a folder; answers each one's file, or why there is none. Raises: OSError."""
    from analysis import plots  # noqa: PLC0415  # matplotlib, which a table need not wait for
    from analysis.files import write_whole  # noqa: PLC0415  # as above
    from analysis.plots.scene import NothingToDraw, Scene  # noqa: PLC0415  # as above
    from analysis.plots.style import written  # noqa: PLC0415  # as above

    from .responses import judged_alike  # noqa: PLC0415  # as above

    scene = Scene((), io=tuple(judged_alike(run for run in runs if run.epochs)))
    result: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name, picture in plots.pictures().items():
        if "io" in getattr(picture, "REPORTS", ()):
            path = folder / f"{name}.{form}"
            try:
                write_whole(path, written(picture.draw(scene), form))
                result[name] = str(path)
            except NothingToDraw as reason:
                missing[name] = f"not drawn: {str(reason).rstrip('.')}."
    return result | missing
