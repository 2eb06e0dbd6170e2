"""Evidence as an answer: which tweak sets help in general, and a prediction for another day."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby, zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING

from analysis.answer import Answer, Column, Columns, Line, Section, Table, Tone, bullets, table_of
from analysis.compare import parts_ways
from analysis.labels import label_of
from analysis.wording import bracket, counted, number, probability
from control.names import first_few, undigested

from .evidence import COLUMNS, NAMED, name_of

if TYPE_CHECKING:
    from .evidence import Evidence, MetaAnalysis

TONES: dict[str, Tone] = {
    "helps everywhere measured": "good",
    "helps on average": "good",
    "harms everywhere measured": "bad",
    "harms on average": "bad",
    "no difference": "quiet",
    "depends on the machine": "open",
    "can't tell yet": "open",
    "too few runs": "open",
}
ORDER = list(TONES)
LISTED = ORDER[:5]
BROUGHT = ("machine", "device", "kernel", "torch")  # columns in which runs may differ


def answer(gathered: MetaAnalysis, *, every: bool = False) -> Answer:
    """Make the answer; `every` adds a table of each row's runs."""
    evidence = sorted(gathered.evidence, key=_place)
    by_heading = groupby(evidence, heading)
    sections = [Section(title, [_table([*together])]) for title, together in by_heading]
    sections += [Section(_name_of(one), [_runs(one)]) for one in evidence if every]
    lines = [*_of_runs(gathered)]
    lines += [
        f"{_name_of(one)}: effects differ by {one.differs_by} (--by={one.differs_by}): look there"
        for one in evidence
        if one.differs_by
    ]
    lines += _contested(evidence)
    few = [_name_of(one) for one in evidence if one.word == "too few runs"]
    if few:
        lines.append(f"no general verdict from fewer than three days: {first_few(few, NAMED)}")
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
        rows=Table(
            [column for column, _ in FLAT], [[read(one) for _, read in FLAT] for one in evidence]
        ),
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
    where = f" on {gathered.machines} machines" if gathered.machines > 1 else ""
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


def _gain(one: Evidence, end: str) -> float | None:
    return math.expm1(getattr(one.over, end)) if one.over else None


def _interval(one: Evidence, low: str, high: str) -> str | None:
    return bracket(_gain(one, low), _gain(one, high), number).strip() or None


def _tau(one: Evidence) -> float | None:
    return one.over.tau if one.over else None


# The columns of `--csv`.
FLAT: Columns = (
    (Column("workload", left=True), attrgetter("workload")),
    (Column("tweakset", left=True), attrgetter("name")),
    (Column("runs"), lambda one: len(one.contributions)),
    (Column("machines"), attrgetter("machines")),
    (Column("gain"), partial(_gain, end="mean")),
    *((Column(end), partial(_gain, end=end)) for end in ("low", "high", "next_low", "next_high")),
    (Column("tau_log"), _tau),
    (Column("p_adjusted"), attrgetter("p_adjusted")),
    (Column("verdict", left=True), attrgetter("word")),
)
SHOWN: Columns = (
    (Column("workload", left=True), lambda one: undigested(one.workload)),
    (Column("tweak set", left=True), attrgetter("name")),
    (Column("runs", spare=1), lambda one: len(one.contributions)),
    (Column("helped", spare=2), attrgetter("helped")),
    (Column("gain %", write=number), partial(_gain, end="mean")),
    (Column("95 % interval"), partial(_interval, low="low", high="high")),
    (Column("next run"), partial(_interval, low="next_low", high="next_high")),
    (Column("tau %", write=lambda tau: f"{100 * tau:.1f}", spare=3), _tau),
    (Column("p (Holm)", write=probability), attrgetter("p_adjusted")),
)
MORE_RUNS = (Column("more runs"), attrgetter("more_runs"))


def _table(evidence: Sequence[Evidence]) -> Table:
    more = [MORE_RUNS] * any(one.more_runs for one in evidence)
    return table_of([*SHOWN, *more], evidence)


def _runs(one: Evidence) -> Table:
    columns = [
        Column("run", left=True),
        Column("day", left=True),
        Column("blocks"),
        Column("gain %", write=number),
        Column("95 % interval"),
        Column("without it", write=number),
    ]
    rows = []
    for day, without in zip_longest(one.days, map(math.expm1, one.without)):
        for each in day.runs:
            effect = each.effect
            interval = bracket(effect.low, effect.high, number).strip()
            named = name_of(each.run), each.day, effect.n_candidate
            rows.append([*named, effect.gain, interval, without])
    return Table(columns, rows)


def _contested(evidence: Sequence[Evidence]) -> Iterator[str]:
    """Yield the claims that another metric, such as throughput, contradicts in some runs."""
    for one in evidence:
        seconds = [
            (each.effect, each.comparison.second)
            for each in one.contributions
            if each.comparison.second
        ]
        apart = sum(parts_ways(*pair) for pair in seconds)
        if apart and one.word in LISTED[:4]:
            name = label_of(seconds[0][1].metric)
            yield f"{_name_of(one)}: {name} contradicts it in {apart} of {len(seconds)} runs"


def _of_runs(gathered: MetaAnalysis) -> Iterator[str]:
    for column in BROUGHT:
        values = Counter(COLUMNS[column](run) for run in gathered.runs)
        if len(values) > 1:
            shown = [f"{value or 'unknown'} ({count})" for value, count in values.most_common()]
            yield f"runs differ in {column}: {first_few(shown, NAMED)}"


LEGEND = (
    ("helped", "number of runs in which it helped by more than the margin"),
    (
        "gain, 95 % interval",
        "over all runs, above 0 is better (REML, Hartung and Knapp); a machine's day counts once",
    ),
    (
        "next run",
        "range of the effect on another day, on machines of these kinds, 19 times in 20",
    ),
    ("(one machine), (one day)", "the runs show nothing about another"),
    (
        "more runs",
        "each on another day, they would find this effect, or the margin, four times in five",
    ),
    ("tau", "standard deviation of the runs' effects beyond their own errors"),
    ("helps everywhere measured", "next run lies above the margin, and p is below 0.05"),
    (
        "helps on average",
        "p below 0.05, and the mean is above 0; another day may show nothing, or the opposite",
    ),
    ("no difference", "next run lies inside the margin"),
    (
        "depends on the machine",
        "of ten days or more, groups of runs differ (notes say by what): a reason to look there",
    ),
    ("can't tell yet", "p is 0.05 or more, and next run reaches beyond the margin"),
    ("too few runs", "of fewer than three days or machines: the variation is unknown"),
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
    names = ("workload", "tweakset", "kind", "margin", "by", "differs_by", "p_adjusted", "machines")
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
