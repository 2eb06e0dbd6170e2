"""A policy at work for somebody else's jobs, over lines of JSON: the dispatcher tells what came and what ended, and is told what to start.

First {"hello": 1, "policy": "sjf", "slots": {"any": 2}}, answered {"ready": true, "policy", "slots"}. Then, as often as something happens,
{"at_s": 1.25, "submitted": [{"job": 3, "predicted_s": 0.4, …}], "ended": [1]}, answered {"start": [{"job": 3, "slots": "any"}]}: what is to
be started now, in this order, its slots counted as taken. A job has `job`, its number, and may have `predicted_s` (seconds, or by kind of
slot), `class`, `priority`, `replicas`, `due_s`, `tenant`. However a job ended, it is told as ended; tried again, it is submitted again.
`"away": {"any": 1}` says how many slots are lost, all together, until it is said anew.
What is wrong is answered {"error": sentence}, after which nothing more comes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from analysis.terms import Refused

from .scheduler import Scheduler
from .terms import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Write = Callable[[dict[str, Any]], None]

VERSION = 1
FIELDS = ("job", "predicted_s", "class", "priority", "replicas", "due_s", "tenant")
MOST = 10**9
MOST_S = 1e15
TOLD = ("at_s", "submitted", "ended", "away")


def serve(lines: Iterable[str], write: Write) -> int:
    """Answer each line. Returns: 0 when there is nothing more, 2 after a line that could not be used."""
    try:
        _serve(iter(lines), write)
    except Refused as reason:
        write({"error": str(reason)})
        return 2
    return 0


def _serve(lines: Iterator[str], write: Write) -> None:
    first = next(lines, None)
    if first is None:
        return
    hello = _read(first)
    if hello.get("hello") != VERSION:
        raise Refused(f"hello: version {hello.get('hello')!r} is not spoken here, only {VERSION}.")
    policy, slots = str(hello.get("policy")), hello.get("slots")
    if not isinstance(slots, dict):
        raise Refused(f"slots: numbers by kind of slot are expected, not {slots!r}.")
    scheduler = Scheduler(policy, {kind: _whole(many, f"slots of {kind}", least=1) for kind, many in slots.items()})
    write({"ready": True, "policy": policy, "slots": slots})
    for line in lines:
        write({"start": _answered(scheduler, _read(line))})


def _answered(scheduler: Scheduler, said: Mapping[str, Any]) -> list[dict[str, object]]:
    unknown = [name for name in said if name not in TOLD]
    if unknown:
        raise Refused(f"No field {unknown[0]!r}; there are {', '.join(TOLD)}.")
    at_s = _number(said.get("at_s"), "at_s")
    for number in _list(said, "ended"):
        scheduler.end(_whole(number, "ended"), at_s)
    for one in _list(said, "submitted"):
        scheduler.submit(_job(one, at_s, scheduler.state.slots), at_s)
    if not isinstance(away := said.get("away") or {}, dict):
        raise Refused(f"away: numbers by kind of slot are expected, not {away!r}.")
    scheduler.away({kind: _whole(many, f"away of {kind}") for kind, many in away.items()})
    return [{"job": start.number, "slots": start.kind} for start in scheduler.starts(at_s)]


def _job(said: object, at_s: float, slots: Mapping[str, int]) -> Job:
    if not isinstance(said, dict):
        raise Refused(f"submitted: objects with {', '.join(FIELDS)} are expected, not {said!r}.")
    unknown = [name for name in said if name not in FIELDS]
    if unknown:
        raise Refused(f"submitted: no field {unknown[0]!r}; there are {', '.join(FIELDS)}.")
    number = _whole(said.get("job"), "job")
    what = f"job {number}:"
    due_s = said.get("due_s")
    return Job(
        number=number,
        submit_s=at_s,
        predicted_s=_predicted(said.get("predicted_s"), slots, what),
        class_=str(said.get("class") or ""),
        priority=_whole(said.get("priority", 0), f"{what} priority", least=-MOST),
        replicas=_whole(said.get("replicas", 1), f"{what} replicas", least=1),
        due_s=None if due_s is None else _number(due_s, f"{what} due_s"),
        tenant=str(said.get("tenant") or ""),
    )


def _predicted(said: object, slots: Mapping[str, int], what: str) -> dict[str, float]:
    if said is None:
        return {}
    by_kind = said if isinstance(said, Mapping) else dict.fromkeys(slots, said)
    strange = [kind for kind in by_kind if kind not in slots]
    if strange or not by_kind:
        raise Refused(f"{what} predicted_s is of slots {strange}; there are {', '.join(slots)}.")
    return {kind: _number(value, f"{what} predicted_s", least=0.0) for kind, value in by_kind.items()}


def _read(line: str) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Refused(f"Not a line of JSON ({error}): {line.strip()[:80]!r}.") from None
    if not isinstance(said, dict):
        raise Refused(f"A JSON object is expected, not {line.strip()[:80]!r}.")
    return said


def _list(said: Mapping[str, Any], key: str) -> list[Any]:
    found = said.get(key) or []
    if not isinstance(found, list):
        raise Refused(f"{key}: a list is expected, not {found!r}.")
    return found


def _number(said: object, what: str, least: float | None = None) -> float:
    if isinstance(said, bool) or not isinstance(said, int | float) or not (-MOST_S if least is None else least) <= said <= MOST_S:
        raise Refused(f"{what}: {said!r} is no number{'' if least is None else f' of {least:g} or more'}.")
    return float(said)


def _whole(said: object, what: str, least: int = 0) -> int:
    if isinstance(said, bool) or not isinstance(said, int) or not least <= said <= MOST:
        raise Refused(f"{what}: {said!r} is no whole number from {least} to {MOST}.")
    return said
