"""Policies compared on real streams with identical arrivals, and each real stream played again in simulation: does that wait as long?

A stream is the unit: its figure under a policy over that under the baseline, for the streams that every policy had. A policy that lost
other jobs than the baseline is not compared: what is left of its jobs may well be the quick ones. Of the others those jobs count that each
did in the first attempt. The simulator gets the measured submissions and times in service and the policy by name; what it does not know is
what the engine takes to start a job.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from analysis.formats.fields import Fields
from analysis.hardware import machine_of
from analysis.stats.effect import moments
from analysis.studies.jobs.records import AGAIN, STOCK
from analysis.studies.jobs.simulation.loop import Played, figures, play
from analysis.studies.jobs.simulation.stream import Coming
from analysis.terms import Refused, Unreadable
from control.scheduling import policies
from control.scheduling.terms import Job
from control.t_test import t_quantile

from .comparison import FEWEST, PolicyArm, compared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.terms import Cell, Run


ANY = "any"
TIMES = ("submit_s", "admit_s", "start_s", "end_s")
KNOWN = (*TIMES, "planned_submit_s", "predicted_s", "due_s", "work", "priority", "replicas")
FEWEST_JOBS = 20


@dataclass(frozen=True, slots=True)
class Recorded:
    """One stream under one policy; its jobs that were done in their first attempt, in the order of submission. `lost` counts the others.

    `condition` is all that was asked for but the policy, and the machine; `again` is a copy of the untouched machine's stream.
    `playable` is a stream whose slots were all there all the time and none of whose jobs was lost or tried again: the simulator knows of no
    slot that is away, or held by what never got done.

    `arrivals` is what makes two streams the same: kind, rate and seed of the arrivals, and every job's planned submission and size. A slot
    is taken from admission, or from the start where nobody admits.
    """

    cell: str
    engine: str
    policy: str
    slots: int
    arrivals: str
    coming: tuple[Coming, ...]
    played: Played
    lost: int
    condition: str = ""
    again: bool = False
    playable: bool = True

    @property
    def at_once(self) -> frozenset[int]:
        """The numbers of its jobs that were done in their first attempt."""
        return frozenset(one.job.number for one in self.coming)


def recorded(run: Run, refused: list[str]) -> list[Recorded]:
    """Read every stream of a run; what cannot be used is said in `refused`. Raises: Refused, for a run that tells of no jobs."""
    cells = [cell for cell in run.cells if "job" in cell.report]
    if not cells:
        raise Refused(f"{run.origin}: no cell of it tells of a stream of jobs.")
    found = []
    for cell in cells:
        if cell.outcome != "measured":
            refused.append(f"{run.origin}: {cell.id} {cell.outcome}: {(cell.reason or 'no reason was recorded').rstrip('.')}.")
            continue
        try:
            found.append(replace(_recorded(cell, run.origin), condition=_condition(run, cell), again=cell.tweakset == AGAIN))
        except Unreadable as error:
            refused.append(str(error))
    return found


def _condition(run: Run, cell: Cell) -> str:
    parts = [part for part in cell.workload.split(":") if not part.startswith("policy=")]
    under = "" if cell.tweakset in {STOCK, AGAIN} else f" under {cell.tweakset}"
    return f"{':'.join(parts)}{under} on {machine_of(run.machine)}"


def _recorded(cell: Cell, origin: str) -> Recorded:
    place = f"cell {cell.id}, report"
    rows = [Fields(one, origin, f"{place}.job[{at}]") for at, one in enumerate(cell.report["job"])]
    told = cell.report.get("stream", ())
    if len(told) != 1:
        raise Unreadable(f"{origin}: {place}: tells of {len(told)} streams; one belongs there.")
    about = Fields(told[0], origin, f"{place}.stream")
    slots = about.whole("slots")
    numbers = [Fields({"row": one.value}, origin, one.place).known_numbers("row", KNOWN) for one in rows]
    done = [(row, one) for row, one in zip(rows, numbers, strict=True) if row.text("outcome") == "done" and _first(row)]
    done.sort(key=lambda both: _time(*both, "submit_s"))
    if len(done) < FEWEST_JOBS or slots < 1:
        raise Unreadable(
            f"{origin}: {place}: {len(done)} jobs on {slots} slots were done; {FEWEST_JOBS} and more say something of a policy."
        )
    if len({row.whole("job") for row, _ in done}) < len(done):
        raise Unreadable(f"{origin}: {place}: a number of a job stands twice.")
    submit_s, taken_s, end_s = (np.array([_time(row, one, *names) for row, one in done]) for names in _MOMENTS)
    if (taken_s < submit_s).any() or (end_s < taken_s).any():
        raise Unreadable(f"{origin}: {place}: the clock went back: a job started before it came, or ended before it started.")
    # To the microsecond: a plan that was written and read again is the same plan.
    planned = zip(rows, numbers, strict=True)
    plan = {row.whole("job"): (round(one.get("planned_submit_s", -1.0), 6), one.get("work")) for row, one in planned}
    return Recorded(
        cell=cell.id,
        engine=about.text("engine"),
        policy=about.text("policy"),
        slots=slots,
        arrivals=json.dumps([dict(about.optional_mapping("arrivals")), plan], sort_keys=True),
        coming=tuple(_coming(row, one, float(seconds)) for (row, one), seconds in zip(done, end_s - taken_s, strict=True)),
        played=Played(submit_s, taken_s, end_s, np.array([one.get("replicas", 1.0) for _, one in done]), (ANY,) * len(done), {ANY: slots}),
        lost=len(rows) - len(done),
        playable=len(done) == len(rows) and not cell.report.get("node"),
    )


def _first(row: Fields) -> bool:
    """Whether it took one attempt: between two it held no slot, and what they took is not what a job takes."""
    return not row.has("attempts") or row.whole("attempts") <= 1


_MOMENTS = (("submit_s",), ("admit_s", "start_s"), ("end_s",))


def _time(row: Fields, numbers: dict[str, float], *names: str) -> float:
    found = next((numbers[name] for name in names if name in numbers), None)
    if found is None:
        row.refuse(f"is of a job that was done and has no {' or '.join(names)}")
    return found


def _coming(row: Fields, numbers: dict[str, float], seconds: float) -> Coming:
    predicted_s = numbers.get("predicted_s")
    job = Job(
        number=row.whole("job"),
        submit_s=numbers["submit_s"],
        predicted_s={} if predicted_s is None else {ANY: predicted_s},
        class_=row.optional_text("class") or "",
        priority=int(numbers.get("priority", 0)),
        replicas=max(1, int(numbers.get("replicas", 1))),
        due_s=numbers.get("due_s"),
        tenant=row.optional_text("tenant") or row.optional_text("class") or "",
    )
    return Coming(job, {ANY: seconds})


@dataclass(frozen=True, slots=True)
class Replay:
    """Mean waits of a policy's streams, measured and simulated, in seconds; `longer_s` is measured less simulated, with its 95 % interval.

    The interval is None with fewer than three streams.
    """

    policy: str
    streams: int
    measured_s: float
    simulated_s: float
    longer_s: float
    interval_s: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """All under one condition on one engine with so many slots. `streams` are paired; `alone` those that not every policy had.

    `lost` jobs were not done in their first attempt; `copies` are streams that had the jobs of another under the same policy, left out.
    `left_out` are the policies under which other jobs were done in their first attempt: how many of the baseline's were not, and of theirs
    under it. `unplayed` streams lost slots or jobs, and were not played in simulation.
    """

    engine: str
    slots: int
    streams: int
    alone: int
    lost: int
    baseline: str
    arms: tuple[PolicyArm, ...]
    replays: tuple[Replay, ...]
    condition: str = ""
    copies: int = 0
    left_out: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    unplayed: int = 0


def places(streams: Sequence[Recorded], baseline: str, refused: list[str]) -> list[Place]:
    """Compare, condition by condition: what differs in more than the policy is never paired. What cannot be is said in `refused`.

    Raises: Refused, where in none were any arrivals those of all policies.
    """
    groups: dict[tuple[str, str, int], list[Recorded]] = {}
    for one in streams:
        groups.setdefault((one.condition, one.engine, one.slots), []).append(one)
    found: list[Place] = []
    why: list[Refused] = []
    for group in groups.values():
        try:
            found.append(_place(group, baseline))
        except Refused as error:
            why.append(error)
    if not found:
        raise why[0]
    refused += [str(error) for error in why]
    return found


def lost_unequally(one: Place) -> str:
    """Say which policies are not compared, since they lost other jobs than the baseline; nothing where none did."""
    if not one.left_out:
        return ""
    said = "; ".join(
        " and ".join(
            f"{count} that {done} did were lost or tried again under {lost}"
            for count, done, lost in ((less, one.baseline, policy), (more, policy, one.baseline))
            if count
        )
        for policy, (less, more) in one.left_out.items()
    )
    return (
        f"Not compared with {one.baseline}: of the jobs {said}. "
        "Those that are left may well be the quick ones, and had the slots of the others. `analysis depend report` has all that were done."
    )


def _place(streams: Sequence[Recorded], baseline: str) -> Place:
    by_policy: dict[str, dict[str, Recorded]] = {}
    for one in sorted(streams, key=lambda one: one.again):
        by_policy.setdefault(one.policy, {}).setdefault(one.arrivals, one)
    kept = [one for mine in by_policy.values() for one in mine.values()]
    shared = [key for key in next(iter(by_policy.values())) if all(key in mine for mine in by_policy.values())]
    where = f"{streams[0].engine} with {streams[0].slots} slots"
    if baseline not in by_policy:
        raise Refused(f"{where}: no stream under {baseline}; there are {', '.join(sorted(by_policy))}. Say --baseline.")
    if not shared:
        raise Refused(f"{where}: no two policies met the same arrivals; nothing can be compared.")
    met = {
        policy: [mine[key] for key in shared] for policy, mine in sorted(by_policy.items(), key=lambda both: (both[0] != baseline, both[0]))
    }
    alike = {
        policy: own for policy, own in met.items() if all(one.at_once == base.at_once for one, base in zip(own, met[baseline], strict=True))
    }
    counted = {policy: tuple(figures(one.coming, one.played) for one in own) for policy, own in alike.items()}
    playable = {policy: [one for one in by_policy[policy].values() if one.playable] for policy in met}
    return Place(
        engine=streams[0].engine,
        slots=streams[0].slots,
        streams=len(shared),
        alone=len(kept) - len(shared) * len(met),
        lost=sum(one.lost for one in kept),
        baseline=baseline,
        arms=tuple(compared(counted, baseline)),
        replays=tuple(_replay(policy, mine) for policy, mine in playable.items() if mine and policy in policies.names()),
        condition=streams[0].condition,
        copies=len(streams) - len(kept),
        left_out={name: _otherwise(own, met[baseline]) for name, own in met.items() if name not in alike},
        unplayed=sum(not one.playable for one in kept),
    )


def _otherwise(own: Sequence[Recorded], base: Sequence[Recorded]) -> tuple[int, int]:
    """How many jobs that the baseline did in their first attempt a policy did not, and the other way round."""
    pairs = list(zip(own, base, strict=True))
    return sum(len(two.at_once - one.at_once) for one, two in pairs), sum(len(one.at_once - two.at_once) for one, two in pairs)


def _replay(policy: str, streams: Sequence[Recorded]) -> Replay:
    measured_s = [figures(one.coming, one.played).mean_wait_s for one in streams]
    simulated_s = [figures(one.coming, play(one.coming, one.played.slots, policy)).mean_wait_s for one in streams]
    longer_s, spread = moments([real - made for real, made in zip(measured_s, simulated_s, strict=True)])
    n = len(streams)
    half = t_quantile(0.975, n - 1) * spread / n**0.5 if n >= FEWEST else None
    interval = None if half is None else (longer_s - half, longer_s + half)
    return Replay(policy, n, sum(measured_s) / n, sum(simulated_s) / n, longer_s, interval)
