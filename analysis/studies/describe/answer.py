"""A description as an answer. It says first what it is not: a verdict on a tweak."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from analysis.answer import Answer, Column, Line, Section, Table, bullets
from analysis.labels import headline, provenance
from analysis.stats.within import naive_alarms
from analysis.terms import Run
from analysis.verdict import ONE_RUN
from analysis.wording import duration, measures, number, percent, probability, tiny, unit_of, unsigned
from control.called import JUDGE
from control.names import undigested

from .describe import Described, Inside, Repeated, Sampled, averaged

ONCE = f"This describes runs and is no verdict on any tweak: {ONE_RUN}."
BLOCKS = "This describes the cells of a run and is no verdict on any tweak: `compare` pairs them by block and judges."
SHARED = 0.01  # a small intraclass correlation, as an example
SHOWN = ("p5", "p25", "p75", "p95", "p99")
LEGEND = {
    "±": "95 % interval: of a run's own mean from 20 batch means (another run of the same may lie elsewhere), of an arm's from its blocks.",
    "mean of rates": "the mean of samples/s over steps is too high by so much; throughput is samples / total time, and steps that overlap "
    "have none.",
    "lag-1": "correlation of neighbouring steps; 'worth' is how many independent steps they amount to (Geyer; of blocks the middle cell).",
    "warm-up": "steps at the start that are better left out (MSER-5).",
    "halves": "p of 'the first half is like the second': small where the run changed under way.",
    "HL shift": "the median of all differences between steps (Hodges-Lehmann), with its interval.",
    "steps ±": "the interval with steps taken for replicates: too narrow where cells differ, too wide where steps differ by design.",
    "ICC": "share of the variance that steps of one cell have in common; it makes the variance of a mean so many times larger.",
    "alarms": "how often a 5 % test over steps would call two equal arms different.",
    "F p": "p of 'cells of this arm do not differ beyond their steps'.",
    "ratio": "mean step time over the baseline's, not paired by block (Kalibera & Jones 2013); below 1 is faster.",
    "unsettled": "cells whose first half differs from their second (KS p < 0.05); one in twenty does by chance.",
}


def answer(result: Sequence[tuple[Run, Sequence[Described]]], refused: Sequence[str] = ()) -> Answer:
    described = [workload for _, workloads in result for workload in workloads]
    return Answer(
        title=headline([result[0][0]]) if len(result) == 1 else f"{len(result)} runs",
        findings=[Line(BLOCKS if any(one.repeated for one in described) else ONCE), *_most_shared(described)],
        sections=[section for run, workloads in result for section in _sections(run, workloads, alone=len(result) == 1)],
        warnings=[line for run, _ in result for line in run.warnings],
        legend=[*provenance([run for run, _ in result]), *LEGEND.items()],
        next=f"{JUDGE} compare {result[0][0].origin}" if len(result) == 1 and any(one.repeated for one in described) else "",
        data={"runs": [_data(run, workloads) for run, workloads in result]},
        rows=_flat(result),
        refused=refused,
    )


def _most_shared(described: Sequence[Described]) -> Iterator[Line]:
    arms = [(one.workload, arm) for one in described for arm in one.repeated]
    if arms:
        workload, arm = max(arms, key=lambda pair: pair[1].naive_alarms)
        yield Line(
            f"Steps mislead most under {undigested(workload)}, {arm.tweakset}: a 5 % test over them would call "
            f"{unsigned(arm.naive_alarms)} of equals different.",
            tone="strong",
        )


def _data(run: Run, workloads: Sequence[Described]) -> dict[str, object]:
    return {
        "run_id": run.run_id,
        "origin": run.origin,
        "warnings": list(run.warnings),
        "workloads": workloads,
    }


def _flat(result: Sequence[tuple[Run, Sequence[Described]]]) -> Table:
    names = [field.name for field in fields(Inside) if field.name not in {"quantiles_s", "halves", "sampled", "stalls", "without"}]
    beside = [field.name for field in fields(Sampled)]
    rows = [
        [run.run_id, workload.workload, *(getattr(cell, name) for name in names), *(getattr(cell.sampled, name) for name in beside)]
        for run, workloads in result
        for workload in workloads
        for cell in workload.cells
    ]
    return Table([Column(name) for name in ("run_id", "workload", *names, *beside)], rows)


def _sections(run: Run, workloads: Sequence[Described], *, alone: bool) -> Iterator[Section]:
    if not alone:
        yield Section(f"{run.origin}: {headline([run])}")
    for workload in workloads:
        if workload.cells:
            yield _of_blocks(workload) if workload.repeated else _of_runs(workload)
    notes = [Line(line, "stall:") for workload in workloads for cell in workload.cells for line in _stalled(cell)]
    notes += bullets([line for workload in workloads for line in workload.undescribed], "not described:")
    if notes:
        yield Section("", notes)


# Columns of a table: heads, and what stands below each, of a cell or an arm.
Columns = Mapping[str, Callable[[Any], object]]


def _grid(columns: Columns, rows: Iterable[object]) -> Table:
    return Table(
        [Column(head, left=at == 0) for at, head in enumerate(columns)], [[write(row) for write in columns.values()] for row in rows]
    )


def _times(scale: float) -> Columns:
    """Columns of a run's own step times, in the unit that `scale` makes of seconds."""

    def mean(cell: Inside) -> str:
        text, half = measures(cell.mean_s * scale, (cell.mean_half_width_s or 0.0) * scale)
        return text if cell.mean_half_width_s is None else f"{text} ± {half}"

    def median(cell: Inside) -> str:
        text, low, high = measures(cell.median_s * scale, cell.median_low_s * scale, cell.median_high_s * scale)
        return f"{text} [{low}, {high}]"

    def quantile(name: str) -> Callable[[Inside], str]:
        return lambda cell: measures(cell.mean_s * scale, cell.quantiles_s[name] * scale)[1]

    return {**NAME, "steps": lambda cell: cell.steps, "mean": mean, "median [95 %]": median} | {
        **{name: quantile(name) for name in SHOWN},
        "CV": lambda cell: f"{cell.cv:.2f}",
    }


def _levels(scale: float, baseline: str) -> Columns:
    def figures(arm: Repeated) -> tuple[str, ...]:
        return tuple(measures(arm.mean_s * scale, arm.half_width_s * scale, arm.naive_half_width_s * scale))

    def ratio(arm: Repeated) -> str:
        return "" if arm.ratio is None else f"{arm.ratio.ratio:.3f} [{arm.ratio.low:.3f}, {arm.ratio.high:.3f}]"

    return {
        **NAME,
        "mean\n[95 %]": lambda arm: " ± ".join(figures(arm)[:2]),
        "steps\n±": lambda arm: f"± {figures(arm)[2]}",
        "ICC": lambda arm: f"{arm.icc:.2f}",
        "variance\ntimes": lambda arm: f"{arm.design_effect:.1f}",
        "alarms": lambda arm: unsigned(arm.naive_alarms),
        "F p": lambda arm: "" if arm.between_p is None else tiny(arm.between_p),
        f"ratio to {baseline}\n[95 %]": ratio,
    }


NAME: Columns = {"tweak set": lambda row: row.tweakset}
OF_RUN: Columns = {
    **NAME,
    "samples/s": lambda cell: _rates([cell])[0],
    "mean of\nrates": lambda cell: _rates([cell])[1],
    "lag-1": lambda cell: f"{cell.lag_1:.3f}",
    "steps\nworth": lambda cell: f"{cell.effective_steps:.0f}",
    "warm-up\nsteps": lambda cell: str(cell.warmup_steps),
    "halves\nKS p": lambda cell: probability(cell.halves.ks_p),
    "MW p": lambda cell: probability(cell.halves.mann_whitney_p),
    "Welch p": lambda cell: probability(cell.halves.welch_p),
}
# Of an arm and its cells: by their middle one; the throughput over all of them.
OF_ARM: Columns = {
    "tweak set": lambda both: both[0].tweakset,
    "samples/s": lambda both: _rates(both[1])[0],
    "mean of\nrates": lambda both: _rates(both[1])[1],
    "lag-1": lambda both: f"{_middle(cell.lag_1 for cell in both[1]):.2f}",
    "steps\nworth": lambda both: f"{_middle(cell.effective_steps for cell in both[1]):.0f} of {both[0].steps}",
    "warm-up\nsteps": lambda both: f"{_middle(cell.warmup_steps for cell in both[1]):.0f}",
    "unsettled": lambda both: f"{both[0].unsettled} of {both[0].blocks}",
}


def _of_runs(described: Described) -> Section:
    scale, unit = unit_of(cell.mean_s for cell in described.cells)
    parts: list[Line | Table] = [
        _grid(_times(scale), described.cells),
        _grid(OF_RUN, described.cells),
        *_beside([(cell.tweakset, cell.sampled) for cell in described.cells]),
        *(_pairs(described, scale, unit) if described.pairs else ()),
    ]
    return Section(f"{undigested(described.workload)}: step time, {unit}", parts)


def _of_blocks(described: Described) -> Section:
    arms = described.repeated
    scale, unit = unit_of(arm.mean_s for arm in arms)
    own = {arm.tweakset: [cell for cell in described.cells if cell.tweakset == arm.tweakset] for arm in arms}
    parts: list[Line | Table] = [
        _grid(_levels(scale, described.baseline), arms),
        _grid(OF_ARM, [(arm, own[arm.tweakset]) for arm in arms]),
        *_beside([(name, averaged([cell.sampled for cell in cells])) for name, cells in own.items()]),
    ]
    if described.friedman is not None:
        tested = f"χ² {described.friedman.chi2:.1f}, p {probability(described.friedman.p)}"
        over = f"{described.friedman.blocks} blocks × {described.friedman.arms} arms"
        parts.append(Line(f"Do the arms differ at all, by their ranks of mean step time within blocks? Friedman over {over}: {tested}."))
    blocks, steps = _span(arm.blocks for arm in arms), _span(arm.steps for arm in arms)
    return Section(f"{undigested(described.workload)}: {blocks} blocks of {steps} steps, mean step time, {unit}", parts)


def _span(counts: Iterable[int]) -> str:
    return " to ".join(map(str, sorted({*(ordered := sorted(counts))[:1], *ordered[-1:]})))


def _middle(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def _stalled(cell: Inside) -> Iterator[str]:
    rest = cell.without
    if rest is None:
        return
    scale, unit = unit_of([cell.mean_s])
    where = "; ".join(
        f"steps {stall.first} to {stall.first + stall.steps - 1} took {duration(stall.took)}, {stall.times:.0f} times the median each"
        for stall in cell.stalls
    )
    mean, without = measures(cell.mean_s * scale, rest.mean_s * scale)
    yield (
        f"{cell.cell}: {where}. With and without: mean {mean} and {without} {unit} ({percent(rest.mean_s / cell.mean_s - 1)}), samples/s"
        f" {_rates([cell])[0]} and {_rates([rest])[0]}, CV {cell.cv:.2f} and {rest.cv:.2f}, lag-1"
        f" {cell.lag_1:.2f} and {rest.lag_1:.2f}, steps worth {cell.effective_steps:.0f} and {rest.effective_steps:.0f}."
    )


def _rates(cells: Sequence[Inside]) -> list[str]:
    known = [
        (cell.steps * cell.mean_s, cell.throughput_samples_per_s, cell.mean_of_rates_per_s)
        for cell in cells
        if cell.throughput_samples_per_s is not None and cell.mean_of_rates_per_s is not None
    ]
    if len(known) < len(cells):
        return ["none", "none"]
    throughput = sum(time_s * rate for time_s, rate, _ in known) / sum(time_s for time_s, _, _ in known)
    return [f"{throughput:.4g}", percent(sum(rate for _, _, rate in known) / len(known) / throughput - 1)]


def _beside(rows: Sequence[tuple[str, Sampled]]) -> Iterator[Table]:
    """What was sampled beside the steps, columns that have any value alone."""
    known = {field: parts for field, parts in BESIDE.items() if any(getattr(sampled, field) is not None for _, sampled in rows)}
    if known:
        columns = [Column("tweak set", left=True), *(Column(head, field, write) for field, (head, write) in known.items())]
        yield Table(columns, [[name, *(getattr(sampled, field) for field in known)] for name, sampled in rows])


BESIDE: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "gpu_util_mean_percent": ("GPU\nin use", "{:.1f} %".format),
    "gpu_full_share": ("at\n100 %", lambda share: f"{100 * share:.1f} %"),
    "gpu_power_mean_w": ("GPU\npower", "{:.1f} W".format),
    "energy_j_per_sample": ("energy\na sample", "{:.2f} J".format),
    "gpu_warm_c": ("settles\nat", "{:.0f} °C".format),
    "gpu_warmup_s": ("warm\nafter", duration),
    "scheduled_steps": ("steps planned\nby learning rate", "{:,.0f}".format),
}


def _pairs(described: Described, scale: float, unit: str) -> Iterator[Line | Table]:
    def signed(*times_s: float) -> str:
        return ", ".join(f"{value * scale:+.4f}" for value in times_s)

    means: Columns = {
        **NAME,
        "difference of\nmeans": lambda pair: signed(pair.welch.difference),
        "Welch\n[95 %]": lambda pair: f"[{signed(pair.welch.low, pair.welch.high)}]",
        "p": lambda pair: probability(pair.welch.p),
        "block bootstrap\n[95 %]": lambda pair: f"[{signed(pair.bootstrap_low_s, pair.bootstrap_high_s)}]",
    }
    shapes: Columns = {
        **NAME,
        "HL shift": lambda pair: signed(pair.shift.estimate),
        "[95 %]": lambda pair: f"[{signed(pair.shift.low, pair.shift.high)}]",
        "Mann-Whitney\np": lambda pair: tiny(pair.ranks.p),
        "longer steps\nin pairs": lambda pair: f"{pair.ranks.a12:.0%}".replace("%", " %"),
        "Kolmogorov-Smirnov\nD": lambda pair: f"{pair.ks.d:.3f}",
        "p": lambda pair: tiny(pair.ks.p),
    }
    names = list(described.pairs[0].quantile_changes)
    against = f"Against {described.baseline}, {unit}:"
    yield Line(f"Do runs differ? Steps taken for replicates say that they do, not why. {against}", tone="strong")
    yield _grid(means, described.pairs)
    yield _grid(shapes, described.pairs)
    changes = [[pair.tweakset, *(number(pair.quantile_changes[name]) for name in names)] for pair in described.pairs]
    yield Table([Column("change in %", left=True), *map(Column, names)], changes)
    yield from map(Line, _describe_tests(described))


def _describe_tests(described: Described) -> Iterator[str]:
    if described.omnibus is not None and len(described.cells) > 2:
        means = f"ANOVA F {described.omnibus.f:.3f}, p {tiny(described.omnibus.f_p)}"
        ranks = f"Kruskal-Wallis H {described.omnibus.h:.2f}, p {tiny(described.omnibus.h_p)}"
        yield f"All {len(described.cells)} runs: by their means {means}; by ranks {ranks}."
    changed = [cell.tweakset for cell in described.cells if cell.halves.ks_p < 0.05]
    if changed:
        verb = "differs from itself" if len(changed) == 1 else "each differ from themselves"
        yield f"{', '.join(changed)} {verb}, first half against second (KS p < 0.05): a small p between two runs says little more."
    detectable, steps = max(cell.detectable for cell in described.cells), min(cell.steps for cell in described.cells)
    yield (
        f"The scatter of their steps alone hides differences of means below {unsigned(detectable)} (80 % power). If steps of one run "
        f"share only {unsigned(SHARED)} of their variance, such a test over {steps} of them calls {unsigned(naive_alarms(steps, SHARED))} "
        "of equals different."
    )
