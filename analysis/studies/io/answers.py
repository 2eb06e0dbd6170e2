"""The answer on runs and folders: tweak sets, factors, format × cache with limits, proof of cache.

Each saved run and each folder of DLIO's results is a study, and all form one answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.answer import (
    Answer,
    Column,
    Line,
    Section,
    Table,
    Word,
    bullets,
    command,
    grouped,
    together,
)
from analysis.files import reason_of
from analysis.load import load_each
from analysis.pairing import is_rate
from analysis.stats.estimate import Estimate, adjusted
from analysis.terms import AGAIN, NotComparable, Refused
from analysis.wording import bracket, counted, digits, number, percent, probability
from control.names import first_few

from .dlio_folder import SUMMARY, folders_under, runs_of
from .figures import RATE, STEADY, WHOLE, describe_identity, describe_oversleep, judge, record
from .saved import judged_of
from .study import (
    DIFFERENCE,
    FEWEST_PAIRS,
    IoStudy,
    blocks_of,
    by_name,
    change,
    paired,
    study,
    untouched,
)

if TYPE_CHECKING:
    import pandas as pd

    from .study import Analysis, Configuration, IoContrast

MOST = 3  # names in a sentence
FIRST = {RATE: "samples/s", WHOLE: "AU whole %"}
SECOND = {
    STEADY: "AU steady %",
    "mb_per_s_read": "MiB/s read",
    "first_step_share": "first batch %",
    "barrier_share": "barrier +\nreaders' end %",
}
PROOF = {
    "before_low": "cached before,\nfrom %",
    "before_high": "to %",
    "after": "after %",
    "asked": "asked\nfor %",
    "fetched": "fetched %",
    "device": "device %",
}
UNITS = {WHOLE: "AU whole, points", STEADY: "AU steady, points", RATE: "samples/s, %"}
LEGEND = (
    ("n", "blocks of the untouched machine: stock and its copy in one block count as one value."),
    (
        "[ ]",
        (
            "95 %, by Student's t over blocks; in an effect of several steps, for all of them "
            "together. The mean of rates is geometric, of AU and shares arithmetic."
        ),
    ),
    ("AU", "% of an epoch spent computing: the whole epoch, or steady, without the first step."),
    (
        "limited by",
        (
            "the largest part of the epoch: computing (accelerator), waiting for input, or neither "
            "(barrier, readers' end)."
        ),
    ),
    ("first batch", "part of the epoch before the first batch arrives."),
    ("cached", "part of the data set in memory at the start and end of an epoch."),
    (
        "asked for",
        (
            "data read by its readers; fetched: the part that came from a device; device: data "
            "read by the whole machine."
        ),
    ),
    ("p", "of a step by its differences between blocks (paired t), after Holm over all effects."),
    ("*", "differs after Holm's adjustment: from stock, or cold from warm."),
    (
        DIFFERENCE,
        (
            "on a warm cache no disk is read: any effect of a read setting there is chance (a "
            "negative control)."
        ),
    ),
)


def answer_of(names: Sequence[str], *, plot: Path | None = None) -> Answer:
    """Read and analyse runs and folders; `plot` is a folder for pictures.

    Folders of DLIO that only generated data are skipped.

    Raises: Refused, for other names, and if nothing is usable.
    """
    refused: list[str] = []
    studies: list[IoStudy] = []
    dlio = [name for name in names if _is_dlio(Path(name))]
    for run in load_each([name for name in names if name not in dlio], refused):
        left_out: list[str] = []
        judged = judged_of(run, left_out)
        if judged:
            studies.append(study(run.origin, judged, left_out))
        else:
            refused += left_out or [
                f"{run.origin}: no cell reports its input; use runs of bench_io_patterns."
            ]
    for name in dlio:
        judged = [judge(run) for run in runs_of(Path(name), refused)]
        studies += [study(name, judged)] if judged else []
    if not studies:
        raise Refused(refused[0] if refused else f"{', '.join(names)}: no run reports its input.")
    parts = [answer(one) for one in studies]
    if len(parts) > 1:
        parts = [
            replace(part, title=f"{Path(one.origin).stem}: {part.title}")
            for part, one in zip(parts, studies, strict=True)
        ]
    whole = replace(
        together(parts),
        data={"saved": [part.data for part in parts], "pictures": {}},
        refused=list(dict.fromkeys(refused)),
    )
    if plot is None:
        return whole
    drawn = pictures(studies, plot)
    lines = [Line(outcome, f"{name}:") for name, outcome in drawn.items()]
    sections = [*whole.sections, Section("Pictures", lines)]
    return replace(whole, sections=sections, next=(), data={**whole.data, "pictures": drawn})


def _is_dlio(path: Path) -> bool:
    try:
        return (
            path.is_dir()
            and (not any(path.glob("*.json")) or (path / SUMMARY).is_file())
            and bool(folders_under(path))
        )
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: cannot be read: {reason_of(error)}.") from None


def pictures(studies: Sequence[IoStudy], folder: Path) -> dict[str, str]:
    from analysis import plots
    from analysis.plots.scene import Scene
    from analysis.plots.style import draw_into

    scene = Scene((), io=tuple(studies))
    every = plots.pictures().items()
    own = {name: partial(one.draw, scene) for name, one in every if "io" in one.REPORTS}
    return draw_into(folder, own)


def answer(study: IoStudy, *, brief: bool = False) -> Answer:
    """Return the answer, the table of configurations first; `brief`: only that and tweak sets."""
    left_out = [line.removeprefix(f"{study.origin}: ") for line in dict.fromkeys(study.refused)]
    more = len(left_out) - MOST
    lost = [f"left out: {line}" for line in left_out[:MOST]]
    lost += [f"left out: {more} more (named in --json)."] if more > 0 else []
    if not study.cells:
        return Answer("No cell can be analysed.", warnings=lost, data=record_of(study))
    blocks = len({cell.run.block for cell in study.cells if cell.run.block is not None})
    inside = f" in {counted(blocks, 'block')}" if blocks else ""
    runs = counted(len(study.cells), "run")
    alike = f"; all: {study.alike}" if study.alike else ""
    scope = f"{runs} of {counted(len(study.caches), 'configuration')}{inside}{alike}."
    title, *others = [*findings(study), scope]
    return Answer(
        title,
        [*bullets(others[:-1]), *(Line(line, tone="quiet") for line in others[-1:])],
        [
            _runs(study, brief=brief),
            *_tweak_table(study),
            *([] if brief or not blocks else [_proof(study), _effects(study)]),
        ],
        [] if brief else lost,
        LEGEND,
        command("io", study.origin, "--plot", "io/"),
        record_of(study),
    )


def record_of(study: IoStudy) -> dict[str, Any]:
    return {
        "runs": [record(cell) for cell in study.cells],
        "origin": study.origin,
        "answer": findings(study),
        "alike": study.alike,
        "configurations": [
            {**asdict(replace(one, runs=())), "runs": [run.id for run in one.runs]}
            for one in study.configurations
        ],
        "caches": study.caches,
        "analyses": study.analyses,
        "contrasts": study.contrasts,
        "reversals": list(reversals(study.analyses)),
        "refused": list(study.refused),
    }


# Tables


def _runs(study: IoStudy, *, brief: bool) -> Section:
    tables, missing = [], []
    for heads in (FIRST,) if brief else (FIRST, SECOND):
        columns = [Column("configuration", left=True), Column("n", "blocks")]
        columns += [Column(head, name, _writer(name)) for name, head in heads.items()]
        columns += [Column("limited by", left=True)] if heads is FIRST else []
        rows: list[list[object]] = []
        for one in study.configurations:
            means = {name: one.responses[name] for name in heads}
            missing += [
                (one.name, f"no {' '.join(heads[name].split())}: {mean.missing}.")
                for name, mean in means.items()
                if mean.missing
            ]
            shown = [Word("–", "quiet") if mean.value is None else mean for mean in means.values()]
            blocks = max(mean.n for mean in one.responses.values())
            rows.append([one.name, blocks, *shown, *([_limit(one)] if heads is FIRST else [])])
        tables.append(Table(columns, rows))
    notes = [] if brief else [describe_oversleep(study.cells), describe_identity(study.cells)]
    lines = bullets(grouped(missing, len(study.configurations)), "–", "quiet")
    lines += [Line(f"{note}.", tone="quiet") for note in notes if note]
    return Section("Untouched machine, mean over blocks [95 %]", [*tables, *lines])


def _writer(name: str) -> Callable[[Estimate], str]:
    scale = {"percent": 1.0, "share": 100.0}.get(name.rpartition("_")[2])

    def one(end: float) -> str:
        return f"{scale * end:.1f}" if scale else digits(end, 3)

    return lambda mean: f"{one(mean.value or 0.0)}{bracket(mean.low, mean.high, one)}"


def _limit(configuration: Configuration) -> str | None:
    au, barrier = (configuration.responses[name].value for name in (WHOLE, "barrier_share"))
    if au is None or barrier is None:
        return None
    shares = {"accelerator": au, "input": 100 - au - 100 * barrier, "barrier": 100 * barrier}
    largest = max(shares, key=lambda part: shares[part])
    return f"{largest} ({shares[largest]:.0f} %)"


def _proof(study: IoStudy) -> Section:
    heads = [
        Column("configuration", left=True),
        Column("epochs", "epochs"),
        Column("MiB", "data_set_mib", "{:.0f}".format),
        *(Column(head, part, lambda share: f"{100 * share:.1f}") for part, head in PROOF.items()),
    ]
    rows = [[name, *cache.values()] for name, cache in study.caches.items()]
    title = "Proof of the cache state: parts of the data set, all epochs together"
    return Section(title, [Table(heads, rows)])


def _effects(study: IoStudy) -> Section:
    refusals = [
        Line(f"{one.response}: not analysed: {one.refusal}", "", "open")
        for one in study.analyses
        if one.refusal
    ]
    tables = [_steps(analysis) for analysis in study.analyses if analysis.steps]
    notes = dict.fromkeys(note for one in study.analyses for note in one.notes)
    title = "Effects of varied parameters: untouched machine"
    lines = [*bullets(reversals(study.analyses)), *bullets(notes, "note:", "quiet")]
    return Section(title, [*refusals, *tables, *lines])


def _steps(analysis: Analysis) -> Table:
    def write(step: Estimate) -> str:
        return change_text(analysis.response, step).replace(" %", "").replace(" points", "")

    columns = [
        Column("effect", left=True),
        Column("step", left=True),
        Column(f"{UNITS[analysis.response]} [95 %]", analysis.response, write),
        Column("p", "p", probability),
        Column("n", "n"),
    ]
    rows = [
        [" × ".join(step.factors), step.name, step, step.p_adjusted, step.n]
        for step in analysis.steps
    ]
    return Table(columns, rows)


def _tweak_table(study: IoStudy) -> list[Section]:
    places = {one.rest for one in study.contrasts if one.tweakset != AGAIN}
    every = [one for one in study.contrasts if one.rest in places]
    if not every:
        return []
    known = {one.cache for one in every}
    heads = [head for head in ("cold", "warm", "as_found", "", DIFFERENCE) if head in known]
    figures = {(one.tweakset, one.rest, one.cache): one for one in every}
    rows: list[tuple[tuple[bool, bool], list[object]]] = []
    for name, rest in dict.fromkeys((one.tweakset, one.rest) for one in every):
        cells = [figures.get((name, rest, head)) for head in heads]
        shown = any(cell is not None and cell.shown for cell in cells)
        label = f"{name}{f' · {rest}' if rest else ''}"
        tested = [cell if cell is not None and cell.p is not None else None for cell in cells]
        rows.append(((not shown, name == AGAIN), [label, *tested]))

    def write(one: Estimate) -> str:
        return f"{change_text(RATE, one).replace(' %', '', 1)}{'*' if one.shown else ''}"

    names = {DIFFERENCE: "cold_less_warm", "": "change"}
    columns = [
        Column("tweak set", left=True),
        *(Column(head or "change", names.get(head, head), write) for head in heads),
    ]
    table = Table(columns, [row for _, row in sorted(rows, key=lambda row: row[0])])
    return [Section("Tweak sets against stock: samples/s, %, block by block [95 %]", [table])]


# Sentences


def change_text(response: str, change: Estimate) -> str:
    """Write a change with its interval: `+12.3 % [+1.2, +23.4]` for a rate, else in points."""
    rate = is_rate(response)
    value = change.value or 0.0
    ends = bracket(change.low, change.high, number if rate else _points)
    return f"{percent(value) if rate else f'{_points(value)} points'}{ends}"


def _points(points: float) -> str:
    return f"{round(points, 1) + 0.0:+.1f}"  # the sum turns -0.0 into 0.0


def findings(study: IoStudy) -> list[str]:
    return [*_tweak_sets(study), *_fastest(study), *_factors(study)]


def _fastest(study: IoStudy) -> Iterator[str]:
    """Yield the fastest configuration, tested against the others; Holm over all pairs."""
    every = {one.name: one.responses[RATE] for one in study.configurations}
    means = {name: mean for name, mean in every.items() if mean.value is not None}
    if not means:
        return
    best = max(means, key=lambda name: means[name].value or 0.0)
    rate = f"{best}, {_writer(RATE)(means[best])}"
    if len(means) == 1:
        yield f"Samples/s: {rate}."
        return
    named = [(name, cell) for name, own in by_name(study.cells).items() for cell in untouched(own)]
    table = blocks_of([cell for _, cell in named], RATE, name=[name for name, _ in named])
    pairs = [sorted(pair, key=lambda name: name != best) for pair in combinations(means, 2)]
    tested = adjusted([_between(table, *pair) for pair in pairs])
    slower = {
        other: f"{other} {change_text(RATE, gain)}"
        for (one, other), gain in zip(pairs, tested, strict=True)
        if one == best and gain.shown
    }
    alike = [name for name in means if name != best and name not in slower]
    parts = [first_few([*slower.values()], MOST, "; ")] * bool(slower)
    parts += [f"not distinguishable from {first_few(alike, MOST)}"] * bool(alike)
    if count := sum(gain.p is not None for gain in tested):
        family = f"Holm over {counted(count, 'pair')}"
        yield f"Most samples/s: {rate}; {'; '.join(parts)} ({family})."
    else:
        yield f"Most samples/s: {rate}, not tested: no two configurations share two blocks."


def _between(table: pd.DataFrame, one: str, other: str) -> Estimate:
    try:
        changes = change(table, "name", one, other)[RATE]
        return paired(changes, RATE, FEWEST_PAIRS)
    except (NotComparable, KeyError) as error:  # neither has a block
        return Estimate(missing=str(error))


def _factors(study: IoStudy) -> Iterator[str]:
    for analysis in study.analyses:
        if analysis.response == RATE and analysis.steps:
            shown = [step for step in analysis.steps if step.shown]
            shown.sort(key=lambda step: -abs(math.log1p(step.value)))
            named = [
                f"{' × '.join(step.factors)} {step.name} {change_text(RATE, step)}"
                for step in shown
            ]
            if named:
                yield f"Effects on samples/s: {first_few(named, MOST, '; ')}."
            effects = dict.fromkeys(step.factors for step in analysis.steps)
            single = [factor for factor, *others in effects if not others]
            missing = [name for name in single if all((name,) != step.factors for step in shown)]
            if missing:
                yield f"No effect on samples/s is shown: {', '.join(missing)}."


def _tweak_sets(study: IoStudy) -> Iterator[str]:
    every = [one for one in study.contrasts if one.p is not None and one.cache != DIFFERENCE]
    known = [one for one in every if one.tweakset != AGAIN]
    copies = [one for one in every if one.tweakset == AGAIN]
    shown = sorted(
        (one for one in known if one.shown), key=lambda one: -abs(math.log1p(one.value or 0.0))
    )
    if shown:
        each = [f"{one.tweakset} {change_text(RATE, one)}{_where(one)}" for one in shown]
        named = first_few(each, MOST, "; ")
        yield f"Tweak sets that differ from stock, in samples/s: {named} (Holm over {len(every)})."
    elif known:
        names = list(dict.fromkeys(one.tweakset for one in known))
        none = f"{names[0]} is not" if len(names) == 1 else f"none of {len(names)} is"
        yield f"Tweak sets: {none} shown to differ from stock."
    if differing := [one for one in copies if one.shown]:
        clearest = min(differing, key=lambda one: one.p or 0.0)
        yield (
            f"A/A: stock and its copy differ in {len(differing)} of "
            f"{counted(len(copies), 'configuration')}, although nothing was changed: "
            f"{change_text(RATE, clearest)}{_where(clearest)}. "
            "One run in 20 shows that by chance; otherwise the machine was not quiet: trust the "
            "tweak sets' figures less."
        )


def _where(one: IoContrast) -> str:
    words = " · ".join(filter(None, (one.rest, one.cache)))
    return f" with {words}" if words else ""


def reversals(analyses: Sequence[Analysis]) -> Iterator[str]:
    """Yield effects that appear or reverse without the first step: reading was moved, not saved."""
    whole, steady = (
        {
            (step.factors, step.levels): step
            for analysis in analyses
            if analysis.response == response
            for step in analysis.steps
            if len(step.factors) == 1
        }
        for response in (WHOLE, STEADY)
    )
    named = {step.factors for step in whole.values() if step.shown}
    for place, step in steady.items():
        if place not in whole or not step.shown:
            continue
        other = whole[place]
        turned = other.shown and other.value * step.value < 0
        if turned or step.factors not in named:
            outcome = "the opposite" if turned else "no difference shown"
            yield (
                f"{step.factors[0]} {step.name}: AU without the first step {_points(step.value)} "
                f"points, over the whole epoch {_points(other.value)} ({outcome}): reading moved "
                "into the excluded step and was not saved."
            )
