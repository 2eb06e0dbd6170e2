"""I/O runs as text of at most 100 columns: the answer, figures by configuration, proof of the cache, factors, tweak sets, the details."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import one_line
from analysis.printing import columns, hanging, on_page
from analysis.studies.keys.observed import AGAIN, SETS
from analysis.studies.keys.printable import printable
from analysis.wording import digits, probability, size

from .answer import answer
from .answer import head as stands_on
from .configurations import BY_DEFAULT
from .factors import STOCK
from .identity import in_words, slept_in_words
from .said import LABELS, of_factors, of_tweak_sets
from .sentences import amount, points_of, span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from .anova import Analysis
    from .configurations import Cache, Mean
    from .contrasts import Contrast, Contrasts
    from .study import Study

MOST_REFUSED = 12
TABLES = (
    ("au_whole_percent", "au_steady_percent", "samples_per_s_whole"),
    ("mb_per_s_read", "first_step_share", "barrier_share"),
)
FIGURES = (
    ("n", "blocks of the untouched machine: stock and its copy in one block are one value. Tweak sets stand below."),
    ("[ ]", "95 %, by Student's t over blocks. The mean of rates is geometric, of AU and shares arithmetic, as in sentences and pictures."),
    ("AU", "% of an epoch that is computed: the whole epoch, or steady, as DLIO has it, with the first step left out."),
    ("1st", "part of the epoch until the first batch is there. Barrier + readers' end: what is neither load nor computation."),
)
SHARE = "share of the variation, a description: it pools all combinations, as if they scattered alike, and nothing is named by it."
P = (
    "of an effect's own steps, each on its differences from block to block (paired t): the smallest, after Holm over these steps and over "
    "the effects of a response. In the words below an interval is 95 % for all steps of its effect together."
)


def render(found: Study, *, color: bool = False) -> str:
    """Write a study as text."""
    return on_page(parts(found), color=color)


def parts(found: Study) -> Iterator[RenderableType]:
    """The page, part by part."""
    if not found.cells:
        yield Text("No run with epochs: nothing can be said.", "yellow")
        yield from _refused(found.refused)
        return
    blocks = len({one.run.block for one in found.cells if one.run.block is not None})
    head = f"{len(found.cells)} runs of {len(found.caches)} configurations{f' in {blocks} blocks' if blocks else ''}"
    yield Text(one_line(f"{head}{'; all: ' + found.alike if found.alike else ''}"), "bold")
    for line in stands_on(found):
        word, _, said = one_line(line, 1000).partition(": ")
        yield hanging([(f"{word}:", said)], "yellow" if word == "Doubt" else "dim")
    yield ""
    yield hanging(printable(tuple(("•", line) for line in answer(found))))
    yield ""
    yield from _figures(found)
    identical = in_words(found.cells)
    late = slept_in_words(found.cells)
    if late is not None:
        yield hanging([("late", f"{late}.")], "dim", "dim")
    if identical is not None:
        yield hanging([("=", f"{identical}.")], "dim", "dim")
    yield ""
    yield from _proof(found.caches)
    for group in ([one for one in found.analyses if not one.sets], *([one] for one in found.analyses if one.sets)):
        yield ""
        yield from _analyses(group)
    yield from _tweaks(found)
    yield from _refused(found.refused)
    yield ""
    yield from _answers(found)


def _figures(found: Study) -> Iterator[RenderableType]:
    """Means over blocks with their intervals; a letter where there is no figure, with the reason below."""
    letters: dict[str, str] = {}
    shown = [one for one in found.configurations if one.tweakset == STOCK]
    for names in TABLES:
        rows = [
            [
                one_line(one.name),
                str(max((mean.runs for mean in one.responses.values()), default=0)),
                *(_mean(one.responses[name], name, letters) for name in names),
            ]
            for one in shown
        ]
        yield columns(["configuration", "n", *(LABELS[name] for name in names)], rows)
        yield ""
    yield hanging([*((f"({letter})", f"{why}.") for why, letter in letters.items()), *FIGURES], "dim", "dim")


def _mean(one: Mean, name: str, letters: dict[str, str]) -> str:
    mark = f" ({letters.setdefault(one_line(one.missing), _letter(len(letters)))})" if one.missing else ""
    if one.value is None:
        return mark.strip()
    scale = points_of(name)
    ends = [value for value in (one.value, one.low, one.high) if value is not None]
    value, *limits = [f"{scale * end:.1f}" if scale else digits(end, 3) for end in ends]
    return f"{value} [{', '.join(limits)}]{mark}" if limits else value + mark


def _letter(at: int) -> str:
    return "abcdefghijklmnopqrstuvwxyz"[at] if at < 26 else str(at)


def _proof(found: Mapping[str, Cache]) -> Iterator[RenderableType]:
    """What was in the page cache before an epoch, and what was read of the data set in it; under all tweak sets together."""
    rows = []
    for name, its in found.items():
        before = ""
        if its.before_low is not None and its.before_high is not None:
            before = (
                _percent(its.before_low) if its.before_low == its.before_high else f"{_percent(its.before_low)}–{_percent(its.before_high)}"
            )
        mib = "" if its.bytes is None else f"{its.bytes / 2**20:.0f}"
        rows.append([one_line(name), str(its.epochs), mib, before, *map(_percent, (its.after, its.asked, its.fetched, its.device))])
    heads = ["configuration", "epochs", "MiB", "cached before %", "after %", "asked for %", "fetched %", "device %"]
    yield columns(heads, rows)
    said = (
        "of the data set, in all epochs under all tweak sets together: none may change what is to be read. Cached: its pages in memory "
        "when an epoch began and when it ended. Asked for: what its readers read; fetched: "
        "what of that came from a device; device: what the whole machine read meanwhile."
    )
    yield hanging([("%", said)], "dim", "dim")


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def _analyses(found: Sequence[Analysis]) -> Iterator[RenderableType]:
    """One table for all responses: the share of the variation, and p of the effect's own steps."""
    known = [one for one in found if one.findings]
    for one in found:
        if one.refusal:
            yield Text(one_line(f"{one.response}: nothing can be said: {one.refusal}", 1000), "yellow")
    if not known:
        return
    levels = [level for factor in known[0].observed.factors if factor.name == SETS for level in factor.levels]
    yield Text(one_line(f"what varies with what: {', '.join(levels) or 'untouched machine'}"), "bold")
    names = dict.fromkeys(row.name for one in known for row in one.variation)
    heads = [head for one in known for head in (f"{LABELS.get(one.response, one.response)} %", "p")]
    rows = [[name.replace(":", " × "), _df(name, known), *(text for one in known for text in _row(name, one))] for name in names]
    yield columns(["variation", "df", *heads], rows)
    notes = dict.fromkeys(one_line(note, 10_000) for one in known for note in one.notes)
    left = [("these", "what the effects named leave: those of three and more factors together, which are not tested.")]
    left = left if "what these leave" in names else []
    yield hanging([("%", SHARE), ("p", P), *left, *(("note:", note) for note in notes)], "dim", "dim")


def _df(name: str, known: Sequence[Analysis]) -> str:
    return "/".join(dict.fromkeys(str(row.df) for one in known for row in one.variation if row.name == name))


def _row(name: str, one: Analysis) -> list[str]:
    row = next((row for row in one.variation if row.name == name), None)
    if row is None:
        return ["", ""]
    p = {finding.factors: finding.p_adjusted for finding in one.findings}.get(row.factors)
    return [size(row.share), "" if p is None else probability(p)]


def _tweaks(study: Study) -> Iterator[RenderableType]:
    """Tweak sets against stock, cold beside warm; those that changed nothing, and the copy of stock, stand last."""
    found, treated = study.contrasts, (*study.contrasts.tweaks, *study.idle)
    idle = {one.tweakset for one in study.idle}
    if not treated:
        return
    caches = [state for state in ("cold", "warm", "as_found", "") if any(one.cache == state for one in treated)]
    both = bool(found.differences)
    every = [one for one in (*found.tweaks, *study.idle, *found.again) if one.rest in {tweak.rest for tweak in treated}]
    order = {name: at for at, name in enumerate(study.caches)}
    every.sort(key=lambda one: (one.tweakset == AGAIN, one.tweakset in idle, order.get(one.configuration or BY_DEFAULT, len(order))))
    sets = list(dict.fromkeys(one.tweakset for one in every))
    places = dict.fromkeys((one.tweakset, one.rest) for name in sets for one in every if one.tweakset == name)
    by_place = {(one.tweakset, one.rest, one.cache): one for one in every}
    differences = {(one.tweakset, one.rest): one for one in found.differences}
    rows = [
        [
            f"{name}{' (=)' if name in idle else ''}{' · ' + rest if rest else ''}",
            *(_contrast(by_place.get((name, rest, cache)), found) for cache in caches),
            *([_contrast(differences.get((name, rest)), found)] if both else []),
        ]
        for name, rest in places
    ]
    yield ""
    yield Text.assemble((found.response, "bold"), "   tweak sets against stock, block by block [95 %]")
    yield columns(["tweak set", *(cache or "change" for cache in caches), *(["cold - warm"] if both else [])], rows)
    control = " On a warm cache no disk is read: what a setting of reading seems to do there is chance." if both else ""
    legend = [("*", f"differs from stock after Holm's adjustment. Figures: % of stock.{control}")]
    yield hanging([*legend, *([("(=)", "changed nothing here: a second A/A.")] if idle else [])], "dim", "dim")


def _contrast(one: Contrast | None, found: Contrasts) -> str:
    if one is None or one.effect is None:
        return ""
    ends = span(found.response, one.low, one.high).removeprefix("95 % ").replace(" to ", ", ").replace(" %", "")
    return f"{amount(found.response, found.unit, one.effect).replace(' %', '')} [{ends}]{'*' if one.shown else ''}"


def _refused(lines: Iterable[str]) -> Iterator[RenderableType]:
    lines = list(dict.fromkeys(lines))
    if lines:
        more = [("", f"and {len(lines) - MOST_REFUSED} more.")] if len(lines) > MOST_REFUSED else []
        yield ""
        yield hanging([*(("left out:", one_line(line, 1000)) for line in lines[:MOST_REFUSED]), *more], "yellow")


def _answers(found: Study) -> Iterator[RenderableType]:
    yield Text("What varies with what, in words", "bold")
    yield hanging(printable(tuple(("•", line) for line in of_factors(found))))
    yield Text("Tweak sets, each by itself", "bold")
    yield hanging(printable(tuple(("•", line) for line in of_tweak_sets(found))))
