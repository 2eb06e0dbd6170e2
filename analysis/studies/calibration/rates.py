"""How often each decision rule cries wolf, and how often it sees a real change: ours beside the peers', on the same simulated sessions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.stats
from scipy.special import stdtr, stdtrit

from analysis.stats import many
from analysis.stats.adjust import benjamini_hochberg, holm
from analysis.stats.simulate import Floats, Machine, Sessions, log_levels, simulate
from analysis.verdict import GUARD
from analysis.wording import unsigned
from control.stopping import BEYOND_DOUBT_P, FEWEST_BLOCKS, widening
from control.t_test import ALPHA, detectable_errors

from .peers import RULES

if TYPE_CHECKING:
    from .peers import Alarms
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
    columns = [any_called(ask([_sessions(scenario, seed, trials)]), 1) for scenario in scenarios]
    rows = {rule: tuple(column[rule] for column in columns) for rule in columns[0]}
    return Rates("One contrast", tuple(scenario.name for scenario in scenarios), rows)


def family_rates(seed: int, trials: int, sizes: Sequence[int] = FAMILIES) -> Rates:
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
        for rule in RULES:
            column = calls.setdefault(rule.name, [] if sessions.blocks >= rule.runs else None)
            if column is not None:
                column.append(rule.alarms(sessions))
    return Answers(
        {name: many.side_by_side(columns) for name, columns in effects.items()},
        {name: None if columns is None else np.stack(columns, axis=-1) for name, columns in calls.items()},
    )


def any_called(answers: Answers, size: int) -> dict[str, float | None]:
    effects = {name: many.first(effect, size) for name, effect in answers.effects.items()}
    called: dict[str, Alarms | None] = {name: holm(effect.p) < ALPHA for name, effect in effects.items()}
    throughput = effects["ours, throughput"]
    if size > 1:
        called[SCREEN] = benjamini_hochberg(throughput.p) < ALPHA
    called[GATE] = many.rulings(throughput, MARGIN) == many.RULINGS.index("regression")
    called |= {name: None if calls is None else calls[:, :size] for name, calls in answers.calls.items() if name != RANKS or size == 1}
    return {name: None if calls is None else float(calls.any(axis=-1).mean()) for name, calls in called.items()}


TWEAKSETS, FEW_BLOCKS = 12, 8
PROCESS_CV = 0.04
SLOW = Machine(run_cv=0.04, drift=0.05, carry_over=0.8)  # neighbouring cells share it
EFFECTS = (0.04, 0.08)
OFF = 0.08  # how much longer one of two arms takes that should be equal: where the guard at .01 does worst
# Which arms are the baseline, and the level of the guard between them.
WAYS: dict[str, tuple[bool, float]] = {
    "stock alone": (False, 0.0),
    "both, no guard": (True, 0.0),
    f"both, guard at {GUARD}": (True, GUARD),
    f"both, guard at {ALPHA}": (True, ALPHA),
}


def baseline_rates(seed: int, trials: int) -> Rates:
    """How often each way claims a difference of any of twelve equal tweak sets, and finds one that is there.

    "off": of stock and stock-again one takes longer than everything else, each in half of the sessions.
    """
    rng = np.random.default_rng([seed, *b"baseline"])
    shape = trials, FEW_BLOCKS, 2 + TWEAKSETS
    equal = log_levels(SLOW, shape, rng) + PROCESS_CV * rng.standard_normal(shape)
    arm, odd = np.arange(shape[-1]), np.arange(trials)[:, np.newaxis, np.newaxis] % 2
    wrong = equal + math.log1p(OFF) * (arm == odd)
    slower = [equal + math.log1p(effect) * (arm == shape[-1] - 1) for effect in EFFECTS]
    rows = {}
    for way, (together, level) in WAYS.items():
        alarm, off_alarm = (claims(times, level, together=together).any(axis=-1) for times in (equal, wrong))
        own = contrasts(slower[0], together=together).p[:, -1] < ALPHA
        result = [claims(times, level, together=together)[:, -1] for times in slower]
        shares = (alarm, own, *result, guard_p(equal) < level, off_alarm)
        rows[way] = tuple(float(share.mean()) for share in shares)
    heads = [f"+{unsigned(effect)}" for effect in EFFECTS]
    some = f"any of {TWEAKSETS}"
    columns = (f"A/A, {some}", f"{heads[0]}, own p", *heads, "A/A, withheld", f"off, {some}")
    return Rates("Baseline", columns, rows)


def contrasts(times: Floats, *, together: bool) -> many.Effects:
    """Each tweak set against stock, or against both untouched arms.

    `times` are log times of shape (sessions, blocks, arms), the untouched arms first. The family is that of
    `compare`: with stock alone the copy of stock is in it, before the tweak sets.
    """
    base = times[..., :2].mean(axis=-1) if together else times[..., 0]
    gains = base[..., np.newaxis] - times[..., 2 if together else 1 :]
    return many.paired_effects(gains.swapaxes(1, 2), MARGIN)


def guard_p(times: Floats) -> Floats:
    return many.paired_effects(times[..., 0] - times[..., 1], MARGIN).p


def claims(times: Floats, level: float, *, together: bool) -> Alarms:
    called = holm(contrasts(times, together=together).p) < ALPHA
    return np.asarray(called[:, -(times.shape[-1] - 2) :] & (guard_p(times) >= level)[:, np.newaxis])


PRECISION = 0.04
MOST_BLOCKS = 24
PROCESS_CVS = (0.01,) * 4 + (0.04,) * 4 + (0.10,) * 4  # of twelve tweak sets: some are decided at once, some never


def stopping_rates(seed: int, trials: int) -> Rates:
    """How often equal tweak sets are called different, and how often real effects are found and lie inside their intervals."""
    rng = np.random.default_rng([seed, *b"stopping"])
    processes = np.array((PROCESS_CVS[4], PROCESS_CVS[4], *PROCESS_CVS))
    shape = trials, MOST_BLOCKS, processes.size
    times = log_levels(SLOW, shape, rng) + processes * rng.standard_normal(shape)
    gains = (times[..., :2].mean(axis=-1)[..., np.newaxis] - times[..., 2:]).swapaxes(1, 2)
    rows: dict[str, tuple[float | None, ...]] = {}
    for way, (stops, widened) in STOPS.items():
        each = [judged(gains, slower, stops=stops, widened=widened) for slower in (0.0, *EFFECTS)]
        alarm, own, _, _, blocks = each[0]
        rows[way] = (alarm, own, *(called for _, _, called, _, _ in each[1:]), *(inside for *_, inside, _ in each), blocks)
    heads = [f"+{unsigned(effect)}" for effect in EFFECTS]
    inside = [f"{head}, inside" for head in ("A/A", *heads)]
    return Rates("Stopping", (f"A/A, any of {len(PROCESS_CVS)}", "A/A, own p", *heads, *inside, "of the, blocks"), rows)


# Whether blocks are added only while they are needed, and whether that is allowed for.
STOPS = {
    f"{MOST_BLOCKS} blocks": (False, False),
    "--precision, at 95 %": (True, False),
    "--precision": (True, True),
}


def judged(equal: Floats, slower: float, *, stops: bool, widened: bool) -> tuple[float, ...]:
    truth = -math.log1p(slower)
    gains = equal + truth
    family, most = gains.shape[1], gains.shape[2]
    blocks = np.full(gains.shape[:2], most)
    open_still = np.ones(gains.shape[:2], dtype=bool)
    for count in range(FEWEST_BLOCKS, most) if stops else ():
        _, error, t = _t(gains[..., :count])
        mde = np.expm1(detectable_errors(count - 1, ALPHA / family) * error * widening(count - 1))
        now = open_still & ((mde <= PRECISION) | (2 * stdtr(count - 1, -np.abs(t)) < BEYOND_DOUBT_P))
        blocks[now], open_still[now] = count, False
    p, inside = np.empty(gains.shape[:2]), np.empty(gains.shape[:2], dtype=bool)
    for count in np.unique(blocks):
        at = blocks == count
        mean, error, t = _t(gains[..., :count][at])
        wider = widening(int(count) - 1) if widened else 1.0
        p[at] = 2 * stdtr(count - 1, -np.abs(t) / wider)
        inside[at] = np.abs(mean - truth) < stdtrit(count - 1, 1 - ALPHA / 2) * error * wider
    called = holm(p) < ALPHA
    return (
        float(called.any(axis=1).mean()),
        float((p < ALPHA).mean()),
        float(called.mean()),
        float(inside.mean()),
        float(blocks.mean() / most),
    )


def _t(gains: Floats) -> tuple[Floats, Floats, Floats]:
    mean, error = gains.mean(axis=-1), gains.std(axis=-1, ddof=1) / math.sqrt(gains.shape[-1])
    return mean, error, mean / error


def calibrate(seed: int, trials: int, real: tuple[RealNoise, ...] = ()) -> Calibration:
    return Calibration(
        seed,
        trials,
        single_rates(seed, trials),
        family_rates(seed, trials),
        word_rates(seed, trials),
        baseline_rates(seed, trials),
        stopping_rates(seed, trials),
        real,
    )
