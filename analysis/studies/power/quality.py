"""Whether traces and parameters can be trusted: what they show that no GPU does.

A finding either refuses (nothing should be built on it) or is a note (it was left out, or the answer must be read with it in mind).
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.answer import Answer, Line, Part, marked, of_parts
from analysis.plain import one_line
from analysis.terms import Refused, Unreadable
from control.power import catalog
from control.power.models import own, reference
from control.power.models.own import Own
from control.power.models.reference import ARRAYS, Ensemble, Reference

from . import parameters, traces

if TYPE_CHECKING:
    from control.power.terms import Floats, Model

    from .traces import PartitionRow


FALL = 0.03  # of the value before: less is noise between two measurements
COPIED = 3  # configurations with the same numbers are no coincidence
ROUNDING_PERCENT = 0.05


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong. `kind` is one word of zeros, failed, impossible, copy, falls, bound, static; `what` a sentence."""

    kind: str
    where: str
    what: str
    refuses: bool = False

    @property
    def mark(self) -> str:
        """What it is marked with on a page: `!`, if nothing should be built on it."""
        return "!" if self.refuses else "·"


def findings(rows: Sequence[PartitionRow], where: str = "traces") -> list[Finding]:
    """Return what is wrong with traces; `where` names them."""
    measured = [row for row in rows if row.outcome == "measured"]
    result = [*_left_out(rows, where), *_impossible(measured, where), *_copies(measured, where)]
    result += _falls(measured, where, "throughput", _throughput)
    result += _falls(measured, where, "power", _power)
    return result


def clock_of(row: PartitionRow) -> float | None:
    """The throttle, 0 to 1, where there is one, as a fit has it; else the SM clock as it was, MHz, or as it was asked for."""
    throttle = row.extra.get("throttle")
    if isinstance(throttle, float):
        return throttle
    return row.sm_mhz if row.sm_mhz is not None else row.target_mhz


def _left_out(rows: Sequence[PartitionRow], where: str) -> Iterator[Finding]:
    for kind, chosen, text in (
        ("zeros", [row for row in rows if row.reason == traces.ZEROS], "stored as zeros; they failed, and were left out"),
        ("failed", [row for row in rows if row.outcome != "measured" and row.reason != traces.ZEROS], "failed; they were left out"),
    ):
        if chosen:
            yield Finding(kind, where, f"{len(chosen)} of {len(rows)} rows {text}: {_lines(chosen)}.")


def _impossible(rows: Sequence[PartitionRow], where: str) -> Iterator[Finding]:
    checks: tuple[tuple[str, Callable[[PartitionRow], bool], bool], ...] = (
        ("a value below 0", _negative, True),
        ("no images at all", lambda row: row.throughput_images_per_s == 0 and row.network != traces.STATIC, True),
        ("a share of more than 100 % or none", lambda row: any(not 0 < share <= 100 for share in row.shares), True),
        ("a mean power above the largest reading", _mean_above_max, True),
        ("a utilisation above 100 %, which NVML never says (it was computed)", _above_full, False),
    )
    for text, wrong, refuses in checks:
        chosen = [row for row in rows if wrong(row)]
        if chosen:
            yield Finding("impossible", where, f"{len(chosen)} of {len(rows)} rows with {text}: {_lines(chosen)}.", refuses)


def _copies(rows: Sequence[PartitionRow], where: str) -> Iterator[Finding]:
    """Find networks whose numbers are another's: two networks never give the same images/s and watts at several configurations."""
    values_of: dict[str, dict[object, set[object]]] = defaultdict(lambda: defaultdict(set))
    for row in rows:
        values = (row.throughput_images_per_s, _power(row))
        if row.network != traces.STATIC and values[0]:
            values_of[row.network][row.shares, row.batches, clock_of(row), row.mem_mhz].add(values)
    for network, other in itertools.combinations(sorted(values_of), 2):
        both = values_of[network].keys() & values_of[other].keys()
        same = sum(1 for key in both if values_of[network][key] & values_of[other][key])
        if same >= COPIED and same >= len(both) / 2:
            what = f"{one_line(network)} and {one_line(other)} have the same numbers in {same} of {len(both)} common configurations"
            yield Finding("copy", where, f"{what}: one is a copy of the other.", refuses=True)


def _falls(rows: Sequence[PartitionRow], where: str, name: str, value: Callable[[PartitionRow], float | None]) -> list[Finding]:
    """Find configurations whose value falls while the clock rises."""
    curves: dict[object, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        clock, measured = clock_of(row), value(row)
        if clock is not None and measured is not None and measured > 0:
            curves[row.network, row.shares, row.batches, row.mem_mhz].append((clock, measured))
    of_clock = {key: sorted(_means(points).items()) for key, points in curves.items()}
    swept = {key: points for key, points in of_clock.items() if len(points) > 1}
    falling = [
        (low, high, after / before - 1)
        for points in swept.values()
        for (low, before), (high, after) in itertools.pairwise(points)
        if after < before * (1 - FALL)
    ]
    if not falling:
        return []
    low, high, worst = min(falling, key=lambda fall: fall[2])
    what = f"{name} falls by more than {FALL:.0%} with the clock in {len(falling)} steps of {len(swept)} configurations"
    return [Finding("falls", where, f"{what}, at worst by {-worst:.1%} from {low:g} to {high:g}.")]


def _means(points: Sequence[tuple[float, float]]) -> dict[float, float]:
    """Repetitions of one clock are one point."""
    at: dict[float, list[float]] = defaultdict(list)
    for clock, value in points:
        at[clock].append(value)
    return {clock: sum(values) / len(values) for clock, values in at.items()}


def _throughput(row: PartitionRow) -> float | None:
    return row.throughput_images_per_s


def _power(row: PartitionRow) -> float | None:
    """Watts; without a sensor the CPU's activity, CPU seconds per second."""
    activity = row.extra.get("cpu_s_per_s")
    return row.watts if row.watts is not None else activity if isinstance(activity, float) else None


def _numbers(row: PartitionRow) -> list[float]:
    values = [getattr(row, name) for name in traces.NUMBERS.values()]
    return [value for value in values if value is not None]


def _negative(row: PartitionRow) -> bool:
    return any(value < 0 for value in _numbers(row))


def _mean_above_max(row: PartitionRow) -> bool:
    return row.power_mean_w is not None and row.power_max_w is not None and row.power_mean_w > row.power_max_w * 1.001


def _above_full(row: PartitionRow) -> bool:
    return any(value is not None and value > 100 + ROUNDING_PERCENT for value in (row.sm_util_percent, row.mem_util_percent))


def _lines(rows: Sequence[PartitionRow]) -> str:
    text = ", ".join(str(row.line) for row in rows[:5])
    return f"line{'s' * (len(rows) > 1)} {text}{' …' * (len(rows) > 5)}"


Key = tuple[str, str, float]  # network, GPU, memory clock in MHz
CLOCKS = 30
ROUNDING = 1e-9
# Between which the original's fit keeps a parameter; one that stops there did not converge.
BOUNDS: dict[str, tuple[Callable[[Reference], float], float, float]] = {
    "kappa of the SM prior": (lambda model: model.sm_system.kappa, 0.1, 20.0),
    "gamma of throughput": (lambda model: model.throughput.gamma, 0.1, 2.0),
    "gamma of power": (lambda model: model.power.gamma, 1.0, 5.0),
}


def findings_of_models(models: Mapping[Key, Model]) -> list[Finding]:
    """Return what is wrong with models, by network, GPU and memory clock."""
    result = [*_model_copies(models), *_same_static(models)]
    for key, model in models.items():
        if isinstance(model, Reference):
            result += _on_bounds(model, model_name(key))
        result += _curves(model, model_name(key))
    return result


def model_name(key: Key) -> str:
    """A model's name in a sentence."""
    return f"{key[0]} on {key[1]} at {key[2]:g} MHz"


def copies_of(used: Iterable[Key], path: Path) -> list[Finding]:
    """Return which of the models that an answer stands on share parameters with another of those at `path`.

    A model there that cannot be read is no reason against an answer that others give, and is passed over. Raises: Refused.
    """
    models: dict[Key, Model] = {}
    for key, read in parameters.available(path).items():
        with suppress(Unreadable):
            models[key] = read()
    return list(_model_copies(models, frozenset(used)))


def _model_copies(models: Mapping[Key, Model], among: Collection[Key] | None = None) -> Iterator[Finding]:
    """Find models, and regressors or laws of theirs, that are another's to the last bit. Static power may be: it is the GPU's.

    Which of the two was there first nothing tells, so the pair is named. With `among` only pairs with one of these.
    """
    parts = {key: _parts(model) for key, model in models.items()}
    for entry, other in itertools.combinations(parts, 2):
        if among is not None and entry not in among and other not in among:
            continue
        pair = f"{model_name(entry)} and {model_name(other)}"
        same = [name for name, part in parts[entry].items() if parts[other].get(name) == part]
        if same and len(same) == len(parts[entry]):
            yield Finding("copy", pair, "all parameters are the same: one is a copy of the other, and nothing tells which.", refuses=True)
        elif same:
            yield Finding(
                "copy", pair, f"{', '.join(same)}: the same in both: one has them of the other, and nothing tells which.", refuses=True
            )


def _parts(model: Model) -> dict[str, object]:
    """What is a model's own, by name; of an own model its surfaces, and how they fall with the clock where that was measured."""
    if isinstance(model, Own):
        record = own.as_json(model)
        curves = {name: record[f"{name}_response"] for name in ("throughput", "power") if len(record[f"{name}_response"]["clocks"]) > 1}
        return {name: json.dumps(part) for name, part in {**record["surfaces"], **curves}.items()}
    if not isinstance(model, Reference):
        return {}
    laws = {name: asdict(getattr(model, name)) for name in reference.LAWS}
    del laws["power"]["static_w"]
    grown = {f"trees of {name}": _bytes(getattr(model, f"{name}_trees")) for name in reference.FEATURES}
    return {**laws, **grown}


def _bytes(grown: Ensemble) -> tuple[object, ...]:
    return grown.start, grown.rate, *(getattr(grown, name).tobytes() for name in ("sizes", *ARRAYS))


def _same_static(models: Mapping[Key, Model]) -> Iterator[Finding]:
    """Find static power said to be the same at two memory clocks, or of two GPUs: it was measured once."""
    seen: dict[tuple[str, tuple[float, ...]], list[Key]] = {}
    for key, model in models.items():
        if isinstance(model, Reference):
            seen.setdefault((key[0], model.power.static_w), []).append(key)
    for keys in seen.values():
        if len(keys) > 1:
            others = ", ".join(f"{gpu} at {mem_mhz:g} MHz" for _, gpu, mem_mhz in keys[1:])
            yield Finding("static", model_name(keys[0]), f"the same static power as {others}: it was measured at one of them.")


def _on_bounds(model: Reference, where: str) -> Iterator[Finding]:
    for name, (value_of, low, high) in BOUNDS.items():
        value = value_of(model)
        if min(abs(value - low), abs(value - high)) < 1e-3 * (high - low):
            yield Finding("bound", where, f"{name} is {value:.4g}, on the bound of its fit ({low:g} to {high:g}): it did not converge.")


def _curves(model: Model, where: str) -> Iterator[Finding]:
    """Ask the model for its own grid at clocks between the ends of its range."""
    partitions = catalog.grid()
    anchor = model.anchor(partitions).column()
    clocks = np.linspace(*model.sm_range_mhz, CLOCKS)
    throughput = model.throughput_images_per_s(anchor, clocks)
    power = model.power_w(anchor, clocks)
    for name, values in (("throughput", throughput), ("power", power)):
        yield from _impossible_curves(name, values, where)
        falling = (np.diff(values, axis=1) < -ROUNDING * np.abs(values[:, 1:])).any(axis=1).sum()
        if falling:
            yield Finding(
                "falls",
                where,
                f"{name} falls somewhere while the clock rises, for {falling} of the {len(partitions)} partitions of the grid.",
            )


def _impossible_curves(name: str, values: Floats, where: str) -> Iterator[Finding]:
    # At the lowest clock of its range the original has no throughput at all, by its formula.
    wrong = ((values[:, 1:] <= 0) | ~np.isfinite(values[:, 1:]) | (values[:, :1] < 0)).any(axis=1).sum()
    if wrong:
        yield Finding(
            "impossible", where, f"{name} is 0, negative or no number for {wrong} of {len(values)} partitions of the grid.", refuses=True
        )


def answer(paths: Iterable[Path]) -> Answer:
    """Return what is wrong with files of traces (.csv) and with parameters; those of one kind are compared with each other too.

    Findings are listed by what they are of; `!` marks what refuses, and makes the exit code 1. Raises: Refused.
    """
    of_file: dict[Path, list[PartitionRow]] = {}
    models: dict[Key, Any] = {}
    for path in dict.fromkeys(paths):
        if path.suffix.lower() == ".csv":
            of_file[path] = traces.read(path)
        else:
            models |= {key: read() for key, read in parameters.available(path).items()}
    if not models and not any(of_file.values()):
        raise Refused(f"{', '.join(map(str, of_file))}: no rows; there is nothing to look at.")
    result = [finding for path, rows in of_file.items() for finding in findings(rows, str(path))]
    if len(of_file) > 1:
        together = findings([row for rows in of_file.values() for row in rows], " and ".join(map(str, of_file)))
        result += [finding for finding in together if finding.kind == "copy"]
    result = sorted(dict.fromkeys([*result, *findings_of_models(models)]), key=lambda finding: not finding.refuses)
    refusing = sum(finding.refuses for finding in result)
    rows_read = sum(map(len, of_file.values()))
    counts = " and ".join(_count(number, noun) for number, noun in ((rows_read, "row"), (len(models), "model")) if number)
    parts: list[Part] = [f"{counts}: {_count(len(result), 'finding')}; {refusing} refuse."]
    for where in dict.fromkeys(finding.where for finding in result):
        parts += ["", Line(where, tone="strong")]
        parts += marked((finding.mark, finding.what) for finding in result if finding.where == where)
    data = {"rows": rows_read, "models": len(models), "findings": result}
    return replace(of_parts(data, parts), exit_code=int(refusing > 0))


def lines(result: Iterable[Finding]) -> Iterator[Line]:
    """List findings about the models that an answer stands on."""
    return iter(marked((finding.mark, f"quality of {finding.where}: {finding.what}") for finding in result))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
