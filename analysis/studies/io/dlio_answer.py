"""The answer of DLIO's result folders: what stands, DLIO's own figures checked, the same runs judged, stale data, variation, notes."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import combinations
from statistics import fmean, stdev
from typing import Any

from analysis.answer import Answer, Column, Line, Section, Table, bullets, grouped
from analysis.stats.estimate import mean_of
from analysis.wording import digits, tiny
from control.called import JUDGE

from .dlio_study import STALE, Comparison, DlioStudy, Oneway, run_values, settings
from .formulas import STEADY, WHOLE
from .responses import JudgedResponse, about, identity, record
from .sentences import Marks, counted, listed
from .validity import cannot_be, fewest_steps

REPORTED = (
    ("train_au_mean_percentage", "AU\n%"),
    ("train_throughput_mean_samples_per_second", "samples/s"),
    ("train_io_mean_MB_per_second", "MB/s"),
)
AGREE = 0.02  # of the value: below it two figures are taken for the same
NOMINAL = "mb_per_s_nominal_dlio"
DLIO_FIGURES = {STEADY: "AU", NOMINAL: "MB/s"}
PAIRS = (("AU", " %", STEADY, WHOLE), ("MB/s", "", NOMINAL, "mb_per_s_nominal_whole"))
RESPONSES = {STEADY: "AU steady", WHOLE: "AU whole"}
FIGURES = (
    *((STEADY, "AU\nsteady %", 1, 2), (WHOLE, "AU\nwhole %", 1, 2)),
    *(("samples_per_s_steady", "samples/s\nsteady", 1, 2), ("samples_per_s_whole", "samples/s\nwhole", 1, 2)),
    ("mb_per_s_nominal_whole", "MB/s\nwhole", 1, 1),
    *(("first_step_share", "first\nbatch %", 100, 1), ("barrier_share", "barrier %", 100, 1)),
)
CHECKED = (
    *(("AU %", "au_reported", 2), ("sd", "au_sd_reported", 2), ("again", "au_again", 2), ("MB/s", "mb_per_s_reported", 2)),
    *(("again", "mb_per_s_again", 1), ("consistent", "mb_per_s_consistent", 1), ("identity", "identity", 4)),
)
NO_REPEATS = "not possible: no setting was run twice here, so nothing says what a run by itself scatters by. Name repeats too."
LEGEND = (
    ("steady, whole", "without the first step of an epoch, as DLIO has it, and over the whole epoch."),
    ("first batch", "the part of the epoch until the first batch is there; barrier: what is neither load nor computation."),
    ("steps", "of an epoch of a rank, by epochs. sd: AU's population deviation over epochs, which DLIO reports."),
    ("again", "computed anew from the step lists; MB are 2^20 bytes of nominal record length."),
    ("consistent", "MB/s of as many steps as the time spans; DLIO counts S - 2 steps over the time of S - 1."),
    ("identity", "samples/s over AU x batch x ranks / computation time: 1, for they are one measurement and no two findings."),
    ("over epochs", "pseudo-replication, shown to be checked; nothing follows from it. AU steady is as DLIO reported it."),
)


def answer(study: DlioStudy) -> Answer:
    trained, made = len(study.judged), len(study.generations)
    degenerate = sum(one.has_doubt("degenerate") for one in study.judged)
    counts = ((degenerate, "degenerate"), (len(study.stale), "on stale data"), (len(study.refused), "cannot be read"))
    alone = len(study.summaries)
    parts = [f"{counted(trained + made + alone, 'result folder')}: {trained + alone} trained, {made} only generated data"]
    parts += [f"{alone} with a summary alone"] if alone else []
    parts += [f"{count} {what}" for count, what in counts if count]
    hidden = [f"{line}." for line in reversals(study.groups)]
    sections = (
        _judged(study),
        _reported(study),
        Section("What the excluded first step hides", bullets(hidden)) if hidden else None,
        _checked(study),
        _repeated(study),
        _stale(study),
        _variation(study),
    )
    above = f"{JUDGE} io {shlex.quote(str(study.beside[0].parent))}" if study.beside else ""
    return Answer(
        "; ".join(parts),
        bullets(f"{line}." for line in findings(study)),
        [section for section in sections if section is not None],
        [f"{line}." for line in _notes(study)],
        LEGEND,
        above or f"{JUDGE} io {' '.join(map(shlex.quote, study.paths))} --plot io/",
        record_of(study),
    )


def _reported(study: DlioStudy) -> Section | None:
    """DLIO's own figures where nothing else was kept; None where there are none."""
    if not study.summaries:
        return None
    columns = [Column("run", left=True), Column("ranks"), *(Column(head, name, "{:.4g}".format) for name, head in REPORTED)]
    rows = [[run.id, run.processes, *(_number(run.reported.get(name)) for name, _ in REPORTED)] for run in study.summaries]
    return Section("Reported by DLIO, not checked: no step lists are there", [Table(columns, rows)])


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def findings(study: DlioStudy) -> Iterator[str]:
    """Yield how many published rows stand, whether steady figures can be believed, what whole epochs show, and whether there is a test."""
    if study.rows:
        yield "; ".join(_published(study))
    if study.judged:
        good = [run for run in study.judged if all(run.value(name) is not None for name in DLIO_FIGURES)]
        missing = [[one.why_missing for name in DLIO_FIGURES if (one := run.responses[name]).why_missing] for run in study.judged]
        kinds = Counter((reasons[0] or "").partition(":")[0] for reasons in missing if reasons)
        reason = ", ".join(f"{kind.replace('_', ' ')} in {count}" for kind, count in kinds.items())
        runs = counted(len(study.judged), "run")
        if good:
            yield f"steady AU and MB/s can be believed in {len(good)} of {runs}{f': {reason}' if reason else ''}"
        else:
            yield f"no steady AU or MB/s can be believed: {reason} of {runs}"
    if study.summaries:
        yield f"{counted(len(study.summaries), 'run')} left a summary alone: DLIO's own figures, which nothing here can check"
    yield from _whole(study)
    sizes = [len(runs) for inner in settings(study.usable).values() for runs in inner.values()]
    if again := sum(size > 1 for size in sizes):
        yield f"{again} of {counted(len(sizes), 'setting')} ran more than once: on those stands what is said over runs"
    elif len(sizes) > 1:
        yield "each setting ran once, so no difference can be tested"
    for table in study.beside:
        above = shlex.quote(str(table.parent))
        yield f"{table.name} lies above this folder: {JUDGE} io {above} checks it too, and looks for stale rows"


def _published(study: DlioStudy) -> Iterator[str]:
    stale = {stale.id for stale in study.stale} & {row.id for row in study.rows}
    lost = [row.id for row in study.rows if row not in study.raw]
    yield f"{len(study.raw)} of {counted(len(study.rows), 'published row')} are reproduced from raw data, to 0.005"
    if lost:
        yield f"{len(lost)} have none here ({', '.join(lost)})"
    if stale:
        yield f"{len(stale)} ran on stale data"
    bad, good = ({one.run.id for one in study.judged if one.has_doubt("degenerate") is degenerate} for degenerate in (True, False))
    for names, what in ((bad, "another, degenerate run"), (good - bad, "another run")):
        if rows := [name for name in lost if name in names]:
            yield f"the folder of {listed(rows)} holds {what}{' each' if len(rows) > 1 else ''}"


def _whole(study: DlioStudy) -> Iterator[str]:
    known = sorted((value, judged.run.id) for judged in study.usable if (value := judged.value(WHOLE)) is not None)
    if known:
        (low, first), (high, last) = known[0], known[-1]
        au = f"AU is {low:.1f} %" if len(known) == 1 else f"AU goes from {low:.1f} % ({first}) to {high:.1f} % ({last})"
        middle = f", {known[len(known) // 2][0]:.1f} % in the middle" if len(known) > 2 else ""
        turned = len(reversals(study.groups))
        turn = f"; {counted(turned, 'comparison')} of steady figures turn round there" if turned else ""
        yield f"over the whole epoch {au}{middle}{turn}"


def reversals(groups: Iterable[Comparison]) -> list[str]:
    """Return where a figure without the first step rises and the same over the whole epoch falls, or the other way round."""
    pairs = [(group, *pair) for group in groups for pair in combinations(group.levels, 2)]
    return [line for group, first, last in pairs if (line := _reversal(group, first, last))]


def _reversal(group: Comparison, first: str, last: str) -> str | None:
    for what, unit, steady, whole in PAIRS:  # both figures are one measurement: the first that turns round is enough
        (a, b), (c, d) = ([_trusted_mean(group.levels[level], name) for level in (first, last)] for name in (steady, whole))
        if a and b and c and d and abs(b / a - 1) > AGREE and abs(d / c - 1) > AGREE and (b > a) != (d > c):
            dlio, own = (f"{digits(start)} to {digits(end)}{unit}" for start, end in ((a, b), (c, d)))
            return (
                f"{group.among}{group.factor} {first} to {last}: {what} goes from {dlio} as DLIO computes it, "
                f"and from {own} over the whole epoch ({d / c - 1:+.0%})"
            )
    return None


def _trusted_mean(runs: Iterable[JudgedResponse], name: str) -> float | None:
    """What the formulas give, of runs in which they give what was run; that steps are few is what a reversal is about."""
    values = [
        value for judged in runs if not judged.has_doubt("contradiction", "oversleep") and (value := judged.formula(name)) is not None
    ]
    return fmean(values) if values else None


def _decimals(count: int, scale: float = 1.0) -> Callable[[float], str]:
    return lambda value: f"{value * scale:.{count}f}"


def _judged(study: DlioStudy) -> Section | None:
    marks = Marks()
    columns = [Column("run", left=True), *(Column(head, name, _decimals(count, scale)) for name, head, scale, count in FIGURES)]
    rows = []
    for judged in study.judged:
        figures = [judged.responses[name] for name, *_ in FIGURES]
        rows.append([judged.run.id, *(marks(each.why_missing or "not recorded") if each.value is None else each.value for each in figures)])
    return Section("What the runs' input did", [Table(columns, rows), *marks.lines()]) if rows else None


def _checked(study: DlioStudy) -> Section | None:
    marks = Marks()

    def reported(judged: JudgedResponse, name: str, figure: str, bad: str | None) -> object:
        """What the source reported; what cannot be is not shown as a number."""
        value = judged.run.reported.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            return marks("not reported")
        impossible = cannot_be(figure, [float(value)])
        reasons = [reason for reason in (bad, impossible and f"what was reported is no figure: {impossible}") if reason]
        return marks(f"refused: {'; '.join(reasons)}") if reasons else value

    rows = []
    for judged in study.judged:
        run = judged.run
        bad = next((doubt.reason for doubt in judged.doubts if doubt.kind in {STALE, "degenerate", "times"}), None)
        au = reported(judged, "train_au_mean_percentage", STEADY, bad)
        mb = reported(judged, "train_io_mean_MB_per_second", NOMINAL, bad)
        figures = [run.reported.get("train_au_stdev_percentage"), *map(judged.formula, (STEADY, NOMINAL, "mb_per_s_nominal_steady"))]
        figures = [value if not bad and isinstance(value, float) and math.isfinite(value) else None for value in figures]
        counts = [run.processes, f"{fewest_steps(run)[0]}x{len({epoch.number for epoch in run.epochs})}"]
        rows.append([run.id, *counts, au, *figures[:2], mb, *figures[2:], None if bad else identity(judged).reported])
    columns = [Column("run", left=True), Column("ranks"), Column("steps")]
    columns += [Column(head, name, _decimals(count)) for head, name, count in CHECKED]
    ways = sorted({(judged.run.excluded_start_steps, judged.run.excluded_end_steps) for judged in study.judged})
    left_out = " or ".join(f"{counted(start, 'step')} at the start of an epoch and {end} at its end" for start, end in ways)
    return Section(f"As DLIO computes it, leaving out {left_out}", [Table(columns, rows), *marks.lines()]) if rows else None


def _repeated(study: DlioStudy) -> Section | None:
    rows = []
    for runs in (runs for inner in settings(study.usable).values() for runs in inner.values() if len(runs) > 1):
        values = [run_values(runs, name) for name in RESPONSES]
        parts = [[mean_of(each), stdev(each)] if len(each) > 1 else [None, None] for each in values]
        rows.append([runs[0].run.id, len(runs), *(part for pair in parts for part in pair)])
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
    errors = {name: error for name, error in study.error.items() if error is not None}
    columns = [Column("factor", left=True), Column("response", left=True), Column("F over epochs", "f_epochs", _f)]
    columns += [Column("p", "p_epochs", tiny), Column("eta²", "eta2", _decimals(4))]
    columns += [Column("F over runs", "f_runs", _f), Column("p", "p_runs", tiny)] if errors else []
    rows = []
    for test in study.tests:
        if test.epochs is not None:
            response = RESPONSES[test.response] + (f", from epoch {test.skipped + 1}" if test.skipped else "")
            row = [f"{test.among}{test.factor} {' / '.join(test.levels)}", response, test.epochs, test.epochs.p, test.epochs.eta2]
            rows.append([*row, *([test.runs, test.runs and test.runs.p] if errors else [])])
    if not rows:
        return None
    scatter = "; ".join(
        f"{RESPONSES[name]} {error.sd:.3f} points, from {counted(error.settings, 'setting')} run again (df {error.df})"
        for name, error in errors.items()
    )
    over_runs = f"on what runs of one setting scatter by: {scatter}." if scatter else NO_REPEATS
    refused = "; the figures are refused above" if any(judged.value(STEADY) is None for judged in study.usable) else ""
    title = f"Analysis of variance, {'over epochs ' if errors else ''}not valid: epochs taken for runs{refused}"
    return Section(title, [Table(columns, rows), Line(over_runs, "over runs", "quiet")])


def _f(oneway: Oneway) -> str:
    return f"({oneway.df_between},{oneway.df_error}) {oneway.f:.{1 if oneway.f >= 100 else 2}f}"


def _notes(study: DlioStudy) -> list[str]:
    notes = []
    for run in study.summaries:
        notes += [(run.id, note) for note in run.notes]
    for judged in study.judged:
        notes += [(judged.run.id, note) for note in judged.run.notes]
        notes += [(judged.run.id, doubt.reason) for doubt in judged.doubts if doubt.kind == "contradiction"]
        size, host = judged.run.reported.get("data_size_per_host_GB"), judged.run.host
        if isinstance(size, float) and host.cached_bytes and size * 2**30 <= host.cached_bytes:
            notes.append((judged.run.id, "the page cache held as much as the data set when it began: storage was hardly read"))
    return grouped(notes, len(study.judged))


def record_of(study: DlioStudy) -> dict[str, Any]:
    return {
        "runs": [record(judged) for judged in study.judged],
        "summaries": [about(summary) for summary in study.summaries],
        "generations": [about(generation) for generation in study.generations],
        "published": [{**asdict(row), "id": row.id, "raw": study.raw[row].origin if row in study.raw else None} for row in study.rows],
        "stale": study.stale,
        "compared": [judged.run.origin for judged in study.usable],
        "tests": study.tests,
        "run_error": study.error,
    }
