"""The answer of a saved run: what feeds most, then format × cache with what limits each, the proof of the cache, factors, tweak sets."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from analysis.answer import Answer, Column, Line, Section, Table, Word, bullets, grouped, ours
from analysis.terms import AGAIN, STOCK
from analysis.wording import counted, digits, probability, size

from .effects import Analysis, IoContrast
from .formulas import RATE, STEADY, WHOLE
from .responses import describe_identity, describe_oversleep, record
from .sentences import (
    LABELS,
    Marks,
    amount,
    answers,
    basis,
    findings,
    limits,
    of_factors,
    points_of,
    reversals,
)
from .study import BY_DEFAULT, Configuration, IoStudy

if TYPE_CHECKING:
    from analysis.stats.estimate import Estimate

FIRST = {RATE: "samples/s", WHOLE: "AU whole %"}
SECOND = {
    STEADY: "AU steady %",
    "mb_per_s_read": "MiB/s read",
    "first_step_share": "first batch %",
    "barrier_share": "barrier +\nreaders' end %",
}
CACHE = {
    "before_low": "cached before,\nfrom %",
    "before_high": "to %",
    "after": "after %",
    "asked": "asked\nfor %",
    "fetched": "fetched %",
    "device": "device %",
}
LEGEND = (
    ("n", "blocks of the untouched machine: stock and its copy in one block are one value. Tweak sets stand below."),
    ("[ ]", "95 %, by Student's t over blocks. The mean of rates is geometric, of AU and shares arithmetic, as in sentences and pictures."),
    ("AU", "% of an epoch that is computed: the whole epoch, or steady, as DLIO has it, with the first step left out."),
    ("limited by", "the largest part of the epoch: computing (accelerator), waiting for input, or neither (barrier, readers' end)."),
    ("first batch", "part of the epoch until the first batch is there. Barrier + readers' end: neither load nor computation."),
    ("cached", "part of the data set in memory when an epoch began and when it ended, under all tweak sets: none may change it."),
    ("asked for", "what its readers read; fetched: what of that came from a device; device: what the whole machine read meanwhile."),
    ("share", "of the variation, a description: it pools all combinations, as if they scattered alike, and nothing is named by it."),
    ("p", "of an effect's own steps, each on its differences from block to block (paired t): the smallest, after Holm over both."),
    ("both", "these steps, and the effects of a response. In words an interval is 95 % for all steps of its effect together."),
    ("what these leave", "factors in threes and more, which are not tested."),
    ("*", "differs from stock after Holm's adjustment. (=) changed nothing here: a second A/A. Figures: % of stock."),
    ("cold - warm", "on a warm cache no disk is read: what a setting of reading seems to do there is chance (a negative control)."),
)


def answer(study: IoStudy, *, brief: bool = False) -> Answer:
    """Return the answer, the table of configurations first; `brief` is that table and the tweak sets."""
    if not study.cells:
        return Answer("No run with epochs: nothing can be said.", warnings=left_out(study), data=record_of(study))
    blocks = len({cell.run.block for cell in study.cells if cell.run.block is not None})
    what = f"{len(study.cells)} runs of {counted(len(study.caches), 'configuration')}{f' in {blocks} blocks' if blocks else ''}"
    title, *others = [*findings(study), f"{what}{'; all: ' + study.alike if study.alike else ''}."]
    return Answer(
        title,
        [*bullets(others[:-1]), *(Line(line, tone="quiet") for line in others[-1:])],
        [_runs(study, brief=brief), *_tweak_table(study), *([] if brief or not blocks else _details(study))],
        [] if brief else [*left_out(study), *_notes(study)],
        LEGEND,
        ours("io", study.origin, "--plot", "io/"),
        record_of(study),
    )


def _notes(study: IoStudy) -> list[str]:
    """What is to be known of how single runs were read."""
    notes = [(cell.run.id, f"{note}.") for cell in study.cells for note in cell.run.notes]
    return grouped(notes, len(study.cells))


def left_out(study: IoStudy) -> list[str]:
    """Name cells that could not be used; of those that differ in their numbers alone the reason is given once."""
    alike: dict[str, list[str]] = defaultdict(list)
    for line in dict.fromkeys(study.refused):
        cell = line.removeprefix(f"{study.origin}: ")
        alike[re.sub(r"\d+(\.\d+)?", "#", cell.partition(" ")[2])].append(cell)
    more = " {} more for the same reason, with other figures (named in --json)."
    return [f"left out: {cells[0]}{more.format(len(cells) - 1) if len(cells) > 1 else ''}" for cells in alike.values()]


def _runs(study: IoStudy, *, brief: bool) -> Section:
    """Means over blocks with their intervals; a letter where there is no figure, with the reason below."""
    marks = Marks()
    tables = []
    for heads in (FIRST,) if brief else (FIRST, SECOND):
        rows: list[list[object]] = []
        for configuration in (one for one in study.configurations if one.tweakset == STOCK):
            means = [configuration.responses[name] for name in heads]
            blocks = max((mean.n for mean in configuration.responses.values()), default=0)
            words = [marks(mean.missing) if mean.missing else Word("", "quiet") for mean in means]
            figures = [word if mean.value is None else mean for mean, word in zip(means, words, strict=True)]
            rows.append([configuration.name, blocks, *figures, *([_limit(configuration)] if heads is FIRST else [])])
        columns = [Column("configuration", left=True), Column("n", "blocks")]
        columns += [Column(head, name, _writer(name, marks)) for name, head in heads.items()]
        columns += [Column("limited by", left=True)] if heads is FIRST else []
        tables.append(Table(columns, rows))
    lines = marks.lines()
    lines += [Line(line, "", "open" if line.startswith("Doubt") else "quiet") for line in basis(study)]
    notes = [] if brief else [describe_oversleep(study.cells), describe_identity(study.cells)]
    lines += [Line(f"{line}.", "", "quiet") for line in notes if line]
    return Section("Untouched machine, mean over blocks [95 %]", [*tables, *lines])


def _writer(name: str, marks: Marks) -> Callable[[Estimate], str]:
    scale = points_of(name)

    def write(mean: Estimate) -> str:
        value, *ends = [f"{scale * end:.1f}" if scale else digits(end, 3) for end in (mean.value, mean.low, mean.high) if end is not None]
        interval = f" [{', '.join(ends)}]" if ends else ""
        return f"{value}{interval}{f' {marks(mean.missing).text}' if mean.missing else ''}"

    return write


def _limit(configuration: Configuration) -> str | None:
    """Return what most of the epoch goes to; None where a part of it is not known."""
    au, barrier = (configuration.responses[name].value for name in (WHOLE, "barrier_share"))
    if au is None or barrier is None:
        return None
    shares = {"accelerator": au, "input": 100 - au - 100 * barrier, "barrier": 100 * barrier}
    largest = max(shares, key=lambda part: shares[part])
    return f"{largest} ({shares[largest]:.0f} %)"


def _details(study: IoStudy) -> Iterator[Section]:
    rows = [
        [name, cache.epochs, None if cache.bytes is None else cache.bytes / 2**20, *(getattr(cache, part) for part in CACHE)]
        for name, cache in study.caches.items()
    ]
    heads = [Column("configuration", left=True), Column("epochs", "epochs"), Column("MiB", "data_set_mib", "{:.0f}".format)]
    heads += [Column(head, part, lambda value: f"{100 * value:.1f}") for part, head in CACHE.items()]
    yield Section("Proof of the cache: parts of the data set, all epochs together", [Table(heads, rows)])
    yield _variation(study.analyses)
    if words := of_factors(study):
        yield Section("What varies with what, in words", bullets(words))


def _variation(result: Sequence[Analysis]) -> Section:
    """Make one table for all responses: the share of the variation, and p of the effect's own steps."""
    known = [analysis for analysis in result if analysis.findings]
    lines = [Line(f"{analysis.response}: nothing can be said: {analysis.refusal}", "", "open") for analysis in result if analysis.refusal]
    title = "What varies with what: untouched machine"
    if not known:
        return Section(title, lines)
    columns = [Column("variation", left=True), Column("df")]
    rows = []
    for name in dict.fromkeys(row.name for analysis in known for row in analysis.variation):
        sources = [next((row for row in analysis.variation if row.name == name), None) for analysis in known]
        cells: list[object] = [name.replace(":", " × "), "/".join(dict.fromkeys(str(row.df) for row in sources if row))]
        for analysis, row in zip(known, sources, strict=True):
            p = {effect.factors: effect.p_adjusted for effect in analysis.findings}
            cells += [row.share, p.get(row.factors)] if row else [None, None]
        rows.append(cells)
    for analysis in known:
        head = LABELS.get(analysis.response, analysis.response)
        columns += [Column(f"{head} %", f"{analysis.response}_share", size), Column("p", "p", probability)]
    notes = dict.fromkeys(note for analysis in known for note in analysis.notes)
    return Section(title, [*lines, Table(columns, rows), *(Line(note, "note:", "quiet") for note in notes)])


def _tweak_table(study: IoStudy) -> list[Section]:
    """Tweak sets against stock, cold beside warm, those that differ first; those that changed nothing and the copy last."""
    made, idle = study.contrasts, {contrast.tweakset for contrast in study.idle}
    treated = (*made.tweaks, *study.idle)
    if not treated:
        return []
    every = [contrast for contrast in (*treated, *made.again) if contrast.rest in {tweak.rest for tweak in treated}]
    states = [state for state in ("cold", "warm", "as_found", "") if any(contrast.cache == state for contrast in every)]
    order = list(study.caches)

    def place(contrast: IoContrast) -> tuple[bool, bool, int]:
        name = contrast.configuration or BY_DEFAULT
        return contrast.tweakset == AGAIN, contrast.tweakset in idle, order.index(name) if name in order else len(order)

    every.sort(key=place)
    sets = list(dict.fromkeys(contrast.tweakset for contrast in every))
    places = sorted(dict.fromkeys((contrast.tweakset, contrast.rest) for contrast in every), key=lambda one: sets.index(one[0]))
    figures = {(one.tweakset, one.rest, one.cache): one for one in every if one.value is not None}
    figures |= {(one.tweakset, one.rest, "cold - warm"): one for one in made.differences if one.value is not None}
    heads = [*states, *(["cold - warm"] if made.differences else [])]
    rows = [
        [f"{name}{' (=)' if name in idle else ''}{f' · {rest}' if rest else ''}", *(figures.get((name, rest, head)) for head in heads)]
        for name, rest in places
    ]
    rows.sort(key=lambda row: not any(isinstance(cell, IoContrast) and cell.shown for cell in row))

    def write(contrast: IoContrast) -> str:
        change = amount(made.response, made.unit, contrast.value or 0.0).replace(" %", "")
        return f"{change} {limits(made.response, contrast)}{'*' if contrast.shown else ''}"

    names = {"cold - warm": "cold_less_warm", "": "change"}
    columns = [Column("tweak set", left=True), *(Column(head or "change", names.get(head, head), write) for head in heads)]
    return [Section("Tweak sets against stock: samples/s, %, block by block [95 %]", [Table(columns, rows)])]


def record_of(study: IoStudy) -> dict[str, Any]:
    """Return all of it for programs; what is refused is null with its reason beside it."""
    return {
        "runs": [record(cell) for cell in study.cells],
        "origin": study.origin,
        "answer": findings(study),
        "stands_on": basis(study),
        "alike": study.alike,
        "configurations": [
            {
                "name": configuration.name,
                "tweakset": configuration.tweakset,
                "runs": [run.id for run in configuration.runs],
                "responses": {name: asdict(mean) for name, mean in configuration.responses.items()},
            }
            for configuration in study.configurations
        ],
        "caches": {name: asdict(cache) for name, cache in study.caches.items()},
        "analyses": [
            {
                "response": analysis.response,
                "unit": analysis.unit,
                "scale": analysis.layout.scale,
                "factors": {factor.name: list(factor.levels) for factor in analysis.layout.factors},
                "variation": [{"name": row.name, "df": row.df, "ss": row.ss, "share": row.share} for row in analysis.variation],
                "findings": [{**asdict(effect), "shown": effect.shown} for effect in analysis.findings],
                "answers": answers(analysis),
                "refusal": analysis.refusal or None,
                "notes": list(analysis.notes),
            }
            for analysis in study.analyses
        ],
        "contrasts": study.contrasts,
        "changed_nothing": study.idle,
        "reversals": list(reversals(study.analyses)),
        "refused": list(study.refused),
    }
