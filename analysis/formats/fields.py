"""Reading foreign JSON field by field: what is not as it should be is refused in one line that says where it stands."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, NoReturn, Self, TypeVar, cast, get_args

from analysis.terms import Better, Metric, Setting, Unreadable

T = TypeVar("T")
D = TypeVar("D")
# What a clock can have measured of one step: a nanosecond is its tick, and no step takes four months.
SHORTEST_S, LONGEST_S = 1e-9, 1e7
LARGEST_COUNT = 2**63 - 1


class Fault(Unreadable):
    """A field is not as it should be; `reason` says what is wrong without the file, its place in the file, or what to do."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class Fields:
    """One JSON object and its place in its file; each method returns one field in the type it must have, or refuses the file."""

    REMEDY = "the file is damaged or was edited: measure again, or take it from its source"

    def __init__(self, value: object, origin: str, place: str = "") -> None:
        self.origin, self.place = origin, place
        # Asking a dict whether it is a Mapping takes longer than reading a field from it.
        if type(value) is not dict and not isinstance(value, Mapping):
            self.refuse(f"is {_shown(value)} where an object belongs")
        self.value: Mapping[str, object] = value

    def refuse(self, what: str, remedy: str | None = None) -> NoReturn:
        raise Fault(f"{self.origin}: {self.place or 'the file'} {what}; {remedy or self.REMEDY}.", what)

    def __contains__(self, name: str) -> bool:
        return name in self.value

    def has(self, name: str) -> bool:
        return self.value.get(name) is not None

    def optional(self, read: Callable[[Fields, str], T], name: str, default: D) -> T | D:
        """Return a field as `read` (one of the methods here) does; the default where it is absent or null."""
        return read(self, name) if self.has(name) else default

    def record(self, kind: type[T], /, **known: object) -> T:
        """Return a dataclass: each field that is not `known` is read by its type, and may be absent where it has a default."""
        for field in fields(cast("Any", kind)):
            required = field.default is MISSING and field.default_factory is MISSING
            if field.name not in known and (required or self.has(field.name)):
                known[field.name] = READERS[str(field.type).removesuffix(" | None")](self, field.name)
        return kind(**known)

    def _at(self, name: str) -> str:
        return f"{self.place}.{name}" if self.place else name

    def _get(self, name: str) -> object:
        if name not in self.value:
            self.refuse(f"has no {name!r}")
        return self.value[name]

    def _wrong(self, name: str, value: object, expected: str) -> NoReturn:
        self.refuse(f"has {name} = {_shown(value)}, where {expected} belongs")

    def fields(self, name: str) -> Self:
        return type(self)(self._get(name), self.origin, self._at(name))

    def optional_fields(self, name: str) -> Self:
        return self.fields(name) if self.has(name) else type(self)({}, self.origin, self._at(name))

    def items(self, name: str) -> list[tuple[str, Self]]:
        inner = self.fields(name)
        return [(key, type(self)(value, self.origin, f"{inner.place}[{key!r}]")) for key, value in inner.value.items()]

    def _list(self, name: str) -> Sequence[Any]:
        value = self._get(name)
        if not isinstance(value, list | tuple):
            self._wrong(name, value, "a list")
        return value

    def each(self, name: str) -> list[Self]:
        return [type(self)(value, self.origin, f"{self._at(name)}[{index}]") for index, value in enumerate(self._list(name))]

    def optional_mapping(self, name: str) -> Mapping[str, object]:
        value = self.value.get(name)
        return {} if value is None else value if type(value) is dict else self.fields(name).value

    def text(self, name: str) -> str:
        value = self._get(name)
        if not isinstance(value, str):
            self._wrong(name, value, "a text")
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            self._wrong(name, value, "a text of whole characters")  # JSON can write half of one; no file and no picture can hold it
        return value

    def optional_text(self, name: str) -> str | None:
        return self.text(name) if self.has(name) else None

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(value if isinstance(value, str) else self._wrong(name, value, "a text") for value in self._list(name))

    def one_of(self, name: str, words: tuple[str, ...]) -> str:
        value = self._get(name)
        if not isinstance(value, str) or value not in words:
            self._wrong(name, value, f"one of {', '.join(words)}")
        return value

    def flag(self, name: str) -> bool:
        value = self._get(name)
        if not isinstance(value, bool):
            self._wrong(name, value, "true or false")
        return value

    def whole(self, name: str) -> int:
        return self._count(name, self._get(name), "a whole number")

    def number(self, name: str) -> float:
        return self._number(name, self._get(name))

    def positive(self, name: str) -> float:
        return self._number(name, self._get(name), above=0)

    def up_to(self, name: str, most: float) -> float | None:
        value = self.number(name) if self.has(name) else None
        if value is not None and not 0 <= value <= most:
            self._wrong(name, value, f"a number from 0 to {most:g}")
        return value

    def time(self, name: str) -> float:
        return self._time(name, self._get(name), zero=False)

    def times(self, name: str, *, zero: bool = False) -> tuple[float, ...]:
        """Return a list of times in seconds, as a clock gives them; with `zero`, none at all may have passed."""
        values = self._list(name)
        # Hardly a list has a fault, and a run has a million times: one by one they are looked at only to name a fault.
        # A NaN hides from min and max, and from no sum.
        if {*map(type, values)} == {float} and min(values) >= SHORTEST_S and max(values) <= LONGEST_S and not math.isnan(sum(values)):
            return tuple(values)
        return tuple(self._time(f"{name}[{at}]", value, zero=zero) for at, value in enumerate(values))

    def rates(self, name: str) -> tuple[float, ...]:
        """Return a list of finite numbers above 0."""
        return tuple(self._number(f"{name}[{at}]", value, above=0) for at, value in enumerate(self._list(name)))

    def counts(self, name: str) -> tuple[int, ...]:
        values = self._list(name)
        if {*map(type, values)} == {int} and min(values) >= 0 and max(values) <= LARGEST_COUNT:
            return tuple(values)  # as above
        return tuple(self._count(f"{name}[{at}]", value, "a count") for at, value in enumerate(values))

    def numbers_at(self, name: str, length: int, places: Sequence[int]) -> tuple[float, ...]:
        """Return the finite numbers at some places of a list that must be so long; the others are not looked at."""
        values = self._list(name)
        if len(values) != length:
            self.refuse(f"has {len(values)} {name} where {length} belong")
        return tuple(self._number(f"{name}[{at}]", values[at]) for at in places)

    def known_numbers(self, name: str, known: Container[str] | None = None) -> dict[str, float]:
        """Return the finite numbers of an object, of known names alone where these are given; null is absent, as is the object."""
        inner = Fields(self.optional_mapping(name), self.origin, self._at(name))
        names = [key for key, value in inner.value.items() if value is not None and (known is None or key in known)]
        return {key: inner.number(key) for key in names}

    def _count(self, name: str, value: object, expected: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST_COUNT:
            self._wrong(name, value, expected)
        return value

    def _time(self, name: str, value: object, *, zero: bool) -> float:
        seconds = self._number(name, value, above=-math.inf if zero else 0)
        if not SHORTEST_S <= seconds <= LONGEST_S and not (zero and seconds == 0):
            self._wrong(name, value, f"a time from {SHORTEST_S:g} to {LONGEST_S:g} s{' or 0' if zero else ''}")
        return seconds

    def _number(self, name: str, value: object, *, above: float = -math.inf) -> float:
        # No float holds a whole number of four hundred digits.
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
            self._wrong(name, value, "a finite number")
        if not value > above:
            self._wrong(name, value, f"a number above {above:g}")
        return float(value)


class Foreign(Fields):
    """Fields of another tool's file: what is wrong there is said, and nobody is accused of an edit."""

    REMEDY = "the tool does not write this; take the file from its source again"


# How `Fields.record` reads a field of a dataclass, by its type as it is written there.
READERS: dict[str, Callable[[Fields, str], object]] = {
    "str": Fields.text,
    "int": Fields.whole,
    "float": Fields.positive,
    "bool": Fields.flag,
    "tuple[str, ...]": Fields.texts,
    "Mapping[str, object]": Fields.optional_mapping,
    "Better": lambda part, name: part.one_of(name, get_args(Better)),
    "Metric": lambda part, name: _metric(part.fields(name)),
    "tuple[Setting, ...]": lambda part, name: tuple(setting.record(Setting) for setting in part.each(name)),
}


def _metric(part: Fields) -> Metric:
    """Of what is computed from steps here, the file does not say which way is better."""
    metric: Metric = part.record(Metric)
    better = (
        "higher"
        if metric.name.startswith(("throughput_", "rate_"))
        else "lower"
        if metric.name.startswith(("step_time_", "cpu_s_"))
        else None
    )
    if metric.better != (better or metric.better):
        part.refuse(f"says that {metric.name} is better {metric.better}; it is {better}")
    return metric


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
