"""Answers of comparisons: a sentence and a table of what is faster or slower, groups for the rest.

A gain is above 0 if it is better, whichever way the metric runs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from control.names import first_few, undigested

from .answer import Answer, Column, Line, Section, Table, Word, bullets, command, table_of
from .arms import split
from .checks import LEVEL, disturbances, warnings_of
from .compare import inside_margin, parts_ways, unseen, without_guards
from .labels import TOLD_RATE, amount, headline, label_of, provenance, shorten
from .wording import (
    SPOKEN,
    as_long,
    bracket,
    counted,
    number,
    plan_command,
    probability,
    size,
    spoken,
    unsigned,
)

if TYPE_CHECKING:
    from .terms import Comparison, Effect, Run

    Getter = Callable[[Comparison], object]

CLAIMS = ("improved", "regressed")
FEW = 8  # up to this many contrasts, each has a row
ROWS = 15  # names in a list; further names are counted
NAMED = 6  # claims in the answer's sentence
ADJUSTED = {"holm": "Holm", "bh": "BH"}
SPEED = (
    "step_time",
    "throughput",
    TOLD_RATE,
    "samples_per_s",
    "mb_per_s",
    "duration",
    "latency",
    "wall",
)
SPEED_WORDS = ("faster", "slower")
UNITS = {
    "paired": "blocks that both arms have, of those planned.",
    "switched": "pairs of segments inside processes, or processes where there are five or more.",
    "two-sample": (
        "units of baseline and candidate where they share no blocks: cells of one run each, or "
        "whole runs."
    ),
}
GEOMETRIC = "its value is a geometric mean because effects are ratios."
DOUBT = "trust the verdicts there less (one such check in 20 fails by chance)"
METRICS = {  # definitions for the legend
    "throughput_samples_per_s": "samples / total time, stalls included: the rate that users get.",
    TOLD_RATE: (
        "the speed that the program itself reported: the median over the measured steps or runs."
    ),
    "step_time_round_adjusted_s": (
        "step time without what its round added to all tweak sets alike (docs/designs.md)."
    ),
    "step_time_p10_s": "the 10th percentile of step time: the kernel's cost without interference.",
    "step_time_q1_s": "the lower quartile of the time of a call.",
}


@dataclass(frozen=True, slots=True)
class GainInterval:
    value: float
    low: float
    high: float


class Names:
    """Names of comparisons, made of what distinguishes them: workload, run, tweak set.

    What all share is stated once, above them.
    """

    def __init__(self, comparisons: Sequence[Comparison]) -> None:
        self._workloads, self.common = shorten(
            dict.fromkeys(comparison.workload for comparison in comparisons)
        )
        runs = {comparison.candidate_run for comparison in comparisons}
        self._stems = {
            run: Path(run).stem if len({Path(other).stem for other in runs}) == len(runs) else run
            for run in runs
        }
        self.heads = ["workload"] * (len(self._workloads) > 1) + ["run"] * (len(runs) > 1)
        noun = next((comparison.level_of for comparison in comparisons), "") or "tweak set"
        sets = {comparison.tweakset for comparison in comparisons}
        if len(sets) > 1 or not self.heads:
            self.heads.append(noun)
        elif names := sets - {comparison.baseline for comparison in comparisons}:
            self.common = ", ".join(filter(None, [self.common, f"{noun} {names.pop()}"]))

    def part(self, comparison: Comparison, head: str) -> str:
        if head == "workload" and comparison.level_of != head:
            return self._workloads[comparison.workload]
        return self._stems[comparison.candidate_run] if head == "run" else comparison.tweakset

    def listed(self, comparisons: Iterable[Comparison]) -> str:
        """List the comparisons: `thp-always (cnn, lora), tcp-cubic (ddp)`."""
        names: dict[str, list[str]] = {}
        for comparison in comparisons:
            *where, name = (self.part(comparison, head) for head in self.heads)
            names.setdefault(name, []).extend([", ".join(where)] if where else [])
        return ", ".join(
            _some(
                [
                    f"{name} ({', '.join(_some(where))})" if where else name
                    for name, where in names.items()
                ]
            )
        )


def answer_of(
    comparisons: Sequence[Comparison],
    runs: Sequence[Run],
    *,
    every: bool = False,
    refused: Sequence[str] = (),
    source: str = "",
) -> Answer:
    """Return the answer of comparisons; `runs` are their runs, the baseline's first.

    `every`: one row per contrast, however many. `source`: the file for the suggested next command.
    """
    contrasts = without_guards(comparisons)
    nothing = unseen(comparisons, runs[0]) if len(runs) == 1 else None
    disturbed = [line for run in runs for line in disturbances(run)]
    warnings = list(dict.fromkeys(line for run in runs for line in warnings_of(run, comparisons)))
    if not comparisons:
        title, *more = [f"Nothing to compare: {_why_none(runs)}."]
    else:
        title, *more = [nothing.sentence] if nothing else _findings(contrasts)
    apart, agree = _guards(comparisons)
    studies: dict[str, list[Comparison]] = {}
    for comparison in contrasts:
        studies.setdefault(comparison.study, []).append(comparison)
    sections = [
        _study(study if len(studies) > 1 else "", own, every=every)
        for study, own in studies.items()
    ]
    lines = [Line(text, "run", "quiet") for text in headline(runs).splitlines()]
    if len(sections) == 1:  # no blank line between its groups and this
        sections[0] = Section(sections[0].title, [*sections[0].parts, *lines])
    else:
        sections.append(Section("", lines))
    baselines = [*dict.fromkeys(comparison.baseline for comparison in contrasts)]
    if any(comparison.primary for comparison in contrasts):
        baselines.append(GEOMETRIC)
    facts = ("run_id", "origin", "started_utc", "commit")
    columns = [
        (Column(name, name, interval=name in INTERVALS), read) for name, read in FIELDS.items()
    ]
    plans = nothing is not None and nothing.plan_blocks is not None
    return Answer(
        title=title,
        findings=[
            *map(Line, more),
            *(Line(text, tone="open") for text in [*apart, *disturbed]),
        ],
        sections=sections,
        warnings=[line for line in warnings if line not in disturbed],
        legend=[
            *provenance(runs),
            *(("A/A", text) for text in agree),
            *(("baseline", text) for text in baselines),
            *((name, study.question) for run in runs for name, study in run.studies.items()),
            *_legend(contrasts),
        ],
        next=_next(source, contrasts, plans=plans) if source else (),
        data={
            "runs": [{name: getattr(run, name) for name in facts} for run in runs],
            "warnings": warnings,
            "unseen": nothing,
            "comparisons": list(comparisons),
        },
        rows=_table(columns, comparisons),
        refused=refused,
    )


def _why_none(runs: Sequence[Run]) -> str:
    run = next(iter(runs), None)
    if run is None or not (run.lacks_baseline or run.interrupted or not any_measured(run)):
        return "there is no tweak set beside the baseline"
    if not any_measured(run):
        return "no cell was measured"
    return f"no cell of {run.baseline if run.lacks_baseline else 'a tweak set'} was measured"


def any_measured(run: Run) -> bool:
    return any(cell.outcome == "measured" for cell in run.cells)


def _next(source: str, contrasts: Sequence[Comparison], *, plans: bool) -> tuple[str, ...]:
    file, _ = split(source)
    if plans and contrasts:
        return plan_command(contrasts[0].margin, file)
    return command("report" if contrasts else "show", file)


def _findings(contrasts: Sequence[Comparison]) -> list[str]:
    names, words = Names(contrasts), _words(contrasts)
    plain = [word.capitalize() for word in words]
    gains: dict[str, dict[str, list[float]]] = {head: {} for head in plain}
    for claim in _claims(contrasts):
        if effect := claim.primary:  # grouped by tweak set: `a 3.4 and 21.5 %, b 8 %`
            head = _contested(claim, effect) or plain[effect.gain < 0]
            own = gains.setdefault(head, {}).setdefault(names.part(claim, names.heads[-1]), [])
            own.append(effect.gain)
    sentences = []
    for head, of in gains.items():
        names_of = [*of]
        if head in plain:
            timed = words == SPEED_WORDS
            names_of = [
                f"{name} {_span(own)}{as_long(min(own)) * timed}" for name, own in of.items()
            ]
        if names_of:
            sentences.append(f"{head}: {first_few(names_of, NAMED)}.")
    counts = Counter[str](comparison.verdict for comparison in contrasts)
    meanings = {
        **SPOKEN,
        **dict(zip(CLAIMS, words, strict=True)),
        "equivalent": f"same (within {_margins(contrasts)})",
    }
    text = ", ".join(
        f"{counts[verdict]} {word}" for verdict, word in meanings.items() if counts[verdict]
    )
    total = f"{counted(len(contrasts), 'contrast')} {_relation(contrasts)}: {text}."
    return [" ".join(sentences) or f"Nothing is shown to be {' or '.join(words)}.", total]


def _contested(claim: Comparison, effect: Effect) -> str:
    if claim.second is not None and parts_ways(effect, claim.second):
        return f"Contradicted by {label_of(claim.second.metric)}"
    return "Below the margin" if inside_margin(effect, claim.margin) else ""


def _span(gains: Sequence[float]) -> str:
    """Write a tweak set's gains: two as `3.4 and 21.5`, unlike an interval; more as a range."""
    least, most = (unsigned(end(map(abs, gains))) for end in (min, max))
    if least == most:
        return most
    return f"{least.removesuffix(' %')} {'and' if len(gains) == 2 else 'to'} {most}"


def _claims(comparisons: Iterable[Comparison]) -> list[Comparison]:
    claims = [comparison for comparison in comparisons if comparison.verdict in CLAIMS]
    return sorted(
        claims, key=lambda claim: -abs(math.log1p(claim.primary.gain)) if claim.primary else 0.0
    )


def _margins(comparisons: Iterable[Comparison]) -> str:
    return ", ".join(dict.fromkeys(unsigned(comparison.margin) for comparison in comparisons))


def _guards(comparisons: Sequence[Comparison]) -> tuple[list[str], list[str]]:
    guards = [
        (comparison, comparison.primary)
        for comparison in comparisons
        if (comparison.guard or comparison.untouched) and comparison.primary
    ]
    ends: dict[str, dict[str, None]] = {}
    for guard, effect in guards:
        refused = guard.verdict == "not comparable"
        if refused or effect.p < LEVEL:
            end = "nothing is concluded there" if refused and guard.guard else DOUBT
            ends.setdefault(end, {})[undigested(guard.workload)] = None
    if ends or not guards:
        return [
            f"Untouched arms differ under {', '.join(of)}: {end}." for end, of in ends.items()
        ], []
    gains = [(abs(effect.gain), undigested(guard.workload)) for guard, effect in guards]
    gain, workload = max(gains, key=lambda entry: entry[0])
    under = f" ({workload})" if len({guard.workload for guard, _ in guards}) > 1 else ""
    return [], [f"Equal arms differ by {unsigned(gain)} at most{under}."]


def _study(title: str, contrasts: Sequence[Comparison], *, every: bool) -> Section:
    names, claims = Names(contrasts), _claims(contrasts)
    rest = [comparison for comparison in contrasts if comparison.verdict not in CLAIMS]
    shown, rest = ([*claims, *rest], []) if every or len(contrasts) <= FEW else (claims, rest)
    parts: list[Line | Table] = [Line(f"All rows: {names.common}")] if names.common else []
    parts += [_shown_table(shown, names)] if shown else []
    notes: dict[str, list[Comparison]] = {}
    for comparison in shown:
        for note in dict.fromkeys(_notes(comparison)):
            notes.setdefault(note, []).append(comparison)
    parts += bullets(
        [
            note if 1 < len(of) == len(contrasts) else f"{names.listed(of)}: {note}"
            for note, of in notes.items()
        ],
        "note",
    )
    for verdict in ("equivalent", "inconclusive"):
        if own := [comparison for comparison in rest if comparison.verdict == verdict]:
            parts.append(Line(_by_workload(own, names), spoken(verdict)))
    refused = [comparison for comparison in rest if comparison.verdict == "not comparable"]
    return Section(title, [*parts, *bullets(_by_reason(refused, names), "not comparable")])


def _by_workload(comparisons: Sequence[Comparison], names: Names) -> str:
    heads = (
        names.heads[1:] if names.heads[0] == "workload" and len(names.heads) > 1 else names.heads
    )
    lists: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        lists.setdefault(
            "" if heads is names.heads else names.part(comparison, "workload"), []
        ).append(comparison)
    if len(lists) > ROWS:
        heads, lists = names.heads, {"": [*comparisons]}
    texts = []
    for workload, own in lists.items():
        listed = ", ".join(
            _some([", ".join(names.part(comparison, head) for head in heads) for comparison in own])
        )
        mdes = [
            comparison.mde
            for comparison in own
            if comparison.verdict == "inconclusive" and comparison.mde is not None
        ]
        seen = f" (MDE {size(max(mdes))} %)" if mdes else ""
        texts.append(f"{workload}: {listed}{seen}" if workload else f"{listed}{seen}")
    return "; ".join(texts)


def _by_reason(comparisons: Sequence[Comparison], names: Names) -> list[str]:
    reasons: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        reasons.setdefault(comparison.reason, []).append(comparison)
    return [
        f"{names.listed(of)}: {reason}"
        for reason, of in sorted(reasons.items(), key=lambda entry: -len(entry[1]))
    ]


def _some(texts: Sequence[str]) -> list[str]:
    return (
        [*texts] if len(texts) <= ROWS else [*texts[:ROWS], f"… {len(texts) - ROWS} more (--all)"]
    )


def _relation(comparisons: Sequence[Comparison]) -> str:
    comparison = comparisons[0]
    if len({other.baseline for other in comparisons}) > 1:
        return f"of each with its namesake in {comparison.baseline_run}"
    baseline = comparison.baseline.removesuffix(" + stock-again")
    if comparison.baseline_run != comparison.candidate_run:
        return f"with {baseline} of {comparison.baseline_run}"
    if comparison.level_of:
        metrics = dict.fromkeys(other.primary_metric.name for other in comparisons)
        return f"with {baseline} by {' and '.join(metrics)}"
    return f"with {baseline}"


def _table(columns: Iterable[tuple[Column, Getter]], comparisons: Sequence[Comparison]) -> Table:
    heads, getters = zip(*columns, strict=True)
    return Table(heads, [[read(comparison) for read in getters] for comparison in comparisons])


def _shown_table(shown: Sequence[Comparison], names: Names) -> Table:
    primaries = {comparison.primary_metric.name for comparison in shown}
    seconds = {comparison.second.metric for comparison in shown if comparison.second is not None}
    second = label_of(next(iter(seconds))) if len(seconds) == 1 else ""
    head = label_of(next(iter(primaries))) if len(primaries) == 1 else "primary metric"
    columns: list[tuple[Column, Getter]] = [
        *((Column(name, left=True), partial(names.part, head=name)) for name in names.heads),
        *([(Column("metric", left=True), _primary_label)] if len(primaries) > 1 else []),
        (Column(head, left=True), _verdict),
        (Column("95 % interval", "gain", _interval), FIELDS["gain"]),
    ]
    if second:
        beside = Column(f"{second}\n+ % [95 %]", "second_gain", _gain, spare=4)
        columns.append((beside, FIELDS["second_gain"]))
    p = Column(f"p ({ADJUSTED[shown[0].adjustment]})", "p_adjusted", probability, spare=1)
    columns += [
        (Column("baseline", spare=3), _baseline),
        (p, FIELDS["p_adjusted"]),
        (Column("MDE %", "mde", size, spare=5), FIELDS["mde"]),
        (Column("n", spare=2), _units),
    ]
    return table_of(columns, shown)


def _as_gain(effect: Effect | None) -> GainInterval | None:
    return None if effect is None else GainInterval(effect.gain, effect.low, effect.high)


def _baseline_value(comparison: Comparison) -> float | None:
    return comparison.primary.baseline if comparison.primary else comparison.observed_baseline


INTERVALS = ("gain", "second_gain")
# The columns of `--csv`.
FIELDS: dict[str, Getter] = {
    "study": attrgetter("study"),
    "workload": attrgetter("workload"),
    "run": attrgetter("candidate_run"),
    "tweakset": attrgetter("tweakset"),
    "baseline": attrgetter("baseline"),
    "verdict": attrgetter("verdict"),
    "metric": attrgetter("primary_metric.name"),
    "baseline_value": _baseline_value,
    "gain": lambda one: _as_gain(one.primary),
    "second_metric": lambda one: one.second.metric.name if one.second else None,
    "second_gain": lambda one: _as_gain(one.second),
    "p_adjusted": attrgetter("p_adjusted"),
    "mde": attrgetter("mde"),
    "pairs": attrgetter("pairs"),
    "blocks": attrgetter("blocks"),
    "reason": attrgetter("reason"),
}


def _primary_label(comparison: Comparison) -> str:
    return label_of(comparison.primary_metric)


def _verdict(comparison: Comparison) -> Word:
    if comparison.observed is not None:
        return Word(f"one run {_size(comparison, comparison.observed)}", "open")
    if comparison.primary is None or comparison.verdict == "not comparable":
        return Word("not comparable", "quiet")
    gain = comparison.primary.gain
    if comparison.verdict in CLAIMS:
        return Word(_size(comparison, gain), "good" if comparison.verdict == "improved" else "bad")
    if comparison.verdict == "equivalent":
        return Word(f"same ({number(gain)} %)")
    return Word(f"can't tell ({number(gain)} %)", "open")


def _size(comparison: Comparison, gain: float) -> str:
    words = _words([comparison])
    return (
        f"{unsigned(abs(gain))} "
        f"{words[gain < 0]}{as_long(gain).replace(' as long', '') if words == SPEED_WORDS else ''}"
    )


def _words(comparisons: Sequence[Comparison]) -> tuple[str, str]:
    speed = all(comparison.primary_metric.name.startswith(SPEED) for comparison in comparisons)
    return SPEED_WORDS if speed else ("better", "worse")


def _interval(gain: GainInterval) -> str:
    return f"[{number(gain.low)}, {number(gain.high)}]"


def _gain(gain: GainInterval) -> str:
    return f"{number(gain.value)}{bracket(gain.low, gain.high)}"


def _baseline(comparison: Comparison) -> str | None:
    value = _baseline_value(comparison)
    if value is None:
        return None
    if comparison.relative_to:
        return f"{value:.4g} × {comparison.relative_to}"
    return amount(comparison.primary_metric, value)


def _units(comparison: Comparison) -> str:
    effect = comparison.primary
    if effect is not None and effect.design == "two-sample":
        return f"{effect.n_baseline}+{effect.n_candidate}"
    return "1+1" if comparison.observed is not None else f"{comparison.pairs}/{comparison.blocks}"


def _notes(comparison: Comparison) -> list[str]:
    effect, verdict, same = comparison.primary, comparison.verdict, False
    if effect is not None and verdict == "equivalent":
        reach = max(-math.log1p(effect.low), math.log1p(effect.high))
        same = reach > math.log1p(comparison.margin)
    unexplained = effect is None or verdict == "not comparable" or comparison.outlasts or same
    return [comparison.reason] * unexplained + list(comparison.notes)


def _legend(comparisons: Sequence[Comparison]) -> list[tuple[str, str]]:
    effects = [comparison.primary for comparison in comparisons if comparison.primary]
    if not effects:
        return []
    designs = {effect.design for effect in effects}
    metrics = {
        effect.metric.name
        for comparison in comparisons
        for effect in (comparison.primary, comparison.second)
        if effect is not None
    }
    family = ", ".join(
        dict.fromkeys(str(comparison.family) for comparison in comparisons if comparison.family)
    )
    paired = " Cells are paired by block." if designs & {"paired", "switched"} else ""
    return [
        (
            "faster, slower",
            f"more or less work per second (50 % slower: twice the time), p below 0.05.{paired}",
        ),
        ("same", f"shown to be equal: the 90 % interval lies inside ±{_margins(comparisons)}."),
        (
            "can't tell",
            (
                "neither a difference nor equality is shown; more blocks are needed. It does not "
                "mean 'no change'."
            ),
        ),
        ("95 % interval", f"of this contrast alone; + is {_words(comparisons)[0]}."),
        (
            "p",
            (
                f"adjusted ({ADJUSTED[comparisons[0].adjustment]}) for all {family} contrasts of "
                "the study together."
            ),
        ),
        (
            "MDE",
            (
                "the smallest difference that this run would have shown with 80 % probability; "
                "narrow tables omit it."
            ),
        ),
        *(("n", text) for design, text in UNITS.items() if design in designs),
        *((label_of(name), text) for name, text in METRICS.items() if name in metrics),
    ]
