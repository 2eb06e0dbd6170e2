"""The figures of a run: utilisation, throughput and shares of its epochs, or why they are refused.

T is the wall time of a block, including barriers and the readers' end; the steps excluded at its
start and end subtract their load and computation from it (T*), and their computation from the sum
(C*). A run with few steps measures what its readers prefetched during the first one.

Source: DLIO, `dlio_benchmark/utils/statscounter.py` (Devarajan et al., CCGrid 2021).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import fmean
from typing import Any, NamedTuple

from .terms import GIB, MIB, Doubt, Epoch, IoRun

ROUNDING = 0.005  # of an epoch: tolerated disagreement of the clocks of steps and epoch
DLIO_UNCOUNTED_STEPS = 2  # hard-coded in DLIO since 2.0.0, whatever is excluded
STEADY, WHOLE, RATE = "au_steady_percent", "au_whole_percent", "samples_per_s_whole"
AU, SHARES = (STEADY, WHOLE), ("first_step_share", "barrier_share")
WAYS = ("steady", "whole", "dlio")
CHECKPOINT, OVERSLEEP = "checkpoint_gb_per_s", "oversleep"

# Tolerated pages before an epoch, as ensured by the workload.
COLD_AT_MOST, WARM_AT_LEAST = 0.01, 0.99
# Fractions of the data set. Cold: the margin is for directories and read-ahead; more was read
# twice. Warm: stray pages.
COLD_FETCHES, WARM_FETCHES = (0.95, 1.05), 0.01
# Python and its libraries, whose pages may be evicted too: their contribution to a warm epoch, and
# to a cold one (one page of a library reads up to `read_ahead_kb` around it).
OWN_BYTES, OWN_COLD_BYTES = 1_000_000, 64_000_000
LEAST_RETAINED = 10
HIGHEST_AU_PERCENT = 100.5
# A sleep that ends late is waiting, which readers use. Quiet machines sleep 0.1 % longer.
OVERSLEPT = 1.05
OF_DLIO = ("samples_per_s_dlio", "mb_per_s_nominal_dlio")
WITHOUT_FIRST = (STEADY, "samples_per_s_steady", "mb_per_s_nominal_steady", *OF_DLIO)
EVERY = (
    *AU,
    *(f"{rate}_{way}" for rate in ("samples_per_s", "mb_per_s_nominal") for way in WAYS),
    *SHARES,
    *("mb_per_s_read", "mb_per_s_fetched", "device_mb_per_s"),
)
OMITTED = {"epochs", "checkpoints", "dlio_counts_all"}


@dataclass(frozen=True, slots=True)
class IoFigure:
    """One figure of one run. `value` is None exactly if `why_missing` has a reason.

    `per_epoch` is the formula's result for each epoch of the job, even for a refused figure. Epochs
    are not replicates: there is no interval.
    """

    value: float | None
    why_missing: str | None = None
    per_epoch: tuple[float, ...] = ()


class Identity(NamedTuple):
    """Throughput relative to AU × batch × processes / t_c, unless it cannot be computed.

    `nominal` is with the configured t_c; `measured` with the clocked one, and 1 if figures and step
    lists belong together.
    """

    nominal: float | None = None
    measured: float | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A run's figures by name, and all doubts about them.

    `nominal`: AU is computed with the configured computation time, not as clocked.
    """

    run: IoRun
    responses: Mapping[str, IoFigure]
    doubts: tuple[Doubt, ...]
    identity: Identity
    nominal: bool = False

    def value(self, name: str) -> float | None:
        return self.responses[name].value


def judge(run: IoRun, *, nominal: bool = False) -> Judged:
    epochs: dict[int, dict[int, list[Epoch]]] = defaultdict(lambda: defaultdict(list))
    for epoch in sorted(run.epochs, key=lambda epoch: (epoch.number, epoch.rank, epoch.block)):
        epochs[epoch.number][epoch.rank].append(epoch)
    jobs = [_job_figures([*ranks.values()], run, nominal=nominal) for ranks in epochs.values()]
    found = list(doubts(run))
    if nominal:
        found = [replace(one, refuses=()) if one.kind == OVERSLEEP else one for one in found]
    found.sort(key=lambda doubt: (doubt.kind != "degenerate", doubt.refuses != EVERY))
    responses = {name: _figure(name, [job[name] for job in jobs], found) for name in EVERY}
    responses[CHECKPOINT] = _checkpoint(run)
    return Judged(run, responses, tuple(found), _identity(run, jobs, found), nominal)


def judged_alike(judged: Sequence[Judged]) -> list[Judged]:
    """Compute AU the same way within each saved run: from configured times if sleeps ended late.

    Refusing only those runs would compare idle machines with busy ones. DLIO folders are judged as
    DLIO computes.
    """
    late = {
        one.run.origin
        for one in judged
        if one.run.block is not None and any(doubt.kind == OVERSLEEP for doubt in one.doubts)
    }
    return [
        replace(judge(one.run, nominal=True), identity=one.identity)
        if one.run.origin in late and one.run.computation_time_s
        else one
        for one in judged
    ]


def _figure(name: str, jobs: Sequence[float | None], against: Iterable[Doubt]) -> IoFigure:
    known = [value for value in jobs if value is not None]
    values = known if len(known) == len(jobs) else []
    refused = (f"{doubt.kind}: {doubt.reason}" for doubt in against if name in doubt.refuses)
    reason = (next(refused, None) if values else None) or cannot_be(name, values)
    return IoFigure(fmean(values) if reason is None else None, reason, tuple(values))


def _job_figures(
    job: Sequence[Sequence[Epoch]], run: IoRun, *, nominal: bool
) -> dict[str, float | None]:
    """Return means over ranks of shares, sums of rates; None without counted bytes."""
    ranks = [_rank_figures(blocks, run, nominal=nominal) for blocks in job]
    result: dict[str, float | None] = {}
    for name in ranks[0]:
        known = [value for figures in ranks if (value := figures[name]) is not None]
        combine = math.fsum if "_per_s" in name else fmean
        result[name] = combine(known) if len(known) == len(ranks) else None
    mb = run.record_length_bytes / MIB
    for way in WAYS:
        result[f"mb_per_s_nominal_{way}"] = (result[f"samples_per_s_{way}"] or 0.0) * mb
    # Some ranks only look at the device.
    looked = [block for blocks in job for block in blocks if block.device_read_bytes is not None]
    counts = [block.device_read_bytes for block in looked]
    span_s = math.fsum(block.duration_s for block in looked)
    return result | {"device_mb_per_s": _bytes_rate(counts, span_s) if span_s > 0 else None}


def _rank_figures(blocks: Sequence[Epoch], run: IoRun, *, nominal: bool) -> dict[str, float | None]:
    asked_s = run.computation_time_s if nominal else None

    def computed_s(block: Epoch, part: range) -> float:
        clocked = block.compute_s[part.start : part.stop]
        return math.fsum(clocked) if asked_s is None else len(part) * asked_s

    def weighted(values: Iterable[float]) -> float:
        return math.fsum(map(math.prod, zip(values, steps, strict=True))) / sum(steps)

    batch, steps = run.batch_size, [block.steps for block in blocks]
    kept = [(block, retained(block, run)) for block in blocks]
    wall_s = [block.duration_s for block in blocks]
    total_s = math.fsum(wall_s)  # checkpoints lie between blocks
    steady_s = [
        block.duration_s
        - math.fsum(time_s for at, time_s in enumerate(block.busy_s) if at not in part)
        for block, part in kept
    ]
    in_steady = [
        _percent(computed_s(*one), span_s) for one, span_s in zip(kept, steady_s, strict=True)
    ]
    in_total = math.fsum(computed_s(block, range(block.steps)) for block in blocks)
    counted = steps if run.dlio_counts_all else [count - DLIO_UNCOUNTED_STEPS for count in steps]
    dlio_s = wall_s if run.dlio_counts_all else steady_s
    by_dlio = [_rate(count * batch, span_s) for count, span_s in zip(counted, dlio_s, strict=True)]
    barrier = 1 - _rate(math.fsum(math.fsum(block.busy_s) for block in blocks), total_s)
    return {
        STEADY: weighted(in_steady),
        WHOLE: _percent(in_total, total_s),
        "samples_per_s_steady": _rate(
            sum(len(part) for _, part in kept) * batch, math.fsum(steady_s)
        ),
        RATE: _rate(sum(steps) * batch, total_s),
        "samples_per_s_dlio": weighted(by_dlio),
        "first_step_share": _rate(blocks[0].load_s[0], total_s),
        "barrier_share": 0.0 if -ROUNDING <= barrier < 0 else barrier,
        "mb_per_s_read": _bytes_rate([block.rchar_bytes for block in blocks], total_s),
        "mb_per_s_fetched": _bytes_rate([block.read_bytes for block in blocks], total_s),
    }


def _bytes_rate(counts: Sequence[int | None], span_s: float) -> float | None:
    known = [count for count in counts if count is not None]
    return _rate(sum(known), span_s) / MIB if len(known) == len(counts) else None


def _percent(compute_s: float, span_s: float) -> float:
    return 0.0 if compute_s == 0 else 100 * _rate(compute_s, span_s)


def _rate(amount: float, span_s: float) -> float:
    return amount / span_s if span_s > 0 else math.nan


def _checkpoint(run: IoRun) -> IoFigure:
    sizes = [checkpoint.bytes for checkpoint in run.checkpoints if checkpoint.bytes is not None]
    span_s = math.fsum(checkpoint.duration_s for checkpoint in run.checkpoints)
    if len(sizes) == len(run.checkpoints) and span_s > 0:
        return IoFigure(math.fsum(sizes) / span_s / GIB)
    unknown = "their size or duration is not recorded"
    return IoFigure(None, unknown if run.checkpoints else "no checkpoint was written")


def _identity(
    run: IoRun, jobs: Sequence[Mapping[str, float | None]], objections: Sequence[Doubt]
) -> Identity:
    if any(doubt.refuses == EVERY for doubt in objections):
        return Identity()
    steps, rest = fewest_steps(run)
    # DLIO averages both figures over blocks.
    in_blocks = len({(epoch.number, epoch.rank) for epoch in run.epochs}) < len(run.epochs)
    if steps <= DLIO_UNCOUNTED_STEPS or not rest or in_blocks:
        return Identity()
    au, rate = (
        fmean(row[name] or 0.0 for row in jobs) for name in (STEADY, "samples_per_s_steady")
    )
    # Each epoch and rank by itself first, as AU is averaged.
    parts = [(epoch.compute_s, retained(epoch, run)) for epoch in run.epochs]
    measured_s = fmean(fmean(times[part.start : part.stop] or [0.0]) for times, part in parts)
    if not au or not rate or not measured_s:
        return Identity()
    demand = au / 100 * run.batch_size * run.processes
    nominal = rate * run.computation_time_s / demand if run.computation_time_s else None
    return Identity(nominal, rate * measured_s / demand)


def describe_oversleep(judged: Sequence[Judged]) -> str | None:
    if not any(one.nominal for one in judged):
        return None
    late = [ratio for one in judged if (ratio := overslept(one.run) or 0.0) > OVERSLEPT]
    most = f" (up to {max(late):.2f} times as long)" if late else ""
    return (
        f"AU is computed with the configured computation time: in {len(late)} of {len(judged)} "
        f"runs a computation took more than {OVERSLEPT - 1:.0%} longer{most}, and AU as clocked "
        "would count waiting for the machine as work"
    )


def describe_identity(judged: Sequence[Judged]) -> str | None:
    spans = []
    for name, time in (("nominal", "configured"), ("measured", "clocked")):
        ratios = [ratio for one in judged if (ratio := getattr(one.identity, name)) is not None]
        if ratios:
            spans.append(f"{min(ratios):.4f} to {max(ratios):.4f} with the {time} time")
    if not spans:
        return None
    return f"samples/s ÷ (AU × batch × processes ÷ computation time): {', '.join(spans)}"


def record(judged: Judged) -> dict[str, Any]:
    run = judged.run
    return {
        **{one.name: getattr(run, one.name) for one in fields(run) if one.name not in OMITTED},
        "responses": {
            name: one if one.value is not None else replace(one, per_epoch=())
            for name, one in judged.responses.items()
        },
        "au": "with the configured computation time" if judged.nominal else "as clocked",
        "doubts": judged.doubts,
        "identity": judged.identity,
    }


# Validity: which figures are refused, and why. Unrecorded facts raise no doubt.


def retained(block: Epoch, run: IoRun) -> range:
    first = min(run.excluded_start_steps, block.steps)
    return range(first, max(first, block.steps - run.excluded_end_steps))


def fewest_steps(run: IoRun) -> tuple[int, int]:
    counts: dict[tuple[int, int], tuple[int, int]] = {}
    for epoch in run.epochs:
        steps, rest = counts.get((epoch.number, epoch.rank), (0, 0))
        counts[epoch.number, epoch.rank] = steps + epoch.steps, rest + len(retained(epoch, run))
    return min(steps for steps, _ in counts.values()), min(rest for _, rest in counts.values())


def cannot_be(name: str, values: Sequence[float]) -> str | None:
    if not values:
        return "it was not recorded"
    if not all(map(math.isfinite, values)):
        return "it is not a number: the times in the file contradict each other"
    if name in SHARES and not 0 <= min(values) <= max(values) <= 1:
        return "it is below 0 or above 1, which is impossible for a share"
    if min(values) < 0:
        return "it is below 0, which is impossible for a utilisation or a rate"
    if name in AU and max(values) > HIGHEST_AU_PERCENT:
        return f"it is {max(values):.1f} %, more than {HIGHEST_AU_PERCENT} %"
    return None


def overslept(run: IoRun) -> float | None:
    """Return the mean computation time relative to the configured one, if that is one time."""
    asked_s = run.computation_time_s
    if not asked_s or isinstance(run.params.get("computation_time"), Mapping):
        return None
    total_s = math.fsum(math.fsum(epoch.compute_s) for epoch in run.epochs)
    return total_s / sum(epoch.steps for epoch in run.epochs) / asked_s


def doubts(run: IoRun) -> Iterator[Doubt]:
    for epoch in run.epochs:
        took_s = math.fsum(epoch.busy_s)
        if took_s > epoch.duration_s * (1 + ROUNDING):
            yield Doubt(
                "times",
                f"rank {epoch.rank}, epoch {epoch.number}: load and computation took "
                f"{took_s:.3f} s of {epoch.duration_s:.3f} s: step lists and clock belong to "
                "different runs",
                EVERY,
            )
            break
    if state := _cache_contradiction(run):
        yield Doubt("cache", state, EVERY)
    yield from _too_few_steps(run)
    if not any(any(epoch.compute_s) for epoch in run.epochs):
        yield Doubt("nothing computed", "there was no computation: utilisation is always 0", AU)
    if (ratio := overslept(run) or 0.0) > OVERSLEPT:
        asked_ms = 1000 * (run.computation_time_s or 0.0)
        yield Doubt(
            OVERSLEEP,
            f"computations of {asked_ms:.4g} ms took {ratio:.2f} times as long, which AU would "
            "count as computing",
            AU,
        )


def _too_few_steps(run: IoRun) -> Iterator[Doubt]:
    steps, rest = fewest_steps(run)
    count = f"{steps} step{'s' * (steps != 1)} per epoch"
    if steps <= DLIO_UNCOUNTED_STEPS:
        uncounted = f"{count}: DLIO counts S - 2 = {steps - DLIO_UNCOUNTED_STEPS} of them"
        yield Doubt("degenerate", uncounted, OF_DLIO)
    if not rest:
        yield Doubt("degenerate", f"{count}: none remains after the excluded ones", WITHOUT_FIRST)
    reasons = []
    if rest < LEAST_RETAINED:
        reasons.append(
            f"{count} leave {rest} after the excluded ones (at least {LEAST_RETAINED} required)"
        )
    ahead = run.read_threads * (run.prefetch_factor or 0)
    if steps - 1 < 2 * ahead:
        reasons.append(
            f"{run.read_threads} readers x {run.prefetch_factor} batches are fetched during the "
            f"first, excluded step, so at least {2 * ahead} must follow it, but only {steps - 1} do"
        )
    if reasons:
        yield Doubt("insufficient_steps", "; ".join(reasons), WITHOUT_FIRST)


def _cache_contradiction(run: IoRun) -> str | None:
    state = str(run.params.get("cache", ""))
    limits = {"cold": (0.0, COLD_AT_MOST), "warm": (WARM_AT_LEAST, 1.0)}
    if state not in limits:
        return None
    least, most = limits[state]
    needed = f"at most {most:.0%}" if state == "cold" else f"at least {least:.0%}"
    for number in sorted({epoch.number for epoch in run.epochs}):
        ranks = [epoch for epoch in run.epochs if epoch.number == number]
        for rank in ranks:
            share = rank.resident_before
            if share is not None and not least <= share <= most:
                return (
                    f"cache={state}, but {share:.1%} of the data set was in memory at the start of "
                    f"epoch {number} ({needed})"
                )
        size, counts = run.dataset.get("bytes"), [rank.read_bytes for rank in ranks]
        if isinstance(size, int | float) and size > 0 and None not in counts:
            fetched = sum(count or 0 for count in counts)
            if limit := _fetch_limit(run, state, ranks, fetched, size):
                return (
                    f"cache={state}, but epoch {number} fetched {fetched / size:.1%} of the data "
                    f"set from a device{limit}"
                )
    return None


def _fetch_limit(
    run: IoRun, state: str, ranks: Sequence[Epoch], fetched: float, size: float
) -> str:
    if state == "warm":
        # With the whole data set locked in memory, only Python and its libraries are fetched.
        own_bytes = OWN_COLD_BYTES if any(rank.locked for rank in ranks) else OWN_BYTES
        too_much = fetched > max(WARM_FETCHES * size, own_bytes)
        return f" (at most {WARM_FETCHES:.0%})" if too_much else ""
    least, most = COLD_FETCHES
    # If no device is below the files, fetches are not counted.
    counted = fetched > 0 or any(rank.device_read_bytes is not None for rank in ranks)
    if counted and fetched < least * _needed_bytes(run, ranks, size):
        return f" (at least {least:.0%} of what it read)"
    if fetched > most * size + OWN_COLD_BYTES:
        return f": part of it was read twice (at most {most:.0%})"
    return ""


def _needed_bytes(run: IoRun, ranks: Sequence[Epoch], size: float) -> float:
    files, each = run.dataset.get("files"), run.dataset.get("samples_per_file", 1)
    if not isinstance(files, int) or not isinstance(each, int) or files * each < 1:
        return 0.0
    share = sum(rank.steps for rank in ranks) * run.batch_size / (files * each)
    return size if share >= 1 else min(share * size, sum(rank.rchar_bytes or 0 for rank in ranks))
