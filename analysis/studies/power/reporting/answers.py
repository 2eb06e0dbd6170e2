"""What a capped run answers: who gets most out of the cap and holds it, all tasks together, then each task with its algorithms."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from analysis.answer import Answer, Column, Line, Section, Table, Word
from analysis.labels import headline
from analysis.wording import digits, number, probability, unsigned

from .figures import ABOVE, ABOVE_102, EXCESS, LONGEST, OVER_SLO, P95, PER_IMAGE, POWER, THROUGHPUT, WHOLE_102, WORST
from .said import leaders, legend, of_group, of_side
from .words import caps, drawn_from, excess_of, share, unit_of, value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from analysis.answer import Tone
    from analysis.terms import Run

    from .terms import Against, Arm, Group, Side

HELD: dict[str, Tone] = {"yes": "good", "no": "bad", "not shown": "open", "no sensor": "quiet"}
LOUD = ("SIMULATED", "ACTIVITY", "NO SENSOR", "A/A DIFFERS", "Does not hold")
PERCENT = "+ % [95 %]"


def answer(run: Run, found: Sequence[Side], *, brief: bool = False) -> Answer:
    """Say what algorithms made of a cap; `brief` leaves out energy, latency and what stands beside a task's figures."""
    several = len(found) > 1
    sections = []
    for side in found:
        head = f", back-end {side.backend}" if several else ""
        if side.together:
            sections.append(Section(f"All {len(side.groups)} tasks together, each as heavy as any other{head}", [_together(side)]))
        sections += [_group(group, side, head, brief=brief) for group in side.groups]
    return Answer(
        title=" ".join(_title(side) + (f" ({side.backend})" if several else "") for side in found),
        findings=[
            *(Line(line, "•", "open" if line.startswith(LOUD) else "") for side in found for line in of_side(side)),
            *(Line(text, tone="quiet") for text in headline([run]).splitlines()),
        ],
        sections=sections,
        warnings=[*(["the run was interrupted: later blocks are missing."] * run.interrupted), *run.warnings],
        legend=list(dict.fromkeys(line for side in found for line in legend(side))),
        data=document(run, found),
    )


def document(run: Run, found: Sequence[Side]) -> dict[str, object]:
    """Give the same for programs: the fields are those of `terms`; shares and differences are fractions."""
    about = {"run_id": run.run_id, "origin": run.origin, "started_utc": run.started_utc, "commit": run.commit, "seed": run.design.seed}
    told = {"interrupted": run.interrupted, "warnings": list(run.warnings)}
    return {**about, **told, "backends": [{**asdict(one), "answer": of_side(one)} for one in found]}


def _title(side: Side) -> str:
    more, others = leaders(side)
    if more:
        names = ", ".join(f"{name} {unsigned(rate.value or 0.0)}" for name, rate in more)
        return f"More images/s than {side.baseline}, and the cap is held: {names}."
    if not others:
        return "One algorithm alone has figures: nothing is compared."
    return f"No algorithm is shown to get more images/s than {side.baseline} and to hold the cap."


def _together(side: Side) -> Table:
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
    for one in side.together:
        rate = None if one.name == side.baseline else one.throughput
        above = share(one.above) if one.above is None else _blocks(share(one.above), one.above.n, one.above.n + one.lacking)
        held = [Word(one.holds, HELD[one.holds]), f"{one.held[0]} of {one.held[1]}"]
        rows.append([one.name, one.tasks, _difference(rate, "baseline"), rate, rate and rate.p_adjusted, above, *held])
    return Table(columns, rows)


def _group(group: Group, side: Side, head: str, *, brief: bool) -> Section:
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
    for one in group.arms:
        rate = None if one.name == side.baseline else one.against.get(THROUGHPUT)
        above = _blocks(share(one.means.get(ABOVE_102)), one.n - one.unread.get(ABOVE_102, 0), one.n)
        held = Word(one.holds, HELD[one.holds]) if one.n else None
        said = Word("baseline") if one.name == side.baseline else _verdict(one, rate)
        p = rate and rate.p_adjusted
        n = str(one.n) if one.n == one.blocks else f"{one.n}/{one.blocks}"
        rows.append([one.name, value(one.means.get(THROUGHPUT)), said, rate, p, above, held, n])
    parts: list[Line | Table] = [Table(columns, rows)]
    if not brief:
        rest = _rest([one for one in group.arms if one.n], side)
        parts += [] if rest is None else [rest]
        parts += [Line(text, mark) for mark, text in of_group(group)]
    return Section(f"{group.title}   cap {caps(group.caps, side)}{slo}; {steady} of {every} iterations steady{head}", parts)


def _verdict(arm: Arm, rate: Against | None) -> Word:
    """A word beside the number: `3.2 % faster`, `same (+0.1 %)`, `can't tell (+1.5 %)`."""
    if rate is None or rate.value is None or arm.verdict == "not comparable":
        return Word("not comparable", "quiet")
    if arm.verdict in {"improved", "regressed"}:
        faster = arm.verdict == "improved"
        return Word(f"{unsigned(abs(rate.value))} {'faster' if faster else 'slower'}", "good" if faster else "bad")
    word = "same" if arm.verdict == "equivalent" else "can't tell"
    return Word(f"{word} ({number(rate.value)} %)", "" if arm.verdict == "equivalent" else "open")


def _difference(rate: Against | None, none: str) -> str:
    return none if rate is None else "" if rate.value is None else f"{number(rate.value)} %"


def _interval(rate: Against) -> str:
    return "" if rate.low is None or rate.high is None else f"[{number(rate.low)}, {number(rate.high)}]"


def _rest(arms: Sequence[Arm], side: Side) -> Table | None:
    """The other figures; a column that no arm has is left out."""
    unit, limited = unit_of(side), drawn_from(side)
    columns: list[tuple[str, str, Callable[[Arm], str]]] = [
        ("front", "front", lambda one: "yes" if one.front and len(arms) > 1 else ""),
        (f"{limited}\n{unit}", "limited", lambda one: value(one.means.get(POWER))),
        ("energy\nJ/image", "energy_j_per_image", lambda one: value(one.means.get(PER_IMAGE), 3)),
        ("p95\nms", "p95_ms", lambda one: value(one.means.get(P95), 3)),
        (">SLO\n%", "over_slo_percent", lambda one: share(one.means.get(OVER_SLO)).partition(" ")[0]),
        (">cap\n%", "above_cap_percent", lambda one: share(one.means.get(ABOVE)).partition(" ")[0]),
        (f"above\n{excess_of(side)}/min", "excess_per_min", lambda one: value(one.means.get(EXCESS), 3)),
        ("longest\ns", "longest_s", lambda one: _most(one, LONGEST)),
        (f"worst\n{unit}", "worst", lambda one: _most(one, WORST)),
        ("whole\n>1.02 %", "whole_above_percent", lambda one: share(one.means.get(WHOLE_102)).partition(" ")[0]),
    ]
    kept = [(head, name, of) for head, name, of in columns if any(of(one) for one in arms)]
    if not kept:
        return None
    heads = [Column("algorithm", "algorithm", left=True), *(Column(head, name) for head, name, _ in kept)]
    return Table(heads, [[one.name, *(of(one) or None for _, _, of in kept)] for one in arms])


def _most(one: Arm, name: str) -> str:
    """Write the largest of all iterations; what is missing in one may be larger."""
    least = "≥" if name in one.unread else ""
    return f"{least}{digits(one.most[name], 3)}" if name in one.most else ""


def _blocks(text: str, n: int, every: int) -> str:
    """Put beside a figure of how many blocks it is, where these are not all."""
    return f"{text} n={n}" if text and n < every else text
