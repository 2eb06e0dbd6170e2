"""A capped run as text of at most 100 columns: the answer, all tasks together, each task with its algorithms, what must be said besides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from analysis.labels import headline
from analysis.plain import one_line
from analysis.printing import hanging, on_page
from analysis.studies.keys.printable import printable
from analysis.wording import digits, probability

from .figures import ABOVE, ABOVE_102, EXCESS, LONGEST, OVER_SLO, P95, PER_IMAGE, POWER, THROUGHPUT, WHOLE_102, WORST
from .said import answer, legend, of_group
from .words import SAID, caps, drawn_from, excess_of, share, unit_of, value, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import RenderableType

    from analysis.terms import Run

    from .terms import Against, Arm, Group, Side, Together

    Column = tuple[str, Callable[[Arm], str]]

NAME = 24
HELD = {"yes": "green", "no": "bold red", "not shown": "yellow", "no sensor": "dim"}
VERDICTS = {"improved": "bold green", "regressed": "bold red", "equivalent": "green", "inconclusive": "yellow", "not comparable": "dim"}
LOUD = ("SIMULATED", "ACTIVITY", "NO SENSOR", "A/A DIFFERS", "Does not hold")


def render(run: Run, found: Sequence[Side], *, color: bool = False) -> str:
    """Write what is said of a run."""
    return on_page(parts(run, found), color=color)


def parts(run: Run, found: Sequence[Side]) -> Iterator[RenderableType]:
    """The page, part by part."""
    yield Text("\n".join(one_line(line, 400) for line in headline([run]).split("\n")), "bold")
    for side in found:
        yield ""
        yield from _side(printable(side))
    if run.warnings or run.interrupted:
        lines = ["the run was interrupted: later blocks are missing."] * run.interrupted + list(run.warnings)
        yield ""
        yield hanging([("warning:", one_line(line, 1000)) for line in lines], "yellow")


def _side(side: Side) -> Iterator[RenderableType]:
    yield Text(f"back-end {side.backend}", "bold")
    for line in answer(side):
        yield hanging([("•", line)], style="bold yellow" if line.startswith(LOUD) else "")
    if side.together:
        yield ""
        yield Text(f"all {len(side.groups)} tasks together, each as heavy as any other", "bold")
        yield _together(side)
    for group in side.groups:
        yield ""
        yield from _group(group, side)
    yield ""
    yield hanging(legend(side), "dim", "dim")


def _together(side: Side) -> Table:
    table = _table(("algorithm", "tasks", "images/s +% [95 %]", "Holm p", ">1.02 cap % [95 %]", "held", "in tasks"))
    for one in side.together:
        mine = one.name == side.baseline
        table.add_row(
            Text(one.name),
            str(one.tasks),
            "baseline" if mine else whole(one.throughput),
            "" if mine else _p(one.throughput),
            share(one.above) if one.above is None else _blocks(share(one.above), one.above.n, one.above.n + one.lacking),
            Text(one.holds, HELD[one.holds]),
            _of(one),
        )
    return table


def _of(one: Together) -> str:
    return f"{one.held[0]} of {one.held[1]}"


def _group(group: Group, side: Side) -> Iterator[RenderableType]:
    slo = "" if group.slo_ms is None else f", SLO {group.slo_ms:g} ms"
    steady, every = group.steady
    yield Text.assemble((group.title, "bold"), f"   cap {caps(group.caps, side)}{slo}; {steady} of {every} iterations steady")
    table = _table(("algorithm", "n", "images/s", "+% [95 %]", "Holm p", ">1.02 cap % [95 %]", "held", "verdict"))
    for one in group.arms:
        mine = one.name == side.baseline
        rate = one.against.get(THROUGHPUT)
        table.add_row(
            Text(one.name),
            str(one.n) if one.n == one.blocks else f"{one.n}/{one.blocks}",
            value(one.means.get(THROUGHPUT)),
            "" if mine else whole(rate),
            "" if mine or rate is None else _p(rate),
            _blocks(share(one.means.get(ABOVE_102)), one.n - one.unread.get(ABOVE_102, 0), one.n),
            Text(one.holds, HELD[one.holds]) if one.n else "",
            "baseline" if mine else Text(SAID[one.verdict], VERDICTS[one.verdict]),
        )
    yield table
    rest = _rest([one for one in group.arms if one.n], side)
    if rest is not None:
        yield ""
        yield rest
    lines = of_group(group)
    if lines:
        yield hanging(lines)


def _rest(arms: Sequence[Arm], side: Side) -> Table | None:
    """The other figures; a column that no arm has is left out."""
    unit, limited = unit_of(side), drawn_from(side)
    columns: tuple[Column, ...] = (
        ("\nfront", lambda one: "yes" if one.front and len(arms) > 1 else ""),
        (f"{limited}\n{unit}", lambda one: value(one.means.get(POWER))),
        ("energy\nJ/image", lambda one: value(one.means.get(PER_IMAGE), 3)),
        ("p95\nms", lambda one: value(one.means.get(P95), 3)),
        (">SLO\n%", lambda one: share(one.means.get(OVER_SLO)).partition(" ")[0]),
        (">cap\n%", lambda one: share(one.means.get(ABOVE)).partition(" ")[0]),
        (f"above\n{excess_of(side)}/min", lambda one: value(one.means.get(EXCESS), 3)),
        ("longest\ns", lambda one: _most(one, LONGEST)),
        (f"worst\n{unit}", lambda one: _most(one, WORST)),
        ("whole\n>1.02 %", lambda one: share(one.means.get(WHOLE_102)).partition(" ")[0]),
    )
    kept = [(head, of) for head, of in columns if any(of(one) for one in arms)]
    if not kept:
        return None
    table = _table(("\nalgorithm", *(head for head, _ in kept)))
    for one in arms:
        table.add_row(Text(one.name), *(of(one) for _, of in kept))
    return table


def _most(one: Arm, name: str) -> str:
    """Write the largest of all iterations; what is missing in one may be larger."""
    least = "≥" if name in one.unread else ""
    return f"{least}{digits(one.most[name], 3)}" if name in one.most else ""


def _blocks(text: str, n: int, every: int) -> str:
    """Put beside a figure of how many blocks it is, where these are not all."""
    return f"{text} n={n}" if text and n < every else text


def _table(heads: Sequence[str]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="")
    table.add_column(heads[0], overflow="fold", max_width=NAME)
    for head in heads[1:]:
        left = head in {"held", "verdict"}
        table.add_column(head, justify="left" if left else "right", no_wrap=True)
    return table


def _p(one: Against) -> str:
    return "" if one.p_adjusted is None else probability(one.p_adjusted)
