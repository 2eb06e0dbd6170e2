"""What jobs used and came to, out of saved runs, read as a foreign file is: a field is what it must be, or missing, or refused by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analysis.formats.fields import Fields
from analysis.studies.jobs.records import AGAIN, LONGEST, OUTCOMES, STOCK, tells_of_jobs
from analysis.terms import Refused, Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analysis.terms import Cell, Run

TIMES = ("submit_s", "admit_s", "start_s", "end_s")
NUMBERS = (*TIMES, "planned_submit_s", "work", "cores", "memory_mib", "cpu_s", "max_rss_mib", "memory_peak_mib", "throttled_s")


@dataclass(frozen=True, slots=True)
class Ran:
    """One job. Times are the stream's, seconds; `took` has what else is known of `NUMBERS`, all replicas together; `result` its own words.

    `cores` and `memory_mib` in `took` are limits of each replica.
    """

    number: int
    class_: str
    outcome: str
    replicas: int
    attempts: int
    took: Mapping[str, float]
    result: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    @property
    def done(self) -> bool:
        """Whether it ended well, in its first attempt, with all times: what a later one took is not what a job takes."""
        return self.outcome == "done" and self.attempts == 1 and self.took.keys() >= set(TIMES)


@dataclass(frozen=True, slots=True)
class Told:
    """One stream: `unit` is (run, block), by which cells are paired; `params` are its workload's, `cpus` how many CPUs the machine had.

    `closed`: a job came when one ended, so that as many were there as slots.
    """

    cell: str
    unit: tuple[str, int]
    workload: str
    tweakset: str
    engine: str
    slots: int
    params: Mapping[str, object]
    jobs: tuple[Ran, ...]
    cpus: int | None = None
    closed: bool = False


def told(run: Run, refused: list[str]) -> list[Told]:
    """Read every stream of a run, but for copies of stock: a copy has the same jobs. What cannot be used is said in `refused`.

    Raises: Refused, for a run that tells of no jobs.
    """
    if not tells_of_jobs(run):
        raise Refused(f"{run.origin}: no cell of it tells of a stream of jobs.")
    bases = {cell.workload.partition(":")[0] for cell in run.cells if "job" in cell.report or "stream" in cell.report}
    found = []
    for cell in run.cells:
        if cell.workload.partition(":")[0] not in bases or cell.tweakset == AGAIN:
            continue
        if cell.outcome != "measured":
            refused.append(f"{run.origin}: {cell.id} {cell.outcome}: {(cell.reason or 'no reason was recorded').rstrip('.')}.")
            continue
        try:
            found.append(_told(run, cell))
        except Unreadable as error:
            refused.append(str(error))
    return found


def system(one: Told) -> str:
    """What a stream ran under: its workload and, where it had one, its tweak set."""
    return one.workload + ("" if one.tweakset == STOCK else f" under {one.tweakset}")


def _told(run: Run, cell: Cell) -> Told:
    place = f"cell {cell.id}, report"
    about = cell.report.get("stream", ())
    if len(about) != 1:
        raise Unreadable(f"{run.origin}: {place}: tells of {len(about)} streams; one belongs there.")
    stream = Fields(about[0], run.origin, f"{place}.stream")
    known = run.workloads.get(cell.workload)
    cpus = run.machine.get("cpu_count")
    return Told(
        cell=cell.id,
        unit=(run.run_id, cell.block),
        workload=cell.workload,
        tweakset=cell.tweakset,
        engine=stream.text("engine"),
        slots=stream.whole("slots"),
        params={} if known is None else known.params,
        jobs=tuple(_ran(Fields(one, run.origin, f"{place}.job[{at}]")) for at, one in enumerate(cell.report.get("job", ()))),
        cpus=cpus if isinstance(cpus, int) and not isinstance(cpus, bool) and cpus > 0 else None,
        closed=stream.optional_mapping("arrivals").get("kind") == "closed",
    )


def _ran(row: Fields) -> Ran:
    inner = Fields({"row": row.value, "result": row.value.get("result")}, row.origin, row.place)
    took = inner.known_numbers("row", NUMBERS)
    for name, value in took.items():
        if abs(value) > LONGEST or (not name.endswith("submit_s") and name not in TIMES and value < 0):
            row.refuse(f"has {name} = {value:g}, which cannot be")
    times = [took[name] for name in TIMES if name in took]
    if times != sorted(times):
        row.refuse("has times that go back: it was submitted, admitted, started and ended in another order", "one clock must read them all")
    return Ran(
        number=row.whole("job"),
        class_=row.optional_text("class") or "",
        outcome=row.one_of("outcome", OUTCOMES),
        replicas=max(1, row.whole("replicas")) if row.has("replicas") else 1,
        attempts=row.whole("attempts") if row.has("attempts") else 1,
        took=took,
        result=inner.numbers("result"),
        reason=row.optional_text("reason") or "",
    )
