"""One effect over many runs: the contributing runs, the pooled estimate, and its verdict.

A run is the unit, with the effect and standard error of `compare`. Runs are pooled if the tweak
set's settings, the workload's parameters and device, and the metric agree. Only `--by=device` pools
devices.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from analysis.arms import distinct, no_copies
from analysis.compare import CompareOptions, compare
from analysis.labels import Machines, identity_of
from analysis.stats.effect import holm
from analysis.terms import AppliedKeys, Cell, Comparison, Metric, Refused, Run
from analysis.wording import counted
from control.names import first_few, undigested
from control.t_test import ALPHA, detectable_errors

from .random_effects import (
    FEWEST_GROUPS,
    FEWEST_RUNS,
    PooledEstimate,
    estimate,
    is_grouped,
    means_without_each,
)

if TYPE_CHECKING:
    from analysis.terms import Effect

Word = Literal[
    "helps everywhere measured",
    "helps on average",
    "harms everywhere measured",
    "harms on average",
    "no difference",
    "can't tell yet",
    "too few runs",
]
OPPOSITE = "another day may show nothing, or the opposite."
# `{run}` is another run or, if all runs are of one machine, another run on it.
REASONS: Mapping[Word, str] = {
    "helps everywhere measured": "{run} would also show more than the margin.",
    "harms everywhere measured": "{run} would also show a loss beyond the margin.",
    "no difference": "{run} would also stay within the margin.",
    "helps on average": OPPOSITE,
    "harms on average": OPPOSITE,
}
MOST_MORE = 1_000  # runs: more are impractical
NAMED = 3
DAY = slice(10)
DEVICE = "device"  # the workload's device: every contribution has its own


@dataclass(frozen=True, slots=True)
class Contribution:
    """The effect of a tweak set under a workload in one run; `columns`: facts about the run."""

    run: Run
    comparison: Comparison
    effect: Effect
    columns: Mapping[str, str]

    @property
    def gain(self) -> float:
        return math.log1p(self.effect.gain)

    @property
    def error(self) -> float:
        return self.effect.log_se

    @property
    def day(self) -> str:
        return self.run.started_utc[DAY]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The pooled effect of a tweak set under a workload.

    kind: distinguishes effects of one name with different settings
    margin: the widest that a run declared; `no difference` uses the narrowest
    over, without: the estimate over the runs, None below three, and the mean without each run
    p_adjusted: Holm, over all effects of the runs, whichever of them are shown
    by: the column by which runs are grouped; empty if they are not
    word, reason: the verdict, and the sentence that justifies it
    more_runs: further runs, each on another day, that would settle an undecided effect
    """

    workload: str
    tweakset: str
    kind: str
    metric: Metric
    margin: float
    contributions: tuple[Contribution, ...]
    machines: int
    over: PooledEstimate | None = None
    p_adjusted: float | None = None
    without: tuple[float, ...] = ()
    by: str = ""
    word: Word = "too few runs"
    reason: str = ""
    more_runs: int | None = None

    @property
    def name(self) -> str:
        return f"{self.tweakset} ({self.kind})" if self.kind else self.tweakset

    @property
    def remark(self) -> str:
        """Return what all runs have in common, so that they show nothing beyond it."""
        days = {each.day for each in self.contributions}
        one_day = len(days) == 1 and "" not in days
        parts = ["one machine"] * (self.machines == 1) + ["one day"] * one_day
        return f" ({', '.join(parts)})" if parts else ""

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


def effects(run: Run) -> list[Comparison]:
    """Compare inside a run, without the details that pooling does not need."""
    return compare(run, options=CompareOptions(details=False))


def gather(
    runs: Iterable[Run],
    tweaksets: Sequence[str] = (),
    workloads: Sequence[str] = (),
    by: str = "",
    compared: Callable[[Run], Sequence[Comparison]] = effects,
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
    for run in kept:
        columns = {name: column(run) for name, column in COLUMNS.items()}
        cells: dict[str, list[Cell]] = defaultdict(list)
        for cell in run.cells:
            cells[cell.workload].append(cell)
        devices = {workload: _devices(own) for workload, own in cells.items()}
        for comparison in compared(run):
            asks = run.tweaksets[comparison.tweakset]
            if comparison.guard or not (asks.requested or asks.scripts):
                continue
            if reason := _why_silent(comparison):
                silent[_name(run), comparison.workload, reason].append(comparison.tweakset)
            elif comparison.primary:
                key = comparison.workload, comparison.tweakset
                conditions = _conditions(
                    run, comparison, cells[comparison.workload], devices[comparison.workload]
                )
                own = {**columns, DEVICE: conditions.device}
                if by == DEVICE:
                    conditions = conditions._replace(device="")
                pooled[key][conditions].append(
                    Contribution(run, comparison, comparison.primary, own)
                )

    def chosen(workload: str, tweakset: str) -> bool:
        return (not workloads or workload in workloads) and (not tweaksets or tweakset in tweaksets)

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
    notes += _not_grouped(evidence)
    return MetaAnalysis(
        kept, evidence, tuple(notes), family=sum(one.over is not None for one in every)
    )


Chosen = Callable[[str, str], bool]  # of a workload and a tweak set


def _omitted(silent: Mapping[tuple[str, str, str], Sequence[str]], chosen: Chosen) -> Iterator[str]:
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (name, workload, reason), tweaksets in silent.items():
        names = ", ".join(tweakset for tweakset in tweaksets if chosen(workload, tweakset))
        if names:
            places[names, reason].append(f"{name} ({undigested(workload)})")
    for (names, reason), where in places.items():
        yield f"omitted from {', '.join(where)}: {names}: {reason}"


def _name(run: Run) -> str:
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
    return Conditions(comparison.primary_metric, tuple(sorted(settings.items())), own, device)


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
            what = f"{DEVICE} ({first_few(devices, NAMED)}; --by={DEVICE} pools them)"
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
        machines = machines_of([each.run for each in contributions])
        metric, own = conditions.metric, tuple(contributions)
        yield Evidence(workload, tweakset, kind, metric, margin, own, machines, by=by)


def judged(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Estimate each effect, adjust for their number, and add the verdicts."""
    estimated = [_estimated(one) for one in evidence]
    ps = [one.over.p for one in estimated if one.over]
    adjusted = iter(holm(ps))
    return [
        _worded(replace(one, p_adjusted=next(adjusted)), len(ps)) if one.over else _worded(one, 0)
        for one in estimated
    ]


def _estimated(one: Evidence) -> Evidence:
    if len(one.contributions) < FEWEST_RUNS:
        return one
    gains = [each.gain for each in one.contributions]
    errors = [each.error for each in one.contributions]
    over = estimate(gains, errors, groups_of(one))
    return replace(one, over=over, without=tuple(means_without_each(gains, errors)))


def groups_of(one: Evidence) -> list[str]:
    return [each.columns[one.by] for each in one.contributions] if one.by else []


def _worded(one: Evidence, family: int) -> Evidence:
    over, runs = one.over, len(one.contributions)
    if over is None:
        needed = FEWEST_RUNS - runs
        reason = (
            f"{counted(runs, 'run')}: estimating variation between days takes {FEWEST_RUNS}; "
            f"{needed} more would suffice."
        )
        return replace(one, reason=reason)
    edge = math.log1p(one.margin)
    inside = math.log1p(min(each.comparison.margin for each in one.contributions))
    shown = one.p_adjusted is not None and one.p_adjusted < ALPHA
    word: Word = "can't tell yet"
    if over.next_low > edge and shown:
        word = "helps everywhere measured"
    elif over.next_high < -edge and shown:
        word = "harms everywhere measured"
    elif -inside < over.next_low and over.next_high < inside:
        word = "no difference"
    elif shown:
        word = "helps on average" if over.mean > 0 else "harms on average"
    more = more_runs(one, family) if word == "can't tell yet" else None
    undecided = (
        f"about {counted(more, 'more run')}, each on another day, would suffice."
        if more
        else f"more than {MOST_MORE:,} runs would be needed."
    )
    another = "another run" if one.machines > 1 else "another run on this machine"
    reason = REASONS.get(word, undecided).format(run=another)
    return replace(one, word=word, more_runs=more, reason=reason)


def more_runs(one: Evidence, family: int) -> int | None:
    """Return how many more such runs would show the mean, 4 times in 5; None if impractical.

    For an effect below the margin, return the number that would find the margin.
    """
    over = one.over
    assert over is not None  # noqa: S101 there are enough runs
    runs = len(one.contributions)
    each = over.tau**2 + sum(each.error**2 for each in one.contributions) / runs
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
    names = [f"{one.name} in {undigested(one.workload)}" for one in single]
    where = "" if everywhere else f" to {', '.join(names)}"
    by = single[0].by
    applied = "only pools the devices" if by == DEVICE else f"was not applied{where}"
    needed = f"{FEWEST_GROUPS} groups with two runs or more each"
    why = f"estimating the variation between groups needs {needed}, so each run counts singly"
    yield f"--by={by} {applied}: {why}"


def machines_of(runs: Sequence[Run]) -> int:
    """Return the number of machines, told apart by host name and hardware.

    In a container, the host name is the container's and is ignored. The memory may differ a little
    (`SAME_MEMORY`), because each kernel reserves its own share.
    """
    known = Machines()
    return len({(_host(run), known.number_of(run.machine)) for run in runs})


def _host(run: Run) -> str:
    return "" if run.machine.get("container") else str(run.machine.get("hostname") or "")


def values_of(runs: Sequence[Run], column: str) -> Counter[str]:
    """Count the runs' values in a column."""
    return Counter(COLUMNS[column](run) for run in runs)
