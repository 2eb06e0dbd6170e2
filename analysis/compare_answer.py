"""What comparisons say: what is faster or slower in a sentence, those contrasts in a table, the others by what is known of them.

Gains are more work per second, or less time for it, whichever way the metric underneath runs.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .answer import Answer, Column, Line, Section, Table, Word, bullets
from .checks import LEVEL, disturbances, warnings_of
from .labels import amount, headline, label_of, shorten
from .switched import outlasts
from .unseen import unseen
from .verdict import without_guards
from .wording import number, probability, size, unsigned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .answer import Tone
    from .terms import Comparison, Effect, Run

CLAIMS = ("improved", "regressed")
FEW = 8  # contrasts that all have a row
ROWS = 15  # claims in the table, and names in a list, before the rest is counted
NAMED = 6  # claims in the sentence that answers
REASONS = 3
ADJUSTED = {"holm": "Holm", "hochberg": "Hochberg", "bonferroni": "Bonferroni", "bh": "BH", "by": "BY"}
SPEED = ("step_time", "throughput", "samples_per_s", "mb_per_s", "duration", "latency", "wall")


@dataclass(frozen=True, slots=True)
class Gain:
    value: float
    low: float
    high: float


class Names:
    """Names of comparisons by what differs between them: workload, run, tweak set. What is equal in all is said once, above."""

    def __init__(self, comparisons: Sequence[Comparison]) -> None:
        self._workloads, self.common = shorten(dict.fromkeys(comparison.workload for comparison in comparisons))
        runs = {comparison.candidate_run for comparison in comparisons}
        self._stems = {run: Path(run).stem if len({Path(other).stem for other in runs}) == len(runs) else run for run in runs}
        self.heads = ["workload"] * (len(self._workloads) > 1) + ["run"] * (len(runs) > 1)
        sets = {comparison.tweakset for comparison in comparisons}
        if len(sets) > 1 or not self.heads:
            self.heads.append("tweak set")
        elif names := sets - {comparison.baseline for comparison in comparisons}:
            self.common = ", ".join(filter(None, [self.common, f"tweak set {names.pop()}"]))

    def workload(self, comparison: Comparison) -> str:
        return self._workloads[comparison.workload]

    def parts(self, comparison: Comparison) -> list[str]:
        every = {"workload": self.workload(comparison), "run": self._stems[comparison.candidate_run], "tweak set": comparison.tweakset}
        return [every[head] for head in self.heads]

    def name(self, comparison: Comparison) -> str:
        return ", ".join(self.parts(comparison))

    def short(self, comparison: Comparison) -> str:
        parts = self.parts(comparison)
        return ", ".join(parts[1:]) if self.heads[0] == "workload" and len(parts) > 1 else ", ".join(parts)


def answer_of(  # noqa: PLR0913  # what can be asked of a comparison
    comparisons: Sequence[Comparison],
    runs: Sequence[Run],
    *,
    every: bool = False,
    opinions: Sequence[str] = (),
    refused: Sequence[str] = (),
    source: str = "",
) -> Answer:
    """What is said of comparisons; `runs` are those they were made of, the baseline's first.

    `every`: a row for each contrast, however many. `opinions`: sentences of a second test. `source`: the file, for the next command.
    """
    asked = without_guards(comparisons)
    nothing = unseen(comparisons, runs[0]) if len(runs) == 1 else None
    disturbed = [disturbance.sentence for run in runs for disturbance in disturbances(run)]
    if not comparisons:
        none = "no cell of a tweak set was measured" if runs and runs[0].interrupted else "there is no tweak set beside the baseline"
        title, *more = [f"Nothing to compare: {none}."]
    else:
        title, *more = [nothing.sentence] if nothing else _findings(asked)
    facts = headline(runs).splitlines()
    common = Names(asked).common if asked else ""
    if common:
        facts.append(f"All rows: {common}")
    sections = [
        section for study in dict.fromkeys(comparison.study for comparison in asked) for section in _study(study, asked, every=every)
    ]
    if opinions:
        sections.append(Section("Without assuming a distribution (primary metric, Hodges-Lehmann gain and interval)", bullets(opinions)))
    return Answer(
        title=title,
        findings=[
            *(Line(text) for text in [*more, *_guards(comparisons)]),
            *(Line(text, tone="open") for text in disturbed),
            *(Line(text, tone="quiet") for text in facts),
        ],
        sections=sections,
        warnings=[line for line in dict.fromkeys(line for run in runs for line in warnings_of(run, comparisons)) if line not in disturbed],
        legend=[*((name, study.question) for run in runs for name, study in run.studies.items()), *_legend(asked)],
        next=f"python -m analysis {'plan' if nothing else 'report'} {shlex.quote(source)}" if source and asked else "",
        data={
            "runs": [{"run_id": run.run_id, "origin": run.origin, "started_utc": run.started_utc, "commit": run.commit} for run in runs],
            "warnings": list(dict.fromkeys(line for run in runs for line in warnings_of(run, comparisons))),
            "unseen": nothing,
            "comparisons": list(comparisons),
        },
        rows=_rows(comparisons),
        refused=refused,
    )


def _findings(asked: Sequence[Comparison]) -> list[str]:
    names = Names(asked)
    claims = _claims(asked)
    sentences = []
    words = _words(asked)
    for verdict, word in zip(CLAIMS, words, strict=True):
        result = [claim for claim in claims if claim.verdict == verdict]
        if result:
            more = f" and {len(result) - NAMED} more" if len(result) > NAMED else ""
            sentences.append(f"{word.capitalize()}: {_effects(result[:NAMED], names)}{more}.")
    counts = Counter(comparison.verdict for comparison in asked)
    margins = ", ".join(dict.fromkeys(unsigned(comparison.margin) for comparison in asked))
    meanings = {
        "improved": words[0],
        "regressed": words[1],
        "equivalent": f"the same within {margins}",
        "inconclusive": "undecided",
        "not comparable": "not comparable",
    }
    text = ", ".join(f"{counts[verdict]} {word}" for verdict, word in meanings.items() if counts[verdict])  # type: ignore[index]
    total = f"{len(asked)} contrast{'s' if len(asked) != 1 else ''} {_relation(asked)}: {text}."
    return [" ".join(sentences), total] if sentences else [f"Nothing is shown to be {' or '.join(words)}.", total]


def _effects(claims: Sequence[Comparison], names: Names) -> str:
    """Claims in a sentence, those of one tweak set together: `a 21.5 % (cnn_train), 3.4 % (lora_finetune); b 8 % (ddp_train)`."""
    places: dict[str, list[str]] = {}
    for claim in claims:
        if claim.primary:
            size_of = unsigned(abs(claim.primary.gain))
            *where, name = names.parts(claim)
            places.setdefault(name, []).append(f"{size_of} ({', '.join(where)})" if where else size_of)
    return "; ".join(f"{name} {', '.join(texts)}" for name, texts in places.items())


def _claims(comparisons: Iterable[Comparison]) -> list[Comparison]:
    claims = [comparison for comparison in comparisons if comparison.verdict in CLAIMS]
    return sorted(claims, key=lambda claim: -abs(math.log1p(claim.primary.gain)) if claim.primary else 0.0)


def _guards(comparisons: Sequence[Comparison]) -> list[str]:
    """One sentence on equal arms: how far apart they are, where they may be told apart."""
    guards = [comparison for comparison in comparisons if (comparison.guard or comparison.untouched) and comparison.primary]
    failed = [guard.workload for guard in guards if guard.verdict == "not comparable"]
    if failed:
        return [f"Untouched arms differ under {', '.join(dict.fromkeys(failed))}: nothing is concluded there."]
    if not guards or any(guard.primary.p < LEVEL for guard in guards if guard.primary):  # a warning says that
        return []
    gain, where = max(((abs(guard.primary.gain), guard.workload) for guard in guards if guard.primary), key=lambda result: result[0])
    under = f" ({where})" if len({guard.workload for guard in guards}) > 1 else ""
    return [f"Untouched arms agree: {unsigned(gain)} apart at most{under}."]


def _study(study: str, asked: Sequence[Comparison], *, every: bool) -> Iterable[Section]:
    mine = [comparison for comparison in asked if comparison.study == study]
    names = Names(mine)
    several = len({comparison.study for comparison in asked}) > 1
    if every or len(mine) <= FEW:
        shown = [*_claims(mine), *(comparison for comparison in mine if comparison.verdict not in CLAIMS)]
        rest: Sequence[Comparison] = []
    else:
        shown = _claims(mine)[:ROWS]
        rest = [comparison for comparison in mine if comparison not in shown]
    parts: list[Line | Table] = [_table(shown, names)] if shown else []
    more = sum(comparison.verdict in CLAIMS for comparison in rest)
    if more:
        parts.append(Line(f"… and {more} more that are faster or slower (--all)."))
    notes = {note: [comparison for comparison in shown if note in _notes(comparison)] for one in shown for note in _notes(one)}
    parts += bullets([note if 1 < len(of) == len(mine) else f"{_who(of, names)}: {note}" for note, of in notes.items()])
    if parts:
        yield Section(study if several else "", parts)
    margins = ", ".join(dict.fromkeys(unsigned(comparison.margin) for comparison in mine))
    same = [comparison for comparison in rest if comparison.verdict == "equivalent"]
    if same:
        yield Section(f"The same within {margins}", bullets(_by_workload(same, names)))
    undecided = [comparison for comparison in rest if comparison.verdict == "inconclusive"]
    if undecided:
        alone = all(comparison.observed is not None for comparison in undecided)
        title = "Undecided: one run against one" if alone else "Can't tell; in brackets the smallest difference that would have been seen"
        yield Section(title, bullets(_by_workload(undecided, names, mde=True)))
    refused = Counter(comparison.reason for comparison in rest if comparison.verdict == "not comparable")
    if refused:
        lines = [
            f"{_who([comparison for comparison in rest if comparison.reason == reason], names)}: {reason}"
            for reason, _ in refused.most_common(REASONS)
        ]
        left = len(refused) - REASONS
        yield Section("Not comparable", bullets([*lines, *([f"{left} other reasons (--all)."] if left > 0 else [])]))


def _by_workload(comparisons: Sequence[Comparison], names: Names, *, mde: bool = False) -> list[str]:
    lists: dict[str, list[str]] = {}
    for comparison in comparisons:
        suffix = f" ({size(comparison.mde)} %)" if mde and comparison.mde is not None else ""
        lists.setdefault(names.workload(comparison), []).append(f"{names.short(comparison)}{suffix}")
    if len(lists) > ROWS or "workload" not in names.heads or names.heads == ["workload"]:
        return [", ".join(_some([text for texts in lists.values() for text in texts]))]
    return [f"{workload}: {', '.join(_some(texts))}" for workload, texts in lists.items()]


def _who(comparisons: Sequence[Comparison], names: Names) -> str:
    places: dict[str, list[str]] = {}
    for comparison in comparisons:
        *where, name = names.parts(comparison)
        places.setdefault(name, []).extend([", ".join(where)] if where else [])
    return ", ".join(_some([f"{name} ({', '.join(_some(where))})" if where else name for name, where in places.items()]))


def _some(texts: Sequence[str]) -> list[str]:
    return [*texts] if len(texts) <= ROWS else [*texts[:ROWS], f"… {len(texts) - ROWS} more (--all)"]


def _relation(comparisons: Sequence[Comparison]) -> str:
    comparison = comparisons[0]
    if len({other.baseline for other in comparisons}) > 1:
        return f"of each with its like in {comparison.baseline_run}"
    return f"with {comparison.baseline}" + ("" if comparison.baseline_run == comparison.candidate_run else f" of {comparison.baseline_run}")


def _table(shown: Sequence[Comparison], names: Names) -> Table:
    primaries = {comparison.primary_metric.name for comparison in shown}
    seconds = {comparison.second.metric for comparison in shown if comparison.second is not None}
    second = next(iter(seconds)) if len(seconds) == 1 else None
    adjustment = ADJUSTED[shown[0].adjustment]
    head = label_of(primaries.copy().pop()) if len(primaries) == 1 else "primary metric"
    columns = [
        *(Column(name, name.replace(" ", "_"), left=True) for name in names.heads),
        *([Column("metric", "primary_metric", left=True)] if len(primaries) > 1 else []),
        Column(head, "effect", left=True),
        Column(f"95 % interval\n+ is {_words(shown)[0]}", "gain", _interval),
        *([Column(f"{label_of(second)}\n+ % [95 %]", "second_gain", _gain, spare=3)] if second else []),
        Column("baseline", "baseline_value", spare=2),
        Column(f"p\n{adjustment}", "p_adjusted", probability),
        Column("would\nsee %", "mde", size, spare=4),
        Column("n", "units", spare=1),
    ]
    rows = []
    for comparison in shown:
        cells: list[object] = [*names.parts(comparison)]
        if len(primaries) > 1:
            cells.append(label_of(comparison.primary_metric))
        cells += [_verdict(comparison), _as_gain(comparison.primary)]
        if second:
            cells.append(_as_gain(comparison.second))
        rows.append([*cells, _base(comparison), comparison.p_adjusted, comparison.mde, _units(comparison)])
    filled = [at for at in range(len(columns)) if any(row[at] is not None for row in rows)]
    return Table([columns[at] for at in filled], [[row[at] for at in filled] for row in rows])


def _rows(comparisons: Sequence[Comparison]) -> Table:
    columns: dict[str, Callable[[Comparison], object]] = {
        "study": lambda comparison: comparison.study,
        "workload": lambda comparison: comparison.workload,
        "run": lambda comparison: comparison.candidate_run,
        "tweakset": lambda comparison: comparison.tweakset,
        "baseline": lambda comparison: comparison.baseline,
        "verdict": lambda comparison: comparison.verdict,
        "metric": lambda comparison: comparison.primary_metric.name,
        "baseline_value": lambda comparison: comparison.primary.baseline if comparison.primary else comparison.observed_baseline,
        "gain": lambda comparison: _as_gain(comparison.primary),
        "second_metric": lambda comparison: comparison.second.metric.name if comparison.second else None,
        "second_gain": lambda comparison: _as_gain(comparison.second),
        "p_adjusted": lambda comparison: comparison.p_adjusted,
        "mde": lambda comparison: comparison.mde,
        "pairs": lambda comparison: comparison.pairs,
        "blocks": lambda comparison: comparison.blocks,
        "reason": lambda comparison: comparison.reason,
    }
    return Table(
        [Column(name, name) for name in columns], [[value(comparison) for value in columns.values()] for comparison in comparisons]
    )


def _verdict(comparison: Comparison) -> Word:
    tones: Mapping[str, Tone] = {"improved": "good", "regressed": "bad", "equivalent": "", "inconclusive": "open"}
    if comparison.observed is not None:
        return Word(f"one run {unsigned(abs(comparison.observed))} {_words([comparison])[comparison.observed < 0]}", "open")
    if comparison.primary is None or comparison.verdict == "not comparable":
        return Word("not comparable", "quiet")
    if comparison.verdict in CLAIMS:
        return Word(_size(comparison), tones[comparison.verdict])
    word = "same" if comparison.verdict == "equivalent" else "can't tell"
    return Word(f"{word} ({number(comparison.primary.gain)} %)", tones[comparison.verdict])


def _size(comparison: Comparison) -> str:
    if comparison.primary is None:
        return comparison.verdict
    return f"{unsigned(abs(comparison.primary.gain))} {_words([comparison])[comparison.primary.gain < 0]}"


def _words(comparisons: Sequence[Comparison]) -> tuple[str, str]:
    return (
        ("faster", "slower") if all(comparison.primary_metric.name.startswith(SPEED) for comparison in comparisons) else ("better", "worse")
    )


def _as_gain(effect: Effect | None) -> Gain | None:
    return None if effect is None else Gain(effect.gain, effect.low, effect.high)


def _interval(gain: Gain) -> str:
    return f"[{number(gain.low)}, {number(gain.high)}]"


def _gain(gain: Gain) -> str:
    return f"{number(gain.value)} [{number(gain.low).lstrip('+')}, {number(gain.high).lstrip('+')}]"


def _base(comparison: Comparison) -> str | None:
    value = comparison.primary.baseline if comparison.primary else comparison.observed_baseline
    if value is None:
        return None
    return f"{value:.4g} × {comparison.relative_to}" if comparison.relative_to else amount(comparison.primary_metric, value)


def _units(comparison: Comparison) -> str:
    effect = comparison.primary
    if effect is not None and effect.design == "two-sample":
        return f"{effect.n_baseline}+{effect.n_candidate}"
    return "1+1" if comparison.observed is not None else f"{comparison.pairs}/{comparison.blocks}"


def _notes(comparison: Comparison) -> list[str]:
    """Notes, and the reason where a row does not explain itself."""
    return (
        [comparison.reason, *comparison.notes]
        if comparison.primary is None or comparison.verdict == "not comparable" or outlasts(comparison)
        else list(comparison.notes)
    )


def _legend(comparisons: Sequence[Comparison]) -> list[tuple[str, str]]:
    effects = [comparison.primary for comparison in comparisons if comparison.primary]
    if not effects:
        return []
    designs = {effect.design for effect in effects}
    metrics = {effect.metric.name for comparison in comparisons for effect in (comparison.primary, comparison.second) if effect is not None}
    margins = ", ".join(dict.fromkeys(unsigned(comparison.margin) for comparison in comparisons))
    family = ", ".join(dict.fromkeys(str(comparison.family) for comparison in comparisons if comparison.family))
    paired = " Cells are paired by block." if designs & {"paired", "switched"} else ""
    lines = [
        ("faster, slower", f"more or less work per second than the baseline; shown with p below 0.05.{paired}"),
        ("same", f"shown to be equal: the 90 % interval lies inside ±{margins}."),
        ("can't tell", "neither a difference nor equality is shown; more blocks are needed. It does not mean 'no change'."),
        ("95 % interval", "of this contrast alone."),
        ("p", f"adjusted ({ADJUSTED[comparisons[0].adjustment]}) for all {family} contrasts of the study together."),
        ("would see", "the smallest difference that this run would have shown with 80 % probability (MDE)."),
    ]
    units = {
        "paired": ("n", "blocks that both arms have, of those planned."),
        "switched": ("n", "pairs of segments inside processes, or processes where there are five or more."),
        "two-sample": ("n", "units of baseline and candidate where they share no blocks: cells of one run each, or whole runs."),
    }
    meanings = {
        "throughput_samples_per_s": ("throughput", "samples / total time, stalls included: what the user got."),
        "step_time_round_adjusted_s": ("step", "time of a step, cleared of what its round did to all tweak sets alike (docs/turns.md)."),
        "step_time_p10_s": ("p10 step", "the 10th percentile of step time: what the kernel costs where nothing interferes."),
        "step_time_q1_s": ("q1 step", "the lower quartile of the time of a call."),
    }
    return [*lines, *(units[name] for name in units if name in designs), *(meanings[name] for name in meanings if name in metrics)]
