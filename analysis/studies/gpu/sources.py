"""What a user named: saved runs, and folders of logs and tables, each as a grid; and the pictures and tables made of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.files import reason_of, write_whole
from analysis.load import GLOB, find, load
from analysis.plain import one_line
from analysis.terms import Refused, Unreadable

from . import csv_tables, pairs, saved
from .findings import findings_of
from .terms import KernelGrid, chip_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.terms import Run

    from .findings import Findings
    from .terms import CellTable


@dataclass(frozen=True, slots=True)
class Sources:
    """What each grid says, and what was refused, a line each."""

    grids: tuple[Findings, ...]
    refused: tuple[str, ...]


def gathered(names: Sequence[str], *, gpu: str | None = None, sms: int | None = None) -> Sources:
    """Read everything that was named.

    Raises: Refused, where no grid is in it.
    """
    refused: list[str] = []
    grids: list[KernelGrid] = []
    for name in names:
        try:
            grids += _grids(name, refused, gpu, sms)
        except OSError as error:
            refused.append(f"{one_line(name)}: cannot be read: {reason_of(error)}.")
        except Refused as error:
            if len(names) == 1:
                raise
            refused.append(one_line(error))
    if not grids:
        raise Refused(refused[0] if refused else f"{', '.join(names)}: no grid of GPU metrics.")
    return Sources(tuple(map(findings_of, grids)), tuple(dict.fromkeys(refused)))


def _grids(name: str, refused: list[str], gpu: str | None, sms: int | None) -> list[KernelGrid]:
    path = Path(name)
    if path.is_dir():
        folders = pairs.folders_with_pairs(path)
        tables = _tables(path, refused)
        if folders or tables:
            return _of_folder(path, folders, tables, refused, gpu, sms)
    elif path.is_file() and path.suffix == ".csv":
        return [_of_tables(path, {path: csv_tables.read(path)}, sms)]
    elif pairs.NAME.fullmatch(path.name) and path.is_file():
        raise Refused(f"{name}: is one log of a grid; name the folder that holds all of them.")
    result = []
    for each in find([name]):
        try:
            run = load(each)
        except Unreadable as error:
            refused.append(one_line(error))
            continue
        if saved.reports_gpu_metrics(run):
            result.append(saved.grid_of(run, refused, sms=sms))
        elif not path.is_dir() and not GLOB & set(name):
            raise Refused(
                f"{name}: no cell of it reports GPU metrics; `pytest benchmarks/bench_gpu_metrics.py` measures them.{_skipped(run)}"
            )
    if not result:
        here = "no log (1.1.dcgmi.txt), no table (mean.csv) and no saved run with GPU metrics in it"
        raise Refused(refused[-1] if refused else f"{name}: {here}.")
    return result


def _skipped(run: Run) -> str:
    """Say why a run of that benchmark has none: there was no GPU, or none that tells."""
    reasons = dict.fromkeys(cell.reason for cell in run.cells if cell.workload.startswith("gpu_grid") and cell.reason)
    return "".join(f" It says: {one_line(reason, 200)}" for reason in list(reasons)[:1])


def _tables(path: Path, refused: list[str]) -> dict[Path, CellTable]:
    result = {}
    for one in sorted(path.rglob("*.csv")):
        if not any(part.startswith(".") for part in one.relative_to(path).parts) and one.is_file() and csv_tables.is_table(one):
            try:
                result[one] = csv_tables.read(one)
            except Unreadable as error:
                refused.append(one_line(error))
    return result


def _of_folder(  # noqa: PLR0913, PLR0917  # what was found and what was asked
    path: Path, folders: Sequence[Path], tables: dict[Path, CellTable], refused: list[str], gpu: str | None, sms: int | None
) -> list[KernelGrid]:
    """Make a grid of each folder of logs; tables belong to the only one, or to the one at or above which they lie."""
    if not folders:
        return [_of_tables(path, tables, sms)]
    grids = []
    for folder in folders:
        own = tuple(table for at, table in tables.items() if len(folders) == 1 or at.is_relative_to(folder))
        try:
            grids.append(pairs.grid_of(folder, refused, gpu=gpu, sms=sms, read=own))
        except Refused as error:
            if len(folders) == 1 and not own:
                raise
            refused.append(one_line(error))
            grids += [_of_tables(folder, {Path(str(at)): table for at, table in enumerate(own)}, sms)] if own else []
    return grids


def _of_tables(path: Path, tables: dict[Path, CellTable], sms: int | None) -> KernelGrid:
    note = "only summary tables are here and no logs: neither bounds nor idle samples can be looked at"
    return KernelGrid(str(path), (), chip_of(None, sms), tuple(tables.values()), notes=(note,))


def pictures(grids: Sequence[Findings], folder: Path, form: str = "png") -> dict[str, str]:
    """Draw every grid; answers each picture's file, or why there is none.

    Raises: Refused, where a file cannot be written.
    """
    from analysis.plots.gpu_metrics_grid import draw as draw_grid  # noqa: PLC0415  # matplotlib, which a table need not wait for
    from analysis.plots.gpu_metrics_relations import draw as draw_relations  # noqa: PLC0415  # as above
    from analysis.plots.scene import NothingToDraw  # noqa: PLC0415  # as above
    from analysis.plots.style import written  # noqa: PLC0415  # as above

    said: dict[str, str] = {}
    for at, findings in enumerate(grids):
        for name, draw in (("gpu_metrics_grid", draw_grid), ("gpu_metrics_relations", draw_relations)):
            name += f"_{at + 1}" if at else ""  # noqa: PLW2901  # the same, of a second grid
            try:
                content = written(draw(findings), form)
            except NothingToDraw as reason:
                said[name] = f"not drawn: {str(reason).rstrip('.')}."
                continue
            path = folder / f"{name}.{form}"
            write_whole(path, content)
            said[name] = str(path)
    return said


def tables(grids: Sequence[Findings], folder: Path) -> dict[str, str]:
    """Write each statistic of every grid's own cells."""
    said: dict[str, str] = {}
    for at, findings in enumerate(grids):
        for statistic, table in findings.tables.items():
            path = folder / f"{statistic}{f'_{at + 1}' if at else ''}.csv"
            write_whole(path, csv_tables.written(table).encode())
            said[path.stem] = str(path)
    return said
