"""What runs lack to be submitted to MLPerf Storage, as text of at most 100 columns."""

from __future__ import annotations

from string import ascii_lowercase
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import one_line
from analysis.printing import columns, hanging, on_page

from .mlperf import LEAST_STEPS, RUNS, TIMES_MEMORY
from .submission import largest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from .submission import Submission


def render(found: Sequence[Submission], *, color: bool = False) -> str:
    """Write what the settings lack: what all lack once, of each what it lacks beside that by letters."""
    return on_page(_parts(found), color=color)


def _parts(found: Sequence[Submission]) -> Iterator[RenderableType]:
    yield Text("MLPerf Storage v2.0, training: what is lacking to a submission", "bold")
    yield ""
    shared = [lack for lack in found[0].lacks if all(lack in one.lacks for one in found)] if len(found) > 1 else []
    others = list(dict.fromkeys(lack for one in found for lack in one.lacks if lack not in shared))
    marks = {lack: _mark(at) for at, lack in enumerate(others)}
    heads = ["setting", "ranks", "runs", "division", "AU %", "needs AU %", "samples/s", "as DLIO", "lacks"]
    yield columns(heads, [_row(one, marks) for one in found])
    yield hanging([("samples/s", "all input counted, as the rules say; DLIO leaves the first step out of it as well.")], "dim", "dim")
    disclosed = dict.fromkeys(one_line(change) for one in found for change in one.division.disclosed)
    if disclosed:
        yield hanging([("OPEN", f"alone may change, and is to disclose: {', '.join(disclosed)}.")], "dim", "dim")
    if shared:
        yield ""
        yield Text(f"Lacking in all {len(found)}")
        yield hanging([("-", f"{one_line(lack)}.") for lack in shared])
    if marks:
        yield ""
        yield Text("Lacking in those with its letter" if len(found) > 1 else "Lacking")
        yield hanging([(mark, f"{one_line(lack)}.") for lack, mark in marks.items()])
    yield ""
    yield from _enough(found)
    yield _best(found)


def _row(one: Submission, marks: dict[str, str]) -> list[str]:
    figures = (one.au_percent, one.au_needed_percent, one.samples_per_s, one.samples_per_s_dlio)
    lacks = ("" if len(marks) <= len(ascii_lowercase) else " ").join(marks[lack] for lack in one.lacks if lack in marks)
    return [one_line(one.name, 60), str(one.processes), str(one.runs), one.division.word, *map(_number, figures), lacks]


def _mark(at: int) -> str:
    return ascii_lowercase[at] if at < len(ascii_lowercase) else f"{ascii_lowercase[at // 26 - 1]}{ascii_lowercase[at % 26]}"


def _enough(found: Sequence[Submission]) -> Iterator[RenderableType]:
    """Say what would do, files and runs, and what asks for so many: memory, or steps (which grow with the ranks)."""
    needs: dict[tuple[int, int, str], list[int]] = {}
    for one in found:
        if one.enough is not None:
            by = f"{TIMES_MEMORY} times the memory" if one.enough.by_memory >= one.enough.by_steps else f"{LEAST_STEPS} steps an epoch"
            ranks = needs.setdefault((one.enough.required, round(one.enough.gib), by), [])
            ranks += [one.processes] if one.processes not in ranks else []
    if needs:
        lines = [
            (f"{', '.join(map(str, sorted(ranks)))} rank{'' if ranks == [1] else 's'}", f"{files} files, {gib} GiB ({by})")
            for (files, gib, by), ranks in needs.items()
        ]
        yield Text(f"Enough would be {RUNS} measured runs after one to warm up, with the workload's own records and batch, and")
        yield hanging(lines)
        yield ""


def _best(found: Sequence[Submission]) -> RenderableType:
    best = largest(found)
    if best is None:
        return Text("No setting could be submitted.")
    rate = f"{best.samples_per_s:.2f} samples/s" if best.samples_per_s is not None else "no samples/s"
    return Text(f"To be reported: {one_line(best.name, 40)}, {best.processes} accelerators, {rate} ({best.division.word}).")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
