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
    sections += [Section(_name_of(one), [_runs(one)]) for one in evidence if every]
    lines = [*_of_runs(gathered)]
    few = [_name_of(one) for one in evidence if one.word == "too few runs"]
    if few:
        lines.append(f"no general verdict from fewer than three runs: {first_few(few, NAMED)}")
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


def _name_of(one: Evidence) -> str:
    return f"{one.name} in {undigested(one.workload)}"


def _gain_of(one: Evidence) -> str:
    gain = f"{number(math.expm1(one.over.mean))} %" if one.over else ""
    return f"{_name_of(one)} {gain}{one.remark}"


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
    return bracket(math.expm1(low), math.expm1(high), number).strip()


def _runs(one: Evidence) -> Table:
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
    for column in BROUGHT:
        values = values_of(gathered.runs, column)
        if len(values) > 1:
            shown = [f"{value or 'unknown'} ({count})" for value, count in values.most_common()]
            yield f"runs differ in {column}: {first_few(shown, NAMED)}"


LEGEND = (
    ("helped", "number of runs in which it helped by more than the margin"),
    (
        "gain, 95 % interval",
        "common to all runs, above 0 is better (REML, Hartung and Knapp); each run counts once",
    ),
    (
        "next run",
        (
            "range of the effect in another run like these, 19 times in 20: another day, on "
            "machines of these kinds"
        ),
    ),
    (
        "(one machine), (one day)",
        (
            "the runs of this effect come from one machine, or name none, or are of one day: they "
            "show nothing about another"
        ),
    ),
    (
        "more runs",
        (
            "number of further runs, each on another day, that would find this effect, or the "
            "margin, four times in five"
        ),
    ),
    ("tau", "standard deviation of the runs' effects beyond their own errors"),
    (
        "helps everywhere measured",
        "the next run's interval lies above the margin, and p is below 0.05",
    ),
    (
        "helps on average",
        "p below 0.05, and the mean is above 0; another day may show nothing, or the opposite",
    ),
    ("no difference", "the next run's interval lies inside the margin"),
    (
        "can't tell yet",
        "p is 0.05 or more, and the next run's interval reaches beyond the margin",
    ),
    ("too few runs", "fewer than three: the variation between days is unknown"),
)


def _legend(gathered: MetaAnalysis) -> Iterator[tuple[str, str]]:
    yield from LEGEND
    family = counted(gathered.family, "effect")
    yield (
        "p (Holm)",
        f"for a mean effect of 0, adjusted for all {family} of these runs, shown or not",
    )


def _data(one: Evidence) -> dict[str, object]:
    over = one.over
    names = ("workload", "tweakset", "kind", "margin", "reason", "by", "p_adjusted", "machines")
    ends = ("low", "high", "next_low", "next_high")
    log = {"log_se": "error", "tau_log": "tau", "tau_groups_log": "tau_groups"}
    return {name: getattr(one, name) for name in (*names, "more_runs")} | {
        "metric": one.metric.name,
        "metric_label": label_of(one.metric),
        "verdict": one.word,
        "runs_helped": one.helped,
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
        "estimate": over
        and {
            "gain": math.expm1(over.mean),
            **{end: math.expm1(getattr(over, end)) for end in ends},
            **{name: getattr(over, field) for name, field in log.items()},
            **{name: getattr(over, name) for name in ("df", "p", "q", "q_p")},
            "without_each": [math.expm1(each) for each in one.without],
        },
    }


def _flat(evidence: Sequence[Evidence]) -> Table:
    figured = ("gain", "low", "high", "next_low", "next_high", "tau_log")
    names = ("workload", "tweakset", "runs", "machines", *figured, "p_adjusted", "verdict")
    rows: list[list[object]] = []
    for one in evidence:
        over = one.over
        logs = over and (over.mean, over.low, over.high, over.next_low, over.next_high)
        figures = [*map(math.expm1, logs), over.tau] if over and logs else [None] * len(figured)
        counts = len(one.contributions), one.machines
        rows.append([one.workload, one.name, *counts, *figures, one.p_adjusted, one.word])
    return Table(
        [Column(name, name, left=name in ("workload", "tweakset", "verdict")) for name in names],
        rows,
    )
