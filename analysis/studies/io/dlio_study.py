"""A study of DLIO result folders as a whole: its runs judged, what is stale, what was published, and what may be concluded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analysis.plain import one_line
from analysis.terms import Unreadable

from .dlio_factors import STEADY, WHOLE, compared, error_of, tested
from .dlio_folder import runs_of
from .dlio_published import beside, is_published, match, rows_of
from .identity import identity
from .responses import doubted, is_degenerate, is_refused, judge
from .stale import stale_rows, stale_runs
from .terms import Doubt
from .validity import EVERY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from .dlio_factors import Compared, Tested
    from .dlio_published import Row
    from .identity import Identity
    from .oneway import RunError
    from .responses import Judged
    from .stale import Stale
    from .terms import IoRun

DESIGN = "experimental_design.csv"
STALE = "stale data"
RECORD_LENGTHS = ("record_length_bytes", "record_length")


@dataclass(frozen=True, slots=True)
class Excluded:
    """Steps left out of steady figures, where the reader chose others than DLIO did; None leaves them as each run says."""

    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class DlioStudy:
    """Everything that is said of DLIO results.

    `judged` are runs that trained, in time order, `generations` those that only made data; `rows` are published ones, `raw` whose files
    are here; `usable` are the runs that comparisons are made of: neither degenerate nor stale nor refused. `groups` differ
    in one factor each; `error` is what repeated runs scatter by. `beside` are published tables that lie above what was named and were
    not read.
    """

    origin: str
    judged: tuple[Judged, ...]
    generations: tuple[IoRun, ...]
    identities: Mapping[str, Identity]
    refused: tuple[str, ...]
    rows: tuple[Row, ...]
    raw: Mapping[Row, IoRun]
    stale: tuple[Stale, ...]
    usable: tuple[Judged, ...]
    error: Mapping[str, RunError | None]
    groups: tuple[Compared, ...]
    tests: tuple[Tested, ...]
    beside: tuple[Path, ...] = ()


def dlio_study(paths: Sequence[Path], excluded: Excluded | None = None) -> DlioStudy:
    """Read everything at some paths (result folders, folders of them, published tables) and analyse it.

    What cannot be read is said in `refused`; it is for the caller to refuse a study in which nothing could be.
    """
    refused: list[str] = []
    runs = list({run.origin: run for path in paths if path.is_dir() for run in runs_of(path, refused)}.values())
    if excluded is not None:
        runs = [excluding(run, excluded) for run in runs]
    rows = _published(paths, refused)
    if any(len({one.model for one in each}) > 1 for each in (runs, rows)):  # a name tells runs of one model apart
        runs, rows = [replace(run, id=f"{run.model} {run.id}") for run in runs], [replace(row, named=True) for row in rows]
    judged = tuple(judge(run) for run in runs if run.kind == "training")
    generations = tuple(run for run in runs if run.kind == "generation")
    raw = match(rows, runs)
    stale = (*stale_runs(judged, generations), *_stale_rows([row for row in rows if row not in raw], rows, runs))
    old = {one.origin: Doubt(STALE, f"it ran on the data of {one.ran_on}", EVERY) for one in stale}
    judged = tuple(doubted(one, old[one.run.origin]) if one.run.origin in old else one for one in judged)
    usable = tuple(one for one in judged if one.run.origin not in old and not is_degenerate(one) and not is_refused(one))
    lost = [row for row in rows if row not in raw and row.id not in {one.id for one in stale}]
    groups = tuple(compared(usable))
    error = {STEADY: error_of(usable, lost), WHOLE: error_of(usable, (), WHOLE)}
    return DlioStudy(
        origin=" ".join(map(str, paths)),
        judged=judged,
        generations=generations,
        identities={one.run.origin: identity(one) for one in judged},
        refused=tuple(refused),
        rows=tuple(rows),
        raw=raw,
        stale=stale,
        usable=usable,
        error=error,
        groups=groups,
        tests=tuple(tested(groups, error)),
        beside=tuple(_beside(paths)) if not rows else (),
    )


def excluding(run: IoRun, excluded: Excluded) -> IoRun:
    """Answer a run with other steps left out of its steady figures."""
    start = run.excluded_start_steps if excluded.start is None else excluded.start
    end = run.excluded_end_steps if excluded.end is None else excluded.end
    return replace(run, excluded_start_steps=start, excluded_end_steps=end)


def _beside(paths: Sequence[Path]) -> Iterable[Path]:
    return dict.fromkeys(table for path in paths if path.is_dir() for table in beside(path))


def _published(paths: Sequence[Path], refused: list[str]) -> list[Row]:
    tables = [path for path in paths if path.is_file()]
    tables += [one for path in paths if path.is_dir() for one in sorted(path.glob("*.csv")) if is_published(one)]
    found: list[Row] = []
    for table in dict.fromkeys(tables):
        design = table.with_name(DESIGN)
        try:
            found += rows_of(table, design if design.is_file() else None)
        except Unreadable as error:
            refused.append(one_line(error))
    return found


def _stale_rows(lost: Sequence[Row], rows: Sequence[Row], runs: Sequence[IoRun]) -> list[Stale]:
    """Judge published rows; their samples/s are known only with the record length that most of the study's runs had."""
    lengths = Counter(run.record_length_bytes for run in runs if run.kind == "training" and len(run.epochs) > run.processes)
    usual = lengths.most_common(1)[0][0] if lengths else None
    changes = {
        row: float(row.setting[1]) for row in rows if row.setting and row.setting[0] in RECORD_LENGTHS and row.setting[1].isdecimal()
    }
    return [one for one in stale_rows(rows, usual, changes) if one.id in {row.id for row in lost}]
