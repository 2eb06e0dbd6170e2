"""Names of metrics, workloads, runs and machines in answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from control.names import undigested

from .plain import moment, one_line
from .wording import blocks_of, gpus_of, place_of, unit_of

if TYPE_CHECKING:
    from .terms import Metric, Run, SavedWorkload

TOLD_RATE = "rate_median_per_s"  # reported by the program; the metric's unit names what is counted
# A metric's short name, and the format of its value.
LABELS = {
    "throughput_samples_per_s": ("throughput", "{} samples/s"),
    "throughput_tokens_per_s": ("token throughput", "{} tokens/s"),
    TOLD_RATE: ("rate", "{}"),
    "step_time_p10_s": ("p10 step", "p10 step {}"),
    "step_time_q1_s": ("q1 step", "lower quartile of step time {}"),
    "step_time_min_s": ("min step", "shortest step {}"),
    "step_time_round_adjusted_s": ("step", "step {}"),
    "step_time_median_s": ("median step", "median step {}"),
    "step_time_mean_s": ("mean step", "mean step {}"),
    "cpu_s_per_step": ("CPU per step", "{} CPU s per step"),
    "au_whole_percent": ("AU, whole epoch", "AU {} %"),
    "au_steady_percent": ("AU, steady", "AU without the first step {} %"),
    "samples_per_s_whole": ("whole epoch", "{} samples/s over the whole epoch"),
    "mb_per_s_read": ("read", "{} MiB/s read"),
}
# Formats of values alone, by the end of the metric's name; times are scaled.
UNITS = {
    "samples_per_s": " samples/s",
    "tokens_per_s": " tokens/s",
    "_s_per_step": " s",
    "_percent": " %",
    "mb_per_s_read": " MiB/s",
}


def label_of(metric: Metric | str) -> str:
    name = metric if isinstance(metric, str) else metric.name
    return LABELS.get(name, (name, ""))[0]


def absolute(metric: Metric, value: float, control: str | None = None) -> str:
    """Write a metric's value with name and unit, or as a share of the control's."""
    name, form = LABELS.get(metric.name, (metric.name, f"{metric.name} {{}}"))
    if control:
        return f"{name} {value:.4g} of {control}'s"
    scaled = metric.name == TOLD_RATE or (metric.name.endswith("_s") and "_per_" not in metric.name)
    return form.format(amount(metric, value) if scaled else f"{value:.4g}")


def amount(metric: Metric, value: float) -> str:
    if metric.name == TOLD_RATE:
        from control import rates

        return rates.written(value, metric.unit)
    if not metric.name.endswith("_s") or metric.name.endswith("_per_s"):
        unit = next((unit for ending, unit in UNITS.items() if metric.name.endswith(ending)), "")
        return f"{value:.4g}{unit}"
    scale, unit = unit_of([value])
    return f"{value * scale:.4g} {unit}"


def shorten(workloads: Iterable[str]) -> tuple[dict[str, str], str]:
    """Return short names of workloads, and what they all share: a file, parameters."""
    names = list(workloads)
    if len(names) < 2:  # a single one differs from nothing; a file's digest does not count
        return {name: undigested(name) for name in names}, ""
    files = {name.rpartition("::")[0] for name in names}
    common = [files.pop()] if len(files) == 1 and "" not in files else []
    parts = (
        {name: name.rpartition("::")[2].split(":") for name in names}
        if common or "::" not in "".join(names)
        else {}
    )
    shared = (
        [
            part
            for part in parts[names[0]][1:]
            if "=" in part and all(part in other for other in parts.values())
        ]
        if parts
        else []
    )
    short = (
        {name: ":".join(part for part in parts[name] if part not in shared) for name in names}
        if parts
        else {n: n for n in names}
    )
    return short, ", ".join([*common, *shared])


def headline(runs: Sequence[Run]) -> str:
    return "\n".join(
        f"{run.origin}: {_counts(run)}" if len(runs) > 1 else _counts(run) for run in runs
    )


def _counts(run: Run) -> str:
    measured = sum(cell.outcome == "measured" for cell in run.cells)
    started = moment(run.started_utc)
    cells = (
        f"{measured} of {len(run.design.order) or len(run.cells)} cells"
        if run.replicated
        else f"{measured} measured, no replicates"
    )
    return ", ".join([*run.studies, *([f"{started:%-d %b %Y}"] if started else []), cells])


def about(run: Run) -> dict[str, object]:
    """Return the facts on a run that begin the JSON of a study's answer."""
    names = ("run_id", "origin", "started_utc", "commit", "interrupted")
    facts = {name: getattr(run, name) for name in names}
    return {**facts, "seed": run.design.seed, "warnings": list(run.warnings)}


def provenance(runs: Sequence[Run]) -> list[tuple[str, str]]:
    facts = [
        ("run", f"{run.run_id}: {blocks_of(run)}, seed {run.design.seed}")
        for run in runs
        if run.replicated
    ]
    return [*facts, *(("machine", line) for line in dict.fromkeys(map(machine_of, runs)))]


def machine_of(run: Run) -> str:
    system = run.machine.get("kernel_release") and f"Linux {run.machine['kernel_release']}"
    facts = [str(identity_of(run.machine)), system, run.machine.get("os"), place_of(run)]
    return one_line(", ".join(str(fact) for fact in facts if fact))


# Our own workload with parameters; other tools' names contain colons too (`test_x.py::test_y`).
_VARIANT = re.compile(r"[\w-]+(?::\w+=[^:=]+)+")
_NUMBER = re.compile(r"[-+.0-9e]+")


def own_names(workloads: Iterable[str]) -> dict[str, str]:
    """Return names without a file's digest, a command by its program, unless two become alike."""
    names = {name: undigested(name) for name in workloads}
    return names if len(set(names.values())) == len(names) else {name: name for name in names}


def short_names(workloads: Mapping[str, SavedWorkload]) -> dict[str, str]:
    """Return short names made of what distinguishes the workloads; no two are alike.

    `io_train:format=hdf5:read_threads=2:cache=warm` is `hdf5 · warm` if all others have two
    readers.
    """
    shown = own_names(workloads)
    families: dict[str, list[str]] = {}
    for name, own in shown.items():
        families.setdefault(own.partition(":")[0], []).append(name)
    for base, names in families.items():
        if len(names) > 1 and all(name == base or _VARIANT.fullmatch(name) for name in names):
            words = _apart(names, workloads)
            shown |= {
                name: " · ".join([base] * (len(families) > 1) + words[name]) or base
                for name in names
            }
    return shown if len(set(shown.values())) == len(shown) else {name: name for name in workloads}


def _apart(names: Sequence[str], workloads: Mapping[str, SavedWorkload]) -> dict[str, list[str]]:
    given = {name: dict(part.split("=", 1) for part in name.split(":")[1:]) for name in names}
    mentioned = Counter(key for own in given.values() for key in own)
    level = {
        name: {
            key: given[name].get(key, str(workloads[name].params.get(key, ""))) for key in mentioned
        }
        for name in names
    }
    # Keyed by how a parameter splits them: of two that always change together, keep the first.
    differ: dict[tuple[int, ...], str] = {}
    for key in mentioned:
        levels = [level[name][key] for name in names]
        if len(set(levels)) > 1:
            differ.setdefault(tuple(map(levels.index, levels)), key)
    return {
        name: [
            _said(key, level[name][key])
            for key in differ.values()
            if level[name][key] and (mentioned[key] > 1 or key in given[name])
        ]
        for name in names
    }


def _said(key: str, level: str) -> str:
    return f"{key}={level}" if _NUMBER.fullmatch(level) or level in {"on", "off"} else level


# The kernel reserves some memory, a newer one more: up to this difference, it is the same machine.
SAME_MEMORY = 0.05
GIB = 2.0**30


class MachineIdentity(NamedTuple):
    """Facts that identify a machine. A fact that is not recorded is None and equals only None."""

    cpu_model: str | None
    cpu_count: int | None
    mem_total_bytes: int | None
    gpus: tuple[str, ...]

    def same_as(self, other: MachineIdentity) -> bool:
        """Return whether a series may continue from one machine to the other."""
        mine, theirs = self.mem_total_bytes, other.mem_total_bytes
        if mine is None or theirs is None:
            return self == other
        alike = self == other._replace(mem_total_bytes=mine)
        return alike and abs(mine - theirs) <= SAME_MEMORY * max(mine, theirs)

    def __str__(self) -> str:
        parts = [
            self.cpu_model,
            self.cpu_count and f"{self.cpu_count} CPUs",
            self.mem_total_bytes and f"{self.mem_total_bytes / GIB:.3g} GiB",
            *self.gpus,
        ]
        return ", ".join(part for part in parts if part) or "unknown machine"


def identity_of(facts: Mapping[str, object]) -> MachineIdentity:
    model, count, memory = (
        facts.get(name) for name in ("cpu_model", "cpu_count", "mem_total_bytes")
    )
    return MachineIdentity(
        cpu_model=model if isinstance(model, str) else None,
        cpu_count=count if isinstance(count, int) else None,
        mem_total_bytes=memory if isinstance(memory, int) else None,
        gpus=tuple(sorted(gpus_of(facts))),
    )


class Machines:
    """The machines seen so far, by number; equal ones share a number."""

    def __init__(self) -> None:
        self.known: list[MachineIdentity] = []

    def number_of(self, facts: Mapping[str, object]) -> int:
        machine = identity_of(facts)
        for number, one in enumerate(self.known):
            if one.same_as(machine):
                return number
        self.known.append(machine)
        return len(self.known) - 1
