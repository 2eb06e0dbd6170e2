"""Algorithms compared on a plant that differs from their model: every task, algorithm and seed, and what came of it. *Simulated.*

Of each phase of the caps the second half counts: what a controller does once it had time to settle. A seed in which the plant has no
setting within the cap says nothing of a controller; it is left out for all, and counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from analysis.stats.effect import paired_effect
from analysis.studies.power import parameters
from analysis.studies.power.quality_of_models import copies_of
from analysis.terms import Effect, Metric, NotComparable, Refused
from control.power import algorithms, grid
from control.power.plant import Mismatch, Plant, batches
from control.power.platforms import platform
from control.power.tables import Tables
from control.power.terms import WATTS, Infeasible, Question, Unsupported, must_be_in

from .loop import play

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from analysis.studies.power.quality import Finding
    from control.power.terms import Model, Task

    from .loop import Row

OURS = "steady"
THROUGHPUT = Metric("throughput_images_per_s", "higher")
MISMATCH = Mismatch(gain_error=0.08, noise_w=2.0, lag_s=2.0)
MOST_ABOVE = 0.05  # of the readings may be above 1.02 of the cap


@dataclass(frozen=True, slots=True)
class Asked:
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
class Arm:
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
    arms: tuple[Arm, ...]

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


def outcomes(asked: Asked) -> list[Outcome]:
    """Run all of it. Raises: Refused, where a task has no parameters, or its cap or its parameters are not in W, as plants are."""
    for task in asked.tasks:
        must_be_in(task.cap_unit, parameters.models_for(Path(asked.parameters), task.model, task.gpu).values(), f"task {task.id}")
        if task.cap_unit != WATTS:
            raise Refused(f"task {task.id} has a cap in {task.cap_unit}; simulated plants draw W.")
    return [_outcome(asked, task) for task in asked.tasks]


def copies(asked: Asked) -> list[Finding]:
    """Answer what the models of the tasks share with others, which one of each pair has no right to. Raises: Refused."""
    path, used = Path(asked.parameters), {(task.model, task.gpu) for task in asked.tasks}
    return copies_of([key for key in parameters.available(path) if key[:2] in used], path)


def iterations_of(asked: Asked, task: Task) -> int:
    """What is asked for; under a schedule, so many that its last phase is as long as the one before."""
    starts = [start for start, _ in task.schedule]
    return asked.iterations if len(starts) == 1 else 2 * starts[-1] - starts[-2]


def counted(question: Question, rows: Sequence[Row]) -> list[Row]:
    """The second half of each phase of the caps."""
    starts = [start for start, _ in question.caps if start < len(rows)] + [len(rows)]
    return [row for low, high in pairwise(starts) for row in rows[(low + high) // 2 : high]]


def _outcome(asked: Asked, task: Task) -> Outcome:
    tables = tables_for(asked.parameters, task.model, task.gpu)
    plants = [replace(asked.mismatch, seed=seed) for seed in range(1, asked.seeds + 1)]
    least_cap = min(cap for _, cap in task.schedule)
    grid_points = [point.partition for point in grid.anchor()]
    possible = [one for one in plants if Plant(tables, one, batches()).least_w(grid_points) <= least_cap]
    found = [_arm(asked, task, arm, possible) for arm in asked.arms]
    ours = next((arm for arm in found if arm.name == OURS), None)
    impossible = tuple(one.seed for one in plants if one not in possible)
    return Outcome(task, tuple(one.seed for one in possible), impossible, tuple(_against(ours, arm) for arm in found))


def _arm(asked: Asked, task: Task, arm: tuple[str, str, bool], mismatches: Sequence[Mismatch]) -> Arm:
    name, algorithm, shadow = arm
    tables = tables_for(asked.parameters, task.model, task.gpu)
    seeds = []
    for mismatch in mismatches:
        plant = Plant(tables, mismatch, batches())
        question = Question(
            algorithm=algorithm,
            gpu=task.gpu,
            model=task.model,
            caps=task.schedule,
            knobs=plant.knobs,
            iterations=iterations_of(asked, task),
            seed=mismatch.seed,
            shadow=shadow,
            models=reader(asked.parameters, task.model, task.gpu),
        )
        try:
            seeds.append(counted(question, play(question, algorithms.at_work(question), plant)))
        except (Infeasible, Unsupported) as reason:
            return Arm(name, refused=str(reason))
    if not seeds:
        return Arm(name, refused="no seed has a setting within the cap")
    values = tuple(fmean(row.throughput_images_per_s for row in rows) for rows in seeds)
    above = [fmean(row.above_102_share for row in rows) for rows in seeds]
    return Arm(
        name=name,
        throughput_images_per_s=fmean(values),
        power_w=fmean(row.power_mean_w for rows in seeds for row in rows),
        above_102_share=fmean(above),
        worst_share=max(above),
        true_share=fmean(row.true_above_102_share for rows in seeds for row in rows),
        values=values,
    )


def _against(ours: Arm | None, other: Arm) -> Arm:
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
