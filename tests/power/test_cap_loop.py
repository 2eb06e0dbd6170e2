"""The loop of a cell: its settings, the report of each window, and the algorithm's view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from control.power.catalog import Task
from control.power.terms import Decision, Infeasible, Knobs, Predicted, Seen, Settings, Tenant
from fixtures.studies.power.capped import Capped
from fixtures.studies.power.terms import Applied, Observed, Probe
from fixtures.terms import Refused

TASK = Task(
    6, "3080Ti", "resnet50", "imagenet", ((0, 130.0), (2, 100.0)), "W", 4, "resnet50", slo_ms=50.0
)
PROBE = Probe(
    "made-up", Knobs(shares=True, batches=(1, 2, 4, 8), most_processes=4), {}, "nvml", "W"
)
TWO = Settings((Tenant(50.0, 8), Tenant(50.0, 8)), sm_mhz=1500.0)
Json = dict[str, Any]


@dataclass
class Device:
    """Images take 1 ms; batches above `fits` and `fits_at_first` fail; a clock can be refused."""

    fits: int = 100
    fits_at_first: int = 100
    clock: str = ""
    probe: Probe = PROBE
    draw: tuple[tuple[float, float], ...] = ((0.5, 120.0), (1.0, 140.0))
    crashed: Mapping[int, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    applied: list[Settings] = field(default_factory=list)
    ran: int = 0

    def apply(self, settings: Settings) -> Applied:
        self.applied.append(settings)
        oom = {
            place: f"tenant {place}: batch {one.batch}"
            for place, one in enumerate(settings.tenants)
            if one.batch > self.fits
        }
        if self.clock:
            return Applied(replace(settings, sm_mhz=1200.0), (f"sm_mhz: {self.clock}",), oom)
        return Applied(settings, (), oom)

    def run(self, warmup_s: float, measure_s: float) -> Observed:
        self.ran += 1
        tenants = self.applied[-1].tenants
        oom = {
            place: f"tenant {place}: batch {one.batch}"
            for place, one in enumerate(tenants)
            if one.batch > self.fits_at_first
        }
        images = tuple(
            0.0 if place in oom or place in self.crashed else 10.0 * one.batch
            for place, one in enumerate(tenants)
        )
        latency_ms = tuple(
            (1.0 * one.batch, 60.0) if count else ()
            for one, count in zip(tenants, images, strict=True)
        )
        start_s = 100.0 + self.ran * (warmup_s + measure_s)
        seen = Observed(
            start_s,
            measure_s,
            self.draw,
            images,
            latency_ms,
            sm_mhz=1198.5,
            oom=oom,
            crashed=self.crashed,
        )
        return replace(seen, sensors_failed=self.failed)


@dataclass
class Algorithm:
    """Answers what it has ready, then the same for ever; keeps what it was told."""

    start: Decision | Infeasible
    ready: list[Decision | Infeasible] = field(default_factory=list)
    told: list[Seen] = field(default_factory=list)

    def first(self) -> Decision:
        return answer(self.start)

    def then(self, seen: Seen) -> Decision:
        self.told.append(seen)
        return answer(self.ready.pop(0) if self.ready else self.start)


def answer(ready: Decision | Infeasible) -> Decision:
    if isinstance(ready, Infeasible):
        raise ready
    return ready


def decision(settings: Settings = TWO, why: str = "start") -> Decision:
    return Decision(settings, why, Predicted(900.0, 125.0))


def ran(device: Device, algorithm: Algorithm, task: Task = TASK) -> dict[str, list[Json]]:
    """All iterations of a task. Returns: what was told."""
    told: dict[str, list[Json]] = {}
    capped = Capped(
        task,
        device,
        lambda: algorithm,
        0.5,
        1.0,
        lambda name, value: told.setdefault(name, []).append(dict(value)),
    )
    for number in range(task.iterations):
        capped.iterate(number)
    return told


def test_each_iteration_reports_requested_and_actual_settings() -> None:
    """0.5 s at 120 W and at 140 W, under 130: 5 W s above; 2 images of 2 batches over 50 ms."""
    rows = ran(Device(), Algorithm(decision()))["iteration"]
    assert [row["iteration"] for row in rows] == [0, 1, 2, 3]
    assert [row["t_s"] for row in rows] == [0.0, 1.5, 3.0, 4.5]
    first = rows[0]
    assert first["asked"]["sm_mhz"] == 1500.0
    assert first["actual"]["sm_mhz"] == 1198.5  # as it was read while they worked
    assert (first["throughput_images_per_s"], first["power_mean"], first["power_max"]) == (
        160.0,
        130.0,
        140.0,
    )
    assert [first[f"above_cap_{what}"] for what in ("s", "unit_s", "longest_s", "worst")] == [
        0.5,
        5.0,
        0.5,
        10.0,
    ]
    assert first["above_102_s"] == 0.5
    assert first["tenants"][0] | {"latency_p95_ms": None, "latency_p99_ms": None} == {
        "images": 80.0,
        "latency_p50_ms": 34.0,
        "latency_p95_ms": None,
        "latency_p99_ms": None,
        "latency_mean_ms": 34.0,
        "over_slo_share": 0.5,
    }
    assert (first["why"], first["predicted"]["power_w"]) == ("start", 125.0)
    assert (first["backend"], first["power_source"], first["cap_unit"]) == ("made-up", "nvml", "W")


def test_a_new_cap_applies_at_once_and_is_announced_beforehand() -> None:
    """100 W from iteration 2 on: whoever decides after iteration 1 decides for it."""
    algorithm = Algorithm(decision())
    rows = ran(Device(), algorithm)["iteration"]
    assert [row["cap"] for row in rows] == [130.0, 130.0, 100.0, 100.0]
    assert [(one.iteration, one.cap) for one in algorithm.told] == [
        (0, 130.0),
        (1, 100.0),
        (2, 100.0),
    ]


def test_a_refused_clock_is_reported_and_not_recorded_as_set() -> None:
    algorithm = Algorithm(decision())
    row = ran(Device(clock="the driver says no"), algorithm)["iteration"][0]
    assert row["refused"] == ["sm_mhz: the driver says no"]
    assert (row["asked"]["sm_mhz"], row["actual"]["sm_mhz"]) == (1500.0, 1198.5)
    told = algorithm.told[0]
    assert (told.settings.sm_mhz, told.refused, told.latency_ms) == (
        1198.5,
        ("sm_mhz: the driver says no",),
        (34.0, 34.0),
    )
    assert (told.power_mean, told.power_max) == (130.0, 140.0)


@pytest.mark.parametrize(
    "device", [Device(fits=2), Device(fits_at_first=2)], ids=["when it is set", "when it runs"]
)
def test_a_batch_that_does_not_fit_is_halved_and_reported(device: Device) -> None:
    """8 and 4 do not fit, 2 does: the window is that of 2, and the algorithm gets the others."""
    algorithm = Algorithm(decision())
    rows = ran(device, algorithm)["iteration"]
    assert [one["batch"] for one in rows[0]["asked"]["tenants"]] == [8, 8]
    assert [one["batch"] for one in rows[0]["actual"]["tenants"]] == [2, 2]
    assert rows[0]["oom"] == ["tenant 0: batch 4", "tenant 1: batch 4"]
    assert algorithm.told[0].oom == (0, 1)


def test_a_device_on_which_nothing_fits_ends_the_cell() -> None:
    with pytest.raises(
        Refused,
        match=r"Iteration 0: no process completed an inference: tenant 0: batch 1; "
        r"tenant 1: batch 1",
    ):
        ran(Device(fits=0), Algorithm(decision()))


def test_one_tenant_that_crashed_is_told_and_the_others_count() -> None:
    row = ran(Device(crashed={1: "tenant 1 died of SIGKILL"}), Algorithm(decision()))["iteration"][
        0
    ]
    assert row["crashed"] == ["tenant 1 died of SIGKILL"]
    assert row["throughput_images_per_s"] == 80.0
    assert row["tenants"][1]["latency_p50_ms"] is None


def test_a_row_has_its_number_of_readings_and_failed_sensors() -> None:
    row = ran(Device(), Algorithm(decision()))["iteration"][0]
    assert (row["readings"], row["sensors_failed"]) == (2, [])
    row = ran(Device(draw=(), failed={"nvml": "GPU is lost"}), Algorithm(decision()))["iteration"][
        0
    ]
    # Without a sensor nothing is said of the cap: None, which is not 0 s above it.
    assert [
        row[key]
        for key in ("power_mean", "power_max", "above_cap_s", "above_cap_unit_s", "above_102_s")
    ] == [None] * 5
    assert (row["readings"], row["sensors_failed"]) == (0, ["nvml: GPU is lost"])


def test_a_cap_infeasible_from_the_start_ends_the_cell() -> None:
    first = Infeasible("the board idles at 60 W", 68.25)
    with pytest.raises(
        Refused,
        match=r"Task 6: a cap of 130 W is infeasible: the board idles at 60 W. .* is 68.25 W.",
    ):
        ran(Device(), Algorithm(first))


def test_a_cap_infeasible_later_is_reported_and_settings_stay() -> None:
    algorithm = Algorithm(
        decision(),
        [decision(), Infeasible("too little", 110.0)],
    )
    device = Device()
    told = ran(device, algorithm)
    assert [(one["iteration"], one["cap"], one["smallest_cap"]) for one in told["infeasible"]] == [
        (2, 100.0, 110.0)
    ]
    assert len(told["iteration"]) == 4
    assert len(algorithm.told) == 2
    assert device.applied == [TWO] * 4
