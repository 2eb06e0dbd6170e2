"""What a run's input did, side by side and labelled: utilisation and throughput, with the first steps and without, nominal and read.

The formulas (`reckoning`) stand apart; here each figure of a run is given, or refused with the reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from . import reckoning
from .terms import GIB, MIB, Doubt, IoResponse
from .validity import AU, EVERY, cannot_be, contradictions, doubts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .terms import Epoch, IoRun

    Job = Sequence[Sequence[Epoch]]  # the blocks of each rank, in one epoch

OVERSLEEP = "oversleep"
CHECKPOINT = "checkpoint_gb_per_s"
NOMINAL = "with the computation time that was asked for"


@dataclass(frozen=True, slots=True)
class JudgedResponse:
    """A run's figures by name, and everything that speaks against them."""

    run: IoRun
    responses: Mapping[str, IoResponse]
    doubts: tuple[Doubt, ...]

    def value(self, name: str) -> float | None:
        """One figure; None where it is refused or was not measured."""
        return self.responses[name].value

    def formula(self, name: str) -> float | None:
        """What the formula gives, believed or not: for checking the source's own figures."""
        values = self.responses[name].per_epoch
        return fmean(values) if values else None


def judge(run: IoRun, *, nominal: bool = False) -> JudgedResponse:
    """Reckon all figures of a run and refuse those that cannot be believed, each with the reason.

    `nominal` reckons AU with the computation time that was asked for, as its label says; then no sleep that ended late speaks against it.
    """
    jobs = job_epochs(run)
    formulas = _formulas(run)
    unknown = _unknown(run)
    values = {name: [of(job) for job in jobs] for name, _, _, of in formulas if name not in unknown}
    result = list(doubts(run)) if jobs else []
    if jobs and not any(doubt.kind == "times" for doubt in result):
        result += contradictions(run, values["au_steady_percent"], values.get("samples_per_s_dlio", ()))
    # What says most comes first: it is the reason that is given.
    result.sort(key=lambda doubt: (doubt.kind != "degenerate", doubt.refuses != EVERY))
    if nominal and run.computation_time_s:
        formulas = _formulas(run, run.computation_time_s)
        values |= {name: [of(job) for job in jobs] for name, _, _, of in formulas if name in AU}
        result = [replace(doubt, refuses=()) if doubt.kind == OVERSLEEP else doubt for doubt in result]
    responses = {
        name: IoResponse(name, unit, label, None, unknown[name]) if name in unknown else _response(name, unit, label, values[name], result)
        for name, unit, label, _ in formulas
    }
    responses |= {byte.name: byte for byte in _bytes(jobs, result)}
    responses[CHECKPOINT] = _checkpoint(run)
    return JudgedResponse(run, responses, tuple(result))


def doubted(judged: JudgedResponse, doubt: Doubt) -> JudgedResponse:
    """Answer a run with one more doubt, its figures refused for it: what reading it again with others has shown."""
    reason = f"{doubt.kind}: {doubt.reason}"
    responses = {
        name: replace(response, value=None, sd_epochs=None, why_missing=reason) if name in doubt.refuses else response
        for name, response in judged.responses.items()
    }
    return replace(judged, responses=responses, doubts=(doubt, *judged.doubts))


def judged_alike(runs: Iterable[IoRun]) -> list[JudgedResponse]:
    """Judge runs with AU reckoned in one way within each saved run: where sleeps of one ended late, with the time asked for in all.

    Refusing those runs alone would leave the quiet ones, and compare machines that were idle with machines that worked. Result folders of
    DLIO are judged as DLIO reckons.
    """
    judged = [judge(run) for run in runs]
    late = {one.run.origin for one in judged if one.run.block is not None and any(doubt.kind == OVERSLEEP for doubt in one.doubts)}
    return [judge(one.run, nominal=True) if one.run.origin in late else one for one in judged]


def is_refused(judged: JudgedResponse) -> bool:
    """Whether a run is refused as a whole."""
    return any(set(EVERY) <= set(doubt.refuses) for doubt in judged.doubts)


def is_degenerate(judged: JudgedResponse) -> bool:
    """Whether a run is none: too short, or of too few steps, for any figure."""
    return any(doubt.kind == "degenerate" for doubt in judged.doubts)


def formulas(run: IoRun, *names: str) -> list[float]:
    """What formulas give on average over epochs, with the computation as it was clocked, believed or not."""
    jobs = job_epochs(run)
    known = {name: of for name, _, _, of in _formulas(run)}
    return [fmean(known[name](job) for job in jobs) for name in names]


def job_epochs(run: IoRun) -> list[Job]:
    """The epochs of the whole job, in order: for each, the blocks of each rank."""
    result: dict[int, dict[int, list[Epoch]]] = {}
    for epoch in run.epochs:
        result.setdefault(epoch.number, {}).setdefault(epoch.rank, []).append(epoch)
    return [[sorted(ranks[rank], key=lambda epoch: epoch.block) for rank in sorted(ranks)] for _, ranks in sorted(result.items())]


def _unknown(run: IoRun) -> dict[str, str]:
    """The rates that cannot be reckoned, each with the reason: AU and shares of time need no configuration, samples and bytes do."""
    missing = [what for what, value in (("batch size", run.batch_size), ("record length", run.record_length_bytes)) if value is None]
    if not missing:
        return {}
    reason = f"not recorded: the {' and the '.join(missing)}; the configuration (.hydra/config.yaml) says it, copy the folder whole"
    names = [name for name, unit, _, _ in _formulas(run) if unit == "MiB/s" or (unit == "samples/s" and run.batch_size is None)]
    return dict.fromkeys(names, reason)


def _formulas(run: IoRun, asked_s: float | None = None) -> list[tuple[str, str, str, Callable[[Job], float]]]:
    """Each figure's name, unit, label and formula; with `asked_s` AU counts that for each computation."""
    batch, start, end, mb = run.batch_size or 0, run.excluded_start_steps, run.excluded_end_steps, (run.record_length_bytes or 0) / MIB
    left_out = f"first {start} and last {end} steps left out" if end else f"first {'step' if start == 1 else f'{start} steps'} left out"
    old = run.dlio_counts_all
    dlio_way = "as DLIO 2.0.0 reports it: all steps over all time" if old else "as DLIO reports it: S - 2 steps over the time of S - 1"
    nominal = "nominal record length, "
    asked = "" if asked_s is None else f"; {NOMINAL}"

    def steady(job: Job) -> float:
        return math.fsum(reckoning.samples_per_s_steady(blocks, batch, start, end) for blocks in job)

    def whole(job: Job) -> float:
        return math.fsum(reckoning.samples_per_s_whole(blocks, batch) for blocks in job)

    def dlio(job: Job) -> float:
        if old:
            return math.fsum(reckoning.samples_per_s_dlio_2_0_0(blocks, batch) for blocks in job)
        return math.fsum(reckoning.samples_per_s_dlio(blocks, batch, start, end) for blocks in job)

    def mean(of: Callable[[Sequence[Epoch]], float]) -> Callable[[Job], float]:
        return lambda job: fmean(of(blocks) for blocks in job)

    return [
        (
            AU[0],
            "%",
            f"AU as DLIO defines it, {left_out}{asked}",
            mean(lambda rank: reckoning.au_steady_percent(rank, start, end, asked_s)),
        ),
        (AU[1], "%", f"AU over the whole epoch, nothing left out{asked}", mean(lambda rank: reckoning.au_whole_percent(rank, asked_s))),
        ("samples_per_s_steady", "samples/s", f"{left_out}, of the samples and of the time", steady),
        ("samples_per_s_whole", "samples/s", "all samples over the whole epoch", whole),
        ("samples_per_s_dlio", "samples/s", dlio_way, dlio),
        ("mb_per_s_nominal_steady", "MiB/s", nominal + left_out, lambda job: steady(job) * mb),
        ("mb_per_s_nominal_whole", "MiB/s", nominal + "whole epoch", lambda job: whole(job) * mb),
        ("mb_per_s_nominal_dlio", "MiB/s", nominal + dlio_way, lambda job: dlio(job) * mb),
        ("first_step_share", "", "part of the epoch until the first batch is there", mean(reckoning.first_step_share)),
        ("barrier_share", "", "part of the epoch that is neither load nor computation", mean(reckoning.barrier_share)),
    ]


def _response(name: str, unit: str, label: str, values: Sequence[float], result: Iterable[Doubt]) -> IoResponse:
    refused = next((f"{doubt.kind}: {doubt.reason}" for doubt in result if name in doubt.refuses), None)
    reason = cannot_be(name, values) if refused is None or not values else refused
    good = reason is None
    return IoResponse(name, unit, label, fmean(values) if good else None, reason, tuple(values), pstdev(values) if good else None)


def _bytes(jobs: Sequence[Job], result: Iterable[Doubt]) -> list[IoResponse]:
    ways = [
        ("mb_per_s_read", "really asked for by the ranks and their readers (rchar)", _rate_of("rchar_bytes")),
        ("mb_per_s_fetched", "of it, fetched from a device (read_bytes)", _rate_of("read_bytes")),
        ("device_mb_per_s", "read from the device by the whole machine", _device),
    ]
    values = {name: [value for job in jobs if (value := of(job)) is not None] for name, _, of in ways}
    return [_response(name, "MiB/s", label, values[name] if len(values[name]) == len(jobs) else [], result) for name, label, _ in ways]


def _rate_of(column: str) -> Callable[[Job], float | None]:
    """Make a rate of a count of bytes: each rank's over its own wall time, all ranks together."""

    def of(job: Job) -> float | None:
        counts = [[getattr(block, column) for block in blocks] for blocks in job]
        if any(count is None for rank in counts for count in rank):
            return None
        rates = (sum(rank) / reckoning.total_s(blocks) for rank, blocks in zip(counts, job, strict=True) if reckoning.total_s(blocks) > 0)
        return math.fsum(rates) / MIB

    return of


def _device(job: Job) -> float | None:
    counts = [(block.device_read_bytes, block.duration_s) for blocks in job for block in blocks if block.device_read_bytes is not None]
    span_s = math.fsum(span for _, span in counts)
    return sum(count for count, _ in counts) / span_s / MIB if span_s > 0 else None


def _checkpoint(run: IoRun) -> IoResponse:
    sizes = [checkpoint.bytes for checkpoint in run.checkpoints if checkpoint.bytes is not None]
    span_s = math.fsum(checkpoint.duration_s for checkpoint in run.checkpoints)
    reason = "how large or how long they were is not recorded" if run.checkpoints else "no checkpoint was written"
    known = len(sizes) == len(run.checkpoints) and span_s > 0
    label = "bytes of all checkpoints over the time they took (2^30 bytes)"
    return IoResponse(CHECKPOINT, "GiB/s", label, *((math.fsum(sizes) / span_s / GIB,) if known else (None, reason)))
