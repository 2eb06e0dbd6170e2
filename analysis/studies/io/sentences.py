"""I/O runs in words: what feeds most, which factor matters, how much, how sure; never more than the intervals hold.

Configurations are compared two by two on the untouched machine, paired by block. Holm adjusts for all pairs of a state of the cache, for
the best is chosen by the very figures that are compared.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import TYPE_CHECKING

from analysis.answer import Line, Word
from analysis.stats.adjust import holm
from analysis.stats.estimate import FEWEST_CHANGES, Change, Estimate, change_of, differences
from analysis.terms import AGAIN, STOCK, NotComparable
from analysis.wording import bracket, counted, digits, number, percent, probability, unsigned
from control.t_test import ALPHA

from .factors import level_name, level_of, scale_of
from .formulas import RATE, STEADY, WHOLE
from .study import IoStudy, block_means, by_name, in_order, mean_of

if TYPE_CHECKING:
    from .effects import Analysis, IoEffect
    from .responses import JudgedResponse
    from .terms import IoRun

LABELS = {WHOLE: "AU whole", STEADY: "AU steady", RATE: "samples/s", "mb_per_s_read": "MiB/s read"}
MOST = 3  # names or figures in a line
MOST_STATES = 4
OTHERS_SHORT_S = 0.005  # a step's computation below which hand-over and process start are of its own size


def listed(names: Iterable[str], word: str = "and") -> str:
    *others, last = names
    return f" {word} ".join([*([", ".join(others)] if others else []), last])


def letter(at: int) -> str:
    return chr(ord("a") + at) if at < 26 else letter(at // 26 - 1) + letter(at % 26)


class Marks:
    """Letters in a table, each with its sentence below it, given once."""

    def __init__(self) -> None:
        self.letters: dict[str, str] = {}

    def __call__(self, sentence: str) -> Word:
        return Word(f"({self.letters.setdefault(sentence, letter(len(self.letters)))})", "quiet")

    def lines(self) -> list[Line]:
        return [Line(f"{sentence}.", f"({mark})", "quiet") for sentence, mark in self.letters.items()]


def points_of(response: str) -> float:
    """Return what to multiply a response by so that it is in percent; 0 for what is neither percentage nor share."""
    return 1.0 if response.endswith("_percent") else 100.0 if response.endswith("_share") else 0.0


def signed(points: float) -> str:
    """Write a change of so many points; the sum turns -0.0 into 0.0."""
    return f"{round(points, 1) + 0.0:+.1f}"


def amount(response: str, unit: str, effect: float) -> str:
    """Write a change: `+12.3 %` of a rate, `+4.1 points` of a percentage, else in the unit."""
    if scale_of(response) == "log":
        return percent(effect)
    scale = points_of(response)
    return f"{signed(scale * effect)} points" if scale else f"{'+' if effect > 0 else ''}{digits(effect, 3)} {unit}".strip()


def limits(response: str, change: Estimate) -> str:
    if change.low is None or change.high is None:
        return "no interval"
    scale = points_of(response)
    write = number if scale_of(response) == "log" else (lambda end: signed(scale * end)) if scale else lambda end: digits(end, 3)
    return f"[{write(change.low)}, {write(change.high)}]"


def change_text(response: str, unit: str, change: Estimate) -> str:
    return f"{amount(response, unit, change.value or 0.0)} {limits(response, change)}"


# The answer of a saved run.


def findings(study: IoStudy) -> list[str]:
    """Return lines that stand by themselves, what the run compares first: the fastest in each state of the cache, tweak sets."""
    if not study.cells:
        return []
    plain = in_order([cell for cell in study.cells if cell.run.tweakset in {STOCK, AGAIN}])
    states = _states(plain)
    compared = any(len(groups) > 1 for groups in states.values())  # else tweak sets are what the run is about
    lines = [_fastest(states), _tweak_sets(study)]
    return list(chain.from_iterable(lines if compared else reversed(lines)))


def basis(study: IoStudy) -> list[str]:
    """Describe what the figures stand on: what stock is, and why they may not be carried elsewhere."""
    runs = [cell.run for cell in study.cells]
    settings = []
    for name in ("read_ahead_kb", "scheduler"):
        levels = dict.fromkeys(str(run.disk[name]) for run in runs if run.tweakset == STOCK and name in run.disk)
        settings += [f"{name} {' or '.join(levels)}"] if levels else []
    disks = dict.fromkeys(str(run.disk.get("device", "the disk")) for run in runs if run.disk)
    lines = [f"Stock: {', '.join(settings)} of {', '.join(disks)}, as the machine was found."] if settings else []
    scaled = [run.computation_time_s for run in runs if str(run.params.get("record_scale", 1)) not in {"1", "1.0"}]
    if times := sorted({time_s for time_s in scaled if time_s and time_s < OTHERS_SHORT_S}):
        span = f"{1000 * times[0]:.2g}" + (f" to {1000 * times[-1]:.2g}" if len(times) > 1 else "")
        reason = f"a step computes {span} ms: hand-over between processes and their start do not scale with record_scale"
        lines.append(f"Doubt: {reason}; do not carry this over to the full-size job.")
    return lines


def _states(cells: Sequence[JudgedResponse]) -> dict[tuple[str, ...], dict[str, list[JudgedResponse]]]:
    """Configurations by name, of each state of what is no choice."""
    states: dict[tuple[str, ...], list[JudgedResponse]] = defaultdict(list)
    for cell in cells:
        if cell.value(RATE) is not None:
            states[_state(cell.run)].append(cell)
    return {state: by_name(members) for state, members in states.items()}


def _fastest(every: Mapping[tuple[str, ...], dict[str, list[JudgedResponse]]]) -> list[str]:
    chosen = {state: groups for state, groups in every.items() if len(groups) > 1} or every
    lines = []
    for state, groups in list(chosen.items())[:MOST_STATES]:
        words = [word for at, word in enumerate(state) if word and (at == 1 or len({other[at] for other in chosen}) > 1)]
        where = ", ".join(words) or "all"
        lines.append(f"{where[0].upper()}{where[1:]}: {_highest(groups)}")
    if len(chosen) > MOST_STATES:
        lines.append(f"{len(chosen) - MOST_STATES} more states of what is no choice (model, cache, checkpoints, record): in the table.")
    return lines


def _state(run: IoRun) -> tuple[str, ...]:
    """What a job does not choose between: with another of these, samples/s are of another kind."""
    known = {*run.overrides, *run.params}
    cache = level_of(run, "cache").replace("_", " ") + " cache" if "cache" in known else ""
    writes = "with checkpoints" if "checkpoint" in known and level_of(run, "checkpoint") == "on" else ""
    computing = "" if run.computation_time_s is None else f"{1000 * run.computation_time_s:g} ms a step"
    return (run.model, cache, writes, f"records of {run.record_length_bytes:.0f} bytes", computing, run.engine)


def _highest(groups: Mapping[str, Sequence[JudgedResponse]]) -> str:
    means = {name: mean_of([cell.responses[RATE] for cell in cells], [cell.run.block for cell in cells]) for name, cells in groups.items()}
    best = max(means, key=lambda name: means[name].value or 0.0)
    mean = means[best]
    rate = f"{digits(mean.value or 0.0, 3)} samples/s{bracket(mean.low, mean.high, lambda end: digits(end, 3))}"
    if len(groups) == 1:
        return f"{rate}."
    blocks = {name: block_means(cells, RATE) for name, cells in groups.items()}
    pairs = {frozenset(pair): change for pair in combinations(groups, 2) if (change := _paired(RATE, *(blocks[name] for name in pair)))}
    adjusted = dict(zip(pairs, holm([change.p for change in pairs.values()]), strict=True))
    slower = {name: change for name in groups if adjusted.get(frozenset((best, name)), 1.0) < ALPHA
              if (change := _paired(RATE, blocks[best], blocks[name]))}  # fmt: skip
    others = [name for name in groups if name != best and name not in slower]
    parts = [f"{best} was fastest, {rate}"]
    if others:
        parts.append(f"can't tell it from {', '.join(others[:MOST])}{_more(others)}")
    if slower:
        by_size = sorted(slower, key=lambda name: -slower[name].value)
        each = [f"{name} was {unsigned(abs(slower[name].value))} slower {limits(RATE, slower[name])}" for name in by_size]
        parts.append(", ".join(each) if len(each) < 3 else f"{len(each)} were slower, from {each[0]} to {each[-1]}")
    family = f"Holm over {counted(len(adjusted), 'pair')}" if adjusted else "no two share two blocks"
    return f"{'; '.join(parts)} ({family})."


def _more(names: Sequence[object]) -> str:
    return f" and {len(names) - MOST} more" if len(names) > MOST else ""


def _paired(response: str, before: Mapping[int, float], after: Mapping[int, float]) -> Change | None:
    return _over_blocks(response, [*differences(before, after).values()])


def _over_blocks(response: str, changes: Sequence[float]) -> Change | None:
    """Average changes over blocks; None where too few have one, or all the very same: these are no measurements."""
    try:
        return change_of(changes, log=scale_of(response) == "log") if len(changes) >= FEWEST_CHANGES else None
    except NotComparable:
        return None


def _tweak_sets(study: IoStudy) -> Iterator[str]:
    known = [tweak for tweak in study.contrasts.tweaks if tweak.p is not None]
    shown = sorted((contrast for contrast in known if contrast.shown), key=lambda contrast: -abs(math.log1p(contrast.value or 0.0)))
    if shown:
        each = "; ".join(
            f"{one.tweakset}{f' with {one.configuration}' if one.configuration else ''} {unsigned(abs(one.value or 0.0))} "
            f"{'faster' if (one.value or 0.0) > 0 else 'slower'} {limits(RATE, one)}"
            for one in shown[:MOST]
        )
        family = len(known) + sum(copy.p is not None for copy in study.contrasts.again)
        yield f"Tweak sets that differ from stock: {each}{_more(shown)} (Holm over {family})."
    elif known:
        names = list(dict.fromkeys(contrast.tweakset for contrast in known))
        who = f"{names[0]} is not" if len(names) == 1 else f"none of {len(names)} is"
        yield f"Tweak sets: {who} shown to differ from stock."
    outcomes: dict[str, list[str]] = defaultdict(list)
    for name in dict.fromkeys(contrast.tweakset for contrast in study.idle):
        own = [contrast for contrast in study.idle if contrast.tweakset == name and contrast.p is not None]
        off, count = sum(contrast.shown for contrast in own), counted(len(own), "configuration")
        outcome = f"no difference shown in {count}" if own else "in too few blocks to say more"
        outcomes[f"yet it differs in {off} of {count}: the machine was not quiet" if off else outcome].append(name)
    for outcome, names in outcomes.items():
        yield f"{', '.join(names)} changed nothing here: a second A/A; {outcome}."
    copies = [contrast for contrast in study.contrasts.again if contrast.p is not None]
    if differing := [contrast for contrast in copies if contrast.shown]:
        clearest = min(differing, key=lambda contrast: contrast.p or 0.0)
        where = f"{clearest.configuration}: " if clearest.configuration else ""
        yield (
            f"A/A: stock and its copy differ in {len(differing)} of {counted(len(copies), 'configuration')}, though nothing was changed: "
            f"{where}{percent(clearest.value or 0.0)} {limits(RATE, clearest)}. "
            "One run in 20 shows that by chance; otherwise the machine was not quiet: trust the tweak sets' figures less."
        )


# Factor by factor.


def of_factors(study: IoStudy) -> list[str]:
    """Describe each factor; AU without the first step only where it shows something else."""
    known = [analysis for analysis in study.analyses if not analysis.refusal]
    lines = [
        f"{LABELS.get(analysis.response, analysis.response)}: {line}"
        for analysis in known
        if analysis.response != STEADY
        for line in answers(analysis)
    ]
    return [*lines, *reversals(known)]


def answers(analysis: Analysis) -> list[str]:
    """Describe every factor, and every two that are shown to do something together; a line each."""
    if analysis.refusal:
        return [f"{analysis.response}: nothing can be said: {analysis.refusal}"]
    return [_answer(effect, analysis) for effect in analysis.findings if len(effect.factors) == 1 or effect.shown]


def _answer(effect: IoEffect, analysis: Analysis) -> str:
    effects, steps, head = len(analysis.findings), len(effect.steps), " × ".join(effect.factors)
    over = f"{counted(effects, 'effect')}, {steps} steps" if steps > 1 else f"{effects}"  # of several steps, each counts for one effect
    sure = f"{effect.clearest.n} blocks, p {probability(effect.p_adjusted)} (Holm over {over})"
    step = f"{effect.clearest.name} {change_text(analysis.response, analysis.unit, effect.clearest)}"
    if not effect.shown:
        return f"{head}: not shown to matter; its clearest step, {step}; {sure}."
    sure = f"{unsigned(effect.share)} of the variation, {sure}"
    if len(effect.factors) == 1:
        means = ", ".join(f"{level.level} {digits(level.mean, 3)}" for level in effect.levels)
        company = [" × ".join(other.factors) for other in analysis.findings if other.shown and {head} < {*other.factors}]
        depends = f" On average over the others only: see {', '.join(company)}." if company else ""
        unit = f" {analysis.unit}" if analysis.unit else ""
        return f"{head}: {means}{unit}; {step}; {sure}.{depends}"
    pair = effect.together
    if pair is None:
        return f"{head}: what {effect.factors[0]} does depends on {effect.factors[1]}; {sure}."
    by_size = sorted(pair.steps, key=lambda step: step.value)
    shown = pair.steps if len(by_size) <= 5 else (by_size[0], by_size[-1])
    each = "; ".join(f"with {level_name(pair.along, step.name)} {change_text(analysis.response, analysis.unit, step)}" for step in shown)
    return f"{head}: {pair.factor} {pair.first} → {pair.last} does {each}; {sure}."


def reversals(result: Sequence[Analysis]) -> Iterator[str]:
    """Yield where leaving the first step out shows what the whole epoch does not, or turns its sign: reading was moved, not saved."""
    known = {analysis.response: analysis.findings for analysis in result}
    whole = {(effect.factors, step.levels): (effect, step) for effect in known.get(WHOLE, ()) for step in effect.steps}
    for effect in known.get(STEADY, ()):
        for step in effect.steps if len(effect.factors) == 1 else ():
            same, other = whole.get((effect.factors, step.levels), (effect, None))
            if other is None or not step.shown:
                continue
            turned = other.shown and other.value * step.value < 0
            if turned or not same.shown:
                yield (
                    f"{effect.factors[0]} {step.name}: AU without the first step {signed(step.value)} points, over the whole epoch "
                    f"{signed(other.value)} ({'the opposite' if turned else 'no difference shown'}): reading moved into the step that "
                    "is left out, it was not saved."
                )
