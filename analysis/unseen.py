"""Why a run saw nothing: how noisy it was, what it could have seen, how busy others were, and how long it would take."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from .checks import share_of_others
from .printing import duration
from .terms import Refused
from .verdict import without_guards
from .wording import LARGEST, unsigned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Comparison, Run

SEEN = frozenset({"improved", "regressed", "equivalent"})


@dataclass(frozen=True, slots=True)
class Unseen:
    """Why none of a run's contrasts is decided. Shares are fractions; None is what the run does not say.

    `aa_log_sd`: how far the log ratio of two untouched arms scatters between blocks; `mde`: the smallest gain that would have been
    called; `others`: the share of all CPUs that other programs used; each the median. To see the `margin` takes `plan_blocks` and `plan_s`
    seconds, which may be more than this machine is to be had for.
    """

    contrasts: int
    blocks: int
    margin: float
    reason: str
    aa_log_sd: float | None
    mde: float | None
    others: float | None
    plan_blocks: int | None
    plan_s: float | None
    on_this_machine: bool | None
    sentence: str


def unseen(comparisons: Sequence[Comparison], run: Run) -> Unseen | None:
    """Say why a run saw nothing; None where it saw something, or changed nothing and was not to see anything."""
    asked = [guard for guard in without_guards(comparisons) if not guard.untouched]
    if not asked or not run.replicated or any(comparison.verdict in SEEN for comparison in asked):
        return None
    mdes = [comparison.mde for comparison in asked if comparison.mde is not None]
    untouched = [comparison.primary.log_sd for comparison in comparisons if comparison.untouched and comparison.primary]
    others = [share for cell in run.cells if (share := share_of_others(run, cell)) is not None]
    margin = min(comparison.margin for comparison in asked)
    blocks, takes_s, here = _planned(run, margin) if mdes else (None, None, None)
    result = Unseen(
        contrasts=len(asked),
        blocks=max(comparison.pairs for comparison in asked),
        margin=margin,
        reason=Counter(comparison.reason for comparison in asked).most_common(1)[0][0],
        aa_log_sd=median(untouched) if untouched else None,
        mde=median(mdes) if mdes else None,
        others=median(others) if others else None,
        plan_blocks=blocks,
        plan_s=takes_s,
        on_this_machine=here,
        sentence="",
    )
    return replace(result, sentence=_sentence(result))


def _planned(run: Run, gain: float) -> tuple[int | None, float | None, bool | None]:
    from analysis.studies.plan.plan import Goal, plan  # noqa: PLC0415  # only a run that saw nothing needs it

    try:
        result = plan(run, Goal(gain))
    except (Refused, ValueError):  # no pilot for a plan, or no spread left in it: then the run says no more than its own noise
        return None, None, None
    return result.blocks, result.total_s, result.on_this_machine


def _sentence(one: Unseen) -> str:
    head = f"Nothing was seen: {'the one contrast is not' if one.contrasts == 1 else f'none of {one.contrasts} contrasts is'} decided."
    if one.mde is None:
        return f"{head} Most often: {one.reason}"
    noise = "" if one.aa_log_sd is None else f"equal arms differ by {unsigned(one.aa_log_sd)} from block to block (A/A), so "
    busy = "" if one.others is None else f"; other programs used {unsigned(one.others)} of the CPUs"
    least = unsigned(one.mde) + (" or more" if one.mde < LARGEST else "")
    seen = f"{noise}{one.blocks} blocks would show differences of {least} (median MDE){busy}."
    return f"{head} {seen[0].upper()}{seen[1:]} {_way_out(one)}".rstrip()


def _way_out(one: Unseen) -> str:
    if one.on_this_machine is None:
        return ""
    if not one.on_this_machine:
        return f"{unsigned(one.margin)} cannot be seen on this machine within a day (`plan`)."
    time = "" if one.plan_s is None else f", {duration(one.plan_s)}"
    return f"To see {unsigned(one.margin)} takes {one.plan_blocks} blocks{time} (`plan`)."
