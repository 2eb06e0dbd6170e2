"""The answer on runs and folders: fastest, format × cache with limits, cache, factors, tweak sets.

Each saved run and each folder of DLIO's results is a study, and all form one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
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
from analysis.wording import counted, digits, probability, size

from .dlio_folder import SUMMARY, folders_under, runs_of
from .figures import Judged, describe_identity, describe_oversleep, judge, record
from .saved import judged_of
from .study import BY_DEFAULT, Configuration, IoContrast, IoStudy, study
from .validity import RATE, STEADY, WHOLE
from .words import LABELS, answers, basis, change_text, findings, of_factors, reversals

if TYPE_CHECKING:
    from analysis.stats.estimate import Estimate

MOST_LOST = 3  # omitted cells that are listed
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
    (
        "n",
        (
            "blocks of the untouched machine: stock and its copy in one block count as one value. "
            "Tweak sets are below."
        ),
    ),
    (
        "[ ]",
        (
            "95 %, by Student's t over blocks. The mean of rates is geometric, of AU and shares "
            "arithmetic, as in sentences and pictures."
        ),
    ),
    (
        "AU",
        (
            "% of an epoch spent computing: the whole epoch, or steady, without the first step, "
            "as in DLIO."
        ),
    ),
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
    (
        "cached",
        (
            "part of the data set in memory at the start and end of an epoch, under all tweak "
            "sets, which must not change it."
        ),
    ),
    (
        "asked for",
        (
            "data read by its readers; fetched: the part that came from a device; device: data "
            "read by the whole machine."
        ),
    ),
    (
        "share",
        (
            "of the variation, a description: it pools all combinations, assuming equal scatter, "
            "and supports no claim."
        ),
    ),
    (
        "p",
        (
            "the smallest of an effect's steps, each from its differences between blocks (paired "
            "t), after Holm over both."
        ),
    ),
    (
        "both",
        (
            "these steps, and the effects of a response. In sentences an interval is 95 % for all "
            "steps of its effect together."
        ),
    ),
    ("residual", "interactions of three or more factors, which are not tested."),
    (
        "*",
        (
            "differs after Holm's adjustment: from stock, or cold from warm. (=) changed nothing "
            "here: a second A/A. Figures: % of stock."
        ),
    ),
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
        judged = [judge(run) for run in runs_of(Path(name), refused) if run.kind != "generation"]
        studies += [study(name, judged)] if judged else []
    if not studies:
        raise Refused(refused[0] if refused else f"{', '.join(names)}: no run reports its input.")
    parts = [answer(one) for one in studies]
    if len(parts) > 1:
        parts = [
            replace(part, title=f"{Path(one.origin).stem}: {part.title}")
            for part, one in zip(parts, studies, strict=True)
        ]
    drawn = {} if plot is None else pictures([cell for one in studies for cell in one.cells], plot)
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
    """Return whether a path is a DLIO result folder or contains some, but no saved runs."""
    try:
        return (
            path.is_dir()
            and (not any(path.glob("*.json")) or (path / SUMMARY).is_file())
            and bool(folders_under(path))
        )
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: cannot be read: {reason_of(error)}.") from None


def pictures(judged: Sequence[Judged], folder: Path) -> dict[str, str]:
    """Draw every picture of input into a folder; return each file or error. Raises: OSError."""
    from analysis import plots
    from analysis.plots.scene import Scene
    from analysis.plots.style import draw_into

    scene = Scene((), io=tuple(one for one in judged if one.run.epochs))
    known = {
        name: picture
        for name, picture in plots.pictures().items()
        if "io" in getattr(picture, "REPORTS", ())
    }
    return draw_into(
        folder, {name: partial(picture.draw, scene) for name, picture in known.items()}
    )


# One source.


def answer(study: IoStudy, *, brief: bool = False) -> Answer:
    """Return the answer, the table of configurations first; `brief`: only that and tweak sets."""
    if not study.cells:
        return Answer(
            "No run has epochs, so there is nothing to analyse.",
            warnings=left_out(study),
            data=record_of(study),
        )
    blocks = len({cell.run.block for cell in study.cells if cell.run.block is not None})
    inside = f" in {counted(blocks, 'block')}" if blocks else ""
    what = (
        f"{counted(len(study.cells), 'run')} of "
        f"{counted(len(study.caches), 'configuration')}{inside}"
    )
    title, *others = [*findings(study), f"{what}{'; all: ' + study.alike if study.alike else ''}."]
    notes = [(cell.run.id, f"{note}.") for cell in study.cells for note in cell.run.notes]
    return Answer(
        title,
        [*bullets(others[:-1]), *(Line(line, tone="quiet") for line in others[-1:])],
        [
            _runs(study, brief=brief),
            *_tweak_table(study),
            *([] if brief or not blocks else _details(study)),
        ],
        [] if brief else [*left_out(study), *grouped(notes, len(study.cells))],
        LEGEND,
        command("io", study.origin, "--plot", "io/"),
        record_of(study),
    )


def left_out(study: IoStudy) -> list[str]:
    """Name the first omitted cells, and the number of further ones."""
    cells = [line.removeprefix(f"{study.origin}: ") for line in dict.fromkeys(study.refused)]
    more = (
        [f"left out: {len(cells) - MOST_LOST} more (named in --json)."]
        if len(cells) > MOST_LOST
        else []
    )
    return [*(f"left out: {cell}" for cell in cells[:MOST_LOST]), *more]


def _runs(study: IoStudy, *, brief: bool) -> Section:
    """Make tables of means over blocks with intervals; reasons for missing figures are below."""
    tables, missing = [], []
    untouched = [one for one in study.configurations if one.tweakset == STOCK]
    for heads in (FIRST,) if brief else (FIRST, SECOND):
        columns = [Column("configuration", left=True), Column("n", "blocks")]
        columns += [Column(head, name, _writer(name)) for name, head in heads.items()]
        columns += [Column("limited by", left=True)] if heads is FIRST else []
        rows: list[list[object]] = []
        for one in untouched:
            means = [one.responses[name] for name in heads]
            figures = [mean if mean.value is not None else Word("–", "quiet") for mean in means]
            missing += [
                (one.name, f"no {' '.join(heads[name].split())}: {why}.")
                for name in heads
                if (why := one.responses[name].missing)
            ]
            blocks = max(mean.n for mean in one.responses.values())
            rows.append([one.name, blocks, *figures, *([_limit(one)] if heads is FIRST else [])])
        tables.append(Table(columns, rows))
    lines = bullets(grouped(missing, len(untouched)), "–", "quiet")
    lines += [Line(line, tone="open" if doubt else "quiet") for line, doubt in basis(study)]
    notes = [] if brief else [describe_oversleep(study.cells), describe_identity(study.cells)]
    lines += [Line(f"{line}.", tone="quiet") for line in notes if line]
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
    """Return the largest part of the epoch; None if a part is unknown."""
    au, barrier = (configuration.responses[name].value for name in (WHOLE, "barrier_share"))
    if au is None or barrier is None:
        return None
    shares = {"accelerator": au, "input": 100 - au - 100 * barrier, "barrier": 100 * barrier}
    largest = max(shares, key=lambda part: shares[part])
    return f"{largest} ({shares[largest]:.0f} %)"


def _details(study: IoStudy) -> Iterator[Section]:
    heads = [
        Column("configuration", left=True),
        Column("epochs", "epochs"),
        Column("MiB", "data_set_mib", "{:.0f}".format),
    ]
    heads += [
        Column(head, part, lambda value: f"{100 * value:.1f}") for part, head in CACHE.items()
    ]
    rows = [[name, *cache.values()] for name, cache in study.caches.items()]
    yield Section(
        "Proof of the cache state: parts of the data set, all epochs together", [Table(heads, rows)]
    )
    yield _variation(study)
    if words := of_factors(study):
        yield Section("Effects of varied parameters, in words", bullets(words))


def _variation(study: IoStudy) -> Section:
    """Make one table for all responses: the share of the variation, and p of the effect's steps."""
    known = [analysis for analysis in study.analyses if analysis.findings]
    lines = [
        Line(f"{one.response}: not analysed: {one.refusal}", "", "open")
        for one in study.analyses
        if one.refusal
    ]
    title = "Effects of varied parameters: untouched machine"
    if not known:
        return Section(title, lines)
    columns = [Column("variation", left=True), Column("df")]
    for analysis in known:
        head = LABELS[analysis.response]
        columns += [
            Column(f"{head} %", f"{analysis.response}_share", size),
            Column("p", "p", probability),
        ]
    rows: dict[str, list[object]] = {}
    for name in dict.fromkeys(source.name for analysis in known for source in analysis.variation):
        sources = [
            next((source for source in analysis.variation if source.name == name), None)
            for analysis in known
        ]
        rows[name] = [
            name.replace(":", " × "),
            "/".join(dict.fromkeys(str(source.df) for source in sources if source)),
        ]
        for analysis, source in zip(known, sources, strict=True):
            p = {effect.factors: effect.p_adjusted for effect in analysis.findings}
            rows[name] += [source.share, p.get(source.factors)] if source else [None, None]
    notes = dict.fromkeys(note for analysis in known for note in analysis.notes)
    return Section(
        title,
        [
            *lines,
            Table(columns, [*rows.values()]),
            *(Line(note, "note:", "quiet") for note in notes),
        ],
    )


def _tweak_table(study: IoStudy) -> list[Section]:
    """Make a table of tweak sets against stock: differing ones first, unchanged and copies last."""
    made, idle = study.contrasts, {contrast.tweakset for contrast in study.idle}
    treated = (*made.tweaks, *study.idle)
    order = list(study.caches)

    def place(one: IoContrast) -> tuple[bool, bool, int]:
        name = one.configuration or BY_DEFAULT
        return (
            one.tweakset == AGAIN,
            one.tweakset in idle,
            order.index(name) if name in order else len(order),
        )

    places = {one.rest for one in treated}
    every = sorted((one for one in (*treated, *made.again) if one.rest in places), key=place)
    states = [
        state
        for state in ("cold", "warm", "as_found", "")
        if any(one.cache == state for one in every)
    ]
    if not every:
        return []
    heads = [*states, *(["cold - warm"] if made.differences else [])]
    figures = {(one.tweakset, one.rest, one.cache): one for one in every if one.p is not None}
    figures |= {
        (one.tweakset, one.rest, "cold - warm"): one
        for one in made.differences
        if one.p is not None
    }
    sets = list(dict.fromkeys(one.tweakset for one in every))
    rows = []
    for name, rest in sorted(
        dict.fromkeys((one.tweakset, one.rest) for one in every), key=lambda row: sets.index(row[0])
    ):
        label = f"{name}{' (=)' if name in idle else ''}{f' · {rest}' if rest else ''}"
        rows.append([label, *(figures.get((name, rest, head)) for head in heads)])
    rows.sort(key=lambda row: not any(isinstance(cell, IoContrast) and cell.shown for cell in row))

    def write(one: IoContrast) -> str:
        return f"{change_text(RATE, one).replace(' %', '', 1)}{'*' if one.shown else ''}"

    names = {"cold - warm": "cold_less_warm", "": "change"}
    columns = [
        Column("tweak set", left=True),
        *(Column(head or "change", names.get(head, head), write) for head in heads),
    ]
    return [
        Section(
            "Tweak sets against stock: samples/s, %, block by block [95 %]", [Table(columns, rows)]
        )
    ]


def record_of(study: IoStudy) -> dict[str, Any]:
    """Return the study for programs; a refused figure is null with its reason beside it."""
    return {
        "runs": [record(cell) for cell in study.cells],
        "origin": study.origin,
        "answer": findings(study),
        "stands_on": [line for line, _ in basis(study)],
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
        "analyses": [
            {
                "response": one.response,
                "factors": one.layout.varied.levels,
                "variation": [
                    {"name": row.name, "df": row.df, "ss": row.ss, "share": row.share}
                    for row in one.variation
                ],
                "findings": [{**asdict(effect), "shown": effect.shown} for effect in one.findings],
                "answers": answers(one),
                "refusal": one.refusal or None,
                "notes": list(one.notes),
            }
            for one in study.analyses
        ],
        "contrasts": study.contrasts,
        "changed_nothing": study.idle,
        "reversals": list(reversals(study.analyses)),
        "refused": list(study.refused),
    }
