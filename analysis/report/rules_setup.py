"""Rules about what is told of the experiment: subsets, set-up, parallel times, pictures (2, 9, 10, 12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .subject import Answer, Subject

# Without these nobody can set the experiment up again: fact of the machine → what it is called.
NEEDED = {
    "cpu_model": "processor",
    "cpu_count": "number of processors",
    "mem_total_bytes": "memory",
    "kernel_release": "kernel",
    "cmdline": "boot command line",
    "os": "distribution",
    "python_packages": "package versions",
}


def subsets_are_justified(subject: Subject) -> Answer:
    """Rule 2: what was left out, and why: planned cells that are missing, cells that failed or were skipped."""
    run = subject.run
    if not run.replicated:
        return "not met", "the file does not say what was planned: what was left out cannot be known."
    missing = sorted(set(run.design.order) - {cell.id for cell in run.cells})
    if missing:
        reason = "the run was interrupted" if run.interrupted else "no reason is given"
        return "not met", f"{len(missing)} of {len(run.design.order)} planned cells were never run ({reason})."
    silent = [cell.id for cell in run.cells if cell.outcome != "measured" and not cell.reason]
    if silent:
        return "not met", f"not measured, and no reason is given: {', '.join(silent)}."
    lost = [cell for cell in run.cells if cell.outcome != "measured"]
    if lost:
        return "met", f"{len(lost)} of {len(run.cells)} planned cells were not measured; each is listed with its reason."
    return "met", f"nothing was left out: all {len(run.cells)} planned cells were measured and are in the data."


def setup_is_documented(subject: Subject) -> Answer:
    """Rule 9: all factors, their levels and the set-up, so that somebody else can do it again."""
    run = subject.run
    missing = [name for key, name in NEEDED.items() if not run.machine.get(key)]
    missing += ["source revision (not versioned)"] if run.commit is None else []
    missing += [f"source revision ({run.commit[:12]} was edited)"] if run.commit and run.commit.endswith("+dirty") else []
    missing += [
        f"manifest of {name}"
        for name, tweakset in run.tweaksets.items()
        if (tweakset.requested or tweakset.scripts) and not (tweakset.sha256 and tweakset.path)
    ]
    missing += [f"parameters of {name}" for name, workload in run.workloads.items() if not workload.params]
    if missing:
        return "not met", f"not recorded: {', '.join(missing)}."
    levels = f"{len(run.workloads)} workloads with parameters, {len(run.tweaksets)} tweak sets with the hash of their manifests"
    return "met", f"machine, kernel, command line, packages, commit, seed; {levels}."


def parallel_times_are_explained(subject: Subject) -> Answer:
    """Rule 10: for work in several processes, how their times were synchronised and reduced."""
    workloads = {name: workload.params for name, workload in subject.run.workloads.items() if _ranks(workload.params.get("ranks")) > 1}
    if not workloads:
        return "not applicable", "no workload says that it ran in more than one process."
    told, untold = [], []
    for name, params in workloads.items():
        covers = {str(cell.facts["cpu_s_covers"]) for cell in subject.measured if cell.workload == name and "cpu_s_covers" in cell.facts}
        if params.get("backend") and covers:
            told.append(
                f"{name}: {params['ranks']} ranks that meet in every step ({params['backend']}), so one clock times all; "
                f"processor time covers {', '.join(sorted(covers))}"
            )
        else:
            untold.append(name)
    if untold:
        return "not met", f"how the times of several processes were brought together is not said for {', '.join(untold)}."
    return "met", f"work in several processes: {'; '.join(told)}."


def _ranks(value: object) -> int:
    return value if isinstance(value, int) else 1


def pictures_are_drawn(subject: Subject) -> Answer:
    """Rule 12: enough pictures to interpret the results, raw points among them."""
    drawn = [name for name, reason in subject.pictures.items() if reason is None]
    if not drawn:
        return "not met", "no picture could be drawn."
    left = len(subject.pictures) - len(drawn)
    text = f"{len(drawn)} picture{'s' if len(drawn) > 1 else ''}: {', '.join(drawn)}"
    return "met", f"{text}{f'; {left} could not be drawn, each says why' if left else ''}."
