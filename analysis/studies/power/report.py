"""Answer of a capped run: the best algorithms that hold the cap, then each task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from analysis.answer import (
    TONES,
    Answer,
    Column,
    Line,
    Section,
    Table,
    Tone,
    Word,
    grouped,
    table_of,
)
from analysis.labels import about, headline, provenance
from analysis.wording import (
    bracket,
    counted,
    digits,
    number,
    percent,
    probability,
    spoken,
    unsigned,
)

from .figures import (
    ABOVE,
    ACTIVITY,
    EXCESS,
    LONGEST,
    NO_SENSOR,
    OVER_SLO,
    P95,
    PER_IMAGE,
    POWER,
    RULE,
    SIMULATED,
    THROUGHPUT,
    WATT,
    WHOLE_102,
    WORST,
)
from .study import LIMIT, Group, PowerArm, PowerSide

if TYPE_CHECKING:
    from analysis.answer import Columns
    from analysis.stats.estimate import Estimate, Mean
    from analysis.terms import Run

UNITS = {WATT: "W", ACTIVITY: "CPU s/s"}
EXCESSES = {WATT: "W·s", ACTIVITY: "CPU s"}
HELD: dict[str, Tone] = {"yes": "good", "no": "bad", "not shown": "open", "no sensor": "quiet"}
HOLDING = {
    "yes": "Holds the cap",
    "no": "Does not hold the cap",
    "not shown": "Cannot tell whether it holds the cap",
}
BUT = {"no": ", but without holding the cap", "not shown": ", but not shown to hold the cap"}


def unit_of(side: PowerSide) -> str:
    return UNITS.get(side.unit, side.unit)


def drawn_from(side: PowerSide) -> str:
    return "power" if side.unit == WATT else "activity"


def source(side: PowerSide) -> str:
    if side.power_source == SIMULATED:
        made = f"back-end {side.backend} is a simulated plant, made from a model or tables"
        return f"SIMULATED: {made}. No figure here was measured on a GPU."
    if side.unit == ACTIVITY:
        reads = f"back-end {side.backend} limits and reads CPU seconds per second"
        return f"ACTIVITY, not power: {reads}. No watts were read, and none are claimed."
    if side.power_source == NO_SENSOR:
        return (
            f"NO SENSOR: back-end {side.backend} reads no power here, so there is no conclusion "
            "on the cap."
        )
    return f"Measured: back-end {side.backend}, power read by {side.power_source}."


def answer(run: Run, result: Sequence[PowerSide], *, brief: bool = False) -> Answer:
    sections, titles = [], []
    for side in result:
        several = len(result) > 1
        head = f", back-end {side.backend}" if several else ""
        titles.append(f"{_title(side)} ({side.backend})" if several else _title(side))
        if side.together:
            title = f"All {len(side.groups)} tasks together, with equal weights{head}"
            sections.append(Section(title, [_together(side)]))
        sections += [_group(group, side, head, brief=brief) for group in side.groups]
    said = [line for side in result for line in of_side(side)]
    interrupted = ["the run was interrupted: later blocks are missing."] * run.interrupted
    legend = dict.fromkeys(line for side in result for line in _legend(side))
    return Answer(
        title=" ".join(titles),
        findings=[*said, *(Line(text, tone="quiet") for text in headline([run]).splitlines())],
        sections=sections,
        warnings=[*interrupted, *run.warnings],
        legend=[*provenance([run]), *legend],
        data={**about(run), "backends": [_document(side) for side in result]},
    )


def _document(side: PowerSide) -> dict[str, object]:
    fields = ("backend", "unit", "power_source", "baseline", "margin", "family")
    against = side.against.astype(object).where(side.against.notna(), None).to_dict("records")
    return {
        **{name: getattr(side, name) for name in fields},
        "groups": list(map(asdict, side.groups)),
        "together": list(map(asdict, side.together)),
        "against": against,
        "answer": [line.text for line in of_side(side)],
    }


def _title(side: PowerSide) -> str:
    others = [arm for arm in arms_of(side) if arm.name != side.baseline and arm.rate.p is not None]
    more = [arm for arm in _most_first(others) if arm.holds == "yes"]
    if more:
        names = ", ".join(f"{arm.name} {unsigned(arm.rate.value or 0.0)}" for arm in more)
        return f"More images/s than {side.baseline}, and the cap is held: {names}."
    if not others:
        return f"No algorithm could be compared with {side.baseline}."
    return f"No algorithm is shown to get more images/s than {side.baseline} and to hold the cap."


def of_side(side: PowerSide) -> list[Line]:
    open_source: Tone = "" if source(side).startswith("Measured") else "open"
    return [
        Line(source(side), "•", open_source),
        *_failed(side),
        *_control(side),
        *_holding(side),
        *(Line(text, "•") for text in _most_throughput(side)),
    ]


def _failed(side: PowerSide) -> list[Line]:
    every, lost = Counter[str](), Counter[str]()
    for arm in (arm for group in side.groups for arm in group.arms):
        every[arm.name] += arm.blocks
        lost[arm.name] += arm.blocks - arm.n
    counts = [f"{name} {count} of {every[name]}" for name, count in lost.items() if count]
    every_task = ", over all tasks" if len(side.groups) > 1 else ""
    text = f"Blocks without figures{every_task}: {', '.join(counts)}."
    return [Line(text, "•", "open")] if counts else []


def _control(side: PowerSide) -> list[Line]:
    known = {group.label: group.again for group in side.groups if group.again.low is not None}
    ends = {label: (again.low or 0.0, again.high or 0.0) for label, again in known.items()}
    if not ends:
        none = "no arm was measured beside a copy that differs from it in two blocks or more"
        return [Line(f"No A/A: {none}.", "•")]
    chance = " One in 20 does by chance." if len(ends) > 1 else ""
    lines = [
        Line(
            f"A/A DIFFERS in {label}: arms against their copies {shown(known[label], 'images/s')}: "
            f"do not trust smaller differences there.{chance}",
            "•",
            "open",
        )
        for label, (low, high) in ends.items()
        if low * high > 0
    ]
    half = unsigned(max((high - low) / 2 for low, high in ends.values()))
    tasks = counted(len(ends), "task")
    holds = f"A/A holds in {tasks}: no arm is shown to differ from its copy (95 % ±{half})."
    return lines or [Line(holds, "•")]


def shown(rate: Estimate, what: str = "") -> str:
    """Write a difference in a sentence: `+3.2 % [2.0, 4.4] images/s (Holm p 0.002, 20 blocks)`."""
    p = "" if rate.p_adjusted is None else f"Holm p {probability(rate.p_adjusted)}, "
    return f"{percent(rate.value or 0.0)}{bracket(rate.low, rate.high)} {what} ({p}{rate.n} blocks)"


def arms_of(side: PowerSide) -> Sequence[PowerArm]:
    return side.together or [arm for group in side.groups for arm in group.arms if arm.n]


def _above(arm: PowerArm) -> str:
    known = 0 if arm.above is None else arm.above.n
    text = "no figure" if arm.above is None else f"{share(arm.above)} %"
    if arm.lacking:
        text += f", of {known} blocks; {arm.lacking} of {known + arm.lacking} lack readings"
    if arm.held[0] < arm.held[1]:
        text += "; held in {} of {} tasks".format(*arm.held)
    return text


def _holding(side: PowerSide) -> list[Line]:
    lines = []
    for word, text in HOLDING.items():
        names = [f"{arm.name} ({_above(arm)})" for arm in arms_of(side) if arm.holds == word]
        if names:
            whole = f"{text}, by steady time above 1.02 times it: {', '.join(names)}."
            lines.append(Line(whole, "•", "open" if word == "no" else ""))
    return lines


def _most_first(arms: Sequence[PowerArm]) -> list[PowerArm]:
    more = [arm for arm in arms if arm.rate.shown and (arm.rate.value or 0) > 0]
    return sorted(more, key=lambda arm: -(arm.rate.value or 0))


def _most_throughput(side: PowerSide) -> Iterator[str]:
    others = [arm for arm in arms_of(side) if arm.name != side.baseline]
    for arm in _most_first(others):
        yield (
            f"{arm.name}: "
            f"{shown(arm.rate, f'images/s against {side.baseline}')}{BUT.get(arm.holds, '')}."
        )
    less = [arm.name for arm in others if arm.rate.shown and (arm.rate.value or 0) < 0]
    alike = [arm.name for arm in others if not arm.rate.shown and arm.rate.p is not None]
    if less:
        yield f"Less than {side.baseline}: {', '.join(less)}."
    if alike:
        yield f"No difference from {side.baseline} in images/s is shown: {', '.join(alike)}."
    unknown = [
        (arm.name, arm.rate.missing or "no block has both") for arm in others if arm.rate.p is None
    ]
    yield from (f"Not compared with {side.baseline}: {text}." for text in grouped(unknown))


def share(mean: Mean | None) -> str:
    def tenths(end: float) -> str:
        return f"{100 * end:.1f}"

    return "" if mean is None else f"{tenths(mean.value)}{bracket(mean.low, mean.high, tenths)}"


def _table(side: PowerSide, first: Columns, last: Columns, arms: Sequence[PowerArm]) -> Table:
    columns: Columns = [
        (Column("algorithm", "algorithm", left=True), attrgetter("name")),
        *first,
        (Column("difference", "verdict", left=True), lambda arm: _word(arm, side.baseline)),
        (
            Column("95 % interval", "throughput", _interval, spare=2),
            lambda arm: arm.rate if arm.rate.p is not None else None,
        ),
        (Column("p\nHolm", "p_adjusted", probability), attrgetter("rate.p_adjusted")),
        (Column(">1.02 cap\n% [95 %]", "above", left=True), lambda arm: share(arm.above)),
        (
            Column("held", "held", left=True),
            lambda arm: Word(arm.holds, HELD[arm.holds]) if arm.n else None,
        ),
        *last,
    ]
    return table_of(columns, arms)


def _interval(rate: Estimate) -> str:
    return bracket(rate.low, rate.high, number).lstrip()


def _together(side: PowerSide) -> Table:
    tasks: Columns = [(Column("tasks", "tasks"), attrgetter("tasks"))]
    held: Columns = [(Column("in tasks", "held_in"), lambda arm: "{} of {}".format(*arm.held))]
    return _table(side, tasks, held, side.together)


def _group(group: Group, side: PowerSide, head: str, *, brief: bool) -> Section:
    def blocks(arm: PowerArm) -> str:
        return str(arm.n) if arm.n == arm.blocks else f"{arm.n}/{arm.blocks}"

    images: Columns = [(Column("images/s", "images_per_s", digits), _figure(THROUGHPUT))]
    n: Columns = [(Column("n", "n", spare=1), blocks)]
    parts: list[Line | Table] = [_table(side, images, n, group.arms)]
    if not brief:
        rest = table_of(_rest(side), [arm for arm in group.arms if arm.n])
        parts += [rest] if len(rest.columns) > 1 else []
        parts += [Line(text, mark) for mark, text in of_group(group)]
    slo = "" if group.slo_ms is None else f", SLO {group.slo_ms:g} ms"
    steady, every = group.steady
    numbers = ", ".join(f"{cap:g}" for cap in group.caps)
    caps = f"{numbers} {unit_of(side)}" if numbers else "unknown"
    title = f"{group.title}   cap {caps}{slo}; {steady} of {every} iterations steady{head}"
    return Section(title, parts)


def _word(arm: PowerArm, baseline: str) -> Word:
    value, word = arm.rate.value, spoken(arm.verdict)
    if arm.name == baseline:
        return Word("baseline")
    if value is None or arm.verdict == "not comparable":
        return Word("not comparable", "quiet")
    if arm.verdict in {"improved", "regressed"}:
        return Word(f"{unsigned(abs(value))} {word}", TONES[arm.verdict])
    return Word(f"{word} ({number(value)} %)", "" if arm.verdict == "equivalent" else "open")


def _figure(figure: str, times: int = 1) -> Callable[[PowerArm], float | None]:
    def read(arm: PowerArm) -> float | None:
        return times * arm.means[figure].value if figure in arm.means else None

    return read


def _rest(side: PowerSide) -> Columns:
    unit, three = unit_of(side), partial(digits, most=3)
    excess = f"above\n{EXCESSES.get(side.unit, f'{unit}·s')}/min"

    def percent_of(head: str, name: str, figure: str) -> tuple[Column, Any]:
        return Column(head, name, "{:.1f}".format), _figure(figure, 100)

    return [
        (Column("algorithm", "algorithm", left=True), attrgetter("name")),
        (Column(f"{drawn_from(side)}\n{unit}", "limited", digits), _figure(POWER)),
        (Column("energy\nJ/image", "energy_j_per_image", three), _figure(PER_IMAGE)),
        (Column("p95\nms", "p95_ms", three), _figure(P95)),
        percent_of(">SLO\n%", "over_slo_percent", OVER_SLO),
        percent_of(">cap\n%", "above_cap_percent", ABOVE),
        (Column(excess, "excess_per_min", three), _figure(EXCESS)),
        (Column("longest\ns", "longest_s", three), lambda arm: arm.most.get(LONGEST)),
        (Column(f"worst\n{unit}", "worst", three), lambda arm: arm.most.get(WORST)),
        percent_of("whole\n>1.02 %", "whole_above_percent", WHOLE_102),
    ]


def of_group(group: Group) -> list[tuple[str, str]]:
    lines: dict[tuple[str, str], list[str]] = {}
    for arm in group.arms:
        lost = [
            ("left out:", f"{count} of {arm.blocks} blocks {reason}")
            for reason, count in arm.lost.items()
        ]
        for line in (*arm.remarks, *lost):
            lines.setdefault(line, []).append(arm.name)
    ordered = sorted(lines.items(), key=lambda entry: PLACES.get(entry[0][0], 1))
    return [(head, f"{', '.join(names)}: {text}") for (head, text), names in ordered]


PLACES: Mapping[str, int] = {"predicted:": 0, "no verdict:": 2, "note:": 3}


def _legend(side: PowerSide) -> list[tuple[str, str]]:
    return [
        ("n", "blocks; an arm and its copy count once. [ ] 95 %, by Student's t over blocks."),
        ("steady", f"{RULE.partition(': ')[2]}. All figures but “whole” cover only these."),
        (
            "difference",
            (
                f"in images/s from {side.baseline}, on log ratios of blocks. p: Holm's, of "
                f"{side.family}. same: the 90 % interval lies within ±{unsigned(side.margin)}."
            ),
        ),
        (
            "held",
            (
                f"at most {unsigned(LIMIT)} of steady time above 1.02 times the cap, by the upper "
                "end of the 95 % interval; not where a block lacks readings."
            ),
        ),
        (
            "tasks",
            (
                "for the difference, those that all algorithms have; >1.02 cap and held cover all "
                "of an arm's tasks."
            ),
        ),
        ("worst", "the highest reading minus the cap."),
        ("p95", "of an iteration's slowest process, median over iterations."),
        (">SLO", "share of images in batches over the SLO."),
        (
            "predicted",
            (
                "÷ measured - 1: the median of steady iterations that ran as requested; off by: "
                "the median of its absolute value."
            ),
        ),
    ]
