"""What a capped run answers: who gets most out of the cap and holds it, all tasks together, then each task with its algorithms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from analysis.answer import Answer, Column, Line, Section, Table, Tone, Word
from analysis.labels import headline, provenance
from analysis.stats.estimate import Estimate
from analysis.terms import Run
from analysis.wording import bracket, digits, number, percent, probability, unsigned
from control.t_test import ALPHA

from .cells import ABOVE, ABOVE_102, EXCESS, LONGEST, OVER_SLO, P95, PER_IMAGE, POWER, RULE, THROUGHPUT, WHOLE_102, WORST
from .report_terms import ACTIVITY, NO_SENSOR, SIMULATED, WATT, AllTasks, Foretold, Group, MeasuredAlgorithm, PowerSide
from .study import LIMIT

if TYPE_CHECKING:
    from analysis.stats.estimate import Mean


UNITS = {WATT: "W", ACTIVITY: "CPU s/s"}
EXCESSES = {WATT: "W·s", ACTIVITY: "CPU s"}


def unit_of(side: PowerSide) -> str:
    """The unit of the cap as people write it."""
    return UNITS.get(side.unit, side.unit)


def excess_of(side: PowerSide) -> str:
    """The unit of what is above the cap, times how long it is."""
    return EXCESSES.get(side.unit, f"{unit_of(side)}·s")


def drawn_from(side: PowerSide) -> str:
    """What is limited: power, or where no watts are read, activity."""
    return "power" if side.unit == WATT else "activity"


def caps(values: Sequence[float], side: PowerSide) -> str:
    """Write a cap, or those of a schedule in their order: `130 W`, `200, 160, 120 W`."""
    return f"{', '.join(f'{value:g}' for value in values)} {unit_of(side)}" if values else "unknown"


def shown(against: Estimate, what: str = "") -> str:
    """Write a difference in a sentence: `+3.2 % [2.0, 4.4] images/s (Holm p 0.002, 20 blocks)`."""
    if against.value is None:
        return against.missing or "unknown"
    p = "" if against.p_adjusted is None else f"Holm p {probability(against.p_adjusted)}, "
    return f"{percent(against.value)}{bracket(against.low, against.high)}{f' {what}' if what else ''} ({p}{against.n} blocks)"


def share(mean: Mean | None) -> str:
    """Write a share of time in percent with its interval: `4.2 [3.1, 5.3]`."""
    return "" if mean is None else f"{100 * mean.value:.1f}{bracket(mean.low, mean.high, lambda end: f'{100 * end:.1f}')}"


def value(mean: Mean | None, most: int = 4) -> str:
    """Write a mean without its interval, to so many digits."""
    return "" if mean is None else digits(mean.value, most)


def source(side: PowerSide) -> str:
    """Say where the readings come from, which decides what may be said of the cap."""
    if side.power_source == SIMULATED:
        return f"SIMULATED: back-end {side.backend} is a plant made from a model or tables. No figure here was measured on a GPU."
    if side.unit == ACTIVITY:
        return f"ACTIVITY, not power: back-end {side.backend} limits and reads CPU seconds a second. No watts were read, none are claimed."
    if side.power_source == NO_SENSOR:
        return f"NO SENSOR: back-end {side.backend} reads no power here. Nothing is said of the cap."
    return f"Measured: back-end {side.backend}, power read by {side.power_source}."


HOLDS_MEANS = f"holds: at most {unsigned(LIMIT)} of steady time above 1.02 times the cap, by the upper end of the 95 % interval"
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


def of_side(side: PowerSide) -> list[str]:
    """What one back-end says: where its readings are from, the A/A, who holds the cap, and who gets most out of it."""
    return [source(side), *_control(side), *_holding(side), *_most_throughput(side)]


def _control(side: PowerSide) -> list[str]:
    """Arms against their copies: the difference that nothing made."""
    known = [(group, group.again) for group in side.groups if group.again.value is not None]
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
    half = max((against.high - against.low) / 2 for against in wide if against.high is not None and against.low is not None)
    tasks = f"{len(known)} task{'' if len(known) == 1 else 's'}"
    return [f"A/A holds in {tasks}: arms against their copies, 95 % intervals contain 0 and reach {unsigned(half)} to either side at most."]


def _holding(side: PowerSide) -> list[str]:
    """Who keeps the cap: by all tasks together, or by the one that there is."""
    if not any(arm.holds != "no sensor" for group in side.groups for arm in group.arms if arm.n):
        return []
    lines = []
    for word, text in (("yes", "Holds the cap"), ("no", "Does not hold the cap"), ("not shown", "Not shown to hold the cap, nor not to")):
        names = [f"{name} ({how})" for name, how, holds, _ in _arms(side) if holds == word]
        lines += [f"{text}: {', '.join(names)} of steady time above 1.02 times it."] if names else []
    return lines


def _most_throughput(side: PowerSide) -> list[str]:
    """Who has most throughput, of those that hold the cap where any does."""
    rows = [(name, holds, rate) for name, _, holds, rate in _arms(side) if name != side.baseline]
    more = [(name, holds, rate) for name, holds, rate in rows if _differs(rate) and (rate.value or 0) > 0]
    less = [name for name, _, rate in rows if _differs(rate) and (rate.value or 0) < 0]
    lines = []
    for name, holds, rate in sorted(more, key=lambda entry: -(entry[2].value or 0)):
        but = {"no": ", at the price of the cap", "not shown": ", the cap not shown to be held"}.get(holds, "")
        lines.append(f"{name}: {shown(rate, f'images/s against {side.baseline}')}{but}.")
    lines += [f"Less than {side.baseline}: {', '.join(less)}."] if less else []
    alike = [name for name, _, rate in rows if not _differs(rate) and rate.value is not None]
    lines += [f"No difference from {side.baseline} in images/s is shown: {', '.join(alike)}."] if alike else []
    reasons: dict[str, list[str]] = {}
    for name, _, rate in rows:
        if rate.value is None:
            reasons.setdefault((rate.missing or "no block has both").rstrip("."), []).append(name)
    return [*lines, *(f"Not compared with {side.baseline}: {', '.join(names)}: {reason}." for reason, names in reasons.items())]


def leaders(side: PowerSide) -> tuple[list[tuple[str, Estimate]], list[tuple[str, Estimate]]]:
    """Algorithms that get more images/s than the baseline and hold the cap, the most first; and all that are held against it."""
    rows = [(name, holds, rate) for name, _, holds, rate in _arms(side) if name != side.baseline]
    more = [(name, rate) for name, holds, rate in rows if holds == "yes" and _differs(rate) and (rate.value or 0) > 0]
    return sorted(more, key=lambda entry: -(entry[1].value or 0)), [(name, rate) for name, _, rate in rows if rate.value is not None]


def _differs(against: Estimate) -> bool:
    return against.p_adjusted is not None and against.p_adjusted < ALPHA


def _arms(side: PowerSide) -> list[tuple[str, str, str, Estimate]]:
    """Name, share above 1.02 times the cap in words, whether it holds, and throughput against the baseline, over all tasks."""
    if side.together:
        return [(together.name, _of_all(together), together.holds, together.throughput) for together in side.together]
    return [
        (arm.name, _above(arm.means.get(ABOVE_102), arm.unread.get(ABOVE_102, 0)), arm.holds, arm.against.get(THROUGHPUT, Estimate()))
        for group in side.groups
        for arm in group.arms
        if arm.n
    ]


def _of_all(together: AllTasks) -> str:
    """What an arm has above its cap over all its tasks, and in how many it holds by itself, where that is not all."""
    held, tasks = together.held
    return f"{_above(together.above, together.lacking, ' in a task')}{'' if held == tasks else f'; held in {held} of {tasks} tasks'}"


def _above(mean: Mean | None, lacking: int, where: str = "") -> str:
    """Write a share of time with how many blocks it is not of: `0.0 [0.0, 0.0] %, of 2 blocks; 3 of 5 lack readings`."""
    known = 0 if mean is None else mean.n
    figure = "no figure" if mean is None else f"{share(mean)} %"
    return f"{figure}, of {known} blocks; {lacking} of {known + lacking} lack readings{where}" if lacking else figure


def of_group(group: Group) -> list[tuple[str, str]]:
    """What must be said of a task beside its figures: predictions, refused settings, memory, and cells without figures."""
    lines: list[tuple[str, str]] = []
    for arm in group.arms:
        lines += [("predicted:", f"{arm.name}: {foretold_words(arm.foretold)}")] if arm.foretold else []
    for arm in group.arms:
        for head, counts, what in (
            ("refused:", arm.refused, "iteration"),
            ("process:", arm.crashed, "iteration"),
            ("infeasible:", arm.infeasible, "cell"),
        ):
            lines += [
                (head, f"{arm.name}: {count} {what}{'' if count == 1 else 's'}: {sentence.rstrip('.')}.")
                for sentence, count in counts.items()
            ]
        lines += [("clocks:", f"{arm.name}: other than asked for in {arm.astray} iterations, and not refused.")] if arm.astray else []
        lines += [("left out:", f"{arm.name}: {count} {reason}") for reason, count in arm.lost.items()]
        lines += [("missing:", f"{arm.name}: {which}") for which in _unread(arm)]
    notes: dict[tuple[str, str], list[str]] = {}
    for arm in group.arms:
        why = [("no verdict:", arm.reason)] if arm.n and arm.verdict == "not comparable" and arm.reason else []
        for note in (*why, *(("note:", note) for note in arm.notes)):
            notes.setdefault(note, []).append(arm.name)
    return [*lines, *((head, f"{', '.join(names)}: {note}") for (head, note), names in notes.items())]


def _unread(arm: MeasuredAlgorithm) -> list[str]:
    """Which figures some blocks lack, those with as many in one line."""
    by_count: dict[int, list[str]] = {}
    for name, text in FIGURES.items():
        if name in arm.unread:
            by_count.setdefault(arm.unread[name], []).append(text)
    return [f"{count} of {arm.n} blocks without {', '.join(names)}: a reading is missing, or 0." for count, names in by_count.items()]


def foretold_words(result: Sequence[Foretold]) -> str:
    lines = [f"{foretold.what} {100 * foretold.bias:+.1f} % (off by {100 * foretold.error:.1f} %)" for foretold in result]
    return f"{', '.join(lines)}; {max(foretold.n for foretold in result)} iterations."


def legend(side: PowerSide) -> list[tuple[str, str]]:
    """What the columns mean."""
    limited = drawn_from(side)
    return [
        ("n", "blocks; an arm and its copy in one block are one value. [ ] 95 %, by Student's t over blocks, which are the replicates."),
        ("steady", f"{RULE.partition(': ')[2]}. All figures but “whole” are of these."),
        ("+%", f"images/s more than {side.baseline}, block by block, on log ratios. p: Holm's, of {side.family}."),
        ("held", f"{HOLDS_MEANS}; not where a block lacks readings. n=: it is of so many blocks only. ≥: a reading is missing."),
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


HELD: dict[str, Tone] = {"yes": "good", "no": "bad", "not shown": "open", "no sensor": "quiet"}
LOUD = ("SIMULATED", "ACTIVITY", "NO SENSOR", "A/A DIFFERS", "Does not hold")
PERCENT = "+ % [95 %]"


def answer(run: Run, result: Sequence[PowerSide], *, brief: bool = False) -> Answer:
    """Say what algorithms made of a cap; `brief` leaves out energy, latency and what stands beside a task's figures."""
    several = len(result) > 1
    sections = []
    for side in result:
        head = f", back-end {side.backend}" if several else ""
        if side.together:
            sections.append(Section(f"All {len(side.groups)} tasks together, each as heavy as any other{head}", [_together(side)]))
        sections += [_group(group, side, head, brief=brief) for group in side.groups]
    return Answer(
        title=" ".join(_title(side) + (f" ({side.backend})" if several else "") for side in result),
        findings=[
            *(Line(line, "•", "open" if line.startswith(LOUD) else "") for side in result for line in of_side(side)),
            *(Line(text, tone="quiet") for text in headline([run]).splitlines()),
        ],
        sections=sections,
        warnings=[*(["the run was interrupted: later blocks are missing."] * run.interrupted), *run.warnings],
        legend=[*provenance([run]), *dict.fromkeys(line for side in result for line in legend(side))],
        data=document(run, result),
    )


def document(run: Run, result: Sequence[PowerSide]) -> dict[str, object]:
    """Give the same for programs: the fields are those of `terms`; shares and differences are fractions."""
    about = {"run_id": run.run_id, "origin": run.origin, "started_utc": run.started_utc, "commit": run.commit, "seed": run.design.seed}
    told = {"interrupted": run.interrupted, "warnings": list(run.warnings)}
    return {**about, **told, "backends": [{**asdict(side), "answer": of_side(side)} for side in result]}


def _title(side: PowerSide) -> str:
    more, others = leaders(side)
    if more:
        names = ", ".join(f"{name} {unsigned(rate.value or 0.0)}" for name, rate in more)
        return f"More images/s than {side.baseline}, and the cap is held: {names}."
    if not others:
        return "One algorithm alone has figures: nothing is compared."
    return f"No algorithm is shown to get more images/s than {side.baseline} and to hold the cap."


def _together(side: PowerSide) -> Table:
    columns = [
        Column("algorithm", "algorithm", left=True),
        Column("tasks", "tasks"),
        Column("images/s", "verdict", left=True),
        Column("95 % interval", "throughput", _interval),
        Column("p\nHolm", "p_adjusted", probability),
        Column(">1.02 cap\n% [95 %]", "above", left=True),
        Column("held", "held", left=True),
        Column("in tasks", "held_in"),
    ]
    rows = []
    for together in side.together:
        rate = None if together.name == side.baseline else together.throughput
        above = (
            share(together.above)
            if together.above is None
            else _blocks(share(together.above), together.above.n, together.above.n + together.lacking)
        )
        held = [Word(together.holds, HELD[together.holds]), f"{together.held[0]} of {together.held[1]}"]
        rows.append([together.name, together.tasks, _difference(rate, "baseline"), rate, rate and rate.p_adjusted, above, *held])
    return Table(columns, rows)


def _group(group: Group, side: PowerSide, head: str, *, brief: bool) -> Section:
    slo = "" if group.slo_ms is None else f", SLO {group.slo_ms:g} ms"
    steady, every = group.steady
    columns = [
        Column("algorithm", "algorithm", left=True),
        Column("images/s", "images_per_s"),
        Column("difference", "verdict", left=True),
        Column("95 % interval", "throughput", _interval, spare=2),
        Column("p\nHolm", "p_adjusted", probability),
        Column(">1.02 cap\n% [95 %]", "above", left=True),
        Column("held", "held", left=True),
        Column("n", "n", spare=1),
    ]
    rows = []
    for arm in group.arms:
        rate = None if arm.name == side.baseline else arm.against.get(THROUGHPUT)
        above = _blocks(share(arm.means.get(ABOVE_102)), arm.n - arm.unread.get(ABOVE_102, 0), arm.n)
        held = Word(arm.holds, HELD[arm.holds]) if arm.n else None
        word = Word("baseline") if arm.name == side.baseline else _verdict(arm, rate)
        p = rate and rate.p_adjusted
        n = str(arm.n) if arm.n == arm.blocks else f"{arm.n}/{arm.blocks}"
        rows.append([arm.name, value(arm.means.get(THROUGHPUT)), word, rate, p, above, held, n])
    parts: list[Line | Table] = [Table(columns, rows)]
    if not brief:
        rest = _rest([arm for arm in group.arms if arm.n], side)
        parts += [] if rest is None else [rest]
        parts += [Line(text, mark) for mark, text in of_group(group)]
    return Section(f"{group.title}   cap {caps(group.caps, side)}{slo}; {steady} of {every} iterations steady{head}", parts)


def _verdict(arm: MeasuredAlgorithm, rate: Estimate | None) -> Word:
    """A word beside the number: `3.2 % faster`, `same (+0.1 %)`, `can't tell (+1.5 %)`."""
    if rate is None or rate.value is None or arm.verdict == "not comparable":
        return Word("not comparable", "quiet")
    if arm.verdict in {"improved", "regressed"}:
        faster = arm.verdict == "improved"
        return Word(f"{unsigned(abs(rate.value))} {'faster' if faster else 'slower'}", "good" if faster else "bad")
    word = "same" if arm.verdict == "equivalent" else "can't tell"
    return Word(f"{word} ({number(rate.value)} %)", "" if arm.verdict == "equivalent" else "open")


def _difference(rate: Estimate | None, none: str) -> str:
    return none if rate is None else "" if rate.value is None else f"{number(rate.value)} %"


def _interval(rate: Estimate) -> str:
    return bracket(rate.low, rate.high, number).lstrip()


def _rest(arms: Sequence[MeasuredAlgorithm], side: PowerSide) -> Table | None:
    """The other figures; a column that no arm has is left out."""
    unit, limited = unit_of(side), drawn_from(side)
    columns: list[tuple[str, str, Callable[[MeasuredAlgorithm], str]]] = [
        ("front", "front", lambda arm: "yes" if arm.front and len(arms) > 1 else ""),
        (f"{limited}\n{unit}", "limited", lambda arm: value(arm.means.get(POWER))),
        ("energy\nJ/image", "energy_j_per_image", lambda arm: value(arm.means.get(PER_IMAGE), 3)),
        ("p95\nms", "p95_ms", lambda arm: value(arm.means.get(P95), 3)),
        (">SLO\n%", "over_slo_percent", lambda arm: share(arm.means.get(OVER_SLO)).partition(" ")[0]),
        (">cap\n%", "above_cap_percent", lambda arm: share(arm.means.get(ABOVE)).partition(" ")[0]),
        (f"above\n{excess_of(side)}/min", "excess_per_min", lambda arm: value(arm.means.get(EXCESS), 3)),
        ("longest\ns", "longest_s", lambda arm: _most(arm, LONGEST)),
        (f"worst\n{unit}", "worst", lambda arm: _most(arm, WORST)),
        ("whole\n>1.02 %", "whole_above_percent", lambda arm: share(arm.means.get(WHOLE_102)).partition(" ")[0]),
    ]
    kept = [(head, name, of) for head, name, of in columns if any(of(arm) for arm in arms)]
    if not kept:
        return None
    heads = [Column("algorithm", "algorithm", left=True), *(Column(head, name) for head, name, _ in kept)]
    return Table(heads, [[arm.name, *(of(arm) or None for _, _, of in kept)] for arm in arms])


def _most(arm: MeasuredAlgorithm, name: str) -> str:
    """Write the largest of all iterations; what is missing in one may be larger."""
    least = "≥" if name in arm.unread else ""
    return f"{least}{digits(arm.most[name], 3)}" if name in arm.most else ""


def _blocks(text: str, n: int, every: int) -> str:
    """Put beside a figure of how many blocks it is, where these are not all."""
    return f"{text} n={n}" if text and n < every else text
