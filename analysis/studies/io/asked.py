"""What was asked for by name, gathered: results of DLIO as one study, saved runs of ours each as its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.load import GLOB, find
from analysis.opening import reason_of
from analysis.plain import one_line
from analysis.terms import Refused, Unreadable

from . import saved
from .configurations import BY_DEFAULT, in_order
from .dlio_factors import settings
from .dlio_folder import SUMMARY, folders_under
from .dlio_published import begun, is_design, is_published
from .dlio_study import dlio_study, excluding
from .factors import STOCK, common, configuration
from .study import study
from .submission import submission
from .workloads import own_parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .dlio_study import DlioStudy, Excluded
    from .responses import Judged
    from .study import Study
    from .submission import Submission
    from .terms import IoRun


KINDS = "name a saved run (a .json file of `pytest benchmarks/`), a folder of DLIO results, or a published table of them (.csv)"
NO_RUN = "no saved run (*.json)"  # as `find` says it


@dataclass(frozen=True, slots=True)
class Found:
    """What there was to read. `refused` are files that cannot be used, a line each."""

    dlio: DlioStudy | None
    saved: tuple[Study, ...]
    submissions: tuple[Submission, ...]
    refused: tuple[str, ...]


def gathered(names: Sequence[str], excluded: Excluded, *, mlperf: bool = False) -> Found:
    """Read and analyse what was named.

    Raises: Refused, for a name that is nothing of the kind.
    """
    paths = {name: Path(name) for name in names}
    for path in paths.values():
        _must_be_input(path)
    of_dlio = [path for path in paths.values() if is_dlio(path)]
    refused: list[str] = []
    ours = [
        one for path in _found([name for name, path in paths.items() if path not in of_dlio]) for one in _saved(path, excluded, refused)
    ]
    theirs = dlio_study(of_dlio, excluded) if of_dlio else None
    if theirs is not None:
        refused += theirs.refused
        theirs = theirs if theirs.judged or theirs.generations or theirs.rows else None
    judged = [*(theirs.judged if theirs is not None else ()), *(one for each in ours for one in each.cells)]
    return Found(theirs, tuple(ours), tuple(_submissions(judged)) if mlperf else (), tuple(dict.fromkeys(refused)))


def _found(names: Sequence[str]) -> list[Path]:
    """Find saved runs. Raises: Refused, which of a folder says that it holds no results of DLIO either."""
    try:
        return find(names)
    except Refused as error:
        if NO_RUN not in str(error):
            raise
        raise Refused(f"{str(error).rstrip('.')}, and no result folder of DLIO ({SUMMARY}) in it or under it.") from None


def is_dlio(path: Path) -> bool:
    """Whether a path is a result folder of DLIO, has such under it, or is a published table.

    A folder with saved runs in it is one of those, whatever an engine left beneath.

    Raises: Refused, for a path that cannot be looked at.
    """
    try:
        if not path.is_dir():
            return path.is_file() and is_published(path)
        return (not any(path.glob("*.json")) or (path / SUMMARY).is_file()) and bool(folders_under(path))
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: cannot be read: {reason_of(error)}.") from None


def _must_be_input(path: Path) -> None:
    """Refuse what is neither of the two kinds of input, in words that name both; a glob is left to those who read saved runs."""
    try:
        there, a_file = path.exists(), path.is_file() and path.suffix != ".json"
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: cannot be read: {reason_of(error)}.") from None
    if is_design(path):
        raise Refused(f"{path}: is a design and holds no results; {KINDS}.")
    if (not there and not GLOB & set(str(path))) or (a_file and not is_published(path) and not begun(path).lstrip().startswith("{")):
        raise Refused(f"{path}: {'is neither' if there else 'is not there'}; {KINDS}.")


def _saved(path: Path, excluded: Excluded, refused: list[str]) -> list[Study]:
    said: list[str] = []
    try:
        runs = [excluding(run, excluded) for run in saved.runs_of(path, said)]
    except Unreadable as error:
        refused.append(one_line(error))
        return []
    if not runs:
        refused.extend(said or [f"{path}: no cell of it reports what its input did; bench_io_patterns saves such."])
        return []
    return [study(str(path), runs, said)]


def _submissions(judged: Sequence[Judged]) -> list[Submission]:
    """Hold each setting against the rules, on the untouched machine: tweak sets and the copy of stock are no settings of their own."""
    kept = [one for one in judged if one.run.tweakset == STOCK] or judged
    same = [runs for inner in settings(in_order(kept)).values() for runs in inner.values()]
    ours = common([one.run for one in kept if one.run.block is not None])
    made = [submission(_name(runs[0].run, ours), runs, own_parameters(runs[0].run.model)) for runs in same]
    return sorted(made, key=lambda one: one.processes)


def _name(run: IoRun, alike: frozenset[str]) -> str:
    """A folder's name, or what sets a configuration of ours apart, as `io` calls it everywhere."""
    return run.id if run.block is None else configuration(run, alike) or BY_DEFAULT
