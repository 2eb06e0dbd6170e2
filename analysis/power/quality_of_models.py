"""The same gate for parameters: sets that are copies, values on the bounds of their fit, curves no GPU has."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import numpy as np

from . import grid, own_model, predictor
from .own_model import Own
from .predicting import over_clocks
from .predictor import Reference
from .quality import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .terms import Floats, Model

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


def _copies(models: Mapping[Key, Model]) -> Iterator[Finding]:
    """Find models, and regressors or laws of theirs, that are another's to the last bit. Static power may be: it is the GPU's."""
    parts = {key: _parts(model) for key, model in models.items()}
    for one, other in itertools.combinations(parts, 2):
        same = [name for name, part in parts[one].items() if parts[other].get(name) == part]
        if same and len(same) == len(parts[one]):
            yield Finding("copy", said(other), f"it is a copy of {said(one)}.", refuses=True)
        elif same:
            yield Finding("copy", said(other), f"{', '.join(same)}: a copy of what {said(one)} has.", refuses=True)


def _parts(model: Model) -> dict[str, str]:
    """What is a model's own, by name; of an own model its surfaces, and how they fall with the clock where that was measured."""
    if isinstance(model, Own):
        said = own_model.as_json(model)
        curves = {name: said[f"{name}_response"] for name in ("throughput", "power") if len(said[f"{name}_response"]["clocks"]) > 1}
        return {name: json.dumps(part) for name, part in {**said["surfaces"], **curves}.items()}
    if not isinstance(model, Reference):
        return {}
    whole = predictor.as_json(model)
    power = {name: value for name, value in whole["power"].items() if name != "static_w"}
    laws = {name: whole[name] for name in predictor.LAWS}
    grown = {f"trees of {name}": one for name, one in whole["trees"].items()}
    return {name: json.dumps(part) for name, part in {**laws, "power": power, **grown}.items()}


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
