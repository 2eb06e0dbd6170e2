"""The figures of a run: utilisation, throughput and shares of its epochs, or why they are refused.

T is the wall time of a block, including barriers and the readers' end; the steps excluded at its
start and end subtract their load and computation from it (T*), and their computation from the sum
(C*). The result is `nan` if the clocks of a file contradict each other.

Source: DLIO, `dlio_benchmark/utils/statscounter.py` (Devarajan et al., CCGrid 2021).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from .terms import GIB, MIB, Doubt, Epoch, IoRun
from .validity import (
    AU,
    DLIO_UNCOUNTED_STEPS,
    EVERY,
    OVERSLEPT,
    RATE,
    ROUNDING,
    STEADY,
    WAYS,
    WHOLE,
    cannot_be,
    doubts,
    fewest_steps,
    overslept,
    retained,
)

if TYPE_CHECKING:
    Job = Sequence[Sequence[Epoch]]  # the blocks of each rank, in one epoch

CHECKPOINT = "checkpoint_gb_per_s"
ASKED = {name: f"{name}_asked" for name in AU}  # with the configured computation time
OVERSLEEP = "oversleep"
REPORTED = {  # DLIO's names of the figures in its summary
    STEADY: "train_au_mean_percentage",
    "samples_per_s_dlio": "train_throughput_mean_samples_per_second",
    "mb_per_s_nominal_dlio": "train_io_mean_MB_per_second",
}
LOW, HIGH = 0.995, 1.005  # tolerance of the identity: ranks compute unequally long


@dataclass(frozen=True, slots=True)
class IoFigure:
    """One figure of one run. `value` is None exactly if `why_missing` has a reason.

    `per_epoch` is the formula's result for the whole job epoch by epoch, even for a refused figure,
    only to check a source's own figures. `value` is their mean. Epochs are not replicates: there is
    no interval.
    """

    value: float | None
    why_missing: str | None = None
    per_epoch: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """A run's figures by name, and all doubts about them.

    `asked` is AU with the configured computation time; `responses` have it if `nominal`, else AU as
    clocked.
    """

    run: IoRun
    responses: Mapping[str, IoFigure]
    doubts: tuple[Doubt, ...]
    asked: Mapping[str, IoFigure]
    identity: Identity
    nominal: bool = False

    def value(self, name: str) -> float | None:
        return self.responses[name].value

    def formula(self, name: str) -> float | None:
        """Return the formula's result, valid or not, for checking the source's own figures."""
        values = self.responses[name].per_epoch
        return fmean(values) if values else None


def judge(run: IoRun) -> Judged:
    """Compute all figures of a run and refuse invalid ones, each with the reason."""
    jobs = [job_figures(job, run) for job in job_epochs(run)]
    unknown = _unknown(run)
    objections = list(doubts(run)) if jobs else []
    # Reported first.
    objections.sort(key=lambda doubt: (doubt.kind != "degenerate", doubt.refuses != EVERY))

    def figure(name: str, column: str, against: Iterable[Doubt]) -> IoFigure:
        values = [value for row in jobs if (value := row[column]) is not None]
        return _figure(name, values if len(values) == len(jobs) else [], against)

    if run.kind == "summary":
        responses = {name: _reported(name, run) for name in EVERY}
    else:
        responses = {
            name: IoFigure(None, unknown[name])
            if name in unknown
            else figure(name, name, objections)
            for name in EVERY
        }
    awake = [doubt for doubt in objections if doubt.kind != OVERSLEEP]
    asked = (
        {name: figure(name, ASKED[name], awake) for name in AU}
        if run.computation_time_s and jobs
        else {}
    )
    return Judged(
        run,
        {**responses, CHECKPOINT: _checkpoint(run)},
        tuple(objections),
        asked,
        _identity(run, jobs, objections),
    )


def judged_alike(judged: Sequence[Judged]) -> list[Judged]:
    """Compute AU the same way within each saved run: from configured times if sleeps ended late.

    Refusing only those runs would leave the quiet ones, and compare idle machines with busy ones.
    DLIO folders are judged as DLIO computes.
    """
    late = {
        one.run.origin
        for one in judged
        if one.run.block is not None and any(doubt.kind == OVERSLEEP for doubt in one.doubts)
    }
    return [with_time_asked(one) if one.run.origin in late and one.asked else one for one in judged]


def with_time_asked(judged: Judged) -> Judged:
    """Use AU with the configured computation time, which late sleeps do not affect."""
    remaining = tuple(
        replace(doubt, refuses=()) if doubt.kind == OVERSLEEP else doubt for doubt in judged.doubts
    )
    return replace(
        judged, responses={**judged.responses, **judged.asked}, doubts=remaining, nominal=True
    )


# The formulas.


def job_epochs(run: IoRun) -> list[Job]:
    """Return the epochs of the whole job in order: for each, the blocks of each rank."""
    jobs: dict[int, dict[int, list[Epoch]]] = defaultdict(lambda: defaultdict(list))
    for epoch in sorted(run.epochs, key=lambda epoch: (epoch.number, epoch.rank, epoch.block)):
        jobs[epoch.number][epoch.rank].append(epoch)
    return [list(ranks.values()) for ranks in jobs.values()]


def job_figures(job: Job, run: IoRun) -> dict[str, float | None]:
    """Return all figures of one epoch by name: means over ranks of shares, sums of rates.

    A figure without counted bytes is None.
    """
    ranks = [_rank_figures(blocks, run) for blocks in job]
    result: dict[str, float | None] = {}
    for name in ranks[0]:
        values = [figures[name] for figures in ranks]
        known = [value for value in values if value is not None]
        combine = math.fsum if "_per_s" in name else fmean
        result[name] = combine(known) if len(known) == len(values) else None
    mb = (run.record_length_bytes or 0) / MIB
    result |= {
        f"mb_per_s_nominal_{way}": (result[f"samples_per_s_{way}"] or 0.0) * mb for way in WAYS
    }
    counts = [
        (block.device_read_bytes, block.duration_s)
        for blocks in job
        for block in blocks
        if block.device_read_bytes is not None
    ]
    span_s = math.fsum(span for _, span in counts)
    return result | {
        "device_mb_per_s": sum(count for count, _ in counts) / span_s / MIB if span_s > 0 else None
    }


def _rank_figures(blocks: Sequence[Epoch], run: IoRun) -> dict[str, float | None]:
    batch, asked_s = run.batch_size or 0, run.computation_time_s or 0.0
    steps = [block.steps for block in blocks]
    retained_steps = [retained(block, run) for block in blocks]
    wall_s = [block.duration_s for block in blocks]
    total_s = math.fsum(wall_s)  # checkpoints lie between blocks
    busy = [block.busy_s for block in blocks]
    steady_s = [
        span_s - math.fsum(time_s for at, time_s in enumerate(each) if at not in rest)
        for span_s, each, rest in zip(wall_s, busy, retained_steps, strict=True)
    ]
    kept_s = [
        math.fsum(block.compute_s[rest.start : rest.stop])
        for block, rest in zip(blocks, retained_steps, strict=True)
    ]

    def weighted(values: Iterable[float]) -> float:
        return math.fsum(value * count for value, count in zip(values, steps, strict=True)) / sum(
            steps
        )

    counted = steps if run.dlio_counts_all else [count - DLIO_UNCOUNTED_STEPS for count in steps]
    dlio_s = wall_s if run.dlio_counts_all else steady_s
    barrier = 1 - _rate(math.fsum(map(math.fsum, busy)), total_s)
    return {
        STEADY: weighted(map(_percent, kept_s, steady_s)),
        ASKED[STEADY]: weighted(
            map(_percent, (len(rest) * asked_s for rest in retained_steps), steady_s)
        ),
        WHOLE: _percent(math.fsum(math.fsum(block.compute_s) for block in blocks), total_s),
        ASKED[WHOLE]: _percent(sum(steps) * asked_s, total_s),
        "samples_per_s_steady": _rate(sum(map(len, retained_steps)) * batch, math.fsum(steady_s)),
        RATE: _rate(sum(steps) * batch, total_s),
        "samples_per_s_dlio": weighted(
            _rate(count * batch, span_s) for count, span_s in zip(counted, dlio_s, strict=True)
        ),
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


def _unknown(run: IoRun) -> dict[str, str]:
    """Return the rates that cannot be computed, with reasons: they need the configuration."""
    missing = [
        what
        for what, value in (
            ("batch size", run.batch_size),
            ("record length", run.record_length_bytes),
        )
        if value is None
    ]
    rates = [f"mb_per_s_nominal_{way}" for way in WAYS] + [
        f"samples_per_s_{way}" for way in WAYS if run.batch_size is None
    ]
    reason = (
        f"not recorded: the {' and the '.join(missing)}; it is in the configuration "
        "(.hydra/config.yaml), so copy the complete folder"
    )
    return dict.fromkeys(rates, reason) if missing else {}


def _reported(name: str, run: IoRun) -> IoFigure:
    """Return DLIO's own figure if there is only a summary."""
    value = run.reported.get(REPORTED.get(name, ""))
    if isinstance(value, float) and not cannot_be(name, [value]):
        return IoFigure(value)
    return IoFigure(None, "DLIO's summary exists without step lists (<rank>_output.json)")


def _figure(name: str, values: Sequence[float], against: Iterable[Doubt]) -> IoFigure:
    refused = next(
        (f"{doubt.kind}: {doubt.reason}" for doubt in against if name in doubt.refuses), None
    )
    reason = cannot_be(name, values) if refused is None or not values else refused
    return IoFigure(fmean(values) if reason is None else None, reason, tuple(values))


def _checkpoint(run: IoRun) -> IoFigure:
    """Return the bytes of all checkpoints over the time they took, in GiB/s."""
    sizes = [checkpoint.bytes for checkpoint in run.checkpoints if checkpoint.bytes is not None]
    span_s = math.fsum(checkpoint.duration_s for checkpoint in run.checkpoints)
    if len(sizes) == len(run.checkpoints) and span_s > 0:
        return IoFigure(math.fsum(sizes) / span_s / GIB)
    return IoFigure(
        None,
        "their size or duration is not recorded"
        if run.checkpoints
        else "no checkpoint was written",
    )


# Throughput and utilisation are one measurement: samples/s = AU/100 x batch x P / t_c, except for
# the counted steps. With the configured computation time (nominal) it deviates by the overshoot of
# sleeps. With the clocked one it is 1 over the same steps of one rank, which shows that figures and
# step lists belong together, but nothing about the sleeps.


@dataclass(frozen=True, slots=True)
class Identity:
    """Throughput relative to AU: `nominal` with the configured t_c, `measured` as clocked.

    `overslept` is the duration of a computation relative to the configured one.
    """

    nominal: float | None = None
    measured: float | None = None
    overslept: float | None = None
    why_missing: str | None = None


def _identity(
    run: IoRun, jobs: Sequence[Mapping[str, float | None]], objections: Sequence[Doubt]
) -> Identity:
    if not run.epochs or run.batch_size is None:
        return Identity(
            why_missing="its batch size is not recorded" if run.epochs else "it trained nothing"
        )
    if any(doubt.refuses == EVERY for doubt in objections):
        return Identity(why_missing=f"{objections[0].kind}: {objections[0].reason}")
    steps, retained_steps = fewest_steps(run)
    if steps <= DLIO_UNCOUNTED_STEPS or not retained_steps:
        return Identity(why_missing=f"{steps} steps per epoch: none is counted")
    if len({(epoch.number, epoch.rank) for epoch in run.epochs}) < len(run.epochs):
        return Identity(why_missing="epochs in blocks: DLIO averages both figures over them")
    au, rate = (
        fmean(row[name] or 0.0 for row in jobs) for name in (STEADY, "samples_per_s_steady")
    )
    # The mean computation of the retained steps, each epoch and rank by itself first, as AU is
    # averaged.
    parts = [
        epoch.compute_s[part.start : part.stop]
        for epoch in run.epochs
        for part in [retained(epoch, run)]
    ]
    measured_s = fmean(fmean(part) if part else 0.0 for part in parts)
    if not au or not rate or not measured_s:
        return Identity(
            why_missing="nothing was computed, so there is no utilisation to compare with the "
            "throughput"
        )
    demand = au / 100 * run.batch_size * run.processes
    nominal = rate * run.computation_time_s / demand if run.computation_time_s else None
    return Identity(nominal, rate * measured_s / demand, overslept(run))


def describe_identity(judged: Iterable[Judged]) -> str | None:
    """Describe the ratio over several runs, nominal and clocked, and the overshoot of sleeps."""
    known = [one.identity for one in judged if one.identity.measured is not None]
    if not known:
        return None
    clocked, nominal, late = (
        [value for one in known if (value := getattr(one, name)) is not None]
        for name in ("measured", "nominal", "overslept")
    )
    count = "1 run" if len(known) == 1 else f"{len(known)} runs"
    broken = (
        ": broken, so steps and times of a run do not belong together"
        if min(clocked) < LOW or max(clocked) > HIGH
        else ""
    )
    asked = f"{_span(nominal)} with the configured computation time, " if nominal else ""
    slept = f"; a computation took {_span(late, 3)} times as long as configured" if late else ""
    what = "samples/s ÷ (AU as clocked × batch × processes ÷ computation time)"
    return f"{what} over {count}: {asked}{_span(clocked)} with the clocked time{broken}{slept}"


def describe_oversleep(judged: Sequence[Judged]) -> str | None:
    """Explain why AU uses the configured computation time; None if it does not."""
    if not any(one.nominal for one in judged):
        return None
    late = [
        ratio for one in judged if (ratio := overslept(one.run)) is not None and ratio > OVERSLEPT
    ]
    often = (
        f"in {len(late)} of {len(judged)} runs a computation took more than {OVERSLEPT - 1:.0%} "
        "longer"
    )
    most = f" (up to {max(late):.2f} times as long)" if late else ""
    clocked = "AU as clocked would count waiting for the machine as work"
    return f"AU is computed with the configured computation time: {often}{most}, and {clocked}"


def _span(values: Sequence[float], digits: int = 4) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


# For programs.

ABOUT = (
    *(
        "origin",
        "id",
        "kind",
        "model",
        "engine",
        "engine_version",
        "processes",
        "batch_size",
        "read_threads",
        "prefetch_factor",
    ),
    *(
        "computation_time_s",
        "record_length_bytes",
        "excluded_start_steps",
        "excluded_end_steps",
        "started_utc",
    ),
    *("tweakset", "block", "order", "params", "overrides", "dataset", "reported", "host", "notes"),
)


def record(judged: Judged) -> dict[str, Any]:
    """Return one run with its figures; a refused figure has only its reason."""
    return {
        **{name: getattr(judged.run, name) for name in ABOUT},
        "responses": {
            name: {
                "value": one.value,
                "why_missing": one.why_missing,
                "per_epoch": () if one.value is None else one.per_epoch,
            }
            for name, one in judged.responses.items()
        },
        "au": "with the configured computation time" if judged.nominal else "as clocked",
        "doubts": judged.doubts,
        "identity": judged.identity,
    }
