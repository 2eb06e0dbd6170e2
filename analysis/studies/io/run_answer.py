"""The answer of a saved run: what feeds most, then format × cache with what limits each, the proof of the cache, factors, tweak sets."""

from __future__ import annotations

import re
import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from analysis.answer import Answer, Column, Line, Section, Table, Word, bullets
from analysis.wording import digits, probability, size

from .configurations import BY_DEFAULT
from .factors import AGAIN, SETS, STOCK
from .identity import in_words, record, slept_in_words
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
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .configurations import Configuration, Mean
    from .effects import Analysis, Contrast
    from .study import Study

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


def answer(found: Study, *, brief: bool = False) -> Answer:
    """Say it, the table of configurations first; `brief` is that table and the tweak sets."""
    if not found.cells:
        return Answer("No run with epochs: nothing can be said.", warnings=left_out(found), data=record_of(found))
    blocks = len({one.run.block for one in found.cells if one.run.block is not None})
    title = f"{len(found.cells)} runs of {counted(len(found.caches), 'configuration')}{f' in {blocks} blocks' if blocks else ''}"
    sections = [_runs(found, brief=brief), *([] if brief else _details(found))]
    sections[1:1] = _tweak_table(found)
    return Answer(
        f"{title}{'; all: ' + found.alike if found.alike else ''}",
        bullets(findings(found)),
        sections,
        [] if brief else left_out(found),
        LEGEND,
        f"python -m analysis io {shlex.quote(found.origin)} --plot io/",
        record_of(found),
    )


def left_out(found: Study) -> list[str]:
    """Cells that could not be used; of those that differ in their numbers alone the reason is said once."""
    alike: dict[str, list[tuple[str, str]]] = {}
    for line in dict.fromkeys(found.refused):
        name, _, reason = line.removeprefix(f"{found.origin}: ").partition(" ")
        alike.setdefault(re.sub(r"\d+(\.\d+)?", "#", reason), []).append((name, reason))
    lines = []
    for each in alike.values():
        (first, reason), *rest = each
        more = f" {len(rest)} more for the same reason, with other figures (named in --json)." if rest else ""
        lines.append(f"left out: {first} {reason}{more}")
    return lines


def _runs(found: Study, *, brief: bool) -> Section:
    """Means over blocks with their intervals; a letter where there is no figure, with the reason below."""
    shown = [one for one in found.configurations if one.tweakset == STOCK]
    letters: dict[str, str] = {}
    tables = []
    for heads in (FIRST, {} if brief else SECOND):
        rows: list[list[object]] = []
        for one in shown:
            for why in (one.responses[name].missing for name in heads):
                if why:
                    letters.setdefault(why, letter(len(letters)))
            blocks = max((mean.runs for mean in one.responses.values()), default=0)
            rows.append([one.name, blocks, *(_mean(one, name, letters) for name in heads), *([_limit(one)] if heads is FIRST else [])])
        columns = [Column("configuration", left=True), Column("n", "blocks")]
        columns += [Column(head, name, _writer(name, letters)) for name, head in heads.items()]
        columns += [Column("limited by", left=True)] if heads is FIRST else []
        tables += [Table(columns, rows)] if heads else []
    lines = [Line(f"{why}.", f"({mark})", "quiet") for why, mark in letters.items()]
    lines += [Line(line, "", "open" if line.startswith("Doubt") else "quiet") for line in basis(found)]
    lines += [Line(f"{line}.", "", "quiet") for line in (slept_in_words(found.cells), in_words(found.cells)) if line and not brief]
    return Section("Untouched machine, mean over blocks [95 %]", [*tables, *lines])


def letter(at: int) -> str:
    """A mark for a sentence below a table."""
    return chr(ord("a") + at) if at < 26 else letter(at // 26 - 1) + letter(at % 26)


def _mean(one: Configuration, name: str, letters: Mapping[str, str]) -> object:
    mean = one.responses[name]
    return mean if mean.value is not None else Word(f"({letters[mean.missing]})" if mean.missing else "", "quiet")


def _writer(name: str, letters: Mapping[str, str]) -> Callable[[Mean], str]:
    scale = points_of(name)

    def write(one: Mean) -> str:
        value, *limits = [f"{scale * end:.1f}" if scale else digits(end, 3) for end in (one.value, one.low, one.high) if end is not None]
        interval = f" [{', '.join(limits)}]" if limits else ""
        return f"{value}{interval}{f' ({letters[one.missing]})' if one.missing else ''}"

    return write


def _limit(one: Configuration) -> str | None:
    """What most of the epoch goes to; none where a part of it is not known."""
    au, barrier = (one.responses[name].value for name in ("au_whole_percent", "barrier_share"))
    if au is None or barrier is None:
        return None
    shares = {"accelerator": au, "input": 100 - au - 100 * barrier, "barrier": 100 * barrier}
    largest = max(shares, key=lambda part: shares[part])
    return f"{largest} ({shares[largest]:.0f} %)"


def _details(found: Study) -> Iterator[Section]:
    percent: Callable[[float], str] = lambda value: f"{100 * value:.1f}"  # noqa: E731  # a column's writer
    rows = [
        [name, one.epochs, None if one.bytes is None else one.bytes / 2**20, *(getattr(one, part) for part in CACHE)]
        for name, one in found.caches.items()
    ]
    heads = [Column("configuration", left=True), Column("epochs", "epochs"), Column("MiB", "data_set_mib", lambda value: f"{value:.0f}")]
    heads += [Column(head, part, percent) for part, head in CACHE.items()]
    yield Section("Proof of the cache: parts of the data set, all epochs together", [Table(heads, rows)])
    for group in ([one for one in found.analyses if not one.sets], *([one] for one in found.analyses if one.sets)):
        if group:
            yield _variation(group)
    yield Section("What varies with what, in words", bullets(of_factors(found)))
    yield Section("Tweak sets, each by itself", bullets(of_tweak_sets(found)))


def _variation(found: Sequence[Analysis]) -> Section:
    """One table for all responses: the share of the variation, and p of the effect's own steps."""
    known = [one for one in found if one.findings]
    lines = [Line(f"{one.response}: nothing can be said: {one.refusal}", "", "open") for one in found if one.refusal]
    levels = [level for factor in found[0].observed.factors if factor.name == SETS for level in factor.levels]
    title = f"What varies with what: {', '.join(levels) or 'untouched machine'}"
    if not known:
        return Section(title, lines)
    columns = [Column("variation", left=True), Column("df")]
    for one in known:
        columns += [Column(f"{LABELS.get(one.response, one.response)} %", f"{one.response}_share", size), Column("p", "p", probability)]
    rows = []
    for name in dict.fromkeys(row.name for one in known for row in one.variation):
        same = [next((row for row in one.variation if row.name == name), None) for one in known]
        cells: list[object] = [name.replace(":", " × "), "/".join(dict.fromkeys(str(row.df) for row in same if row))]
        for one, row in zip(known, same, strict=True):
            p = {effect.factors: effect.p_adjusted for effect in one.findings}
            cells += [row.share, p.get(row.factors)] if row else [None, None]
        rows.append(cells)
    notes = dict.fromkeys(note for one in known for note in one.notes)
    return Section(title, [*lines, Table(columns, rows), *(Line(note, "note:", "quiet") for note in notes)])


def _tweak_table(found: Study) -> list[Section]:
    """Tweak sets against stock, cold beside warm, those that differ first; those that changed nothing and the copy of stock come last."""
    made, idle = found.contrasts, {one.tweakset for one in found.idle}
    treated = (*made.tweaks, *found.idle)
    if not treated:
        return []
    every = [one for one in (*treated, *made.again) if one.rest in {tweak.rest for tweak in treated}]
    states = [state for state in ("cold", "warm", "as_found", "") if any(one.cache == state for one in every)]
    order = {name: at for at, name in enumerate(found.caches)}
    every.sort(key=lambda one: (one.tweakset == AGAIN, one.tweakset in idle, order.get(one.configuration or BY_DEFAULT, len(order))))
    sets = dict.fromkeys(one.tweakset for one in every)
    places = dict.fromkeys((name, one.rest) for name in sets for one in every if one.tweakset == name)
    by_place = {(one.tweakset, one.rest, one.cache): one for one in every}
    differences = {(one.tweakset, one.rest): one for one in made.differences}
    rows = [
        [
            f"{name}{' (=)' if name in idle else ''}{' · ' + rest if rest else ''}",
            *(_known(by_place.get((name, rest, state))) for state in states),
            *([_known(differences.get((name, rest)))] if differences else []),
        ]
        for name, rest in places
    ]
    rows.sort(key=lambda row: not any(isinstance(one, _Gain) and one.shown for one in row))

    def write(one: _Gain) -> str:
        change = f"{amount(made.response, made.unit, one.value).replace(' %', '')} {ends(made.response, one.low, one.high)}"
        return f"{change}{'*' if one.shown else ''}"

    columns = [Column("tweak set", left=True), *(Column(state or "change", state or "change", write) for state in states)]
    columns += [Column("cold - warm", "cold_less_warm", write)] if differences else []
    return [Section("Tweak sets against stock: samples/s, %, block by block [95 %]", [Table(columns, rows)])]


class _Gain:
    """A contrast as a value with an interval."""

    def __init__(self, one: Contrast) -> None:
        self.value, self.low, self.high, self.shown = one.effect or 0.0, one.low or 0.0, one.high or 0.0, one.shown


def _known(one: Contrast | None) -> _Gain | None:
    return None if one is None or one.effect is None else _Gain(one)


def record_of(found: Study) -> dict[str, Any]:
    """All of it for programs: names and units are those of the terms; what is refused is null with its reason beside it."""
    return {
        "runs": [record(one) for one in found.cells],
        "origin": found.origin,
        "answer": findings(found),
        "stands_on": basis(found),
        "alike": found.alike,
        "configurations": [
            {
                "name": one.name,
                "tweakset": one.tweakset,
                "runs": [run.id for run in one.runs],
                "responses": {name: asdict(mean) for name, mean in one.responses.items()},
            }
            for one in found.configurations
        ],
        "caches": {name: asdict(one) for name, one in found.caches.items()},
        "analyses": [
            {
                "response": one.response,
                "unit": one.unit,
                "tweak_sets": one.sets,
                "scale": one.observed.scale,
                "factors": {factor.name: list(factor.levels) for factor in one.observed.factors},
                "variation": [{"name": row.name, "df": row.df, "ss": row.ss, "share": row.share} for row in one.variation],
                "findings": [{**asdict(effect), "shown": effect.shown} for effect in one.findings],
                "answers": answers(one),
                "refusal": one.refusal or None,
                "notes": list(one.notes),
            }
            for one in found.analyses
        ],
        "contrasts": asdict(found.contrasts),
        "changed_nothing": [asdict(one) for one in found.idle],
        "reversals": list(reversals([one for one in found.analyses if not one.sets])),
        "tweak_sets": [untouched(found.contrasts), *tweaks(found.contrasts)] if found.cells else [],
        "refused": list(found.refused),
    }
