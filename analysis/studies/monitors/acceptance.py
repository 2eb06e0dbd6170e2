"""What a study of monitors must show to be believed, each demand with the figures it was decided by.

What slows an interpreter (a profiler of Python calls, a thread that takes its lock) is asked of the workload that is one; the A/A, the
order of rates and the house's own sampler of every workload. NOT SHOWN is neither: the figures leave it open, or the arm was not measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.wording import probability, unsigned
from control.t_test import ALPHA

from .arms import amount, ends, shown, signed
from .records import INSIDE
from .terms import Check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Control, Dose, MonitoredArm, OverheadFigure, Passed

INTERPRETED = "python_loop"
OFTENER = "dearer the oftener"
PROFILE, THREAD, SAMPLER = "cprofile", "psutil_thread", "sampler"
PROFILED = 0.30  # what cProfile costs an interpreter at least
QUICK_PER_S = 100.0
SAMPLER_PER_S = 10.0
SAMPLER_CORE = 0.005  # of one core
SAMPLER_MARGIN = 0.01


def checks(  # noqa: PLR0913, PLR0917  # what a workload is judged by
    workload: str,
    state: Control,
    arms: Sequence[MonitoredArm],
    doses: Sequence[Dose],
    below: OverheadFigure | None,
    margin: float,
    *,
    turns: bool = False,
) -> tuple[Check, ...]:
    """Hold one workload against the demands; where its A/A differs, nothing else is shown.

    Where monitors took `turns` inside processes nothing is asked of those inside a process: they cannot. Their own CPU is then no less than
    it is at work without a pause.
    """
    result = [_again(state)]
    if workload.partition(":")[0] == INTERPRETED and not turns:
        result += [_profile(named(arms, PROFILE)), _thread(quick_thread(arms), below)]
    result += [] if turns else _orders(arms, doses)
    result += [check for arm in [_sampler(arms)] for check in (_core(arm, turns=turns), _equivalent(arm, margin))]
    if state.state == "differs":
        result[1:] = [Check(check.name, "NOT SHOWN", "the A/A differs") for check in result[1:]]
    return tuple(result)


def named(arms: Sequence[MonitoredArm], base: str) -> MonitoredArm | None:
    """The arm of a monitor; of several the first."""
    return next((arm for arm in arms if arm.base == base and arm.cpu is not None), None)


def quick_thread(arms: Sequence[MonitoredArm]) -> MonitoredArm | None:
    """The thread that samples every 10 ms."""
    return next((arm for arm in arms if arm.base == THREAD and arm.rate_per_s == QUICK_PER_S and arm.cpu is not None), None)


def _sampler(arms: Sequence[MonitoredArm]) -> MonitoredArm | None:
    return next((arm for arm in arms if arm.base == SAMPLER and arm.cpu is not None and arm.rate_per_s in {SAMPLER_PER_S, None}), None)


def _again(state: Control) -> Check:
    name = "A/A: its interval contains 0"
    if state.figure is None:
        return Check(name, "NOT SHOWN", state.sentence)
    wide = f"; half of it is {unsigned(state.half or 0.0)}, so wide that 0 is hardly missed: underpowered"
    passed: Passed = {"differs": "FAIL", "quiet": "PASS"}.get(state.state, "NOT SHOWN")  # type: ignore[assignment]  # of these three
    return Check(name, passed, f"{shown(state.figure)}{wide if state.state == 'underpowered' else ''}")


def _profile(arm: MonitoredArm | None) -> Check:
    name = f"{PROFILE} costs over {unsigned(PROFILED)}"
    if arm is None or arm.cpu is None:
        return Check(name, "NOT SHOWN", "not measured")
    return Check(name, _verdict(arm.cpu.low > PROFILED, arm.cpu.high < PROFILED), shown(arm.cpu))


def _thread(arm: MonitoredArm | None, below: OverheadFigure | None) -> Check:
    name = f"{THREAD} each 10 ms costs, and less than {PROFILE}"
    if arm is None or arm.cpu is None:
        return Check(name, "NOT SHOWN", "not measured")
    if below is None:
        return Check(name, "NOT SHOWN", f"{shown(arm.cpu)}; no {PROFILE} to be below")
    good, bad = arm.cpu.low > 0 and below.low > 0, arm.cpu.high < 0 or below.high < 0
    return Check(name, _verdict(good, bad), f"{shown(arm.cpu)}; {PROFILE} against it {amount(below)} {ends(below)}")


def _orders(arms: Sequence[MonitoredArm], doses: Sequence[Dose]) -> list[Check]:
    """Ask it of monitors inside the process: what one beside it takes is its own, and no seconds of the steps."""
    inside = {arm.tweakset for arm in arms if arm.kind == INSIDE}
    result = [_order(dose) for dose in doses if inside.issuperset(dose.arms)]
    return result or [Check(f"{THREAD}: {OFTENER}", "NOT SHOWN", "not measured at two rates in 3 blocks")]


def _order(dose: Dose) -> Check:
    passed: Passed = {"holds": "PASS", "contradicted": "FAIL", "not shown": "NOT SHOWN"}[dose.trend]  # type: ignore[assignment]  # of these three
    against = f", against it {probability(dose.p_against)}" if dose.p_against < ALPHA else ""
    means = ", ".join(f"{signed(mean)} at {rate:g}/s" for mean, rate in zip(dose.means, dose.rates_per_s, strict=True))
    return Check(f"{dose.family}: {OFTENER}", passed, f"{dose.test}, Holm p {probability(dose.p)}{against}, n {dose.blocks}: {means}")


def _core(arm: MonitoredArm | None, *, turns: bool) -> Check:
    name = f"{SAMPLER} at 10 Hz takes at most {SAMPLER_CORE * 100:g} % of a core"
    core = arm.own.core if arm is not None else None
    if core is None:
        return Check(name, "NOT SHOWN", "not measured" if arm is None else _why_no_core(arm))
    if core.low is None or core.high is None:
        return Check(name, "NOT SHOWN", f"{100 * core.value:.2f} %, 1 block")
    figures = f"{100 * core.value:.2f} % [{100 * core.low:.2f}, {100 * core.high:.2f}], n {core.n}"
    if arm is not None and arm.own.unproven:
        return Check(name, "NOT SHOWN", f"{figures}: {arm.own.unproven}")
    if turns and core.high > SAMPLER_CORE:
        return Check(name, "NOT SHOWN", f"{figures}: with what it takes to be stopped and let go on; whole cells are without that")
    return Check(name, _verdict(core.high <= SAMPLER_CORE, core.low > SAMPLER_CORE), figures)


def _why_no_core(arm: MonitoredArm) -> str:
    return next((arm.missing[name] for name in ("monitor.cpu_s", "monitor.wall_s") if name in arm.missing), "its CPU time is not known")


def _equivalent(arm: MonitoredArm | None, margin: float) -> Check:
    name = f"{SAMPLER} at 10 Hz: no effect on CPU beyond ±{unsigned(SAMPLER_MARGIN)}"
    if arm is None or arm.cpu is None or arm.cpu.p_equivalent is None:
        return Check(name, "NOT SHOWN", "not measured")
    figures = f"{shown(arm.cpu)}, TOST p {probability(arm.cpu.p_equivalent)}"
    if margin > SAMPLER_MARGIN:
        return Check(name, "NOT SHOWN", f"{figures} for the study's margin, {unsigned(margin)}")
    beyond = arm.cpu.low > SAMPLER_MARGIN or arm.cpu.high < -SAMPLER_MARGIN
    return Check(
        name, _verdict(arm.verdict == "equivalent", beyond), figures if arm.verdict != "inconclusive" else f"{figures}: {arm.said}"
    )


def _verdict(good: bool, bad: bool) -> Passed:  # noqa: FBT001  # two answers to one question
    return "PASS" if good else "FAIL" if bad else "NOT SHOWN"
