"""Model parameters: JSON files per network, GPU and memory clock, or the original's files.

A file has `{"format": "deeptweak-power-model", "version": 1, "kind", "network", "gpu", "mem_mhz",
…}`; `kind` names what reads the rest. Nothing in such a file is ever executed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from control.called import JUDGE
from control.errors import Refused, Unreadable, one_line
from control.power.catalog import platforms

from . import decoded, encoded, published
from .own import Own
from .published import Folder
from .reference import Reference

if TYPE_CHECKING:
    from control.power.terms import Model

FORMAT = "deeptweak-power-model"
KINDS = {"reference": Reference, "own": Own}
Name = Annotated[str, Meta(min_length=1)]
Key = tuple[str, str, float]  # network, GPU, memory clock in MHz
Readers = dict[Key, "Callable[[], Model]"]


class Head(msgspec.Struct):
    """What is read of a file before its model is asked for; `mem_mhz` is 0 without such a clock."""

    version: Literal[1]
    kind: Literal["reference", "own"]
    network: Name
    gpu: Name
    mem_mhz: Annotated[float, Meta(ge=0, le=1e9)]


def available(path: Path, read: Callable[[Path], bytes]) -> Readers:
    """Return the models in a folder or file, each with its reader; `read` returns a file's bytes.

    Raises: Refused, for none at all.
    """
    folder = Folder.of(path if path.is_dir() else path.parent, read)
    if folder.is_published and (path.is_dir() or path.name == published.FILE):
        return dict(published.available(folder))
    if folder.is_published and path.is_file():
        raise Unreadable(f"{path}: is one of several files of a PctoDL model; name their folder.")
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    result: Readers = {}
    for file in files:
        said = published.json_of(read(file), str(file))
        if not isinstance(said, dict) or said.get("format") != FORMAT:
            if file == path:
                raise Unreadable(f"{path}: is not a model: its `format` is not {FORMAT!r}.")
            continue
        head = _checked(Head, said, str(file))
        key = (head.network, head.gpu, head.mem_mhz)
        if key in result:
            raise Refused(f"{file}: a second file of {listed([key])}; keep one of them.")
        result[key] = partial(model_of, said, str(file))
    if not result:
        raise Refused(
            f"{path}: no parameters here; `{JUDGE} power fit` writes them; PctoDL's are in its "
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
    kind = next(name for name, its in KINDS.items() if isinstance(model, its))
    document = {"format": FORMAT, "version": 1, "kind": kind, **encoded(model)}
    return json.dumps(document, allow_nan=False) + "\n"


def model_of(said: Mapping[str, Any], where: str) -> Model:
    """Read the model that a file's JSON describes. Raises: Unreadable, beginning with `where`."""
    return cast("Model", _checked(KINDS[said["kind"]], said, where))


def _checked(kind: Any, said: Mapping[str, Any], where: str) -> Any:
    try:
        return decoded(kind, said)
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError) as error:
        raise Unreadable(f"{where}: is damaged: {one_line(error)}.") from None


def listed(keys: Iterable[Key]) -> str:
    names = (
        f"{one_line(network)} on {one_line(gpu)} at {mem_mhz:g} MHz"
        for network, gpu, mem_mhz in keys
    )
    return "; ".join(names) or "none"
