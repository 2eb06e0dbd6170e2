"""What of a workload of DLIO was another in a run than its own definition has it, whoever changed it: an override, a copy, a scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from analysis.plain import one_line

from .mlperf import parameter

if TYPE_CHECKING:
    from .terms import IoRun

# What a workload's own definition fixes (`data/io/`), beside what overrides say: a copy of it may differ without one.
FIXED = (
    *("batch_size", "computation_time", "epochs", "record_length_bytes", "record_length_bytes_stdev", "record_length_bytes_resize"),
    *("num_samples_per_file", "format", "file_shuffle", "sample_shuffle"),
)
SCALED = ("record_length_bytes", "record_length_bytes_stdev", "record_length_bytes_resize", "computation_time")
FROM_THEM = {"record_length": "record_length_bytes", "record_length_stdev": "record_length_bytes_stdev"}  # as 2.0.0 of PyPI spells them


def departures(run: IoRun, own: Mapping[str, object]) -> dict[str, object]:
    """Everything that effectively differs from the workload's own, by the key that it was asked for by.

    An override that says what the workload says anyway is none; where the workload's own is not known, every override is one.
    """
    found: dict[str, object] = {}
    for given, value in run.overrides.items():
        key = parameter(given)
        if key is not None and not same(_effective(run, _name(key), value), own.get(_name(key))):
            found[key] = value
    named = {_name(key) for key in found}
    for key in FIXED:
        value, theirs = _effective(run, key, None), own.get(key)
        if key not in named and value is not None and theirs is not None and not same(value, theirs):
            found[key] = value
    return found


def in_words(run: IoRun, own: Mapping[str, object], breaks: tuple[str, ...]) -> list[str]:
    """Say what broke the rules, a line each; what a scale of records made of several parameters, in one."""
    scale, named = run.params.get("record_scale", 1), {_name(key) for key in run.overrides}
    scaled = (
        []
        if same(scale, 1)
        else [name for name in SCALED if name not in named and f"{name} =" in {f"{one.split('=')[0]}=" for one in breaks}]
    )
    lines = []
    if scaled:
        words = [f"its {name.rpartition('_')[2]}" if name.startswith(f"{scaled[0]}_") else name for name in scaled]
        listed = " and ".join([*([", ".join(words[:-1])] if len(words) > 1 else []), words[-1]])
        lines.append(f"record_scale = {scale} makes {listed} other than the workload's, which neither division may change")
    for one in breaks:
        key, _, said = one.partition(" = ")
        if key in scaled:
            continue
        theirs = own.get(_name(key))
        its = "" if theirs is None or "(" in said else f", where the workload's own is {theirs}"
        lines.append(f"{one_line(key.rpartition('.')[2], 40)} = {one_line(said, 40)}{its}: neither division may change it")
    return lines


def same(value: object, other: object) -> bool:
    """Whether two values are one: numbers within rounding, also such as stand in a text; words to the letter."""
    one, two = _number(value), _number(other)
    return abs(one - two) <= 1e-6 * abs(two) if one is not None and two is not None else str(value) == str(other)


def _name(key: str) -> str:
    leaf = key.rpartition(".")[2]
    return FROM_THEM.get(leaf, leaf)


def _effective(run: IoRun, name: str, given: object) -> object:
    value = run.params.get(name, given)
    return value.get("mean") if isinstance(value, Mapping) else value


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
