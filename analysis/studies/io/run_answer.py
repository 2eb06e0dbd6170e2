"""The answer of a saved run: what feeds most, then format × cache with what limits each, the proof of the cache, factors, tweak sets."""

from __future__ import annotations

import re
import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from analysis.answer import Answer, Column, Line, Section, Table, Word, bullets
from analysis.wording import digits, probability, size

from .configurations import BY_DEFAULT
from .effects import IoContrast
from .factors import AGAIN, SETS, STOCK
from .responses import in_words, record, slept_in_words
from .sentences import (
    LABELS,
    amount,
    answers,
    basis,
    counted,
    ends,
    findings,
    of_factors,
    of_tweak_sets,
    points_of,
    reversals,
    tweaks,
    untouched,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .configurations import Configuration, Mean
    from .effects import Analysis
    from .study import IoStudy

FIRST = {"samples_per_s_whole": "samples/s", "au_whole_percent": "AU whole %"}
SECOND = {
    "au_steady_percent": "AU steady %",
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
    """Say it, the table of configurations first; `brief` is that table and the tweak sets."""
    if not study.cells:
        return Answer("No run with epochs: nothing can be said.", warnings=left_out(study), data=record_of(study))
    blocks = len({cell.run.block for cell in study.cells if cell.run.block is not None})
    title = f"{len(study.cells)} runs of {counted(len(study.caches), 'configuration')}{f' in {blocks} blocks' if blocks else ''}"
    sections = [_runs(study, brief=brief), *([] if brief else _details(study))]
    sections[1:1] = _tweak_table(study)
    return Answer(
        f"{title}{'; all: ' + study.alike if study.alike else ''}",
        bullets(findings(study)),
        sections,
        [] if brief else left_out(study),
        LEGEND,
        f"python -m analysis io {shlex.quote(study.origin)} --plot io/",
        record_of(study),
    )


def left_out(study: IoStudy) -> list[str]:
    """Cells that could not be used; of those that differ in their numbers alone the reason is said once."""
    alike: dict[str, list[tuple[str, str]]] = {}
    for line in dict.fromkeys(study.refused):
        name, _, reason = line.removeprefix(f"{study.origin}: ").partition(" ")
        alike.setdefault(re.sub(r"\d+(\.\d+)?", "#", reason), []).append((name, reason))
    lines = []
    for each in alike.values():
        (first, reason), *rest = each
        more = f" {len(rest)} more for the same reason, with other figures (named in --json)." if rest else ""
        lines.append(f"left out: {first} {reason}{more}")
    return lines


def _runs(study: IoStudy, *, brief: bool) -> Section:
    """Means over blocks with their intervals; a letter where there is no figure, with the reason below."""
    shown = [configuration for configuration in study.configurations if configuration.tweakset == STOCK]
    marks = Marks()
    tables = []
    for heads in (FIRST, {} if brief else SECOND):
        rows: list[list[object]] = []
        for configuration in shown:
            means = [configuration.responses[name] for name in heads]
            words = [marks(mean.missing) if mean.missing else Word("", "quiet") for mean in means]
            blocks = max((mean.runs for mean in configuration.responses.values()), default=0)
            figures = [word if mean.value is None else mean for mean, word in zip(means, words, strict=True)]
            rows.append([configuration.name, blocks, *figures, *([_limit(configuration)] if heads is FIRST else [])])
        columns = [Column("configuration", left=True), Column("n", "blocks")]
        columns += [Column(head, name, _writer(name, marks)) for name, head in heads.items()]
        columns += [Column("limited by", left=True)] if heads is FIRST else []
        tables += [Table(columns, rows)] if heads else []
    lines = marks.lines()
    lines += [Line(line, "", "open" if line.startswith("Doubt") else "quiet") for line in basis(study)]
    lines += [Line(f"{line}.", "", "quiet") for line in (slept_in_words(study.cells), in_words(study.cells)) if line and not brief]
    return Section("Untouched machine, mean over blocks [95 %]", [*tables, *lines])


def letter(at: int) -> str:
    """A mark for a sentence below a table."""
    return chr(ord("a") + at) if at < 26 else letter(at // 26 - 1) + letter(at % 26)


class Marks:
    """Letters in a table, each with its sentence below it, given once."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}

    def __call__(self, sentence: str) -> Word:
        """Answer the letter of a sentence."""
        return Word(f"({self.given.setdefault(sentence, letter(len(self.given)))})", "quiet")

    def lines(self) -> list[Line]:
        """The sentences."""
        return [Line(f"{sentence}.", f"({mark})", "quiet") for sentence, mark in self.given.items()]


def _writer(name: str, marks: Marks) -> Callable[[Mean], str]:
    scale = points_of(name)

    def write(mean: Mean) -> str:
        value, *limits = [f"{scale * end:.1f}" if scale else digits(end, 3) for end in (mean.value, mean.low, mean.high) if end is not None]
        interval = f" [{', '.join(limits)}]" if limits else ""
        return f"{value}{interval}{f' {marks(mean.missing).text}' if mean.missing else ''}"

    return write


def _limit(configuration: Configuration) -> str | None:
    """What most of the epoch goes to; none where a part of it is not known."""
    au, barrier = (configuration.responses[name].value for name in ("au_whole_percent", "barrier_share"))
    if au is None or barrier is None:
        return None
    shares = {"accelerator": au, "input": 100 - au - 100 * barrier, "barrier": 100 * barrier}
    largest = max(shares, key=lambda part: shares[part])
    return f"{largest} ({shares[largest]:.0f} %)"


def _details(study: IoStudy) -> Iterator[Section]:
    percent: Callable[[float], str] = lambda value: f"{100 * value:.1f}"  # noqa: E731  # a column's writer
    rows = [
        [name, cache.epochs, None if cache.bytes is None else cache.bytes / 2**20, *(getattr(cache, part) for part in CACHE)]
        for name, cache in study.caches.items()
    ]
    heads = [Column("configuration", left=True), Column("epochs", "epochs"), Column("MiB", "data_set_mib", lambda value: f"{value:.0f}")]
    heads += [Column(head, part, percent) for part, head in CACHE.items()]
    yield Section("Proof of the cache: parts of the data set, all epochs together", [Table(heads, rows)])
    for group in ([analyse for analyse in study.analyses if not analyse.sets], *([analyse] for analyse in study.analyses if analyse.sets)):
        if group:
            yield _variation(group)
    yield Section("What varies with what, in words", bullets(of_factors(study)))
    yield Section("Tweak sets, each by itself", bullets(of_tweak_sets(study)))


def _variation(result: Sequence[Analysis]) -> Section:
    """One table for all responses: the share of the variation, and p of the effect's own steps."""
    known = [analysis for analysis in result if analysis.findings]
    lines = [Line(f"{analysis.response}: nothing can be said: {analysis.refusal}", "", "open") for analysis in result if analysis.refusal]
    levels = [level for factor in result[0].observed.factors if factor.name == SETS for level in factor.levels]
    title = f"What varies with what: {', '.join(levels) or 'untouched machine'}"
    if not known:
        return Section(title, lines)
    columns = [Column("variation", left=True), Column("df")]
    for analysis in known:
        columns += [
            Column(f"{LABELS.get(analysis.response, analysis.response)} %", f"{analysis.response}_share", size),
            Column("p", "p", probability),
        ]
    rows = []
    for name in dict.fromkeys(row.name for analysis in known for row in analysis.variation):
        same = [next((row for row in analysis.variation if row.name == name), None) for analysis in known]
        cells: list[object] = [name.replace(":", " × "), "/".join(dict.fromkeys(str(row.df) for row in same if row))]
        for analysis, row in zip(known, same, strict=True):
            p = {effect.factors: effect.p_adjusted for effect in analysis.findings}
            cells += [row.share, p.get(row.factors)] if row else [None, None]
        rows.append(cells)
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
    order = {name: at for at, name in enumerate(study.caches)}
    every.sort(
        key=lambda contrast: (
            contrast.tweakset == AGAIN,
            contrast.tweakset in idle,
            order.get(contrast.configuration or BY_DEFAULT, len(order)),
        )
    )
    sets = dict.fromkeys(contrast.tweakset for contrast in every)
    places = dict.fromkeys((name, contrast.rest) for name in sets for contrast in every if contrast.tweakset == name)
    by_place = {(contrast.tweakset, contrast.rest, contrast.cache): contrast for contrast in every}
    differences = {(difference.tweakset, difference.rest): difference for difference in made.differences}
    rows = [
        [
            f"{name}{' (=)' if name in idle else ''}{' · ' + rest if rest else ''}",
            *(_known(by_place.get((name, rest, state))) for state in states),
            *([_known(differences.get((name, rest)))] if differences else []),
        ]
        for name, rest in places
    ]
    rows.sort(key=lambda row: not any(isinstance(gain, IoContrast) and gain.shown for gain in row))

    def write(gain: IoContrast) -> str:
        change = f"{amount(made.response, made.unit, gain.value or 0.0).replace(' %', '')} {ends(made.response, gain.low, gain.high)}"
        return f"{change}{'*' if gain.shown else ''}"

    columns = [Column("tweak set", left=True), *(Column(state or "change", state or "change", write) for state in states)]
    columns += [Column("cold - warm", "cold_less_warm", write)] if differences else []
    return [Section("Tweak sets against stock: samples/s, %, block by block [95 %]", [Table(columns, rows)])]


def _known(contrast: IoContrast | None) -> IoContrast | None:
    return None if contrast is None or contrast.effect is None else contrast


def record_of(study: IoStudy) -> dict[str, Any]:
    """All of it for programs; what is refused is null with its reason beside it."""
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
                "response": analyse.response,
                "unit": analyse.unit,
                "tweak_sets": analyse.sets,
                "scale": analyse.observed.scale,
                "factors": {factor.name: list(factor.levels) for factor in analyse.observed.factors},
                "variation": [{"name": row.name, "df": row.df, "ss": row.ss, "share": row.share} for row in analyse.variation],
                "findings": [{**asdict(effect), "shown": effect.shown} for effect in analyse.findings],
                "answers": answers(analyse),
                "refusal": analyse.refusal or None,
                "notes": list(analyse.notes),
            }
            for analyse in study.analyses
        ],
        "contrasts": asdict(study.contrasts),
        "changed_nothing": [asdict(contrast) for contrast in study.idle],
        "reversals": list(reversals([analyse for analyse in study.analyses if not analyse.sets])),
        "tweak_sets": [untouched(study.contrasts), *tweaks(study.contrasts)] if study.cells else [],
        "refused": list(study.refused),
    }
