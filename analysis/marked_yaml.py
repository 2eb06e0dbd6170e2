"""A few hand-written lines of YAML, read so that each value keeps its line and nothing is guessed.

Values are read as written: `3%`, `0x10` and `on` stay text. Anchors, aliases, repeated keys and
multiple documents are refused: a small file needs none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import yaml

from .files import must_be_file
from .terms import Refused

MAX_BYTES = 64 * 1024
MAX_DEPTH = 4


class YamlValue:
    def __init__(self, node: yaml.Node, origin: str, name: str = "") -> None:
        self._node, self._origin = node, origin
        self.name = name
        self.place = f"{origin}:{node.start_mark.line + 1}"

    def refuse(self, what: str) -> NoReturn:
        """Refuse the value in one line: what is wrong here and what to do.

        Raises: Refused.
        """
        raise Refused(f"{self.place}: {' '.join(what.split())}.")

    @property
    def is_mapping(self) -> bool:
        return isinstance(self._node, yaml.MappingNode)

    def text(self) -> str:
        if not isinstance(self._node, yaml.ScalarNode):
            self.refuse(f"{self.name} must be a single value")
        if not self._node.value.strip():
            self.refuse(f"{self.name} has no value; add a value or remove the line")
        return str(self._node.value)

    def each(self) -> list[YamlValue]:
        if not isinstance(self._node, yaml.SequenceNode) or not self._node.value:
            self.refuse(f"{self.name} must be a non-empty list, such as [one, another]")
        result: dict[str, YamlValue] = {}
        for node in self._node.value:
            value = YamlValue(node, self._origin, f"an entry of {self.name}")
            if result.setdefault(value.text(), value) is not value:
                value.refuse(f"{self.name} lists {value.text()!r} twice; remove one entry")
        return list(result.values())

    def items(self) -> Iterator[tuple[str, YamlValue]]:
        if not isinstance(self._node, yaml.MappingNode):
            self.refuse(f"{self.name or 'the file'} must be a mapping, such as max_regression: 3%")
        seen = set()
        for key, node in self._node.value:
            name = YamlValue(key, self._origin, "a name").text()
            if name in seen:
                YamlValue(key, self._origin).refuse(f"{name!r} is given twice; remove one")
            seen.add(name)
            yield name, YamlValue(node, self._origin, name)


def read(path: Path | str) -> YamlValue:
    """Read a file of at most 64 KiB.

    Raises: Refused, with the file's name and line, what is wrong there, and what to do.
    """
    path = Path(path)
    must_be_file(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}.") from None
    if len(raw) > MAX_BYTES:
        raise Refused(
            f"{path}: larger than {MAX_BYTES // 1024} KiB, but a few lines are expected; check "
            "the file name."
        )
    try:
        return parse(raw.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Refused(f"{path}:{line}: not UTF-8; save the file as UTF-8.") from None


def parse(text: str, origin: str) -> YamlValue:
    """Parse a text; messages call it `origin`.

    Raises: Refused.
    """
    try:
        must_be_plain(text, origin)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        problem = " ".join((error.problem or error.context or "cannot be read").split())
        raise Refused(f"{origin}{line}: broken YAML: {problem}; correct the file.") from None
    except yaml.reader.ReaderError as error:
        line = f":{text.count(chr(10), 0, error.position) + 1}"
        raise Refused(
            f"{origin}{line}: contains the character {error.character!r}, which YAML does not "
            "allow; remove it."
        ) from None
    if node is None:
        raise Refused(f"{origin}: the file is empty.")
    return YamlValue(node, origin)


def must_be_plain(text: str | bytes, origin: str, most_depth: int = MAX_DEPTH) -> None:
    """Check the parser's events before composing: no deep nesting and no aliases.

    Raises: Refused; yaml.YAMLError.
    """
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(
            event, yaml.CollectionEndEvent
        )
        line = event.start_mark.line + 1 if event.start_mark else 1
        if depth > most_depth:
            raise Refused(
                f"{origin}:{line}: more than {most_depth} levels deep; check the file name."
            )
        if getattr(event, "anchor", None):
            raise Refused(
                f"{origin}:{line}: anchors and aliases (& and *) are not supported; write the "
                "value out."
            )
