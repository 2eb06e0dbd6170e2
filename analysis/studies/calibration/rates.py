"""How often each decision rule cries wolf, and how often it sees a real change: ours beside the peers', on the same simulated sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.stats

from analysis.peers import rules
from analysis.stats import many
from analysis.stats.simulate import Machine, simulate
from control.t_test import ALPHA

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analysis.peers import Alarms
    from analysis.stats.sessions import Sessions

    from .real_noise import RealNoise

MARGIN = 0.03  # within which two arms are equivalent, and the largest loss that the gate allows
FAMILIES = (20, 50)
# Our summaries: the mean step time (throughput) and the 10th percentile.
SUMMARIES = {"ours, throughput": None, "ours, p10 step": 0.10}
SCREEN = "ours, throughput, BH"
GATE = "ours, gate at 3 %"
RANKS = "ours, second opinion"  # not adjusted, and so not asked of families


@dataclass(frozen=True, slots=True)
class Scenario:
    """A machine and a truth: the candidate takes `1 + slower` times as long as the baseline."""

    name: str
    machine: Machine
    slower: float = 0.0


@dataclass(frozen=True, slots=True)
class Rates:
    """A table of shares (0 to 1): a row for each rule or truth, a column for each question; None where a rule cannot be asked."""

    title: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[float | None, ...]]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Everything that is measured of the rules: on simulated sessions, and on the A/A cells of saved runs."""

    seed: int
    trials: int
    single: Rates
    families: Rates
    words: Rates
    baselines: Rates
    stopping: Rates
    real: tuple[RealNoise, ...] = ()


@dataclass(frozen=True, slots=True)
class Answers:
    """What each rule says of families of contrasts, shape (families, contrasts): our effects, the peers' calls.

    Peers that need more runs than there are have None.
    """

    effects: Mapping[str, many.Effects]
    calls: Mapping[str, Alarms | None]


DRIFT, CARRY_OVER, TAILS = 0.05, 0.5, 3
QUIET = Machine()
ROUGH = Machine(stalled=0.01, struck=0.05)
SCENARIOS = (
    Scenario("A/A", QUIET),
    Scenario("A/A, drift, A then B", Machine(drift=DRIFT, interleaved=False)),
    Scenario("A/A, drift", Machine(drift=DRIFT)),
    Scenario("A/A, AR(1)", Machine(carry_over=CARRY_OVER)),
    Scenario("A/A, stalls", ROUGH),
    Scenario("A/A, heavy tails", Machine(tails=TAILS)),
    Scenario("+3 %", QUIET, 0.03),
    Scenario("+3 %, drift", Machine(drift=DRIFT), 0.03),
    Scenario("+5 %", QUIET, 0.05),
    Scenario("+10 %", QUIET, 0.10),
    Scenario("+10 %, stalls", ROUGH, 0.10),
)
# The truths at which all our words are counted: a power curve that also shows what is said where nothing is called.
WORDED = (Scenario("A/A", QUIET), *(Scenario(f"+{percent} %", QUIET, percent / 100) for percent in (1, 2, 3, 5, 10)))


def band(trials: int, rate: float = ALPHA) -> tuple[float, float]:
    """Rates that so many trials of a given chance show, 99 times in 100 (exact binomial)."""
    low, high = scipy.stats.binom.interval(0.99, trials, rate)
    return float(low) / trials, float(high) / trials


def single_rates(seed: int, trials: int, scenarios: Sequence[Scenario] = SCENARIOS) -> Rates:
    """How often each rule calls a difference in one contrast, by scenario."""
    columns = [any_called(ask([_sessions(scenario, seed, trials)]), 1) for scenario in scenarios]
    rows = {rule: tuple(column[rule] for column in columns) for rule in columns[0]}
    return Rates("One contrast", tuple(scenario.name for scenario in scenarios), rows)


def family_rates(seed: int, trials: int, sizes: Sequence[int] = FAMILIES) -> Rates:
    """How often each rule calls any difference among so many independent A/A contrasts."""
    answers = ask(_sessions(SCENARIOS[0], seed + 1 + contrast, trials) for contrast in range(max(sizes)))
    columns = [any_called(answers, size) for size in sizes]
    rows = {rule: tuple(column[rule] for column in columns) for rule in columns[0]}
    return Rates("A/A, any false alarm", tuple(f"of {size}" for size in sizes), rows)


def word_rates(seed: int, trials: int, scenarios: Sequence[Scenario] = WORDED) -> Rates:
    """How often one contrast in throughput gets each of our verdicts and rulings, by how much longer the candidate really takes."""
    rows = {}
    for scenario in scenarios:
        effects = many.side_by_side([many.effects(_sessions(scenario, seed, trials), MARGIN)])  # families of one
        given = ((many.words(effects), many.WORDS), (many.rulings(effects, MARGIN), many.RULINGS))
        rows[scenario.name] = tuple(float((said == at).mean()) for said, words in given for at in range(len(words)))
    return Rates("Our words", (*many.WORDS, *many.RULINGS), rows)


def _sessions(scenario: Scenario, seed: int, trials: int) -> Sessions:
    # A scenario's numbers do not depend on which others are asked for.
    rng = np.random.default_rng([seed, *scenario.name.encode()])
    return simulate(scenario.machine, scenario.slower, trials, rng)


def ask(contrasts: Iterable[Sessions]) -> Answers:
    """Put contrasts to every rule; the sessions of each at the same place are one family."""
    effects: dict[str, list[many.Effects]] = {name: [] for name in SUMMARIES}
    ranks: list[Alarms] = []
    calls: dict[str, list[Alarms] | None] = {RANKS: ranks}
    for sessions in contrasts:
        if sessions.interleaved:
            ranks.append(many.signed_rank_p(many.log_gains(sessions)) < ALPHA)
        else:
            calls[RANKS] = None  # `compare --robust` gives none there
        for name, quantile in SUMMARIES.items():
            effects[name].append(many.effects(sessions, MARGIN, quantile))
        for rule in rules():
            column = calls.setdefault(rule.name, [] if sessions.blocks >= rule.runs else None)
            if column is not None:
                column.append(rule.alarms(sessions))
    return Answers(
        {name: many.side_by_side(columns) for name, columns in effects.items()},
        {name: None if columns is None else np.stack(columns, axis=-1) for name, columns in calls.items()},
    )


def any_called(answers: Answers, size: int) -> dict[str, float | None]:
    """Share of families in which any of the first `size` contrasts is called; ours are adjusted for as many."""
    effects = {name: many.first(one, size) for name, one in answers.effects.items()}
    called: dict[str, Alarms | None] = {name: many.holm(one.p) < ALPHA for name, one in effects.items()}
    throughput = effects["ours, throughput"]
    if size > 1:
        called[SCREEN] = many.benjamini_hochberg(throughput.p) < ALPHA
    called[GATE] = many.rulings(throughput, MARGIN) == many.RULINGS.index("regression")
    called |= {name: None if calls is None else calls[:, :size] for name, calls in answers.calls.items() if name != RANKS or size == 1}
    return {name: None if calls is None else float(calls.any(axis=-1).mean()) for name, calls in called.items()}
