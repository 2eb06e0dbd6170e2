"""Reading foreign JSON field by field: what is not as it should be is refused in one line that says where it stands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from .terms import Unreadable

if TYPE_CHECKING:
    from collections.abc import Sequence


class Fields:
    """One JSON object and its place in its file; each method answers one field in the type it must have, or refuses the file."""

    def __init__(self, value: object, origin: str, place: str = "") -> None:
        self.origin, self.place = origin, place
        if not isinstance(value, Mapping):
            self.refuse(f"is {_shown(value)} where an object belongs")
        self.value: Mapping[str, object] = value

    def refuse(self, what: str, remedy: str = "the file is damaged or was edited: measure again, or take it from its source") -> NoReturn:
        """Say what is wrong at this place."""
        raise Unreadable(f"{self.origin}: {self.place or 'the file'} {what}; {remedy}.")

    def __contains__(self, name: str) -> bool:
        return name in self.value

    def has(self, name: str) -> bool:
        """Whether the field is there; null is absent."""
        return self.value.get(name) is not None

    def _at(self, name: str) -> str:
        return f"{self.place}.{name}" if self.place else name

    def _get(self, name: str) -> object:
        if name not in self.value:
            self.refuse(f"has no {name!r}")
        return self.value[name]

    def _wrong(self, name: str, value: object, wanted: str) -> NoReturn:
        self.refuse(f"has {name} = {_shown(value)}, where {wanted} belongs")

    def fields(self, name: str) -> Fields:
        """Answer an object."""
        return Fields(self._get(name), self.origin, self._at(name))

    def items(self, name: str) -> list[tuple[str, Fields]]:
        """Answer the named objects in an object."""
        inner = self.fields(name)
        return [(key, Fields(value, self.origin, f"{inner.place}[{key!r}]")) for key, value in inner.value.items()]

    def _list(self, name: str) -> Sequence[object]:
        value = self._get(name)
        if not isinstance(value, list | tuple):
            self._wrong(name, value, "a list")
        return value

    def each(self, name: str) -> list[Fields]:
        """Answer a list of objects."""
        return [Fields(value, self.origin, f"{self._at(name)}[{index}]") for index, value in enumerate(self._list(name))]

    def optional_mapping(self, name: str) -> Mapping[str, object]:
        """Answer an object as it is; empty where it is absent."""
        return self.fields(name).value if self.has(name) else {}

    def text(self, name: str) -> str:
        """Answer a text."""
        value = self._get(name)
        if not isinstance(value, str):
            self._wrong(name, value, "a text")
        return value

    def optional_text(self, name: str) -> str | None:
        """Answer a text, None where it is absent."""
        return self.text(name) if self.has(name) else None

    def texts(self, name: str) -> tuple[str, ...]:
        """Answer a list of texts."""
        return tuple(value if isinstance(value, str) else self._wrong(name, value, "a text") for value in self._list(name))

    def one_of(self, name: str, words: tuple[str, ...]) -> str:
        """Answer one of some words."""
        value = self._get(name)
        if not isinstance(value, str) or value not in words:
            self._wrong(name, value, f"one of {', '.join(words)}")
        return value

    def flag(self, name: str) -> bool:
        """Answer true or false."""
        value = self._get(name)
        if not isinstance(value, bool):
            self._wrong(name, value, "true or false")
        return value

    def whole(self, name: str) -> int:
        """Answer a whole number that is not negative."""
        value = self._get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            self._wrong(name, value, "a whole number")
        return value

    def positive(self, name: str) -> float:
        """Answer a finite number above 0."""
        return self._number(name, self._get(name), above=0)

    def numbers(self, name: str, *, above: float = -math.inf, least: float = -math.inf) -> tuple[float, ...]:
        """Answer a list of finite numbers, each above a bound or at least one."""
        return tuple(self._number(f"{name}[{at}]", value, above=above, least=least) for at, value in enumerate(self._list(name)))

    def counts(self, name: str) -> tuple[int, ...]:
        """Answer a list of whole numbers, none negative."""
        return tuple(
            value
            if isinstance(value, int) and not isinstance(value, bool) and value >= 0
            else self._wrong(f"{name}[{at}]", value, "a count")
            for at, value in enumerate(self._list(name))
        )

    def _number(self, name: str, value: object, *, above: float = -math.inf, least: float = -math.inf) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self._wrong(name, value, "a finite number")
        if not value > above or value < least:
            self._wrong(name, value, f"a number above {above:g}" if value >= least else f"a number of at least {least:g}")
        return float(value)


def _shown(value: object) -> str:
    """Show a value shortly enough for one line."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
