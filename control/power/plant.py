"""A simulated GPU that differs from its model by gain, lag, noise and faults."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from control.errors import Refused

from . import catalog
from .catalog import every_batch
from .tables import Curve, Tables, at_most, partition_of
from .terms import Knobs, Partition, Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from .terms import Floats, Tenant

SAMPLE_S = 0.1
MOST_LATENCIES = 1000  # of a tenant and a window, where they are listed: all are alike
QUANTUM_W = 0.1
LEAST_LIMIT_W = 100.0  # what the driver of either GPU takes
MOST_PROCESSES = 20
SMALLEST = Partition((5.0,), (4,))
IDLE_PART = 0.5  # of that one's draw at the lowest clock: what a GPU draws whose tenants do not run


@dataclass(frozen=True, slots=True)
class Mismatch:
    """How the plant differs from the model.

    `gain_error` is the part by which power and throughput are off, each up or down as `seed` has
    it: power up in odd ones, throughput up in every second pair. Power follows settings with time
    constant `lag_s`; each reading has normal noise of sd `noise_w`. A tenant of a batch above
    `oom_above_batch` does not run.
    """

    gain_error: float = 0.0
    noise_w: float = 0.0
    lag_s: float = 0.0
    seed: int = 1
    oom_above_batch: int | None = None
    refuse_clocks: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Check that these differences are possible. Raises: Refused."""
        if min(self.noise_w, self.lag_s, self.seed) < 0 or not abs(self.gain_error) < 1:
            raise Refused("noise_w, lag_s and seed must be at least 0, gain_error below 1.")


@dataclass(frozen=True, slots=True)
class PlantWindow:
    """A window: times since its start, readings, noiseless power (W), and values by tenant.

    `latency_ms` is None where no batch can end.
    """

    t_s: Floats
    readings_w: Floats
    true_w: Floats
    images: tuple[float, ...]
    latency_ms: tuple[float | None, ...]
    sm_util_percent: float
    mem_util_percent: float
    oom: tuple[int, ...]

    @property
    def throughput_images_per_s(self) -> float:
        return sum(self.images) / (len(self.t_s) * SAMPLE_S)


class Plant:
    """A simulated GPU with tenants; `apply` sets it, and `run` lets time pass."""

    def __init__(self, tables: Tables, mismatch: Mismatch, batches: tuple[int, ...]) -> None:
        self._tables, self._off = tables, mismatch
        self._noise = np.random.default_rng([mismatch.seed, 1])
        self._gains = (
            1 + _signed(mismatch.gain_error, mismatch.seed),
            1 + _signed(mismatch.gain_error, mismatch.seed // 2),
        )
        self._power_w: float | None = None
        self._now = Settings(())
        platform = tables.platform
        self._idle_w = IDLE_PART * float(tables.curve(max(tables.models), SMALLEST).power_w[0])
        self.knobs = Knobs(
            shares=True,
            batches=batches,
            most_processes=MOST_PROCESSES,
            sm_mhz=platform.sm_mhz,
            mem_mhz=tuple(sorted(tables.models)),
            power_limit_w=(LEAST_LIMIT_W, platform.tdp_w),
        )

    def apply(self, settings: Settings) -> tuple[Settings, tuple[str, ...]]:
        """Apply all settings.

        Returns: how it is set now, and a sentence for each knob that was refused and stays as it
        was.
        """
        platform, refused = self._tables.platform, []
        clocks = {*platform.sm_mhz} - {*self._off.refuse_clocks}
        accepts: dict[str, Callable[[float], bool]] = {
            "sm_mhz": lambda value: value in clocks,
            "mem_mhz": lambda value: value in self._tables.models,
            "power_limit_w": lambda value: LEAST_LIMIT_W <= value <= platform.tdp_w,
            "throttle": lambda _: False,  # this plant uses clocks instead
        }
        for knob, is_accepted in accepts.items():
            value = getattr(settings, knob)
            if value is not None and not is_accepted(value):
                refused.append(f"{knob}: the simulated driver does not accept {value:g}.")
                stays: dict[str, Any] = {knob: getattr(self._now, knob)}
                settings = replace(settings, **stays)
        self._now = settings
        return self._now, tuple(refused)

    def run(self, seconds: float) -> PlantWindow:
        oom = tuple(
            at
            for at, tenant in enumerate(self._now.tenants)
            if tenant.batch > (self._off.oom_above_batch or tenant.batch)
        )
        running = [tenant for at, tenant in enumerate(self._now.tenants) if at not in oom]
        target_w, throughput, curve = self._state(running)
        t_s: Floats = SAMPLE_S * np.arange(
            1, max(1, round(seconds / SAMPLE_S)) + 1, dtype=np.float64
        )
        start_w = self._idle_w if self._power_w is None else self._power_w
        true_w = (
            target_w + (start_w - target_w) * np.exp(-t_s / self._off.lag_s)
            if self._off.lag_s
            else np.full(len(t_s), target_w)
        )
        self._power_w = float(true_w[-1])
        readings_w = true_w
        if self._off.noise_w:
            noisy_w = true_w + self._noise.normal(0.0, self._off.noise_w, len(t_s))
            readings_w = np.round(noisy_w / QUANTUM_W) * QUANTUM_W
        whole = sum(tenant.share_percent for tenant in running)
        speeds = [
            0.0 if at in oom else throughput * tenant.share_percent / whole
            for at, tenant in enumerate(self._now.tenants)
        ]
        return PlantWindow(
            t_s=t_s,
            readings_w=readings_w,
            true_w=true_w,
            images=tuple(speed * len(t_s) * SAMPLE_S for speed in speeds),
            latency_ms=tuple(
                1000 * tenant.batch / speed if speed else None
                for tenant, speed in zip(self._now.tenants, speeds, strict=True)
            ),
            sm_util_percent=min(100.0, float(curve.anchor.sm_util_percent[0])) if curve else 0.0,
            mem_util_percent=min(100.0, float(curve.anchor.mem_util_percent[0])) if curve else 0.0,
            oom=oom,
        )

    def _true(self, mem_mhz: float, partition: Partition) -> tuple[Curve, Floats, Floats]:
        curve = self._tables.curve(mem_mhz, partition)
        return curve, curve.power_w * self._gains[0], curve.throughput_images_per_s * self._gains[1]

    def _state(self, running: list[Tenant]) -> tuple[float, float, Curve | None]:
        mem_mhz = max(self._tables.models) if self._now.mem_mhz is None else self._now.mem_mhz
        if not running:
            return self._idle_w, 0.0, None
        curve, power_w, throughput = self._true(mem_mhz, partition_of(running))
        clocks = self._tables.platform.sm_mhz
        at = at_most(
            clocks,
            self._tables.platform.anchor_mhz if self._now.sm_mhz is None else self._now.sm_mhz,
        )
        limit_w = (
            self._tables.platform.tdp_w
            if self._now.power_limit_w is None
            else self._now.power_limit_w
        )
        if power_w[at] <= limit_w:
            return float(power_w[at]), float(throughput[at]), curve
        below = [state for state in range(at) if power_w[state] <= limit_w]
        if not below:
            return float(power_w[0]), float(throughput[0]), curve
        # The driver goes to and fro between the two states around the limit, so that it is kept on
        # average.
        low, high = below[-1], below[-1] + 1
        part = float((limit_w - power_w[low]) / (power_w[high] - power_w[low]))
        return (
            float(limit_w),
            float(throughput[low] + part * (throughput[high] - throughput[low])),
            curve,
        )


def batches() -> tuple[int, ...]:
    return tuple(sorted({*every_batch(), *(one.batches[0] for one in catalog.grid())}))


def _signed(size: float, bit: int) -> float:
    return size if bit % 2 else -size
