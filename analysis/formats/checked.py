"""Check the contents of a JSON file against types with msgspec.

Errors are reported in one line with their place in the file.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn, TypeVar

import msgspec

from analysis.terms import Unreadable

T = TypeVar("T")
EDITED = "the file is damaged or was edited: measure again, or copy it from its source"
SHOWN = 40  # characters of a value
FOREIGN = (
    "the tool does not write this; copy the file from its source again"  # without blaming an edit
)

COMPLAINT = r"(?P<what>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?"
MISSING = r"Object missing required field `(.+)`"
STEP = r"\[(?P<index>[\d.]+)\]|\.(?P<name>[^.\[]+)"
# msgspec's expectation → what is expected, in plain words.
EXPECTED = (
    (r"Expected `(.+)`, got `.+`", "{}"),
    (r"Expected `float` [<>]= -?1\.7e\+308", "a finite number"),
    (r"Expected `(?:int|float)` (.+)", "a number {}"),
    (r"Expected `array` of length (.+)", "a list of length {}"),
    (r"Expected `str` of length (.+)", "a text of length {}"),
    (r"Expected `str` matching regex (.+)", "a text like {}"),
    (r"Invalid enum value .+", "one of the known words"),
    (r"Number out of range", "a finite number"),
)
WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a finite number",
    "int": "a whole number",
    "object": "an object",
    "str": "a text",
    "<": "below",
    "<=": "of at most",
    ">": "above",
    ">=": "of at least",
}


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
        raise self._fault(what, remedy)

    def _fault(self, what: str, remedy: str = "") -> InvalidField:
        return InvalidField(
            f"{self.origin}: {self.place or 'the file'} {what}; {remedy or self.remedy}.", what
        )

    def read(self, kind: type[T]) -> T:
        """Convert the value to a type of `typing`, dataclass or TypedDict; ignore unnamed fields.

        Raises: Unreadable, for the first field that does not match its type.
        """
        try:
            return msgspec.convert(self.value, kind)
        except msgspec.ValidationError as error:
            raise self._fault(self.explained(str(error), kind)) from None

    def field(self, name: str, kind: type[T]) -> T:
        """Convert one field of an object. Raises: Unreadable, as `read`, and if it is missing."""
        if name not in self.value:
            self.refuse(f"has no {name!r}")
        try:
            return msgspec.convert(self.value[name], kind)
        except msgspec.ValidationError as error:
            raise self._fault(
                self._replace(value=self.value[name]).explained(str(error), kind, name)
            ) from None

    def explained(self, complaint: str, kind: type[Any], field: str = "") -> str:
        """Explain an error of msgspec in this part, or in one of its fields."""
        try:
            name, value = self._found(complaint, kind)
        except RecursionError:
            return "is nested too deeply"
        return _explained(
            complaint, f"{field}{'.' * (name[:1] not in ('', '['))}{name}" if field else name, value
        )

    def made(self, kind: type[T], **known: object) -> T:
        """Convert an object, replacing or adding the fields in `known`."""
        return Part({**self.value, **known}, self.origin, self.place, self.remedy).read(kind)

    def at(self, *steps: str | int) -> Part:
        value, place = self.value, self.place
        for step in steps:
            value = value[step]
            place += f"[{step}]" if isinstance(step, int) else f".{step}" if place else step
        return Part(value, self.origin, place, self.remedy)

    def entries(self) -> Iterator[tuple[str, Part]]:
        """Yield the entries of an object with arbitrary names."""
        for name, value in self.value.items():
            yield name, Part(value, self.origin, f"{self.place}[{name!r}]", self.remedy)

    def each(self) -> Iterator[Part]:
        """Yield the elements of a list."""
        for index, value in enumerate(self.value):
            yield Part(value, self.origin, f"{self.place}[{index}]", self.remedy)

    def _found(self, complaint: str, kind: type[Any]) -> tuple[str, Any]:
        """Return name and value of the field in this part that an error of msgspec refers to.

        msgspec calls each arbitrary name in an object `...`: the right entry gives the same
        complaint alone.
        """
        whole = value = copy.deepcopy(self.value)
        name = ""
        for step in re.finditer(STEP, _parts(complaint)[1]):
            if step["name"]:
                name, value = f"{name}.{step['name']}".strip("."), value[step["name"]]
            elif step["index"] == "...":
                entries = dict(value)
                for key, inner in entries.items():
                    value.clear()
                    value[key] = inner
                    if _complaint(whole, kind) == complaint:
                        break
                name, value = f"{name}[{key!r}]", inner
            else:
                name, value = f"{name}[{step['index']}]", value[int(step["index"])]
        return name, value


def _complaint(value: object, kind: type[Any]) -> str:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


def _parts(complaint: str) -> tuple[str, str]:
    match = re.fullmatch(COMPLAINT, complaint, re.DOTALL)
    return (match["what"], match["path"] or "") if match else (complaint, "")


def _explained(complaint: str, name: str, value: object) -> str:
    """Explain what is wrong with a field, or with the part itself if it has no name."""
    what, _ = _parts(complaint)
    if missing := re.fullmatch(MISSING, what):
        return f"has no {f'{name}.{missing[1]}'.strip('.')!r}"
    shown = repr(value)
    shown = shown if len(shown) <= SHOWN else f"{shown[: SHOWN - 3]}..."
    is_there = f"has {name} = {shown}" if name else f"is {shown}"
    for known, words in EXPECTED:
        if match := re.fullmatch(known, what):
            expected = words.format(
                " or ".join(
                    WORDS.get(word, word) for group in match.groups() for word in group.split(" | ")
                )
            )
            expected = re.sub("[<>]=?", lambda sign: WORDS[sign[0]], expected)
            expected = re.sub(r"\d[\d.e+-]*$", lambda number: f"{float(number[0]):g}", expected)
            return f"{is_there}, but {expected} is expected"
    return f"{is_there}, which is not allowed"
