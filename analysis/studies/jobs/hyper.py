"""Time to accuracy by hyper-parameters: each point of the grid, and effects of a factorial."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from analysis import studies
from analysis.answer import Answer, Column, Columns, Line, Section, table_of, together
from analysis.terms import Refused

from .claims import Contrast, column, contrasts_of, faster
from .estimates import Figure, as_number, average, figure, over_runs, share

if TYPE_CHECKING:
    import pandas as pd

    from .records import Stream


TIME, ACCURACY, EPOCHS = "time_to_accuracy_s", "accuracy", "epochs"


@dataclass(frozen=True, slots=True)
class GridPoint:
    """One combination of hyper-parameters; `reached` of the finished `jobs` met the accuracy.

    The figures are over `runs`. `time_s` uses only runs in which every job met it: a mean over the
    quick ones would flatter. `accuracy` and `epochs` are those at the end of jobs.
    """

    levels: tuple[str, ...]
    runs: int
    jobs: int
    reached: int
    time_s: Figure | None
    accuracy: Figure | None
    epochs: Figure | None


@dataclass(frozen=True, slots=True)
class Hyper:
    """The varied parameters, all points, the best, its times over the next best's, and effects.

    `why` is the reason for missing effects.
    """

    factors: tuple[str, ...]
    points: tuple[GridPoint, ...]
    best: GridPoint | None
    next: GridPoint | None
    times: Contrast | None
    effects: Any
    why: str

    def named(self, point: GridPoint) -> str:
        return named(self.factors, point.levels)


def named(factors: Iterable[str], levels: Iterable[str]) -> str:
    return ", ".join(f"{name} {level}" for name, level in zip(factors, levels, strict=True))


def hyper(streams: Sequence[Stream]) -> Hyper:
    import pandas as pd

    learning = [stream for stream in streams if any(ACCURACY in job.result for job in stream.jobs)]
    if not learning:
        raise Refused("No job reports an accuracy: these runs have no jobs that learn.")
    factors = _factors(learning)
    rows: list[dict[str, Any]] = [
        {
            "levels": tuple(str(stream.params[name]) for name in factors),
            "run": stream.unit[0],
            "block": stream.unit[1],
            **_outcomes(stream),
        }
        for stream in learning
    ]
    frame = pd.DataFrame(rows)
    met = set(frame["levels"])
    order = [levels for levels in product(*factors.values()) if levels in met]
    points = tuple(
        _point(levels, frame[[its == levels for its in frame["levels"]]]) for levels in order
    )
    whole = sorted(
        (point for point in points if point.time_s is not None and point.reached == point.jobs),
        key=_soon,
    )
    best, after = [*whole[:2], None, None][:2]
    ranks = {} if best is None or after is None else {best.levels: "soonest", after.levels: "next"}
    ranked = [row | {"rank": ranks[row["levels"]]} for row in rows if row["levels"] in ranks]
    times = next(iter(contrasts_of(ranked, "rank", "next", {TIME: "log"})), None)
    return Hyper(tuple(factors), points, best, after, times, *_effects(factors, order, frame))


def _factors(streams: Sequence[Stream]) -> dict[str, tuple[str, ...]]:
    varied: dict[str, tuple[str, ...]] = {}
    for name in streams[0].params:
        if not all(name in stream.params for stream in streams):
            continue
        levels = list(dict.fromkeys(str(stream.params[name]) for stream in streams))
        if len(levels) > 1:
            numbers = [as_number(level) for level in levels]
            varied[name] = tuple(sorted(levels, key=float) if None not in numbers else levels)
    if not varied:
        raise Refused(
            "All streams of jobs that learn have the same parameters: vary some, as in --vary "
            "lr=0.01,0.1."
        )
    return varied


def _outcomes(stream: Stream) -> dict[str, float | None]:
    ended = [job.result for job in stream.jobs if job.done and ACCURACY in job.result]
    reached = [result[TIME] for result in ended if TIME in result]
    epochs = [result[EPOCHS] for result in ended if EPOCHS in result]
    return {
        "jobs": len(stream.jobs),
        "reached": len(reached),
        TIME: average(reached) if reached and len(reached) == len(stream.jobs) else None,
        ACCURACY: average([result[ACCURACY] for result in ended]) if ended else None,
        EPOCHS: average(epochs) if epochs and len(epochs) == len(ended) else None,
    }


def _point(levels: tuple[str, ...], runs: pd.DataFrame) -> GridPoint:
    time_s, accuracy, epochs = (
        over_runs(runs[name].dropna().tolist()) for name in (TIME, ACCURACY, EPOCHS)
    )
    return GridPoint(
        levels,
        len(runs),
        int(runs["jobs"].sum()),
        int(runs["reached"].sum()),
        time_s,
        accuracy,
        epochs,
    )


def _effects(
    factors: Mapping[str, tuple[str, ...]], order: Sequence[tuple[str, ...]], frame: pd.DataFrame
) -> tuple[Any, str]:
    points = {named(factors, levels): levels for levels in order}
    when = frame["run"] + " " + frame["block"].astype(str)
    runs = frame.assign(point=[named(factors, its) for its in frame["levels"]], when=when)
    runs = runs.sort_values("levels", key=lambda its: its.map(order.index), kind="stable")
    reached = runs[TIME].notna()
    rows = [*runs[reached][["point", "levels", "when", TIME]].itertuples(index=False, name=None)]
    missing = len([*product(*factors.values())]) - len(order)
    never = [point for point in points if point not in {row[0] for row in rows}]
    if missing:
        return None, f"{missing} of {missing + len(order)} combinations were not run."
    if never:
        return None, f"in no run did all jobs of {'; '.join(never[:3])} reach the accuracy."
    lost = [
        (str(point), "not all jobs reached the accuracy", tuple(own["when"]))
        for point, own in runs[~reached].groupby("point", sort=False)
    ]
    for effects_of_grid in studies.hooks("effects_of_grid"):
        return effects_of_grid("job_stream", TIME, factors, points, rows, lost), ""
    return None, "no study for estimating effects is installed."


def _soon(point: GridPoint) -> float:
    return point.time_s.value if point.time_s is not None else float("inf")


LEGEND = (
    (
        "time s",
        "until the first epoch with the requested accuracy on held-out images; mean of runs.",
    ),
    ("reached", "jobs that reached it, of all jobs. A point that not all reach is never the best."),
)


def answer(streams: Sequence[Stream], refused: Sequence[str]) -> Answer:
    """Return the points, the soonest first, and effects of a factorial."""
    result = hyper(streams)
    columns: Columns = [
        *(
            # A point's level of each factor.
            (Column(name, left=True), partial(lambda point, at: point.levels[at], at=at))
            for at, name in enumerate(result.factors)
        ),
        column("time s\n[95 %]", "time_s", figure),
        (Column("reached"), lambda point: f"{point.reached}/{point.jobs}"),
        column("epochs", write=lambda epochs: f"{epochs.value:.1f}"),
        column("accuracy", write=partial(share, decimals=1)),
        column("runs"),
    ]
    order = sorted(result.points, key=lambda point: (point.reached < point.jobs, _soon(point)))
    title, *findings = _lines(result)
    section = Section("", [table_of(columns, order)])
    points = Answer(title, [*map(Line, findings)], [section], legend=LEGEND, data=asdict(result))
    below = [
        shown(result.effects)
        for shown in studies.hooks("effects_answer")
        if result.effects is not None
    ]
    return replace(together([points, *below]), refused=refused)


def _lines(result: Hyper) -> Iterator[str]:
    if result.best is None:
        yield "At no point did all jobs of all runs reach the accuracy, so no point is the best."
    elif result.next is None:
        yield f"Soonest: {result.named(result.best)}, the only point that all jobs reach."
    else:
        yield (
            f"Soonest: {result.named(result.best)}; "
            f"{faster(result.times, result.named(result.next))}."
        )
    if result.why:
        yield f"No effects: {result.why.rstrip('.')}."
