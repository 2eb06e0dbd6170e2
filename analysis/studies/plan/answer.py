"""A plan as an answer: the total, the needs of each workload, and the command."""

from __future__ import annotations

import math
from collections.abc import Iterator

from analysis.again import command_for
from analysis.answer import Answer, Column, Line, Section, Table, bullets, grouped
from analysis.arms import TOGETHER
from analysis.labels import label_of
from analysis.terms import Run
from analysis.wording import duration, plan_command, unsigned
from control.names import undigested

from .plan import DAY_S, Need, SamplePlan

LEGEND = (
    (
        "noise",
        (
            "scatter between blocks of the ratio to the baseline (standard deviation of its "
            "logarithm)."
        ),
    ),
    ("A/A", "the same for arms that changed nothing: the machine's own noise."),
    (
        "seen with",
        (
            "the smallest gain or loss found with this number of blocks and power (MDE), from the "
            "noise of all the workload's arms."
        ),
    ),
    ("compare", "its MDE uses each contrast's own noise, so the two figures differ."),
    ("[95 %]", "uncertainty of the pilot's noise, which is large with few blocks."),
)


def answer(plan: SamplePlan, pilot: Run) -> Answer:
    goal = plan.goal
    feasible = plan.on_this_machine and plan.blocks is not None
    in_file = pilot.design.kind == "file"  # its rows are the design; its path is not recorded
    findings = [Line(_together(plan), tone="strong")]
    if feasible and in_file:
        findings.append(
            Line(
                f"The pilot's cells are in a design file: add rows until it has {plan.blocks} "
                "blocks."
            )
        )
    return Answer(
        title=f"To find a change of speed of {unsigned(goal.gain)} with {unsigned(goal.power)} "
        f"power, given the noise of run {pilot.run_id}",
        findings=findings,
        sections=[*_needs(plan), *_unplanned(plan)],
        legend=LEGEND,
        next=() if feasible and in_file else _next(plan, pilot),
        data={
            "run_id": pilot.run_id,
            "origin": pilot.origin,
            "gain": goal.gain,
            "power": goal.power,
            **{
                name: getattr(plan, name)
                for name in (
                    "blocks",
                    "block_s",
                    "total_s",
                    "days",
                    "on_this_machine",
                    "seen_in_a_day",
                )
            },
            "workloads": plan.needs,
            "unplanned": list(plan.unplanned),
        },
    )


def _next(plan: SamplePlan, pilot: Run) -> tuple[str, ...]:
    if plan.on_this_machine and plan.blocks is not None:
        planned = {need.workload for need in plan.needs}
        return command_for(pilot, f"--blocks={plan.blocks}", workloads=planned)
    if plan.seen_in_a_day is None:
        return ()
    return plan_command(math.ceil(1000 * plan.seen_in_a_day) / 1000, pilot.origin)


def _unplanned(plan: SamplePlan) -> list[Section]:
    reasons: list[tuple[str, str]] = [
        (workload, reason)
        for workload, _, reason in (line.partition(": ") for line in plan.unplanned)
    ]
    return [Section("", bullets(grouped(reasons), "not planned:"))] if reasons else []


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
        columns = (
            Column("workload", left=True),
            Column("metric", left=True),
            Column("noise", "log_sd", unsigned),
            Column("A/A", "aa_log_sd", unsigned, spare=1),
            Column(f"seen with\n{span} blocks", "mde", unsigned),
            Column(f"blocks for\n{unsigned(plan.goal.gain)}", "blocks", _count),
            Column("[95 %]", "blocks_95"),
            Column("a block\ntakes", "block_s", duration, spare=2),
            Column("all", "total_s", _time),
        )
        yield Section(
            f"{study}: {_family(needs[0])}", [Table(columns, [_row(need) for need in needs])]
        )


def _row(need: Need) -> list[object]:
    total_s = (
        None if need.block_s is None else need.block_s * need.blocks if need.blocks else math.inf
    )
    between = f"{_count(need.blocks_low or math.inf)}-{_count(need.blocks_high or math.inf)}"
    blocks = need.blocks or math.inf
    return [
        undigested(need.workload),
        label_of(need.metric),
        need.log_sd,
        need.aa_log_sd,
        need.mde,
        blocks,
        between,
        need.block_s,
        total_s,
    ]


def _time(seconds: float) -> str:
    return duration(seconds) if seconds <= DAY_S else "over a day"


def _count(blocks: float) -> str:
    return "over 100000" if math.isinf(blocks) else str(blocks)


def _together(plan: SamplePlan) -> str:
    most = max(plan.needs, key=lambda need: float("inf") if need.blocks is None else need.blocks)
    if plan.blocks is None or not plan.on_this_machine:
        day = (
            ""
            if plan.seen_in_a_day is None
            else f" A day of blocks would show {unsigned(plan.seen_in_a_day)}."
        )
        return (
            f"Not on this machine: given the noise of {undigested(most.workload)}, finding "
            f"{unsigned(plan.goal.gain)} takes more than a day.{day}"
        )
    why_so_many = f", as many as {undigested(most.workload)} needs" if len(plan.needs) > 1 else ""
    time = (
        "of unknown length: the pilot has no durations"
        if plan.block_s is None
        else f"of {duration(plan.block_s)}: {duration(plan.block_s * plan.blocks)}"
    )
    apart_s = [need.block_s * need.blocks for need in plan.needs if need.block_s and need.blocks]
    runs = (
        " A separate run per workload, with its own number of blocks, takes "
        f"{duration(math.fsum(apart_s))}."
        if len(apart_s) > 1
        else ""
    )
    return f"{plan.blocks} blocks {time}{why_so_many}.{runs}"
