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
from .checks import LEVEL, warnings_of
from .disturbance import disturbances
from .labels import amount, headline, label_of, shorten
from .switched.inside import outlasts
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
    """A gain with its 95 % interval, as fractions."""

    value: float
    low: float
    high: float


class Names:
    """Names of comparisons by what differs between them: workload, run, tweak set. What is equal in all is said once, above."""

    def __init__(self, comparisons: Sequence[Comparison]) -> None:
        self._workloads, self.common = shorten(dict.fromkeys(one.workload for one in comparisons))
        runs = {one.candidate_run for one in comparisons}
        self._stems = {run: Path(run).stem if len({Path(other).stem for other in runs}) == len(runs) else run for run in runs}
        self.heads = ["workload"] * (len(self._workloads) > 1) + ["run"] * (len(runs) > 1)
        sets = {one.tweakset for one in comparisons}
        if len(sets) > 1 or not self.heads:
            self.heads.append("tweak set")
        elif names := sets - {one.baseline for one in comparisons}:
            self.common = ", ".join(filter(None, [self.common, f"tweak set {names.pop()}"]))

    def workload(self, one: Comparison) -> str:
        """Its workload without what all have in common."""
        return self._workloads[one.workload]

    def parts(self, one: Comparison) -> list[str]:
        """What tells a comparison from the others, in the order of `heads`."""
        every = {"workload": self.workload(one), "run": self._stems[one.candidate_run], "tweak set": one.tweakset}
        return [every[head] for head in self.heads]

    def name(self, one: Comparison) -> str:
        """The same in one text."""
        return ", ".join(self.parts(one))

    def short(self, one: Comparison) -> str:
        """The same without the workload, for a list that is headed by it; the workload, where that is all there is."""
        parts = self.parts(one)
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
    disturbed = [one.sentence for run in runs for one in disturbances(run)]
    if not comparisons:
        title, *more = ["Nothing to compare: there is no tweak set beside the baseline."]
    else:
        title, *more = [nothing.sentence] if nothing else _findings(asked)
    facts = headline(runs).splitlines()
    common = Names(asked).common if asked else ""
    if common:
        facts.append(f"All rows: {common}")
    sections = [section for study in dict.fromkeys(one.study for one in asked) for section in _study(study, asked, every=every)]
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
            "runs": [{"run_id": one.run_id, "origin": one.origin, "started_utc": one.started_utc, "commit": one.commit} for one in runs],
            "warnings": list(dict.fromkeys(line for one in runs for line in warnings_of(one, comparisons))),
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
        found = [one for one in claims if one.verdict == verdict]
        if found:
            more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
            sentences.append(f"{word.capitalize()}: {_effects(found[:NAMED], names)}{more}.")
    counts = Counter(one.verdict for one in asked)
    margins = ", ".join(dict.fromkeys(unsigned(one.margin) for one in asked))
    meanings = {
        "improved": words[0],
        "regressed": words[1],
        "equivalent": f"the same within {margins}",
        "inconclusive": "undecided",
        "not comparable": "not comparable",
    }
    said = ", ".join(f"{counts[verdict]} {word}" for verdict, word in meanings.items() if counts[verdict])  # type: ignore[index]
    total = f"{len(asked)} contrast{'s' if len(asked) != 1 else ''} {_relation(asked)}: {said}."
    return [" ".join(sentences), total] if sentences else [f"Nothing is shown to be {' or '.join(words)}.", total]


def _effects(claims: Sequence[Comparison], names: Names) -> str:
    """Claims in a sentence, those of one tweak set together: `a 21.5 % (cnn_train), 3.4 % (lora_finetune); b 8 % (ddp_train)`."""
    places: dict[str, list[str]] = {}
    for one in claims:
        if one.primary:
            size_of = unsigned(abs(one.primary.gain))
            *where, name = names.parts(one)
            places.setdefault(name, []).append(f"{size_of} ({', '.join(where)})" if where else size_of)
    return "; ".join(f"{name} {', '.join(texts)}" for name, texts in places.items())


def _claims(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Those that claim a difference, the largest first."""
    claims = [one for one in comparisons if one.verdict in CLAIMS]
    return sorted(claims, key=lambda one: -abs(math.log1p(one.primary.gain)) if one.primary else 0.0)


def _guards(comparisons: Sequence[Comparison]) -> list[str]:
    """One sentence on equal arms: how far apart they are, where they may be told apart."""
    guards = [one for one in comparisons if (one.guard or one.untouched) and one.primary]
    failed = [one.workload for one in guards if one.verdict == "not comparable"]
    if failed:
        return [f"Untouched arms differ under {', '.join(dict.fromkeys(failed))}: nothing is concluded there."]
    if not guards or any(one.primary.p < LEVEL for one in guards if one.primary):  # a warning says that
        return []
    gain, where = max(((abs(one.primary.gain), one.workload) for one in guards if one.primary), key=lambda found: found[0])
    return [f"Untouched arms agree: {unsigned(gain)} apart at most ({where})."]


def _study(study: str, asked: Sequence[Comparison], *, every: bool) -> Iterable[Section]:
    mine = [one for one in asked if one.study == study]
    names = Names(mine)
    several = len({one.study for one in asked}) > 1
    if every or len(mine) <= FEW:
        shown = [*_claims(mine), *(one for one in mine if one.verdict not in CLAIMS)]
        rest: Sequence[Comparison] = []
    else:
        shown = _claims(mine)[:ROWS]
        rest = [one for one in mine if one not in shown]
    parts: list[Line | Table] = [_table(shown, names)] if shown else []
    more = sum(one.verdict in CLAIMS for one in rest)
    if more:
        parts.append(Line(f"… and {more} more that are faster or slower (--all)."))
    notes = {note: [one for one in shown if note in _notes(one)] for one in shown for note in _notes(one)}
    parts += bullets([note if 1 < len(of) == len(mine) else f"{_who(of, names)}: {note}" for note, of in notes.items()])
    if parts:
        yield Section(study if several else "", parts)
    margins = ", ".join(dict.fromkeys(unsigned(one.margin) for one in mine))
    same = [one for one in rest if one.verdict == "equivalent"]
    if same:
        yield Section(f"The same within {margins}", bullets(_by_workload(same, names)))
    undecided = [one for one in rest if one.verdict == "inconclusive"]
    if undecided:
        alone = all(one.observed is not None for one in undecided)
        title = "Undecided: one run against one" if alone else "Can't tell; in brackets the smallest difference that would have been seen"
        yield Section(title, bullets(_by_workload(undecided, names, mde=True)))
    refused = Counter(one.reason for one in rest if one.verdict == "not comparable")
    if refused:
        lines = [f"{_who([one for one in rest if one.reason == why], names)}: {why}" for why, _ in refused.most_common(REASONS)]
        left = len(refused) - REASONS
        yield Section("Not comparable", bullets([*lines, *([f"{left} other reasons (--all)."] if left > 0 else [])]))


def _by_workload(comparisons: Sequence[Comparison], names: Names, *, mde: bool = False) -> list[str]:
    """Names in a line each workload, on request with what would have been seen."""
    lists: dict[str, list[str]] = {}
    for one in comparisons:
        suffix = f" ({size(one.mde)} %)" if mde and one.mde is not None else ""
        lists.setdefault(names.workload(one), []).append(f"{names.short(one)}{suffix}")
    if len(lists) > ROWS or "workload" not in names.heads or names.heads == ["workload"]:
        return [", ".join(_some([text for texts in lists.values() for text in texts]))]
    return [f"{workload}: {', '.join(_some(texts))}" for workload, texts in lists.items()]


def _who(comparisons: Sequence[Comparison], names: Names) -> str:
    """Those of one tweak set together: `isolate (cnn_train, ddp_train)`."""
    places: dict[str, list[str]] = {}
    for one in comparisons:
        *where, name = names.parts(one)
        places.setdefault(name, []).extend([", ".join(where)] if where else [])
    return ", ".join(_some([f"{name} ({', '.join(_some(where))})" if where else name for name, where in places.items()]))


def _some(texts: Sequence[str]) -> list[str]:
    return [*texts] if len(texts) <= ROWS else [*texts[:ROWS], f"… {len(texts) - ROWS} more (--all)"]


def _relation(comparisons: Sequence[Comparison]) -> str:
    """What gains are relative to, where one baseline serves all."""
    one = comparisons[0]
    if len({other.baseline for other in comparisons}) > 1:
        return f"of each with its like in {one.baseline_run}"
    return f"with {one.baseline}" + ("" if one.baseline_run == one.candidate_run else f" of {one.baseline_run}")


def _table(shown: Sequence[Comparison], names: Names) -> Table:
    primaries = {one.primary_metric.name for one in shown}
    seconds = {one.second.metric for one in shown if one.second is not None}
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
    for one in shown:
        cells: list[object] = [*names.parts(one)]
        if len(primaries) > 1:
            cells.append(label_of(one.primary_metric))
        cells += [_verdict(one), _as_gain(one.primary)]
        if second:
            cells.append(_as_gain(one.second))
        rows.append([*cells, _base(one), one.p_adjusted, one.mde, _units(one)])
    filled = [at for at in range(len(columns)) if any(row[at] is not None for row in rows)]
    return Table([columns[at] for at in filled], [[row[at] for at in filled] for row in rows])


def _rows(comparisons: Sequence[Comparison]) -> Table:
    """Every contrast with its raw values."""
    columns: dict[str, Callable[[Comparison], object]] = {
        "study": lambda one: one.study,
        "workload": lambda one: one.workload,
        "run": lambda one: one.candidate_run,
        "tweakset": lambda one: one.tweakset,
        "baseline": lambda one: one.baseline,
        "verdict": lambda one: one.verdict,
        "metric": lambda one: one.primary_metric.name,
        "baseline_value": lambda one: one.primary.baseline if one.primary else one.observed_baseline,
        "gain": lambda one: _as_gain(one.primary),
        "second_metric": lambda one: one.second.metric.name if one.second else None,
        "second_gain": lambda one: _as_gain(one.second),
        "p_adjusted": lambda one: one.p_adjusted,
        "mde": lambda one: one.mde,
        "pairs": lambda one: one.pairs,
        "blocks": lambda one: one.blocks,
        "reason": lambda one: one.reason,
    }
    return Table([Column(name, name) for name in columns], [[value(one) for value in columns.values()] for one in comparisons])


def _verdict(one: Comparison) -> Word:
    """A word beside the number: `21.8 % faster`, `same (+0.4 %)`, `can't tell (+3.2 %)`."""
    tones: Mapping[str, Tone] = {"improved": "good", "regressed": "bad", "equivalent": "", "inconclusive": "open"}
    if one.observed is not None:
        return Word(f"one run {unsigned(abs(one.observed))} {_words([one])[one.observed < 0]}", "open")
    if one.primary is None or one.verdict == "not comparable":
        return Word("not comparable", "quiet")
    if one.verdict in CLAIMS:
        return Word(_size(one), tones[one.verdict])
    word = "same" if one.verdict == "equivalent" else "can't tell"
    return Word(f"{word} ({number(one.primary.gain)} %)", tones[one.verdict])


def _size(one: Comparison) -> str:
    if one.primary is None:
        return one.verdict
    return f"{unsigned(abs(one.primary.gain))} {_words([one])[one.primary.gain < 0]}"


def _words(comparisons: Sequence[Comparison]) -> tuple[str, str]:
    """What a gain and a loss are called."""
    return ("faster", "slower") if all(one.primary_metric.name.startswith(SPEED) for one in comparisons) else ("better", "worse")


def _as_gain(effect: Effect | None) -> Gain | None:
    return None if effect is None else Gain(effect.gain, effect.low, effect.high)


def _interval(gain: Gain) -> str:
    return f"[{number(gain.low)}, {number(gain.high)}]"


def _gain(gain: Gain) -> str:
    return f"{number(gain.value)} [{number(gain.low).lstrip('+')}, {number(gain.high).lstrip('+')}]"


def _base(one: Comparison) -> str | None:
    value = one.primary.baseline if one.primary else one.observed_baseline
    if value is None:
        return None
    return f"{value:.4g} × {one.relative_to}" if one.relative_to else amount(one.primary_metric, value)


def _units(one: Comparison) -> str:
    effect = one.primary
    if effect is not None and effect.design == "two-sample":
        return f"{effect.n_baseline}+{effect.n_candidate}"
    return "1+1" if one.observed is not None else f"{one.pairs}/{one.blocks}"


def _notes(one: Comparison) -> list[str]:
    """Notes, and the reason where a row does not explain itself."""
    return [one.reason, *one.notes] if one.primary is None or one.verdict == "not comparable" or outlasts(one) else list(one.notes)


def _legend(comparisons: Sequence[Comparison]) -> list[tuple[str, str]]:
    effects = [one.primary for one in comparisons if one.primary]
    if not effects:
        return []
    designs = {effect.design for effect in effects}
    metrics = {effect.metric.name for one in comparisons for effect in (one.primary, one.second) if effect is not None}
    margins = ", ".join(dict.fromkeys(unsigned(one.margin) for one in comparisons))
    family = ", ".join(dict.fromkeys(str(one.family) for one in comparisons if one.family))
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
        "step_time_round_adjusted_s": ("step", "time of a step, cleared of what its round did to all tweak sets alike (docs/designs.md)."),
        "step_time_p10_s": ("p10 step", "the 10th percentile of step time: what the kernel costs where nothing interferes."),
        "step_time_q1_s": ("q1 step", "the lower quartile of the time of a call."),
    }
    return [*lines, *(units[name] for name in units if name in designs), *(meanings[name] for name in meanings if name in metrics)]
