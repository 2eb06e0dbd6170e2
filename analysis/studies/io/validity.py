"""Which figures of a run may be believed, and why the others are refused.

A run with few steps measures what its readers fetched before the first step ended.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from .terms import Doubt, Epoch, IoRun

ROUNDING = 0.005  # of an epoch: by so much the clocks of its steps and of its ends may disagree
DLIO_UNCOUNTED_STEPS = 2  # hard-coded in DLIO since 2.0.0, whatever is excluded
STEADY, WHOLE, RATE = "au_steady_percent", "au_whole_percent", "samples_per_s_whole"
AU, SHARES = (STEADY, WHOLE), ("first_step_share", "barrier_share")
WAYS = ("steady", "whole", "dlio")

# How far pages may be off before an epoch, as the workload sees to it.
COLD_AT_MOST, WARM_AT_LEAST = 0.01, 0.99
# Of the bytes of the data set. Cold: what lies between is directories and read-ahead; more was read twice. Warm: stray pages.
COLD_FETCHES, WARM_FETCHES = (0.95, 1.05), 0.01
# Python and its libraries, whose pages may be gone too: what they may add to a warm epoch, and to a cold one, in which they go first (a
# single page of a library brings up to `read_ahead_kb` around it).
OWN_BYTES, OWN_COLD_BYTES = 1_000_000, 64_000_000
LEAST_RETAINED = 10
HIGHEST_AU_PERCENT = 100.5  # the clock of the computation may tick a little past that of the epoch
# AU as the job would have it lies between that of the time asked for and that of the time clocked: a sleep that ends late is waiting that
# readers use. Quiet machines sleep 0.1 % longer (0.3233 s for 0.323 s); beyond 5 % the two are further apart than runs may be.
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
    """Return which steps of a block remain when the excluded ones are left out at its start and end."""
    first = min(run.excluded_start_steps, block.steps)
    return range(first, max(first, block.steps - run.excluded_end_steps))


def fewest_steps(run: IoRun) -> tuple[int, int]:
    """Return the steps of the shortest epoch of a rank, and how many of them are retained at least."""
    counts: dict[tuple[int, int], tuple[int, int]] = {}
    for epoch in run.epochs:
        steps, rest = counts.get((epoch.number, epoch.rank), (0, 0))
        counts[epoch.number, epoch.rank] = steps + epoch.steps, rest + len(retained(epoch, run))
    return min(steps for steps, _ in counts.values()), min(rest for _, rest in counts.values())


def cannot_be(name: str, values: Sequence[float]) -> str | None:
    """Return why the values of one figure are impossible: not a number, negative, or more than can be."""
    if not values:
        return "it was not recorded"
    if not all(map(math.isfinite, values)):
        return "it is not a number: the times in the file contradict each other"
    if name in SHARES and not 0 <= min(values) <= max(values) <= 1:
        return "it is below 0 or above 1, which is impossible for a share"
    if min(values) < 0:
        return "it is below 0, which is impossible for a utilisation or a rate"
    if name in AU and max(values) > HIGHEST_AU_PERCENT:
        return f"it is {max(values):.1f} %, more than {HIGHEST_AU_PERCENT} %: computation longer than the epoch it was in"
    return None


def overslept(run: IoRun) -> float | None:
    """Return how long a computation took on average, of what was asked for; None where that is not one time, or none."""
    asked_s = run.computation_time_s
    if not asked_s or not run.epochs or isinstance(run.params.get("computation_time"), Mapping):
        return None
    return math.fsum(math.fsum(epoch.compute_s) for epoch in run.epochs) / sum(epoch.steps for epoch in run.epochs) / asked_s


def doubts(run: IoRun) -> Iterator[Doubt]:
    """Yield what the steps of a run speak against; `cannot_be` finds figures that are impossible."""
    too_long = next((epoch for epoch in run.epochs if math.fsum(epoch.busy_s) > epoch.duration_s * (1 + ROUNDING)), None)
    if too_long is not None:
        where, took_s = f"rank {too_long.rank}, epoch {too_long.number}", math.fsum(too_long.busy_s)
        took = f"load and computation took {took_s:.3f} s of {too_long.duration_s:.3f} s"
        yield Doubt("times", f"{where}: {took}: step lists and clock are not of one run", EVERY)
    state = next(_cache_contradictions(run), None)
    if state is not None:
        yield Doubt("cache", state, EVERY)
    steps, kept = fewest_steps(run)
    yield from _too_few_steps(run, steps, kept)
    if not any(any(epoch.compute_s) for epoch in run.epochs):
        yield Doubt("nothing computed", "there was no computation: utilisation is 0 whatever the input does", AU)
    ratio = overslept(run)
    if ratio is not None and ratio > OVERSLEPT:
        asked = f"{1000 * (run.computation_time_s or 0.0):.4g} ms"
        yield Doubt("oversleep", f"computations of {asked} took {ratio:.2f} times as long, and AU would call that computing", AU)


def _too_few_steps(run: IoRun, steps: int, kept: int) -> Iterator[Doubt]:
    count = "1 step" if steps == 1 else f"{steps} steps"
    ahead = (run.read_threads or 0) * (run.prefetch_factor or 0)
    if steps <= DLIO_UNCOUNTED_STEPS:
        yield Doubt("degenerate", f"{count} per epoch: DLIO counts S - 2 = {steps - DLIO_UNCOUNTED_STEPS} of them", OF_DLIO)
    if not kept:
        yield Doubt("degenerate", f"{count} per epoch, and none is left after the excluded ones", WITHOUT_FIRST)
    why = []
    if kept < LEAST_RETAINED:
        why.append(f"{count} per epoch leave {kept} after the excluded ones (at least {LEAST_RETAINED})")
    if steps - 1 < 2 * ahead:
        fetched = f"{run.read_threads} readers x {run.prefetch_factor} batches are fetched during the first, excluded step"
        why.append(f"{fetched}, so at least {2 * ahead} must follow it, and {steps - 1} do")
    if why:
        yield Doubt("insufficient_steps", "; ".join(why), WITHOUT_FIRST)


# The page cache: whether it was in the state that a run's `cache` parameter names, by resident pages and by what was fetched. A figure of
# storage that was read from memory is one of memory, and the other way round. What was not recorded speaks against nothing.


def _cache_contradictions(run: IoRun) -> Iterator[str]:
    state = str(run.params.get("cache", ""))
    if state not in {"cold", "warm"}:
        return
    for number in sorted({epoch.number for epoch in run.epochs}):
        ranks = [epoch for epoch in run.epochs if epoch.number == number]
        before = [rank.resident_before for rank in ranks if rank.resident_before is not None]
        worst = (max if state == "cold" else min)(before, default=None)
        if worst is not None and (worst > COLD_AT_MOST if state == "cold" else worst < WARM_AT_LEAST):
            limit = f"at most {COLD_AT_MOST:.0%}" if state == "cold" else f"at least {WARM_AT_LEAST:.0%}"
            yield f"cache={state}, and {worst:.1%} of the data set was in memory when epoch {number} began ({limit})"
        size, counts = run.dataset.get("bytes"), [rank.read_bytes for rank in ranks]
        if isinstance(size, int | float) and size > 0 and None not in counts:
            fetched = sum(count or 0 for count in counts)
            limit = _fetch_limit(run, state, ranks, fetched, size)
            if limit:
                yield f"cache={state}, and epoch {number} fetched {fetched / size:.1%} of the data set from a device{limit}"


def _fetch_limit(run: IoRun, state: str, ranks: Sequence[Epoch], fetched: float, size: float) -> str:
    """Return the limit that an epoch's fetches from a device break, measured against what it went through of the data set; else ""."""
    # What comes from a device while all of the data set is locked in memory is Python and its libraries.
    own_bytes = OWN_COLD_BYTES if any(rank.locked for rank in ranks) else OWN_BYTES
    if state == "warm":
        return f" (at most {WARM_FETCHES:.0%})" if fetched > max(WARM_FETCHES * size, own_bytes) else ""
    least, most = COLD_FETCHES
    # Where no device lies below the files, nobody counts what is fetched.
    counted = fetched > 0 or any(rank.device_read_bytes is not None for rank in ranks)
    if counted and fetched < least * _needed_bytes(run, ranks, size):
        return f" (at least {least:.0%} of what it read)"
    return f": part of it was read twice (at most {most:.0%})" if fetched > most * size + OWN_COLD_BYTES else ""


def _needed_bytes(run: IoRun, ranks: Sequence[Epoch], size: float) -> float:
    """Return the bytes that all steps of an epoch need; of a part of the data set, no more than was asked for: sizes of files differ."""
    files, each = run.dataset.get("files"), run.dataset.get("samples_per_file", 1)
    if not isinstance(files, int) or not isinstance(each, int) or files * each < 1:
        return 0.0
    share = sum(rank.steps for rank in ranks) * (run.batch_size or 0) / (files * each)
    return size if share >= 1 else min(share * size, sum(rank.rchar_bytes or 0 for rank in ranks))
