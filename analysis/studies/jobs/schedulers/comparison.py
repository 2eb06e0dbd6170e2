"""Policies compared on identical arrivals: every seed is one stream of jobs, played under each. *Simulated.*

A seed is the unit: its figure under a policy over that under the baseline, with a paired t interval on the logarithm; p-values by Holm over
all policies of a metric.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING

from analysis.stats.effect import moments, paired_effect
from analysis.studies.jobs.estimates import FEWEST, holm_by_key
from analysis.studies.jobs.simulation.loop import StreamFigures, figures, play
from analysis.studies.jobs.simulation.stream import jobs
from analysis.terms import Metric, NotComparable, Refused
from control.scheduling import policies
from control.t_test import t_tail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.studies.jobs.simulation.stream import JobSource
    from analysis.terms import Effect


GROWS = 0.001  # one-sided, so that a stable policy is called so once in a thousand
METRICS = (Metric("mean_wait_s", "lower"), Metric("p95_wait_s", "lower"), Metric("mean_response_s", "lower"), Metric("slowdown", "lower"))


@dataclass(frozen=True, slots=True)
class PolicyStudy:
    """What to compare with what: `baseline` is one of `policies`."""

    source: JobSource
    policies: tuple[str, ...]
    baseline: str = "fifo"
    jobs: int = 5000
    seeds: int = 20


@dataclass(frozen=True, slots=True)
class PolicyContrast:
    """One metric of a policy against the baseline's: `p` after Holm. `effect` is None where `reason` says why there is none."""

    effect: Effect | None
    p: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PolicyArm:
    """One policy: the figures of each seed, their mean, and against the baseline's by name of the metric (empty for the baseline)."""

    policy: str
    seeds: tuple[StreamFigures, ...]
    against: Mapping[str, PolicyContrast] = field(default_factory=dict)

    @property
    def grows(self) -> bool:
        """Whether more jobs were left at the end of the submissions than half-way, beyond chance: its waits grow with the stream then."""
        more, spread = moments([float(seed.inside_end - seed.inside_half) for seed in self.seeds])
        n = len(self.seeds)
        return n > 1 and more > 0 and (spread == 0 or t_tail(more * n**0.5 / spread, n - 1) < GROWS)

    def mean(self, name: str) -> float | None:
        values = [getattr(seed, name) for seed in self.seeds]
        return None if None in values else fmean(values)


def arms(study: PolicyStudy) -> list[PolicyArm]:
    study.source.must_be_stable()
    for name in study.policies:
        policies.load(name)
    if study.baseline not in study.policies:
        raise Refused(f"baseline {study.baseline!r} is not among the policies that are compared: {', '.join(study.policies)}.")
    played: dict[str, list[StreamFigures]] = {name: [] for name in study.policies}
    for seed in range(1, study.seeds + 1):
        coming = jobs(study.source, study.jobs, seed)
        for name, of_policy in played.items():
            of_policy.append(figures(coming, play(coming, study.source.slots, name)))
    return compared({name: tuple(of_policy) for name, of_policy in played.items()}, study.baseline)


def compared(played: Mapping[str, tuple[StreamFigures, ...]], baseline: str) -> list[PolicyArm]:
    """Hold each policy's figures against the baseline's, pair by pair in their order."""
    others = [name for name in played if name != baseline]
    against: dict[str, dict[str, PolicyContrast]] = {name: {} for name in played}
    for metric in METRICS:
        contrasts = {name: _effect(metric, played[baseline], played[name]) for name in others}
        adjusted = holm_by_key({name: contrast.p for name, contrast in contrasts.items() if contrast.p is not None})
        for name, contrast in contrasts.items():
            against[name][metric.name] = replace(contrast, p=adjusted.get(name))
    return [PolicyArm(name, seeds, against[name]) for name, seeds in played.items()]


def _effect(metric: Metric, baseline: Sequence[StreamFigures], candidate: Sequence[StreamFigures]) -> PolicyContrast:
    before, after = ([float(getattr(figures_of_seed, metric.name)) for figures_of_seed in arm] for arm in (baseline, candidate))
    if min(*before, *after) <= 0:
        return PolicyContrast(None, reason="no wait")
    if len(before) < FEWEST:
        return PolicyContrast(None, reason="one stream" if len(before) == 1 else f"fewer than {FEWEST} streams")
    try:
        effect = paired_effect(metric, before, after, 0.0)
    except NotComparable:
        return PolicyContrast(None, reason="the same")
    return PolicyContrast(effect, effect.p)
