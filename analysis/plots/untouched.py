"""What the machine does where nothing is changed, beside the effects of keys: the A/A check, drawn as they are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from analysis.studies.keys.terms import Term
from analysis.wording import number

from .measures import minus

if TYPE_CHECKING:
    from analysis.studies.keys.terms import Effects
    from analysis.terms import Comparison, Run

    from .designed import Part
    from .scene import Scene


def untouched(scene: Scene, run: Run, effects: Effects) -> Term | None:
    """Answer the A/A check of a workload as if it were an effect: numbers of `compare`, judged as the effects judge it; None without."""
    place = run.origin, effects.observed.study, effects.observed.workload
    checks = [one for one in scene.comparisons if one.untouched and (one.candidate_run, one.study, one.workload) == place]
    return next((_as_term(one, fails=fails(effects, one)) for one in checks), None) if effects.observed.scale == "log" else None


def fails(effects: Effects, check: Comparison) -> bool:
    """Whether the A/A check fails, by the harder of two rules: that of the effects has no adjustment."""
    return effects.again_fails or check.verdict == "not comparable"


def _as_term(one: Comparison, *, fails: bool) -> Term | None:
    if one.primary is None:
        return None
    low, gain, high = one.primary.low, one.primary.gain, one.primary.high
    return Term(
        label=one.tweakset,
        factors=(one.tweakset,),
        means="set",
        effect=math.log1p(gain),
        se=None,
        df=None,
        low=math.log1p(low),
        high=math.log1p(high),
        gain=gain,
        gain_low=low,
        gain_high=high,
        p=one.primary.p,
        p_adjusted=None,
        adjustment="",
        family=0,
        share=None,
        verdict="not comparable" if fails else "equivalent" if one.verdict == "equivalent" else "inconclusive",
    )


def distrust(part: Part) -> list[str]:
    """Say that a failed A/A check lets nothing be called."""
    if part.again is None or part.again.verdict != "not comparable":
        return []
    size = minus(f"{number(part.again.gain or 0.0)} %")
    return [f"{part.title}: {part.again.label} changes nothing and differs from stock all the same ({size}): no effect is called there."]


def is_called(scene: Scene, one: Comparison) -> bool:
    """Whether a comparison is improved or regressed, and no A/A check beside it fails."""
    if one.verdict not in {"improved", "regressed"}:
        return False
    place = one.candidate_run, one.study, one.workload
    beside = [other for other in scene.comparisons if other.untouched and (other.candidate_run, other.study, other.workload) == place]
    known = [found for found in scene.effects.get(one.candidate_run, ()) if (found.observed.study, found.observed.workload) == place[1:]]
    return not any(other.verdict == "not comparable" for other in beside) and not any(found.again_fails for found in known)
