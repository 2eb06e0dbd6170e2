"""What jobs a stream is made of: classes with their part of the jobs, times by kind of slot, priority, tenant, replicas and promise.

A file of classes is YAML:

    classes:
      - {name: train, probability: 0.3, mean_s: {gpu: 4, cpu: 40}, cv2: 1, priority: 1, tenant: a, replicas: 1, due_factor: 5}

`mean_s` is a number where all slots are alike. `due_factor` promises the end within so many times the predicted time. Only `name`,
`probability` and `mean_s` are needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose
from typing import TYPE_CHECKING, Any

from analysis.opening import read_whole
from analysis.terms import Refused, Unreadable

if TYPE_CHECKING:
    from pathlib import Path

FIELDS = ("name", "probability", "mean_s", "cv2", "priority", "tenant", "replicas", "due_factor")


@dataclass(frozen=True, slots=True)
class Class:
    """One class of jobs. `mean_s` by kind of slot; a kind that is missing cannot run it. `cv2` is that of its times."""

    name: str
    probability: float
    mean_s: Mapping[str, float]
    cv2: float = 1.0
    priority: int = 0
    tenant: str = ""
    replicas: int = 1
    due_factor: float | None = None


def read(path: Path, kinds: tuple[str, ...]) -> tuple[Class, ...]:
    """Read a file of classes for slots of these kinds. Raises: Unreadable, Refused; the sentence says which class and field."""
    import yaml  # noqa: PLC0415  # only where there is a file

    try:
        said = yaml.safe_load(read_whole(path))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Unreadable(f"{path}: no YAML: {' '.join(str(error).split())}.") from None
    rows = said.get("classes") if isinstance(said, dict) else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise Unreadable(f"{path}: a list `classes` is expected, each with {', '.join(FIELDS[:3])}.")
    classes = tuple(_class(row, kinds, f"{path}: class {at}") for at, row in enumerate(rows, 1))
    if len({one.name for one in classes}) < len(classes):
        raise Refused(f"{path}: two classes have one name.")
    if not isclose(sum(one.probability for one in classes), 1.0, abs_tol=1e-6):
        raise Refused(f"{path}: the probabilities sum to {sum(one.probability for one in classes):g}, not 1.")
    return classes


def _class(row: Mapping[str, Any], kinds: tuple[str, ...], where: str) -> Class:
    unknown = [name for name in row if name not in FIELDS]
    if unknown:
        raise Refused(f"{where}: no field {unknown[0]!r}; there are {', '.join(FIELDS)}.")
    mean_s = row.get("mean_s")
    means_s = mean_s if isinstance(mean_s, Mapping) else dict.fromkeys(kinds, mean_s)
    strange = [kind for kind in means_s if kind not in kinds]
    if strange or not means_s:
        raise Refused(f"{where}: mean_s names {strange or 'no slots'}; there are slots of {', '.join(kinds)}.")
    due = row.get("due_factor")
    return Class(
        name=str(row.get("name", "")),
        probability=_number(row.get("probability"), f"{where}: probability", most=1.0),
        mean_s={kind: _number(value, f"{where}: mean_s of {kind}") for kind, value in means_s.items()},
        cv2=_number(row.get("cv2", 1.0), f"{where}: cv2", least=0.0),
        priority=_whole(row.get("priority", 0), f"{where}: priority"),
        tenant=str(row.get("tenant", "")),
        replicas=_whole(row.get("replicas", 1), f"{where}: replicas", least=1),
        due_factor=None if due is None else _number(due, f"{where}: due_factor"),
    )


def _number(value: object, what: str, least: float | None = None, most: float = 1e12) -> float:
    """A number above 0, or from `least` on."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refused(f"{what}: {value!r} is no number.")
    if not ((value > 0 if least is None else value >= least) and value <= most):
        raise Refused(f"{what}: {value!r} is not {'above 0' if least is None else f'{least:g} or more'} and at most {most:g}.")
    return float(value)


def _whole(value: object, what: str, least: int = -(10**9)) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise Refused(f"{what}: {value!r} is no whole number{f' of {least} or more' if least > 0 else ''}.")
    return value
