"""Questions, observations and simulated GPUs for tests of controllers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from analysis.studies.power import parameters
from control.power.catalog import platform
from control.power.plant import Mismatch, Plant, batches
from control.power.tables import Tables
from control.power.terms import Knobs, Question, Seen, Settings, Tenant
from tests.analysis.studies.power.made_reference import reference
from tests.analysis.studies.power.playing import reader

CLOCKS = platform("3080Ti").sm_mhz
KNOBS = Knobs(
    shares=True,
    batches=batches(),
    most_processes=20,
    sm_mhz=CLOCKS,
    mem_mhz=(5001.0, 9501.0),
    power_limit_w=(100.0, 350.0),
)


def folder(place: Path) -> Path:
    """Parameters of `made_up` on a 3080Ti, two memory clocks: the faster gives and draws more."""
    place.mkdir(exist_ok=True)
    for mem_mhz, busy in ((5001.0, 60.0), (9501.0, 75.0)):
        model = reference(mem_mhz=mem_mhz, busy=busy)
        parameters.write(model, place / parameters.file_name(model))
    return place


def question(
    algorithm: str, place: Path | None = None, cap: float = 200.0, knobs: Knobs = KNOBS
) -> Question:
    """A run's request to `made_up` under one cap, W."""
    return Question(
        algorithm,
        "3080Ti",
        "made_up",
        ((0, cap),),
        knobs,
        models=None if place is None else reader(str(place), "made_up", "3080Ti"),
    )


def plant(place: Path, mismatch: Mismatch | None = None) -> Plant:
    """`made_up`'s GPU; by default it follows its model exactly."""
    return Plant(
        Tables(parameters.models_for(place, "made_up", "3080Ti"), platform("3080Ti")),
        mismatch or Mismatch(),
        batches(),
    )


def tenants(*processes: tuple[float, int]) -> tuple[Tenant, ...]:
    """Processes from (share, batch) pairs."""
    return tuple(Tenant(float(share), batch) for share, batch in processes)


def seen(settings: Settings, power: float | None, **told: object) -> Seen:
    """An iteration under 200 W; `told` overrides the defaults here."""
    latencies = (10.0,) * len(settings.tenants)
    said = Seen(
        0, 200.0, settings, 1000.0, power, power, latency_ms=latencies, latency_p95_ms=latencies
    )
    return replace(said, **told)  # type: ignore[arg-type]  # as the test says it
