"""The answer first: what feeds most and what does not, whether DLIO agrees, which tweak sets differ; a line each, and few of them.

Configurations are compared two by two on the untouched machine, paired by block, and Holm adjusts for all pairs of a state of the cache:
which one is the best is chosen by the very figures that are compared, and only all pairs together leave no room for that choice.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from analysis.stats.adjust import holm
from analysis.studies.keys.observed import AGAIN
from analysis.terms import NotComparable
from analysis.wording import digits, number, percent
from control.t_test import ALPHA

from .configurations import BY_DEFAULT, by_block, in_order, mean_of
from .contrasts import FEWEST_BLOCKS
from .factors import STOCK, common, configuration, level_of, scale_of
from .sentences import WHOLE, signed, untouched
from .steps import paired

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .contrasts import Contrast
    from .responses import Judged
    from .steps import Paired
    from .study import Study
    from .terms import IoRun

RATE = "samples_per_s_whole"
MOST = 3  # names or figures in a line
MOST_STATES = 4
OTHERS_SHORT_S = 0.005  # a step's computation below which hand-over and process start are of its own size


def answer(found: Study) -> list[str]:
    """Say the answer in lines that stand by themselves."""
    if not found.cells:
        return []
    plain = in_order([one for one in found.cells if one.run.tweakset in {STOCK, AGAIN}])
    ours = _base([one.run for one in plain])
    return [*_best([one for one in plain if one.run.engine == ours]), *_engines(plain, ours), *_tweak_sets(found)]


def head(found: Study) -> list[str]:
    """Say what the figures stand on, before any: what stock is, and why they may not be carried elsewhere."""
    return [*_stock([one.run for one in found.cells]), *_short([one.run for one in found.cells])]


def idle_in_words(found: Study) -> list[str]:
    """Say which tweak sets are none here, and what comes out all the same."""
    lines = []
    for name in dict.fromkeys(one.tweakset for one in found.idle):
        mine = [one for one in found.idle if one.tweakset == name and one.p is not None]
        off = [one for one in mine if one.shown]
        count = f"{len(mine)} configuration{'' if len(mine) == 1 else 's'}"
        said = "in too few blocks to say more" if not mine else f"no difference shown in {count}"
        if off:
            said = f"yet it differs in {len(off)} of {count}: the machine was not quiet"
        lines.append(f"{name} changed nothing here: a second A/A; {said}.")
    return lines


def _stock(runs: Sequence[IoRun]) -> list[str]:
    """The settings of the disk's queue that reading depends on, as the untouched machine has them."""
    found = []
    for name in ("read_ahead_kb", "scheduler"):
        values = list(dict.fromkeys(str(run.disk[name]) for run in runs if run.tweakset == STOCK and name in run.disk))
        found += [f"{name} {' or '.join(values)}"] if values else []
    disks = "".join(f" of {one}" for one in dict.fromkeys(str(run.disk.get("device", "the disk")) for run in runs if run.disk))
    return [f"Stock: {', '.join(found)}{disks}, as the machine was found."] if found else []


def _short(runs: Sequence[IoRun]) -> list[str]:
    scaled = [run for run in runs if str(run.params.get("record_scale", 1)) not in {"1", "1.0"}]
    times = sorted({run.computation_time_s for run in scaled if run.computation_time_s and run.computation_time_s < OTHERS_SHORT_S})
    if not times:
        return []
    span = f"{1000 * times[0]:.2g}" + (f" to {1000 * times[-1]:.2g}" if len(times) > 1 else "")
    why = f"a step computes {span} ms: hand-over between processes and their start do not scale with record_scale"
    return [f"Doubt: {why}; do not carry this over to the full-size job."]


def _base(runs: Sequence[IoRun]) -> str:
    """Name the engine that others are set against: ours, where it was measured."""
    engines = [run.engine for run in runs]
    return "torch" if "torch" in engines else next(iter(engines), "")


def _best(cells: Sequence[Judged]) -> list[str]:
    """For each state of the cache, what has the highest samples/s, and what is known of the others."""
    states: dict[tuple[str, ...], list[Judged]] = {}
    for one in cells:
        if one.value(RATE) is not None:
            states.setdefault(_state(one.run), []).append(one)
    told = {key: _grouped(members) for key, members in states.items()}
    chosen = {key: groups for key, groups in told.items() if len(groups) > 1} or told
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


def _grouped(cells: Sequence[Judged]) -> dict[str, list[Judged]]:
    alike = common([one.run for one in cells])
    groups: dict[str, list[Judged]] = {}
    for one in cells:
        groups.setdefault(configuration(one.run, alike) or BY_DEFAULT, []).append(one)
    return groups


def _highest(groups: Mapping[str, Sequence[Judged]]) -> str:
    means = {name: mean_of([one.responses[RATE] for one in cells], [one.run.block for one in cells]) for name, cells in groups.items()}
    best = max(means, key=lambda name: means[name].value or 0.0)
    mean = means[best]
    interval = "" if mean.low is None or mean.high is None else f" [{digits(mean.low, 3)}, {digits(mean.high, 3)}]"
    said = f"{digits(mean.value or 0.0, 3)} samples/s{interval}"
    if len(groups) == 1:
        return f"{said}; nothing was measured beside it."
    said = f"the highest is {best}, {said}"
    changes, adjusted = _pairs(groups)
    below = {name: change for (first, name), change in changes.items() if first == best}
    lower = sorted((name for name in below if adjusted[frozenset((best, name))] < ALPHA), key=lambda name: -below[name].effect)
    others = [name for name in groups if name != best and name not in lower]
    parts = [said]
    if others:
        parts.append(f"not told apart from it: {_names(others)}")
    if lower:
        told = [f"{name} ({_relative(below[name])})" for name in lower]
        parts.append(f"clearly lower: {', '.join(told)}" if len(told) < 3 else f"clearly lower: {len(told)}, from {told[0]} to {told[-1]}")
    pairs = f"Holm over {len(adjusted)} pair{'' if len(adjusted) == 1 else 's'}" if adjusted else "no two share two blocks"
    return f"{'; '.join(parts)} ({pairs})."


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more


def _relative(one: Paired) -> str:
    return f"{percent(one.effect)} [{number(one.low)}, {number(one.high)}]"


def _pairs(groups: Mapping[str, Sequence[Judged]]) -> tuple[dict[tuple[str, str], Paired], dict[frozenset[str], float]]:
    """Compare all configurations two by two: from the first to the second both ways round, and p of each pair after Holm."""
    values = {name: by_block(cells, RATE) for name, cells in groups.items()}
    changes: dict[tuple[str, str], Paired] = {}
    for first, second in itertools.permutations(groups, 2):
        blocks = sorted(values[first].keys() & values[second].keys())
        change = _change([math.log(values[second][block] / values[first][block]) for block in blocks], RATE)
        if change is not None:
            changes[first, second] = change
    ps = {frozenset(pair): change.p for pair, change in changes.items()}
    return changes, dict(zip(ps, holm(list(ps.values())), strict=True))


def _change(values: Sequence[float], response: str) -> Paired | None:
    """Average changes over blocks; None where too few blocks have one, or all the very same: these are no measurements."""
    if len(values) < FEWEST_BLOCKS:
        return None
    try:
        return paired(values, log=scale_of(response) == "log")
    except NotComparable:
        return None


def _engines(cells: Sequence[Judged], base: str) -> list[str]:
    """Set each other engine against ours: in each block the mean over all configurations that both ran."""
    lines = []
    for name in dict.fromkeys(one.run.engine for one in cells if one.run.engine != base):
        said, clear, blocks = [], False, 0
        for response, words in ((WHOLE, "AU whole"), (RATE, "samples/s")):
            values = _against(cells, response, base, name)
            change = _change(values, response)
            if change is None:
                said.append(f"{words} not comparable: fewer than two blocks have it from both")
                continue
            told = (
                _relative(change)
                if scale_of(response) == "log"
                else f"{signed(change.effect)} points [{signed(change.low)}, {signed(change.high)}]"
            )
            said.append(f"{words} {told}")
            clear, blocks = clear or change.low > 0 or change.high < 0, max(blocks, len(values))
        paired = f" (paired over {blocks} blocks; {'they differ' if clear else 'no difference shown'})" if blocks else ""
        lines.append(f"{_spelled(name)} against {_spelled(base)}: {', '.join(said)}{paired}.")
    return lines


def _spelled(engine: str) -> str:
    return "DLIO" if engine == "dlio" else engine


def _against(cells: Sequence[Judged], response: str, base: str, other: str) -> list[float]:
    """What another engine changes in each block, as the mean over the configurations that both engines ran in it."""
    alike = common([one.run for one in cells]) | {"engine"}
    groups: dict[tuple[str, str], list[Judged]] = {}
    for one in cells:
        groups.setdefault((configuration(one.run, alike), one.run.engine), []).append(one)
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


def _tweak_sets(found: Study) -> list[str]:
    known = [one for one in found.contrasts.tweaks if one.p is not None]
    shown = sorted((one for one in known if one.shown), key=lambda one: -abs(math.log1p(one.effect or 0.0)))
    lines = []
    if shown:
        more = f" and {len(shown) - MOST} more" if len(shown) > MOST else ""
        lines.append(f"Tweak sets that differ from stock: {'; '.join(map(_told, shown[:MOST]))}{more} (Holm over {len(known)}).")
    elif known:
        sets = len({one.tweakset for one in known})
        lines.append(f"Tweak sets: {'it' if sets == 1 else f'none of {sets}'} is {'not ' if sets == 1 else ''}shown to differ from stock.")
    lines += idle_in_words(found)
    return [*lines, *([untouched(found.contrasts)] if any(one.shown for one in found.contrasts.again) else [])]


def _told(one: Contrast) -> str:
    where = f" with {one.configuration}" if one.configuration else ""
    return f"{one.tweakset}{where} {percent(one.effect or 0.0)} [{number(one.low or 0.0)}, {number(one.high or 0.0)}]"
