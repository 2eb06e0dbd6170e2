"""What faults cost, as text of at most 100 columns and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import one_line, printable_json
from analysis.printing import columns, hanging, in_lines, on_page
from analysis.studies.jobs.queues.words import NONE, figure, number
from analysis.wording import probability, unsigned

from .study import RULE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from .accuracy import Poisoning
    from .blocks import Ratio
    from .policies import Spared
    from .study import Arm

LEGEND = (
    "useful: what is left of the time of all attempts without lost work, checkpoints, and jobs that never got done. lost s: a stream.",
    "slowdown: mean response of the jobs that both got done, over that without the fault. goodput: work done a second, likewise.",
    "intervals of 95 % over blocks, each a pair; p after Holm over all faults. restart: from the fault to the next attempt.",
    "recovered: from the fault until it is over, its jobs are done, and as many jobs are done as by then without it.",
)
STYLES = {"isolated": "green", "not isolated": "bold red", "open": "yellow"}


def as_json(arms: Sequence[Arm], policies: Sequence[Spared], poisonings: Sequence[Poisoning], margin: float, refused: Sequence[str]) -> str:
    """Write all of it for programs; the fields are those of the terms."""
    found = {"arms": [*map(asdict, arms)], "policies": [*map(asdict, policies)], "poisonings": [*map(asdict, poisonings)]}
    return printable_json({**found, "margin": margin, "rule": RULE, "refused": list(refused)})


def render(arms: Sequence[Arm], policies: Sequence[Spared], poisonings: Sequence[Poisoning], margin: float, *, color: bool = False) -> str:
    """Write it for people."""
    return on_page(_parts(arms, policies, poisonings, margin), color=color)


def _parts(arms: Sequence[Arm], policies: Sequence[Spared], poisonings: Sequence[Poisoning], margin: float) -> Iterator[RenderableType]:
    faulty = {arm.condition for arm in arms if arm.fault}
    for condition in dict.fromkeys(arm.condition for arm in arms):
        if condition in faulty:
            yield Text(in_lines(one_line(condition)), "bold")
            yield from _condition([arm for arm in arms if arm.condition == condition], margin)
            yield ""
    if policies:
        yield Text("policies under the same fault: response of the stream's own jobs, over that under fifo", "bold")
        rows = [[one_line(f"{one.policy}, {one.label}"), f"{one.blocks}", ratio(one.response), _p(one.p)] for one in policies]
        yield columns(("", "blocks", "response [95 %]", "p"), rows)
        yield hanging(("•", f"{one_line(f'{one.policy}, {one.label}')}: {one.why}") for one in policies if one.why)
        yield ""
    if not faulty and not poisonings:
        yield Text("No stream of these had a fault: nothing to judge. `fault=kill` and others are parameters of job_stream.")
    if poisonings:
        yield from _poisonings(poisonings)
    if faulty:
        yield hanging((("•", line) for line in LEGEND), "dim", "dim")


def _condition(arms: Sequence[Arm], margin: float) -> Iterator[RenderableType]:
    heads = ("", "blocks", "done", "useful", "lost s", "slowdown [95 %]", "p", "goodput")
    yield columns(heads, map(_arm, arms))
    faulty = [arm for arm in arms if arm.strikes]
    if faulty:
        yield ""
        times = ("restart s", "lost s a hit", "recovered s [95 %]", "of")
        yield columns(("", "faults", "hit", *times, "available"), map(_recovery, faulty))
    for arm in arms:
        if arm.isolation:
            word = Text(f"• {one_line(arm.label)}: ")
            word.append(arm.isolation, STYLES.get(arm.isolation, ""))
            if arm.slowdown and arm.slowdown.low90 is not None:
                word.append(f" (margin {unsigned(margin)}; 90 % {number(arm.slowdown.low90)} to {number(arm.slowdown.high90)})")
            yield word
    yield hanging(("•", line) for line in _notes(arms))
    if any(arm.isolation for arm in arms):
        yield hanging([("•", RULE)], "dim", "dim")


def _arm(arm: Arm) -> list[str]:
    jobs = sum(arm.outcomes.values())
    goodput = NONE if arm.goodput is None else number(arm.goodput.value)
    useful = NONE if arm.useful is None else f"{100 * arm.useful.value:.1f} %"
    lost_s = NONE if arm.lost_s is None else number(arm.lost_s.value)
    return [
        one_line(arm.label),
        f"{arm.blocks}",
        f"{arm.outcomes.get('done', 0)}/{jobs}",
        useful,
        lost_s,
        ratio(arm.slowdown),
        _p(arm.p),
        goodput,
    ]


def _p(p: float | None) -> str:
    return NONE if p is None else probability(p)


def _recovery(arm: Arm) -> list[str]:
    available = NONE if arm.available is None else f"{100 * arm.available.value:.2f} %"
    of = f"{arm.recovered}/{arm.strikes}"
    restart_s, lost_s = (NONE if one is None else number(one.value) for one in (arm.restart_s, arm.lost_s_per_hit))
    return [one_line(arm.label), f"{arm.strikes}", f"{arm.hit}", restart_s, lost_s, figure(arm.recovery_s), of, available]


def _notes(arms: Sequence[Arm]) -> Iterator[str]:
    """Every note once, with the arms it is of."""
    found: dict[str, list[str]] = {}
    for arm in arms:
        for note in _of(arm):
            found.setdefault(one_line(note), []).append(one_line(arm.label))
    for note, labels in found.items():
        yield f"{', '.join(labels)}: {note}"


def _of(arm: Arm) -> Iterator[str]:
    yield from (f"faults without a recovery time: {why}." for why in sorted(arm.whys))
    if arm.given_up:
        yield f"{arm.given_up} of {arm.hit} jobs that it hit never ran again."
    if arm.lost_jobs:
        others = "slowdowns are of the others" if arm.slowdown is not None else "nothing is left to compare"
        sooner = ", which are sooner only because these left them the slots" if arm.thinned else ""
        yield f"{arm.lost_jobs} jobs were done without the fault, and not with it; {others}{sooner}."
    if arm.fault and arm.slowdown is not None and arm.slowdown.why:
        yield f"{arm.slowdown.why}."
    yield from arm.notes


def _poisonings(found: Sequence[Poisoning]) -> Iterator[RenderableType]:
    yield Text("accuracy of federated runs", "bold")
    rows = [
        [
            one_line(one.setting or one.condition),
            f"{one.poisoned:g}",
            f"{one.jobs}",
            figure(one.accuracy, 100),
            figure(one.drop, 100) if one.poisoned else NONE,
        ]
        for one in found
    ]
    yield columns(("", "poisoned", "jobs", "accuracy % [95 %]", "lost, points [95 %]"), rows)
    if any(one.poisoned and one.drop is None for one in found):
        yield hanging([("•", "no loss of accuracy where no block has the same without poisoned clients.")])
    for clean in dict.fromkeys(one.clean for one in found if one.clean not in {"", one.setting}):
        yield hanging([("•", f"what has no clean run of its own is held against {one_line(clean)}.")])
    yield ""


def ratio(one: Ratio | None) -> str:
    """Write a ratio with its interval."""
    if one is None:
        return NONE
    value = number(one.value)
    return value if one.low is None else f"{value} [{number(one.low)}, {number(one.high)}]"
