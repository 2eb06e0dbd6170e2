"""What a folder of somebody's overhead study answers: differences without a claim, CPU, GPU, and what is missing."""

from __future__ import annotations

import math
import re
from dataclasses import asdict
from typing import TYPE_CHECKING

from analysis.answer import Answer, Column, Line, Section, Table, bullets
from analysis.verdict import ONE_RUN
from analysis.wording import ended

from . import counters, of_logs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .counters import Counters
    from .directory import LogFolder, Training
    from .of_logs import Condition

NOT_KNOWN = "–"
LEGEND = (
    (
        "mean",
        "over all snapshots, 0 where a command is not shown, as the study reckons; top's first table covers an instant.",
    ),
    ("clock", f"by the command's own CPU clock from first to last; {NOT_KNOWN} where its processes came and went, or as said."),
)


def answer(result: LogFolder) -> Answer:
    """Say what the conditions show; nothing is claimed of one run a condition."""
    names = [
        f"{training.name}: {len(training.conditions)} condition{'' if len(training.conditions) == 1 else 's'}, 1 run of each"
        for training in result.trainings
    ]
    return Answer(
        title="; ".join(names),
        sections=[section for training in result.trainings for section in _training(training, len(result.trainings) > 1)]
        + ([Section(parts=bullets([ended(line) for line in result.missing], tone="quiet"))] if result.missing else []),
        legend=LEGEND if any(each.top for training in result.trainings for each in training.conditions) else (),
        data=document(result),
    )


def document(result: LogFolder) -> dict[str, object]:
    """Give the same for programs: null is what is not known."""
    return {"origin": result.origin, "trainings": [_document(training) for training in result.trainings], "missing": [*result.missing]}


def _document(training: Training) -> dict[str, object]:
    conditions = [
        {
            "name": each.name,
            "monitors": [*each.monitors],
            "time_s": each.time_s,
            "began": began(each),
            "accuracies": None if each.training is None else [test.accuracy for test in each.training.tests],
            "other_work": of_logs.other_work(each, training.conditions) or None,
            "missing": dict(each.missing),
            "notes": [*each.notes],
        }
        for each in training.conditions
    ]
    return {
        "name": training.name,
        "verdict": "not comparable",
        "reason": reason(training.conditions),
        "same_training": same_training(training.conditions),
        "conditions": conditions,
        "differences": [asdict(each) for each in of_logs.differences(training.conditions)],
        "cpu": [asdict(share) for each in training.conditions for share in of_logs.shares(each)],
        "counters": [asdict(counter) for each in training.conditions for counter in counters.counters(each)],
        "absent": [*training.absent],
        "unread": [*training.unread],
    }


def _training(training: Training, named: bool) -> Iterator[Section]:  # noqa: FBT001  # whether there are several
    verdict = [Line(f"not comparable: {reason(training.conditions)}", "verdict"), Line(ended(same_training(training.conditions)), "work")]
    yield Section(training.name if named else "", [_times(training), *verdict])
    shares = [share for each in training.conditions for share in of_logs.shares(each)]
    if shares:
        others = {(each.condition, each.why_no_clock): "" for each in shares if each.why_no_clock not in {"", of_logs.CAME_AND_WENT}}
        notes = [Line(f"by its clock {NOT_KNOWN}: {why}.", condition, "quiet") for condition, why in others]
        yield Section("CPU as top saw it, % of one core; the busiest command beside the monitors is the training", [_cpu(shares), *notes])
    watched = [counter for each in training.conditions for counter in counters.counters(each)]
    if watched:
        notes = [Line(line, each.condition, "quiet") for each in watched for line in _beside(each)]
        title = "The busiest GPU as the monitors saw it, over all samples and over those in which it was busy"
        yield Section(title, [_gpu(watched), *notes])
    lines = [Line(ended(why), each.name) for each in training.conditions for why in (*each.missing.values(), *each.notes)]
    if training.absent:
        lines.append(
            Line(f"no file of {', '.join(training.absent)}, which the study ran: nothing is said of them, and none is 0.", "missing")
        )
    if training.unread:
        lines.append(Line(f"{', '.join(training.unread)}: no kind of log that is known.", "not read"))
    if lines:
        yield Section(parts=lines)


def _times(training: Training) -> Table:
    result = of_logs.differences(training.conditions)
    bases = list(dict.fromkeys(each.against for each in result))
    fractions = {(each.condition, each.against): each.fraction for each in result}
    columns = [
        Column("condition", "condition", left=True),
        Column("monitors", "monitors", left=True),
        Column("began", "began"),
        Column("load", "load_average_1min"),
        Column("time s", "time_s", lambda value: value if isinstance(value, str) else f"{value:.3f}"),
        *(Column(f"vs {base} %", f"vs_{base}_fraction", lambda value: f"{100 * value:+.2f}") for base in bases),
    ]
    rows = []
    for each in training.conditions:
        loads = [shot.load_average_1min for shot in each.top.snapshots] if each.top is not None else []
        load = f"{loads[0]:.2f} to {loads[-1]:.2f}" if loads and not math.isnan(sum(loads)) else NOT_KNOWN
        time = NOT_KNOWN if each.time_s is None else each.time_s
        known = [each.name, monitors_of(each), began(each) or NOT_KNOWN, load, time]
        rows.append([*known, *(fractions.get((each.name, base)) for base in bases)])
    return Table(columns, rows)


def _cpu(shares: Sequence[of_logs.Share]) -> Table:
    heads = {"mean": "shown_percent", "after the first": "steady_percent", "by its clock": "clock_percent", "CPU s": "cpu_s"}
    columns = [
        Column("condition", "condition", left=True),
        Column("command", "command", left=True),
        *(Column(head, name, _written(2)) for head, name in heads.items()),
        Column("shown in", "shown_in"),
    ]
    rows = [
        [
            share.condition,
            share.command,
            *(_known(getattr(share, name)) for name in heads.values()),
            f"{share.shown_in} of {share.snapshots}",
        ]
        for share in shares
    ]
    return Table(columns, rows)


def _gpu(result: Sequence[Counters]) -> Table:
    columns = [
        *(Column(head, head.lower() or "of", left=True) for head in ("condition", "monitor", "GPU", "")),
        Column("samples", "samples"),
        Column("util %", "utilization_percent", _written(1)),
        *(Column(name, name.lower(), _written(3)) for name in ("GRACT", "SMACT", "SMOCC")),
        Column("MiB", "memory_mib", _written(0)),
        Column("W", "power_w", _written(1)),
    ]
    rows = []
    for each in result:
        for name, count, mean in (("all", each.samples, each.mean), ("busy", each.active, each.mean_active)):
            used, power = mean.get("GPUTL", mean.get("utilization.gpu")), mean.get("POWER", mean.get("power.draw"))
            numbers = [used, *(mean.get(counter) for counter in ("GRACT", "SMACT", "SMOCC")), mean.get("memory.used"), power]
            first = [each.condition, each.monitor, each.gpu] if name == "all" else ["", "", ""]
            rows.append([*first, name, count, *map(_known, numbers)])
    return Table(columns, rows)


def _known(value: float | None) -> object:
    return NOT_KNOWN if value is None or math.isnan(value) else value


def _written(digits: int) -> Callable[[object], str]:
    return lambda value: value if isinstance(value, str) else f"{value:.{digits}f}"


def _beside(one: Counters) -> Iterator[str]:
    """What belongs to the counters: whose they are, the energy, the interval, and what cannot be."""
    if one.how.startswith("no index"):
        mixed = ": what is shown is of all GPUs together" if one.gpu == "?" else ""
        yield f"rows of {one.monitor} have {one.how}{mixed}."
    power = one.mean.get("POWER")
    if one.energy_j is not None and one.energy_w is not None:
        word = {True: "agrees with", False: "contradicts", None: "has no power to be compared with"}[one.consistent]
        ending = f"{word} a mean of {power:.1f} W ({100 * (one.energy_w / power - 1):+.1f} %)" if power else word
        interval = f"{counters.DCGMI_INTERVAL_S:g} s a sample, which dcgmi does not write down"
        yield f"{one.energy_j:.1f} J by the energy counter are {one.energy_w:.1f} W at {interval}: {ending}."
    elif one.energy_j is not None:
        yield f"{one.energy_j:.1f} J by the energy counter, and no power of it: {ended(one.why_no_w)}"
    elif one.monitor == "dcgmi":
        yield f"no energy: {ended(one.why_no_energy)}"
    if one.interval_s is not None:
        yield f"{one.monitor} wrote every {one.interval_s[0]:.4f} s (standard deviation {one.interval_s[1]:.4f} s)."
    if one.no_sm:
        where = f"in {one.no_sm} of {one.samples} samples"
        yield f"{where} GRACT is above 0.1 and SMACT is 0: the two do not fit, and such a 0 may be no measurement."


def monitors_of(condition: Condition) -> str:
    """Name a condition's monitors."""
    return ", ".join(condition.monitors) or "none"


def began(condition: Condition) -> str | None:
    """When a condition's first log began, by the machine's clock; None where no log has one."""
    if condition.top is not None and condition.top.snapshots[0].clock:
        return condition.top.snapshots[0].clock
    stamps = (
        [gpu.texts["timestamp"][0] for gpu in condition.smi.gpus.values() if "timestamp" in gpu.texts] if condition.smi is not None else []
    )
    found = re.search(r"\d\d:\d\d:\d\d", min(stamps, default=""))
    return found[0] if found else None


def same_training(conditions: Sequence[Condition]) -> str:
    """Say whether the conditions did the same work: what a seed fixes must agree digit by digit."""
    trained = [each for each in conditions if each.time_s is not None]
    other = [f"{each.name}: {why}" for each in trained if (why := of_logs.other_work(each, conditions))]
    if len(trained) < 2:
        return "fewer than two trainings ended: whether the conditions did the same is not known"
    if other:
        return f"not the same training, so left out of the differences: {'; '.join(other)}"
    first = trained[0].training
    if first is None or not (first.tests or len(first.loss)):
        return "no loss and no accuracy to tell whether the conditions did the same"
    last = f"; the last accuracy is {first.tests[-1].correct} of {first.tests[-1].samples}" if first.tests else ""
    return f"the same training in all {len(trained)}: {len(first.loss)} losses and {len(first.tests)} accuracies agree digit by digit{last}"


def reason(conditions: Sequence[Condition]) -> str:
    """Say why no overhead is claimed."""
    lines = [f"{ONE_RUN}"]
    clocks = [each.name for each in sorted((each for each in conditions if began(each)), key=lambda each: began(each) or "")]
    if len(clocks) > 1:
        lines.append(f"one after the other (by their clocks {', '.join(clocks)}), so drift is part of any difference")
    result, apart = of_logs.differences(conditions), of_logs.spread(conditions)
    if apart:
        slow, fast, share = apart
        lines.append(
            f"the baselines {slow.name} ({monitors_of(slow)}) and {fast.name} ({monitors_of(fast)}) differ by {100 * share:.2f} %"
            + (", more than any monitor adds to either" if all(each.fraction < share for each in result) else "")
        )
    for base in dict.fromkeys(each.against for each in result):
        faster = [each.condition for each in result if each.against == base and each.fraction < 0]
        if faster and len(faster) == sum(each.against == base for each in result):
            drifted = "no monitor speeds a training up, so the machine drifted more than they cost"
            lines.append(f"every condition is faster than {base}, which has fewer monitors: {drifted}")
    if not result:
        lines.append("no two times of one training whose monitors can be told apart")
    return f"{'; '.join(lines)}."
