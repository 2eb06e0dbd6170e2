"""How often the adaptive designs are right, wrong and undecided on synthetic machines: the tables of docs/adaptive.md.

python -m tests.designs.rates bisect [simulations]
python -m tests.designs.rates search [seeds]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from math import log1p
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from control.adaptive.bisection import Bisection
from fixtures.designs import Options, bisect, search
from fixtures.terms import TweakSet
from tests.designs.landscapes import FACTORS, SIZES, Landscape
from tests.designs.machine import Machine, keys

if TYPE_CHECKING:
    from control.adaptive import Json

PROFILE = TweakSet("tuned")


def costs(first: float, second: float = 0.0, together: float = 0.0) -> Callable[[bool, bool], float]:
    """What guilty keys cost, as fractions of a step: each, and together."""
    return lambda a, b: log1p(first) * a + log1p(second) * b + log1p(together) * (a and b)


class Case(NamedTuple):
    """One row of the table: what is true, of how many keys, and how noisy the machine is."""

    said: str
    truth: Callable[[bool, bool], float]
    guilty: int = 1
    keys: int = 12
    noise: float = 0.02
    drift: float = 0.05
    walk: bool = False
    losing: float = 0.0
    trials: int | None = None


NAMED = Case("one key costs 10 %", costs(0.10))
NONE = Case("no key does anything", costs(0.0), guilty=0)
CASES = (
    NAMED,
    NAMED._replace(said="the same, drift a random walk", walk=True),
    NONE,
    NONE._replace(said="the same, drift a random walk", walk=True),
    Case("one key saves 10 %", costs(-0.10)),
    Case("one key costs 5 %", costs(0.05)),
    Case("one key costs 3 %", costs(0.03)),
    Case("two keys cost 10 % each", costs(0.10, 0.10), guilty=2),
    Case("one costs 10 %, one saves 10 %", costs(0.10, -0.10), guilty=2),
    Case("two cost 10 % only together", costs(0.0, 0.0, 0.10), guilty=2),
    NAMED._replace(said="10 %; one cell in ten fails", losing=0.1),
    NAMED._replace(said="10 %; noise 5 %", noise=0.05),
    NAMED._replace(said="10 %; noise 5 %, --trials=48", noise=0.05, trials=48),
    NONE._replace(said="none; noise 5 %", noise=0.05),
    NAMED._replace(said="10 %; drift 10 %, random walk", drift=0.10, walk=True),
    NONE._replace(said="none; drift 10 %, random walk", drift=0.10, walk=True),
    *(NAMED._replace(said=f"10 %; {count} keys", keys=count) for count in (2, 3, 6, 20, 40)),
    *(NONE._replace(said=f"none; {count} keys", keys=count) for count in (2, 40)),
)


class Ended(NamedTuple):
    """What came of one simulated bisection."""

    verdict: str
    right: bool
    runs: int
    engine: Bisection


def bisected(case: Case, seed: int) -> Ended:
    """One bisection; which keys are guilty is dealt out by the seed."""
    factors = keys(case.keys)
    one, other = np.random.default_rng([seed, 1]).choice([factor.name for factor in factors], 2, replace=False)
    engine = bisect.engine(PROFILE, factors, Options(seed=seed, trials=case.trials))
    assert isinstance(engine, Bisection)

    def truth(levels: Mapping[str, str | None]) -> float:
        return case.truth(levels[one] is not None, levels[other] is not None)

    runs = Machine(truth, case.noise, case.drift, walk=case.walk, losing=case.losing).run(engine, seed)
    verdict, suspect = engine.verdict()
    return Ended(verdict or "going on", suspect in (one, other)[: case.guilty], runs, engine)


class Found(NamedTuple):
    """What came of one simulated search; `off` is how much more the pick costs than the best there is, stock where nothing is claimed."""

    off: float
    claimed: bool
    covered: float
    conclusion: Json


def searched(family: str, seed: int, *, noise: float = 0.05, drift: float = 0.05) -> Found:
    """One search of 60 trials."""
    land = Landscape(family, seed)
    engine = search.engine(PROFILE, FACTORS, Options(seed=seed))
    Machine(lambda levels: float(np.log(land.at(levels))), noise, drift).run(engine, seed)
    said = engine.conclusion()
    stock = dict.fromkeys((factor.name for factor in FACTORS), None)
    pick = next((one["levels"] for one in said["candidates"] if one["name"] == said["pick"]), stock)
    inside = [
        one["confirmed"]["low"] <= land.at(one["levels"]) / land.at(stock) - 1 <= one["confirmed"]["high"] for one in said["candidates"]
    ]
    return Found(land.off(pick), said["pick"] is not None, float(np.mean(inside)), said)


def plain(family: str, seed: int, *, noise: float = 0.05, drift: float = 0.05, trials: int = 60) -> float:
    """Plain Optuna: TPE with its defaults, the best value of 60 trials taken at its word. How much more it costs than the best."""
    import optuna

    land, dice = Landscape(family, seed), np.random.default_rng(seed)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    wander = dice.choice([-1.0, 1.0]) * drift
    for number in range(trials):
        trial = study.ask()
        levels: dict[str, Any] = {factor.name: trial.suggest_categorical(factor.name, factor.levels) for factor in FACTORS}
        study.tell(trial, land.at(levels) * float(np.exp(wander * number / trials + dice.normal(0.0, noise))))
    return land.off({factor.name: study.best_params[factor.name] for factor in FACTORS})


def bisect_table(simulations: int) -> None:
    """Rates of all cases."""
    print(f"| 12 keys, noise 2 %, drift 5 % unless said; {simulations} simulations | right | wrong | clear | undecided | runs |")
    print("|---|---|---|---|---|---|")
    for case in CASES:
        ended = [bisected(case, seed) for seed in range(simulations)]
        named = [one for one in ended if one.verdict == "named"]
        shares = [
            sum(one.right for one in named),
            sum(not one.right for one in named),
            *(sum(one.verdict == verdict for one in ended) for verdict in ("clear", "undecided")),
        ]
        runs = np.mean([one.runs for one in ended])
        print(f"| {case.said} | {' | '.join(f'{100 * share / simulations:.1f} %' for share in shares)} | {runs:.1f} |", flush=True)


def search_table(seeds: int) -> None:
    """How far off the best the picks are, and how often a gain is claimed."""
    size = f"{len(SIZES)} knobs, 60 trials, noise 5 %, drift 5 %; {seeds} seeds"
    print(f"| {size} | pick off, median (mean) | plain TPE off, median (mean) | stock off, median | a gain claimed | intervals that hold |")
    print("|---|---|---|---|---|---|")
    stock = dict.fromkeys((factor.name for factor in FACTORS), None)
    for family in ("adds", "multiplies", "interacts", "bottleneck", "flat", "tuned"):
        found = [searched(family, seed) for seed in range(seeds)]
        columns: Sequence[str] = [
            _typical([one.off for one in found]),
            _typical([plain(family, seed) for seed in range(seeds)]),
            f"{np.median([Landscape(family, seed).off(stock) for seed in range(seeds)]):.1%}",
            f"{np.mean([one.claimed for one in found]):.0%}",
            f"{np.mean([one.covered for one in found]):.0%}",
        ]
        print(f"| {family} | {' | '.join(columns)} |".replace("%", " %"), flush=True)


def _typical(values: Sequence[float]) -> str:
    return f"{np.median(values):.1%} ({np.mean(values):.1%})"


if __name__ == "__main__":
    which = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else {"bisect": 1000, "search": 50}[which]
    {"bisect": bisect_table, "search": search_table}[which](count)
