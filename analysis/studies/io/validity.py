"""Which figures of a run may be believed, and why the others are refused.

A run with few steps measures what its readers fetched before the first step ended.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean
from typing import TYPE_CHECKING, TypeGuard

from .reckoning import DLIO_UNCOUNTED_STEPS, ROUNDING, retained
from .terms import Doubt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .terms import Epoch, IoRun

# As far as a workload lets pages be off before an epoch.
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
SHORTEST_S = 1.0  # below it, what DLIO does between two stamps is of the figure's own size
AGREES_PERCENT, AGREES = 0.1, 0.01
AU = ("au_steady_percent", "au_whole_percent")
SHARES = ("first_step_share", "barrier_share")
STEADY = ("au_steady_percent", "samples_per_s_steady", "samples_per_s_dlio", "mb_per_s_nominal_steady", "mb_per_s_nominal_dlio")
DLIO = ("samples_per_s_dlio", "mb_per_s_nominal_dlio")
EVERY = (
    *STEADY,
    "au_whole_percent",
    "samples_per_s_whole",
    "mb_per_s_nominal_whole",
    "mb_per_s_read",
    "mb_per_s_fetched",
    "device_mb_per_s",
    "first_step_share",
    "barrier_share",
)


def fewest_steps(run: IoRun) -> tuple[int, int]:
    """The steps of the shortest epoch of a rank, and how many of them are retained."""
    steps, kept = dict[tuple[int, int], int](), dict[tuple[int, int], int]()
    for epoch in run.epochs:
        at = (epoch.number, epoch.rank)
        steps[at] = steps.get(at, 0) + epoch.steps
        kept[at] = kept.get(at, 0) + len(retained(epoch, run.excluded_start_steps, run.excluded_end_steps))
    return min(steps.values()), min(kept.values())


def cannot_be(name: str, values: Sequence[float]) -> str | None:
    """Say why values of one figure are none, where they are not a number, negative, or more than can be."""
    if not values:
        return "nothing was recorded of it"
    if any(not math.isfinite(value) for value in values):
        return "it comes out as no number: the times of the file contradict each other"
    if name in SHARES and not 0 <= min(values) <= max(values) <= 1:
        return "it comes out below 0 or above 1, which no part of an epoch can be"
    if min(values) < 0:
        return "it comes out below 0, which no utilisation and no rate can be"
    if name in AU and max(values) > HIGHEST_AU_PERCENT:
        return f"it comes out at {max(values):.1f} %, more than {HIGHEST_AU_PERCENT} %: computation longer than the epoch it was in"
    return None


def overslept(run: IoRun) -> float | None:
    """How long a computation took on average, of what was asked for; None where that is not one time, or none."""
    asked_s = run.computation_time_s
    if not asked_s or not run.epochs or isinstance(run.params.get("computation_time"), Mapping):
        return None
    return math.fsum(map(math.fsum, (epoch.compute_s for epoch in run.epochs))) / sum(epoch.steps for epoch in run.epochs) / asked_s


def contradicts_itself(run: IoRun) -> str | None:
    """Say where load and computation took longer than the epoch that they are parts of; None where nowhere."""
    for epoch in run.epochs:
        parts_s = math.fsum(epoch.busy_s)
        if parts_s > epoch.duration_s * (1 + ROUNDING):
            where = f"rank {epoch.rank}, epoch {epoch.number}"
            return (
                f"{where}: load and computation took {parts_s:.3f} s of {epoch.duration_s:.3f} s: step lists and clock are not of one run"
            )
    return None


def doubts(run: IoRun) -> Iterator[Doubt]:
    """Say what the steps of a run speak against; `cannot_be` finds figures that are none."""
    wrong = contradicts_itself(run)
    if wrong is not None:
        yield Doubt("times", wrong, EVERY)
    state = not_as_named(run)
    if state is not None:
        yield Doubt("cache", state, EVERY)
    steps, kept = fewest_steps(run)
    ahead = (run.read_threads or 0) * (run.prefetch_factor or 0)
    if steps <= DLIO_UNCOUNTED_STEPS:
        yield Doubt("degenerate", f"{_steps(steps)} an epoch: DLIO counts S - 2 = {steps - DLIO_UNCOUNTED_STEPS} of them", DLIO)
    if not kept:
        yield Doubt("degenerate", f"{_steps(steps)} an epoch, and none is left after the excluded ones", STEADY)
    why = []
    if kept < LEAST_RETAINED:
        why.append(f"{_steps(steps)} an epoch leave {kept} after the excluded ones (at least {LEAST_RETAINED})")
    if steps - 1 < 2 * ahead:
        fetched = f"{run.read_threads} readers x {run.prefetch_factor} batches are fetched during the first, excluded step"
        why.append(f"{fetched}, so at least {2 * ahead} must follow it, and {steps - 1} do")
    if why:
        yield Doubt("insufficient_steps", "; ".join(why), STEADY)
    if not any(any(epoch.compute_s) for epoch in run.epochs):
        yield Doubt("nothing computed", "no time was computed: utilisation is 0 whatever the input does", AU)
    ratio = overslept(run)
    if ratio is not None and ratio > OVERSLEPT:
        asked = f"{1000 * (run.computation_time_s or 0.0):.4g} ms"
        yield Doubt("oversleep", f"computations of {asked} took {ratio:.2f} times as long, and AU would call that computing", AU)


def excludes_its_own(run: IoRun) -> bool:
    """Whether the steps left out are those that the source left out: only then are its figures the same ones."""
    ways = (("exclude_start_steps", run.excluded_start_steps), ("exclude_end_steps", run.excluded_end_steps))
    return all(run.params.get(name, steps) == steps for name, steps in ways)


def contradictions(run: IoRun, au_per_epoch: Sequence[float], rate_per_epoch: Sequence[float]) -> list[Doubt]:
    """Say where a source's own AU and samples/s, averaged over epochs, are not those of its step lists.

    DLIO ends a block twice where a checkpoint follows it; the second call moves the end that its figures are reckoned with, not the one it
    saves. In an epoch shorter than a second that is a good part, and no figure stands.
    """
    if not excludes_its_own(run):
        return []
    lines = [run.reported.get(name) for name in ("train_au_percentage", "train_throughput_samples_per_second")]
    epochs = len(au_per_epoch)
    counts = [len(values) for values in lines if isinstance(values, list)]
    if any(count != epochs for count in counts):
        return [Doubt("contradiction", f"{counts[0]} epochs are reported, and step lists of {epochs} are there")]
    au, rate = (fmean(values) if is_numbers(values) else None for values in lines)
    result = []
    if au is not None and not abs(au - fmean(au_per_epoch)) <= AGREES_PERCENT:
        result.append(f"AU was reported as {au:.2f} %, and the step lists give {fmean(au_per_epoch):.2f} %")
    if rate is not None and rate < 0:
        result.append("samples/s were reported below 0")
    elif rate is not None and rate_per_epoch and not abs(rate - fmean(rate_per_epoch)) <= AGREES * abs(rate):
        result.append(f"samples/s were reported as {rate:.2f}, and the step lists give {fmean(rate_per_epoch):.2f}")
    shortest_s = min(epoch.duration_s for epoch in run.epochs)
    if result and shortest_s < SHORTEST_S:
        reason = f"an epoch took {shortest_s:.2f} s, and by so much the end that DLIO reckons with was moved that {'; '.join(result)}"
        return [Doubt("degenerate", reason, EVERY)]
    return [Doubt("contradiction", "; ".join(result))] if result else []


def is_numbers(values: object) -> TypeGuard[list[float]]:
    """Whether a source reported finite numbers, one at least."""
    return isinstance(values, list) and bool(values) and all(isinstance(value, int | float) and math.isfinite(value) for value in values)


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


# The page cache: whether it was in the state that a run's `cache` parameter names, by resident pages and by what was fetched. A figure of
# storage that was read from memory is one of memory, and the other way round: either is another run's.


def not_as_named(run: IoRun) -> str | None:
    """Say what speaks against the state that was asked for; what was not recorded speaks against nothing."""
    return next(_against(run), None)


def _against(run: IoRun) -> Iterator[str]:
    state = str(run.params.get("cache", ""))
    if state not in {"cold", "warm"}:
        return
    numbers = sorted({epoch.number for epoch in run.epochs})
    for number in numbers:
        ranks = [epoch for epoch in run.epochs if epoch.number == number]
        before = [rank.resident_before for rank in ranks if rank.resident_before is not None]
        if state == "cold" and before and max(before) > COLD_AT_MOST:
            yield f"cache=cold, and {max(before):.1%} of the data set was in memory when epoch {number} began ({COLD_AT_MOST:.0%} may be)"
        if state == "warm" and before and min(before) < WARM_AT_LEAST:
            yield f"cache=warm, and {min(before):.1%} of the data set was in memory when epoch {number} began ({WARM_AT_LEAST:.0%} must be)"
        yield from _fetched(run, state, number, ranks)


def _fetched(run: IoRun, state: str, number: int, ranks: Sequence[Epoch]) -> Iterator[str]:
    """Hold what an epoch fetched from a device against what it went through of the data set."""
    size, counts = run.dataset.get("bytes"), [rank.read_bytes for rank in ranks]
    if not isinstance(size, int | float) or size <= 0 or any(count is None for count in counts):
        return
    fetched = sum(count for count in counts if count is not None)
    text = f"cache={state}, and epoch {number} fetched {fetched / size:.1%} of the data set from a device"
    # What comes from a device while all of the data set is locked in memory is Python and its libraries.
    own_bytes = OWN_COLD_BYTES if any(rank.locked for rank in ranks) else OWN_BYTES
    if state == "warm" and fetched > max(WARM_FETCHES * size, own_bytes):
        yield f"{text} ({WARM_FETCHES:.0%} may be)"
    if state == "cold":
        # Where no device lies below the files, nobody counts what is fetched.
        counted = fetched > 0 or any(rank.device_read_bytes is not None for rank in ranks)
        least, most = COLD_FETCHES
        if counted and fetched < least * _went_through(run, ranks, size):
            yield f"{text} ({least:.0%} of what it read must be)"
        if fetched > most * size + OWN_COLD_BYTES:
            yield f"{text}: part of it was read twice ({most:.0%} may be)"


def _went_through(run: IoRun, ranks: Sequence[Epoch], size: float) -> float:
    """Bytes that all steps of an epoch need; of a part of the data set, no more than was asked for: sizes of files differ."""
    files, each = run.dataset.get("files"), run.dataset.get("samples_per_file", 1)
    if not isinstance(files, int) or not isinstance(each, int) or files * each < 1:
        return 0.0
    share = sum(rank.steps for rank in ranks) * (run.batch_size or 0) / (files * each)
    asked = [rank.rchar_bytes for rank in ranks]
    if share >= 1:
        return size
    return min(share * size, sum(count or 0 for count in asked))
