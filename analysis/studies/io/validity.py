"""The validity of a run's figures: which are refused, and why.

A run with few steps measures what its readers prefetched during the first step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from .terms import Doubt, Epoch, IoRun

ROUNDING = 0.005  # of an epoch: tolerated disagreement of the clocks of steps and epoch
DLIO_UNCOUNTED_STEPS = 2  # hard-coded in DLIO since 2.0.0, whatever is excluded
STEADY, WHOLE, RATE = "au_steady_percent", "au_whole_percent", "samples_per_s_whole"
AU, SHARES = (STEADY, WHOLE), ("first_step_share", "barrier_share")
WAYS = ("steady", "whole", "dlio")

# Tolerated pages before an epoch, as ensured by the workload.
COLD_AT_MOST, WARM_AT_LEAST = 0.01, 0.99
# Fractions of the data set. Cold: the margin is for directories and read-ahead; more was read
# twice. Warm: stray pages.
COLD_FETCHES, WARM_FETCHES = (0.95, 1.05), 0.01
# Python and its libraries, whose pages may be evicted too: their contribution to a warm epoch, and
# to a cold one, where they are evicted first (one page of a library reads up to `read_ahead_kb`
# around it).
OWN_BYTES, OWN_COLD_BYTES = 1_000_000, 64_000_000
LEAST_RETAINED = 10
HIGHEST_AU_PERCENT = 100.5  # the computation's clock may slightly exceed the epoch's
# The job's intended AU lies between those of the configured and the clocked time: a sleep that ends
# late is waiting, which readers use. Quiet machines sleep 0.1 % longer (0.3233 s for 0.323 s);
# beyond 5 %, both differ more than runs may.
OVERSLEPT = 1.05
OF_DLIO = ("samples_per_s_dlio", "mb_per_s_nominal_dlio")
WITHOUT_FIRST = (STEADY, "samples_per_s_steady", "mb_per_s_nominal_steady", *OF_DLIO)
EVERY = (
    *AU,
    *(f"{rate}_{way}" for rate in ("samples_per_s", "mb_per_s_nominal") for way in WAYS),
    *SHARES,
    *("mb_per_s_read", "mb_per_s_fetched", "device_mb_per_s"),
)


def retained(block: Epoch, run: IoRun) -> range:
    """Return the steps of a block that remain after the excluded ones at its start and end."""
    first = min(run.excluded_start_steps, block.steps)
    return range(first, max(first, block.steps - run.excluded_end_steps))


def fewest_steps(run: IoRun) -> tuple[int, int]:
    """Return the steps of a rank's shortest epoch, and the fewest retained ones."""
    counts: dict[tuple[int, int], tuple[int, int]] = {}
    for epoch in run.epochs:
        steps, rest = counts.get((epoch.number, epoch.rank), (0, 0))
        counts[epoch.number, epoch.rank] = steps + epoch.steps, rest + len(retained(epoch, run))
    return min(steps for steps, _ in counts.values()), min(rest for _, rest in counts.values())


def cannot_be(name: str, values: Sequence[float]) -> str | None:
    """Return why the values of one figure are impossible: NaN, negative or too large."""
    if not values:
        return "it was not recorded"
    if not all(map(math.isfinite, values)):
        return "it is not a number: the times in the file contradict each other"
    if name in SHARES and not 0 <= min(values) <= max(values) <= 1:
        return "it is below 0 or above 1, which is impossible for a share"
    if min(values) < 0:
        return "it is below 0, which is impossible for a utilisation or a rate"
    if name in AU and max(values) > HIGHEST_AU_PERCENT:
        return (
            f"it is {max(values):.1f} %, more than {HIGHEST_AU_PERCENT} %: the computation was "
            "longer than the epoch"
        )
    return None


def overslept(run: IoRun) -> float | None:
    """Return the mean computation time relative to the configured one, if that is one time."""
    asked_s = run.computation_time_s
    if not asked_s or not run.epochs or isinstance(run.params.get("computation_time"), Mapping):
        return None
    return (
        math.fsum(math.fsum(epoch.compute_s) for epoch in run.epochs)
        / sum(epoch.steps for epoch in run.epochs)
        / asked_s
    )


def doubts(run: IoRun) -> Iterator[Doubt]:
    """Yield doubts about a run's steps; `cannot_be` finds impossible figures."""
    too_long = next(
        (
            epoch
            for epoch in run.epochs
            if math.fsum(epoch.busy_s) > epoch.duration_s * (1 + ROUNDING)
        ),
        None,
    )
    if too_long is not None:
        where, took_s = f"rank {too_long.rank}, epoch {too_long.number}", math.fsum(too_long.busy_s)
        took = f"load and computation took {took_s:.3f} s of {too_long.duration_s:.3f} s"
        yield Doubt(
            "times", f"{where}: {took}: step lists and clock belong to different runs", EVERY
        )
    state = next(_cache_contradictions(run), None)
    if state is not None:
        yield Doubt("cache", state, EVERY)
    steps, kept = fewest_steps(run)
    yield from _too_few_steps(run, steps, kept)
    if not any(any(epoch.compute_s) for epoch in run.epochs):
        yield Doubt("nothing computed", "there was no computation: utilisation is always 0", AU)
    ratio = overslept(run)
    if ratio is not None and ratio > OVERSLEPT:
        asked = f"{1000 * (run.computation_time_s or 0.0):.4g} ms"
        yield Doubt(
            "oversleep",
            f"computations of {asked} took {ratio:.2f} times as long, which AU would count as "
            "computing",
            AU,
        )


def _too_few_steps(run: IoRun, steps: int, kept: int) -> Iterator[Doubt]:
    count = "1 step" if steps == 1 else f"{steps} steps"
    ahead = (run.read_threads or 0) * (run.prefetch_factor or 0)
    if steps <= DLIO_UNCOUNTED_STEPS:
        yield Doubt(
            "degenerate",
            f"{count} per epoch: DLIO counts S - 2 = {steps - DLIO_UNCOUNTED_STEPS} of them",
            OF_DLIO,
        )
    if not kept:
        yield Doubt(
            "degenerate", f"{count} per epoch: none remains after the excluded ones", WITHOUT_FIRST
        )
    why = []
    if kept < LEAST_RETAINED:
        why.append(
            f"{count} per epoch leave {kept} after the excluded ones (at least {LEAST_RETAINED} "
            "required)"
        )
    if steps - 1 < 2 * ahead:
        fetched = (
            f"{run.read_threads} readers x {run.prefetch_factor} batches are fetched during the "
            "first, excluded step"
        )
        why.append(f"{fetched}, so at least {2 * ahead} must follow it, but only {steps - 1} do")
    if why:
        yield Doubt("insufficient_steps", "; ".join(why), WITHOUT_FIRST)


# The page cache: was it in the state of the `cache` parameter, by resident pages and fetched bytes?
# A storage figure that was read from memory is a memory figure, and vice versa. Unrecorded facts
# raise no doubt.


def _cache_contradictions(run: IoRun) -> Iterator[str]:
    state = str(run.params.get("cache", ""))
    if state not in {"cold", "warm"}:
        return
    for number in sorted({epoch.number for epoch in run.epochs}):
        ranks = [epoch for epoch in run.epochs if epoch.number == number]
        before = [rank.resident_before for rank in ranks if rank.resident_before is not None]
        worst = (max if state == "cold" else min)(before, default=None)
        if worst is not None and (
            worst > COLD_AT_MOST if state == "cold" else worst < WARM_AT_LEAST
        ):
            limit = (
                f"at most {COLD_AT_MOST:.0%}"
                if state == "cold"
                else f"at least {WARM_AT_LEAST:.0%}"
            )
            yield (
                f"cache={state}, but {worst:.1%} of the data set was in memory at the start of "
                f"epoch {number} ({limit})"
            )
        size, counts = run.dataset.get("bytes"), [rank.read_bytes for rank in ranks]
        if isinstance(size, int | float) and size > 0 and None not in counts:
            fetched = sum(count or 0 for count in counts)
            limit = _fetch_limit(run, state, ranks, fetched, size)
            if limit:
                yield (
                    f"cache={state}, but epoch {number} fetched {fetched / size:.1%} of the data "
                    f"set from a device{limit}"
                )


def _fetch_limit(
    run: IoRun, state: str, ranks: Sequence[Epoch], fetched: float, size: float
) -> str:
    """Return the limit that an epoch's device fetches violate, relative to its reads; or ""."""
    # With the whole data set locked in memory, only Python and its libraries come from a device.
    own_bytes = OWN_COLD_BYTES if any(rank.locked for rank in ranks) else OWN_BYTES
    if state == "warm":
        return (
            f" (at most {WARM_FETCHES:.0%})"
            if fetched > max(WARM_FETCHES * size, own_bytes)
            else ""
        )
    least, most = COLD_FETCHES
    # If no device is below the files, fetches are not counted.
    counted = fetched > 0 or any(rank.device_read_bytes is not None for rank in ranks)
    if counted and fetched < least * _needed_bytes(run, ranks, size):
        return f" (at least {least:.0%} of what it read)"
    return (
        f": part of it was read twice (at most {most:.0%})"
        if fetched > most * size + OWN_COLD_BYTES
        else ""
    )


def _needed_bytes(run: IoRun, ranks: Sequence[Epoch], size: float) -> float:
    """Return the bytes needed by an epoch's steps, at most those requested: file sizes differ."""
    files, each = run.dataset.get("files"), run.dataset.get("samples_per_file", 1)
    if not isinstance(files, int) or not isinstance(each, int) or files * each < 1:
        return 0.0
    share = sum(rank.steps for rank in ranks) * (run.batch_size or 0) / (files * each)
    return size if share >= 1 else min(share * size, sum(rank.rchar_bytes or 0 for rank in ranks))
