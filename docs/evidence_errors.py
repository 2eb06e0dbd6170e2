"""Measure how often `evidence` is wrong (docs/evidence.md), in 300 sets per row.

`python -m docs.evidence_errors` takes minutes. Simulated runs know their own error. Resampled real
runs do not: each comes from a run of the main job, whose untouched arms do not differ; its blocks
are resampled, with random signs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.load import load
from analysis.studies.evidence.random_effects import agreement, estimate, next_run
from analysis.terms import AGAIN, STOCK
from control.t_test import ALPHA

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# The runs' noise, and their standard errors.
Draw = Callable[[np.random.Generator, int], tuple["Floats", "Floats"]]

RUNS = (3, 6, 10, 20)
TAUS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05)
ERRORS = (0.006, 0.015)  # standard errors of a simulated run, equally likely
DISTURBED = 0.05  # deviation of the first run, up or down
SETS = 300
SAVED = Path(__file__).parent.parent / "data" / "runs"
METRIC = "step_time_round_adjusted_s"


def simulated(generator: np.random.Generator, runs: int) -> tuple[Floats, Floats]:
    """Draw runs whose standard errors are known."""
    errors = generator.choice(ERRORS, runs)
    return errors * generator.standard_normal(runs), errors


def resampled(differences: Sequence[Floats]) -> Draw:
    """Draw runs from real ones: `differences` are log ratios of two untouched arms, by block."""

    def draw(generator: np.random.Generator, runs: int) -> tuple[Floats, Floats]:
        means, errors = np.empty(runs), np.empty(runs)
        for at, number in enumerate(generator.integers(len(differences), size=runs)):
            own = differences[number]
            blocks = generator.choice(own, len(own)) * generator.choice([-1, 1], len(own))
            means[at], errors[at] = blocks.mean(), blocks.std(ddof=1) / math.sqrt(len(own))
        return means, errors

    return draw


def untouched_differences(folder: Path = SAVED) -> list[Floats]:
    """Return log ratios of stock and stock-again by block, per workload and day of the main job."""
    result = []
    for path in sorted(folder.glob("turns_*.json*")):
        run = load(str(path))
        for workload in run.workloads:
            blocks: dict[int, dict[str, float]] = {}
            for cell in run.cells:
                if (
                    cell.workload == workload
                    and cell.tweakset in {STOCK, AGAIN}
                    and METRIC in cell.metrics
                ):
                    blocks.setdefault(cell.block, {})[cell.tweakset] = math.log(
                        cell.metrics[METRIC]
                    )
            result.append(
                np.array([own[AGAIN] - own[STOCK] for own in blocks.values() if len(own) > 1])
            )
    return result


def shares(
    draw: Draw, runs: int, tau: float, sets: int, seed: int, *, disturbed: bool = False
) -> tuple[float, float]:
    """Return the share of false alarms, and of true effects inside the next run's interval."""
    generator, alarms, inside = np.random.default_rng(seed), 0, 0
    for _ in range(sets):
        noise, errors = draw(generator, runs)
        effects = tau * generator.standard_normal(runs) + noise
        if disturbed:
            effects[0] += DISTURBED * generator.choice([-1, 1])
        alarms += estimate(effects.tolist(), errors.tolist()).p < ALPHA
        low, high = next_run(agreement(effects, errors**2))
        inside += low < tau * generator.standard_normal() < high
    return alarms / sets, inside / sets


def table(sets: int = SETS) -> Iterator[str]:
    """Write the shares for each number of runs and each tau, in %."""
    real = resampled(untouched_differences())
    yield (
        "| runs | tau | false alarms | one run disturbed | resampled real runs | in the next "
        "run's interval | resampled |"
    )
    yield "|---|---|---|---|---|---|---|"
    for runs in RUNS:
        for tau in TAUS:
            of_simulated = shares(simulated, runs, tau, sets, 1)
            of_disturbed = shares(simulated, runs, tau, sets, 1, disturbed=True)
            of_real = shares(real, runs, tau, sets, 1)
            shown = (of_simulated[0], of_disturbed[0], of_real[0], of_simulated[1], of_real[1])
            yield (
                f"| {runs} | {100 * tau:g} % | "
                f"{' | '.join(f'{100 * share:.1f} %' for share in shown)} |"
            )


if __name__ == "__main__":
    for line in table():
        print(line, flush=True)
