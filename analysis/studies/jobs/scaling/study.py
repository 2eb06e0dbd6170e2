"""Scaling evaluated: replicas chosen for each job so that all take the target, against one number for all, on identical jobs. *Simulated.*

How it would be used: a few jobs are measured first, with noise; the law fitted to them, not the true one, chooses. Then every seed is one
stream of jobs of random sizes on so many nodes, first come, first served, a job's replicas started together.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from analysis.answer import Line, of_parts, text_table
from analysis.stats.effect import interval, paired_effect
from analysis.studies.jobs.estimates import FEWEST
from analysis.studies.jobs.output import inverse
from analysis.studies.jobs.simulation import Coming, errors, play
from analysis.studies.jobs.simulation import TimesLaw as Times
from analysis.terms import Metric, NotComparable, Refused
from analysis.wording import digits, probability
from control.scaling import TOLERANCE, TimedJob, choose, fits, time_s
from control.scheduling.terms import Job

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from analysis.answer import Answer, Part
    from analysis.terms import Effect
    from control.scaling import Law

    Floats = NDArray[np.float64]

NODE = "node"
ELASTIC, STATIC, LARGEST = "chosen for each", "one number for all", "the most for all"
NODE_SECONDS = Metric("node_s_per_job", "lower")
PURPOSES = ("gaps", "sizes", "noise", "profile")  # in this order for ever: a seed's numbers hang on it
PROFILED = ((1, 2, 4, 8, 16), (0.25, 1.0, 4.0), 3)  # replicas, sizes over the mean, and how often each
WARM_UP = 0.1


@dataclass(frozen=True, slots=True)
class ScalingStudy:
    """The true law, the time every job is to take, and the jobs: sizes of mean 1 with that CV², times off by exp(±noise).

    `most` is what one job may have of the `nodes`, which are busy to `load` under the scaling that asks most of them.
    """

    law: Law
    target_s: float
    nodes: int = 1000
    most: int = 64
    load: float = 0.7
    sizes_cv2: float = 1.0
    noise: float = 0.03
    jobs: int = 5000
    seeds: int = 20


@dataclass(frozen=True, slots=True)
class ScaledStream:
    """One stream under one way of scaling, its first tenth left out.

    `within` is the part of the jobs that ran for the target ±10 %, `within_waited` that of those that were done so soon after submission;
    `node_s_per_job` what a job took of the nodes; times in seconds, `p95_response_s` with the wait.
    """

    within: float
    within_waited: float
    node_s_per_job: float
    mean_wait_s: float
    p95_response_s: float


@dataclass(frozen=True, slots=True)
class ScalingArm:
    """One way of scaling: by seed, the mean replicas, and against the choice for each: `more_within` is how much larger a part that has.

    `node_seconds` is the choice's gain in node-seconds over this one. None for the choice itself, and where seeds do not differ.
    """

    name: str
    replicas: float
    seeds: tuple[ScaledStream, ...]
    more_within: tuple[float, float, float] | None = None
    node_seconds: Effect | None = None

    def mean(self, name: str) -> float:
        return float(np.mean([getattr(seed, name) for seed in self.seeds]))


@dataclass(frozen=True, slots=True)
class ScalingResult:
    """What came of it: the mean law of the seeds' fits, and the part of the jobs for which there is a number of replicas at all."""

    arms: tuple[ScalingArm, ...]
    gap_s: float
    reachable: float
    chosen_by: Mapping[str, float] = field(default_factory=dict)


def evaluate(study: ScalingStudy) -> ScalingResult:
    _must_be_possible(study)
    gap_s = _gap_s(study)
    scaled: dict[str, list[ScaledStream]] = {name: [] for name in (ELASTIC, STATIC, LARGEST)}
    replicas: dict[str, list[float]] = {name: [] for name in scaled}
    laws, reachable = [], []
    for seed in range(1, study.seeds + 1):
        numbers = _numbers(seed, study.jobs)
        submit_s = np.cumsum(Times(gap_s).times_s(numbers["gaps"]))
        work = Times(1.0, study.sizes_cv2).times_s(numbers["sizes"])
        off = errors(numbers["noise"], study.noise)
        fitted = _profiled(study, numbers["profile"])
        laws.append(fitted)
        reachable.append(float(np.mean([choose(study.law, size, study.target_s, study.most).within for size in work.tolist()])))
        for name, chosen in _ways(study, fitted, work).items():
            takes_s = time_s(study.law, work, chosen) * off
            scaled[name].append(_scaled(study, submit_s, chosen, takes_s))
            replicas[name].append(float(chosen.mean()))
    arms = [ScalingArm(name, float(np.mean(replicas[name])), tuple(seeds)) for name, seeds in scaled.items()]
    mean_law = {name: float(np.mean([getattr(law, name) for law in laws])) for name in ("cost_s", "serial", "crosstalk", "startup_s")}
    return ScalingResult((arms[0], *(against(arms[0], arm) for arm in arms[1:])), gap_s, float(np.mean(reachable)), mean_law)


def _must_be_possible(study: ScalingStudy) -> None:
    if study.most > study.nodes:
        raise Refused(f"{study.most} replicas at once do not fit on {study.nodes} nodes.")
    if not 0 < study.load < 1:
        raise Refused(f"load {study.load:g}: unstable from 1 on, the queue grows for as long as jobs come; say one above 0 and below 1.")
    if study.target_s <= study.law.startup_s:
        raise Refused(f"A target of {study.target_s:g} s: starting alone takes {study.law.startup_s:g} s.")


def _ways(study: ScalingStudy, law: Law, work: Floats) -> dict[str, Floats]:
    def number(size: float) -> float:
        return float(choose(law, size, study.target_s, study.most).replicas)

    largest = float(np.max(work[:100]))
    return {
        ELASTIC: np.array([number(own) for own in work.tolist()]),
        STATIC: np.full(work.shape, number(1.0)),
        LARGEST: np.full(work.shape, number(largest)),
    }


def _gap_s(study: ScalingStudy) -> float:
    """Between submissions, so that the way that asks most of the nodes asks for `load` of them."""
    work = Times(1.0, study.sizes_cv2).times_s((np.arange(1000) + 0.5) / 1000)
    needed = [float((chosen * time_s(study.law, work, chosen)).mean()) for chosen in _ways(study, study.law, work[::-1]).values()]
    return max(needed) / (study.nodes * study.load)


def _numbers(seed: int, many: int) -> dict[str, Floats]:
    spawned = np.random.SeedSequence(seed).spawn(len(PURPOSES))
    return {purpose: np.random.default_rng(seeded).random(many) for purpose, seeded in zip(PURPOSES, spawned, strict=True)}


def _profiled(study: ScalingStudy, uniform: Floats) -> Law:
    numbers, sizes, often = PROFILED
    grid = [(n, size) for n in numbers if n <= study.most for size in sizes for _ in range(often)]
    off = errors(uniform[: len(grid)], study.noise).tolist()
    points = [TimedJob(n, size, float(time_s(study.law, size, n)) * by) for (n, size), by in zip(grid, off, strict=True)]
    return fits(points)[0].law


def _scaled(study: ScalingStudy, submit_s: Floats, replicas: Floats, takes_s: Floats) -> ScaledStream:
    rows = zip(submit_s.tolist(), replicas.tolist(), takes_s.tolist(), strict=True)
    stream = [Coming(Job(at, came_s, replicas=int(n)), {NODE: seconds}) for at, (came_s, n, seconds) in enumerate(rows)]
    played = play(stream, {NODE: study.nodes}, "fifo")
    counted = slice(int(len(stream) * WARM_UP), None)
    ran_s, response_s = (played.end_s - played.start_s)[counted], (played.end_s - played.submit_s)[counted]
    return ScaledStream(
        within=within(ran_s, study.target_s),
        within_waited=within(response_s, study.target_s),
        node_s_per_job=float((ran_s * played.replicas[counted]).mean()),
        mean_wait_s=float(played.wait_s[counted].mean()),
        p95_response_s=float(np.quantile(response_s, 0.95)),
    )


def within(times_s: Floats, target_s: float) -> float:
    return float((np.abs(times_s / target_s - 1) <= TOLERANCE).mean())


def against(chosen: ScalingArm, other: ScalingArm) -> ScalingArm:
    if len(chosen.seeds) < FEWEST:
        return other
    more = [own.within - theirs.within for own, theirs in zip(chosen.seeds, other.seeds, strict=True)]
    before, after = ([seed.node_s_per_job for seed in arm.seeds] for arm in (other, chosen))
    try:
        effect = paired_effect(NODE_SECONDS, before, after, 0.0)
    except NotComparable:  # sizes and times that never vary
        effect = None
    return ScalingArm(other.name, other.replicas, other.seeds, interval(more), effect)


FIGURES = {
    "within": "within",
    "within_waited": "waits incl.",
    "node_s_per_job": "node s a job",
    "mean_wait_s": "mean wait s",
    "p95_response_s": "p95 response s",
}
SHARES = ("within", "within_waited")


def simulated(study: ScalingStudy) -> Answer:
    """Evaluate; in the data effects are gains as fractions, of the choice for each job over the way they stand with."""
    result = evaluate(study)
    return of_parts({"simulated": True, "asked": asdict(study), **asdict(result)}, _page(study, result))


def _page(study: ScalingStudy, result: ScalingResult) -> Iterator[Part]:
    law = study.law
    yield Line(
        f"SIMULATED: {study.nodes} nodes, a job every {result.gap_s:.4g} s, sizes of CV² {study.sizes_cv2:g}; {study.seeds} streams of "
        f"{study.jobs} jobs. Time: {law.startup_s:g} + {law.cost_s:g}·size·(1 + {law.serial:g}(n-1) + {law.crosstalk:g}n(n-1))/n s, "
        f"off by exp(±{study.noise:g}); the law that chooses is fitted to 45 jobs at most of a profile."
    )
    yield Line(
        f"Every job is to run {study.target_s:g} s ±10 %; for {result.reachable:.1%} of them there is a number of replicas that does."
    )
    yield ""
    yield from tables(result.arms)


def tables(arms: Sequence[ScalingArm]) -> Iterator[Part]:
    heads = ["replicas", "mean", *FIGURES.values()]
    yield text_table(heads, [[arm.name, f"{arm.replicas:.1f}", *(_figure(arm, name) for name in FIGURES)] for arm in arms])
    others = [arm for arm in arms if arm.more_within is not None]
    if others:
        yield ""
        yield Line(f"{arms[0].name} against")
        yield text_table(["", "within, points more [95 %]", "node-seconds, ratio [95 %]", "p"], map(_against_row, others))


def _figure(arm: ScalingArm, name: str) -> str:
    value = arm.mean(name)
    return f"{value:.1%}" if name in SHARES else digits(value)


def _against_row(arm: ScalingArm) -> list[str]:
    more = "" if arm.more_within is None else "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * points for points in arm.more_within))
    effect = arm.node_seconds
    if effect is None:
        return [arm.name, more, "the same", ""]
    return [arm.name, more, "{:.3f} [{:.3f}, {:.3f}]".format(*inverse(effect)), probability(effect.p)]
