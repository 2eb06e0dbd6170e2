"""Batch × power limit: which of them is fastest under a cap on mean power, found from a few measured points of Zeus' tables."""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import least_squares

from analysis.answer import Answer, of_parts
from analysis.files import read_whole
from analysis.plain import one_line
from analysis.terms import Refused, Unreadable
from control.power.models.own import Surface

from .fit_own import most_likely

if TYPE_CHECKING:
    from control.power.terms import Floats


LEAST = 1e-9  # of W, s and images: below it a quotient is no number
COLUMNS = ("dataset", "network", "batch_size", "optimizer", "power_limit", "time_per_epoch", "average_power")


Job = tuple[str, str, str]  # data set, network, optimiser


@dataclass(frozen=True, slots=True)
class At:
    """A batch (images) under a power limit (W), the driver's: cards do not always hold it, and the mean power may lie above."""

    batch: int
    limit_w: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What one of them gave: speed in any unit (larger is better), mean power in W."""

    at: At
    speed: float
    power_w: float


def read(path: Path) -> dict[Job, dict[At, Measured]]:
    """Read a table as each job's points, speeds in epochs/s; of a point that was measured twice the last.

    Raises: Unreadable, with the line that is wrong.
    """
    result: dict[Job, dict[At, Measured]] = defaultdict(dict)
    try:
        text = read_whole(path).decode("utf-8-sig")
        lines = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        missing = [name for name in COLUMNS if name not in (lines.fieldnames or ())]
        if missing:
            raise Unreadable(f"{path}: no column {', '.join(missing)}; such a table begins with {','.join(COLUMNS)}.")
        for cells in lines:
            point = _point(cells, f"{path}: line {lines.line_num}")
            result[cells["dataset"] or "", cells["network"] or "", cells["optimizer"] or ""][point.at] = point
    except (UnicodeDecodeError, csv.Error) as error:
        raise Unreadable(f"{path}: is no CSV: {one_line(error)}.") from None
    return dict(result)


def _point(cells: Mapping[str, str | None], at: str) -> Measured:
    values = {}
    for name in ("batch_size", "power_limit", "time_per_epoch", "average_power"):
        try:
            values[name] = float(cells[name] or "")
        except ValueError:
            values[name] = math.nan
        if not LEAST <= values[name] < math.inf:
            raise Unreadable(f"{at}: {name} is {one_line(cells[name], 60)!r}; it is a number from {LEAST:g} on.")
    if not values["batch_size"].is_integer():
        raise Unreadable(f"{at}: batch_size is {one_line(cells['batch_size'], 60)!r}; it is a whole number.")
    return Measured(At(int(values["batch_size"]), values["power_limit"]), 1 / values["time_per_epoch"], values["average_power"])


SCALES = np.array([1.5, 0.5])  # expected length scales of ln batch and ln limit
# How far from what is expected ln of these may be: speed (or power) at full draw, half batch, steepness below it, limit that throttles no
# more, its growth with batch, sharpness of the knee.
LOOSE = np.array([2.0, 1.5, 0.5, 0.7, 0.3, 0.7])
NOISE = 0.05
WORTH = 0.005  # a gain below this is not looked for
# sds: how much better than expected a point may be, and how much less power it may draw. With 1.6, 2 of 97 searches in Zeus' tables ended
# more than 1 % below the best; with 2.5 none, and 15 points were measured in place of 13.
SURE = 2.5


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The fastest measured point within the cap, None where none is; and all that was measured to find it, in order."""

    best: Measured | None
    measured: tuple[Measured, ...]


def predict(measured: Sequence[Measured], points: Sequence[At]) -> tuple[Floats, Floats, Floats, Floats]:
    """What points give, after three or more were measured: speed and the sd of its logarithm, power and that; shape (points,)."""
    known, asked = _columns([one.at for one in measured]), _columns(points)
    speed, speed_sd = _surface(known, np.log([one.speed for one in measured]), asked)
    power, power_sd = _surface(known, np.log([one.power_w for one in measured]), asked)
    return np.exp(speed), speed_sd, np.exp(power), power_sd


def search(grid: Sequence[At], measure: Callable[[At], Measured], cap_w: float) -> SearchResult:
    """Look for the fastest point of the grid whose mean power is within the cap, measuring as few as it takes."""
    order = first(grid)
    measured = {at: measure(at) for at in order}
    while True:
        within = [one for one in measured.values() if one.power_w <= cap_w]
        best = max(within, key=lambda measured: measured.speed, default=None)
        left = [at for at in grid if at not in measured]
        following = _following(list(measured.values()), left, cap_w, best) if left else None
        if following is None:
            return SearchResult(best, tuple(measured.values()))
        measured[following] = measure(following)


def first(grid: Sequence[At]) -> list[At]:
    """Where to begin: lowest, middle and highest batch at lowest, middle and highest limit, as far as the grid has them."""
    batches, limits = sorted({at.batch for at in grid}), sorted({at.limit_w for at in grid})
    there = set(grid)
    corners = [At(int(batch), limit) for batch in _three(batches) for limit in _three(limits)]
    return [at for at in corners if at in there] or list(grid[:3])


def _following(measured: Sequence[Measured], left: Sequence[At], cap_w: float, best: Measured | None) -> At | None:
    """The point most worth measuring: that may be within the cap, and faster than the best by what is worth it. None, if there is none."""
    speed, speed_sd, power, power_sd = predict(measured, left)
    hoped = np.where(power * np.exp(-SURE * power_sd) <= cap_w, speed * np.exp(SURE * speed_sd), 0.0)
    place = int(np.argmax(hoped))
    enough = 0.0 if best is None else best.speed * (1.0 + WORTH)
    return left[place] if hoped[place] > enough else None


def _three(values: Sequence[float]) -> list[float]:
    return list(dict.fromkeys([values[0], values[len(values) // 2], values[-1]]))


def _columns(points: Sequence[At]) -> Floats:
    return np.log([[float(at.batch), at.limit_w] for at in points])


def _surface(known: Floats, logs: Floats, asked: Floats) -> tuple[Floats, Floats]:
    """Value and sd of a logarithm at `asked`, shape (points,)."""
    before = np.array([logs.max(), np.median(known[:, 0]) - 2.0, 0.0, known[:, 1].max() - 0.3, 0.0, np.log(4.0)])

    def off(law: Floats) -> Floats:
        return np.concatenate([(_law(law, known) - logs) / NOISE, (law - before) / LOOSE])

    law = least_squares(off, before, loss="soft_l1").x
    left = logs - _law(law, known)
    *scales, amplitude, noise = map(float, np.exp(most_likely(known, left, SCALES)))
    surface = Surface(tuple(law), tuple(scales), amplitude, noise, 1.0, (-math.inf, math.inf), (), known, left)
    added, sd = surface.beyond_law(asked)
    return _law(law, asked) + added, sd


def _law(law: Floats, columns: Floats) -> Floats:
    full, half, steep, knee, growth, sharp = law
    batch, limit = columns.T
    q = np.exp(sharp)
    throttled = -np.exp(steep) * np.logaddexp(0.0, -q * (limit - knee - growth * (batch - half))) / q
    value: Floats = full - np.logaddexp(0.0, half - batch) + throttled
    return value


@dataclass(frozen=True, slots=True)
class JudgedJob:
    """What a search answered for a job under a cap and what was best of all `points`; None where nothing is within the cap."""

    job: Job
    cap_w: float
    answer: Measured | None
    best: Measured | None
    measured: int
    points: int

    @property
    def slower(self) -> float | None:
        """By which fraction the answer is slower than the best."""
        return None if self.answer is None or self.best is None else 1.0 - self.answer.speed / self.best.speed


def judge(job: Job, points: dict[At, Measured], cap_w: float) -> JudgedJob:
    """Search a job's points under a cap, as if each had to be measured first."""
    result = search(list(points), points.__getitem__, cap_w)
    best = max((point for point in points.values() if point.power_w <= cap_w), key=lambda point: point.speed, default=None)
    return JudgedJob(job, cap_w, result.best, best, len(result.measured), len(points))


def judge_all(there: Mapping[Job, dict[At, Measured]], cap_w: float, network: str | None = None) -> list[JudgedJob]:
    """Judge each job, of one network or of all. Raises: Refused, for a network that is not there."""
    asked = {job: points for job, points in there.items() if network in {None, job[1]}}
    if not asked:
        names = ", ".join(sorted({one_line(job[1]) for job in there})) or "none"
        raise Refused(f"no job of network {one_line(network)!r}; there are {names}.")
    few = [job for job, points in asked.items() if len(points) < 3]
    if few:
        raise Refused(f"{one_line(', '.join(few[0]))}: fewer than three points; there is nothing to search.")
    return [judge(job, points, cap_w) for job, points in asked.items()]


def answer(jobs: Sequence[JudgedJob]) -> Answer:
    """Return what the search answers for each job."""
    return of_parts({"jobs": list(map(_record, jobs))}, map(_line, jobs))


def _record(judged: JudgedJob) -> dict[str, object]:
    best = judged.answer
    return {
        **dict(zip(("dataset", "network", "optimizer"), judged.job, strict=True)),
        "cap_w": judged.cap_w,
        "batch": best and best.at.batch,
        "limit_w": best and best.at.limit_w,
        "epoch_s": best and 1.0 / best.speed,
        "power_mean_w": best and best.power_w,
        "slower_than_best": judged.slower,
        "measured": judged.measured,
        "points": judged.points,
    }


def _line(judged: JudgedJob) -> str:
    name, best = " ".join(judged.job), judged.answer
    if best is None or judged.slower is None:
        return f"{name}: nothing within {judged.cap_w:g} W was found in {judged.measured} of {judged.points} points"
    return (
        f"{name}: batch {best.at.batch} at a limit of {best.at.limit_w:g} W: {1.0 / best.speed:.4g} s an epoch at {best.power_w:.1f} W; "
        f"{judged.measured} of {judged.points} points measured, {100.0 * judged.slower:.2f} % slower than the best of all"
    )
