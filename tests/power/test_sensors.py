"""Readings of sensors, and the result of a window."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from fixtures.studies.power.sensors import Activity, Meter, Nvml, Sample, reduced
from fixtures.telemetry.sources import Rapl, SourceMissing


def zone(root: Path, number: int, name: str, energy_uj: int) -> Path:
    folder = root / f"sys/class/powercap/intel-rapl:{number}"
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in (("name", name), ("energy_uj", energy_uj), ("max_energy_range_uj", 1000)):
        (folder / file).write_text(f"{text}\n")
    return folder / "energy_uj"


def test_a_counters_rise_gives_energy_and_its_slopes_the_draw() -> None:
    """10 J in the first 0.5 s, 20 J in the second, of a window of 1.2 s: 36 J; 20 W and 40 W."""
    samples = [
        Sample(10.1, {"energy_j": 5}),
        Sample(10.6, {"energy_j": 15}),
        Sample(11.1, {"energy_j": 35}),
    ]
    seen = reduced(samples, "W", 10.0, 11.2)
    assert seen["energy_j"] == pytest.approx(36)
    assert [watt for _, watt in seen["draw"]] == pytest.approx([20, 40])
    assert [at_s for at_s, _ in seen["draw"]] == pytest.approx([0.6, 1.1])


def test_a_gauge_of_power_is_the_draw_and_other_gauges_are_means() -> None:
    samples = [
        Sample(0.0, {"power_w": 100, "sm_mhz": 1400}),
        Sample(0.1, {"sm_mhz": 1200}),
        Sample(0.2, {"power_w": 120}),
    ]
    seen = reduced(samples, "W", 0.0, 0.2)
    assert seen["draw"] == ((0.0, 100), (0.2, 120))
    assert seen["sm_mhz"] == 1300
    assert seen["energy_j"] is None


def test_activity_is_no_power() -> None:
    seen = reduced(
        [Sample(0.0, {"cpu_s": 1.0}), Sample(0.5, {"cpu_s": 1.4})], "cpu_s_per_s", 0.0, 0.5
    )
    assert [value for _, value in seen["draw"]] == pytest.approx([0.8])
    assert seen["cpu_s_per_s"] == pytest.approx(0.8)
    assert seen["energy_j"] is None
    assert (
        reduced([Sample(0.0, {"cpu_s": 1.0}), Sample(0.5, {"cpu_s": 1.4})], "W", 0.0, 0.5)["draw"]
        == ()
    )


def test_rapl_sums_packages_and_survives_a_counter_wrap(tmp_path: Path) -> None:
    """Package 0, 900 to 100 of 1000 µJ, adds 200 µJ, package 1 50 µJ; core and DRAM are parts."""
    first, second = zone(tmp_path, 0, "package-0", 900), zone(tmp_path, 1, "package-1", 10)
    whole = zone(tmp_path, 2, "psys", 7)
    rapl = Rapl(tmp_path)
    assert rapl.read() == {"energy_j": 0}
    first.write_text("100\n")
    second.write_text("60\n")
    whole.write_text("500\n")
    assert rapl.read()["energy_j"] == pytest.approx(250e-6)


def test_no_rapl_is_said(tmp_path: Path) -> None:
    """Never 0 W."""
    with pytest.raises(SourceMissing, match="no RAPL"):
        Rapl(tmp_path)


def test_what_an_ended_process_used_stays_counted() -> None:
    pids: list[int | None] = [os.getpid(), None]
    activity = Activity(lambda: pids)
    before_s = activity.read()["cpu_s"]
    assert before_s > 0
    pids[:] = [None, 2**22 + 1]
    assert activity.read()["cpu_s"] == before_s


class Failing:
    """Answers once."""

    def __init__(self) -> None:
        self.asked = 0

    def read(self) -> dict[str, float]:
        self.asked += 1
        if self.asked > 1:
            raise OSError("gone")
        return {"power_w": 5.0}


class Silenced:
    """NVML's bindings; every call of a GPU that is lost is answered with the same error."""

    NVMLError = RuntimeError
    NVML_CLOCK_SM = NVML_CLOCK_MEM = 0

    def __init__(self) -> None:
        self.lost = False

    def nvmlDeviceGetPowerUsage(self, _: object) -> int:  # noqa: N802 NVML's name
        if self.lost:
            raise RuntimeError("GPU is lost")
        return 100_000


def test_a_lost_gpu_is_a_failed_sensor_with_nvmls_message() -> None:
    bindings, gpu = Silenced(), Nvml.__new__(Nvml)
    vars(gpu).update(
        nvml=bindings, handle=None, uuid="GPU-1", power_is="driver's mean", _answered=False
    )
    assert gpu.read() == {"power_w": 100.0}
    bindings.lost = True
    with pytest.raises(OSError, match="GPU-1 no longer answers: GPU is lost"):
        gpu.read()


def test_a_failed_sensor_stops_reporting_and_the_others_go_on() -> None:
    failing = Failing()
    with Meter([failing, Activity(lambda: [os.getpid()])], 0.005) as watch:
        began_s = time.monotonic()
        while failing.asked < 2 or time.monotonic() - began_s < 0.1:
            time.sleep(0.01)
        seen = watch.seen("cpu_s_per_s", began_s - 1, time.monotonic())
    assert failing.asked == 2
    assert watch.failed == {"failing": "gone"}
    assert seen["cpu_s_per_s"] is not None
