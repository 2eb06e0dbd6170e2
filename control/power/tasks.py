"""Tasks as data: which network infers on which GPU under which cap, in the form of `data/power/tasks.yaml`. No file is opened."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from control.errors import Unreadable, one_line

from .catalog import DATA
from .terms import CPU_TIME, WATTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .terms import Unit

    Caps = tuple[tuple[int, float], ...]  # (from this iteration on, cap)

SHIPPED = DATA / "tasks.yaml"
ANY = "any"  # runs on whichever GPU there is
ITERATIONS = 60
UNITS: dict[str, Unit] = {"cap_w": WATTS, "cap_cpu_s_per_s": CPU_TIME}
CAPS = (*UNITS, *(f"caps{key.removeprefix('cap')}" for key in UNITS))  # caps_…: pairs of iteration and cap
KEYS = ("id", "gpu", "model", "dataset", "iterations", "slo_ms", *CAPS)
LARGEST = 1e9  # a cap above this is a slip of the pen
_NAME = re.compile(r"[A-Za-z0-9._+-]+")


@dataclass(frozen=True, slots=True)
class Task:
    """`caps` are in `cap_unit`, the first from iteration 0 on; `gpu` may be `any`. `torchvision` is what is run."""

    id: int
    gpu: str
    model: str
    dataset: str
    caps: Caps
    cap_unit: Unit = "W"
    iterations: int = ITERATIONS
    torchvision: str = ""
    slo_ms: float | None = None


def tasks_of(document: object, where: str) -> dict[int, Task]:
    """The tasks of a file by their id, in its order; `where` begins what is said of it. Raises: Unreadable, with the place."""
    if not isinstance(document, dict) or not isinstance(document.get("tasks"), list):
        raise Unreadable(f"{where}: no list `tasks`. {SHIPPED.name} of data/power shows the form.")
    names = document.get("torchvision") or {}
    if not isinstance(names, dict) or document.keys() - {"tasks", "torchvision"}:
        raise Unreadable(f"{where}: beside `tasks` there may be `torchvision`, a name of a model to each, and nothing else.")
    result: dict[int, Task] = {}
    for number, one in enumerate(document["tasks"], 1):
        task = _task(one, names, f"{where}, task {number}")
        if task.id in result:
            raise Unreadable(f"{where}, task {number}: id {task.id} is there twice.")
        result[task.id] = task
    if not result:
        raise Unreadable(f"{where}: it has no task.")
    return result


def cap_at(caps: Caps, iteration: int) -> float:
    """The cap in force in an iteration, counted from 0."""
    return next(cap for begins, cap in reversed(caps) if begins <= iteration)


def checked(pairs: list[tuple[int, float]], where: str) -> Caps:
    """Caps that can be. Raises: Unreadable."""
    begins = [number for number, _ in pairs]
    if not pairs or begins[0] != 0 or sorted(set(begins)) != begins or not all(0 < cap <= LARGEST for _, cap in pairs):
        raise Unreadable(f"{where}: caps are above 0, up to {LARGEST:g}, each with the iteration it begins at, 0 first, then higher ones.")
    return tuple((number, float(cap)) for number, cap in pairs)


def _task(one: Any, names: Mapping[str, Any], where: str) -> Task:  # noqa: ANN401  # what a YAML file has there
    if not isinstance(one, dict) or (unknown := [key for key in one if key not in KEYS]):
        what = "no mapping" if not isinstance(one, dict) else f"`{one_line(unknown[0])}` is none of {', '.join(KEYS)}"
        raise Unreadable(f"{where}: {what}.")
    if not _is_whole(one.get("id"), 0) or not all(_is_name(one.get(key)) for key in ("gpu", "model", "dataset")):
        raise Unreadable(f"{where}: it needs `id`, a whole number, and the names `gpu`, `model` and `dataset`.")
    given = [key for key in CAPS if key in one]
    if len(given) != 1:
        raise Unreadable(f"{where}: it needs one cap: {', '.join(CAPS)}; it has {', '.join(given) or 'none'}.")
    value = one[given[0]]
    pairs = value if given[0].startswith("caps") else [[0, value]]
    if not isinstance(pairs, list) or not all(
        isinstance(p, list) and len(p) == 2 and _is_whole(p[0], 0) and _is_number(p[1]) for p in pairs
    ):
        raise Unreadable(f"{where}: `{given[0]}` is {one_line(repr(value), 60)}: a number, or for caps_… pairs [from iteration, cap].")
    iterations, slo_ms = one.get("iterations", ITERATIONS), one.get("slo_ms")
    if not _is_whole(iterations, 2) or not (slo_ms is None or (_is_number(slo_ms) and slo_ms > 0)):
        raise Unreadable(f"{where}: `iterations` is a whole number from 2 on, `slo_ms` a time above 0.")
    torchvision = names.get(one["model"], one["model"])
    if not _is_name(torchvision):
        raise Unreadable(f"{where}: `torchvision` of {one['model']} is {one_line(repr(torchvision), 60)}: a name is needed.")
    unit = UNITS[given[0].replace("caps_", "cap_")]
    caps = checked([(begins, cap) for begins, cap in pairs], where)
    return Task(one["id"], one["gpu"], one["model"], one["dataset"], caps, unit, iterations, torchvision, slo_ms)


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None
