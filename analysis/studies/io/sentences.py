"""I/O runs in words: what feeds most, which factor matters, how much, how sure; never more than the intervals hold.

Configurations are compared two by two on the untouched machine, paired by block. Holm adjusts for all pairs of a state of the cache, for
the best is chosen by the very figures that are compared.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

from analysis.stats.adjust import holm
from analysis.stats.effect import paired
from analysis.terms import NotComparable
from analysis.wording import digits, number, percent, probability, unsigned
from control.t_test import ALPHA

from .configurations import by_block, by_name, in_order, mean_of
from .effects import FEWEST_IN_CONTRAST
from .factors import AGAIN, SETS, STOCK, common, configuration, level_of, scale_of, spoken

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from analysis.stats.effect import Paired

    from .effects import Analysis, Contrasts, EffectStep, IoContrast, IoEffect
    from .responses import JudgedResponse
    from .study import IoStudy
    from .terms import IoRun

STEADY, WHOLE, RATE = "au_steady_percent", "au_whole_percent", "samples_per_s_whole"
LABELS = {WHOLE: "AU whole", STEADY: "AU steady", RATE: "samples/s", "mb_per_s_read": "MiB/s read"}
MOST = 3  # names or figures in a line
MOST_STATES = 4
OTHERS_SHORT_S = 0.005  # a step's computation below which hand-over and process start are of its own size


def counted(number: int, what: str) -> str:
    """Write `1 run`, `2 runs`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def listed(names: Iterable[str], word: str = "and") -> str:
    """Write `a, b and c`."""
    *others, last = names
    return f" {word} ".join([*([", ".join(others)] if others else []), last])


def amount(response: str, unit: str, effect: float) -> str:
    """Write a change: `+12.3 %` of a rate, `+4.1 points` of a percentage, else in the unit."""
    if scale_of(response) == "log":
        return percent(effect)
    scale = points_of(response)
    return f"{signed(scale * effect)} points" if scale else f"{'+' if effect > 0 else ''}{digits(effect, 3)} {unit}".strip()


def points_of(response: str) -> float:
    """What to multiply a response by so that it is in percent; 0 for what is neither percentage nor share."""
    return 1.0 if response.endswith("_percent") else 100.0 if response.endswith("_share") else 0.0


def signed(points: float) -> str:
    """Write a change of so many points; the sum turns -0.0 into 0.0."""
    return f"{round(points, 1) + 0.0:+.1f}"


def ends(response: str, low: float | None, high: float | None) -> str:
    """Write an interval: `[-1.2, +3.4]`."""
    if low is None or high is None:
        return "no interval"
    scale = points_of(response)
    write = number if scale_of(response) == "log" else (lambda end: signed(scale * end)) if scale else lambda end: digits(end, 3)
    return f"[{write(low)}, {write(high)}]"


# The answer of a saved run.


def findings(study: IoStudy) -> list[str]:
    """Answer in lines that stand by themselves: the fastest in each state of the cache, engines, tweak sets."""
    if not study.cells:
        return []
    plain = in_order([cell for cell in study.cells if cell.run.tweakset in {STOCK, AGAIN}])
    engines = [judged.run.engine for judged in plain]
    base = "torch" if "torch" in engines else next(iter(engines), "")  # ours, where it was measured
    return [*_fastest([judged for judged in plain if judged.run.engine == base]), *_engines(plain, base), *_tweak_sets(study)]


def basis(study: IoStudy) -> list[str]:
    """Say what the figures stand on: what stock is, and why they may not be carried elsewhere."""
    runs = [cell.run for cell in study.cells]
    settings = []
    for name in ("read_ahead_kb", "scheduler"):
        values = dict.fromkeys(str(run.disk[name]) for run in runs if run.tweakset == STOCK and name in run.disk)
        settings += [f"{name} {' or '.join(values)}"] if values else []
    disks = "".join(f" of {fromkey}" for fromkey in dict.fromkeys(str(run.disk.get("device", "the disk")) for run in runs if run.disk))
    lines = [f"Stock: {', '.join(settings)}{disks}, as the machine was found."] if settings else []
    scaled = [run.computation_time_s for run in runs if str(run.params.get("record_scale", 1)) not in {"1", "1.0"}]
    if times := sorted({time_s for time_s in scaled if time_s and time_s < OTHERS_SHORT_S}):
        span = f"{1000 * times[0]:.2g}" + (f" to {1000 * times[-1]:.2g}" if len(times) > 1 else "")
        reason = f"a step computes {span} ms: hand-over between processes and their start do not scale with record_scale"
        lines.append(f"Doubt: {reason}; do not carry this over to the full-size job.")
    return lines


def _fastest(cells: Sequence[JudgedResponse]) -> list[str]:
    states: dict[tuple[str, ...], list[JudgedResponse]] = {}
    for cell in cells:
        if cell.value(RATE) is not None:
            states.setdefault(_state(cell.run), []).append(cell)
    grouped = {key: by_name(members) for key, members in states.items()}
    chosen = {key: groups for key, groups in grouped.items() if len(groups) > 1} or grouped
    lines = []
    for key, groups in list(chosen.items())[:MOST_STATES]:
        words = [word for at, word in enumerate(key) if len({other[at] for other in chosen}) > 1]
        where = ", ".join([*words, *([key[1]] if key[1] and key[1] not in words else [])]) or "all"
        lines.append(f"{where[0].upper()}{where[1:]}: {_highest(groups)}")
    if len(chosen) > MOST_STATES:
        lines.append(f"{len(chosen) - MOST_STATES} more states of what is no choice (model, cache, checkpoints, record): in the table.")
    return lines


def _state(run: IoRun) -> tuple[str, ...]:
    """What a job does not choose between: other than these, samples/s are of one kind."""
    known = {*run.overrides, *run.params}
    cache = level_of(run, "cache").replace("_", " ") + " cache" if "cache" in known else ""
    writes = "with checkpoints" if "checkpoint" in known and level_of(run, "checkpoint") == "on" else ""
    computing = "" if run.computation_time_s is None else f"{1000 * run.computation_time_s:g} ms a step"
    return (run.model, cache, writes, f"records of {run.record_length_bytes:.0f} bytes", computing)


def _highest(groups: Mapping[str, Sequence[JudgedResponse]]) -> str:
    means = {name: mean_of([cell.responses[RATE] for cell in cells], [cell.run.block for cell in cells]) for name, cells in groups.items()}
    best = max(means, key=lambda name: means[name].value or 0.0)
    mean = means[best]
    interval = "" if mean.low is None or mean.high is None else f" [{digits(mean.low, 3)}, {digits(mean.high, 3)}]"
    rate = f"{digits(mean.value or 0.0, 3)} samples/s{interval}"
    if len(groups) == 1:
        return f"{rate}; nothing was measured beside it."
    values = {name: by_block(cells, RATE) for name, cells in groups.items()}
    # Two by two, for Holm's adjustment over all pairs: from the first to the second, and from the best to each.
    pairs = {frozenset(pair): change for pair in combinations(groups, 2) if (change := _step(values, *pair))}
    adjusted = dict(zip(pairs, holm([change.p for change in pairs.values()]), strict=True))
    below = {name: change for name in groups if frozenset((best, name)) in adjusted and (change := _step(values, best, name))}
    slower = sorted((name for name in below if adjusted[frozenset((best, name))] < ALPHA), key=lambda name: -below[name].effect)
    others = [name for name in groups if name != best and name not in slower]
    parts = [f"{best} was fastest, {rate}"]
    if others:
        more = f" and {len(others) - MOST} more" if len(others) > MOST else ""
        parts.append(f"can't tell it from {', '.join(others[:MOST])}{more}")
    if slower:
        each = [f"{name} was {unsigned(abs(below[name].effect))} slower {ends(RATE, below[name].low, below[name].high)}" for name in slower]
        parts.append(", ".join(each) if len(each) < 3 else f"{len(each)} were slower, from {each[0]} to {each[-1]}")
    family = f"Holm over {counted(len(adjusted), 'pair')}" if adjusted else "no two share two blocks"
    return f"{'; '.join(parts)} ({family})."


def _step(values: Mapping[str, Mapping[int, float]], first: str, second: str) -> Paired | None:
    blocks = sorted(values[first].keys() & values[second].keys())
    return _change([math.log(values[second][block] / values[first][block]) for block in blocks], RATE)


def _change(values: Sequence[float], response: str) -> Paired | None:
    """Average changes over blocks; None where too few have one, or all the very same: these are no measurements."""
    try:
        return paired(values, log=scale_of(response) == "log") if len(values) >= FEWEST_IN_CONTRAST else None
    except NotComparable:
        return None


def _engines(cells: Sequence[JudgedResponse], base: str) -> list[str]:
    """Set each other engine against ours: in each block the mean over all configurations that both ran."""
    lines = []
    for name in dict.fromkeys(cell.run.engine for cell in cells if cell.run.engine != base):
        parts, clear, blocks = [], False, 0
        for response in (WHOLE, RATE):
            values = _against(cells, response, base, name)
            change = _change(values, response)
            if change is None:
                parts.append(f"{LABELS[response]} not comparable: fewer than two blocks have it from both")
                continue
            parts.append(f"{LABELS[response]} {amount(response, '', change.effect)} {ends(response, change.low, change.high)}")
            clear, blocks = clear or change.low > 0 or change.high < 0, max(blocks, len(values))
        paired_over = f" (paired over {blocks} blocks; {'they differ' if clear else 'no difference shown'})" if blocks else ""
        names = ["DLIO" if engine == "dlio" else engine for engine in (name, base)]
        lines.append(f"{' against '.join(names)}: {', '.join(parts)}{paired_over}.")
    return lines


def _against(cells: Sequence[JudgedResponse], response: str, base: str, other: str) -> list[float]:
    """What another engine changes in each block, as the mean over the configurations that both engines ran in it."""
    alike = common([cell.run for cell in cells]) | {"engine"}
    groups: dict[tuple[str, str], list[JudgedResponse]] = {}
    for cell in cells:
        groups.setdefault((configuration(cell.run, alike), cell.run.engine), []).append(cell)
    changes: dict[int, list[float]] = {}
    for name in dict.fromkeys(name for name, _ in groups):
        first, second = (by_block(groups.get((name, engine), []), response) for engine in (base, other))
        for block in first.keys() & second.keys():
            if scale_of(response) != "log":
                changes.setdefault(block, []).append(second[block] - first[block])
            elif first[block] > 0 and second[block] > 0:
                changes.setdefault(block, []).append(math.log(second[block] / first[block]))
    most = max(map(len, changes.values()), default=0)
    return [math.fsum(values) / most for _, values in sorted(changes.items()) if len(values) == most]


def _tweak_sets(study: IoStudy) -> list[str]:
    known = [tweak for tweak in study.contrasts.tweaks if tweak.p is not None]
    shown = sorted((contrast for contrast in known if contrast.shown), key=lambda contrast: -abs(math.log1p(contrast.effect or 0.0)))
    lines = []
    if shown:
        more = f" and {len(shown) - MOST} more" if len(shown) > MOST else ""
        each = "; ".join(
            f"{contrast.tweakset}{f' with {contrast.configuration}' if contrast.configuration else ''} "
            f"{unsigned(abs(contrast.effect or 0.0))} "
            f"{'faster' if (contrast.effect or 0.0) > 0 else 'slower'} {ends(RATE, contrast.low, contrast.high)}"
            for contrast in shown[:MOST]
        )
        lines.append(f"Tweak sets that differ from stock: {each}{more} (Holm over {len(known)}).")
    elif known:
        sets = len({contrast.tweakset for contrast in known})
        lines.append(f"Tweak sets: {'it' if sets == 1 else f'none of {sets}'} is {'not ' if sets == 1 else ''}shown to differ from stock.")
    idle: dict[str, list[str]] = {}
    for name in dict.fromkeys(contrast.tweakset for contrast in study.idle):
        mine = [contrast for contrast in study.idle if contrast.tweakset == name and contrast.p is not None]
        off, count = sum(contrast.shown for contrast in mine), counted(len(mine), "configuration")
        outcome = "in too few blocks to say more" if not mine else f"no difference shown in {count}"
        idle.setdefault(f"yet it differs in {off} of {count}: the machine was not quiet" if off else outcome, []).append(name)
    lines += [f"{', '.join(names)} changed nothing here: a second A/A; {outcome}." for outcome, names in idle.items()]
    return [*lines, *([untouched(study.contrasts)] if any(contrast.shown for contrast in study.contrasts.again) else [])]


# Factor by factor, and tweak set by tweak set.


def of_factors(study: IoStudy) -> list[str]:
    """What is known of each factor; of AU without the first step only where it tells another story."""
    known = [analyse for analyse in study.analyses if not analyse.sets and not analyse.refusal]
    lines = [
        f"{LABELS.get(analysis.response, analysis.response)}: {line}"
        for analysis in known
        if analysis.response != STEADY
        for line in answers(analysis)
    ]
    return [*lines, *reversals(known)]


def of_tweak_sets(study: IoStudy) -> list[str]:
    """What the copy of stock shows, and what each tweak set did."""
    lines = [line for analyse in study.analyses if analyse.sets for line in answers(analyse)]
    return [untouched(study.contrasts), *tweaks(study.contrasts), *(line for line in lines if SETS in line.partition(":")[0])]


def answers(analysis: Analysis) -> list[str]:
    """What is known of every factor, and of every two that are shown to do something together; a line each."""
    if analysis.refusal:
        return [f"{analysis.response}: nothing can be said: {analysis.refusal}"]
    return [
        _main(finding, analysis) if len(finding.factors) == 1 else _pair(finding, analysis)
        for finding in analysis.findings
        if len(finding.factors) == 1 or finding.shown
    ]


def _how_sure(effect: IoEffect, analysis: Analysis) -> str:
    """Write `5 blocks, p 0.003 (Holm over 10)`; of several steps, each counts for one effect."""
    effects = len(analysis.findings)
    over = f"{counted(effects, 'effect')}, {len(effect.steps)} steps" if len(effect.steps) > 1 else f"{effects}"
    return f"{effect.clearest.blocks} blocks, p {probability(effect.p_adjusted)} (Holm over {over})"


def _written(step: EffectStep | IoContrast, response: str, unit: str) -> str:
    return f"{amount(response, unit, step.effect or 0.0)} {ends(response, step.low, step.high)}"


def _main(effect: IoEffect, analysis: Analysis) -> str:
    name, sure = effect.factors[0], _how_sure(effect, analysis)
    step = f"{effect.clearest.name} {_written(effect.clearest, analysis.response, analysis.unit)}"
    if not effect.shown:
        return f"{name}: not shown to matter; its clearest step, {step}; {sure}."
    means = ", ".join(f"{level.level} {digits(level.mean, 3)}" for level in effect.levels)
    company = [" × ".join(other.factors) for other in analysis.findings if other.shown and len(other.factors) > 1 and name in other.factors]
    depends = f" On average over the others only: see {', '.join(company)}." if company else ""
    unit = f" {analysis.unit}" if analysis.unit else ""
    return f"{name}: {means}{unit}; {step}; {unsigned(effect.share)} of the variation, {sure}.{depends}"


def _pair(effect: IoEffect, analysis: Analysis) -> str:
    head = " × ".join(effect.factors)
    sure = f"{unsigned(effect.share)} of the variation, {_how_sure(effect, analysis)}"
    if SETS in effect.factors:
        (other,) = (name for name in effect.factors if name != SETS)
        return f"{head}: what a tweak set does depends on {other}; {sure}."
    if effect.together is None:
        return f"{head}: what the one does depends on the other; {sure}."
    pair = effect.together
    steps = sorted(pair.steps, key=lambda step: step.effect)
    shown = list(pair.steps) if len(steps) <= 5 else [steps[0], steps[-1]]
    each = "; ".join(f"with {spoken(pair.along, step.name)} {_written(step, analysis.response, analysis.unit)}" for step in shown)
    return f"{head}: {pair.factor} {pair.first} → {pair.last} does {each}; {sure}."


def reversals(result: Sequence[Analysis]) -> Iterator[str]:
    """Say where leaving the first step out shows what the whole epoch does not, or turns its sign: reading was moved, not saved."""
    known = {analysis.response: analysis for analysis in result if analysis.findings}
    if STEADY not in known or WHOLE not in known:
        return
    whole = {(finding.factors, step.levels): (finding, step) for finding in known[WHOLE].findings for step in finding.steps}
    for finding in known[STEADY].findings:
        for step in finding.steps if len(finding.factors) == 1 else ():
            its, other = whole.get((finding.factors, step.levels), (finding, None))
            if other is None or not step.shown:
                continue
            turned = other.shown and other.effect * step.effect < 0
            if turned or not its.shown:
                yield (
                    f"{finding.factors[0]} {step.name}: AU without the first step {signed(step.effect)} points, over the whole epoch "
                    f"{signed(other.effect)} ({'the opposite' if turned else 'no difference shown'}): reading moved into the step that "
                    "is left out, it was not saved."
                )


def untouched(contrasts: Contrasts) -> str:
    """Say what stock against its copy shows, in all configurations together."""
    known = [contrast for contrast in contrasts.again if contrast.p is not None]
    if not known:
        return "A/A: not measured, or in too few blocks: nobody knows what this machine makes out of nothing."
    off = sum(contrast.shown for contrast in known)
    worst = min(known, key=lambda contrast: contrast.p or 0.0)
    where, count = f"{worst.configuration}: {_against_stock(worst, contrasts)}", counted(len(known), "configuration")
    if off:
        return (
            f"A/A: stock and its copy differ in {off} of {count}, though nothing was changed: {where}."
            " One run in 20 shows that by chance; otherwise the machine was not quiet: trust what is said of tweak sets less."
        )
    return f"A/A: stock and its copy: no difference shown in {count}; the clearest, {where}."


def tweaks(contrasts: Contrasts) -> list[str]:
    """Say what each tweak set did, and whether more on a cold cache than on a warm one; a line each."""
    lines = []
    for name in dict.fromkeys(tweak.tweakset for tweak in contrasts.tweaks):
        mine = [tweak for tweak in contrasts.tweaks if tweak.tweakset == name and tweak.p is not None]
        shown = sorted((contrast for contrast in mine if contrast.shown), key=lambda contrast: -abs(contrast.effect or 0.0))
        count = counted(len(mine), "configuration")
        if not mine:
            lines.append(f"{name}: in no configuration measured in two blocks beside stock.")
        elif not shown:
            one = min(mine, key=lambda contrast: contrast.p or 0.0)
            clearest = f"{one.configuration}: {_against_stock(one, contrasts)}"
            lines.append(f"{name}: no difference from stock shown in {count}; the clearest, {clearest}.")
        else:
            each = "; ".join(f"{contrast.configuration}: {_against_stock(contrast, contrasts)}" for contrast in shown[:4])
            more = f"; and {len(shown) - 4} more" if len(shown) > 4 else ""
            lines.append(f"{name}: differs from stock in {len(shown)} of {count}: {each}{more}.")
        controls = [difference for difference in contrasts.differences if difference.tweakset == name and difference.p is not None]
        lines += [_control(control, contrasts) for control in controls if control.shown]
        if controls and not any(control.shown for control in controls):
            where = f" in any of {counted(len(controls), 'configuration')}" if len(controls) > 1 else ""
            lines.append(f"{name}: not shown to do more on a cold cache than on a warm one{where}.")
    return lines


def _control(contrast: IoContrast, contrasts: Contrasts) -> str:
    """Cold beside warm, with the difference of the two."""
    twins = {other.cache: other for other in contrasts.tweaks if (other.tweakset, other.rest) == (contrast.tweakset, contrast.rest)}
    sides = ", ".join(f"{state} {_against_stock(twins[state], contrasts)}" for state in ("cold", "warm") if state in twins)
    where = f", {contrast.rest}" if contrast.rest else ""
    return f"{contrast.tweakset}{where}: {sides}; the cold cache makes the difference: {_against_stock(contrast, contrasts)}."


def _against_stock(contrast: IoContrast, contrasts: Contrasts) -> str:
    if contrast.effect is None:
        return contrast.missing or "not measured"
    p = "" if contrast.p_adjusted is None else f" (p {probability(contrast.p_adjusted)})"
    return f"{_written(contrast, contrasts.response, contrasts.unit)}{p}"
