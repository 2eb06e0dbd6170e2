"""What streams of one kind say of themselves: rate, service times, load, waits, each with its interval; and Little's law on each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analysis.plain import one_line
from analysis.terms import Refused

from . import shape
from .little import little, most_held
from .sound import columns
from .terms import Inputs
from .units import estimate, units

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .little import Little
    from .shape import Shape
    from .sound import Columns
    from .terms import Figure, Stream
    from .units import Units

Sums = dict[str, float]
SIMULATED = "simulated"
EXPECTED = 0.005  # of the planned rate: jobs that come like clockwork scatter by nothing, and clocks do


@dataclass(frozen=True, slots=True)
class Fit:
    """What streams of one group came to. Figures are None where nothing tells them (a trace of arrivals has no service times).

    `utilisation` is the share of the slots' time that was held, by integration over the times of `laws`, which are by stream and None where
    no time starts and ends empty; `load` is rate times service time over slots. `engine` is empty where it was not told. `closed`: a job
    came when another ended, so that rate, gaps and waits are answers of the system and not what it was asked.
    """

    group: str
    names: tuple[str, ...]
    jobs: int
    servers: int | None
    engine: str
    policy: str
    units: Units
    rate_per_s: Figure | None
    service_s: Figure | None
    scv_arrivals: Figure | None
    scv_service: Figure | None
    load: Figure | None
    p_wait: Figure | None
    wait_s: Figure | None
    response_s: Figure | None
    utilisation: float | None
    arrivals: Shape | None
    services: Shape | None
    laws: tuple[Little | None, ...]
    findings: tuple[str, ...]
    priorities: tuple[int, ...] = ()
    closed: bool = False

    @property
    def simulated(self) -> bool:
        """Whether no job of it ever ran."""
        return self.engine == SIMULATED


def fit(streams: Sequence[Stream], servers: int | None = None) -> Fit:
    """Fit streams of one group. `servers` is how many slots there are, where the streams do not tell.

    Raises: Refused, for streams that differ in what must be one, or without any job that was submitted.
    """
    slots = _servers(streams, servers)
    found = [columns(one) for one in streams]
    if not any(len(one.submit) > 1 for one in found):
        raise Refused(f"{one_line(streams[0].group)}: fewer than two jobs that were submitted; nothing can be fitted.")
    made = units(found)
    laws = tuple(little(one) for one in found)
    busy = [(one.busy, one.end_s - one.begin_s) for one in laws if one is not None]
    held = sum(number * length for number, length in busy) / sum(length for _, length in busy) if busy else None
    asked: dict[str, Callable[[Sums], float | None]] = {
        "rate_per_s": rate,
        "service_s": service,
        "scv_arrivals": lambda sums: scv(sums, "gap"),
        "scv_service": lambda sums: scv(sums, "service"),
        "load": lambda sums: _load(sums, slots),
        "p_wait": lambda sums: mean(sums, "waited", "wait_n"),
        "wait_s": lambda sums: mean(sums, "wait"),
        "response_s": lambda sums: mean(sums, "response"),
    }
    figures = {name: estimate(of, made) for name, of in asked.items()}
    planned = _planned(streams, figures["rate_per_s"])
    return Fit(
        group=streams[0].group,
        names=tuple(one.name for one in streams),
        jobs=sum(len(one.submit) for one in found),
        servers=slots,
        engine=_only(streams, "engine"),
        policy=_only(streams, "policy"),
        units=made,
        **figures,
        utilisation=None if held is None or slots is None else held / slots,
        arrivals=shape.arrivals([one.submit for one in found]),
        services=shape.services([_known(one) for one in found]),
        laws=laws,
        findings=(*_findings(streams, found, laws), *_too_many(streams, found, slots), *planned),
        closed=any(one.closed for one in streams),
        priorities=tuple(sorted({job.priority for one in streams for job in one.jobs if job.priority is not None})),
    )


def inputs(sums: Sums, servers: int) -> Inputs | None:
    """Answer what a model takes, out of sums; None where something is missing."""
    found = (rate(sums), service(sums), scv(sums, "gap"), scv(sums, "service"))
    came, takes, scv_arrivals, scv_service = found
    if came is None or takes is None or scv_arrivals is None or scv_service is None or takes <= 0:
        return None
    return Inputs(came, takes, servers, scv_arrivals, scv_service)


def rate(sums: Sums) -> float | None:
    """Jobs a second: gaps over the time they take."""
    return sums["gap_n"] / sums["gap_s"] if sums.get("gap_s", 0) > 0 else None


def service(sums: Sums) -> float | None:
    """Mean service time, seconds."""
    return mean(sums, "service")


def mean(sums: Sums, what: str, over: str = "") -> float | None:
    """Mean of one kind of times, seconds, None of none; or what part of the count `over` it makes up."""
    count = sums.get(over or f"{what}_n", 0)
    return sums[f"{what}_s"] / count if count > 0 else None


def scv(sums: Sums, what: str) -> float | None:
    """Squared coefficient of variation, with n - 1; None of fewer than two, or where all are 0."""
    count, total = sums.get(f"{what}_n", 0), sums.get(f"{what}_s", 0)
    if count < 2 or total <= 0:
        return None
    average = total / count
    found = (sums[f"{what}_s2"] - count * average**2) / (count - 1) / average**2
    return found if found > 1e-12 else 0.0  # what rounding leaves of equal times


def _load(sums: Sums, servers: int | None) -> float | None:
    came, takes = rate(sums), service(sums)
    return None if came is None or takes is None or servers is None else came * takes / servers


def _known(found: Columns) -> np.ndarray:
    times = np.where(found.retried, np.nan, found.end - found.taken)
    return np.asarray(times[~np.isnan(times)])


def _servers(streams: Sequence[Stream], servers: int | None) -> int | None:
    told = {one.slots for one in streams if one.slots is not None}
    if len(told) > 1:
        raise Refused(f"{one_line(streams[0].group)}: its runs had {', '.join(map(str, sorted(told)))} slots; one model has one number.")
    return servers if servers is not None else next(iter(told), None)


def _only(streams: Sequence[Stream], name: str) -> str:
    told = sorted({str(getattr(one, name)) for one in streams})
    if len(told) > 1:
        raise Refused(f"{one_line(streams[0].group)}: its runs differ in {name} ({', '.join(map(one_line, told))}); they are never mixed.")
    return told[0]


def _findings(streams: Sequence[Stream], found: Sequence[Columns], laws: Sequence[Little | None]) -> list[str]:
    said = []
    for one, part, law in zip(streams, found, laws, strict=True):
        said += [f"{one_line(one.name)}: {finding}" for finding in part.findings]
        if law is None and one.measured and not part.retried.any():
            said.append(f"{one_line(one.name)}: no time that starts and ends empty is known, so Little's law cannot be held against it.")
        elif law is not None and law.jobs < len(part.submit):
            said.append(
                f"{one_line(one.name)}: Little's law is of {law.jobs} of {len(part.submit)} jobs, up to when it was last known to be empty."
            )
    return said


def _too_many(streams: Sequence[Stream], found: Sequence[Columns], slots: int | None) -> list[str]:
    """Name runs in which more slots were held than there are."""
    said = []
    for one, part in zip(streams, found, strict=True):
        most = most_held(part)
        if slots is not None and most > slots:
            said.append(f"{one_line(one.name)}: {most} jobs held a slot at once, and there are {slots}: times were recorded wrongly.")
    return said


def _planned(streams: Sequence[Stream], came: Figure | None) -> list[str]:
    """Say where jobs came at another rate than was planned."""
    told = {one.arrivals.get("rate_per_s") for one in streams}
    planned = next(iter(told)) if len(told) == 1 else None
    if came is None or came.low is None or came.high is None or isinstance(planned, bool) or not isinstance(planned, int | float):
        return []
    if came.low <= planned <= came.high or abs(came.value - planned) < EXPECTED * planned:
        return []
    return [f"planned were {planned:.4g} jobs/s; what came, {came.value:.4g} [{came.low:.4g}, {came.high:.4g}], differs from it."]
