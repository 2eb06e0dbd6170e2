"""The answer on runs and folders: fastest, format × cache with limits, cache, factors, tweak sets.

Each saved run and each folder of DLIO's results is a study, and all form one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
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
from analysis.terms import AGAIN, STOCK, Refused
from analysis.wording import counted, digits, probability

from .dlio_folder import SUMMARY, folders_under, runs_of
from .figures import RATE, STEADY, WHOLE, describe_identity, describe_oversleep, judge, record
from .saved import judged_of
from .study import BY_DEFAULT, Configuration, IoStudy, study
from .words import change_text, findings, reversals

if TYPE_CHECKING:
    from analysis.stats.estimate import Estimate

    from .effects import Analysis

MOST_LOST = 3
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
            "the largest part of the epoch: computing (accelerator), waiting for input, or "
            "neither (barrier, readers' end)."
        ),
    ),
    (
        "first batch",
        (
            "part of the epoch before the first batch arrives. Barrier + readers' end: neither "
            "load nor computation."
        ),
    ),
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
        "cold - warm",
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
        judged = [judge(run) for run in runs_of(Path(name), refused) if run.epochs]
        studies += [study(name, judged)] if judged else []
    if not studies:
        raise Refused(refused[0] if refused else f"{', '.join(names)}: no run reports its input.")
    parts = [answer(one) for one in studies]
    if len(parts) > 1:
        parts = [
            replace(part, title=f"{Path(one.origin).stem}: {part.title}")
            for part, one in zip(parts, studies, strict=True)
        ]
    drawn = {} if plot is None else pictures(studies, plot)
    whole = together(parts)
    extra = (
        [Section("Pictures", [Line(outcome, f"{name}:") for name, outcome in drawn.items()])]
        if drawn
        else []
    )
    return replace(
        whole,
        sections=[*whole.sections, *extra],
        next=() if plot is not None else whole.next,
        data={"saved": [part.data for part in parts], "pictures": drawn},
        refused=list(dict.fromkeys(refused)),
    )


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
    known = {
        name: picture
        for name, picture in plots.pictures().items()
        if "io" in getattr(picture, "REPORTS", ())
    }
    return draw_into(
        folder, {name: partial(picture.draw, scene) for name, picture in known.items()}
    )


def answer(study: IoStudy, *, brief: bool = False) -> Answer:
    """Return the answer, the table of configurations first; `brief`: only that and tweak sets."""
    lost = _left_out(study)
    if not study.cells:
        title = "No run has epochs, so there is nothing to analyse."
        return Answer(title, warnings=lost, data=record_of(study))
    blocks = len({cell.run.block for cell in study.cells if cell.run.block is not None})
    inside = f" in {counted(blocks, 'block')}" if blocks else ""
    what = (
        f"{counted(len(study.cells), 'run')} of "
        f"{counted(len(study.caches), 'configuration')}{inside}"
    )
    scope = f"{what}{'; all: ' + study.alike if study.alike else ''}."
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


def _left_out(study: IoStudy) -> list[str]:
    cells = [line.removeprefix(f"{study.origin}: ") for line in dict.fromkeys(study.refused)]
    more = len(cells) - MOST_LOST
    rest = [f"left out: {more} more (named in --json)."] if more > 0 else []
    return [*(f"left out: {cell}" for cell in cells[:MOST_LOST]), *rest]


def _runs(study: IoStudy, *, brief: bool) -> Section:
    tables, missing = [], []
    untouched = [one for one in study.configurations if one.tweakset == STOCK]
    for heads in (FIRST,) if brief else (FIRST, SECOND):
        columns = [Column("configuration", left=True), Column("n", "blocks")]
        columns += [Column(head, name, _writer(name)) for name, head in heads.items()]
        columns += [Column("limited by", left=True)] if heads is FIRST else []
        rows: list[list[object]] = []
        for one in untouched:
            means = {name: one.responses[name] for name in heads}
            missing += [
                (one.name, f"no {' '.join(heads[name].split())}: {mean.missing}.")
                for name, mean in means.items()
                if mean.missing
            ]
            figures = [
                mean if mean.value is not None else Word("–", "quiet") for mean in means.values()
            ]
            blocks = max(mean.n for mean in one.responses.values())
            rows.append([one.name, blocks, *figures, *([_limit(one)] if heads is FIRST else [])])
        tables.append(Table(columns, rows))
    notes = [] if brief else [describe_oversleep(study.cells), describe_identity(study.cells)]
    lines = bullets(grouped(missing, len(untouched)), "–", "quiet")
    lines += [Line(f"{note}.", tone="quiet") for note in notes if note]
    return Section("Untouched machine, mean over blocks [95 %]", [*tables, *lines])


def _writer(name: str) -> Callable[[Estimate], str]:
    scale = {"percent": 1.0, "share": 100.0}.get(name.rpartition("_")[2])

    def write(mean: Estimate) -> str:
        value, *ends = [
            f"{scale * end:.1f}" if scale else digits(end, 3)
            for end in (mean.value, mean.low, mean.high)
            if end is not None
        ]
        return f"{value} [{', '.join(ends)}]" if ends else value

    return write


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
        *(Column(head, part, lambda share: f"{100 * share:.1f}") for part, head in CACHE.items()),
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
    tables = [_steps(analysis) for analysis in study.analyses if analysis.findings]
    notes = dict.fromkeys(note for one in study.analyses if one.findings for note in one.notes)
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
        [" × ".join(effect.factors), step.name, step, step.p_adjusted, step.n]
        for effect in analysis.findings
        for step in effect.steps
    ]
    return Table(columns, rows)


def _tweak_table(study: IoStudy) -> list[Section]:
    made, order = study.contrasts, list(study.caches)
    places = {one.rest for one in made.tweaks}
    every = sorted(
        (one for one in (*made.tweaks, *made.again) if one.rest in places),
        key=lambda one: (one.tweakset == AGAIN, order.index(one.configuration or BY_DEFAULT)),
    )
    if not every:
        return []
    known = {one.cache for one in every}
    states = [state for state in ("cold", "warm", "as_found", "") if state in known]
    figures = {(one.tweakset, one.rest, one.cache): one for one in every}
    figures |= {(one.tweakset, one.rest, "cold - warm"): one for one in made.differences}
    heads = [*states, *(["cold - warm"] if made.differences else [])]
    sets = list(dict.fromkeys(one.tweakset for one in every))
    rows: list[tuple[bool, int, list[object]]] = []
    for name, rest in dict.fromkeys((one.tweakset, one.rest) for one in every):
        cells = [figures.get((name, rest, head)) for head in heads]
        shown = any(cell is not None and cell.shown for cell in cells)
        label = f"{name}{f' · {rest}' if rest else ''}"
        tested = [cell if cell is not None and cell.p is not None else None for cell in cells]
        rows.append((not shown, sets.index(name), [label, *tested]))

    def write(one: Estimate) -> str:
        return f"{change_text(RATE, one).replace(' %', '', 1)}{'*' if one.shown else ''}"

    names = {"cold - warm": "cold_less_warm", "": "change"}
    columns = [
        Column("tweak set", left=True),
        *(Column(head or "change", names.get(head, head), write) for head in heads),
    ]
    table = Table(columns, [row for *_, row in sorted(rows, key=lambda row: row[:2])])
    return [Section("Tweak sets against stock: samples/s, %, block by block [95 %]", [table])]


def record_of(study: IoStudy) -> dict[str, Any]:
    return {
        "runs": [record(cell) for cell in study.cells],
        "origin": study.origin,
        "answer": findings(study),
        "alike": study.alike,
        "configurations": [
            {
                "name": one.name,
                "tweakset": one.tweakset,
                "runs": [run.id for run in one.runs],
                "responses": one.responses,
            }
            for one in study.configurations
        ],
        "caches": study.caches,
        "analyses": study.analyses,
        "contrasts": study.contrasts,
        "reversals": list(reversals(study.analyses)),
        "refused": list(study.refused),
    }
