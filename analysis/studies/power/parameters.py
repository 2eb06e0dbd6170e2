"""Files of models' parameters, read and written; what is in them is `control.power.models.parameters`' business."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from analysis.opening import read_whole, resolved
from analysis.saving import write_whole
from analysis.terms import Refused, Unreadable
from control.power.models import parameters, published

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from control.power.models.parameters import Readers
    from control.power.terms import Model


class Folder(Mapping[str, bytes]):
    """What lies in a folder, or in those in it, by relative path; each file is read when it is asked for. Raises: Unreadable."""

    def __init__(self, place: Path, *names: str) -> None:
        self._place = place
        files = (one for pattern in ("*", "*/*") for one in place.glob(pattern) if not names and one.is_file())
        self._names = list(names) or sorted(str(one.relative_to(place)) for one in files)

    def __getitem__(self, name: str) -> bytes:
        return read_whole(self._place / name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def load(path: Path, network: str | None = None, gpu: str | None = None, mem_mhz: float | None = None) -> Model:
    """Read the one model that answers to what is given; nothing need be where there is only one.

    Raises: Refused, with what there is, where none or more than one does.
    """
    there = available(path)
    fitting = [key for key in there if network in {None, key[0]} and gpu in {None, key[1]} and mem_mhz in {None, key[2]}]
    if len(fitting) != 1:
        asked = ", ".join(_asked(network, gpu, mem_mhz)) or "no model named"
        raise Refused(f"{path}: {asked}: {len(fitting) or 'none'} of its models; there are {parameters.listed(fitting or list(there))}.")
    return there[fitting[0]]()


def models_for(path: Path, network: str, gpu: str) -> dict[float, Model]:
    """Read the models of a network on a GPU by memory clock, those the search may use, best (highest) first.

    Raises: Refused, with what there is, where there is none.
    """
    return parameters.models_for(available(path), path, network, gpu)


def available(path: Path) -> Readers:
    """Answer which models a folder (or one file) has, each with what reads it. Raises: Refused, for none at all."""
    place = resolved(path)
    if place.is_dir():
        return parameters.available(Folder(place), place)
    if place.name != published.FILE:
        if place.is_file() and published.is_one(Folder(place.parent)):
            raise Unreadable(f"{path}: is one of several files that PctoDL keeps of a model; name the folder they lie in.")
        return parameters.available(Folder(place.parent, place.name), place.parent, named=True)
    return parameters.available(Folder(place.parent), place.parent)


def are_published(path: Path) -> bool:
    """Are these the original's parameters?"""
    place = resolved(path)
    return published.is_one(Folder(place)) if place.is_dir() else place.name == published.FILE


def write(model: Model, path: Path, kind: str) -> None:
    """Write a model's file; what was there stays whole until the new one is. Raises: Refused, where it cannot be written."""
    write_whole(path, parameters.text_of(model, kind).encode())


def file_name(model: Model) -> str:
    """How the file of a model is called in a folder; no two models' names differ in a / alone."""
    return f"{model.network}_{model.gpu}_mem{model.mem_mhz:.12g}.json".replace("%", "%25").replace("/", "%2F")


def _asked(network: str | None, gpu: str | None, mem_mhz: float | None) -> list[str]:
    return [word for word in (network, gpu, None if mem_mhz is None else f"memory at {mem_mhz:g} MHz") if word is not None]
