"""Decide for somebody else's program: it writes lines of JSON to standard input and reads one answer to each, at once.

The first line says by "serve" what is wanted, and with what. Then come as many lines as something happens:

  {"serve": "schedule", "policy": "sjf", "slots": {"any": 2}}      which waiting job to start next
  {"at_s": 1.25, "submitted": [{"number": 3, "predicted_s": {"any": 0.4}}], "ended": [1]}
                                                           answered {"start": [{"number": 3, "kind": "any"}]}
  {"serve": "scale", "target_s": 2, "most": 8, "classes": {"train": [{"replicas": 1, "work": 500, "time_s": 3.1}, …]}}
  {"jobs": [{"class": "train", "work": 700}]}              answered {"choices": [{"replicas", "predicted_s", "within"}]}

  {"serve": "power", "algorithm": "steady", "gpu": "3080Ti", "model": "resnet50", "caps": [[0, 130]], "knobs": {…}, "parameters": "folder"}
  {"iteration": 0, "cap": 130, "settings": {…}, "throughput_images_per_s": 812, "power_mean": 118, "power_max": 126}
                                                           both answered {"settings", "why", "predicted"}

A job may also have `class_`, `priority` (the lower first), `replicas` (started together), `due_s` and `tenant`. However a job ended, it
is told as ended; tried again, it is submitted again. `"away": {"any": 1}` says how many slots are lost, until it is said anew. Fields of
power are those of `Question`, `Knobs`, `Settings` and `Seen` (`control/power/terms.py`). What cannot be used is answered
{"error": sentence}, after which nothing more comes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, asdict, fields, is_dataclass, replace
from functools import partial
from itertools import repeat
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from analysis.terms import Refused
from analysis.wording import suggestion
from control.called import JUDGE

if TYPE_CHECKING:
    import argparse

    from control.power.terms import Question

Json = dict[str, Any]
Served = tuple[Json, Callable[[Json], Json]]
T = TypeVar("T")
GROUP = "tool"
HELP = "decide for another program, over lines of JSON: schedule, scale, power"
EXAMPLE = f"""\
example:
  {JUDGE} serve < events.jsonl

Exit code 0: every line was answered. 2: a line could not be used.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    del parser


def run(args: argparse.Namespace) -> int:
    del args
    return serve(sys.stdin, lambda answer: print(json.dumps(answer, allow_nan=False), flush=True))


def serve(lines: Iterable[str], write: Callable[[Json], None]) -> int:
    """Return each line. Returns: 0 when there is nothing more, 2 after a line that could not be used."""
    following: Callable[[Json], Json] | None = None
    try:
        for line in lines:
            message = _object(line)
            if following is None:
                answer, following = _door(message.pop("serve", None))(message)
            else:
                answer = following(message)
            write(answer)
    except Refused as reason:
        write({"error": str(reason)})
        return 2
    return 0


def _schedule(first: Json) -> Served:
    from control.scheduling.policies import Job
    from control.scheduling.scheduler import Scheduler

    policy, slots = _fields(first, {"policy": str, "slots": Mapping[str, int]})
    scheduler = Scheduler(policy, slots)

    def following(message: Json) -> Json:
        kinds = {"at_s": float, "submitted": list[Any], "ended": list[int], "away": Mapping[str, int]}
        at_s, submitted, ended, away = _fields({"submitted": [], "ended": [], "away": {}} | message, kinds)
        for number in ended:
            scheduler.end(number, at_s)
        for job in submitted:
            scheduler.submit(_value(Job, {"submit_s": at_s} | job if isinstance(job, dict) else job, "submitted"), at_s)
        scheduler.away(away)
        return {"start": [asdict(start) for start in scheduler.starts(at_s)]}

    return {"ready": True}, following


def _scale(first: Json) -> Served:
    from control import scaling

    target_s, most, classes = _fields(first, {"target_s": float, "most": int, "classes": Mapping[str, list[scaling.TimedJob]]})
    if not target_s > 0 or most < 1 or not classes:
        raise Refused("A target above 0, at least one replica and a class of measured jobs are needed.")
    laws = {name: scaling.best_law(name, points) for name, points in classes.items()}

    def following(message: Json) -> Json:
        (jobs,) = _fields(message, {"jobs": list[Any]})
        pairs = [_fields(job if isinstance(job, dict) else {}, {"class": str, "work": float}) for job in jobs]
        strange = [name for name, work in pairs if name not in laws or not work > 0]
        if strange:
            raise Refused(f"class {strange[0]!r:.80}: there are laws of {', '.join(laws)}, for work above 0.")
        return {"choices": [asdict(scaling.choose(laws[name].law, work, target_s, most)) for name, work in pairs]}

    return {"laws": {name: asdict(law) for name, law in laws.items()}}, following


def _power(first: Json) -> Served:
    from analysis.studies.power import parameters
    from control.power import algorithms, terms

    path = first.pop("parameters", None)
    question: terms.Question = _record(terms.Question, first, "question")
    if path is not None:
        question = replace(question, models=partial(parameters.models_for, Path(str(path)), question.model, question.gpu))
    _must_make_sense(question)

    def answered(decide: Callable[[], terms.Decision]) -> Json:
        try:
            return asdict(decide())
        except (terms.Unsupported, terms.Infeasible) as reason:
            raise Refused(str(reason)) from reason

    started: list[terms.Controller] = []

    def start() -> terms.Decision:
        started.append(algorithms.at_work(question))
        return started[0].first()

    def following(message: Json) -> Json:
        seen: terms.Seen = _record(terms.Seen, message, "seen")
        terms.must_be_settable(seen.settings)
        if not all(0 <= tenant < len(seen.settings.tenants) for tenant in seen.oom):
            raise Refused(f"oom: {list(seen.oom)} is not of {len(seen.settings.tenants)} tenants, counted from 0.")
        return answered(partial(algorithms.following, started[0], seen))

    return answered(start), following


def _must_make_sense(question: Question) -> None:
    knobs = question.knobs
    if not question.caps or question.caps[0][0] != 0 or min(cap for _, cap in question.caps) <= 0:
        raise Refused("caps: pairs of an iteration and the cap above 0 from it on, the first from iteration 0.")
    for name in ("batches", "sm_mhz", "mem_mhz", "power_limit_w", "throttle"):
        ladder = getattr(knobs, name)
        if ladder is not None and (not ladder or min(ladder) <= 0 or list(ladder) != sorted(set(ladder))):
            raise Refused(f"{name}: {list(ladder)} does not ascend from above 0.")


DOORS = {"schedule": _schedule, "scale": _scale, "power": _power}


def _door(name: object) -> Callable[[Json], Served]:
    if name not in DOORS:
        raise Refused(f"serve: {name!r:.80} is none of {', '.join(DOORS)}.{suggestion(str(name), DOORS)}")
    return DOORS[str(name)]


def _object(line: str) -> Json:
    try:
        result = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Refused(f"Not a line of JSON ({error}): {line.strip()[:80]!r}.") from None
    if not isinstance(result, dict):
        raise Refused(f"A JSON object is expected, not {line.strip()[:80]!r}.")
    return result


def _fields(message: Json, kinds: Mapping[str, Any]) -> list[Any]:
    unknown = [name for name in message if name not in kinds]
    if unknown:
        raise Refused(f"No field {unknown[0]!r:.80}; there are {', '.join(kinds)}.{suggestion(unknown[0], kinds)}")
    return [_value(kind, message.get(name), name) for name, kind in kinds.items()]


def _value(kind: Any, result: Any, where: str) -> Any:
    """What JSON says, as a value of this kind: numbers, texts, lists, objects, and dataclasses of these. Raises: Refused."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return None if result is None else _value(next(one for one in inner if one is not NoneType), result, where)
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(result, dict):
        return _record(kind, result, where)
    if origin in {list, tuple} and isinstance(result, list):
        kinds: Iterable[Any] = inner if origin is tuple and inner[-1] is not Ellipsis else repeat(inner[0])
        if not isinstance(kinds, tuple) or len(kinds) == len(result):
            return origin(_value(one, value, where) for one, value in zip(kinds, result, strict=False))
    if origin is Mapping and isinstance(result, dict):
        return {name: _value(inner[1], value, f"{where} of {name}") for name, value in result.items()}
    if (origin is Literal and result in inner) or kind is Any or (kind in {bool, str} and isinstance(result, kind)):
        return result
    if kind in {int, float} and isinstance(result, int | float) and not isinstance(result, bool):
        with suppress(OverflowError):  # a whole number of hundreds of digits
            if isfinite(result) and result == kind(result):
                return kind(result)
    raise Refused(f"{where}: {result!r:.80} is not what is expected there.")


def _record(kind: type[T], result: Json, where: str) -> T:
    hints = get_type_hints(kind, localns={"Callable": Callable, "Mapping": Mapping})
    needed = {field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING}  # type: ignore[arg-type]  # a dataclass
    if missing := needed - result.keys():
        raise Refused(f"{where}: {', '.join(sorted(missing))} is missing.")
    return kind(**dict(zip(result, _fields(result, {name: hints.get(name) for name in result if name in hints}), strict=True)))
