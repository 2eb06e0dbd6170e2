"""What a run's input did: utilisation and throughput, whole and without the first steps; given, or refused with the reason."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, pstdev
from typing import Any

from .formulas import AU, DLIO_UNCOUNTED_STEPS, STEADY, WHOLE, job_epochs, job_figures, retained
from .terms import GIB, Doubt, IoResponse, IoRun
from .validity import EVERY, OVERSLEPT, cannot_be, doubts, fewest_steps, overslept

OVERSLEEP = "oversleep"
REPORTED = {  # what DLIO calls the figures of its summary
    STEADY: "train_au_mean_percentage",
    "samples_per_s_dlio": "train_throughput_mean_samples_per_second",
    "mb_per_s_nominal_dlio": "train_io_mean_MB_per_second",
}
CHECKPOINT = "checkpoint_gb_per_s"
LOW, HIGH = 0.995, 1.005  # of the identity: ranks that compute unequally long leave it a little off
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

    @property
    def refused(self) -> bool:
        return any(set(EVERY) <= set(doubt.refuses) for doubt in self.doubts)


def judge(run: IoRun, *, nominal: bool = False) -> JudgedResponse:
    """Compute all figures of a run and refuse those that cannot be believed, each with the reason.

    `nominal` computes AU with the computation time that was asked for; then no sleep that ended late speaks against it.
    """
    jobs = job_epochs(run)
    figures = [job_figures(job, run) for job in jobs]
    unknown = _unknown(run)
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
        response = IoResponse(name, unit, label, None, unknown.get(name))
        responses[name] = response if name in unknown else _figure(response, values if len(values) == len(jobs) else [], result)
        if run.kind == "summary":
            responses[name] = _reported(response, run)
    responses[CHECKPOINT] = _checkpoint(run)
    return JudgedResponse(run, responses, tuple(result))


def judged_alike(runs: Iterable[IoRun]) -> list[JudgedResponse]:
    """Judge runs with AU computed in one way within each saved run: where sleeps of one ended late, with the time asked for in all.

    Refusing those alone would leave the quiet ones, and compare idle machines with busy ones. Folders of DLIO are judged as DLIO computes.
    """
    judged = [judge(run) for run in runs]
    late = {one.run.origin for one in judged if one.run.block is not None and one.has_doubt(OVERSLEEP)}
    return [judge(one.run, nominal=True) if one.run.origin in late else one for one in judged]


def _unknown(run: IoRun) -> dict[str, str]:
    """Return the rates that cannot be computed, each with the reason: samples and bytes need the configuration."""
    missing = [what for what, value in (("batch size", run.batch_size), ("record length", run.record_length_bytes)) if value is None]
    if not missing:
        return {}
    reason = f"not recorded: the {' and the '.join(missing)}; the configuration (.hydra/config.yaml) says it, copy the folder whole"
    rates = [f"mb_per_s_nominal_{way}" for way in ("steady", "whole", "dlio")]
    rates += [f"samples_per_s_{way}" for way in ("steady", "whole", "dlio") if run.batch_size is None]
    return dict.fromkeys(rates, reason)


def _labels(run: IoRun, *, nominal: bool) -> list[tuple[str, str, str]]:
    start, end = run.excluded_start_steps, run.excluded_end_steps
    left_out = f"first {start} and last {end} steps left out" if end else f"first {'step' if start == 1 else f'{start} steps'} left out"
    counts = "2.0.0 reports it: all steps over all time" if run.dlio_counts_all else "reports it: S - 2 steps over the time of S - 1"
    dlio = f"as DLIO {counts}"
    asked = f"; {NOMINAL}" if nominal else ""
    return [
        (STEADY, "%", f"AU as DLIO defines it, {left_out}{asked}"),
        (WHOLE, "%", f"AU over the whole epoch, nothing left out{asked}"),
        ("samples_per_s_steady", "samples/s", f"{left_out}, of the samples and of the time"),
        ("samples_per_s_whole", "samples/s", "all samples over the whole epoch"),
        ("samples_per_s_dlio", "samples/s", dlio),
        ("mb_per_s_nominal_steady", "MiB/s", f"nominal record length, {left_out}"),
        ("mb_per_s_nominal_whole", "MiB/s", "nominal record length, whole epoch"),
        ("mb_per_s_nominal_dlio", "MiB/s", f"nominal record length, {dlio}"),
        ("first_step_share", "", "part of the epoch until the first batch is there"),
        ("barrier_share", "", "part of the epoch that is neither load nor computation"),
        ("mb_per_s_read", "MiB/s", "really asked for by the ranks and their readers (rchar)"),
        ("mb_per_s_fetched", "MiB/s", "of it, fetched from a device (read_bytes)"),
        ("device_mb_per_s", "MiB/s", "read from the device by the whole machine"),
    ]


def _reported(empty: IoResponse, run: IoRun) -> IoResponse:
    """Give DLIO's own figure where a summary is all that is there."""
    value = run.reported.get(REPORTED.get(empty.name, ""))
    if isinstance(value, float) and math.isfinite(value) and not cannot_be(empty.name, [value]):
        return replace(empty, value=value)
    return replace(empty, why_missing="DLIO's summary is there without step lists (<rank>_output.json)")


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


# Throughput and utilisation are one measurement: samples/s = AU/100 x batch x P / t_c, but for the steps that are counted. With the
# computation that was asked for (nominal) it is off by how long sleeps overshoot. With that clocked it is 1 over the same steps of one
# rank: that shows that figures and step lists belong together, and nothing of the sleeps.


@dataclass(frozen=True, slots=True)
class Identity:
    """Throughput over what AU implies: `nominal` with t_c as it was asked for, `measured` with the computation that was clocked.

    `overslept` is how long a computation took, of what was asked for.
    """

    nominal: float | None = None
    measured: float | None = None
    overslept: float | None = None
    why_missing: str | None = None


def identity(judged: JudgedResponse) -> Identity:
    run = judged.run
    if not run.epochs or run.batch_size is None:
        return Identity(why_missing="its batch size is not recorded" if run.epochs else "it trained nothing")
    if judged.refused:
        return Identity(why_missing=f"{judged.doubts[0].kind}: {judged.doubts[0].reason}")
    steps, kept = fewest_steps(run)
    if steps <= DLIO_UNCOUNTED_STEPS or not kept:
        return Identity(why_missing=f"{steps} steps an epoch: none is left to count")
    if len({(epoch.number, epoch.rank) for epoch in run.epochs}) < len(run.epochs):
        return Identity(why_missing="epochs in blocks: DLIO averages both figures over them")
    figures = [job_figures(job, run) for job in job_epochs(run)]  # with the computation as it was clocked
    au, rate = (fmean(row[name] or 0.0 for row in figures) for name in (STEADY, "samples_per_s_steady"))
    # The mean computation of the retained steps, each epoch and rank by itself first, as AU is averaged.
    parts = [(epoch, retained(epoch, run.excluded_start_steps, run.excluded_end_steps)) for epoch in run.epochs]
    measured_s = fmean(fmean(epoch.compute_s[part.start : part.stop]) if part else 0.0 for epoch, part in parts)
    if not au or not rate or not measured_s:
        return Identity(why_missing="nothing was computed, so there is no utilisation to hold against the throughput")
    demand = au / 100 * run.batch_size * run.processes
    nominal = rate * run.computation_time_s / demand if run.computation_time_s else None
    return Identity(nominal, rate * measured_s / demand, overslept(run))


def describe_identity(judged: Iterable[JudgedResponse]) -> str | None:
    """Describe the ratio over several runs, nominal and as clocked, and how long sleeps overshot."""
    known = [one for one in map(identity, judged) if one.measured is not None]
    if not known:
        return None
    clocked, nominal, late = (
        [value for one in known if (value := getattr(one, name)) is not None] for name in ("measured", "nominal", "overslept")
    )
    count = "1 run" if len(known) == 1 else f"{len(known)} runs"
    broken = ": broken, so steps and times of a run do not belong together" if min(clocked) < LOW or max(clocked) > HIGH else ""
    asked = f"{_span(nominal)} with the computation time asked for, " if nominal else ""
    slept = f"; a computation took {_span(late, 3)} times as long as asked for" if late else ""
    what = "samples/s ÷ (AU as clocked × batch × processes ÷ computation time)"
    return f"{what} over {count}: {asked}{_span(clocked)} with that clocked{broken}{slept}"


def describe_oversleep(judged: Iterable[JudgedResponse]) -> str | None:
    """Explain why AU is computed with the computation time asked for; None where it is not."""
    judged = list(judged)
    if not any(NOMINAL in one.responses[WHOLE].label for one in judged):
        return None
    late = [ratio for one in judged if (ratio := overslept(one.run)) is not None and ratio > OVERSLEPT]
    often = f"in {len(late)} of {len(judged)} runs a computation took more than {OVERSLEPT - 1:.0%} longer"
    most = f" (up to {max(late):.2f} times as long)" if late else ""
    return f"AU is computed {NOMINAL}: {often}{most}, and AU as clocked would take waiting for the machine for work"


def _span(values: Sequence[float], digits: int = 4) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


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
        "identity": asdict(identity(judged)),
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
