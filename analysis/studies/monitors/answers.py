"""Answer of a monitored run: which monitors cost CPU, and their own usage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import TYPE_CHECKING

from analysis.answer import (
    TONES,
    Answer,
    Column,
    Line,
    Section,
    Table,
    Tone,
    Word,
    bullets,
    command,
    grouped,
)
from analysis.labels import about, absolute, headline, provenance, shorten
from analysis.terms import Metric, Run
from analysis.wording import probability, spoken, unsigned

if TYPE_CHECKING:
    from .study import MonitoredArm, Overhead

MIB = 2**20
ENDS, WHOLE = attrgetter("ends"), attrgetter("cell")
DIFFERS = "differs"
STATES: dict[str, Tone] = {"quiet": "", "underpowered": "open", DIFFERS: "bad", "missing": "open"}
LEGEND = (
    (
        "costs",
        (
            "% more than without a monitor, paired by block (n), on log ratios; its own 95 % "
            "interval; p is Holm's, over the study."
        ),
    ),
    (
        "CPU",
        (
            "seconds of the workload's process in its measured steps, the basis of verdicts. "
            "Wall: the same steps by the clock."
        ),
    ),
    (
        "all CPU",
        (
            "the process from start to exit and the monitor's own processes: the total cost to "
            "the machine."
        ),
    ),
    (
        "core",
        (
            "% of one core: CPU time of the monitor's processes per time at work, with the report "
            "but not the start. Inside monitors have no processes."
        ),
    ),
    (
        "memory",
        (
            "MiB of peak RSS: the monitor's own, plus the workload's growth. Written: MiB left "
            "on disk. Medians over blocks."
        ),
    ),
    (
        "outside",
        (
            "extra seconds outside measured steps: until it monitors (start), from the last step "
            "to its end (stop), and all others (outside)."
        ),
    ),
    ("load", "1-minute load average of the arm's cells, smallest and largest."),
)
TURNS = (
    "{}: the monitor was stopped in half of a process's segments and then continued; its start "
    "and report are outside segments."
)


def answer(run: Run, result: Sequence[Overhead], *, brief: bool = False) -> Answer:
    short, common = shorten(overhead.workload for overhead in result)
    names = {name: f"{label}: " if len(result) > 1 else "" for name, label in short.items()}
    facts = headline([run]).splitlines() + ([f"All workloads: {common}"] if common else [])
    margins = ", ".join(dict.fromkeys(unsigned(overhead.margin) for overhead in result))
    within = (
        "same",
        (
            f"the 90 % interval lies inside ±{margins} (two one-sided tests), and the A/A's is "
            "narrow enough to tell."
        ),
    )
    units = dict.fromkeys(overhead.units for overhead in result if overhead.units != "blocks")
    return Answer(
        title=_title(result, short),
        findings=[
            *(
                Line(f"{names[overhead.workload]}{overhead.control.sentence}", tone=tone)
                for overhead in result
                for tone in [STATES[overhead.control.state]]
            ),
            *(Line(text, tone="quiet") for text in facts),
        ],
        sections=[
            _section(overhead, names[overhead.workload].removesuffix(": "), brief=brief)
            for overhead in result
        ],
        warnings=[
            *(["the run was interrupted: later blocks are missing."] * run.interrupted),
            *run.warnings,
        ],
        legend=[
            *provenance([run]),
            *LEGEND,
            *(("n", TURNS.format(word)) for word in units),
            within,
        ],
        next=() if brief else command("report", run.origin),
        data={**about(run), "workloads": list(map(asdict, result))},
    )


def _claims(arms: Iterable[MonitoredArm]) -> list[MonitoredArm]:
    claims = [arm for arm in arms if arm.claims]
    return sorted(claims, key=lambda arm: -(arm.cpu.value if arm.cpu else 0.0))


def _title(result: Sequence[Overhead], short: dict[str, str]) -> str:
    """Write costs by monitor, with workloads: `cprofile 188.5 % (python_loop), 3 % (cnn_train)`."""
    sure = [overhead for overhead in result if overhead.control.state != DIFFERS]
    if not sure:
        return "No claim is made: the arms without a monitor differ."
    places: dict[str, list[str]] = {}
    for overhead in sure:
        for arm in _claims(arm for arm in overhead.arms if arm.base):
            where = f" ({short[overhead.workload]})" if len(result) > 1 else ""
            if arm.cpu is not None:
                places.setdefault(arm.label, []).append(f"{arm.cpu.amount.lstrip('+')}{where}")
    if not any(arm.cpu for overhead in sure for arm in overhead.arms if arm.base):
        return "No monitor could be compared with none."
    if not places:
        return "No monitor is shown to cost CPU."
    return (
        "Costs CPU: "
        f"{'; '.join(' '.join([label, ', '.join(texts)]) for label, texts in places.items())}."
    )


def _section(overhead: Overhead, title: str, *, brief: bool) -> Section:
    heads = [title] if title else []
    if overhead.base is not None:
        heads.append(f"none: {absolute(Metric(overhead.metric, 'lower'), overhead.base)}")
    arms = [*_claims(overhead.arms[1:]), *(arm for arm in overhead.arms[1:] if not arm.claims)]
    parts: list[Line | Table] = [_costs(arms, open_to=overhead.control.state != DIFFERS)]
    if not brief:
        parts += [_own([arm for arm in overhead.arms if arm.n]), *_further(overhead)]
    return Section(", ".join(heads), parts)


def _costs(arms: Sequence[MonitoredArm], *, open_to: bool) -> Table:
    columns = [
        Column("monitor", "monitor", left=True),
        Column("CPU", "verdict", left=True),
        Column("95 % interval\n+ costs", "cpu", ENDS),
        Column("wall\n+ % [95 %]", "wall", WHOLE, spare=2),
        Column("p\nHolm", "p_adjusted", probability),
        Column("n", "n", spare=1),
    ]
    rows = [
        [
            arm.label,
            _verdict(arm, open_to=open_to),
            arm.cpu,
            arm.wall,
            arm.cpu and arm.cpu.p_adjusted,
            f"{arm.n}/{arm.blocks}",
        ]
        for arm in arms
    ]
    return Table(columns, rows)


def _verdict(arm: MonitoredArm, *, open_to: bool) -> Word:
    """Return a word beside the number: `costs 188.5 %`, `same (+0.1 %)`, `can't tell (+1.5 %)`."""
    if arm.cpu is None or arm.verdict == "not comparable" or not open_to:
        return Word(arm.said, TONES[arm.verdict] if open_to else "quiet")
    size = arm.cpu.amount
    if not arm.base:
        return Word(f"{spoken(arm.said)} ({size})", "" if arm.verdict == "equivalent" else "open")
    if arm.claims:
        cost = arm.verdict == "regressed"
        return Word(
            f"{'costs ' if cost else ''}{size.lstrip('+-')}{'' if cost else ' less'}",
            "bad" if cost else "good",
        )
    return Word(f"{spoken(arm.verdict)} ({size})", "" if arm.verdict == "equivalent" else "open")


def _own(arms: Sequence[MonitoredArm]) -> Table:
    mib, seconds = (lambda value: f"{round(value / MIB, 1) + 0.0:.1f}"), "{:.2f}".format
    columns = [
        Column("monitor", "monitor", left=True),
        Column("all CPU\n+ % [95 %]", "total", WHOLE),
        Column("core\n%", "core_fraction", lambda mean: f"{100 * mean.value:.2f}"),
        Column("memory\nMiB", "memory_bytes", mib),
        Column("written\nMiB", "written_bytes", mib, spare=3),
        Column("start\ns", "start_s", seconds),
        Column("stop\ns", "stop_s", seconds),
        Column("outside\ns", "outside_s", seconds, spare=1),
        Column("samples", "samples", "{:.0f}".format),
        Column("load\nmin-max", "load", lambda load: f"{load.low:.1f}-{load.high:.1f}", spare=2),
    ]
    names = ("memory_bytes", "written_bytes", "start_s", "stop_s", "outside_s", "samples")
    return Table(
        columns,
        [[arm.label, arm.total, arm.core, *map(arm.own.get, names), arm.load] for arm in arms],
    )


def _further(overhead: Overhead) -> list[Line | Table]:
    arms = overhead.arms
    parts: list[Line | Table] = []
    rows = [[arm.label, arm.energy, arm.energy.n] for arm in arms if arm.energy is not None]
    if rows and overhead.control.state != DIFFERS:
        columns = [
            Column("energy", "monitor", left=True),
            Column("energy + % [95 %]", "energy", WHOLE),
            Column("n", "n"),
        ]
        parts.append(Table(columns, rows))
    every = sum(1 for arm in arms[1:] if arm.n)
    lost = [(arm.label, f"{count} {reason}") for arm in arms for reason, count in arm.lost.items()]
    notes = [(arm.label, note) for arm in arms for note in arm.notes]
    parts += bullets(grouped(lost), "left out:") + bullets(grouped(notes, every), "note:")
    # The legend explains that an inside monitor has no processes of its own.
    missing = [
        (arm.label, f"{name.partition('.')[2]}: {reason.rstrip('.')}.")
        for arm in arms
        for name, reason in arm.missing.items()
        if not (arm.kind == "inside" and name in {"monitor.cpu_s", "monitor.peak_rss_bytes"})
    ]
    return [*parts, *bullets(grouped(missing, every + 1), "missing:")]
