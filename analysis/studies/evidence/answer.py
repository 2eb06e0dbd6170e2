"""Evidence as an answer: which tweak sets help in general, and a prediction for another day."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from analysis.answer import Answer, Column, Line, Section, Table, Tone, bullets
from analysis.labels import label_of
from analysis.wording import bracket, counted, number, probability
from control.names import first_few, undigested

from .evidence import NAMED, machines_of, values_of

if TYPE_CHECKING:
    from .evidence import Evidence, MetaAnalysis

TONES: dict[str, Tone] = {
    "helps everywhere measured": "good",
    "helps on average": "good",
    "harms everywhere measured": "bad",
    "harms on average": "bad",
    "no difference": "quiet",
    "can't tell yet": "open",
    "too few runs": "open",
}
ORDER = list(TONES)
LISTED = (
    "helps everywhere measured",
    "helps on average",
    "harms everywhere measured",
    "harms on average",
    "no difference",
)
BROUGHT = ("machine", "device", "kernel", "torch")  # columns in which runs may differ


def answer(gathered: MetaAnalysis, *, every: bool = False) -> Answer:
    """Make the answer; `every` adds a table of each row's runs."""
    evidence = sorted(gathered.evidence, key=_place)
    by_heading = groupby(evidence, heading)
    sections = [Section(title, [_table([*together])]) for title, together in by_heading]
    sections += [
        Section(f"{one.name} in {undigested(one.workload)}", [_runs(one)])
        for one in evidence
        if every
    ]
    lines = [*_of_runs(gathered), *_of_rows(evidence)]
    return Answer(
        title="Evidence over runs",
        findings=[Line(_headline(gathered, evidence), tone="strong"), *_findings(evidence)],
        sections=[*sections, Section("", bullets(lines, "note:"))] if lines else sections,
        warnings=gathered.notes,
        legend=list(_legend(gathered)),
        data={
            "runs": [run.run_id for run in gathered.runs],
            "family": gathered.family,
            "evidence": [_data(one) for one in evidence],
            "notes": lines,
            "warnings": list(gathered.notes),
        },
        rows=_flat(evidence),
    )


def heading(one: Evidence) -> str:
    """Return the verdict, with a remark if it is settled but from a single machine or day."""
    return f"{one.word}{one.remark}" if one.word in LISTED else one.word


def _place(one: Evidence) -> tuple[int, bool, str, float]:
    """Rank verdicts as in `ORDER`, those over several machines first, then the largest gain."""
    mean = one.over.mean if one.over else 0.0
    return ORDER.index(one.word), heading(one) != one.word, one.workload, -mean


def _headline(gathered: MetaAnalysis, evidence: Sequence[Evidence]) -> str:
    runs = gathered.runs
    days = sorted({run.started_utc[:10] for run in runs})
    span = f", {days[0]} to {days[-1]}" if len(days) > 1 else ""
    machines = machines_of(runs)
    where = f" on {machines} machines" if machines > 1 else ""
    settled = sum(one.word in LISTED for one in evidence)
    of_days = f"{counted(len(runs), 'run')} of {counted(len(days), 'day')}{span}{where}"
    hidden = gathered.family - sum(one.over is not None for one in evidence)
    adjusted = f" (p adjusted for all {gathered.family} effects)" if hidden else ""
    return f"{of_days}: {settled} of {counted(len(evidence), 'effect')} settled{adjusted}."


def _findings(evidence: Sequence[Evidence]) -> Iterator[Line]:
    for words, head in ((LISTED[:2], "Helps"), (LISTED[2:4], "Harms")):
        found = [one for one in evidence if one.word in words and one.over]
        if found:
            shown = [_gain_of(one) for one in found]
            yield Line(f"{head}: {first_few(shown, 4)}.", tone=TONES[words[0]])


def _gain_of(one: Evidence) -> str:
    gain = f"{number(math.expm1(one.over.mean))} %" if one.over else ""
    return f"{one.name} in {undigested(one.workload)} {gain}{one.remark}"


def _table(evidence: Sequence[Evidence]) -> Table:
    columns = [
        Column("workload", "workload", left=True),
        Column("tweak set", "tweakset", left=True),
        Column("runs", "runs", spare=1),
        Column("helped", "helped", spare=2),
        Column("gain %", "gain"),
        Column("95 % interval", "interval"),
        Column("next run", "next_run"),
        Column("tau %", "tau", spare=3),
        Column("p (Holm)", "p"),
    ]
    rows = [_row(one) for one in evidence]
    if any(one.more_runs for one in evidence):
        columns.append(Column("more runs", "more_runs"))
        rows = [[*row, one.more_runs] for row, one in zip(rows, evidence, strict=True)]
    return Table(columns, rows)


def _row(one: Evidence) -> list[object]:
    over, named = one.over, [undigested(one.workload), one.name, len(one.contributions), one.helped]
    if over is None:
        return [*named, None, None, None, None, None]
    return [
        *named,
        number(math.expm1(over.mean)),
        _interval(over.low, over.high),
        _interval(over.next_low, over.next_high),
        f"{100 * over.tau:.1f}",
        probability(one.p_adjusted if one.p_adjusted is not None else over.p),
    ]


def _interval(low: float, high: float) -> str:
    """Convert log gains to percent."""
    return bracket(math.expm1(low), math.expm1(high), number).strip()


def _runs(one: Evidence) -> Table:
    """Make a table of a row's runs, with the mean if a run is left out."""
    columns = [
        Column("run", "run", left=True),
        Column("day", "day", left=True),
        Column("blocks", "blocks"),
        Column("gain %", "gain"),
        Column("95 % interval", "interval"),
        Column("without it", "without"),
    ]
    rows = []
    for at, each in enumerate(one.contributions):
        effect = each.effect
        without = number(math.expm1(one.without[at])) if one.without else None
        name = each.run.origin.rpartition("/")[2].removesuffix(".xz").removesuffix(".json")
        interval = bracket(effect.low, effect.high, number).strip()
        rows.append([name, each.day, effect.n_candidate, number(effect.gain), interval, without])
    return Table(columns, rows)


def _of_runs(gathered: MetaAnalysis) -> Iterator[str]:
    """Yield how the runs differ."""
    for column in BROUGHT:
        values = values_of(gathered.runs, column)
        if len(values) > 1:
            shown = [f"{value or 'unknown'} ({count})" for value, count in values.most_common()]
            yield f"runs differ in {column}: {first_few(shown, NAMED)}"


def _of_rows(evidence: Sequence[Evidence]) -> Iterator[str]:
    for one in evidence:
        name = f"{one.name} in {undigested(one.workload)}"
        if one.differs_by:
            yield (
                f"{name}: depends on the machine according to these runs: effects differ by "
                f"{one.differs_by} (--by={one.differs_by})"
            )
    few = [
        f"{one.name} in {undigested(one.workload)}"
        for one in evidence
        if one.word == "too few runs"
    ]
    if few:
        yield f"no general verdict from fewer than three runs: {first_few(few, NAMED)}"


def _legend(gathered: MetaAnalysis) -> Iterator[tuple[str, str]]:
    yield "helped", "number of runs in which it helped by more than the margin"
    yield (
        "gain, 95 % interval",
        "common to all runs, above 0 is better (REML, Hartung and Knapp); each run counts once",
    )
    yield (
        "next run",
        (
            "range of the effect in another run like these, 19 times in 20: another day, on "
            "machines of these kinds"
        ),
    )
    yield (
        "(one machine)",
        (
            "the runs of this effect come from one machine, or name none: they show nothing about "
            "another machine"
        ),
    )
    yield "(one day)", "the runs of this effect are of one day: they show nothing about another"
    yield (
        "more runs",
        (
            "number of further runs, each on another day, that would find this effect, or the "
            "margin, four times in five"
        ),
    )
    yield "tau", "standard deviation of the runs' effects beyond their own errors"
    family = counted(gathered.family, "effect")
    yield (
        "p (Holm)",
        f"for a mean effect of 0, adjusted for all {family} of these runs, shown or not",
    )
    yield (
        "helps everywhere measured",
        "the next run's interval lies above the margin, and p is below 0.05",
    )
    yield (
        "helps on average",
        "p below 0.05, and the mean is above 0; another day may show nothing, or the opposite",
    )
    yield "no difference", "the next run's interval lies inside the margin"
    yield (
        "can't tell yet",
        "p is 0.05 or more, and the next run's interval reaches beyond the margin",
    )
    yield "too few runs", "fewer than three: the variation between days is unknown"
    yield (
        "depends on the machine",
        (
            "effects differ between groups of runs, from ten runs on: a reason to investigate, "
            "not a proof"
        ),
    )


def _data(one: Evidence) -> dict[str, object]:
    result: dict[str, object] = {
        "workload": one.workload,
        "tweakset": one.tweakset,
        "kind": one.kind,
        "metric": one.metric.name,
        "metric_label": label_of(one.metric),
        "margin": one.margin,
        "verdict": one.word,
        "reason": one.reason,
        "by": one.by,
        "differs_by": one.differs_by,
        "p_adjusted": one.p_adjusted,
        "runs_helped": one.helped,
        "machines": one.machines,
        "more_runs": one.more_runs,
        "runs": [
            {
                "run_id": each.run.run_id,
                "origin": each.run.origin,
                "log_gain": each.gain,
                "log_se": each.error,
                **each.columns,
            }
            for each in one.contributions
        ],
    }
    if one.over:
        over = one.over
        result["estimate"] = {
            "gain": math.expm1(over.mean),
            "low": math.expm1(over.low),
            "high": math.expm1(over.high),
            "next_low": math.expm1(over.next_low),
            "next_high": math.expm1(over.next_high),
            "log_se": over.error,
            "df": over.df,
            "tau_log": over.tau,
            "tau_groups_log": over.tau_groups,
            "p": over.p,
            "q": over.q,
            "q_p": over.q_p,
            "without_each": [math.expm1(each) for each in one.without],
        }
    return result


def _flat(evidence: Sequence[Evidence]) -> Table:
    """Make a table with a row per effect and unformatted numbers."""
    figured = ("gain", "low", "high", "next_low", "next_high", "tau_log")
    names = ("workload", "tweakset", "runs", "machines", *figured, "p_adjusted", "verdict")
    rows: list[list[object]] = []
    for one in evidence:
        over = one.over
        figures: list[object] = [None] * 6
        if over:
            figures = [
                *(
                    math.expm1(value)
                    for value in (over.mean, over.low, over.high, over.next_low, over.next_high)
                ),
                over.tau,
            ]
        counts = len(one.contributions), one.machines
        rows.append([one.workload, one.name, *counts, *figures, one.p_adjusted, one.word])
    return Table(
        [Column(name, name, left=name in ("workload", "tweakset", "verdict")) for name in names],
        rows,
    )
