"""The demands on a study of monitors, each with the figures it was decided by.

What slows an interpreter (a profiler of Python calls, a thread that takes its lock) is asked of the workload that is one; the A/A, the
order of rates and the house's own sampler of every workload. NOT SHOWN is neither: the figures leave it open, or the arm was not measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.wording import probability, unsigned
from control.t_test import ALPHA

from .records import INSIDE
from .terms import Check, Control, Dose, MonitoredArm, OverheadFigure, Passed, State, Trend, percent

INTERPRETED = "python_loop"
PROFILE, THREAD, SAMPLER = "cprofile", "psutil_thread", "sampler"
PROFILED = 0.30  # what cProfile costs an interpreter at least
QUICK_PER_S = 100.0
SAMPLER_PER_S = 10.0
SAMPLER_CORE = 0.005  # of one core
SAMPLER_MARGIN = 0.01
STATES: dict[State, Passed] = {"differs": "FAIL", "quiet": "PASS"}
TRENDS: dict[Trend, Passed] = {"holds": "PASS", "contradicted": "FAIL"}


def checks(
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
    wide = f"; half of it is {unsigned(state.half or 0.0)}, so wide that 0 is hardly missed"
    figures = f"{state.figure}{wide if state.state == 'underpowered' else ''}" if state.figure else state.sentence
    result = [Check("A/A: its interval contains 0", STATES.get(state.state, "NOT SHOWN"), figures)]
    if workload.partition(":")[0] == INTERPRETED and not turns:
        result += [_profile(named(arms, PROFILE)), _thread(quick_thread(arms), below)]
    result += [] if turns else _orders(arms, doses)
    sampler = next((arm for arm in arms if arm.base == SAMPLER and arm.cpu and arm.rate_per_s in {SAMPLER_PER_S, None}), None)
    result += [_core(sampler, turns=turns), _equivalent(sampler, margin)]
    if state.state == "differs":
        result[1:] = [Check(check.name, "NOT SHOWN", "the A/A differs") for check in result[1:]]
    return tuple(result)


def named(arms: Sequence[MonitoredArm], base: str) -> MonitoredArm | None:
    return next((arm for arm in arms if arm.base == base and arm.cpu is not None), None)


def quick_thread(arms: Sequence[MonitoredArm]) -> MonitoredArm | None:
    return named([arm for arm in arms if arm.rate_per_s == QUICK_PER_S], THREAD)


def _profile(arm: MonitoredArm | None) -> Check:
    name = f"{PROFILE} costs over {unsigned(PROFILED)}"
    if arm is None or arm.cpu is None:
        return Check(name, "NOT SHOWN", "not measured")
    return Check(name, _passed(arm.cpu.low > PROFILED, arm.cpu.high < PROFILED), str(arm.cpu))


def _thread(arm: MonitoredArm | None, below: OverheadFigure | None) -> Check:
    name = f"{THREAD} each 10 ms costs, and less than {PROFILE}"
    if arm is None or arm.cpu is None:
        return Check(name, "NOT SHOWN", "not measured")
    if below is None:
        return Check(name, "NOT SHOWN", f"{arm.cpu}; no {PROFILE} to be below")
    good, bad = arm.cpu.low > 0 and below.low > 0, arm.cpu.high < 0 or below.high < 0
    return Check(name, _passed(good, bad), f"{arm.cpu}; {PROFILE} against it {below.amount} {below.ends}")


def _orders(arms: Sequence[MonitoredArm], doses: Sequence[Dose]) -> list[Check]:
    """Ask it of monitors inside the process: what one beside it takes is its own, and no seconds of the steps."""
    inside = {arm.tweakset for arm in arms if arm.kind == INSIDE}
    result = [_order(dose) for dose in doses if inside.issuperset(dose.arms)]
    return result or [Check(f"{THREAD}: dearer the oftener", "NOT SHOWN", "not measured at two rates in 3 blocks")]


def _order(dose: Dose) -> Check:
    against = f", against it {probability(dose.p_against)}" if dose.p_against < ALPHA else ""
    means = ", ".join(f"{percent(mean)} % at {rate:g}/s" for mean, rate in zip(dose.means, dose.rates_per_s, strict=True))
    figures = f"{dose.test}, Holm p {probability(dose.p)}{against}, n {dose.blocks}: {means}"
    return Check(f"{dose.family}: dearer the oftener", TRENDS.get(dose.trend, "NOT SHOWN"), figures)


def _core(arm: MonitoredArm | None, *, turns: bool) -> Check:
    name = f"{SAMPLER} at 10 Hz takes at most {SAMPLER_CORE * 100:g} % of a core"
    core = arm.own.core if arm is not None else None
    if arm is None or core is None:
        missing = arm.missing if arm else {"monitor.cpu_s": "not measured"}
        reasons: Iterator[str] = (missing[key] for key in ("monitor.cpu_s", "monitor.wall_s") if key in missing)
        return Check(name, "NOT SHOWN", next(reasons, "its CPU time is not known"))
    if core.low is None or core.high is None:
        return Check(name, "NOT SHOWN", f"{100 * core.value:.2f} %, 1 block")
    figures = f"{100 * core.value:.2f} % [{100 * core.low:.2f}, {100 * core.high:.2f}], n {core.n}"
    if arm.own.unproven:
        return Check(name, "NOT SHOWN", f"{figures}: {arm.own.unproven}")
    if turns and core.high > SAMPLER_CORE:
        return Check(name, "NOT SHOWN", f"{figures}: with what it takes to be stopped and let go on; whole cells are without that")
    return Check(name, _passed(core.high <= SAMPLER_CORE, core.low > SAMPLER_CORE), figures)


def _equivalent(arm: MonitoredArm | None, margin: float) -> Check:
    name = f"{SAMPLER} at 10 Hz: no effect on CPU beyond ±{unsigned(SAMPLER_MARGIN)}"
    if arm is None or arm.cpu is None or arm.cpu.p_equivalent is None:
        return Check(name, "NOT SHOWN", "not measured")
    figures = f"{arm.cpu}, TOST p {probability(arm.cpu.p_equivalent)}"
    if margin > SAMPLER_MARGIN:
        return Check(name, "NOT SHOWN", f"{figures} for the study's margin, {unsigned(margin)}")
    figures = f"{figures}: {arm.said}" if arm.verdict == "inconclusive" else figures
    beyond = arm.cpu.low > SAMPLER_MARGIN or arm.cpu.high < -SAMPLER_MARGIN
    return Check(name, _passed(arm.verdict == "equivalent", beyond), figures)


def _passed(good: bool, bad: bool) -> Passed:  # noqa: FBT001  # two answers to one question
    return "PASS" if good else "FAIL" if bad else "NOT SHOWN"
