"""Throughput and utilisation are one measurement: `samples/s = AU/100 x batch x P / t_c`, but for the steps that are counted.

With the computation that was asked for (nominal) it is off by how long sleeps overshoot. With the computation as it was clocked it is 1
over the same steps of one rank, whatever was measured: that shows that figures and step lists belong together, and nothing of the sleeps.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from .reckoning import DLIO_UNCOUNTED_STEPS, retained
from .responses import NOMINAL, formulas, is_refused
from .validity import OVERSLEPT, excludes_its_own, fewest_steps, overslept

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .responses import JudgedResponse
    from .terms import IoRun

LOW, HIGH = 0.995, 1.005  # ranks that compute unequally long leave it a little off


@dataclass(frozen=True, slots=True)
class Identity:
    """Throughput over what AU implies: `nominal` with t_c as it was asked for, `measured` with the computation that was clocked.

    `overslept` is how long a computation took, of what was asked for. `reported` is that of the source's own two figures, counted as the
    source counts; None where it reports none. `why_missing` says why there is no ratio at all.
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
    if steps <= DLIO_UNCOUNTED_STEPS or not kept:
        return Identity(why_missing=f"{steps} steps an epoch: none is left to count")
    if len({(epoch.number, epoch.rank) for epoch in run.epochs}) < len(run.epochs):
        return Identity(why_missing="epochs in blocks: DLIO averages both figures over them")
    au, rate = formulas(run, "au_steady_percent", "samples_per_s_steady")
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
    """Say of some runs together what the ratio is, nominal and as clocked, and how long sleeps overshot; None where none can be checked."""
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
        steps = retained(epoch, run.excluded_start_steps, run.excluded_end_steps)
        means.append(fmean(epoch.compute_s[steps.start : steps.stop]) if steps else 0.0)
    return fmean(means) if means else 0.0


def _reported(run: IoRun, steps: int, kept: int) -> float | None:
    """DLIO's two figures against each other: it counts S - 2 steps over the time of those retained; 2.0.0 counted otherwise."""
    au, rate = (run.reported.get(name) for name in ("train_au_mean_percentage", "train_throughput_mean_samples_per_second"))
    if not isinstance(au, float) or not isinstance(rate, float) or not au:
        return None
    if run.dlio_counts_all or not run.computation_time_s or not run.batch_size or not excludes_its_own(run):
        return None
    counted = (steps - DLIO_UNCOUNTED_STEPS) / kept
    return rate * run.computation_time_s / (au / 100 * run.batch_size * run.processes * counted)


# For programs.


def record(judged: JudgedResponse) -> dict[str, Any]:
    """One run with its figures; of one that is refused there is the reason and nothing else. Step lists are left in their files."""
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
