"""Hoefler and Belli's twelve rules for reporting measurements, each evaluated from the run; none is ticked by default.

Source: Hoefler & Belli, Scientific Benchmarking of Parallel Computing Systems, SC '15, doi 10.1145/2807591.2807644; paraphrased.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .rules_inference import comparison_is_sound, intervals_are_given, normality_is_checked
from .rules_numbers import base_is_given, bounds_are_shown, means_fit, ratios_are_not_averaged, summary_fits
from .rules_setup import parallel_times_are_explained, pictures_are_drawn, setup_is_documented, subsets_are_justified

if TYPE_CHECKING:
    from collections.abc import Callable

    from .subject import Answer, State, Subject

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
    """Evaluate all twelve rules for one run."""
    rules = []
    for number, (says, evaluate) in enumerate(RULES, 1):
        state, reason = evaluate(subject)
        rules.append(ReportRule(number, says, state, reason[:1].upper() + reason[1:]))
    return rules
