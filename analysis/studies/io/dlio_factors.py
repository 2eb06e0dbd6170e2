"""Which settings of DLIO runs can be held against each other, and what an F says of them, over epochs and on repeated runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from .dlio_published import setting_of
from .oneway import Oneway, on_run_error, over_epochs, run_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .dlio_published import Row
    from .oneway import RunError
    from .responses import Judged

# Where something lies says nothing of how it is read.
PLACES = frozenset({"data_folder", "checkpoint_folder", "generate_data", "output_folder", "log_level", "log_file", "seed"})
FIRST = {"model": "{}", "processes": "{} ranks"}  # how a comparison is told from another
TOGETHER = {"shuffle file+sample": ("file_shuffle", "sample_shuffle")}  # one question to a reader: does the order matter
STEADY, WHOLE = "au_steady_percent", "au_whole_percent"


@dataclass(frozen=True, slots=True)
class Compared:
    """Runs that differ in one thing: `levels` are its values in words, each with its runs.

    `among` is what they have in common, as far as it tells them from others that differ in the same thing.
    """

    factor: str
    levels: Mapping[str, tuple[Judged, ...]]
    among: str = ""


@dataclass(frozen=True, slots=True)
class Tested:
    """One factor and one response. `epochs` takes epochs for replicates and concludes nothing; `runs` stands on repeated runs.

    `skipped` epochs at the start of each run are left out of `epochs`.
    """

    factor: str
    levels: tuple[str, ...]
    response: str
    epochs: Oneway | None
    runs: Oneway | None
    skipped: int = 0
    among: str = ""


def compared(judged: Sequence[Judged]) -> list[Compared]:
    """Find all sets of runs that differ in one factor only."""
    found = []
    judged = [one for one in judged if one.run.configured]
    params = [{**one.run.params, "processes": one.run.processes, "model": one.run.model} for one in judged]
    varying = {name for each in params for name in each if len({str(other.get(name)) for other in params}) > 1} - PLACES
    merged = {name: parts for name, parts in TOGETHER.items() if varying & set(parts)}
    parts = {part for group in merged.values() for part in group}
    for factor, own in [*((name, (name,)) for name in sorted(varying - parts)), *merged.items()]:
        groups: dict[tuple[tuple[str, str], ...], dict[str, list[Judged]]] = {}
        names = sorted(varying - set(own), key=lambda name: (name not in FIRST, name))
        for one, each in zip(judged, params, strict=True):
            level = "+".join(str(each.get(name)) for name in own)
            groups.setdefault(tuple((name, str(each.get(name))) for name in names), {}).setdefault(level, []).append(one)
        several = {rest: levels for rest, levels in groups.items() if len(levels) > 1}
        # As much of what they have in common as tells one comparison from the other.
        told = next(length for length in range(len(names) + 1) if len({rest[:length] for rest in several}) == len(several))
        for rest, levels in several.items():
            among = ", ".join(FIRST.get(name, f"{name} {{}}").format(value) for name, value in rest[:told])
            in_order = {name: tuple(levels[name]) for name in sorted(levels, key=_in_order)}
            found.append(Compared(factor, in_order, f"{among}: " if among else ""))
    return found


def _in_order(level: str) -> tuple[float, str]:
    return (float(level), "") if _is_number(level) else (float("inf"), level)


def _is_number(level: str) -> bool:
    return level.replace(".", "", 1).isdecimal()


def tested(groups: Iterable[Compared], error: Mapping[str, RunError | None]) -> list[Tested]:
    """Test each factor: all its levels, neighbours where there are three or more, and steady AU without the first epoch."""
    return [one for group in groups for one in _tested(group, error)]


def _tested(group: Compared, error: Mapping[str, RunError | None]) -> Iterator[Tested]:
    names = tuple(group.levels)
    for response in (STEADY, WHOLE):
        yield _test(group, names, response, error.get(response))
    yield _test(group, names, STEADY, None, skipped=1)
    if len(names) > 2 and all(map(_is_number, names)):
        for pair in pairwise(names):
            yield _test(group, pair, STEADY, error.get(STEADY))


def _test(group: Compared, names: tuple[str, ...], response: str, error: RunError | None, skipped: int = 0) -> Tested:
    epochs = {name: [value for one in group.levels[name] for value in values_of(one, response)[skipped:]] for name in names}
    means = [[value for one in group.levels[name] if (value := run_value(one, response)) is not None] for name in names]
    runs = on_run_error(means, error) if error is not None and all(means) else None
    return Tested(group.factor, names, response, over_epochs(epochs), runs, skipped, group.among)


def values_of(one: Judged, response: str) -> Sequence[float]:
    """The epochs of a run: for steady AU those that DLIO reported, whose end stamps are nearer to its clock than those it saved."""
    reported = one.run.reported.get("train_au_percentage")
    if (
        response == STEADY
        and isinstance(reported, list)
        and reported
        and all(isinstance(value, int | float) and math.isfinite(value) for value in reported)
    ):
        return reported
    return one.responses[response].per_epoch


def run_value(one: Judged, response: str) -> float | None:
    """One number for a run: the mean of its epochs."""
    values = values_of(one, response)
    return sum(values) / len(values) if values else None


def settings(judged: Iterable[Judged]) -> dict[tuple[str, int, object], dict[tuple[str, ...], list[Judged]]]:
    """Gather runs by what they were called for (workload, ranks, override), and in it by tweak set and all their parameters.

    One of which nobody knows what it was asked for is a repeat of none.
    """
    groups: dict[tuple[str, int, object], dict[tuple[str, ...], list[Judged]]] = {}
    for one in (one for one in judged if one.run.configured):
        fixed = (one.run.tweakset, *(f"{name}={one.run.params[name]}" for name in sorted(one.run.params) if name not in PLACES))
        groups.setdefault((one.run.model, one.run.processes, setting_of(one.run)), {}).setdefault(fixed, []).append(one)
    return groups


def error_of(judged: Sequence[Judged], rows: Sequence[Row], response: str = STEADY) -> RunError | None:
    """What repeated runs of one setting scatter by; published rows whose raw files are not there count as further runs of theirs."""
    groups: dict[object, dict[tuple[str, ...], list[float]]] = {}
    for key, inner in settings(judged).items():
        groups[key] = {fixed: [value for one in runs if (value := run_value(one, response)) is not None] for fixed, runs in inner.items()}
    if response == STEADY:
        for row in rows:
            same = groups.setdefault((row.model, row.processes, row.setting), {})
            if len(same) <= 1:  # of several configurations under one name nobody knows which was published
                same.setdefault(next(iter(same), ()), []).append(row.au_percent)
    return run_error({(key, fixed): values for key, inner in groups.items() for fixed, values in inner.items()})
