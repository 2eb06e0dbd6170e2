"""A plan as an answer: the total, the needs of each workload, and the command."""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import attrgetter

from analysis.again import command_for
from analysis.answer import Answer, Column, Columns, Line, Section, bullets, grouped, table_of
from analysis.arms import TOGETHER
from analysis.labels import label_of
from analysis.terms import Run
from analysis.wording import duration, plan_command, unsigned
from control.names import undigested

from .plan import DAY_S, Need, SamplePlan

LEGEND = (
    ("noise", "standard deviation, between blocks, of the logarithm of the ratio to the baseline."),
    ("A/A", "the same for arms that changed nothing: the machine's own noise."),
    (
        "seen with",
        "smallest gain or loss found with these blocks and power (MDE), from all arms' noise.",
    ),
    ("[95 %]", "uncertainty of the pilot's noise, which is large with few blocks."),
)


def answer(plan: SamplePlan, pilot: Run) -> Answer:
    goal = plan.goal
    findings = [Line(_together(plan), tone="strong")]
    again = _next(plan, pilot)
    if plan.on_this_machine and pilot.design.kind == "file":
        # Its rows are the design; its path is not recorded.
        again = ()
        more = f"add rows until it has {plan.blocks} blocks."
        findings.append(Line(f"The pilot's cells are in a design file: {more}"))
    figures = ("blocks", "block_s", "total_s", "days", "on_this_machine", "seen_in_a_day")
    return Answer(
        title=f"To find a change of speed of {unsigned(goal.gain)} with {unsigned(goal.power)} "
        f"power, given the noise of run {pilot.run_id}",
        findings=findings,
        sections=[*_needs(plan), *_unplanned(plan)],
        legend=LEGEND,
        next=again,
        data={
            "run_id": pilot.run_id,
            "origin": pilot.origin,
            "gain": goal.gain,
            "power": goal.power,
            **{name: getattr(plan, name) for name in figures},
            "workloads": plan.needs,
            "unplanned": [f"{workload}: {reason}" for workload, reason in plan.unplanned],
        },
    )


def _next(plan: SamplePlan, pilot: Run) -> tuple[str, ...]:
    if plan.on_this_machine:
        planned = {need.workload for need in plan.needs}
        return command_for(pilot, f"--blocks={plan.blocks}", workloads=planned)
    if plan.seen_in_a_day is None:
        return ()
    return plan_command(math.ceil(1000 * plan.seen_in_a_day) / 1000, pilot.origin)


def _unplanned(plan: SamplePlan) -> list[Section]:
    lines = bullets(grouped(plan.unplanned), "not planned:")
    return [Section("", lines)] if lines else []


def _family(need: Need) -> str:
    against = f" against {need.baseline}" if TOGETHER in need.baseline else ""
    if need.family == 1:
        return f"one contrast{against}, called at p < 0.05"
    family = f"{need.family} contrasts{against} in its family"
    return f"{family}, so that Holm holds the clearest of them to p < {need.alpha:.2g}"


def _needs(plan: SamplePlan) -> Iterator[Section]:
    for study in dict.fromkeys(need.study for need in plan.needs):
        needs = [need for need in plan.needs if need.study == study]
        counts = sorted({need.mde_blocks for need in needs})
        span = "-".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
        columns: Columns = (
            (Column("workload", left=True), lambda need: undigested(need.workload)),
            (Column("metric", left=True), lambda need: label_of(need.metric)),
            (Column("noise", "log_sd", unsigned), attrgetter("log_sd")),
            (Column("A/A", "aa_log_sd", unsigned, spare=1), attrgetter("aa_log_sd")),
            (Column(f"seen with\n{span} blocks", "mde", unsigned), attrgetter("mde")),
            (
                Column(f"blocks for\n{unsigned(plan.goal.gain)}", "blocks", _count),
                lambda need: need.blocks or math.inf,
            ),
            (
                Column("[95 %]", "blocks_95"),
                lambda need: f"{_count(need.blocks_low)}-{_count(need.blocks_high)}",
            ),
            (Column("a block\ntakes", "block_s", duration, spare=2), attrgetter("block_s")),
            (Column("all", "total_s", _time), attrgetter("total_s")),
        )
        yield Section(f"{study}: {_family(needs[0])}", [table_of(columns, needs)])


def _time(seconds: float) -> str:
    return duration(seconds) if seconds <= DAY_S else "over a day"


def _count(blocks: float | None) -> str:
    return str(blocks) if blocks and blocks < math.inf else "over 100000"


def _together(plan: SamplePlan) -> str:
    most = undigested(max(plan.needs, key=lambda need: need.blocks or math.inf).workload)
    if plan.blocks is None or not plan.on_this_machine:
        seen = plan.seen_in_a_day
        day = "" if seen is None else f" A day of blocks would show {unsigned(seen)}."
        gain = unsigned(plan.goal.gain)
        return (
            f"Not on this machine: given the noise of {most}, finding {gain} takes more than a "
            f"day.{day}"
        )
    why_so_many = f", as many as {most} needs" if len(plan.needs) > 1 else ""
    time = (
        "of unknown length: the pilot has no durations"
        if plan.block_s is None
        else f"of {duration(plan.block_s)}: {duration(plan.block_s * plan.blocks)}"
    )
    apart_s = [need.total_s for need in plan.needs if need.total_s]
    runs = (
        " A separate run per workload, with its own number of blocks, takes "
        f"{duration(math.fsum(apart_s))}."
        if len(apart_s) > 1
        else ""
    )
    return f"{plan.blocks} blocks {time}{why_so_many}.{runs}"
