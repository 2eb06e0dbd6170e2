"""What a run's streams of jobs say in sentences, the same on a terminal and on a page, and what they are called there and on pictures."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from analysis.answer import Answer, Line, Section
from analysis.checks import warnings_of
from analysis.compare import compare
from analysis.compare_answer import answer_of
from analysis.labels import headline
from analysis.render import text as answer_text
from analysis.studies.jobs import records
from analysis.studies.jobs.estimates import figure, inverse, unit
from analysis.studies.jobs.hyper import hyper
from analysis.studies.jobs.policies import lost_unequally
from analysis.studies.jobs.profile import best_sentences
from analysis.studies.jobs.queues import little_sentence
from analysis.terms import Refused
from analysis.wording import digits, probability

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from analysis.studies.jobs.faults import FaultArm
    from analysis.studies.jobs.network import LossyLine
    from analysis.studies.jobs.policies import Place
    from analysis.studies.jobs.queues import ModelCheck
    from analysis.terms import Run

    from .gathered import Gathered, GroupWaits

SURE = 0.05
VERDICTS = {
    "agrees": "the model agrees",
    "differs": "the model is off",
    "open": "neither shown to agree nor to be off",
    "not judged": "no verdict",
}
FIRST_COME = frozenset({"", "fifo"})  # which the models are of
MOST = 12  # settings that are told one by one
LOUD = ("UNSTABLE", "LITTLE'S LAW IS BROKEN")
ARRIVALS = {
    "poisson": "Poisson arrivals",
    "deterministic": "equal gaps",
    "mmpp": "arrivals in bursts (MMPP)",
    "trace": "arrivals of a trace",
    "fltk": "arrivals as FLTK's",
}


def render(run: Run, gathered: Gathered, *, color: bool = False) -> str:
    compared = compare(run)
    studies = [Line(f"{name}: {study.question}") for name, study in run.studies.items()]
    told = Answer(
        "",
        findings=[*(Line(line, tone="strong") for line in headline([run]).split("\n")), *studies],
        sections=[Section(part, [*map(_sentence, lines)]) for part, lines in of_run(run, gathered)],
        warnings=list(dict.fromkeys(warnings_of(run, compared))),
    )
    text = answer_text.render(told, color=color)
    if all(comparison.untouched for comparison in compared):
        return text
    return f"{text}\n{answer_text.render(answer_of(compared, [run]), color=color)}"


def _sentence(line: str) -> Line:
    return Line(line, "•", "open" if any(word in line for word in LOUD) else "")


def of_run(run: Run, gathered: Gathered | None) -> list[tuple[str, list[str]]]:
    """What is said of a run's streams: waits, policies, faults, lines that lose packets; nothing for a run that had none."""
    if gathered is None:
        return []
    # Systems are compared where nothing goes wrong: what a fault costs is said of faults.
    closed = any(stream.closed for stream in gathered.streams) and not any(stream.fault for stream in gathered.streams)
    parts = {
        "Waits": list(_waits(gathered)),
        "Policies": [line for place in gathered.places for line in _policies(place)],
        "Faults": list(_faults(gathered)),
        "Systems": list(systems(run)) if closed else [],
        "Packet loss": [_network(line) for line in gathered.lines],
        "Left out": [line.removeprefix(f"{run.origin}: ") for line in gathered.refused],
    }
    return [(head, lines) for head, lines in parts.items() if lines]


def _waits(gathered: Gathered) -> Iterator[str]:
    groups = [waits for waits in gathered.waits if waits.validation.fit.policy in FIRST_COME]
    named = list(zip(settings(groups), groups, strict=True))
    checks = [check for waits in groups if (check := _chosen(waits)) is not None]
    if checks:
        counts = [(sentence, sum(check.verdict == word for check in checks)) for word, sentence in VERDICTS.items()]
        verdicts = ", ".join(f"{sentence} in {count}" for sentence, count in counts if count)
        settled = f"{len(checks)} setting{'s' if len(checks) > 1 else ''}"
        yield f"Mean waits against the model that the data leave standing, in {settled}: {verdicts}."
    laws = [law for waits in groups for law in waits.validation.fit.laws]
    if any(laws):
        yield little_sentence(laws)
    for name, waits in named[:MOST]:
        yield f"{name}: {_wait(waits)}"
    if len(named) > MOST:
        yield f"{len(named) - MOST} more settings: `python -m analysis queue validate`."
    notes: dict[str, list[str]] = {}
    for name, waits in named:
        for note in waits.validation.notes:
            notes.setdefault(note, []).append(name)
    yield from (f"{'All' if len(names) == len(named) > 1 else '; '.join(names)}: {note}" for note, names in notes.items())


def _wait(waits: GroupWaits) -> str:
    validation, check = waits.validation, _chosen(waits)
    scale, short_unit = unit([validation.wait_s.value] if validation.wait_s is not None else [])
    wait = f"mean wait {figure(validation.wait_s, scale)} {short_unit}"
    if validation.unstable:
        return f"{wait}; UNSTABLE: {validation.unstable}"
    if check is None or check.verdict == "not judged":
        return f"{wait}."  # the model's figure is none of this stream's
    predicted = f"{check.model} says {digits(check.predicted_s * scale, 3)} {short_unit}"
    return f"{wait}; {predicted}, measured ÷ predicted {figure(check.ratio)}: {VERDICTS[check.verdict]}."


def _chosen(waits: GroupWaits) -> ModelCheck | None:
    return next((check for check in waits.validation.held if check.chosen), None)


def _policies(place: Place) -> Iterator[str]:
    lead = f"{place.slots} slots of {place.engine}, {place.streams} streams that all policies met"
    sure: list[str] = []
    other: list[str] = []
    for arm in place.arms:
        contrast = arm.against.get("mean_wait_s")
        if contrast is None:
            continue
        if contrast.effect is None or contrast.p is None:
            other.append(f"{arm.policy} ({contrast.reason})")
            continue
        ratio, low, high = (digits(value, 3) for value in inverse(contrast.effect))
        (sure if contrast.p < SURE else other).append(f"{arm.policy} {ratio} [{low}, {high}], p {probability(contrast.p)}")
    if sure:
        yield f"{lead}: mean wait over {place.baseline}'s: {'; '.join(sure)}."
    if other:
        yield f"{'No' if sure else f'{lead}: no'} difference from {place.baseline}'s mean wait is shown: {'; '.join(other)}."
    if place.left_out:
        yield lost_unequally(place)
    grow = ", ".join(arm.policy for arm in place.arms if arm.grows)
    if grow:
        yield f"UNSTABLE under {grow}: the queue grows for as long as jobs come; these waits are of this length of stream."
    for replay in place.replays:
        low_s, high_s = replay.interval_s or (0.0, 0.0)
        if low_s * high_s > 0:
            longer_ms = f"{1000 * replay.longer_s:+.3g} ms [{1000 * low_s:+.3g}, {1000 * high_s:+.3g}]"
            simulated_ms = digits(1000 * replay.simulated_s, 3)
            yield f"{replay.policy}: real jobs wait {longer_ms} longer than the same jobs in simulation ({simulated_ms} ms)."


def _faults(gathered: Gathered) -> Iterator[str]:
    arms = in_order([arm for arm in gathered.arms if arm.fault])
    slower = [arm for arm in arms if arm.slowdown is not None and arm.slowdown.value > 1 and arm.p is not None and arm.p < SURE]
    if arms:
        losing = sum(arm.lost_jobs > 0 for arm in arms)
        lose = f"; with jobs that were never done: {losing}" if losing else ""
        yield f"Settings with a fault: {len(arms)}; shown to make jobs slower: {len(slower) or 'none'}{lose}."
    for arm, name in zip(arms, names(arms), strict=True):
        recovery = "" if arm.recovery_s is None else f"; caught up {figure(arm.recovery_s)} s after a fault"
        lost = "" if arm.lost_s is None else f"; {figure(arm.lost_s)} s of work lost a stream"
        isolation = f"; {arm.isolation}" if arm.isolation else ""
        yield f"{name}: {_against_twin(arm)}{_p(arm.p)}{isolation}{recovery}{lost}."
    for policy in gathered.spared:
        takes = policy.why or "nothing to be compared."
        if policy.response is not None:
            takes = f"the stream's own jobs take {figure(policy.response)} of their time under fifo{_p(policy.p)}."
        yield f"{policy.label.partition(' ')[0]}, policy {policy.policy}: {takes}"
    for trial in gathered.trials:
        least = trial.why
        if trial.least_s is not None:
            least = f"least time at checkpoints every {figure(trial.least_s).replace('inf', 'no end')} s"
        yield f"Checkpoints under {trial.fault.partition(' ')[0]}: {least}."
    for poisoning in gathered.poisonings:
        if poisoning.drop is not None:
            setting = f" ({poisoning.setting})" if poisoning.setting else ""
            yield f"{poisoning.poisoned:g} poisoned{setting}: accuracy falls by {figure(poisoning.drop)} to {figure(poisoning.accuracy)}."


def _p(p: float | None) -> str:
    return "" if p is None else f", p {probability(p)}"


def _against_twin(arm: FaultArm) -> str:
    lost = f"{arm.lost_jobs} of {sum(arm.outcomes.values())} jobs lost" if arm.lost_jobs else ""
    if arm.slowdown is None:
        return lost or "nothing to be held against"
    takes = f"take {figure(arm.slowdown)} times as long"
    if not lost:
        return f"jobs {takes}"
    return f"{lost}; the others {takes}{', for they had the slots of these: no gain' if arm.thinned else ''}"


def _network(line: LossyLine) -> str:
    worst = next((row for row in reversed(line.losses) if row.slowdown is not None), None)
    slower = f" {100 * worst.loss:g} % of loss makes a step {figure(worst.slowdown)} times as long." if worst is not None else ""
    law = f" Communication goes as loss^β, β {figure(line.exponent)}: {line.shape}." if line.exponent is not None else f" {line.why}"
    return f"{line.name.partition(':')[2].replace(':', ', ') or 'a plain line'}:{slower}{law}"


def systems(run: Run) -> Iterator[str]:
    streams = records.in_order(records.streams(run, []), [])
    with suppress(Refused):  # no job was done in its first attempt; these jobs learn nothing, or nothing was varied
        yield from best_sentences(streams)
        result = hyper(streams)
        if result.best is not None and result.best.time_s is not None and len(result.points) > 1:
            yield f"Soonest to the accuracy: {result.named(result.best)}, {figure(result.best.time_s)} s."


def called(kind: str) -> str:
    return ARRIVALS.get(kind, f"{kind} arrivals" if kind else "arrivals unknown")


def settings(groups: Iterable[GroupWaits]) -> list[str]:
    """Name groups by their settings; where two read the same, by what the run calls them."""
    groups = list(groups)
    names = [_setting(waits) for waits in groups]
    return [name if names.count(name) == 1 else f"{name} ({waits.title})" for name, waits in zip(names, groups, strict=True)]


def _setting(waits: GroupWaits) -> str:
    fit = waits.validation.fit
    slots = "" if fit.servers is None else f"{fit.servers} slot{'s' if fit.servers > 1 else ''}, "
    load = "" if fit.load is None else f"load {digits(fit.load.value, 2)}, "
    return f"{slots}{load}{called(waits.arrivals)}"


def names(arms: Iterable[FaultArm]) -> list[str]:
    """Name arms where only these are shown: by their fault, and by what sets arms of one fault apart, their streams last."""
    arms = list(arms)
    labels = [arm.label.split(" ") for arm in arms]
    faults = [_apart(own, [other for other in labels if other[0] == own[0]]) for own in labels]
    conditions = [arm.condition.split(":") for arm in arms]
    alike = [[other for other, name in zip(conditions, faults, strict=True) if name == fault] for fault in faults]
    streams = [_apart(own, others)[1:] for own, others in zip(conditions, alike, strict=True)]
    return [", ".join(map(_word, (*fault, *stream))) for fault, stream in zip(faults, streams, strict=True)]


def _apart(own: list[str], others: list[list[str]]) -> list[str]:
    """The first word, and those others that not all have."""
    return own[:1] + [word for word in own[1:] if not all(word in other for other in others)]


def _word(word: str) -> str:
    key, _, value = word.partition("=")
    if key == "checkpoint_s":
        return "no checkpoints" if value == "0" else f"checkpoints every {value} s"
    try:
        return f"{key} {digits(float(value), 3)}" if value else key
    except ValueError:
        return f"{key} {value}"


def in_order(arms: Sequence[FaultArm]) -> list[FaultArm]:
    """Put arms of one fault together, by what is done against it: numbers as numbers."""

    def key(arm: FaultArm) -> list[tuple[str, float]]:
        parts = (word.partition("=") for word in arm.label.split(" "))
        return [(name, float(value) if value.replace(".", "", 1).isdecimal() else 0.0) for name, _, value in sorted(parts)]

    return sorted(arms, key=lambda arm: (arm.fault or "", arm.label.count("checkpoint_s"), key(arm)))
