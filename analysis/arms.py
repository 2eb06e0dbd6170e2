"""The sides of a comparison: their runs and tweak sets, and which cells belong together."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import geometric_mean

from control.names import first_few

from .checks import different_data
from .load import GLOB, load_each
from .plain import PLACE
from .terms import Cell, Refused, Run, SavedTweakSet
from .wording import SHOWN_NAMES, must_be_known

# A single value proves nothing; fewer ticks than this between all times mean a coarse clock.
FEWEST_VALUES, FEW_TICKS = 2, 50
SAME_TIME = 1e-9  # relative to the longest time: less is rounding
CERTAIN = 28.0  # nats (40 bits) of information in an order: it will not occur twice by chance
TWEAKSET, MONITOR, WORKLOAD, NODE = "tweakset", "monitor", "workload", "node"  # columns with arms
TOGETHER = " + "  # joins the names of arms that form the baseline together
BASELINE = "baseline"  # the value of `--relative-to` for each study's declared baseline
ORDERS = ("name", "time")
ORDER_HELP = (
    "order of the runs: name (of the file, 9 before 10), or time (of the file, for runs without a "
    "date)"
)
ORDER_HINT = (
    "If file names (or the files' times) follow the order of measurement, add --order=name (or "
    "time)."
)
# A run and one of its blocks: two cells that share them ran close in time.
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of a comparison: runs and a tweak set in them; None pairs tweak sets by name.

    `declared`: the arms that the study declared its baseline are meant. `notes` go below the table.
    """

    label: str
    runs: tuple[Run, ...]
    tweakset: str | None = None
    declared: bool = False
    notes: tuple[str, ...] = ()

    @property
    def workloads(self) -> set[str]:
        return {name for run in self.runs for name in run.workloads}


@dataclass(frozen=True, slots=True)
class Side:
    """The cells of one tweak set under one workload, by run and block; `started_utc` by run."""

    label: str
    tweakset: SavedTweakSet
    cells: Mapping[Place, Cell]
    started_utc: Mapping[str, str]

    @property
    def runs(self) -> frozenset[str]:
        return frozenset(run for run, _ in self.cells)


def read_arm(text: str, refused: list[str]) -> Arm:
    """Read the runs that `PATH[:TWEAKSET]` names as one arm; PATH is a file, quoted glob or folder.

    Unreadable files are added to `refused`. Raises: Refused, if none is left; UnknownName.
    """
    path, tweakset = split(text)
    own: list[str] = []
    runs = distinct(load_each([path], own), own)
    if not runs:
        several = f"{path}: none of {len(own)} files can be read; the first: " if own[1:] else ""
        raise Refused(f"{several}{own[0]}")
    refused += own
    for run in runs:
        must_have(run, "tweak set", filter(None, [tweakset]), run.tweaksets)
    return Arm(f"{path}:{tweakset}" if tweakset else text, runs, tweakset)


def distinct(runs: Iterable[Run], refused: list[str]) -> tuple[Run, ...]:
    """Keep one file per run, with a line in `refused` for each file dropped.

    It is the one with the most measured cells, then with the most cells, then the first.
    """
    known: dict[str, Run] = {}
    for run in runs:
        name = run.run_id or run.origin
        other = known.setdefault(name, run)
        if other is run:
            continue
        less, more = (run, other) if _cells_done(run) <= _cells_done(other) else (other, run)
        known[name] = more
        refused.append(
            f"{less.origin}: ignored as a copy: it is the same run as {more.origin} ({run.run_id})."
        )
    return tuple(known.values())


def _cells_done(run: Run) -> tuple[int, int]:
    return sum(cell.outcome == "measured" for cell in run.cells), len(run.cells)


def must_have(run: Run, noun: str, names: Iterable[str], known: Collection[str]) -> None:
    """Check that a run has all the given names, such as tweak sets. Raises: UnknownName."""
    for name in names:
        must_be_known(noun, name, known, run.origin)


def split(text: str) -> tuple[str, str | None]:
    """Split `PATH[:TWEAKSET]` into the path and the tweak set."""
    folder = Path(text)
    try:
        if (folder / "benchmark.csv").is_file():  # a configuration of DeepTweak
            folder = folder if folder.name and ".." not in folder.parts else folder.resolve()
            return str(folder.parent), folder.name
    except (OSError, ValueError):  # not a valid file name; the reader reports it
        return text, None
    path, colon, tweakset = text.rpartition(":")
    if not colon or folder.exists() or not (Path(path).exists() or GLOB & set(path)):
        return text, None
    return path, tweakset


def on_one_side(base: Arm, candidate: Arm) -> list[str]:
    sides = (
        (base, base.workloads - candidate.workloads),
        (candidate, candidate.workloads - base.workloads),
    )
    return [
        f"only in {arm.label}, so not compared: {first_few(sorted(names), SHOWN_NAMES)}."
        for arm, names in sides
        if names
    ]


def in_order(runs: Iterable[Run], order: str | None) -> list[Run]:
    """Set the runs' places in time: by name their number (`#0012`), by time the undated files'."""
    if order == "name":
        return _numbered([list(runs)])
    return [
        run
        if run.started_utc or order is None
        else replace(run, started_utc=_changed_utc(Path(run.origin)))
        for run in runs
    ]


def arms_in_order(base: Arm, candidate: Arm, order: str | None) -> tuple[Arm, Arm]:
    """Order the runs of two arms; by name, a single candidate comes after its baseline."""
    if order is None:
        return base, candidate
    last = list(candidate.runs) if order == "name" and len(candidate.runs) == 1 else []
    earlier = [run for run in both(base, candidate).runs if run not in last]
    placed = _numbered([earlier, last]) if order == "name" else in_order(earlier, order)
    known = {run.origin: run for run in placed}
    base, candidate = (
        replace(arm, runs=tuple(known[run.origin] for run in arm.runs)) for arm in (base, candidate)
    )
    return base, candidate


def _numbered(groups: Sequence[Sequence[Run]]) -> list[Run]:
    runs = [run for group in groups for run in sorted(group, key=_by_name)]
    return [replace(run, started_utc=f"{PLACE}{at:04}") for at, run in enumerate(runs, 1)]


def _by_name(run: Run) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", f"{Path(run.origin).name} {run.origin}")
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _changed_utc(path: Path) -> str:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat()


def same_runs(arm: Arm, other: Arm) -> bool:
    return {run.run_id for run in arm.runs} == {run.run_id for run in other.runs}


def both(*arms: Arm) -> Arm:
    return Arm("", tuple({id(run): run for arm in arms for run in arm.runs}.values()))


def declared_baseline(arm: Arm, study: str) -> tuple[str, ...]:
    declared = {run.studies[study].baseline for run in arm.runs if study in run.studies}
    return declared.pop() if len(declared) == 1 else ()


def baseline_name(arm: Arm, study: str) -> str:
    return TOGETHER.join(declared_baseline(arm, study)) or arm.runs[0].baseline


def control_name(arm: Arm, study: str, relative_to: str | None) -> str | None:
    """Return the control of a study; `BASELINE`, unless a tweak set has that name, is its own."""
    named = any(BASELINE in run.tweaksets for run in arm.runs)
    return baseline_name(arm, study) if relative_to == BASELINE and not named else relative_to


class Sides:
    """Sides of one arm in one study, by workload and tweak set; its cells are read only once."""

    def __init__(self, arm: Arm, study: str) -> None:
        self.arm = arm
        self.together = declared_baseline(arm, study)
        self.baseline = baseline_name(arm, study)
        self.started_utc = {run.run_id: run.started_utc for run in arm.runs}
        self.cells: dict[tuple[str, str], dict[Place, Cell]] = defaultdict(dict)
        for run in arm.runs:
            for cell in run.cells:
                if cell.study == study:
                    self.cells[cell.workload, cell.tweakset][run.run_id, cell.block] = cell

    def side(self, workload: str, tweakset: str) -> Side | None:
        """Return the side of a tweak set or of the joint baseline; None if it was not run."""
        if self.together and tweakset == self.baseline:
            arms = [one for name in self.together if (one := self.side(workload, name)) is not None]
            return _pool(arms) if len(arms) == len(self.together) else None
        cells = self.cells.get((workload, tweakset))
        known = next(
            (run.tweaksets[tweakset] for run in self.arm.runs if tweakset in run.tweaksets), None
        )
        return Side(self.arm.label, known, cells, self.started_utc) if cells and known else None


def _pool(sides: Sequence[Side]) -> Side:
    name = TOGETHER.join(one.tweakset.name for one in sides)
    places = dict.fromkeys(place for one in sides for place in one.cells)
    arms = {place: {one.tweakset.name: one.cells.get(place) for one in sides} for place in places}
    cells = {place: _pooled(name, own) for place, own in arms.items()}
    return replace(sides[0], tweakset=replace(sides[0].tweakset, name=name), cells=cells)


def _pooled(name: str, arms: Mapping[str, Cell | None]) -> Cell:
    """Merge untouched cells of one block, by geometric means; measured only if all were."""
    cells = tuple(cell for cell in arms.values() if cell is not None)
    whole = replace(
        cells[0], id=TOGETHER.join(cell.id for cell in cells), tweakset=name, pooled=cells
    )
    for arm, cell in arms.items():
        if cell is None:
            return replace(whole, outcome="skipped", reason=f"{arm}: not run")
        if cell.outcome != "measured":
            return replace(whole, outcome=cell.outcome, reason=f"{arm}: {cell.reason}")
    for cell in cells[1:]:
        if reason := different_data(cells[0], cell):
            return replace(whole, outcome="skipped", reason=f"{name}: {reason}")
    metrics: dict[str, float] = {}
    for metric in cells[0].metrics:
        values = [cell.metrics[metric] for cell in cells if metric in cell.metrics]
        if len(values) == len(cells):  # keep values ≤ 0: taking their ratio is refused later
            metrics[metric] = geometric_mean(values) if min(values) > 0 else min(values)
    return replace(whole, metrics=metrics)


def parts(cell: Cell) -> tuple[Cell, ...]:
    return cell.pooled or (cell,)


def met(arm: Arm, study: str) -> dict[str, list[str]]:
    result: dict[str, set[str]] = {}
    for run in arm.runs:
        for cell in run.cells:
            if cell.study == study:
                result.setdefault(cell.workload, set()).add(cell.tweakset)
    workloads = list(dict.fromkeys(name for run in arm.runs for name in run.workloads))
    tweaksets = list(dict.fromkeys(name for run in arm.runs for name in run.tweaksets))
    tweaksets.sort(key=lambda name: name not in {"stock", "stock-again"})  # the A/A first
    return {
        workload: [name for name in tweaksets if name in result[workload]]
        for workload in workloads
        if workload in result
    }


def no_copies(runs: Iterable[Run]) -> None:
    """Check that no two cells have identical times. Raises: Refused, naming the two."""
    seen: dict[object, tuple[Run, Cell]] = {}
    for run in {run.run_id: run for run in runs}.values():
        for times, cell in _every_times(run):
            first, other = seen.setdefault(times, (run, cell))
            if other is not cell and not _by_chance(cell):
                where = "" if first is run else f" in {first.origin}"
                raise Refused(
                    f"{run.origin}: {cell.id} has exactly the times of {other.id}{where}: one is "
                    "a copy. Remove the copy."
                )


def times_of(run: Run) -> Iterator[tuple[object, Cell]]:
    """Yield each cell with its times as a key: on a fine clock two cells never share them."""
    return ((times, cell) for times, cell in _every_times(run) if not _by_chance(cell))


def _every_times(run: Run) -> Iterator[tuple[object, Cell]]:
    for cell in run.cells:
        if cell.outcome == "measured":
            steps = cell.steps
            yield (cell.workload, steps.wall_s if steps else tuple(cell.metrics.values())), cell


def _by_chance(cell: Cell) -> bool:
    if cell.steps is not None:
        return alike_by_chance(cell.steps.wall_s)
    values = [value for name, value in cell.metrics.items() if name.startswith("step_time_")]
    return alike_by_chance(values or [*cell.metrics.values()])


def alike_by_chance(times: Sequence[float]) -> bool:
    """Return whether two cells may share these times by chance: few clock ticks separate them."""
    counts = Counter(times)
    if len(counts) < FEWEST_VALUES:
        return True
    span = max(times) - min(times)
    if _tick(counts, span / FEW_TICKS, max(times) * SAME_TIME) < span / FEW_TICKS:
        return False
    orders = math.lgamma(len(times) + 1) - math.fsum(
        math.lgamma(count + 1) for count in counts.values()
    )
    return orders < CERTAIN


def _tick(times: Iterable[float], least: float, slack: float) -> float:
    """Return the largest time that divides all (Euclid), or a value below `least`."""
    tick = 0.0
    for time in times:
        rest = time
        while rest > slack:
            tick, rest = rest, tick % rest
            if tick - rest < slack:  # a remainder of a whole tick is rounding
                rest = 0.0
        if tick < least:
            break
    return tick


def without_candidate(base: Arm, candidate: Arm) -> tuple[Arm, list[str]]:
    """Drop the candidate, accepted since, from several baseline runs; name those dropped."""
    if (
        len(base.runs) == 1
        or same_runs(base, candidate)
        or base.tweakset not in (None, candidate.tweakset)
    ):
        return base, []
    ids = {run.run_id for run in candidate.runs}
    times = {own for run in candidate.runs for own, _ in times_of(run)}
    kept = [
        run
        for run in base.runs
        if run.run_id not in ids and not any(own in times for own, _ in times_of(run))
    ]
    if not kept:
        return base, []
    lines = [
        f"{run.origin}: left out of the baseline, because it is the candidate itself."
        for run in base.runs
        if run not in kept
    ]
    return replace(base, runs=tuple(kept)), lines


def studies(arms: Iterable[Arm]) -> list[str]:
    return list(dict.fromkeys(name for arm in arms for run in arm.runs for name in run.studies))
