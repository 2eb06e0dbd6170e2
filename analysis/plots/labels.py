"""What stands on axes and rows: metrics with their units, what tweak sets are called, and names made to fit where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ft2font import LoadFlags

from analysis.labels import TOLD_RATE
from analysis.plain import one_line
from analysis.terms import Metric, Run
from analysis.wording import digits
from control import rates

from .style import FONT, TEXT

NAMES = {
    "throughput_samples_per_s": ("throughput", "samples/s"),
    "throughput_tokens_per_s": ("token throughput", "tokens/s"),
    "step_time_p10_s": ("10th percentile of step time", "s"),
    "step_time_q1_s": ("lower quartile of step time", "s"),
    "step_time_round_adjusted_s": ("step time, cleared of its round", "s"),
    "step_time_median_s": ("median step time", "s"),
    "step_time_mean_s": ("mean step time", "s"),
    "cpu_s_per_step": ("processor time per step", "s"),
    "au_whole_percent": ("utilisation over the whole epoch", "%"),
    "au_steady_percent": ("utilisation without the first step", "%"),
    "samples_per_s_whole": ("throughput over the whole epoch", "samples/s"),
    "mb_per_s_read": ("really read", "MiB/s"),
}
# Seconds are shown so that the numbers on an axis are neither long nor all noughts.
UNITS_OF_TIME = ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (float("inf"), 1.0, "s"))
# Designs that judge single keys: these effects have a picture of their own.
BY_KEY = frozenset({"ablation", "factorial", "fractional", "file"})
LONGEST = 200  # letters of a name: nothing on a page has room for more
BREAKS = "-_./ "  # a name is broken after these


class Measure(NamedTuple):
    """How a metric is written: values are multiplied by `scale` to be in `unit`."""

    name: str
    unit: str
    scale: float

    @property
    def label(self) -> str:
        """What stands on an axis."""
        return f"{self.name}, {self.unit}" if self.unit else self.name

    def value(self, number: float) -> str:
        """Write one value with its unit, to four digits."""
        return f"{digits(number * self.scale)} {self.unit}".strip()


def measure_of(metric: Metric | str, values: Sequence[float] = ()) -> Measure:
    """Choose name and unit for values of a metric; an unknown one keeps its own name, which carries its unit."""
    name = metric if isinstance(metric, str) else metric.name
    if name == TOLD_RATE:
        scale, unit = rates.scale_of(max(map(abs, values), default=1.0), "" if isinstance(metric, str) else metric.unit)
        return Measure("rate", unit, scale)
    label, unit = NAMES.get(name, (one_line(name, 60), ""))
    scale, unit = time_unit(values) if unit == "s" else (1.0, unit)
    return Measure(label, unit, scale)


def time_unit(values: Sequence[float]) -> tuple[float, str]:
    """Choose the unit for times in seconds: the factor to it and its name."""
    largest = max(map(abs, values), default=1.0)
    return next((scale, unit) for limit, scale, unit in UNITS_OF_TIME if largest < limit)


def minus(text: str) -> str:
    """Write a minus sign where a hyphen stands before a digit, as the axes do."""
    return re.sub(r"(?<![\w.])-(?=\d)", "\N{MINUS SIGN}", text)


def direction(metric: Metric) -> str:
    """Say which way a metric is better."""
    return f"{metric.better} is better"


def joined(values: Iterable[str]) -> str:
    """List each text once, by commas."""
    return ", ".join(dict.fromkeys(values))


def judged_by_key(runs: Iterable[Run]) -> bool:
    """Whether all of some runs were of designs that tell what single keys do."""
    return all(run.design.kind in BY_KEY for run in runs)


def arm_labels(runs: Iterable[Run], names: Iterable[str]) -> dict[str, str]:
    """Name the tweak sets of an ablation by the key that is taken away or left alone; others by themselves."""
    runs = [run for run in runs if run.design.kind == "ablation"]
    labels: dict[str, str] = {}
    for name in names:
        label = next((_by_key(run, name) for run in runs if name in run.design.points), name)
        labels[name] = name if label in labels.values() else label
    return labels


def _by_key(run: Run, name: str) -> str:
    point = run.design.points[name]
    on, off = ([key for key, level in point.levels.items() if (level is None) == gone] for gone in (False, True))
    # One run may take several tweak sets apart: then the key alone does not say whose.
    origin = f" ({point.tweakset})" if len({point.tweakset for point in run.design.points.values()}) > 1 else ""
    if not off:
        return name
    if len(on) == 1:
        return f"{on[0]} alone{origin}"
    return f"all but {off[0]}{origin}" if len(off) == 1 else name


def fitted_arms(runs: Iterable[Run], names: Iterable[str], room_in: float, points: float = TEXT, lines: int = 2) -> dict[str, str]:
    """Name tweak sets so that the names fit a column."""
    labels = arm_labels(runs, names)
    shown = fitted(labels.values(), room_in, points, lines)
    return {name: shown[label] for name, label in labels.items()}


@cache
def _advance(letter: str, weight: str) -> float:
    """Return how far a letter moves the pen, as a part of the size of its font, and a little more: a renderer may round it up."""
    font = get_font(findfont(FontProperties(family=FONT, weight=weight)))
    font.set_size(1000, 72)
    return 1.03 * font.load_glyph(font.get_char_index(ord(letter)), flags=LoadFlags.NO_HINTING).linearHoriAdvance / 65536 / 1000


def width_in(text: str, points: float = TEXT, weight: str = "normal") -> float:
    """Return how wide a line of text is, in inches."""
    return points / 72 * sum(_advance(letter, weight) for letter in text)


def room_for(names: Iterable[str], most_in: float, points: float = TEXT) -> float:
    """Return how wide a column of names must be, in inches, with room to what stands beside it; `most_in` at most."""
    return min(most_in, max((width_in(one_line(name, LONGEST), points) for name in names), default=0.0) + 0.18)


def wrapped(text: str, room_in: float, points: float = TEXT) -> list[str]:
    """Break a text into lines that fit; a word longer than a line is broken too."""
    lines = [""]
    for word in one_line(text, 50 * LONGEST).split():
        longer = f"{lines[-1]} {word}".strip()
        if width_in(longer, points) > room_in:
            lines.append("")
            longer = word
        while width_in(longer, points) > room_in:
            at = _most(longer, room_in, points)
            lines[-1:] = [longer[:at], ""]
            longer = longer[at:]
        lines[-1] = longer
    return [line for line in lines if line]


def fitted(names: Iterable[str], room_in: float, points: float = TEXT, lines: int = 2, weight: str = "normal") -> dict[str, str]:
    """Fit names into some lines of a column: broken at a hyphen, dot or underscore, else shortened in the middle; never two alike."""
    shown: dict[str, str] = {}
    for name in dict.fromkeys(names):
        text = _folded(one_line(name, LONGEST), lines, room_in, points, weight)
        # What is left of two names may be the same: then the place in the list tells them apart.
        place = f"{len(shown) + 1}. {one_line(name, LONGEST)}"
        shown[name] = _folded(place, lines, room_in, points, weight) if text in shown.values() else text
    return shown


def fit(name: str, room_in: float, points: float = TEXT, lines: int = 1, weight: str = "normal") -> str:
    """Fit one name into some lines."""
    return _folded(one_line(name, LONGEST), lines, room_in, points, weight)


def _most(text: str, room_in: float, points: float, weight: str = "normal") -> int:
    """Return how many letters of the beginning fit, 1 at least."""
    wide = 0.0
    for at, letter in enumerate(text):
        wide += width_in(letter, points, weight)
        if wide > room_in:
            return max(1, at)
    return len(text)


def _folded(name: str, lines: int, room_in: float, points: float, weight: str) -> str:
    most = _most(name, room_in, points, weight)
    if most >= len(name):
        return name
    if lines > 1:
        most = next((at for at in range(most, most // 2, -1) if name[at - 1] in BREAKS), most)
        return f"{name[:most]}\n{_folded(name[most:], lines - 1, room_in, points, weight)}"
    shorter = (f"{name[: (keep + 1) // 2]}…{name[len(name) - keep // 2 :]}" for keep in range(most, -1, -1))
    return next((short for short in shorter if width_in(short, points, weight) <= room_in), "…")
