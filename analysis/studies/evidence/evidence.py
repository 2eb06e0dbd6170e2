"""One effect over many runs: the contributing runs, the pooled estimate, and its verdict.

A run is the unit, with the effect and standard error of `compare`. Runs of one day on one machine
are one unit together: they show nothing about another day. Runs are pooled if the tweak set's
settings, the workload's parameters and device, and the metric agree. Only `--by=device` pools
devices.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from analysis.arms import distinct, no_copies
from analysis.compare import compare
from analysis.labels import Machines, identity_of
from analysis.stats.effect import holm
from analysis.terms import AppliedKeys, Cell, Comparison, Metric, Refused, Run
from control.names import first_few, undigested
from control.t_test import ALPHA, detectable_errors

from .random_effects import (
    FEWEST_GROUPS,
    FEWEST_RUNS,
    PooledEstimate,
    estimate,
    is_grouped,
    means_without_each,
    p_of_groups,
)

if TYPE_CHECKING:
    from analysis.terms import Effect

MOST_MORE = 1_000  # runs: more are impractical
FEWEST_TO_EXPLAIN = 10  # days; with fewer, a column explains differences by chance
NAMED = 3
DAY = slice(10)
DEVICE = "device"  # the workload's device: every contribution has its own


class MachineKey(NamedTuple):
    """A machine by host name and hardware.

    In a container, the host name is the container's and is ignored. The memory may differ a little
    (`SAME_MEMORY`), because each kernel reserves its own share.
    """

    host: str
    number: int


@dataclass(frozen=True, slots=True)
class Contribution:
    """The effect of a tweak set under a workload in one run.

    machine: equal for runs of one machine, and with the day what the run is pooled by
    columns: facts about the run
    """

    run: Run
    comparison: Comparison
    effect: Effect
    machine: MachineKey
    columns: Mapping[str, str]

    @property
    def gain(self) -> float:
        return math.log1p(self.effect.gain)

    @property
    def error(self) -> float:
        return self.effect.log_se

    @property
    def day(self) -> str:
        return self.columns["day"]

    @property
    def machine_day(self) -> tuple[object, ...]:
        """Return the day, the machine and its place in a cluster; a container has no host name."""
        return self.day or self.run.origin, self.machine, self.columns["place"]


class MachineDay(NamedTuple):
    """The runs of one day on one machine, and their common effect with its standard error."""

    runs: Sequence[Contribution]
    gain: float
    error: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """The pooled effect of a tweak set under a workload.

    kind: distinguishes effects of one name with different settings
    margin: the widest that a run declared; `no difference` uses the narrowest
    days: the contributions by day and machine, which are estimated over
    over, without: the estimate, None below three days, and the mean without each day
    p_adjusted: Holm, over all effects of the runs, whichever of them are shown
    by: the column by which runs are grouped; empty if they are not
    word: the verdict (`answer.TONES` lists them)
    differs_by: a column whose groups of runs differ, if that is the verdict
    more_runs: further runs, each on another day, that would settle an undecided effect
    """

    workload: str
    tweakset: str
    kind: str
    metric: Metric
    margin: float
    contributions: tuple[Contribution, ...]
    days: tuple[MachineDay, ...]
    over: PooledEstimate | None = None
    p_adjusted: float | None = None
    without: tuple[float, ...] = ()
    by: str = ""
    word: str = "too few runs"
    differs_by: str = ""
    more_runs: int | None = None

    @property
    def name(self) -> str:
        return f"{self.tweakset} ({self.kind})" if self.kind else self.tweakset

    @property
    def remark(self) -> str:
        """Return what all runs have in common, so that they show nothing beyond it."""
        dates = {each.day for each in self.contributions}
        one_day = len(dates) == 1 and "" not in dates
        parts = ["one machine"] * (self.machines == 1) + ["one day"] * one_day
        return f" ({', '.join(parts)})" if parts else ""

    @property
    def machines(self) -> int:
        return len({each.machine for each in self.contributions})

    @property
    def helped(self) -> int:
        """Return the number of runs in which it helped by more than the margin."""
        return sum(one.gain > math.log1p(self.margin) for one in self.contributions)


@dataclass(frozen=True, slots=True)
class MetaAnalysis:
    """The pooled effects of all runs; `notes` list what was omitted or merged, and why.

    family: the number of effects with an estimate, shown or not, for which p is adjusted
    """

    runs: tuple[Run, ...]
    machines: int
    evidence: tuple[Evidence, ...]
    notes: tuple[str, ...]
    family: int


COLUMNS: Mapping[str, Callable[[Run], str]] = {
    "day": lambda run: run.started_utc[DAY],
    "machine": lambda run: f"{run.machine.get('hostname', '')} {identity_of(run.machine)}".strip(),
    "kernel": lambda run: str(run.machine.get("kernel_release") or ""),
    "cpu": lambda run: str(run.machine.get("cpu_model") or ""),
    "torch": lambda run: next(
        (str(cell.facts["torch"]) for cell in run.cells if "torch" in cell.facts), ""
    ),
    "place": lambda run: ", ".join(run.place.values()),
    DEVICE: lambda run: _devices(run.cells),
}


EXPLAINING = ("cpu", "kernel", "torch", DEVICE, "machine")  # the general ones first


def gather(
    runs: Iterable[Run],
    tweaksets: Sequence[str] = (),
    workloads: Sequence[str] = (),
    by: str = "",
    compared: Callable[[Run], Sequence[Comparison]] = compare,
) -> MetaAnalysis:
    """Compare each run internally, and pool equal effects; `compared` returns known comparisons.

    `tweaksets` and `workloads` choose the effects to show; the choice changes no p and no verdict.

    Raises: Refused, if one run is a copy of another, or no run has an effect that was chosen.
    """
    notes: list[str] = []
    kept = tuple(sorted(distinct(runs, notes), key=lambda run: run.started_utc))
    no_copies(kept)
    silent: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    pooled: dict[tuple[str, str], dict[Conditions, list[Contribution]]] = defaultdict(
        lambda: defaultdict(list)
    )
    used: dict[str, Run] = {}
    machines, keys = Machines(), set[MachineKey]()
    for run in kept:
        contrasts = [one for one in compared(run) if _changes_something(run, one)]
        if not contrasts:
            continue
        host = "" if run.machine.get("container") else str(run.machine.get("hostname") or "")
        machine = MachineKey(host, machines.number_of(run.machine))
        keys.add(machine)
        used[run.origin] = run
        for one in contrasts:
            if reason := _why_silent(one):
                silent[name_of(run), one.workload, reason].append(one.tweakset)
        for conditions, each in _contributions(run, contrasts, machine):
            one = each.comparison
            alike = conditions._replace(device="") if by == DEVICE else conditions
            pooled[one.workload, one.tweakset][alike].append(each)

    def chosen(workload: str, tweakset: str) -> bool:
        return (not workloads or workload in workloads) and (not tweaksets or tweakset in tweaksets)

    if strangers := [name_of(run) for run in kept if run.origin not in used]:
        notes.append(f"not counted, for lack of a tweak set: {first_few(strangers, NAMED)}")
    notes += _omitted(silent, chosen)
    shown = {key: kinds for key, kinds in pooled.items() if chosen(*key)}
    if not shown:
        raise Refused(
            f"None of the {len(kept)} runs has an effect that could be pooled. "
            f"{' '.join(notes)}".strip()
        )
    notes += _pooled_apart(shown)
    every = judged([one for key, kinds in pooled.items() for one in _of_kinds(key, kinds, by)])
    evidence = tuple(one for one in every if chosen(one.workload, one.tweakset))
    notes += [*_same_day(evidence), *_not_grouped(evidence)]
    return MetaAnalysis(
        tuple(used.values()),
        len(keys),
        evidence,
        tuple(notes),
        family=sum(one.over is not None for one in every),
    )


def _contributions(
    run: Run, contrasts: Iterable[Comparison], machine: MachineKey
) -> Iterator[tuple[Conditions, Contribution]]:
    columns = {name: column(run) for name, column in COLUMNS.items()}
    cells: dict[str, list[Cell]] = defaultdict(list)
    for cell in run.cells:
        cells[cell.workload].append(cell)
    devices = {workload: _devices(own) for workload, own in cells.items()}
    for one in contrasts:
        if one.primary and not _why_silent(one):
            conditions = _conditions(run, one, cells[one.workload], devices[one.workload])
            own = {**columns, DEVICE: conditions.device}
            yield conditions, Contribution(run, one, one.primary, machine, own)


def _changes_something(run: Run, comparison: Comparison) -> bool:
    asks = run.tweaksets[comparison.tweakset]
    return not comparison.guard and bool(asks.requested or asks.scripts)


Chosen = Callable[[str, str], bool]  # of a workload and a tweak set


def _omitted(silent: Mapping[tuple[str, str, str], Sequence[str]], chosen: Chosen) -> Iterator[str]:
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (name, workload, reason), tweaksets in silent.items():
        names = ", ".join(tweakset for tweakset in tweaksets if chosen(workload, tweakset))
        if names:
            places[names, reason].append(f"{name} ({undigested(workload)})")
    for (names, reason), where in places.items():
        yield f"omitted from {', '.join(where)}: {names}: {reason}"


def name_of(run: Run) -> str:
    return run.origin.rpartition("/")[2].removesuffix(".xz").removesuffix(".json")


def _why_silent(comparison: Comparison) -> str:
    if comparison.verdict == "not comparable" or comparison.primary is None:
        return comparison.reason.rstrip(".")
    return (
        "its settings were already in force there, so it changes nothing"
        if comparison.untouched
        else ""
    )


def _devices(cells: Iterable[Cell]) -> str:
    return ", ".join(sorted({str(cell.facts[DEVICE]) for cell in cells if cell.facts.get(DEVICE)}))


class Conditions(NamedTuple):
    """The conditions that pooled runs share; settings and parameters by name."""

    metric: Metric
    settings: tuple[tuple[str, str], ...]
    parameters: tuple[tuple[str, str], ...]
    device: str


def _conditions(
    run: Run, comparison: Comparison, of_workload: Sequence[Cell], device: str
) -> Conditions:
    tweakset = run.tweaksets[comparison.tweakset]
    settings = {setting.key: setting.value for setting in tweakset.requested}
    if tweakset.scripts:  # their settings are known from the changes in each cell
        cells = [cell for cell in of_workload if cell.tweakset == comparison.tweakset]
        moved = [set(_moved(cell.applied)) for cell in cells if cell.applied]
        settings |= dict(set.intersection(*moved)) if moved else {}
    params = (
        run.workloads[comparison.workload].params if comparison.workload in run.workloads else {}
    )
    steps = frozenset({"steps", "warmup_steps"})  # the length of a cell is part of the method
    own = tuple(sorted((name, str(value)) for name, value in params.items() if name not in steps))
    asked = tuple(sorted(settings.items()))
    return Conditions(comparison.primary_metric, asked, own, device)


def _moved(applied: AppliedKeys) -> Iterator[tuple[str, str]]:
    for path, values in applied.side_effects.items():
        if isinstance(values, list | tuple) and values and values[-1] is not None:
            yield path, str(values[-1])


def _pooled_apart(pooled: Mapping[tuple[str, str], Iterable[Conditions]]) -> Iterator[str]:
    rows: dict[str, list[str]] = defaultdict(list)
    for (workload, tweakset), kinds in pooled.items():
        values = zip(Conditions._fields, map(set, zip(*kinds, strict=True)), strict=True)
        differing = {name: own for name, own in values if len(own) > 1}
        if not differing:
            continue
        what = first_few([*differing], len(differing))
        if [*differing] == [DEVICE]:
            devices = sorted(name or "unknown" for name in differing[DEVICE])
            what = f"{DEVICE} ({first_few(devices, NAMED)}); grouping by {DEVICE} pools them"
        rows[what].append(f"{tweakset} under {undigested(workload)}")
    for what, names in rows.items():
        yield f"pooled separately because runs differ in {what}: {first_few(names, NAMED)}"


def _of_kinds(
    key: tuple[str, str], kinds: Mapping[Conditions, Sequence[Contribution]], by: str
) -> Iterator[Evidence]:
    workload, tweakset = key
    for number, (conditions, contributions) in enumerate(kinds.items(), 1):
        margin = max(one.comparison.margin for one in contributions)
        kind = ""
        if len(kinds) > 1:
            told_by_device = len({other.device for other in kinds}) == len(kinds)
            device = conditions.device or "unknown device"
            kind = device if told_by_device else f"kind {number}"
        together: dict[tuple[object, ...], list[Contribution]] = defaultdict(list)
        for each in contributions:
            together[each.machine_day, by == DEVICE and each.columns[DEVICE]].append(each)
        days = tuple(_pooled(runs) for runs in together.values())
        own = tuple(contributions)
        yield Evidence(workload, tweakset, kind, conditions.metric, margin, own, days, by=by)


def _pooled(runs: Sequence[Contribution]) -> MachineDay:
    """Pool the runs of one machine and day; if they differ by more than their errors, so wide."""
    if len(runs) == 1:
        return MachineDay(runs, runs[0].gain, runs[0].error)
    weights = [1 / each.error**2 for each in runs]
    gain = fmean([each.gain for each in runs], weights)
    variance = fmean([(each.gain - gain) ** 2 for each in runs], weights) / (len(runs) - 1)
    return MachineDay(runs, gain, math.sqrt(max(1 / math.fsum(weights), variance)))


def _same_day(evidence: Iterable[Evidence]) -> Iterator[str]:
    names = (
        ", ".join(name_of(each.run) for each in day.runs)
        for one in evidence
        for day in one.days
        if len(day.runs) > 1
    )
    yield from (f"counted as one, of one day and machine: {each}" for each in dict.fromkeys(names))


def judged(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Estimate each effect, adjust for their number, and add the verdicts."""
    estimated = [_estimated(one) for one in evidence]
    ps = [one.over.p for one in estimated if one.over]
    adjusted = iter(holm(ps))
    return [
        _worded(replace(one, p_adjusted=next(adjusted)), len(ps)) if one.over else one
        for one in estimated
    ]


def _estimated(one: Evidence) -> Evidence:
    if len(one.days) < FEWEST_RUNS:
        return one
    gains, errors = [day.gain for day in one.days], [day.error for day in one.days]
    over = estimate(gains, errors, groups_of(one))
    return replace(one, over=over, without=tuple(means_without_each(gains, errors)))


def groups_of(one: Evidence) -> list[str]:
    return [day.runs[-1].columns[one.by] for day in one.days] if one.by else []


def _worded(one: Evidence, family: int) -> Evidence:
    over = one.over
    assert over is not None  # noqa: S101 there are enough days
    edge = math.log1p(one.margin)
    inside = math.log1p(min(each.comparison.margin for each in one.contributions))
    shown = one.p_adjusted is not None and one.p_adjusted < ALPHA
    word = "can't tell yet"
    if over.next_low > edge and shown:
        word = "helps everywhere measured"
    elif over.next_high < -edge and shown:
        word = "harms everywhere measured"
    elif -inside < over.next_low and over.next_high < inside:
        word = "no difference"
    elif shown:
        word = "helps on average" if over.mean > 0 else "harms on average"
    settled = word == "no difference" or word.endswith("everywhere measured")
    differs_by = "" if settled else _explanation(one)
    word = "depends on the machine" if differs_by else word
    more = more_runs(one, family) if word == "can't tell yet" else None
    return replace(one, word=word, differs_by=differs_by, more_runs=more)


def _explanation(one: Evidence) -> str:
    """Return the column whose groups differ most, if days differ and there are enough of them."""
    if one.over is None or one.over.q_p >= ALPHA or len(one.days) < FEWEST_TO_EXPLAIN:
        return ""
    found = []
    for column in EXPLAINING:
        groups: dict[str, list[MachineDay]] = defaultdict(list)
        for day in one.days:
            groups[day.runs[-1].columns[column]].append(day)
        if len(groups) > 1 and min(map(len, groups.values())) >= FEWEST_RUNS:
            tau = one.over.tau
            weighed = [
                [(day.gain, 1 / (day.error**2 + tau**2)) for day in own] for own in groups.values()
            ]
            found.append((p_of_groups(weighed), column))
    p, column = min(found, key=itemgetter(0), default=(1.0, ""))
    return column if p * len(found) < ALPHA else ""


def more_runs(one: Evidence, family: int) -> int | None:
    """Return how many more such runs would show the mean, 4 times in 5; None if impractical.

    For an effect below the margin, return the number that would find the margin.
    """
    over = one.over
    assert over is not None  # noqa: S101 there are enough days
    runs = len(one.days)
    each = over.tau**2 + math.fsum(day.error**2 for day in one.days) / runs
    size = max(abs(over.mean), math.log1p(one.margin))
    alpha = ALPHA / max(1, family)
    enough = (
        count
        for count in range(runs + 1, MOST_MORE)
        if detectable_errors(count - 1, alpha) * math.sqrt(each / count) <= size
    )
    needed = next(enough, None)
    return None if needed is None else needed - runs


def _not_grouped(evidence: Sequence[Evidence]) -> Iterator[str]:
    single = [one for one in evidence if one.over and one.by and not is_grouped(groups_of(one))]
    if not single:
        return
    everywhere = len(single) == sum(one.over is not None for one in evidence)
    names = ", ".join(f"{one.name} in {undigested(one.workload)}" for one in single)
    where = "" if everywhere else f" to {names}"
    by = single[0].by
    applied = "only pools the devices" if by == DEVICE else f"was not applied{where}"
    needed = f"{FEWEST_GROUPS} groups with two days or more each"
    why = f"estimating the variation between groups needs {needed}, so each day counts singly"
    yield f"grouping by {by} {applied}: {why}"
