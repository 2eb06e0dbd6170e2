"""Read pyproject.toml: a project's `[tool.deeptweak.COMMAND]`, and DeepTweak's version."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

FILE = "pyproject.toml"


def version(house: Path) -> str:
    """Return DeepTweak's version, from pyproject.toml, which wheels also contain."""
    text = (house / FILE).read_text(encoding="utf-8")
    return str(tomllib.loads(text)["project"]["version"])


class WrongTable(Exception):
    """A table in pyproject.toml that cannot be used as options."""


def options(
    words: Sequence[str], commands: Callable[[], Collection[str]]
) -> tuple[Path, list[str]] | None:
    """Return a command's options from the nearest pyproject.toml with a table `tool.deeptweak`.

    `words` is the command with the words typed after it: a typed option counts alone. `true` is an
    option without a value, a list is an option given several times. Returns: the file and the
    options, or None. Raises: WrongTable.
    """
    name, *typed = words
    typed = typed[: typed.index("--")] if "--" in typed else typed
    for folder in (Path.cwd(), *Path.cwd().parents):
        path = folder / FILE
        try:
            tables = (
                tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("deeptweak")
                if path.is_file()
                else None
            )
        except (OSError, ValueError) as error:
            raise WrongTable(f"{path}: cannot be read: {error}.") from error
        if tables is None:
            continue
        if unknown := [key for key in tables if key not in commands()]:
            raise WrongTable(
                f"{path}: [tool.deeptweak.{unknown[0]}]: no such command. `deeptweak --help` "
                "lists them."
            )
        table = tables.get(name, {})
        if not isinstance(table, dict):
            raise WrongTable(f"{path}: [tool.deeptweak]: {name} is not a table of options.")
        found = [
            word
            for key, value in table.items()
            if not _is_typed(key, typed)
            for word in _words(path, name, key, value)
        ]
        return (path, found) if found else None
    return None


def _is_typed(key: str, typed: Sequence[str]) -> bool:
    return any(word.partition("=")[0] == f"--{key}" for word in typed)


def _words(path: Path, name: str, key: str, value: object) -> list[str]:
    if isinstance(value, bool):
        return [f"--{key}"] if value else []
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str | int | float) for one in values):
        raise WrongTable(
            f"{path}: [tool.deeptweak.{name}]: {key}: write text, a number, true, or a list of "
            "them."
        )
    return [f"--{key}={one}" for one in values]
