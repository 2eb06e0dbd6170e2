"""Jobs of one seed: classes, gaps, times and prediction errors, with separate random streams.

Positive random times have a given mean and squared coefficient of variation, from uniform numbers
by inversion, so that the same numbers give longer times under a longer mean and nothing else
changes: common random numbers, which need synchronised streams (L'Ecuyer, Management Science 36,
1990). A file of classes is YAML:

    classes:
      - {name: train, probability: 0.3, mean_s: {gpu: 4, cpu: 40}, cv2: 1, priority: 1, tenant: a,
        replicas: 1, due_factor: 5}

`mean_s` is a number where all slots are alike. `due_factor` promises the end within so many times
the predicted time. Only `name`, `probability` and `mean_s` are needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from control.scheduling.policies import Job, least_load
from control.scheduling.scheduler import Scheduler

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


ALIKE = 1e-9  # below that a gamma cannot be told from one number, nor computed
LEAST = 2.0**-53  # a number from 0 to 1 that was rounded to an end would be an infinite time


@dataclass(frozen=True, slots=True)
class TimesLaw:
    """Random times with mean `mean_s`.

    `cv2` is variance over squared mean: 0 always the same, 1 exponential.

    Below 1 it is a gamma, above 1 two exponentials in balance (H2: half of the time is in each;
    Tijms, 2003).
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
        # One number does for both: which of the two, and, what is left of it stretched to 0 … 1,
        # how long.
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
    """One class of jobs.

    `mean_s` by kind of slot; a kind that is missing cannot run it. `cv2` is that of its times.
    """

    name: str
    probability: Annotated[float, Meta(gt=0, le=1)]
    mean_s: dict[str, Positive]
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


def read_classes(path: Path, kinds: tuple[str, ...]) -> tuple[ClassModel, ...]:
    rows = document_of(path)["classes"]
    classes = tuple(
        _class(Part(row, str(path), f"class {at}", "correct the file"), kinds)
        for at, row in enumerate(rows, 1)
    )
    if len({class_.name for class_ in classes}) < len(classes):
        raise Refused(f"{path}: two classes have the same name.")
    if not isclose(sum(class_.probability for class_ in classes), 1.0, abs_tol=1e-6):
        raise Refused(
            f"{path}: the probabilities sum to {sum(class_.probability for class_ in classes):g}, "
            "not 1."
        )
    return classes


def _class(row: Part, kinds: tuple[str, ...]) -> ClassModel:
    unknown = [name for name in row.value if name not in FIELDS]
    if unknown:
        row.refuse(f"has a field {unknown[0]!r}", f"there are {', '.join(FIELDS)}")
    mean_s = row.value.get("mean_s")
    means_s = mean_s if isinstance(mean_s, dict) else dict.fromkeys(kinds, mean_s)
    strange = [kind for kind in means_s if kind not in kinds]
    if strange or not means_s:
        row.refuse(
            f"has mean_s of {strange or 'no slots'}", f"there are slots of {', '.join(kinds)}"
        )
    return row.made(ClassModel, mean_s=means_s)


# In this order for ever: a seed's numbers hang on it.
PURPOSES = ("gaps", "classes", "times", "errors")


@dataclass(frozen=True, slots=True)
class Coming:
    """A job, and its time (hidden from policies) on each kind of slot that can run it."""

    job: Job
    takes_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class JobSource:
    """The source of jobs. `load` is the busy share of slots if each class runs on its proper ones.

    `error` is the standard deviation of log(predicted / true).
    """

    classes: tuple[ClassModel, ...]
    slots: Mapping[str, int]
    load: float
    arrivals_cv2: float = 1.0
    error: float = 0.0

    @property
    def gap_s(self) -> float:
        demand_s = {
            class_.name: {
                kind: class_.probability * class_.replicas * class_.mean_s.get(kind, np.inf)
                for kind in self.slots
            }
            for class_ in self.classes
        }
        return least_load(demand_s, self.slots) / self.load

    def must_be_stable(self) -> None:
        """Check stability. Raises: Refused, for overload, or a class without slots."""
        if not 0 < self.load < 1:
            raise Refused(
                f"load {self.load:g}: unstable: the queue grows as long as jobs arrive, so no "
                "wait has a mean; use a load below 1."
                if self.load >= 1
                else f"load {self.load:g}: must be above 0 and below 1."
            )
        for class_ in self.classes:
            if all(self.slots[kind] < class_.replicas for kind in class_.mean_s):
                raise Refused(
                    f"class {class_.name}: no kind of slot has room for {class_.replicas} "
                    f"replicas at once: {dict(self.slots)}."
                )


def jobs(source: JobSource, many: int, seed: int) -> list[Coming]:
    numbers = uniform(seed, many, PURPOSES)
    submit_s = np.cumsum(
        TimesLaw(source.gap_s, source.arrivals_cv2).times_s(numbers["gaps"])
    ).tolist()
    bounds = np.cumsum([class_.probability for class_ in source.classes])
    which = np.minimum(
        np.searchsorted(bounds, numbers["classes"], side="right"), len(source.classes) - 1
    ).tolist()
    # Relative to its class's mean: a job that is long on one kind of slot is long on every kind.
    lengths = [
        TimesLaw(1.0, class_.cv2).times_s(numbers["times"]).tolist() for class_ in source.classes
    ]
    off = errors(numbers["errors"], source.error).tolist()
    return [
        _coming(at, submit_s[at], source.classes[one], lengths[one][at], off[at])
        for at, one in enumerate(which)
    ]


def uniform(seed: int, many: int, purposes: Sequence[str]) -> dict[str, Floats]:
    """Draw numbers from 0 to 1 in a separate stream for each purpose."""
    spawned = np.random.SeedSequence(seed).spawn(len(purposes))
    return {
        purpose: np.random.default_rng(seeded).random(many)
        for purpose, seeded in zip(purposes, spawned, strict=True)
    }


def _coming(number: int, submit_s: float, class_: ClassModel, length: float, off: float) -> Coming:
    takes_s = {kind: mean_s * length for kind, mean_s in class_.mean_s.items()}
    predicted_s = {kind: seconds * off for kind, seconds in takes_s.items()}
    due_s = (
        None
        if class_.due_factor is None
        else submit_s + class_.due_factor * min(class_.mean_s.values())
    )
    job = Job(
        number=number,
        submit_s=submit_s,
        predicted_s=predicted_s,
        class_=class_.name,
        priority=class_.priority,
        replicas=class_.replicas,
        due_s=due_s,
        tenant=class_.tenant,
    )
    return Coming(job, takes_s)


@dataclass(frozen=True, slots=True)
class Played:
    """Results per job, in order: arrays of shape (jobs,), seconds on the clock of their submission.

    `kinds` are the slots each ran on; `slots` are those there were.
    """

    submit_s: Floats
    start_s: Floats
    end_s: Floats
    replicas: Floats
    kinds: tuple[str, ...]
    slots: Mapping[str, int]

    @property
    def wait_s(self) -> Floats:
        return self.start_s - self.submit_s


def play(coming: Sequence[Coming], slots: Mapping[str, int], policy: str) -> Played:
    """Play a stream of jobs under a policy.

    Of jobs that come at one moment the policy picks, after all that happens at that moment.
    """
    scheduler = Scheduler(policy, slots)
    at_of = {arrival.job.number: at for at, arrival in enumerate(coming)}
    start_s, end_s, kinds = (
        np.full(len(coming), np.nan),
        np.full(len(coming), np.nan),
        [""] * len(coming),
    )
    # When, in which order of those at one moment, and the job; it ends where it has a start.
    events = [(arrival.job.submit_s, at, at) for at, arrival in enumerate(coming)]
    heapify(events)
    order = count(len(coming))
    while events:
        now_s = events[0][0]
        while events and events[0][0] == now_s:
            at = heappop(events)[2]
            if kinds[at]:
                end_s[at] = now_s
                scheduler.end(coming[at].job.number, now_s)
            else:
                scheduler.submit(coming[at].job, now_s)
        for start in scheduler.starts(now_s):
            at = at_of[start.number]
            start_s[at], kinds[at] = now_s, start.kind
            heappush(events, (now_s + coming[at].takes_s[start.kind], next(order), at))
    jobs = [arrival.job for arrival in coming]
    submit_s, replicas = (
        np.array(column, float)
        for column in ([job.submit_s for job in jobs], [job.replicas for job in jobs])
    )
    return Played(submit_s, start_s, end_s, replicas, tuple(kinds), dict(scheduler.state.slots))


# A job's first and last part of a stream meet an empty cluster coming up and one running out.
WARM_UP = 0.1
SHORT = 0.1  # of the mean time: jobs shorter than that count as that long in slowdowns


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """Figures of a stream under one policy, without its first tenth of jobs (`busy`: with it).

    `slowdown` is response over time in service, bounded below (Feitelson and Rudolph, 1998): jobs
    shorter than a tenth of the mean would decide it. `jain` is Jain's index of the tenants' mean
    slowdowns, None with one tenant; `late` is the part that ended after it was due, None where
    nothing was promised. `busy` is slot-seconds in service over those there were until the last
    submission. `inside_half` and `inside_end` are the jobs that waited or ran when half of them,
    and all, had been submitted.
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
        busy=float((inside_s * played.replicas).sum()) / (sum(played.slots.values()) * until_s),
        inside_half=inside[0],
        inside_end=inside[1],
        jain=jain(by_tenant) if len(by_tenant) > 1 else None,
        late=sum(promised) / len(promised) if promised else None,
    )


def jain(values: Floats) -> float:
    """Return Jain's fairness index: 1 if all are equal, 1/n if one has all (DEC-TR-301, 1984)."""
    return float(values.sum()) ** 2 / (len(values) * float((values**2).sum()))
