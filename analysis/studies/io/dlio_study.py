"""DLIO's result folders as a study: runs judged, what is stale, what was published, which settings compare, and on which error.

Epochs of one run are no replicates: they share its machine, its page cache and its order of files, so an F over them (`over_epochs`) says
how steady a run is, not whether a setting matters. The error that counts is what a run repeated scatters by (`run_error`).

Source: Hurlbert, Ecological Monographs 1984 (pseudo-replication).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, variance
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from analysis.plain import one_line
from analysis.terms import Unreadable

from .dlio_folder import runs_of
from .dlio_published import PublishedRow, beside, is_published, match, rows_of, setting_of
from .formulas import STEADY, WHOLE
from .responses import JudgedResponse, add_doubt, judge
from .stale import Stale, stale_rows, stale_runs
from .terms import Doubt, IoRun
from .validity import EVERY, is_numbers

if TYPE_CHECKING:
    Settings = dict[tuple[str, int, object], dict[tuple[str, ...], list[JudgedResponse]]]

DESIGN = "experimental_design.csv"
STALE = "stale data"
RECORD_LENGTHS = ("record_length_bytes", "record_length")
# Where something lies says nothing of how it is read.
PLACES = frozenset({"data_folder", "checkpoint_folder", "generate_data", "output_folder", "log_level", "log_file", "seed"})
FIRST = {"model": "{}", "processes": "{} ranks"}  # how a comparison is told from another
TOGETHER = {"shuffle file+sample": ("file_shuffle", "sample_shuffle")}  # one question to a reader: does the order matter


@dataclass(frozen=True, slots=True)
class Oneway:
    """An F; `eta2` is the part of all variation that lies between the levels, None on a run error."""

    f: float
    df_between: int
    df_error: int
    p: float
    eta2: float | None = None


@dataclass(frozen=True, slots=True)
class RunError:
    """What runs of one setting scatter by: `sd` in the response's unit, pooled over settings that were run again."""

    sd: float
    df: int
    settings: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs that differ in one thing: its `levels` in words, each with its runs. `among` tells them from others that differ in the same."""

    factor: str
    levels: Mapping[str, tuple[JudgedResponse, ...]]
    among: str = ""


@dataclass(frozen=True, slots=True)
class FactorTest:
    """One factor and one response. `epochs` takes epochs for replicates and concludes nothing; `runs` stands on repeated runs.

    `skipped` epochs at each run's start are left out of `epochs`.
    """

    factor: str
    levels: tuple[str, ...]
    response: str
    epochs: Oneway | None
    runs: Oneway | None
    skipped: int = 0
    among: str = ""


@dataclass(frozen=True, slots=True)
class DlioStudy:
    """What DLIO results show.

    `judged` are runs that trained, in time order, `generations` those that only made data, `summaries` those
    of which DLIO's own figures are there alone; `rows` are published ones, `raw` whose files are
    here; `usable` are neither degenerate nor stale nor refused: comparisons are made of them. `groups` differ in one factor each; `error`
    is what repeated runs scatter by. `beside` are published tables above what was named, which were not read.
    """

    paths: tuple[str, ...]
    judged: tuple[JudgedResponse, ...]
    generations: tuple[IoRun, ...]
    refused: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    raw: Mapping[PublishedRow, IoRun]
    stale: tuple[Stale, ...]
    usable: tuple[JudgedResponse, ...]
    error: Mapping[str, RunError | None]
    groups: tuple[Comparison, ...]
    tests: tuple[FactorTest, ...]
    beside: tuple[Path, ...] = ()
    summaries: tuple[IoRun, ...] = ()


def dlio_study(paths: Sequence[Path], start: int | None = None, end: int | None = None) -> DlioStudy:
    """Read and analyse result folders, folders of them and published tables; `refused` names what cannot be read.

    `start` and `end` are steps left out of steady figures, where these are not each run's own.
    """
    refused: list[str] = []
    folders = [path for path in paths if path.is_dir()]
    runs = list({run.origin: excluding(run, start, end) for path in folders for run in runs_of(path, refused)}.values())
    rows = _published(paths, refused)
    if any(len({one.model for one in each}) > 1 for each in (runs, rows)):  # a name tells runs of one model apart
        runs, rows = [replace(run, id=f"{run.model} {run.id}") for run in runs], [replace(row, named=True) for row in rows]
    trained = [judge(run) for run in runs if run.kind == "training"]
    generations = tuple(run for run in runs if run.kind == "generation")
    raw = match(rows, runs)
    lost = [row for row in rows if row not in raw]
    stale = (*stale_runs(trained, generations), *_stale_rows(lost, rows, runs))
    doubts = {one.origin: Doubt(STALE, f"it ran on the data of {one.ran_on}", EVERY) for one in stale}
    judged = tuple(add_doubt(one, doubts[one.run.origin]) if one.run.origin in doubts else one for one in trained)
    usable = tuple(one for one in judged if not one.has_doubt(STALE, "degenerate") and not one.refused)
    groups = tuple(comparisons(usable))
    sound = [row for row in lost if row.id not in {one.id for one in stale}]
    error = {STEADY: error_of(usable, sound), WHOLE: error_of(usable, (), WHOLE)}
    return DlioStudy(
        tuple(map(str, paths)),
        judged,
        generations,
        tuple(refused),
        tuple(rows),
        raw,
        stale,
        usable,
        error,
        groups,
        tuple(test for group in groups for test in _tests(group, error)),
        () if rows else tuple(dict.fromkeys(table for path in folders for table in beside(path))),
        tuple(run for run in runs if run.kind == "summary"),
    )


def excluding(run: IoRun, start: int | None, end: int | None) -> IoRun:
    """Return a run with other steps left out of its steady figures; None leaves its own."""
    start, end = run.excluded_start_steps if start is None else start, run.excluded_end_steps if end is None else end
    return replace(run, excluded_start_steps=start, excluded_end_steps=end)


def _published(paths: Sequence[Path], refused: list[str]) -> list[PublishedRow]:
    tables = [path for path in paths if path.is_file()]
    tables += [one for path in paths if path.is_dir() for one in sorted(path.glob("*.csv")) if is_published(one)]
    result: list[PublishedRow] = []
    for table in dict.fromkeys(tables):
        design = table.with_name(DESIGN)
        try:
            result += rows_of(table, design if design.is_file() else None)
        except Unreadable as error:
            refused.append(one_line(error))
    return result


def _stale_rows(lost: Sequence[PublishedRow], rows: Sequence[PublishedRow], runs: Sequence[IoRun]) -> list[Stale]:
    """Judge published rows by the record length that most of the study's runs had."""
    lengths = Counter(run.record_length_bytes for run in runs if run.kind == "training" and len(run.epochs) > run.processes)
    usual = lengths.most_common(1)[0][0] if lengths else None
    changes = {
        row: float(row.setting[1]) for row in rows if row.setting and row.setting[0] in RECORD_LENGTHS and row.setting[1].isdecimal()
    }
    return [stale for stale in stale_rows(rows, usual, changes) if stale.id in {row.id for row in lost}]


# Which settings can be compared.


def comparisons(judged: Sequence[JudgedResponse]) -> Iterator[Comparison]:
    known = [one for one in judged if one.run.configured]
    rows = [{**one.run.params, "processes": one.run.processes, "model": one.run.model} for one in known]
    params = [{name: str(row.get(name)) for name in {name for each in rows for name in each} - PLACES} for row in rows]
    varying = {name for name in (params[0] if params else ()) if len({row[name] for row in params}) > 1}
    merged = {name: parts for name, parts in TOGETHER.items() if varying & set(parts)}
    single = sorted(varying - {part for parts in merged.values() for part in parts})
    for factor, own in [*((name, (name,)) for name in single), *merged.items()]:
        names = sorted(varying - set(own), key=lambda name: (name not in FIRST, name))
        groups: dict[tuple[str, ...], dict[str, list[JudgedResponse]]] = defaultdict(lambda: defaultdict(list))
        for one, row in zip(known, params, strict=True):
            groups[tuple(row[name] for name in names)]["+".join(row.get(name, "None") for name in own)].append(one)
        several = {rest: levels for rest, levels in groups.items() if len(levels) > 1}
        # As much of what they have in common as tells one comparison from the other.
        length = next(length for length in range(len(names) + 1) if len({rest[:length] for rest in several}) == len(several))
        for rest, levels in several.items():
            pairs = list(zip(names, rest, strict=True))[:length]
            among = ", ".join(FIRST.get(name, f"{name} {{}}").format(value) for name, value in pairs)
            in_order = {name: tuple(levels[name]) for name in sorted(levels, key=_by_size)}
            yield Comparison(factor, in_order, f"{among}: " if among else "")


def _by_size(level: str) -> tuple[float, str]:
    return (float(level), "") if _is_number(level) else (math.inf, level)


def _is_number(level: str) -> bool:
    return level.replace(".", "", 1).isdecimal()


def settings(judged: Iterable[JudgedResponse]) -> Settings:
    """Group runs by workload, ranks and override, and in it by tweak set and all parameters.

    One of which nobody knows what it was asked for is a repeat of none.
    """
    groups: Settings = defaultdict(lambda: defaultdict(list))
    for one in judged:
        run = one.run
        if run.configured:
            fixed = (run.tweakset, *(f"{name}={run.params[name]}" for name in sorted(run.params) if name not in PLACES))
            groups[run.model, run.processes, setting_of(run)][fixed].append(one)
    return groups


def values_of(judged: JudgedResponse, response: str) -> Sequence[float]:
    """Return the epochs of a run; steady AU as DLIO reported it, whose end stamps are nearer to its clock than those it saved."""
    reported = judged.run.reported.get("train_au_percentage")
    return reported if response == STEADY and is_numbers(reported) else judged.responses[response].per_epoch


def run_values(runs: Iterable[JudgedResponse], response: str) -> list[float]:
    """Return one number a run: the mean of its epochs."""
    return [sum(values) / len(values) for run in runs if (values := values_of(run, response))]


# Tests.


def _tests(group: Comparison, error: Mapping[str, RunError | None]) -> Iterator[FactorTest]:
    """Test all levels of a factor, neighbours where there are three or more, and steady AU without the first epoch."""
    names = tuple(group.levels)
    requests = [(names, STEADY, 0), (names, WHOLE, 0), (names, STEADY, 1)]
    if len(names) > 2 and all(map(_is_number, names)):
        requests += [(pair, STEADY, 0) for pair in pairwise(names)]
    for levels, response, skipped in requests:
        epochs = {name: [value for judged in group.levels[name] for value in values_of(judged, response)[skipped:]] for name in levels}
        means = [run_values(group.levels[name], response) for name in levels]
        scatter = None if skipped else error[response]
        runs = on_run_error(means, scatter) if scatter is not None and all(means) else None
        yield FactorTest(group.factor, levels, response, over_epochs(epochs), runs, skipped, group.among)


def over_epochs(levels: Mapping[str, Sequence[float]]) -> Oneway | None:
    """F with epochs as if they were replicates, to be shown as such; None where too few are left, or none scatters."""
    groups = [np.asarray(values, float) for values in levels.values()]
    between, error = len(groups) - 1, sum(map(len, groups)) - len(groups)
    if between < 1 or error < 1 or not all(map(len, groups)) or all(np.ptp(group) == 0 for group in groups):
        return None
    f, p = map(float, stats.f_oneway(*groups))
    return Oneway(f, between, error, p, f * between / (f * between + error)) if math.isfinite(f) else None


def run_error(repeats: Iterable[Sequence[float]]) -> RunError | None:
    """Pool what repeated runs of one setting scatter by; None without any. For pairs it is the root of the mean of d²/2."""
    repeated = [values for values in repeats if len(values) > 1]
    df = sum(len(values) - 1 for values in repeated)
    if not df:
        return None
    ss = math.fsum(variance(values) * (len(values) - 1) for values in repeated)
    return RunError(math.sqrt(ss / df), df, len(repeated))


def on_run_error(means: Sequence[Sequence[float]], error: RunError) -> Oneway | None:
    """F of levels, each with the means of its runs, on the scatter of repeated runs; None where there is none to take."""
    if len(means) < 2 or error.sd <= 0:
        return None
    grand = fmean([value for runs in means for value in runs])
    between = len(means) - 1
    f = math.fsum(len(runs) * (fmean(runs) - grand) ** 2 for runs in means) / between / error.sd**2
    return Oneway(f, between, error.df, float(stats.f.sf(f, between, error.df)))


def error_of(judged: Sequence[JudgedResponse], rows: Sequence[PublishedRow], response: str = STEADY) -> RunError | None:
    """Return what repeated runs of one setting scatter by; a published row whose raw files are not there is one more run."""
    groups = {key: [run_values(runs, response) for runs in inner.values()] for key, inner in settings(judged).items()}
    for row in rows:
        same = groups.setdefault((row.model, row.processes, row.setting), [[]])
        if len(same) == 1:  # of several configurations under one name nobody knows which was published
            same[0].append(row.au_percent)
    return run_error(values for inner in groups.values() for values in inner)
