"""Facts of runs' machines and plans, and how several runs differ in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .terms import Run

# Group of facts → the names that belong to it, in display order; a machine's further facts are
# "other".
GROUPS: Mapping[str, tuple[str, ...]] = {
    "hardware": (
        "cpu_model",
        "cpu_count",
        "cpus_online",
        "cpu_affinity_count",
        "cpu_microcode",
        "smt",
        "numa_nodes",
        "mem_total_bytes",
        "gpus",
        "hypervisor",
    ),
    "place": ("hostname", "os", "container", "cgroup", "is_root", "boot_id"),
    "kernel": (
        "kernel_release",
        "kernel_version",
        "clocksource",
        "cpu_governor",
        "cpuidle_governor",
        "thp_enabled",
        "mitigations",
    ),
    "boot command line": ("cmdline",),
    "packages": ("python_version", "python_packages"),
}
DRIVER = "driver_version"
# Prefixes of plan keys that belong to one tweak set or workload.
OWN = ("tweak set ", "workload ")


@dataclass(frozen=True, slots=True)
class Fact:
    group: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class ProvenanceChange:
    """A key that differs between runs: one value per run in order, None if a run lacks it."""

    group: str
    key: str
    values: tuple[str | None, ...]


def facts(run: Run) -> list[Fact]:
    return [*_machine(run), *_tunables(run), *_measured(run)]


def differences(runs: Sequence[Run]) -> list[ProvenanceChange]:
    """Find what differs between runs.

    Facts about a tunable, tweak set or workload are listed only if two runs have it: the lists of
    these have keys of their own, and a run records only the tunables that its tweak sets touched.
    """
    known = [{(fact.group, fact.key): fact.value for fact in facts(run)} for run in runs]
    changes = []
    for group, key in dict.fromkeys(name for record in known for name in record):
        values = tuple(record.get((group, key)) for record in known)
        partial = group == "tunables" or key.startswith(OWN)
        distinct = {value for value in values if value is not None or not partial}
        if len(distinct) > 1:
            changes.append(ProvenanceChange(group, key, values))
    return changes


def _machine(run: Run) -> Iterator[Fact]:
    grouped = {name: group for group, names in GROUPS.items() for name in names}
    for name in sorted(
        run.machine, key=lambda name: list(grouped).index(name) if name in grouped else len(grouped)
    ):
        value = run.machine[name]
        if value is None:
            continue
        if name == "cmdline":
            yield from _boot_tokens(str(value))
        elif name == "gpus":
            yield from _gpus(value)
        elif isinstance(value, dict):
            yield from (
                Fact(grouped.get(name, "other"), f"{name}: {key}", str(inner))
                for key, inner in value.items()
            )
        else:
            yield Fact(grouped.get(name, "other"), name, _shown(name, value))


def _boot_tokens(cmdline: str) -> Iterator[Fact]:
    tokens: dict[str, list[str]] = {}
    for key, _, value in (token.partition("=") for token in cmdline.split()):
        tokens.setdefault(key, []).append(value)
    for key, values in tokens.items():
        yield Fact("boot command line", key, ", ".join(values) or "given")


def _gpus(value: object) -> Iterator[Fact]:
    if not isinstance(value, list):
        yield Fact("hardware", "gpus", str(value))
        return
    for at, gpu in enumerate(value):
        for key, inner in gpu.items() if isinstance(gpu, dict) else [("name", gpu)]:
            yield Fact(
                "driver" if key == DRIVER else "hardware", f"gpu{at} {key}", _shown(key, inner)
            )


def _shown(name: str, value: object) -> str:
    if name.endswith("_bytes") and isinstance(value, int | float):
        return f"{value / 2**30:.1f} GiB"
    return "yes" if value is True else "no" if value is False else str(value)


def _tunables(run: Run) -> Iterator[Fact]:
    values: dict[str, str] = {}
    for applied in (cell.applied for cell in run.cells if cell.applied):
        changed = {
            path: change[0]
            for path, change in applied.side_effects.items()
            if isinstance(change, list | tuple) and change
        }
        for key, value in [*applied.before.items(), *changed.items()]:
            values.setdefault(key, str(value))
    yield from (Fact("tunables", key, values[key]) for key in sorted(values))


def _measured(run: Run) -> Iterator[Fact]:
    plan = {"commit": run.commit or "not versioned"}
    if run.replicated:
        steps = run.design.steps
        plan |= {"seed": str(run.design.seed), "blocks": str(run.design.blocks)}
        plan["steps"] = "each workload's own" if steps is None else str(steps)
    plan["tweak sets"] = ", ".join(sorted(run.tweaksets))
    plan["workloads"] = ", ".join(sorted(run.workloads))
    for name, tweakset in run.tweaksets.items():
        if tweakset.sha256:
            plan[f"tweak set {name}: sha256"] = tweakset.sha256
    for name, workload in run.workloads.items():
        plan |= {f"workload {name}: {key}": str(value) for key, value in workload.params.items()}
    known: dict[str, set[str]] = {}
    for cell in run.cells:
        for key in ("torch", "cuda", "device", "dtype", "threads"):
            if cell.facts.get(key) is not None:
                known.setdefault(f"workloads' {key}", set()).add(str(cell.facts[key]))
    plan |= {key: ", ".join(sorted(values)) for key, values in known.items()}
    yield from (Fact("plan", key, value) for key, value in plan.items())
