"""Files that were named → groups of streams: saved runs (.json) and lists of jobs (.csv), those of equal conditions together.

Runs of different machines are never of one group, and a copy of a stream is left out. A list of jobs has the columns job,submit_s and,
where they were measured, admit_s, start_s, end_s; a run a value of the column `run`. Other columns that are read: class, priority,
replicas, attempts, outcome, reason, slots. Whatever else there is stands for other programs.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.load import load_each
from analysis.machine import Machines
from analysis.plain import one_line
from analysis.studies.jobs import csv_file, records
from analysis.studies.jobs.records import LONGEST, MOST_SLOTS, OUTCOMES, TIMES, Job, Stream, plan
from analysis.studies.jobs.replicates import distinct
from analysis.terms import Refused, Unreadable

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence


def groups(names: Sequence[str], refused: list[str]) -> list[list[Stream]]:
    """Read every stream, the groups in the order in which they are met; what cannot be used is said in `refused`, a line each.

    Raises: Refused, where nothing can be used.
    """
    by_group: dict[str, list[Stream]] = {}
    for stream in distinct(_streams(names, refused), refused):
        by_group.setdefault(stream.group, []).append(stream)
    if not by_group:
        raise Refused(refused[0] if refused else f"{', '.join(names)}: no stream of jobs.")
    return list(by_group.values())


def _streams(names: Sequence[str], refused: list[str]) -> list[Stream]:
    on_machine: list[tuple[Stream, int | None]] = []  # with the number of its machine
    machines = Machines()
    for name in names:
        if name.endswith(".csv"):
            try:
                on_machine += [(stream, None) for stream in parse_csv(csv_file.text_of(Path(name)), name)]
            except Unreadable as error:
                refused.append(" ".join(str(error).splitlines()))
            continue
        for run in load_each([name], refused):
            machine = machines.number_of(run.machine)
            try:
                on_machine += [(stream, machine) for stream in records.streams(run, refused)]
            except Refused as error:
                refused.append(str(error))
    several = len(machines.known) > 1
    return [
        replace(stream, group=f"{stream.group} on {machines.known[machine]}") if several and machine is not None else stream
        for stream, machine in on_machine
    ]


NEEDED = ("job", "submit_s")
HEAD = "job,submit_s,start_s,end_s"
MISSING = frozenset({"", "nan", "none", "null", "n/a", "na"})
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)


def parse_csv(text: str, where: str) -> list[Stream]:
    names, lines = csv_file.parse(text, where)
    missing = ", ".join(name for name in NEEDED if name not in names)
    if missing:
        there = one_line(", ".join(names)) or "nothing"
        raise Unreadable(f"{where}: no column {missing}; it has {there}. A list of jobs begins with {HEAD}.")
    runs: dict[str, list[Job]] = {}
    slots: dict[str, int | None] = {}
    for at, row in lines:
        run = row.get("run", "")
        runs.setdefault(run, []).append(_job(row, at))
        of_run = _whole(row, "slots", at)
        if slots.setdefault(run, of_run) != of_run or not 1 <= (1 if of_run is None else of_run) <= MOST_SLOTS:
            raise Unreadable(f"{at}: slots {of_run}; a stream has one number of them, 1 to {MOST_SLOTS}.")
    if not runs:
        raise Unreadable(f"{where}: has no job.")
    measured = bool({"admit_s", "start_s", "end_s"} & set(names))
    return [
        Stream(f"{where} {run}".strip(), where, tuple(jobs), slots[run], measured=measured, drawn=_csv_drawn(jobs))
        for run, jobs in runs.items()
    ]


def _csv_drawn(jobs: Sequence[Job]) -> tuple[Hashable, ...]:
    """What makes two streams the same: when their jobs came, which no clock reads twice alike."""
    drawn = plan("", [job.submit_s for job in jobs], ())
    return (("plan", drawn),) if drawn else ()


def _job(row: Mapping[str, str], at: str) -> Job:
    number = _whole(row, "job", at)
    if number is None or number < 0:
        raise Unreadable(f"{at}: job {one_line(row['job'], 60)!r}; it is a number that counts jobs.")
    submit_s, admit_s, start_s, end_s = (_time(row, name, at) for name in TIMES)
    outcome = row.get("outcome", "")
    if outcome and outcome not in OUTCOMES:
        raise Unreadable(f"{at}: outcome {one_line(outcome)!r} is none of {', '.join(OUTCOMES)}.")
    replicas = _whole(row, "replicas", at)
    return Job(
        number,
        submit_s,
        admit_s,
        start_s,
        end_s,
        outcome=outcome,
        reason=row.get("reason", ""),
        class_=row.get("class", ""),
        priority=_whole(row, "priority", at),
        replicas=1 if replicas is None else max(1, replicas),
        attempts=max(1, _whole(row, "attempts", at) or 1),
    )


def _time(row: Mapping[str, str], name: str, at: str) -> float | None:
    text = row.get(name, "")
    if text.lower() in MISSING:
        return None
    if not NUMBER.fullmatch(text) or not math.isfinite(float(text)) or abs(float(text)) > LONGEST:
        raise Unreadable(f"{at}: {name} is {one_line(text, 60)!r}, no time in seconds; leave it empty where it is missing.")
    return float(text)


def _whole(row: Mapping[str, str], name: str, at: str) -> int | None:
    text = row.get(name, "")
    if text.lower() in MISSING:
        return None
    if not WHOLE.fullmatch(text):
        raise Unreadable(f"{at}: {name} is {one_line(text, 60)!r}, no whole number.")
    return int(text)
