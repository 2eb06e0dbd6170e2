"""The real operators' recorded watch events and the client's actions between them, played back.

The recordings are described in shared/reference/operator_recordings/README.md.
"""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fixtures.kubernetes.pods import Conclusion

Object = dict[str, Any]
FOLDER = Path(__file__).parents[3] / "shared" / "reference" / "operator_recordings"
TICK_S = 0.25
# Recorded of a pod only when they change: missing means as before.
_AS_BEFORE = ("labels", "annotations", "ownerReferences", "generateName", "creationTimestamp")


@dataclass(frozen=True)
class Line:
    """A recorded line: a watch event, an `action`, or another observation."""

    t: float
    action: str = ""
    kind: str = ""
    type_: str = ""
    object: Object | None = None


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.jsonl"))


@functools.cache
def lines(name: str) -> tuple[Line, ...]:
    """A scenario's events, actions and answers; pods made whole again."""
    pods: dict[str, Any] = {}
    found = []
    for text in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        if "kind" not in line:
            found.append(Line(line["t"], action=line.get("action", "")))
        else:
            obj = line["object"]
            if line["kind"] == "Pod":
                obj = _whole(obj, pods if line["type"] != "ADDED" else {})
                pods[obj["metadata"]["name"]] = obj
            found.append(Line(line["t"], kind=line["kind"], type_=line["type"], object=obj))
    return tuple(found)


def _whole(trimmed: Object, before: Object) -> dict[str, Any]:
    pod = copy.deepcopy(dict(trimmed))
    known = before.get(pod["metadata"]["name"], {})
    pod["metadata"] = {
        key: known["metadata"][key] for key in _AS_BEFORE if key in known.get("metadata", {})
    } | pod["metadata"]
    if "spec" not in pod and "spec" in known:
        pod["spec"] = known["spec"]
    return pod


@dataclass(frozen=True)
class Part:
    """A part of a recording for a client whose watch begins there: existing objects are ADDED."""

    t: float
    until: float
    lines: tuple[Line, ...]


def part(recording: tuple[Line, ...], begin: str, end: str = "", nth: int = 1) -> Part:
    """From the nth action to another, each given by its first words; `end` defaults to the last."""
    recording = tuple(line for line in recording if line.kind or line.action)
    start = [i for i, line in enumerate(recording) if line.action.startswith(begin)][nth - 1]
    stop = next(
        (
            i
            for i, line in enumerate(recording)
            if end and i > start and line.action.startswith(end)
        ),
        len(recording),
    )
    t = recording[start].t
    there: dict[tuple[str, str], Line] = {}
    for line in recording[:start]:
        if line.object is not None:
            key = (line.kind, line.object["metadata"]["name"])
            there.pop(key, None)
            if line.type_ != "DELETED":
                there[key] = replace(line, t=t, type_="ADDED")
    until = recording[stop].t if stop < len(recording) else recording[-1].t
    return Part(t, until, (*there.values(), *recording[start:stop]))


@dataclass(frozen=True)
class Said:
    """A conclusion, and the time at which it was first drawn."""

    t: float
    state: str
    reason: str


def play(
    seen: Part,
    take: Callable[[str, str, Any, float], Conclusion],
    at: Callable[[float], Conclusion],
) -> Iterator[Said]:
    """Each new conclusion of a client that sees these events and checks its clock every 250 ms."""
    last: tuple[str, str] | None = None
    now = seen.t
    for line in (*seen.lines, Line(seen.until)):
        times = []
        while now + TICK_S < line.t:
            now += TICK_S
            times.append(now)
        now = line.t
        for then in times:
            told = at(then)
            if (told.state, told.reason) != last:
                last = (told.state, told.reason)
                yield Said(round(then, 2), *last)
        told = take(line.kind, line.type_, line.object, now) if line.kind else at(now)
        if (told.state, told.reason) != last:
            last = (told.state, told.reason)
            yield Said(now, *last)
