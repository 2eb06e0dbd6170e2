"""Simulated streams of jobs: drawn from a seed, played under a policy, and their figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from heapq import heapify, heappop, heappush
from itertools import count
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import yaml
from msgspec import Meta
from scipy.special import gammaincinv, ndtri

from analysis.files import read_whole
from analysis.formats.checked import Part
from analysis.plain import one_line
from analysis.terms import Refused, Unreadable
from control.scheduling.policies import Job
from control.scheduling.scheduler import Scheduler

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


ALIKE = 1e-9  # below that a gamma cannot be told from one number, nor computed
LEAST = 2.0**-53  # 0 and 1 would be infinite times


@dataclass(frozen=True, slots=True)
class TimesLaw:
    """Random times by their mean and `cv2`, variance over squared mean (1: exponential).

    Below 1 it is a gamma, above 1 two exponentials in balance (H2; Tijms, 2003).
    """

    mean_s: float
    cv2: float = 1.0

    def times_s(self, uniform: Floats) -> Floats:
        if self.cv2 < ALIKE:
            return np.full(uniform.shape, self.mean_s)
        if self.cv2 < 1:
            shape = 1 / self.cv2
            times_s: Floats = gammaincinv(shape, uniform) * self.mean_s / shape
            return times_s
        if self.cv2 == 1:
            return _exponential(uniform) * self.mean_s
        few = (1 - np.sqrt((self.cv2 - 1) / (self.cv2 + 1))) / 2
        # One number gives which of the two and, stretched to 0 … 1, how long.
        long = uniform >= 1 - few
        left = np.where(long, (uniform - (1 - few)) / few, uniform / (1 - few))
        mixed: Floats = _exponential(left) * self.mean_s / (2 * np.where(long, few, 1 - few))
        return mixed


def errors(uniform: Floats, sd_log: float) -> Floats:
    factors: Floats = np.exp(sd_log * ndtri(np.clip(uniform, LEAST, 1 - LEAST)))
    return factors


def _exponential(uniform: Floats) -> Floats:
    times: Floats = -np.log1p(-np.minimum(uniform, 1 - LEAST))
    return times


MOST = 1e12
Positive = Annotated[float, Meta(gt=0, le=MOST)]


@dataclass(frozen=True, slots=True)
class ClassModel:
    """A class of jobs: an entry of the YAML list `classes`; `cv2` is that of its times.

    A job is due `due_factor` times its class's mean time after its submission.
    """

    name: str
    probability: Annotated[float, Meta(gt=0, le=1)]
    mean_s: Positive
    cv2: Annotated[float, Meta(ge=0, le=MOST)] = 1.0
    priority: int = 0
    tenant: str = ""
    replicas: Annotated[int, Meta(ge=1)] = 1
    due_factor: Positive | None = None


FIELDS = tuple(field.name for field in fields(ClassModel))


def document_of(path: Path) -> dict[str, Any]:
    """Read a YAML file with a list of classes that have names. Raises: Unreadable."""
    try:
        document: Any = yaml.safe_load(read_whole(path))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Unreadable(f"{path}: not YAML: {one_line(error)}.") from None
    rows = document.get("classes") if isinstance(document, dict) else None
    if (
        not isinstance(rows, list)
        or not rows
        or not all(isinstance(row, dict) and "name" in row for row in rows)
    ):
        raise Unreadable(f"{path}: a list `classes` is expected; each entry needs a name.")
    return dict(document)


def read_classes(path: Path) -> tuple[ClassModel, ...]:
    classes = tuple(
        _class(Part(row, str(path), f"class {at}", "correct the file"))
        for at, row in enumerate(document_of(path)["classes"], 1)
    )
    if len({class_.name for class_ in classes}) < len(classes):
        raise Refused(f"{path}: two classes have the same name.")
    total = sum(class_.probability for class_ in classes)
    if not isclose(total, 1.0, abs_tol=1e-6):
        raise Refused(f"{path}: the probabilities sum to {total:g}, not 1.")
    return classes


def _class(row: Part) -> ClassModel:
    unknown = [name for name in row.value if name not in FIELDS]
    if unknown:
        row.refuse(f"has a field {unknown[0]!r}", f"there are {', '.join(FIELDS)}")
    return row.made(ClassModel)


# Never change this order: a seed's numbers depend on it.
PURPOSES = ("gaps", "classes", "times", "errors")


@dataclass(frozen=True, slots=True)
class Coming:
    """A job, and its time, which policies do not see."""

    job: Job
    takes_s: float


@dataclass(frozen=True, slots=True)
class JobSource:
    """The source of jobs; `error` is the standard deviation of log(predicted / true)."""

    classes: tuple[ClassModel, ...]
    slots: int
    load: float
    arrivals_cv2: float = 1.0
    error: float = 0.0

    @property
    def gap_s(self) -> float:
        demands_s = [one.probability * one.replicas * one.mean_s for one in self.classes]
        return sum(demands_s) / self.slots / self.load

    def must_be_stable(self) -> None:
        """Check stability. Raises: Refused, for overload, or a class that needs more slots."""
        if not 0 < self.load < 1:
            raise Refused(
                f"load {self.load:g}: must be above 0, and below 1, where the queue is stable."
            )
        for class_ in self.classes:
            if self.slots < class_.replicas:
                raise Refused(
                    f"class {class_.name}: {class_.replicas} replicas need as many slots at once; "
                    f"there are {self.slots}."
                )


def jobs(source: JobSource, many: int, seed: int) -> list[Coming]:
    numbers = uniform(seed, many, PURPOSES)
    gaps = TimesLaw(source.gap_s, source.arrivals_cv2)
    submit_s = np.cumsum(gaps.times_s(numbers["gaps"])).tolist()
    bounds = np.cumsum([class_.probability for class_ in source.classes])
    which = np.minimum(
        np.searchsorted(bounds, numbers["classes"], side="right"), len(source.classes) - 1
    ).tolist()
    times_s = [
        TimesLaw(class_.mean_s, class_.cv2).times_s(numbers["times"]).tolist()
        for class_ in source.classes
    ]
    off = errors(numbers["errors"], source.error).tolist()
    coming = []
    for at, place in enumerate(which):
        class_, takes_s = source.classes[place], times_s[place][at]
        due = class_.due_factor
        job = Job(
            number=at,
            submit_s=submit_s[at],
            predicted_s=takes_s * off[at],
            class_=class_.name,
            priority=class_.priority,
            replicas=class_.replicas,
            due_s=None if due is None else submit_s[at] + due * class_.mean_s,
            tenant=class_.tenant,
        )
        coming.append(Coming(job, takes_s))
    return coming


def uniform(seed: int, many: int, purposes: Sequence[str]) -> dict[str, Floats]:
    spawned = np.random.SeedSequence(seed).spawn(len(purposes))
    return {
        purpose: np.random.default_rng(seeded).random(many)
        for purpose, seeded in zip(purposes, spawned, strict=True)
    }


@dataclass(frozen=True, slots=True)
class Played:
    """Results per job, in order: arrays of shape (jobs,), seconds on the clock of submission."""

    submit_s: Floats
    start_s: Floats
    end_s: Floats
    replicas: Floats
    slots: int

    @property
    def wait_s(self) -> Floats:
        return self.start_s - self.submit_s


def play(coming: Sequence[Coming], slots: int, policy: str) -> Played:
    """Play a stream under a policy, which picks after all events of one moment."""
    scheduler = Scheduler(policy, slots)
    at_of = {arrival.job.number: at for at, arrival in enumerate(coming)}
    start_s, end_s = np.full(len(coming), np.nan), np.full(len(coming), np.nan)
    # Time, order among those of one moment, and the job, which ends if it has a start.
    events = [(arrival.job.submit_s, at, at) for at, arrival in enumerate(coming)]
    heapify(events)
    order = count(len(coming))
    while events:
        now_s = events[0][0]
        while events and events[0][0] == now_s:
            at = heappop(events)[2]
            if np.isnan(start_s[at]):
                scheduler.submit(coming[at].job, now_s)
            else:
                end_s[at] = now_s
                scheduler.end(coming[at].job.number, now_s)
        for number in scheduler.starts(now_s):
            at = at_of[number]
            start_s[at] = now_s
            heappush(events, (now_s + coming[at].takes_s, next(order), at))
    jobs = [arrival.job for arrival in coming]
    submit_s, replicas = (
        np.array([getattr(job, name) for job in jobs], float) for name in ("submit_s", "replicas")
    )
    return Played(submit_s, start_s, end_s, replicas, slots)


# A job's first and last part of a stream meet an empty cluster coming up and one running out.
WARM_UP = 0.1
SHORT = 0.1  # of the mean time: jobs shorter than that count as that long in slowdowns


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """Figures of a stream under one policy, without its first tenth of jobs (`busy`: with it).

    `slowdown` is response over time in service, bounded below (Feitelson and Rudolph, 1998). `jain`
    is Jain's index of the tenants' mean slowdowns, `late` the share that ended after it was due;
    None where they mean nothing. `inside_half` and `inside_end` are the jobs that waited or ran
    when half of them, and all, had been submitted.
    """

    mean_wait_s: float
    p95_wait_s: float
    mean_response_s: float
    slowdown: float
    busy: float
    inside_half: int
    inside_end: int
    jain: float | None = None
    late: float | None = None


def figures(coming: Sequence[Coming], played: Played) -> StreamFigures:
    counted = slice(int(len(coming) * WARM_UP), None)
    jobs = [arrival.job for arrival in coming[counted]]
    wait_s, end_s, submit_s = (
        played.wait_s[counted],
        played.end_s[counted],
        played.submit_s[counted],
    )
    service_s = end_s - played.start_s[counted]
    slowdowns = np.maximum(
        1.0, (end_s - submit_s) / np.maximum(service_s, SHORT * float(service_s.mean()))
    )
    half_s, until_s = (float(played.submit_s[at]) for at in (len(coming) // 2, -1))
    inside_s = np.minimum(played.end_s, until_s) - np.minimum(played.start_s, until_s)
    inside = [
        int(((played.submit_s <= at_s) & (played.end_s > at_s)).sum()) for at_s in (half_s, until_s)
    ]
    tenants = np.array([job.tenant for job in jobs])
    by_tenant = np.array([float(slowdowns[tenants == name].mean()) for name in np.unique(tenants)])
    promised = [
        ended > job.due_s
        for job, ended in zip(jobs, end_s.tolist(), strict=True)
        if job.due_s is not None
    ]
    return StreamFigures(
        mean_wait_s=float(wait_s.mean()),
        p95_wait_s=float(np.quantile(wait_s, 0.95)),
        mean_response_s=float((end_s - submit_s).mean()),
        slowdown=float(slowdowns.mean()),
        busy=float((inside_s * played.replicas).sum()) / (played.slots * until_s),
        inside_half=inside[0],
        inside_end=inside[1],
        jain=jain(by_tenant) if len(by_tenant) > 1 else None,
        late=sum(promised) / len(promised) if promised else None,
    )


def jain(values: Floats) -> float:
    """Return Jain's fairness index: 1 if all are equal, 1/n if one has all (DEC-TR-301, 1984)."""
    return float(values.sum()) ** 2 / (len(values) * float((values**2).sum()))
