"""Calibration as an answer: how often each rule is wrong, and how often it sees a real change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from analysis.answer import Answer, Column, Line, Section, Table
from analysis.labels import machine_of
from analysis.stats.simulate import BLOCKS, STALL, STEPS, STRUCK
from analysis.terms import Effect
from analysis.wording import bracket, number, unsigned
from control.stopping import BEYOND_DOUBT_P, FEWEST_BLOCKS

from .peers import RULES
from .rates import (
    CARRY_OVER,
    DRIFT,
    FEW_BLOCKS,
    GATE,
    MARGIN,
    MOST_BLOCKS,
    OFF,
    PRECISION,
    PROCESS_CV,
    PROCESS_CVS,
    QUIET,
    RANKS,
    ROUGH,
    SCREEN,
    SLOW,
    TAILS,
    TWEAKSETS,
    Calibration,
    Rates,
    band,
)

if TYPE_CHECKING:
    from .real_noise import RealNoise, Steadiness

SPARED = ("+3 %, drift",)  # of the columns that do not fit on 100
OURS = {
    "ours, throughput": (
        "paired t on the log ratio of throughput, block by block, p < 0.05 after Holm; A then B: one series in time",
        "analysis/compare.py",
    ),
    "ours, p10 step": ("the same on the 10th percentile of step time", "analysis/compare.py"),
    SCREEN: ("throughput, p < 0.05 after Benjamini & Hochberg: for a screen", "analysis/stats/adjust.py"),
    GATE: (f"throughput, p < 0.05 after Holm and more than {unsigned(MARGIN)} lost", "analysis/studies/gate/gate.py"),
    RANKS: ("throughput, p < 0.05 by signed ranks, not adjusted (`compare --robust`)", "analysis/stats/ranks.py"),
}


def answer(calibration: Calibration, *, rules: bool = False) -> Answer:
    sections = [*_simulated(calibration), *(section for real in calibration.real for section in _real(real, calibration))]
    return Answer(
        "How often the decision rules are wrong",
        findings=list(_findings(calibration)),
        sections=[*sections, _rules()] if rules else sections,
        data=_data(calibration),
    )


def _findings(calibration: Calibration) -> Iterator[Line]:
    ours, peers = calibration.single.rows["ours, throughput"], [calibration.single.rows[rule.name] for rule in RULES]
    at = calibration.single.columns.index
    alarm, result = _share(ours[at("A/A")] or 0.0), _share(ours[at("+3 %")] or 0.0)
    most = max(share for row in peers if (share := row[at("A/A")]) is not None)
    yield Line(f"Our verdict calls {alarm} % of equal pairs different, the worst of the other rules {_share(most)} %.", tone="strong")
    size, families = calibration.families.columns[-1], calibration.families.rows["ours, throughput"][-1]
    yield Line(
        f"It calls any {size} equal pairs different in {_share(families or 0.0)} % of sessions, and finds a loss of 3 % in {result} %."
    )


def _data(calibration: Calibration) -> dict[str, object]:
    """All shares: fractions of sessions, None where a rule needs more runs; gains are fractions, above 0 is faster."""
    return {
        "seed": calibration.seed,
        "trials": calibration.trials,
        "band_99": band(calibration.trials),
        "margin": MARGIN,
        "tables": [
            _shares(rates)
            for rates in (calibration.single, calibration.families, calibration.words, calibration.baselines, calibration.stopping)
        ],
        "runs": [
            {
                "run_id": real.run.run_id,
                "origin": real.run.origin,
                **_shares(real.rates),
                "equal_arms": _shares(real.arms) if real.arms else None,
                "steadiness": [_steadiness(steadiness) for steadiness in real.steadiness],
            }
            for real in calibration.real
        ],
    }


def _steadiness(steadiness: Steadiness) -> dict[str, object]:
    parts = {"again": steadiness.again, "later_steps": steadiness.later_steps, "later_cells": steadiness.later_cells}
    said = {name: {key: getattr(effect, key) for key in ("gain", "low", "high", "p")} for name, effect in parts.items()}
    return {"workload": steadiness.workload, "blocks": steadiness.blocks, "run_cv": steadiness.run_cv, **said}


def _shares(rates: Rates) -> dict[str, object]:
    return {"title": rates.title, "shares": {row: dict(zip(rates.columns, shares, strict=True)) for row, shares in rates.rows.items()}}


def _simulated(calibration: Calibration) -> list[Section]:
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
        _section("One contrast: how often a rule calls a difference, %", single, "rule", calibration.single),
        _section("Many A/A contrasts: how often a rule calls any of them, %", families, "rule", calibration.families),
        _section("What we say of one contrast, %: the verdict (4 columns), and the gate (3)", words, "truth", calibration.words),
        _section("Stock alone or both untouched arms, %", baselines, "baseline", calibration.baselines),
        _section("A fixed number of blocks, or as many as are needed, %", stopping, "blocks", calibration.stopping),
    ]


def _real(real: RealNoise, calibration: Calibration) -> Iterator[Section]:
    run = real.run
    rates = (
        f"{machine_of(run)}. Every call is a false alarm. Swapped: {calibration.trials:,} draws a workload, seed {calibration.seed}, of "
        f"up to {BLOCKS} blocks, in each a coin for which cell is the candidate; then any of the workloads at once. A then B: each "
        f"stretch of up to {2 * BLOCKS} cells in a row, its first half against its second. An empty cell: the rule needs more runs, "
        "or is not for families."
    )
    arms = (
        f"The arms of this run that change nothing, in {calibration.trials:,} draws: two of them are the baseline, and so many blocks were "
        "measured, in an order drawn anew. Draws of one run resemble each other."
    )
    steady = (
        "Equal work against equal work: gain in % [95 %]. A later half that differs is drift: inside cells it is part of "
        "every cell alike, between cells it falls on all arms alike as long as they are interleaved."
    )
    yield _section(f"A/A cells of run {run.run_id}: how often a rule calls a difference, %", rates, "rule", real.rates)
    if real.arms:
        yield _section(f"Equal arms of run {run.run_id}: how often any of them is called different, %", arms, "rule", real.arms)
    columns = (
        Column("workload", left=True),
        Column("blocks"),
        Column("run CV", write=unsigned),
        *(Column(head, write=_effect) for head in ("again v\nstock", "later v\nearlier steps", "later v\nearlier cells")),
    )
    rows = [
        (steadiness.workload, steadiness.blocks, steadiness.run_cv, steadiness.again, steadiness.later_steps, steadiness.later_cells)
        for steadiness in real.steadiness
    ]
    yield Section(f"How steady run {run.run_id} was", [Table(columns, rows), Line(steady, tone="quiet")])


def _rules() -> Section:
    lines = [*((name, *line) for name, line in OURS.items()), *((rule.name, rule.says, rule.source) for rule in RULES)]
    return Section("The rules", [Table([Column(head, left=True) for head in ("rule", "calls a difference where", "read in")], lines)])


def _section(title: str, note: str, first: str, rates: Rates) -> Section:
    shares = (Column(re.sub(",? (?!%)", "\n", name), name, _share, spare=int(name in SPARED)) for name in rates.columns)
    rows = [(name, *shares) for name, shares in rates.rows.items()]
    return Section(title, [Table([Column(first, left=True), *shares], rows), Line(note, tone="quiet")])


def _share(share: float) -> str:
    if share in {0, 1}:
        return f"{100 * share:.0f}"
    # What happened at least once is not said to be 0, nor is what failed once said to be 100.
    return "<0.1" if share < 0.0005 else ">99.9" if share >= 0.9995 else f"{100 * share:.1f}"


def _effect(effect: Effect) -> str:
    return f"{number(effect.gain)}{bracket(effect.low, effect.high)}"
