"""A plan as an answer: what all workloads take together, what each needs, how long a cell should be, when to look; then the command."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from analysis.again import command_line
from analysis.answer import Answer, Column, Line, Section, Table, bullets, grouped
from analysis.arms import TOGETHER
from analysis.labels import label_of
from analysis.terms import AGAIN, Run
from analysis.wording import duration, plan_command, studies_own, study_files, unsigned
from control.names import undigested

from .plan import DAY_S, CellLength, Looks, Need, Plan

CATALOGUE = Path("data/tweaks")  # its tweak sets are called by name, in whatever copy of the repository
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


def answer(plan: Plan, looks: Looks | None, pilot: Run) -> Answer:
    goal = plan.goal
    feasible = plan.on_this_machine and plan.blocks is not None
    in_file = pilot.design.kind == "file"  # its rows are the design; where it lies is not kept
    findings = [Line(_together(plan), tone="strong")]
    if feasible and in_file:
        findings.append(Line(f"The pilot's cells stand in a design file: add rows to it, until it has {plan.blocks} blocks."))
    return Answer(
        title=f"To find {unsigned(goal.gain)} more or less speed with {unsigned(goal.power)} power, by the noise of run {pilot.run_id}",
        findings=findings,
        sections=[*_needs(plan), *_cell_lengths(plan), *(_looks(looks, plan) if looks else ()), *_unplanned(plan)],
        legend=LEGEND,
        next="" if feasible and in_file else _next(plan, pilot),
        data={
            "run_id": pilot.run_id,
            "origin": pilot.origin,
            "gain": goal.gain,
            "power": goal.power,
            **{name: getattr(plan, name) for name in ("blocks", "block_s", "total_s", "days", "on_this_machine", "seen_in_a_day")},
            "workloads": plan.needs,
            "unplanned": list(plan.unplanned),
            "looks": looks,
        },
    )


def _next(plan: Plan, pilot: Run) -> str:
    """The run; where it would take longer than a day, the plan of what a day can see, if anything."""
    if plan.on_this_machine and plan.blocks is not None:
        return command_of(pilot, plan.blocks)
    if plan.seen_in_a_day is None:
        return ""
    return plan_command(math.ceil(1000 * plan.seen_in_a_day) / 1000, pilot.origin)


def _unplanned(plan: Plan) -> list[Section]:
    reasons: list[tuple[str, str]] = [(workload, reason) for workload, _, reason in (line.partition(": ") for line in plan.unplanned)]
    return [Section("", bullets(grouped(reasons), "not planned:"))] if reasons else []


def _family(need: Need) -> str:
    against = f" against {need.baseline}" if TOGETHER in need.baseline else ""
    if need.family == 1:
        return f"one contrast{against}, called at p < 0.05"
    family = f"{need.family} contrasts{against} in its family"
    return f"{family}, so that Holm holds the clearest of them to p < {need.alpha:.2g}"


def _needs(plan: Plan) -> Iterator[Section]:
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
        yield Section(f"{study}: {_family(needs[0])}", [Table(columns, [_row(need) for need in needs])])


def _row(need: Need) -> list[object]:
    total_s = None if need.block_s is None else need.block_s * need.blocks if need.blocks else math.inf
    between = f"{_count(need.blocks_low or math.inf)}-{_count(need.blocks_high or math.inf)}"
    blocks = need.blocks or math.inf
    return [undigested(need.workload), label_of(need.metric), need.log_sd, need.aa_log_sd, need.mde, blocks, between, need.block_s, total_s]


def _time(seconds: float) -> str:
    return duration(seconds) if seconds <= DAY_S else "over a day"


def _count(blocks: float) -> str:
    return "over 100000" if math.isinf(blocks) else str(blocks)


def _together(plan: Plan) -> str:
    most = max(plan.needs, key=lambda need: float("inf") if need.blocks is None else need.blocks)
    if plan.blocks is None or not plan.on_this_machine:
        day = "" if plan.seen_in_a_day is None else f" A day of blocks sees {unsigned(plan.seen_in_a_day)}."
        return f"Not on this machine: the noise of {undigested(most.workload)} hides {unsigned(plan.goal.gain)} for more than a day.{day}"
    why_so_many = f", as many as {undigested(most.workload)} needs" if len(plan.needs) > 1 else ""
    time = (
        "of unknown length: the pilot keeps no durations"
        if plan.block_s is None
        else f"of {duration(plan.block_s)}: {duration(plan.block_s * plan.blocks)}"
    )
    apart_s = [need.block_s * need.blocks for need in plan.needs if need.block_s and need.blocks]
    runs = f" A run for each workload, with the blocks that it needs, takes {duration(math.fsum(apart_s))}." if len(apart_s) > 1 else ""
    return f"{plan.blocks} blocks {time}{why_so_many}.{runs}"


def _cell_lengths(plan: Plan) -> Iterator[Section]:
    lengths = [(undigested(need.workload), need.cell_length) for need in plan.needs if need.cell_length is not None]
    if lengths:
        columns = [Column(head, write=write, left=at == 0) for at, (head, write, _) in enumerate(CELL_LENGTH)]
        rows = [[workload, *(value(length) for _, _, value in CELL_LENGTH[1:])] for workload, length in lengths]
        title = "Longer cells or more blocks? The steps a cell that use time best, for mean step time:"
        yield Section(title, [Table(columns, rows)])


CELL_LENGTH: Sequence[tuple[str, Callable[..., str], Callable[[CellLength], object]]] = (
    ("workload", str, str),
    ("steps\nnow", str, lambda length: length.steps),
    ("best", str, lambda length: length.best_steps or "no limit"),
    ("a step\ntakes", lambda seconds: f"{seconds * 1000:.3g} ms", lambda length: length.step_s),
    ("the rest of\na cell", duration, lambda length: length.overhead_s),
    ("noise that no\nsteps reduce", unsigned, lambda length: length.between_share),
    ("time saved at\nequal precision", unsigned, lambda length: max(0.0, length.saved)),
)


def _looks(looks: Looks, plan: Plan) -> Iterator[Section]:
    heads = ["rule", *(f"look {at}" for at in range(1, looks.looks + 1)), f"on average\nif {unsigned(plan.goal.gain)} is true"]
    rows = [
        row
        for rule in looks.rules
        for row in (
            [rule.name, *(f"p < {_bound(p)}" for p in rule.p), f"{rule.expected_blocks:.0f} blocks"],
            ["  after blocks", *rule.blocks, None],
        )
    ]
    yield Section(
        f"Stopping early, {looks.looks} looks: call a difference where its own paired p is below the bound. "
        f"(Each look at 0.05 would call {unsigned(looks.naive)} of equals different.)",
        [Table([Column(head, left=at == 0) for at, head in enumerate(heads)], rows), Line(RULES)],
    )


def _bound(p: float) -> str:
    return f"{p:.2g}" if p >= 0.001 else f"{p:.1e}"


def command_of(pilot: Run, blocks: int) -> str:
    options = [*_options(pilot), f"--blocks={blocks}"]
    return command_line(pilot, options) or shlex.join(["pytest", *study_files(pilot), *options])


def _options(pilot: Run) -> Iterator[str]:
    design = pilot.design
    if design.kind not in {"matrix", "file"}:
        yield f"--design={design.kind}"
    resolutions = {notes.get("resolution") for notes in design.notes.values()}
    if design.kind == "fractional" and len(resolutions) == 1 and (resolution := resolutions.pop()) in {3, 4, 5}:
        yield f"--resolution={resolution}"
    sets = [name for name in pilot.tweaksets if name not in {pilot.baseline, AGAIN}]
    whole = list(dict.fromkeys(factor.tweakset for factor in design.factors)) or sets
    if whole and not studies_own(pilot):  # else a workload that none of them meets would be left out
        yield f"--tweaks={','.join(_named(pilot, name) for name in whole)}"
    if _crossed(pilot, sets):  # else the study says itself which tweak set meets which workload
        yield f"--workloads={','.join(pilot.workloads)}"
    if design.steps is not None:
        yield f"--steps={design.steps}"
    if "target" in pilot.place:
        yield f"--target={pilot.place['target']}"


def _named(pilot: Run, name: str) -> str:
    tweakset = pilot.tweaksets.get(name)
    path = tweakset.path if tweakset is not None else None
    return name if path is None or Path(path).parent == CATALOGUE else path


def _crossed(pilot: Run, sets: list[str]) -> bool:
    pairs = {(cell.workload, cell.tweakset) for cell in pilot.cells}
    return all((workload, name) in pairs for workload in pilot.workloads for name in sets)
