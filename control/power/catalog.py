"""Read `data/power/*.yaml`: GPUs and their clocks, profile points, algorithms, tasks.

A task is which network infers on which GPU under which cap; files of tasks are opened by the side
that reads them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import yaml

from control.errors import Refused, Unreadable, one_line

from .terms import CPU_TIME, WATTS, Partition, Platform, Unit

if TYPE_CHECKING:
    Caps = tuple[tuple[int, float], ...]  # (from this iteration on, cap)

DATA = Path(__file__).parents[2] / "data" / "power"


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """Some processes with the same share (percent of the SMs) and batch (images)."""

    share_percent: int
    processes: int
    batch: int

    @property
    def partition(self) -> Partition:
        """Return the point as shares and batches, one of each per process."""
        return Partition(
            (float(self.share_percent),) * self.processes, (self.batch,) * self.processes
        )


@cache
def points(part: Literal["anchor", "sweep"]) -> tuple[OperatingPoint, ...]:
    """Return the grid at the anchor clock (263 points), or the sweep (9 points)."""
    return tuple(
        OperatingPoint(row["share_percent"], processes, batch)
        for row in _data("grid")[part]
        for processes in row["processes"]
        for batch in row["batches"]
    )


def grid() -> list[Partition]:
    return [point.partition for point in points("anchor")]


@cache
def platforms() -> dict[str, Platform]:
    return {
        name: Platform(
            name=name,
            sm_mhz=tuple(
                float(mhz)
                for mhz in range(
                    entry["sm_mhz"]["first"], entry["sm_mhz"]["last"] + 1, entry["sm_mhz"]["step"]
                )
            ),
            mem_mhz=tuple(map(float, entry["mem_mhz"])),
            searched_mem_mhz=tuple(map(float, entry["searched_mem_mhz"])),
            anchor_mhz=float(entry["anchor_mhz"]),
            tdp_w=float(entry["tdp_w"]),
            detect=tuple(entry["detect"]),
        )
        for name, entry in _data("gpus")["gpus"].items()
    }


def platform(name: str) -> Platform:
    """Return the GPU of this name. Raises: Refused, with the known names."""
    known = platforms()
    if name not in known:
        raise Refused(
            f"GPU {one_line(name)!r} is unknown; available: {', '.join(known)}. Add its clocks "
            "to data/power/gpus.yaml."
        )
    return known[name]


def configured(algorithm: str, network: str) -> Mapping[str, Any]:
    """Return an algorithm's values, overridden by those for a network."""
    entry = dict(_data("algorithms")[algorithm])
    networks = entry.pop("networks")
    return {**entry, **networks.get(network, networks["default"])}


def every_batch() -> tuple[int, ...]:
    """Return the batches of all ladders, ascending."""
    entries = _data("algorithms").values()
    ladders = [
        each.get("ladder", ()) for entry in entries for each in (entry, *entry["networks"].values())
    ]
    return tuple(sorted({batch for ladder in ladders for batch in ladder}))


@cache
def _data(name: str) -> dict[str, Any]:
    return cast(
        "dict[str, Any]", yaml.safe_load((DATA / f"{name}.yaml").read_text(encoding="utf-8"))
    )


SHIPPED = DATA / "tasks.yaml"
ANY = "any"  # runs on whichever GPU there is
ITERATIONS = 60
UNITS: dict[str, Unit] = {"cap_w": WATTS, "cap_cpu_s_per_s": CPU_TIME}
# caps_…: pairs of iteration and cap.
CAPS = (*UNITS, *(f"caps{key.removeprefix('cap')}" for key in UNITS))
KEYS = ("id", "gpu", "model", "dataset", "iterations", "slo_ms", *CAPS)
LARGEST = 1e9  # a cap above this is a slip of the pen
_NAME = re.compile(r"[A-Za-z0-9._+-]+")


@dataclass(frozen=True, slots=True)
class Task:
    """Training task: its `caps` are in `cap_unit`, the first from iteration 0; `gpu` may be `any`.

    `torchvision` is what is run.
    """

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
    """Return a file's tasks by id, in order. Raises: Unreadable, beginning with `where`."""
    if not isinstance(document, dict) or not isinstance(document.get("tasks"), list):
        raise Unreadable(
            f"{where}: the list `tasks` is missing. data/power/{SHIPPED.name} shows the format."
        )
    names = document.get("torchvision") or {}
    if not isinstance(names, dict) or document.keys() - {"tasks", "torchvision"}:
        raise Unreadable(
            f"{where}: besides `tasks`, only `torchvision` is allowed, which maps each model to a "
            "name."
        )
    result: dict[int, Task] = {}
    for number, entry in enumerate(document["tasks"], 1):
        task = _task(entry, names, f"{where}, task {number}")
        if task.id in result:
            raise Unreadable(f"{where}, task {number}: id {task.id} occurs twice.")
        result[task.id] = task
    if not result:
        raise Unreadable(f"{where}: contains no task.")
    return result


def cap_at(caps: Caps, iteration: int) -> float:
    """Return the cap in force in an iteration, counted from 0."""
    return next(cap for begins, cap in reversed(caps) if begins <= iteration)


def checked(pairs: list[tuple[int, float]], where: str) -> Caps:
    """Return valid caps. Raises: Unreadable."""
    begins = [number for number, _ in pairs]
    if (
        not pairs
        or begins[0] != 0
        or sorted(set(begins)) != begins
        or not all(0 < cap <= LARGEST for _, cap in pairs)
    ):
        raise Unreadable(
            f"{where}: caps must be above 0, up to {LARGEST:g}, each with its first iteration, in "
            "ascending order from 0."
        )
    return tuple((number, float(cap)) for number, cap in pairs)


def _task(entry: Any, names: Mapping[str, Any], where: str) -> Task:
    if not isinstance(entry, dict) or (unknown := [key for key in entry if key not in KEYS]):
        what = (
            "not a mapping"
            if not isinstance(entry, dict)
            else f"`{one_line(unknown[0])}` is not one of {', '.join(KEYS)}"
        )
        raise Unreadable(f"{where}: {what}.")
    if not _is_whole(entry.get("id"), 0) or not all(
        _is_name(entry.get(key)) for key in ("gpu", "model", "dataset")
    ):
        raise Unreadable(
            f"{where}: needs `id`, a whole number, and the names `gpu`, `model` and `dataset`."
        )
    given = [key for key in CAPS if key in entry]
    if len(given) != 1:
        raise Unreadable(
            f"{where}: needs one of {', '.join(CAPS)}, but has {', '.join(given) or 'none'}."
        )
    value = entry[given[0]]
    pairs = value if given[0].startswith("caps") else [[0, value]]
    if not isinstance(pairs, list) or not all(
        isinstance(p, list) and len(p) == 2 and _is_whole(p[0], 0) and _is_number(p[1])
        for p in pairs
    ):
        raise Unreadable(
            f"{where}: `{given[0]}` is {one_line(repr(value), 60)}: use a number, or, for caps_…, "
            "pairs [first iteration, cap]."
        )
    iterations, slo_ms = entry.get("iterations", ITERATIONS), entry.get("slo_ms")
    if not _is_whole(iterations, 2) or not (slo_ms is None or (_is_number(slo_ms) and slo_ms > 0)):
        raise Unreadable(
            f"{where}: `iterations` must be a whole number of at least 2, and `slo_ms` above 0."
        )
    torchvision = names.get(entry["model"], entry["model"])
    if not _is_name(torchvision):
        raise Unreadable(
            f"{where}: `torchvision` of {entry['model']} is {one_line(repr(torchvision), 60)}: "
            "must be a name."
        )
    unit = UNITS[given[0].replace("caps_", "cap_")]
    caps = checked([(begins, cap) for begins, cap in pairs], where)
    return Task(
        entry["id"],
        entry["gpu"],
        entry["model"],
        entry["dataset"],
        caps,
        unit,
        iterations,
        torchvision,
        slo_ms,
    )


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None
