"""Hoefler and Belli's twelve rules for reporting measurements, each evaluated from the run; none is ticked by default.

Source: Hoefler & Belli, Scientific Benchmarking of Parallel Computing Systems, SC '15, doi 10.1145/2807591.2807644; paraphrased.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from analysis.arms import Arm, side
from analysis.pairing import pair
from analysis.stats.adjust import holm
from analysis.stats.effect import log_gains
from analysis.switched import expanded
from analysis.terms import Cell, Comparison, Effect, Metric, Run
from analysis.verdict import GUARD, NAMES, ONE_RUN, without_guards
from analysis.wording import probability, unsigned
from control.names import first_few
from control.t_test import ALPHA

from .answers import is_control
from .verdicts import base_value

State = Literal["met", "not met", "not applicable"]
Answer = tuple[State, str]


@dataclass(frozen=True, slots=True)
class Subject:
    """One run, the comparisons inside it, and the pictures of its report: name → None where it was drawn, else why it was not.

    `doubted` are workloads where the effects' own check of the control fails.
    """

    run: Run
    comparisons: tuple[Comparison, ...]
    pictures: Mapping[str, str | None]
    doubted: tuple[str, ...] = ()

    @property
    def compared(self) -> list[tuple[Comparison, Effect]]:
        return [(comparison, comparison.primary) for comparison in self.comparisons if comparison.primary is not None]

    @property
    def nothing(self) -> str:
        return "no comparison has an effect to look at." if self.comparisons else "nothing was compared."

    @property
    def measured(self) -> list[Cell]:
        return [cell for cell in self.run.cells if cell.outcome == "measured"]


def paired_values(run: Run, comparison: Comparison, metric: Metric) -> tuple[list[float], list[float]]:
    """Read again from the cells what a comparison stands on: a metric of baseline and candidate, block by block.

    Where settings were alternated, a segment or, if there are enough of them, a process takes the place of the block.
    """
    arm = Arm(run.origin, (expanded(run),))
    sides = [side(arm, comparison.study, comparison.workload, name) for name in (comparison.baseline, comparison.tweakset)]
    if sides[0] is None or sides[1] is None:
        return [], []
    pairing = pair(sides[0], sides[1])
    whole = bool(pairing.processes) and len(pairing.processes) == pairing.units
    units = pairing.processes if whole else [[entry] for entry in pairing.pairs]
    base, candidate = (
        [math.exp(math.fsum(math.log(entry[at][1].metrics[metric.name]) for entry in unit) / len(unit)) for unit in units] for at in (0, 1)
    )
    return base, candidate


def by_workload(cells: list[Cell]) -> Iterator[tuple[str, list[Cell]]]:
    for workload in dict.fromkeys(cell.workload for cell in cells):
        yield workload, [cell for cell in cells if cell.workload == workload]


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


SAME = 1e-9  # two computations of one number agree to this
RATE = "throughput_samples_per_s"


def base_is_given(subject: Subject) -> Answer:
    """Rule 1: what a speed-up is relative to, and how fast that is in absolute terms."""
    bases: dict[str, str] = {}
    for guard in without_guards(subject.comparisons):
        if guard.primary is None and guard.observed is None:
            continue
        value = base_value([guard], guard.primary_metric)
        if value is None:
            return "not met", f"the value of {guard.baseline} is not known for {guard.workload} × {guard.tweakset}."
        bases.setdefault(guard.workload, f"{guard.workload}: {guard.baseline}, {value}")
    if not bases:
        return "not applicable", subject.nothing
    return "met", f"every gain names its base: {'; '.join(bases.values())}."


def means_fit(subject: Subject) -> Answer:
    """Rule 3: an arithmetic mean for costs, the harmonic one for rates, checked by computing each rate again from its steps."""
    rated = [cell for cell in subject.measured if RATE in cell.metrics]
    if not rated:
        return "not applicable", "the run has no rates."
    checked = [(cell, _true_rate(cell)) for cell in rated]
    unknown = [cell.id for cell, rate in checked if rate is None]
    wrong = [cell.id for cell, rate in checked if rate is not None and not math.isclose(rate, cell.metrics[RATE], rel_tol=SAME)]
    if wrong:
        return "not met", f"the throughput of {first_few(wrong, 3)} is not samples / total time."
    if unknown:
        text = f"whether the throughput of {first_few(unknown, 3)} is samples / total time cannot be checked"
        return "not met", f"{text}: no step times are kept."
    return "met", f"every throughput is samples / total time, computed again for {len(rated)} cells; no mean of rates is used anywhere."


def _true_rate(cell: Cell) -> float | None:
    if cell.steps is not None:
        return sum(cell.steps.samples[cell.steps.warmup :]) / math.fsum(cell.steps.wall_s[cell.steps.warmup :])
    mean_s = cell.metrics.get("step_time_mean_s")
    return 1 / mean_s if mean_s else None


def ratios_are_not_averaged(subject: Subject) -> Answer:
    """Rule 4: no arithmetic mean of ratios; here the ratio of the arms' geometric means, computed again from the cells."""
    if not subject.compared:
        return "not applicable", subject.nothing
    wrong = []
    for comparison, effect in subject.compared:
        base, candidate = paired_values(subject.run, comparison, effect.metric)
        gains = log_gains(effect.metric, base, candidate)
        if not gains or not math.isclose(math.expm1(math.fsum(gains) / len(gains)), effect.gain, rel_tol=1e-6, abs_tol=SAME):
            wrong.append(f"{comparison.workload} × {comparison.tweakset}")
    if wrong:
        return "not met", f"the gain of {first_few(wrong, 3)} is not the ratio of its arms' geometric means."
    text = f"every gain is the ratio of the two arms' geometric means over paired blocks (computed again for {len(subject.compared)})"
    return "met", f"{text}; the absolute values stand beside it."


def summary_fits(subject: Subject) -> Answer:
    """Rule 8: whether one mean or median tells the story; two summaries stand beside each other, and their disagreement is said."""
    if not subject.compared:
        return "not applicable", subject.nothing
    alone = [f"{comparison.workload} × {comparison.tweakset}" for comparison, _ in subject.compared if comparison.second is None]
    if alone:
        return "not met", f"one summary only for {first_few(alone, 3)}."
    split = [
        f"{comparison.workload} × {comparison.tweakset}"
        for comparison, effect in subject.compared
        if comparison.second is not None
        and effect.low * effect.high > 0
        and comparison.second.low * comparison.second.high > 0
        and effect.gain * comparison.second.gain < 0
    ]
    tails = []
    for workload, cells in by_workload(subject.measured):
        skews = [c.metrics["step_time_mean_s"] / c.metrics["step_time_median_s"] for c in cells if c.metrics.get("step_time_median_s")]
        if skews:
            tails.append(f"{workload} {statistics.median(skews):.2f}")
    text = (
        f"throughput and a low quantile of step time stand beside each other; mean step / median step: {', '.join(tails) or 'not known'}."
    )
    if split:
        return "met", f"{text} They contradict each other for {first_few(split, 3)}: stalls decide there."
    return "met", f"{text} They contradict each other nowhere."


def bounds_are_shown(subject: Subject) -> Answer:
    """Rule 11: how fast it could be at best. Known for work on processors alone: its own processor time, spread over all of them."""
    if not subject.compared:
        return "not applicable", subject.nothing
    bounds, missing = [], []
    for workload, cells in by_workload(subject.measured):
        ratios = [bound for cell in cells if cell.tweakset == subject.run.baseline and (bound := _busy_share(cell)) is not None]
        if ratios:
            bounds.append(f"{workload} {unsigned(max(0.0, 1 / statistics.median(ratios) - 1))}")
        else:
            missing.append(workload)
    if missing:
        return "not met", f"no ideal time (roofline) is known for {', '.join(missing)}."
    text = f"most that could be gained without making the work itself cheaper, if no processor ever waited: {', '.join(bounds)}"
    return "met", f"{text} (step time against processor time / processors)."


def _busy_share(cell: Cell) -> float | None:
    """Processor time of a step over what the processors could have given in its wall time; None where the work may lie elsewhere."""
    cores, covers = cell.facts.get("cores_allowed"), str(cell.facts.get("cpu_s_covers", ""))
    cpu_s, wall_s = cell.metrics.get("cpu_s_per_step"), cell.metrics.get("step_time_mean_s")
    if cell.facts.get("device") != "cpu" or not covers.startswith("all threads") or not isinstance(cores, int) or not cpu_s or not wall_s:
        return None
    return cpu_s / (cores * wall_s)


def intervals_are_given(subject: Subject) -> Answer:
    """Rule 5: are the results deterministic? If not, each carries a confidence interval."""
    if not subject.comparisons:
        return "not applicable", subject.nothing
    bare = [comparison for comparison in subject.comparisons if comparison.primary is None]
    if bare and not subject.compared:
        reason = ONE_RUN if any(comparison.observed is not None for comparison in bare) else f"{subject.run.design.blocks} block(s)"
        return "not met", f"no comparison has an interval ({reason}): how far two runs of the same differ is not known."
    spreads = sorted(effect.log_sd for _, effect in subject.compared)
    low, high = unsigned(spreads[0]).removesuffix(" %"), unsigned(spreads[-1])
    text = f"not deterministic: ratios of equal blocks scatter by {low} to {high}; {len(spreads)} comparisons carry a 95 % interval"
    if bare:
        return "met", f"{text}, {len(bare)} have neither interval nor verdict (the table says why)."
    return "met", f"{text}."


def normality_is_checked(subject: Subject) -> Answer:
    """Rule 6: normality is not assumed but looked at, by Shapiro and Francia's test of each comparison's log ratios, Holm-adjusted."""
    if not subject.compared:
        return "not applicable", subject.nothing
    tested: list[tuple[str, float]] = []
    for comparison, effect in subject.compared:
        gains = log_gains(effect.metric, *paired_values(subject.run, comparison, effect.metric))
        if len(gains) < 3:
            return "not met", f"too few blocks to look at the distribution of {comparison.workload} × {comparison.tweakset}."
        tested.append((f"{comparison.workload} × {comparison.tweakset}", _normal_p(gains)))
    adjusted = holm([p for _, p in tested])
    odd = [f"{name} (p {probability(p)})" for (name, _), p in zip(tested, adjusted, strict=True) if p < ALPHA]
    if odd:
        return "not met", f"the block ratios are not normal for {', '.join(odd)}: the t interval there is doubtful, look at the raw points."
    blocks = min(effect.n_baseline for _, effect in subject.compared)
    least = probability(min(adjusted))
    text = f"Shapiro-Francia on the log ratios of {len(tested)} comparisons finds no departure (smallest adjusted p {least})"
    return "met", f"{text}; with {blocks} blocks only gross ones would show."


def _normal_p(values: Sequence[float]) -> float:
    """Return the p of values being normal: Shapiro and Francia's W' with Royston's approximation (The Statistician 42, 1993).

    It has the power of Shapiro and Wilk's W, which only scipy.stats has: to load that takes an eighth of a report's time.
    """
    import numpy as np
    from scipy.special import ndtr, ndtri

    count = len(values)
    scores = ndtri((np.arange(1, count + 1) - 0.375) / (count + 0.25))
    short = 1 - np.corrcoef(np.sort(values), scores)[0, 1] ** 2
    log = math.log(count)
    mean, sd = -1.2725 + 1.0521 * (math.log(log) - log), 1.0308 - 0.26758 * (math.log(log) + 2 / log)
    return float(ndtr((mean - math.log(max(short, 1e-300))) / sd))


def comparison_is_sound(subject: Subject) -> Answer:
    """Rule 7: compared soundly: replicated, interleaved, adjusted for the number of questions, and with a clean control."""
    if not subject.comparisons:
        return "not applicable", subject.nothing
    if not subject.compared:
        return (
            "not met",
            f"no comparison has replicates enough ({ONE_RUN})." if not subject.run.replicated else "no comparison was possible.",
        )
    problems = [*_not_interleaved(subject), *_bad_controls(subject)]
    if problems:
        return "not met", " ".join(problems)
    controls = [comparison for comparison in subject.comparisons if is_control(subject.run, comparison)]
    one = without_guards([comparison for comparison, _ in subject.compared])[0]
    text = f"paired t-test on blocks in random order, {NAMES[one.adjustment]} over {one.family} comparisons, no verdict below 3 blocks"
    if not controls:
        return "not met", f"{text}; but no untouched control (stock-again) was run beside it."
    return "met", f"{text}; the untouched control differs nowhere."


def _bad_controls(subject: Subject) -> list[str]:
    odd = [
        comparison
        for comparison in subject.comparisons
        if is_control(subject.run, comparison) and (_differs(comparison) or comparison.workload in subject.doubted)
    ]
    return [
        f"the control differs from {comparison.baseline} under {comparison.workload}, though nothing was changed." for comparison in odd
    ]


def _differs(comparison: Comparison) -> bool:
    level = GUARD if comparison.guard else ALPHA
    return comparison.primary is not None and comparison.p_adjusted is not None and comparison.p_adjusted < level


def _not_interleaved(subject: Subject) -> list[str]:
    """Whether each block's cells of a workload ran together: before the next block began, after the one before had ended."""
    spans: dict[tuple[str, int], list[int]] = {}
    for cell in subject.run.cells:
        spans.setdefault((cell.study, cell.block), []).append(cell.order)
    for study in subject.run.studies:
        blocks = sorted((min(orders), max(orders)) for (name, _), orders in spans.items() if name == study)
        if any(end > start for (_, end), (start, _) in pairwise(blocks)):
            return [f"the blocks of {study} were not run one after the other: drift is part of every difference."]
    return []


RULES: tuple[tuple[str, Callable[[Subject], Answer]], ...] = (
    ("Say what a speed-up is relative to, and how fast that is.", base_is_given),
    ("Give the reason for every subset that is reported.", subsets_are_justified),
    ("Arithmetic mean for costs, harmonic mean for rates.", means_fit),
    ("Do not average ratios.", ratios_are_not_averaged),
    ("Say whether results are deterministic; if not, give confidence intervals.", intervals_are_given),
    ("Do not assume normality; look.", normality_is_checked),
    ("Compare in a statistically sound way.", comparison_is_sound),
    ("Ask whether mean or median tells what matters; else give quantiles.", summary_fits),
    ("Document all factors, their levels and the set-up.", setup_is_documented),
    ("For parallel times, say how they were synchronised and reduced.", parallel_times_are_explained),
    ("Show bounds: how fast could it be?", bounds_are_shown),
    ("Plot as much as is needed to interpret the results.", pictures_are_drawn),
)


@dataclass(frozen=True, slots=True)
class ReportRule:
    """One rule and whether this report keeps it, with the reason; `reason` is a sentence."""

    number: int
    says: str
    state: State
    reason: str


def checklist(subject: Subject) -> list[ReportRule]:
    rules = []
    for number, (says, evaluate) in enumerate(RULES, 1):
        state, reason = evaluate(subject)
        rules.append(ReportRule(number, says, state, reason[:1].upper() + reason[1:]))
    return rules
