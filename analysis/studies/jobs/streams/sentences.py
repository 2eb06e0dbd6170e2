"""What a run's streams of jobs say in sentences, the same on a terminal and on a page, and what they are called there and on pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from analysis.checks import warnings_of
from analysis.compare import compare
from analysis.compare_answer import answer_of
from analysis.labels import headline
from analysis.plain import one_line
from analysis.printing import hanging, on_page
from analysis.render import text as page
from analysis.studies.jobs.output import figure, unit
from analysis.studies.jobs.profiles.hyper import hyper
from analysis.studies.jobs.profiles.profile import profile, short
from analysis.studies.jobs.profiles.rows import told
from analysis.studies.jobs.queues.page import little
from analysis.studies.jobs.schedulers.measured import lost_unequally
from analysis.terms import Refused
from analysis.wording import digits, probability

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType

    from analysis.studies.jobs.dependability.network import Line
    from analysis.studies.jobs.dependability.study import FaultArm
    from analysis.studies.jobs.estimates import Ratio
    from analysis.studies.jobs.profiles.profile import BestSystem, ClassProfile
    from analysis.studies.jobs.profiles.rows import Told
    from analysis.studies.jobs.queues.validation import ModelCheck
    from analysis.studies.jobs.schedulers.measured import Place
    from analysis.terms import Comparison, Run

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
        "Systems": list(systems(run)) if closed else [],
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


def _wait(waits: GroupWaits) -> str:
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


def _chosen(waits: GroupWaits) -> ModelCheck | None:
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


def _held(arm: FaultArm) -> str:
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


def systems(run: Run) -> Iterator[str]:
    """Say, by class, the system on which jobs take least time and what they spend it on; then what learned soonest, where jobs learn."""
    streams = told(run, [])
    try:
        rows, best = profile(streams)
    except Refused:
        return  # no job was done in its first attempt
    called = short([row.system for row in rows])
    for one in best:
        mine = [row for row in rows if row.class_ == one.class_]
        yield _soonest(one, mine, called)
    yield from _learned(streams)


def _soonest(one: BestSystem, rows: Sequence[ClassProfile], called: dict[str, str]) -> str:
    first = rows[0]
    where = f"{one.class_}: {figure(first.time_s)} s a job"
    if one.next:
        where = f"{one.class_}: soonest on {called[one.system]} ({figure(first.time_s)} s a job), {_than(one)} {called[one.next]}"
    of = "of it" if first.closed else "of the time from submission on"
    return f"{where}; there most {of} is {first.bottleneck}{'' if first.share is None else f' ({100 * first.share.value:.0f} %)'}."


def _than(one: BestSystem) -> str:
    effect = one.effect
    if effect is None:
        return f"{one.why}, before"
    shown = f"{100 * effect.gain:+.1f} % faster [{100 * effect.low:+.1f}, {100 * effect.high:+.1f}], p {probability(effect.p)}"
    return f"{shown}, than" if effect.low > 0 else f"not shown to be faster ({shown}) than"


def _learned(streams: Sequence[Told]) -> Iterator[str]:
    try:
        found = hyper(streams)
    except Refused:
        return  # these jobs learn nothing, or nothing was varied
    if found.best is not None and found.best.time_s is not None and len(found.points) > 1:
        levels = ", ".join(f"{name} {level}" for name, level in zip(found.factors, found.best.levels, strict=True))
        yield f"Soonest to the accuracy: {levels}, {figure(found.best.time_s)} s."


CALLED = {
    "poisson": "Poisson arrivals",
    "deterministic": "equal gaps",
    "mmpp": "arrivals in bursts (MMPP)",
    "trace": "arrivals of a trace",
    "fltk": "arrivals as FLTK's",
}


def called(kind: str) -> str:
    """Say how jobs came."""
    return CALLED.get(kind, f"{kind} arrivals" if kind else "arrivals unknown")


def setting(waits: GroupWaits) -> str:
    """What sets a group of streams apart, in words: `2 slots, load 0.61, Poisson arrivals`; what tells it from its like behind it."""
    fit = waits.validation.fit
    slots = "" if fit.servers is None else f"{fit.servers} slot{'s' if fit.servers > 1 else ''}, "
    load = "" if fit.load is None else f"load {digits(fit.load.value, 2)}, "
    return f"{slots}{load}{called(waits.arrivals)}"


def settings(found: Iterable[tuple[Gathered, GroupWaits]]) -> list[str]:
    """Name groups by their settings; where two read the same, by what the run calls them."""
    found = list(found)
    names = [setting(waits) for _, waits in found]
    return [name if names.count(name) == 1 else f"{name} ({waits.title})" for name, (_, waits) in zip(names, found, strict=True)]


def names(arms: Iterable[FaultArm]) -> list[str]:
    """Name arms where only these are shown: by their fault, and by what sets arms of one fault apart, their streams last."""
    arms = list(arms)
    words = [arm.label.split(" ") for arm in arms]
    found = [_apart(own, [other for other in words if other[0] == own[0]]) for own in words]
    conditions = [arm.condition.split(":") for arm in arms]
    where = [[other for other, name in zip(conditions, found, strict=True) if name == mine] for mine in found]
    apart = [_apart(own, others)[1:] for own, others in zip(conditions, where, strict=True)]
    return [", ".join(map(_word, (*name, *more))) for name, more in zip(found, apart, strict=True)]


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


LOUD = ("UNSTABLE", "LITTLE'S LAW IS BROKEN")


def render(run: Run, found: Gathered, *, color: bool = False) -> str:
    """Write what is said of a run's streams, and below it what its tweak sets did."""
    compared = compare(run)
    text = on_page(_page_parts(run, found, compared), color=color)
    asked = [one for one in compared if not one.untouched]
    return f"{text}\n{page.render(answer_of(compared, [run]), color=color)}" if asked else text


def _page_parts(run: Run, found: Gathered, compared: Sequence[Comparison]) -> Iterator[RenderableType]:
    yield Text("\n".join(one_line(line, 400) for line in headline([run]).split("\n")), "bold")
    yield from (Text(f"{name}: {one_line(study.question, 400)}") for name, study in run.studies.items())
    for part, lines in of_run(run, found):
        yield ""
        yield Text(part, "bold")
        for line in lines:
            yield hanging([("•", one_line(line, 1000))], style="bold yellow" if any(word in line for word in LOUD) else "")
    warnings = list(dict.fromkeys(warnings_of(run, compared)))
    if warnings:
        yield ""
        yield hanging([("warning:", one_line(line, 1000)) for line in warnings], "yellow")
