"""Rules about how numbers are summarised: bases, means, ratios, quantiles, bounds (1, 3, 4, 8, 11)."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from analysis.stats.effect import log_gains
from analysis.verdict import without_guards
from analysis.wording import unsigned

from .subject import by_workload, paired_values
from .verdicts import base_value

if TYPE_CHECKING:
    from analysis.terms import Cell

    from .subject import Answer, Subject

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
        return "not met", f"the throughput of {_first(wrong)} is not samples / total time."
    if unknown:
        return "not met", f"whether the throughput of {_first(unknown)} is samples / total time cannot be checked: no step times are kept."
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
        return "not met", f"the gain of {_first(wrong)} is not the ratio of its arms' geometric means."
    text = f"every gain is the ratio of the two arms' geometric means over paired blocks (computed again for {len(subject.compared)})"
    return "met", f"{text}; the absolute values stand beside it."


def summary_fits(subject: Subject) -> Answer:
    """Rule 8: whether one mean or median tells the story; two summaries stand beside each other, and their disagreement is said."""
    if not subject.compared:
        return "not applicable", subject.nothing
    alone = [f"{comparison.workload} × {comparison.tweakset}" for comparison, _ in subject.compared if comparison.second is None]
    if alone:
        return "not met", f"one summary only for {_first(alone)}."
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
        return "met", f"{text} They contradict each other for {_first(split)}: stalls decide there."
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


def _first(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
