"""What runs lack to be a submission to MLPerf Storage v2.0 (training), said in sentences; nothing here makes one of them."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from analysis.plain import one_line

from .departures import departures, in_words
from .mlperf import LEAST_STEPS, RUNS, SPREAD, Division, Files, Load, division, files_required, spread, threshold_percent
from .validity import fewest_steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .responses import Judged
    from .terms import IoRun


@dataclass(frozen=True, slots=True)
class Submission:
    """Runs of one setting held against the rules. `lacks` is empty where they could be submitted.

    `samples_per_s` is the mean as the rules count it (all input), `samples_per_s_dlio` as DLIO reports it; `au_needed_percent` is what
    the workload must keep, `enough` the data set that would do, where that is known, and `apart` how far runs lie apart (of the slowest).
    """

    name: str
    processes: int
    runs: int
    division: Division
    lacks: tuple[str, ...]
    au_percent: float | None = None
    samples_per_s: float | None = None
    samples_per_s_dlio: float | None = None
    au_needed_percent: float | None = None
    enough: Files | None = None
    apart: float | None = None


def submission(name: str, runs: Sequence[Judged], own: Mapping[str, object] | None = None) -> Submission:
    """Hold runs of one setting against the rules; `own` are the workload's own parameters, where they are known."""
    run, own = runs[0].run, own or {}
    decided = division(departures(run, own))
    aus, rates, theirs = (
        [value for one in runs if (value := one.value(response)) is not None]
        for response in ("au_steady_percent", "samples_per_s_whole", "samples_per_s_dlio")
    )
    enough = _enough(run, own)
    lacks = [
        *_engine(run),
        *in_words(run, own, decided.because),
        *_size(run, enough),
        *_utilisation(run.model, runs),
        *_repeats(runs, rates),
    ]
    au, rate, dlio = (round(fmean(values), 2) if len(values) == len(runs) else None for values in (aus, rates, theirs))
    return Submission(
        name,
        run.processes,
        len(runs),
        decided,
        tuple(lacks),
        au_percent=au,
        samples_per_s=rate,
        samples_per_s_dlio=dlio,
        au_needed_percent=threshold_percent(run.model),
        enough=enough,
        apart=spread(rates) if len(rates) > 1 else None,
    )


def _engine(run: IoRun) -> Iterator[str]:
    if run.engine != "dlio":
        yield f"it was run by the engine {run.engine}: the benchmark is run by DLIO (through mlpstorage)"


def _enough(run: IoRun, own: Mapping[str, object]) -> Files | None:
    """The data set that would do: of the workload's own records and batch, which neither division may change, where they are known."""
    samples = run.dataset.get("samples_per_file")
    if run.host.memory_bytes is None or not isinstance(samples, int) or samples < 1:
        return None
    batch, length = own.get("batch_size", run.batch_size), own.get("record_length_bytes", run.record_length_bytes)
    if not isinstance(batch, int) or not isinstance(length, int | float):
        return None
    return files_required(Load(run.host.memory_bytes, run.processes, batch, length, samples))


def _size(run: IoRun, need: Files | None) -> Iterator[str]:
    files, samples = (run.dataset.get(name) for name in ("files", "samples_per_file"))
    if not isinstance(files, int) or not isinstance(samples, int) or samples < 1:
        yield "how many files it read is not recorded"
        return
    if run.host.memory_bytes is None:
        yield "the hosts' memory is not recorded, so the size that the data set must have is unknown"
    elif need is not None and files < need.required:
        yield f"the data set has {files} of at least {need.required} files ({files / need.required:.2%})"
    steps, _ = fewest_steps(run)
    if steps < LEAST_STEPS:
        yield f"an epoch has {'1 step' if steps == 1 else f'{steps} steps'} of at least {LEAST_STEPS}"


def _utilisation(model: str, runs: Sequence[Judged]) -> Iterator[str]:
    least = threshold_percent(model)
    if least is None:
        yield f"{one_line(model, 40)} is no workload of the benchmark: 3D-UNet, ResNet-50 and CosmoFlow are"
        return
    values = [one.value("au_steady_percent") for one in runs]
    why = next((one.responses["au_steady_percent"].why_missing for one, value in zip(runs, values, strict=True) if value is None), None)
    if why is not None:
        yield f"its AU cannot be given ({why.partition(':')[0]})"
    if any(value is not None and value < least for value in values):
        yield f"AU is below the {least:g} % it must keep{', in one run or more' if len(runs) > 1 else ''}"


def _repeats(runs: Sequence[Judged], rates: Sequence[float]) -> Iterator[str]:
    if len(runs) < RUNS:
        yield f"{len(runs)} of {RUNS} measured runs after one to warm up"
    if len(rates) > 1 and spread(rates) > SPREAD:
        yield f"its runs lie more than {SPREAD:.0%} apart"
    if len(runs) == 1:
        return
    seeds = [str(one.run.params["seed"]) for one in runs if "seed" in one.run.params]
    if not seeds and all(one.run.block is not None for one in runs):
        yield "the blocks of a saved run have its one seed, which must change from run to run"
    elif len(set(seeds)) < len(runs):
        yield "the seed was not changed from run to run" if seeds else "no seed is recorded, which must change from run to run"


def largest(found: Sequence[Submission]) -> Submission | None:
    """What would be reported: the most processes that keep their AU, of runs that lack nothing."""
    good = [one for one in found if not one.lacks]
    return max(good, key=lambda one: one.processes, default=None)
