"""An object in a file that is read field by field, each in the type that it must have."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, Self, TypeVar

from control.saved import Count, Duration, Finite, Positive, Seconds

from .checked import Part

T = TypeVar("T")
D = TypeVar("D")


class Fields(Part):
    """One JSON object and its place in its file; each method returns one field in the type it must have, or refuses the file."""

    def __new__(cls, value: object, origin: str, place: str = "") -> Self:
        made = super().__new__(cls, value, origin, place)
        if not isinstance(value, Mapping):
            made.refuse(f"is {value!r:.40}, where an object belongs")
        return made

    def has(self, name: str) -> bool:
        return self.value.get(name) is not None

    def optional(self, read: Callable[[Fields, str], T], name: str, default: D) -> T | D:
        """Return a field as `read` (one of the methods here) does; the default where it is absent or null."""
        return read(self, name) if self.has(name) else default

    def fields(self, name: str) -> Fields:
        return Fields(self.field(name, dict[str, Any]), self.origin, f"{self.place}.{name}".strip("."))

    def optional_fields(self, name: str) -> Fields:
        return self.fields(name) if self.has(name) else Fields({}, self.origin, f"{self.place}.{name}".strip("."))

    def items(self, name: str) -> list[tuple[str, Fields]]:
        inner = self.fields(name)
        return [(key, Fields(value, self.origin, f"{inner.place}[{key!r}]")) for key, value in inner.value.items()]

    def objects(self, name: str) -> list[Fields]:
        place = f"{self.place}.{name}".strip(".")
        return [Fields(value, self.origin, f"{place}[{index}]") for index, value in enumerate(self.field(name, list[Any]))]

    def optional_mapping(self, name: str) -> Mapping[str, Any]:
        return self.fields(name).value if self.has(name) else {}

    def text(self, name: str) -> str:
        return str(self.field(name, str))

    def optional_text(self, name: str) -> str | None:
        return self.text(name) if self.has(name) else None

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(self.field(name, list[str]))

    def one_of(self, name: str, words: tuple[str, ...]) -> str:
        word = self.text(name)
        if word not in words:
            self.refuse(f"has {name} = {word!r}, where one of {', '.join(words)} belongs")
        return word

    def flag(self, name: str) -> bool:
        return bool(self.field(name, bool))

    def whole(self, name: str) -> int:
        return int(self.field(name, Count))

    def number(self, name: str) -> float:
        return float(self.field(name, Finite))

    def positive(self, name: str) -> float:
        return float(self.field(name, Positive))

    def up_to(self, name: str, most: float) -> float | None:
        value = self.number(name) if self.has(name) else None
        if value is not None and not 0 <= value <= most:
            self.refuse(f"has {name} = {value:g}, where a number from 0 to {most:g} belongs")
        return value

    def time(self, name: str) -> float:
        return float(self.field(name, Seconds))

    def times(self, name: str, *, zero: bool = False) -> tuple[float, ...]:
        """Return a list of times in seconds, as a clock gives them; with `zero`, none at all may have passed."""
        return tuple(self.field(name, list[Duration] if zero else list[Seconds]))

    def known_numbers(self, name: str, known: Container[str] | None = None) -> dict[str, float]:
        """Return the finite numbers of an object, of known names alone where these are given; null is absent, as is the object."""
        inner = self.optional_fields(name)
        names = [key for key, value in inner.value.items() if value is not None and (known is None or key in known)]
        return {key: inner.number(key) for key in names}
