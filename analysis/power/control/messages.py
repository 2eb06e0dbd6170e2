"""Lines of JSON, to and from the words of a decision.

A run asks `{"hello": 1, …}` once, then tells `{"observed": {…}}` after each iteration; to each there is one answer.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, cast

from analysis.terms import Refused

from .terms import Knobs, Question, Seen, Settings, Tenant, Unit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .terms import Decision

VERSION = 1
MOST_TENANTS, MOST_BATCH = 100, 1 << 16
UNITS = ("W", "cpu_s_per_s")


def read(line: str) -> Mapping[str, Any]:
    """One line as a JSON object of finite numbers. Raises: Refused."""
    try:
        said = json.loads(line, parse_constant=_not_json)
    except (ValueError, RecursionError) as error:
        raise Refused(f"Not a line of JSON ({error}): {line.strip()[:80]!r}.") from None
    if not isinstance(said, dict):
        raise Refused(f"A JSON object is expected, not {line.strip()[:80]!r}.")
    return said


def question_of(said: Mapping[str, Any]) -> Question:
    """What a run asks. Raises: Refused, where a field is missing or is not what it should be."""
    if said.get("hello") != VERSION:
        raise Refused(f"hello: version {said.get('hello')!r} is not spoken here, only {VERSION}.")
    task = mapping(said, "task")
    caps = tuple((whole(one, 0, "caps"), number(one, 1, "caps")) for one in _list(said, "caps"))
    if not caps or caps[0][0] != 0 or any(cap <= 0 for _, cap in caps):
        raise Refused("caps: pairs of an iteration and the cap above 0 from it on, the first from iteration 0.")
    unit = said.get("cap_unit", "W")
    if unit not in UNITS:
        raise Refused(f"cap_unit: {unit!r} is neither of {', '.join(UNITS)}.")
    return Question(
        algorithm=text(said, "algorithm"),
        gpu=text(task, "gpu"),
        model=text(task, "model"),
        caps=caps,
        knobs=knobs_of(mapping(said, "knobs")),
        cap_unit=cast("Unit", unit),
        iterations=whole(said, "iterations", otherwise=60.0),
        seed=whole(said, "seed", otherwise=1.0),
        shadow=bool(said.get("shadow", False)),
        parameters=None if said.get("parameters") is None else text(said, "parameters"),
        slo_ms=maybe(said, "slo_ms"),
        margin=number(said, "margin", otherwise=0.0),
    )


def knobs_of(said: Mapping[str, Any]) -> Knobs:
    """What can be set. Raises: Refused."""
    limit = _ladder(said, "power_limit_w")
    batches = _ladder(said, "batches")
    if not batches or (limit is not None and len(limit) != 2):
        raise Refused("knobs: `batches` has at least one batch, and `power_limit_w` the least and the most.")
    return Knobs(
        shares=bool(said.get("shares", False)),
        batches=tuple(int(one) for one in batches),
        most_processes=whole(said, "most_processes", otherwise=1.0),
        sm_mhz=_ladder(said, "sm_mhz"),
        mem_mhz=_ladder(said, "mem_mhz"),
        power_limit_w=None if limit is None else (limit[0], limit[1]),
        throttle=_ladder(said, "throttle"),
    )


def seen_of(said: Mapping[str, Any]) -> Seen:
    """What an iteration showed. Raises: Refused."""
    seen = mapping(said, "observed")
    return Seen(
        iteration=whole(seen, "iteration"),
        cap=number(seen, "cap"),
        settings=settings_of(mapping(seen, "settings")),
        throughput_images_per_s=maybe(seen, "throughput_images_per_s"),
        power_mean=maybe(seen, "power_mean"),
        power_max=maybe(seen, "power_max"),
        refused=tuple(str(one) for one in _listed(seen, "refused")),
        sm_util_percent=maybe(seen, "sm_util_percent"),
        mem_util_percent=maybe(seen, "mem_util_percent"),
        latency_ms=_latencies(seen, "latency_ms"),
        latency_p95_ms=_latencies(seen, "latency_p95_ms"),
        oom=_indices(seen, "oom"),
    )


def settings_of(said: Mapping[str, Any]) -> Settings:
    """Settings as a run or a decision tells them. Raises: Refused."""
    tenants = tuple(Tenant(number(one, "share_percent"), whole(one, "batch")) for one in _list(said, "tenants"))
    if any(not 0 < one.share_percent <= 100 or not 1 <= one.batch <= MOST_BATCH for one in tenants) or len(tenants) > MOST_TENANTS:
        raise Refused(f"tenants: at most {MOST_TENANTS}, each with a share above 0 and up to 100 % and a batch from 1 to {MOST_BATCH}.")
    return Settings(tenants, *(maybe(said, name) for name in ("sm_mhz", "mem_mhz", "power_limit_w", "throttle")))


def decided(decision: Decision) -> dict[str, Any]:
    """The answer to an observation."""
    predicted = None if decision.predicted is None else asdict(decision.predicted)
    return {"settings": asdict(decision.settings), "why": decision.why, "predicted": predicted}


def _not_json(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


def number(said: Any, key: str | int, name: str = "", *, otherwise: float | None = None) -> float:  # noqa: ANN401  # as it came
    """A number, or `otherwise` where there is none. Raises: Refused, where there is neither."""
    found = maybe(said, key)
    if found is None:
        found = otherwise
    if found is None:
        raise Refused(f"{name or key}: a number is missing.")
    return found


def whole(said: Any, key: str | int, name: str = "", *, otherwise: float | None = None) -> int:  # noqa: ANN401  # as it came
    """A whole number, or `otherwise` where there is none. Raises: Refused."""
    found = number(said, key, name, otherwise=otherwise)
    if found != int(found):
        raise Refused(f"{name or key}: {found!r} is not a whole number.")
    return int(found)


def maybe(said: Any, key: str | int) -> float | None:  # noqa: ANN401  # as it came
    """A finite number, None where there is none. Raises: Refused, for what is something else."""
    try:
        found = said[key]
    except (KeyError, IndexError, TypeError):
        return None
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or not isfinite(found):
        raise Refused(f"{key}: {found!r} is not a number.")
    return float(found)


def numbers(said: Mapping[str, Any], key: str) -> tuple[float, ...]:
    """A list of numbers, empty where there is none. Raises: Refused."""
    return tuple(number(said[key], at, key) for at in range(len(_list(said, key)))) if said.get(key) is not None else ()


def _ladder(said: Mapping[str, Any], key: str) -> tuple[float, ...] | None:
    found = numbers(said, key)
    if list(found) != sorted(set(found)) or any(one <= 0 for one in found):
        raise Refused(f"{key}: {list(found)} does not ascend from above 0.")
    return found or None


def mapping(said: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """An object. Raises: Refused."""
    found = said.get(key)
    if not isinstance(found, dict):
        raise Refused(f"{key}: an object is expected, not {found!r}.")
    return found


def _latencies(said: Mapping[str, Any], key: str) -> tuple[float | None, ...]:
    told = _listed(said, key)
    return tuple(maybe(told, at) for at in range(len(told)))


def _indices(said: Mapping[str, Any], key: str) -> tuple[int, ...]:
    told = _listed(said, key)
    found = tuple(whole(told, at, key) for at in range(len(told)))
    tenants = len(_list(mapping(said, "settings"), "tenants"))
    if any(not 0 <= one < tenants for one in found):
        raise Refused(f"{key}: {list(found)} is not of {tenants} tenants, counted from 0.")
    return found


def _listed(said: Mapping[str, Any], key: str) -> list[Any]:
    return [] if said.get(key) is None else _list(said, key)


def _list(said: Mapping[str, Any], key: str) -> list[Any]:
    found = said.get(key)
    if not isinstance(found, list):
        raise Refused(f"{key}: a list is expected, not {found!r}.")
    return found


def text(said: Mapping[str, Any], key: str) -> str:
    """A text. Raises: Refused."""
    found = said.get(key)
    if not isinstance(found, str):
        raise Refused(f"{key}: a text is expected, not {found!r}.")
    return found
