"""How often `evidence` is wrong, on simulated runs (docs/evidence.md): `python -m docs.evidence_errors`, minutes; 300 sets a row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from analysis.studies.evidence.random_effects import estimate, next_run
from control.t_test import ALPHA

RUNS = (3, 6, 10, 20)
TAUS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05)
ERRORS = (0.006, 0.015)  # standard errors of a run, each as likely
DISTURBED = 0.05  # by which the first run is off, up or down
SETS = 300


def shares(runs: int, tau: float, sets: int, seed: int, *, disturbed: bool) -> tuple[float, float]:
    """Return the share of false alarms of the mean, and of true effects that lie in the next run's interval."""
    generator, alarms, inside = np.random.default_rng(seed), 0, 0
    for _ in range(sets):
        errors = generator.choice(ERRORS, runs)
        effects = tau * generator.standard_normal(runs) + errors * generator.standard_normal(runs)
        if disturbed:
            effects[0] += DISTURBED * generator.choice([-1, 1])
        alarms += estimate(effects.tolist(), errors.tolist()).p < ALPHA
        low, high = next_run(effects, errors**2)
        inside += low < tau * generator.standard_normal() < high
    return alarms / sets, inside / sets


def table(sets: int = SETS) -> Iterator[str]:
    """Write both shares for each number of runs and each tau, in %."""
    yield "| runs | tau | false alarms | with a disturbed run | in the next run's interval |"
    yield "|---|---|---|---|---|"
    for runs in RUNS:
        for tau in TAUS:
            (alarms, inside), (disturbed, _) = (shares(runs, tau, sets, 1, disturbed=odd) for odd in (False, True))
            yield f"| {runs} | {100 * tau:g} % | {100 * alarms:.1f} % | {100 * disturbed:.1f} % | {100 * inside:.1f} % |"


if __name__ == "__main__":
    print("\n".join(table()))
