"""Read `data/power/*.yaml`: GPUs and their clocks, profile points, algorithms, tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import msgspec
import yaml
from msgspec import Meta, Struct

from control.errors import Refused, Unreadable, one_line

from .terms import CPU_TIME, WATTS, Partition, Platform, Unit

if TYPE_CHECKING:
    Caps = tuple[tuple[int, float], ...]  # (from this iteration on, cap)

DATA = Path(__file__).parents[2] / "data" / "power"


@cache
def points(part: Literal["anchor", "sweep"]) -> tuple[Partition, ...]:
    """Return the grid at the anchor clock (263 partitions), or the sweep (9), all homogeneous."""
    return tuple(
        Partition((float(row["share_percent"]),) * processes, (batch,) * processes)
        for row in _data("grid")[part]
        for processes in row["processes"]
        for batch in row["batches"]
    )


def grid() -> list[Partition]:
    return list(points("anchor"))


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
CAPS = (*UNITS, *(f"caps{key.removeprefix('cap')}" for key in UNITS))  # caps_…: a schedule
LARGEST = 1e9  # a cap above this is a slip of the pen
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._+-]+$")]
Whole = Annotated[int, Meta(ge=0)]
Cap = Annotated[float, Meta(gt=0, le=LARGEST)]
Schedule = Annotated[list[tuple[Whole, Cap]], Meta(min_length=1)]


@dataclass(frozen=True, slots=True)
class Task:
    """Inference task: its `caps` are in `cap_unit`, the first from iteration 0; `gpu` may be `any`.

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


class TaskEntry(Struct, forbid_unknown_fields=True):
    """A task as files have it: one cap, or pairs of iteration and cap."""

    id: Whole
    gpu: Name
    model: Name
    dataset: Name
    cap_w: Cap | None = None
    cap_cpu_s_per_s: Cap | None = None
    caps_w: Schedule | None = None
    caps_cpu_s_per_s: Schedule | None = None
    iterations: Annotated[int, Meta(ge=2)] = ITERATIONS
    slo_ms: Annotated[float, Meta(gt=0)] | None = None


class TaskFile(Struct, forbid_unknown_fields=True):
    """`torchvision` maps models to names there, where these differ."""

    tasks: Annotated[list[TaskEntry], Meta(min_length=1)]
    torchvision: dict[str, Name] = {}


def tasks_of(document: object, where: str) -> dict[int, Task]:
    """Return a file's tasks by id, in order. Raises: Unreadable, beginning with `where`."""
    try:
        file = msgspec.convert(document, TaskFile)
    except (msgspec.ValidationError, OverflowError) as error:
        raise Unreadable(
            f"{where}: {one_line(error)}. data/power/{SHIPPED.name} shows the format."
        ) from None
    result: dict[int, Task] = {}
    for entry in file.tasks:
        if entry.id in result:
            raise Unreadable(f"{where}: task {entry.id} occurs twice.")
        given = [key for key in CAPS if getattr(entry, key) is not None]
        if len(given) != 1:
            raise Unreadable(f"{where}: task {entry.id} needs exactly one of {', '.join(CAPS)}.")
        value = getattr(entry, given[0])
        result[entry.id] = Task(
            entry.id,
            entry.gpu,
            entry.model,
            entry.dataset,
            checked(
                value if isinstance(value, list) else [(0, value)], f"{where}: task {entry.id}"
            ),
            UNITS[given[0].replace("caps_", "cap_")],
            entry.iterations,
            file.torchvision.get(entry.model, entry.model),
            entry.slo_ms,
        )
    return result


def cap_at(caps: Caps, iteration: int) -> float:
    """Return the cap in force in an iteration, counted from 0."""
    return next(cap for begins, cap in reversed(caps) if begins <= iteration)


def checked(pairs: list[tuple[int, float]], where: str) -> Caps:
    """Return valid caps. Raises: Unreadable."""
    begins = [number for number, _ in pairs]
    if (
        begins[:1] != [0]
        or sorted(set(begins)) != begins
        or not all(0 < cap <= LARGEST for _, cap in pairs)
    ):
        raise Unreadable(
            f"{where}: caps must be above 0, up to {LARGEST:g}, each with its first iteration, in "
            "ascending order from 0."
        )
    return tuple((number, float(cap)) for number, cap in pairs)
