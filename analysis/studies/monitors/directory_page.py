"""A folder of somebody's overhead study as text of at most 100 columns: differences without a claim, CPU, GPU, and what is missing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import one_line
from analysis.printing import columns, hanging, on_page
from analysis.wording import ended

from . import counters, of_logs
from .directory_words import began, monitors_of, reason, same_training

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from .counters import Counters
    from .directory import Found, Training
    from .of_logs import Share

NOT_KNOWN = "–"
AT_ONCE = "the first table of top covers an instant, not an interval"


def render(found: Found, *, color: bool = False) -> str:
    """Write a folder's findings as text."""
    return on_page(parts(found), color=color)


def parts(found: Found) -> Iterator[RenderableType]:
    """The page, part by part."""
    for at, one in enumerate(found.trainings):
        if at:
            yield ""
        yield from _training(one)
    if found.missing:
        yield ""
        yield hanging([("•", ended(one_line(line))) for line in found.missing], "dim", "dim")


def _training(one: Training) -> Iterator[RenderableType]:
    count = len(one.conditions)
    yield Text(f"{one_line(one.name, 60)}: {count} condition{'' if count == 1 else 's'}, 1 run of each", "bold")
    yield from _times(one)
    yield ""
    yield hanging([("verdict", f"not comparable: {reason(one.conditions)}"), ("work", ended(same_training(one.conditions)))])
    for made in (_cpu(one), _gpu(one), _missing(one)):
        found = list(made)
        if found:
            yield ""
            yield from found


def _times(one: Training) -> Iterator[RenderableType]:
    found = of_logs.differences(one.conditions)
    bases = list(dict.fromkeys(each.against for each in found))
    rows = []
    for each in one.conditions:
        against = {other.against: f"{100 * other.fraction:+.2f}" for other in found if other.condition == each.name}
        time = NOT_KNOWN if each.time_s is None else f"{each.time_s:.3f}"
        loads = [shot.load_average_1min for shot in each.top.snapshots] if each.top is not None else []
        load = f"{loads[0]:.2f} to {loads[-1]:.2f}" if loads and not math.isnan(sum(loads)) else NOT_KNOWN
        rows.append([each.name, monitors_of(each), began(each) or NOT_KNOWN, load, time, *(against.get(base, "") for base in bases)])
    yield columns(["condition", "monitors", "began", "load", "time s", *(f"vs {base} %" for base in bases)], rows, 2)


def _cpu(one: Training) -> Iterator[RenderableType]:
    found = [share for each in one.conditions for share in of_logs.shares(each)]
    if not found:
        return
    yield Text("CPU as top saw it, % of one core; the busiest command beside the monitors is the training")
    heads = ["condition", "command", "mean", "after the first", "by its clock", "CPU s", "shown in"]
    yield columns(heads, [_share(share) for share in found], 2)
    legend = [
        ("mean", f"over all snapshots, 0 where it is not shown, as the study reckons; {AT_ONCE}."),
        ("clock", f"by its own CPU clock from first to last; {NOT_KNOWN} where its processes came and went, or as said."),
    ]
    others = {(each.condition, each.why_no_clock): "" for each in found if each.why_no_clock not in {"", of_logs.CAME_AND_WENT}}
    legend += [(condition, f"by its clock {NOT_KNOWN}: {why}.") for condition, why in others]
    yield hanging(legend, "dim", "dim")


def _share(share: Share) -> list[str]:
    numbers = [_number(value, digits) for value, digits in ((share.steady_percent, 2), (share.clock_percent, 2), (share.cpu_s, 2))]
    shown = f"{share.shown_in} of {share.snapshots}"
    return [share.condition, one_line(share.command, 30), f"{share.shown_percent:.2f}", *numbers, shown]


def _gpu(one: Training) -> Iterator[RenderableType]:
    found = [counter for each in one.conditions for counter in counters.counters(each)]
    if not found:
        return
    yield Text("The busiest GPU as the monitors saw it, over all samples and over those in which it was busy")
    rows = []
    for each in found:
        for name, count, mean in (("all", each.samples, each.mean), ("busy", each.active, each.mean_active)):
            used = mean.get("GPUTL", mean.get("utilization.gpu"))
            shares = [_number(mean.get(counter), 3) for counter in ("GRACT", "SMACT", "SMOCC")]
            power = _number(mean.get("POWER", mean.get("power.draw")), 1)
            first = [each.condition, each.monitor, one_line(each.gpu, 12)] if name == "all" else ["", "", ""]
            rows.append([*first, name, str(count), _number(used, 1), *shares, _number(mean.get("memory.used"), 0), power])
    yield columns(["condition", "monitor", "GPU", "", "samples", "util %", "GRACT", "SMACT", "SMOCC", "MiB", "W"], rows, 4)
    said = [(each.condition, line) for each in found for line in _beside(each)]
    if said:
        yield hanging(said, "dim", "dim")


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


def _missing(one: Training) -> Iterator[RenderableType]:
    said = [(each.name, ended(why)) for each in one.conditions for why in (*each.missing.values(), *each.notes)]
    if one.absent:
        said.append(("missing", f"no file of {', '.join(one.absent)}, which the study ran: nothing is said of them, and none is 0."))
    if one.unread:
        said.append(("not read", f"{', '.join(map(one_line, one.unread))}: no kind of log that is known."))
    if said:
        yield hanging(said, "dim", "dim")


def _number(value: float | None, digits: int) -> str:
    return NOT_KNOWN if value is None else f"{value:.{digits}f}"
