"""Algorithms compared on a plant that differs from their model: every task, algorithm and seed, and what came of it. *Simulated.*

Of each phase of the caps the second half counts: what a controller does once it had time to settle. A seed in which the plant has no
setting within the cap says nothing of a controller; it is left out for all, and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from itertools import pairwise
from math import isnan
from pathlib import Path
from statistics import fmean

import numpy as np

from analysis.answer import Answer, Line, Part, of_parts, text_table
from analysis.stats.effect import paired_effect
from analysis.terms import Effect, Metric, NotComparable, Refused
from control.power import algorithms, catalog
from control.power.algorithms import following
from control.power.catalog import ANY, SHIPPED, Task, cap_at, platform
from control.power.plant import Mismatch, Plant, Ran, batches
from control.power.tables import Tables
from control.power.terms import WATTS, Controller, Infeasible, Model, Question, Seen, Settings, Unsupported, must_be_in

from . import parameters
from .quality import copies_of, lines

WARMUP_S, MEASURE_S = 2.0, 3.0
TOLERATED = 1.02  # of the cap


@dataclass(frozen=True, slots=True)
class PlayedIteration:
    """One iteration: settings as they were, readings of its window, and the part of it above 1.02 of the cap.

    `true_above_102_share` is of the power itself, the other of the readings, which have the sensor's noise.
    """

    cap_w: float
    settings: Settings
    why: str
    throughput_images_per_s: float
    power_mean_w: float
    power_max_w: float
    above_102_share: float
    true_above_102_share: float


def play(
    question: Question, controller: Controller, plant: Plant, *, warmup_s: float = WARMUP_S, measure_s: float = MEASURE_S
) -> list[PlayedIteration]:
    """Let the controller run the question's iterations on the plant. `warmup_s` of each goes by unmeasured, as in a run."""
    decision, rows = controller.first(), []
    caps = [cap_at(question.caps, at) for at in range(question.iterations + 1)]
    for at in range(question.iterations):
        actual, refused = plant.apply(decision.settings)
        if warmup_s:
            plant.run(warmup_s)
        ran = plant.run(measure_s)
        rows.append(row(caps[at], actual, decision.why, ran))
        decision = following(controller, seen(at, caps[at + 1], actual, refused, ran))
    return rows


def row(cap_w: float, actual: Settings, reason: str, ran: Ran) -> PlayedIteration:
    """What is kept of an iteration."""
    return PlayedIteration(
        cap_w=cap_w,
        settings=actual,
        why=reason,
        throughput_images_per_s=ran.throughput_images_per_s,
        power_mean_w=float(np.mean(ran.readings_w)),
        power_max_w=float(np.max(ran.readings_w)),
        above_102_share=float(np.mean(ran.readings_w > TOLERATED * cap_w)),
        true_above_102_share=float(np.mean(ran.true_w > TOLERATED * cap_w)),
    )


def seen(iteration: int, next_cap: float, actual: Settings, refused: Sequence[str], ran: Ran) -> Seen:
    """What the controller is told of an iteration."""
    return Seen(
        iteration=iteration,
        cap=next_cap,
        settings=actual,
        throughput_images_per_s=ran.throughput_images_per_s,
        power_mean=float(np.mean(ran.readings_w)),
        power_max=float(np.max(ran.readings_w)),
        refused=tuple(refused),
        sm_util_percent=ran.sm_util_percent,
        mem_util_percent=ran.mem_util_percent,
        latency_ms=ran.latency_ms,
        latency_p95_ms=ran.latency_ms,
        oom=ran.oom,
    )


OURS = "steady"
THROUGHPUT = Metric("throughput_images_per_s", "higher")
MISMATCH = Mismatch(gain_error=0.08, noise_w=2.0, lag_s=2.0)
MOST_ABOVE = 0.05  # of the readings may be above 1.02 of the cap


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    """What to compare: `shadow` adds PctoDL with its shadow optimiser, as an arm of its own."""

    parameters: str
    tasks: tuple[Task, ...]
    algorithms: tuple[str, ...]
    seeds: int = 20
    mismatch: Mismatch = MISMATCH
    iterations: int = 60
    shadow: bool = False

    @property
    def arms(self) -> tuple[tuple[str, str, bool], ...]:
        """Name, algorithm, with the shadow optimiser."""
        plain = tuple((name, name, False) for name in self.algorithms)
        return (*plain, ("pctodl+shadow", "pctodl", True)) if self.shadow else plain


@dataclass(frozen=True, slots=True)
class SimulatedAlgorithm:
    """One algorithm on one task. Shares are of the counted readings above 1.02 of the cap: the mean of the seeds, and the worst one.

    `true_share` is that of the power itself, without the sensor's noise. `against` is ours compared with this one, seed by seed; None for
    ours itself. `refused` is why it could not run.
    """

    name: str
    throughput_images_per_s: float = float("nan")
    power_w: float = float("nan")
    above_102_share: float = float("nan")
    worst_share: float = float("nan")
    true_share: float = float("nan")
    values: tuple[float, ...] = ()
    against: Effect | None = None
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """One task: `seeds` that counted, and those in which no setting of the plant keeps the cap."""

    task: Task
    seeds: tuple[int, ...]
    impossible: tuple[int, ...]
    arms: tuple[SimulatedAlgorithm, ...]

    @property
    def name(self) -> str:
        """How answers call it: `6 on A100`."""
        return f"{self.task.id} on {self.task.gpu}"

    @property
    def kept(self) -> bool:
        """Whether ours was not above 1.02 of the cap in more than the tolerated part of the readings."""
        return all(arm.above_102_share <= MOST_ABOVE for arm in self.arms if arm.name == OURS)

    @property
    def behind(self) -> tuple[str, ...]:
        """Algorithms that ours is not shown to reach: the interval goes below equal, or, where there is none, the mean does."""
        ours = next((arm.throughput_images_per_s for arm in self.arms if arm.name == OURS), float("nan"))
        return tuple(
            arm.name for arm in self.arms if (arm.against.low < 0 if arm.against is not None else arm.throughput_images_per_s > ours)
        )


def outcomes(request: SimulationPlan) -> list[Outcome]:
    """Run all of it. Raises: Refused, where a task has no parameters, or its cap or its parameters are not in W, as plants are."""
    for task in request.tasks:
        must_be_in(task.cap_unit, parameters.models_for(Path(request.parameters), task.model, task.gpu).values(), f"task {task.id}")
        if task.cap_unit != WATTS:
            raise Refused(f"task {task.id} has a cap in {task.cap_unit}; simulated plants draw W.")
    return [_outcome(request, task) for task in request.tasks]


def iterations_of(request: SimulationPlan, task: Task) -> int:
    """What is asked for; under a schedule, so many that its last phase is as long as the one before."""
    starts = [start for start, _ in task.caps]
    return request.iterations if len(starts) == 1 else 2 * starts[-1] - starts[-2]


def counted(question: Question, rows: Sequence[PlayedIteration]) -> list[PlayedIteration]:
    """The second half of each phase of the caps."""
    starts = [start for start, _ in question.caps if start < len(rows)] + [len(rows)]
    return [row for low, high in pairwise(starts) for row in rows[(low + high) // 2 : high]]


def _outcome(request: SimulationPlan, task: Task) -> Outcome:
    tables = tables_for(request.parameters, task.model, task.gpu)
    plants = [replace(request.mismatch, seed=seed) for seed in range(1, request.seeds + 1)]
    least_cap = min(cap for _, cap in task.caps)
    possible = [plant for plant in plants if Plant(tables, plant, batches()).least_w(catalog.grid()) <= least_cap]
    result = [_arm(request, task, arm, possible) for arm in request.arms]
    ours = next((arm for arm in result if arm.name == OURS), None)
    impossible = tuple(plant.seed for plant in plants if plant not in possible)
    return Outcome(task, tuple(mismatch.seed for mismatch in possible), impossible, tuple(_against(ours, arm) for arm in result))


def _arm(request: SimulationPlan, task: Task, arm: tuple[str, str, bool], mismatches: Sequence[Mismatch]) -> SimulatedAlgorithm:
    name, algorithm, shadow = arm
    tables = tables_for(request.parameters, task.model, task.gpu)
    seeds = []
    for mismatch in mismatches:
        plant = Plant(tables, mismatch, batches())
        question = Question(
            algorithm=algorithm,
            gpu=task.gpu,
            model=task.model,
            caps=task.caps,
            knobs=plant.knobs,
            iterations=iterations_of(request, task),
            seed=mismatch.seed,
            shadow=shadow,
            models=reader(request.parameters, task.model, task.gpu),
        )
        try:
            seeds.append(counted(question, play(question, algorithms.at_work(question), plant)))
        except (Infeasible, Unsupported) as reason:
            return SimulatedAlgorithm(name, refused=str(reason))
    if not seeds:
        return SimulatedAlgorithm(name, refused="no seed has a setting within the cap")
    values = tuple(fmean(row.throughput_images_per_s for row in rows) for rows in seeds)
    above = [fmean(row.above_102_share for row in rows) for rows in seeds]
    return SimulatedAlgorithm(
        name=name,
        throughput_images_per_s=fmean(values),
        power_w=fmean(row.power_mean_w for rows in seeds for row in rows),
        above_102_share=fmean(above),
        worst_share=max(above),
        true_share=fmean(row.true_above_102_share for rows in seeds for row in rows),
        values=values,
    )


def _against(ours: SimulatedAlgorithm | None, other: SimulatedAlgorithm) -> SimulatedAlgorithm:
    """Compare ours, where there are values to compare; the ratio to none at all is no number."""
    if ours is None or other is ours or len(ours.values) < 2 or len(other.values) != len(ours.values) or min(other.values) <= 0:
        return other
    try:
        return replace(other, against=paired_effect(THROUGHPUT, other.values, ours.values, 0.0))
    except NotComparable:  # without noise all seeds of one sign are alike
        return other


@cache
def reader(path: str, network: str, gpu: str) -> Callable[[], Mapping[float, Model]]:
    """What reads these models: the same each time, so that what was searched with them is not searched again."""
    return partial(parameters.models_for, Path(path), network, gpu)


@cache
def tables_for(path: str, network: str, gpu: str) -> Tables:
    """The models of a network on a GPU, read once a process. Raises: Refused."""
    return Tables(reader(path, network, gpu)(), platform(gpu))


def chosen_tasks(path: Path, file: Path | None, ids: str | None) -> tuple[Task, ...]:
    """Return the tasks, all or those of `ids` (`6,13`), of which `path` has parameters; what runs on any GPU, on each. Raises: Refused."""
    tasks = {str(task.id): task for task in parameters.read_tasks(file or SHIPPED)}
    chosen = list(dict.fromkeys(ids.split(","))) if ids else list(tasks)
    for number in chosen:
        if number not in tasks:
            raise Refused(f"--task-id: no task {number!r}; there are {', '.join(tasks)}.")
    known = sorted({key[:2] for key in parameters.available(path)})
    result = tuple(
        replace(task, gpu=gpu)
        for task in map(tasks.__getitem__, chosen)
        for model, gpu in known
        if model == task.model and task.gpu in {gpu, ANY}
    )
    if not result:
        raise Refused(f"{path}: has parameters of no such task; there are {'; '.join(f'{model} on {gpu}' for model, gpu in known)}.")
    return result


HEADS = ("algorithm", "images/s", "W", "above 1.02 cap", "worst seed", "so in truth", f"{OURS} against it")


def answer(request: SimulationPlan) -> Answer:
    """Simulate everything; `against` has the fields of an effect, gains and shares are fractions. Raises: Refused."""
    result, path = outcomes(request), Path(request.parameters)
    used = {(task.model, task.gpu) for task in request.tasks}
    copied = copies_of([key for key in parameters.available(path) if key[:2] in used], path)
    mismatch = asdict(request.mismatch)
    del mismatch["seed"]
    data = {
        "simulated": True,
        "mismatch": mismatch,
        "seeds": request.seeds,
        "tasks": [
            {
                "id": outcome.task.id,
                "gpu": outcome.task.gpu,
                "model": outcome.task.model,
                "caps_w": outcome.task.caps,
                "seeds": outcome.seeds,
                "iterations": iterations_of(request, outcome.task),
                "impossible_seeds": outcome.impossible,
                "arms": [
                    {key: None if isinstance(value, float) and isnan(value) else value for key, value in asdict(arm).items()}
                    for arm in outcome.arms
                ],
            }
            for outcome in result
        ],
        "above_tolerated": [outcome.name for outcome in result if not outcome.kept],
        "behind": [{"task": outcome.name, "algorithms": outcome.behind} for outcome in result if outcome.behind],
        "findings": list(map(asdict, copied)),
    }
    return of_parts(data, [*parts(request, result), *lines(copied)])


def parts(request: SimulationPlan, result: Sequence[Outcome]) -> Iterator[Part]:
    """Return a table for each task, and what they come to for ours."""
    off = request.mismatch
    own = f", each partition by {off.partition_error:.1%} more (sd)" if off.partition_error else ""
    yield (
        f"SIMULATED: plants ±{off.gain_error:.1%} off the model{own}, noise {off.noise_w:g} W, lag {off.lag_s:g} s; "
        f"{request.seeds} seeds, the second half of each phase."
    )
    for outcome in result:
        task, caps = outcome.task, "→".join(f"{cap:g}" for _, cap in outcome.task.caps)
        yield ""
        head = f"task {task.id}: {task.model} on {task.gpu} under {caps} W, {iterations_of(request, task)} iterations"
        yield Line(head, tone="strong")
        if outcome.impossible:
            yield f"{len(outcome.impossible)} of {request.seeds} plants have no setting within the cap and are left out"
        yield text_table(HEADS, list(map(_row, outcome.arms)))
    yield ""
    if any(arm.name == OURS for outcome in result for arm in outcome.arms):
        above = ", ".join(outcome.name for outcome in result if not outcome.kept)
        often, where = ("more than", f"task {above}") if above else ("at most", "every task")
        yield f"{OURS} is above 1.02 of the cap in {often} {MOST_ABOVE:.0%} of the readings in {where}."
        behind = ", ".join(f"{name} in task {outcome.name}" for outcome in result for name in outcome.behind)
        yield (
            f"{OURS} is not shown to reach {behind}."
            if behind
            else f"{OURS} has at least the throughput of every other algorithm in every task (95 % intervals)."
        )


def _row(arm: SimulatedAlgorithm) -> list[str]:
    if arm.refused:
        return [f"{arm.name}: {arm.refused}", *[""] * (len(HEADS) - 1)]
    effect = arm.against
    text = "" if effect is None else f"{effect.gain:+.2%} [{effect.low:+.2%}, {effect.high:+.2%}]"
    shares = [f"{share:.1%}" for share in (arm.above_102_share, arm.worst_share, arm.true_share)]
    return [arm.name, f"{arm.throughput_images_per_s:.1f}", f"{arm.power_w:.1f}", *shares, text]
