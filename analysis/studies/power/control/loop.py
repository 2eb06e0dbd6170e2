"""A controller on the simulated plant, iteration by iteration: the run side's loop without processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from control.power.algorithms import following
from control.power.terms import Seen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from control.power.plant import Plant, Ran
    from control.power.terms import Controller, Question, Settings

WARMUP_S, MEASURE_S = 2.0, 3.0
TOLERATED = 1.02  # of the cap


@dataclass(frozen=True, slots=True)
class Row:
    """One iteration: settings as they were, readings of its window, and the part of it above the cap and above 1.02 of it.

    `true_above_102_share` is of the power itself, the others of the readings, which have the sensor's noise.
    """

    cap_w: float
    settings: Settings
    why: str
    throughput_images_per_s: float
    power_mean_w: float
    power_max_w: float
    above_share: float
    above_102_share: float
    true_above_102_share: float


def play(
    question: Question, controller: Controller, plant: Plant, *, warmup_s: float = WARMUP_S, measure_s: float = MEASURE_S
) -> list[Row]:
    """Let the controller run the question's iterations on the plant. `warmup_s` of each goes by unmeasured, as in a run."""
    decision, rows = controller.first(), []
    caps = [cap_at(question, at) for at in range(question.iterations + 1)]
    for at in range(question.iterations):
        actual, refused = plant.apply(decision.settings)
        if warmup_s:
            plant.run(warmup_s)
        ran = plant.run(measure_s)
        rows.append(row(caps[at], actual, decision.why, ran))
        decision = following(controller, seen(at, caps[at + 1], actual, refused, ran))
    return rows


def cap_at(question: Question, iteration: int) -> float:
    """The cap in force in an iteration, counted from 0."""
    return next(cap for start, cap in reversed(question.caps) if start <= iteration)


def row(cap_w: float, actual: Settings, why: str, ran: Ran) -> Row:
    """What is kept of an iteration."""
    return Row(
        cap_w=cap_w,
        settings=actual,
        why=why,
        throughput_images_per_s=ran.throughput_images_per_s,
        power_mean_w=float(np.mean(ran.readings_w)),
        power_max_w=float(np.max(ran.readings_w)),
        above_share=float(np.mean(ran.readings_w > cap_w)),
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
