"""The sides of a comparison: which runs and tweak sets are meant, and which of their cells belong together."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import geometric_mean

from control.names import first_few

from .checks import different_data
from .load import GLOB, load_each
from .terms import Cell, Refused, Run, TweakSet, UnknownName
from .wording import suggestion

# One value only says nothing; fewer ticks than these between all times are those of a coarse clock.
FEWEST_VALUES, FEW_TICKS = 2, 50
SAME_TIME = 1e-9  # of the longest: less is rounding
CERTAIN = 28.0  # so many natural units of order, 40 bits, come about twice in no history
SHOWN_NAMES = 12  # in an error
TWEAKSET, MONITOR, WORKLOAD, NODE = "tweakset", "monitor", "workload", "node"  # columns of cells that arms are levels of
TOGETHER = " + "  # between the names of arms that are the baseline together
BASELINE = "baseline"  # what `--relative-to` calls whatever the studies declared to be theirs
DEEPTWEAK = "deeptweak-csv"
# A run and a block of it: what two cells must share to have run close in time.
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of a comparison: runs and the tweak set meant in them; None: each tweak set with its like.

    `declared`: nobody named that tweak set, so a study that declared several arms its baseline means these.
    `notes` go below the comparison.
    """

    label: str
    runs: tuple[Run, ...]
    tweakset: str | None = None
    declared: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """The cells of one tweak set under one workload, measured or not, by run and block; `started_utc` by run, empty where unknown."""

    label: str
    tweakset: TweakSet
    cells: Mapping[Place, Cell]
    started_utc: Mapping[str, str]

    @property
    def runs(self) -> frozenset[str]:
        return frozenset(run for run, _ in self.cells)


def read_arm(text: str, refused: list[str]) -> Arm:
    """Read what `PATH[:TWEAKSET]` names; PATH is a file, a quoted glob or a folder, and all its runs are one arm.

    One configuration of a DeepTweak directory, `DIR/exp1`, is a tweak set of the run that `DIR` is: the same as `DIR:exp1`.

    Files that cannot be read are added to `refused`, one line each.

    Raises: Refused, where nothing can be read. UnknownName, where a run does not have the tweak set.
    """
    path, tweakset = split(text)
    own: list[str] = []
    runs = distinct(load_each([path], own), own)
    if not runs:
        raise Refused(own[0] if len(own) == 1 else f"{path}: none of {len(own)} files can be read; the first: {own[0]}")
    refused += own
    for run in runs:
        must_have(run, "tweak set", filter(None, [tweakset]), run.tweaksets)
    return Arm(f"{path}:{tweakset}" if tweakset else text, runs, tweakset)


def distinct(runs: Iterable[Run], refused: list[str]) -> tuple[Run, ...]:
    """Take each run once, with a line in `refused` for each file left out.

    Of the files of one run (copies, and where it was interrupted and went on), the one with the most
    measured cells is taken, then the one with the most cells, then the first.
    """
    known: dict[str, Run] = {}
    for run in runs:
        name = run.run_id or run.origin
        other = known.setdefault(name, run)
        if other is run:
            continue
        less, more = (run, other) if _cells_done(run) <= _cells_done(other) else (other, run)
        known[name] = more
        refused.append(f"{less.origin}: is the same run as {more.origin} ({run.run_id}): a copy is no second measurement.")
    return tuple(known.values())


def _cells_done(run: Run) -> tuple[int, int]:
    return sum(cell.outcome == "measured" for cell in run.cells), len(run.cells)


def must_have(run: Run, noun: str, names: Iterable[str], there: Iterable[str]) -> None:
    """Check that a run has what was named.

    Raises: UnknownName, with the names there are.
    """
    known = set(there)
    for name in names:
        if name not in known:
            raise UnknownName(f"{run.origin}: no {noun} {name!r}; it has {first_few(sorted(known), SHOWN_NAMES)}.{suggestion(name, known)}")


def _configuration(text: str) -> tuple[str, str] | None:
    folder = Path(text)
    try:
        if not (folder / "benchmark.csv").is_file():
            return None
        folder = folder if folder.name and ".." not in folder.parts else folder.resolve()
    except (OSError, ValueError):  # no name of a file; who reads it says so
        return None
    return str(folder.parent), folder.name


def split(text: str) -> tuple[str, str | None]:
    """The path and the tweak set of `PATH[:TWEAKSET]`."""
    if configuration := _configuration(text):
        return configuration
    path, colon, tweakset = text.rpartition(":")
    if not colon or Path(text).exists() or not (Path(path).exists() or GLOB & set(path)):
        return text, None
    return path, tweakset


def on_one_side(base: Arm, candidate: Arm) -> list[str]:
    """Name the workloads that one of two arms alone has: nothing is said of them."""
    first, second = ({name for run in arm.runs for name in run.workloads} for arm in (base, candidate))
    sides = ((base, first - second), (candidate, second - first))
    return [f"in {arm.label} alone, so not compared: {first_few(sorted(names), SHOWN_NAMES)}." for arm, names in sides if names]


def of_one_workload(base: Arm, candidate: Arm) -> Arm:
    """Return the candidate with the base's name for its one workload, where both are DeepTweak directories: they call it by their node."""
    names = [{name for run in arm.runs for name in run.workloads} for arm in (base, candidate)]
    if any(run.format != DEEPTWEAK for arm in (base, candidate) for run in arm.runs) or any(len(each) != 1 for each in names):
        return candidate
    (name,), (other,) = names
    if name == other:
        return candidate
    runs = tuple(
        replace(
            run,
            workloads={name: replace(run.workloads[other], name=name)},
            cells=tuple(replace(cell, workload=name) for cell in run.cells),
        )
        for run in candidate.runs
    )
    note = f"of two nodes, {name} and {other}, taken for one workload: how the nodes differ is part of any difference."
    return replace(candidate, runs=runs, notes=(note,))


def same_runs(arm: Arm, other: Arm) -> bool:
    """Whether two arms are of the same runs, so that their cells can have run side by side."""
    return {run.run_id for run in arm.runs} == {run.run_id for run in other.runs}


def both(*arms: Arm) -> Arm:
    return Arm("", tuple({id(run): run for arm in arms for run in arm.runs}.values()))


def declared_baseline(arm: Arm, study: str) -> tuple[str, ...]:
    """The arms that every run declared to be the baseline of a study together; empty where one did not."""
    declared = {run.studies[study].baseline for run in arm.runs if study in run.studies}
    return declared.pop() if len(declared) == 1 else ()


def baseline_name(arm: Arm, study: str) -> str:
    """What a study's tweak sets are compared with: the arms that are its declared baseline together, or the one the runs name."""
    return TOGETHER.join(declared_baseline(arm, study)) or arm.runs[0].baseline


def control_name(arm: Arm, study: str, relative_to: str | None) -> str | None:
    """What `--relative-to` means in a study: a tweak set, or with `BASELINE` the study's own, unless a tweak set is called that."""
    named = any(BASELINE in run.tweaksets for run in arm.runs)
    return baseline_name(arm, study) if relative_to == BASELINE and not named else relative_to


class Sides:
    """The sides of one arm in one study, by workload and tweak set; its cells are gone through once."""

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
        """Return the side of a tweak set, or of the arms that are the declared baseline together; None of what was not run."""
        if self.together and tweakset == self.baseline:
            arms = [one for name in self.together if (one := self.side(workload, name)) is not None]
            return _pool(arms) if len(arms) == len(self.together) else None
        cells = self.cells.get((workload, tweakset))
        known = next((run.tweaksets[tweakset] for run in self.arm.runs if tweakset in run.tweaksets), None)
        return Side(self.arm.label, known, cells, self.started_utc) if cells and known else None


def _pool(sides: Sequence[Side]) -> Side:
    name = TOGETHER.join(one.tweakset.name for one in sides)
    places = dict.fromkeys(place for one in sides for place in one.cells)
    arms = {place: {one.tweakset.name: one.cells.get(place) for one in sides} for place in places}
    cells = {place: _pooled(name, own) for place, own in arms.items()}
    return replace(sides[0], tweakset=replace(sides[0].tweakset, name=name), cells=cells)


def _pooled(name: str, arms: Mapping[str, Cell | None]) -> Cell:
    """Several untouched cells of one block as one, with the geometric mean of each metric that all have.

    It is not measured unless all were, with equal work.
    """
    cells = tuple(cell for cell in arms.values() if cell is not None)
    whole = replace(cells[0], id=TOGETHER.join(cell.id for cell in cells), tweakset=name, pooled=cells)
    for arm, cell in arms.items():
        if cell is None:
            return replace(whole, outcome="skipped", reason=f"{arm}: not run")
        if cell.outcome != "measured":
            return replace(whole, outcome=cell.outcome, reason=f"{arm}: {cell.reason}")
    for cell in cells[1:]:
        reason = different_data(cells[0], cell)
        if reason:
            return replace(whole, outcome="skipped", reason=f"{name}: {reason}")
    metrics: dict[str, float] = {}
    for metric in cells[0].metrics:
        values = [cell.metrics[metric] for cell in cells if metric in cell.metrics]
        if len(values) == len(cells):  # one that is not above 0 stays: whoever takes a ratio of it refuses
            metrics[metric] = geometric_mean(values) if min(values) > 0 else min(values)
    return replace(whole, metrics=metrics)


def parts(cell: Cell) -> tuple[Cell, ...]:
    """The cells that were really there: the cell, or those it stands for."""
    return cell.pooled or (cell,)


def met(arm: Arm, study: str) -> dict[str, list[str]]:
    """Which tweak sets each workload of a study met in an arm: workload → names, in order of the runs' own lists, the stocks first."""
    result: dict[str, set[str]] = {}
    for run in arm.runs:
        for cell in run.cells:
            if cell.study == study:
                result.setdefault(cell.workload, set()).add(cell.tweakset)
    workloads = list(dict.fromkeys(name for run in arm.runs for name in run.workloads))
    tweaksets = list(dict.fromkeys(name for run in arm.runs for name in run.tweaksets))
    tweaksets.sort(key=lambda name: name not in {"stock", "stock-again"})  # the A/A first
    return {workload: [name for name in tweaksets if name in result[workload]] for workload in workloads if workload in result}


def no_copies(runs: Iterable[Run]) -> None:
    """Check that no two cells hold the very same times, in one run or in two: a copy is no second measurement.

    A copy is found under any name of its run or tweak set, and in any block.

    Raises: Refused, naming the two cells.
    """
    seen: dict[object, tuple[Run, Cell]] = {}
    for run in {run.run_id: run for run in runs}.values():
        for times, cell in _every_times(run):
            first, other = seen.setdefault(times, (run, cell))
            if other is not cell and not _by_chance(cell):
                where = "" if first is run else f" in {first.origin}"
                raise Refused(f"{run.origin}: {cell.id} has the very times of {other.id}{where}: a copy is no measurement.")


def times_of(run: Run) -> Iterator[tuple[object, Cell]]:
    """What each cell measured, by which it is known under any name: on a fine clock no two cells ever take the very same times."""
    return ((times, cell) for times, cell in _every_times(run) if not _by_chance(cell))


def _every_times(run: Run) -> Iterator[tuple[object, Cell]]:
    for cell in run.cells:
        if cell.outcome == "measured":
            yield (cell.workload, cell.steps.wall_s if cell.steps is not None else tuple(cell.metrics.values())), cell


def _by_chance(cell: Cell) -> bool:
    """Whether another cell may have the very times of this one by chance."""
    if cell.steps is not None:
        return alike_by_chance(cell.steps.wall_s)
    values = [value for name, value in cell.metrics.items() if name.startswith("step_time_")]
    return alike_by_chance(values or [*cell.metrics.values()])


def alike_by_chance(times: Sequence[float]) -> bool:
    """Whether two cells may have these very times: so few ticks of the clock lie between them that their order says little."""
    counts = Counter(times)
    if len(counts) < FEWEST_VALUES:
        return True
    span = max(times) - min(times)
    if _tick(counts, span / FEW_TICKS, max(times) * SAME_TIME) < span / FEW_TICKS:
        return False
    orders = math.lgamma(len(times) + 1) - math.fsum(math.lgamma(count + 1) for count in counts.values())
    return orders < CERTAIN


def _tick(times: Iterable[float], least: float, slack: float) -> float:
    """Return the largest time of which all are multiples (Euclid's algorithm), or one below `least` where it would be smaller."""
    tick = 0.0
    for time in times:
        rest = time
        while rest > slack:
            tick, rest = rest, tick % rest
            if tick - rest < slack:  # a remainder of a whole tick is none
                rest = 0.0
        if tick < least:
            break
    return tick


def without_candidate(base: Arm, candidate: Arm) -> tuple[Arm, list[str]]:
    """Leave out of several baseline runs what the candidate itself is, as after it was accepted, with a line for each.

    A run is the candidate's by its id, or by its very times under another name.
    """
    if len(base.runs) == 1 or same_runs(base, candidate) or base.tweakset not in (None, candidate.tweakset):
        return base, []
    ids = {run.run_id for run in candidate.runs}
    times = {own for run in candidate.runs for own, _ in times_of(run)}
    kept = [run for run in base.runs if run.run_id not in ids and not any(own in times for own, _ in times_of(run))]
    if not kept:
        return base, []
    lines = [f"{run.origin}: is the candidate itself, and is left out of the baseline." for run in base.runs if run not in kept]
    return replace(base, runs=tuple(kept)), lines


def studies(arms: Iterable[Arm]) -> list[str]:
    return list(dict.fromkeys(name for arm in arms for run in arm.runs for name in run.studies))
