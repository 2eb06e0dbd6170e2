"""Formats of numbers for people, alike in sentences and tables, and their parsers."""

from __future__ import annotations

import math
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches

from control.called import JUDGE
from control.names import first_few

from .terms import Effect, Refused, Run, UnknownName

SPOKEN = {
    "improved": "faster",
    "regressed": "slower",
    "equivalent": "same",
    "inconclusive": "can't tell",
    "not comparable": "not comparable",
    "undecided": "can't tell",
    "underpowered": "can't tell",
}
LARGE_LOSS = -0.3
UNCOUNTED = "not recorded"  # a GPU's `count` if there may be more of its model
# Beyond a thousandfold change, digits carry no meaning.
LARGEST = 10.0
# Units of time: how many there are per second, name, and the seconds below which each is used.
UNITS = ((1e9, "ns", 1e-7), (1e6, "µs", 1e-4), (1e3, "ms", 0.1))
PERCENT = re.compile(r"(-?(?:\d+(?:\.\d+)?|\.\d+))\s*%", re.ASCII)
NUMBER = re.compile(r"(\d+(?:\.\d*)?|\.\d+)", re.ASCII)
SHOWN_NAMES = 12  # in an error message


def place_of(run: Run) -> str:
    place = run.place
    if not place:
        return ""
    version = run.machine.get("kubernetes")
    cluster = (
        f"Kubernetes {version['version']}"
        if isinstance(version, dict) and "version" in version
        else place["target"]
    )
    several = "nodes" if "," in place.get("nodes", "") else "node"
    return (
        f"{several} {place.get('nodes', 'unknown')} of {cluster}, tweaks by {place.get('apply')}, "
        f"workloads by {place.get('workload_via')}"
    )


def fewest_blocks(run: Run) -> int:
    arms = {(cell.study, cell.workload, cell.tweakset) for cell in run.cells}
    return min((run.design.blocks_of(*arm) for arm in arms), default=run.design.blocks)


def blocks_of(run: Run) -> str:
    span = f"{fewest} to " if (fewest := fewest_blocks(run)) < run.design.blocks else ""
    return span + counted(run.design.blocks, "block")


def gpus_of(machine: Mapping[str, object]) -> list[str]:
    gpus = machine.get("gpus")
    there = [gpu for gpu in gpus if isinstance(gpu, dict)] if isinstance(gpus, list) else []
    names = [str(record.get("name")) for record in there]
    unknown = {str(record.get("name")) for record in there if record.get("count") == UNCOUNTED}
    return [
        f"{name} (number not recorded)" if name in unknown else f"{names.count(name)} × {name}"
        for name in dict.fromkeys(names)
    ]


def study_files(run: Run) -> list[str]:
    return [f"benchmarks/bench_{name}.py" for name in run.studies]


def studies_own(run: Run) -> bool:
    """Return whether the study chose the tweak sets: some workload met only stock arms."""
    met: dict[str, set[str]] = {}
    for cell in run.cells:
        met.setdefault(cell.workload, set()).add(cell.tweakset)
    stocks = {run.baseline, "stock-again"}
    return any(sets <= stocks for sets in met.values()) and not all(
        sets <= stocks for sets in met.values()
    )


def percent(fraction: float) -> str:
    return f"{number(fraction)} %"


def number(fraction: float, decimals: int = 1) -> str:
    if abs(fraction) >= LARGEST:
        return f"{fraction * 100:+.1e}"
    rounded = round(fraction * 100, decimals)
    return f"{rounded + 0.0:+.{decimals}f}"  # the sum turns -0.0 into 0.0


def bare(fraction: float) -> str:
    return number(fraction).lstrip("+")


def bracket(low: float | None, high: float | None, write: Callable[[float], str] = bare) -> str:
    """Write an interval after its value: ` [1.2, 3.4]`; nothing if there is none."""
    return "" if low is None or high is None else f" [{write(low)}, {write(high)}]"


def speed(fraction: float) -> str:
    return f"{unsigned(abs(fraction))} {'faster' if fraction > 0 else 'slower'}{as_long(fraction)}"


def as_long(gain: float) -> str:
    return f" ({1 / (1 + gain):.1f} × as long)" if -1 < gain < LARGE_LOSS else ""


def interval(effect: Effect) -> str:
    return f"{number(effect.low)} to {percent(effect.high)}"


def unsigned(fraction: float) -> str:
    if fraction >= LARGEST:
        return f"over {LARGEST * 100:.0f} %"
    return f"{fraction * 100:.1f}".removesuffix(".0") + " %"


def plan_command(margin: float, file: str) -> tuple[str, ...]:
    return (*JUDGE.split(), "plan", "--effect", f"{unsigned(margin).removesuffix(' %')}%", file)


def exactly(fraction: float) -> str:
    return f"{fraction * 100:.6g} %"


def spoken(verdict: str) -> str:
    return SPOKEN.get(verdict, verdict)


def size(fraction: float) -> str:
    return f">{LARGEST * 100:.0f}" if fraction >= LARGEST else f"{fraction * 100:.1f}"


def digits(value: float, most: int = 4) -> str:
    """Write a value to `most` significant digits, with trailing zeros: `801.0`, `29.40`, `2088`."""
    if value == 0 or not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{most}g}"
    return f"{value:.{max(0, most - 1 - math.floor(math.log10(abs(value))))}f}"


def probability(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}" if p < 0.0995 else f"{p:.2f}"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def ended(text: str) -> str:
    return f"{text.rstrip('. ')}."


def listed(numbers: Iterable[int]) -> str:
    ordered = sorted(numbers)
    return f"block{'s' if len(ordered) > 1 else ''} {', '.join(map(str, ordered))}"


def whole(least: int = 0, most: int = 1_000_000_000) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text[:10]) <= most:
            raise ArgumentTypeError(f"{text!r} must be a whole number of at least {least}")
        return int(text)

    return parse


def parse_names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def joined_names(pieces: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """Rejoin known names that contain commas (`test_it[a,b]`), the longest first."""
    names = {re.sub(r",\s+", ",", name): name for name in known}
    rest = list(pieces)
    result = []
    while rest:
        ends = [end for end in range(len(rest), 0, -1) if ",".join(rest[:end]) in names]
        end = ends[0] if ends else 1
        result.append(names.get(",".join(rest[:end]), rest[0]))
        rest = rest[end:]
    return tuple(result)


def parse_percent(text: str) -> float:
    """Parse a share: `3%` and `3 %` are 0.03.

    The sign is required: 0.5 may mean one half or half a percent, and a gate must not guess. At 0 %
    nothing could pass; at 100 % nothing could fail.

    Raises: Refused, for anything else.
    """
    text = text.strip()
    match = PERCENT.fullmatch(text)
    if match is None:
        raise Refused(f"{text!r} is not a percentage; write {_meant(text)}.")
    share = float(Decimal(match[1]) / 100)
    if not 0 < share < 1:
        raise Refused(
            f"{text} must be above 0 % and below 100 %; write the smallest change that matters, "
            "such as 3%."
        )
    return share


def _meant(text: str) -> str:
    value = float(text) if NUMBER.fullmatch(text) else 0.0
    if 0 < value < 1:
        return f"{value * 100:g}% or {value:g}%, whichever is meant"
    return f"{value:g}%" if 1 <= value < 100 else "one such as 3%"


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"
    if seconds < 120 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def tiny(p: float) -> str:
    return probability(p) if p >= 0.001 else f"{p:.1e}"


def unit_of(times_s: Iterable[float]) -> tuple[float, str]:
    longest_s = max(times_s)
    return next(
        ((scale, unit) for scale, unit, below_s in UNITS if longest_s < below_s), (1.0, "s")
    )


def must_be_known(noun: str, name: object, known: Iterable[object], origin: str = "") -> None:
    """Check that a name exists. Raises: UnknownName, with the available names."""
    names = sorted({str(one) for one in known})
    if str(name) not in names:
        raise UnknownName(
            f"{origin and origin + ': '}no {noun} {name!r}; available: "
            f"{first_few(names, SHOWN_NAMES)}.{suggestion(str(name), names)}"
        )


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the nearest known name, if any is near."""
    names = [*known]
    nearest = [one for one in names if name and one.startswith(name)] or get_close_matches(
        name, names, n=1
    )
    return f" Did you mean {nearest[0]!r}?" if nearest else ""
