"""What a capped run says in sentences, the same on a terminal and on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.wording import unsigned
from control.t_test import ALPHA

from .figures import ABOVE, ABOVE_102, EXCESS, LONGEST, OVER_SLO, P95, PER_IMAGE, POWER, RULE, THROUGHPUT, WHOLE_102, WORST
from .study import LIMIT
from .terms import Against
from .words import drawn_from, share, shown, source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Arm, Foretold, Group, Mean, Side, Together

HELD = f"holds: at most {unsigned(LIMIT)} of steady time above 1.02 times the cap, by the upper end of the 95 % interval"
# What a table calls its figures, for a line that says which of them blocks lack.
FIGURES = {
    THROUGHPUT: "images/s",
    ABOVE_102: ">1.02 cap",
    ABOVE: ">cap",
    EXCESS: "above a minute",
    WHOLE_102: "whole >1.02",
    LONGEST: "longest",
    WORST: "worst",
    POWER: "power",
    PER_IMAGE: "energy",
    P95: "p95",
    OVER_SLO: ">SLO",
}


def of_side(side: Side) -> list[str]:
    """What one back-end says: where its readings are from, the A/A, who holds the cap, and who gets most out of it."""
    return [source(side), *_control(side), *_holding(side), *_most(side)]


def _control(side: Side) -> list[str]:
    """Arms against their copies: the difference that nothing made."""
    known = [(one, one.again) for one in side.groups if one.again.value is not None]
    if not known:
        return ["No A/A: no arm was measured beside a copy of itself in two blocks or more."]
    if all(again.value == 0 and again.low is None for _, again in known):
        return ["A/A: arms and their copies are the same to the last digit, as a seeded simulation is. It says nothing of noise."]
    differing = [
        (group, again) for group, again in known if again.low is not None and again.high is not None and again.low * again.high > 0
    ]
    chance = " One in 20 does by chance." if len(known) > 1 else ""
    lines = [
        f"A/A DIFFERS in {group.label}: arms against their copies {shown(again, 'images/s')}: trust no smaller difference there.{chance}"
        for group, again in differing
    ]
    wide = [again for _, again in known if again.low is not None and again.high is not None]
    if differing or not wide:
        return lines
    half = max((one.high - one.low) / 2 for one in wide if one.high is not None and one.low is not None)
    tasks = f"{len(known)} task{'' if len(known) == 1 else 's'}"
    return [f"A/A holds in {tasks}: arms against their copies, 95 % intervals contain 0 and reach {unsigned(half)} to either side at most."]


def _holding(side: Side) -> list[str]:
    """Who keeps the cap: by all tasks together, or by the one that there is."""
    if not any(one.holds != "no sensor" for group in side.groups for one in group.arms if one.n):
        return []
    lines = []
    for word, said in (("yes", "Holds the cap"), ("no", "Does not hold the cap"), ("not shown", "Not shown to hold the cap, nor not to")):
        names = [f"{name} ({how})" for name, how, holds, _ in _arms(side) if holds == word]
        lines += [f"{said}: {', '.join(names)} of steady time above 1.02 times it."] if names else []
    return lines


def _most(side: Side) -> list[str]:
    """Who has most throughput, of those that hold the cap where any does."""
    rows = [(name, holds, rate) for name, _, holds, rate in _arms(side) if name != side.baseline]
    more = [(name, holds, rate) for name, holds, rate in rows if _differs(rate) and (rate.value or 0) > 0]
    less = [name for name, _, rate in rows if _differs(rate) and (rate.value or 0) < 0]
    lines = []
    for name, holds, rate in sorted(more, key=lambda one: -(one[2].value or 0)):
        but = {"no": ", at the price of the cap", "not shown": ", the cap not shown to be held"}.get(holds, "")
        lines.append(f"{name}: {shown(rate, f'images/s against {side.baseline}')}{but}.")
    lines += [f"Less than {side.baseline}: {', '.join(less)}."] if less else []
    alike = [name for name, _, rate in rows if not _differs(rate) and rate.value is not None]
    lines += [f"No difference from {side.baseline} in images/s is shown: {', '.join(alike)}."] if alike else []
    reasons: dict[str, list[str]] = {}
    for name, _, rate in rows:
        if rate.value is None:
            reasons.setdefault((rate.missing or "no block has both").rstrip("."), []).append(name)
    return [*lines, *(f"Not compared with {side.baseline}: {', '.join(names)}: {why}." for why, names in reasons.items())]


def leaders(side: Side) -> tuple[list[tuple[str, Against]], list[tuple[str, Against]]]:
    """Algorithms that get more images/s than the baseline and hold the cap, the most first; and all that are held against it."""
    rows = [(name, holds, rate) for name, _, holds, rate in _arms(side) if name != side.baseline]
    more = [(name, rate) for name, holds, rate in rows if holds == "yes" and _differs(rate) and (rate.value or 0) > 0]
    return sorted(more, key=lambda one: -(one[1].value or 0)), [(name, rate) for name, _, rate in rows if rate.value is not None]


def _differs(one: Against) -> bool:
    return one.p_adjusted is not None and one.p_adjusted < ALPHA


def _arms(side: Side) -> list[tuple[str, str, str, Against]]:
    """Name, share above 1.02 times the cap in words, whether it holds, and throughput against the baseline, over all tasks."""
    if side.together:
        return [(one.name, _of_all(one), one.holds, one.throughput) for one in side.together]
    return [
        (one.name, _above(one.means.get(ABOVE_102), one.unread.get(ABOVE_102, 0)), one.holds, one.against.get(THROUGHPUT, Against()))
        for group in side.groups
        for one in group.arms
        if one.n
    ]


def _of_all(one: Together) -> str:
    """What an arm has above its cap over all its tasks, and in how many it holds by itself, where that is not all."""
    held, tasks = one.held
    return f"{_above(one.above, one.lacking, ' in a task')}{'' if held == tasks else f'; held in {held} of {tasks} tasks'}"


def _above(one: Mean | None, lacking: int, where: str = "") -> str:
    """Write a share of time with how many blocks it is not of: `0.0 [0.0, 0.0] %, of 2 blocks; 3 of 5 lack readings`."""
    known = 0 if one is None else one.n
    figure = "no figure" if one is None else f"{share(one)} %"
    return f"{figure}, of {known} blocks; {lacking} of {known + lacking} lack readings{where}" if lacking else figure


def of_group(group: Group) -> list[tuple[str, str]]:
    """What must be said of a task beside its figures: predictions, refused settings, memory, and cells without figures."""
    lines: list[tuple[str, str]] = []
    for one in group.arms:
        lines += [("predicted:", f"{one.name}: {_foretold(one.foretold)}")] if one.foretold else []
    for one in group.arms:
        for head, counts, what in (
            ("refused:", one.refused, "iteration"),
            ("process:", one.crashed, "iteration"),
            ("infeasible:", one.infeasible, "cell"),
        ):
            lines += [
                (head, f"{one.name}: {count} {what}{'' if count == 1 else 's'}: {sentence.rstrip('.')}.")
                for sentence, count in counts.items()
            ]
        lines += [("clocks:", f"{one.name}: other than asked for in {one.astray} iterations, and not refused.")] if one.astray else []
        lines += [("left out:", f"{one.name}: {count} {reason}") for reason, count in one.lost.items()]
        lines += [("missing:", f"{one.name}: {which}") for which in _unread(one)]
    notes: dict[tuple[str, str], list[str]] = {}
    for one in group.arms:
        why = [("no verdict:", one.reason)] if one.n and one.verdict == "not comparable" and one.reason else []
        for note in (*why, *(("note:", note) for note in one.notes)):
            notes.setdefault(note, []).append(one.name)
    return [*lines, *((head, f"{', '.join(names)}: {note}") for (head, note), names in notes.items())]


def _unread(one: Arm) -> list[str]:
    """Which figures some blocks lack, those with as many in one line."""
    by_count: dict[int, list[str]] = {}
    for name, said in FIGURES.items():
        if name in one.unread:
            by_count.setdefault(one.unread[name], []).append(said)
    return [f"{count} of {one.n} blocks without {', '.join(names)}: a reading is missing, or 0." for count, names in by_count.items()]


def _foretold(found: Sequence[Foretold]) -> str:
    said = [f"{one.what} {100 * one.bias:+.1f} % (off by {100 * one.error:.1f} %)" for one in found]
    return f"{', '.join(said)}; {max(one.n for one in found)} iterations."


def legend(side: Side) -> list[tuple[str, str]]:
    """What the columns mean."""
    limited = drawn_from(side)
    return [
        ("n", "blocks; an arm and its copy in one block are one value. [ ] 95 %, by Student's t over blocks, which are the replicates."),
        ("steady", f"{RULE.partition(': ')[2]}. All figures but “whole” are of these."),
        ("+%", f"images/s more than {side.baseline}, block by block, on log ratios. p: Holm's, of {side.family}."),
        ("held", f"{HELD}; not where a block lacks readings. n=: it is of so many blocks only. ≥: a reading is missing."),
        *(
            [("tasks", f"those that {side.baseline} has too, for +%; >1.02 cap and held are of all that an arm ran.")]
            if side.together
            else []
        ),
        ("verdict", f"on images/s: more, less, alike (90 % interval within ±{unsigned(side.margin)}), not shown."),
        ("front", f"no other arm has as many images/s from as little {limited}. worst: the highest reading less the cap."),
        ("predicted", "÷ measured - 1: median of steady iterations that ran as asked, and of its size. Power is the largest reading."),
        ("p95", "of an iteration's slowest process, median over iterations. SLO: part of images in batches over the SLO."),
    ]
