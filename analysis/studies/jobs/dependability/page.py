"""What faults cost, checkpoint intervals and lossy lines, as text of at most 100 columns and as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import one_line, printable_json
from analysis.printing import columns, hanging, in_lines, on_page
from analysis.studies.jobs.output import NONE, figure, number, ratio_text
from analysis.wording import percent, probability, unsigned

from .network import LOSS_RULE
from .study import RULE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from analysis.studies.jobs.estimates import Figure

    from .checkpoints import CheckpointTrial
    from .intervals import Advice, CheckpointPlan, PlayedInterval
    from .network import AtLoss, Line
    from .study import FaultArm, Poisoning, SparedJobs


LEGEND = (
    "useful: what is left of the time of all attempts without lost work, checkpoints, and jobs that never got done. lost s: a stream.",
    "slowdown: mean response of the jobs that both got done, over that without the fault. goodput: work done a second, likewise.",
    "intervals of 95 % over blocks, each a pair; p after Holm over all faults. restart: from the fault to the next attempt.",
    "recovered: from the fault until it is over, its jobs are done, and as many jobs are done as by then without it.",
)
STYLES = {"isolated": "green", "not isolated": "bold red", "open": "yellow"}


def report_json(
    arms: Sequence[FaultArm], policies: Sequence[SparedJobs], poisonings: Sequence[Poisoning], margin: float, refused: Sequence[str]
) -> str:
    """Write all of it for programs; the fields are those of the terms."""
    found = {"arms": [*map(asdict, arms)], "policies": [*map(asdict, policies)], "poisonings": [*map(asdict, poisonings)]}
    return printable_json({**found, "margin": margin, "rule": RULE, "refused": list(refused)})


def report(
    arms: Sequence[FaultArm], policies: Sequence[SparedJobs], poisonings: Sequence[Poisoning], margin: float, *, color: bool = False
) -> str:
    """Write it for people."""
    return on_page(_parts(arms, policies, poisonings, margin), color=color)


def _parts(
    arms: Sequence[FaultArm], policies: Sequence[SparedJobs], poisonings: Sequence[Poisoning], margin: float
) -> Iterator[RenderableType]:
    faulty = {arm.condition for arm in arms if arm.fault}
    for condition in dict.fromkeys(arm.condition for arm in arms):
        if condition in faulty:
            yield Text(in_lines(one_line(condition)), "bold")
            yield from _condition([arm for arm in arms if arm.condition == condition], margin)
            yield ""
    if policies:
        yield Text("policies under the same fault: response of the stream's own jobs, over that under fifo", "bold")
        rows = [[one_line(f"{one.policy}, {one.label}"), f"{one.blocks}", ratio_text(one.response), _p(one.p)] for one in policies]
        yield columns(("", "blocks", "response [95 %]", "p"), rows)
        yield hanging(("•", f"{one_line(f'{one.policy}, {one.label}')}: {one.why}") for one in policies if one.why)
        yield ""
    if not faulty and not poisonings:
        yield Text("No stream of these had a fault: nothing to judge. `fault=kill` and others are parameters of job_stream.")
    if poisonings:
        yield from _poisonings(poisonings)
    if faulty:
        yield hanging((("•", line) for line in LEGEND), "dim", "dim")


def _condition(arms: Sequence[FaultArm], margin: float) -> Iterator[RenderableType]:
    heads = ("", "blocks", "done", "useful", "lost s", "slowdown [95 %]", "p", "goodput")
    yield columns(heads, map(_arm, arms))
    faulty = [arm for arm in arms if arm.strikes]
    if faulty:
        yield ""
        times = ("restart s", "lost s a hit", "recovered s [95 %]", "of")
        yield columns(("", "faults", "hit", *times, "available"), map(_recovery, faulty))
    for arm in arms:
        if arm.isolation:
            word = Text(f"• {one_line(arm.label)}: ")
            word.append(arm.isolation, STYLES.get(arm.isolation, ""))
            if arm.slowdown and arm.slowdown.low90 is not None:
                word.append(f" (margin {unsigned(margin)}; 90 % {number(arm.slowdown.low90)} to {number(arm.slowdown.high90)})")
            yield word
    yield hanging(("•", line) for line in _notes(arms))
    if any(arm.isolation for arm in arms):
        yield hanging([("•", RULE)], "dim", "dim")


def _arm(arm: FaultArm) -> list[str]:
    jobs = sum(arm.outcomes.values())
    goodput = NONE if arm.goodput is None else number(arm.goodput.value)
    useful = NONE if arm.useful is None else f"{100 * arm.useful.value:.1f} %"
    lost_s = NONE if arm.lost_s is None else number(arm.lost_s.value)
    return [
        one_line(arm.label),
        f"{arm.blocks}",
        f"{arm.outcomes.get('done', 0)}/{jobs}",
        useful,
        lost_s,
        ratio_text(arm.slowdown),
        _p(arm.p),
        goodput,
    ]


def _p(p: float | None) -> str:
    return NONE if p is None else probability(p)


def _recovery(arm: FaultArm) -> list[str]:
    available = NONE if arm.available is None else f"{100 * arm.available.value:.2f} %"
    of = f"{arm.recovered}/{arm.strikes}"
    restart_s, lost_s = (NONE if one is None else number(one.value) for one in (arm.restart_s, arm.lost_s_per_hit))
    return [one_line(arm.label), f"{arm.strikes}", f"{arm.hit}", restart_s, lost_s, figure(arm.recovery_s), of, available]


def _notes(arms: Sequence[FaultArm]) -> Iterator[str]:
    """Every note once, with the arms it is of."""
    found: dict[str, list[str]] = {}
    for arm in arms:
        for note in _of(arm):
            found.setdefault(one_line(note), []).append(one_line(arm.label))
    for note, labels in found.items():
        yield f"{', '.join(labels)}: {note}"


def _of(arm: FaultArm) -> Iterator[str]:
    yield from (f"faults without a recovery time: {why}." for why in sorted(arm.whys))
    if arm.given_up:
        yield f"{arm.given_up} of {arm.hit} jobs that it hit never ran again."
    if arm.lost_jobs:
        others = "slowdowns are of the others" if arm.slowdown is not None else "nothing is left to compare"
        sooner = ", which are sooner only because these left them the slots" if arm.thinned else ""
        yield f"{arm.lost_jobs} jobs were done without the fault, and not with it; {others}{sooner}."
    if arm.fault and arm.slowdown is not None and arm.slowdown.why:
        yield f"{arm.slowdown.why}."
    yield from arm.notes


def _poisonings(found: Sequence[Poisoning]) -> Iterator[RenderableType]:
    yield Text("accuracy of federated runs", "bold")
    rows = [
        [
            one_line(one.setting or one.condition),
            f"{one.poisoned:g}",
            f"{one.jobs}",
            figure(one.accuracy, 100),
            figure(one.drop, 100) if one.poisoned else NONE,
        ]
        for one in found
    ]
    yield columns(("", "poisoned", "jobs", "accuracy % [95 %]", "lost, points [95 %]"), rows)
    if any(one.poisoned and one.drop is None for one in found):
        yield hanging([("•", "no loss of accuracy where no block has the same without poisoned clients.")])
    for clean in dict.fromkeys(one.clean for one in found if one.clean not in {"", one.setting}):
        yield hanging([("•", f"what has no clean run of its own is held against {one_line(clean)}.")])
    yield ""


def advice_json(advice: Advice | None, trials: Sequence[tuple[CheckpointTrial, Advice | None]], refused: Sequence[str]) -> str:
    """Write advice and trials for programs. An interval that is open has null at that end."""
    made = [{**asdict(trial), "advice": None if own is None else asdict(own)} for trial, own in trials]
    return printable_json({"advice": None if advice is None else asdict(advice), "trials": made, "refused": list(refused)})


def advice_page(advice: Advice | None, trials: Sequence[tuple[CheckpointTrial, Advice | None]], *, color: bool = False) -> str:
    """Write them for people."""
    parts = [] if advice is None else [*_advice(advice)]
    return on_page([*parts, *(part for trial, own in trials for part in _trial(trial, own))], color=color)


def simulated_json(asked: CheckpointPlan, advice: Advice, found: Sequence[PlayedInterval]) -> str:
    """Write a simulation for programs."""
    return printable_json(
        {"simulated": True, "asked": asdict(asked), "advice": asdict(advice), "intervals": [asdict(one) for one in found]}
    )


def simulated_page(asked: CheckpointPlan, advice: Advice, found: Sequence[PlayedInterval], *, color: bool = False) -> str:
    """Write it for people."""
    return on_page(_simulated(asked, advice, found), color=color)


def _advice(one: Advice) -> Iterator[RenderableType]:
    yield f"a checkpoint takes {number(one.cost_s)} s, failures come every {number(one.mtbf_s)} s on average, at random"
    rows = [
        ("Young", number(one.young_s, 6), _over(one.young_overhead)),
        ("Daly", number(one.daly_s, 6), _over(one.daly_overhead)),
        ("exact", number(one.best_s, 6), _over(one.best_overhead)),
    ]
    yield columns(("", "interval s", "time beyond the work"), rows)
    yield hanging([("•", f"from {number(one.low_s)} s to {number(one.high_s)} s the whole takes at most 1 % more than at the best.")])
    if one.too_dear:
        yield hanging([("•", "a checkpoint takes half the time between failures or more: the rules do not hold, and little gets done.")])
    yield ""


def _over(share: float) -> str:
    return "without end" if math.isinf(share) else unsigned(share)


def _trial(one: CheckpointTrial, advice: Advice | None) -> Iterator[RenderableType]:
    yield Text(in_lines(one_line(one.condition)), "bold")
    yield f"under {one_line(one.fault)}, {one.blocks} block{'s' if one.blocks > 1 else ''}"
    heads = ("checkpoint every s", "streams", "time/work [95 %]", "by Daly's formula", "more than the best", "p")
    rows = []
    for each in one.tried:
        more = "best" if each.more is None else percent(each.more)
        p = NONE if each.p is None else probability(each.p)
        every = f"{each.checkpoint_s:g}" if each.checkpoint_s else "none"
        rows.append([every, f"{each.streams}", figure(each.time), number(each.foretold), more if each.time else NONE, p])
    yield columns(heads, rows)
    yield hanging(("•", line) for line in _trial_lines(one, advice))
    yield ""


def _trial_lines(one: CheckpointTrial, advice: Advice | None) -> Iterator[str]:
    for each in one.tried:
        if each.lost:
            every = f"checkpoints every {each.checkpoint_s:g} s" if each.checkpoint_s else "no checkpoints"
            jobs = "job was not done and is" if each.lost == 1 else "jobs were not done and are"
            yield f"with {every} {each.lost} {jobs} in no time: it is worse than it looks."
    if one.mtbf_s is not None:
        yield f"{one.killed} attempts failed in {number(one.ran_s)} s of running: one running job fails every {_open_figure(one.mtbf_s)} s."
    else:
        yield "no attempt failed: there is no mean time between failures to reckon with."
    if one.cost_s is not None:
        yield f"a checkpoint took {number(one.cost_s)} s ({one.checkpoints} of them)."
    else:
        yield "no checkpoint was told with its cost."
    if one.restart_s is not None:
        yield f"the next attempt began {number(one.restart_s)} s after the failure, which no interval changes."
    if one.least_s is None:
        yield f"{one.why}."
    else:
        whys = "; ".join(why for why in (one.least_s.why, one.why) if why)
        yield f"least time by a + bτ + c/τ at {_open_figure(one.least_s)} s{f' ({whys})' if whys else ''}."
    if advice is not None:
        yield f"Young says {number(advice.young_s)} s, Daly {number(advice.daly_s)} s: {_against_daly(one, advice)}"


def _against_daly(one: CheckpointTrial, advice: Advice) -> str:
    if one.least_s is None or one.least_s.low is None or one.least_s.high is None:
        return "nothing here to hold them against."
    if math.isinf(one.least_s.high) and one.least_s.low == 0:
        return "these runs cannot tell."
    inside = one.least_s.low <= advice.daly_s <= one.least_s.high
    return f"Daly's lies {'inside' if inside else 'OUTSIDE'} the interval of the measured least."


def _open_figure(one: Figure) -> str:
    if one.low is None or one.high is None:
        return number(one.value)
    return f"{number(one.value)} [{number(one.low)}, {'∞' if math.isinf(one.high) else number(one.high)}]"


def _simulated(asked: CheckpointPlan, advice: Advice, found: Sequence[PlayedInterval]) -> Iterator[RenderableType]:
    failures = "at random" if asked.shape == 1 else f"by Weibull's law of shape {asked.shape:g}"
    yield Text(
        f"SIMULATED: {asked.seeds} jobs of {number(asked.work_s)} s of work for each interval, the same failures for all, every "
        f"{number(asked.mtbf_s)} s on average {failures}. A checkpoint takes {number(asked.cost_s)}, a restart {number(asked.restart_s)} s."
    )
    rows = [
        [
            number(one.interval_s),
            f"{one.time.value:.4f}" + ("" if one.time.high is None else f" ± {one.time.high - one.time.value:.4f}"),
            f"{one.formula:.4f}",
            "Daly's interval" if one.interval_s == advice.daly_s else ratio_text(one.against_daly),
        ]
        for one in found
    ]
    yield columns(("interval s", "time/work ± 95 %", "formula", "of Daly's [95 %]"), rows)
    best = min(found, key=lambda one: one.time.value)
    yield hanging([("•", _least(best, advice))])


def _least(best: PlayedInterval, advice: Advice) -> str:
    if best.interval_s == advice.daly_s:
        return "no other interval took less time than Daly's."
    against = best.against_daly
    shown = against is not None and against.high is not None and against.high < 1
    return f"least at {number(best.interval_s)} s, {'' if shown else 'not '}shown to be better than Daly's {number(advice.daly_s)} s."


SHAPES = {
    "√p": "as √p, as Mathis has it",
    "linear": "in proportion to the loss: each lost packet costs the same time, as timeouts do",
    "neither": "neither as √p nor in proportion to the loss",
    "open": "these runs cannot tell √p from proportion",
}


def loss_json(lines: Sequence[Line], refused: Sequence[str]) -> str:
    """Write all of it for programs; losses are fractions."""
    return printable_json({"lines": [asdict(one) for one in lines], "rule": LOSS_RULE, "refused": list(refused)})


def loss_page(lines: Sequence[Line], *, color: bool = False) -> str:
    """Write it for people."""
    parts = [part for one in lines for part in _line(one)]
    return on_page([*parts, hanging([("•", LOSS_RULE)], "dim", "dim")], color=color)


def _line(one: Line) -> Iterator[RenderableType]:
    yield Text(in_lines(one_line(one.name)), "bold")
    rtt = NONE if one.rtt_s is None else f"{number(one.rtt_s * 1e3)} ms"
    told = [f"round trip {rtt}, segments of {number(one.mss_bytes, 4)} bytes", one.congestion]
    yield ", ".join(one_line(part) for part in told if part)
    yield columns(
        ("loss %", "blocks", "step s", "slower [95 %]", "p", "comm. s", "Mathis s", "again %", "timeouts", "bound by"),
        map(_loss_row, one.losses),
    )
    yield hanging(("•", line) for line in _line_sentences(one))
    yield ""


def _loss_row(row: AtLoss) -> list[str]:
    communication = None if row.communication_s is None else row.communication_s.value
    return [
        f"{100 * row.loss:g}",
        f"{row.blocks}",
        NONE if row.step_s is None else number(row.step_s.value),
        ratio_text(row.slowdown),
        NONE if row.p is None else probability(row.p),
        number(communication),
        number(row.mathis_s),
        NONE if row.again is None else number(100 * row.again, 2),
        number(row.timeouts, 2),
        row.bound if row.loss else "",
    ]


def _line_sentences(one: Line) -> Iterator[str]:
    if one.stand_in:
        yield f"STAND-IN: {one_line(one.stand_in)}."
    if one.exponent is not None:
        losses = ", ".join(f"{100 * loss:g}" for loss in one.fitted)
        why = f" ({one.exponent.why})" if one.exponent.why else ""
        yield f"communication grows as loss^{figure(one.exponent)} over losses of {losses} %{why}: {SHAPES[one.shape]}."
    else:
        yield one.why
    ratios = [f"{100 * row.loss:g} %: {row.ratio:.3g}" for row in one.losses if row.ratio is not None]
    if ratios:
        yield f"communication over Mathis's time: {'; '.join(ratios)}. The law has one transfer, and the idle line's round trip."
    padhye = [f"{100 * row.loss:g} %: {row.padhye_s:.3g} s" for row in one.losses if row.padhye_s is not None]
    if padhye:
        yield f"with timeouts (Padhye): {'; '.join(padhye)}."
    if one.of_excess:
        yield "no cell told its arithmetic: communication is taken to be what a step takes longer than without loss."
    lost = [f"{100 * row.loss:g} %: {100 * row.lost:.3g} %" for row in one.losses if row.loss and row.lost is not None]
    if lost:
        yield f"lost, as counted on the line: {'; '.join(lost)}."
    yield from one.notes
