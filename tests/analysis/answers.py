"""Answers of commands in snapshots: renew with `pytest PATH --snapshot-update`, read the diff."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from analysis.__main__ import main

if TYPE_CHECKING:
    import pytest


Value = TypeVar("Value")


def known(value: Value | None) -> Value:
    """Assert a presence that a test relies on."""
    assert value is not None
    return value


def printed(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    assert main([*map(str, words)]) == code
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """Return the complaint: one line on stderr, nothing on stdout, exit code 2."""
    capsys.readouterr()
    assert main([*map(str, words)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err.removesuffix("\n")


def data(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    """The answer to programs of a command, given as words with spaces between them."""
    return json.loads(printed(capsys, *" ".join(map(str, words)).split(), "--json"))


def width(page: str) -> int:
    """Columns of the longest line; the next command is to be pasted, so it may be longer."""
    return max(
        (len(line) for line in page.splitlines() if not line.startswith("next: ")), default=0
    )


def refusals(
    capsys: pytest.CaptureFixture[str], cases: Mapping[str, Sequence[object]]
) -> dict[str, str]:
    return {name: refused(capsys, *words) for name, words in cases.items()}
