"""I/O runs in words: the fastest, and which factor matters, how much, how certainly.

Configurations are compared in pairs on the untouched machine, paired by block. Holm adjusts for all
pairs of a cache state, because the best is chosen by the same figures.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import TYPE_CHECKING

from analysis.stats.adjust import holm
from analysis.terms import AGAIN, STOCK
from analysis.wording import bracket, counted, digits, number, percent, probability, unsigned
from control.t_test import ALPHA

from .design import level_name, level_of, scale_of
from .study import IoStudy, by_name, gain_of, in_order, mean_of, rates
from .validity import RATE, STEADY, WHOLE

if TYPE_CHECKING:
    from analysis.stats.estimate import Estimate

    from .effects import Analysis, IoEffect
    from .figures import Judged
    from .study import IoContrast
    from .terms import IoRun

LABELS = {WHOLE: "AU whole", STEADY: "AU steady", RATE: "samples/s"}
MOST = 3  # names or figures per line
MOST_STATES = 4
UNSCALED = (
    "Hand-over between processes and their start do not scale with record_scale, so this does not "
    "hold for the full-size job."
)
OTHERS_SHORT_S = 0.005  # shorter steps are comparable to hand-over and process start


def change_text(response: str, change: Estimate) -> str:
    """Write a change with its interval: `+12.3 % [+1.2, +23.4]` for a rate, else in points."""
    rate = scale_of(response) == "log"
    value = change.value or 0.0
    written = percent(value) if rate else f"{_points(value)} points"
    ends = (change.low or 0.0, change.high or 0.0)
    interval = ", ".join(number(end) if rate else _points(end) for end in ends)
    return f"{written} [{interval}]"


def _points(points: float) -> str:
    return f"{round(points, 1) + 0.0:+.1f}"  # the sum turns -0.0 into 0.0


# The answer of a saved run.


def findings(study: IoStudy) -> list[str]:
    """Return the main findings: the fastest per cache state, and the effects of tweak sets."""
    states: dict[tuple[str, ...], list[Judged]] = defaultdict(list)
    for cell in in_order([cell for cell in study.cells if cell.run.tweakset in {STOCK, AGAIN}]):
        if cell.value(RATE) is not None:
            states[_state(cell.run)].append(cell)
    groups = {state: by_name(members) for state, members in states.items()}
    several = {state: own for state, own in groups.items() if len(own) > 1}
    lines = [_fastest(several or groups), _tweak_sets(study)]
    # Else the run is about tweak sets.
    return list(chain.from_iterable(lines if several else reversed(lines)))


def basis(study: IoStudy) -> Iterator[tuple[str, bool]]:
    """Yield the basis of figures and limits to generality, each with whether it is a doubt."""
    runs = [cell.run for cell in study.cells]
    settings = []
    for name in ("read_ahead_kb", "scheduler"):
        levels = dict.fromkeys(
            str(run.disk[name]) for run in runs if run.tweakset == STOCK and name in run.disk
        )
        settings += [f"{name} {' or '.join(levels)}"] if levels else []
    if settings:
        disks = dict.fromkeys(str(run.disk.get("device", "the disk")) for run in runs if run.disk)
        yield f"Stock: {', '.join(settings)} of {', '.join(disks)}, as found on the machine.", False
    scaled = {
        run.computation_time_s or 0.0
        for run in runs
        if str(run.params.get("record_scale", 1)) not in {"1", "1.0"}
    }
    if times := sorted(time_s for time_s in scaled if 0 < time_s < OTHERS_SHORT_S):
        span = f"{1000 * times[0]:.2g}" + (f" to {1000 * times[-1]:.2g}" if len(times) > 1 else "")
        yield f"Doubt: a step computes for {span} ms. {UNSCALED}", True


def _state(run: IoRun) -> tuple[str, ...]:
    """Return a job's fixed conditions: samples/s under different ones are not comparable."""
    known = {*run.overrides, *run.params}
    cache = level_of(run, "cache").replace("_", " ") + " cache" if "cache" in known else ""
    writes = (
        "with checkpoints" if "checkpoint" in known and level_of(run, "checkpoint") == "on" else ""
    )
    computing = (
        "" if run.computation_time_s is None else f"{1000 * run.computation_time_s:g} ms per step"
    )
    return (
        run.model,
        cache,
        writes,
        f"records of {run.record_length_bytes:.0f} bytes",
        computing,
        run.engine,
    )


def _fastest(states: Mapping[tuple[str, ...], Mapping[str, Sequence[Judged]]]) -> Iterator[str]:
    for state, groups in list(states.items())[:MOST_STATES]:
        words = [
            word
            for at, word in enumerate(state)
            if word and (at == 1 or len({other[at] for other in states}) > 1)
        ]
        where = ", ".join(words) or "all"
        yield f"{where[0].upper()}{where[1:]}: {_highest(groups)}."
    if len(states) > MOST_STATES:
        yield (
            f"The table has {len(states) - MOST_STATES} more states (model, cache, checkpoints or "
            "record length)."
        )


def _highest(groups: Mapping[str, Sequence[Judged]]) -> str:
    means = {name: mean_of(RATE, cells) for name, cells in groups.items()}
    best = max(means, key=lambda name: means[name].value or 0.0)
    mean = means[best]
    rate = (
        f"{digits(mean.value or 0.0, 3)} "
        f"samples/s{bracket(mean.low, mean.high, lambda end: digits(end, 3))}"
    )
    if len(groups) == 1:
        return rate
    blocks = {name: rates(cells) for name, cells in groups.items()}
    pairs = {
        pair: gain.p
        for pair in combinations(groups, 2)
        if (gain := gain_of(*map(blocks.__getitem__, pair))).p is not None
    }
    sure = {pair for pair, p in zip(pairs, holm([*pairs.values()]), strict=True) if p < ALPHA}
    gains = {
        name: gain_of(blocks[best], blocks[name])
        for name in groups
        if {(best, name), (name, best)} & sure
    }
    others = [name for name in groups if name != best and name not in gains]
    parts = [f"{best} was fastest, {rate}"]
    if others:
        parts.append(f"not distinguishable from {', '.join(others[:MOST])}{_more(others)}")
    each = [
        (
            f"{name} was {unsigned(abs(gain.value or 0.0))} slower "
            f"{change_text(RATE, gain).partition(' % ')[2]}"
        )
        for name, gain in sorted(gains.items(), key=lambda one: -(one[1].value or 0.0))
    ]
    if each:
        parts.append(
            ", ".join(each)
            if len(each) < 3
            else f"{len(each)} were slower, from {each[0]} to {each[-1]}"
        )
    family = (
        f"Holm over {counted(len(pairs), 'pair')}"
        if pairs
        else "no two configurations share two blocks"
    )
    return f"{'; '.join(parts)} ({family})"


def _more(names: Sequence[object]) -> str:
    return f" and {len(names) - MOST} more" if len(names) > MOST else ""


def _tweak_sets(study: IoStudy) -> Iterator[str]:
    known = [one for one in study.contrasts.tweaks if one.p is not None]
    copies = [one for one in study.contrasts.again if one.p is not None]
    shown = sorted(
        (one for one in known if one.shown), key=lambda one: -abs(math.log1p(one.value or 0.0))
    )
    if shown:
        each = "; ".join(
            (
                f"{one.tweakset}{f' with {one.configuration}' if one.configuration else ''} "
                f"{_speed(one)}"
            )
            for one in shown[:MOST]
        )
        yield (
            f"Tweak sets that differ from stock: {each}{_more(shown)} (Holm over "
            f"{len(known) + len(copies)})."
        )
    elif known:
        names = list(dict.fromkeys(one.tweakset for one in known))
        yield (
            "Tweak sets: "
            f"{f'{names[0]} is not' if len(names) == 1 else f'none of {len(names)} is'} shown to "
            "differ from stock."
        )
    outcomes: dict[str, list[str]] = defaultdict(list)
    for name in dict.fromkeys(one.tweakset for one in study.idle):
        own = [one for one in study.idle if one.tweakset == name and one.p is not None]
        off, count = sum(one.shown for one in own), counted(len(own), "configuration")
        outcome = f"no difference shown in {count}" if own else "measured in too few blocks"
        outcomes[
            f"but it differs in {off} of {count}: the machine was not quiet" if off else outcome
        ].append(name)
    for outcome, names in outcomes.items():
        yield f"{', '.join(names)} changed nothing here: a second A/A; {outcome}."
    if differing := [one for one in copies if one.shown]:
        clearest = min(differing, key=lambda one: one.p or 0.0)
        where = f"{clearest.configuration}: " if clearest.configuration else ""
        yield (
            f"A/A: stock and its copy differ in {len(differing)} of "
            f"{counted(len(copies), 'configuration')}, although nothing was changed: "
            f"{where}{change_text(RATE, clearest)}. "
            "One run in 20 shows that by chance; otherwise the machine was not quiet: trust the "
            "tweak sets' figures less."
        )


def _speed(one: IoContrast) -> str:
    change = change_text(RATE, one).partition(" % ")[2]
    return (
        f"{unsigned(abs(one.value or 0.0))} {'faster' if (one.value or 0.0) > 0 else 'slower'} "
        f"{change}"
    )


# Factor by factor.


def of_factors(study: IoStudy) -> list[str]:
    """Describe each factor; AU without the first step only if it differs."""
    known = [analysis for analysis in study.analyses if not analysis.refusal]
    lines = [
        f"{LABELS[one.response]}: {line}"
        for one in known
        if one.response != STEADY
        for line in answers(one)
    ]
    return [*lines, *reversals(known)]


def answers(analysis: Analysis) -> list[str]:
    """Describe every factor, and every pair with an interaction, in one line each."""
    if analysis.refusal:
        return [f"{analysis.response}: not analysed: {analysis.refusal}"]
    return [
        _answer(effect, analysis)
        for effect in analysis.findings
        if len(effect.factors) == 1 or effect.shown
    ]


def _answer(effect: IoEffect, analysis: Analysis) -> str:
    effects, steps, head = len(analysis.findings), len(effect.steps), " × ".join(effect.factors)
    # Of several steps, one counts per effect.
    over = f"{counted(effects, 'effect')}, {steps} steps" if steps > 1 else f"{effects}"
    sure = f"{effect.clearest.n} blocks, p {probability(effect.p_adjusted)} (Holm over {over})"
    step = f"{effect.clearest.name} {change_text(analysis.response, effect.clearest)}"
    if not effect.shown:
        return f"{head}: no effect shown; its clearest step is {step}; {sure}."
    sure = f"{unsigned(effect.share)} of the variation, {sure}"
    if len(effect.factors) == 1:
        means = ", ".join(f"{level} {digits(mean, 3)}" for level, mean in effect.levels.items())
        company = [
            " × ".join(other.factors)
            for other in analysis.findings
            if other.shown and {head} < {*other.factors}
        ]
        depends = (
            f" This is an average over the other factors: see {', '.join(company)}."
            if company
            else ""
        )
        return (
            f"{head}: {means} {'samples/s' if analysis.response == RATE else '%'}; {step}; "
            f"{sure}.{depends}"
        )
    pair = effect.together
    if pair is None:
        return f"{head}: the effect of {effect.factors[0]} depends on {effect.factors[1]}; {sure}."
    by_size = sorted(pair.steps, key=lambda step: step.value)
    shown = pair.steps if len(by_size) <= 5 else (by_size[0], by_size[-1])
    each = "; ".join(
        f"with {level_name(pair.along, step.name)} {change_text(analysis.response, step)}"
        for step in shown
    )
    return f"{head}: {pair.factor} {pair.first} → {pair.last}: {each}; {sure}."


def reversals(analyses: Sequence[Analysis]) -> Iterator[str]:
    """Yield effects that appear or reverse without the first step: reading was moved, not saved."""
    known = {analysis.response: analysis.findings for analysis in analyses}
    whole = {
        (effect.factors, step.levels): (effect, step)
        for effect in known.get(WHOLE, ())
        for step in effect.steps
    }
    for effect in known.get(STEADY, ()):
        for step in effect.steps if len(effect.factors) == 1 else ():
            same, other = whole.get((effect.factors, step.levels), (effect, None))
            if other is None or not step.shown:
                continue
            turned = other.shown and other.value * step.value < 0
            if turned or not same.shown:
                yield (
                    f"{effect.factors[0]} {step.name}: AU without the first step "
                    f"{_points(step.value)} points, over the whole epoch "
                    f"{_points(other.value)} "
                    f"({'the opposite' if turned else 'no difference shown'}): reading moved into "
                    "the "
                    "excluded step and was not saved."
                )
