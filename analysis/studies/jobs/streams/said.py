"""What a run of streams of jobs says in sentences, the same on a terminal and on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.studies.jobs.queues.page import little
from analysis.studies.jobs.queues.words import figure, unit
from analysis.studies.jobs.schedulers.measured import lost_unequally
from analysis.wording import digits, probability

from . import systems
from .words import in_order, names, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analysis.studies.jobs.dependability.blocks import Ratio
    from analysis.studies.jobs.dependability.network import Line
    from analysis.studies.jobs.dependability.study import Arm
    from analysis.studies.jobs.queues.validating import Held
    from analysis.studies.jobs.schedulers.measured import Place
    from analysis.terms import Run

    from .gathered import Gathered, Waits

SURE = 0.05
VERDICTS = {
    "agrees": "the model agrees",
    "differs": "the model is off",
    "open": "neither shown to agree nor to be off",
    "not judged": "no verdict",
}
FIRST_COME = frozenset({"", "fifo"})  # which the models are of
MOST = 12  # settings that are told one by one


def of_run(run: Run, found: Gathered | None) -> list[tuple[str, list[str]]]:
    """What is said of a run's streams: waits, policies, faults, lines that lose packets; nothing for a run that had none."""
    if found is None:
        return []
    # Systems are compared where nothing goes wrong: what a fault costs is said of faults.
    closed = any(one.closed for one in found.told) and not any(one.fault for one in found.told)
    parts = {
        "Waits": list(_waits(found)),
        "Policies": [line for place in found.places for line in _policies(place)],
        "Faults": list(_faults(found)),
        "Systems": list(systems.sentences(run)) if closed else [],
        "Packet loss": [_network(line) for line in found.lines],
        "Left out": [line.removeprefix(f"{run.origin}: ") for line in found.refused],
    }
    return [(head, lines) for head, lines in parts.items() if lines]


def _waits(found: Gathered) -> Iterator[str]:
    mine = [one for one in found.waits if one.validation.fit.policy in FIRST_COME]
    every = list(zip(settings((found, one) for one in mine), mine, strict=True))
    held = [one for _, waits in every if (one := _chosen(waits)) is not None]
    if held:
        counts = ", ".join(f"{said} in {n}" for word, said in VERDICTS.items() if (n := sum(one.verdict == word for one in held)))
        yield f"Mean waits against the model that the data leave standing, in {len(held)} setting{'s' if len(held) > 1 else ''}: {counts}."
    laws = [law for _, waits in every for law in waits.validation.fit.laws]
    if any(laws):
        yield little(laws)
    for name, waits in every[:MOST]:
        yield f"{name}: {_wait(waits)}"
    if len(every) > MOST:
        yield f"{len(every) - MOST} more settings: `python -m analysis queue validate`."
    notes: dict[str, list[str]] = {}
    for name, waits in every:
        for note in waits.validation.notes:
            notes.setdefault(note, []).append(name)
    yield from (f"{'All' if len(whose) == len(every) > 1 else '; '.join(whose)}: {note}" for note, whose in notes.items())


def _wait(waits: Waits) -> str:
    one = waits.validation
    scale, short = unit([one.wait_s.value] if one.wait_s is not None else [])
    wait = f"mean wait {figure(one.wait_s, scale)} {short}"
    if one.unstable:
        return f"{wait}; UNSTABLE: {one.unstable}"
    held = _chosen(waits)
    if held is None or held.verdict == "not judged":
        return f"{wait}."  # the model's figure is none of this stream's
    predicted = digits(held.predicted_s * scale, 3)
    return f"{wait}; {held.model} says {predicted} {short}, measured ÷ predicted {figure(held.ratio)}: {VERDICTS[held.verdict]}."


def _chosen(waits: Waits) -> Held | None:
    return next((one for one in waits.validation.held if one.chosen), None)


def _policies(place: Place) -> Iterator[str]:
    """Which policy lets jobs wait less than the baseline, and where the simulator waits otherwise."""
    lead = f"{place.slots} slots of {place.engine}, {place.streams} streams that all policies met"
    sure: list[str] = []
    other: list[str] = []
    for arm in place.arms:
        against = arm.against.get("mean_wait_s")
        if against is None:
            continue
        effect, p = against.effect, against.p
        if effect is None or p is None:
            other.append(f"{arm.policy} ({against.reason})")
            continue
        ratio, low, high = (digits(1 / (1 + gain), 3) for gain in (effect.gain, effect.high, effect.low))
        said = f"{arm.policy} {ratio} [{low}, {high}], p {probability(p)}"
        (sure if p < SURE else other).append(said)
    if sure:
        yield f"{lead}: mean wait over {place.baseline}'s: {'; '.join(sure)}."
    if other:
        yield f"{'No' if sure else f'{lead}: no'} difference from {place.baseline}'s mean wait is shown: {'; '.join(other)}."
    if place.left_out:
        yield lost_unequally(place)
    grow = [arm.policy for arm in place.arms if arm.grows]
    if grow:
        yield f"UNSTABLE under {', '.join(grow)}: the queue grows for as long as jobs come; these waits are of this length of stream."
    longer = [one for one in place.replays if one.interval_s is not None and one.interval_s[0] * one.interval_s[1] > 0]
    for one in longer:
        low_s, high_s = one.interval_s or (0.0, 0.0)
        longer_ms = f"{1000 * one.longer_s:+.3g} ms [{1000 * low_s:+.3g}, {1000 * high_s:+.3g}]"
        yield f"{one.policy}: real jobs wait {longer_ms} longer than the same jobs in simulation ({digits(1000 * one.simulated_s, 3)} ms)."


def _faults(found: Gathered) -> Iterator[str]:
    arms = in_order([arm for arm in found.arms if arm.fault])
    called = names(arms)
    slower = [arm for arm in arms if arm.slowdown is not None and arm.slowdown.value > 1 and arm.p is not None and arm.p < SURE]
    if arms:
        losing = sum(arm.lost_jobs > 0 for arm in arms)
        lose = f"; with jobs that were never done: {losing}" if losing else ""
        yield f"Settings with a fault: {len(arms)}; shown to make jobs slower: {len(slower) or 'none'}{lose}."
    for arm, name in zip(arms, called, strict=True):
        held = _held(arm)
        p = "" if arm.p is None else f", p {probability(arm.p)}"
        recovery = "" if arm.recovery_s is None else f"; caught up {figure(arm.recovery_s)} s after a fault"
        lost = "" if arm.lost_s is None else f"; {figure(arm.lost_s)} s of work lost a stream"
        isolation = f"; {arm.isolation}" if arm.isolation else ""
        yield f"{name}: {held}{p}{isolation}{recovery}{lost}."
    for one in found.spared:
        p = "" if one.p is None else f", p {probability(one.p)}"
        takes = one.why if one.response is None else f"the stream's own jobs take {_ratio(one.response)} of their time under fifo{p}."
        yield f"{one.label.partition(' ')[0]}, policy {one.policy}: {takes or 'nothing to be compared.'}"
    for trial in found.trials:
        said = trial.why if trial.least_s is None else f"least time at checkpoints every {figure(trial.least_s).replace('inf', 'no end')} s"
        yield f"Checkpoints under {trial.fault.partition(' ')[0]}: {said}."
    for bad in found.poisonings:
        if bad.drop is not None:
            setting = f" ({bad.setting})" if bad.setting else ""
            yield f"{bad.poisoned:g} poisoned{setting}: accuracy falls by {figure(bad.drop)} to {figure(bad.accuracy)}."


def _held(arm: Arm) -> str:
    """An arm's jobs against its twin's: how many were lost, and what the others take."""
    lost = f"{arm.lost_jobs} of {sum(arm.outcomes.values())} jobs lost" if arm.lost_jobs else ""
    if arm.slowdown is None:
        return lost or "nothing to be held against"
    takes = f"take {_ratio(arm.slowdown)} times as long"
    if not lost:
        return f"jobs {takes}"
    return f"{lost}; the others {takes}{', for they had the slots of these: no gain' if arm.thinned else ''}"


def _ratio(one: Ratio) -> str:
    return digits(one.value, 3) + ("" if one.low is None or one.high is None else f" [{digits(one.low, 3)}, {digits(one.high, 3)}]")


def _network(line: Line) -> str:
    """How a line's loss slows training down, and by which law."""
    worst = next((one for one in reversed(line.losses) if one.slowdown is not None), None)
    slower = ""
    if worst is not None and worst.slowdown is not None:
        slower = f" {100 * worst.loss:g} % of loss makes a step {_ratio(worst.slowdown)} times as long."
    law = f" Communication goes as loss^β, β {figure(line.exponent)}: {line.shape}." if line.exponent is not None else f" {line.why}"
    return f"{line.name.partition(':')[2].replace(':', ', ') or 'a plain line'}:{slower}{law}"
