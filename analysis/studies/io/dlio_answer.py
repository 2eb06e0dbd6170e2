"""The answer of DLIO's result folders: what stands, DLIO's own figures checked, the same runs judged, stale data, variation, notes."""

from __future__ import annotations

import math
import shlex
from dataclasses import asdict
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Any

from analysis.answer import Answer, Column, Line, Section, Table, bullets, grouped
from analysis.printing import tiny
from analysis.wording import digits

from .dlio_study import STALE, STEADY, WHOLE, mean_over_runs, run_values, settings
from .responses import about, record
from .sentences import Marks, counted, listed
from .validity import cannot_be, fewest_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .dlio_published import PublishedRow
    from .dlio_study import Compared, DlioStudy, Oneway, RunError, Tested
    from .responses import JudgedResponse

AGREE = 0.02  # of the value: below it two figures are taken for the same
NOMINAL = "mb_per_s_nominal_dlio"
DLIOS = {STEADY: "AU", NOMINAL: "MB/s"}
PAIRS = (("AU", " %", STEADY, WHOLE), ("MB/s", "", NOMINAL, "mb_per_s_nominal_whole"))
RESPONSES = {STEADY: "AU steady", WHOLE: "AU whole"}
FIGURES = (
    *((STEADY, "AU\nsteady %", 1, 2), (WHOLE, "AU\nwhole %", 1, 2)),
    *(("samples_per_s_steady", "samples/s\nsteady", 1, 2), ("samples_per_s_whole", "samples/s\nwhole", 1, 2)),
    ("mb_per_s_nominal_whole", "MB/s\nwhole", 1, 1),
    *(("first_step_share", "first\nbatch %", 100, 1), ("barrier_share", "barrier %", 100, 1)),
)
NO_REPEATS = "not possible: no setting was run twice here, so nothing says what a run by itself scatters by. Name repeats too."
LEGEND = (
    ("steady, whole", "without the first step of an epoch, as DLIO has it, and over the whole epoch."),
    ("first batch", "the part of the epoch until the first batch is there; barrier: what is neither load nor computation."),
    ("steps", "of an epoch of a rank, by epochs. sd: AU's population deviation over epochs, which DLIO reports."),
    ("again", "reckoned anew from the step lists; MB are 2^20 bytes of nominal record length."),
    ("consistent", "MB/s of as many steps as the time spans; DLIO counts S - 2 steps over the time of S - 1."),
    ("identity", "samples/s over AU x batch x ranks / computation time: 1, for they are one measurement and no two findings."),
    ("over epochs", "pseudo-replication, shown to be checked; nothing follows from it. AU steady is as DLIO reported it."),
)


def answer(study: DlioStudy) -> Answer:
    """Say it; the judged figures stand first."""
    trained, made, degenerate = len(study.judged), len(study.generations), sum(one.has_doubt("degenerate") for one in study.judged)
    parts = [f"{counted(trained + made, 'result folder')}: {trained} trained, {made} only generated data"]
    parts += [f"{degenerate} degenerate"] if degenerate else []
    parts += [f"{len(study.stale)} on stale data"] if study.stale else []
    parts += [f"{len(study.refused)} cannot be read"] if study.refused else []
    hidden = bullets([f"{line}." for line in reversals(study.groups)])
    sections = (
        _judged(study),
        Section("What the excluded first step hides", hidden) if hidden else None,
        _checked(study),
        _repeated(study),
        _stale(study),
        _variation(study),
    )
    follow = f"python -m analysis io {shlex.quote(str(study.beside[0].parent))}" if study.beside else ""
    return Answer(
        "; ".join(parts),
        bullets([f"{line}." for line in findings(study)]),
        [section for section in sections if section is not None],
        [f"{line}." for line in _notes(study)],
        LEGEND,
        follow or f"python -m analysis io {' '.join(map(shlex.quote, study.paths))} --mlperf",
        record_of(study),
    )


def findings(study: DlioStudy) -> list[str]:
    """Say how many published rows stand, whether steady figures can be believed, what whole epochs say, and whether there is a test."""
    lines = [*_published(study), *_steady(study), *_whole(study)]
    sizes = [len(runs) for inner in settings(study.usable).values() for runs in inner.values()]
    if again := sum(size > 1 for size in sizes):
        lines.append(f"{again} of {counted(len(sizes), 'setting')} ran more than once: on those stands what is said over runs")
    elif len(sizes) > 1:
        lines.append("each setting ran once, so no difference can be tested")
    for table in study.beside:
        above = shlex.quote(str(table.parent))
        lines.append(f"{table.name} lies above this folder: python -m analysis io {above} checks it too, and looks for stale rows")
    return lines


def _published(study: DlioStudy) -> Iterator[str]:
    if not study.rows:
        return
    stale = {stale.id for stale in study.stale} & {row.id for row in study.rows}
    lost = [row.id for row in study.rows if row not in study.raw]
    parts = [f"{len(study.raw)} of {counted(len(study.rows), 'published row')} are reproduced from raw data, to 0.005"]
    parts += [f"{len(lost)} have none here ({', '.join(lost)})"] if lost else []
    parts += [f"{len(stale)} ran on stale data"] if stale else []
    for rows, what in zip(_others(study), ("another, degenerate run", "another run"), strict=True):
        parts += [f"the folder of {listed(row.id for row in rows)} holds {what}{' each' if len(rows) > 1 else ''}"] if rows else []
    yield "; ".join(parts)


def _others(study: DlioStudy) -> tuple[list[PublishedRow], list[PublishedRow]]:
    """Rows without raw data whose folder holds another run: degenerate ones, and those that are not."""
    lost = [row for row in study.rows if row not in study.raw]
    bad, good = ({judged.run.id for judged in study.judged if judged.has_doubt("degenerate") is word} for word in (True, False))
    return [row for row in lost if row.id in bad], [row for row in lost if row.id in good - bad]


def _steady(study: DlioStudy) -> Iterator[str]:
    runs = study.judged
    if not runs:
        return
    good = [run for run in runs if all(run.value(name) is not None for name in DLIOS)]
    kinds: dict[str, int] = {}
    for run in runs:
        if run not in good:
            reason = next((word for name in DLIOS if (word := run.responses[name].why_missing)), "") or "no figure"
            kinds[reason.partition(":")[0]] = kinds.get(reason.partition(":")[0], 0) + 1
    reason = ", ".join(f"{kind.replace('_', ' ')} in {count}" for kind, count in kinds.items())
    if not good:
        yield f"no steady {listed(DLIOS.values(), 'or')} can be believed: {reason} of {counted(len(runs), 'run')}"
    else:
        yield (
            f"steady {listed(DLIOS.values())} can be believed in {len(good)} of "
            f"{counted(len(runs), 'run')}{f': {reason}' if reason else ''}"
        )


def _whole(study: DlioStudy) -> Iterator[str]:
    known = [(value, judged.run.id) for judged in study.usable if (value := judged.value(WHOLE)) is not None]
    if not known:
        return
    known.sort()
    (low, first), (high, last) = known[0], known[-1]
    au = f"AU is {low:.1f} %" if len(known) == 1 else f"AU goes from {low:.1f} % ({first}) to {high:.1f} % ({last})"
    middle = f", {known[len(known) // 2][0]:.1f} % in the middle" if len(known) > 2 else ""
    turned = len(reversals(study.groups))
    turn = f"; {counted(turned, 'comparison')} of steady figures turn round there"
    yield f"over the whole epoch {au}{middle}{turn if turned else ''}"


def reversals(groups: Iterable[Compared]) -> list[str]:
    """Say where a figure without the first step rises and the same over the whole epoch falls, or the other way round."""
    return [line for group in groups for line in _reversals(group)]


def _reversals(group: Compared) -> Iterator[str]:
    for first, last in combinations(group.levels, 2):
        for what, unit, steady, whole in PAIRS:
            (a, b), (c, d) = ([_trusted_mean(group.levels[level], name) for level in (first, last)] for name in (steady, whole))
            if a and b and c and d and abs(b / a - 1) > AGREE and abs(d / c - 1) > AGREE and (b > a) != (d > c):
                theirs, ours = (f"{digits(start)} to {digits(end)}{unit}" for start, end in ((a, b), (c, d)))
                yield (
                    f"{group.among}{group.factor} {first} to {last}: {what} goes from {theirs} as DLIO reckons it, "
                    f"and from {ours} over the whole epoch ({d / c - 1:+.0%})"
                )
                break  # both figures are one measurement


def _trusted_mean(runs: Iterable[JudgedResponse], name: str) -> float | None:
    """What the formulas give, of runs in which they give what was run; that steps are few is what is told here."""
    trusted = [run for run in runs if not any(doubt.kind in {"contradiction", "oversleep"} for doubt in run.doubts)]
    values = [value for judged in trusted if (value := judged.formula(name)) is not None]
    return fmean(values) if values else None


def _decimals(count: int, scale: float = 1.0) -> Callable[[float], str]:
    return lambda value: f"{value * scale:.{count}f}"


def _judged(study: DlioStudy) -> Section | None:
    if not study.judged:
        return None
    marks = Marks()
    columns = [Column("run", left=True)]
    columns += [Column(head, name, _decimals(count, scale)) for name, head, scale, count in FIGURES]
    rows = []
    for judged in study.judged:
        figures = [judged.responses[name] for name, *_ in FIGURES]
        rows.append([judged.run.id, *(marks(each.why_missing or "not recorded") if each.value is None else each.value for each in figures)])
    return Section("What the runs' input did", [Table(columns, rows), *marks.lines()])


def _checked(study: DlioStudy) -> Section | None:
    """DLIO's own figures beside those of its step lists."""
    if not study.judged:
        return None
    marks = Marks()
    heads = [("AU %", 2), ("sd", 2), ("again", 2), ("MB/s", 2), ("again", 1), ("consistent", 1), ("identity", 4)]
    names = ["au_reported", "au_sd_reported", "au_again", "mb_per_s_reported", "mb_per_s_again", "mb_per_s_consistent", "identity"]
    columns = [Column("run", left=True), Column("ranks"), Column("steps")]
    columns += [Column(head, name, _decimals(count)) for (head, count), name in zip(heads, names, strict=True)]
    rows = []
    for judged in study.judged:
        run, reported = judged.run, judged.run.reported
        bad = next((doubt.reason for doubt in judged.doubts if doubt.kind in {STALE, "degenerate", "times"}), None)
        sd = reported.get("train_au_stdev_percentage")
        au, mb = (
            _reported(reported.get(name), figure, bad, marks)
            for name, figure in (("train_au_mean_percentage", STEADY), ("train_io_mean_MB_per_second", NOMINAL))
        )
        again = [None if bad else _finite(judged.formula(name)) for name in (STEADY, NOMINAL, "mb_per_s_nominal_steady")]
        counts = [run.processes, f"{fewest_steps(run)[0]}x{len({epoch.number for epoch in run.epochs})}"]
        ratio = None if bad else study.identities[run.origin].reported
        rows.append([run.id, *counts, au, None if bad else _finite(sd), again[0], mb, *again[1:], ratio])
    ways = sorted({(judged.run.excluded_start_steps, judged.run.excluded_end_steps) for judged in study.judged})
    left_out = " or ".join(f"{counted(start, 'step')} at the start of an epoch and {end} at its end" for start, end in ways)
    return Section(f"As DLIO reckons it, leaving out {left_out}", [Table(columns, rows), *marks.lines()])


def _finite(value: object) -> float | None:
    return value if isinstance(value, float) and math.isfinite(value) else None


def _reported(value: object, figure: str, bad: str | None, marks: Marks) -> object:
    """What the source reported; what cannot be is not shown as a number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return marks("not reported")
    why = cannot_be(figure, [float(value)])
    reasons = [reason for reason in (bad, why and f"what was reported is no figure: {why}") if reason]
    return marks(f"refused: {'; '.join(reasons)}") if reasons else value


def _repeated(study: DlioStudy) -> Section | None:
    again = [runs for inner in settings(study.usable).values() for runs in inner.values() if len(runs) > 1]
    rows = []
    for runs in again:
        means = [mean_over_runs(run_values(runs, name)) for name in RESPONSES]
        rows.append([runs[0].run.id, len(runs), *(part for mean, sd in means for part in (mean, sd))])
    columns = [Column("run", left=True), Column("n", "runs")]
    for name, head in RESPONSES.items():
        columns += [Column(f"{head} %", name, lambda one: f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}]")]
        columns += [Column("sd", f"{name}_sd", _decimals(2))]
    title = "Settings that were run again: mean over runs, 95 % by Student's t, sample deviation"
    return Section(title, [Table(columns, rows)]) if rows else None


def _stale(study: DlioStudy) -> Section | None:
    lines = [Line(line, "", "open") for line in grouped([(stale.id, f"{stale.evidence}.") for stale in study.stale])]
    return Section("Stale data: these ran on other data than their own and are compared with nothing", lines) if lines else None


def _variation(study: DlioStudy) -> Section | None:
    """Tests over epochs, which are not valid, beside those over repeated runs, where there are any."""
    tests = [test for test in study.tests if test.epochs is not None]
    if not tests:
        return None
    error = any(study.error.values())
    over = [("F over epochs", "epochs"), *([("F over runs", "runs")] if error else [])]
    columns = [Column("factor", left=True), Column("response", left=True)]
    for head, name in over:
        columns += [Column(head, f"f_{name}", _f), Column("p", f"p_{name}", tiny)]
    columns.insert(4, Column("eta²", "eta2", _decimals(4)))
    refused = any(judged.value(STEADY) is None for judged in study.usable)
    scatter = "; ".join(f"{RESPONSES[name]} {_scatter(error)}" for name, error in study.error.items() if error is not None)
    over_runs = f"on what runs of one setting scatter by: {scatter}." if scatter else NO_REPEATS
    which = "over epochs not valid" if error else "not valid"
    title = f"Analysis of variance, {which}: epochs taken for runs{'; the figures are refused above' if refused else ''}"
    rows = [_test_row(test, with_error=error) for test in tests]
    return Section(title, [Table(columns, rows), Line(over_runs, "over runs", "quiet")])


def _scatter(error: RunError) -> str:
    return f"{error.sd:.3f} points, from {counted(error.settings, 'setting')} run again (df {error.df})"


def _test_row(tested: Tested, *, with_error: bool) -> list[object]:
    over = tested.epochs
    response = RESPONSES[tested.response] + (f", from epoch {tested.skipped + 1}" if tested.skipped else "")
    row: list[object] = [f"{tested.among}{tested.factor} {' / '.join(tested.levels)}", response, over, over and over.p, over and over.eta2]
    return [*row, *([tested.runs, tested.runs and tested.runs.p] if with_error else [])]


def _f(oneway: Oneway) -> str:
    return f"({oneway.df_between},{oneway.df_error}) {oneway.f:.{1 if oneway.f >= 100 else 2}f}"


def _notes(study: DlioStudy) -> list[str]:
    noted = []
    for judged in study.judged:
        noted += [(judged.run.id, note) for note in judged.run.notes]
        noted += [(judged.run.id, doubt.reason) for doubt in judged.doubts if doubt.kind == "contradiction"]
        size, host = judged.run.reported.get("data_size_per_host_GB"), judged.run.host
        if isinstance(size, float) and host.cached_bytes and size * 2**30 <= host.cached_bytes:
            noted.append((judged.run.id, "the page cache held as much as the data set when it began: storage was hardly read"))
    return grouped(noted, len(study.judged))


def record_of(study: DlioStudy) -> dict[str, Any]:
    """All of it for programs."""
    return {
        "runs": [record(judged) for judged in study.judged],
        "generations": [about(generation) for generation in study.generations],
        "published": [{**asdict(row), "id": row.id, "raw": study.raw[row].origin if row in study.raw else None} for row in study.rows],
        "stale": [asdict(stale) for stale in study.stale],
        "compared": [judged.run.origin for judged in study.usable],
        "tests": [asdict(test) for test in study.tests],
        "run_error": {name: error and asdict(error) for name, error in study.error.items()},
    }
