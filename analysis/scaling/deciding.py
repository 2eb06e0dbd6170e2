"""Replicas for somebody else's jobs, over lines of JSON: measured jobs of a profile come first, then jobs for which replicas are chosen.

First {"hello": 1, "target_s": 2, "most": 8, "classes": {"train": [{"replicas": 1, "work": 500, "time_s": 3.1}, …]}}, answered
{"ready": true, "laws": {"train": {"name", "law", "held_out", "points"}}}: the better law for each class, fitted to its points. Then, as
often as wanted, {"jobs": [{"class": "train", "work": 700}, …]}, answered {"choices": [{"replicas", "predicted_s", "within"}, …]}.
What is wrong is answered {"error": sentence}, after which nothing more comes.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

from analysis.terms import Refused

from . import fitting
from .laws import choose
from .terms import Point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .terms import Law

    Write = Callable[[dict[str, Any]], None]

VERSION = 1
MOST = 1_000_000
MOST_NUMBER = 1e12
SHOWN = 80


def serve(lines: Iterable[str], write: Write) -> int:
    """Answer each line. Returns: 0 when there is nothing more, 2 after a line that could not be used."""
    try:
        _serve(iter(lines), write)
    except Refused as reason:
        write({"error": str(reason)})
        return 2
    return 0


def _serve(lines: Iterator[str], write: Write) -> None:
    first = _read(next(lines, ""), ("hello", "target_s", "most", "classes"))
    if first.get("hello") != VERSION:
        raise Refused(f"The first line says hello {VERSION}, with target_s, most and the classes' measured jobs; here is {first!r}"[:300])
    target_s, most = _number(first, "target_s", "the first line"), _whole(first, "most", "the first line")
    laws: dict[str, Law] = {}
    told = {}
    for name, listed in _mapping(first.get("classes"), "classes").items():
        points = [_point(one, f"class {name}, job {at}") for at, one in enumerate(_list(listed, f"class {name}"), 1)]
        try:
            best = fitting.fits(points)[0]
        except Refused as reason:
            raise Refused(f"Class {name}: {reason}") from None
        laws[name] = best.law
        told[name] = {"name": best.name, "law": asdict(best.law), "held_out": fitting.held_out(points, best), "points": best.points}
    write({"ready": True, "laws": told})
    for line in lines:
        jobs = _list(_read(line, ("jobs",)).get("jobs"), "jobs")
        write({"choices": [_choice(_mapping(one, f"job {at}"), laws, (target_s, most), at) for at, one in enumerate(jobs, 1)]})


def _choice(one: dict[str, Any], laws: dict[str, Law], wanted: tuple[float, int], at: int) -> dict[str, Any]:
    name = one.get("class")
    if not isinstance(name, str) or name not in laws:
        raise Refused(f"Job {at}: of class {name!r}; there are laws of {', '.join(laws)}.")
    found = choose(laws[name], _number(one, "work", f"job {at}"), *wanted)
    return {"replicas": found.replicas, "predicted_s": found.predicted_s, "within": found.within}


def _point(one: object, where: str) -> Point:
    said = _mapping(one, where)
    return Point(_whole(said, "replicas", where), _number(said, "work", where), _number(said, "time_s", where))


def _read(line: str, known: tuple[str, ...]) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise Refused(f"A line is a JSON object; here is {line[:SHOWN]!r}.")
    for name in said:
        if name not in known:
            raise Refused(f"No field {name!r}; there are {', '.join(known)}.")
    return said


def _mapping(said: object, where: str) -> dict[str, Any]:
    if not isinstance(said, dict) or not said:
        raise Refused(f"{where}: an object belongs there, here is {said!r}"[:300])
    return said


def _list(said: object, where: str) -> list[Any]:
    if not isinstance(said, list):
        raise Refused(f"{where}: a list belongs there, here is {said!r}"[:300])
    return said


def _number(said: dict[str, Any], name: str, where: str) -> float:
    value = said.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or not 0 < value <= MOST_NUMBER:
        raise Refused(f"{where}: {name} is {value!r}; a number above 0 belongs there."[:300])
    return float(value)


def _whole(said: dict[str, Any], name: str, where: str) -> int:
    value = _number(said, name, where)
    if value != int(value) or value > MOST:
        raise Refused(f"{where}: {name} is {value:g}; a whole number from 1 to {MOST} belongs there.")
    return int(value)
