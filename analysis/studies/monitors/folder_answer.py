"""The answer of a folder of somebody's overhead study: differences without a claim, CPU, GPU, and what is missing."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

from analysis.answer import Answer, Column, Line, Section, Table, bullets
from analysis.verdict import ONE_RUN
from analysis.wording import ended

from .folder import (
    CAME_AND_WENT,
    DCGMI_INTERVAL_S,
    Condition,
    Counters,
    LogFolder,
    Share,
    Training,
    counters,
    differences,
    other_work,
    shares,
    spread,
)

NOT_KNOWN = "–"
LEGEND = (
    ("mean", "over all snapshots, 0 where a command is not shown, as the study reckons; top's first table covers an instant."),
    ("clock", f"by the command's own CPU clock from first to last; {NOT_KNOWN} where its processes came and went, or as said."),
)


def answer(result: LogFolder) -> Answer:
    several = len(result.trainings) > 1
    counts = [(each.name, len(each.conditions)) for each in result.trainings]
    names = [f"{name}: {count} condition{'' if count == 1 else 's'}, 1 run of each" for name, count in counts]
    sections = [section for training in result.trainings for section in _sections(training, training.name if several else "")]
    if result.missing:
        sections.append(Section(parts=bullets([ended(line) for line in result.missing], tone="quiet")))
    return Answer(
        title="; ".join(names),
        sections=sections,
        legend=LEGEND if any(each.top for training in result.trainings for each in training.conditions) else (),
        data={"origin": result.origin, "trainings": [_document(training) for training in result.trainings], "missing": [*result.missing]},
    )


def _document(training: Training) -> dict[str, object]:
    conditions = [
        {
            "name": each.name,
            "monitors": [*each.monitors],
            "time_s": each.time_s,
            "began": began(each),
            "accuracies": None if each.training is None else [test.accuracy for test in each.training.tests],
            "other_work": other_work(each, training.conditions) or None,
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
        "differences": [asdict(each) for each in differences(training.conditions)],
        "cpu": [asdict(share) for each in training.conditions for share in shares(each)],
        "counters": [asdict(counter) for each in training.conditions for counter in counters(each)],
        "absent": [*training.absent],
        "unread": [*training.unread],
    }


def _sections(training: Training, title: str) -> Iterator[Section]:
    conditions = training.conditions
    verdict = [Line(f"not comparable: {reason(conditions)}", "verdict"), Line(ended(same_training(conditions)), "work")]
    yield Section(title, [_times(conditions), *verdict])
    if cpu := [share for each in conditions for share in shares(each)]:
        reasons = dict.fromkeys((each.condition, each.why_no_clock) for each in cpu if each.why_no_clock not in {"", CAME_AND_WENT})
        notes = [Line(f"by its clock {NOT_KNOWN}: {why}.", condition, "quiet") for condition, why in reasons]
        yield Section("CPU as top saw it, % of one core; the busiest command beside the monitors is the training", [_cpu(cpu), *notes])
    if gpus := [counter for each in conditions for counter in counters(each)]:
        notes = [Line(line, each.condition, "quiet") for each in gpus for line in _notes(each)]
        yield Section("The busiest GPU as the monitors saw it, over all samples and over those in which it was busy", [_gpu(gpus), *notes])
    lines = [Line(ended(why), each.name) for each in conditions for why in (*each.missing.values(), *each.notes)]
    if training.absent:
        absent = f"no file of {', '.join(training.absent)}, which the study ran: nothing is said of them, and none is 0."
        lines.append(Line(absent, "missing"))
    if training.unread:
        lines.append(Line(f"{', '.join(training.unread)}: no kind of log that is known.", "not read"))
    if lines:
        yield Section(parts=lines)


def _times(conditions: Sequence[Condition]) -> Table:
    result = differences(conditions)
    bases = list(dict.fromkeys(each.against for each in result))
    fractions = {(each.condition, each.against): each.fraction for each in result}
    columns = [
        Column("condition", "condition", left=True),
        Column("monitors", "monitors", left=True),
        Column("began", "began"),
        Column("load", "load_average_1min"),
        Column("time s", "time_s", _digits(3)),
        *(Column(f"vs {base} %", f"vs_{base}_fraction", lambda value: f"{100 * value:+.2f}") for base in bases),
    ]
    rows = []
    for each in conditions:
        loads = [shot.load_average_1min for shot in each.top.snapshots] if each.top is not None else []
        load = f"{loads[0]:.2f} to {loads[-1]:.2f}" if loads and not math.isnan(sum(loads)) else NOT_KNOWN
        compared = [fractions.get((each.name, base)) for base in bases]
        rows.append([each.name, each.monitors_text, began(each) or NOT_KNOWN, load, _known(each.time_s), *compared])
    return Table(columns, rows)


def _cpu(cpu: Sequence[Share]) -> Table:
    heads = {"mean": "shown_percent", "after the first": "steady_percent", "by its clock": "clock_percent", "CPU s": "cpu_s"}
    columns = [
        Column("condition", "condition", left=True),
        Column("command", "command", left=True),
        *(Column(head, name, _digits(2)) for head, name in heads.items()),
        Column("shown in", "shown_in"),
    ]
    rows = [
        [each.condition, each.command, *(_known(getattr(each, name)) for name in heads.values()), f"{each.shown_in} of {each.snapshots}"]
        for each in cpu
    ]
    return Table(columns, rows)


def _gpu(gpus: Sequence[Counters]) -> Table:
    columns = [
        *(Column(head, head.lower() or "of", left=True) for head in ("condition", "monitor", "GPU", "")),
        Column("samples", "samples"),
        Column("util %", "utilization_percent", _digits(1)),
        *(Column(name, name.lower(), _digits(3)) for name in ("GRACT", "SMACT", "SMOCC")),
        Column("MiB", "memory_mib", _digits(0)),
        Column("W", "power_w", _digits(1)),
    ]
    rows = []
    for each in gpus:
        for first, name, count, mean in (
            ((each.condition, each.monitor, each.gpu), "all", each.samples, each.mean),
            (("", "", ""), "busy", each.active, each.mean_active),
        ):
            names = (("GPUTL", "utilization.gpu"), ("GRACT",), ("SMACT",), ("SMOCC",), ("memory.used",), ("POWER", "power.draw"))
            numbers = [next((mean[key] for key in keys if key in mean), None) for keys in names]
            rows.append([*first, name, count, *map(_known, numbers)])
    return Table(columns, rows)


def _known(value: float | None) -> object:
    return NOT_KNOWN if value is None or math.isnan(value) else value


def _digits(digits: int) -> Callable[[object], str]:
    return lambda value: value if isinstance(value, str) else f"{value:.{digits}f}"


def _notes(counter: Counters) -> Iterator[str]:
    """What belongs to the counters: how GPUs were told apart, the energy, the interval, and what cannot be."""
    if counter.how.startswith("no index"):
        mixed = ": what is shown is of all GPUs together" if counter.gpu == "?" else ""
        yield f"rows of {counter.monitor} have {counter.how}{mixed}."
    power = counter.mean.get("POWER")
    if counter.energy_j is not None and counter.energy_w is not None:
        word = {True: "agrees with", False: "contradicts", None: "has no power to be compared with"}[counter.consistent]
        ending = f"{word} a mean of {power:.1f} W ({100 * (counter.energy_w / power - 1):+.1f} %)" if power else word
        interval = f"{DCGMI_INTERVAL_S:g} s a sample, which dcgmi does not write down"
        yield f"{counter.energy_j:.1f} J by the energy counter are {counter.energy_w:.1f} W at {interval}: {ending}."
    elif counter.energy_j is not None:
        yield f"{counter.energy_j:.1f} J by the energy counter, and no power of it: {ended(counter.why_no_w)}"
    elif counter.monitor == "dcgmi":
        yield f"no energy: {ended(counter.why_no_energy)}"
    if counter.interval_s is not None:
        yield f"{counter.monitor} wrote every {counter.interval_s[0]:.4f} s (standard deviation {counter.interval_s[1]:.4f} s)."
    if counter.no_sm:
        where = f"in {counter.no_sm} of {counter.samples} samples"
        yield f"{where} GRACT is above 0.1 and SMACT is 0: the two do not fit, and such a 0 may be no measurement."


def began(condition: Condition) -> str | None:
    """When a condition's first log began, by the machine's clock; None where no log has one."""
    if condition.top is not None and condition.top.snapshots[0].clock:
        return condition.top.snapshots[0].clock
    gpus = condition.smi.gpus.values() if condition.smi is not None else ()
    match = re.search(r"\d\d:\d\d:\d\d", min((gpu.texts["timestamp"][0] for gpu in gpus if "timestamp" in gpu.texts), default=""))
    return match[0] if match else None


def same_training(conditions: Sequence[Condition]) -> str:
    """Whether the conditions did the same work: what a seed fixes must agree digit by digit."""
    ended_ones = [each for each in conditions if each.time_s is not None]
    if len(ended_ones) < 2:
        return "fewer than two trainings ended: whether the conditions did the same is not known"
    if others := [f"{each.name}: {why}" for each in ended_ones if (why := other_work(each, conditions))]:
        return f"not the same training, so left out of the differences: {'; '.join(others)}"
    first = ended_ones[0].training
    if first is None or not (first.tests or len(first.loss)):
        return "no loss and no accuracy to tell whether the conditions did the same"
    last = f"; the last accuracy is {first.tests[-1].correct} of {first.tests[-1].samples}" if first.tests else ""
    return (
        f"the same training in all {len(ended_ones)}: {len(first.loss)} losses and {len(first.tests)} accuracies agree digit by digit{last}"
    )


def reason(conditions: Sequence[Condition]) -> str:
    lines = [ONE_RUN]
    clocks = sorted((clock, each.name) for each in conditions if (clock := began(each)))
    if len(clocks) > 1:
        names = ", ".join(name for _, name in clocks)
        lines.append(f"one after the other (by their clocks {names}), so drift is part of any difference")
    result = differences(conditions)
    if apart := spread(conditions):
        slow, fast, share = apart
        more = ", more than any monitor adds to either" if all(each.fraction < share for each in result) else ""
        both = f"{slow.name} ({slow.monitors_text}) and {fast.name} ({fast.monitors_text})"
        lines.append(f"the baselines {both} differ by {100 * share:.2f} %{more}")
    for base in dict.fromkeys(each.against for each in result):
        if all(each.fraction < 0 for each in result if each.against == base):
            drifted = "no monitor speeds a training up, so the machine drifted more than they cost"
            lines.append(f"every condition is faster than {base}, which has fewer monitors: {drifted}")
    if not result:
        lines.append("no two times of one training whose monitors can be told apart")
    return f"{'; '.join(lines)}."
