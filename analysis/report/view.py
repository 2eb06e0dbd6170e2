"""One run as its part of a page: every line of text that the template puts in place."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from analysis import machine
from analysis.again import command_line
from analysis.checks import warnings_of
from analysis.compare_answer import answer_of
from analysis.labels import TOLD_RATE
from analysis.render import html as as_html
from analysis.terms import Cell, Comparison, Design, Run
from analysis.wording import blocks_of, fewest_blocks, listed, place_of, studies_own, study_files
from control import rates
from control.names import first_few, undigested

from .answers import Trust, WorkloadAnswer, answers, control, is_control, nothing_compared, trust
from .settings import RequestedSetting, State, asked
from .verdicts import VerdictTable, tables

if TYPE_CHECKING:
    from markupsafe import Markup

    from analysis.machine import Fact
    from analysis.studies.keys.terms import Effects


# Metrics in the list of all cells: label and factor to its unit.
METRICS = {
    TOLD_RATE: ("rate", 1),
    "throughput_samples_per_s": ("throughput, samples/s", 1),
    "step_time_p10_s": ("p10 step, ms", 1000),
    "step_time_q1_s": ("q1 step, ms", 1000),
    "step_time_round_adjusted_s": ("step, ms", 1000),
    "step_time_median_s": ("median step, ms", 1000),
    "step_time_mean_s": ("mean step, ms", 1000),
}


@dataclass(frozen=True, slots=True)
class LostCells:
    """Cells that were not measured for one and the same reason."""

    workload: str
    tweakset: str
    outcome: str
    blocks: str
    reason: str


@dataclass(frozen=True, slots=True)
class ViewLine:
    """One cell of the list of all: `numbers` are its duration and its metrics, as text."""

    order: int
    block: int
    workload: str
    tweakset: str
    outcome: str
    started: str
    numbers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ViewText:
    """What a study answers of a run: its section's id and heading, the answer in a line, its findings, its first table, and the others."""

    id: str
    title: str
    answer: str
    findings: Markup | str = ""
    tables: Markup | str = ""
    more: Markup | str = ""


class KeyFinding(NamedTuple):
    """What is said of one tweak set that was taken apart, under one workload."""

    workload: str
    profile: str
    sentence: str

    @classmethod
    def of(cls, effects: Effects) -> KeyFinding:
        """Take the sentence of effects."""
        return cls(effects.observed.workload, effects.observed.profile, effects.sentence)


@dataclass(frozen=True, slots=True)
class View:
    """A run, told. `prefix` begins the ids of its places on the page."""

    prefix: str
    name: str
    origin: str
    machine: str
    counts: str
    headline: str
    answers: Sequence[WorkloadAnswer]
    keys: Sequence[KeyFinding]
    keys_html: Markup | str
    told: Sequence[ViewText]
    nothing: str
    control: str | None
    trust: Sequence[Trust]
    warnings: Sequence[str]
    tables: Sequence[VerdictTable]
    asked: Sequence[RequestedSetting]
    facts: Mapping[str, Sequence[Fact]]
    order: str
    lost: Sequence[LostCells]
    cell_metrics: Sequence[str]
    cells: Sequence[ViewLine]
    measure: str | None
    replicated: bool

    def settings(self, state: State) -> int:
        """How many settings were in force ("held"), were not or not put back ("failed"), or may have been either ("unknown")."""
        return sum(row.state == state and bool(row.requested) for request in self.asked for row in request.rows)


def view_of(
    run: Run,
    comparisons: Sequence[Comparison],
    effects: Sequence[Effects],
    *,
    place: int,
    told: Sequence[ViewText] = (),
) -> View:
    """Tell one run; `told` is what the run's own studies answer."""
    shown = [name for name in METRICS if any(name in cell.metrics for cell in run.cells)]
    controls = [comparison for comparison in comparisons if is_control(run, comparison)]
    doubted = list(dict.fromkeys(effect.observed.workload for effect in effects if effect.again_fails))
    judged = [comparison for comparison in comparisons if comparison not in controls]
    differing = {*doubted, *(comparison.workload for comparison in controls if comparison.verdict == "not comparable")}
    facts: dict[str, list[Fact]] = {}
    for fact in machine.facts(run):
        facts.setdefault(fact.group, []).append(fact)
    return View(
        prefix=f"run{place}-",
        name=run.run_id,
        origin=run.origin,
        machine=machine_of(run),
        counts=counts_of(run),
        headline="" if told or effects or not judged else answer_of(judged, [run]).title,
        # Where the control differs, counts of verdicts on the sets of a design would say more than can be trusted.
        answers=answers(run, [one for one in comparisons if not (effects and one.workload in differing)]),
        keys=[KeyFinding.of(effect) for effect in effects],
        keys_html=_keys(run, effects),
        told=told,
        nothing="No tweak set was compared." if told and not comparisons else nothing_compared(run, comparisons),
        control=control(run, comparisons, doubted),
        trust=trust(run, comparisons),
        warnings=list(dict.fromkeys(warnings_of(run, comparisons))),
        tables=tables(comparisons, run),
        asked=asked(run),
        facts=facts,
        order=_order(run),
        lost=_lost(run),
        cell_metrics=[METRICS[name][0] for name in shown],
        cells=[_line(cell, shown) for cell in run.cells],
        measure=_measure(run),
        replicated=run.replicated,
    )


def _keys(run: Run, effects: Sequence[Effects]) -> Markup | str:
    """The effects with their tables; their sentences and the run's warnings stand above them on the page."""
    if not effects:
        return ""
    from analysis.studies.keys.answers import answer

    return as_html.render(replace(answer(effects, run), title="", findings=[], warnings=[], next=()), 3)


def machine_of(run: Run) -> str:
    facts = run.machine
    memory, gpus = facts.get("mem_total_bytes"), facts.get("gpus")
    parts = [
        facts.get("cpu_model"),
        facts.get("cpu_count") and f"{facts['cpu_count']} CPUs",
        isinstance(memory, int | float) and f"{memory / 2**30:.0f} GiB",
        isinstance(gpus, list)
        and gpus
        and "GPU: " + ", ".join(str(gpu.get("name")) if isinstance(gpu, dict) else str(gpu) for gpu in gpus),
        isinstance(gpus, str) and "no GPU",
        facts.get("kernel_release") and f"Linux {facts['kernel_release']}",
        facts.get("os"),
        place_of(run),
    ]
    return ", ".join(str(part) for part in parts if part) or "Machine unknown"


def counts_of(run: Run) -> str:
    measured = sum(cell.outcome == "measured" for cell in run.cells)
    if not run.replicated:
        return f"{measured} of {len(run.cells)} cells measured, no replicates"
    planned = len(run.design.order) or len(run.cells)
    return f"{measured} of {planned} cells measured in {blocks_of(run)}{', interrupted' if run.interrupted else ''}"


def _order(run: Run) -> str:
    if not run.replicated:
        return "The file knows no blocks and no order of cells: each configuration was run once."
    stamps = sorted(cell.started_utc for cell in run.cells if cell.started_utc)
    span = f" First cell {stamps[0][:19].replace('T', ' ')} UTC, last {stamps[-1][:19].replace('T', ' ')}." if stamps else ""
    return (
        f"Seed {run.design.seed}; {counts_of(run)}. In each block the workloads come in random order, and within a workload its tweak "
        f"sets; what is compared ran close in time.{span}"
    )


def _lost(run: Run) -> list[LostCells]:
    """Cells that failed or were skipped, and planned ones that never ran, gathered by reason."""
    blocks: dict[tuple[str, str, str, str], list[int]] = {}
    for cell in run.cells:
        if cell.outcome != "measured":
            blocks.setdefault((cell.workload, cell.tweakset, cell.outcome, cell.reason or "no reason was given"), []).append(cell.block)
    lost = [
        LostCells(undigested(workload), tweakset, outcome, listed(set(where)), reason)
        for (workload, tweakset, outcome, reason), where in blocks.items()
    ]
    never = sorted(set(run.design.order) - {cell.id for cell in run.cells})
    if never:
        reason = f"the run was over before them: {first_few(never, 5)}"
        lost.append(LostCells("", "planned, never run", "skipped", f"{len(never)} cells", reason))
    return lost


def _number(name: str, value: float, unit: str) -> str:
    return rates.written(value, unit) if name == TOLD_RATE else f"{value * METRICS[name][1]:.4g}"


def _line(cell: Cell, metrics: Sequence[str]) -> ViewLine:
    unit = str(cell.facts.get("rate_unit", ""))
    numbers = (_number(name, cell.metrics[name], unit) if name in cell.metrics else "" for name in metrics)
    return ViewLine(
        order=cell.order,
        block=cell.block,
        workload=undigested(cell.workload),
        tweakset=cell.tweakset,
        outcome=cell.outcome,
        started=(cell.started_utc or "")[11:19],
        numbers=("" if cell.duration_s is None else f"{cell.duration_s:.1f}", *numbers),
    )


def _measure(run: Run) -> str | None:
    """The command that measures it again, as far as the file tells; None for files of other tools."""
    if run.format != "deeptweak":
        return None
    lines = [] if run.commit is None else [f"git checkout {shlex.quote(run.commit.removesuffix('+dirty'))}"]
    varied = {factor.tweakset for factor in run.design.factors}
    asking = {
        name: tweakset.path
        for name, tweakset in run.tweaksets.items()
        if (tweakset.requested or tweakset.scripts) and (name in varied or not varied)
    }
    tweaks = [name if path in {None, f"data/tweaks/{name}.yaml"} else path for name, path in asking.items()]
    blocks = [f"--blocks={run.design.blocks}"]
    if run.design.budget_s and fewest_blocks(run) < run.design.blocks:  # of each workload as many as had room
        blocks = [f"--budget={run.design.budget_s:.12g}s"]
    options = [f"--seed={run.design.seed}", *blocks, *_design(run.design)]
    options += [f"--steps={run.design.steps}"] if run.design.steps is not None else []
    # With --tweaks a workload that none of them meets would be left out.
    options += [] if studies_own(run) else [f"--tweaks={','.join(tweaks) or 'stock'}"]
    if run.place:
        asked = {"target": "target", "apply": "apply", "workload-via": "workload_via", "image": "image"}
        options += [f"--{name}={run.place[key]}" for name, key in asked.items() if key in run.place]
        lines.append(f"# it ran on {run.place.get('nodes')}; add your --kubeconfig, --namespace, --nodes, --gpus and --pod-overlay")
    options += [f"--workloads={','.join(dict.fromkeys(cell.workload for cell in run.cells))}"] if _crossed(run) else []
    if command := command_line(run, options):
        # A command's revision is that of its own folder, and not for us to check out.
        revision = [f"# measured at {run.commit}"] if run.commit else []
        return "\n".join([*revision, *(line for line in lines if line.startswith("#")), shlex.join(command)])
    return "\n".join([*lines, shlex.join(["python", "-m", "pytest", *study_files(run), *options, "--benchmark-save=again"])])


def _design(design: Design) -> list[str]:
    """The options that lay out the same design; one that was read from a file is named by a file of whoever reads this."""
    if design.kind in {"matrix", "file"}:
        return ["--design-file=DESIGN.csv"] if design.kind == "file" else []
    resolutions = {note["resolution"] for note in design.notes.values() if "resolution" in note}
    asked = [f"--resolution={resolution}" for resolution in sorted(map(str, resolutions))[:1]] if design.kind == "fractional" else []
    return [f"--design={design.kind}", *asked]


def _crossed(run: Run) -> bool:
    """Whether every tweak set met every workload, which a run does when its workloads are named."""
    met = {(cell.workload, cell.tweakset) for cell in run.cells}
    return len(met) == len({text for text, _ in met}) * len({other for _, other in met})
