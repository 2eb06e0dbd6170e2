"""The table a run ends with: for each workload and tweak set the effect, its interval and one word, in at most 100 columns.

Every number is a gain: + is faster in both columns, whichever way the metric underneath runs. What a row cannot say in its width
stands in a numbered line below.
"""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from .checks import warnings_of
from .disturbance import disturbances
from .plain import one_line
from .printing import WIDTH, hanging, in_lines, on_page, unit_of
from .switched.inside import outlasts
from .unseen import unseen
from .verdict import without_guards
from .wording import blocks_of, number, place_of, probability, size, unsigned

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TextIO

    from rich.console import RenderableType

    from .terms import Comparison, Effect, Metric, Run

TOGETHER = 2  # more workloads than this with one row each share a table
HEADLINES = 3  # runs named one by one
LONGEST = 300  # of a sentence that quotes a reason
SHORT = {"holm": "Holm", "hochberg": "Hochb", "bonferroni": "Bonf", "bh": "BH", "by": "BY"}
NAME_WIDTH = 25  # longer names fold
EFFECT_WIDTH = len("+12.3 [-10.0, 14.6]")
STYLES = {"improved": "bold green", "regressed": "bold red", "equivalent": "green", "inconclusive": "yellow", "not comparable": "dim"}
MACHINE = {"kernel_release": "Linux {}", "cpu_model": "{}", "cpu_count": "{} CPUs"}
LABELS = {
    "throughput_samples_per_s": ("throughput", "{} samples/s"),
    "throughput_tokens_per_s": ("token throughput", "{} tokens/s"),
    "step_time_p10_s": ("p10 step", "p10 step {}"),
    "step_time_q1_s": ("q1 step", "lower quartile of step time {}"),
    "step_time_min_s": ("min step", "shortest step {}"),
    "step_time_round_adjusted_s": ("step", "step {}"),
    "step_time_median_s": ("median step", "median step {}"),
    "step_time_mean_s": ("mean step", "mean step {}"),
    "cpu_s_per_step": ("CPU a step", "{} CPU s a step"),
    "au_whole_percent": ("AU, whole epoch", "AU {} %"),
    "au_steady_percent": ("AU, steady", "AU without the first step {} %"),
    "samples_per_s_whole": ("whole epoch", "{} samples/s over the whole epoch"),
    "mb_per_s_read": ("read", "{} MiB/s read"),
}


def wants_color(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to write colour: only to a terminal that can, and never where NO_COLOR is set (no-color.org)."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def render_table(comparisons: Sequence[Comparison], runs: Sequence[Run], width: int = WIDTH, *, color: bool = False) -> str:
    """Write comparisons as text, no line longer than `width`. `runs` are those they were made of, the baseline's first."""
    parts: list[RenderableType] = []
    footnotes = _Footnotes()
    names = row_names(comparisons)
    name_width = min(NAME_WIDTH, max(map(len, names.values()), default=0))
    if len(runs) == 1 and (nothing := unseen(comparisons, runs[0])):
        parts += [Text(one_line(nothing.sentence, LONGEST), "bold yellow" if color else ""), ""]
    parts.append(Text(headline(runs), "bold" if color else ""))
    disturbed = [one.sentence for run in runs for one in disturbances(run)]
    parts += [Text(line, "yellow" if color else "") for line in disturbed]
    for study in dict.fromkeys(one.study for one in comparisons):
        parts.append(Text(one_line(f"{study}: {next(run.studies[study].question for run in runs if study in run.studies)}")))
        rows = [one for one in comparisons if one.study == study]
        for title, group in _groups(rows, names):
            parts.append("")
            parts += _group(title, group, name_width, footnotes)
        parts.append("")
    if not comparisons:
        parts.append(Text("Nothing to compare: there is no tweak set beside the baseline."))
    warnings = dict.fromkeys(line for run in runs for line in warnings_of(run, comparisons) if line not in disturbed)
    footer = (
        hanging((f"({mark})", line) for mark, line in footnotes.lines()),
        hanging((("warning:", line) for line in warnings), "yellow"),
    )
    parts += [grid for grid in footer if grid.row_count]
    legend = hanging(_legend(comparisons), "dim", "dim")
    if legend.row_count:
        parts += ["", legend]
    return on_page(parts, width, color=color)


class _Footnotes:
    """Sentences in order of first use; the same sentence keeps its number."""

    def __init__(self) -> None:
        self.marks: dict[str, int] = {}

    def mark(self, sentences: Iterable[str]) -> str:
        return ",".join(str(self.marks.setdefault(sentence, len(self.marks) + 1)) for sentence in sentences)

    def lines(self) -> list[tuple[int, str]]:
        return [(number, sentence) for sentence, number in self.marks.items()]


def row_names(comparisons: Sequence[Comparison]) -> dict[int, str]:
    """Name each comparison in its table, by `id`: its tweak set, or its run where there are several, or both where both differ."""
    runs = {one.candidate_run for one in comparisons}
    stems = {run: Path(run).stem if len({Path(other).stem for other in runs}) == len(runs) else run for run in runs}
    sets = {one.tweakset for one in comparisons}
    if len(runs) < 2:
        return {id(one): one.tweakset for one in comparisons}
    return {id(one): stems[one.candidate_run] + (f":{one.tweakset}" if len(sets) > 1 else "") for one in comparisons}


def _groups(rows: Sequence[Comparison], names: Mapping[int, str]) -> list[tuple[str, dict[str, Comparison]]]:
    """Answer the tables of one study: a title and its rows. One a workload; where each has but one row, one for all."""
    workloads = list(dict.fromkeys(one.workload for one in rows))
    if len(workloads) == len(rows) > TOGETHER and len({one.primary_metric for one in rows}) == 1:
        files = {workload.rpartition("::")[0] for workload in workloads}  # pytest's names begin with their file
        common = f"{files.pop()}::" if len(files) == 1 else ""
        title = common.removesuffix("::") or f"{len(rows)} workloads"
        return [(title, {one.workload.removeprefix(common): one for one in rows})]
    return [(workload, {names[id(one)]: one for one in rows if one.workload == workload}) for workload in workloads]


def headline(runs: Sequence[Run]) -> str:
    """Name each run with how much of it was measured, and the machines they ran on."""
    lines = [_counts(run) for run in runs[:HEADLINES]]
    if len(runs) > HEADLINES:
        lines.append(f"… and {len(runs) - HEADLINES} runs more")
    machines = dict.fromkeys(_machine(run) for run in runs)
    return "\n".join([*lines, *list(machines)[:HEADLINES]])


def _counts(run: Run) -> str:
    measured = sum(cell.outcome == "measured" for cell in run.cells)
    if not run.replicated:
        return f"{run.origin}: {measured} of {len(run.cells)} measured, no replicates"
    planned = len(run.design.order) or len(run.cells)
    return f"Run {run.run_id}: {measured} of {planned} cells measured, {blocks_of(run)}, seed {run.design.seed}"


def _machine(run: Run) -> str:
    facts = [form.format(one_line(run.machine[name])) for name, form in MACHINE.items() if run.machine.get(name)]
    where = place_of(run)
    return (", ".join(facts) or "machine unknown") + (f"\n{where[0].upper()}{where[1:]}" if where else "")


def _group(title: str, named: Mapping[str, Comparison], name_width: int, footnotes: _Footnotes) -> list[RenderableType]:
    """Lay out one table: its title with the baseline's absolute values, and a row a comparison."""
    rows = list(named.values())
    primary = rows[0].primary_metric
    second = next((one.second.metric for one in rows if one.second is not None), None)
    # Throughput stands left in every table of a run, whichever of the two is the primary.
    metrics = sorted((metric for metric in (primary, second) if metric), key=lambda metric: not metric.name.startswith("throughput"))
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="")
    head = "tweak set" if len({one.workload for one in rows}) == 1 else "workload"
    shown = [_cells(name, one, metrics, footnotes) for name, one in named.items()]
    least = [len("1/1"), *(EFFECT_WIDTH for _ in metrics), 6, 4, len("not comparable")]
    taken = [max(width, *map(len, column)) + 1 for width, column in zip(least, list(zip(*shown, strict=True))[1:-1], strict=True)]
    see = max(len("see"), *(len(mark) for row in shown for mark in row[-1].split(",")))
    spare = WIDTH - sum(taken) - 1
    name_width = min(name_width, spare - see)
    see = max(see, spare - name_width)
    table.add_column(f"\n{head}", overflow="fold", min_width=name_width)
    table.add_column("\nn", justify="right", no_wrap=True)
    for metric in metrics:
        head = f"{label_of(metric)}{' *' if metric == primary else ''}\n+ % faster [95 %]"
        table.add_column(head, justify="right", no_wrap=True, min_width=EFFECT_WIDTH)
    table.add_column(f"{SHORT[rows[0].adjustment]}\np", justify="right", no_wrap=True, min_width=6)
    table.add_column("MDE\n%", justify="right", no_wrap=True, min_width=4)
    table.add_column("\nverdict", no_wrap=True, min_width=len("not comparable"))
    table.add_column("\nsee", no_wrap=True)
    for name, *figures, verdict, marks in shown:
        lines = textwrap.wrap(marks.replace(",", " "), see)  # a blank is as wide as the comma it stands for
        table.add_row(Text(name), *figures, Text(verdict, STYLES[verdict]), "\n".join(lines).replace(" ", ","))
    return [Text.assemble((in_lines(title), "bold"), f"   {_baseline(rows, metrics)}"), table]


def _cells(name: str, one: Comparison, metrics: Sequence[Metric], footnotes: _Footnotes) -> list[str]:
    """Write a row: name, units, gains, p, MDE, verdict, and the numbers of the sentences below the tables."""
    gains = {metric: _gain(one.second) for metric in metrics} | {one.primary_metric: _gain(one.primary) or _single(one)}
    p, mde = "" if one.p_adjusted is None else probability(one.p_adjusted), "" if one.mde is None else size(one.mde)
    sentences = [one.reason, *one.notes] if _needs_reason(one) else one.notes
    return [name, _units(one), *(gains[metric] for metric in metrics), p, mde, one.verdict, footnotes.mark(sentences)]


def _needs_reason(one: Comparison) -> bool:
    """Whether a row does not explain itself: no numbers to go by, or a 95 % interval that goes beyond what the 90 % one decided."""
    effect = one.primary
    if effect is None or one.verdict == "not comparable" or outlasts(one):
        return True
    return one.verdict == "equivalent" and (effect.high >= one.margin or effect.low <= 1 / (1 + one.margin) - 1)


def _baseline(rows: Sequence[Comparison], metrics: Sequence[Metric]) -> str:
    """Write what the gains are relative to, and its absolute value: a ratio without its base says nothing."""
    rows = without_guards(rows)
    values: dict[Metric, float] = {}
    for effect in (effect for one in rows for effect in (one.primary, one.second) if effect is not None):
        values.setdefault(effect.metric, effect.baseline)
    for one in rows:
        if one.observed_baseline is not None:
            values.setdefault(one.primary_metric, one.observed_baseline)
    shown = [absolute(metric, values[metric], rows[0].relative_to) for metric in metrics if metric in values]
    if len({(one.baseline, one.workload) for one in rows}) > 1:
        return f"each against its like in {rows[0].baseline_run}"
    where = "" if rows[0].baseline_run == rows[0].candidate_run else f" of {rows[0].baseline_run}"
    return f"{rows[0].baseline}{where}: {', '.join(shown)}" if shown else f"baseline {rows[0].baseline}{where}"


def label_of(metric: Metric | str) -> str:
    """A metric's name as tables have it: its own, where they have none."""
    name = metric if isinstance(metric, str) else metric.name
    return LABELS.get(name, (name, ""))[0]


def absolute(metric: Metric, value: float, control: str | None = None) -> str:
    """Write a metric's own value with its name and unit; with a control, the share of the control's."""
    name, form = LABELS.get(metric.name, (metric.name, f"{metric.name} {{}}"))
    if control:
        return f"{name} {value:.4g} of {control}'s"
    if not metric.name.endswith("_s") or metric.name.endswith("_per_s"):
        return form.format(f"{value:.4g}")
    scale, unit = unit_of([value])
    return form.format(f"{value * scale:.4g} {unit}")


def _units(one: Comparison) -> str:
    effect = one.primary
    if effect is not None and effect.design == "two-sample":
        return f"{effect.n_baseline}+{effect.n_candidate}"
    return "1+1" if one.observed is not None else f"{one.pairs}/{one.blocks}"


def _single(one: Comparison) -> str:
    return "" if one.observed is None else f"{number(one.observed)} (one run)"


def _gain(effect: Effect | None) -> str:
    return "" if effect is None else f"{number(effect.gain)} [{number(effect.low).lstrip('+')}, {number(effect.high).lstrip('+')}]"


def _legend(comparisons: Sequence[Comparison]) -> list[tuple[str, str]]:
    if not any(one.primary for one in comparisons):
        return []
    margins = ", ".join(dict.fromkeys(unsigned(one.margin) for one in comparisons))
    family = ", ".join(dict.fromkeys(str(one.family) for one in comparisons if one.family and not one.guard))
    name = SHORT[comparisons[0].adjustment]
    adjusted = f"; {name} p is adjusted for all the study's contrasts together ({family})" if family else ""
    seen: set[str] = {one.primary.design for one in comparisons if one.primary}
    seen |= {one.verdict for one in comparisons}
    seen |= {effect.metric.name for one in comparisons for effect in (one.primary, one.second) if effect is not None}
    paired = ", paired by block (n)" if seen & {"paired", "switched"} else ""
    said = {
        "+": f"is faster, - is slower, in both columns: % more or less work per second than the baseline{paired}.",
        "n: switched": "pairs of segments inside processes, or processes where there are five or more.",
        "n + m": "units of base and candidate where they share no blocks: cells of one run each, or whole runs.",
        "*": "the primary metric, declared before the run; the verdict stands on it.",
        "throughput": "samples / total time, stalls included: what the user got.",
        "step": "time of a step, cleared of what its round did to all tweak sets alike (docs/designs.md).",
        "p10 step": "speed at the 10th percentile of step time: what the kernel costs where nothing interferes.",
        "q1 step": "speed at the lower quartile of the time of a call.",
        "[ ]": f"95 % interval of this contrast alone{adjusted}.",
        "MDE": "the smallest gain or loss this run would have called with 80 % probability.",
        "equivalent": f"the 90 % interval lies inside the margin of {margins}.",
        "inconclusive": "neither a difference nor equivalence was shown: more blocks are needed. It does not mean 'no change'.",
    }
    only = {"n + m": "two-sample", "n: switched": "switched", "step": "step_time_round_adjusted_s"}
    only |= {"p10 step": "step_time_p10_s", "q1 step": "step_time_q1_s"}
    only |= {word: word for word in ("equivalent", "inconclusive")}
    return [(word, meaning) for word, meaning in said.items() if word not in only or only[word] in seen]
