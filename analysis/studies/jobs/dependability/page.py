"""What faults cost, checkpoint intervals and lossy lines as answers. In their data losses are fractions; an open interval ends in null."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING

from analysis.answer import Line, bullets, marked, of_parts, text_table
from analysis.plain import one_line
from analysis.studies.jobs.output import NONE, figure, number, p_value, value_of
from analysis.wording import percent, unsigned

from .intervals import simulate
from .network import LOSS_RULE
from .study import RULE, arms, poisonings, spared

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from analysis.answer import Answer, Part, Tone
    from analysis.studies.jobs.estimates import Figure
    from analysis.studies.jobs.records import Stream

    from .checkpoints import CheckpointTrial
    from .intervals import Advice, CheckpointPlan, PlayedInterval
    from .network import AtLoss, LossyLine
    from .study import FaultArm, Poisoning, SparedJobs

    Trials = Sequence[tuple[CheckpointTrial, Advice | None]]

LEGEND = (
    "useful: what is left of the time of all attempts without lost work, checkpoints, and jobs that never got done. lost s: a stream.",
    "slowdown: mean response of the jobs that both got done, over that without the fault. goodput: work done a second, likewise.",
    "intervals of 95 % over blocks, each a pair; p after Holm over all faults. restart: from the fault to the next attempt.",
    "recovered: from the fault until it is over, its jobs are done, and as many jobs are done as by then without it.",
)
TONES: Mapping[str, Tone] = {"isolated": "good", "not isolated": "bad", "open": "open"}
SHAPES = {
    "√p": "as √p, as Mathis has it",
    "linear": "in proportion to the loss: each lost packet costs the same time, as timeouts do",
    "neither": "neither as √p nor in proportion to the loss",
    "open": "these runs cannot tell √p from proportion",
}


def reported(streams: Sequence[Stream], margin: float, refused: Sequence[str]) -> Answer:
    of_faults, policies, accuracies = arms(streams, margin), spared(streams), poisonings(streams)
    data = {"arms": [*map(asdict, of_faults)], "policies": [*map(asdict, policies)], "poisonings": [*map(asdict, accuracies)]}
    return of_parts({**data, "margin": margin, "rule": RULE}, _reported(of_faults, policies, accuracies, margin), refused)


def _reported(arms: Sequence[FaultArm], policies: Sequence[SparedJobs], poisonings: Sequence[Poisoning], margin: float) -> Iterator[Part]:
    faulty = {arm.condition for arm in arms if arm.fault}
    for condition in dict.fromkeys(arm.condition for arm in arms):
        if condition in faulty:
            yield Line(one_line(condition), tone="strong")
            yield from _condition([arm for arm in arms if arm.condition == condition], margin)
            yield ""
    if policies:
        yield Line("policies under the same fault: response of the stream's own jobs, over that under fifo", tone="strong")
        named = [(one_line(f"{policy.policy}, {policy.label}"), policy) for policy in policies]
        rows = [[name, f"{policy.blocks}", figure(policy.response), p_value(policy.p)] for name, policy in named]
        yield text_table(("", "blocks", "response [95 %]", "p"), rows)
        yield from bullets(f"{name}: {policy.why}" for name, policy in named if policy.why)
        yield ""
    if not faulty and not poisonings:
        yield Line("No stream of these had a fault: nothing to judge. `fault=kill` and others are parameters of job_stream.")
    if poisonings:
        yield from _poisonings(poisonings)
    if faulty:
        yield from bullets(LEGEND, tone="quiet")


def _condition(arms: Sequence[FaultArm], margin: float) -> Iterator[Part]:
    heads = ("", "blocks", "done", "useful", "lost s", "slowdown [95 %]", "p", "goodput")
    yield text_table(heads, map(_arm, arms))
    struck = [arm for arm in arms if arm.strikes]
    if struck:
        yield ""
        times = ("restart s", "lost s a hit", "recovered s [95 %]", "of")
        yield text_table(("", "faults", "hit", *times, "available"), map(_recovery, struck))
    for arm in arms:
        if arm.isolation:
            of = ""
            if arm.slowdown and arm.slowdown.low90 is not None:
                of = f" (margin {unsigned(margin)}; 90 % {number(arm.slowdown.low90)} to {number(arm.slowdown.high90)})"
            yield Line(f"{arm.label}: {arm.isolation}{of}", "•", TONES.get(arm.isolation, ""))
    yield from bullets(_notes(arms))
    if any(arm.isolation for arm in arms):
        yield from marked([("•", RULE)], "quiet")


def _arm(arm: FaultArm) -> list[str]:
    useful = NONE if arm.useful is None else f"{100 * arm.useful.value:.1f} %"
    goodput = NONE if arm.goodput is None else number(arm.goodput.value)
    done = f"{arm.outcomes.get('done', 0)}/{sum(arm.outcomes.values())}"
    return [one_line(arm.label), f"{arm.blocks}", done, useful, value_of(arm.lost_s), figure(arm.slowdown), p_value(arm.p), goodput]


def _recovery(arm: FaultArm) -> list[str]:
    available = NONE if arm.available is None else f"{100 * arm.available.value:.2f} %"
    times = [value_of(arm.restart_s), value_of(arm.lost_s_per_hit), figure(arm.recovery_s)]
    return [one_line(arm.label), f"{arm.strikes}", f"{arm.hit}", *times, f"{arm.recovered}/{arm.strikes}", available]


def _notes(arms: Sequence[FaultArm]) -> Iterator[str]:
    labels: dict[str, list[str]] = {}
    for arm in arms:
        for note in _notes_of(arm):
            labels.setdefault(one_line(note), []).append(one_line(arm.label))
    yield from (f"{', '.join(names)}: {note}" for note, names in labels.items())


def _notes_of(arm: FaultArm) -> Iterator[str]:
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


def _poisonings(poisonings: Sequence[Poisoning]) -> Iterator[Part]:
    yield Line("accuracy of federated runs", tone="strong")
    rows = [
        [
            one_line(poisoning.setting or poisoning.condition),
            f"{poisoning.poisoned:g}",
            f"{poisoning.jobs}",
            figure(poisoning.accuracy, 100),
            figure(poisoning.drop, 100) if poisoning.poisoned else NONE,
        ]
        for poisoning in poisonings
    ]
    yield text_table(("", "poisoned", "jobs", "accuracy % [95 %]", "lost, points [95 %]"), rows)
    if any(poisoning.poisoned and poisoning.drop is None for poisoning in poisonings):
        yield from marked([("•", "no loss of accuracy where no block has the same without poisoned clients.")])
    for clean in dict.fromkeys(poisoning.clean for poisoning in poisonings if poisoning.clean not in {"", poisoning.setting}):
        yield from marked([("•", f"what has no clean run of its own is held against {one_line(clean)}.")])
    yield ""


def advised(advice: Advice | None, trials: Trials, refused: Sequence[str]) -> Answer:
    documents = [{**asdict(trial), "advice": None if own is None else asdict(own)} for trial, own in trials]
    return of_parts({"advice": None if advice is None else asdict(advice), "trials": documents}, _advised(advice, trials), refused)


def _advised(advice: Advice | None, trials: Trials) -> Iterator[Part]:
    if advice is not None:
        yield from _advice(advice)
    for trial, own in trials:
        yield from _trial(trial, own)


def _advice(advice: Advice) -> Iterator[Part]:
    yield f"a checkpoint takes {number(advice.cost_s)} s, failures come every {number(advice.mtbf_s)} s on average, at random"
    rows = [
        (name, number(interval_s, 6), "without end" if math.isinf(overhead) else unsigned(overhead))
        for name, interval_s, overhead in (
            ("Young", advice.young_s, advice.young_overhead),
            ("Daly", advice.daly_s, advice.daly_overhead),
            ("exact", advice.best_s, advice.best_overhead),
        )
    ]
    yield text_table(("", "interval s", "time beyond the work"), rows)
    yield from marked(
        [("•", f"from {number(advice.low_s)} s to {number(advice.high_s)} s the whole takes at most 1 % more than at the best.")]
    )
    if advice.too_dear:
        yield from marked(
            [("•", "a checkpoint takes half the time between failures or more: the rules do not hold, and little gets done.")]
        )
    yield ""


def _trial(trial: CheckpointTrial, advice: Advice | None) -> Iterator[Part]:
    yield Line(one_line(trial.condition), tone="strong")
    yield f"under {one_line(trial.fault)}, {trial.blocks} block{'s' if trial.blocks > 1 else ''}"
    heads = ("checkpoint every s", "streams", "time/work [95 %]", "by Daly's formula", "more than the best", "p")
    rows = []
    for tried in trial.tried:
        more = NONE if not tried.time else "best" if tried.more is None else percent(tried.more)
        every = f"{tried.checkpoint_s:g}" if tried.checkpoint_s else "none"
        rows.append([every, f"{tried.streams}", figure(tried.time), number(tried.foretold), more, p_value(tried.p)])
    yield text_table(heads, rows)
    yield from bullets(_trial_lines(trial, advice))
    yield ""


def _trial_lines(trial: CheckpointTrial, advice: Advice | None) -> Iterator[str]:
    for tried in trial.tried:
        if tried.lost:
            every = f"checkpoints every {tried.checkpoint_s:g} s" if tried.checkpoint_s else "no checkpoints"
            jobs = "job was not done and is" if tried.lost == 1 else "jobs were not done and are"
            yield f"with {every} {tried.lost} {jobs} in no time: it is worse than it looks."
    if trial.mtbf_s is not None:
        fails = f"one running job fails every {_open_figure(trial.mtbf_s)} s"
        yield f"{trial.killed} attempts failed in {number(trial.ran_s)} s of running: {fails}."
    else:
        yield "no attempt failed: there is no mean time between failures to reckon with."
    if trial.cost_s is not None:
        yield f"a checkpoint took {number(trial.cost_s)} s ({trial.checkpoints} of them)."
    else:
        yield "no checkpoint was told with its cost."
    if trial.restart_s is not None:
        yield f"the next attempt began {number(trial.restart_s)} s after the failure, which no interval changes."
    if trial.least_s is None:
        yield f"{trial.why}."
    else:
        whys = "; ".join(why for why in (trial.least_s.why, trial.why) if why)
        yield f"least time by a + bτ + c/τ at {_open_figure(trial.least_s)} s{f' ({whys})' if whys else ''}."
    if advice is not None:
        yield f"Young says {number(advice.young_s)} s, Daly {number(advice.daly_s)} s: {_against_daly(trial.least_s, advice)}"


def _against_daly(least_s: Figure | None, advice: Advice) -> str:
    if least_s is None or least_s.low is None or least_s.high is None:
        return "nothing here to hold them against."
    if math.isinf(least_s.high) and least_s.low == 0:
        return "these runs cannot tell."
    inside = least_s.low <= advice.daly_s <= least_s.high
    return f"Daly's lies {'inside' if inside else 'OUTSIDE'} the interval of the measured least."


def _open_figure(value: Figure) -> str:
    return figure(value).replace("inf]", "∞]")


def simulated(plan: CheckpointPlan) -> Answer:
    advice, intervals = simulate(plan)
    data = {"simulated": True, "asked": asdict(plan), "advice": asdict(advice), "intervals": [*map(asdict, intervals)]}
    return of_parts(data, _simulated(plan, advice, intervals))


def _simulated(plan: CheckpointPlan, advice: Advice, intervals: Sequence[PlayedInterval]) -> Iterator[Part]:
    failures = "at random" if plan.shape == 1 else f"by Weibull's law of shape {plan.shape:g}"
    yield Line(
        f"SIMULATED: {plan.seeds} jobs of {number(plan.work_s)} s of work for each interval, the same failures for all, every "
        f"{number(plan.mtbf_s)} s on average {failures}. A checkpoint takes {number(plan.cost_s)}, a restart {number(plan.restart_s)} s."
    )
    rows = [
        [
            number(played.interval_s),
            f"{played.time.value:.4f}" + ("" if played.time.high is None else f" ± {played.time.high - played.time.value:.4f}"),
            f"{played.formula:.4f}",
            "Daly's interval" if played.interval_s == advice.daly_s else figure(played.against_daly),
        ]
        for played in intervals
    ]
    yield text_table(("interval s", "time/work ± 95 %", "formula", "of Daly's [95 %]"), rows)
    yield from marked([("•", _least(min(intervals, key=lambda played: played.time.value), advice))])


def _least(best: PlayedInterval, advice: Advice) -> str:
    if best.interval_s == advice.daly_s:
        return "no other interval took less time than Daly's."
    against = best.against_daly
    shown = against is not None and against.high is not None and against.high < 1
    return f"least at {number(best.interval_s)} s, {'' if shown else 'not '}shown to be better than Daly's {number(advice.daly_s)} s."


def lossy(lines: Sequence[LossyLine], refused: Sequence[str]) -> Answer:
    return of_parts({"lines": [*map(asdict, lines)], "rule": LOSS_RULE}, _lossy(lines), refused)


def _lossy(lines: Sequence[LossyLine]) -> Iterator[Part]:
    heads = ("loss %", "blocks", "step s", "slower [95 %]", "p", "comm. s", "Mathis s", "again %", "timeouts", "bound by")
    for line in lines:
        yield Line(one_line(line.name), tone="strong")
        rtt = NONE if line.rtt_s is None else f"{number(line.rtt_s * 1e3)} ms"
        about = [f"round trip {rtt}, segments of {number(line.mss_bytes, 4)} bytes", line.congestion]
        yield ", ".join(one_line(part) for part in about if part)
        yield text_table(heads, map(_loss, line.losses))
        yield from bullets(_line_sentences(line))
        yield ""
    yield from marked([("•", LOSS_RULE)], "quiet")


def _loss(row: AtLoss) -> list[str]:
    return [
        f"{100 * row.loss:g}",
        f"{row.blocks}",
        value_of(row.step_s),
        figure(row.slowdown),
        p_value(row.p),
        value_of(row.communication_s),
        number(row.mathis_s),
        NONE if row.again is None else number(100 * row.again, 2),
        number(row.timeouts, 2),
        row.bound if row.loss else "",
    ]


def _line_sentences(line: LossyLine) -> Iterator[str]:
    if line.stand_in:
        yield f"STAND-IN: {one_line(line.stand_in)}."
    if line.exponent is not None:
        losses = ", ".join(f"{100 * loss:g}" for loss in line.fitted)
        why = f" ({line.exponent.why})" if line.exponent.why else ""
        yield f"communication grows as loss^{figure(line.exponent)} over losses of {losses} %{why}: {SHAPES[line.shape]}."
    else:
        yield line.why
    ratios = [f"{100 * row.loss:g} %: {row.ratio:.3g}" for row in line.losses if row.ratio is not None]
    if ratios:
        yield f"communication over Mathis's time: {'; '.join(ratios)}. The law has one transfer, and the idle line's round trip."
    padhye = [f"{100 * row.loss:g} %: {row.padhye_s:.3g} s" for row in line.losses if row.padhye_s is not None]
    if padhye:
        yield f"with timeouts (Padhye): {'; '.join(padhye)}."
    if line.of_excess:
        yield "no cell told its arithmetic: communication is taken to be what a step takes longer than without loss."
    lost = [f"{100 * row.loss:g} %: {100 * row.lost:.3g} %" for row in line.losses if row.loss and row.lost is not None]
    if lost:
        yield f"lost, as counted on the line: {'; '.join(lost)}."
    yield from line.notes
