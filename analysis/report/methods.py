"""Describe in brief how the runs of a page were laid out, and how they were judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from analysis.compare_answer import ADJUSTED, METRICS
from analysis.labels import label_of
from analysis.terms import Comparison, Run

CELL = (
    "A <em>cell</em> is one workload under one tweak set in one <em>block</em>, in a process of "
    "its own. "
    "Blocks are the replicates; the steps inside a cell are not."
)
ONCE = (
    "The file has no blocks: each configuration was run once. Such a run alone carries no verdict."
)
WHOLE = (
    "Whole cells: in each block the workloads come in random order, and within a workload its "
    "tweak sets, "
    "so that drift of the machine affects all alike."
)
IN_TURNS = (
    "Cells in turns: all tweak sets of a block are alive at once, one process each. Round by "
    "round, in random order, "
    "each takes a slice of steps under its own settings while the others are stopped, so that "
    "neighbours disturb all alike. "
    "Rounds inside a block are not replicates."
)
SWITCHED = (
    "Settings switched: one process alternates between the baseline and the tweak set, in pairs "
    "of segments. "
    "The effect of a setting at program start is not seen."
)
PAIRED = (
    "Each tweak set is compared with the baseline block by block. The effect is the mean log "
    "ratio over the blocks; "
    "interval and p come from Student's t (blocks − 1 degrees of freedom)."
)
WITHIN = (
    "The effect is the mean log ratio over the pairs of segments, or over the processes where "
    "there are five or more; "
    "interval and p come from Student's t with these as units."
)
TWO_SAMPLES = (
    "Arms that share no blocks are compared as two samples of log values; "
    "the notes beside such a contrast say how drift was taken into account."
)
SHARED = (
    (
        "Steps in which the workload warms up are left out. Nothing is estimated from missing "
        "data; missing is missing."
    ),
    (
        "<em>Can't tell</em> is not “no change”: neither a difference nor its absence is claimed. "
        "What is claimed holds for this machine."
    ),
)
BY_EFFECT = {"paired": PAIRED, "switched": WITHIN, "two-sample": TWO_SAMPLES}


def methods(runs: Sequence[Run], comparisons: Sequence[Comparison]) -> Markup:
    """List the methods of these runs and of the comparisons inside them, and of no others."""
    sentences = dict.fromkeys([*_layouts(runs), *_judgements(comparisons), *SHARED])
    item = Markup("<li>{}</li>").format
    items = Markup("\n").join(item(Markup(text)) for text in sentences)  # noqa: S704  # our texts
    return Markup("<ul>\n{}\n</ul>").format(items)


def _layouts(runs: Sequence[Run]) -> Iterator[str]:
    if any(run.replicated for run in runs):
        yield CELL
    for run in runs:
        if not run.replicated:
            yield ONCE
        elif run.is_switched:
            yield SWITCHED
        else:
            yield IN_TURNS if any(cell.slices_s for cell in run.cells) else WHOLE


def _judgements(comparisons: Sequence[Comparison]) -> Iterator[str]:
    effects = [effect for one in comparisons for effect in (one.primary, one.second) if effect]
    designs = {effect.design for effect in effects}
    yield from (text for design, text in BY_EFFECT.items() if design in designs)
    if rules := dict.fromkeys(ADJUSTED[one.adjustment] for one in comparisons if one.primary):
        yield f"p is adjusted ({', '.join(rules)}) for all comparisons of the study."
    if judged := dict.fromkeys(label_of(one.primary_metric) for one in comparisons if one.primary):
        yield f"Verdicts rest on the metric declared before the run: {', '.join(judged)}."
    names = {effect.metric.name for effect in effects}
    yield from (
        f"<em>{label_of(name)}</em>: {text}" for name, text in METRICS.items() if name in names
    )
