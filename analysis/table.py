"""The table a run ends with: for each workload and tweak set the effect, its interval and one word, in at most 100 columns.

Every number is a gain: + is faster in both columns, whichever way the metric underneath runs. What a row cannot say in its width
stands in a numbered line below.
"""

from __future__ import annotations

import os
from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .checks import warnings_of
from .wording import number, probability, size, unsigned

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TextIO

    from .terms import Comparison, Effect, Metric, Run

WIDTH = 100
NAME_WIDTH = 25  # longer names fold
EFFECT_WIDTH = len("+12.3 [-10.0, 14.6]")
STYLES = {"improved": "bold green", "regressed": "bold red", "equivalent": "green", "inconclusive": "yellow", "not comparable": "dim"}
MACHINE = {"kernel_release": "Linux {}", "cpu_model": "{}", "cpu_count": "{} CPUs"}
LABELS = {
    "throughput_samples_per_s": ("throughput", "{:.4g} samples/s"),
    "throughput_tokens_per_s": ("token throughput", "{:.4g} tokens/s"),
    "step_time_p10_s": ("p10 step", "p10 step {:.4g} s"),
    "step_time_median_s": ("median step", "median step {:.4g} s"),
    "step_time_mean_s": ("mean step", "mean step {:.4g} s"),
    "cpu_s_per_step": ("CPU a step", "{:.4g} CPU s a step"),
}


def wants_color(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to write colour: only to a terminal that can, and never where NO_COLOR is set (no-color.org)."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def render_table(comparisons: Sequence[Comparison], run: Run, width: int = WIDTH, *, color: bool = False) -> str:
    """Write the comparisons of one run as text, no line longer than `width`."""
    out = StringIO()
    console = Console(
        file=out,
        width=width,
        height=WIDTH,  # with both given, rich asks neither COLUMNS nor TERM
        color_system="standard" if color else None,
        force_terminal=color,
        no_color=not color,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )
    footnotes = _Footnotes()
    name_width = min(NAME_WIDTH, max((len(one.tweakset) for one in comparisons), default=0))
    console.print(Text(_headline(run), "bold" if color else ""))
    for study in dict.fromkeys(one.study for one in comparisons):
        console.print(Text(f"{study}: {run.studies[study].question}"))
        rows = [one for one in comparisons if one.study == study]
        for workload in dict.fromkeys(one.workload for one in rows):
            console.print()
            _print_workload(console, [one for one in rows if one.workload == workload], name_width, footnotes)
        console.print()
    if not comparisons:
        console.print(Text("Nothing to compare: no cell of a tweak set beside its baseline was over when the run ended."))
    for mark, line in footnotes.lines():
        console.print(_hanging(f"({mark})", line))
    warnings = warnings_of(run, comparisons)
    for line in dict.fromkeys(warnings):
        console.print(_hanging("warning:", line, "yellow"))
    legend = Table.grid(padding=(0, 1, 0, 0))
    legend.add_column(no_wrap=True)
    legend.add_column(overflow="fold")
    for word, meaning in _legend(comparisons):
        legend.add_row(Text(word, "dim"), Text(meaning, "dim"))
    if legend.row_count:
        console.print()
        console.print(legend)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).rstrip() + "\n"


class _Footnotes:
    """Sentences in order of first use; the same sentence keeps its number."""

    def __init__(self) -> None:
        self.marks: dict[str, int] = {}

    def mark(self, sentences: Iterable[str]) -> str:
        return ",".join(str(self.marks.setdefault(sentence, len(self.marks) + 1)) for sentence in sentences)

    def lines(self) -> list[tuple[int, str]]:
        return [(number, sentence) for sentence, number in self.marks.items()]


def _headline(run: Run) -> str:
    measured = sum(cell.outcome == "measured" for cell in run.cells)
    facts = [form.format(run.machine[name]) for name, form in MACHINE.items() if run.machine.get(name)]
    blocks = f"{run.design.blocks} block{'s' if run.design.blocks != 1 else ''}"
    counts = f"{measured} of {len(run.design.order) or len(run.cells)} cells measured, {blocks}, seed {run.design.seed}"
    return f"Run {run.run_id}: {counts}\n{', '.join(facts) or 'machine unknown'}"


def _print_workload(console: Console, rows: Sequence[Comparison], name_width: int, footnotes: _Footnotes) -> None:
    primary = rows[0].primary_metric
    second = next((one.second.metric for one in rows if one.second is not None), None)
    # Throughput stands left in every table of a run, whichever of the two is the primary.
    metrics = sorted((metric for metric in (primary, second) if metric), key=lambda metric: not metric.name.startswith("throughput"))
    console.print(Text.assemble((rows[0].workload, "bold"), f"   {_baseline(rows, metrics)}"))
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="")
    table.add_column("\ntweak set", overflow="fold", min_width=name_width)
    table.add_column("\nn", justify="right", no_wrap=True)
    for metric in metrics:
        head = f"{_label(metric)}{' *' if metric == primary else ''}\n+ % faster [95 %]"
        table.add_column(head, justify="right", no_wrap=True, min_width=EFFECT_WIDTH)
    table.add_column("Holm\np", justify="right", no_wrap=True, min_width=6)
    table.add_column("MDE\n%", justify="right", no_wrap=True, min_width=4)
    table.add_column("\nverdict", no_wrap=True, min_width=len("not comparable"))
    table.add_column("\nsee", overflow="fold")
    for one in rows:
        sentences = [one.reason, *one.notes] if one.verdict == "not comparable" else one.notes
        table.add_row(
            Text(one.tweakset),
            f"{one.pairs}/{one.blocks}",
            *(_gain(one.primary if metric == primary else one.second) for metric in metrics),
            "" if one.p_holm is None else probability(one.p_holm),
            "" if one.mde is None else size(one.mde),
            Text(one.verdict, STYLES[one.verdict]),
            footnotes.mark(sentences),
        )
    console.print(table)


def _baseline(rows: Sequence[Comparison], metrics: Sequence[Metric]) -> str:
    """Write what the gains are relative to, and its absolute value: a ratio without its base says nothing."""
    values: dict[Metric, float] = {}
    for effect in (effect for one in rows for effect in (one.primary, one.second) if effect is not None):
        values.setdefault(effect.metric, effect.baseline)
    shown = [LABELS.get(metric.name, ("", metric.name + " {:.4g}"))[1].format(values[metric]) for metric in metrics if metric in values]
    return f"{rows[0].baseline}: {', '.join(shown)}" if shown else f"baseline {rows[0].baseline}"


def _label(metric: Metric) -> str:
    return LABELS.get(metric.name, (metric.name, ""))[0]


def _gain(effect: Effect | None) -> str:
    return "" if effect is None else f"{number(effect.gain)} [{number(effect.low).lstrip('+')}, {number(effect.high).lstrip('+')}]"


def _hanging(head: str, line: str, style: str = "") -> Table:
    """A line with a mark before it, wrapped under itself."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(head, style), Text(line))
    return grid


def _legend(comparisons: Sequence[Comparison]) -> list[tuple[str, str]]:
    if not any(one.primary for one in comparisons):
        return []
    margins = ", ".join(dict.fromkeys(unsigned(one.margin) for one in comparisons))
    family = ", ".join(dict.fromkeys(str(one.family) for one in comparisons if one.family))
    return [
        ("+", "is faster, - is slower, in both columns: % more or less work per second than the baseline, paired by block (n)."),
        ("*", "the primary metric, declared before the run; the verdict stands on it."),
        ("throughput", "samples / total time, stalls included: what the user got."),
        ("p10 step", "speed at the 10th percentile of step time: what the kernel costs where nothing interferes."),
        ("[ ]", f"95 % interval of this contrast alone; Holm p is adjusted for all the study's contrasts together ({family})."),
        ("MDE", "the smallest gain or loss this run would have called with 80 % probability."),
        ("equivalent", f"the 90 % interval lies inside the margin of {margins}."),
        ("inconclusive", "neither a difference nor equivalence was shown: more blocks are needed. It does not mean 'no change'."),
    ]
