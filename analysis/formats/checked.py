"""Parts of a JSON file, checked against types with msgspec; an error has its place in the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn, TypeVar

import msgspec

from analysis.terms import Unreadable

T = TypeVar("T")
EDITED = "the file is damaged or was edited: measure again, or copy it from its source"
FOREIGN = "the tool does not write this; copy the file from its source again"


class InvalidField(Unreadable):
    """A field is invalid; `reason` is the error without the file, its place, and the remedy."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class Part(NamedTuple):
    """A part of a file: its parsed value, the file, its place in it, and the remedy for errors."""

    value: Any
    origin: str
    place: str = ""
    remedy: str = EDITED

    def refuse(self, what: str, remedy: str = "") -> NoReturn:
        place = self.place or "the file"
        raise InvalidField(f"{self.origin}: {place} {what}; {remedy or self.remedy}.", what)

    def read(self, kind: type[T], field: str = "") -> T:
        """Convert the value, or a field of it, to a type; ignore fields that the type lacks.

        Raises: Unreadable, for the first field that does not match its type.
        """
        if field and field not in self.value:
            self.refuse(f"has no {field!r}")
        try:
            return msgspec.convert(self.value[field] if field else self.value, kind)
        except msgspec.ValidationError as error:
            what, _, path = str(error).partition(" - at `")
            path = path.rstrip("`").removeprefix("key in ").removeprefix("$")
            name = f"{field}{path}".strip(".")
            what = f"{what[0].lower()}{what[1:]}"
            self.refuse(f"has {name}: {what}" if name else f"is invalid: {what}")
        except RecursionError:
            self.refuse("is nested too deeply")

    def field(self, name: str, kind: type[T]) -> T:
        return self.read(kind, name)

    def made(self, kind: type[T], **known: object) -> T:
        """Convert an object, replacing or adding the fields in `known`."""
        return self._replace(value={**self.value, **known}).read(kind)

    def at(self, *steps: str | int) -> Part:
        value, place = self.value, self.place
        for step in steps:
            value = value[step]
            place += f"[{step}]" if isinstance(step, int) else f".{step}" if place else step
        return self._replace(value=value, place=place)

    def entries(self) -> Iterator[tuple[str, Part]]:
        """Yield the entries of an object with arbitrary names."""
        for name, value in self.value.items():
            yield name, self._replace(value=value, place=f"{self.place}[{name!r}]")

    def each(self) -> Iterator[Part]:
        """Yield the elements of a list."""
        for index, value in enumerate(self.value):
            yield self._replace(value=value, place=f"{self.place}[{index}]")
