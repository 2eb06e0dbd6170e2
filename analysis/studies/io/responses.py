"""What a run's input did: utilisation and throughput, whole and without the first steps; given, or refused with the reason."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from . import reckoning
from .terms import GIB, MIB, Doubt, IoResponse
from .validity import AU, EVERY, OVERSLEPT, cannot_be, contradictions, doubts, excludes_its_own, fewest_steps, overslept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from .terms import Epoch, IoRun

    Job = Sequence[Sequence[Epoch]]  # the blocks of each rank, in one epoch

OVERSLEEP = "oversleep"
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
        """One figure; None where it is refused or was not measured."""
        return self.responses[name].value

    def formula(self, name: str) -> float | None:
        """What the formula gives, believed or not: for checking the source's own figures."""
        values = self.responses[name].per_epoch
        return fmean(values) if values else None


def judge(run: IoRun, *, nominal: bool = False) -> JudgedResponse:
    """Reckon all figures of a run and refuse those that cannot be believed, each with the reason.

    `nominal` reckons AU with the computation time that was asked for; then no sleep that ended late speaks against it.
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
    """Answer a run with one more doubt, its figures refused for it."""
    reason = f"{doubt.kind}: {doubt.reason}"
    responses = {
        name: replace(response, value=None, sd_epochs=None, why_missing=reason) if name in doubt.refuses else response
        for name, response in judged.responses.items()
    }
    return replace(judged, responses=responses, doubts=(doubt, *judged.doubts))


def judged_alike(runs: Iterable[IoRun]) -> list[JudgedResponse]:
    """Judge runs with AU reckoned in one way within each saved run: where sleeps of one ended late, with the time asked for in all.

    Refusing those alone would leave the quiet ones, and compare idle machines with busy ones. Folders of DLIO are judged as DLIO reckons.
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


def job_epochs(run: IoRun) -> list[Job]:
    """The epochs of the whole job, in order: for each, the blocks of each rank."""
    result: dict[int, dict[int, list[Epoch]]] = {}
    for epoch in run.epochs:
        result.setdefault(epoch.number, {}).setdefault(epoch.rank, []).append(epoch)
    return [[sorted(ranks[rank], key=lambda epoch: epoch.block) for rank in sorted(ranks)] for _, ranks in sorted(result.items())]


def _unknown(run: IoRun) -> dict[str, str]:
    """The rates that cannot be reckoned, each with the reason: samples and bytes need the configuration."""
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


# Throughput and utilisation are one measurement: samples/s = AU/100 x batch x P / t_c, but for the steps that are counted. With the
# computation that was asked for (nominal) it is off by how long sleeps overshoot. With that clocked it is 1 over the same steps of one
# rank: that shows that figures and step lists belong together, and nothing of the sleeps.


@dataclass(frozen=True, slots=True)
class Identity:
    """Throughput over what AU implies: `nominal` with t_c as it was asked for, `measured` with the computation that was clocked.

    `overslept` is how long a computation took, of what was asked for. `reported` is of the source's own two figures, counted as it counts.
    """

    nominal: float | None = None
    measured: float | None = None
    reported: float | None = None
    overslept: float | None = None
    why_missing: str | None = None


def identity(judged: JudgedResponse) -> Identity:
    """Check a run's figures against each other."""
    run = judged.run
    if not run.epochs or run.batch_size is None:
        return Identity(why_missing="its batch size is not recorded" if run.epochs else "it trained nothing")
    if is_refused(judged):
        return Identity(why_missing=f"{judged.doubts[0].kind}: {judged.doubts[0].reason}")
    steps, kept = fewest_steps(run)
    if steps <= reckoning.DLIO_UNCOUNTED_STEPS or not kept:
        return Identity(why_missing=f"{steps} steps an epoch: none is left to count")
    if len({(epoch.number, epoch.rank) for epoch in run.epochs}) < len(run.epochs):
        return Identity(why_missing="epochs in blocks: DLIO averages both figures over them")
    known = {name: of for name, _, _, of in _formulas(run)}  # with the computation as it was clocked
    au, rate = (fmean(map(known[name], job_epochs(run))) for name in ("au_steady_percent", "samples_per_s_steady"))
    measured_s = _computation_s(run)
    if not au or not rate or not measured_s:
        return Identity(why_missing="nothing was computed, so there is no utilisation to hold against the throughput")
    demand = au / 100 * run.batch_size * run.processes
    return Identity(
        nominal=rate * run.computation_time_s / demand if run.computation_time_s else None,
        measured=rate * measured_s / demand,
        reported=_reported(run, steps, kept),
        overslept=overslept(run),
    )


def in_words(judged: Iterable[JudgedResponse]) -> str | None:
    """Say of some runs together what the ratio is, nominal and as clocked, and how long sleeps overshot."""
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


def slept_in_words(judged: Iterable[JudgedResponse]) -> str | None:
    """Say that AU is reckoned with the computation time asked for, and why; None where it is not."""
    judged = list(judged)
    late = [ratio for one in judged if (ratio := overslept(one.run)) is not None and ratio > OVERSLEPT]
    if not any(NOMINAL in one.responses["au_whole_percent"].label for one in judged):
        return None
    often = f"in {len(late)} of {len(judged)} runs a computation took more than {OVERSLEPT - 1:.0%} longer"
    most = f" (up to {max(late):.2f} times as long)" if late else ""
    return f"AU is reckoned {NOMINAL}: {often}{most}, and AU as clocked would take waiting for the machine for work"


def _span(values: Sequence[float], digits: int = 4) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def _computation_s(run: IoRun) -> float:
    """The mean computation of the retained steps, each epoch and rank by itself first, as AU is averaged."""
    means = []
    for epoch in run.epochs:
        steps = reckoning.retained(epoch, run.excluded_start_steps, run.excluded_end_steps)
        means.append(fmean(epoch.compute_s[steps.start : steps.stop]) if steps else 0.0)
    return fmean(means) if means else 0.0


def _reported(run: IoRun, steps: int, kept: int) -> float | None:
    """DLIO's two figures against each other: S - 2 steps over the time of those retained; 2.0.0 counted otherwise."""
    au, rate = (run.reported.get(name) for name in ("train_au_mean_percentage", "train_throughput_mean_samples_per_second"))
    if not isinstance(au, float) or not isinstance(rate, float) or not au:
        return None
    if run.dlio_counts_all or not run.computation_time_s or not run.batch_size or not excludes_its_own(run):
        return None
    counted = (steps - reckoning.DLIO_UNCOUNTED_STEPS) / kept
    return rate * run.computation_time_s / (au / 100 * run.batch_size * run.processes * counted)


def record(judged: JudgedResponse) -> dict[str, Any]:
    """One run with its figures; of one that is refused there is the reason and nothing else."""
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


def about(run: IoRun) -> dict[str, Any]:
    """What a run was."""
    names = [
        *("origin", "id", "kind", "model", "engine", "engine_version", "processes", "batch_size", "read_threads", "prefetch_factor"),
        *("computation_time_s", "record_length_bytes", "excluded_start_steps", "excluded_end_steps", "started_utc"),
        *("tweakset", "block", "order"),
    ]
    maps = {name: dict(getattr(run, name)) for name in ("params", "overrides", "dataset", "reported")}
    return {**{name: getattr(run, name) for name in names}, **maps, "host": asdict(run.host)}
