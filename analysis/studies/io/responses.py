"""What a run's input did: utilisation and throughput, whole and without the first steps; given, or refused with the reason."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, pstdev
from typing import Any

from .formulas import AU, STEADY, WHOLE, job_epochs, job_figures
from .terms import GIB, Doubt, IoResponse, IoRun
from .validity import EVERY, OVERSLEPT, cannot_be, doubts, overslept

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
        return self.responses[name].value

    def formula(self, name: str) -> float | None:
        """Return what the formula gives, believed or not: for checking the source's own figures."""
        values = self.responses[name].per_epoch
        return fmean(values) if values else None

    def has_doubt(self, *kinds: str) -> bool:
        return any(doubt.kind in kinds for doubt in self.doubts)


def judge(run: IoRun, *, nominal: bool = False) -> JudgedResponse:
    """Compute all figures of a run and refuse those that cannot be believed, each with the reason.

    `nominal` computes AU with the computation time that was asked for; then no sleep that ended late speaks against it.
    """
    jobs = job_epochs(run)
    figures = [job_figures(job, run) for job in jobs]
    result = list(doubts(run)) if jobs else []
    result.sort(key=lambda doubt: (doubt.kind != "degenerate", doubt.refuses != EVERY))  # the first is the reason that is given
    if nominal and run.computation_time_s:
        for row, job in zip(figures, jobs, strict=True):
            asked = job_figures(job, run, run.computation_time_s)
            row |= {name: asked[name] for name in AU}
        result = [replace(doubt, refuses=()) if doubt.kind == OVERSLEEP else doubt for doubt in result]
    responses = {}
    for name, unit, label in _labels(run, nominal=nominal and bool(run.computation_time_s)):
        values = [value for row in figures if (value := row[name]) is not None]
        responses[name] = _figure(IoResponse(name, unit, label, None), values if len(values) == len(jobs) else [], result)
    responses[CHECKPOINT] = _checkpoint(run)
    return JudgedResponse(run, responses, tuple(result))


def judged_alike(runs: Iterable[IoRun]) -> list[JudgedResponse]:
    """Judge runs with AU computed in one way within each saved run: where sleeps of one ended late, with the time asked for in all.

    Refusing those alone would leave the quiet ones, and compare idle machines with busy ones. Folders of DLIO are judged as DLIO computes.
    """
    judged = [judge(run) for run in runs]
    late = {one.run.origin for one in judged if one.run.block is not None and one.has_doubt(OVERSLEEP)}
    return [judge(one.run, nominal=True) if one.run.origin in late else one for one in judged]


def _labels(run: IoRun, *, nominal: bool) -> list[tuple[str, str, str]]:
    start, end = run.excluded_start_steps, run.excluded_end_steps
    left_out = f"first {start} and last {end} steps left out" if end else f"first {'step' if start == 1 else f'{start} steps'} left out"
    asked = f"; {NOMINAL}" if nominal else ""
    return [
        (STEADY, "%", f"AU as DLIO defines it, {left_out}{asked}"),
        (WHOLE, "%", f"AU over the whole epoch, nothing left out{asked}"),
        ("samples_per_s_steady", "samples/s", f"{left_out}, of the samples and of the time"),
        ("samples_per_s_whole", "samples/s", "all samples over the whole epoch"),
        ("mb_per_s_nominal_steady", "MiB/s", f"nominal record length, {left_out}"),
        ("mb_per_s_nominal_whole", "MiB/s", "nominal record length, whole epoch"),
        ("first_step_share", "", "part of the epoch until the first batch is there"),
        ("barrier_share", "", "part of the epoch that is neither load nor computation"),
        ("mb_per_s_read", "MiB/s", "really asked for by the ranks and their readers (rchar)"),
        ("mb_per_s_fetched", "MiB/s", "of it, fetched from a device (read_bytes)"),
        ("device_mb_per_s", "MiB/s", "read from the device by the whole machine"),
    ]


def _figure(empty: IoResponse, values: Sequence[float], result: Iterable[Doubt]) -> IoResponse:
    refused = next((f"{doubt.kind}: {doubt.reason}" for doubt in result if empty.name in doubt.refuses), None)
    reason = cannot_be(empty.name, values) if refused is None or not values else refused
    if reason is not None:
        return replace(empty, why_missing=reason, per_epoch=tuple(values))
    return replace(empty, value=fmean(values), per_epoch=tuple(values), sd_epochs=pstdev(values))


def _checkpoint(run: IoRun) -> IoResponse:
    sizes = [checkpoint.bytes for checkpoint in run.checkpoints if checkpoint.bytes is not None]
    span_s = math.fsum(checkpoint.duration_s for checkpoint in run.checkpoints)
    reason = "how large or how long they were is not recorded" if run.checkpoints else "no checkpoint was written"
    known = len(sizes) == len(run.checkpoints) and span_s > 0
    label = "bytes of all checkpoints over the time they took (2^30 bytes)"
    return IoResponse(CHECKPOINT, "GiB/s", label, *((math.fsum(sizes) / span_s / GIB,) if known else (None, reason)))


def describe_oversleep(judged: Iterable[JudgedResponse]) -> str | None:
    """Explain why AU is computed with the computation time asked for; None where it is not."""
    judged = list(judged)
    if not any(NOMINAL in one.responses[WHOLE].label for one in judged):
        return None
    late = [ratio for one in judged if (ratio := overslept(one.run)) is not None and ratio > OVERSLEPT]
    often = f"in {len(late)} of {len(judged)} runs a computation took more than {OVERSLEPT - 1:.0%} longer"
    most = f" (up to {max(late):.2f} times as long)" if late else ""
    return f"AU is computed {NOMINAL}: {often}{most}, and AU as clocked would take waiting for the machine for work"


# For programs.


def record(judged: JudgedResponse) -> dict[str, Any]:
    """Return one run with its figures; a figure that is refused is its reason and nothing else."""
    return {
        **about(judged.run),
        "responses": {
            name: asdict(response if response.value is not None else replace(response, per_epoch=()))
            for name, response in judged.responses.items()
        },
        "doubts": [asdict(doubt) for doubt in judged.doubts],
        "notes": list(judged.run.notes),
    }


ABOUT = (
    *("origin", "id", "kind", "model", "engine", "engine_version", "processes", "batch_size", "read_threads", "prefetch_factor"),
    *("computation_time_s", "record_length_bytes", "excluded_start_steps", "excluded_end_steps", "started_utc"),
    *("tweakset", "block", "order"),
)


def about(run: IoRun) -> dict[str, Any]:
    maps = {name: dict(getattr(run, name)) for name in ("params", "overrides", "dataset", "reported")}
    return {**{name: getattr(run, name) for name in ABOUT}, **maps, "host": asdict(run.host)}
