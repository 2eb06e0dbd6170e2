"""The part of a description where each arm was run once: what is in each run, and how two of them differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from analysis.printing import columns, duration, measures, tiny, unit_of
from analysis.stats.levels import naive_alarms
from analysis.wording import number, percent, probability, unsigned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from .sampled import Sampled
    from .words import Described, Inside, TwoRuns

SHARED = 0.01  # a small intraclass correlation, as an example
SHOWN = ("p5", "p25", "p75", "p95", "p99")
RATES = (
    "mean of rates",
    "the mean of samples/s over steps is too high by so much; throughput is samples / total time, and steps that overlap have none.",
)
LEGEND = (
    ("±", "95 % interval of this run's own mean, from 20 batch means; another run of the same may lie elsewhere."),
    RATES,
    ("lag-1", "correlation of neighbouring steps; 'worth' is how many independent steps they amount to (Geyer)."),
    ("warm-up", "steps at the start that are better left out (MSER-5)."),
    ("halves", "p of 'the first half is like the second': small where the run changed under way."),
    ("HL shift", "the median of all differences between steps (Hodges-Lehmann), with its interval."),
)


def parts(one: Described) -> Iterator[RenderableType]:
    """Write one workload, one cell an arm."""
    scale, unit = unit_of(cell.mean_s for cell in one.cells)
    yield Text(f"{one.workload}: step time, {unit}", "bold")
    yield columns(
        ["tweak set", "steps", "mean", "median [95 %]", *SHOWN, "CV"],
        ([cell.tweakset, str(cell.steps), *_times(cell, scale)] for cell in one.cells),
    )
    yield Text("")
    yield columns(
        [
            "\ntweak set",
            "\nsamples/s",
            "mean of\nrates",
            "\nlag-1",
            "steps\nworth",
            "warm-up\nsteps",
            "halves\nKS p",
            "\nMW p",
            "\nWelch p",
        ],
        ([cell.tweakset, *_habits(cell)] for cell in one.cells),
    )
    yield from beside([(cell.tweakset, cell.sampled) for cell in one.cells])
    if one.pairs:
        yield from _pairs(one, scale, unit)


def _times(cell: Inside, scale: float) -> list[str]:
    mean, half = measures(cell.mean_s * scale, (cell.mean_half_width_s or 0.0) * scale)
    median, low, high = measures(cell.median_s * scale, cell.median_low_s * scale, cell.median_high_s * scale)
    quantiles = [measures(cell.mean_s * scale, cell.quantiles_s[name] * scale)[1] for name in SHOWN]
    return [mean if cell.mean_half_width_s is None else f"{mean} ± {half}", f"{median} [{low}, {high}]", *quantiles, f"{cell.cv:.2f}"]


def _habits(cell: Inside) -> list[str]:
    return [
        *rates([cell]),
        f"{cell.lag_1:.3f}",
        f"{cell.effective_steps:.0f}",
        str(cell.warmup_steps),
        probability(cell.halves.ks_p),
        probability(cell.halves.mann_whitney_p),
        probability(cell.halves.welch_p),
    ]


def stalled(cell: Inside) -> Iterator[str]:
    """Say where a run stood still, and what it is without these steps."""
    rest = cell.without
    if rest is None:
        return
    scale, unit = unit_of([cell.mean_s])
    where = "; ".join(
        f"steps {one.first} to {one.first + one.steps - 1} took {duration(one.took)}, {one.times:.0f} times the median each"
        for one in cell.stalls
    )
    mean, without = measures(cell.mean_s * scale, rest.mean_s * scale)
    yield (
        f"{cell.cell}: {where}. With and without: mean {mean} and {without} {unit} ({percent(rest.mean_s / cell.mean_s - 1)}), samples/s"
        f" {rates([cell])[0]} and {rates([rest])[0]}, CV {cell.cv:.2f} and {rest.cv:.2f}, lag-1"
        f" {cell.lag_1:.2f} and {rest.lag_1:.2f}, steps worth {cell.effective_steps:.0f} and {rest.effective_steps:.0f}."
    )


def rates(cells: Sequence[Inside]) -> list[str]:
    """Write the throughput over all of some cells, and by how much a mean of rates overstates it."""
    known = [
        (cell.steps * cell.mean_s, cell.throughput_samples_per_s, cell.mean_of_rates_per_s)
        for cell in cells
        if cell.throughput_samples_per_s is not None and cell.mean_of_rates_per_s is not None
    ]
    if len(known) < len(cells):
        return ["none", "none"]
    throughput = sum(time_s * rate for time_s, rate, _ in known) / sum(time_s for time_s, _, _ in known)
    return [f"{throughput:.4g}", percent(sum(rate for _, _, rate in known) / len(known) / throughput - 1)]


def beside(rows: Sequence[tuple[str, Sampled]]) -> Iterator[RenderableType]:
    """Write what was sampled beside the cells of each arm; nothing where nothing was."""
    written = [
        [
            name,
            _given(one.gpu_util_mean_percent, "{:.1f} %"),
            _given(one.gpu_full_share, "{:.1%}").replace("%", " %"),
            _given(one.gpu_power_mean_w, "{:.1f} W"),
            _given(one.energy_j_per_sample, "{:.2f} J"),
            _given(one.gpu_warm_c, "{:.0f} °C"),
            "none" if one.gpu_warmup_s is None else duration(one.gpu_warmup_s),
            _given(one.scheduled_steps, "{:,.0f}"),
        ]
        for name, one in rows
    ]
    if all(value == "none" for row in written for value in row[1:]):
        return
    heads = (
        "\ntweak set",
        "GPU\nin use",
        "at\n100 %",
        "GPU\npower",
        "energy\na sample",
        "settles\nat",
        "warm\nafter",
        "steps planned\nby learning rate",
    )
    yield Text("")
    yield columns(heads, written)


def _given(value: float | None, form: str) -> str:
    return "none" if value is None else form.format(value)


def _pairs(one: Described, scale: float, unit: str) -> Iterator[RenderableType]:
    yield Text("")
    yield Text(f"Do runs differ? Steps taken for replicates say that they do, not why. Against {one.baseline}, {unit}:", "bold")
    yield columns(
        ["\ntweak set", "difference of\nmeans", "Welch\n[95 %]", "\np", "block bootstrap\n[95 %]"],
        ([pair.tweakset, *_means(pair, scale)] for pair in one.pairs),
    )
    yield Text("")
    yield columns(
        ["\ntweak set", "\nHL shift", "\n[95 %]", "Mann-Whitney\np", "longer steps\nin pairs", "Kolmogorov-Smirnov\nD", "\np"],
        ([pair.tweakset, *_shapes(pair, scale)] for pair in one.pairs),
    )
    yield Text("")
    names = list(one.pairs[0].quantile_changes)
    yield columns(
        ["change in %", *names], ([pair.tweakset, *(number(pair.quantile_changes[name]) for name in names)] for pair in one.pairs)
    )
    yield Text("")
    yield from (Text(line) for line in _in_words(one))


def _means(pair: TwoRuns, scale: float) -> list[str]:
    difference, low, high = _signed(scale, pair.welch.difference, pair.welch.low, pair.welch.high)
    block_low, block_high = _signed(scale, pair.bootstrap_low_s, pair.bootstrap_high_s)
    return [difference, f"[{low}, {high}]", probability(pair.welch.p), f"[{block_low}, {block_high}]"]


def _shapes(pair: TwoRuns, scale: float) -> list[str]:
    shift, low, high = _signed(scale, pair.shift.estimate, pair.shift.low, pair.shift.high)
    return [shift, f"[{low}, {high}]", tiny(pair.ranks.p), f"{pair.ranks.a12:.0%}".replace("%", " %"), f"{pair.ks.d:.3f}", tiny(pair.ks.p)]


def _signed(scale: float, *times_s: float) -> list[str]:
    return [f"{value * scale:+.4f}" for value in times_s]


def _in_words(one: Described) -> Iterator[str]:
    if one.omnibus is not None and len(one.cells) > 2:
        means = f"ANOVA F {one.omnibus.f:.3f}, p {tiny(one.omnibus.f_p)}"
        ranks = f"Kruskal-Wallis H {one.omnibus.h:.2f}, p {tiny(one.omnibus.h_p)}"
        yield f"All {len(one.cells)} runs: by their means {means}; by ranks {ranks}."
    changed = [cell.tweakset for cell in one.cells if cell.halves.ks_p < 0.05]
    if changed:
        verb = "differs from itself" if len(changed) == 1 else "each differ from themselves"
        yield f"{', '.join(changed)} {verb}, first half against second (KS p < 0.05): a small p between two runs says little more."
    detectable, steps = max(cell.detectable for cell in one.cells), min(cell.steps for cell in one.cells)
    yield (
        f"The scatter of their steps alone hides differences of means below {unsigned(detectable)} (80 % power). If steps of one run "
        f"share only {unsigned(SHARED)} of their variance, such a test over {steps} of them calls {unsigned(naive_alarms(steps, SHARED))} "
        "of equals different."
    )
