"""The first thing a reader sees: one sentence a workload, in verdict words, with what is claimed and what is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from analysis.checks import LEVEL, OTHERS, share_of_others
from analysis.labels import short_names
from analysis.stats.effect import ROUNDING
from analysis.terms import Comparison, Run, Verdict
from analysis.verdict import ONE_RUN
from analysis.wording import interval, number, percent, spoken, unsigned
from control.names import undigested
from control.t_test import TInterval, t_interval

FEWEST = 4  # blocks that show a drift
# The order in which a reader wants to hear of them.
VERDICTS: tuple[Verdict, ...] = ("regressed", "improved", "equivalent", "inconclusive", "not comparable")


@dataclass(frozen=True, slots=True)
class WorkloadAnswer:
    """What is said of one workload; `verdicts` counts its tweak sets by word, controls left out."""

    workload: str
    verdicts: dict[Verdict, int]
    sentence: str

    @property
    def differs(self) -> bool:
        """Whether a tweak set is shown to be faster or slower."""
        return bool(self.verdicts.keys() & {"improved", "regressed"})

    @property
    def claims(self) -> bool:
        """Whether anything is claimed, an effect or that there is none."""
        return self.differs or "equivalent" in self.verdicts


def answers(run: Run, comparisons: Sequence[Comparison]) -> list[WorkloadAnswer]:
    """Return every workload of a run that was compared: those with a difference first, else in the order of the comparisons."""
    result, names = [], short_names(run.workloads)
    for workload in dict.fromkeys(comparison.workload for comparison in comparisons):
        rows = [comparison for comparison in comparisons if comparison.workload == workload and not is_control(run, comparison)]
        if rows:
            result.append(WorkloadAnswer(names.get(workload, workload), counted(rows), _sentence(rows)))
    return sorted(result, key=lambda one: not one.differs)


def counted(comparisons: Sequence[Comparison]) -> dict[Verdict, int]:
    counts = {word: sum(comparison.verdict == word for comparison in comparisons) for word in VERDICTS}
    return {word: count for word, count in counts.items() if count}


def is_control(run: Run, comparison: Comparison) -> bool:
    """Whether a comparison is of the untouched machine with itself, as stock-again is: it answers no question, it checks the others."""
    if not run.replicated or comparison.baseline_run != comparison.candidate_run:
        return False
    arms = [run.tweaksets[name] for name in (*(comparison.baseline_arms or [comparison.baseline]), comparison.tweakset)]
    return not any(arm.requested or arm.scripts or arm.monitor for arm in arms)


def control(run: Run, comparisons: Sequence[Comparison], doubted: Sequence[str] = ()) -> str | None:
    """Say what became of the A/A comparisons; None where the run has none.

    `doubted` are workloads where the effects' own check of the control fails: of two checks the worse one is told.
    """
    rows = [comparison for comparison in comparisons if is_control(run, comparison)]
    if not rows:
        return None
    name = " and ".join(dict.fromkeys(row.tweakset for row in rows))
    judged = [row for row in rows if row.primary is not None]
    unlike = [comparison.workload for comparison in judged if comparison.verdict == "not comparable"]
    differing = list(dict.fromkeys(map(undigested, [*unlike, *doubted])))
    if differing:
        return f"Control: {name} changes nothing and differs all the same under {joined(differing)}: trust no verdict there."
    if not judged:
        return f"Control: {name} could not be compared; see the table."
    doubtful = [undigested(comparison.workload) for comparison in judged if comparison.primary is not None and comparison.primary.p < LEVEL]
    if doubtful:
        return f"Control: {name} changes nothing, yet appears to differ under {joined(doubtful)}: see the warning."
    where = undigested(judged[0].workload) if len(judged) == 1 else f"any of {len(judged)} workloads"
    return f"Control: {name} changes nothing, and no difference from {judged[0].baseline} was found under {where}."


@dataclass(frozen=True, slots=True)
class Trust:
    """One thing that says how far a run can be trusted: `tone` is good, open or bad."""

    name: str
    says: str
    tone: str


def trust(run: Run, comparisons: Sequence[Comparison]) -> list[Trust]:
    """Equal arms, other programs, drift, what could be seen, how much was measured; what is not known is left out."""
    result = []
    gains = [abs(comparison.primary.gain) for comparison in comparisons if is_control(run, comparison) and comparison.primary]
    if gains:
        worst = max(gains)
        margin = max(comparison.margin for comparison in comparisons)
        result.append(Trust("Equal arms differ by", f"{unsigned(worst)} at most", "good" if worst <= margin else "open"))
    shares = [share for cell in run.cells if cell.outcome == "measured" and (share := share_of_others(run, cell)) is not None]
    if shares:
        share = median(shares)
        result.append(Trust("Other programs, median", f"{unsigned(share)} of the CPUs", "good" if share <= OTHERS else "bad"))
    if drift := _drift(run, comparisons):
        gain, low, high = map(math.expm1, drift[:3])
        tone = "good" if max(abs(low), abs(high)) <= comparisons[0].margin else "open"
        result.append(Trust("Drift of the baseline", f"{percent(gain)} [{number(low)}, {number(high)}]", tone))
    seen = sorted(comparison.mde for comparison in comparisons if comparison.mde is not None and not is_control(run, comparison))
    if seen:
        middle, margin = median(seen), max(comparison.margin for comparison in comparisons)
        tone = "good" if middle <= 2 * margin else "open"
        result.append(Trust("Would have seen", f"{unsigned(middle)}, at worst {unsigned(seen[-1])}", tone))
    measured = sum(cell.outcome == "measured" for cell in run.cells)
    result.append(Trust("Measured", f"{measured} of {len(run.cells)} cells", "good" if measured == len(run.cells) else "open"))
    return result


def _drift(run: Run, comparisons: Sequence[Comparison]) -> TInterval | None:
    """By how much the baseline's speed changed from the first block to the last, with its 95 % interval, as logs of the ratio.

    By least squares: one line for all workloads, each from its own level. None where fewer than four blocks were paired, or nothing varied.
    """
    paired = [one for one in comparisons if run.replicated and one.primary and one.primary.design == "paired" and one.pairs >= FEWEST]
    longest = {(one.study, one.workload): one.primary for one in sorted(paired, key=lambda one: one.pairs)}
    points: list[tuple[float, float]] = []
    for effect in filter(None, longest.values()):
        logs = [math.log(value) * (1 if effect.metric.better == "higher" else -1) for value in effect.values_baseline]
        level = fmean(logs)
        points += [(at / (len(logs) - 1) - 0.5, value - level) for at, value in enumerate(logs)]
    if not points:
        return None
    across = math.fsum(x * x for x, _ in points)
    slope = math.fsum(x * y for x, y in points) / across
    df = len(points) - len(longest) - 1
    rest = math.fsum((y - slope * x) ** 2 for x, y in points)
    return t_interval(slope, math.sqrt(rest / df / across), df) if rest > ROUNDING**2 else None


def nothing_compared(run: Run, comparisons: Sequence[Comparison]) -> str:
    if comparisons:
        return f"The run has no tweak set: {run.baseline}, the untouched machine, was compared with itself."
    if not run.replicated:
        return f"Can't tell: {ONE_RUN}. There is one configuration in this file and nothing to compare it with."
    return f"Nothing was compared: the run has no measured cell beside those of {run.baseline}."


def joined(names: Sequence[str]) -> str:
    """Write names as in a sentence: `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _sentence(rows: Sequence[Comparison]) -> str:
    parts = []
    for word in VERDICTS:
        chosen = [row for row in rows if row.verdict == word]
        if chosen:
            parts.append(_part(word, chosen, everything=len(chosen) == len(rows)))
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _part(word: Verdict, rows: Sequence[Comparison], *, everything: bool) -> str:
    names = [row.tweakset for row in rows]
    if word in {"improved", "regressed"}:
        return f"{spoken(word)} with {joined([_effect(row) for row in rows])}"
    who = f"all {len(names)} tweak sets" if everything and len(names) > 3 else joined(names)
    if word == "equivalent":
        margin = max(row.margin for row in rows)
        return f"the same as {rows[0].baseline} within {unsigned(margin)}: {who}"
    if word == "inconclusive":
        seen = sorted(row.mde for row in rows if row.mde is not None)
        return f"{'nothing is claimed: ' if everything else ''}can't tell for {who}{_missed(seen) or _alone(rows)}"
    return f"{'no verdict: ' if everything else ''}not comparable for {who}, for the reason in the table"


def _effect(comparison: Comparison) -> str:
    effect = comparison.primary
    return (
        comparison.tweakset
        if effect is None
        else f"{comparison.tweakset} ({percent(effect.gain)} in speed, 95 % interval {interval(effect)})"
    )


def _missed(seen: Sequence[float]) -> str:
    if not seen:
        return ""
    low, high = unsigned(seen[0]), unsigned(seen[-1])
    size = low if low == high else f"{low.removesuffix(' %')} to {high}"
    return f" (a difference below {size} may have been missed)"


def _alone(rows: Sequence[Comparison]) -> str:
    return f" ({ONE_RUN})" if any(row.observed is not None for row in rows) else ""
