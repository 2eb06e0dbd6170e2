"""Calibration as a reader sees it: the same tables for a terminal, for a page in Markdown, and for programs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from analysis.labels import MACHINE
from analysis.peers import rules
from analysis.printing import on_page
from analysis.stats.simulate import BLOCKS, STALL, STEPS, STRUCK
from analysis.wording import number, unsigned
from control.stopping import BEYOND_DOUBT_P, FEWEST_BLOCKS

from .baselines import BLOCKS as FEW_BLOCKS
from .baselines import OFF, PROCESS_CV, SLOW, TWEAKSETS
from .rates import CARRY_OVER, DRIFT, GATE, MARGIN, QUIET, RANKS, ROUGH, SCREEN, TAILS, band
from .stopping import MOST_BLOCKS, PRECISION, PROCESS_CVS

if TYPE_CHECKING:
    from rich.console import RenderableType

    from analysis.terms import Effect

    from .rates import Calibration, Rates
    from .real_noise import RealNoise, Steadiness

NARROW = 5  # columns: a share's, so that eleven of them fit
OURS = {
    "ours, throughput": (
        "paired t on the log ratio of throughput, block by block, p < 0.05 after Holm; A then B: one series in time",
        "analysis/compare.py",
    ),
    "ours, p10 step": ("the same on the 10th percentile of step time", "analysis/compare.py"),
    SCREEN: ("throughput, p < 0.05 after Benjamini & Hochberg: for a screen", "analysis/stats/adjust.py"),
    GATE: (f"throughput, p < 0.05 after Holm and more than {unsigned(MARGIN)} lost", "analysis/studies/gate/rule.py"),
    RANKS: ("throughput, p < 0.05 by signed ranks, not adjusted (`compare --robust`)", "analysis/robust.py"),
}


@dataclass(frozen=True, slots=True)
class Grid:
    """A table in words: every cell is text, the first column names the row."""

    title: str
    note: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def as_text(calibration: Calibration, *, color: bool = False) -> str:
    """Write all tables for a terminal, no line longer than 100 columns."""
    parts: list[RenderableType] = []
    for grid in _grids(calibration):
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="")
        table.add_column(Text(grid.heads[0]), vertical="bottom", no_wrap=True)
        for head in grid.heads[1:]:
            width = max(NARROW, *map(len, head.split()), *(len(row[grid.heads.index(head)]) for row in grid.rows))
            table.add_column(Text(head.replace(", ", "\n")), vertical="bottom", justify="right", width=width)
        for row in grid.rows:
            table.add_row(*map(Text, row))
        parts += [Text(grid.title, "bold" if color else ""), table, Text(grid.note, "dim" if color else ""), ""]
    return on_page(parts, color=color)


def as_markdown(calibration: Calibration) -> str:
    """Write all tables for a page, with what each rule is and where it was read."""
    said = [*OURS.items(), *((rule.name, (rule.says, f"`{rule.source}`" if "@" in rule.source else rule.source)) for rule in rules())]
    listed = Grid("The rules", "", ("rule", "calls a difference where", "read in"), tuple((name, *line) for name, line in said))
    parts = []
    for grid in (*_grids(calibration), listed):
        lines = [grid.heads, ("---", *("---:" if grid is not listed else "---" for _ in grid.heads[1:])), *grid.rows]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        parts += [f"### {grid.title}", table, *([grid.note] if grid.note else [])]
    return "\n\n".join(parts) + "\n"


def as_json(calibration: Calibration) -> str:
    """Write all shares for programs: fractions of sessions, null where a rule needs more runs; gains are fractions, above 0 is faster."""
    said = {
        "seed": calibration.seed,
        "trials": calibration.trials,
        "band_99": band(calibration.trials),
        "margin": MARGIN,
        "tables": [_shares(rates) for rates in _simulated(calibration)],
        "runs": [
            {
                "run_id": real.run.run_id,
                "origin": real.run.origin,
                **_shares(real.rates),
                "equal_arms": _shares(real.arms) if real.arms else None,
                "steadiness": [_steadiness(one) for one in real.steadiness],
            }
            for real in calibration.real
        ],
    }
    return json.dumps(said, indent=2, allow_nan=False) + "\n"


def _simulated(calibration: Calibration) -> tuple[Rates, ...]:
    return calibration.single, calibration.families, calibration.words, calibration.baselines, calibration.stopping


def _steadiness(one: Steadiness) -> dict[str, object]:
    parts = {"again": one.again, "later_steps": one.later_steps, "later_cells": one.later_cells}
    said = {name: {key: getattr(effect, key) for key in ("gain", "low", "high", "p")} for name, effect in parts.items()}
    return {"workload": one.workload, "blocks": one.blocks, "run_cv": one.run_cv, **said}


def _shares(rates: Rates) -> dict[str, object]:
    return {"title": rates.title, "shares": {row: dict(zip(rates.columns, shares, strict=True)) for row, shares in rates.rows.items()}}


def _grids(calibration: Calibration) -> list[Grid]:
    trials = f"{calibration.trials:,} simulated sessions a column, seed {calibration.seed}"
    low, high = (100 * end for end in band(calibration.trials))
    single = (
        f"{trials}: {BLOCKS} blocks of 2 runs, {STEPS} steps a run, run CV {unsigned(QUIET.run_cv)}, step CV {unsigned(QUIET.step_cv)}; "
        f"arms in random order inside each block, but for 'A then B'. Drift: the last run takes {unsigned(DRIFT)} longer than the first. "
        f"AR(1): neighbouring runs correlate by {CARRY_OVER}. Stalls: {unsigned(ROUGH.stalled)} of steps take {STALL:.0f} times as long, "
        f"{unsigned(ROUGH.struck)} of runs {STRUCK:.0f} times. Heavy tails: run effects of Student's t with {TAILS} d.f. +3 %: the "
        "candidate takes 3 % longer. In the A/A columns every call is a false alarm; a test of 5 % shows "
        f"{low:.1f} to {high:.1f} there, 99 times in 100."
    )
    families = f"{trials}, of independent contrasts as in the first column above."
    words = (
        f"{trials}, of one contrast in throughput whose candidate takes so much longer. The margin of equivalence is {unsigned(MARGIN)}: "
        "from +3 % on 'equivalent' is an error, of 5 % at most. The gate allows a loss of 3 % of throughput, which is +3.1 % in time."
    )
    baselines = (
        f"{trials}: {FEW_BLOCKS} blocks of stock, stock-again and {TWEAKSETS} tweak sets, in random order. "
        f"Log-normal times: {unsigned(PROCESS_CV)} of each process, {unsigned(SLOW.run_cv)} of the machine, "
        f"by which neighbouring cells correlate by {SLOW.carry_over}, and {unsigned(SLOW.drift)} of drift. "
        "By Holm's p, but for 'own p'. +4 %, +8 %: one tweak set takes so much longer, and that is called. "
        "Withheld: the guard fails, and nothing is said. Off: of stock and stock-again one takes "
        f"{unsigned(OFF)} longer, each in half of the sessions, while the tweak sets do nothing."
    )
    stopping = (
        f"{trials}: up to {MOST_BLOCKS} blocks as above, of {len(PROCESS_CVS)} tweak sets whose processes differ by "
        f"{unsigned(min(PROCESS_CVS))} to {unsigned(max(PROCESS_CVS))}. With --precision={unsigned(PRECISION)} a set needs no more blocks "
        f"from the {FEWEST_BLOCKS}th on if it would see that, or if its own p is below {BEYOND_DOUBT_P}. A/A, +4 %, +8 %: all sets take "
        "so much longer. Inside: the truth is inside the interval of 95 %."
    )
    return [
        _grid("One contrast: how often a rule calls a difference, %", single, "rule", calibration.single),
        _grid("Many A/A contrasts: how often a rule calls any of them, %", families, "rule", calibration.families),
        _grid("What we say of one contrast, %: the verdict (4 columns), and the gate (3)", words, "truth", calibration.words),
        _grid("Stock alone or both untouched arms, %", baselines, "baseline", calibration.baselines),
        _grid("A fixed number of blocks, or as many as are needed, %", stopping, "blocks", calibration.stopping),
        *(grid for real in calibration.real for grid in _real(real, calibration)),
    ]


def _real(real: RealNoise, calibration: Calibration) -> list[Grid]:
    run = real.run
    machine = ", ".join(form.format(run.machine[name]) for name, form in MACHINE.items() if run.machine.get(name)) or "machine unknown"
    rates = (
        f"{machine}. Every call is a false alarm. Swapped: {calibration.trials:,} draws a workload, seed {calibration.seed}, of up to "
        f"{BLOCKS} blocks, in each a coin for which cell is the candidate; then any of the workloads at once. A then B: each stretch of up "
        f"to {2 * BLOCKS} cells that follow each other in time, its first half against its second. A dash: the rule needs more runs, or is "
        "not for families."
    )
    arms = (
        f"The arms of this run that change nothing, in {calibration.trials:,} draws: two of them are the baseline, and so many blocks were "
        "measured, in an order drawn anew. Draws of one run resemble each other."
    )
    steady = (
        "Equal work against equal work: gain in % [95 %]. A later half that differs is drift: inside cells it is part of "
        "every cell alike, between cells it falls on all arms alike as long as they are interleaved."
    )
    rows = tuple(
        (one.workload, str(one.blocks), f"{100 * one.run_cv:.1f}", *map(_effect, (one.again, one.later_steps, one.later_cells)))
        for one in real.steadiness
    )
    heads = ("workload", "blocks", "run CV", "again v stock", "later v earlier steps", "later v earlier cells")
    return [
        _grid(f"A/A cells of run {run.run_id}: how often a rule calls a difference, %", rates, "rule", real.rates),
        *(
            [_grid(f"Equal arms of run {run.run_id}: how often any of them is called different, %", arms, "rule", real.arms)]
            if real.arms
            else []
        ),
        Grid(f"How steady run {run.run_id} was", steady, heads, rows),
    ]


def _grid(title: str, note: str, first: str, rates: Rates) -> Grid:
    return Grid(title, note, (first, *rates.columns), tuple((name, *map(_share, shares)) for name, shares in rates.rows.items()))


def _share(share: float | None) -> str:
    if share is None:
        return "-"
    if share in {0, 1}:
        return f"{100 * share:.0f}"
    # What happened at least once is not said to be 0, nor is what failed once said to be 100.
    return "<0.1" if share < 0.0005 else ">99.9" if share >= 0.9995 else f"{100 * share:.1f}"


def _effect(effect: Effect) -> str:
    return f"{number(effect.gain)} [{number(effect.low).lstrip('+')}, {number(effect.high).lstrip('+')}]"
