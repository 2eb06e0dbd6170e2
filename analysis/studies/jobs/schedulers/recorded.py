"""Streams of real jobs out of saved runs, as the simulator knows streams: what came, and what came of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from analysis.formats.fields import Fields
from analysis.hardware import machine_of
from analysis.studies.jobs.queues.records import AGAIN, STOCK
from analysis.studies.jobs.simulation.loop import Played
from analysis.studies.jobs.simulation.stream import Coming
from analysis.terms import Refused, Unreadable
from control.scheduling.terms import Job

if TYPE_CHECKING:
    from analysis.terms import Cell, Run

ANY = "any"
TIMES = ("submit_s", "admit_s", "start_s", "end_s")
KNOWN = (*TIMES, "planned_submit_s", "predicted_s", "due_s", "work", "priority", "replicas")
FEWEST = 20


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
    if len(done) < FEWEST or slots < 1:
        raise Unreadable(f"{origin}: {place}: {len(done)} jobs on {slots} slots were done; {FEWEST} and more say something of a policy.")
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
