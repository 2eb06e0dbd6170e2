"""Monitoring overhead as text of at most 100 columns: the answer, what each monitor costs, what it takes itself, doses, demands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from analysis.labels import absolute, headline
from analysis.plain import one_line
from analysis.printing import columns, hanging, on_page
from analysis.studies.keys.printable import printable
from analysis.terms import Metric
from analysis.wording import probability, unsigned

from .said import answer
from .words import whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from analysis.terms import Run

    from .terms import Arm, Overhead

MIB = 2**20
NAME = 26
STYLES = {"regressed": "bold red", "improved": "bold green", "equivalent": "green", "inconclusive": "yellow", "not comparable": "dim"}
STATES = {"quiet": "", "underpowered": "yellow", "differs": "bold red", "missing": "yellow"}
MARKS = {"PASS": "green", "FAIL": "bold red", "NOT SHOWN": "yellow"}
TURNS = ("n", "{}: the monitor was stopped in half of the segments of a process and let go on; start and report are in no segment.")
LEGEND = (
    ("+", "% more than without a monitor, paired by block (n), on log ratios; [ ] its own 95 % interval. p: Holm's, over the study."),
    ("CPU", "seconds of the workload's process in its measured steps, by which verdicts are given. Wall: the same steps by the clock."),
    ("all CPU", "the process from start to exit and the monitor's own processes: what watching takes from the machine."),
    ("core", "% of one core: its own processes' CPU by the time at work, report included, start not. Inside ones have none."),
    ("memory", "MiB of peak RSS: the monitor's own, and what the workload's grew by. written: MiB it left behind. Medians over blocks."),
    ("outside", "seconds that are no measured step, more than without: until it watches (start), from last step to gone (stop), the rest."),
    ("load", "1-minute load average of the arm's cells, smallest and largest."),
)


def render(run: Run, found: Sequence[Overhead], *, color: bool = False) -> str:
    """Write what is said of a run."""
    return on_page(parts(run, found), color=color)


def render_ending(run: Run, found: Sequence[Overhead], *, color: bool = False) -> str:
    """Write what a session ends with: the answer of each workload and what its monitors cost; the command says the rest."""
    return on_page(_ending(run, found), color=color)


def _ending(run: Run, found: Sequence[Overhead]) -> Iterator[RenderableType]:
    yield Text(one_line(headline([run]), 400) if "\n" not in headline([run]) else headline([run]), "bold")
    for one in map(printable, found):
        yield ""
        yield from _answer(one)
        yield ""
        yield _costs(one.arms[1:])
    yield ""
    more = "`python -m analysis overhead` and this run's file say more: own CPU, memory, rates, what such a study must show."
    yield hanging([*LEGEND[:2], ("", more)], "dim", "dim")


def parts(run: Run, found: Sequence[Overhead]) -> Iterator[RenderableType]:
    """The page, part by part."""
    yield Text(one_line(headline([run]), 400) if "\n" not in headline([run]) else headline([run]), "bold")
    for one in found:
        yield ""
        yield from _workload(printable(one))
    if run.warnings or run.interrupted:
        lines = ["the run was interrupted: later blocks are missing."] * run.interrupted + list(run.warnings)
        yield ""
        yield hanging([("warning:", one_line(line, 1000)) for line in lines], "yellow")
    yield ""
    margins = ", ".join(dict.fromkeys(unsigned(one.margin) for one in found))
    within = ("within", f"the 90 % interval lies inside ±{margins} (two one-sided tests), and the A/A's is narrow enough to tell.")
    units = dict.fromkeys(one.units for one in found if one.units != "blocks")
    yield hanging([*LEGEND, *((TURNS[0], TURNS[1].format(word)) for word in units), within], "dim", "dim")


def _answer(found: Overhead) -> Iterator[RenderableType]:
    base = "" if found.base is None else f"   none: {absolute(Metric(found.metric, 'lower'), found.base)}"
    yield Text.assemble((found.workload, "bold"), base)
    first, *others = answer(found)
    yield Text(first, STATES[found.control.state])
    yield hanging([("•", line) for line in others])


def _workload(found: Overhead) -> Iterator[RenderableType]:
    yield from _answer(found)
    yield ""
    yield _costs(found.arms[1:])
    yield ""
    yield _own([one for one in found.arms if one.n])
    yield from _further(found)
    yield ""
    yield from _checks(found)


def _costs(arms: Sequence[Arm]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False, header_style="")
    table.add_column("monitor", overflow="fold", max_width=NAME)
    for head in ("n", "CPU +% [95 %]", "Holm p", "wall +% [95 %]"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold")
    for one in arms:
        p = "" if one.cpu is None or one.cpu.p_adjusted is None else probability(one.cpu.p_adjusted)
        verdict = Text(one.said, STYLES[one.verdict])
        table.add_row(Text(one.label), f"{one.n}/{one.blocks}", whole(one.cpu), p, whole(one.wall), verdict)
    return table


def _own(arms: Sequence[Arm]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="")
    table.add_column("\nmonitor", overflow="fold", max_width=NAME)
    heads = ("all CPU\n+% [95 %]", "core\n%", "memory\nMiB", "written\nMiB", "start+stop\ns", "outside\ns", "\nsamples", "load\nmin-max")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for one in arms:
        table.add_row(Text(one.label), *_takes(one))
    return table


def _takes(one: Arm) -> list[str]:
    own = one.own
    outside = "" if own.start_s is None or own.stop_s is None else f"{own.start_s:.2f}+{own.stop_s:.2f}"
    return [
        whole(one.total),
        "" if own.core is None else f"{100 * own.core.value:.2f}",
        _mib(own.memory_bytes),
        _mib(own.written_bytes),
        outside,
        "" if own.outside_s is None else f"{own.outside_s:.2f}",
        "" if own.samples is None else f"{own.samples:.0f}",
        "" if one.load is None else f"{one.load[1]:.1f}-{one.load[2]:.1f}",
    ]


def _mib(value: float | None) -> str:
    return "" if value is None else f"{value / MIB:.1f}"


def _further(found: Overhead) -> Iterator[RenderableType]:
    """Placebo, energy, rates, place, and what is missing."""
    placebos = [one for one in found.arms if one.placebo is not None]
    if placebos and found.control.state != "differs":
        rows = [[one.label, str(one.placebo.n), whole(one.placebo), _p(one)] for one in placebos if one.placebo is not None]
        yield ""
        yield columns(["inside the process, against the placebo", "n", "CPU +% [95 %]", "Holm p"], rows)
    energies = [one for one in found.arms if one.energy is not None]
    if energies and found.control.state != "differs":
        yield ""
        yield columns(
            ["energy", "n", "energy +% [95 %]"], [[one.label, str(one.energy.n), whole(one.energy)] for one in energies if one.energy]
        )
    lines = [("rates:", one.sentence) for one in found.doses]
    lines += [("place:", found.position.sentence)] if found.position is not None else []
    lines += [("left out:", f"{one.label}: {count} {reason}") for one in found.arms for reason, count in one.lost.items()]
    lines += [("note:", line) for line in _notes(found.arms)]
    lines += [("missing:", line) for line in _missing(found.arms)]
    if lines:
        yield ""
        yield hanging(lines)


def _p(one: Arm) -> str:
    return "" if one.placebo is None or one.placebo.p_adjusted is None else probability(one.placebo.p_adjusted)


def _notes(arms: Sequence[Arm]) -> list[str]:
    """What the comparisons note, a line each note."""
    found: dict[str, list[str]] = {}
    for one in arms:
        for note in one.notes:
            found.setdefault(note, []).append(one.label)
    return [f"{_who(labels, arms)}: {note}" for note, labels in found.items()]


def _who(labels: Sequence[str], arms: Sequence[Arm]) -> str:
    return "every arm" if len(labels) >= sum(1 for one in arms[1:] if one.n) and len(labels) > 1 else ", ".join(labels)


def _missing(arms: Sequence[Arm]) -> list[str]:
    """Figures that could not be had, a line each reason: what an inside monitor has no processes for is said once, in the legend."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in arms:
        for name, reason in one.missing.items():
            if not (one.kind == "inside" and name in {"monitor.cpu_s", "monitor.peak_rss_bytes"}):
                found.setdefault((name.partition(".")[2], reason), []).append(one.label)
    return [f"{name} of {_who(labels, arms)}: {reason.rstrip('.')}." for (name, reason), labels in found.items()]


def _checks(found: Overhead) -> Iterator[RenderableType]:
    yield Text("What such a study must show", "bold")
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for one in found.checks:
        grid.add_row(Text(one.passed, MARKS[one.passed]), Text(f"{one.name}: {one.figures}"))
    yield grid
