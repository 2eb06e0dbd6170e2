"""What closed streams say, in which no job waits for another: on which system each class is soonest, which parameters learn soonest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.studies.jobs.profiles.hyper import hyper
from analysis.studies.jobs.profiles.names import short
from analysis.studies.jobs.profiles.profile import profile
from analysis.studies.jobs.profiles.rows import told
from analysis.studies.jobs.queues.words import figure
from analysis.terms import Refused
from analysis.wording import probability

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analysis.studies.jobs.profiles.profile import Best, Row
    from analysis.studies.jobs.profiles.rows import Told
    from analysis.terms import Run


def sentences(run: Run) -> Iterator[str]:
    """Say, by class, the system on which jobs take least time and what they spend it on; then what learned soonest, where jobs learn."""
    streams = told(run, [])
    try:
        rows, best = profile(streams)
    except Refused:
        return  # no job was done in its first attempt
    called = short([row.system for row in rows])
    for one in best:
        mine = [row for row in rows if row.class_ == one.class_]
        yield _soonest(one, mine, called)
    yield from _learned(streams)


def _soonest(one: Best, rows: Sequence[Row], called: dict[str, str]) -> str:
    first = rows[0]
    where = f"{one.class_}: {figure(first.time_s)} s a job"
    if one.next:
        where = f"{one.class_}: soonest on {called[one.system]} ({figure(first.time_s)} s a job), {_than(one)} {called[one.next]}"
    of = "of it" if first.closed else "of the time from submission on"
    return f"{where}; there most {of} is {first.bottleneck}{'' if first.share is None else f' ({100 * first.share.value:.0f} %)'}."


def _than(one: Best) -> str:
    effect = one.effect
    if effect is None:
        return f"{one.why}, before"
    shown = f"{100 * effect.gain:+.1f} % faster [{100 * effect.low:+.1f}, {100 * effect.high:+.1f}], p {probability(effect.p)}"
    return f"{shown}, than" if effect.low > 0 else f"not shown to be faster ({shown}) than"


def _learned(streams: Sequence[Told]) -> Iterator[str]:
    try:
        found = hyper(streams)
    except Refused:
        return  # these jobs learn nothing, or nothing was varied
    if found.best is not None and found.best.time_s is not None and len(found.points) > 1:
        levels = ", ".join(f"{name} {level}" for name, level in zip(found.factors, found.best.levels, strict=True))
        yield f"Soonest to the accuracy: {levels}, {figure(found.best.time_s)} s."
