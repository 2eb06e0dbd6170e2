"""The same gate for parameters: sets that are copies, values on the bounds of their fit, curves no GPU has."""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from analysis.terms import Unreadable
from control.power import grid
from control.power.models import own as own_model
from control.power.models import reference as predictor
from control.power.models.own import Own
from control.power.models.reference import Reference
from control.power.models.trees import ARRAYS

from . import parameters
from .predicting import over_clocks
from .quality import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from control.power.models.trees import Ensemble
    from control.power.terms import Floats, Model

Key = tuple[str, str, float]  # network, GPU, memory clock in MHz
CLOCKS = 30
ROUNDING = 1e-9
# Between which the original's fit keeps a parameter; one that stops there did not converge.
BOUNDS: dict[str, tuple[Callable[[Reference], float], float, float]] = {
    "kappa of the SM prior": (lambda model: model.sm_system.kappa, 0.1, 20.0),
    "gamma of throughput": (lambda model: model.throughput.gamma, 0.1, 2.0),
    "gamma of power": (lambda model: model.power.gamma, 1.0, 5.0),
}


def findings(models: Mapping[Key, Model]) -> list[Finding]:
    """Answer what is wrong with models, by network, GPU and memory clock."""
    found = [*_copies(models), *_same_static(models)]
    for key, model in models.items():
        if isinstance(model, Reference):
            found += _on_bounds(model, said(key))
        found += _curves(model, said(key))
    return found


def said(key: Key) -> str:
    """A model's name in a sentence."""
    return f"{key[0]} on {key[1]} at {key[2]:g} MHz"


def copies_of(used: Iterable[Key], path: Path) -> list[Finding]:
    """Answer which of the models that an answer stands on share parameters with another of those at `path`.

    A model there that cannot be read is no reason against an answer that others give, and is passed over. Raises: Refused.
    """
    models: dict[Key, Model] = {}
    for key, read in parameters.available(path).items():
        with suppress(Unreadable):
            models[key] = read()
    return list(_copies(models, frozenset(used)))


def _copies(models: Mapping[Key, Model], among: Collection[Key] | None = None) -> Iterator[Finding]:
    """Find models, and regressors or laws of theirs, that are another's to the last bit. Static power may be: it is the GPU's.

    Which of the two was there first nothing tells, so the pair is named. With `among` only pairs with one of these.
    """
    parts = {key: _parts(model) for key, model in models.items()}
    for one, other in itertools.combinations(parts, 2):
        if among is not None and one not in among and other not in among:
            continue
        pair = f"{said(one)} and {said(other)}"
        same = [name for name, part in parts[one].items() if parts[other].get(name) == part]
        if same and len(same) == len(parts[one]):
            yield Finding("copy", pair, "all parameters are the same: one is a copy of the other, and nothing tells which.", refuses=True)
        elif same:
            yield Finding(
                "copy", pair, f"{', '.join(same)}: the same in both: one has them of the other, and nothing tells which.", refuses=True
            )


def _parts(model: Model) -> dict[str, object]:
    """What is a model's own, by name; of an own model its surfaces, and how they fall with the clock where that was measured."""
    if isinstance(model, Own):
        said = own_model.as_json(model)
        curves = {name: said[f"{name}_response"] for name in ("throughput", "power") if len(said[f"{name}_response"]["clocks"]) > 1}
        return {name: json.dumps(part) for name, part in {**said["surfaces"], **curves}.items()}
    if not isinstance(model, Reference):
        return {}
    laws = {name: asdict(getattr(model, name)) for name in predictor.LAWS}
    del laws["power"]["static_w"]
    grown = {f"trees of {name}": _bytes(getattr(model, f"{name}_trees")) for name in predictor.FEATURES}
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
            yield Finding("static", said(keys[0]), f"the same static power as {others}: it was measured at one of them.")


def _on_bounds(model: Reference, where: str) -> Iterator[Finding]:
    for name, (value_of, low, high) in BOUNDS.items():
        value = value_of(model)
        if min(abs(value - low), abs(value - high)) < 1e-3 * (high - low):
            yield Finding("bound", where, f"{name} is {value:.4g}, on the bound of its fit ({low:g} to {high:g}): it did not converge.")


def _curves(model: Model, where: str) -> Iterator[Finding]:
    """Ask the model for its own grid at clocks between the ends of its range."""
    partitions = [point.partition for point in grid.anchor()]
    anchor = over_clocks(model.anchor(partitions))
    clocks = np.linspace(*model.sm_range_mhz, CLOCKS)
    throughput = model.throughput_images_per_s(anchor, clocks)
    power = model.power_w(anchor, clocks)
    for name, values in (("throughput", throughput), ("power", power)):
        yield from _impossible(name, values, where)
        falling = (np.diff(values, axis=1) < -ROUNDING * np.abs(values[:, 1:])).any(axis=1).sum()
        if falling:
            yield Finding(
                "falls",
                where,
                f"{name} falls somewhere while the clock rises, for {falling} of the {len(partitions)} partitions of the grid.",
            )


def _impossible(name: str, values: Floats, where: str) -> Iterator[Finding]:
    # At the lowest clock of its range the original has no throughput at all, by its formula.
    wrong = ((values[:, 1:] <= 0) | ~np.isfinite(values[:, 1:]) | (values[:, :1] < 0)).any(axis=1).sum()
    if wrong:
        yield Finding(
            "impossible", where, f"{name} is 0, negative or no number for {wrong} of {len(values)} partitions of the grid.", refuses=True
        )
