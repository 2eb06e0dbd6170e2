"""A saved run's streams of jobs and all that they show: waits, policies, faults, lossy lines; in sentences, and slot by slot for pictures.

A block's seed draws its stream, so that a cell and its copy (`stock-again`) had the same jobs: they are no two replicates. Of each block
the stock cell is taken, the copy only where stock was not measured.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analysis.answer import Answer, Line, Section, together
from analysis.checks import warnings_of
from analysis.compare import compare
from analysis.compare_answer import answer_of
from analysis.labels import headline, short_names
from analysis.terms import AGAIN, STOCK, Refused
from analysis.wording import digits

from .checkpoints import trials
from .csv_file import grouped_alike
from .estimates import figure, inverse, p_value, plural, unit, value_of
from .faults import arms, poisonings, spared
from .hyper import hyper
from .network import cells_of_run, lines
from .policies import lost_unequally, places, played_streams
from .profile import best_sentences
from .queue_fits import fit
from .queue_formulas import Inputs
from .queues import little_sentence, validate, validated
from .records import distinct, in_order, loses_packets, streams, tells_of_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from analysis.terms import Run

    from .checkpoints import CheckpointTrial
    from .faults import FaultArm, Poisoning, SparedJobs
    from .network import LossyLine
    from .policies import Place
    from .queues import WaitValidation
    from .records import Stream

MARGIN = 0.10  # how far off a model of waits may be
BASELINE = "fifo"
SURE = 0.05
VERDICTS = {
    "agrees": "the model agrees",
    "differs": "the model is off",
    "open": "neither shown to agree nor to be off",
    "not judged": "no verdict",
}
FIRST_COME = frozenset({"", "fifo"})  # which the models are of
LOUD = ("UNSTABLE", "LITTLE'S LAW IS BROKEN")
MOST = 12  # settings that have a sentence each
ARRIVALS = {
    "poisson": "Poisson arrivals",
    "deterministic": "equal gaps",
    "mmpp": "arrivals in bursts (MMPP)",
    "trace": "arrivals of a trace",
    "fltk": "arrivals as FLTK's",
}


@dataclass(frozen=True, slots=True)
class GroupWaits:
    """Streams of equal conditions, and their waits against the models; `title` is what sets them apart from the run's others."""

    title: str
    streams: tuple[Stream, ...]
    validation: WaitValidation

    @property
    def arrivals(self) -> str:
        return self.streams[0].arrival_kind


@dataclass(frozen=True, slots=True)
class Gathered:
    """All of one run; each that could not be used is a line of `refused`.

    `arms` are streams under faults and their like without, `spared` policies under the same fault, `trials` intervals between checkpoints,
    `lines` what lost packets.
    """

    run: Run
    streams: tuple[Stream, ...] = ()
    waits: tuple[GroupWaits, ...] = ()
    places: tuple[Place, ...] = ()
    arms: tuple[FaultArm, ...] = ()
    spared: tuple[SparedJobs, ...] = ()
    poisonings: tuple[Poisoning, ...] = ()
    trials: tuple[CheckpointTrial, ...] = ()
    lines: tuple[LossyLine, ...] = ()
    refused: tuple[str, ...] = ()


def answer(run: Run) -> Answer:
    """Answer the run's own question. Raises: Refused, where nothing of it can be used."""
    refused: list[str] = []
    (_, first), *others = _questions(run, refused)
    command = f"python -m analysis {others[0][0]} {shlex.quote(run.origin)}" if others else ""
    result = first()
    return replace(result, next=result.next or command)


def _questions(run: Run, refused: list[str]) -> Iterator[tuple[str, Callable[[], Answer]]]:
    """Commands that have an answer for the run, the most special first, and how each is come by."""
    from . import checkpoints, faults, hyper, network, policies, profile, scaling

    if loses_packets(run):
        yield "depend network", lambda: network.lossy(network.lines(network.cells_of_run(run, refused)), refused)
    if not tells_of_jobs(run):
        return
    every = streams(run, refused)
    if any("scale" in cell.report for cell in run.cells):
        yield "scale report", lambda: scaling.reported(scaling.of_run(run, in_order(every, refused)), refused)
    if trials := checkpoints.trials(every):
        yield "depend checkpoint", lambda: checkpoints.advised(None, checkpoints.with_advice(trials), refused)
    if any(stream.fault for stream in every) or any(setting.poisoned for setting in faults.poisonings(every)):
        yield "depend report", lambda: faults.reported(every, MARGIN, refused)
    if _learns(every):
        yield "jobs hyper", lambda: hyper.answer(in_order(every, refused), refused)
    if len({stream.policy for stream in every}) > 1:
        played = policies.played_streams(run, every, refused)
        yield "schedule report", lambda: policies.measured(policies.places(played, BASELINE, refused), refused)
    if any(stream.closed for stream in every):
        yield "jobs profile", lambda: profile.answer(in_order(every, refused), refused)
    if not all(stream.closed for stream in every):
        yield "queue validate", lambda: validate_groups(grouped_alike(every, refused), refused, MARGIN)


def _learns(every: Sequence[Stream]) -> bool:
    from .hyper import hyper

    try:
        return hyper(in_order(every, [])).best is not None
    except Refused:
        return False


def brief(run: Run) -> Answer:
    """All that streams and lines of a run show, a sentence each, and what its tweak sets did where it has any."""
    compared = compare(run)
    result = replace(
        sentences(run),
        findings=[
            *(Line(line, tone="strong") for line in headline([run]).split("\n")),
            *(Line(f"{name}: {study.question}") for name, study in run.studies.items()),
        ],
        warnings=list(dict.fromkeys(warnings_of(run, compared))),
    )
    return result if all(comparison.untouched for comparison in compared) else together([result, answer_of(compared, [run])])


def sentences(run: Run) -> Answer:
    """All that streams and lines of a run show, part by part."""
    return Answer("", sections=[Section(part, [*map(_sentence, lines)]) for part, lines in of_run(run, gather(run))])


def _sentence(line: str) -> Line:
    return Line(line, "•", "open" if any(word in line for word in LOUD) else "")


def validate_groups(
    groups: Sequence[Sequence[Stream]],
    refused: list[str],
    margin: float,
    servers: int | None = None,
    planned: tuple[float, float] | None = None,
) -> Answer:
    """Hold the waits of streams against models, group by group; `planned` is a rate and a mean service time.

    Raises: Refused, where none can be used.
    """
    validations = []
    for group in groups:
        try:
            fitted = fit(group, servers)
            inputs = Inputs(*planned, fitted.servers) if planned and fitted.servers is not None else None
            validations.append(validate(fitted, group, margin, inputs))
        except Refused as error:
            refused.append(str(error))
    if not validations:
        raise Refused(refused[0])
    return validated(validations, refused)


def gather(run: Run) -> Gathered | None:
    """Put a run's streams together; None for a run without jobs and lossy lines."""
    refused: list[str] = []
    lossy = tuple(lines(cells_of_run(run, refused)))
    if not tells_of_jobs(run):
        return Gathered(run, lines=lossy, refused=tuple(refused)) if lossy else None
    every = streams(run, refused)
    stock = {(stream.group, stream.unit) for stream in every if not stream.again}
    of_run = [stream for stream in every if not stream.again or (stream.group, stream.unit) not in stock]
    order = list(run.workloads)
    by_workload = tuple(sorted(of_run, key=lambda stream: (order.index(stream.workload), stream.unit[1])))
    of_faults = arms(of_run, MARGIN)
    return Gathered(
        run,
        by_workload,
        tuple(_waits_of(run, by_workload, refused)),
        tuple(_places_of(run, of_run, refused)),
        arms=tuple(of_faults) if any(arm.fault for arm in of_faults) else (),
        spared=tuple(spared(of_run)),
        poisonings=tuple(poisoning for poisoning in poisonings(of_run) if poisoning.drop is not None or poisoning.poisoned),
        trials=tuple(trials(of_run)),
        lines=lossy,
        refused=tuple(refused),
    )


def _waits_of(run: Run, every: Iterable[Stream], refused: list[str]) -> Iterator[GroupWaits]:
    names = short_names(run.workloads)
    groups: dict[str, list[Stream]] = {}
    for stream in every:
        if not stream.closed and not stream.fault:
            groups.setdefault(stream.group, []).append(stream)
    for group in groups.values():
        first, replicates = group[0], distinct(group, refused)
        title = names[first.workload] + ("" if first.tweakset in {STOCK, AGAIN} else f" · {first.tweakset}")
        try:
            yield GroupWaits(title, tuple(group), validate(fit(replicates), replicates, MARGIN))
        except Refused as error:
            refused.append(str(error))


def _places_of(run: Run, every: Sequence[Stream], refused: list[str]) -> Iterator[Place]:
    usable = [one for one in every if one.tweakset in {STOCK, AGAIN} and one.policy and not one.fault and not one.closed]
    played = played_streams(run, usable, refused)
    for engine, slots in dict.fromkeys((stream.engine, stream.slots) for stream in played):
        here = [stream for stream in played if (stream.engine, stream.slots) == (engine, slots)]
        names = sorted({stream.policy for stream in here})
        if len(names) < 2:
            continue
        try:
            yield from places(here, BASELINE if BASELINE in names else names[0], refused)
        except Refused as error:
            refused.append(str(error))


def of_run(run: Run, gathered: Gathered | None) -> list[tuple[str, list[str]]]:
    """Return sentences on a run's streams by part: waits, policies, faults, lines that lose packets; nothing for a run that had none."""
    if gathered is None:
        return []
    # Systems are compared where nothing goes wrong: what a fault costs is said of faults.
    closed = any(stream.closed for stream in gathered.streams) and not any(stream.fault for stream in gathered.streams)
    parts = {
        "Waits": list(_waits(gathered)),
        "Policies": [line for place in gathered.places for line in _policies(place)],
        "Faults": list(_faults(gathered)),
        "Systems": list(_systems(run)) if closed else [],
        "Packet loss": [_network(line) for line in gathered.lines],
        "Left out": [line.removeprefix(f"{run.origin}: ") for line in gathered.refused],
    }
    return [(head, sentences) for head, sentences in parts.items() if sentences]


def _waits(gathered: Gathered) -> Iterator[str]:
    groups = [waits for waits in gathered.waits if waits.validation.fit.policy in FIRST_COME]
    named = list(zip(settings(groups), groups, strict=True))
    checks = [check for waits in groups if (check := waits.validation.chosen) is not None]
    if checks:
        counts = {sentence: sum(check.verdict == word for check in checks) for word, sentence in VERDICTS.items()}
        verdicts = ", ".join(f"{sentence} in {count}" for sentence, count in counts.items() if count)
        yield f"Mean waits against the model that the data leave standing, in {plural(len(checks), 'setting')}: {verdicts}."
    laws = [law for waits in groups for law in waits.validation.fit.laws]
    if any(laws):
        yield little_sentence(laws)
    yield from (f"{name}: {_wait(waits.validation)}" for name, waits in named[:MOST])
    if len(named) > MOST:
        yield f"{len(named) - MOST} more settings: `python -m analysis queue validate`."
    notes: dict[str, list[str]] = {}
    for name, waits in named:
        for note in waits.validation.notes:
            notes.setdefault(note, []).append(name)
    yield from (f"{'All' if len(names) == len(named) > 1 else '; '.join(names)}: {note}" for note, names in notes.items())


def _wait(validation: WaitValidation) -> str:
    check = validation.chosen
    scale, name = unit([value_of(validation.wait_s)])
    wait = f"mean wait {figure(validation.wait_s, scale)} {name}"
    if validation.unstable:
        return f"{wait}; UNSTABLE: {validation.unstable}"
    if check is None or check.verdict == "not judged":
        return f"{wait}."  # the model's figure is none of this stream's
    predicted = f"{check.model} says {digits(check.predicted_s * scale, 3)} {name}"
    return f"{wait}; {predicted}, measured ÷ predicted {figure(check.ratio)}: {VERDICTS[check.verdict]}."


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
        (sure if contrast.p < SURE else other).append(f"{arm.policy} {ratio} [{low}, {high}], p {p_value(contrast.p)}")
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
    of_faults = by_fault([arm for arm in gathered.arms if arm.fault])
    if of_faults:
        slower = sum(arm.slowdown is not None and arm.slowdown.value > 1 and arm.p is not None and arm.p < SURE for arm in of_faults)
        losing = sum(arm.lost_jobs > 0 for arm in of_faults)
        lose = f"; with jobs that were never done: {losing}" if losing else ""
        yield f"Settings with a fault: {len(of_faults)}; shown to make jobs slower: {slower or 'none'}{lose}."
    for arm, name in zip(of_faults, names(of_faults), strict=True):
        parts = [_against_twin(arm) + _p(arm.p)]
        parts += [arm.isolation] if arm.isolation else []
        parts += [f"caught up {figure(arm.recovery_s)} s after a fault"] if arm.recovery_s is not None else []
        parts += [f"{figure(arm.lost_s)} s of work lost a stream"] if arm.lost_s is not None else []
        yield f"{name}: {'; '.join(parts)}."
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
    return "" if p is None else f", p {p_value(p)}"


def _against_twin(arm: FaultArm) -> str:
    lost = f"{arm.lost_jobs} of {sum(arm.outcomes.values())} jobs lost" if arm.lost_jobs else ""
    if arm.slowdown is None:
        return lost or "nothing to be compared with"
    takes = f"take {figure(arm.slowdown)} times as long"
    if not lost:
        return f"jobs {takes}"
    return f"{lost}; the others {takes}{', for they had the slots of these: no gain' if arm.thinned else ''}"


def _network(line: LossyLine) -> str:
    worst = next((row for row in reversed(line.losses) if row.slowdown is not None), None)
    slower = f" {100 * worst.loss:g} % of loss makes a step {figure(worst.slowdown)} times as long." if worst is not None else ""
    law = f" Communication goes as loss^β, β {figure(line.exponent)}: {line.shape}." if line.exponent is not None else f" {line.why}"
    return f"{line.name.partition(':')[2].replace(':', ', ') or 'a plain line'}:{slower}{law}"


def _systems(run: Run) -> Iterator[str]:
    every = in_order(streams(run, []), [])
    with suppress(Refused):  # no job was done in its first attempt; these jobs learn nothing, or nothing was varied
        yield from best_sentences(every)
        result = hyper(every)
        if result.best is not None and result.best.time_s is not None and len(result.points) > 1:
            yield f"Soonest to the accuracy: {result.named(result.best)}, {figure(result.best.time_s)} s."


def called(kind: str) -> str:
    return ARRIVALS.get(kind, f"{kind} arrivals" if kind else "arrivals unknown")


def settings(groups: Iterable[GroupWaits]) -> list[str]:
    """Name groups by their settings; where two read the same, by what the run calls them too."""
    groups = list(groups)
    short = []
    for waits in groups:
        of = waits.validation.fit
        slots = [] if of.servers is None else [plural(of.servers, "slot")]
        load = [] if of.load is None else [f"load {digits(of.load.value, 2)}"]
        short.append(", ".join([*slots, *load, called(waits.arrivals)]))
    return [name if short.count(name) == 1 else f"{name} ({waits.title})" for name, waits in zip(short, groups, strict=True)]


def names(arms: Iterable[FaultArm]) -> list[str]:
    """Name arms where only these are shown: by their fault, and by what sets arms of one fault apart, their streams last."""
    arms = list(arms)
    labels = [arm.label.split(" ") for arm in arms]
    faults = [_apart(own, [other for other in labels if other[0] == own[0]]) for own in labels]
    conditions = [arm.condition.split(":") for arm in arms]
    alike = [[other for other, name in zip(conditions, faults, strict=True) if name == fault] for fault in faults]
    of_streams = [_apart(own, others)[1:] for own, others in zip(conditions, alike, strict=True)]
    return [", ".join(map(_word, (*fault, *stream))) for fault, stream in zip(faults, of_streams, strict=True)]


def _apart(own: list[str], others: list[list[str]]) -> list[str]:
    """Return the first word, and those others that not all have."""
    return own[:1] + [word for word in own[1:] if not all(word in other for other in others)]


def _word(word: str) -> str:
    key, _, value = word.partition("=")
    if key == "checkpoint_s":
        return "no checkpoints" if value == "0" else f"checkpoints every {value} s"
    try:
        return f"{key} {digits(float(value), 3)}" if value else key
    except ValueError:
        return f"{key} {value}"


def by_fault(arms: Sequence[FaultArm]) -> list[FaultArm]:
    """Put arms of one fault together, by what is done against it: numbers as numbers."""

    def key(arm: FaultArm) -> list[tuple[str, float]]:
        parts = (word.partition("=") for word in arm.label.split(" "))
        return [(name, float(value) if value.replace(".", "", 1).isdecimal() else 0.0) for name, _, value in sorted(parts)]

    return sorted(arms, key=lambda arm: (arm.fault or "", arm.label.count("checkpoint_s"), key(arm)))
