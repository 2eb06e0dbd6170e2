"""A plan as text: what each workload needs, what all of them take together, how long a cell should be, when to look."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.arms import TOGETHER
from analysis.labels import label_of
from analysis.printing import columns, duration, hanging, on_page
from analysis.wording import unsigned

from .command import command_of
from .plan import DAY_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from analysis.terms import Run

    from .looks import Looks
    from .plan import Need, Plan

LEGEND = (
    ("noise", "how far the ratio to the baseline scatters between blocks (standard deviation of its logarithm)."),
    ("A/A", "the same of arms that changed nothing: the machine's own noise."),
    ("seen with", "the smallest gain or loss that so many blocks find with this power (MDE)."),
    ("[95 %]", "as far as the pilot knows its own noise: with few blocks it knows it badly."),
)
RULES = (
    "O'Brien-Fleming is hard to cross early and costs hardly a block; Lan-DeMets is alike and holds where looks come at other times too; "
    "Pocock stops soonest where the effect is large, and is the dearest where there is none."
)


def render_plan(plan: Plan, looks: Looks | None, pilot: Run, *, color: bool = False) -> str:
    """Write a plan as text of at most 100 columns."""
    return on_page(_parts(plan, looks, pilot), color=color)


def _parts(plan: Plan, looks: Looks | None, pilot: Run) -> Iterator[RenderableType]:
    goal = plan.goal
    yield Text(
        f"To find {unsigned(goal.gain)} more or less speed with {unsigned(goal.power)} power, by the noise of run {pilot.run_id}", "bold"
    )
    for study in dict.fromkeys(need.study for need in plan.needs):
        needs = [need for need in plan.needs if need.study == study]
        yield Text("")
        yield Text(f"{study}: {_family(needs[0])}")
        yield _needs(needs, unsigned(goal.gain))
    yield Text("")
    yield Text(_together(plan), "bold")
    if plan.on_this_machine and plan.blocks is not None:
        yield from _command(pilot, plan.blocks)
    yield from _cell_lengths(plan)
    if looks is not None:
        yield from _looks(looks, plan)
    yield Text("")
    yield hanging([*(("not planned:", line) for line in plan.unplanned), *LEGEND])


def _family(need: Need) -> str:
    against = f" against {need.baseline}" if TOGETHER in need.baseline else ""
    if need.family == 1:
        return f"one contrast{against}, called at p < 0.05"
    family = f"{need.family} contrasts{against} in its family"
    return f"{family}, so that Holm holds the clearest of them to p < {need.alpha:.2g}"


def _needs(needs: list[Need], gain: str) -> RenderableType:
    heads = [
        "workload",
        "metric",
        "noise",
        "A/A",
        f"seen with\n{_blocks_seen(needs)}",
        f"blocks for\n{gain}",
        "\n[95 %]",
        "a block\ntakes",
        "\nall",
    ]
    return columns([head if "\n" in head else f"\n{head}" for head in heads], map(_row, needs), left=2)


def _blocks_seen(needs: list[Need]) -> str:
    counts = sorted({need.mde_blocks for need in needs})
    return f"{counts[0]} blocks" if len(counts) == 1 else f"{counts[0]}-{counts[-1]} blocks"


def _row(need: Need) -> list[str]:
    return [
        need.workload,
        label_of(need.metric),
        unsigned(need.log_sd),
        "none" if need.aa_log_sd is None else unsigned(need.aa_log_sd),
        unsigned(need.mde),
        _count(need.blocks),
        f"{_count(need.blocks_low)}-{_count(need.blocks_high)}",
        "unknown" if need.block_s is None else duration(need.block_s),
        "unknown" if need.block_s is None else _time(need.block_s * need.blocks if need.blocks else math.inf),
    ]


def _time(seconds: float) -> str:
    return duration(seconds) if seconds <= DAY_S else "over a day"


def _count(blocks: int | None) -> str:
    return "over 100000" if blocks is None else str(blocks)


def _together(plan: Plan) -> str:
    most = max(plan.needs, key=lambda need: float("inf") if need.blocks is None else need.blocks)
    if plan.blocks is None or not plan.on_this_machine:
        day = "" if plan.seen_in_a_day is None else f" A day of blocks sees {unsigned(plan.seen_in_a_day)}."
        return f"Not on this machine: the noise of {most.workload} hides {unsigned(plan.goal.gain)} for more than a day.{day}"
    whose = f", as many as {most.workload} needs" if len(plan.needs) > 1 else ""
    time = (
        "of unknown length: the pilot keeps no durations"
        if plan.block_s is None
        else f"of {duration(plan.block_s)}: {duration(plan.block_s * plan.blocks)}"
    )
    apart_s = [need.block_s * need.blocks for need in plan.needs if need.block_s and need.blocks]
    runs = f" A run for each workload, with the blocks that it needs, takes {duration(math.fsum(apart_s))}." if len(apart_s) > 1 else ""
    return f"{plan.blocks} blocks {time}{whose}.{runs}"


def _command(pilot: Run, blocks: int) -> Iterator[RenderableType]:
    if pilot.design.kind == "file":  # its rows are the design; where it lies is not kept
        yield Text(f"The pilot's cells stand in a design file: add rows to it, until it has {blocks} blocks.")
    else:
        yield Text(command_of(pilot, blocks), no_wrap=True, overflow="ignore")  # it is to be pasted


def _cell_lengths(plan: Plan) -> Iterator[RenderableType]:
    known = [(need.workload, need.cell_length) for need in plan.needs if need.cell_length is not None]
    if not known:
        return
    yield Text("")
    yield Text("Longer cells or more blocks? The steps a cell that use time best, for mean step time:")
    heads = [
        "workload",
        "steps\nnow",
        "\nbest",
        "a step\ntakes",
        "the rest of\na cell",
        "noise that no\nsteps reduce",
        "time saved at\nequal precision",
    ]
    yield columns(
        [head if "\n" in head else f"\n{head}" for head in heads],
        [
            [
                workload,
                str(one.steps),
                "no limit" if one.best_steps is None else str(one.best_steps),
                f"{one.step_s * 1000:.3g} ms",
                duration(one.overhead_s),
                unsigned(one.between_share),
                unsigned(max(0.0, one.saved)),
            ]
            for workload, one in known
        ],
    )


def _looks(looks: Looks, plan: Plan) -> Iterator[RenderableType]:
    yield Text("")
    yield Text(
        f"Stopping early, {looks.looks} looks: call a difference where its own paired p is below the bound. "
        f"(Each look at 0.05 would call {unsigned(looks.naive)} of equals different.)"
    )
    yield columns(
        ["rule", *(f"look {at}" for at in range(1, looks.looks + 1)), f"on average\nif {unsigned(plan.goal.gain)} is true"],
        [
            row
            for rule in looks.rules
            for row in (
                [rule.name, *(f"p < {_bound(p)}" for p in rule.p), f"{rule.expected_blocks:.0f} blocks"],
                ["  after blocks", *map(str, rule.blocks), ""],
            )
        ],
    )
    yield Text(RULES)


def _bound(p: float) -> str:
    return f"{p:.2g}" if p >= 0.001 else f"{p:.1e}"
