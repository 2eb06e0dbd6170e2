"""Measure how often `tune` is right, by simulation.

`python -m docs.tune_errors` prints the table of docs/tune.md, in some minutes.

Fifteen settings, an hour: two help by 4 and 2 %, one harms by 5 %, one pair gains 4 % only
together. The last column has the machine time of the choice in % of that of an ablation (each
setting alone, all of them, stock twice, equal blocks) that chooses just these two as often; the
pair it cannot find at all.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import fmean, stdev

from control.tuning import Gain, RaceRules, choose
from tests.made_tunes import CELL_S, GAINS, NOISY, PAIR, QUIET, SETTINGS, Command, Tuned, tune

DRAWS = 300
HELPFUL, HARMFUL = frozenset({"setting-00", "setting-01"}), "setting-02"
MOST_BLOCKS = 2_000
HEADS = (
    "",
    "harmful %",
    "right %",
    "pair %",
    "error, points",
    "covered %",
    "stock kept %",
    "time %",
)


def tuned(cell_sd: float, gains: dict[str, float], pair_gain: float) -> list[Tuned]:
    """Return `DRAWS` tunes of a command."""
    return [
        tune(Command(random.Random(draw), cell_sd, gains, pair_gain), draw) for draw in range(DRAWS)
    ]


def is_right(chosen: frozenset[str]) -> bool:
    """Return whether a choice is the two that help, with or without the pair."""
    return chosen - PAIR == HELPFUL


def ablation_s(cell_sd: float, share: float) -> float:
    """Search for the machine time with which an ablation is right in `share` of draws."""
    arms = len(SETTINGS) + 3
    low, high = 2, 4
    while high < MOST_BLOCKS and _ablation_right(cell_sd, high) < share:
        low, high = high, 2 * high
    while high - low > max(1, low // 20):
        middle = (low + high) // 2
        low, high = (middle, high) if _ablation_right(cell_sd, middle) < share else (low, middle)
    return high * arms * CELL_S


def _ablation_right(cell_sd: float, blocks: int) -> float:
    """Return the share of draws with a right ablation; each setting is paired with both stocks."""
    return fmean(is_right(_ablated(random.Random(draw), cell_sd, blocks)) for draw in range(DRAWS))


def _ablated(rng: random.Random, cell_sd: float, blocks: int) -> frozenset[str]:
    stock = [fmean((rng.gauss(0, cell_sd), rng.gauss(0, cell_sd))) for _ in range(blocks)]
    known = {}
    for name in SETTINGS:
        true = math.log1p(GAINS.get(name, 0.0))
        pairs = [level + true - rng.gauss(0, cell_sd) for level in stock]
        known[name] = Gain(fmean(pairs), stdev(pairs) / math.sqrt(blocks), blocks - 1)
    return frozenset(choose(known, RaceRules(looks=1)))


def row(name: str, cell_sd: float) -> list[str]:
    """Return a row of the table."""
    tunes = tuned(cell_sd, GAINS, 0.04)
    confirmed = [(one.confirmed, one.true) for one in tunes if one.confirmed]
    error = fmean(interval.value - true for interval, true in confirmed)
    idle = tuned(cell_sd, {}, 0.0)
    kept = [one for one in idle if one.confirmed and one.confirmed.low > 0]
    right = fmean(is_right(one.chosen) for one in tunes)
    ratio = fmean(one.race_s for one in tunes) / ablation_s(cell_sd, right)
    return [
        name,
        _percent(HARMFUL in one.chosen for one in tunes),
        _percent(is_right(one.chosen) for one in tunes),
        _percent(one.chosen >= PAIR for one in tunes),
        f"{round(100 * error, 2) + 0.0:+.2f}",  # the sum turns -0.0 into 0.0
        _percent(interval.low <= true <= interval.high for interval, true in confirmed),
        _percent(one not in kept for one in idle),
        f"{100 * ratio:.0f}",
    ]


def _percent(shares: Sequence[bool] | object) -> str:
    return f"{100 * fmean(shares):.1f}"  # type: ignore[arg-type] # any iterable of booleans


def main() -> None:
    """Print the table."""
    print(f"| {' | '.join(HEADS)} |")
    print("|---|---|---|---|---|---|---|---|")
    for name, cell_sd in (("quiet", QUIET), ("noisy", NOISY)):
        print(f"| {' | '.join(row(name, cell_sd))} |", flush=True)


if __name__ == "__main__":
    main()
