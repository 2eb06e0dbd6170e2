"""Model parameters: JSON files per network, GPU and memory clock, or the original's files.

A file has `{"format": "deeptweak-power-model", "version": 1, "kind", "network", "gpu", "mem_mhz",
…}`. `kind` names the module that reads the rest. Nothing in such a file is ever executed, and
nothing here opens one: a side gives the content of a folder.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

import msgspec

from control.called import JUDGE
from control.errors import Refused, Unreadable, one_line
from control.power.catalog import platforms

from . import decoded, encoded, published
from .own import Own
from .reference import Reference

if TYPE_CHECKING:
    from control.power.terms import Model

    from .published import Files

FORMAT = "deeptweak-power-model"
VERSION = 1
KINDS = {"reference": Reference, "own": Own}
Key = tuple[str, str, float]  # network, GPU, memory clock in MHz
Readers = dict[Key, "Callable[[], Model]"]


def available(files: Files, place: PurePath, *, named: bool = False) -> Readers:
    """Return the models in a folder, each with a function that reads it.

    `named`: the file was, and must be one.

    Raises: Refused, for none at all.
    """
    if published.is_one(files):
        return dict(published.available(files, place))
    result: Readers = {}
    for name in (
        sorted(files)
        if named
        else sorted(name for name in files if name.endswith(".json") and "/" not in name)
    ):
        file = place / name
        said = _said(files[name], file, must=named)
        if said is None:
            continue
        key = _key(said, file)
        if key in result:
            raise Refused(f"{file}: a second file of {listed([key])}; keep one of them.")
        result[key] = partial(model_of, said, str(file))
    if not result:
        raise Refused(
            f"{place}: no parameters here; `{JUDGE} power fit` writes them; PctoDL's are in its "
            "folder fitting_results."
        )
    return result


def models_for(there: Readers, place: PurePath, network: str, gpu: str) -> dict[float, Model]:
    """Read a network's models on a GPU by memory clock, highest first, for the search.

    Raises: Refused, with the existing models, if there is none.
    """
    known = platforms().get(gpu)
    clocks = sorted({key[2] for key in there if key[:2] == (network, gpu)}, reverse=True)
    searched = [mhz for mhz in clocks if known is None or mhz in known.searched_mem_mhz]
    if not searched:
        raise Refused(
            f"{place}: no model of {one_line(network)} on {one_line(gpu)}; available: "
            f"{listed(there)}."
        )
    return {mhz: there[network, gpu, mhz]() for mhz in searched}


def text_of(model: Model) -> str:
    """Return a model as text, from which `available` restores it exactly."""
    kind = next(name for name, its in KINDS.items() if isinstance(model, its))
    document = {"format": FORMAT, "version": VERSION, "kind": kind, **encoded(model)}
    return json.dumps(document, allow_nan=False) + "\n"


def model_of(said: Mapping[str, Any], where: str) -> Model:
    """Read the model that a file's JSON describes; errors begin with `where`.

    Raises: Unreadable.
    """
    try:
        return cast("Model", decoded(KINDS[said["kind"]], said))
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError) as error:
        raise Unreadable(f"{where}: is damaged: {one_line(error)}.") from None


def listed(keys: Mapping[Key, object] | list[Key]) -> str:
    return (
        "; ".join(
            f"{one_line(network)} on {one_line(gpu)} at {mem_mhz:g} MHz"
            for network, gpu, mem_mhz in keys
        )
        or "none"
    )


def _said(content: bytes, file: PurePath, *, must: bool) -> dict[str, Any] | None:
    """Read a file's JSON; None for other formats in a folder."""
    said = published.json_of(content, str(file))
    if isinstance(said, dict) and said.get("format") == FORMAT:
        if said.get("version") != VERSION:
            raise Unreadable(
                f"{file}: format version {one_line(said.get('version'), 30)} is not supported, "
                f"only {VERSION}."
            )
        return said
    if must:
        raise Unreadable(f"{file}: has no parameters of a model: its `format` is not {FORMAT!r}.")
    return None


def _key(said: dict[str, Any], file: PurePath) -> Key:
    if said.get("kind") not in KINDS:
        raise Unreadable(
            f"{file}: kind {one_line(said.get('kind'), 30)!r} must be one of {', '.join(KINDS)}."
        )
    network, gpu, mem_mhz = said.get("network"), said.get("gpu"), said.get("mem_mhz")
    if not (isinstance(network, str) and network and isinstance(gpu, str) and gpu):
        raise Unreadable(f"{file}: `network` and `gpu` must be non-empty strings.")
    if (
        isinstance(mem_mhz, bool)
        or not isinstance(mem_mhz, int | float)
        or not math.isfinite(mem_mhz)
        or mem_mhz < 0
    ):
        raise Unreadable(
            f"{file}: mem_mhz is {one_line(mem_mhz, 30)}; it must be a clock in MHz, or 0 if the "
            "memory has none that can be set."
        )
    return network, gpu, float(mem_mhz)
