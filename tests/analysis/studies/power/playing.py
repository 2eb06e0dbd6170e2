"""Controllers played on simulated plants, iteration by iteration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.studies.power import parameters
from control.power.algorithms import following
from control.power.catalog import cap_at, platform
from control.power.tables import Tables
from control.power.terms import Controller, Model, Question, Seen, Settings

if TYPE_CHECKING:
    from control.power.plant import Plant, PlantWindow

WARMUP_S, MEASURE_S = 2.0, 3.0


@dataclass(frozen=True, slots=True)
class PlayedIteration:
    """One iteration: settings as they were, and readings of its window."""

    cap_w: float
    settings: Settings
    why: str
    throughput_images_per_s: float
    power_mean_w: float
    power_max_w: float


def play(
    question: Question,
    controller: Controller,
    plant: Plant,
    *,
    warmup_s: float = WARMUP_S,
    measure_s: float = MEASURE_S,
    iterations: int = 60,
) -> list[PlayedIteration]:
    """Let the controller run on the plant.

    `warmup_s` of each goes by unmeasured, as in a run.
    """
    decision, rows = controller.first(), []
    caps = [cap_at(question.caps, at) for at in range(iterations + 1)]
    for at in range(iterations):
        actual, refused = plant.apply(decision.settings)
        if warmup_s:
            plant.run(warmup_s)
        ran = plant.run(measure_s)
        rows.append(row(caps[at], actual, decision.why, ran))
        decision = following(controller, seen(at, caps[at + 1], actual, refused, ran))
    return rows


def row(cap_w: float, actual: Settings, reason: str, ran: PlantWindow) -> PlayedIteration:
    """The record of an iteration."""
    return PlayedIteration(
        cap_w=cap_w,
        settings=actual,
        why=reason,
        throughput_images_per_s=ran.throughput_images_per_s,
        power_mean_w=float(np.mean(ran.readings_w)),
        power_max_w=float(np.max(ran.readings_w)),
    )


def seen(
    iteration: int, next_cap: float, actual: Settings, refused: Sequence[str], ran: PlantWindow
) -> Seen:
    """The controller's view of an iteration."""
    return Seen(
        iteration=iteration,
        cap=next_cap,
        settings=actual,
        throughput_images_per_s=ran.throughput_images_per_s,
        power_mean=float(np.mean(ran.readings_w)),
        power_max=float(np.max(ran.readings_w)),
        refused=tuple(refused),
        latency_ms=ran.latency_ms,
        latency_p95_ms=ran.latency_ms,
        oom=ran.oom,
    )


@cache
def reader(path: str, network: str, gpu: str) -> Callable[[], Mapping[float, Model]]:
    """A reader of these models, equal on each call so that searches are reused."""
    return partial(parameters.models_for, Path(path), network, gpu)


@cache
def tables_for(path: str, network: str, gpu: str) -> Tables:
    """The models of a network on a GPU, read once a process. Raises: Refused."""
    return Tables(reader(path, network, gpu)(), platform(gpu))
