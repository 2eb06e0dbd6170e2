"""How a task is called, and in which order tasks stand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from analysis.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .terms import Capped


def in_order(names: Iterable[str]) -> list[str]:
    """Order by name, numbers by size: task 6 before task 13."""
    return sorted(names, key=lambda name: [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name)])


def labels(names: Iterable[str]) -> dict[str, str]:
    """What sentences call tasks: `task 6`, and what else sets them apart, where two would be called alike."""
    names = list(names)
    short = {name: next((part.replace("=", " ") for part in name.split() if part.startswith("task=")), name) for name in names}
    return {name: one_line(one if list(short.values()).count(one) == 1 else name, 120) for name, one in short.items()}


def title(label: str, cells: Sequence[Capped]) -> str:
    """What a table's head says of a task: its number, and what runs on which GPU, where that was told."""
    task: Mapping[str, object] = next((one.task for one in cells if one.task), {})
    model, gpu, dataset = (task.get(key) for key in ("model", "gpu_of_parameters", "dataset"))
    if not isinstance(model, str):
        return label
    what = f"{model}{f' ({dataset})' if isinstance(dataset, str) and dataset else ''}{f' on {gpu}' if isinstance(gpu, str) else ''}"
    return one_line(f"{label}: {what}", 200)


def slo_ms(cells: Sequence[Capped]) -> float | None:
    """The latency that was to be kept, where one was told."""
    values = [float(value) for one in cells if isinstance(value := one.task.get("slo_ms"), int | float) and not isinstance(value, bool)]
    return values[0] if values else None


def caps(cells: Sequence[Capped]) -> tuple[float, ...]:
    """The caps of the longest run, in the order they came."""
    longest = max((one.iterations for one in cells), key=len, default=())
    return tuple(dict.fromkeys(one.cap for one in longest))
