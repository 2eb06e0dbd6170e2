"""How often change-point tests cry wolf on noise alone, and how often they see a change that is there: the tables of docs/history.md.

    python -m analysis.stats.alarm_rates

Otava, ruptures and asv are put to the same series where they are installed; none of them is needed here for anything else. The seed is
fixed: whoever runs it again gets the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from .changepoint import change_points

if TYPE_CHECKING:
    from .changepoint import Floats

    Detector = Callable[[Floats], list[int]]

COUNT, MOST_POINTS = 10_000, 500_000
SETTLING = 60  # points after which AR(1) noise with phi to 0.7 has forgotten where it began
# Those that the limit is set for, and others, to know what it is worth there.
NOISES = ("white", "t3", "AR(1) 0.3", "AR(1) 0.5", "one 10x outlier")
HARDER = ("AR(1) 0.7", "t3, AR(1) 0.5", "5 % 10x outliers", "last fifth 3x as noisy")
LENGTHS = (10, 20, 30, 50, 100, 200, 500)
SHAPE_LENGTHS = (30, 50, 100)
TEN_TIMES = 9 / 0.02  # a run that takes ten times as long, in sd of noise of 2 %
# Looking again every night: from the first to the last of so many nights, at changes among the last runs.
WATCHED, NIGHTS, RECENT = 300, range(30, 131), 20
NEAR = 3  # points beside the true place at which a change still counts as found
SEED = 20261121


@dataclass(frozen=True, slots=True)
class Shape:
    """Levels in time, of equal length unless `at` says where each but the first begins (fractions of the length); in sd of the noise."""

    name: str
    levels: tuple[float, ...]
    at: tuple[float, ...] = ()
    noise: str = "white"

    def begins(self, n: int) -> list[int]:
        return [round(n * at) for at in self.at or (part / len(self.levels) for part in range(1, len(self.levels)))]


SHAPES = (
    Shape("2 sd up at 1/2", (0, 2)),
    Shape("2 sd up at 1/3", (0, 2), (1 / 3,)),
    Shape("2 sd up at 2/3", (0, 2), (2 / 3,)),
    Shape("4 sd up at 9/10", (0, 4), (9 / 10,)),
    Shape("4 sd up at 1/2, AR(1) 0.5", (0, 4), noise="AR(1) 0.5"),
    Shape("3 sd up and down, thirds", (0, 3, 0)),
    Shape("3 sd up and up, thirds", (0, 3, 6)),
    Shape("3 sd up, down, up, quarters", (0, 3, 0, 3)),
)


def noise(kind: str, n: int, count: int, rng: np.random.Generator) -> Floats:
    shape = (count, n + SETTLING)
    series = rng.standard_t(3, shape) if kind.startswith("t3") else rng.standard_normal(shape)
    if "AR(1)" in kind:
        phi = float(kind.rsplit(maxsplit=1)[-1])
        for at in range(1, n + SETTLING):
            series[:, at] = phi * series[:, at - 1] + np.sqrt(1 - phi**2) * series[:, at]
    series = series[:, SETTLING:]
    if kind == "one 10x outlier":
        series[np.arange(count), rng.integers(0, n, count)] += TEN_TIMES
    elif kind == "5 % 10x outliers":
        series[rng.random((count, n)) < 0.05] += TEN_TIMES
    elif kind == "last fifth 3x as noisy":
        series[:, n - n // 5 :] *= 3
    return series


def shaped(shape: Shape, n: int, count: int, rng: np.random.Generator) -> Floats:
    series = noise(shape.noise, n, count, rng)
    for level, (begin, end) in zip(shape.levels, pairwise([0, *shape.begins(n), n]), strict=True):
        series[:, begin:end] += level
    return series


def alarm_rate(detect: Detector, series: Floats) -> float:
    return float(np.mean([bool(detect(one)) for one in series]))


def exact_rate(detect: Detector, series: Floats, truth: Sequence[int]) -> float:
    """The share of series in which every change is found, within `NEAR` points, and no other."""
    result = (detect(one) for one in series)
    return float(
        np.mean([len(group) == len(truth) and all(abs(a - b) <= NEAR for a, b in zip(group, truth, strict=True)) for group in result])
    )


def watched_rates(detect: Detector, series: Floats) -> tuple[float, float]:
    """Look at each series every night as it grows: the share of series that ever alarm of a recent change, and the share of nights."""
    alarms = [[any(at >= n - RECENT for at in detect(one[:n])) for n in NIGHTS] for one in series]
    return float(np.mean([any(nights) for nights in alarms])), float(np.mean(alarms))


def ours(series: Floats) -> list[int]:
    return [point.index for point in change_points(series).points]


def detectors() -> Mapping[str, Detector]:
    known: dict[str, tuple[str, Callable[..., Detector]]] = {
        "Otava": ("otava.analysis", _otava),
        "ruptures": ("ruptures", _ruptures),
        "asv": ("asv.step_detect", _asv),
    }
    result: dict[str, Detector] = {"DeepTweak": ours}
    for name, (module, detector) in known.items():
        try:
            result[name] = detector(import_module(module))
        except ModuleNotFoundError:
            continue
    return result


def _otava(analysis: ModuleType) -> Detector:
    return lambda series: [point.index for point in analysis.compute_change_points(series.tolist())[0]]


def _ruptures(ruptures: ModuleType) -> Detector:
    def detect(series: Floats) -> list[int]:
        # It has no default penalty; this is the usual one, with the noise taken from the median of the differences.
        sd = np.median(np.abs(np.diff(series))) / (0.6745 * np.sqrt(2))
        model = ruptures.KernelCPD(kernel="linear", min_size=2).fit(series[:, None])
        return list(model.predict(pen=3 * sd**2 * np.log(len(series)))[:-1])

    return detect


def _asv(step_detect: ModuleType) -> Detector:
    return lambda series: [int(step[0]) for step in step_detect.detect_steps(series.tolist())[1:]]


def tables(count: int = COUNT) -> Iterator[str]:
    """Measure everything and write it as Markdown, line by line, rates in percent; `count` series each, fewer where they are long."""
    for name, detect in detectors().items():
        yield from _head(f"{name}, noise alone: any alarm, %", "noise", LENGTHS)
        for kind in (*NOISES, *HARDER):
            rates = [alarm_rate(detect, noise(kind, n, _fewer(count, n), np.random.default_rng(SEED))) for n in LENGTHS]
            yield _row(kind, [f"{100 * rate:.1f}" for rate in rates])
        yield from ["", f"{name}, noise alone, looked at in each of {len(NIGHTS)} nights for changes in the last {RECENT} runs, %", ""]
        yield from [_row("noise", ["series that ever alarm", "nights with an alarm"]), "|---|---|---|"]
        for kind in NOISES:
            series = noise(kind, NIGHTS[-1], min(count, WATCHED), np.random.default_rng(SEED))
            yield _row(kind, [f"{100 * rate:.1f}" for rate in watched_rates(detect, series)])
        yield from _head(f"{name}, changes: any alarm / all found within {NEAR} runs and no other, %", "shape", SHAPE_LENGTHS)
        for shape in SHAPES:
            made = {n: shaped(shape, n, _fewer(count, n), np.random.default_rng(SEED)) for n in SHAPE_LENGTHS}
            both = [(alarm_rate(detect, many), exact_rate(detect, many, shape.begins(n))) for n, many in made.items()]
            yield _row(shape.name, [f"{100 * alarms:.1f} / {100 * exact:.1f}" for alarms, exact in both])


def _fewer(count: int, n: int) -> int:
    return min(count, MOST_POINTS // n)


def _head(title: str, what: str, lengths: Sequence[int]) -> list[str]:
    return ["", title, "", _row(what, [f"n = {n}" for n in lengths]), "|---" * (len(lengths) + 1) + "|"]


def _row(name: str, cells: Sequence[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    for line in tables():
        print(line, flush=True)
