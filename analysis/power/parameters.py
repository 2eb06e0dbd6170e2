"""Parameters of models: a folder of JSON files, one per network, GPU and memory clock, or the original's as they are published.

A file says what it is: `{"format": "deeptweak-power-model", "version": 1, "kind", "network", "gpu", "mem_mhz", …}`. `kind` names the module
that reads the rest: `reference` → `predictor`, `own` → `own_model`. Nothing in such a file is ever executed.
"""

from __future__ import annotations

import json
import math
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from analysis.opening import read_whole, resolved
from analysis.plain import one_line
from analysis.saving import write_whole
from analysis.terms import Refused, Unreadable

from . import reference_folder
from .platforms import platforms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from .terms import Model

FORMAT = "deeptweak-power-model"
VERSION = 1
KINDS = {"reference": "predictor", "own": "own_model"}
Key = tuple[str, str, float]  # network, GPU, memory clock in MHz


def load(path: Path, network: str | None = None, gpu: str | None = None, mem_mhz: float | None = None) -> Model:
    """Read the one model that answers to what is given; nothing need be where there is only one.

    Raises: Refused, with what there is, where none or more than one does.
    """
    there = available(path)
    fitting = [key for key in there if network in {None, key[0]} and gpu in {None, key[1]} and mem_mhz in {None, key[2]}]
    if len(fitting) != 1:
        asked = ", ".join(_asked(network, gpu, mem_mhz)) or "no model named"
        raise Refused(f"{path}: {asked}: {len(fitting) or 'none'} of its models; there are {_listed(fitting or list(there))}.")
    return there[fitting[0]]()


def models_for(path: Path, network: str, gpu: str) -> dict[float, Model]:
    """Read the models of a network on a GPU by memory clock, those the search may use, best (highest) first.

    Raises: Refused, with what there is, where there is none.
    """
    there = available(path)
    known = platforms().get(gpu)
    clocks = sorted({key[2] for key in there if key[:2] == (network, gpu)}, reverse=True)
    searched = [mhz for mhz in clocks if known is None or mhz in known.searched_mem_mhz]
    if not searched:
        raise Refused(f"{path}: no model of {one_line(network)} on {one_line(gpu)}; there are {_listed(list(there))}.")
    return {mhz: there[network, gpu, mhz]() for mhz in searched}


def available(path: Path) -> dict[Key, Callable[[], Model]]:
    """Answer which models a folder (or one file) has, each with what reads it. Raises: Refused, for none at all."""
    place = resolved(path)
    if reference_folder.is_one(place):
        return dict(reference_folder.available(place))
    if place.is_file() and reference_folder.is_one(place.parent):
        raise Unreadable(f"{path}: is one of several files that PctoDL keeps of a model; name the folder they lie in.")
    files = sorted(place.glob("*.json")) if place.is_dir() else [place]
    found: dict[Key, Callable[[], Model]] = {}
    for file in files:
        said = _said(file, must=not place.is_dir())
        if said is None:
            continue
        key = _key(said, file)
        if key in found:
            raise Refused(f"{file}: a second file of {_listed([key])}; a folder has one of each.")
        found[key] = _reader(said, key, file)
    if not found:
        raise Refused(f"{path}: no parameters in it; `python -m analysis power fit` writes them, PctoDL's are its folder fitting_results.")
    return found


def write(model: Model, path: Path, kind: str) -> None:
    """Write a model; `load` gives the same back, to the last bit. `kind` is one of `KINDS`.

    What was there stays whole until the new file is. Raises: Refused, where it cannot be written.
    """
    body = import_module(f"analysis.power.{KINDS[kind]}").as_json(model)
    head = {"format": FORMAT, "version": VERSION, "kind": kind, "network": model.network, "gpu": model.gpu, "mem_mhz": model.mem_mhz}
    write_whole(path, (json.dumps({**head, **body}, allow_nan=False) + "\n").encode())


def model_of(kind: str, key: Key, said: Mapping[str, Any], where: str) -> Model:
    """Read the model a file's JSON describes; `where` begins what is said of it. Raises: Unreadable."""
    try:
        return cast("Model", import_module(f"analysis.power.{KINDS[kind]}").from_json(*key, said))
    except KeyError as error:
        raise Unreadable(f"{where}: has no {error}.") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise Unreadable(f"{where}: is damaged: {one_line(error)}.") from None


def file_name(model: Model) -> str:
    """How the file of a model is called in a folder; no two models' names differ in a / alone."""
    return f"{model.network}_{model.gpu}_mem{model.mem_mhz:.12g}.json".replace("%", "%25").replace("/", "%2F")


def _said(file: Path, *, must: bool) -> dict[str, Any] | None:
    """Read a file's JSON; None for what is of another format in a folder."""
    try:
        said = json.loads(read_whole(file), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{file}: is no JSON: {one_line(error)}.") from None
    if isinstance(said, dict) and said.get("format") == FORMAT:
        if said.get("version") != VERSION:
            raise Unreadable(f"{file}: version {one_line(said.get('version'), 30)} of its format; {VERSION} can be read.")
        return said
    if must:
        raise Unreadable(f"{file}: has no parameters of a model: its `format` is not {FORMAT!r}.")
    return None


def _key(said: dict[str, Any], file: Path) -> Key:
    network, gpu, mem_mhz = said.get("network"), said.get("gpu"), said.get("mem_mhz")
    if not (isinstance(network, str) and network and isinstance(gpu, str) and gpu):
        raise Unreadable(f"{file}: does not say of which `network` and `gpu`.")
    if isinstance(mem_mhz, bool) or not isinstance(mem_mhz, int | float) or not math.isfinite(mem_mhz) or mem_mhz < 0:
        raise Unreadable(f"{file}: mem_mhz is {one_line(mem_mhz, 30)}; it is a clock in MHz, 0 where the memory has none that can be set.")
    return network, gpu, float(mem_mhz)


def _reader(said: dict[str, Any], key: Key, file: Path) -> Callable[[], Model]:
    kind = said.get("kind")
    if kind not in KINDS:
        raise Unreadable(f"{file}: kind {one_line(kind, 30)!r} is none of {', '.join(KINDS)}.")

    return partial(model_of, kind, key, said, str(file))


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _asked(network: str | None, gpu: str | None, mem_mhz: float | None) -> list[str]:
    return [word for word in (network, gpu, None if mem_mhz is None else f"memory at {mem_mhz:g} MHz") if word is not None]


def _listed(keys: list[Key]) -> str:
    return "; ".join(f"{one_line(network)} on {one_line(gpu)} at {mem_mhz:g} MHz" for network, gpu, mem_mhz in keys) or "none"
