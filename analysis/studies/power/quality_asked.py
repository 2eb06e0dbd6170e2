"""Traces and parameters that a user named, looked at by the gate; as a page and as a document."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from analysis.printing import hanging, on_page
from analysis.terms import Refused

from . import parameters, quality, quality_of_models, traces

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .quality import Finding
    from .traces import Row


@dataclass(frozen=True, slots=True)
class Looked:
    """How much was looked at, and what was found, refusals first."""

    rows: int
    models: int
    findings: tuple[Finding, ...]


def looked_at(paths: Iterable[Path]) -> Looked:
    """Look at files of traces (.csv) and at parameters. Traces of all files are compared with each other, and so are models.

    Raises: Refused.
    """
    of_file: dict[Path, list[Row]] = {}
    models: dict[quality_of_models.Key, Any] = {}
    found: list[Finding] = []
    for path in dict.fromkeys(paths):
        if path.suffix.lower() == ".csv":
            of_file[path] = traces.read(path)
            found += quality.findings(of_file[path], str(path))
        else:
            models |= {key: read() for key, read in parameters.available(path).items()}
    if not models and not any(of_file.values()):
        raise Refused(f"{', '.join(map(str, of_file))}: no rows; there is nothing to look at.")
    if len(of_file) > 1:
        together = quality.findings([row for rows in of_file.values() for row in rows], " and ".join(map(str, of_file)))
        found += [one for one in together if one.kind == "copy"]
    found += quality_of_models.findings(models)
    ordered = sorted(dict.fromkeys(found), key=lambda one: not one.refuses)
    return Looked(sum(map(len, of_file.values())), len(models), tuple(ordered))


def render(looked: Looked) -> str:
    """Write findings on a page, by what they are of; `!` marks what refuses."""
    of_place: dict[str, list[Finding]] = defaultdict(list)
    for one in looked.findings:
        of_place[one.where].append(one)
    lines = [line for where, found in of_place.items() for line in [("", where), *((one.mark, one.what) for one in found)]]
    return on_page([hanging(lines), _summary(looked)])


def document(looked: Looked) -> dict[str, Any]:
    """Write findings for programs."""
    return {"rows": looked.rows, "models": looked.models, "findings": [asdict(one) for one in looked.findings]}


def _summary(looked: Looked) -> str:
    refusing = sum(one.refuses for one in looked.findings)
    counts = [_count(number, what) for number, what in ((looked.rows, "row"), (looked.models, "model")) if number]
    return f"{' and '.join(counts)}: {_count(len(looked.findings), 'finding')}; {refusing} refuse."


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
